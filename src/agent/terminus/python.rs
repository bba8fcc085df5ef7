//! Python's string operations, where they differ from Rust's and Harbor's texts depend on it.

/// `str.isspace` of a character: Unicode's white space and ASCII's four separators.
pub(super) fn is_space(character: char) -> bool {
    character.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&character)
}

/// `str.strip()`.
pub(super) fn strip(text: &str) -> &str {
    text.trim_matches(is_space)
}

/// `\w`.
pub(super) fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// `repr` of a string.
pub(super) fn repr(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut out = String::from(quote);
    for character in text.chars() {
        let code = u32::from(character);
        match character {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\\' => out.push_str("\\\\"),
            _ if character == quote => out.extend(['\\', quote]),
            _ if is_printable(character) => out.push(character),
            _ if code <= 0xff => out.push_str(&format!("\\x{code:02x}")),
            _ if code <= 0xffff => out.push_str(&format!("\\u{code:04x}")),
            _ => out.push_str(&format!("\\U{code:08x}")),
        }
    }
    out.push(quote);
    out
}

/// `str.isprintable` of a character. After another character, `escape_debug` escapes exactly the
/// unprintable ones.
fn is_printable(character: char) -> bool {
    match character {
        ' '..='~' => true,
        _ if character.is_ascii() => false,
        _ => {
            let text = format!("a{character}");
            text.escape_debug().eq(text.chars())
        }
    }
}

/// `float(text)`, but only with ASCII digits.
pub(super) fn float(text: &str) -> Option<f64> {
    let text = strip(text);
    let bytes = text.as_bytes();
    let separates = |index: usize| {
        let digit =
            |index: Option<usize>| index.and_then(|index| bytes.get(index)).is_some_and(u8::is_ascii_digit);
        digit(index.checked_sub(1)) && digit(Some(index + 1))
    };
    let underscores_valid = (0..bytes.len()).all(|index| bytes[index] != b'_' || separates(index));
    // Rust accepts the same spellings of infinity and NaN.
    underscores_valid.then(|| text.replace('_', "").parse().ok())?
}

/// `template.format(**values)`, for plain names. `{{` and `}}` are braces.
pub(super) fn format(template: &str, values: &[(&str, &str)]) -> String {
    let mut out = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(at) = rest.find(['{', '}']) {
        out.push_str(&rest[..at]);
        let from = &rest[at..];
        let value = values.iter().find(|(name, _)| {
            from.strip_prefix('{')
                .and_then(|from| from.strip_prefix(name))
                .is_some_and(|from| from.starts_with('}'))
        });
        if let Some((name, value)) = value {
            out.push_str(value);
            rest = &from[name.len() + 2..];
        } else {
            out.push_str(&from[..1]);
            let doubled = from.starts_with("{{") || from.starts_with("}}");
            rest = &from[1 + usize::from(doubled)..];
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_look_as_in_python() {
        let check = |text, expected| assert_eq!(repr(text), expected);
        check("a", "'a'");
        check("it's", "\"it's\"");
        check("it's \"so\"", "'it\\'s \"so\"'");
        check("\n\t\r\\\0\u{7f}\u{85}", "'\\n\\t\\r\\\\\\x00\\x7f\\x85'");
        check("é\u{301}漢😀", "'é\u{301}漢😀'");
        check("\u{200b}\u{2028}\u{e000}\u{f0000}", "'\\u200b\\u2028\\ue000\\U000f0000'");
    }

    #[test]
    fn floats_are_pythons() {
        let check = |text, expected| assert_eq!(float(text), expected, "{text:?}");
        check(" 1.5\n", Some(1.5));
        check("1_000", Some(1000.0));
        check("+.5e1", Some(5.0));
        check("5.", Some(5.0));
        check("inf", Some(f64::INFINITY));
        check("-Infinity", Some(f64::NEG_INFINITY));
        assert!(float("NaN").is_some_and(f64::is_nan));
        for wrong in ["", "_1", "1_", "1__0", "1 0", "0x10", "1s", "1,5"] {
            check(wrong, None);
        }
    }

    #[test]
    fn templates_are_filled_as_by_format() {
        let values = [("a", "{b}"), ("b", "2")];
        let check = |template, expected| assert_eq!(format(template, &values), expected, "{template}");
        check("{a}-{b}", "{b}-2");
        check("{{a}}", "{a}");
        check("{{{b}}}", "{2}");
        check("no", "no");
    }
}
