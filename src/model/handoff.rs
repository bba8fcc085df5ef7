//! Handoffs: points at which a new conversation replaces the old one.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::{Key, Message, Tokens, ToolDefinition, TrajectoryRecord};

/// A point at which a new conversation begins. Either the old one would not fit the model's context
/// and was summarised, or the next step of the task began. The turns before and after it are
/// separate branches, because the model never saw them as one conversation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Handoff {
    /// Number of turns before the handoff.
    pub turns: usize,
    /// Number of turns, the last ones before the handoff, that the summariser did not read, because
    /// they did not fit into the context either.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub unread: usize,
    /// The task's step that begins here. `None` for a summary.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub step: Option<String>,
    /// The model calls that made the summary, in order. Empty if no request for a summary fitted
    /// the context.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub asides: Vec<Aside>,
    /// Functions that the agent can call from here on, where they differ from those before.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tools: Option<Vec<ToolDefinition>>,
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

/// The messages that the model read at a handoff. They contain terminal output, so they are stored
/// as observations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HandoffShown {
    /// The prompt of each aside.
    pub prompts: Vec<String>,
    /// The messages that replace the earlier conversation. Where the record has an exact `opening`,
    /// they are all messages. Elsewhere they begin with the task, and the system message, which is
    /// not repeated, comes before them ([`Rollout::opening`](super::Rollout::opening)).
    pub context: Vec<Message>,
}

/// Requests at a handoff. The first three are those of terminus-2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AsideKind {
    /// A summary of the work, requested at the end of the whole conversation.
    Summary,
    /// Questions about gaps in the summary. The model that asks them sees only the summary.
    Questions,
    /// The answers, requested after the whole conversation and the summary.
    Answers,
    /// A few sentences, requested without the conversation, because it did not fit.
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
    /// The ranges of turns of its conversations, in order: one more than there are handoffs. The
    /// last range is empty if a limit ended the rollout right after a handoff.
    pub fn segments(&self) -> Vec<Range<usize>> {
        let starts = std::iter::once(0).chain(self.handoffs.iter().map(|handoff| handoff.turns));
        let ends = self.handoffs.iter().map(|handoff| handoff.turns).chain([self.turns.len()]);
        starts.zip(ends).map(|(start, end)| start..end).collect()
    }

    /// Token counts of the agent's model calls and its summaries, where the server reported them.
    pub fn usages(&self) -> impl Iterator<Item = Tokens> {
        let asides = self.all_handoffs().flat_map(|handoff| &handoff.asides);
        let turns = self.all_turns().filter_map(|(.., turn)| turn.usage);
        turns.chain(asides.filter_map(|aside| aside.usage))
    }

    /// Keys of the planner's and the mentor's model calls.
    pub fn guides(&self) -> impl Iterator<Item = &Key> {
        self.plans.iter().chain(self.turns.iter().filter_map(|turn| turn.guide.as_ref()))
    }

    /// Keys of the agent's model calls, including summaries.
    pub fn calls(&self) -> impl Iterator<Item = &Key> {
        let asides = self.all_handoffs().flat_map(|handoff| &handoff.asides);
        self.all_turns().filter_map(|(.., turn)| turn.call.as_ref()).chain(asides.map(|aside| &aside.call))
    }
}
