//! Requests of agents as they were captured, replies, and anything else.

mod captured;
mod clients;
mod replies;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// The paths of all dialects, in the order of the table.
const PATHS: [&str; 4] =
    ["/v1/chat/completions", "/v1/responses", "/v1/messages?beta=true", "/v1beta/models/m:generateContent"];

/// The smallest request of each dialect.
fn smallest(path: &str) -> Value {
    match PATHS.iter().position(|other| *other == path) {
        Some(0 | 2) => json!({ "messages": [{ "role": "user", "content": "hi" }] }),
        Some(1) => json!({ "input": "hi" }),
        _ => json!({ "contents": [{ "role": "user", "parts": [{ "text": "hi" }] }] }),
    }
}

fn ask(target: &str, body: &Value) -> Inquiry {
    inquire(&Request::post(target, body.to_string()), "m")
}

fn asked(target: &str, body: &Value) -> Asked {
    match ask(target, body) {
        Inquiry::Asked(asked) => asked,
        other => panic!("{target} {body}: {other:?}"),
    }
}

/// Status and body of a whole response.
fn split(response: &[u8]) -> (u16, Value) {
    let text = std::str::from_utf8(response).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head[9..12].parse().unwrap(), serde_json::from_str(body).unwrap_or_default())
}

#[test]
fn small_requests_are_the_same_in_all_dialects() {
    for path in PATHS {
        let Asked { request, .. } = asked(path, &smallest(path));
        assert_eq!(request, ChatRequest::of(vec![crate::llm::ChatMessage::user("hi")]), "{path}");
    }
}

#[test]
fn requests_without_a_model_are_answered() {
    let check = |method: &str, target: &str, headers: &str, status: u16, pointer: &str, expect: Value| {
        let text = format!("{method} {target} HTTP/1.1\r\n{headers}\r\n");
        let request = Request::read(&crate::sandbox::Received::Whole(text.into())).unwrap();
        let (Inquiry::Answered(response) | Inquiry::Refused { response, .. }) = inquire(&request, "m") else {
            panic!("{method} {target} asks the model");
        };
        let (found, body) = split(&response);
        assert_eq!(found, status, "{method} {target}");
        assert_eq!(body.pointer(pointer), Some(&expect), "{method} {target}: {body}");
    };
    let anthropic = "anthropic-version: 2023-06-01\r\n";
    check("HEAD", "/api/hello", "", 200, "", Value::Null);
    check("GET", "/v1/models", "", 200, "/data/0/id", json!("m"));
    check("GET", "/v1/models?client_version=0.171.0", "", 200, "/models", json!([]));
    check("GET", "/v1/models/m", "", 200, "/object", json!("model"));
    check("GET", "/v1/models", anthropic, 200, "/data/0/type", json!("model"));
    check("GET", "/v1/models/m", anthropic, 200, "/display_name", json!("m"));
    check("GET", "/v1beta/models", "", 200, "/models/0/name", json!("models/m"));
    check("GET", "/v1/modelsx", "", 404, "/error/message", json!("GET /v1/modelsx is not supported"));
    check("POST", "/v1/messages/count_tokens", "", 200, "/input_tokens", json!(0));
    check("POST", "/v1beta/models/m:countTokens", "", 200, "/totalTokens", json!(0));
    check(
        "GET",
        "/v1/responses",
        "Upgrade: websocket\r\nConnection: Upgrade\r\n",
        426,
        "/error/code",
        Value::Null,
    );
    check("GET", "/v1/messages", "", 404, "/type", json!("error"));
    check("DELETE", "/v1/x", "", 404, "/error/message", json!("DELETE /v1/x is not supported"));
}

#[test]
fn refusals_have_the_form_of_their_dialect() {
    let rows = [
        (PATHS[0], RefusalKind::Limit, 403, "/error/message", "why"),
        (PATHS[0], RefusalKind::ContextLength, 400, "/error/code", "context_length_exceeded"),
        (PATHS[1], RefusalKind::Limit, 400, "/error/message", "why"),
        (PATHS[1], RefusalKind::ContextLength, 400, "/error/code", "context_length_exceeded"),
        (PATHS[2], RefusalKind::Limit, 403, "/error/type", "permission_error"),
        (PATHS[2], RefusalKind::ContextLength, 400, "/error/message", "prompt is too long: why"),
        (PATHS[2], RefusalKind::TooLarge, 413, "/error/type", "request_too_large"),
        (PATHS[2], RefusalKind::Busy, 503, "/error/type", "overloaded_error"),
        (PATHS[3], RefusalKind::Limit, 403, "/error/status", "PERMISSION_DENIED"),
        (PATHS[3], RefusalKind::Malformed, 400, "/error/status", "INVALID_ARGUMENT"),
    ];
    for (path, kind, status, pointer, expect) in rows {
        let mut responder = asked(path, &smallest(path)).responder;
        let (found, body) = split(&responder.refuse(&Refusal::new(kind, "why")));
        assert_eq!(found, status, "{path} {kind:?}");
        assert_eq!(body.pointer(pointer), Some(&json!(expect)), "{path} {kind:?}: {body}");
    }
}

/// All places of a value.
fn places(value: &Value, here: &str, out: &mut Vec<String>) {
    out.push(here.to_owned());
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(key, value)| places(value, &format!("{here}/{key}"), out));
        }
        Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(index, value)| places(value, &format!("{here}/{index}"), out));
        }
        _ => {}
    }
}

fn anything() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z_]{0,9}".prop_map(Value::from),
        Just(json!([])),
        Just(json!({})),
        Just(json!([{ "type": "text" }, { "type": "image" }])),
    ]
}

proptest! {
    #[test]
    fn any_body_can_be_read(body in prop::collection::vec(any::<u8>(), 0..200), path in 0usize..4) {
        let request = Request::post(PATHS[path], body);
        let _ = inquire(&request, "m");
    }

    /// A captured request with another value somewhere is read, or refused with a message.
    #[test]
    fn damaged_requests_are_read(
        which in any::<prop::sample::Index>(), place in any::<prop::sample::Index>(), value in anything(),
    ) {
        let all = captured::requests();
        let (target, mut body) = which.get(&all).clone();
        let mut found = Vec::new();
        places(&body, "", &mut found);
        if let Some(there) = body.pointer_mut(place.get(&found).as_str()) {
            *there = value;
        }
        if let Inquiry::Asked(Asked { mut responder, .. }) = ask(target, &body) {
            let _ = responder.reply(&replies::reply());
        }
    }
}
