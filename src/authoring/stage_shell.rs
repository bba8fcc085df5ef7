//! A shell on the draft's machine, in which a stage's model tries things out before it replies.
//!
//! Each command is stored with its output. The key includes all commands before it, so an
//! interrupted authoring repeats the same conversation. Stored commands are executed again only
//! when a new one follows.

use std::time::Duration;

use minijinja::{Value, context};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::stage::{Shell, StageRef};
use super::stage_conversation::Asking;
use super::working::{APP, Working, rel};
use super::{StageContext, StageError};
use crate::agent::read_block;
use crate::model::{Assume, Blame, File, FileTree, ShellOutcome};
use crate::sandbox::{ExecLimit, Sandbox};
use crate::store::{Stage, key};
use crate::verify::{Act, HashedTask, NoVerdict, Phase, TrialError, solver_container};

/// The record of a command that a stage's model ran.
pub const STAGE_SHELL: Stage = Stage::computed("stage_shell");

/// Number of commands of one stage, over all of its versions. It suffices to look around, and to
/// write and try the files of a version twice.
const MAX_COMMANDS: usize = 24;
/// Time limit of one command.
const COMMAND: Duration = Duration::from_secs(60);
/// Bytes of a command's output that are shown.
const OUTPUT_BYTES: usize = 6_000;
/// The exit status that `timeout(1)` gives a command that it stopped.
const TIMEOUT_STATUS: i32 = 124;
/// Tags that only a reply with files has. A reply without them is a command.
const FILE_TAGS: [&str; 2] = ["<file path=", "<edit path="];
/// A file that gives the image of an empty machine a work directory.
const PLACEHOLDER: &str = "app/.keep";
/// The file of prompts with a stage's text about its machine.
const PLACE: &str = "shell.md";
/// Where tests are.
const TESTS: &str = "/tests";

/// The result of a command. Its output is an observation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ShellTurn {
    /// `None` if a shell cannot take the command, or if the container ended with it.
    outcome: Option<ShellOutcome>,
    restarted: bool,
}

/// The shell of one stage.
#[derive(Debug)]
pub(super) struct StageShell {
    shell: Shell,
    /// The machine's digest.
    machine: String,
    /// Commands on this machine, in order.
    commands: Vec<String>,
    /// Number of all commands, including those on former machines.
    count: usize,
    /// The container in which all of `commands` were executed.
    sandbox: Option<Sandbox>,
}

/// The text about the shell at the end of a stage's system prompt.
pub(super) fn offer(asking: &Asking<'_>, stage: StageRef) -> Result<String, StageError> {
    let place = asking.texts.of(stage)?.text(PLACE)?.trim();
    let values =
        context! { place, seconds => COMMAND.as_secs(), bytes => OUTPUT_BYTES, turns => MAX_COMMANDS };
    Ok(asking.texts.shell.render("offer.md.j2", values)?)
}

/// The command in a reply. `None` if the reply has files.
pub(super) fn command(reply: &str) -> Option<&str> {
    if FILE_TAGS.iter().any(|tag| reply.contains(tag)) { None } else { read_block(reply).ok() }
}

impl StageShell {
    /// A shell without commands.
    pub(super) fn new(shell: Shell) -> Self {
        Self { shell, machine: String::new(), commands: Vec::new(), count: 0, sandbox: None }
    }

    /// Whether another command may be run.
    pub(super) fn has_more(&self) -> bool {
        self.count < MAX_COMMANDS
    }

    /// Runs a command, or reads its stored output. Returns the message for the model.
    pub(super) async fn run(
        &mut self,
        context: &StageContext<'_>,
        working: &Working,
        command: &str,
    ) -> Result<String, StageError> {
        let task = machine(context, self.shell, working).await?;
        let hashed = context.hashed(&task)?;
        let uploads = match self.shell {
            Shell::DraftWithTests => &task.tests,
            Shell::Draft | Shell::DraftOrEmpty => &FileTree::default(),
        };
        let machine =
            key(STAGE_SHELL, &json!({ "environment": hashed.environment_digest, "uploads": uploads }))?;
        let changed = !self.commands.is_empty() && self.machine != machine.as_str();
        if self.machine != machine.as_str() {
            machine.as_str().clone_into(&mut self.machine);
            self.commands.clear();
            self.sandbox = None;
        }
        self.commands.push(command.to_owned());
        self.count += 1;
        let key = key(STAGE_SHELL, &json!({ "machine": self.machine, "commands": self.commands }))?;
        let (turn, output) = match context.runner.recall::<ShellTurn, String>(STAGE_SHELL, &key)? {
            // The container has not executed this command, so it no longer matches.
            Some(known) => {
                self.sandbox = None;
                known
            }
            None => {
                let ran = self.execute(context, &hashed, uploads).await?;
                context.runner.commit(STAGE_SHELL, &key, &ran.0, &ran.1)?;
                ran
            }
        };
        if turn.outcome.is_none() {
            // The next command starts on a new machine.
            self.commands.clear();
            self.sandbox = None;
        }
        let texts = &context.texts.shell;
        Ok(texts.render("observation.md.j2", observed(&turn, &output, changed, MAX_COMMANDS - self.count))?)
    }

    /// Executes the last command in a container with the earlier ones.
    async fn execute(
        &mut self,
        context: &StageContext<'_>,
        hashed: &HashedTask<'_>,
        uploads: &FileTree,
    ) -> Result<(ShellTurn, String), StageError> {
        let runner = context.runner;
        let _slot = runner.slot().await?;
        let Some((last, before)) = self.commands.split_last() else {
            return Ok((ShellTurn { outcome: None, restarted: false }, String::new()));
        };
        let mut kept = self.sandbox.take();
        let ended = crate::verify::settled(
            runner.retries(),
            async |assume: Assume| {
                let sandbox = match kept.take() {
                    Some(sandbox) => sandbox,
                    None => ready(context, hashed, uploads, before).await?,
                };
                match sandbox.shell(last, &limit()).await {
                    Ok(done) => {
                        let turn = ShellTurn { outcome: Some(done.outcome), restarted: done.shell_restarted };
                        let output = String::from_utf8_lossy(&done.output).into_owned();
                        Ok((turn, output, Some(sandbox)))
                    }
                    Err(error) => {
                        let lost = NoVerdict::Sandbox { phase: Phase::Solve, error };
                        match assume.blame(lost.blame()) {
                            Some(Blame::Solver | Blame::Caller) => {
                                let output = format!(
                                    "the command could not be run, and the machine was made again: {lost}"
                                );
                                Ok((ShellTurn { outcome: None, restarted: false }, output, None))
                            }
                            Some(Blame::Task | Blame::Infra) | None => Err(lost),
                        }
                    }
                }
            },
            async |_| runner.control(hashed, Act::Idle).await,
        );
        let (turn, output, sandbox) = ended.await.map_err(TrialError::from)?;
        self.sandbox = sandbox;
        Ok((turn, output))
    }
}

/// A container of the machine in which `before` was executed.
async fn ready(
    context: &StageContext<'_>,
    hashed: &HashedTask<'_>,
    uploads: &FileTree,
    before: &[String],
) -> Result<Sandbox, NoVerdict> {
    let runner = context.runner;
    let image = runner.image(hashed).await?;
    let engine = runner.engine.get().await?;
    let sandbox = engine.launch(&solver_container(&image, &hashed.task)).await?;
    let prepare = |error| NoVerdict::Sandbox { phase: Phase::Prepare, error };
    sandbox.put_tree(TESTS, uploads).await.map_err(prepare)?;
    for command in before {
        sandbox.shell(command, &limit()).await.map_err(prepare)?;
    }
    Ok(sandbox)
}

fn limit() -> ExecLimit {
    ExecLimit { timeout: COMMAND, max_output: OUTPUT_BYTES }
}

fn observed(turn: &ShellTurn, output: &str, changed: bool, left: usize) -> Value {
    let (status, timed_out) = match turn.outcome {
        Some(ShellOutcome::Exited(status) | ShellOutcome::ShellDied(status)) => (status, false),
        Some(ShellOutcome::TimedOut) => (TIMEOUT_STATUS, true),
        None => (1, false),
    };
    let output = output.trim_end_matches('\n');
    let output = if output.is_empty() { "(no output)" } else { output };
    let (seconds, shell_restarted) = (COMMAND.as_secs(), turn.restarted);
    context! { output, status, timed_out, seconds, shell_restarted, changed, left }
}

/// The task whose machine the shell runs on.
async fn machine(
    context: &StageContext<'_>,
    shell: Shell,
    working: &Working,
) -> Result<crate::model::Task, StageError> {
    let task = working.task(context)?;
    match shell {
        Shell::Draft | Shell::DraftWithTests => return Ok(task),
        Shell::DraftOrEmpty => {}
    }
    if working.machine.iter().any(|(path, _)| path.as_str().starts_with(APP)) {
        let hashed = context.hashed(&task)?;
        if context.runner.build(&hashed).await?.is_ok() {
            return Ok(task);
        }
    }
    let empty = FileTree::from_iter([(rel(PLACEHOLDER)?, File::text(String::new()))]);
    Working { machine: empty, ..working.clone() }.task(context)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_without_files_may_be_a_command() {
        let check = |reply: &str, expect: Option<&str>| assert_eq!(command(reply), expect, "{reply}");
        check("Let me look.\n\n```bash\nls\n```", Some("ls"));
        check("<file path=\"solve.sh\">\n```bash\nls\n```\n</file>", None);
        check("```bash\nls\n```\n```bash\npwd\n```", None);
        check("ls", None);
    }
}
