//! Messages in canonical form, so that a message can be recognised after an agent has sent it back.
//!
//! Agents change what does not matter: they parse the arguments of a call and print them anew, give
//! calls other ids, trim texts, leave reasoning out, or report results in the order in which they
//! came. Equal canonical forms are the same message.

use std::collections::HashMap;
use std::collections::VecDeque;

use serde_json::{Map, Value};

use crate::llm::{ChatMessage, ChatRole, Tool, ToolCall};

/// A text that Claude Code sends in place of an empty one, which the API of its vendor refuses.
const NO_CONTENT: &str = "(no content)";

/// One message, or the results of one message's calls, in canonical form.
#[derive(Clone, Debug)]
pub(super) struct Unit {
    pub(super) kind: UnitKind,
    pub(super) hash: blake3::Hash,
    /// Hash of the reasoning, if the message has it. Many agents leave it out.
    pub(super) reasoning: Option<blake3::Hash>,
    /// Number of messages up to here, the unit included.
    pub(super) end: usize,
}

/// What a unit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnitKind {
    Given,
    Assistant,
    Results,
}

impl Unit {
    /// Whether both are the same message. Absent reasoning equals any.
    pub(super) fn is(&self, other: &Self) -> bool {
        let reasons_alike = match (self.reasoning, other.reasoning) {
            (Some(one), Some(other)) => one == other,
            (None, _) | (_, None) => true,
        };
        self.hash == other.hash && reasons_alike
    }
}

/// Number of units with which both lists begin.
pub(super) fn common(one: &[Unit], other: &[Unit]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one.is(other)).count()
}

/// Messages as units. Results that follow each other are one unit, so that their order does not
/// matter.
pub(super) fn units(messages: &[ChatMessage]) -> Vec<Unit> {
    let mut units = Vec::with_capacity(messages.len());
    let mut places = Places::default();
    let mut at = 0;
    while let Some(message) = messages.get(at) {
        let unit = match message.role {
            ChatRole::Assistant => {
                let (unit, called) = assistant(message);
                places = called;
                Unit { end: at + 1, ..unit }
            }
            ChatRole::Tool => {
                let results = messages[at..].iter().take_while(|message| message.role == ChatRole::Tool);
                let mut results: Vec<_> = results.map(|result| places.answered(result)).collect();
                let end = at + results.len();
                results.sort_unstable();
                let fields = results.iter().flat_map(|(place, text)| [place.as_str(), text]);
                let shown = messages.get(at..end).unwrap_or_default();
                let mut images: Vec<_> = shown.iter().flat_map(|result| &result.images).collect();
                images.sort_unstable_by_key(|image| &image.url);
                let fields = fields.chain(images.iter().map(|image| image.url.as_str()));
                Unit { kind: UnitKind::Results, hash: hashed("results", fields), reasoning: None, end }
            }
            ChatRole::System | ChatRole::User => {
                let role = if message.role == ChatRole::System { "system" } else { "user" };
                let images = message.images.iter().map(|image| image.url.as_str());
                let hash = hashed(role, [message.content.trim()].into_iter().chain(images));
                Unit { kind: UnitKind::Given, hash, reasoning: None, end: at + 1 }
            }
        };
        at = unit.end;
        units.push(unit);
    }
    units
}

/// A reply as a unit. Its `end` is 1.
pub(super) fn reply(message: &ChatMessage) -> Unit {
    assistant(message).0
}

/// For each id of a call in a message that was sent back, the ids of these calls in the message
/// that the model wrote.
pub(super) fn own_ids(sent: &ChatMessage, wrote: &ChatMessage) -> HashMap<String, VecDeque<String>> {
    let mut ids: HashMap<String, VecDeque<String>> = HashMap::new();
    for ((sent, _), (wrote, _)) in sorted_calls(sent).into_iter().zip(sorted_calls(wrote)) {
        ids.entry(sent.id.clone()).or_default().push_back(wrote.id.clone());
    }
    ids
}

/// The calls of a message with their canonical arguments, in canonical order.
fn sorted_calls(message: &ChatMessage) -> Vec<(&ToolCall, String)> {
    let calls = message.tool_calls.iter();
    let mut calls: Vec<_> = calls.map(|call| (call, canonical_arguments(&call.arguments))).collect();
    calls.sort_by(|(one, arguments), (other, others)| (&one.name, arguments).cmp(&(&other.name, others)));
    calls
}

fn assistant(message: &ChatMessage) -> (Unit, Places) {
    let calls = sorted_calls(message);
    let mut places = Places::default();
    for (place, (call, _)) in calls.iter().enumerate() {
        places.of_id.entry(call.id.clone()).or_default().push_back(place);
    }
    let text = message.content.trim();
    let text = if text == NO_CONTENT { "" } else { text };
    let fields = calls.iter().flat_map(|(call, arguments)| [call.name.as_str(), arguments]);
    let hash = hashed("assistant", [text].into_iter().chain(fields));
    let reasoning = message.reasoning.as_deref().map(str::trim).filter(|reasoning| !reasoning.is_empty());
    let reasoning = reasoning.map(|reasoning| hashed("reasoning", [reasoning]));
    (Unit { kind: UnitKind::Assistant, hash, reasoning, end: 1 }, places)
}

/// The calls of the last assistant message, by id. A model may give two calls one id.
#[derive(Debug, Default)]
struct Places {
    of_id: HashMap<String, VecDeque<usize>>,
    /// Number of results so far whose call is unknown.
    unknown: usize,
}

impl Places {
    /// The place of the call that a message answers, and the result.
    fn answered<'m>(&mut self, result: &'m ChatMessage) -> (String, &'m str) {
        let id = result.tool_call_id.as_deref().unwrap_or_default();
        let place = self.of_id.get_mut(id).and_then(VecDeque::pop_front);
        let place = place.map_or_else(
            || {
                self.unknown += 1;
                format!("unknown {}", self.unknown)
            },
            |place| place.to_string(),
        );
        (place, result.content.trim())
    }
}

/// Tool definitions in canonical form. Their order does not matter.
pub(super) fn tools_hash(tools: &[Tool]) -> blake3::Hash {
    let mut texts: Vec<[String; 3]> = tools
        .iter()
        .map(|tool| [tool.name.clone(), tool.description.trim().to_owned(), canonical(&tool.parameters)])
        .collect();
    texts.sort_unstable();
    hashed("tools", texts.iter().flatten().map(String::as_str))
}

/// Arguments of a call in canonical form. Malformed ones are as an empty object, which endpoints
/// and agents send back in their place.
fn canonical_arguments(arguments: &str) -> String {
    let parsed: Map<String, Value> = serde_json::from_str(arguments).unwrap_or_default();
    canonical(&Value::Object(parsed))
}

fn canonical(value: &Value) -> String {
    let mut out = String::new();
    write(value, &mut out);
    out
}

/// Writes JSON with sorted keys, without white space. Numbers are those of JavaScript, whose
/// clients print `1.0` as `1`.
fn write(value: &Value, out: &mut String) {
    match value {
        Value::Null | Value::Bool(_) | Value::String(_) => out.push_str(&value.to_string()),
        Value::Number(number) => match number.as_f64() {
            // `-0` is `0` there.
            Some(number) => out.push_str(&format!("{}", number + 0.0)),
            None => out.push_str(&number.to_string()),
        },
        Value::Array(items) => {
            out.push('[');
            for item in items {
                write(item, out);
                out.push(',');
            }
            out.push(']');
        }
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            out.push('{');
            for (key, value) in entries {
                out.push_str(&Value::String(key.clone()).to_string());
                out.push(':');
                write(value, out);
                out.push(',');
            }
            out.push('}');
        }
    }
}

/// Hash over fields, each with its length, so that no two lists of fields are one text.
fn hashed<'f>(kind: &'static str, fields: impl IntoIterator<Item = &'f str>) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    for field in [kind].into_iter().chain(fields) {
        hasher.update(&(field.len() as u64).to_le_bytes());
        hasher.update(field.as_bytes());
    }
    hasher.finalize()
}

/// A hash over a whole request, in canonical form.
pub(super) fn request_hash(units: &[Unit], tools: blake3::Hash) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(tools.as_bytes());
    for unit in units {
        hasher.update(unit.hash.as_bytes());
    }
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calling(text: &str, reasoning: Option<&str>, calls: &[(&str, &str, &str)]) -> ChatMessage {
        let tool_calls = calls.iter().map(|(id, name, arguments)| ToolCall {
            id: (*id).to_owned(),
            name: (*name).to_owned(),
            arguments: (*arguments).to_owned(),
        });
        ChatMessage {
            reasoning: reasoning.map(str::to_owned),
            tool_calls: tool_calls.collect(),
            ..ChatMessage::assistant(text)
        }
    }

    #[test]
    fn messages_that_are_sent_back() {
        let check = |one: ChatMessage, other: ChatMessage, expect: bool| {
            assert_eq!(reply(&one).is(&reply(&other)), expect, "{one:?} {other:?}");
            assert_eq!(reply(&other).is(&reply(&one)), expect, "{other:?} {one:?}");
        };
        let call = |arguments: &str| calling("", None, &[("c1", "sh", arguments)]);
        check(call(r#"{"command": "ls", "n": 1.0}"#), call(r#"{"n":1,"command":"ls"}"#), true);
        check(call(r#"{"n": 12345678901234567890}"#), call(r#"{"n":12345678901234567000}"#), true);
        check(call(r#"{"n": -0}"#), call(r#"{"n":0}"#), true);
        check(call(r#"{"a":"\u00e9\/"}"#), call(r#"{"a":"é/"}"#), true);
        check(call(r#"{"command": "ls"}"#), call(r#"{"command":"ls "}"#), false);
        check(call(r#"{"command": "ls"}"#), call(r#"{"command":"rm"}"#), false);
        check(call(r#"{"a":[1,2]}"#), call(r#"{"a":[2,1]}"#), false);
        check(call(r#"{"command": "ls"#), call("{}"), true);
        check(call(r#""ls""#), call("{}"), true);
        check(call("{}"), call(r#"{"command":"ls"}"#), false);
        check(calling("a", None, &[("c1", "sh", "{}")]), calling(" a\n", None, &[("x", "sh", "{}")]), true);
        check(calling("a", None, &[]), calling("b", None, &[]), false);
        check(calling("", None, &[]), calling("(no content)", None, &[]), true);
        check(calling("a", Some("why"), &[]), calling("a", None, &[]), true);
        check(calling("a", Some("why"), &[]), calling("a", Some(" why\n"), &[]), true);
        check(calling("a", Some(""), &[]), calling("a", Some("why"), &[]), true);
        check(calling("a", Some("why"), &[]), calling("a", Some("because"), &[]), false);
        let both = [("1", "sh", r#"{"c":1}"#), ("2", "sh", r#"{"c":2}"#)];
        let turned = [("2", "sh", r#"{"c":2}"#), ("1", "sh", r#"{"c":1}"#)];
        check(calling("", None, &both), calling("", None, &turned), true);
        check(calling("", None, &both), calling("", None, &both[..1]), false);
    }

    #[test]
    fn results_belong_to_calls_and_have_no_order() {
        let history = |ids: [&str; 2], results: &[(&str, &str)]| {
            let called = calling("", None, &[(ids[0], "sh", r#"{"c":1}"#), (ids[1], "sh", r#"{"c":2}"#)]);
            let results = results.iter().map(|(id, text)| ChatMessage::tool(*id, *text));
            let all: Vec<_> = [ChatMessage::user("Do it."), called].into_iter().chain(results).collect();
            units(&all)
        };
        let one = history(["a", "b"], &[("a", "1"), ("b", "2")]);
        assert_eq!(one.iter().map(|unit| unit.end).collect::<Vec<_>>(), [1, 2, 4]);
        let check = |ids: [&str; 2], results: &[(&str, &str)], expect: usize| {
            assert_eq!(common(&one, &history(ids, results)), expect, "{ids:?} {results:?}");
        };
        check(["a", "b"], &[("b", "2"), ("a", "1")], 3);
        check(["x", "y"], &[("y", "2"), ("x", "1 ")], 3);
        check(["a", "b"], &[("a", "2"), ("b", "1")], 2);
        check(["a", "b"], &[("a", "1")], 2);
        check(["a", "b"], &[("a", "1"), ("nobody", "2")], 2);
        // A model can give both calls the same id.
        let same = history(["a", "a"], &[("a", "1"), ("a", "2")]);
        assert_eq!(common(&one, &same), 3);
    }
}
