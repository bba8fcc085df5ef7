//! Certificate rows of blind solvers, i.e. agents that see only the instruction and the machine.
//!
//! If one author writes reference and checks, both may share an assumption that the instruction
//! does not state. A blind solver does not share it. TerminalWorld and LongCLI-Bench confirm tasks
//! in this way.

use serde_json::{Value, json};

use super::assets::PipelineAssets;
use super::authored::ModelAuthor;
use super::error::Fault;
use crate::authoring::{BlindSolvers, blind_attempts};
use crate::model::{Certificate, RejectReason, Row, RowKind, TrajectoryRecord, Verdict};
use crate::rollout::{PreparedTask, influences};
use crate::screen::repair;
use crate::verify::TrialRunner;

/// Blind solvers, with their models and prompts.
#[derive(Clone, Copy, Debug)]
pub struct Blind<'a> {
    pub model: &'a ModelAuthor,
    pub assets: &'a PipelineAssets,
}

/// Everything but the task that influences the rows: the agent's settings, and the number of
/// attempts.
pub(super) fn blind_identity(blind: Blind<'_>) -> Option<Value> {
    let Blind { model, assets } = blind;
    let (agent, attempts) = model.blind.as_ref()?;
    // A role without a model is reported when it is called.
    let influences = influences(&model.models, &assets.texts, agent).ok();
    Some(json!({ "attempts": attempts, "influences": influences }))
}

/// Lets blind solvers try a certified task until one passes. If none passes, the task is rejected
/// as unconfirmed.
pub(super) async fn add_blind_rows(
    runner: &TrialRunner<'_>,
    assets: &PipelineAssets,
    blind: Blind<'_>,
    prepared: &PreparedTask<'_>,
    certificate: &mut Certificate,
) -> Result<(), Fault> {
    let model = blind.model;
    let Some((agent, attempts)) = &model.blind else { return Ok(()) };
    if !certificate.certified {
        return Ok(());
    }
    let blind = BlindSolvers { texts: &assets.texts, agent, attempts: *attempts };
    let ended = blind_attempts(runner, &model.models, &blind, prepared).await.map_err(Fault::from);
    let ended = ended.inspect_err(|fault| {
        if fault.ends_everything() {
            runner.drain.cancel();
        }
    })?;
    let solved = ended.iter().any(|(record, _)| record.verdict.passed());
    for (number, (record, _)) in (1..).zip(&ended) {
        certificate.rows.push(row(number, record, solved));
    }
    if !solved {
        let failed = ended.iter().map(|(record, _)| failed_checks(&record.verdict)).collect::<Vec<_>>();
        let (part, ask) = repair(RowKind::Blind, "");
        certificate.certified = false;
        certificate.reasons.push(RejectReason {
            kind: RowKind::Blind,
            name: "unconfirmed".to_owned(),
            message: format!(
                "unconfirmed: none of {} solvers that saw only the instruction passed (failed: {})",
                ended.len(),
                failed.join("; ")
            ),
            part,
            ask: ask.to_owned(),
        });
    }
    Ok(())
}

fn row(number: u32, record: &TrajectoryRecord, solved: bool) -> Row {
    let verdict = &record.verdict;
    let passed = verdict.checks.iter().filter(|check| check.passed).count();
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    Row {
        kind: RowKind::Blind,
        name: number.to_string(),
        outcome: Some(verdict.outcome),
        passed_of: (!verdict.checks.is_empty()).then(|| (count(passed), count(verdict.checks.len()))),
        ok: solved,
        counts: true,
        equivalent: false,
        note: String::new(),
    }
}

fn failed_checks(verdict: &Verdict) -> String {
    let failed = verdict.checks.iter().filter(|check| !check.passed).map(|check| check.id.as_str());
    let failed: Vec<_> = failed.collect();
    if failed.is_empty() { verdict.cause.clone() } else { failed.join(", ") }
}
