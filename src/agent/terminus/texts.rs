//! Harbor's texts, from `templates/prompts/terminus/`.

use super::python::format;
use super::{Format, limit};
use crate::assets::Assets;

/// Folder of the texts.
const FOLDER: &str = "templates/prompts/terminus";

/// A text that is missing.
#[derive(Debug, thiserror::Error)]
#[error("`{FOLDER}/{0}` is missing\nhint: an overriding templates folder must be complete")]
pub struct TextsError(&'static str);

impl TextsError {
    /// The text's file name.
    pub fn name(&self) -> &'static str {
        self.0
    }
}

/// All texts of one format.
#[derive(Clone, Debug)]
pub struct Texts {
    format: Format,
    task: String,
    timeout: String,
    pub(super) confirm: String,
    pub(super) parse_error: String,
    pub(super) warnings: String,
    too_long: String,
    summary: String,
    questions: String,
    answers: String,
    handoff: String,
    short_summary: String,
    short_handoff: String,
    last_resort: String,
}

impl Texts {
    /// Reads the texts of a format.
    pub fn load(assets: &Assets, format: Format) -> Result<Self, TextsError> {
        let read = |name: &'static str| {
            assets.text(&format!("{FOLDER}/{name}")).map(str::to_owned).ok_or(TextsError(name))
        };
        let (task, confirm, parse_error) = match format {
            Format::Json => ("terminus-json-plain.txt", "confirm-json.txt", "parse-error-json.txt"),
            Format::Xml => ("terminus-xml-plain.txt", "confirm-xml.txt", "parse-error-xml.txt"),
        };
        Ok(Self {
            format,
            task: read(task)?,
            timeout: read("timeout.txt")?,
            confirm: read(confirm)?,
            parse_error: read(parse_error)?,
            warnings: read("warnings.txt")?,
            too_long: read("too-long.txt")?,
            summary: read("summary.txt")?,
            questions: read("questions.txt")?,
            answers: read("answers.txt")?,
            handoff: read("handoff.txt")?,
            short_summary: read("short-summary.txt")?,
            short_handoff: read("short-handoff.txt")?,
            last_resort: read("last-resort.txt")?,
        })
    }

    /// The format of the model's answers: JSON or XML.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Hash over all texts. It is part of a rollout's key.
    pub fn digest(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        let texts = [
            &self.task,
            &self.timeout,
            &self.confirm,
            &self.parse_error,
            &self.warnings,
            &self.too_long,
            &self.summary,
            &self.questions,
            &self.answers,
            &self.handoff,
            &self.short_summary,
            &self.short_handoff,
            &self.last_resort,
        ];
        for text in texts {
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        }
        hasher.finalize().to_hex().to_string()
    }

    /// The first user message. There is no system message. `output` is the first
    /// [`super::Pane::show`].
    pub fn task(&self, instruction: &str, output: &str) -> String {
        format(&self.task, &[("instruction", instruction), ("terminal_state", &limit(output))])
    }

    /// The user message after a command that timed out. Harbor has this text, but its terminal
    /// never times out.
    pub fn timeout(&self, command: &str, seconds: &str, output: &str) -> String {
        let values = [("command", command), ("timeout_sec", seconds), ("terminal_state", &limit(output))];
        format(&self.timeout, &values)
    }

    /// The user message after a reply that was cut off and cannot be salvaged. `tokens` is its
    /// length, if known.
    pub fn too_long(&self, truncated: &str, tokens: Option<u64>) -> String {
        let limit =
            tokens.map_or("the maximum output length".to_owned(), |tokens| format!("{tokens} tokens"));
        let mut message = format(&self.too_long, &[("limit", &limit)]);
        if let Some(warning) = self.format.parse(truncated).warning {
            message.push_str("\n\nParser warnings from your truncated response:\n");
            message.push_str(&warning);
        }
        message
    }

    /// First step of a summary. It is asked after the whole history.
    pub fn summary(&self, instruction: &str) -> String {
        format(&self.summary, &[("instruction", instruction)])
    }

    /// Second step. It is asked in a new conversation, and stays in it. `screen` is the visible
    /// screen.
    pub fn questions(&self, instruction: &str, summary: &str, screen: &str) -> String {
        let values = [("instruction", instruction), ("summary", summary), ("screen", screen)];
        format(&self.questions, &values)
    }

    /// Third step. It is asked after the whole history and the summary.
    pub fn answers(&self, questions: &str) -> String {
        format(&self.answers, &[("questions", questions)])
    }

    /// The first message of the new history.
    pub fn handoff(&self, answers: &str) -> String {
        format(&self.handoff, &[("answers", answers)])
    }

    /// If one of the three steps fails, this is asked instead, in a new conversation.
    pub fn short_summary(&self, instruction: &str, screen: &str) -> String {
        format(&self.short_summary, &[("instruction", instruction), ("screen", last_characters(screen))])
    }

    /// The message with the short summary, in the new history.
    pub fn short_handoff(&self, instruction: &str, summary: &str) -> String {
        format(&self.short_handoff, &[("instruction", instruction), ("summary", summary)])
    }

    /// The message of the new history if the short summary fails too.
    pub fn last_resort(&self, instruction: &str, screen: &str) -> String {
        format(&self.last_resort, &[("instruction", instruction), ("screen", last_characters(screen))])
    }
}

/// The last thousand characters of a screen.
fn last_characters(screen: &str) -> &str {
    const KEPT: usize = 1000;
    let start = screen.char_indices().rev().nth(KEPT - 1).map_or(0, |(offset, _)| offset);
    &screen[start..]
}
