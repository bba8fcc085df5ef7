//! The commands of a session whose input was recorded.

use super::incomplete::is_incomplete;

/// Characters that the terminal sends for keys whose effect on a line is known.
const BACKSPACE: [char; 2] = ['\u{7f}', '\u{8}'];
const ERASE_LINE: char = '\u{15}';
const INTERRUPT: char = '\u{3}';
/// On an empty line it ends the session, and the line stays empty.
const END_OF_INPUT: char = '\u{4}';
/// Leaves the line as it is.
const CLEAR_SCREEN: char = '\u{c}';

/// The commands that were typed, as far as keys alone tell: completions, the shell's history and
/// its clipboard do not appear in the input.
///
/// None if any other control key was used: the prompts of the output show more.
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
                // A command of several lines that was given up.
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
        // Found in the history, fetched from it, without the last word, with the clipboard.
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
