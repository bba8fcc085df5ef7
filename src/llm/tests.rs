//! Round trips of messages, and the upper bound that the budget relies on.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::request::{body, bound, write_message};
use super::response::read_reply;
use super::{
    Api, CallSite, ChatMessage, ChatRequest, EndpointSettings, Image, ModelRole, ResponseFormat,
    RoleSettings, Settings, Tool, ToolCall,
};

const SETTINGS: &str = r#"
version = 1
[endpoints.e]
base_url = "http://127.0.0.1:1/v1"
[roles.expert]
endpoint = "e"
model = "m"
max_tokens = 100
temperature = 0.5
seed = 7
extra = { return_token_ids = true, chat_template_kwargs = { enable_thinking = false } }
"#;

fn settings() -> (RoleSettings, EndpointSettings) {
    let mut settings = Settings::parse("termsmith.toml", SETTINGS).unwrap();
    (settings.roles.remove(&ModelRole::Expert).unwrap(), settings.endpoints.remove("e").unwrap())
}

fn site(sample: u32) -> CallSite {
    CallSite { role: ModelRole::Expert, unit: "u".into(), stage: "s".into(), round: 0, step: 0, sample }
}

/// Texts with characters that break JSON, terminals or templates.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![".{0,40}", "[\\x00-\\x1f\"\\\\<|>{}]{0,20}", "[ \\n\\t\u{7f}é漢🦀]{0,20}"]
}

prop_compose! {
    fn assistant_message()(
        content in text(),
        reasoning in proptest::option::of(text()),
        calls in proptest::collection::vec((text(), "[a-zA-Z0-9_.-]{1,20}", text()), 0..3),
    ) -> ChatMessage {
        let tool_calls = calls.into_iter().map(|(id, name, value)| {
            let arguments = json!({ "command": value }).to_string();
            ToolCall { id, name, arguments }
        });
        ChatMessage { reasoning, tool_calls: tool_calls.collect(), ..ChatMessage::assistant(content) }
    }
}

proptest! {
    /// A well-formed message of a model is sent back byte for byte. It also survives the store.
    #[test]
    fn messages_survive_the_wire(message in assistant_message()) {
        let (_, endpoint) = settings();
        let endpoint = EndpointSettings { return_reasoning: true, ..endpoint };
        let wire = json!({ "choices": [{ "message": write_message(&message, &endpoint) }] });
        let reply = read_reply(&wire.to_string()).unwrap().unwrap();
        prop_assert_eq!(&reply.message, &message);
        let stored = serde_json::to_string(&message).unwrap();
        prop_assert_eq!(serde_json::from_str::<ChatMessage>(&stored).unwrap(), message);
    }

    /// A byte-level vocabulary has at most one token for each byte. So the bound is at least the
    /// length of all texts.
    #[test]
    fn the_bound_covers_every_byte(messages in proptest::collection::vec(assistant_message(), 0..5), most in proptest::option::of(1_u32..200), limit in proptest::option::of(100_u32..150)) {
        let (role, endpoint) = settings();
        let role = RoleSettings { max_tokens_limit: limit, ..role };
        let tokens: usize = messages
            .iter()
            .map(|message| {
                let calls = message.tool_calls.iter().map(|call| call.id.len() + call.name.len() + call.arguments.len());
                message.content.len() + calls.sum::<usize>()
            })
            .sum();
        let request = ChatRequest { max_tokens: most, ..ChatRequest::of(messages) };
        let body = body(&site(0), &request, &role, &endpoint);
        let bound = bound(&body, &request, &role);
        prop_assert!(bound.prompt_tokens >= tokens as u64);
        prop_assert_eq!(Some(bound.completion_tokens), body["max_tokens"].as_u64());
        prop_assert_eq!(bound.completion_tokens, u64::from(most.unwrap_or(100).min(limit.unwrap_or(100))));
    }

    /// Hostile bodies are read or refused, and nothing panics.
    #[test]
    fn any_body_is_read_or_refused(body in ".{0,200}") {
        let _ = read_reply(&body);
    }
}

/// Servers refuse a history if the arguments of a call are no JSON object.
#[test]
fn malformed_calls_are_sent_back_in_a_form_that_servers_take() {
    let (_, endpoint) = settings();
    let check = |name: &str, arguments: &str, expect: (&str, &str)| {
        let call = ToolCall { id: "c1".into(), name: name.into(), arguments: arguments.into() };
        let message = ChatMessage { tool_calls: vec![call], ..ChatMessage::assistant("") };
        let function = &write_message(&message, &endpoint)["tool_calls"][0]["function"];
        assert_eq!((&function["name"], &function["arguments"]), (&json!(expect.0), &json!(expect.1)));
    };
    check("bash", "{\"command\": \"ls\"}", ("bash", "{\"command\": \"ls\"}"));
    check("bash", " {\"a\":1,\"a\":2} ", ("bash", " {\"a\":1,\"a\":2} "));
    for malformed in
        ["{\"command\": \"ls", "\"ls\"", "[]", "null", "1", "", "{} {}", "{\"a\": 1e999}", "content_filter {"]
    {
        check("bash", malformed, ("bash", "{}"));
    }
    check("bash", &format!("{{\"a\":{}{}}}", "[".repeat(9999), "]".repeat(9999)), ("bash", "{}"));
    check("", "{}", ("_", "{}"));
    check("mcp.look-up_2", "{}", ("mcp.look-up_2", "{}"));
    check("run <it>\n", "{}", ("run__it__", "{}"));
    check(&"é".repeat(99), "{}", (&"_".repeat(64), "{}"));
}

#[test]
fn a_request_on_the_wire() {
    let (role, endpoint) = settings();
    let call = ToolCall { id: "c1".into(), name: "sh".into(), arguments: "{\"run\":\"ls\"}".into() };
    let request = ChatRequest {
        prompt: None,
        messages: vec![
            ChatMessage::system("Be brief."),
            ChatMessage::user("List."),
            ChatMessage {
                reasoning: Some("hm".into()),
                tool_calls: vec![call],
                ..ChatMessage::assistant("")
            },
            ChatMessage::tool("c1", "a.txt"),
        ],
        tools: vec![Tool {
            name: "sh".into(),
            description: "Runs.".into(),
            parameters: json!({"type": "object"}),
        }],
        response_format: Some(ResponseFormat::JsonSchema {
            name: "T".into(),
            schema: json!({"type": "string"}),
        }),
        stop: vec!["Observation:".into()],
        max_tokens: Some(20),
        no_tool_calls: true,
        logprobs: true,
    };
    let body = body(&site(0), &request, &role, &endpoint);
    insta::assert_snapshot!(serde_json::to_string_pretty(&body).unwrap());
}

/// The other protocols send the same conversation in their own form.
#[test]
fn bodies_of_other_protocols() {
    let (role, endpoint) = settings();
    let call = ToolCall { id: "c1".into(), name: "sh".into(), arguments: "{\"run\":\"ls\"}".into() };
    let image = Image { at: 3, url: "data:image/png;base64,aGk=".into() };
    let request = ChatRequest {
        messages: vec![
            ChatMessage::system("Be brief."),
            ChatMessage { images: vec![image], ..ChatMessage::user("See this.") },
            ChatMessage {
                reasoning: Some("hm".into()),
                signature: Some("SIG".into()),
                tool_calls: vec![call],
                ..ChatMessage::assistant("")
            },
            ChatMessage { tool_failed: true, ..ChatMessage::tool("c1", "no") },
        ],
        tools: vec![Tool {
            name: "sh".into(),
            description: "Runs.".into(),
            parameters: json!({"type": "object"}),
        }],
        no_tool_calls: true,
        max_tokens: Some(20),
        ..ChatRequest::default()
    };
    let bodies = [Api::Responses, Api::Messages].map(|api| {
        let endpoint = EndpointSettings { api, ..endpoint.clone() };
        body(&site(0), &request, &role, &endpoint)
    });
    insta::assert_snapshot!(serde_json::to_string_pretty(&bodies).unwrap());
}

#[test]
fn images_do_not_count_by_their_bytes() {
    let (role, endpoint) = settings();
    let of = |images: Vec<Image>| {
        let request = ChatRequest::of(vec![ChatMessage { images, ..ChatMessage::user("hi") }]);
        let body = body(&site(0), &request, &role, &endpoint);
        bound(&body, &request, &role).prompt_tokens
    };
    let image = |bytes: usize| Image { at: 0, url: format!("data:image/png;base64,{}", "A".repeat(bytes)) };
    assert_eq!(of(vec![image(10)]), of(vec![image(10_000_000)]));
    assert!(of(vec![image(10), image(10)]) > of(vec![image(10)]) + 40_000);
}

#[test]
fn each_sample_has_its_own_seed() {
    let (role, endpoint) = settings();
    let request = ChatRequest::of(vec![ChatMessage::user("hi")]);
    let seed = |sample| body(&site(sample), &request, &role, &endpoint)["seed"].clone();
    assert_ne!(seed(0), seed(1));
    assert_eq!(seed(1), seed(1));
    assert!(seed(0).as_u64().unwrap() < 1 << 31);
    let role = RoleSettings { seed: None, ..role };
    assert_eq!(body(&site(0), &request, &role, &endpoint).get("seed"), None::<&Value>);
}
