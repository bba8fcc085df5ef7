//! Joins strands into threads, once all requests are known.

use super::{Link, Origin, Said, Strand, Threads};
use crate::agent::conversation::{Conversation, HandedOff, HandoffSeen, SideThread, TurnSeen};
use crate::agent::scaffold::Opening;
use crate::model::{
    Aside, AsideKind, Handoff, HandoffShown, Message, Role, ThreadKind, ThreadParent, ToolDefinition, Turn,
    joined,
};

/// Fewest characters of a reply that is recognised as a summary where a later prompt quotes it.
const SUMMARY: usize = 40;

/// Strands of one thread, in order.
#[derive(Debug, Default)]
struct Chain {
    strands: Vec<usize>,
    /// Where it was begun: a strand, and the index of the turn there.
    parent: Option<Origin>,
}

/// A thread before it has a number.
struct Found {
    kind: ThreadKind,
    /// Number of its first request.
    began: u32,
    chain: usize,
    parent: Option<Origin>,
    conversation: Conversation,
}

impl Threads {
    /// The conversation of the main thread, with the others in it. The main thread is the first one
    /// with tools. If no request has tools, it is the first one with the instruction in its prompt.
    pub(in crate::agent::installed) fn finish(mut self) -> Conversation {
        self.strands.iter_mut().for_each(Strand::close);
        let chains = self.chains();
        let mut found: Vec<Found> = Vec::new();
        // For each strand, its chain and the number of turns before it there.
        let mut places = vec![(0, 0); self.strands.len()];
        for (number, chain) in chains.iter().enumerate() {
            let mut conversation = Conversation::default();
            let mut before: Option<&Strand> = None;
            for &at in &chain.strands {
                let (Some(strand), Some(place)) = (self.strands.get(at), places.get_mut(at)) else {
                    continue;
                };
                // A strand without a reply has nothing to record, e.g. if its request was refused.
                if !strand.settled.is_empty() {
                    match before {
                        None => conversation.opening = exact(strand.opening.clone(), strand.tools.clone()),
                        Some(before) => hand_off(&mut conversation, before, strand),
                    }
                    before = Some(strand);
                }
                *place = (number, conversation.turns.len());
                conversation.turns.extend(strand.settled.iter().map(|said| said.turn.clone()));
                conversation.seen.extend(strand.settled.iter().map(|said| said.seen.clone()));
            }
            // After a handoff, exact messages say that the handoff's are exact too.
            if conversation.handoffs.is_empty() && are_plain(&conversation.opening.messages) {
                conversation.opening.messages.clear();
            }
            let first = chain.strands.first().and_then(|first| self.strands.get(*first));
            let has_tools = first.is_some_and(Strand::has_tools);
            found.push(Found {
                kind: if has_tools { ThreadKind::Subagent } else { ThreadKind::Auxiliary },
                began: first.map_or(0, |first| first.began),
                chain: number,
                parent: chain.parent.clone(),
                conversation,
            });
        }
        let told = |found: &Found| {
            let strand = chains[found.chain].strands.first().and_then(|first| self.strands.get(*first));
            strand.is_some_and(|strand| strand.says(&self.rules.instruction))
        };
        let has_work =
            |found: &Found| found.kind == ThreadKind::Subagent && !found.conversation.turns.is_empty();
        let main = found.iter().position(has_work).or_else(|| found.iter().position(told)).unwrap_or(0);
        for (at, strand) in self.strands.iter_mut().enumerate() {
            let tools = &strand.tools;
            found.extend(strand.superseded.drain(..).map(|superseded| Found {
                kind: ThreadKind::Superseded,
                began: superseded.at,
                chain: usize::MAX,
                parent: Some(Origin {
                    link: Link::Beside,
                    strand: at,
                    position: superseded.position,
                    tool_call: None,
                }),
                conversation: alone(superseded.opening, tools.clone(), superseded.said),
            }));
        }
        numbered(found, main, &places)
    }

    /// The strands of each thread. A strand continues another one if that one does not go on
    /// itself.
    fn chains(&self) -> Vec<Chain> {
        let mut chains: Vec<Chain> = Vec::new();
        for (number, strand) in self.strands.iter().enumerate() {
            let origin = strand.origin.as_ref();
            let continued = origin.filter(|origin| {
                let goes_on = self.strands.get(origin.strand).is_none_or(|from| from.touched > strand.began);
                origin.link == Link::Continues && !goes_on
            });
            let chain = continued.and_then(|origin| {
                chains.iter_mut().find(|chain| chain.strands.last() == Some(&origin.strand))
            });
            match chain {
                Some(chain) => chain.strands.push(number),
                None => chains.push(Chain { strands: vec![number], parent: origin.cloned() }),
            }
        }
        chains
    }
}

/// The main conversation, with the others in the order of their first requests.
fn numbered(mut found: Vec<Found>, main: usize, places: &[(usize, usize)]) -> Conversation {
    if found.is_empty() {
        return Conversation::default();
    }
    let mut whole = found.remove(main.min(found.len() - 1));
    found.retain(|found| !found.conversation.turns.is_empty());
    found.sort_by_key(|found| found.began);
    let chains: Vec<usize> = [whole.chain].into_iter().chain(found.iter().map(|found| found.chain)).collect();
    let parent = |origin: Origin| {
        let (chain, before) = *places.get(origin.strand)?;
        let thread = chains.iter().position(|number| *number == chain)?;
        Some(ThreadParent { thread, turn: before + origin.position, tool_call: origin.tool_call })
    };
    whole.conversation.threads = found
        .into_iter()
        .map(|found| SideThread {
            kind: found.kind,
            parent: found.parent.and_then(parent),
            conversation: found.conversation,
        })
        .collect();
    whole.conversation
}

/// The conversation of one reply.
fn alone(opening: Vec<Message>, tools: Vec<ToolDefinition>, said: Said) -> Conversation {
    Conversation {
        opening: exact(opening, tools),
        turns: vec![said.turn],
        seen: vec![said.seen],
        ..Conversation::default()
    }
}

fn exact(messages: Vec<Message>, tools: Vec<ToolDefinition>) -> Opening {
    let (system, prompt) = (joined(&messages, Role::System), joined(&messages, Role::User));
    Opening { system, prompt, messages, tools }
}

/// Whether messages are a system message, if any, and one prompt.
fn are_plain(messages: &[Message]) -> bool {
    let texts_only = messages.iter().all(|message| {
        message.reasoning.is_none() && message.tool_calls.is_empty() && message.tool_call.is_none()
    });
    let roles: Vec<Role> = messages.iter().map(|message| message.role).collect();
    let has_text = messages.iter().all(|message| !message.content.is_empty());
    texts_only && has_text && matches!(roles.as_slice(), [Role::User] | [Role::System, Role::User])
}

impl Strand {
    /// The last reply is settled: nothing followed it.
    fn close(&mut self) {
        let last = self.open.pop();
        self.supersede(self.touched);
        self.settled.extend(last);
    }
}

/// The conversation continues in another strand.
fn hand_off(conversation: &mut Conversation, before: &Strand, strand: &Strand) {
    let summary = summary(conversation, &strand.opening);
    let (asides, prompts, seen) = match summary {
        Some((aside, prompt, seen)) => (vec![aside], vec![prompt], seen),
        None => (Vec::new(), Vec::new(), TurnSeen::default()),
    };
    let at_ms = strand.settled.first().map_or(seen.at_ms, |first| first.seen.at_ms);
    conversation.handoffs.push(HandedOff {
        handoff: Handoff {
            turns: conversation.turns.len(),
            asides,
            tools: (before.tools_hash != strand.tools_hash).then(|| strand.tools.clone()),
            ..Handoff::default()
        },
        seen: HandoffSeen {
            at_ms,
            think_ms: seen.think_ms,
            served_ms: seen.served_ms,
            shown: HandoffShown { prompts, context: strand.opening.clone() },
        },
    });
}

/// Takes the last turn out of a conversation, with its prompt, if the next prompt quotes it: the
/// agent asked for a summary at the end of the history.
fn summary(conversation: &mut Conversation, next: &[Message]) -> Option<(Aside, String, TurnSeen)> {
    let turn = conversation.turns.last()?;
    let text = turn.content.trim();
    let is_quoted =
        next.iter().any(|message| message.role != Role::Assistant && message.content.contains(text));
    let has_prompt = conversation.turns.len() >= conversation.segment_start() + 2;
    if !is_quoted || !has_prompt || !turn.tool_calls.is_empty() || text.chars().count() < SUMMARY {
        return None;
    }
    let call = turn.call.clone()?;
    let before = conversation.seen.len().checked_sub(2)?;
    let prompt = conversation.seen.get_mut(before)?.shown.pop_if(|shown| shown.tool_call.is_none())?;
    let (turn, seen) = (conversation.turns.pop()?, conversation.seen.pop()?);
    let Turn { content, reasoning, usage, .. } = turn;
    let aside = Aside { kind: AsideKind::Summary, content, reasoning, call, usage };
    Some((aside, prompt.content, seen))
}
