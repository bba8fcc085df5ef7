//! The other threads of a rollout. Each is embedded in the document of the thread that began it, as
//! Harbor embeds the sub-agents of qwen-code. The observation of the call that began a sub-agent
//! refers to it. Titles, discarded replies and the like are embedded too, but nothing refers to
//! them.

use std::ops::Range;

use serde_json::json;

use super::agent::agent;
use super::asides::handed_off;
use super::document::{FinalMetrics, SCHEMA_VERSION, Step, SubagentRef, Trajectory, object};
use super::steps::{BegunThread, Calls, StepSource, numbered};
use crate::model::{CallDetail, Key, Rollout, ThreadKind, ThreadParent, ThreadView, Tokens};

/// Returns the details of a model call.
pub(super) type Detail<'a> = &'a dyn Fn(&Key) -> Option<CallDetail>;

/// The threads of a rollout beside its main one.
pub(super) struct SideThreads<'a> {
    views: Vec<ThreadView<'a>>,
    calls: Calls,
    detail: Detail<'a>,
}

impl<'a> SideThreads<'a> {
    pub(super) fn of(rollout: &'a Rollout, calls: Calls, detail: Detail<'a>) -> Self {
        let views = rollout.views().filter(|view| view.kind != ThreadKind::Main).collect();
        Self { views, calls, detail }
    }

    /// The sub-agents that a thread began, with the turns that began them.
    pub(super) fn begun_by(&self, thread: usize) -> Vec<BegunThread> {
        let sub_agents = self.views.iter().filter(|view| view.kind == ThreadKind::Subagent);
        let begun = sub_agents.filter_map(|view| {
            let parent = parent(view).filter(|parent| parent.thread == thread)?;
            Some(BegunThread {
                turn: parent.turn,
                tool_call: parent.tool_call.clone(),
                reference: SubagentRef {
                    trajectory_id: trajectory_id(view),
                    session_id: Some(view.rollout.id.clone()),
                    trajectory_path: None,
                },
            })
        });
        begun.collect()
    }

    /// The documents of the threads that a thread began in some of its turns. The main thread's
    /// first turns also have those whose beginning is unknown.
    pub(super) fn begun_in(&self, thread: usize, turns: &Range<usize>) -> Vec<Trajectory> {
        let is_begun = |view: &&ThreadView<'_>| match parent(view) {
            Some(parent) => parent.thread == thread && turns.contains(&parent.turn),
            None => thread == 0 && turns.start == 0,
        };
        self.views.iter().filter(is_begun).map(|view| self.trajectory(view)).collect()
    }

    fn trajectory(&self, view: &ThreadView<'_>) -> Trajectory {
        let rollout: &Rollout = &view.rollout;
        let turns = &rollout.record.turns;
        let details: Vec<Option<CallDetail>> =
            turns.iter().map(|turn| turn.call.as_ref().and_then(self.detail)).collect();
        let begun = self.begun_by(view.number);
        let source =
            StepSource { rollout, stamps: None, calls: self.calls, details: &details, begun: &begun };
        let mut steps: Vec<Step> = Vec::new();
        for (segment, turns) in rollout.record.segments().into_iter().enumerate() {
            if segment > 0 {
                steps.push(handed_off(&[]));
            }
            steps.extend(source.steps(segment, turns));
        }
        let embedded = self.begun_in(view.number, &(0..turns.len()));
        let usages: Vec<Tokens> = rollout.record.usages().collect();
        Trajectory {
            schema_version: SCHEMA_VERSION,
            session_id: rollout.id.clone(),
            trajectory_id: trajectory_id(view),
            final_metrics: FinalMetrics::of(&usages, details.iter().flatten(), steps.len()).with(&embedded),
            agent: agent(rollout),
            steps: numbered(steps),
            continued_trajectory_ref: None,
            subagent_trajectories: embedded,
            extra: object(json!({ "thread": view.kind, "parent": parent(view) })),
        }
    }
}

/// The place at which a thread was begun. Threads are in the order of their first requests, so it
/// is in an earlier one.
fn parent<'v>(view: &'v ThreadView<'_>) -> Option<&'v ThreadParent> {
    view.parent.filter(|parent| parent.thread < view.number)
}

fn trajectory_id(view: &ThreadView<'_>) -> String {
    format!("{}-thread-{}", view.rollout.id, view.number)
}
