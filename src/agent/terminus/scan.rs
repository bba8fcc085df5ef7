//! Harbor's regular expressions over XML, as plain string searches.

use super::python::{is_space, is_word};

/// Whether `<task_complete>\s*true\s*</task_complete>` matches anywhere, ignoring case.
pub(super) fn is_complete(content: &str) -> bool {
    let lower = content.to_ascii_lowercase();
    lower.match_indices("<task_complete>").any(|(at, open)| {
        let rest = lower[at + open.len()..].trim_start_matches(is_space);
        rest.strip_prefix("true")
            .is_some_and(|rest| rest.trim_start_matches(is_space).starts_with("</task_complete>"))
    })
}

/// Whether `<name\s*/>` matches.
pub(super) fn has_self_closing(content: &str, name: &str) -> bool {
    let open = format!("<{name}");
    content
        .match_indices(&open)
        .any(|(at, open)| content[at + open.len()..].trim_start_matches(is_space).starts_with("/>"))
}

/// Offsets of the matches of `<name(?:\s|>|/>)`.
pub(super) fn opening_tags<'a>(content: &'a str, name: &str) -> impl Iterator<Item = usize> + use<'a> {
    let open = format!("<{name}");
    let mut from = 0;
    std::iter::from_fn(move || {
        while let Some(found) = content[from..].find(&open) {
            let at = from + found;
            from = at + open.len();
            let rest = &content[from..];
            if rest.starts_with(is_space) || rest.starts_with('>') || rest.starts_with("/>") {
                return Some(at);
            }
        }
        None
    })
}

/// Names of the top-level tags. They are found by counting opening and closing tags; quotes mean
/// nothing.
///
/// A tag of blanks alone raises an `IndexError` in Harbor and ends its run. Here its name is empty.
pub(super) fn top_level_tags(content: &str) -> Vec<&str> {
    let (mut found, mut depth, mut rest) = (Vec::new(), 0i64, content);
    while let Some((_, after)) = rest.split_once('<')
        && let Some((tag, after)) = after.split_once('>')
    {
        rest = after;
        if tag.starts_with(['!', '?']) {
            continue;
        }
        if tag.starts_with('/') {
            depth -= 1;
            continue;
        }
        if depth == 0 {
            let name = if tag.contains(' ') {
                tag.split(is_space).find(|word| !word.is_empty()).unwrap_or_default()
            } else {
                tag
            };
            found.push(name.strip_suffix('/').unwrap_or(name));
        }
        if !tag.ends_with('/') {
            depth += 1;
        }
    }
    found
}

/// The value of the first match of `name\s*=\s*["']([^"']*)["']`.
pub(super) fn quoted_value<'a>(attributes: &'a str, name: &str) -> Option<&'a str> {
    attributes.match_indices(name).find_map(|(at, name)| {
        let rest = attributes[at + name.len()..].trim_start_matches(is_space).strip_prefix('=')?;
        let inside = rest.trim_start_matches(is_space).strip_prefix(['"', '\''])?;
        let end = inside.find(['"', '\''])?;
        Some(&inside[..end])
    })
}

/// Names and values of the matches of `(\w+)\s*=\s*([^"'\s>]+)`.
pub(super) fn unquoted(attributes: &str) -> Vec<(&str, &str)> {
    assignments(attributes, |value| {
        let end = value.find(|c| is_space(c) || ['"', '\'', '>'].contains(&c)).unwrap_or(value.len());
        (end > 0).then_some((&value[..end], end))
    })
}

/// Names and values of the matches of `(\w+)\s*=\s*'([^']*)'`.
pub(super) fn single_quoted(attributes: &str) -> Vec<(&str, &str)> {
    assignments(attributes, |value| {
        let inside = value.strip_prefix('\'')?;
        let end = inside.find('\'')?;
        Some((&inside[..end], end + 2))
    })
}

/// Names of the matches of `(\w+)\s*=`.
pub(super) fn attributes_of(attributes: &str) -> impl Iterator<Item = &str> {
    let mut rest = attributes;
    std::iter::from_fn(move || {
        while let Some((name, after)) = next_word(rest) {
            rest = after;
            if let Some(after) = after.trim_start_matches(is_space).strip_prefix('=') {
                rest = after;
                return Some(name);
            }
        }
        None
    })
}

/// All names with a value that `take` accepts. `take` also returns how many bytes it consumed.
fn assignments<'a>(
    attributes: &'a str,
    take: impl Fn(&'a str) -> Option<(&'a str, usize)>,
) -> Vec<(&'a str, &'a str)> {
    let (mut found, mut rest) = (Vec::new(), attributes);
    while let Some((name, after)) = next_word(rest) {
        rest = after;
        if let Some(value) = after.trim_start_matches(is_space).strip_prefix('=') {
            let value = value.trim_start_matches(is_space);
            if let Some((text, used)) = take(value) {
                found.push((name, text));
                rest = &value[used..];
            }
        }
    }
    found
}

/// The next run of word characters, and the text after it.
fn next_word(text: &str) -> Option<(&str, &str)> {
    let text = &text[text.find(is_word)?..];
    Some(text.split_at(text.find(|c| !is_word(c)).unwrap_or(text.len())))
}
