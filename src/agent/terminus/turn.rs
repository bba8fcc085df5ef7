//! From a reply of the model to the next message, or to the end of the episode.

use super::python::format;
use super::{Parsed, Texts, limit};

/// The next step after a reply.
#[derive(Clone, Debug, PartialEq)]
pub enum Reading {
    /// No keystrokes are sent. `message` is the next user message.
    Rejected { parsed: Parsed, message: String },
    /// Type the commands, each with its wait. Then pass the terminal's text to [`Turns::observe`].
    Accepted(Parsed),
}

/// The next step after the commands of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// The next user message.
    Message(String),
    /// The model has declared twice that the task is complete. The text is the last output.
    Done(String),
}

/// The turns of one episode.
#[derive(Clone, Debug)]
pub struct Turns {
    texts: Texts,
    /// The last accepted reply said that the task is complete. Rejected replies do not change this.
    pending: bool,
}

impl Turns {
    pub fn new(texts: Texts) -> Self {
        Self { texts, pending: false }
    }

    /// Parses a reply.
    pub fn read(&self, reply: &str) -> Reading {
        let parsed = self.texts.format().parse(reply);
        let feedback = feedback(&parsed);
        // Harbor searches for the word too. So a warning that quotes it from the reply also
        // rejects.
        if feedback.contains("ERROR:") {
            let message = format(&self.texts.parse_error, &[("feedback", &feedback)]);
            return Reading::Rejected { parsed, message };
        }
        Reading::Accepted(parsed)
    }

    /// Takes the text that [`super::Pane::show`] returned after the commands of an accepted reply.
    pub fn observe(&mut self, parsed: &Parsed, output: &str) -> Next {
        let output = limit(output);
        let was_pending = std::mem::replace(&mut self.pending, parsed.task_complete);
        if parsed.task_complete {
            return if was_pending {
                Next::Done(output)
            } else {
                Next::Message(format(&self.texts.confirm, &[("terminal_output", &output)]))
            };
        }
        // Harbor limits twice. A second marker then counts bytes of the first one.
        let output = limit(&output);
        let feedback = feedback(parsed);
        if feedback.is_empty() {
            Next::Message(output)
        } else {
            let values = [("feedback", feedback.as_str()), ("terminal_output", output.as_str())];
            Next::Message(format(&self.texts.warnings, &values))
        }
    }
}

/// Errors and warnings, in Harbor's form for the model.
fn feedback(parsed: &Parsed) -> String {
    match (&parsed.error, &parsed.warning) {
        (Some(error), Some(warning)) => format!("ERROR: {error}\nWARNINGS: {warning}"),
        (Some(error), None) => format!("ERROR: {error}"),
        (None, Some(warning)) => format!("WARNINGS: {warning}"),
        (None, None) => String::new(),
    }
}
