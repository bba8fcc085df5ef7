//! The conversations of one attempt: one per step of its task. Most tasks have one step.

use super::record::RolloutError;
use super::turn_log::StoredTurnLog;
use crate::agent::{Conversation, HandedOff, HandoffSeen, Opening, SideThread, ThreadSeen};
use crate::model::{Handoff, HandoffShown, Key, Message, Role, Round, Thread};
use crate::store::Store;

/// A conversation and its turn log.
#[derive(Debug)]
pub(super) struct StepConversation {
    pub(super) conversation: Conversation,
    pub(super) turn_log: StoredTurnLog,
    /// The call that returned its plan.
    pub(super) plan: Option<Key>,
}

/// The recorded part of an attempt.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) parts: Vec<StepConversation>,
    /// Completed rounds.
    pub(super) rounds: Vec<Round>,
    /// When the attempt began, in milliseconds since 1970; `None` if it has not started.
    pub(super) started: Option<u64>,
}

/// Reads the recorded part of the attempt `rollout` at a task with `steps` steps. A fork begins
/// with the conversation `parent`.
pub(super) fn load(
    store: &Store,
    rollout: &Key,
    steps: usize,
    parent: Option<&Conversation>,
) -> Result<Loaded, RolloutError> {
    let turn_log = StoredTurnLog::new(store, rollout, 0);
    let (conversation, rounds, started) = turn_log.load(parent)?;
    let mut parts = vec![StepConversation { conversation, turn_log, plan: None }];
    for step in 1..steps {
        let turn_log = StoredTurnLog::new(store, rollout, step);
        let (conversation, ..) = turn_log.load(None)?;
        parts.push(StepConversation { conversation, turn_log, plan: None });
    }
    Ok(Loaded { parts, rounds, started })
}

/// All conversations joined into one, as records have them: the steps after the first, called
/// `names`, begin at handoffs. Steps that were never reached are omitted.
pub(super) fn merged(parts: Vec<StepConversation>, names: &[&str]) -> Conversation {
    let mut parts = parts.into_iter().map(|part| part.conversation);
    let mut whole = parts.next().unwrap_or_default();
    for (part, name) in parts.zip(names) {
        if part.opening == Opening::default() {
            break;
        }
        let before = whole.turns.len();
        whole.handoffs.push(HandedOff {
            handoff: Handoff { turns: before, step: Some((*name).to_owned()), ..Handoff::default() },
            seen: HandoffSeen {
                shown: HandoffShown {
                    prompts: Vec::new(),
                    context: vec![Message::text(Role::User, part.opening.prompt)],
                },
                ..HandoffSeen::default()
            },
        });
        whole.handoffs.extend(part.handoffs.into_iter().map(|mut handed| {
            handed.handoff.turns += before;
            handed
        }));
        whole.turns.extend(part.turns);
        whole.seen.extend(part.seen);
    }
    whole
}

/// Handoffs as records and observations have them.
pub(super) fn halves(handoffs: Vec<HandedOff>) -> (Vec<Handoff>, Vec<HandoffSeen>) {
    handoffs.into_iter().map(|handed| (handed.handoff, handed.seen)).unzip()
}

/// A thread as records and observations have it.
pub(super) fn recorded(side: SideThread) -> (Thread, ThreadSeen) {
    let SideThread { kind, parent, conversation } = side;
    let Conversation { opening, turns, seen, handoffs, .. } = conversation;
    let (handoffs, handoffs_seen) = halves(handoffs);
    let thread = Thread { kind, parent, opening: opening.all(), tools: opening.tools, turns, handoffs };
    (thread, ThreadSeen { turns: seen, handoffs: handoffs_seen })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::TurnSeen;
    use crate::model::Turn;

    fn part(store: &Store, prompt: &str, turns: usize, handoffs: &[usize]) -> StepConversation {
        let handed = |turns: &usize| HandedOff {
            handoff: Handoff { turns: *turns, ..Handoff::default() },
            seen: HandoffSeen::default(),
        };
        let conversation = Conversation {
            opening: Opening { prompt: prompt.to_owned(), ..Opening::default() },
            turns: vec![Turn::default(); turns],
            seen: vec![TurnSeen::default(); turns],
            handoffs: handoffs.iter().map(handed).collect(),
            ..Conversation::default()
        };
        StepConversation {
            conversation,
            turn_log: StoredTurnLog::new(store, &Key::parse("00".repeat(32)).unwrap(), 0),
            plan: None,
        }
    }

    #[test]
    fn steps_begin_at_handoffs() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::new(crate::store::RunDir::open(dir.path()).unwrap());
        let check = |parts: &[(&str, usize, &[usize])], expect: &[(usize, Option<&str>)]| {
            let parts: Vec<_> =
                parts.iter().map(|(prompt, turns, at)| part(&store, prompt, *turns, at)).collect();
            let whole = merged(parts, &["two", "three"]);
            assert_eq!(whole.turns.len(), whole.seen.len());
            let found: Vec<_> = whole
                .handoffs
                .iter()
                .map(|handed| (handed.handoff.turns, handed.handoff.step.as_deref()))
                .collect();
            assert_eq!(found, expect);
        };
        check(&[("a", 3, &[])], &[]);
        check(&[("a", 3, &[2])], &[(2, None)]);
        check(&[("a", 3, &[]), ("b", 2, &[])], &[(3, Some("two"))]);
        check(
            &[("a", 3, &[1]), ("b", 4, &[2]), ("c", 1, &[])],
            &[(1, None), (3, Some("two")), (5, None), (7, Some("three"))],
        );
        // The second step was not reached.
        check(&[("a", 3, &[]), ("", 0, &[])], &[]);
    }
}
