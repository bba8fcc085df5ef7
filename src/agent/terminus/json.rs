//! JSON replies, as Harbor's `terminus_json_plain_parser.py` reads them.

use super::Command;
use super::decode::{self, Value};
use super::parsed::{Draft, Parsed};
use super::python::{is_space, repr, strip};

const REQUIRED: [&str; 3] = ["analysis", "plan", "commands"];
/// An error quotes content of fewer characters whole, and of longer content only the start.
const QUOTED_WHOLE: usize = 200;
const QUOTED_START: usize = 100;

/// Parses a reply. If that fails, tries Harbor's automatic corrections.
pub(super) fn parse(response: &str) -> Parsed {
    let parsed = parse_as_is(response);
    let Some(error) = &parsed.error else { return parsed };
    let fixes: [(&str, Option<String>); 2] = [
        ("Fixed incomplete JSON by adding missing closing brace", close_braces(response, error)),
        ("Extracted JSON from mixed content", extract_object(response).map(str::to_owned)),
    ];
    for (name, fixed) in fixes {
        if let Some(fixed) = fixed {
            let mended = parse_as_is(&fixed);
            if mended.error.is_none() {
                return mended.auto_corrected(name);
            }
        }
    }
    parsed
}

fn parse_as_is(response: &str) -> Parsed {
    let mut draft = Draft::default();
    let Some(content) = content(response, &mut draft) else {
        return draft.fail("No valid JSON found in response".to_owned());
    };
    let data = match decode::decode(content) {
        Ok(Value::Dict(data)) => data,
        Ok(_) => return draft.fail("Response must be a JSON object".to_owned()),
        Err(error) => return draft.fail(invalid(content, &error.to_string())),
    };
    let get = |name: &str| data.iter().find(|(key, _)| key == name).map(|(_, value)| value);
    let missing: Vec<&str> = REQUIRED.into_iter().filter(|name| get(name).is_none()).collect();
    if !missing.is_empty() {
        return draft.fail(format!("Missing required fields: {}", missing.join(", ")));
    }
    for name in ["analysis", "plan"] {
        if !matches!(get(name), Some(Value::Str(_))) {
            draft.warn(format!("Field '{name}' should be a string"));
        }
    }
    let Some(Value::List(commands)) = get("commands") else {
        return draft.fail("Field 'commands' must be an array".to_owned());
    };
    check_order(content, &mut draft);
    let task_complete = get("task_complete");
    if !matches!(task_complete, None | Some(Value::Null | Value::Bool(_) | Value::Str(_))) {
        draft.warn("Field 'task_complete' should be a boolean or string".to_owned());
    }
    draft.task_complete = match task_complete {
        None => false,
        Some(Value::Str(word)) => ["true", "1", "yes"].contains(&word.to_lowercase().as_str()),
        Some(value) => value.is_truthy(),
    };
    draft.analysis = get("analysis").map(Value::to_text).unwrap_or_default();
    draft.plan = get("plan").map(Value::to_text).unwrap_or_default();
    match read_commands(commands, &mut draft) {
        Ok(commands) => draft.succeed(commands),
        Err(error) => draft.fail_unless_complete(error),
    }
}

fn invalid(content: &str, error: &str) -> String {
    let quoted = if content.chars().nth(QUOTED_WHOLE - 1).is_none() {
        format!("Content: {}", repr(content))
    } else {
        let start: String = content.chars().take(QUOTED_START).collect();
        format!("Content preview: {}...", repr(&start))
    };
    format!("Invalid JSON: {error} | {quoted}")
}

/// The text from the first brace outside a string to the brace that closes it.
fn content<'a>(response: &'a str, draft: &mut Draft) -> Option<&'a str> {
    let (mut start, mut depth) = (None, 0i64);
    let (mut in_string, mut escaped) = (false, false);
    for (offset, byte) in response.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => in_string = !in_string,
            b'{' if !in_string => {
                if depth == 0 {
                    start = Some(offset);
                }
                depth += 1;
            }
            b'}' if !in_string => {
                depth -= 1;
                if let Some(start) = start.filter(|_| depth == 0) {
                    if !strip(&response[..start]).is_empty() {
                        draft.warn("Extra text detected before JSON object".to_owned());
                    }
                    if !strip(&response[offset + 1..]).is_empty() {
                        draft.warn("Extra text detected after JSON object".to_owned());
                    }
                    return Some(&response[start..=offset]);
                }
            }
            _ => {}
        }
    }
    draft.warn("No valid JSON object found".to_owned());
    None
}

/// Warns if the fields are in the wrong order. As in Harbor, the first `"name":` counts, even
/// inside a string.
fn check_order(content: &str, draft: &mut Draft) {
    let offset = |name: &str| {
        let quoted = format!("\"{name}\"");
        content
            .match_indices(&quoted)
            .find(|(at, _)| content[at + quoted.len()..].trim_start_matches(is_space).starts_with(':'))
            .map(|(at, _)| at)
    };
    let offsets: Vec<_> = REQUIRED.into_iter().filter_map(|name| Some((offset(name)?, name))).collect();
    draft.check_order("Fields", &offsets);
}

fn read_commands(data: &[Value], draft: &mut Draft) -> Result<Vec<Command>, String> {
    let mut commands = Vec::new();
    for (index, value) in data.iter().enumerate() {
        let number = index + 1;
        let Value::Dict(fields) = value else { return Err(format!("Command {number} must be an object")) };
        let get = |name: &str| fields.iter().find(|(key, _)| key == name).map(|(_, value)| value);
        let keystrokes = match get("keystrokes") {
            None => return Err(format!("Command {number} missing required 'keystrokes' field")),
            Some(Value::Str(keystrokes)) => keystrokes.clone(),
            Some(_) => return Err(format!("Command {number} 'keystrokes' must be a string")),
        };
        let duration = match get("duration") {
            None => {
                draft.warn(format!("Command {number}: Missing duration field, using default 1.0"));
                Command::DEFAULT_DURATION
            }
            Some(value) => value.to_number().unwrap_or_else(|| {
                draft.warn(format!("Command {number}: Invalid duration value, using default 1.0"));
                Command::DEFAULT_DURATION
            }),
        };
        // Harbor has a set here, so its order changes from run to run. This is the order of the
        // reply.
        let unknown: Vec<&str> = fields
            .iter()
            .map(|(key, _)| key.as_str())
            .filter(|key| !["keystrokes", "duration"].contains(key))
            .collect();
        if !unknown.is_empty() {
            draft.warn(format!("Command {number}: Unknown fields: {}", unknown.join(", ")));
        }
        if number < data.len() && !keystrokes.is_empty() && !keystrokes.ends_with('\n') {
            draft.warn_of_missing_newline(number);
        }
        commands.push(Command { keystrokes, duration });
    }
    Ok(commands)
}

/// The reply with its missing closing braces added, if they may be the cause of the error.
fn close_braces(response: &str, error: &str) -> Option<String> {
    let reasons = ["Invalid JSON", "Expecting", "Unterminated", "No valid JSON found"];
    let missing = response.matches('{').count().saturating_sub(response.matches('}').count());
    (missing > 0 && reasons.iter().any(|reason| error.contains(reason)))
        .then(|| format!("{response}{}", "}".repeat(missing)))
}

/// The first part of the reply that is valid JSON. Harbor's pattern allows one level of nested
/// objects.
fn extract_object(response: &str) -> Option<&str> {
    let mut rest = response;
    while let Some(start) = rest.find('{') {
        rest = &rest[start..];
        match shallow_object(rest) {
            Some(object) if decode::decode(object).is_ok() => return Some(object),
            Some(object) => rest = &rest[object.len()..],
            None => rest = &rest[1..],
        }
    }
    None
}

/// `{[^{}]*({[^{}]*}[^{}]*)*}` at the start of `text`.
fn shallow_object(text: &str) -> Option<&str> {
    let mut depth = 0;
    for (offset, brace) in text.match_indices(['{', '}']) {
        depth += if brace == "{" { 1 } else { -1 };
        match depth {
            0 => return Some(&text[..=offset]),
            1 | 2 => {}
            _ => return None,
        }
    }
    None
}
