//! The `bash` scaffold: native function calling with one tool.

use std::time::Duration;

use minijinja::context;
use serde::Deserialize;
use serde_json::json;

use super::bash_block::run;
use super::scaffold::{AssistantMessage, EpisodeContext, Opening, Scaffold, ScaffoldError, Step};
use crate::assets::Assets;
use crate::model::{Shown, ToolCall, ToolDefinition, TurnKind};
use crate::prompts::{PromptSet, PromptsError};

/// Name of the scaffold in every record and row.
pub const BASH: &str = "bash";
/// Name of its tool.
const TOOL: &str = "bash";

/// The scaffold. An episode ends with a message that calls nothing.
#[derive(Clone, Debug)]
pub struct BashTool {
    prompts: PromptSet,
}

/// What a call carries.
#[derive(Debug, Deserialize)]
struct Arguments {
    command: String,
    /// Seconds; less than the scaffold's own limit, or it changes nothing.
    #[serde(default)]
    timeout: Option<f64>,
}

impl BashTool {
    /// Reads the texts, from `templates/prompts/bash/`.
    pub fn load(assets: &Assets) -> Result<Self, PromptsError> {
        let needed = ["system.md", "task.md.j2", "tool.md", "observation.md.j2", "malformed.md.j2"];
        Ok(Self { prompts: PromptSet::load(assets, BASH, &needed)? })
    }

    /// Hash over all texts.
    pub fn digest(&self) -> String {
        self.prompts.digest()
    }

    fn definition(&self) -> Result<ToolDefinition, PromptsError> {
        Ok(ToolDefinition {
            name: TOOL.to_owned(),
            description: self.prompts.text("tool.md")?.to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "command": { "type": "string", "description": "what bash is to run" },
                    "timeout": { "type": "number", "description": "seconds after which it is killed" },
                },
                "required": ["command"],
            }),
        })
    }

    fn malformed(&self, fault: String) -> Result<String, PromptsError> {
        self.prompts.render("malformed.md.j2", context! { fault })
    }

    /// Runs one call. What cannot be run is answered with the reason.
    async fn call(
        &self,
        call: &ToolCall,
        episode: &EpisodeContext<'_>,
        step: &mut Step,
    ) -> Result<(), ScaffoldError> {
        let text = match read(call) {
            Ok(Arguments { command, timeout }) => {
                let asked = timeout.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
                let most = asked.map_or(episode.limits.command, |asked| asked.min(episode.limits.command));
                let (act, seen, text) = run(&command, most, &self.prompts, episode).await?;
                step.acts.push(act);
                step.seen.push(seen);
                text
            }
            Err(fault) => self.malformed(fault)?,
        };
        step.shown.push(Shown { tool_call: Some(call.id.clone()), content: text });
        Ok(())
    }
}

fn read(call: &ToolCall) -> Result<Arguments, String> {
    if call.name != TOOL {
        return Err(format!("there is no tool `{}`", call.name));
    }
    let arguments: Arguments = serde_json::from_str(&call.arguments)
        .map_err(|error| format!("the arguments are not what `{TOOL}` takes: {error}"))?;
    if arguments.command.trim().is_empty() { Err("`command` is empty".to_owned()) } else { Ok(arguments) }
}

impl Scaffold for BashTool {
    async fn open(
        &mut self,
        episode: &EpisodeContext<'_>,
        instruction: &str,
    ) -> Result<Opening, ScaffoldError> {
        let workdir = episode.sandbox.workdir();
        Ok(Opening {
            system: self.prompts.text("system.md")?.to_owned(),
            prompt: self.prompts.render("task.md.j2", context! { instruction, workdir })?,
            tools: vec![self.definition()?],
        })
    }

    async fn take(
        &mut self,
        assistant: &AssistantMessage,
        episode: &EpisodeContext<'_>,
    ) -> Result<Step, ScaffoldError> {
        if assistant.tool_calls.is_empty() {
            // A message that was cut off has not come to its calls, and an empty one says nothing at all.
            if assistant.cut_off || assistant.content.trim().is_empty() {
                let fault = if assistant.cut_off { "it was cut off" } else { "it is empty" };
                return Ok(Step::malformed(self.malformed(format!("the message was not used: {fault}"))?));
            }
            return Ok(Step::submitted());
        }
        let mut step = Step { kind: TurnKind::Acted, ..Step::default() };
        for call in &assistant.tool_calls {
            match self.call(call, episode, &mut step).await {
                Ok(()) => {}
                Err(ScaffoldError::Sandbox { error, acts }) => {
                    let acts = step.acts.into_iter().chain(acts).collect();
                    return Err(ScaffoldError::Sandbox { error, acts });
                }
                Err(error) => return Err(error),
            }
        }
        if step.acts.is_empty() {
            step.kind = TurnKind::Malformed;
        }
        Ok(step)
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
        check("python", r#"{"command": "ls"}"#, Err("no tool `python`"));
    }
}
