//! The `bash` scaffold: native function calling with one tool.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _};
use minijinja::context;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::scaffold::{
    AssistantMessage, Driver, EpisodeContext, OpenSession, Protocol, Scaffold, ScaffoldEntry, ScaffoldError,
    Session, Step,
};
use super::shell_command::{Ran, limits_context, opening, run};
use crate::assets::Assets;
use crate::model::{Shown, ToolCall, ToolDefinition, TurnKind};
use crate::prompts::{PromptSet, PromptsError};

/// The scaffold's registry entry.
pub(super) const ENTRY: ScaffoldEntry = ScaffoldEntry {
    option: NAME,
    description: "Function calling with one tool, bash",
    load: |assets, _| Ok(Arc::new(BashTool::load(assets)?)),
};

/// The name in records, and the folder of the texts.
const NAME: &str = "bash";
/// Maximum number of calls in a message that are run. Messages of models have one to ten. A run
/// that stops waits for all of them.
const MAX_CALLS: usize = 32;
/// The name of the tool.
pub(super) const TOOL: &str = "bash";

/// The scaffold. An episode ends with a message that calls no tool.
#[derive(Clone, Debug)]
pub struct BashTool {
    prompts: PromptSet,
}

/// The arguments of a call.
#[derive(Debug, Deserialize)]
struct Arguments {
    command: String,
    /// Seconds. The scaffold's own limit is the maximum.
    #[serde(default)]
    timeout: Option<f64>,
}

impl BashTool {
    /// Reads the texts, from `templates/prompts/bash/`.
    pub fn load(assets: &Assets) -> Result<Self, PromptsError> {
        let needed = ["system.md.j2", "task.md.j2", "tool.md.j2", "observation.md.j2", "malformed.md.j2"];
        Ok(Self { prompts: PromptSet::load(assets, NAME, &needed)? })
    }

    fn definition(&self, episode: &EpisodeContext<'_>) -> Result<ToolDefinition, PromptsError> {
        let seconds = episode.limits.command.as_secs();
        Ok(ToolDefinition {
            name: TOOL.to_owned(),
            description: self.prompts.render("tool.md.j2", limits_context(episode.limits))?,
            parameters: json!({
                "type": "object",
                "properties": {
                    "command": { "type": "string", "description": "the bash commands to run" },
                    "timeout": {
                        "type": "number",
                        "description": format!("seconds after which it is killed; default and maximum: {seconds}"),
                    },
                },
                "required": ["command"],
            }),
        })
    }

    fn malformed(&self, fault: String) -> Result<String, PromptsError> {
        self.prompts.render("malformed.md.j2", context! { fault })
    }

    /// Runs a call. If it cannot be run, its answer says why.
    async fn call(
        &self,
        call: &ToolCall,
        episode: &EpisodeContext<'_>,
        step: &mut Step,
    ) -> Result<(), ScaffoldError> {
        let text = match read(call) {
            Ok(Arguments { command, timeout }) => {
                let requested = timeout.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
                let limit = requested.unwrap_or(episode.limits.command).min(episode.limits.command);
                match run(&command, limit, &self.prompts, episode).await? {
                    Ran::Command { act, seen, observation } => {
                        step.acts.push(act);
                        step.seen.push(seen);
                        observation
                    }
                    Ran::Refused(fault) => self.malformed(fault)?,
                }
            }
            Err(fault) => self.malformed(fault)?,
        };
        step.shown.push(Shown::result(call.id.clone(), text));
        Ok(())
    }

    async fn execute(
        &self,
        assistant: &AssistantMessage,
        episode: &EpisodeContext<'_>,
    ) -> Result<Step, ScaffoldError> {
        if assistant.tool_calls.is_empty() {
            // A truncated message may have lost its calls. An empty message does not say that the
            // task is done.
            if assistant.cut_off || assistant.content.trim().is_empty() {
                let fault = if assistant.cut_off { "it was cut off" } else { "it is empty" };
                return Ok(Step::malformed(self.malformed(format!("the message was not used: {fault}"))?));
            }
            return Ok(Step::submitted());
        }
        let mut step = Step { kind: TurnKind::Acted, ..Step::default() };
        for (number, call) in assistant.tool_calls.iter().enumerate() {
            // Every call gets an answer: servers refuse a history with an unanswered call.
            let surplus = match () {
                () if number >= MAX_CALLS => Some(format!("a message can make {MAX_CALLS} calls")),
                () if number > 0 && episode.left().is_zero() => Some("the time is up".to_owned()),
                () => None,
            };
            if let Some(fault) = surplus {
                step.shown.push(Shown::result(call.id.clone(), self.malformed(fault)?));
                continue;
            }
            if number > 0 && episode.drain.is_cancelled() {
                return Err(ScaffoldError::Drained);
            }
            match self.call(call, episode, &mut step).await {
                Ok(()) => {}
                Err(ScaffoldError::Sandbox { error, acts }) => {
                    let acts = step.acts.into_iter().chain(acts).collect();
                    return Err(ScaffoldError::Sandbox { error, acts });
                }
                Err(
                    error @ (ScaffoldError::Prompts(_) | ScaffoldError::Engine(_) | ScaffoldError::Drained),
                ) => {
                    return Err(error);
                }
            }
        }
        if step.acts.is_empty() {
            step.kind = TurnKind::Malformed;
        }
        Ok(step)
    }
}

fn read(call: &ToolCall) -> Result<Arguments, String> {
    if call.name != TOOL {
        return Err(format!("there is no tool `{}`", call.name));
    }
    // Read an object first: serde also accepts a list for a struct, but servers refuse it later.
    let arguments: Arguments = serde_json::from_str::<Map<String, Value>>(&call.arguments)
        .and_then(|object| serde_json::from_value(Value::Object(object)))
        .map_err(|error| format!("the arguments are not what `{TOOL}` takes: {error}"))?;
    if arguments.command.trim().is_empty() { Err("`command` is empty".to_owned()) } else { Ok(arguments) }
}

impl Scaffold for BashTool {
    fn name(&self) -> &'static str {
        NAME
    }

    fn digest(&self) -> String {
        self.prompts.digest()
    }

    fn driver(&self) -> Driver<'_> {
        Driver::TurnByTurn(self)
    }
}

impl Protocol for BashTool {
    fn open<'a>(
        &'a self,
        episode: &'a EpisodeContext<'_>,
        instruction: &'a str,
    ) -> BoxFuture<'a, Result<OpenSession<'a>, ScaffoldError>> {
        async move {
            let tools = vec![self.definition(episode)?];
            let opening = opening(&self.prompts, episode, instruction, tools).await?;
            Ok((Box::new(self) as Box<dyn Session>, opening))
        }
        .boxed()
    }
}

impl Session for &BashTool {
    fn execute<'a>(
        &'a mut self,
        assistant: &'a AssistantMessage,
        episode: &'a EpisodeContext<'_>,
    ) -> BoxFuture<'a, Result<Step, ScaffoldError>> {
        BashTool::execute(self, assistant, episode).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_read() {
        let check = |name: &str, arguments: &str, expect: Result<&str, &str>| {
            let call =
                ToolCall { id: "1".to_owned(), name: name.to_owned(), arguments: arguments.to_owned() };
            match (read(&call), expect) {
                (Ok(found), Ok(command)) => assert_eq!(found.command, command),
                (Err(fault), Err(part)) => assert!(fault.contains(part), "{fault}"),
                (found, expect) => panic!("{found:?} where {expect:?} was expected"),
            }
        };
        check("bash", r#"{"command": "ls"}"#, Ok("ls"));
        check("bash", r#"{"command": "ls", "timeout": 3}"#, Ok("ls"));
        check("bash", r#"{"command": "ls", "why": "to look"}"#, Ok("ls"));
        check("bash", r#"{"command": " "}"#, Err("empty"));
        check("bash", r#"{"cmd": "ls"}"#, Err("missing field `command`"));
        check("bash", r#"{"command": "ls"#, Err("not what `bash` takes"));
        check("bash", "", Err("not what `bash` takes"));
        check("bash", r#"["ls"]"#, Err("not what `bash` takes"));
        check("bash", r#""ls""#, Err("not what `bash` takes"));
        check("python", r#"{"command": "ls"}"#, Err("no tool `python`"));
    }
}
