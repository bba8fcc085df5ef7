//! Where a conversation began anew: from a summary of itself, or with the next step of its task.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::{Key, Message, Tokens, TrajectoryRecord};

/// A place where a conversation began anew: one that would no longer fit the model's context was replaced by a summary of it, or the task
/// has a further step. What was said before and what is said after are two branches: a model never saw them as one conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Handoff {
    /// Number of turns before it.
    pub turns: usize,
    /// The last of these turns that were left out of the summary's input, since they would not have fitted either.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub unread: usize,
    /// The task's step that begins here. Nothing was summed up.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub step: Option<String>,
    /// What the model was asked for it, in order. Nothing, if no request for a summary fitted.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub asides: Vec<Aside>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
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

/// What the model read at a handoff. It contains terminal output, so it is an observation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HandoffShown {
    /// What was asked, one for each aside.
    pub prompts: Vec<String>,
    /// What a model reads from here on in the place of all before, the task first and without the system message.
    pub context: Vec<Message>,
}

/// What is asked for a handoff (the first three are terminus-2's).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AsideKind {
    /// What was done and learnt; asked at the end of the whole conversation.
    Summary,
    /// Questions about gaps in the summary, asked in a fresh conversation that contains only the summary.
    Questions,
    /// The answers, behind the whole conversation and the summary.
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
    /// Turns of each of its branches, in order: one more than it has handoffs. The last is empty where a limit ended the rollout right
    /// after a handoff.
    pub fn segments(&self) -> Vec<Range<usize>> {
        let starts = std::iter::once(0).chain(self.handoffs.iter().map(|handoff| handoff.turns));
        let ends = self.handoffs.iter().map(|handoff| handoff.turns).chain([self.turns.len()]);
        starts.zip(ends).map(|(start, end)| start..end).collect()
    }

    /// What each model call of the agent's read and wrote, where it was counted; summaries are among them.
    pub fn usages(&self) -> impl Iterator<Item = Tokens> {
        let asides = self.handoffs.iter().flat_map(|handoff| &handoff.asides);
        self.turns.iter().filter_map(|turn| turn.usage).chain(asides.filter_map(|aside| aside.usage))
    }

    /// The model calls of a planner and a mentor.
    pub fn guides(&self) -> impl Iterator<Item = &Key> {
        self.plans.iter().chain(self.turns.iter().filter_map(|turn| turn.guide.as_ref()))
    }

    /// The model calls of the agent's; summaries are among them.
    pub fn calls(&self) -> impl Iterator<Item = &Key> {
        let asides = self.handoffs.iter().flat_map(|handoff| &handoff.asides);
        self.turns.iter().filter_map(|turn| turn.call.as_ref()).chain(asides.map(|aside| &aside.call))
    }
}
