//! The conversations of an installed agent, read from its requests.
//!
//! An agent's loop is not visible from outside. But each request holds a whole history, so requests
//! with equal histories are one conversation. A *strand* is a run of requests that each continue
//! the one before. [`Threads::finish`] joins strands into threads ([`assemble`]): e.g. a strand
//! that begins with a summary continues the strand that was summarised.
//!
//! Every reply is in exactly one thread, once. An assistant message that no reply and no opening
//! has is an error ([`ForeignMessage`]): a conversation with it would be a false history.

mod assemble;
mod canonical;
mod place;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};

use serde::{Deserialize, Serialize};

use self::canonical::{Unit, UnitKind, request_hash, tools_hash, units};
use crate::agent::conversation::TurnSeen;
use crate::llm::{ChatMessage, ChatRequest, ChatRole};
use crate::model::{Key, Message, Role, Sender, Shown, ToolCall, ToolDefinition, Turn};

/// What is known about an agent before its first request.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    /// The agent's name, for messages.
    pub(super) agent: String,
    /// The task, as the agent was given it.
    pub(super) instruction: String,
    pub(super) keys: Keys,
    pub(super) few_shot: FewShot,
}

/// Whether requests name their conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keys {
    /// In a header. Requests without it are of the main thread.
    Header,
    /// No: only the messages tell conversations apart.
    None,
}

/// Where assistant messages may be that no model wrote, e.g. examples in a prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FewShot {
    /// Nowhere.
    #[default]
    Never,
    /// In requests before any reply. Later requests may repeat them.
    FirstRequest,
    /// In the first request of each thread.
    EachThread,
}

/// An assistant message in a request that the agent was never sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the agent `{agent}` sent an assistant message that no model wrote: message {number} of a request, {excerpt:?}\nhint: its conversations cannot be recorded truly. If the message is an example of the agent's own, set `few_shot` in its manifest; else switch off what rewrites its history"
)]
pub struct ForeignMessage {
    pub agent: String,
    /// From 1.
    pub number: usize,
    /// The beginning of the message.
    pub excerpt: String,
}

/// The place of a request, until its reply comes.
#[derive(Debug)]
pub(super) struct Ticket {
    strand: usize,
    position: usize,
    revision: u32,
}

/// What makes a request's call site, whatever else is under way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Place {
    /// Hash over all messages and tools.
    pub(super) request: String,
    /// Number of assistant messages.
    pub(super) depth: u32,
}

/// The conversations of one agent so far.
#[derive(Debug)]
pub(super) struct Threads {
    rules: Rules,
    strands: Vec<Strand>,
    /// Assistant messages that requests may hold: replies, and examples that were accepted. Each
    /// has the hashes of reasoning with which it was seen.
    known: HashMap<blake3::Hash, Vec<Option<blake3::Hash>>>,
    /// Number of requests.
    requests: u32,
    replies: u32,
}

/// Requests that each continue the one before.
#[derive(Debug)]
struct Strand {
    key: Option<String>,
    origin: Option<Origin>,
    tools: Vec<ToolDefinition>,
    tools_hash: blake3::Hash,
    /// The messages before the first settled reply.
    opening: Vec<Message>,
    /// The history up to the open position.
    units: Vec<Unit>,
    /// Number of units up to the last settled reply. 0 if there is none.
    said: usize,
    /// Replies that a later request continues, each with what followed it.
    settled: Vec<Said>,
    /// For each id of a call in the last settled reply, as the agent sends it back, the model's
    /// own.
    ids: HashMap<String, VecDeque<String>>,
    /// Replies to the last request. More than one if it was sent again.
    open: Vec<Said>,
    /// Replies that the agent discarded.
    superseded: Vec<Superseded>,
    in_flight: u32,
    /// Changes when the messages of the open position do.
    revision: u32,
    /// Number of the first and the last request.
    began: u32,
    touched: u32,
}

/// Where a strand comes from.
#[derive(Clone, Debug)]
struct Origin {
    link: Link,
    strand: usize,
    /// The index of the turn in that strand.
    position: usize,
    tool_call: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    /// It has a part of the same history. It continues the strand, unless that one goes on itself.
    Continues,
    /// It was begun beside the strand, e.g. by a call of a function.
    Beside,
}

/// A reply.
#[derive(Clone, Debug)]
struct Said {
    turn: Turn,
    seen: TurnSeen,
    unit: Unit,
}

#[derive(Debug)]
struct Superseded {
    position: usize,
    /// The messages before it.
    opening: Vec<Message>,
    said: Said,
    /// Number of the request that discarded it.
    at: u32,
}

impl Threads {
    pub(super) fn new(rules: Rules) -> Self {
        Self { rules, strands: Vec::new(), known: HashMap::new(), requests: 0, replies: 0 }
    }

    /// The call site of a request. It depends on the request alone, so that a resumed rollout finds
    /// its committed replies in whichever order the requests come.
    pub(super) fn site(request: &ChatRequest) -> Place {
        let units = units(&request.messages);
        let depth = units.iter().filter(|unit| unit.kind == UnitKind::Assistant).count();
        let hash = request_hash(&units, tools_hash(&request.tools)).to_hex();
        Place {
            request: hash.get(..16).unwrap_or_default().to_owned(),
            depth: u32::try_from(depth).unwrap_or(u32::MAX),
        }
    }

    /// Records the reply to a request.
    pub(super) fn replied(&mut self, ticket: &Ticket, request: &ChatRequest, turn: Turn, seen: TurnSeen) {
        self.replies += 1;
        let at = self.requests;
        let unit = canonical::reply(&spoken(&turn));
        self.known.entry(unit.hash).or_default().push(unit.reasoning);
        let said = Said { turn, seen, unit };
        let Some(strand) = self.strands.get_mut(ticket.strand) else { return };
        strand.in_flight = strand.in_flight.saturating_sub(1);
        if strand.settled.len() == ticket.position && strand.revision == ticket.revision {
            strand.open.push(said);
        } else {
            // The agent has gone on without it.
            let opening = request.messages.iter().map(said_in).collect();
            strand.superseded.push(Superseded { position: ticket.position, opening, said, at });
        }
    }

    /// The request gets no reply.
    pub(super) fn abandoned(&mut self, ticket: &Ticket) {
        if let Some(strand) = self.strands.get_mut(ticket.strand) {
            strand.in_flight = strand.in_flight.saturating_sub(1);
        }
    }

    /// Whether the reply of call `key` is recorded. A request that is sent again after a lost
    /// connection gets the same reply.
    pub(super) fn has(&self, key: &Key) -> bool {
        self.strands.iter().any(|strand| {
            let superseded = strand.superseded.iter().map(|superseded| &superseded.said);
            let mut all = strand.open.iter().chain(superseded).chain(strand.settled.iter().rev());
            all.any(|said| said.turn.call.as_ref() == Some(key))
        })
    }

    /// Number of steps: requests with tools that have a reply, or wait for one. If no request has
    /// tools, those of the thread with the task.
    pub(super) fn steps(&self) -> u32 {
        let has_tools = self.strands.iter().any(Strand::has_tools);
        let told = self.strands.iter().position(|strand| strand.says(&self.rules.instruction));
        let is_work = |number: usize, strand: &Strand| match (has_tools, told) {
            (true, _) => strand.has_tools(),
            (false, Some(told)) => self.root(number) == told,
            (false, None) => true,
        };
        let work = self.strands.iter().enumerate().filter(|(number, strand)| is_work(*number, strand));
        work.map(|(_, strand)| strand.replies() + strand.in_flight).sum()
    }

    /// The first of the strands that each continue the one before, up to this one.
    fn root(&self, mut number: usize) -> usize {
        // An origin lies before its strand.
        while let Some(Origin { link: Link::Continues, strand, .. }) =
            self.strands.get(number).and_then(|strand| strand.origin.as_ref())
        {
            number = *strand;
        }
        number
    }
}

impl Strand {
    fn has_tools(&self) -> bool {
        !self.tools.is_empty()
    }

    fn replies(&self) -> u32 {
        let replies = self.settled.len() + self.open.len() + self.superseded.len();
        u32::try_from(replies).unwrap_or(u32::MAX)
    }

    /// Whether a message of the opening has this text.
    fn says(&self, text: &str) -> bool {
        let text = text.trim();
        self.opening.iter().any(|message| message.role != Role::Assistant && message.content.contains(text))
    }

    /// The messages up to the open position.
    fn history(&self) -> Vec<Message> {
        let mut history = self.opening.clone();
        for said in &self.settled {
            history.push(Message::of(&said.turn));
            history.extend(said.seen.shown.iter().map(Shown::message));
        }
        history
    }
}

/// A message of a request, as it is stored.
fn said_in(message: &ChatMessage) -> Message {
    let role = match message.role {
        ChatRole::System => Role::System,
        ChatRole::User => Role::User,
        ChatRole::Assistant => Role::Assistant,
        ChatRole::Tool => Role::Tool,
    };
    let tool_calls = message.tool_calls.iter().map(|call| ToolCall {
        id: call.id.clone(),
        name: call.name.clone(),
        arguments: call.arguments.clone(),
    });
    Message {
        reasoning: message.reasoning.clone(),
        tool_calls: tool_calls.collect(),
        tool_call: message.tool_call_id.clone(),
        ..Message::text(role, text(message))
    }
}

/// The text of a message. Records hold no images, so a mark stands in the place of each.
fn text(message: &ChatMessage) -> String {
    let mut text = message.content.clone();
    for image in message.images.iter().rev() {
        let at = if text.is_char_boundary(image.at) { image.at } else { text.len() };
        text.insert_str(at, "[image]");
    }
    text
}

/// A message after a reply, as it is stored.
fn shown(message: &ChatMessage) -> Shown {
    let sender = if message.role == ChatRole::System { Sender::System } else { Sender::User };
    Shown { tool_call: message.tool_call_id.clone(), sender, content: text(message) }
}

fn spoken(turn: &Turn) -> ChatMessage {
    let tool_calls = turn.tool_calls.iter().map(|call| crate::llm::ToolCall {
        id: call.id.clone(),
        name: call.name.clone(),
        arguments: call.arguments.clone(),
    });
    ChatMessage {
        reasoning: turn.reasoning.clone(),
        tool_calls: tool_calls.collect(),
        ..ChatMessage::assistant(turn.content.clone())
    }
}
