//! Endpoints that speak OpenAI's Responses API or Anthropic's Messages API.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};
use termsmith::llm::{CallError, ChatMessage, ChatRequest, Finish, Models, Options, Settings, Usage};

use super::{KEY, env, fresh_store, site};

/// Answers one request with `body`, and returns its head and its body.
fn serve(body: &Value) -> (String, mpsc::Receiver<(String, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let (seen, requests) = mpsc::channel();
    let response = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.to_string().len());
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut text = String::new();
        let mut piece = [0; 4096];
        let request = loop {
            let count = stream.read(&mut piece).unwrap();
            text += std::str::from_utf8(&piece[..count]).unwrap();
            let whole = text.split_once("\r\n\r\n").map(|(head, body)| (head, serde_json::from_str(body)));
            if let Some((head, Ok(body))) = whole {
                break (head.to_ascii_lowercase(), body);
            }
        };
        seen.send(request).unwrap();
        stream.write_all(response.as_bytes()).unwrap();
    });
    (url, requests)
}

fn models(url: &str, api: &str) -> (tempfile::TempDir, Models) {
    let text = format!(
        "version = 1\n[endpoints.test]\nbase_url = \"{url}\"\napi = \"{api}\"\napi_key_env = \"TEST_KEY\"\n\
         [roles.expert]\nendpoint = \"test\"\nmodel = \"tiny\"\nmax_tokens = 64\n"
    );
    let settings = Settings::parse("termsmith.toml", &text).unwrap();
    let (dir, store) = fresh_store();
    let models = Models::new(settings, env, &store, Options::default()).unwrap();
    (dir, models)
}

#[tokio::test]
async fn replies_of_other_protocols_are_read() {
    let check = async |api: &str, path: &str, key: &str, body: Value| {
        let (url, requests) = serve(&body);
        let (_dir, models) = models(&url, api);
        let request = ChatRequest::of(vec![ChatMessage::system("Be brief."), ChatMessage::user("hi")]);
        let first = models.call(&site(0), &request).await.unwrap();
        let (head, _) = requests.recv_timeout(Duration::from_secs(10)).unwrap();
        assert!(head.starts_with(&format!("post {path} http/1.1")), "{head}");
        assert!(head.contains(key), "{head}");
        // The journal has it now.
        let reply = models.call(&site(0), &request).await.unwrap();
        assert!(reply.committed);
        assert_eq!(reply.message, first.message);
        assert_eq!(reply.usage, Some(Usage { prompt_tokens: 7, completion_tokens: 3 }));
        assert_eq!((reply.finish, reply.model.as_str()), (Finish::ToolCalls, "tiny-1"));
        let message = reply.message;
        assert_eq!((message.content.as_str(), message.reasoning.as_deref()), ("I look.", Some("Hm.")));
        assert_eq!(message.signature.as_deref(), Some("SIG"));
        assert_eq!(message.tool_calls[0].id, "c1");
        message.tool_calls[0].arguments.clone()
    };
    let arguments = check(
        "responses",
        "/v1/responses",
        &format!("authorization: bearer {KEY}"),
        json!({
            "object": "response", "model": "tiny-1", "error": null,
            "output": [
                { "type": "reasoning", "id": "r", "encrypted_content": "SIG",
                  "summary": [{ "type": "summary_text", "text": "Hm." }] },
                { "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "I look." }] },
                { "type": "function_call", "id": "f", "call_id": "c1", "name": "sh", "arguments": "{\"z\": 1}" },
            ],
            "usage": { "input_tokens": 7, "output_tokens": 3, "total_tokens": 10 },
        }),
    )
    .await;
    assert_eq!(arguments, "{\"z\": 1}");
    let arguments = check(
        "messages",
        "/v1/messages",
        &format!("x-api-key: {KEY}"),
        json!({
            "type": "message", "model": "tiny-1", "stop_reason": "tool_use",
            "content": [
                { "type": "thinking", "thinking": "Hm.", "signature": "SIG" },
                { "type": "text", "text": "I look." },
                { "type": "tool_use", "id": "c1", "name": "sh", "input": { "z": 1 } },
            ],
            "usage": { "input_tokens": 2, "cache_read_input_tokens": 5, "output_tokens": 3 },
        }),
    )
    .await;
    assert_eq!(arguments, "{\"z\":1}");
}

#[tokio::test]
async fn what_a_protocol_lacks_is_named() {
    let check = async |api: &str, request: ChatRequest, says: &str| {
        let (_dir, models) = models("http://127.0.0.1:1/v1", api);
        let error = models.call(&site(0), &request).await.unwrap_err();
        assert!(matches!(error, CallError::Unsupported { .. }), "{error}");
        assert!(error.to_string().contains(says), "{error}");
    };
    let stop = || ChatRequest { stop: vec!["END".into()], ..ChatRequest::of(vec![ChatMessage::user("hi")]) };
    let continued = || ChatRequest::continuation("Once".into(), Vec::new());
    check("responses", stop(), "has no stop sequences").await;
    check("responses", continued(), "continues no text").await;
    check("messages", continued(), "continues no text").await;
}
