//! Turns an agent's HTTP requests into model calls, and these into conversations.
//!
//! Calls are served at the same time, since an agent's sub-agents ask at the same time.
//!
//! After an interruption, the agent's process starts again. A request that equals one of the
//! earlier process gets its committed reply from the journal, at no cost. Where a request differs,
//! e.g. by the time in an output, it is a new call, and the rollout goes on from there: the record
//! holds what the last process saw. A call's site depends on its request alone. So a
//! committed reply is found even if the agent asks in another order.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::Installed;
use super::delivery::{Answer, Delivery, deliver};
use super::dialect::{self, Asked, Inquiry, Refusal, RefusalKind};
use super::http::Request;
use super::threads::{Place, Rules, Threads, Ticket};
use crate::agent::control;
use crate::agent::conversation::{Conversation, TurnSeen};
use crate::agent::error::AgentError;
use crate::agent::scaffold::{Dollars, EpisodeContext, StepLimits};
use crate::clock::now_ms;
use crate::llm::{BudgetExceeded, CallError, CallSite, ChatRequest, Finish, Reply};
use crate::model::{End, Tokens, ToolCall, Turn, TurnKind};
use crate::sandbox::RelayCall;

/// Calls of one agent that are served at the same time. Others wait.
const MAX_IN_FLIGHT: usize = 16;
/// Replies without being a step, e.g. titles, for each step that an agent may make. Agents in use
/// ask for one title, and for a summary now and then.
const MOST_ASIDE: u32 = 4;

/// The model endpoint of one agent.
pub(super) struct Proxy<'a> {
    installed: &'a Installed<'a>,
    episode: &'a EpisodeContext<'a>,
    state: Mutex<State>,
    /// Cancelled at the first call that is refused because of a limit.
    over: CancellationToken,
}

/// What the calls so far have left.
struct State {
    threads: Threads,
    consumed: Consumption,
    /// How often each request was answered, or is being answered.
    asked: HashMap<Place, u32>,
    /// The limit for which a call was refused.
    refused: Option<End>,
    /// The model has answered a call of the agent, or has refused what it was asked.
    answered: bool,
    /// Why the last request was refused that the model never saw, e.g. for an address of another
    /// API.
    refusal: Option<String>,
    /// How long calls during which the agent ended were held up, and not by the model.
    held_up: Duration,
}

/// What an agent's calls left behind.
#[derive(Debug)]
pub(super) struct Served {
    pub(super) conversation: Conversation,
    pub(super) refused: Option<End>,
    /// Whether the model has answered the agent at all, if only by the refusal of what it was
    /// asked.
    pub(super) answered: bool,
    /// Why the last request was refused that the model never saw.
    pub(super) refusal: Option<String>,
    /// The longest time for which a call during which the agent ended was held up, and not by the
    /// model. Zero if there was no such call.
    pub(super) held_up: Duration,
}

/// Consumption by all calls of the agent, in all of its conversations.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Consumption {
    /// Steps, the next one included.
    steps: u32,
    replies: u32,
    /// Requests that the endpoint refused for their text, e.g. malformed ones. They count as steps:
    /// an agent that sends them for ever would never meet another limit.
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

    /// The limit that does not permit the next call, if there is one.
    fn limit_reached(&self, limits: &StepLimits) -> Option<End> {
        let most = limits.turns.saturating_mul(1 + MOST_ASIDE);
        if self.steps + self.refusals > limits.turns || self.replies + self.refusals >= most {
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

/// A call of the model that is permitted.
struct Call {
    ticket: Ticket,
    place: Place,
    /// Number of earlier answers to the same request.
    sample: u32,
}

impl<'a> Proxy<'a> {
    pub(super) fn new(installed: &'a Installed<'a>, episode: &'a EpisodeContext<'a>, rules: Rules) -> Self {
        let state = State {
            threads: Threads::new(rules),
            consumed: Consumption::default(),
            asked: HashMap::new(),
            refused: None,
            answered: false,
            refusal: None,
            held_up: Duration::ZERO,
        };
        Self { installed, episode, state: Mutex::new(state), over: CancellationToken::new() }
    }

    /// Answers requests until `agent_ended`, or until a call fails for a reason other than the
    /// agent. Calls in flight are completed first: if the agent exits because the endpoint fails,
    /// the agent has not failed.
    pub(super) async fn serve(
        &self,
        mut calls: mpsc::Receiver<RelayCall>,
        agent_ended: &CancellationToken,
    ) -> Result<(), AgentError> {
        let mut in_flight = FuturesUnordered::new();
        let mut is_open = true;
        loop {
            let ended = agent_ended.is_cancelled();
            if ended && in_flight.is_empty() {
                return Ok(());
            }
            tokio::select! {
                biased;
                () = agent_ended.cancelled(), if !ended => {}
                Some(done) = in_flight.next() => done?,
                call = calls.recv(), if is_open && !ended && in_flight.len() < MAX_IN_FLIGHT => match call {
                    Some(call) => in_flight.push(self.handle(call, agent_ended)),
                    // The sandbox is lost; the error of its shell names the cause.
                    None => is_open = false,
                },
            }
        }
    }

    /// Completes once a limit refuses a call.
    pub(super) async fn over(&self) {
        self.over.cancelled().await;
    }

    /// Marks the agent's last message as its submission, unless a limit ended its work.
    pub(super) fn finish(self) -> Served {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        let State { threads, refused, answered, refusal, held_up, .. } = state;
        let mut conversation = threads.finish();
        if let (None, Some(turn), Some(seen)) =
            (refused, conversation.turns.last_mut(), conversation.seen.last())
            && seen.shown.is_empty()
        {
            turn.kind = TurnKind::Submitted;
        }
        Served { conversation, refused, answered, refusal, held_up }
    }

    /// A poisoned lock has a valid state: no change panics halfway.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn handle(&self, call: RelayCall, agent_ended: &CancellationToken) -> Result<(), AgentError> {
        let (settings, _) = self.installed.models.settings(self.installed.role)?;
        let read = Request::read(&call.request);
        let headers = self.installed.program.threads.as_ref();
        let key = read.as_ref().ok().zip(headers);
        let key = key.and_then(|(request, headers)| headers.key(|name| request.header(name)));
        let inquiry = match read {
            Ok(request) => dialect::inquire(&request, &settings.model),
            Err(unreadable) => dialect::unreadable(unreadable),
        };
        let response = match inquiry {
            Inquiry::Asked(Asked { request, responder }) => {
                let mut place = None;
                let work = self.answer(key.as_deref(), request, agent_ended, &mut place);
                // Boxed: callers nest this deep in futures of their own.
                let delivery = Box::pin(deliver(call.reply, responder, work)).await?;
                if delivery == Delivery::ClientGone {
                    self.undelivered(place.as_ref());
                }
                return Ok(());
            }
            Inquiry::Answered(response) => response,
            Inquiry::Refused { refusal, response } => {
                self.state().refusal = Some(refusal.message);
                response
            }
        };
        // A client that is gone needs no answer.
        let _ = call.reply.all(response).await;
        Ok(())
    }

    /// The client is gone. It gets the same reply if it sends the request again.
    fn undelivered(&self, place: Option<&Place>) {
        tracing::debug!(unit = self.installed.unit, "the agent closed its connection before the response");
        let mut state = self.state();
        if let Some(count) = place.and_then(|place| state.asked.get_mut(place)) {
            *count = count.saturating_sub(1);
        }
    }

    /// Places a request among the conversations. The inner error is why it is refused.
    fn admit(&self, key: Option<&str>, request: &ChatRequest) -> Result<Result<Call, Refusal>, AgentError> {
        let mut state = self.state();
        // A refused request is placed too: it shows what followed the last reply.
        let ticket = state.threads.place(key, request)?;
        state.consumed.steps = state.threads.steps();
        let reached = state.consumed.limit_reached(self.episode.limits);
        if let Some(limit) = state.refused.or(reached) {
            state.threads.abandoned(&ticket);
            self.end_by(&mut state, limit);
            let message = format!("no further calls: {} reached", limit.as_str());
            return Ok(Err(Refusal::new(RefusalKind::Limit, message)));
        }
        let place = Threads::site(request);
        let count = state.asked.entry(place.clone()).or_default();
        let sample = *count;
        *count += 1;
        Ok(Ok(Call { ticket, place, sample }))
    }

    fn end_by(&self, state: &mut State, limit: End) {
        state.refused.get_or_insert(limit);
        self.over.cancel();
    }

    /// The model's answer. It is recorded before the client gets it. `place` becomes the call's.
    async fn answer(
        &self,
        key: Option<&str>,
        request: ChatRequest,
        agent_ended: &CancellationToken,
        place: &mut Option<Place>,
    ) -> Result<Answer, AgentError> {
        let call = match self.admit(key, &request)? {
            Ok(call) => call,
            Err(refusal) => return Ok(Answer::Refused(refusal)),
        };
        *place = Some(call.place.clone());
        let site = CallSite {
            role: self.installed.role,
            unit: self.installed.unit.to_owned(),
            stage: format!("request/{}", call.place.request),
            round: 0,
            step: call.place.depth,
            sample: call.sample,
        };
        let started = Instant::now();
        let deadline = &self.episode.deadline;
        let pause = deadline.pause();
        let control = Some(control::greeting());
        let called = control::call(self.installed.models, &site, &request, control).await;
        let took = started.elapsed();
        let served = called.as_ref().map_or(Duration::ZERO, |reply| reply.served);
        deadline.resume(pause, served);
        let mut state = self.state();
        let reply = match called {
            Ok(reply) => reply,
            Err(error) => {
                state.threads.abandoned(&call.ticket);
                return self.refused(&mut state, error);
            }
        };
        if agent_ended.is_cancelled() {
            state.held_up = state.held_up.max(took.saturating_sub(served));
        }
        state.answered = true;
        state.consumed.add(&reply, self.episode.limits.dollars.as_ref());
        if state.threads.has(&reply.key) {
            state.threads.abandoned(&call.ticket);
        } else {
            let [think_ms, served_ms] = [took, served].map(|time| time.as_secs_f64() * 1e3);
            let seen = TurnSeen { at_ms: now_ms(), think_ms, served_ms, ..TurnSeen::default() };
            state.threads.replied(&call.ticket, &request, turn(&reply), seen);
        }
        Ok(Answer::Reply(Box::new(reply)))
    }

    /// What the client gets if the call failed by the agent's own text. Any other error would recur
    /// in every further call.
    fn refused(&self, state: &mut State, error: AgentError) -> Result<Answer, AgentError> {
        match error {
            error @ (AgentError::Refused { .. } | AgentError::Call(CallError::ContextLength { .. })) => {
                // Any other refusal is of a form of request that the endpoint does not know.
                state.answered |= !matches!(error, AgentError::Refused { end: End::RequestRefused, .. });
                state.consumed.refusals += 1;
                let kind = match error {
                    AgentError::Call(CallError::ContextLength { .. }) => RefusalKind::ContextLength,
                    _ => RefusalKind::Malformed,
                };
                state.refusal = Some(error.to_string());
                Ok(Answer::Refused(Refusal::new(kind, error.to_string())))
            }
            AgentError::Call(CallError::Budget(exceeded)) if exceeded.by_one_large_call() => {
                let is_dollars = matches!(exceeded, BudgetExceeded::Usd { .. });
                self.end_by(state, if is_dollars { End::DollarLimit } else { End::TokenLimit });
                let message = format!("the call is too large for the budget: {exceeded}");
                Ok(Answer::Refused(Refusal::new(RefusalKind::Limit, message)))
            }
            error => Err(error),
        }
    }
}

/// The turn of a reply.
fn turn(reply: &Reply) -> Turn {
    let calls = reply.message.tool_calls.iter();
    Turn {
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
    }
}

#[cfg(test)]
mod tests {
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
        let check = |(steps, tokens, usd): (u32, u64, f64), limits: StepLimits, expect: Option<End>| {
            let consumed = Consumption { steps, tokens, usd, ..Consumption::default() };
            assert_eq!(consumed.limit_reached(&limits), expect, "{consumed:?} {limits:?}");
        };
        check((1, 0, 0.0), limits(1, None, None), None);
        check((2, 0, 0.0), limits(1, None, None), Some(End::StepLimit));
        check((1, 0, 0.0), limits(0, None, None), Some(End::StepLimit));
        check((2, 99, 0.0), limits(3, Some(100), None), None);
        check((2, 100, 0.0), limits(3, Some(100), None), Some(End::TokenLimit));
        check((2, 100, 0.9), limits(3, None, Some(dollars)), None);
        check((2, 100, 1.0), limits(3, None, Some(dollars)), Some(End::DollarLimit));
        let refused = Consumption { steps: 3, refusals: 3, ..Consumption::default() };
        assert_eq!(refused.limit_reached(&limits(6, None, None)), None);
        assert_eq!(refused.limit_reached(&limits(5, None, None)), Some(End::StepLimit));
        // Titles are no steps, and an agent may not ask for them without end.
        let titles = |replies| Consumption { steps: 1, replies, ..Consumption::default() };
        assert_eq!(titles(9).limit_reached(&limits(2, None, None)), None);
        assert_eq!(titles(10).limit_reached(&limits(2, None, None)), Some(End::StepLimit));
        assert_eq!(dollars.of(1_000_000, 500_000), 2.0);
    }
}
