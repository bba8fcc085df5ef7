//! Scripted actions in a fresh container, in place of an agent.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::model::{FileTree, ShellOutcome, task_digest};
use crate::sandbox::{ChangeKind, ExecLimit, GetError, Sandbox, SandboxError};
use crate::syntax::shell_word;

/// Where solutions are uploaded, as Harbor's oracle agent does.
const SOLUTION_DIR: &str = "/solution";
/// Folder for the inputs of attacks and variants. It is removed after them.
const BRIEF_DIR: &str = "/run/brief";
/// Maximum bytes of a solution's output in the log.
const MAX_LOG: usize = 16 << 10;
/// Maximum size of an output file. Package managers and tracebacks write some megabytes.
const MAX_OUTPUT: u64 = 16 << 20;
/// Time limit of an attack or variant. They do no work, so one that runs longer hangs.
const BRIEF_TIMEOUT: Duration = Duration::from_secs(60);
/// Exit status of an attack or variant that finds nothing to change in a state.
pub const NOT_APPLICABLE: i32 = 3;

/// A scripted action.
#[derive(Clone, Copy, Debug)]
pub enum Act<'a> {
    /// Nothing at all.
    Nothing,
    /// A control: a shell is started, as for every solver, and does nothing.
    Idle,
    /// Uploads these files, and runs `bash /solution/solve.sh`.
    Solve(&'a FileTree),
    /// An edited solution, e.g. a mutant. A mutant that hangs is stopped after `within`, not only
    /// at the task's own limit.
    Edit { solution: &'a FileTree, within: Duration },
    /// A solution, followed by scripts whose changes a verifier must accept.
    Vary { solution: &'a FileTree, scripts: &'a [NamedScript] },
    /// Scripts that do no work. They run one after the other.
    Attack { scripts: &'a [NamedScript], knows: &'a FileTree },
}

/// A named bash script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedScript {
    pub name: String,
    pub text: String,
}

impl<'a> Act<'a> {
    /// The action in a step whose reference is `solution`. Each step has a reference of its own.
    /// Other actions are performed in the first step only.
    pub(super) fn in_step(self, step: usize, solution: &'a FileTree) -> Self {
        match self {
            act if step == 0 => act,
            Self::Solve(_) | Self::Edit { .. } => Self::Solve(solution),
            Self::Attack { .. } | Self::Vary { .. } | Self::Nothing => Self::Nothing,
            Self::Idle => Self::Idle,
        }
    }
}

impl Act<'_> {
    /// For logs.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Act::Nothing => "nothing",
            Act::Idle => "idle",
            Act::Solve(_) => "solve",
            Act::Edit { .. } => "edit",
            Act::Vary { .. } => "vary",
            Act::Attack { .. } => "attack",
        }
    }

    /// The fields that identify it, for keys.
    pub(super) fn identity(&self) -> Value {
        match self {
            Act::Nothing => Value::Null,
            Act::Idle => json!("idle"),
            Act::Solve(files) => json!(task_digest(files)),
            Act::Edit { solution, within } => {
                json!({ "edit": task_digest(solution), "seconds": within.as_secs() })
            }
            Act::Vary { solution, scripts } => {
                json!({ "solve": task_digest(solution), "vary": named(scripts) })
            }
            Act::Attack { scripts, knows } => {
                json!({ "attack": named(scripts), "knows": task_digest(knows) })
            }
        }
    }

    /// Why a solution was stopped, where the task allows `limit`. `None` if the action is no
    /// solution.
    pub(super) fn out_of_time(&self, limit: Duration) -> Option<String> {
        match self {
            Act::Edit { within, .. } if *within < limit => {
                Some("the edited solution ran many times as long as the reference".to_owned())
            }
            Act::Solve(_) | Act::Edit { .. } => {
                Some(format!("the solver ran longer than {} s", limit.as_secs()))
            }
            Act::Nothing | Act::Idle | Act::Vary { .. } | Act::Attack { .. } => None,
        }
    }
}

fn named(scripts: &[NamedScript]) -> Vec<(&str, &str)> {
    scripts.iter().map(|script| (script.name.as_str(), script.text.as_str())).collect()
}

/// The settings of a scripted solver in one step.
#[derive(Clone, Debug)]
pub struct ActContext<'a> {
    /// The step's own reference.
    pub(super) solution: &'a FileTree,
    pub(super) workdir: &'a str,
    pub(super) timeout: Duration,
    /// Variables for its programs, in addition to the image's.
    pub(super) env: Vec<(String, String)>,
    /// The file in the container that gets the solution's output, if the format has one.
    pub(super) log: Option<&'a str>,
    /// The user of the shells, if not root.
    pub(super) user: Option<&'a str>,
}

/// The result of an action.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Acted {
    /// `None` if nothing was done.
    pub(super) exit: Option<ShellOutcome>,
    /// How each script ended, by name, if there were several.
    pub(super) ended: Vec<(String, ShellOutcome)>,
    pub(super) output: String,
    pub(super) used: Used,
}

/// Resources that an action used. They help to set a task's limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Used {
    pub seconds: f64,
    /// Peak memory of the container in bytes, with its page cache. `None` if the kernel does not
    /// measure it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_memory: Option<u64>,
    /// Processor time of the container, as far as the kernel counts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor_seconds: Option<f64>,
}

impl Used {
    /// The sum of this action and a later one in the same container.
    pub(super) fn and(self, later: Self) -> Self {
        Self {
            seconds: self.seconds + later.seconds,
            peak_memory: self.peak_memory.max(later.peak_memory),
            // The container is the same, so the later figure includes the earlier one.
            processor_seconds: later.processor_seconds.or(self.processor_seconds),
        }
    }
}

/// Performs the action and measures it. Its files stay in place, as an agent's files would.
pub(super) async fn perform(
    act: Act<'_>,
    sandbox: &Sandbox,
    context: &ActContext<'_>,
) -> Result<Acted, SandboxError> {
    let started = Instant::now();
    let mut acted = enact(act, sandbox, context).await?;
    acted.used = Used {
        seconds: started.elapsed().as_secs_f64(),
        peak_memory: sandbox.peak_memory().await,
        processor_seconds: sandbox.processor_time().await.map(|used| used.as_secs_f64()),
    };
    Ok(acted)
}

async fn enact(act: Act<'_>, sandbox: &Sandbox, context: &ActContext<'_>) -> Result<Acted, SandboxError> {
    match act {
        Act::Nothing => Ok(Acted::default()),
        Act::Idle => shell(":", BRIEF_TIMEOUT, sandbox).await.map(|_| Acted::default()),
        Act::Solve(files) => solve(files, sandbox, context).await,
        Act::Edit { solution, within } => {
            let context = ActContext { timeout: context.timeout.min(within), ..context.clone() };
            solve(solution, sandbox, &context).await
        }
        Act::Vary { solution, scripts } => {
            let solved = solve(solution, sandbox, context).await?;
            let varied = vary(scripts, sandbox, context).await?;
            let output = format!("{}{}", solved.output, varied.output);
            Ok(Acted { exit: solved.exit, output, ..varied })
        }
        Act::Attack { scripts, knows } => attack(scripts, knows, sandbox, context).await,
    }
}

async fn solve(files: &FileTree, sandbox: &Sandbox, context: &ActContext<'_>) -> Result<Acted, SandboxError> {
    sandbox.put_tree(SOLUTION_DIR, files).await?;
    let log = context.log.map_or_else(String::new, |log| format!(" >{} 2>&1", shell_word(log)));
    let command = format!("{}bash {SOLUTION_DIR}/solve.sh{log}", assignments(&context.env));
    let mut acted = shell(&command, context.timeout, sandbox).await?;
    if let Some(log) = context.log {
        acted.output.push_str(&end_of(log, MAX_LOG, sandbox).await?);
    }
    Ok(acted)
}

/// The last bytes of a file in the container, `last` of them, for people. Empty if the file cannot
/// be read.
pub(super) async fn end_of(path: &str, last: usize, sandbox: &Sandbox) -> Result<String, SandboxError> {
    match sandbox.get(path, MAX_OUTPUT).await {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(last)..]).into_owned()),
        // The container is broken. Later steps show why.
        Err(
            GetError::Missing { .. }
            | GetError::NotRegular { .. }
            | GetError::TooLarge { .. }
            | GetError::Sandbox(SandboxError::Failed { .. }),
        ) => Ok(String::new()),
        Err(GetError::Sandbox(error)) => Err(error),
    }
}

/// Runs each script as root, with `$CHANGED`: a file that names the regular files which the
/// solution changed.
async fn vary(
    scripts: &[NamedScript],
    sandbox: &Sandbox,
    context: &ActContext<'_>,
) -> Result<Acted, SandboxError> {
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
    if context.user.is_some() {
        // Variants change files that the solver's user may not change.
        shell("exit 0", BRIEF_TIMEOUT, sandbox).await?;
        sandbox.act_as("0:0").await?;
    }
    shell(&regular, BRIEF_TIMEOUT, sandbox).await?;
    let env = format!("CHANGED={BRIEF_DIR}/changed ");
    one_after_the_other(scripts, &env, sandbox, context).await
}

/// Runs each script with `$ATTACK_KNOWS`, a folder with the information available to an attacker.
async fn attack(
    scripts: &[NamedScript],
    knows: &FileTree,
    sandbox: &Sandbox,
    context: &ActContext<'_>,
) -> Result<Acted, SandboxError> {
    sandbox.put_tree(&format!("{BRIEF_DIR}/knows"), knows).await?;
    let env = format!("{}ATTACK_KNOWS={BRIEF_DIR}/knows ", assignments(&context.env));
    one_after_the_other(scripts, &env, sandbox, context).await
}

/// Runs each script in a bash of its own, even if an earlier script failed.
async fn one_after_the_other(
    scripts: &[NamedScript],
    env: &str,
    sandbox: &Sandbox,
    context: &ActContext<'_>,
) -> Result<Acted, SandboxError> {
    let mut acted = Acted::default();
    for script in scripts {
        let file = format!("{BRIEF_DIR}/{}.sh", script.name);
        sandbox.put(&file, script.text.as_bytes(), 0o755).await?;
        let command = format!("(cd {} && {env}bash {file} </dev/null)", shell_word(context.workdir));
        let ended = shell(&command, BRIEF_TIMEOUT, sandbox).await?;
        // Writing to a String cannot fail.
        let _ = writeln!(acted.output, "== {}: {:?}\n{}", script.name, ended.exit, ended.output);
        acted.ended.extend(ended.exit.map(|exit| (script.name.clone(), exit)));
    }
    // A script may have broken the shell. The verdict does not depend on this cleanup.
    let _ = shell(&format!("rm -rf {BRIEF_DIR}"), BRIEF_TIMEOUT, sandbox).await;
    Ok(acted)
}

/// Whether `path` is `folder` or below it.
pub(super) fn is_below(folder: &str, path: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

async fn shell(command: &str, timeout: Duration, sandbox: &Sandbox) -> Result<Acted, SandboxError> {
    let done = sandbox.shell(command, &ExecLimit { timeout, max_output: MAX_LOG }).await?;
    let output = String::from_utf8_lossy(&done.output).into_owned();
    Ok(Acted { exit: Some(done.outcome), output, ..Acted::default() })
}

fn assignments(env: &[(String, String)]) -> String {
    env.iter().map(|(name, value)| format!("{name}={} ", shell_word(value))).collect()
}
