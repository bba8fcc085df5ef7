//! A parsed reply, in either format.

use std::time::Duration;

/// Keystrokes and the time to wait after them.
#[derive(Clone, Debug, PartialEq)]
pub struct Command {
    /// Text to type, or the name of a key in tmux, e.g. `C-c` ([`super::to_bytes`]). Empty
    /// keystrokes only wait.
    pub keystrokes: String,
    /// Seconds, as the model wrote them. They may be negative, infinite or NaN.
    pub duration: f64,
}

impl Command {
    pub(super) const DEFAULT_DURATION: f64 = 1.0;
    /// Longest wait for one command, in seconds.
    pub const MAX_DURATION: f64 = 60.0;

    /// The actual wait: at most 60 s. A negative or NaN duration is zero.
    pub fn wait(&self) -> Duration {
        let seconds = self.duration.min(Self::MAX_DURATION);
        if self.duration.is_nan() {
            return Duration::ZERO;
        }
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::ZERO)
    }
}

/// A reply after parsing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parsed {
    pub commands: Vec<Command>,
    pub task_complete: bool,
    /// Why the reply was rejected. `None` if it was accepted.
    pub error: Option<String>,
    /// One line each, beginning with `- `.
    pub warning: Option<String>,
    pub analysis: String,
    pub plan: String,
}

impl Parsed {
    pub(super) fn auto_corrected(mut self, name: &str) -> Self {
        let warning = format!("- AUTO-CORRECTED: {name} - please fix this in future responses");
        self.warning = Some(match self.warning {
            Some(other) => format!("{warning}\n{other}"),
            None => warning,
        });
        self
    }
}

/// A reply while it is parsed.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) task_complete: bool,
    pub(super) analysis: String,
    pub(super) plan: String,
    warnings: Vec<String>,
}

impl Draft {
    pub(super) fn warn(&mut self, warning: String) {
        self.warnings.push(warning);
    }

    pub(super) fn warn_of_missing_newline(&mut self, number: usize) {
        self.warn(format!(
            "Command {number} should end with newline when followed by another command. \
             Otherwise the two commands will be concatenated together on the same line."
        ));
    }

    /// Warns if the parts of a reply are in the wrong order. `offsets` lists them in the right
    /// order, each with its place in the reply.
    pub(super) fn check_order(&mut self, what: &str, offsets: &[(usize, &str)]) {
        let arrows =
            |offsets: &[(usize, &str)]| offsets.iter().map(|(_, name)| *name).collect::<Vec<_>>().join(" → ");
        let mut found = offsets.to_vec();
        found.sort_by_key(|(offset, _)| *offset);
        if found != offsets {
            let (found, expected) = (arrows(&found), arrows(offsets));
            self.warn(format!("{what} appear in wrong order. Found: {found}, expected: {expected}"));
        }
    }

    pub(super) fn succeed(self, commands: Vec<Command>) -> Parsed {
        let warning = (!self.warnings.is_empty()).then(|| format!("- {}", self.warnings.join("\n- ")));
        Parsed {
            commands,
            task_complete: self.task_complete,
            error: None,
            warning,
            analysis: self.analysis,
            plan: self.plan,
        }
    }

    /// The reply is rejected, and its commands and its `task_complete` do not count.
    pub(super) fn fail(mut self, error: String) -> Parsed {
        self.task_complete = false;
        Parsed { error: Some(error), ..self.succeed(Vec::new()) }
    }

    /// Like [`Self::fail`], but once the task is complete, an error in the commands is only a
    /// warning.
    pub(super) fn fail_unless_complete(mut self, error: String) -> Parsed {
        if self.task_complete {
            self.warn(error);
            self.succeed(Vec::new())
        } else {
            self.fail(error)
        }
    }
}
