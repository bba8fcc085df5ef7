//! The stage of blind solvers: agents that see only the instruction and the machine.

use futures_util::future::{FutureExt as _, LocalBoxFuture};

use super::{Checks, Environment, Instruction};
use crate::authoring::StageError;
use crate::authoring::arbiter::{self, Fault};
use crate::authoring::examine::{Examination, failures, script};
use crate::authoring::stage::{Asks, AuthorStage, Examined, Found, GivenUp, StageRef};
use crate::llm::Models;
use crate::model::{Act, Outcome, TrajectoryRecord};
use crate::rollout::{AgentConfig, PreparedTask, RolloutLog, Texts, attempt, read_record};
use crate::verify::{Act as Trial, Condition, TrialRunner};

/// Number of attempts that may end through nobody's fault. Each is made up for by another attempt.
const SPARE: u32 = 3;

/// The blind solvers of a run.
#[derive(Clone, Copy, Debug)]
pub struct BlindSolvers<'a> {
    pub texts: &'a Texts,
    pub agent: &'a AgentConfig,
    /// Number of attempts. One of them has to pass.
    pub attempts: u32,
}

/// The name of the stage in which solvers confirm a draft.
pub const BLIND: &str = "blind";

#[derive(Debug)]
pub(in crate::authoring) struct Blind;

impl AuthorStage for Blind {
    fn name(&self) -> &'static str {
        BLIND
    }

    fn asks(&self) -> Asks {
        Asks::Solvers
    }

    fn examine<'a>(&'a self, draft: &'a mut Examination<'_>) -> LocalBoxFuture<'a, Examined> {
        solved(draft).boxed_local()
    }

    fn gives_up(&self) -> GivenUp {
        GivenUp::Unconfirmed
    }
}

/// Makes attempts until one passes.
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

/// Lets solvers try the draft. The commands of a solver that passes become the second solution, if
/// they also pass as a script.
async fn solved(examination: &mut Examination<'_>) -> Examined {
    let Examination { context, edition, .. } = *examination;
    let Some(blind) = context.blind else { return Ok(None) };
    let draft = examination.working.draft(context)?;
    let hashed = context.hashed(&draft.task)?;
    let prepared = PreparedTask { edition, ..PreparedTask::ours(&hashed) };
    let attempts = blind_attempts(context.runner, context.models, blind, &prepared).await?;
    if let Some((record, _)) = attempts.iter().find(|(record, _)| record.verdict.passed()) {
        let second = script(&commands(record))?;
        let (trial, _) = examination.trial(&hashed, Trial::Solve(&second), Condition::Ordinary).await?;
        examination.working.second = trial.verdict.passed().then_some(second);
        return Ok(None);
    }
    let failures: Vec<_> =
        attempts.iter().flat_map(|(record, log)| failures(&record.verdict, &log.verifier)).collect();
    if failures.is_empty() {
        let problem = "no solver left anything that could be judged".to_owned();
        return Ok(Some(Found::one(&Blind, problem)));
    }
    let judged = arbiter::judged(context, examination.working, None, &failures).await?;
    let problems = |who: &str| {
        let failed = failures.iter().map(|failure| format!("{who} fails {failure}"));
        failed
            .chain([format!("A judge who saw the instruction and the checks says: {}", judged.reason)])
            .collect()
    };
    let found = |stage: StageRef, who: &str| Found { stage, problems: problems(who) };
    Ok(Some(match judged.fault {
        Fault::Checks => found(&Checks, "somebody who saw only the instruction"),
        Fault::Instruction => found(&Instruction, "somebody who saw only this text"),
        Fault::Environment => found(&Environment, "somebody who saw only the instruction"),
        // The solver is at fault. The task may be right and merely too hard, so it is not
        // confirmed.
        Fault::Solution => found(&Blind, "every blind solver"),
    }))
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
