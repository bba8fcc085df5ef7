//! The documents of one trial.

use std::path::Path;

use serde_json::{Value, json};

use super::Trial;
use crate::clock::iso8601;
use crate::export::atif::{agent_name, model_name, total};
use crate::model::{Actor, End, FailureKind, Rollout, Turn};

/// The agent that `config.json` names for termsmith's scaffolds. `harbor traces export` (0.24,
/// 0.25) accepts only Harbor's own agents that write ATIF. The real agent is in `agent_info` and in
/// the trajectory.
const STAND_IN: &str = "terminus-2";

/// The documents of a trial, and values for the documents of the job.
pub(super) struct Written {
    /// Name of the trial and of its folder.
    pub(super) name: String,
    pub(super) config: Value,
    pub(super) result: Value,
    /// `None` if the attempt says nothing about the agent.
    pub(super) reward: Option<f64>,
    pub(super) exception: Option<Exception>,
    /// Results by check, in the Common Test Report Format. `None` if the verifier did not report.
    pub(super) ctrf: Option<Value>,
}

/// The exception that Harbor would have recorded.
pub(super) struct Exception {
    pub(super) class: &'static str,
    pub(super) message: String,
}

impl Written {
    pub(super) fn new(jobs: &Path, job: &str, trial: &Trial) -> Self {
        let rollout = &trial.rollout;
        let name = trial_name(rollout);
        let reward = rollout.rewards.map(|rewards| rewards.binary);
        let exception = exception(rollout);
        let config = json!({
            "task": task(rollout),
            "trial_name": name,
            "trials_dir": jobs.join(job),
            "agent": agent(rollout),
            "job_id": job_id(job),
        });
        let (agent, version) = agent_name(rollout);
        let provider = match &rollout.record.actor {
            Actor::Model(actor) => Some(&actor.endpoint),
            Actor::Scripted { .. } | Actor::Oracle | Actor::Nop | Actor::Imported(_) => None,
        };
        let phase =
            json!({ "started_at": iso8601(trial.stamps.started), "finished_at": iso8601(trial.finished) });
        let result = json!({
            "id": uuid("trial", &rollout.id),
            "task_name": rollout.record.task,
            "trial_name": name,
            "trial_uri": uri(&jobs.join(job).join(&name)),
            "task_id": task(rollout),
            "task_checksum": rollout.record.task_digest,
            "config": config,
            "agent_info": {
                "name": agent,
                "version": version,
                "model_info": model_name(rollout).map(|name| json!({ "name": name, "provider": provider })),
            },
            "agent_result": agent_result(trial),
            "verifier_result": reward.map(|reward| json!({ "rewards": { "reward": reward } })),
            "exception_info": exception.as_ref().map(|exception| json!({
                "exception_type": exception.class,
                "exception_message": exception.message,
                "exception_traceback": "",
                "occurred_at": iso8601(trial.finished),
            })),
            "started_at": iso8601(trial.stamps.started),
            "finished_at": iso8601(trial.finished),
            "agent_execution": phase,
        });
        Self { ctrf: ctrf(rollout), name, config, result, reward, exception }
    }
}

/// The id of the job, made from its name. So an export recognises its own folder.
pub(super) fn job_id(job: &str) -> String {
    uuid("job", job)
}

/// The task as Harbor's documents name it. The folder need not exist.
pub(super) fn task(rollout: &Rollout) -> Value {
    json!({ "path": format!("tasks/{}", rollout.record.task) })
}

/// The agent as `config.json` names it.
pub(super) fn agent(rollout: &Rollout) -> Value {
    let name = match &rollout.record.actor {
        Actor::Imported(origin) => &origin.agent,
        Actor::Scripted { .. } | Actor::Oracle | Actor::Nop | Actor::Model(_) => STAND_IN,
    };
    json!({ "name": name, "model_name": model_name(rollout) })
}

/// Name of the trial, in Harbor's form: 32 characters of the last part of the task's name, and an
/// id. The id is the rollout's.
fn trial_name(rollout: &Rollout) -> String {
    let task = rollout.record.task.as_str();
    let last = task.rsplit('/').next().unwrap_or(task);
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
    let short: String = last.chars().take(32).map(plain).collect();
    format!("{}__{}", short.trim_start_matches('.').trim_end_matches(['_', '-']), rollout.id)
}

fn agent_result(trial: &Trial) -> Value {
    let rollout = &trial.rollout;
    let prices = || rollout.record.calls().filter_map(|call| trial.details.get(call)?.usd);
    json!({
        "n_input_tokens": total(rollout, |usage| usage.prompt),
        "n_output_tokens": total(rollout, |usage| usage.completion),
        "cost_usd": prices().next().map(|_| prices().sum::<f64>()),
        "rollout_details": rollout_details(trial),
        "metadata": {
            "attempt": rollout.record.attempt,
            "arm": rollout.record.actor.arm(),
            "end": rollout.record.end,
            "failure_kind": rollout.record.failure_kind(),
            "mask_sample": rollout.record.failure_kind().masks(),
            "rewards": rollout.rewards,
            "exploits": rollout.record.exploits,
            "judge": rollout.judge,
            "judge_labels": rollout.labels,
            "n_turns": rollout.record.turns.len(),
        },
    })
}

/// Token ids of every turn, one list for each conversation between summaries. Trainers read them
/// from here. `None` if the ids of any turn are missing: a list with gaps would be misread.
fn rollout_details(trial: &Trial) -> Option<Value> {
    let record = &trial.rollout.record;
    let segments = record.segments().into_iter().filter_map(|turns| record.turns.get(turns));
    let spoken = segments.filter(|turns| !turns.is_empty());
    let details: Option<Vec<Value>> = spoken.map(|turns| details_of(trial, turns)).collect();
    details.filter(|details| !details.is_empty()).map(Value::Array)
}

fn details_of(trial: &Trial, turns: &[Turn]) -> Option<Value> {
    let details: Option<Vec<_>> = turns.iter().map(|turn| trial.details.get(turn.call.as_ref()?)).collect();
    let details = details?;
    let prompt: Option<Vec<_>> = details.iter().map(|detail| detail.prompt_token_ids.as_ref()).collect();
    let completion: Option<Vec<_>> =
        details.iter().map(|detail| detail.completion_token_ids.as_ref()).collect();
    let logprobs: Option<Vec<_>> = details.iter().map(|detail| detail.logprobs.as_ref()).collect();
    let mut all = json!({ "prompt_token_ids": prompt?, "completion_token_ids": completion? });
    if let (Some(logprobs), Some(all)) = (logprobs, all.as_object_mut()) {
        all.insert("logprobs".to_owned(), json!(logprobs));
    }
    Some(all)
}

/// The exception that Harbor records for such an end. It has the name of Harbor's class if Harbor
/// has one.
fn exception(rollout: &Rollout) -> Option<Exception> {
    let record = &rollout.record;
    let class = match (record.failure_kind(), record.end) {
        (FailureKind::Sandbox, _) => "SandboxFailedError",
        (FailureKind::Verifier, _) => "VerifierOutputParseError",
        (FailureKind::Policy, End::TimedOut) => "AgentTimeoutError",
        (FailureKind::Policy, End::ContextFull) => "ContextLengthExceededError",
        (
            FailureKind::Policy,
            End::Submitted
            | End::StepLimit
            | End::SandboxLost
            | End::ShellEnded
            | End::TokenLimit
            | End::DollarLimit
            | End::ContentFiltered
            | End::RequestRefused
            | End::ResumeDiverged
            | End::Imported,
        )
        | (FailureKind::None | FailureKind::Exploit, _) => return None,
    };
    let message = match record.verdict.cause.as_str() {
        "" => record.end.as_str().to_owned(),
        cause => cause.to_owned(),
    };
    Some(Exception { class, message })
}

fn ctrf(rollout: &Rollout) -> Option<Value> {
    let checks = &rollout.record.verdict.checks;
    let passed = checks.iter().filter(|check| check.passed).count();
    let tests: Vec<_> = checks
        .iter()
        .map(|check| {
            let status = if check.passed { "passed" } else { "failed" };
            json!({ "name": check.id, "status": status, "duration": 0 })
        })
        .collect();
    (!tests.is_empty()).then(|| {
        json!({ "results": {
            "tool": { "name": "termsmith", "version": env!("CARGO_PKG_VERSION") },
            "summary": {
                "tests": tests.len(), "passed": passed, "failed": tests.len() - passed,
                "pending": 0, "skipped": 0, "other": 0, "start": 0, "stop": 0,
            },
            "tests": tests,
        } })
    })
}

/// A UUID (version 8, RFC 9562) that depends only on `what` and `name`.
fn uuid(what: &str, name: &str) -> String {
    let hash = blake3::derive_key(&format!("termsmith harbor {what} id"), name.as_bytes());
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash[..16]);
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = |range: std::ops::Range<usize>| -> String {
        bytes[range].iter().map(|byte| format!("{byte:02x}")).collect()
    };
    [hex(0..4), hex(4..6), hex(6..8), hex(8..10), hex(10..16)].join("-")
}

/// `path` as a `file` URI.
fn uri(path: &Path) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-~".contains(&byte);
    let mut uri = "file://".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        if plain(*byte) { uri.push(char::from(*byte)) } else { uri.push_str(&format!("%{byte:02X}")) }
    }
    uri
}
