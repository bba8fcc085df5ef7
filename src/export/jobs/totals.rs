//! The documents of a job: totals over its trials.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use chrono::{DateTime, Utc};
use serde_json::{Map, Value, json};

use super::Trial;
use super::documents::{Written, agent, job_id, task};
use crate::clock::iso8601;
use crate::export::atif::{agent_name, model_name};
use crate::model::pass_at;

/// Sums over the trials of a job. Trials are added one at a time.
#[derive(Default)]
pub(super) struct JobTotals {
    trials: usize,
    errored: usize,
    input: Option<u64>,
    output: Option<u64>,
    usd: Option<f64>,
    started: Option<DateTime<Utc>>,
    finished: Option<DateTime<Utc>>,
    /// Keyed as in Harbor: by agent, model and dataset.
    evals: BTreeMap<String, Eval>,
    /// JSON texts, so that equal values appear once.
    agents: BTreeSet<String>,
    tasks: BTreeSet<String>,
    /// Maximum number of attempts of one agent at one task.
    attempts: usize,
}

#[derive(Default)]
struct Eval {
    errors: BTreeMap<String, Vec<String>>,
    /// Names of trials by reward, written as text.
    rewards: BTreeMap<String, Vec<String>>,
    sum: f64,
    rewarded: usize,
    /// Attempts and passes by task.
    tasks: BTreeMap<String, (u64, u64)>,
}

impl JobTotals {
    pub(super) fn add(&mut self, trial: &Trial, written: &Written) {
        let rollout = &trial.rollout;
        self.trials += 1;
        self.errored += usize::from(written.exception.is_some());
        let figure = |name: &str| &written.result["agent_result"][name];
        add(&mut self.input, figure("n_input_tokens").as_u64());
        add(&mut self.output, figure("n_output_tokens").as_u64());
        add(&mut self.usd, figure("cost_usd").as_f64());
        let started = trial.stamps.started;
        self.started = Some(self.started.map_or(started, |first| first.min(started)));
        self.finished = self.finished.max(Some(trial.finished));
        self.agents.insert(agent(rollout).to_string());
        self.tasks.insert(task(rollout).to_string());

        let model = model_name(rollout).map(|model| format!("{model}__")).unwrap_or_default();
        let eval = self.evals.entry(format!("{}__{model}adhoc", agent_name(rollout).0)).or_default();
        if let Some(exception) = &written.exception {
            eval.errors.entry(exception.class.to_owned()).or_default().push(written.name.clone());
        }
        if let Some(reward) = written.reward {
            eval.rewards.entry(format!("{reward:?}")).or_default().push(written.name.clone());
            eval.sum += reward;
            eval.rewarded += 1;
            let task = eval.tasks.entry(rollout.record.task.to_string()).or_default();
            task.0 += 1;
            task.1 += u64::from(reward >= 1.0);
            self.attempts = self.attempts.max(usize::try_from(task.0).unwrap_or(usize::MAX));
        }
    }

    /// The job's `config.json`.
    pub(super) fn config(&self, jobs: &Path, name: &str) -> Value {
        let parsed = |texts: &BTreeSet<String>| -> Vec<Value> {
            texts.iter().filter_map(|text| serde_json::from_str(text).ok()).collect()
        };
        json!({
            "job_name": name,
            "jobs_dir": jobs,
            "n_attempts": self.attempts.max(1),
            "agents": parsed(&self.agents),
            "tasks": parsed(&self.tasks),
        })
    }

    /// The job's `result.json`.
    pub(super) fn result(&self, name: &str) -> Value {
        let evals: Map<String, Value> =
            self.evals.iter().map(|(key, eval)| (key.clone(), eval.to_json())).collect();
        // Harbor requires both time stamps. A job without trials gets 1970-01-01.
        let stamp = |at: Option<DateTime<Utc>>| iso8601(at.unwrap_or_default());
        let finished = stamp(self.finished);
        json!({
            "id": job_id(name),
            "started_at": stamp(self.started),
            "updated_at": finished,
            "finished_at": finished,
            "n_total_trials": self.trials,
            "stats": {
                "n_completed_trials": self.trials,
                "n_errored_trials": self.errored,
                "n_running_trials": 0,
                "n_pending_trials": 0,
                "n_cancelled_trials": 0,
                "n_retries": 0,
                "evals": evals,
                "n_input_tokens": self.input,
                "n_output_tokens": self.output,
                "cost_usd": self.usd,
            },
        })
    }
}

impl Eval {
    fn to_json(&self) -> Value {
        json!({
            "n_trials": self.rewarded,
            "n_errors": self.errors.values().map(Vec::len).sum::<usize>(),
            // Only trials with a reward. Harbor counts the others as failures, but they say nothing
            // about the agent.
            "metrics": if self.rewarded == 0 { json!([]) } else { json!([{ "mean": self.sum / self.rewarded as f64 }]) },
            "pass_at_k": self.pass_at_k(),
            "reward_stats": if self.rewards.is_empty() { json!({}) } else { json!({ "reward": self.rewards }) },
            "exception_stats": self.errors,
        })
    }

    /// Mean pass@k over tasks, for Harbor's k (2, 4, 8, … and 5, 10, 15, …). Left out if a task has
    /// fewer than k attempts.
    fn pass_at_k(&self) -> Map<String, Value> {
        let least = self.tasks.values().map(|task| task.0).min().unwrap_or_default();
        let powers = std::iter::successors(Some(2_u64), |k| k.checked_mul(2)).take_while(|k| *k <= least);
        let ks: BTreeSet<u64> = powers.chain((5..=least).step_by(5)).collect();
        let mean = |k: u64| {
            let all: Option<Vec<f64>> = self.tasks.values().map(|task| pass_at(task.0, task.1, k)).collect();
            all.map(|all| all.iter().sum::<f64>() / all.len() as f64)
        };
        ks.into_iter().filter_map(|k| Some((k.to_string(), json!(mean(k)?)))).collect()
    }
}

fn add<T: std::ops::Add<Output = T> + Copy>(sum: &mut Option<T>, more: Option<T>) {
    if let Some(more) = more {
        *sum = Some(sum.map_or(more, |sum| sum + more));
    }
}
