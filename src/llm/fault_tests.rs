//! Real responses of servers, and what becomes of them.

use serde_json::json;

use super::*;

/// What a response comes to, in a word: `reply`, a fault with its bill, or a refusal with its bill.
fn verdict(status: u16, body: &str) -> String {
    let exchange = Exchange { status, ..Exchange::of_body(body.to_owned()) };
    let outcome = outcome(&exchange, SystemTime::UNIX_EPOCH);
    let bill = match outcome.bill() {
        Bill::Nothing => "unpaid".to_owned(),
        Bill::Counted(usage) => format!("paid {}+{}", usage.prompt_tokens, usage.completion_tokens),
        Bill::Unseen => "unseen".to_owned(),
    };
    let word = match outcome {
        Outcome::Replied(_) => "reply".to_owned(),
        Outcome::Retryable { fault, .. } => {
            let name = format!("{fault:?}");
            name.split([' ', '(']).next().unwrap_or_default().to_owned()
        }
        Outcome::Final { refusal, .. } => format!("{refusal:?}"),
    };
    format!("{word} {bill}")
}

#[test]
fn responses() {
    let usage = r#""usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}"#;
    let choice = r#"{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}"#;
    let of = |choices: &str, rest: &str| format!(r#"{{"choices":[{choices}]{rest}}}"#);
    let error = |message: &str| format!(r#"{{"error":{{"message":"{message}"}}}}"#);
    for (status, body, expected) in [
        (200, of(choice, &format!(",{usage}")), "reply paid 7+3"),
        (200, of(choice, ""), "reply unseen"),
        (200, of(choice, r#","usage":null"#), "reply unseen"),
        (200, of(choice, r#","usage":{"prompt_tokens":0,"completion_tokens":0}"#), "reply unseen"),
        (200, of(choice, r#","usage":"many""#), "reply unseen"),
        (200, of("", &format!(",{usage}")), "NoChoices paid 7+3"),
        (200, of("", ""), "NoChoices unseen"),
        (200, format!(r#"{{"text":"hi",{usage}}}"#), "Shape paid 7+3"),
        (200, of(r#"{"message":{"content":42}}"#, ""), "Shape unseen"),
        (200, of(r#"{"text":"hi"}"#, ""), "Shape unseen"),
        (200, of(choice, "")[..30].to_owned(), "NotJson unseen"),
        (200, "<html><body>please log in</body></html>".to_owned(), "NotJson unseen"),
        (200, String::new(), "NotJson unseen"),
        (200, "[".repeat(100_000), "NotJson unseen"),
        (200, r#"{"error":{"code":502,"message":"upstream"}}"#.to_owned(), "Status unseen"),
        (200, r#"{"error":{"code":"rate","message":"slow down"}}"#.to_owned(), "Status unseen"),
        (200, r#"{"error":{"code":401,"message":"who?"}}"#.to_owned(), "Auth unseen"),
        (408, String::new(), "Status unseen"),
        (409, String::new(), "Status unseen"),
        (425, String::new(), "Status unpaid"),
        (429, error("Rate limit reached"), "Status unpaid"),
        (429, "<html>429</html>".to_owned(), "Status unpaid"),
        (429, r#"{"error":{"message":"no money","type":"insufficient_quota"}}"#.to_owned(), "Other unpaid"),
        (500, "boom".to_owned(), "Status unseen"),
        (502, "<html>bad gateway</html>".to_owned(), "Status unseen"),
        (503, error("overloaded"), "Status unseen"),
        (529, error("overloaded"), "Status unseen"),
        (400, error("temperature must be positive"), "Other unpaid"),
        (302, String::new(), "Other unpaid"),
        (401, error("Incorrect API key"), "Auth unpaid"),
        (403, "<html>blocked</html>".to_owned(), "Auth unpaid"),
        (404, r#"{"detail":"Not Found"}"#.to_owned(), "Other unpaid"),
        (422, r#"{"detail":[{"loc":["body"],"msg":"field required"}]}"#.to_owned(), "Other unpaid"),
        // OpenAI, vLLM, SGLang, llama.cpp (whose code is a number), Anthropic.
        (400, r#"{"error":{"message":"too long","code":"context_length_exceeded"}}"#.to_owned(), "ContextLength unpaid"),
        (400, r#"{"object":"error","message":"This model's maximum context length is 4096 tokens.","code":400}"#.to_owned(), "ContextLength unpaid"),
        (400, error("The input (9000 tokens) is longer than the model's context length (8192 tokens)."), "ContextLength unpaid"),
        (400, r#"{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error","n_ctx":8192}}"#.to_owned(), "ContextLength unpaid"),
        (400, error("prompt is too long: 210000 tokens > 200000 maximum"), "ContextLength unpaid"),
        (500, error("maximum context length is 4096 tokens"), "ContextLength unseen"),
        (400, r#"{"error":{"message":"filtered","code":"content_filter","innererror":{"code":"ResponsibleAIPolicyViolation"}}}"#.to_owned(), "ContentFilter unpaid"),
    ] {
        assert_eq!(verdict(status, &body), expected, "{status} {}", clip(&body));
    }
}

#[test]
fn messages_are_found_and_short() {
    let long = "x".repeat(1000);
    for (body, expected) in [
        (r#"{"error":{"message":"a  b\n c"}}"#, "a b c"),
        (r#"{"error":"plain"}"#, "plain"),
        (r#"{"message":"top"}"#, "top"),
        (r#"{"detail":"Not Found"}"#, "Not Found"),
        ("<h1>bad\ngateway</h1>", "<h1>bad gateway</h1>"),
        ("", "(empty)"),
        (&long, &format!("{}…", &long[..MAX_MESSAGE])),
    ] {
        assert_eq!(Complaint::read(body).message, expected);
    }
}

#[test]
fn additions_of_servers_are_taken() {
    let body = json!({
        "model": "served", "prompt_token_ids": [1, 2],
        "choices": [{
            "message": {
                "content": [{"type": "thinking", "thinking": []}, {"type": "text", "text": " a"}, {"type": "text", "text": "b\n"}],
                "reasoning": "why",
                "tool_calls": [
                    {"id": "x", "type": "function", "function": {"name": "sh", "arguments": "{\"c\":1}"}},
                    {"function": {"name": "sh", "arguments": {"c": 2}}},
                ],
            },
            "finish_reason": "tool_calls", "token_ids": [3],
            "logprobs": {"content": [{"token": "a", "logprob": -0.25, "bytes": [97], "top_logprobs": []}]},
        }],
    });
    let Outcome::Replied(said) = outcome(&Exchange::of_body(body.to_string()), SystemTime::UNIX_EPOCH) else {
        panic!("no reply");
    };
    insta::assert_debug_snapshot!(said);
    for (key, value) in [
        ("logprobs", json!({"tokens": ["a"]})),
        ("token_ids", json!("none")),
        ("prompt_token_ids", json!(-1)),
    ] {
        let mut body = body.clone();
        body["choices"][0][key] = value.clone();
        body[key] = value;
        let outcome = outcome(&Exchange::of_body(body.to_string()), SystemTime::UNIX_EPOCH);
        assert!(matches!(outcome, Outcome::Replied(_)), "{key}");
    }
}
