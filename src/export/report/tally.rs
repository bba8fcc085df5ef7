//! The parts of rollouts that a report needs, and sums over them.

use std::collections::BTreeMap;

use super::{
    At, Attempt, AttemptClass, Breakdown, Effort, Report, Solver, SolverReport, Spread, StepScores, TaskAt,
    TaskReport, VERSION,
};
use crate::export::atif::program_version;
use crate::model::{
    Actor, AdversaryView, End, FailureKind, ModelActor, Rollout, Scores, TaskDigest, TaskName, pass_all,
    pass_at, wilson,
};

/// Attempts by solver and task. Only the needed parts are kept, so that a run of any length fits
/// into memory.
#[derive(Debug, Default)]
pub(super) struct Tally(BTreeMap<Solver, BTreeMap<Task, Attempts>>);

/// A task's name and digest.
type Task = (TaskName, Option<TaskDigest>);

/// By id of the rollout.
type Attempts = BTreeMap<String, Kept>;

#[derive(Debug)]
struct Kept {
    failure: FailureKind,
    end: End,
    /// The F2P reward. `None` if it was not measured.
    score: Option<f64>,
    labels: Vec<String>,
    exploits: Vec<String>,
    seconds: Option<f64>,
    turns: usize,
    /// Tokens of prompts and of replies.
    tokens: Option<(u64, u64)>,
    usd: Option<f64>,
}

impl Kept {
    fn class(&self) -> AttemptClass {
        match self.failure {
            FailureKind::None => AttemptClass::Passed,
            FailureKind::Policy => AttemptClass::Failed,
            FailureKind::Exploit => AttemptClass::Exploit,
            FailureKind::Sandbox | FailureKind::Verifier => AttemptClass::Masked,
        }
    }
}

impl Tally {
    pub(super) fn add(&mut self, attempt: &Attempt) {
        let Attempt { rollout, seconds, usd } = attempt;
        let record = &rollout.record;
        let mut exploits: Vec<_> = record.exploits.iter().map(|exploit| exploit.attack.clone()).collect();
        exploits.sort();
        exploits.dedup();
        let imported = matches!(record.actor, Actor::Imported(_));
        let kept = Kept {
            failure: record.failure_kind(),
            end: record.end,
            score: rollout.rewards.filter(|_| !imported).map(|rewards| rewards.f2p),
            labels: rollout.labels.clone(),
            exploits,
            seconds: *seconds,
            turns: record.turns.len(),
            tokens: tokens(rollout),
            usd: *usd,
        };
        let tasks = self.0.entry(solver(rollout)).or_default();
        let task = tasks.entry((record.task.clone(), record.task_digest.clone())).or_default();
        task.insert(rollout.id.clone(), kept);
    }

    pub(super) fn report(&self) -> Report {
        let solvers = self.0.iter().map(|(solver, tasks)| {
            let all: Vec<&Kept> = tasks.values().flat_map(BTreeMap::values).collect();
            let counts = counts(&all);
            let tasks: Vec<_> = tasks
                .iter()
                .map(|((task, digest), kept)| {
                    of_task(task, digest.as_ref(), &kept.values().collect::<Vec<_>>())
                })
                .collect();
            SolverReport {
                solver: solver.clone(),
                counts,
                pass_rate: counts.pass_rate(),
                at: over_tasks(&tasks),
                breakdown: breakdown(&all),
                tasks,
            }
        });
        Report { version: VERSION, solvers: solvers.collect() }
    }
}

fn solver(rollout: &Rollout) -> Solver {
    let actor = &rollout.record.actor;
    let adversary = match actor {
        Actor::Model(ModelActor { adversary: Some(AdversaryView::Blind), .. }) => Some("blind".to_owned()),
        Actor::Model(ModelActor { adversary: Some(AdversaryView::Tests), .. }) => Some("tests".to_owned()),
        Actor::Model(ModelActor { adversary: None, .. })
        | Actor::Scripted { .. }
        | Actor::Oracle
        | Actor::Nop
        | Actor::Imported(_) => None,
    };
    Solver {
        teacher: actor.teacher().to_owned(),
        scaffold: rollout.record.scaffold.clone(),
        version: program_version(rollout),
        arm: actor.arm().as_str().to_owned(),
        adversary,
    }
}

/// Tokens of prompts and of replies, if the server counted any.
fn tokens(rollout: &Rollout) -> Option<(u64, u64)> {
    rollout
        .record
        .usages()
        .map(|usage| (usage.prompt, usage.completion))
        .reduce(|one, other| (one.0 + other.0, one.1 + other.1))
}

fn of_task(task: &TaskName, digest: Option<&TaskDigest>, kept: &[&Kept]) -> TaskReport {
    let counts = counts(kept);
    let at = powers(counts.scored).filter_map(|k| {
        let pass_at = pass_at(counts.scored, counts.passed, k)?;
        Some(TaskAt { k, pass_at, pass_all: pass_all(counts.scored, counts.passed, k)? })
    });
    TaskReport {
        task: task.clone(),
        task_digest: digest.cloned(),
        counts,
        pass_rate: counts.pass_rate(),
        at: at.collect(),
        breakdown: breakdown(kept),
    }
}

fn over_tasks(tasks: &[TaskReport]) -> Vec<At> {
    let most = tasks.iter().map(|task| task.counts.scored).max().unwrap_or_default();
    let at = powers(most).filter_map(|k| {
        let here: Vec<&TaskAt> =
            tasks.iter().filter_map(|task| task.at.iter().find(|at| at.k == k)).collect();
        let size = here.len() as u64;
        let mean = |of: fn(&TaskAt) -> f64| {
            let sum: f64 = here.iter().copied().map(of).sum();
            wilson(sum / size as f64, size)
        };
        Some(At { k, tasks: size, pass_at: mean(|at| at.pass_at)?, pass_all: mean(|at| at.pass_all)? })
    });
    at.collect()
}

/// 1, 2, 4, … up to `most`.
fn powers(most: u64) -> impl Iterator<Item = u64> {
    std::iter::successors(Some(1_u64), |k| k.checked_mul(2)).take_while(move |k| *k <= most)
}

fn counts(kept: &[&Kept]) -> Scores {
    kept.iter().map(|kept| Scores::of(kept.failure)).sum()
}

fn breakdown(kept: &[&Kept]) -> Breakdown {
    let scores: Vec<f64> = kept.iter().filter_map(|kept| kept.score).collect();
    let mut found = Breakdown { step_scores: StepScores::of(&scores), ..Breakdown::default() };
    let mut classes: BTreeMap<AttemptClass, Vec<&Kept>> = BTreeMap::new();
    for one in kept {
        *found.failure_kinds.entry(one.failure.as_str().to_owned()).or_default() += 1;
        *found.ends.entry(one.end.as_str().to_owned()).or_default() += 1;
        for label in &one.labels {
            *found.labels.entry(label.clone()).or_default() += 1;
        }
        for attack in &one.exploits {
            *found.exploits.entry(attack.clone()).or_default() += 1;
        }
        classes.entry(one.class()).or_default().push(one);
    }
    found.effort = classes.into_iter().map(|(class, kept)| (class, effort(&kept))).collect();
    found
}

fn effort(kept: &[&Kept]) -> Effort {
    let spread = |of: fn(&Kept) -> Option<f64>| spread(kept.iter().filter_map(|kept| of(kept)).collect());
    Effort {
        attempts: kept.len() as u64,
        seconds: spread(|kept| kept.seconds),
        turns: spread(|kept| Some(kept.turns as f64)),
        prompt_tokens: spread(|kept| kept.tokens.map(|tokens| tokens.0 as f64)),
        completion_tokens: spread(|kept| kept.tokens.map(|tokens| tokens.1 as f64)),
        usd: spread(|kept| kept.usd),
    }
}

fn spread(mut values: Vec<f64>) -> Spread {
    values.sort_by(f64::total_cmp);
    let lower = values.len().saturating_sub(1) / 2;
    let (Some(lower), Some(upper)) = (values.get(lower), values.get(values.len() / 2)) else {
        return Spread::default();
    };
    let total: f64 = values.iter().sum();
    let known = values.len() as u64;
    Spread { known, total, mean: total / known as f64, median: f64::midpoint(*lower, *upper) }
}
