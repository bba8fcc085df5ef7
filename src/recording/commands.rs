//! Finds commands in recorded input.

use super::incomplete::is_incomplete;

/// Keys whose effect on a line is known.
const BACKSPACE: [char; 2] = ['\u{7f}', '\u{8}'];
const ERASE_LINE: char = '\u{15}';
const INTERRUPT: char = '\u{3}';
/// On an empty line this ends the session, and the line stays empty.
const END_OF_INPUT: char = '\u{4}';
/// Does not change the line.
const CLEAR_SCREEN: char = '\u{c}';

/// The commands in `input`, as far as keys tell them. Completions, and text from the shell's
/// history or clipboard, are not part of the input. So the list is empty if any such key was used:
/// then the prompts of the output tell more.
pub(super) fn typed(input: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    for key in input.chars() {
        match key {
            '\r' | '\n' => match lines.last_mut() {
                Some(last) if is_incomplete(last) => {
                    last.push('\n');
                    last.push_str(&std::mem::take(&mut line));
                }
                _ => lines.push(std::mem::take(&mut line)),
            },
            ERASE_LINE => line.clear(),
            INTERRUPT => {
                line.clear();
                // A command of several lines that was interrupted.
                lines.pop_if(|last| is_incomplete(last));
            }
            CLEAR_SCREEN => {}
            END_OF_INPUT if line.is_empty() => {}
            key if BACKSPACE.contains(&key) => drop(line.pop()),
            key if key.is_control() => return Vec::new(),
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
    fn lines_that_were_typed() {
        let check = |input: &str, expect: &[&str]| assert_eq!(typed(input), expect, "{input:?}");
        check("ls\rpwd\r", &["ls", "pwd"]);
        check("lx\u{7f}s\r\r", &["ls"]);
        check("rm -rf\u{15}ls\r", &["ls"]);
        check("sleep 9\r\u{3}ls\r", &["sleep 9", "ls"]);
        check("cat > a <<E\rb c\rE\rls\r", &["cat > a <<E\nb c\nE", "ls"]);
        check("echo 'a\r\u{3}ls\r", &["ls"]);
        check("cd da\t\rls\r", &[]);
        check("ls\r\u{1b}[A\r", &[]);
        // Rows: a search in the history, a fetch from it, a deleted word, and the clipboard.
        check("ls\r\u{12}mak\r", &[]);
        check("ls\r\u{10}\r", &[]);
        check("ls\r\u{e}\r", &[]);
        check("rm a b\u{17}c\r", &[]);
        check("rm a\u{15}ls \u{19}\r", &[]);
        check("ls\r\u{1}#\r", &[]);
        check("ls\r\u{c}pwd\r\u{4}", &["ls", "pwd"]);
        check("ls a\u{4}\r", &[]);
    }
}
