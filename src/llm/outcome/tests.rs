//! Real responses of servers, and their outcomes.

use serde_json::json;

use super::*;

/// The outcome of a response and its charge, a word for each.
fn classified(status: u16, body: &str) -> String {
    let exchange = Exchange { status, ..Exchange::of_body(body.to_owned()) };
    let outcome = outcome(&exchange, SystemTime::UNIX_EPOCH);
    let charge = match outcome.charge() {
        UsageCharge::None => "free".to_owned(),
        UsageCharge::Reported(usage) => {
            format!("charged {}+{}", usage.prompt_tokens, usage.completion_tokens)
        }
        UsageCharge::Unknown => "unknown".to_owned(),
    };
    let word = match outcome {
        AttemptOutcome::Reply(_) => "reply".to_owned(),
        AttemptOutcome::Retryable { error, .. } => {
            let name = format!("{error:?}");
            name.split([' ', '(']).next().unwrap_or_default().to_owned()
        }
        AttemptOutcome::Final { refusal, .. } => format!("{refusal:?}"),
    };
    format!("{word} {charge}")
}

#[test]
fn responses_are_classified() {
    let usage = r#""usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}"#;
    let choice = r#"{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}"#;
    let of = |choices: &str, rest: &str| format!(r#"{{"choices":[{choices}]{rest}}}"#);
    let error = |message: &str| format!(r#"{{"error":{{"message":"{message}"}}}}"#);
    for (status, body, expected) in [
        (200, of(choice, &format!(",{usage}")), "reply charged 7+3"),
        (200, of(choice, ""), "reply unknown"),
        (200, of(choice, r#","usage":null"#), "reply unknown"),
        (200, of(choice, r#","usage":{"prompt_tokens":0,"completion_tokens":0}"#), "reply unknown"),
        (200, of(choice, r#","usage":"many""#), "reply unknown"),
        (200, of(choice, r#","usage":{"prompt_tokens":18446744073709551615,"completion_tokens":1}"#), "reply unknown"),
        (200, of(choice, r#","usage":{"prompt_tokens":7,"completion_tokens":4294967296}"#), "reply unknown"),
        (200, of(choice, r#","usage":{"prompt_tokens":-5,"completion_tokens":1}"#), "reply unknown"),
        (200, of(choice, r#","usage":{"prompt_tokens":7.5,"completion_tokens":1e300}"#), "reply unknown"),
        (200, of(choice, r#","usage":{"prompt_tokens":1000000,"completion_tokens":9}"#), "reply charged 1000000+9"),
        (200, of("", &format!(",{usage}")), "NoChoices charged 7+3"),
        (200, of("", ""), "NoChoices unknown"),
        (200, format!(r#"{{"text":"hi",{usage}}}"#), "WrongShape charged 7+3"),
        (200, of(r#"{"message":{"content":42}}"#, ""), "WrongShape unknown"),
        (200, of(r#"{"words":"hi"}"#, ""), "WrongShape unknown"),
        // From other protocols.
        (200, r#"{"object":"response","error":null,"output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"hi"}]}],"usage":{"input_tokens":7,"output_tokens":3}}"#.to_owned(), "reply charged 7+3"),
        (200, r#"{"object":"response","error":{"code":"server_error","message":"oh"},"output":[]}"#.to_owned(), "Status unknown"),
        (200, r#"{"object":"response","output":[{"type":"odd"}]}"#.to_owned(), "WrongShape unknown"),
        (200, r#"{"type":"message","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn","usage":{"input_tokens":3,"cache_read_input_tokens":4,"cache_creation_input_tokens":null,"output_tokens":3}}"#.to_owned(), "reply charged 7+3"),
        (529, r#"{"type":"error","error":{"type":"overloaded_error","message":"oh"}}"#.to_owned(), "Status unknown"),
        // From `/completions`.
        (200, of(r#"{"text":"hi"}"#, ""), "reply unknown"),
        (200, of(choice, "")[..30].to_owned(), "NotJson unknown"),
        (200, "<html><body>please log in</body></html>".to_owned(), "NotJson unknown"),
        (200, String::new(), "NotJson unknown"),
        (200, of(choice, r#","usage":{"prompt_tokens":1e999,"completion_tokens":1}"#), "NotJson unknown"),
        (200, "[".repeat(100_000), "NotJson unknown"),
        (200, r#"{"error":{"code":502,"message":"upstream"}}"#.to_owned(), "Status unknown"),
        (200, r#"{"error":{"code":"rate","message":"slow down"}}"#.to_owned(), "Status unknown"),
        (200, r#"{"error":{"code":401,"message":"who?"}}"#.to_owned(), "Auth unknown"),
        (408, String::new(), "Status unknown"),
        (409, String::new(), "Status unknown"),
        (425, String::new(), "Status free"),
        (429, error("Rate limit reached"), "Status free"),
        (429, "<html>429</html>".to_owned(), "Status free"),
        (429, r#"{"error":{"message":"no money","type":"insufficient_quota"}}"#.to_owned(), "Other free"),
        (500, "boom".to_owned(), "Status unknown"),
        (502, "<html>bad gateway</html>".to_owned(), "Status unknown"),
        (503, error("overloaded"), "Status unknown"),
        (529, error("overloaded"), "Status unknown"),
        (400, error("temperature must be positive"), "Other free"),
        (302, String::new(), "Other free"),
        (401, error("Incorrect API key"), "Auth free"),
        (403, "<html>blocked</html>".to_owned(), "Auth free"),
        (404, r#"{"detail":"Not Found"}"#.to_owned(), "Other free"),
        (422, r#"{"detail":[{"loc":["body"],"msg":"field required"}]}"#.to_owned(), "Other free"),
        // OpenAI, vLLM, SGLang, llama.cpp (with a number as its code), Anthropic.
        (400, r#"{"error":{"message":"too long","code":"context_length_exceeded"}}"#.to_owned(), "ContextLength free"),
        (400, r#"{"object":"error","message":"This model's maximum context length is 4096 tokens.","code":400}"#.to_owned(), "ContextLength free"),
        (400, error("The input (9000 tokens) is longer than the model's context length (8192 tokens)."), "ContextLength free"),
        (400, r#"{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error","n_ctx":8192}}"#.to_owned(), "ContextLength free"),
        (400, error("prompt is too long: 210000 tokens > 200000 maximum"), "ContextLength free"),
        (500, error("This model's maximum context length is 4096 tokens"), "ContextLength unknown"),
        (400, error("You passed 31745 input tokens and requested 1024 output tokens. However, the model's context length is only 32768 tokens, resulting in a maximum input length of 31744 tokens."), "ContextLength free"),
        (400, error("The decoder prompt (length 163840) is longer than the maximum model length of 131072. Make sure that `max_model_len` is no smaller."), "ContextLength free"),
        (400, error("'max_tokens' or 'max_completion_tokens' is too large: 9000. This model's maximum context length is 8192 tokens and your request has 5 input tokens."), "ContextLength free"),
        (400, error("Requested token count exceeds the model's maximum context length of 1000 tokens. You requested a total of 1206 tokens"), "ContextLength free"),
        (400, error("request (4390 tokens) exceeds the available context size (4096 tokens), try increasing it"), "ContextLength free"),
        (500, error("Context size has been exceeded."), "ContextLength unknown"),
        (400, error("This model's maximum prompt length is 131072 but the request contains 537812 tokens"), "ContextLength free"),
        (400, error("The input token count (1196265) exceeds the maximum number of tokens allowed (1048575)"), "ContextLength free"),
        (400, error("Input is too long for requested model."), "ContextLength free"),
        // Servers quote text of the solver. It decides nothing.
        (400, error("1 validation error: input_value='content_filter {', input_type=str"), "Other free"),
        (400, error("invalid tool call `invalid_prompt`: maximum context length is 1 tokens"), "Other free"),
        (400, error("cannot parse 'the context window': prompt is too long: 2 tokens > 1 maximum"), "Other free"),
        (500, error("unexpected `data_inspection_failed` in the context window"), "Status unknown"),
        (429, error("slow down: insufficient_quota, billing_hard_limit, your credit balance is too low"), "Status free"),
        (400, r#"{"error":{"message":"input_value='x'","code":"content_filter_x","type":"BadRequestError"}}"#.to_owned(), "Other free"),
        (400, r#"{"error":{"message":"no","code":"invalid_prompt","type":"invalid_request_error"}}"#.to_owned(), "ContentFilter free"),
        (400, r#"{"error":{"message":"no","code":null,"type":"data_inspection_failed"}}"#.to_owned(), "ContentFilter free"),
        (400, r#"{"error":{"message":"filtered","code":"content_filter","innererror":{"code":"ResponsibleAIPolicyViolation"}}}"#.to_owned(), "ContentFilter free"),
    ] {
        assert_eq!(classified(status, &body), expected, "{status} {}", clip(&body));
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
        assert_eq!(clip(&ServerError::read(body).message), expected);
    }
}

#[test]
fn extensions_of_servers_are_read() {
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
    let AttemptOutcome::Reply(reply) = outcome(&Exchange::of_body(body.to_string()), SystemTime::UNIX_EPOCH)
    else {
        panic!("no reply");
    };
    insta::assert_debug_snapshot!(reply);
    for (key, value) in [
        ("logprobs", json!({"tokens": ["a"]})),
        ("token_ids", json!("none")),
        ("prompt_token_ids", json!(-1)),
        ("prompt_token_ids", json!([4_294_967_296_u64])),
        ("token_ids", json!([0.5])),
    ] {
        let mut body = body.clone();
        body["choices"][0][key] = value.clone();
        body[key] = value;
        let outcome = outcome(&Exchange::of_body(body.to_string()), SystemTime::UNIX_EPOCH);
        assert!(matches!(outcome, AttemptOutcome::Reply(_)), "{key}");
    }
    for (logprob, expect) in [
        (json!(0), true),
        (json!(-9999.0), true),
        (json!(1e-7), true),
        (json!(0.5), false),
        (json!(-1e39), false),
    ] {
        let mut body = body.clone();
        body["choices"][0]["logprobs"]["content"][0]["logprob"] = logprob.clone();
        let outcome = outcome(&Exchange::of_body(body.to_string()), SystemTime::UNIX_EPOCH);
        let AttemptOutcome::Reply(reply) = outcome else { panic!("no reply: {logprob}") };
        assert_eq!(reply.logprobs.is_some(), expect, "{logprob}");
    }
}
