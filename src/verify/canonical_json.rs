//! The canonical form of a JSON text. Texts have equal forms if they differ at most in blanks, in
//! the order of keys, and in how numbers are written, e.g. `1e2` for `100`.

use serde_json::Value;

use crate::model::canonical_json;

/// Marks a string that stands for a number. Hardly any JSON text has a NUL in a string.
const NUMBER: &str = "\\u0000number ";

/// The canonical form of `text`. `None` if it is no JSON.
///
/// Numbers are compared by their decimal digits. As 64-bit floating-point numbers, a result with a
/// wrong eighteenth digit would equal the right one.
pub(super) fn canonical(text: &str) -> Option<String> {
    // The text parses, so each character outside a string belongs to a known token.
    serde_json::from_str::<serde::de::IgnoredAny>(text).ok()?;
    let mut rewritten = String::with_capacity(text.len() + 64);
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => string_length(rest),
            '-' | '0'..='9' => rest.find(|c: char| !is_of_number(c)).unwrap_or(rest.len()),
            _ => first.len_utf8(),
        };
        let (token, after) = rest.split_at_checked(length)?;
        if is_of_number(first) && first != 'e' && first != 'E' {
            rewritten.extend(["\"", NUMBER, &decimal(token)?, "\""]);
        } else {
            rewritten.push_str(token);
        }
        rest = after;
    }
    let value: Value = serde_json::from_str(&rewritten).ok()?;
    canonical_json(&value).ok()
}

fn is_of_number(c: char) -> bool {
    matches!(c, '0'..='9' | '-' | '+' | '.' | 'e' | 'E')
}

/// The length in bytes of the string at the start of `text`, with its quotes.
fn string_length(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// A number as its significant digits and a power of ten, e.g. `-12e1` for `-120.0`. `None` if the
/// exponent does not fit into 64 bits.
fn decimal(number: &str) -> Option<String> {
    let (sign, number) = number.strip_prefix('-').map_or(("", number), |rest| ("-", rest));
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    let significant = digits.trim_end_matches('0');
    if significant.is_empty() {
        return Some("0".to_owned());
    }
    let zeros = i64::try_from(digits.len() - significant.len()).ok()?;
    let shift = i64::try_from(fraction.len()).ok()?;
    let exponent = exponent.parse::<i64>().ok()?.checked_add(zeros)?.checked_sub(shift)?;
    Some(format!("{sign}{significant}e{exponent}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_equal_if_they_mean_the_same() {
        let check = |one: &str, other: &str, expect: bool| {
            let (one_form, other_form) = (canonical(one), canonical(other));
            assert!(one_form.is_some(), "{one}");
            assert_eq!(one_form == other_form, expect, "{one} {other}");
        };
        check(r#"{"a": 1, "b": [2]}"#, r#"{"b":[2],"a":1}"#, true);
        check("[1, 2]", "[2, 1]", false);
        check("1.0", "1", true);
        check("1e2", "100.00", true);
        check("-0.5e-1", "-0.05", true);
        check("0", "-0.0e7", true);
        check("100", "10", false);
        check("0.1", "1", false);
        check("1", "-1", false);
        // Beyond the precision of a 64-bit floating-point number.
        check("0.1000000000000000001", "0.1", false);
        check("123456789012345678901", "123456789012345678902", false);
        check("1e400", "2e400", false);
        // A string is no number, and escapes in it are resolved.
        check(r#""1""#, "1", false);
        check(r#""a\"1""#, r#""a\"1.0""#, false);
        check(r#""\u0041""#, r#""A""#, true);
        check(r#"{"1": 1}"#, r#"{"1.0": 1}"#, false);
        check("[true, null]", "[true,null]", true);
    }

    #[test]
    fn texts_that_are_no_json_have_no_form() {
        for text in ["", "{", "[1 2]", "NaN", "1e99999999999999999999", "01", "\u{1f600}"] {
            assert_eq!(canonical(text), None, "{text:?}");
        }
    }
}
