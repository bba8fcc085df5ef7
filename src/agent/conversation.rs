//! A conversation: its turns so far, and the messages that a model is sent.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::scaffold::{ActSeen, Dollars, Opening};
use crate::llm::{ChatMessage, ChatRole, ToolCall};
use crate::model::{
    Handoff, HandoffShown, Message, Role, Shown, ThreadKind, ThreadParent, ThreadShown, Turn, TurnKind,
};

/// The conversation of an episode so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conversation {
    pub opening: Opening,
    pub turns: Vec<Turn>,
    /// Observations of each turn; same length as `turns`.
    pub seen: Vec<TurnSeen>,
    /// Points at which a new conversation began from a summary.
    pub handoffs: Vec<HandedOff>,
    /// The screen at the start of a handoff that is not complete.
    pub screen: Option<String>,
    /// The other conversations of an installed agent, in the order of their first requests.
    pub threads: Vec<SideThread>,
    /// Number of first turns that are not executed again: the sandbox began from a snapshot after
    /// them.
    pub done: usize,
}

/// Observations of a turn. They are written to `observed/`, never to the store.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TurnSeen {
    /// When the message arrived, in milliseconds since 1970.
    pub at_ms: u64,
    /// Milliseconds from the request to the message.
    #[serde(default)]
    pub think_ms: f64,
    /// The part of `think_ms` that counts against the time limit: the request that was answered
    /// ([`super::Deadline`]).
    #[serde(default)]
    pub served_ms: f64,
    /// The next messages for the agent.
    pub shown: Vec<Shown>,
    /// Measurements of each act.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub acts: Vec<ActSeen>,
}

/// A conversation of an installed agent beside its main one.
#[derive(Clone, Debug, PartialEq)]
pub struct SideThread {
    pub kind: ThreadKind,
    pub parent: Option<ThreadParent>,
    pub conversation: Conversation,
}

/// Observations of a thread beside the main one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThreadSeen {
    /// One for each turn.
    pub turns: Vec<TurnSeen>,
    /// One for each handoff.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub handoffs: Vec<HandoffSeen>,
}

impl ThreadSeen {
    /// The messages that the agent read.
    pub fn shown(&self) -> ThreadShown {
        ThreadShown {
            shown: self.turns.iter().map(|turn| turn.shown.clone()).collect(),
            handoffs: self.handoffs.iter().map(|handoff| handoff.shown.clone()).collect(),
        }
    }
}

/// A handoff with its observations.
#[derive(Clone, Debug, PartialEq)]
pub struct HandedOff {
    pub handoff: Handoff,
    pub seen: HandoffSeen,
}

/// Observations of a handoff. They hold terminal output, so they are written to `observed/`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HandoffSeen {
    /// When the summary was complete, in milliseconds since 1970.
    pub at_ms: u64,
    /// Milliseconds that the whole handoff took.
    pub think_ms: f64,
    /// The part of `think_ms` that counts against the time limit.
    #[serde(default)]
    pub served_ms: f64,
    pub shown: HandoffShown,
}

/// How much of the last turn's observation a history has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LastShown {
    /// All of it.
    In,
    /// Only its end ([`end_of`]).
    Cut,
    /// Nothing.
    Out,
}

/// Characters that [`end_of`] keeps. terminus-2 keeps the same number of a screen.
pub(super) const LAST_CHARACTERS: usize = 1_000;

/// The end of a text, after a line that says how many characters were left out.
pub(super) fn end_of(text: &str) -> String {
    match text.char_indices().rev().nth(LAST_CHARACTERS - 1) {
        None | Some((0, _)) => text.to_owned(),
        Some((at, _)) => {
            let left_out = text[..at].chars().count();
            format!("[… {left_out} characters left out …]\n{}", &text[at..])
        }
    }
}

/// A low figure for terminal output, so that estimates are too high rather than too low.
const BYTES_PER_TOKEN: u64 = 4;

impl Conversation {
    /// The messages of the next request: the turns since the last handoff.
    pub fn messages(&self) -> Vec<ChatMessage> {
        self.history(self.turns.len() - self.segment_start(), LastShown::In)
    }

    /// The messages of the first `kept` turns since the last handoff, and `last` of the last one's
    /// observation.
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

    /// The turns of all threads, each with the number of its thread and its index there.
    pub fn all_turns(&self) -> impl Iterator<Item = (usize, usize, &Turn)> {
        let others = self.threads.iter().map(|side| side.conversation.turns.as_slice());
        let threads = std::iter::once(self.turns.as_slice()).chain(others).enumerate();
        threads.flat_map(|(thread, turns)| {
            turns.iter().enumerate().map(move |(index, turn)| (thread, index, turn))
        })
    }

    /// Number of turns before the last handoff. Requests no longer hold them.
    pub fn segment_start(&self) -> usize {
        self.handoffs.last().map_or(0, |last| last.handoff.turns).min(self.turns.len())
    }

    /// The part of `total` that replies have left over, in the round of turn `from` (counted from
    /// 0). Replies of earlier rounds count. Commands do not: they have not been executed yet, and
    /// each round has a time limit of its own for them.
    pub fn left_in_round(&self, total: Duration, from: usize) -> Duration {
        let seconds = self.served_ms(self.round_end(from)).max(0.0) / 1e3;
        total.saturating_sub(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
    }

    /// Number of turns up to the end of the round of turn `from`. A round ends when the agent is
    /// shown the failures of its submission. The last round ends with the last turn.
    fn round_end(&self, from: usize) -> usize {
        let mut turns = self.turns.iter().zip(&self.seen).enumerate().skip(from);
        let submitted = turns.find(|(_, (turn, seen))| is_judged_submission(turn, seen));
        submitted.map_or(self.turns.len(), |(number, _)| number + 1)
    }

    /// Milliseconds that count for the first `turns` turns and the summaries between them.
    fn served_ms(&self, turns: usize) -> f64 {
        let last = turns == self.turns.len();
        let handoffs = self.handoffs.iter().filter(|handed| last || handed.handoff.turns < turns);
        let replies = self.seen.iter().take(turns).map(|seen| seen.served_ms);
        replies.chain(handoffs.map(|handed| handed.seen.served_ms)).sum()
    }

    /// Input and output tokens of all calls.
    pub fn tokens(&self) -> u64 {
        self.usages().map(|usage| usage.prompt + usage.completion).sum()
    }

    /// Cost of all calls, in US dollars.
    pub(super) fn cost(&self, price: &Dollars) -> f64 {
        self.usages().map(|usage| price.of(usage.prompt, usage.completion)).sum()
    }

    fn usages(&self) -> impl Iterator<Item = crate::model::Tokens> {
        let asides = self.handoffs.iter().flat_map(|handed| &handed.handoff.asides);
        self.turns.iter().filter_map(|turn| turn.usage).chain(asides.filter_map(|aside| aside.usage))
    }

    /// An estimate of the tokens of the next request: those of the last request and reply, and the
    /// observations since then at [`BYTES_PER_TOKEN`]. `None` if the server reports no usage.
    pub(super) fn next_prompt(&self) -> Option<u64> {
        self.tokens_until(self.turns.len())
    }

    /// An estimate of the tokens of a request that ends with the observation of turn `turns`
    /// (counted from 1). `None` if the server reports no usage, or if a handoff has replaced that
    /// turn.
    pub(super) fn tokens_until(&self, turns: usize) -> Option<u64> {
        let assistant = self.tokens_said(turns)?;
        let shown = &self.seen.get(turns.checked_sub(1)?)?.shown;
        let shown: usize = shown.iter().map(|shown| shown.content.len()).sum();
        Some(assistant + shown as u64 / BYTES_PER_TOKEN)
    }

    /// Like [`tokens_until`](Self::tokens_until), with only the end of the last observation.
    pub(super) fn tokens_until_cut(&self, turns: usize) -> Option<u64> {
        let shown = self.seen.get(turns.checked_sub(1)?)?.shown.len().max(1);
        Some(self.tokens_said(turns)? + (shown * LAST_CHARACTERS) as u64 / BYTES_PER_TOKEN)
    }

    /// Like [`tokens_until`](Self::tokens_until), without the observation of turn `turns`.
    pub(super) fn tokens_said(&self, turns: usize) -> Option<u64> {
        let last = turns.checked_sub(1).filter(|last| *last >= self.segment_start())?;
        let usage = self.turns.get(last)?.usage?;
        Some(usage.prompt + usage.completion)
    }
}

/// Whether the agent submitted in this turn and was shown the failures. A new round follows then.
pub(super) fn is_judged_submission(turn: &Turn, seen: &TurnSeen) -> bool {
    turn.kind == TurnKind::Submitted && !seen.shown.is_empty()
}

fn as_sent(message: &Message) -> ChatMessage {
    let role = match message.role {
        Role::System => ChatRole::System,
        Role::User => ChatRole::User,
        Role::Assistant => ChatRole::Assistant,
        Role::Tool => ChatRole::Tool,
    };
    let tool_calls = message.tool_calls.iter().map(|call| ToolCall {
        id: call.id.clone(),
        name: call.name.clone(),
        arguments: call.arguments.clone(),
    });
    ChatMessage {
        reasoning: message.reasoning.clone(),
        tool_calls: tool_calls.collect(),
        tool_call_id: message.tool_call.clone(),
        ..ChatMessage::text(role, message.content.clone())
    }
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

    /// Rows: turns, each with its kind and the seconds of its reply; handoffs, each with its turn
    /// and seconds; the first turn of the round; the seconds left of 100. A submission ends a
    /// round.
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
                handoff: Handoff { turns: *turns, ..Handoff::default() },
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
        // The time of a summary counts in its own round. A summary after a submission belongs to
        // the next round.
        check(&rounds, &[(1, 7.0), (2, 30.0)], 0, 78);
        check(&rounds, &[(1, 7.0), (2, 30.0)], 2, 27);
        check(&rounds, &[(5, 7.0)], 4, 54);
    }
}
