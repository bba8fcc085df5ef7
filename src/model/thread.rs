//! Threads: the conversations of one rollout. One of them is the main one. An agent program may
//! hold further ones, e.g. with a model that it gave a part of the task.
//!
//! A record has the main thread in its own fields, and the others in
//! [`TrajectoryRecord::threads`]. [`Rollout::views`] has all of them in one form, so that a reader
//! needs one path for both.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::{
    Exploit, Handoff, HandoffShown, Message, Role, Rollout, Shown, ToolDefinition, TrajectoryRecord, Turn,
};

/// A conversation of a rollout beside its main one. Its observations are in `observed/`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Thread {
    pub kind: ThreadKind,
    /// The place at which it was begun. `None` if nothing says it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub parent: Option<ThreadParent>,
    /// The messages before its first turn, exactly as the model read them. A thread that continues
    /// another one's history begins with that history.
    pub opening: Vec<Message>,
    /// Functions that the model could call.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub tools: Vec<ToolDefinition>,
    pub turns: Vec<Turn>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub handoffs: Vec<Handoff>,
}

/// What a thread is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThreadKind {
    /// The work on the task itself.
    Main,
    /// An agent's work on a part of the task, with tools of its own.
    Subagent,
    /// A request beside the work and without tools, e.g. for a title or a commit message. It is no
    /// step.
    Auxiliary,
    /// A reply that the agent discarded: it sent the same request again. Its only turn is a step.
    Superseded,
}

impl ThreadKind {
    /// The id used in rows and documents.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::Subagent => "subagent",
            Self::Auxiliary => "auxiliary",
            Self::Superseded => "superseded",
        }
    }
}

/// The place at which a thread was begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThreadParent {
    /// Number of the thread: 0 for the main one, else 1 + its index in
    /// [`TrajectoryRecord::threads`].
    pub thread: usize,
    /// Index of its turn, from 0. For a superseded reply, that is the turn that took its place.
    pub turn: usize,
    /// Id of the function call that began the thread, where it can be told.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tool_call: Option<String>,
}

/// The observations of a thread.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ThreadShown {
    /// The messages after each turn.
    pub shown: Vec<Vec<Shown>>,
    /// The messages at each handoff.
    pub handoffs: Vec<HandoffShown>,
}

/// One thread of a rollout, as a rollout of its own: with its own messages, turns and tools, and
/// with the verdict, labels and metadata of the whole.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadView<'a> {
    /// 0 for the main thread, else 1 + its index in [`TrajectoryRecord::threads`].
    pub number: usize,
    pub kind: ThreadKind,
    pub parent: Option<&'a ThreadParent>,
    pub rollout: Cow<'a, Rollout>,
}

impl TrajectoryRecord {
    /// The messages before the first turn, exactly as the model read them.
    pub fn opening(&self) -> Vec<Message> {
        opening_messages(&self.system, &self.prompt, &self.opening)
    }

    /// Functions that the model could call in a segment.
    pub fn tools_of(&self, segment: usize) -> &[ToolDefinition] {
        let changed = self.handoffs.iter().take(segment).rev().find_map(|handoff| handoff.tools.as_deref());
        changed.unwrap_or(&self.tools)
    }

    /// All turns, each with the number of its thread and its index there.
    pub fn all_turns(&self) -> impl Iterator<Item = (usize, usize, &Turn)> {
        let others = self.threads.iter().map(|thread| thread.turns.as_slice());
        let threads = std::iter::once(self.turns.as_slice()).chain(others).enumerate();
        threads.flat_map(|(thread, turns)| {
            turns.iter().enumerate().map(move |(index, turn)| (thread, index, turn))
        })
    }

    /// All handoffs, of all threads.
    pub fn all_handoffs(&self) -> impl Iterator<Item = &Handoff> {
        self.handoffs.iter().chain(self.threads.iter().flat_map(|thread| &thread.handoffs))
    }
}

impl Rollout {
    /// The messages before the first turn of a segment, exactly as the model read them. Empty if
    /// the rollout has no such segment.
    pub fn opening(&self, segment: usize) -> Vec<Message> {
        let Some(before) = segment.checked_sub(1) else { return self.record.opening() };
        let Some(handoff) = self.handoffs.get(before) else { return Vec::new() };
        let is_exact = !self.record.opening.is_empty();
        let system = (!is_exact && !self.record.system.is_empty())
            .then(|| Message::text(Role::System, self.record.system.clone()));
        system.into_iter().chain(handoff.context.iter().cloned()).collect()
    }

    /// All threads, the main one first.
    pub fn views(&self) -> impl Iterator<Item = ThreadView<'_>> {
        let main =
            ThreadView { number: 0, kind: ThreadKind::Main, parent: None, rollout: Cow::Borrowed(self) };
        let others = self.record.threads.iter().zip(&self.threads).enumerate();
        let others = others.map(|(index, (thread, seen))| ThreadView {
            number: index + 1,
            kind: thread.kind,
            parent: thread.parent.as_ref(),
            rollout: Cow::Owned(self.viewed(index + 1, thread, seen)),
        });
        std::iter::once(main).chain(others)
    }

    fn viewed(&self, number: usize, thread: &Thread, seen: &ThreadShown) -> Self {
        let whole = &self.record;
        // An exploit in any thread spoils all of them.
        let exploits = whole.exploits.iter().map(|exploit| Exploit {
            thread: if exploit.thread == number { 0 } else { exploit.thread.max(1) },
            ..exploit.clone()
        });
        let record = TrajectoryRecord {
            task: whole.task.clone(),
            task_digest: whole.task_digest.clone(),
            environment_digest: whole.environment_digest.clone(),
            attempt: whole.attempt,
            actor: whole.actor.clone(),
            scaffold: whole.scaffold.clone(),
            system: joined(&thread.opening, Role::System),
            prompt: joined(&thread.opening, Role::User),
            opening: thread.opening.clone(),
            tools: thread.tools.clone(),
            turns: thread.turns.clone(),
            threads: Vec::new(),
            end: whole.end,
            verdict: whole.verdict.clone(),
            rounds: Vec::new(),
            plans: Vec::new(),
            handoffs: thread.handoffs.clone(),
            fork: None,
            exploits: exploits.collect(),
        };
        Self {
            id: self.id.clone(),
            record,
            metadata: self.metadata.clone(),
            shown: seen.shown.clone(),
            handoffs: seen.handoffs.clone(),
            threads: Vec::new(),
            rewards: self.rewards,
            round_rewards: Vec::new(),
            labels: self.labels.clone(),
            left_out: self.left_out,
            judge: self.judge.clone(),
        }
    }
}

/// The first messages of a conversation: the exact ones, or one of each text where there are none.
pub fn opening_messages(system: &str, prompt: &str, exact: &[Message]) -> Vec<Message> {
    if !exact.is_empty() {
        return exact.to_vec();
    }
    let system = (!system.is_empty()).then(|| Message::text(Role::System, system));
    system.into_iter().chain([Message::text(Role::User, prompt)]).collect()
}

/// The texts of all messages of a role, as one.
pub fn joined(messages: &[Message], role: Role) -> String {
    let texts = messages.iter().filter(|message| message.role == role);
    texts.map(|message| message.content.as_str()).collect::<Vec<_>>().join("\n\n")
}
