//! Escapes names from foreign files before they are printed in tables.

use std::borrow::Cow;
use std::fmt::Write as _;

/// `text` with every control character and line break escaped, e.g. `\u000a`.
///
/// An unescaped name could end its table row and forge the next one.
pub fn one_line(text: &str) -> Cow<'_, str> {
    escaped(text, |c| c.is_control() || is_break(c))
}

/// Like [`one_line`], and also escapes the characters that end a cell of a Markdown table.
pub fn table_cell(text: &str) -> Cow<'_, str> {
    escaped(text, |c| c.is_control() || is_break(c) || matches!(c, '|' | '`' | '<'))
}

/// Whether `c` is Unicode's line separator or paragraph separator.
fn is_break(c: char) -> bool {
    matches!(c, '\u{2028}' | '\u{2029}')
}

fn escaped(text: &str, is_escaped: fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        if is_escaped(c) {
            // Writing to a String cannot fail.
            let _ = write!(line, "\\u{:04x}", u32::from(c));
        } else {
            line.push(c);
        }
    }
    Cow::Owned(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_on_their_line() {
        let check = |text: &str, line: &str, cell: &str| {
            assert_eq!((one_line(text).as_ref(), table_cell(text).as_ref()), (line, cell));
        };
        check("claude-code 2.1 é", "claude-code 2.1 é", "claude-code 2.1 é");
        check("a\nb", "a\\u000ab", "a\\u000ab");
        check("a\r\tb\u{2028}", "a\\u000d\\u0009b\\u2028", "a\\u000d\\u0009b\\u2028");
        check("a | `b`", "a | `b`", "a \\u007c \\u0060b\\u0060");
    }
}
