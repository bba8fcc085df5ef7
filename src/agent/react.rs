//! The `react` scaffold: plain text with `Thought:` and `Action:`, for small models without
//! function calling.
//!
//! Source: ReAct (arXiv 2210.03629). The only tool is a shell.

use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt as _};

use super::heredoc;
use super::scaffold::{
    AssistantMessage, Driver, EpisodeContext, OpenSession, Protocol, Scaffold, ScaffoldEntry, ScaffoldError,
    Session, Step,
};
use super::shell_command::{malformed, opening, run_only_command};
use crate::assets::Assets;
use crate::prompts::{PromptSet, PromptsError};

/// The scaffold's registry entry.
pub(super) const ENTRY: ScaffoldEntry = ScaffoldEntry {
    option: NAME,
    description: "Thought and Action in plain text, for small models",
    load: |assets, _| Ok(Arc::new(React::load(assets)?)),
};

/// The name in records, and the folder of the texts.
const NAME: &str = "react";
/// Stop word. Text after it would be an observation that the model made up.
const OBSERVATION: &str = "Observation:";
const ACTION: &str = "Action:";
const THOUGHT: &str = "Thought:";
const SUBMIT: &str = "submit";

/// The scaffold.
#[derive(Clone, Debug)]
pub struct React {
    prompts: PromptSet,
}

impl React {
    /// Loads the texts from `templates/prompts/react/`.
    pub fn load(assets: &Assets) -> Result<Self, PromptsError> {
        let needed = ["system.md.j2", "task.md.j2", "observation.md.j2", "malformed.md.j2"];
        Ok(Self { prompts: PromptSet::load(assets, NAME, &needed)? })
    }

    async fn execute(
        &self,
        assistant: &AssistantMessage,
        episode: &EpisodeContext<'_>,
    ) -> Result<Step, ScaffoldError> {
        // An action has no end mark, so a truncated message may end within a command.
        let Some(action) = read_action(&assistant.content).filter(|_| !assistant.cut_off) else {
            return Ok(malformed(&self.prompts, "there is no complete action in the reply", assistant)?);
        };
        if action == SUBMIT {
            return Ok(Step::submitted());
        }
        run_only_command(action, assistant, &self.prompts, episode).await
    }
}

impl Scaffold for React {
    fn name(&self) -> &'static str {
        NAME
    }

    fn digest(&self) -> String {
        self.prompts.digest()
    }

    fn stop(&self) -> &'static [&'static str] {
        &[OBSERVATION]
    }

    fn driver(&self) -> Driver<'_> {
        Driver::TurnByTurn(self)
    }
}

impl Protocol for React {
    fn open<'a>(
        &'a self,
        episode: &'a EpisodeContext<'_>,
        instruction: &'a str,
    ) -> BoxFuture<'a, Result<OpenSession<'a>, ScaffoldError>> {
        async move {
            let opening = opening(&self.prompts, episode, instruction, Vec::new()).await?;
            Ok((Box::new(self) as Box<dyn Session>, opening))
        }
        .boxed()
    }
}

impl Session for &React {
    fn execute<'a>(
        &'a mut self,
        assistant: &'a AssistantMessage,
        episode: &'a EpisodeContext<'_>,
    ) -> BoxFuture<'a, Result<Step, ScaffoldError>> {
        React::execute(self, assistant, episode).boxed()
    }
}

/// The action of a message: the text after the first `Action:` at the start of a line. It ends at
/// the next `Observation:`, `Thought:` or `Action:` at the start of a line. A fence around it is
/// removed.
pub fn read_action(message: &str) -> Option<&str> {
    let mut from = None;
    let mut to = message.len();
    let (mut at, mut text_until) = (0, 0);
    let is_label = |line: &str| {
        let line = line.trim_start();
        [OBSERVATION, THOUGHT, ACTION].iter().any(|word| line.starts_with(word))
    };
    for line in message.split_inclusive('\n') {
        let mut command = None;
        if from.is_some() {
            if at >= text_until {
                if is_label(line) {
                    to = at;
                    break;
                }
                command = Some(line);
            }
        } else if let Some(rest) = line.trim_start().strip_prefix(ACTION) {
            from = Some(at + (line.len() - rest.len()));
            command = Some(rest);
        }
        at += line.len();
        // A here document can hold lines that look like labels, e.g. `Action: none` in notes. They
        // are skipped as its text. If it holds an `Observation:`, the model made that up, and the
        // document has no end.
        let after = message.get(at..).unwrap_or_default();
        let length = command.and_then(|command| heredoc::length(command, after));
        let length = length.filter(|&length| {
            !after[..length].lines().any(|line| line.trim_start().starts_with(OBSERVATION))
        });
        text_until = text_until.max(at + length.unwrap_or(0));
    }
    let action = unfenced(message.get(from?..to)?.trim());
    (!action.is_empty()).then_some(action)
}

fn unfenced(text: &str) -> &str {
    if text.trim_matches('`').is_empty() {
        return "";
    }
    let Some(inner) = text.strip_prefix("```").and_then(|text| text.strip_suffix("```")) else {
        return text.strip_prefix('`').and_then(|text| text.strip_suffix('`')).unwrap_or(text).trim();
    };
    let (first, rest) = inner.split_once('\n').unwrap_or(("", inner));
    if ["", "bash", "sh", "shell"].contains(&first.trim()) { rest.trim() } else { inner.trim() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_are_parsed() {
        let check =
            |message: &str, expect: Option<&str>| assert_eq!(read_action(message), expect, "{message}");
        check("Thought: look\nAction: ls", Some("ls"));
        check("Thought: look\nAction: ls\nObservation: a b\nThought: so\nAction: rm a", Some("ls"));
        check("Action: cat <<'E' > a\n1\nE\n", Some("cat <<'E' > a\n1\nE"));
        check("Action:\n```bash\nls\npwd\n```", Some("ls\npwd"));
        check("Action: `ls -a`", Some("ls -a"));
        check("  Action: submit", Some("submit"));
        check(
            "Action: cat <<E >a\nAction: none\nThought: no\nE\nls\nThought: so",
            Some("cat <<E >a\nAction: none\nThought: no\nE\nls"),
        );
        check("Action: cat <<E\na\nObservation: b\nThought: c\nAction: cat <<E\nE", Some("cat <<E\na"));
        check("Action: ls\nAction: pwd", Some("ls"));
        check("Thought: what Action: would", None);
        check("Action:", None);
        check("Action:   \nThought: x", None);
        check("Action: ```", None);
        check("", None);
    }
}
