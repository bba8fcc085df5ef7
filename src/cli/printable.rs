//! Makes text safe for a terminal.
//!
//! Messages of checks, file names and logs come from the solver. With control sequences it could
//! retitle the window, write to the clipboard or draw a false verdict (attack D-43).

use std::borrow::Cow;
use std::fmt::Write as _;

/// `text` with an escape, e.g. `\u001b`, in place of each character that a terminal obeys. The
/// escapes are also valid in JSON strings. Line ends and tabs stay.
pub(super) fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(is_obeyed) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        if is_obeyed(c) {
            // Writing to a String cannot fail.
            let _ = write!(safe, "\\u{:04x}", u32::from(c));
        } else {
            safe.push(c);
        }
    }
    Cow::Owned(safe)
}

/// Whether `c` is a control character, or one that reorders the text around it (Unicode Standard
/// Annex 9).
fn is_obeyed(c: char) -> bool {
    const REORDERING: [char; 12] = [
        '\u{61c}', '\u{200e}', '\u{200f}', '\u{202a}', '\u{202b}', '\u{202c}', '\u{202d}', '\u{202e}',
        '\u{2066}', '\u{2067}', '\u{2068}', '\u{2069}',
    ];
    (c.is_control() && !matches!(c, '\n' | '\t')) || REORDERING.contains(&c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_is_printed() {
        let check = |text: &str, expect: &str| assert_eq!(printable(text), expect, "{text:?}");
        check("passed: 3 of 4 checks\n\tcafé ☕ 試\n", "passed: 3 of 4 checks\n\tcafé ☕ 試\n");
        // A verdict drawn over the line, a new title, the clipboard, and one-character forms of
        // these sequences.
        check("no\r\x1b[2Kpassed", "no\\u000d\\u001b[2Kpassed");
        check("\x1b]0;title\x07", "\\u001b]0;title\\u0007");
        check("\x1b]52;c;cm0gLXJm\x1b\\", "\\u001b]52;c;cm0gLXJm\\u001b\\");
        check("\u{9b}2K\u{9d}0;x\u{9c}\x7f\x08\0", "\\u009b2K\\u009d0;x\\u009c\\u007f\\u0008\\u0000");
        check("\u{202e}deliaf\u{2069}", "\\u202edeliaf\\u2069");
    }

    #[test]
    fn json_stays_the_same_json() {
        let value = serde_json::json!({ "message": "a\x1b[31m\u{9b}\u{202e}\u{7f}b\r\n" });
        let text = serde_json::to_string_pretty(&value).unwrap();
        let safe = printable(&text);
        assert!(!safe.contains(is_obeyed));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&safe).unwrap(), value);
    }
}
