//! The shapes of requests that real agents sent. The texts are shortened.

use serde_json::{Value, json};

use super::asked;
use crate::llm::{ChatMessage, ChatRequest, ChatRole, Image, ToolCall};

/// Claude Code 2.1.332, in its second request.
fn claude_code() -> Value {
    json!({
        "model": "some-model", "max_tokens": 32000, "stream": true,
        "thinking": { "type": "adaptive", "display": "summarized" },
        "context_management": { "edits": [] }, "output_config": { "effort": "high" },
        "metadata": { "user_id": "u" },
        "system": [
            { "type": "text", "text": "x-anthropic-billing-header: cc_version=2.1.332.0f3" },
            { "type": "text", "text": "You are Claude Code.", "cache_control": { "type": "ephemeral" } },
            { "type": "text", "text": "Be brief." },
        ],
        "messages": [
            { "role": "user", "content": [
                { "type": "text", "text": "<system-reminder>a</system-reminder>" },
                { "type": "text", "text": "Do it.", "cache_control": { "type": "ephemeral" } } ] },
            { "role": "system", "content": "The environment." },
            { "role": "assistant", "content": [
                { "type": "thinking", "thinking": "First look.", "signature": "dGVybXNtaXRo" },
                { "type": "text", "text": "I look." },
                { "type": "tool_use", "id": "t1", "name": "Bash", "input": { "z": 1, "command": "ls" } },
                { "type": "tool_use", "id": "t2", "name": "ToolSearch", "input": {} } ] },
            { "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "t2", "content": [
                    { "type": "tool_reference", "tool_name": "CronCreate" } ] },
                { "type": "tool_result", "tool_use_id": "t1", "is_error": true, "content": [
                    { "type": "text", "text": "out" },
                    { "type": "image", "source": {
                        "type": "base64", "media_type": "image/png", "data": "aGk=" } } ] },
                { "type": "text", "text": "Go on." } ] },
        ],
        "tools": [
            { "name": "Bash", "description": "Runs.", "input_schema": { "type": "object" } },
            { "name": "CronCreate", "description": "c", "input_schema": {}, "defer_loading": true },
            { "name": "Later", "description": "l", "input_schema": {}, "defer_loading": true },
            { "type": "web_search_20250305", "name": "web_search" },
        ],
    })
}

/// Codex 0.171.0, in its second request.
fn codex() -> Value {
    json!({
        "model": "some-model", "stream": true, "store": false, "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": "k", "tool_choice": "auto", "parallel_tool_calls": true,
        "reasoning": { "effort": "medium", "summary": "auto" }, "client_metadata": {},
        "input": [
            { "type": "message", "role": "developer", "content": [{ "type": "input_text", "text": "You are Codex." }] },
            { "type": "message", "role": "user", "content": [
                { "type": "input_text", "text": "Do it." },
                { "type": "input_image", "image_url": "data:image/png;base64,aGk=" } ] },
            { "type": "reasoning", "summary": [{ "type": "summary_text", "text": "First look." }],
              "content": null, "encrypted_content": "dGVybXNtaXRo" },
            { "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "I look." }] },
            { "type": "function_call", "name": "exec_command", "arguments": "{\"cmd\": \"ls\"}", "call_id": "c1" },
            { "type": "function_call", "name": "wait", "namespace": "agents", "arguments": "{}", "call_id": "c2" },
            { "type": "custom_tool_call", "name": "apply_patch", "input": "*** Begin", "call_id": "c3" },
            { "type": "function_call_output", "call_id": "c1", "output": "out" },
            { "type": "function_call_output", "call_id": "c2", "output": [{ "type": "input_text", "text": "two" }] },
            { "type": "custom_tool_call_output", "call_id": "c3", "output": "Done." },
        ],
        "tools": [
            { "type": "function", "name": "exec_command", "description": "Runs.", "strict": false, "parameters": {} },
            { "type": "function", "name": "wait", "description": "w", "parameters": {} },
            { "type": "namespace", "name": "agents", "description": "n", "tools": [
                { "type": "function", "name": "spawn_agent", "description": "s", "parameters": {} },
                { "type": "function", "name": "wait", "description": "w2", "parameters": {} } ] },
            { "type": "custom", "name": "apply_patch", "description": "p",
              "format": { "type": "grammar", "syntax": "lark", "definition": "start: x" } },
            { "type": "local_shell" },
            { "type": "web_search", "external_web_access": false },
        ],
    })
}

/// opencode 1.18.33, in its second request.
fn opencode() -> Value {
    json!({
        "model": "some-model", "max_tokens": 32000, "stream": true, "stream_options": { "include_usage": true },
        "tool_choice": "auto",
        "messages": [
            { "role": "system", "content": "You are opencode." },
            { "role": "user", "content": "\"Do it.\"" },
            { "role": "assistant", "content": "I look.", "reasoning_content": "First look.", "tool_calls": [
                { "id": "c1", "type": "function",
                  "function": { "name": "bash", "arguments": "{\"command\":\"ls\"}" } } ] },
            { "role": "tool", "tool_call_id": "c1", "content": "out" },
        ],
        "tools": [{ "type": "function", "function": { "name": "bash", "description": "Runs.", "parameters": {} } }],
    })
}

/// OpenHands SDK 1.58.2.
fn openhands() -> Value {
    json!({
        "model": "some-model", "max_completion_tokens": 7, "reasoning_effort": "high", "stop": "END",
        "temperature": 2, "tool_choice": "none",
        "messages": [
            { "role": "developer", "content": [{ "type": "text", "text": "be " }, { "type": "text", "text": "brief" }] },
            { "role": "user", "content": [
                { "type": "text", "text": "a" },
                { "type": "image_url", "image_url": { "url": "data:image/png;base64,aGk=" } } ] },
            { "role": "assistant", "content": null, "tool_calls": [
                { "id": "c1", "type": "function", "function": { "name": "sh", "arguments": "{}" } } ] },
            { "role": "tool", "tool_call_id": "c1", "name": "sh", "content": [{ "type": "text", "text": "out" }] },
        ],
        "tools": [
            { "type": "function", "function": { "name": "sh" } },
            { "type": "custom", "custom": { "name": "x" } },
        ],
    })
}

/// gemini-cli 0.61.0, in its second request.
fn gemini_cli() -> Value {
    json!({
        "systemInstruction": { "role": "user", "parts": [{ "text": "You are an agent." }] },
        "contents": [
            { "role": "user", "parts": [{ "text": "a" }, { "text": "Do it." },
                { "inlineData": { "mimeType": "image/png", "data": "aGk=" } }] },
            { "role": "model", "parts": [
                { "text": "First look.", "thought": true },
                { "text": "I look." },
                { "functionCall": { "name": "run", "args": { "z": 1, "command": "ls" } }, "thoughtSignature": "S" },
                { "functionCall": { "id": "x", "name": "read", "args": {} } } ] },
            { "role": "user", "parts": [
                { "functionResponse": { "id": "x", "name": "read", "response": { "error": "no" } } },
                { "functionResponse": { "name": "run", "response": { "output": "out" } } } ] },
        ],
        "tools": [{ "functionDeclarations": [
            { "name": "run", "description": "Runs.", "parameters": {
                "type": "OBJECT", "properties": { "command": { "type": "STRING", "enum": ["OBJECT"] } } } },
            { "name": "read", "parametersJsonSchema": { "type": "object" } },
        ] }],
        "generationConfig": { "temperature": 0, "maxOutputTokens": 9, "thinkingConfig": { "includeThoughts": true } },
    })
}

/// All of them, with their targets.
pub(super) fn requests() -> Vec<(&'static str, Value)> {
    vec![
        ("/v1/messages?beta=true", claude_code()),
        ("/v1/responses", codex()),
        ("/v1/chat/completions", opencode()),
        ("/v1/chat/completions", openhands()),
        ("/v1beta/models/m:streamGenerateContent?alt=sse", gemini_cli()),
    ]
}

fn call(id: &str, name: &str, arguments: &str) -> ToolCall {
    ToolCall { id: id.into(), name: name.into(), arguments: arguments.into() }
}

fn image(at: usize) -> Vec<Image> {
    vec![Image { at, url: "data:image/png;base64,aGk=".into() }]
}

/// The second reply of each of them, which looks around.
fn looked(calls: Vec<ToolCall>) -> ChatMessage {
    ChatMessage {
        reasoning: Some("First look.".into()),
        tool_calls: calls,
        ..ChatMessage::assistant("I look.")
    }
}

fn read(target: &str, body: &Value) -> ChatRequest {
    asked(target, body).request
}

fn tool_names(request: &ChatRequest) -> Vec<&str> {
    request.tools.iter().map(|tool| tool.name.as_str()).collect()
}

#[test]
fn claude_code_is_read() {
    let request = read("/v1/messages?beta=true", &claude_code());
    let expect = vec![
        ChatMessage::system("You are Claude Code.\n\nBe brief."),
        ChatMessage::user("<system-reminder>a</system-reminder>\nDo it."),
        ChatMessage::system("The environment."),
        looked(vec![call("t1", "Bash", r#"{"command":"ls","z":1}"#), call("t2", "ToolSearch", "{}")]),
        ChatMessage::tool("t2", "The tool CronCreate is available now."),
        ChatMessage { tool_failed: true, images: image(3), ..ChatMessage::tool("t1", "out") },
        ChatMessage::user("Go on."),
    ];
    assert_eq!(request.messages, expect);
    assert_eq!(tool_names(&request), ["Bash", "CronCreate"]);
    assert_eq!(request.max_tokens, Some(32000));
}

/// `json!` sorts keys, but an agent sends them in the model's order.
#[test]
fn keys_of_arguments_keep_their_order() {
    let input = r#"{"z":1,"a":{"y":2,"b":3}}"#;
    let check = |target: &str, body: String| {
        let asked = match super::inquire(&super::Request::post(target, body), "m") {
            super::Inquiry::Asked(asked) => asked,
            other => panic!("{other:?}"),
        };
        assert_eq!(asked.request.messages[0].tool_calls[0].arguments, input);
    };
    let block = format!(r#"{{"type":"tool_use","id":"i","name":"n","input":{input}}}"#);
    check("/v1/messages", format!(r#"{{"messages":[{{"role":"assistant","content":[{block}]}}]}}"#));
    let part = format!(r#"{{"functionCall":{{"name":"n","args":{input}}}}}"#);
    check("/v1/models/m:generateContent", format!(r#"{{"contents":[{{"role":"model","parts":[{part}]}}]}}"#));
}

#[test]
fn codex_is_read() {
    let request = read("/v1/responses", &codex());
    let expect = vec![
        ChatMessage::system("You are Codex."),
        ChatMessage { images: image(6), ..ChatMessage::user("Do it.") },
        looked(vec![
            call("c1", "exec_command", "{\"cmd\": \"ls\"}"),
            call("c2", "agents__wait", "{}"),
            call("c3", "apply_patch", r#"{"input":"*** Begin"}"#),
        ]),
        ChatMessage::tool("c1", "out"),
        ChatMessage::tool("c2", "two"),
        ChatMessage::tool("c3", "Done."),
    ];
    assert_eq!(request.messages, expect);
    let names = ["exec_command", "wait", "spawn_agent", "agents__wait", "apply_patch", "local_shell"];
    assert_eq!(tool_names(&request), names);
    assert_eq!(request.tools[4].description, "p\n\nThe input must fit this lark grammar:\nstart: x");
    let with = |field: &str, value: Value| {
        let mut body = codex();
        body[field] = value;
        read("/v1/responses", &body)
    };
    assert_eq!(with("instructions", json!("Be brief.")).messages[0], ChatMessage::system("Be brief."));
    assert!(with("tool_choice", json!("none")).no_tool_calls);
    assert_eq!(with("max_output_tokens", json!(5)).max_tokens, Some(5));
}

#[test]
fn clients_of_chat_are_read() {
    let request = read("/v1/chat/completions", &opencode());
    let expect = vec![
        ChatMessage::system("You are opencode."),
        ChatMessage::user("\"Do it.\""),
        looked(vec![call("c1", "bash", "{\"command\":\"ls\"}")]),
        ChatMessage::tool("c1", "out"),
    ];
    assert_eq!((request.messages, request.max_tokens), (expect, Some(32000)));
    let request = read("/v1/chat/completions", &openhands());
    let expect = vec![
        ChatMessage::system("be brief"),
        ChatMessage { images: image(1), ..ChatMessage::user("a") },
        ChatMessage { tool_calls: vec![call("c1", "sh", "{}")], ..ChatMessage::assistant("") },
        ChatMessage::tool("c1", "out"),
    ];
    assert_eq!((&request.messages, request.max_tokens), (&expect, Some(7)));
    assert_eq!((request.stop.as_slice(), request.no_tool_calls), (&["END".to_owned()][..], true));
    assert_eq!(tool_names(&request), ["sh"]);
}

#[test]
fn gemini_cli_is_read() {
    let request = read("/v1beta/models/m:streamGenerateContent?alt=sse", &gemini_cli());
    let calls = vec![call("call_0", "run", r#"{"command":"ls","z":1}"#), call("x", "read", "{}")];
    let expect = vec![
        ChatMessage::system("You are an agent."),
        ChatMessage { images: image(8), ..ChatMessage::user("a\nDo it.") },
        ChatMessage { signature: Some("S".into()), ..looked(calls) },
        ChatMessage { tool_failed: true, ..ChatMessage::tool("x", "no") },
        ChatMessage::tool("call_0", "out"),
    ];
    assert_eq!(request.messages, expect);
    let schema = json!({
        "type": "object", "properties": { "command": { "type": "string", "enum": ["OBJECT"] } },
    });
    assert_eq!(request.tools[0].parameters, schema);
    assert_eq!(request.messages[0].role, ChatRole::System);
}
