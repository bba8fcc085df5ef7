//! Blind solvers: agents that see only the instruction and the machine.

use super::arbiter::{self, Fault};
use super::examine::{failure, script};
use super::working::Working;
use super::{StageContext, StageError};
use crate::llm::Models;
use crate::model::{Act, AuthorStage, FileTree, Outcome, TrajectoryRecord};
use crate::rollout::{AgentConfig, PreparedTask, RolloutLog, Texts, attempt, read_record};
use crate::verify::{Act as Trial, Condition, TrialRunner};

/// Attempts that may be lost through nobody's fault, and are made up for.
const SPARE: u32 = 3;

/// The solvers of a run.
#[derive(Clone, Copy, Debug)]
pub struct BlindSolvers<'a> {
    pub texts: &'a Texts,
    pub agent: &'a AgentConfig,
    /// Attempts; one has to pass.
    pub attempts: u32,
}

/// Who has to mend what.
type Unsolved = (AuthorStage, Vec<String>);

/// Attempts up to the first that passes.
pub async fn blind_attempts(
    runner: &TrialRunner<'_>,
    models: &Models,
    blind: &BlindSolvers<'_>,
    prepared: &PreparedTask<'_>,
) -> Result<Vec<(TrajectoryRecord, RolloutLog)>, StageError> {
    let mut attempts = Vec::new();
    let mut wanted = blind.attempts;
    for number in 0..blind.attempts.saturating_add(SPARE) {
        if number == wanted {
            break;
        }
        let key = attempt(runner, models, blind.texts, prepared, blind.agent, number).await?;
        let Some((record, log)) = read_record(runner.store, &key)? else { continue };
        if record.verdict.outcome == Outcome::Infra {
            wanted += 1;
            continue;
        }
        let passed = record.verdict.passed();
        attempts.push((record, log));
        if passed {
            break;
        }
    }
    Ok(attempts)
}

/// Lets solvers try version `edition` of instruction and machine, counted from 0. A passing one's commands become the second solution, if they pass as a script.
pub(super) async fn solved(
    context: &StageContext<'_>,
    working: &Working,
    edition: u32,
) -> Result<Result<Option<FileTree>, Unsolved>, StageError> {
    let Some(blind) = context.blind else { return Ok(Ok(None)) };
    let draft = working.draft(context)?;
    let hashed = context.hashed(&draft.task)?;
    let prepared = PreparedTask { edition, ..PreparedTask::ours(&hashed) };
    let failed = blind_attempts(context.runner, context.models, blind, &prepared).await?;
    if let Some((record, _)) = failed.iter().find(|(record, _)| record.verdict.passed()) {
        let second = script(&commands(record))?;
        let act = Trial::Solve(&second);
        let (trial, _) = context.runner.trial(&hashed, act, Condition::Ordinary, 0).await?;
        return Ok(Ok(trial.verdict.passed().then_some(second)));
    }
    let failures: Vec<_> = failed.iter().flat_map(|(record, log)| failures(record, log)).collect();
    if failures.is_empty() {
        let problem = "no solver left anything that could be judged".to_owned();
        return Ok(Err((AuthorStage::Blind, vec![problem])));
    }
    let judged = arbiter::judged(context, working, None, &failures).await?;
    let problems = |who: &str| {
        let failed = failures.iter().map(|failure| format!("{who} fails {failure}"));
        failed
            .chain([format!("A judge who saw the instruction and the checks says: {}", judged.reason)])
            .collect()
    };
    Ok(Err(match judged.fault {
        Fault::Checks => (AuthorStage::Checks, problems("somebody who saw only the instruction")),
        Fault::Instruction => (AuthorStage::Instruction, problems("somebody who saw only this text")),
        Fault::Environment => (AuthorStage::Environment, problems("somebody who saw only the instruction")),
        // An honest failure: the task may be right and too hard, which is not confirmed.
        Fault::Solution => (AuthorStage::Blind, problems("every blind solver")),
    }))
}

fn failures(record: &TrajectoryRecord, log: &RolloutLog) -> Vec<String> {
    let failed = record.verdict.checks.iter().filter(|check| !check.passed);
    failed.map(|check| failure(&check.id, log.verifier.messages.get(&check.id))).collect()
}

/// The shell commands of a rollout, in order.
fn commands(record: &TrajectoryRecord) -> Vec<String> {
    let acts = record.turns.iter().flat_map(|turn| &turn.acts);
    let command = |act: &Act| match act {
        Act::Command { command, .. } => Some(command.clone()),
        _ => None,
    };
    acts.filter_map(command).collect()
}
