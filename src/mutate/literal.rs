//! Replacement values for literals.

/// The integer plus `by`, in the same notation. `None` if `text` is not a plain integer.
pub(super) fn integer_plus(text: &str, by: i64) -> Option<String> {
    let (sign, digits) = match text.strip_prefix('+') {
        Some(digits) => ("+", digits),
        None => ("", text),
    };
    let bare = digits.strip_prefix('-').unwrap_or(digits);
    // A leading zero marks a mode, a date or an octal number. One more would change the width, or
    // be no number.
    if bare.is_empty()
        || !bare.bytes().all(|byte| byte.is_ascii_digit())
        || (bare.len() > 1 && bare.starts_with('0'))
    {
        return None;
    }
    let value = digits.parse::<i64>().ok()?.checked_add(by)?;
    // `+3` counts lines from the front. `+-1` is invalid.
    (sign.is_empty() || value >= 0).then(|| format!("{sign}{value}"))
}

/// The decimal number with another last digit. It is as precise and as plausible as before.
pub(super) fn decimal_beside(text: &str) -> Option<String> {
    let (whole, fraction) = text.split_once('.')?;
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if fraction.is_empty() || !digits(whole) || !digits(fraction) {
        return None;
    }
    let (rest, last) = text.split_at(text.len() - 1);
    let next = if last == "9" { 8 } else { last.parse::<u8>().ok()? + 1 };
    Some(format!("{rest}{next}"))
}

/// A file mode with one permission bit changed. Bits of group and others are preferred, because
/// checks test them more often.
pub(super) fn mode_beside(text: &str) -> Option<String> {
    let octal = |byte: u8| (b'0'..=b'7').contains(&byte);
    if !(3..=4).contains(&text.len()) || !text.bytes().all(octal) {
        return None;
    }
    let (rest, last) = text.split_at(text.len() - 1);
    Some(format!("{rest}{}", last.parse::<u8>().ok()? ^ 4))
}

/// The text with one letter or digit replaced by its neighbour. It is the last one that is not part
/// of an escape.
pub(super) fn word_beside(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let escaped = |at: usize| at > 0 && matches!(bytes[at - 1], b'\\' | b'%' | b'$' | b'{');
    let at = (0..bytes.len()).rev().find(|at| bytes[*at].is_ascii_alphanumeric() && !escaped(*at))?;
    let other = match bytes[at] {
        b'z' | b'Z' | b'9' => bytes[at] - 1,
        byte => byte + 1,
    };
    Some(format!("{}{}{}", text.get(..at)?, char::from(other), text.get(at + 1..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers() {
        for (text, by, expect) in [
            ("3", 1, Some("4")),
            ("0", -1, Some("-1")),
            ("+2", -1, Some("+1")),
            ("+0", -1, None),
            ("-1", 1, Some("0")),
            ("0640", 1, None),
            ("3a", 1, None),
            ("", 1, None),
            ("99999999999999999999", 1, None),
        ] {
            assert_eq!(integer_plus(text, by).as_deref(), expect, "{text} {by}");
        }
    }

    #[test]
    fn other_values() {
        for (text, expect) in [("0.5", Some("0.6")), ("1.9", Some("1.8")), ("1", None), ("1.2.3", None)] {
            assert_eq!(decimal_beside(text).as_deref(), expect, "{text}");
        }
        for (text, expect) in [("0640", Some("0644")), ("755", Some("751")), ("0", None), ("8888", None)] {
            assert_eq!(mode_beside(text).as_deref(), expect, "{text}");
        }
        for (text, expect) in [
            ("draft", Some("drafu")),
            ("a z.", Some("a y.")),
            ("%s\\n", None),
            ("x=%s\\n", Some("y=%s\\n")),
            ("größe", Some("größf")),
            ("--", None),
        ] {
            assert_eq!(word_beside(text).as_deref(), expect, "{text}");
        }
    }
}
