//! Replies in each dialect.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Form, PATHS, asked, smallest, split};
use crate::agent::installed::dialect::{Refusal, RefusalKind};
use crate::llm::{ChatMessage, Finish, Reply, ToolCall, Usage};
use crate::model::Key;

fn call(id: &str, name: &str, arguments: &str) -> ToolCall {
    ToolCall { id: id.into(), name: name.into(), arguments: arguments.into() }
}

pub(super) fn reply_of(message: ChatMessage, finish: Finish) -> Reply {
    Reply {
        key: Key::parse("ab".repeat(32)).unwrap(),
        message,
        finish,
        usage: Some(Usage { prompt_tokens: 7, completion_tokens: 3 }),
        prompt_token_ids: None,
        completion_token_ids: None,
        logprobs: None,
        model: "m".into(),
        committed: false,
        attempts: 1,
        latency: None,
        served: std::time::Duration::ZERO,
        drift: None,
    }
}

/// A reply with everything.
pub(super) fn reply() -> Reply {
    let calls = vec![call("c1", "sh", "{\"z\": 1,\n\"a\": 2}"), call("c2", "sh", "{\"cut")];
    let message =
        ChatMessage { reasoning: Some("Hm.".into()), tool_calls: calls, ..ChatMessage::assistant("I look.") };
    reply_of(message, Finish::ToolCalls)
}

/// A request that wants a stream, with everything that a client can ask for.
fn streaming(path: &str) -> (String, Value) {
    let mut body = smallest(path);
    let mut target = path.to_owned();
    match PATHS.iter().position(|other| *other == path) {
        Some(0) => body["stream_options"] = json!({ "include_usage": true }),
        Some(1) => {}
        Some(2) => body["thinking"] = json!({ "type": "adaptive" }),
        _ => {
            target = "/v1beta/models/m:streamGenerateContent?alt=sse".into();
            body["generationConfig"] = json!({ "thinkingConfig": { "includeThoughts": true } });
        }
    }
    if target == path {
        body["stream"] = json!(true);
    }
    (target, body)
}

/// The body of a stream, without the marks of its chunks.
fn events(response: &[u8]) -> String {
    let text = std::str::from_utf8(response).unwrap();
    let mut rest = text.split_once("\r\n\r\n").map_or(text, |(_, rest)| rest);
    let mut out = String::new();
    while let Some((size, body)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        out += &body[..size];
        rest = &body[size + 2..];
    }
    out
}

#[test]
fn streams_have_the_events_of_their_dialect() {
    let mut all = String::new();
    for path in PATHS {
        let (target, body) = streaming(path);
        let mut responder = asked(&target, &body).responder;
        let alive = String::from_utf8(responder.alive().unwrap()).unwrap();
        assert!(alive.starts_with("HTTP/1.1 200 OK\r\n"), "{alive}");
        all += &format!("## {target}\n{}", events(alive.as_bytes()));
        let again = responder.alive().unwrap();
        let rest = [b"\r\n\r\n", &again[..], &responder.reply(&reply())].concat();
        all += &events(&rest);
    }
    insta::assert_snapshot!(all);
}

/// A stream that has begun can only be refused by an event.
#[test]
fn refusals_within_a_stream() {
    let check = |path: &str, expect: &str| {
        let (target, body) = streaming(path);
        let refusal = Refusal::new(RefusalKind::Malformed, "why");
        let (status, _) = split(&asked(&target, &body).responder.refuse(&refusal));
        assert_eq!(status, 400, "{path}");
        let mut responder = asked(&target, &body).responder;
        responder.alive().unwrap();
        let rest = [b"\r\n\r\n", &responder.refuse(&refusal)[..]].concat();
        let text = events(&rest);
        assert!(text.starts_with(expect) && text.contains("why"), "{path}: {text}");
    };
    check(PATHS[0], "data: {\"error\":");
    check(PATHS[1], "event: response.failed\n");
    check(PATHS[2], "event: error\n");
    check(PATHS[3], "data: {\"error\":");
    let (target, body) = streaming(PATHS[1]);
    let refusal = Refusal::new(RefusalKind::ContextLength, "why");
    let text = events(&asked(&target, &body).responder.refuse(&refusal));
    assert!(text.contains("\"context_length_exceeded\""), "{text}");
}

#[test]
fn whole_replies_keep_usage_and_reason() {
    let check = |path: &str, finish: Finish, expect: [(&str, Value); 3]| {
        let calls = if finish == Finish::ToolCalls { vec![call("c", "sh", "{}")] } else { Vec::new() };
        let message = ChatMessage { tool_calls: calls, ..ChatMessage::assistant("a") };
        let mut responder = asked(path, &smallest(path)).responder;
        assert_eq!(responder.form, Form::Whole);
        let (status, body) = split(&responder.reply(&reply_of(message, finish)));
        assert_eq!(status, 200);
        for (pointer, value) in expect {
            assert_eq!(body.pointer(pointer), Some(&value), "{path} {body}");
        }
    };
    let chat = |reason: &str| {
        [
            ("/choices/0/finish_reason", json!(reason)),
            ("/usage/prompt_tokens", json!(7)),
            ("/usage/completion_tokens", json!(3)),
        ]
    };
    check(PATHS[0], Finish::Stop, chat("stop"));
    check(PATHS[0], Finish::Length, chat("length"));
    check(PATHS[0], Finish::ToolCalls, chat("tool_calls"));
    check(PATHS[0], Finish::ContentFilter, chat("content_filter"));
    check(PATHS[0], Finish::Other("odd".into()), chat("odd"));
    let responses = |status: &str, reason: Value| {
        [("/status", json!(status)), ("/incomplete_details", reason), ("/usage/total_tokens", json!(10))]
    };
    check(PATHS[1], Finish::Stop, responses("completed", Value::Null));
    check(PATHS[1], Finish::ToolCalls, responses("completed", Value::Null));
    check(PATHS[1], Finish::Length, responses("incomplete", json!({ "reason": "max_output_tokens" })));
    check(PATHS[1], Finish::ContentFilter, responses("incomplete", json!({ "reason": "content_filter" })));
    let messages = |reason: &str| {
        [
            ("/stop_reason", json!(reason)),
            ("/usage/input_tokens", json!(7)),
            ("/usage/output_tokens", json!(3)),
        ]
    };
    check(PATHS[2], Finish::Stop, messages("end_turn"));
    check(PATHS[2], Finish::Length, messages("max_tokens"));
    check(PATHS[2], Finish::ToolCalls, messages("tool_use"));
    check(PATHS[2], Finish::ContentFilter, messages("refusal"));
    let gemini = |reason: &str| {
        [
            ("/candidates/0/finishReason", json!(reason)),
            ("/usageMetadata/promptTokenCount", json!(7)),
            ("/usageMetadata/totalTokenCount", json!(10)),
        ]
    };
    check(PATHS[3], Finish::Stop, gemini("STOP"));
    check(PATHS[3], Finish::Length, gemini("MAX_TOKENS"));
    check(PATHS[3], Finish::ContentFilter, gemini("SAFETY"));
}

/// Calls of tools that are no functions get the form of their tool.
#[test]
fn calls_have_the_form_of_their_tool() {
    let mut body = smallest(PATHS[1]);
    body["tools"] = json!([
        { "type": "namespace", "name": "agents", "tools": [
            { "type": "function", "name": "wait", "parameters": {} } ] },
        { "type": "custom", "name": "patch" },
        { "type": "local_shell" },
    ]);
    let check = |made: ToolCall, expect: Value| {
        let message = ChatMessage { tool_calls: vec![made], ..ChatMessage::assistant("") };
        let mut responder = asked(PATHS[1], &body).responder;
        let (_, found) = split(&responder.reply(&reply_of(message, Finish::ToolCalls)));
        let mut item = found["output"][0].clone();
        item.as_object_mut().unwrap().retain(|key, _| !matches!(key.as_str(), "id" | "status"));
        assert_eq!(item, expect);
    };
    check(
        call("c", "wait", "{\"a\": 1}"),
        json!({ "type": "function_call", "call_id": "c", "name": "wait", "namespace": "agents",
                "arguments": "{\"a\": 1}" }),
    );
    let patch =
        |input: &str| json!({ "type": "custom_tool_call", "call_id": "c", "name": "patch", "input": input });
    check(call("c", "patch", r#"{"input":"*** Begin"}"#), patch("*** Begin"));
    check(call("c", "patch", "*** Begin"), patch("*** Begin"));
    let shell = |command: Value| {
        json!({ "type": "local_shell_call", "call_id": "c",
                "action": { "type": "exec", "command": command, "env": {} } })
    };
    check(call("c", "local_shell", r#"{"command":["ls"]}"#), shell(json!(["ls"])));
    check(call("c", "local_shell", "ls"), shell(json!([])));
    check(
        call("c", "unknown", "x"),
        json!({ "type": "function_call", "call_id": "c", "name": "unknown", "arguments": "x" }),
    );
}

/// The next request of a client that got this body.
fn next_request(path: &str, body: &Value) -> Value {
    let mut next = smallest(path);
    match PATHS.iter().position(|other| *other == path) {
        Some(0) => next["messages"] = json!([body["choices"][0]["message"]]),
        Some(1) => next["input"] = body["output"].clone(),
        Some(2) => next["messages"] = json!([{ "role": "assistant", "content": body["content"] }]),
        _ => next["contents"] = json!([body["candidates"][0]["content"]]),
    }
    next
}

fn arguments() -> impl Strategy<Value = String> {
    prop::collection::btree_map("[a-z]{1,4}", "[a-z \"]{0,6}", 0..3).prop_map(|map| json!(map).to_string())
}

proptest! {
    /// What a client sends back is what the model said.
    #[test]
    fn replies_come_back_whole(
        content in "[a-zé\n]{0,9}",
        reasoning in prop::option::of("[a-z\n]{1,9}"),
        arguments in prop::collection::vec(arguments(), 0..4),
        path in 0usize..4,
    ) {
        let calls = arguments.iter().enumerate();
        let tool_calls = calls.map(|(index, arguments)| call(&format!("c{index}"), "sh", arguments)).collect();
        let message = ChatMessage { reasoning, tool_calls, ..ChatMessage::assistant(content) };
        let path = PATHS[path];
        let (_, mut body) = streaming(path);
        body["stream"] = json!(false);
        let mut responder = asked(path, &body).responder;
        let (_, body) = split(&responder.reply(&reply_of(message.clone(), Finish::Stop)));
        let next = next_request(path, &body);
        prop_assert_eq!(asked(path, &next).request.messages, vec![message]);
    }
}
