//! The conversation of one stage: a request, replies, and corrections.

use minijinja::context;

use super::stage::{Asks, FEEDBACK, Prompt, StageRef};
use super::{StageError, StageTexts};
use crate::llm::{CallSite, ChatMessage, ChatRequest, Finish, ModelRole, Models};

/// Bytes of a reply. The longest files that a prompt asks for are smaller.
const MAX_REPLY: usize = 400_000;
/// Characters of a longer reply that stay in the conversation.
const SHOWN_OF_LONG: usize = 2_000;
/// Number of problems in one message. The next version is examined for the others again.
const MAX_PROBLEMS: usize = 12;

/// How the problems of a version were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Evidence {
    /// By reading the reply.
    Read,
    /// By running trials.
    Executed,
}

/// The models, prompts and unit of work for a request.
#[derive(Clone, Copy, Debug)]
pub struct Asking<'a> {
    pub models: &'a Models,
    pub texts: &'a StageTexts,
    /// The unit in the call sites.
    pub unit: &'a str,
    /// The round in the call sites: how often the task was evolved.
    pub round: u32,
}

/// The stage's name in call sites.
pub(super) fn site_stage(stage: StageRef) -> String {
    format!("author-{}", stage.name())
}

/// The messages of one stage so far.
#[derive(Debug)]
pub(super) struct StageConversation {
    stage: StageRef,
    role: ModelRole,
    messages: Vec<ChatMessage>,
    /// Number of replies so far.
    step: u32,
    /// Number of replies that were commands.
    commands: u32,
    /// Whether a version was taken into the draft.
    taken: bool,
}

impl StageConversation {
    /// Opens a conversation with the stage's prompts. `prompt` has the values for them.
    pub(super) fn open(texts: &StageTexts, stage: StageRef, prompt: Prompt) -> Result<Self, StageError> {
        let texts = texts.of(stage)?;
        let Prompt { system, task } = prompt;
        let role = match stage.asks() {
            Asks::Model(role) => role,
            Asks::Solvers => ModelRole::Solver,
            Asks::Nobody => ModelRole::Author,
        };
        // Only a system prompt with values is a template.
        let system = match texts.render("system.md.j2", system) {
            Ok(text) => text,
            Err(_) => texts.text("system.md")?.to_owned(),
        };
        let task = texts.render("task.md.j2", task)?;
        let messages = vec![ChatMessage::system(system), ChatMessage::user(task)];
        Ok(Self { stage, role, messages, step: 0, commands: 0, taken: false })
    }

    /// Adds `text` to the system prompt.
    pub(super) fn add(&mut self, text: &str) {
        if let Some(system) = self.messages.first_mut() {
            system.content.push_str(text);
        }
    }

    /// All messages as one text, for a reader.
    pub(super) fn text(&self) -> String {
        let texts = self.messages.iter().map(|message| format!("{}\n", message.content.trim_end()));
        texts.collect::<Vec<_>>().join("\n")
    }

    /// Number of versions so far, i.e. of replies that were no commands.
    pub(super) fn versions(&self) -> u32 {
        self.step - self.commands
    }

    /// Notes that the last version is in the draft now.
    pub(super) fn took(&mut self) {
        self.taken = true;
    }

    /// Answers a command with its output.
    pub(super) fn show(&mut self, observation: String) {
        self.commands += 1;
        self.messages.push(ChatMessage::user(observation));
    }

    /// The next request, and its call site.
    pub(super) fn request(&self, asking: &Asking<'_>, sample: u32) -> (CallSite, ChatRequest) {
        let site = CallSite {
            role: self.role,
            unit: asking.unit.to_owned(),
            stage: site_stage(self.stage),
            round: asking.round,
            step: self.step,
            sample,
        };
        (site, ChatRequest::of(self.messages.clone()))
    }

    /// Requests the next reply. The inner `Err` says that it is incomplete.
    pub(super) async fn reply(&mut self, asking: &Asking<'_>) -> Result<Result<String, String>, StageError> {
        let (site, request) = self.request(asking, 0);
        let reply = asking.models.call(&site, &request).await?;
        self.step += 1;
        let bytes = reply.message.content.len();
        if bytes > MAX_REPLY {
            // The whole reply would fill the context of the next request.
            let shown: String = reply.message.content.chars().take(SHOWN_OF_LONG).collect();
            self.messages.push(ChatMessage::assistant(format!("{shown} […]")));
            return Ok(Err(format!("it has {bytes} bytes, and {MAX_REPLY} are the most: be shorter")));
        }
        self.messages.push(ChatMessage::assistant(reply.message.content.clone()));
        Ok(match reply.finish {
            Finish::Length => Err("it was cut off at the limit of a reply: be shorter".to_owned()),
            Finish::Stop | Finish::ToolCalls | Finish::ContentFilter | Finish::Other(_) => {
                Ok(reply.message.content)
            }
        })
    }

    /// Tells the model what is wrong with its last version.
    pub(super) fn correct(
        &mut self,
        asking: &Asking<'_>,
        evidence: Evidence,
        problems: &[String],
    ) -> Result<(), StageError> {
        let executed = evidence == Evidence::Executed;
        let texts = asking.texts.of(self.stage)?;
        let mut feedback: Vec<_> = problems.iter().take(MAX_PROBLEMS).cloned().collect();
        if let more @ 1.. = problems.len().saturating_sub(MAX_PROBLEMS) {
            feedback.push(format!("and {more} more of this kind"));
        }
        self.messages.push(ChatMessage::user(
            texts.render(FEEDBACK, context! { problems => feedback, executed, taken => self.taken })?,
        ));
        Ok(())
    }
}
