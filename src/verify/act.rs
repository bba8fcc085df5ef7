//! What is done to a fresh container, by a script instead of an agent.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::model::{FileTree, ShellOutcome, task_digest};
use crate::sandbox::{ChangeKind, ExecLimit, Sandbox, SandboxError};

/// Where solutions are uploaded, as Harbor's oracle agent does.
const SOLUTION_DIR: &str = "/solution";
/// Where attacks and variants find what they are given. Removed when they are done.
const BRIEF_DIR: &str = "/run/brief";
/// What a solution may print into the log.
const MAX_LOG: usize = 16 << 10;
/// An attack or a variant does no work, so one that takes longer hangs.
const BRIEF_TIMEOUT: Duration = Duration::from_secs(60);
/// The memory high-water mark in control groups of version 2 and 1 (kernel documentation, `cgroup-v2.rst` and `memory.rst`).
const PEAK_MEMORY: [&str; 2] =
    ["/sys/fs/cgroup/memory.peak", "/sys/fs/cgroup/memory/memory.max_usage_in_bytes"];
/// Digits of a 64-bit number and a line's end.
const MAX_NUMBER: u64 = 32;
/// Exit status by which a variant says that there is nothing here that it could vary.
pub const NOT_APPLICABLE: i32 = 3;

/// What is done.
#[derive(Clone, Copy, Debug)]
pub enum Act<'a> {
    /// Nothing at all.
    Nothing,
    /// `bash /solution/solve.sh`, with these files uploaded.
    Solve(&'a FileTree),
    /// A solution, and then scripts that change what should not matter, one after the other.
    Vary { solution: &'a FileTree, scripts: &'a [NamedScript] },
    /// Scripts that do no work, one after the other.
    Attack { scripts: &'a [NamedScript], knows: &'a FileTree },
}

/// A bash script with a name of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedScript {
    pub name: String,
    pub text: String,
}

impl Act<'_> {
    /// What tells it from others, for keys.
    pub(super) fn identity(&self) -> Value {
        match self {
            Act::Nothing => Value::Null,
            Act::Solve(files) => json!(task_digest(files)),
            Act::Vary { solution, scripts } => {
                json!({ "solve": task_digest(solution), "vary": named(scripts) })
            }
            Act::Attack { scripts, knows } => {
                json!({ "attack": named(scripts), "knows": task_digest(knows) })
            }
        }
    }
}

fn named(scripts: &[NamedScript]) -> Vec<(&str, &str)> {
    scripts.iter().map(|script| (script.name.as_str(), script.text.as_str())).collect()
}

/// Where and how long an actor works.
#[derive(Clone, Debug)]
pub(super) struct Stage<'a> {
    pub(super) workdir: &'a str,
    pub(super) timeout: Duration,
    /// Variables that its programs find beside those of the image.
    pub(super) env: &'a [(String, String)],
    /// File in the container that a solution's output goes to, where a format wants one.
    pub(super) log: Option<&'a str>,
    /// Whose shells are, if not root's.
    pub(super) user: Option<&'a str>,
}

/// How it ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Acted {
    /// `None` when nothing was done.
    pub(super) exit: Option<ShellOutcome>,
    /// How each of several scripts ended, by name.
    pub(super) ended: Vec<(String, ShellOutcome)>,
    pub(super) output: String,
    pub(super) used: Used,
}

/// What an act took, so that a task's limits can be set from evidence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Used {
    pub seconds: f64,
    /// The most memory that its container held at once, in bytes, page cache included; `None` where the kernel keeps no mark.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_memory: Option<u64>,
}

impl Used {
    /// Both, one after the other in the same container.
    pub(super) fn and(self, later: Self) -> Self {
        Self { seconds: self.seconds + later.seconds, peak_memory: self.peak_memory.max(later.peak_memory) }
    }
}

/// Does it, and says what it took. The files that an act brings stay where they are, as an agent's would.
pub(super) async fn perform(
    act: Act<'_>,
    sandbox: &Sandbox,
    stage: &Stage<'_>,
) -> Result<Acted, SandboxError> {
    let started = Instant::now();
    let mut acted = enact(act, sandbox, stage).await?;
    acted.used = Used { seconds: started.elapsed().as_secs_f64(), peak_memory: peak_memory(sandbox).await };
    Ok(acted)
}

/// The kernel's high-water mark of the container's memory.
async fn peak_memory(sandbox: &Sandbox) -> Option<u64> {
    for file in PEAK_MEMORY {
        if let Ok(bytes) = sandbox.get(file, MAX_NUMBER).await {
            return String::from_utf8(bytes).ok()?.trim().parse().ok();
        }
    }
    None
}

/// Does it.
async fn enact(act: Act<'_>, sandbox: &Sandbox, stage: &Stage<'_>) -> Result<Acted, SandboxError> {
    match act {
        Act::Nothing => Ok(Acted::default()),
        Act::Solve(files) => solve(files, sandbox, stage).await,
        Act::Vary { solution, scripts } => {
            let solved = solve(solution, sandbox, stage).await?;
            let varied = vary(scripts, sandbox, stage).await?;
            let output = format!("{}{}", solved.output, varied.output);
            Ok(Acted { exit: solved.exit, output, ..varied })
        }
        Act::Attack { scripts, knows } => attack(scripts, knows, sandbox, stage).await,
    }
}

async fn solve(files: &FileTree, sandbox: &Sandbox, stage: &Stage<'_>) -> Result<Acted, SandboxError> {
    sandbox.put_tree(SOLUTION_DIR, files).await?;
    let log = stage.log.map_or_else(String::new, |log| format!(" >{} 2>&1", quoted(log)));
    let command = format!("{}bash {SOLUTION_DIR}/solve.sh{log}", assignments(stage.env));
    shell(&command, stage.timeout, sandbox).await
}

/// Runs each script with `$CHANGED`, a file that lists the regular files that differ from the image, one a line.
async fn vary(scripts: &[NamedScript], sandbox: &Sandbox, stage: &Stage<'_>) -> Result<Acted, SandboxError> {
    let changes = sandbox.changes().await?;
    let apart = [SOLUTION_DIR, BRIEF_DIR, "/logs", "/tmp", "/run"];
    let listed = changes.iter().filter(|change| change.kind != ChangeKind::Deleted).filter(|change| {
        !apart.iter().any(|folder| is_below(folder, &change.path)) && !change.path.contains('\n')
    });
    let list: String = listed.map(|change| format!("{}\n", change.path)).collect();
    sandbox.put(&format!("{BRIEF_DIR}/all"), list.as_bytes(), 0o644).await?;
    let regular = format!(
        "while IFS= read -r f; do [ -f \"$f\" ] && [ ! -L \"$f\" ] && printf '%s\\n' \"$f\"; done \
         <{BRIEF_DIR}/all >{BRIEF_DIR}/changed"
    );
    if stage.user.is_some() {
        // What varies is the machine, which the solver's user need not be able to.
        shell("exit 0", BRIEF_TIMEOUT, sandbox).await?;
        sandbox.act_as("0:0").await?;
    }
    shell(&regular, BRIEF_TIMEOUT, sandbox).await?;
    let env = format!("CHANGED={BRIEF_DIR}/changed ");
    one_after_the_other(scripts, &env, sandbox, stage).await
}

/// Runs each script with `$ATTACK_KNOWS`, a folder of what an attacker may know.
async fn attack(
    scripts: &[NamedScript],
    knows: &FileTree,
    sandbox: &Sandbox,
    stage: &Stage<'_>,
) -> Result<Acted, SandboxError> {
    sandbox.put_tree(&format!("{BRIEF_DIR}/knows"), knows).await?;
    let env = format!("{}ATTACK_KNOWS={BRIEF_DIR}/knows ", assignments(stage.env));
    one_after_the_other(scripts, &env, sandbox, stage).await
}

/// Each in a bash of its own; how one ends is no concern of the next.
async fn one_after_the_other(
    scripts: &[NamedScript],
    env: &str,
    sandbox: &Sandbox,
    stage: &Stage<'_>,
) -> Result<Acted, SandboxError> {
    let mut acted = Acted::default();
    for script in scripts {
        let file = format!("{BRIEF_DIR}/{}.sh", script.name);
        sandbox.put(&file, script.text.as_bytes(), 0o755).await?;
        let command = format!("(cd {} && {env}bash {file} </dev/null)", quoted(stage.workdir));
        let ended = shell(&command, BRIEF_TIMEOUT, sandbox).await?;
        // Writing to a String cannot fail.
        let _ = writeln!(acted.output, "== {}: {:?}\n{}", script.name, ended.exit, ended.output);
        acted.ended.extend(ended.exit.map(|exit| (script.name.clone(), exit)));
    }
    // A script that has broken the shell itself is no reason to say nothing of the verdict.
    let _ = shell(&format!("rm -rf {BRIEF_DIR}"), BRIEF_TIMEOUT, sandbox).await;
    Ok(acted)
}

/// Whether `path` is `folder` or lies in it.
pub(super) fn is_below(folder: &str, path: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

async fn shell(command: &str, timeout: Duration, sandbox: &Sandbox) -> Result<Acted, SandboxError> {
    let done = sandbox.shell(command, &ExecLimit { timeout, keep: MAX_LOG }).await?;
    let output = String::from_utf8_lossy(&done.output).into_owned();
    Ok(Acted { exit: Some(done.outcome), output, ..Acted::default() })
}

fn assignments(env: &[(String, String)]) -> String {
    env.iter().map(|(name, value)| format!("{name}={} ", quoted(value))).collect()
}

/// `text` as one word of a shell.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
