//! Commands that an agent with a loop of its own ran by function calls. Only the call and its result
//! are known, so the exit status is read from the result.

use serde_json::{Map, Value};

use crate::model::{Shown, ToolCall};

/// Names of arguments with a command, of the agents in use.
const COMMANDS: [&str; 4] = ["command", "cmd", "script", "keystrokes"];
/// Names of arguments with a path. A call with one edits a file, and its `command` is a word like
/// `view` (OpenHands).
const PATHS: [&str; 2] = ["path", "file_path"];
/// Names of fields with a status, of results in JSON (mini-swe-agent).
const STATUSES: [&str; 3] = ["returncode", "exit_code", "exitCode"];
/// Names of fields with an output, of results in JSON.
const OUTPUTS: [&str; 2] = ["output", "stdout"];
/// Lines that hold a status between these texts, one for each agent.
const LINES: [(&str, &str); 5] = [
    // Codex
    ("Process exited with code ", ""),
    // Codex's former tool, qwen-code and gemini-cli
    ("exit code: ", ""),
    // Claude Code
    ("exit code ", ""),
    // OpenHands: `[The command completed with exit code 1.]`
    ("[the command completed with exit code ", ".]"),
    // mini-swe-agent's text format
    ("<returncode>", "</returncode>"),
];
/// Lines at the start and at the end of a result that may hold its status. The lines between are the
/// command's own output.
const EDGE: usize = 6;

/// A command that was called, and how it ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Called<'a> {
    pub(super) command: String,
    /// `None` if the result does not say it.
    pub(super) status: Option<i32>,
    /// The output, without the lines about its end.
    pub(super) output: String,
    /// The whole result.
    pub(super) shown: &'a str,
}

/// The commands among calls that have a result, in order.
pub(super) fn called<'a>(calls: &[ToolCall], shown: &'a [Shown]) -> Vec<Called<'a>> {
    let with_result = calls.iter().filter_map(|call| {
        let command = command(&call.arguments)?;
        let result = shown.iter().find(|shown| shown.tool_call.as_ref() == Some(&call.id))?;
        let (status, output) = ending(&result.content);
        Some(Called { command, status, output, shown: &result.content })
    });
    with_result.collect()
}

/// The command in the arguments of a call.
fn command(arguments: &str) -> Option<String> {
    let arguments: Map<String, Value> = serde_json::from_str(arguments).ok()?;
    if PATHS.iter().any(|name| arguments.contains_key(*name)) {
        return None;
    }
    COMMANDS.iter().find_map(|name| match arguments.get(*name)? {
        Value::String(command) => Some(command.trim().to_owned()),
        // A program with its arguments, e.g. `["bash", "-lc", "ls"]`. The last one is the command.
        Value::Array(words) => Some(words.last()?.as_str()?.trim().to_owned()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    })
}

/// The status that a result states, and the output in it.
fn ending(result: &str) -> (Option<i32>, String) {
    if let Ok(fields) = serde_json::from_str::<Map<String, Value>>(result) {
        let status = STATUSES.iter().find_map(|name| fields.get(*name)?.as_i64());
        let output = OUTPUTS.iter().find_map(|name| fields.get(*name)?.as_str());
        if let Some(status) = status.and_then(|status| i32::try_from(status).ok()) {
            return (Some(status), output.unwrap_or_default().to_owned());
        }
    }
    let lines: Vec<&str> = result.lines().collect();
    let at_edge = |at: usize| at < EDGE || at + EDGE >= lines.len();
    let is_status = |(at, line): &(usize, &&str)| at_edge(*at) && line_status(line).is_some();
    let stated =
        lines.iter().enumerate().filter(is_status).filter_map(|(_, line)| line_status(line)).next_back();
    let output = lines.iter().enumerate().filter(|line| !is_status(line)).map(|(_, line)| *line);
    (stated, output.collect::<Vec<_>>().join("\n"))
}

/// The status in a line that states one.
fn line_status(line: &str) -> Option<i32> {
    let line = line.trim().to_ascii_lowercase();
    LINES.iter().find_map(|(before, after)| {
        let before = before.to_ascii_lowercase();
        line.strip_prefix(&before)?.strip_suffix(after)?.trim().parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_agents() {
        let check = |arguments: &str, expect: Option<&str>| {
            assert_eq!(command(arguments).as_deref(), expect, "{arguments}");
        };
        check(r#"{"command": "ls\n", "timeout": 3}"#, Some("ls"));
        check(r#"{"cmd":"ls","workdir":"/app"}"#, Some("ls"));
        check(r#"{"command":["bash","-lc","make test"]}"#, Some("make test"));
        check(r#"{"command":"view","path":"/app/a.py"}"#, None);
        check(r#"{"file_path":"/app/a.py","content":"x"}"#, None);
        check(r#"{"thought":"hm"}"#, None);
        check(r#"{"command":"cut of"#, None);
        check(r#"{"command":3}"#, None);
    }

    #[test]
    fn results_state_how_commands_ended() {
        let check = |result: &str, status: Option<i32>, output: &str| {
            assert_eq!(ending(result), (status, output.to_owned()), "{result}");
        };
        check(r#"{"returncode": 2, "output": "no such file"}"#, Some(2), "no such file");
        check("<returncode>1</returncode>\n<output>\nx\n</output>", Some(1), "<output>\nx\n</output>");
        check(
            "Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 1\nOutput:\nboom",
            Some(1),
            "Chunk ID: 1\nWall time: 0.1 seconds\nOutput:\nboom",
        );
        check("boom\n[The command completed with exit code 127.]", Some(127), "boom");
        check("Exit code 1\nboom", Some(1), "boom");
        check("Output: boom\nExit Code: 2\nSignal: (none)", Some(2), "Output: boom\nSignal: (none)");
        check("Process exited with code 0", Some(0), "");
        check("a.txt", None, "a.txt");
        check(r#"{"name": "x"}"#, None, r#"{"name": "x"}"#);
        // A line in the midst of a long output is the command's own.
        let long = format!("{}exit code 3\n{}", "line\n".repeat(20), "line\n".repeat(20));
        check(&long, None, long.trim_end());
    }
}
