use std::fmt;

use proptest::prelude::*;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::*;
use crate::export::pairs::pairs;
use crate::export::{fixture, sft, shapes};
use crate::model::{Shown, ToolCall, Turn, TurnKind};

/// JSON whose keys keep their order.
#[derive(Clone, Debug, PartialEq)]
enum Ordered {
    Leaf(Value),
    List(Vec<Ordered>),
    Object(Vec<(String, Ordered)>),
}

impl<'de> Deserialize<'de> for Ordered {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Ordered;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("JSON")
            }
            fn visit_unit<E>(self) -> Result<Ordered, E> {
                Ok(Ordered::Leaf(Value::Null))
            }
            fn visit_bool<E>(self, leaf: bool) -> Result<Ordered, E> {
                Ok(Ordered::Leaf(leaf.into()))
            }
            fn visit_i64<E>(self, leaf: i64) -> Result<Ordered, E> {
                Ok(Ordered::Leaf(leaf.into()))
            }
            fn visit_u64<E>(self, leaf: u64) -> Result<Ordered, E> {
                Ok(Ordered::Leaf(leaf.into()))
            }
            fn visit_f64<E>(self, leaf: f64) -> Result<Ordered, E> {
                Ok(Ordered::Leaf(leaf.into()))
            }
            fn visit_str<E>(self, leaf: &str) -> Result<Ordered, E> {
                Ok(Ordered::Leaf(leaf.into()))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Ordered, A::Error> {
                let mut list = Vec::new();
                while let Some(item) = items.next_element()? {
                    list.push(item);
                }
                Ok(Ordered::List(list))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Ordered, A::Error> {
                let mut object = Vec::new();
                while let Some(entry) = entries.next_entry()? {
                    object.push(entry);
                }
                Ok(Ordered::Object(object))
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

impl Ordered {
    /// JSON text with `gap` between its parts.
    fn text(&self, gap: &str) -> String {
        match self {
            Self::Leaf(leaf) => leaf.to_string(),
            Self::List(list) => {
                let items: Vec<_> = list.iter().map(|item| item.text(gap)).collect();
                format!("[{gap}{}{gap}]", items.join(&format!("{gap},{gap}")))
            }
            Self::Object(object) => {
                let entries = object
                    .iter()
                    .map(|(key, item)| format!("{}{gap}:{gap}{}", Value::from(key.as_str()), item.text(gap)));
                format!("{{{gap}{}{gap}}}", entries.collect::<Vec<_>>().join(&format!("{gap},{gap}")))
            }
        }
    }
}

fn ordered() -> impl Strategy<Value = Ordered> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e6_f64..1e6).prop_map(Value::from),
        ".*".prop_map(Value::from),
    ];
    leaf.prop_map(Ordered::Leaf).prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Ordered::List),
            proptest::collection::vec((".{0,9}", inner), 0..4).prop_map(Ordered::Object),
        ]
    })
}

fn object() -> impl Strategy<Value = Ordered> {
    proptest::collection::vec((".{0,9}", ordered()), 0..4).prop_map(Ordered::Object)
}

fn row_of(rollout: &Rollout) -> Row {
    let [row] = Row::all(rollout, FailedTurns::Mask).unwrap().try_into().unwrap();
    row
}

fn shape(name: &str) -> Rollout {
    shapes::shapes().into_iter().find(|(shape, _)| *shape == name).unwrap().1
}

#[test]
fn a_row() {
    let row = row_of(&shape("calls"));
    let text = format!(
        "{}\n\n{}\n\nn_context {}\ntrain {:?}",
        row.messages.join("\n"),
        row.tools.unwrap().join("\n"),
        row.n_context,
        row.train
    );
    insta::assert_snapshot!(text);
}

/// Arguments, name, what stands in the row, and whether the message is trained on if failed turns
/// are masked, and if they are not.
#[test]
fn calls_stand_as_the_model_was_sent_them_back() {
    let check = |arguments: &str, name: &str, expect: &str, train: [bool; 2]| {
        let mut rollout = fixture::calling(fixture::rollout("games", 0, 0, 2, 8));
        let call = &mut rollout.record.turns[0].tool_calls[0];
        arguments.clone_into(&mut call.arguments);
        name.clone_into(&mut call.name);
        for (failed_turns, train) in [FailedTurns::Mask, FailedTurns::All].into_iter().zip(train) {
            let [row] = Row::all(&rollout, failed_turns).unwrap().try_into().unwrap();
            let said = &row.messages[row.n_context];
            let call =
                format!(r#""tool_calls": [{{"id": "call_0_0", "type": "function", "function": {expect}}}]"#);
            assert!(said.contains(&call), "{said}");
            assert!(said.ends_with(&format!(r#""train": {train}}}"#)), "{said}");
            assert_eq!(row.train[0], train, "{arguments} {name} {failed_turns:?}");
        }
    };
    let both = [true; 2];
    check(r#"{"z":1,"a":2}"#, "bash", r#"{"name": "bash", "arguments": {"z": 1, "a": 2}}"#, both);
    check("{}", "bash", r#"{"name": "bash", "arguments": {}}"#, both);
    check("{\"command\": \"ls", "bash", r#"{"name": "bash", "arguments": {}}"#, [false; 2]);
    check("", "bash", r#"{"name": "bash", "arguments": {}}"#, [false; 2]);
    check(r#"["ls"]"#, "bash", r#"{"name": "bash", "arguments": {}}"#, [false; 2]);
    check("{}", "run a command", r#"{"name": "run_a_command", "arguments": {}}"#, [false; 2]);
    // Another violation of the protocol stands as the model wrote it.
    let mut rollout = fixture::calling(fixture::rollout("games", 0, 0, 2, 8));
    rollout.record.turns[0].kind = TurnKind::Malformed;
    assert!(!row_of(&rollout).train[0]);
    assert!(Row::all(&rollout, FailedTurns::All).unwrap()[0].train[0]);
}

#[test]
fn a_rollout_is_in_one_of_both_configs() {
    let text = fixture::rollout("games", 0, 0, 3, 8);
    let calling = fixture::calling(fixture::rollout("games", 0, 1, 3, 8));
    let check = |rollouts: &[&Rollout], expect: (usize, usize)| {
        let rollouts: Vec<Rollout> = rollouts.iter().copied().cloned().collect();
        let options = ExportOptions::default();
        let texts = sft::Row::of_task(&rollouts, &options).unwrap().len();
        let tools = Row::of_task(&rollouts, &options).unwrap().len();
        assert_eq!((texts, tools), expect);
    };
    check(&[&text], (1, 0));
    check(&[&calling], (0, 1));
    // The same commands as function calls are no duplicate.
    let same = fixture::calling(text.clone());
    check(&[&text, &calling, &same], (1, 2));
    check(&[&calling, &calling], (0, 1));
    let failed = fixture::calling(fixture::rollout("games", 0, 1, 3, 7));
    check(&[&text, &failed], (1, 0));
}

/// Each part begins with its own context. Its messages are not joined, and have flags.
#[test]
fn parts_between_summaries() {
    let mut rollout = shape("summarised-terminus");
    rollout.record.tools = shape("calls").record.tools;
    let rows = Row::all(&rollout, FailedTurns::Mask).unwrap();
    let found: Vec<_> =
        rows.iter().map(|row| (roles(row), row.n_context, row.rollout.segment, row.train.len())).collect();
    assert_eq!(found, [("uaua".to_owned(), 1, 0, 2), ("uuauaua".to_owned(), 4, 1, 2)]);
    assert!(rows[1].messages[2].ends_with(r#""train": false}"#), "{}", rows[1].messages[2]);
}

/// Rows of the agent's threads: whose they are, number of the part, roles, and functions.
#[test]
fn sub_agents_have_rows_of_their_own() {
    let rollout = shape("sub-agents");
    let rows = Row::all(&rollout, FailedTurns::Mask).unwrap();
    let found: Vec<_> = rows
        .iter()
        .map(|row| {
            let of = &row.rollout;
            (of.thread, of.segment, of.n_segments, of.n_turns, roles(row), row.tools.as_ref().map(Vec::len))
        })
        .collect();
    let row =
        |thread, segment, turns, roles: &str, tools| (thread, segment, 4, turns, roles.to_owned(), tools);
    assert_eq!(
        found,
        [
            row("main", 0, 2, "suattsa", Some(1)),
            row("subagent", 1, 2, "suata", Some(1)),
            row("subagent", 2, 2, "suata", Some(1)),
            row("subagent", 3, 1, "sua", None),
        ]
    );
    assert!(rows[1].messages[2].contains(r#"{"timeout": 5, "command": "ls | wc -l"}"#));
    // Titles and discarded replies are no rows. A rollout whose sub-agent says nothing has none.
    let all: String = rows.iter().flat_map(|row| row.messages.clone()).collect();
    assert!(!all.contains("Counting files") && !all.contains("Discarded."));
    let options = ExportOptions::default();
    let mut silent = rollout;
    silent.record.threads[3].turns[0].content.clear();
    assert!(Row::of_task(&[silent], &options).unwrap().is_empty());
}

/// An agent program may send two messages in a row. Its rollout has a row, and no pair.
#[test]
fn roles_need_not_alternate() {
    let mut rollout = shape("sub-agents");
    rollout.shown[0].clear();
    let rows = Row::all(&rollout, FailedTurns::Mask).unwrap();
    assert_eq!(roles(&rows[0]), "suaa");
    let mut other = rollout.clone();
    other.id = "other".to_owned();
    other.record.turns[0].tool_calls[0].arguments = "{}".to_owned();
    other.rewards = fixture::rollout("games", 0, 0, 1, 2).rewards;
    assert!(pairs(&[rollout, other], &ExportOptions::default().pairs).unwrap().is_empty());
}

fn roles(row: &Row) -> String {
    let roles = row.messages.iter().map(|message| {
        let message: Value = serde_json::from_str(message).unwrap();
        message["role"].as_str().unwrap()[..1].to_owned()
    });
    roles.collect()
}

proptest! {
    /// Ids, order and arguments of calls and results are those of the rollout.
    #[test]
    fn calls_of_any_rollout(
        turns in proptest::collection::vec(
            (".*", proptest::option::of("\\PC+"), proptest::collection::vec((object(), "[ \n]?"), 0..4), any::<bool>()),
            1..5,
        ),
    ) {
        let mut rollout = fixture::rollout("games", 0, 0, 0, 8);
        rollout.record.tools = shape("calls").record.tools;
        rollout.record.turns.clear();
        rollout.shown.clear();
        for (number, (content, reasoning, calls, reversed)) in turns.iter().enumerate() {
            let tool_calls: Vec<ToolCall> = calls.iter().enumerate().map(|(at, (arguments, gap))| ToolCall {
                id: format!("call {number} {at}"),
                name: "bash".to_owned(),
                arguments: arguments.text(gap),
            }).collect();
            let mut shown: Vec<Shown> = tool_calls
                .iter()
                .map(|call| Shown::result(&call.id, format!("of {}", call.id)))
                .collect();
            if *reversed {
                shown.reverse();
            }
            if shown.is_empty() {
                shown.push(Shown::text("Go on."));
            }
            // A message is never empty.
            let content = if calls.is_empty() { format!("{content}.") } else { content.clone() };
            rollout.record.turns.push(Turn { content, reasoning: reasoning.clone(), tool_calls, ..Turn::default() });
            rollout.shown.push(shown);
        }
        let row = row_of(&rollout);
        let mut messages = row.messages[row.n_context..].iter().map(|message| {
            serde_json::from_str::<Value>(message).map(|value| (message, value)).unwrap()
        });
        let last = turns.len() - 1;
        for (number, ((turn, shown), (.., calls, _))) in
            rollout.record.turns.iter().zip(&rollout.shown).zip(&turns).enumerate()
        {
            let (text, said) = messages.next().unwrap();
            prop_assert_eq!(&said["role"], "assistant");
            prop_assert_eq!(said["content"].as_str().unwrap(), &turn.content);
            let reasoning = turn.reasoning.as_deref().filter(|text| !text.trim().is_empty());
            prop_assert_eq!(said.get("reasoning_content").and_then(Value::as_str), reasoning);
            prop_assert_eq!(said.get("tool_calls").is_some(), !calls.is_empty());
            for (at, (arguments, _)) in calls.iter().enumerate() {
                let call = &said["tool_calls"][at];
                prop_assert_eq!(call["id"].as_str().unwrap(), &turn.tool_calls[at].id);
                prop_assert_eq!(&call["type"], "function");
                // The order of keys shows only in the text.
                let Ordered::Object(message) = serde_json::from_str(text).unwrap() else { panic!() };
                let find = |object: &[(String, Ordered)], key: &str| {
                    object.iter().find(|(name, _)| name == key).unwrap().1.clone()
                };
                let Ordered::List(found) = find(&message, "tool_calls") else { panic!() };
                let Ordered::Object(found) = &found[at] else { panic!() };
                let Ordered::Object(function) = find(found, "function") else { panic!() };
                // Read in the same way: the last bit of a number may change when it is read.
                let arguments: Ordered = serde_json::from_str(&arguments.text("")).unwrap();
                prop_assert_eq!(find(&function, "arguments"), arguments);
            }
            for shown in shown.iter().take(if number == last { 0 } else { shown.len() }) {
                let (_, result) = messages.next().unwrap();
                prop_assert_eq!(result["content"].as_str().unwrap(), &shown.content);
                prop_assert_eq!(result.get("tool_call_id").and_then(Value::as_str), shown.tool_call.as_deref());
                let role = if shown.tool_call.is_some() { "tool" } else { "user" };
                prop_assert_eq!(result["role"].as_str().unwrap(), role);
            }
        }
        prop_assert!(messages.next().is_none());
        prop_assert!(row.train.iter().all(|train| *train));
    }
}
