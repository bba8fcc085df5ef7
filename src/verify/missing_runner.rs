//! Tests that could not run, because their runner is missing,
//! e.g. `/tests/test.sh: line 4: uvx: command not found`.
//!
//! Many test scripts then write a reward of 0, whatever the solver did. The message alone proves
//! nothing: a solver can cause it, and a task can ask the solver to install the program. So a
//! control runs the task's own solution. The task is at fault only if the control meets the same
//! message.

use super::act::Act;
use super::target::Target;
use crate::model::Assume;

/// Lines at the end of an output that may hold the message. Scripts print little after it.
const LAST_LINES: usize = 8;
/// The folder of test scripts. A shell begins its messages with their names.
const OF_TESTS: &str = "/tests/";
/// Python's messages if the usual runner is not installed.
const NO_PYTEST: [&str; 2] = ["No module named pytest", "No module named 'pytest'"];

/// How a trial treats such a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingRunner {
    /// A control runs before there is a verdict.
    AsksControl,
    /// The message is ignored.
    Ignored,
}

impl MissingRunner {
    /// How a trial of `act` treats such a message. Without a solution, nothing shows whether the
    /// task asks to install the program. Edited solutions and attacks are judged beside a solution
    /// that passes, so they need no control.
    pub fn of(target: &dyn Target, act: Act<'_>, assume: Assume) -> Self {
        match act {
            Act::Nothing | Act::Solve(_)
                if target.solution().is_some() && assume != Assume::SolverAtFault =>
            {
                Self::AsksControl
            }
            Act::Nothing
            | Act::Idle
            | Act::Solve(_)
            | Act::Edit { .. }
            | Act::Vary { .. }
            | Act::Attack { .. } => Self::Ignored,
        }
    }
}

/// The line with the message, near the end of the tests' output.
pub(super) fn missing_runner(output: &str) -> Option<&str> {
    let is_of_shell = |line: &str| line.starts_with(OF_TESTS) && line.ends_with("not found");
    let says = |line: &&str| is_of_shell(line) || NO_PYTEST.iter().any(|words| line.ends_with(words));
    let lines = output.lines().rev().map(str::trim_end).filter(|line| !line.is_empty());
    lines.take(LAST_LINES).find(says)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shell_names_the_missing_program() {
        let check = |output: &str, expect: Option<&str>| {
            assert_eq!(missing_runner(output), expect, "{output:?}");
        };
        let bash = "/tests/test.sh: line 4: uvx: command not found";
        check(&format!("{bash}\n"), Some(bash));
        check(&format!("curl: (6) no host\n{bash}\nFAILED\n\n"), Some(bash));
        check("/tests/test.sh: 4: uvx: not found", Some("/tests/test.sh: 4: uvx: not found"));
        check("/usr/bin/python3: No module named pytest\n", Some("/usr/bin/python3: No module named pytest"));
        // These lines are about a solver's program, or about its work.
        check("bash: line 1: frob: command not found", None);
        check("/app/run.sh: line 4: frob: command not found", None);
        check("AssertionError: page not found", None);
        check(&format!("{bash}\n{}", "ok\n".repeat(LAST_LINES)), None);
        check("", None);
    }
}
