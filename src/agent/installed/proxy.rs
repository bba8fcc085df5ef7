//! Turns an agent's HTTP requests into model calls, and these into a conversation.

use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::Installed;
use super::delivery::{Answer, Delivery, deliver};
use super::dialect::{self, Asked, Inquiry, Refusal, RefusalKind};
use super::http::Request;
use crate::agent::control;
use crate::agent::conversation::{Conversation, TurnSeen};
use crate::agent::error::AgentError;
use crate::agent::scaffold::{Dollars, EpisodeContext, Opening, StepLimits};
use crate::clock::now_ms;
use crate::llm::{BudgetExceeded, CallError, CallSite, ChatMessage, ChatRequest, ChatRole, Finish, Reply};
use crate::model::{End, Shown, Tokens, ToolCall, ToolDefinition, Turn, TurnKind};
use crate::sandbox::RelayCall;

/// The model endpoint of one agent.
pub(super) struct Proxy<'a, 't> {
    installed: &'a Installed<'a>,
    episode: &'a EpisodeContext<'a>,
    conversation: &'t mut Conversation,
    /// Every message of the conversation so far, the last reply included.
    messages: Vec<ChatMessage>,
    calls: u32,
    consumed: Consumption,
    /// The limit for which a call was refused.
    refused: Option<End>,
    /// How long the current call was not being answered: it waited in a queue, for a rate limit, or for attempts that failed.
    waited: Duration,
    /// The same of the call during which the agent ended.
    held_up: Duration,
    /// The model has answered a call of the agent, or has refused what it was asked.
    answered: bool,
    /// Why the last request was refused that the model never saw, e.g. for an address of another
    /// API.
    refusal: Option<String>,
}

/// Consumption by all calls of the agent, those of earlier conversations included.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Consumption {
    replies: u32,
    /// Calls that were refused for the agent's own text. An agent that goes on with them must end,
    /// and the deadline does not pass during a call.
    refusals: u32,
    tokens: u64,
    usd: f64,
}

impl Consumption {
    fn add(&mut self, reply: &Reply, price: Option<&Dollars>) {
        self.replies += 1;
        let Some(usage) = reply.usage else { return };
        self.tokens += usage.prompt_tokens + usage.completion_tokens;
        self.usd += price.map_or(0.0, |price| price.of(usage.prompt_tokens, usage.completion_tokens));
    }

    /// The limit that permits no further call, if there is one.
    fn limit_reached(&self, limits: &StepLimits) -> Option<End> {
        if self.replies + self.refusals >= limits.turns {
            Some(End::StepLimit)
        } else if limits.tokens.is_some_and(|most| self.tokens >= most) {
            Some(End::TokenLimit)
        } else if limits.dollars.is_some_and(|dollars| self.usd >= dollars.limit) {
            Some(End::DollarLimit)
        } else {
            None
        }
    }
}

impl<'a, 't> Proxy<'a, 't> {
    pub(super) fn new(
        installed: &'a Installed<'a>,
        episode: &'a EpisodeContext<'a>,
        conversation: &'t mut Conversation,
    ) -> Self {
        Self {
            installed,
            episode,
            conversation,
            messages: Vec::new(),
            calls: 0,
            consumed: Consumption::default(),
            refused: None,
            waited: Duration::ZERO,
            held_up: Duration::ZERO,
            answered: false,
            refusal: None,
        }
    }

    /// Answers requests until `agent_ended`, or until a call fails for a reason other than the agent. A call in flight is completed first:
    /// if the agent exits because the endpoint fails, the agent has not failed.
    pub(super) async fn serve(
        &mut self,
        mut calls: mpsc::Receiver<RelayCall>,
        agent_ended: &CancellationToken,
    ) -> Result<(), AgentError> {
        loop {
            let call = tokio::select! {
                biased;
                () = agent_ended.cancelled() => return Ok(()),
                call = calls.recv() => call,
            };
            let Some(call) = call else {
                // The sandbox is lost; the error of its shell names the cause.
                agent_ended.cancelled().await;
                return Ok(());
            };
            self.waited = Duration::ZERO;
            let delivery = self.answer(call).await?;
            if agent_ended.is_cancelled() {
                self.held_up = self.waited;
                return Ok(());
            }
            if delivery == Delivery::ClientGone {
                tracing::debug!(
                    unit = self.installed.unit,
                    "the agent closed its connection before the response"
                );
            }
        }
    }

    /// The limit for which a call of the agent was refused, if one was.
    pub(super) fn refused(&self) -> Option<End> {
        self.refused
    }

    /// Whether the model has answered the agent at all, if only by the refusal of what it was
    /// asked.
    pub(super) fn is_answered(&self) -> bool {
        self.answered
    }

    /// Why the last request was refused that the model never saw.
    pub(super) fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }

    /// How long the call during which the agent ended was held up, and not by the model. Zero if there was no such call.
    pub(super) fn held_up(&self) -> Duration {
        self.held_up
    }

    /// Marks the agent's last message as its submission, unless a limit ended its work.
    pub(super) fn finish(&mut self) {
        if self.refused.is_some() {
            return;
        }
        if let (Some(turn), Some(seen)) = (self.conversation.turns.last_mut(), self.conversation.seen.last())
            && seen.shown.is_empty()
        {
            turn.kind = TurnKind::Submitted;
        }
    }

    async fn answer(&mut self, call: RelayCall) -> Result<Delivery, AgentError> {
        let (settings, _) = self.installed.models.settings(self.installed.role)?;
        let inquiry = match Request::read(&call.request) {
            Ok(request) => dialect::inquire(&request, &settings.model),
            Err(unreadable) => dialect::unreadable(unreadable),
        };
        let response = match inquiry {
            Inquiry::Asked(Asked { request, responder }) => {
                // Boxed: callers nest this deep in futures of their own.
                return Box::pin(deliver(call.reply, responder, self.chat(request))).await;
            }
            Inquiry::Answered(response) => response,
            Inquiry::Refused { refusal, response } => {
                self.refusal = Some(refusal.message);
                response
            }
        };
        Ok(call.reply.all(response).await.map_or(Delivery::ClientGone, |()| Delivery::Sent))
    }

    async fn chat(&mut self, request: ChatRequest) -> Result<Answer, AgentError> {
        let limits = self.episode.limits;
        if let Some(limit) = self.refused.or_else(|| self.consumed.limit_reached(limits)) {
            self.refused.get_or_insert(limit);
            let message = format!("no further calls: {} reached", limit.as_str());
            return Ok(Answer::Refused(Refusal::new(RefusalKind::Limit, message)));
        }
        let site = CallSite {
            role: self.installed.role,
            unit: self.installed.unit.to_owned(),
            stage: "request".to_owned(),
            round: 0,
            step: self.calls,
            sample: 0,
        };
        self.calls += 1;
        let started = Instant::now();
        let deadline = &self.episode.deadline;
        deadline.pause();
        let control = Some(control::greeting());
        let called = control::call(self.installed.models, &site, &request, control).await;
        let took = started.elapsed();
        let served = called.as_ref().map_or(Duration::ZERO, |reply| reply.served);
        deadline.resume(served);
        self.waited = took.saturating_sub(served);
        let reply = match called {
            Ok(reply) => reply,
            // The agent is told, and can correct its request. Any other error would recur in every
            // further call.
            Err(error @ (AgentError::Refused { .. } | AgentError::Call(CallError::ContextLength { .. }))) => {
                // Any other refusal is of a form of request that the endpoint does not know.
                self.answered |= !matches!(error, AgentError::Refused { end: End::RequestRefused, .. });
                // The agent's own text took this time, and the control's.
                self.waited = Duration::ZERO;
                self.consumed.refusals += 1;
                let kind = match error {
                    AgentError::Call(CallError::ContextLength { .. }) => RefusalKind::ContextLength,
                    _ => RefusalKind::Malformed,
                };
                self.refusal = Some(error.to_string());
                return Ok(Answer::Refused(Refusal::new(kind, error.to_string())));
            }
            Err(AgentError::Call(CallError::Budget(exceeded))) if exceeded.by_one_large_call() => {
                self.waited = Duration::ZERO;
                let is_dollars = matches!(exceeded, BudgetExceeded::Usd { .. });
                let end = if is_dollars { End::DollarLimit } else { End::TokenLimit };
                self.refused.get_or_insert(end);
                let message = format!("the call is too large for the budget: {exceeded}");
                return Ok(Answer::Refused(Refusal::new(RefusalKind::Limit, message)));
            }
            Err(error) => return Err(error),
        };
        self.answered = true;
        self.consumed.add(&reply, limits.dollars.as_ref());
        self.record(request, &reply, took);
        Ok(Answer::Reply(Box::new(reply)))
    }

    /// Appends to the conversation, or begins another one where the request does not continue from the last reply.
    fn record(&mut self, request: ChatRequest, reply: &Reply, took: Duration) {
        let continues = !self.messages.is_empty()
            && request.messages.len() > self.messages.len()
            && request.messages.iter().zip(&self.messages).all(|(one, other)| same_message(one, other));
        let new = if continues { request.messages.get(self.messages.len()..) } else { None };
        match (new, self.conversation.seen.last_mut()) {
            (Some(new), Some(seen)) => seen.shown = new.iter().map(shown).collect(),
            _ => *self.conversation = begun(&request),
        }
        self.messages = request.messages;
        self.messages.push(reply.message.clone());
        let calls = reply.message.tool_calls.iter();
        self.conversation.turns.push(Turn {
            content: reply.message.content.clone(),
            reasoning: reply.message.reasoning.clone(),
            tool_calls: calls
                .map(|call| ToolCall {
                    id: call.id.clone(),
                    name: call.name.clone(),
                    arguments: call.arguments.clone(),
                })
                .collect(),
            call: Some(reply.key.clone()),
            usage: reply
                .usage
                .map(|usage| Tokens { prompt: usage.prompt_tokens, completion: usage.completion_tokens }),
            cut_off: reply.finish == Finish::Length,
            ..Turn::default()
        });
        let [think_ms, served_ms] = [took, reply.served].map(|time| time.as_secs_f64() * 1e3);
        let seen = TurnSeen { at_ms: now_ms(), think_ms, served_ms, ..TurnSeen::default() };
        self.conversation.seen.push(seen);
    }
}

/// Clients send earlier messages back, but may omit some fields.
fn same_message(one: &ChatMessage, other: &ChatMessage) -> bool {
    one.role == other.role && one.content == other.content && one.tool_calls == other.tool_calls
}

fn shown(message: &ChatMessage) -> Shown {
    Shown { tool_call: message.tool_call_id.clone(), content: message.content.clone() }
}

/// A conversation before its first reply.
fn begun(request: &ChatRequest) -> Conversation {
    let of = |role: ChatRole| {
        let texts = request.messages.iter().filter(|message| message.role == role);
        texts.map(|message| message.content.as_str()).collect::<Vec<_>>().join("\n\n")
    };
    let tools = request.tools.iter().map(|tool| ToolDefinition {
        name: tool.name.clone(),
        description: tool.description.clone(),
        parameters: tool.parameters.clone(),
    });
    let opening =
        Opening { system: of(ChatRole::System), prompt: of(ChatRole::User), tools: tools.collect() };
    Conversation { opening, ..Conversation::default() }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn calls_past_a_limit_are_refused() {
        let dollars = Dollars { limit: 1.0, usd_per_1m_input_tokens: 1.0, usd_per_1m_output_tokens: 2.0 };
        let limits = |turns, tokens, dollars| StepLimits {
            turns,
            tokens,
            dollars,
            ..StepLimits::scripted(Duration::from_secs(1))
        };
        let check = |(replies, tokens, usd): (u32, u64, f64), limits: StepLimits, expect: Option<End>| {
            let consumed = Consumption { replies, tokens, usd, ..Consumption::default() };
            assert_eq!(consumed.limit_reached(&limits), expect, "{consumed:?} {limits:?}");
        };
        check((0, 0, 0.0), limits(1, None, None), None);
        check((1, 0, 0.0), limits(1, None, None), Some(End::StepLimit));
        check((0, 0, 0.0), limits(0, None, None), Some(End::StepLimit));
        check((2, 99, 0.0), limits(3, Some(100), None), None);
        check((2, 100, 0.0), limits(3, Some(100), None), Some(End::TokenLimit));
        check((2, 100, 0.9), limits(3, None, Some(dollars)), None);
        check((2, 100, 1.0), limits(3, None, Some(dollars)), Some(End::DollarLimit));
        let refused = Consumption { replies: 2, refusals: 3, ..Consumption::default() };
        assert_eq!(refused.limit_reached(&limits(6, None, None)), None);
        assert_eq!(refused.limit_reached(&limits(5, None, None)), Some(End::StepLimit));
        assert_eq!(dollars.of(1_000_000, 500_000), 2.0);
    }
}
