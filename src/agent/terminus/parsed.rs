//! A parsed reply, in either format.

use std::time::Duration;

/// Keystrokes, and the time to wait after them.
#[derive(Clone, Debug, PartialEq)]
pub struct Command {
    /// Typed literally, or the name of a key in tmux ([`super::to_bytes`]). Empty keystrokes only wait.
    pub keystrokes: String,
    /// Seconds, as the model wrote them; may be negative, infinite or NaN.
    pub duration: f64,
}

impl Command {
    pub(super) const DEFAULT_DURATION: f64 = 1.0;
    /// Longest wait for one command, in seconds.
    pub const MAX_DURATION: f64 = 60.0;

    /// The actual wait: at most 60 s, and zero for an invalid duration.
    pub fn wait(&self) -> Duration {
        let seconds = self.duration.min(Self::MAX_DURATION);
        if self.duration.is_nan() {
            return Duration::ZERO;
        }
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::ZERO)
    }
}

/// The result of parsing a reply.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parsed {
    pub commands: Vec<Command>,
    pub task_complete: bool,
    /// Why the reply is rejected.
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

/// The state of the parser of a reply.
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

    /// Warns if parts, given in their right order with their offsets, are in another one.
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

    /// A reply that is treated as incomplete, whatever its content.
    pub(super) fn fail(mut self, error: String) -> Parsed {
        self.task_complete = false;
        Parsed { error: Some(error), ..self.succeed(Vec::new()) }
    }

    /// Once the task is complete, errors in the commands do not matter.
    pub(super) fn fail_unless_complete(mut self, error: String) -> Parsed {
        if self.task_complete {
            self.warn(error);
            self.succeed(Vec::new())
        } else {
            self.fail(error)
        }
    }
}
