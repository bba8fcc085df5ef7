//! A conversation: its turns so far, and the messages that a model is sent.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::scaffold::{ActSeen, Dollars, Opening};
use crate::llm::{ChatMessage, ChatRole, ToolCall};
use crate::model::{Handoff, HandoffShown, Message, Role, Shown, Turn, TurnKind};

/// The conversation of an episode so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conversation {
    pub opening: Opening,
    pub turns: Vec<Turn>,
    /// One for each turn.
    pub seen: Vec<TurnSeen>,
    /// Handoffs: points at which the conversation continued from a summary.
    pub handoffs: Vec<HandedOff>,
    /// The screen at a handoff that has begun and is not complete.
    pub screen: Option<String>,
    /// Number of first turns whose effects the sandbox already has: it was started from a snapshot that was taken after them.
    pub done: usize,
}

/// What was observed of a turn. Written to `observed/`, never to the store.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TurnSeen {
    /// When the message arrived, in milliseconds since 1970.
    pub at_ms: u64,
    /// Milliseconds from the request to the message.
    #[serde(default)]
    pub think_ms: f64,
    /// Of these, what counts against the time limit: the request that was answered ([`super::Deadline`]).
    #[serde(default)]
    pub served_ms: f64,
    /// The messages that the agent read next.
    pub shown: Vec<Shown>,
    /// One for each act.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub acts: Vec<ActSeen>,
}

/// A handoff with its observations.
#[derive(Clone, Debug, PartialEq)]
pub struct HandedOff {
    pub handoff: Handoff,
    pub seen: HandoffSeen,
}

/// What was observed of a handoff; it holds terminal output. Written to `observed/`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HandoffSeen {
    /// When the summary was complete, in milliseconds since 1970.
    pub at_ms: u64,
    /// Milliseconds that the summary took.
    pub think_ms: f64,
    /// Of these, what counts against the time limit.
    #[serde(default)]
    pub served_ms: f64,
    pub shown: HandoffShown,
}

/// How much of the last observation a history contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LastShown {
    In,
    /// Only its end, as [`end_of`] cuts it.
    Cut,
    Out,
}

/// Characters that [`end_of`] keeps (as terminus-2 does of a screen).
pub(super) const LAST_CHARACTERS: usize = 1_000;

/// The end of a text, and how much was left out before it.
pub(super) fn end_of(text: &str) -> String {
    match text.char_indices().rev().nth(LAST_CHARACTERS - 1) {
        None | Some((0, _)) => text.to_owned(),
        Some((at, _)) => {
            let left_out = text[..at].chars().count();
            format!("[… {left_out} characters left out …]\n{}", &text[at..])
        }
    }
}

/// Low for terminal output, so estimates err on the high side.
const BYTES_PER_TOKEN: u64 = 4;

impl Conversation {
    /// The messages of the next request: those since the last handoff, if there was one.
    pub fn messages(&self) -> Vec<ChatMessage> {
        self.history(self.turns.len() - self.segment_start(), LastShown::In)
    }

    /// The messages of the first `kept` turns since the last handoff.
    pub(super) fn history(&self, kept: usize, last: LastShown) -> Vec<ChatMessage> {
        let start = self.segment_start();
        let mut messages = Vec::with_capacity(kept * 2 + 2);
        if !self.opening.system.is_empty() {
            messages.push(ChatMessage::system(self.opening.system.clone()));
        }
        match self.handoffs.last() {
            None => messages.push(ChatMessage::user(self.opening.prompt.clone())),
            Some(last) => messages.extend(last.seen.shown.context.iter().map(as_sent)),
        }
        for (number, (turn, seen)) in self.turns.iter().zip(&self.seen).enumerate().skip(start).take(kept) {
            messages.push(ChatMessage {
                reasoning: turn.reasoning.clone(),
                tool_calls: turn
                    .tool_calls
                    .iter()
                    .map(|call| ToolCall {
                        id: call.id.clone(),
                        name: call.name.clone(),
                        arguments: call.arguments.clone(),
                    })
                    .collect(),
                ..ChatMessage::assistant(turn.content.clone())
            });
            let whole = number + 1 < start + kept || last == LastShown::In;
            if !whole && last == LastShown::Out {
                break;
            }
            messages.extend(seen.shown.iter().map(|shown| {
                let content = if whole { shown.content.clone() } else { end_of(&shown.content) };
                match &shown.tool_call {
                    Some(id) => ChatMessage::tool(id.clone(), content),
                    None => ChatMessage::user(content),
                }
            }));
        }
        messages
    }

    /// Number of turns before the last handoff, which requests no longer contain.
    pub fn segment_start(&self) -> usize {
        self.handoffs.last().map_or(0, |last| last.handoff.turns).min(self.turns.len())
    }

    /// What is left of `total` in the round to which turn `from` (counted from 0) belongs, before any of its commands is executed. Replies of
    /// earlier rounds count, and commands of earlier rounds do not: a round begins with a time limit of its own.
    pub fn left_in_round(&self, total: Duration, from: usize) -> Duration {
        let seconds = self.served_ms(self.round_end(from)).max(0.0) / 1e3;
        total.saturating_sub(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
    }

    /// Number of turns up to the end of the round to which turn `from` belongs: the next submission whose failure was shown, or the last turn.
    fn round_end(&self, from: usize) -> usize {
        let mut turns = self.turns.iter().zip(&self.seen).enumerate().skip(from);
        let submitted = turns.find(|(_, (turn, seen))| is_judged_submission(turn, seen));
        submitted.map_or(self.turns.len(), |(number, _)| number + 1)
    }

    /// Milliseconds of the replies of the first `turns` turns, and of the summaries between them.
    fn served_ms(&self, turns: usize) -> f64 {
        let last = turns == self.turns.len();
        let handoffs = self.handoffs.iter().filter(|handed| last || handed.handoff.turns < turns);
        let replies = self.seen.iter().take(turns).map(|seen| seen.served_ms);
        replies.chain(handoffs.map(|handed| handed.seen.served_ms)).sum()
    }

    /// Input and output tokens of its calls.
    pub fn tokens(&self) -> u64 {
        self.usages().map(|usage| usage.prompt + usage.completion).sum()
    }

    /// The cost of its calls in US dollars.
    pub(super) fn cost(&self, price: &Dollars) -> f64 {
        self.usages().map(|usage| price.of(usage.prompt, usage.completion)).sum()
    }

    fn usages(&self) -> impl Iterator<Item = crate::model::Tokens> {
        let asides = self.handoffs.iter().flat_map(|handed| &handed.handoff.asides);
        self.turns.iter().filter_map(|turn| turn.usage).chain(asides.filter_map(|aside| aside.usage))
    }

    /// An estimate of the tokens of the next request, if the server reports usage: the tokens of the last request and reply, and the
    /// observations since then at [`BYTES_PER_TOKEN`].
    pub(super) fn next_prompt(&self) -> Option<u64> {
        self.tokens_until(self.turns.len())
    }

    /// Tokens of a request that ends with what was shown after the first `turns` turns, if the server counts them and the model still
    /// reads the last of these.
    pub(super) fn tokens_until(&self, turns: usize) -> Option<u64> {
        let assistant = self.tokens_said(turns)?;
        let shown = &self.seen.get(turns.checked_sub(1)?)?.shown;
        let shown: usize = shown.iter().map(|shown| shown.content.len()).sum();
        Some(assistant + shown as u64 / BYTES_PER_TOKEN)
    }

    /// As [`tokens_until`](Self::tokens_until), with only the end of the last observation.
    pub(super) fn tokens_until_cut(&self, turns: usize) -> Option<u64> {
        let shown = self.seen.get(turns.checked_sub(1)?)?.shown.len().max(1);
        Some(self.tokens_said(turns)? + (shown * LAST_CHARACTERS) as u64 / BYTES_PER_TOKEN)
    }

    /// Tokens of a request that ends with the message of turn `turns`, counted from 1.
    pub(super) fn tokens_said(&self, turns: usize) -> Option<u64> {
        let last = turns.checked_sub(1).filter(|last| *last >= self.segment_start())?;
        let usage = self.turns.get(last)?.usage?;
        Some(usage.prompt + usage.completion)
    }
}

/// Whether a turn is a submission that was judged, and whose failures were shown: another round began after it.
pub(super) fn is_judged_submission(turn: &Turn, seen: &TurnSeen) -> bool {
    turn.kind == TurnKind::Submitted && !seen.shown.is_empty()
}

fn as_sent(message: &Message) -> ChatMessage {
    let role = match message.role {
        Role::System => ChatRole::System,
        Role::User => ChatRole::User,
        Role::Assistant => ChatRole::Assistant,
    };
    ChatMessage::text(role, message.content.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_texts() {
        let check = |text: &str, expect: &str| assert_eq!(end_of(text), expect);
        check("", "");
        check("short", "short");
        let whole = "é".repeat(LAST_CHARACTERS);
        check(&whole, &whole);
        check(&format!("ab{whole}"), &format!("[… 2 characters left out …]\n{whole}"));
    }

    /// Turns by their kind and the seconds of their replies; a submission with feedback ends a round.
    #[test]
    fn rounds_have_time_limits_of_their_own() {
        use TurnKind::{Acted, Submitted};
        let check = |turns: &[(TurnKind, f64)], handoffs: &[(usize, f64)], from: usize, expect: u64| {
            let turn = |(kind, _): &(TurnKind, f64)| Turn { kind: *kind, ..Turn::default() };
            let seen = |(_, seconds): &(TurnKind, f64)| TurnSeen {
                served_ms: seconds * 1e3,
                shown: vec![Shown::text("told")],
                ..TurnSeen::default()
            };
            let handed = |(turns, seconds): &(usize, f64)| HandedOff {
                handoff: Handoff { turns: *turns, unread: 0, step: None, asides: Vec::new() },
                seen: HandoffSeen { served_ms: seconds * 1e3, ..HandoffSeen::default() },
            };
            let conversation = Conversation {
                turns: turns.iter().map(turn).collect(),
                seen: turns.iter().map(seen).collect(),
                handoffs: handoffs.iter().map(handed).collect(),
                ..Conversation::default()
            };
            let left = conversation.left_in_round(Duration::from_secs(100), from);
            assert_eq!(left, Duration::from_secs(expect), "{turns:?} {handoffs:?} {from}");
        };
        check(&[], &[], 0, 100);
        check(&[(Acted, 10.0), (Acted, 20.0)], &[], 0, 70);
        check(&[(Acted, 10.0), (Acted, 200.0)], &[], 0, 0);
        let rounds = [(Acted, 10.0), (Submitted, 5.0), (Acted, 20.0), (Submitted, 1.0), (Acted, 3.0)];
        check(&rounds, &[], 0, 85);
        check(&rounds, &[], 2, 64);
        check(&rounds, &[], 4, 61);
        check(&rounds, &[], 5, 61);
        // A summary belongs to the round in which it was written: one after a submission to the next.
        check(&rounds, &[(1, 7.0), (2, 30.0)], 0, 78);
        check(&rounds, &[(1, 7.0), (2, 30.0)], 2, 27);
        check(&rounds, &[(5, 7.0)], 4, 54);
    }
}
