//! The `bash-block` scaffold: free text and one fenced block of bash a reply.

use minijinja::syntax::SyntaxConfig;
use minijinja::{AutoEscape, Environment, UndefinedBehavior, context};

use crate::assets::Assets;
use crate::model::ShellOutcome;

/// Name of the scaffold in every record and row.
pub const SCAFFOLD: &str = "bash-block";

/// The scaffold's texts, from `templates/prompts/bash-block/`.
#[derive(Clone, Debug)]
pub struct Prompts {
    pub system: String,
    task: String,
    observation: String,
    pub(super) gives_up: Vec<String>,
    pub(super) tries_again: Vec<String>,
}

/// A prompt that is missing or does not render.
#[derive(Debug, thiserror::Error)]
pub enum PromptsError {
    #[error(
        "`templates/prompts/bash-block/{0}` is missing\nhint: an overriding templates folder must be complete"
    )]
    Missing(&'static str),
    #[error("`templates/prompts/bash-block/{0}`: {1}")]
    Template(&'static str, #[source] minijinja::Error),
}

impl Prompts {
    /// Reads the texts.
    pub fn load(assets: &Assets) -> Result<Self, PromptsError> {
        let read = |name: &'static str| {
            assets
                .text(&format!("templates/prompts/{SCAFFOLD}/{name}"))
                .map(str::to_owned)
                .ok_or(PromptsError::Missing(name))
        };
        let lines = |name| read(name).map(|text| text.lines().map(str::to_owned).collect());
        Ok(Self {
            system: read("system.md")?.trim_end().to_owned(),
            task: read("task.md.j2")?,
            observation: read("observation.md.j2")?,
            gives_up: lines("gives_up.txt")?,
            tries_again: lines("tries_again.txt")?,
        })
    }

    /// Hash over all texts, for the address of a rollout.
    pub fn digest(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        let lists = self.gives_up.iter().chain(&self.tries_again);
        for text in [&self.system, &self.task, &self.observation].into_iter().chain(lists) {
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        }
        hasher.finalize().to_hex().to_string()
    }

    /// The first user message.
    pub fn task(&self, instruction: &str, workdir: &str) -> Result<String, PromptsError> {
        render("task.md.j2", &self.task, context! { instruction, workdir })
    }

    /// The user message after a command. `seconds` is the command's time limit.
    pub fn observation(
        &self,
        output: &str,
        outcome: ShellOutcome,
        seconds: u64,
    ) -> Result<String, PromptsError> {
        let (status, timed_out, died) = match outcome {
            ShellOutcome::Exited(status) => (status, false, false),
            ShellOutcome::TimedOut => (124, true, false),
            ShellOutcome::ShellDied(status) => (status, false, true),
        };
        let output = output.strip_suffix('\n').unwrap_or(output);
        let context = context! { output, status, timed_out, seconds, shell_restarted => died };
        render("observation.md.j2", &self.observation, context)
    }
}

fn render(name: &'static str, source: &str, context: minijinja::Value) -> Result<String, PromptsError> {
    let failed = |error| PromptsError::Template(name, error);
    let mut env = Environment::new();
    env.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build().map_err(failed)?);
    env.set_undefined_behavior(UndefinedBehavior::Strict);
    env.set_auto_escape_callback(|_| AutoEscape::None);
    env.render_named_str(name, source, context).map(|text| text.trim_end().to_owned()).map_err(failed)
}
