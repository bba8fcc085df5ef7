//! Repairs JSON of other programs that has escapes no string can hold.

use std::borrow::Cow;

/// The escape that replaces half a character.
const REPLACEMENT: &str = "\\ufffd";
/// Bytes of an escape such as `\ud83d`.
const ESCAPE: usize = 6;

/// `json` with U+FFFD in place of every lone surrogate.
///
/// Programs in JavaScript and Python may cut a character in half, e.g. where they truncate an
/// output. They write the half as `\ud83d`. A parser then refuses the whole text.
pub fn replace_lone_surrogates(json: &str) -> Cow<'_, str> {
    let mut mended = String::new();
    let (mut done, mut at) = (0, 0);
    while let Some(found) = json[at..].find('\\') {
        at += found;
        match (unit(json, at), unit(json, at + ESCAPE)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => at += 2 * ESCAPE,
            (Some(0xd800..=0xdfff), _) => {
                mended.push_str(&json[done..at]);
                mended.push_str(REPLACEMENT);
                at += ESCAPE;
                done = at;
            }
            // Another escape, e.g. `\\` or `\n`. The character after the backslash may take several
            // bytes.
            _ => at += 1 + json[at + 1..].chars().next().map_or(0, char::len_utf8),
        }
    }
    if done == 0 {
        return Cow::Borrowed(json);
    }
    mended.push_str(&json[done..]);
    Cow::Owned(mended)
}

/// The UTF-16 unit of the escape at `at`. `None` if there is no such escape.
fn unit(json: &str, at: usize) -> Option<u16> {
    let digits = json.get(at..at + ESCAPE)?.strip_prefix("\\u")?;
    let hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    hex.then(|| u16::from_str_radix(digits, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lone_surrogates_are_replaced() {
        let check = |json: &str, expect: &str| {
            let mended = replace_lone_surrogates(json);
            assert_eq!(serde_json::from_str::<String>(&mended).unwrap(), expect, "{json}");
        };
        check(r#""plain""#, "plain");
        check(r#""\ud83d\ude00""#, "😀");
        check(r#""a\ud83d""#, "a\u{fffd}");
        check(r#""\ud83d lone""#, "\u{fffd} lone");
        check(r#""\ude00b""#, "\u{fffd}b");
        check(r#""\ud83d\ud83d\ude00""#, "\u{fffd}😀");
        check(r#""\uD83D\n\u00e9é""#, "\u{fffd}\néé");
        // The backslash is escaped, so `ud83d` after it is plain text.
        check(r#""\\ud83d""#, "\\ud83d");
        check(r#""\\\ud83d""#, "\\\u{fffd}");
    }

    #[test]
    fn torn_text_is_left_to_the_parser() {
        for torn in ["\"\\", "\"\\u", "\"\\ud8", "\"\\é", "\"\\ud83d\\u"] {
            assert!(serde_json::from_str::<String>(&replace_lone_surrogates(torn)).is_err(), "{torn}");
        }
    }
}
