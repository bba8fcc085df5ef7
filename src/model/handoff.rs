//! Handoffs: points at which a conversation is replaced by a new one, after a summary or at the
//! next step of the task.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::{Key, Message, Tokens, TrajectoryRecord};

/// A point at which a new conversation begins: after a summary, because the former would not fit
/// the model's context, or with the next step of the task. The turns before and after it are two
/// branches: a model never saw them as one conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Handoff {
    /// Number of turns before it.
    pub turns: usize,
    /// The last of these turns that were left out of the summary's input, since they would not have
    /// fitted either.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub unread: usize,
    /// The task's step that begins here. No summary was made.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub step: Option<String>,
    /// The model calls that made the summary, in order. Empty if no request for a summary fitted.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub asides: Vec<Aside>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// A message of the model outside the conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Aside {
    pub kind: AsideKind,
    /// The message, byte for byte.
    pub content: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reasoning: Option<String>,
    /// The model call that returned it.
    pub call: Key,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub usage: Option<Tokens>,
}

/// The messages that the model read at a handoff. It contains terminal output, so it is an
/// observation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HandoffShown {
    /// The request of each aside.
    pub prompts: Vec<String>,
    /// The messages that replace the earlier conversation, the task first, without the system
    /// message.
    pub context: Vec<Message>,
}

/// The kinds of requests at a handoff (the first three are terminus-2's).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AsideKind {
    /// A summary of the work, requested at the end of the whole conversation.
    Summary,
    /// Questions about gaps in the summary, asked in a fresh conversation that contains only the
    /// summary.
    Questions,
    /// The answers, requested after the whole conversation and the summary.
    Answers,
    /// A few sentences, without the conversation, where that did not fit.
    Short,
}

impl AsideKind {
    /// The id used for call sites and files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Summary => "summary",
            Self::Questions => "questions",
            Self::Answers => "answers",
            Self::Short => "short",
        }
    }
}

impl TrajectoryRecord {
    /// Turns of each of its branches, in order: one more than it has handoffs. The last is empty
    /// where a limit ended the rollout right after a handoff.
    pub fn segments(&self) -> Vec<Range<usize>> {
        let starts = std::iter::once(0).chain(self.handoffs.iter().map(|handoff| handoff.turns));
        let ends = self.handoffs.iter().map(|handoff| handoff.turns).chain([self.turns.len()]);
        starts.zip(ends).map(|(start, end)| start..end).collect()
    }

    /// The token counts of the agent's model calls, including summaries, where the server reported
    /// them.
    pub fn usages(&self) -> impl Iterator<Item = Tokens> {
        let asides = self.handoffs.iter().flat_map(|handoff| &handoff.asides);
        self.turns.iter().filter_map(|turn| turn.usage).chain(asides.filter_map(|aside| aside.usage))
    }

    /// The model calls of a planner and a mentor.
    pub fn guides(&self) -> impl Iterator<Item = &Key> {
        self.plans.iter().chain(self.turns.iter().filter_map(|turn| turn.guide.as_ref()))
    }

    /// The agent's model calls, including summaries.
    pub fn calls(&self) -> impl Iterator<Item = &Key> {
        let asides = self.handoffs.iter().flat_map(|handoff| &handoff.asides);
        self.turns.iter().filter_map(|turn| turn.call.as_ref()).chain(asides.map(|aside| &aside.call))
    }
}
