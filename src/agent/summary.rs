//! Summaries: a conversation that would exceed the model's context continues from a summary.
//!
//! `terminus` does what Harbor's terminus-2 does (`_summarize`). The model writes a summary of the
//! whole history. A second conversation, which has only the summary, asks questions. The model
//! answers them with the history at hand.
//!
//! The other scaffolds ask for one summary. If that fails, they ask for a short one without the
//! history. If that fails too, the conversation continues with the task and the end of the screen.

use std::time::Duration;

use minijinja::context;

use super::control::{self, in_other_words};
use super::conversation::{Conversation, HandedOff, HandoffSeen, LastShown, end_of};
use super::error::AgentError;
use super::summary_texts::{PlainSummary, SummaryTexts};
use crate::llm::{CallError, CallSite, ChatMessage, ChatRequest, ChatRole, Finish, ModelRole, Models, Tool};
use crate::model::{Aside, AsideKind, Handoff, HandoffShown, Message, Role, Tokens, Turn, TurnKind};
use crate::prompts::PromptsError;

/// Tokens of the context that are kept free for a summary (terminus-2's
/// `proactive_summarization_threshold`).
const RESERVED: u64 = 8_000;
/// Tokens that stay free after the history to summarise (terminus-2 unwinds the history for that).
const UNWOUND_RESERVED: u64 = 4_000;
/// In a small context less is kept free: at most a quarter of it, and half of that after the
/// history, so that the request for a summary still fits.
const RESERVED_SHARE: u64 = 4;
const UNWOUND_PART: u64 = 2 * RESERVED_SHARE;

/// Summarises a conversation. The model that acts writes the summary.
#[derive(Debug)]
pub struct Summariser<'a> {
    pub models: &'a Models,
    pub role: ModelRole,
    /// Id of the rollout.
    pub unit: &'a str,
    /// Round of self-correction, from 0.
    pub round: u32,
    pub texts: SummaryTexts<'a>,
    pub instruction: &'a str,
}

/// Tokens that are kept free for a summary, in a context of `most` tokens.
pub(super) fn reserved_tokens(most: u64) -> u64 {
    RESERVED.min(most / RESERVED_SHARE)
}

/// Why a summary failed.
enum Failed {
    /// The request is longer than the context.
    TooLong,
    /// The reply is empty, or the server withheld it.
    Unusable,
    Error(AgentError),
}

impl From<AgentError> for Failed {
    fn from(error: AgentError) -> Self {
        match error {
            AgentError::Call(CallError::ContextLength { .. }) => Self::TooLong,
            AgentError::Refused { .. } => Self::Unusable,
            error => Self::Error(error),
        }
    }
}

impl From<PromptsError> for Failed {
    fn from(error: PromptsError) -> Self {
        Self::Error(error.into())
    }
}

/// The calls of a handoff so far.
#[derive(Default)]
struct Asked {
    asides: Vec<Aside>,
    prompts: Vec<String>,
    /// Time of the requests that were answered.
    served: Duration,
}

impl Asked {
    /// The complete handoff, and the time of its answered requests.
    fn handed_off(
        self,
        conversation: &Conversation,
        unread: usize,
        context: Vec<Message>,
    ) -> (HandedOff, Duration) {
        let Self { asides, prompts, served } = self;
        let handed = HandedOff {
            handoff: Handoff { turns: conversation.turns.len(), unread, asides, ..Handoff::default() },
            seen: HandoffSeen { shown: HandoffShown { prompts, context }, ..HandoffSeen::default() },
        };
        (handed, served)
    }
}

/// The part of a history that a request for a summary holds.
#[derive(Clone, Copy, Debug)]
struct Read {
    /// Number of turns since the last handoff, at least one.
    turns: usize,
    last: LastShown,
}

impl Read {
    /// The next shorter part, for when a request was too long. It is a quarter shorter, so that
    /// even for a long history few requests are refused.
    fn less(self) -> Option<Self> {
        const PART: usize = 4;
        let turns = match self.last {
            LastShown::In => self.turns,
            LastShown::Cut | LastShown::Out => self.turns - (self.turns / PART).max(1),
        };
        let last = if self.last == LastShown::Out { LastShown::Out } else { LastShown::Cut };
        (turns > 0).then_some(Self { turns, last })
    }
}

impl Summariser<'_> {
    /// Summarises the turns since the last handoff. `screen` is the terminal's text, `most` the
    /// tokens of the model's context. Also returns the time of the requests that were answered.
    pub(super) async fn hand_off(
        &self,
        conversation: &Conversation,
        screen: &str,
        most: Option<u64>,
    ) -> Result<(HandedOff, Duration), AgentError> {
        let assistant = conversation.turns.len() - conversation.segment_start();
        let Some(mut read) = self.fitting(conversation, assistant, most) else {
            return self.without_history(conversation, screen, Asked::default()).await;
        };
        let mut tried = 0;
        // All paid calls are recorded, also those that failed.
        let mut asked = Asked::default();
        loop {
            match self.whole(conversation, read, screen, tried, &mut asked).await {
                Ok(context) => return Ok(asked.handed_off(conversation, assistant - read.turns, context)),
                Err(Failed::Error(error)) => return Err(error),
                Err(Failed::TooLong) => {
                    tried += 1;
                    match read.less() {
                        Some(less) => read = less,
                        None => return self.without_history(conversation, screen, asked).await,
                    }
                }
                Err(Failed::Unusable) => return self.without_history(conversation, screen, asked).await,
            }
        }
    }

    /// A handoff of a history that no model could read.
    async fn without_history(
        &self,
        conversation: &Conversation,
        screen: &str,
        mut asked: Asked,
    ) -> Result<(HandedOff, Duration), AgentError> {
        let context = self.short(conversation, screen, &mut asked).await?;
        Ok(asked.handed_off(conversation, conversation.turns.len() - conversation.segment_start(), context))
    }

    /// Asks for a summary of `read`, a part of the turns since the last handoff.
    async fn whole(
        &self,
        conversation: &Conversation,
        read: Read,
        screen: &str,
        tried: u32,
        asked: &mut Asked,
    ) -> Result<Vec<Message>, Failed> {
        let tools: Vec<Tool> = conversation
            .opening
            .tools
            .iter()
            .map(|tool| Tool {
                name: tool.name.clone(),
                description: tool.description.clone(),
                parameters: tool.parameters.clone(),
            })
            .collect();
        let behind = |messages: Vec<ChatMessage>| ChatRequest {
            // Servers refuse a history with function calls if the request defines no function.
            no_tool_calls: !tools.is_empty(),
            tools: tools.clone(),
            ..ChatRequest::of(messages)
        };
        Ok(match self.texts {
            SummaryTexts::Terminus(texts) => {
                let prompt = texts.summary(self.instruction);
                let mut messages = conversation.history(read.turns, read.last);
                say(&mut messages, &prompt);
                let request = behind(messages.clone());
                let summary =
                    self.ask(AsideKind::Summary, conversation, tried, prompt, &request, asked).await?;
                let questions = texts.questions(self.instruction, &summary, screen);
                let request = ChatRequest::of(vec![ChatMessage::user(questions.clone())]);
                let asks = self
                    .ask(AsideKind::Questions, conversation, tried, questions.clone(), &request, asked)
                    .await?;
                messages.push(ChatMessage::assistant(summary));
                let prompt = texts.answers(&asks);
                say(&mut messages, &prompt);
                let request = behind(messages);
                let answers =
                    self.ask(AsideKind::Answers, conversation, tried, prompt, &request, asked).await?;
                vec![
                    user(conversation.opening.prompt.clone()),
                    user(questions),
                    Message::text(Role::Assistant, asks),
                    user(texts.handoff(&answers)),
                ]
            }
            SummaryTexts::Plain(texts) => {
                let mut messages = conversation.history(read.turns, read.last);
                let prompt = texts.0.render("ask.md.j2", context! { instruction => self.instruction })?;
                say(&mut messages, &prompt);
                let request = behind(messages);
                let summary =
                    self.ask(AsideKind::Summary, conversation, tried, prompt, &request, asked).await?;
                let unread = conversation.segment_start() + read.turns < conversation.turns.len();
                let last = if unread { LastStep::of(conversation, screen) } else { LastStep::default() };
                vec![user(plain_handoff(texts, conversation, &summary, Notes::Whole, &last)?)]
            }
        })
    }

    /// A summary without the history. If that fails too, the screen alone.
    async fn short(
        &self,
        conversation: &Conversation,
        screen: &str,
        asked: &mut Asked,
    ) -> Result<Vec<Message>, AgentError> {
        let last = LastStep::of(conversation, screen);
        let notes = former_notes(conversation);
        let prompt = match self.texts {
            SummaryTexts::Terminus(texts) => texts.short_summary(self.instruction, screen),
            SummaryTexts::Plain(texts) => {
                let LastStep { message, shown } = &last;
                let values = context! { instruction => self.instruction, notes, message, last => shown };
                texts.0.render("short.md.j2", values)?
            }
        };
        let request = ChatRequest::of(vec![ChatMessage::user(prompt.clone())]);
        let summary = match self.ask(AsideKind::Short, conversation, 0, prompt, &request, asked).await {
            Ok(summary) => Some(summary),
            Err(Failed::Error(error)) => return Err(error),
            Err(Failed::TooLong | Failed::Unusable) => None,
        };
        Ok(match self.texts {
            SummaryTexts::Terminus(texts) => {
                let handoff = match &summary {
                    Some(summary) => texts.short_handoff(self.instruction, summary),
                    None => texts.last_resort(self.instruction, screen),
                };
                vec![user(conversation.opening.prompt.clone()), user(handoff)]
            }
            SummaryTexts::Plain(texts) => {
                let notes = summary.as_deref().unwrap_or(notes);
                vec![user(plain_handoff(texts, conversation, notes, Notes::OfLastStep, &last)?)]
            }
        })
    }

    /// The longest part of the turns since the last handoff that fits the context, by the usage
    /// that the server reported. `None` if no part fits.
    fn fitting(&self, conversation: &Conversation, assistant: usize, most: Option<u64>) -> Option<Read> {
        let whole = Read { turns: assistant, last: self.last_shown(conversation) };
        let Some(most) = most else { return Some(whole) };
        let most = most.saturating_sub(UNWOUND_RESERVED.min(most / UNWOUND_PART));
        let start = conversation.segment_start();
        let fits = |read: &Read| {
            let turns = start + read.turns;
            let tokens = match read.last {
                LastShown::In => conversation.tokens_until(turns),
                LastShown::Cut => conversation.tokens_until_cut(turns),
                LastShown::Out => conversation.tokens_said(turns),
            };
            tokens.is_none_or(|tokens| tokens <= most)
        };
        let last = if whole.last == LastShown::Out { LastShown::Out } else { LastShown::Cut };
        std::iter::once(whole).chain((1..=assistant).rev().map(|turns| Read { turns, last })).find(fits)
    }

    /// How much of the last observation is summarised. terminus-2 omits it, since the screen is
    /// sent later. But feedback and a mentor's answer are not on the screen, so they are kept.
    fn last_shown(&self, conversation: &Conversation) -> LastShown {
        match self.texts {
            SummaryTexts::Terminus(_) if !conversation.turns.last().is_some_and(is_answered) => {
                LastShown::Out
            }
            SummaryTexts::Terminus(_) | SummaryTexts::Plain(_) => LastShown::In,
        }
    }

    async fn ask(
        &self,
        kind: AsideKind,
        conversation: &Conversation,
        tried: u32,
        prompt: String,
        request: &ChatRequest,
        asked: &mut Asked,
    ) -> Result<String, Failed> {
        let site = CallSite {
            role: self.role,
            unit: self.unit.to_owned(),
            stage: kind.as_str().to_owned(),
            round: self.round,
            step: u32::try_from(conversation.turns.len()).unwrap_or(u32::MAX),
            sample: tried,
        };
        let control = in_other_words(conversation, request);
        let reply = control::call(self.models, &site, request, control).await?;
        asked.served += reply.served;
        let content = reply.message.content;
        let unusable = reply.finish == Finish::ContentFilter || content.trim().is_empty();
        asked.prompts.push(prompt);
        asked.asides.push(Aside {
            kind,
            content: content.clone(),
            reasoning: reply.message.reasoning,
            call: reply.key,
            usage: reply
                .usage
                .map(|usage| Tokens { prompt: usage.prompt_tokens, completion: usage.completion_tokens }),
        });
        if unusable { Err(Failed::Unusable) } else { Ok(content) }
    }
}

/// The texts that the author of the notes had read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Notes {
    /// The conversation.
    Whole,
    /// The previous notes and the last step.
    OfLastStep,
}

/// The last step, for notes that do not cover it.
#[derive(Default)]
struct LastStep {
    message: String,
    shown: String,
}

impl LastStep {
    fn of(conversation: &Conversation, screen: &str) -> Self {
        let message = conversation.turns.last().map(assistant).unwrap_or_default();
        Self { message: end_of(&message), shown: end_of(screen) }
    }
}

/// The text of a message, and the arguments of its tool calls.
fn assistant(turn: &Turn) -> String {
    let calls = turn.tool_calls.iter().map(|call| call.arguments.as_str());
    std::iter::once(turn.content.trim())
        .chain(calls)
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("\n")
}

/// The notes of the last handoff.
fn former_notes(conversation: &Conversation) -> &str {
    let asides =
        conversation.handoffs.last().map(|handed| handed.handoff.asides.as_slice()).unwrap_or_default();
    let notes = asides.iter().rfind(|aside| matches!(aside.kind, AsideKind::Summary | AsideKind::Short));
    notes.map(|aside| aside.content.trim()).unwrap_or_default()
}

fn plain_handoff(
    texts: &PlainSummary,
    conversation: &Conversation,
    notes: &str,
    by: Notes,
    last: &LastStep,
) -> Result<String, PromptsError> {
    let LastStep { message, shown } = last;
    let whole = by == Notes::Whole;
    let values = context! { prompt => &conversation.opening.prompt, notes, whole, message, last => shown };
    texts.0.render("handoff.md.j2", values)
}

/// Whether a verifier or a mentor answered a turn, and not the terminal.
fn is_answered(turn: &Turn) -> bool {
    matches!(turn.kind, TurnKind::Submitted | TurnKind::Asked)
}

/// Appends a user message. If the last message is the user's too, the texts are joined: some chat
/// templates refuse two user messages in a row.
fn say(messages: &mut Vec<ChatMessage>, text: &str) {
    match messages.last_mut() {
        Some(last) if last.role == ChatRole::User => {
            last.content.push_str("\n\n");
            last.content.push_str(text);
        }
        Some(_) | None => messages.push(ChatMessage::user(text)),
    }
}

fn user(content: String) -> Message {
    Message::text(Role::User, content)
}
