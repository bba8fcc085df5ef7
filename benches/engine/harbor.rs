//! Measures Harbor's oracle agent on the same task, for comparison.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use chrono::NaiveDateTime;
use rustix::process::{Pid, Signal, kill_process_group};
use serde::Deserialize;
use tempfile::TempDir;
use termsmith::model::FileTree;
use termsmith::store::publish_tree;
use tokio::process::{Child, Command};

/// Trials of one job for each concurrent slot. There are two, so that slots are used again.
const TRIALS_PER_PLACE: usize = 2;
/// Longest wait for an interrupted Harbor to remove its containers: as long as two of its trials.
const REMOVAL: Duration = Duration::from_secs(30);

/// The command that `PEER_HARBOR` names.
pub(crate) struct Harbor {
    command: OsString,
}

/// The agent of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Agent {
    /// Runs the reference solution.
    Oracle,
    /// Does nothing.
    Nop,
}

impl Agent {
    fn name(self) -> &'static str {
        match self {
            Self::Oracle => "oracle",
            Self::Nop => "nop",
        }
    }
}

/// A peer that has built the task's image.
pub(crate) struct Prepared {
    command: OsString,
    folder: TempDir,
}

/// Results of one job.
pub(crate) struct Job {
    /// Trials per hour, from the first trial's start to the last one's end. The start of the
    /// program does not count.
    pub(crate) per_hour: f64,
    /// Seconds of each trial, from its beginning to the container's removal.
    pub(crate) seconds: Vec<f64>,
    /// Seconds of each trial, from its beginning to its verdict.
    pub(crate) verdict_seconds: Vec<f64>,
}

/// The needed fields of a trial's `result.json`.
#[derive(Deserialize)]
struct TrialResult {
    started_at: String,
    finished_at: String,
    verifier: Option<Stage>,
    agent_execution: Option<Span>,
    verifier_result: Option<VerifierResult>,
}

#[derive(Deserialize)]
struct Stage {
    finished_at: String,
}

#[derive(Deserialize)]
struct Span {
    started_at: String,
    finished_at: String,
}

#[derive(Deserialize)]
struct VerifierResult {
    rewards: Rewards,
}

#[derive(Deserialize)]
struct Rewards {
    reward: f64,
}

impl Harbor {
    pub(crate) fn from_env() -> Option<Self> {
        std::env::var_os("PEER_HARBOR").filter(|command| !command.is_empty()).map(|command| Self { command })
    }

    /// Writes the task and runs one trial of it. That builds its image, and is not counted.
    ///
    /// The task has a public network. Harbor enforces `no-network` by a sidecar image from Docker
    /// Hub, which is not reachable everywhere, and would be one more container.
    pub(crate) async fn prepare(self, task: &FileTree) -> anyhow::Result<Prepared> {
        let folder = tempfile::tempdir()?;
        publish_tree(&folder.path().join("scratch"), &folder.path().join("task"), task)?;
        let manifest = folder.path().join("task/task.toml");
        let text = std::fs::read_to_string(&manifest)?;
        std::fs::write(
            &manifest,
            text.replace("network_mode = \"no-network\"", "network_mode = \"public\""),
        )?;
        let prepared = Prepared { command: self.command, folder };
        prepared.run_as(Agent::Oracle, 1, 1).await?;
        Ok(prepared)
    }
}

impl Prepared {
    /// One job with `n` trials at once.
    pub(crate) async fn run(&self, n: usize) -> anyhow::Result<Job> {
        self.run_as(Agent::Oracle, n, n * TRIALS_PER_PLACE).await
    }

    /// One job of `trials` trials, `n` at once.
    pub(crate) async fn run_as(&self, agent: Agent, n: usize, trials: usize) -> anyhow::Result<Job> {
        let jobs = tempfile::tempdir_in(self.folder.path())?;
        let log = jobs.path().join("log.txt");
        let out = std::fs::File::create(&log)?;
        let mut command = Command::new(&self.command);
        command.arg("run").arg("-p").arg(self.folder.path().join("task"));
        command
            .args(["-a", agent.name(), "-n", &n.to_string(), "-k", &trials.to_string(), "-o"])
            .arg(jobs.path());
        command.stdin(Stdio::null()).stdout(out.try_clone()?).stderr(out);
        let status = ended(&mut command).await;
        let status = status.with_context(|| format!("failed to run `{}`", self.command.display()))?;
        let assistant = || std::fs::read_to_string(&log).unwrap_or_default();
        ensure!(status.success(), "harbor ended with {status}:\n{}", assistant());
        let results = results(jobs.path())?;
        ensure!(
            results.len() == trials,
            "harbor finished {} of {trials} trials:\n{}",
            results.len(),
            assistant()
        );
        summary(agent, &results)
    }
}

impl Prepared {
    /// Seconds that terminus-2 works with `model` at `base_url`.
    pub(crate) async fn agent_seconds(&self, model: &str, base_url: &str) -> anyhow::Result<f64> {
        let jobs = tempfile::tempdir_in(self.folder.path())?;
        let log = jobs.path().join("log.txt");
        let out = std::fs::File::create(&log)?;
        let mut command = Command::new(&self.command);
        command.arg("run").arg("-p").arg(self.folder.path().join("task"));
        command.args(["-a", "terminus-2", "-m", &format!("openai/{model}"), "-n", "1", "-k", "1"]);
        command.args(["--ak", &format!("api_base={base_url}")]);
        command.arg("-o").arg(jobs.path()).env("OPENAI_API_KEY", "none");
        command.stdin(Stdio::null()).stdout(out.try_clone()?).stderr(out);
        let status = ended(&mut command).await?;
        let assistant = || std::fs::read_to_string(&log).unwrap_or_default();
        ensure!(status.success(), "harbor ended with {status}:\n{}", assistant());
        let results = results(jobs.path())?;
        let span = results.first().and_then(|result| result.agent_execution.as_ref());
        let span = span.with_context(|| format!("harbor's agent did not run:\n{}", assistant()))?;
        Ok(seconds(&span.finished_at)? - seconds(&span.started_at)?)
    }
}

/// A running Harbor. When this is dropped before Harbor has ended, Harbor is told to end. The drop
/// waits until its containers are gone, because their files lie in a folder that is removed next.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // `None` after its end.
        let Some(group) = self.0.id().and_then(|id| Pid::from_raw(id.cast_signed())) else { return };
        // An error means that it has just ended.
        let _ = kill_process_group(group, Signal::TERM);
        let started = Instant::now();
        while started.elapsed() < REMOVAL && matches!(self.0.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

/// Runs `command` to its end in its own process group. So an interruption of the bench does not
/// reach Harbor directly.
async fn ended(command: &mut Command) -> std::io::Result<ExitStatus> {
    Running(command.process_group(0).spawn()?).0.wait().await
}

fn summary(agent: Agent, results: &[TrialResult]) -> anyhow::Result<Job> {
    let mut job = Job { per_hour: 0.0, seconds: Vec::new(), verdict_seconds: Vec::new() };
    let (mut first, mut last) = (f64::INFINITY, f64::NEG_INFINITY);
    for result in results {
        let reward = result.verifier_result.as_ref().map(|verifier| verifier.rewards.reward);
        let expected = if agent == Agent::Oracle { 1.0 } else { 0.0 };
        ensure!(reward == Some(expected), "harbor's {} trial ended with {reward:?}", agent.name());
        let (started, finished) = (seconds(&result.started_at)?, seconds(&result.finished_at)?);
        job.seconds.push(finished - started);
        if let Some(verifier) = &result.verifier {
            job.verdict_seconds.push(seconds(&verifier.finished_at)? - started);
        }
        first = first.min(started);
        last = last.max(finished);
    }
    job.per_hour = results.len() as f64 * 3600.0 / (last - first);
    Ok(job)
}

/// Every `<job>/<trial>/result.json`.
fn results(jobs: &Path) -> anyhow::Result<Vec<TrialResult>> {
    let mut found = Vec::new();
    for job in folders(jobs)? {
        for trial in folders(&job)? {
            let path = trial.join("result.json");
            let text = std::fs::read_to_string(&path)
                .with_context(|| format!("harbor left no `{}`", path.display()))?;
            let result = serde_json::from_str(&text);
            found.push(result.with_context(|| format!("`{}` is not what was expected", path.display()))?);
        }
    }
    Ok(found)
}

fn folders(dir: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            found.push(entry.path());
        }
    }
    Ok(found)
}

/// Seconds since 1970 of an instant such as `2026-03-01T12:00:00.250000Z`.
fn seconds(instant: &str) -> anyhow::Result<f64> {
    let parsed = NaiveDateTime::parse_from_str(instant.trim_end_matches('Z'), "%Y-%m-%dT%H:%M:%S%.f");
    let parsed = parsed.with_context(|| format!("`{instant}` is not an instant"))?;
    Ok(parsed.and_utc().timestamp_micros() as f64 / 1e6)
}
