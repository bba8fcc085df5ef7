//! Tests that could not run, because a program that runs them is missing.
//!
//! Many test scripts write a reward of 0 after such a message (`/tests/test.sh: line 4: uvx:
//! command not found`), so that every solver gets
//! 0. The message alone decides nothing: a solver can cause it, and a task can ask to install the
//! program. It makes a control run, the task's own solution; only where that meets the same is the
//! task at fault.

use super::act::Act;
use super::target::Target;
use crate::model::Assume;

/// Lines at the end of an output in which the message is looked for. Scripts print little after it.
const LAST_LINES: usize = 8;
/// Where test scripts are, whose names a shell puts before its messages.
const OF_TESTS: &str = "/tests/";
/// What Python says where the usual runner is not installed.
const NO_PYTEST: [&str; 2] = ["No module named pytest", "No module named 'pytest'"];

/// What is done about such a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingRunner {
    /// There is no verdict before a control has run.
    AsksControl,
    /// The verdict stands.
    Ignored,
}

impl MissingRunner {
    /// What a trial of `act` does about it. Without a solution nothing tells whether the task asks
    /// to install the program; edits of a solution and attacks are judged beside a solution that
    /// passes.
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

/// The line that says it, near the end of the tests' output.
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
        // Said of a solver's program, or of its work.
        check("bash: line 1: frob: command not found", None);
        check("/app/run.sh: line 4: frob: command not found", None);
        check("AssertionError: page not found", None);
        check(&format!("{bash}\n{}", "ok\n".repeat(LAST_LINES)), None);
        check("", None);
    }
}
