//! Runs a command in the sandbox's long-lived shell, for the scaffolds `bash`, `bash-block` and
//! `react`.

use std::time::Duration;

use minijinja::{Value, context};

use super::scaffold::{ActSeen, AssistantMessage, EpisodeContext, Opening, ScaffoldError, Step, StepLimits};
use crate::model::{Act, ShellOutcome, Shown, ToolDefinition, TurnKind};
use crate::prompts::{PromptSet, PromptsError};
use crate::sandbox::{ExecLimit, SandboxError, ShellResult};

/// The exit status of `timeout(1)` for a command that it stopped.
const TIMEOUT_STATUS: i32 = 124;

/// The result of a command.
pub(super) enum Ran {
    Command {
        act: Act,
        seen: ActSeen,
        observation: String,
    },
    /// The command cannot be sent to a shell, e.g. it has a NUL byte. The text says why. The action
    /// is malformed, and nothing ran.
    Refused(String),
}

/// Runs a command. It has `limit`, or the rest of the episode if that is shorter.
pub(super) async fn run(
    command: &str,
    limit: Duration,
    prompts: &PromptSet,
    episode: &EpisodeContext<'_>,
) -> Result<Ran, ScaffoldError> {
    let exec = ExecLimit { timeout: limit.min(episode.left()), max_output: episode.limits.output_bytes };
    let result = match episode.sandbox.shell(command, &exec).await {
        Ok(result) => result,
        Err(error @ (SandboxError::Nul { .. } | SandboxError::TooLarge { .. })) => {
            return Ok(Ran::Refused(error.to_string()));
        }
        Err(error @ (SandboxError::Lost(_) | SandboxError::Engine(_) | SandboxError::Failed { .. })) => {
            let act = Act::Command { command: command.to_owned(), outcome: None };
            return Err(ScaffoldError::of(error, vec![act]));
        }
    };
    let output = String::from_utf8_lossy(&result.output);
    Ok(Ran::Command {
        observation: observation(prompts, &output, &result, limit)?,
        act: Act::Command { command: command.to_owned(), outcome: Some(result.outcome) },
        seen: ActSeen { bytes: result.bytes, milliseconds: result.took.as_secs_f64() * 1e3 },
    })
}

/// Runs the command of a message in plain text. If no shell can take it, the step is malformed.
pub(super) async fn run_only_command(
    command: &str,
    assistant: &AssistantMessage,
    prompts: &PromptSet,
    episode: &EpisodeContext<'_>,
) -> Result<Step, ScaffoldError> {
    match run(command, episode.limits.command, prompts, episode).await? {
        Ran::Command { act, seen, observation } => Ok(Step {
            kind: TurnKind::Acted,
            acts: vec![act],
            seen: vec![seen],
            shown: vec![Shown::text(observation)],
            ..Step::default()
        }),
        Ran::Refused(fault) => Ok(malformed(prompts, &fault, assistant)?),
    }
}

/// The step after a message without a usable command, with the text of `malformed.md.j2`.
pub(super) fn malformed(
    prompts: &PromptSet,
    fault: &str,
    assistant: &AssistantMessage,
) -> Result<Step, PromptsError> {
    let cut_off = assistant.cut_off;
    Ok(Step::malformed(prompts.render("malformed.md.j2", context! { fault, cut_off })?))
}

/// Starts the shell, and makes the first messages from `system.md.j2` and `task.md.j2`. So a shell
/// that cannot be started is noticed before a model is asked anything.
pub(super) async fn opening(
    prompts: &PromptSet,
    episode: &EpisodeContext<'_>,
    instruction: &str,
    tools: Vec<ToolDefinition>,
) -> Result<Opening, ScaffoldError> {
    let started = episode.sandbox.shell(":", &ExecLimit::default()).await;
    started.map_err(|error| ScaffoldError::of(error, Vec::new()))?;
    let workdir = episode.sandbox.workdir();
    Ok(Opening {
        system: prompts.render("system.md.j2", limits_context(episode.limits))?,
        prompt: prompts.render("task.md.j2", context! { instruction, workdir })?,
        tools,
        ..Opening::default()
    })
}

/// The message after a command, from `observation.md.j2`.
fn observation(
    prompts: &PromptSet,
    output: &str,
    result: &ShellResult,
    limit: Duration,
) -> Result<String, PromptsError> {
    let (status, timed_out, died) = match result.outcome {
        ShellOutcome::Exited(status) => (status, false, false),
        ShellOutcome::TimedOut => (TIMEOUT_STATUS, true, false),
        ShellOutcome::ShellDied(status) => (status, false, true),
    };
    // The shell can end together with a time-out, and it can end between two commands.
    let shell_restarted = died || result.shell_restarted;
    let output = output.strip_suffix('\n').unwrap_or(output);
    let seconds = limit.as_secs();
    prompts.render("observation.md.j2", context! { output, status, timed_out, seconds, shell_restarted })
}

/// The limits that a scaffold's texts mention. They are the enforced ones, so texts cannot differ
/// from them.
pub(super) fn limits_context(limits: &StepLimits) -> Value {
    let StepLimits { command, output_bytes, reply_tokens, turns, .. } = limits;
    context! { command_seconds => command.as_secs(), output_bytes, reply_tokens, turns }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assets::Assets;

    #[test]
    fn a_model_is_told_that_its_shell_was_replaced() {
        let check = |outcome: ShellOutcome, shell_restarted: bool, told: bool| {
            let (output, bytes, took) = (Vec::new(), 0, Duration::ZERO);
            let result = ShellResult { outcome, output, bytes, shell_restarted, took };
            for name in ["bash", "bash-block", "react"] {
                let prompts = PromptSet::load(&Assets::embedded(), name, &["observation.md.j2"]).unwrap();
                let text = observation(&prompts, "text", &result, Duration::from_secs(9)).unwrap();
                assert_eq!(
                    text.contains("was replaced"),
                    told,
                    "{name} {outcome:?} {shell_restarted}: {text}"
                );
                let timed_out = outcome == ShellOutcome::TimedOut;
                assert_eq!(text.contains("timed out after 9 s"), timed_out, "{name} {outcome:?}: {text}");
            }
        };
        check(ShellOutcome::Exited(0), false, false);
        check(ShellOutcome::TimedOut, false, false);
        check(ShellOutcome::ShellDied(1), true, true);
        // The time-out ended the shell.
        check(ShellOutcome::TimedOut, true, true);
        // The shell ended between the command before and this one.
        check(ShellOutcome::Exited(0), true, true);
    }
}
