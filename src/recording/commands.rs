//! The command lines of a session.

use std::sync::LazyLock;

use regex::Regex;

/// A prompt that names a user and a machine, or begins a line with one of the usual signs, and the command behind it.
static PROMPT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"^(?:\([\w./-]+\) )?\[?(?:[\w.-]+@[\w.-]+[: ]?[^$#%❯➜»]{0,80}\]?[$#%]|[\w.~/-]{0,60} ?[$❯➜»]|(?:bash|sh|zsh)-[\d.]+[$#]) +(\S.*)$").ok()
});
/// Characters that the terminal sends for keys that edit a line.
const BACKSPACE: [char; 2] = ['\u{7f}', '\u{8}'];
const ERASE_LINE: char = '\u{15}';
const INTERRUPT: char = '\u{3}';
const ESCAPE: char = '\u{1b}';

/// The commands behind prompts.
pub(super) fn prompted(transcript: &str) -> Vec<String> {
    let Some(prompt) = PROMPT.as_ref() else { return Vec::new() };
    let lines = transcript.lines().filter_map(|line| prompt.captures(line));
    lines.map(|found| found[1].trim_end().to_owned()).collect()
}

/// The lines that were typed, as far as keys alone tell: completions and the shell's history do not appear in the input.
///
/// None if such keys were used: the prompts of the output show more.
pub(super) fn typed(input: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for key in input.chars() {
        match key {
            '\r' | '\n' => lines.push(std::mem::take(&mut line)),
            ESCAPE | '\t' => return Vec::new(),
            ERASE_LINE | INTERRUPT => line.clear(),
            key if BACKSPACE.contains(&key) => drop(line.pop()),
            key if key.is_control() => {}
            key => line.push(key),
        }
    }
    lines.retain(|line| !line.trim().is_empty());
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_behind_prompts() {
        let check = |line: &str, expect: &[&str]| assert_eq!(prompted(line), expect, "{line}");
        check("$ ls -l", &["ls -l"]);
        check("root@box:/app# make test", &["make test"]);
        check("me@box:~/x (main) $ git log", &["git log"]);
        check("(venv) me@box:~$ python3 x.py", &["python3 x.py"]);
        check("[me@box data]$ wc -l a", &["wc -l a"]);
        check("~/src ❯ cargo test", &["cargo test"]);
        check("bash-5.2# id", &["id"]);
        check("# a comment in a file", &[]);
        check("total 12", &[]);
        check("it cost 5 $ yesterday", &[]);
        check("$ ", &[]);
    }

    #[test]
    fn lines_that_were_typed() {
        let check = |input: &str, expect: &[&str]| assert_eq!(typed(input), expect, "{input:?}");
        check("ls\rpwd\r", &["ls", "pwd"]);
        check("lx\u{7f}s\r\r", &["ls"]);
        check("rm -rf\u{15}ls\r", &["ls"]);
        check("sleep 9\r\u{3}ls\r", &["sleep 9", "ls"]);
        check("cd da\t\rls\r", &[]);
        check("ls\r\u{1b}[A\r", &[]);
    }
}
