//! The model calls that made a summary. Each becomes an ATIF document beside the agent's.

use serde_json::json;

use super::agent::agent;
use super::document::{
    Agent, Document, FinalMetrics, Observation, ObservationResult, SCHEMA_VERSION, Step, SubagentRef,
    Trajectory, object,
};
use super::steps::{copied, message_step, metrics, numbered};
use crate::model::{Aside, AsideKind, CallDetail, Handoff, Key, Rollout};

/// The documents of the handoff that ends `segment`. `steps` are the steps of that segment. If a
/// question was asked again, the last answer is used.
pub(super) fn documents(
    rollout: &Rollout,
    base: &str,
    segment: usize,
    handoff: &Handoff,
    steps: &[Step],
    detail: impl Fn(&Key) -> Option<CallDetail>,
) -> Vec<Document> {
    let prompts = rollout.handoffs.get(segment).map(|shown| shown.prompts.as_slice()).unwrap_or_default();
    let asked: Vec<(&Aside, &String)> = handoff.asides.iter().zip(prompts).collect();
    let kinds = [AsideKind::Summary, AsideKind::Questions, AsideKind::Answers, AsideKind::Short];
    let last = kinds.iter().filter_map(|kind| asked.iter().rfind(|(aside, _)| aside.kind == *kind));
    let mut summary = Vec::new();
    let mut documents = Vec::new();
    for (aside, prompt) in last {
        let detail = detail(&aside.call);
        let exchange = vec![
            message_step("user", prompt),
            Step {
                reasoning_content: aside.reasoning.clone(),
                metrics: metrics(aside.usage, detail.as_ref()),
                llm_call_count: Some(1),
                ..message_step("agent", &aside.content)
            },
        ];
        let mut all = match aside.kind {
            AsideKind::Summary | AsideKind::Answers => copied(read(steps, handoff.unread)),
            AsideKind::Questions | AsideKind::Short => Vec::new(),
        };
        if aside.kind == AsideKind::Summary {
            summary = copied(&exchange);
        }
        if aside.kind == AsideKind::Answers {
            all.append(&mut summary);
        }
        all.extend(exchange);
        documents.push(Document {
            name: format!("{base}.summarization-{}-{}.json", segment + 1, aside.kind.as_str()),
            trajectory: document(rollout, segment, aside, detail.as_ref(), all),
        });
    }
    documents
}

/// The steps that the summarising model read.
fn read(steps: &[Step], unread: usize) -> &[Step] {
    let agents = steps.iter().enumerate().filter(|(_, step)| step.source == "agent");
    match unread.checked_sub(1).and_then(|before| agents.rev().nth(before)) {
        None => steps,
        Some((at, _)) => &steps[..at],
    }
}

fn document(
    rollout: &Rollout,
    segment: usize,
    aside: &Aside,
    detail: Option<&CallDetail>,
    steps: Vec<Step>,
) -> Trajectory {
    let acting = agent(rollout);
    let kind = aside.kind.as_str();
    Trajectory {
        schema_version: SCHEMA_VERSION,
        session_id: rollout.id.clone(),
        trajectory_id: format!("{}-summarization-{}-{kind}", rollout.id, segment + 1),
        final_metrics: FinalMetrics::of(aside.usage.as_slice(), detail.into_iter(), steps.len()),
        agent: Agent {
            name: format!("{}-summarization-{kind}", acting.name),
            extra: object(json!({
                "scaffold": rollout.record.scaffold,
                "parent_session_id": rollout.id,
                "summarization_index": segment + 1,
            })),
            ..acting
        },
        steps: numbered(steps),
        continued_trajectory_ref: None,
        subagent_trajectories: Vec::new(),
        extra: object(json!({})),
    }
}

/// The step that marks the start of the new conversation, as terminus-2 writes it.
pub(super) fn handed_off(asides: &[Document]) -> Step {
    let refs = asides.iter().map(|document| SubagentRef {
        trajectory_id: document.trajectory.trajectory_id.clone(),
        session_id: None,
        trajectory_path: Some(document.name.clone()),
    });
    let refs: Vec<_> = refs.collect();
    let result = ObservationResult { subagent_trajectory_ref: refs, ..ObservationResult::default() };
    let mut step = message_step("system", "Performed context summarization and handoff to continue task.");
    step.observation = (!asides.is_empty()).then(|| Observation { results: vec![result] });
    step.extra = object(json!({ "context_management": { "type": "compaction", "boundary": "replace" } }));
    step
}
