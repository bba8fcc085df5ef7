//! Finds the output of a command on a terminal's screen: the lines between the echo of its keys and
//! the next prompt.

use super::words::{ERRORS, NOISE, READERS, SCREEN_ERRORS, any_line, says};

/// Maximum number of screen lines of a typed line that wraps.
const MOST_WRAPPED: usize = 12;

/// The start of Harbor's question, which follows the screen.
const CONFIRMATION: &str = "\n\nAre you sure you want to mark the task as complete?";

/// The starts of terminus-2's observations.
const HEADERS: [&str; 3] = ["New Terminal Output:", "Current Terminal Screen:", "Current terminal state:"];

/// The last line of `keys` that is not blank.
pub(super) fn last_line(keys: &str) -> &str {
    keys.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default()
}

/// The output after the last echo of `typed`, without the last prompt. The whole screen if there is
/// no echo.
pub(super) fn output(shown: &str, typed: &str) -> String {
    let lines = lines(shown);
    match echo(&lines, typed) {
        Some((line, prompt)) => printed(lines.get(line + 1..).unwrap_or_default(), Some(&prompt)),
        None => printed(&lines, None),
    }
}

/// The output of a command after a further observation. That is the whole screen with the echo, or
/// only the new lines.
pub(super) fn continued(before: &str, shown: &str, typed: &str) -> String {
    let lines = lines(shown);
    match echo(&lines, typed) {
        Some((line, prompt)) => printed(lines.get(line + 1..).unwrap_or_default(), Some(&prompt)),
        None => format!("{before}\n{}", printed(&lines, None)),
    }
}

/// The terminal's lines, without those that the scaffold adds.
fn lines(shown: &str) -> Vec<&str> {
    let shown = shown.split_once(CONFIRMATION).map_or(shown, |(before, _)| before);
    shown.lines().filter(|line| !HEADERS.contains(&line.trim_end())).collect()
}

fn printed(mut lines: &[&str], prompt: Option<&str>) -> String {
    while let [rest @ .., last] = lines
        && last.trim().is_empty()
    {
        lines = rest;
    }
    if let ([rest @ .., last], Some(prompt)) = (lines, prompt)
        && is_prompt(last, prompt)
    {
        lines = rest;
    }
    lines.iter().map(|line| line.trim_end()).collect::<Vec<_>>().join("\n")
}

/// The line in which the last echo of `typed` ends, and the prompt before the echo.
fn echo(lines: &[&str], typed: &str) -> Option<(usize, String)> {
    if typed.is_empty() {
        return None;
    }
    (0..lines.len()).rev().find_map(|first| {
        let mut joined = String::new();
        lines.iter().enumerate().skip(first).take(MOST_WRAPPED).find_map(|(line, text)| {
            joined.push_str(text);
            let prompt = joined.trim_end().strip_suffix(typed)?;
            Some((line, prompt.to_owned()))
        })
    })
}

/// Whether `line` is the prompt from before the command. Only the folder in it may differ.
fn is_prompt(line: &str, before: &str) -> bool {
    let (line, before) = (line.trim_end(), before.trim_end());
    let end = |text: &str| text.chars().next_back();
    let mark = end(line).filter(|mark| "$#%>".contains(*mark));
    line == before || mark.is_some() && mark == end(before) && name(line) == name(before)
}

/// The part of a prompt before its folder, e.g. `root@box`.
fn name(prompt: &str) -> &str {
    prompt.split([':', ' ']).next().unwrap_or_default()
}

/// Whether `output` has an error of `program`. If the program prints files, only a line with its
/// own name is an error. Otherwise a line with a program's name may be a log.
pub(super) fn shows_error(output: &str, program: &str) -> bool {
    let mut lines = output.lines().filter(|line| !says(&NOISE, line));
    let own = format!("{program}: ");
    if says(&READERS, program) {
        lines.any(|line| line.starts_with(&own) || line.starts_with("bash: "))
    } else {
        lines.any(|line| any_line(&SCREEN_ERRORS, line) || line.starts_with(&own) && says(&ERRORS, line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_found() {
        let check = |shown: &str, keys: &str, expect: &str| {
            assert_eq!(output(shown, last_line(keys)), expect, "{shown:?} {keys:?}");
        };
        let shown = "New Terminal Output:\nroot@box:/app# make\nmake: *** No rule\nroot@box:/app# ";
        check(shown, "make\n", "make: *** No rule");
        // The folder in the prompt changes.
        check("root@box:/app# cd x\nroot@box:/app/x#", "cd x\n", "");
        // The last of several commands counts.
        check("$ a\nA\n$ b\nB\n$ ", "a\nb\n", "B");
        // Output that ends like a prompt is none.
        check("root@box:/app# cat x\nprice in $", "cat x\n", "price in $");
        // Blank lines fill the rest of a screen.
        check("Current Terminal Screen:\n$ ls\nx\n$\n\n\n\n", "ls\n", "x");
        // A long line wraps.
        check("$ echo aaaaaaaaaa\nbbbbb\nout\n$ ", "echo aaaaaaaaaabbbbb\n", "out");
        // Without an echo, everything is output.
        check("Password:", "hunter2\n", "Password:");
        check("$ make\nx\n$ \n\nAre you sure you want to mark the task as complete? This", "make\n", "x");
        check("", "ls\n", "");
        check("$ ", "", "$");
    }

    #[test]
    fn later_observations_are_appended() {
        let check =
            |shown: &str, expect: &str| assert_eq!(continued("one", shown, "make"), expect, "{shown:?}");
        // The whole screen; then only the new lines.
        check("Current Terminal Screen:\n$ make\none\ntwo\n$ ", "one\ntwo");
        check("New Terminal Output:\ntwo\nthree", "one\ntwo\nthree");
    }

    #[test]
    fn errors_are_distinguished_from_data() {
        let check = |output: &str, program: &str, expect: bool| {
            assert_eq!(shows_error(output, program), expect, "{program}: {output}");
        };
        check("bash: frobnicate: command not found", "frobnicate", true);
        check("Traceback (most recent call last):\n  File \"x\"\nValueError: no", "python", true);
        check("main.c:3:1: error: expected ';'", "gcc", true);
        check("cat: x: No such file or directory", "cat", true);
        check("ls: cannot access 'x': No such file or directory", "ls", true);
        check("=== 1 failed, 2 passed in 0.1s ===", "pytest", true);
        check("=== 3 passed in 0.1s ===", "pytest", false);
        check("ERROR: disk full\nTraceback (most recent call last):", "cat", false);
        check("awk: cmd. line:1: {\nawk: cmd. line:1: ^ syntax error", "awk", true);
        check("find: '/root': Permission denied\n./a", "find", false);
        check("gcc: warning: -l: linker input unused", "gcc", false);
        check("make: Nothing to be done for 'all'.", "make", false);
        check("nginx: configuration file x test failed", "nginx", true);
        check("server: listening", "server", false);
        check("server: 0 errors so far", "server", false);
        check("0 errors, 0 failures", "check", false);
        check("error_rate 0.1", "python", false);
        check("", "make", false);
    }
}
