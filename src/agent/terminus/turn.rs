//! From a reply to the next message, and the end of the episode.

use super::python::format;
use super::{Parsed, Texts, limit};

/// The result of a reply.
#[derive(Clone, Debug, PartialEq)]
pub enum Reading {
    /// No keystrokes are sent; this is the next user message.
    Rejected { parsed: Parsed, message: String },
    /// Its commands are to be typed, each with its wait, and [`Turns::observe`] told what the terminal then shows.
    Accepted(Parsed),
}

/// The result after the commands of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// The next user message.
    Message(String),
    /// The model has declared completion twice. The last output, for the record.
    Done(String),
}

/// The turns of one episode.
#[derive(Clone, Debug)]
pub struct Turns {
    texts: Texts,
    /// The last reply that was accepted said that the task is complete. A rejected one leaves that as it is.
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
        // Harbor looks for the word, so a warning that quotes it from the reply has the same effect.
        if feedback.contains("ERROR:") {
            let message = format(&self.texts.parse_error, &[("feedback", &feedback)]);
            return Reading::Rejected { parsed, message };
        }
        Reading::Accepted(parsed)
    }

    /// Takes what the terminal shows after the commands of an accepted reply: what [`super::Pane::show`] said.
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
        // A second time, as Harbor does: the number in the marker is then that of the bytes of the first marker.
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

/// Errors and warnings, as the model is told them.
fn feedback(parsed: &Parsed) -> String {
    match (&parsed.error, &parsed.warning) {
        (Some(error), Some(warning)) => format!("ERROR: {error}\nWARNINGS: {warning}"),
        (Some(error), None) => format!("ERROR: {error}"),
        (None, Some(warning)) => format!("WARNINGS: {warning}"),
        (None, None) => String::new(),
    }
}
