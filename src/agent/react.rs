//! The `react` scaffold: plain text, `Thought:` and `Action:`, for small models without function calling.
//!
//! Source: ReAct (arXiv 2210.03629), with a shell as the only tool.

use minijinja::context;

use super::bash_block::run;
use super::scaffold::{AssistantMessage, EpisodeContext, Opening, Scaffold, ScaffoldError, Step};
use crate::assets::Assets;
use crate::model::{Shown, TurnKind};
use crate::prompts::{PromptSet, PromptsError};

/// Name of the scaffold in every record and row.
pub const REACT: &str = "react";
/// Where a model has to stop: what follows would be its own idea of what the terminal says.
pub const STOP: &str = "Observation:";
const ACTION: &str = "Action:";
const SUBMIT: &str = "submit";

/// The scaffold.
#[derive(Clone, Debug)]
pub struct React {
    prompts: PromptSet,
}

impl React {
    /// Reads the texts, from `templates/prompts/react/`.
    pub fn load(assets: &Assets) -> Result<Self, PromptsError> {
        let needed = ["system.md", "task.md.j2", "observation.md.j2", "malformed.md.j2"];
        Ok(Self { prompts: PromptSet::load(assets, REACT, &needed)? })
    }

    /// Hash over all texts.
    pub fn digest(&self) -> String {
        self.prompts.digest()
    }
}

impl Scaffold for React {
    async fn open(
        &mut self,
        episode: &EpisodeContext<'_>,
        instruction: &str,
    ) -> Result<Opening, ScaffoldError> {
        let workdir = episode.sandbox.workdir();
        Ok(Opening {
            system: self.prompts.text("system.md")?.to_owned(),
            prompt: self.prompts.render("task.md.j2", context! { instruction, workdir })?,
            tools: Vec::new(),
        })
    }

    async fn take(
        &mut self,
        assistant: &AssistantMessage,
        episode: &EpisodeContext<'_>,
    ) -> Result<Step, ScaffoldError> {
        // Half a command must not be run.
        let Some(action) = read_action(&assistant.content).filter(|_| !assistant.cut_off) else {
            let cut_off = assistant.cut_off;
            return Ok(Step::malformed(self.prompts.render("malformed.md.j2", context! { cut_off })?));
        };
        if action == SUBMIT {
            return Ok(Step::submitted());
        }
        let (act, seen, text) = run(action, episode.limits.command, &self.prompts, episode).await?;
        let shown = vec![Shown::text(text)];
        Ok(Step { kind: TurnKind::Acted, acts: vec![act], seen: vec![seen], shown, ..Step::default() })
    }
}

/// The action of a message: what follows its first line that begins with `Action:`, up to an observation that the model has made
/// up, or to another thought. A fence around it is no part of it.
pub fn read_action(message: &str) -> Option<&str> {
    let mut from = None;
    let mut to = message.len();
    let mut at = 0;
    for line in message.split_inclusive('\n') {
        let text = line.trim_start();
        match from {
            None => {
                if let Some(rest) = text.strip_prefix(ACTION) {
                    from = Some(at + (line.len() - rest.len()));
                }
            }
            Some(_) if [STOP, "Thought:", ACTION].iter().any(|word| text.starts_with(word)) => {
                to = at;
                break;
            }
            Some(_) => {}
        }
        at += line.len();
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
    fn actions_are_read() {
        let check =
            |message: &str, expect: Option<&str>| assert_eq!(read_action(message), expect, "{message}");
        check("Thought: look\nAction: ls", Some("ls"));
        check("Thought: look\nAction: ls\nObservation: a b\nThought: so\nAction: rm a", Some("ls"));
        check("Action: cat <<'E' > a\n1\nE\n", Some("cat <<'E' > a\n1\nE"));
        check("Action:\n```bash\nls\npwd\n```", Some("ls\npwd"));
        check("Action: `ls -a`", Some("ls -a"));
        check("  Action: submit", Some("submit"));
        check("Action: ls\nAction: pwd", Some("ls"));
        check("Thought: what Action: would", None);
        check("Action:", None);
        check("Action:   \nThought: x", None);
        check("Action: ```", None);
        check("", None);
    }
}
