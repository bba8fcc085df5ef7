//! Each protocol keeps everything that it has a place for.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::content::{Arguments, ContentPart, parts};
use super::{messages, responses};
use crate::llm::{ChatMessage, ChatRole, Image, ToolCall};

fn text() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), "[a-zé\n\"\\\\]{1,12}"]
}

fn images(content: &str, places: &[prop::sample::Index]) -> Vec<Image> {
    let bounds: Vec<usize> = content.char_indices().map(|(at, _)| at).chain([content.len()]).collect();
    let mut ats: Vec<usize> = places.iter().map(|place| *place.get(&bounds)).collect();
    ats.sort_unstable();
    let url = |number| match number % 2 {
        0 => format!("data:image/png;base64,{number}aGk="),
        _ => format!("https://images.example/{number}"),
    };
    ats.into_iter().enumerate().map(|(number, at)| Image { at, url: url(number) }).collect()
}

fn with_images(role: ChatRole) -> impl Strategy<Value = ChatMessage> {
    (text(), prop::collection::vec(any::<prop::sample::Index>(), 0..3)).prop_map(move |(content, places)| {
        ChatMessage { images: images(&content, &places), ..ChatMessage::text(role, content) }
    })
}

fn arguments() -> impl Strategy<Value = String> {
    prop::collection::btree_map("[a-z]{1,4}", "[a-z \"]{0,6}", 0..3).prop_map(|map| json!(map).to_string())
}

/// A reply with results of its calls, and a user's message.
fn round() -> impl Strategy<Value = Vec<ChatMessage>> {
    let thoughts = prop::option::of(("[a-z]{1,8}", "[A-Z]{4}"));
    let results = prop::collection::vec((arguments(), with_images(ChatRole::Tool), any::<bool>()), 0..3);
    (text(), thoughts, results, with_images(ChatRole::User)).prop_map(|(said, thoughts, results, user)| {
        let (reasoning, signature) = thoughts.unzip();
        let call = |index: usize, arguments: &String| ToolCall {
            id: format!("c{index}"),
            name: "run".into(),
            arguments: arguments.clone(),
        };
        let calls = results.iter().enumerate().map(|(index, (arguments, ..))| call(index, arguments));
        let tool_calls = calls.collect();
        let reply = ChatMessage { reasoning, signature, tool_calls, ..ChatMessage::assistant(said) };
        let results = results.into_iter().enumerate().map(|(index, (_, message, tool_failed))| ChatMessage {
            tool_call_id: Some(format!("c{index}")),
            tool_failed,
            ..message
        });
        [reply].into_iter().chain(results).chain([user]).collect()
    })
}

/// A conversation, also with a system prompt in the middle.
fn conversation() -> impl Strategy<Value = Vec<ChatMessage>> {
    let system = || text().prop_map(ChatMessage::system);
    let round = (round(), prop::option::of(system()));
    let rounds = prop::collection::vec(round, 0..3);
    (system(), with_images(ChatRole::User), rounds).prop_map(|(system, user, rounds)| {
        let rest = rounds.into_iter().flat_map(|(round, system)| round.into_iter().chain(system));
        [system, user].into_iter().chain(rest).collect()
    })
}

/// Some protocols cannot say that a call failed.
fn without_failures(conversation: &[ChatMessage]) -> Vec<ChatMessage> {
    let all = conversation.iter().cloned();
    all.map(|message| ChatMessage { tool_failed: false, ..message }).collect()
}

fn read_messages(body: &Value) -> Result<Vec<ChatMessage>, String> {
    let text = body.to_string();
    let read: Vec<messages::Message<'_>> = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    messages::read_messages(read)
}

fn read_items(body: &Value) -> Result<Vec<ChatMessage>, String> {
    let text = body.to_string();
    let read: Vec<responses::Item> = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    responses::read_items(read, &|_, name| name.to_owned())
}

proptest! {
    #[test]
    fn messages_keep_a_conversation(conversation in conversation()) {
        let (system, rest) = messages::write_messages(&conversation);
        let mut read = vec![ChatMessage::system(system.unwrap())];
        read.extend(read_messages(&json!(rest)).unwrap());
        prop_assert_eq!(read, conversation);
    }

    #[test]
    fn responses_keep_a_conversation(conversation in conversation()) {
        let items = responses::write_items(&conversation);
        prop_assert_eq!(read_items(&json!(items)).unwrap(), without_failures(&conversation));
    }

    #[test]
    fn content_keeps_its_order(message in with_images(ChatRole::User)) {
        let mut text = String::new();
        let mut urls = Vec::new();
        for part in parts(&message) {
            match part {
                ContentPart::Text(part) => text += part,
                ContentPart::Image(url) => urls.push(Image { at: text.len(), url: url.to_owned() }),
            }
        }
        prop_assert_eq!((text, urls), (message.content, message.images));
    }
}

#[test]
fn arguments_are_objects_with_the_keys_in_their_order() {
    let check = |arguments: &str, expect: &str| {
        assert_eq!(serde_json::to_string(&Arguments(arguments)).unwrap(), expect, "{arguments}");
        assert_eq!(Arguments(arguments).text(), expect, "{arguments}");
    };
    check(r#" {"z": 1.0, "a": [2]} "#, r#"{"z": 1.0, "a": [2]}"#);
    check("", "{}");
    check(r#"{"z":"#, "{}");
    check("[1]", "{}");
    check(&"[".repeat(10_000), "{}");
}

/// Reasoning in several blocks goes back to its endpoint unchanged.
#[test]
fn several_blocks_of_reasoning_are_kept() {
    let content = json!([
        { "type": "thinking", "thinking": "one", "signature": "S1" },
        { "type": "redacted_thinking", "data": "D" },
        { "type": "thinking", "thinking": "two", "signature": "S2" },
        { "type": "text", "text": "said" },
    ]);
    let body = json!([{ "role": "assistant", "content": content }]);
    let read = read_messages(&body).unwrap();
    assert_eq!(read[0].reasoning.as_deref(), Some("one\n\ntwo"));
    assert_eq!(json!(messages::write_messages(&read).1), body);
    let items = json!([
        { "type": "reasoning", "summary": [{ "type": "summary_text", "text": "one" }], "encrypted_content": "E1" },
        { "type": "reasoning", "summary": [], "encrypted_content": "E2" },
        { "type": "message", "role": "assistant",
          "content": [{ "type": "output_text", "text": "said", "annotations": [] }] },
    ]);
    let read = read_items(&items).unwrap();
    assert_eq!(read[0].reasoning.as_deref(), Some("one"));
    assert_eq!(json!(responses::write_items(&read)), items);
}

#[test]
fn what_cannot_be_kept_is_an_error() {
    let check = |content: Value, says: &str| {
        let error = read_messages(&json!([{ "role": "user", "content": content }])).unwrap_err();
        assert!(error.contains(says), "{error}");
    };
    check(json!([{ "type": "server_tool_use" }]), "`server_tool_use`");
    check(json!([{ "type": "text" }]), "no `text`");
    check(json!([{ "type": "tool_result", "content": "x" }]), "no `tool_use_id`");
    check(json!([{ "type": "document", "source": { "type": "base64", "data": "x" } }]), "documents");
    check(json!(3), "neither text nor a list");
    let check = |item: Value, says: &str| {
        let error = read_items(&json!([item])).unwrap_err();
        assert!(error.contains(says), "{error}");
    };
    check(json!({ "type": "item_reference", "id": "x" }), "`item_reference`");
    check(json!({ "type": "message", "role": "critic", "content": "x" }), "`critic`");
    check(json!({ "type": "function_call", "name": "x", "call_id": "y" }), "no `arguments`");
    check(json!({ "role": "user", "content": [{ "type": "input_file" }] }), "`input_file`");
}
