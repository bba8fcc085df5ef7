//! HTTP and OpenAI's chat protocol, as far as agents' clients speak it to a server.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::llm::{ChatMessage, ChatRequest, ChatRole, Finish, Reply, Tool, ToolCall};

/// A request, as an agent's client sent it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request<'a> {
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    pub(super) body: Vec<u8>,
}

/// Reads a whole HTTP/1.1 request.
pub(super) fn request(bytes: &[u8]) -> Option<Request<'_>> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = std::str::from_utf8(bytes.get(..end)?).ok()?;
    let body = bytes.get(end + 4..)?;
    let mut lines = head.split("\r\n");
    let mut first = lines.next()?.split(' ');
    let (method, path) = (first.next()?, first.next()?);
    let chunked = lines.any(|line| {
        let line = line.to_ascii_lowercase();
        line.starts_with("transfer-encoding:") && line.contains("chunked")
    });
    let body = if chunked { unchunked(body)? } else { body.to_vec() };
    Some(Request { method, path: path.split('?').next()?, body })
}

fn unchunked(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line = rest.windows(2).position(|window| window == b"\r\n")?;
        let size = std::str::from_utf8(rest.get(..line)?).ok()?;
        let size = usize::from_str_radix(size.split(';').next()?.trim(), 16).ok()?;
        rest = rest.get(line + 2..)?;
        if size == 0 {
            return Some(body);
        }
        body.extend_from_slice(rest.get(..size)?);
        rest = rest.get(size.checked_add(2)?..)?;
    }
}

/// An answer with its head.
pub(super) fn response(status: u16, kind: &str, body: &str) -> Vec<u8> {
    let reason = if status == 200 { "OK" } else { "Error" };
    let head = format!(
        "HTTP/1.1 {status} {reason}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body.as_bytes()].concat()
}

/// An error in the form that clients read.
pub(super) fn error(status: u16, message: &str) -> Vec<u8> {
    let body = json!({ "error": { "message": message, "type": "invalid_request_error", "code": null } });
    response(status, "application/json", &body.to_string())
}

/// What of a chat request is passed on. Model and sampling are the role's, whatever the client asks for.
#[derive(Deserialize)]
struct Asked {
    messages: Vec<AskedMessage>,
    #[serde(default)]
    tools: Option<Vec<AskedTool>>,
    #[serde(default)]
    stop: Option<Stop>,
    #[serde(default)]
    max_tokens: Option<u32>,
    #[serde(default)]
    max_completion_tokens: Option<u32>,
    #[serde(default)]
    stream: Option<bool>,
}

#[derive(Deserialize)]
struct AskedMessage {
    role: String,
    #[serde(default)]
    content: Value,
    #[serde(default)]
    reasoning_content: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<AskedCall>>,
    #[serde(default)]
    tool_call_id: Option<String>,
}

#[derive(Deserialize)]
struct AskedCall {
    id: String,
    function: AskedFunction,
}

#[derive(Deserialize)]
struct AskedFunction {
    name: String,
    arguments: String,
}

#[derive(Deserialize)]
struct AskedTool {
    function: Tool,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Stop {
    One(String),
    Several(Vec<String>),
}

/// How a client wants its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Whole,
    /// Server-sent events, all at once.
    Events,
}

/// A client's chat request.
pub(super) fn chat(body: &[u8]) -> Result<(ChatRequest, Form), String> {
    let asked: Asked = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let messages = asked.messages.into_iter().map(message).collect::<Result<_, _>>()?;
    let request = ChatRequest {
        messages,
        tools: asked.tools.into_iter().flatten().map(|tool| tool.function).collect(),
        stop: match asked.stop {
            None => Vec::new(),
            Some(Stop::One(stop)) => vec![stop],
            Some(Stop::Several(stops)) => stops,
        },
        max_tokens: asked.max_tokens.or(asked.max_completion_tokens),
        ..ChatRequest::default()
    };
    Ok((request, if asked.stream == Some(true) { Form::Events } else { Form::Whole }))
}

fn message(asked: AskedMessage) -> Result<ChatMessage, String> {
    let role = match asked.role.as_str() {
        "system" | "developer" => ChatRole::System,
        "user" => ChatRole::User,
        "assistant" => ChatRole::Assistant,
        "tool" => ChatRole::Tool,
        other => return Err(format!("messages of the role `{other}` are not passed on")),
    };
    let calls = asked.tool_calls.into_iter().flatten();
    Ok(ChatMessage {
        role,
        content: text(&asked.content)?,
        reasoning: asked.reasoning_content,
        tool_calls: calls
            .map(|call| ToolCall {
                id: call.id,
                name: call.function.name,
                arguments: call.function.arguments,
            })
            .collect(),
        tool_call_id: asked.tool_call_id,
    })
}

/// A text, or the texts of several parts.
fn text(content: &Value) -> Result<String, String> {
    match content {
        Value::Null => Ok(String::new()),
        Value::String(text) => Ok(text.clone()),
        Value::Array(parts) => parts
            .iter()
            .map(|part| part.get("text").and_then(Value::as_str).ok_or("only text is passed on".to_owned()))
            .collect::<Result<Vec<_>, _>>()
            .map(|parts| parts.concat()),
        _ => Err("`content` is neither text nor parts".to_owned()),
    }
}

/// The answer to a chat request.
pub(super) fn answer(reply: &Reply, form: Form) -> Vec<u8> {
    let finish = match &reply.finish {
        Finish::Stop => "stop",
        Finish::Length => "length",
        Finish::ToolCalls => "tool_calls",
        Finish::ContentFilter => "content_filter",
        Finish::Other(word) => word,
    };
    let usage = reply.usage.map(|usage| {
        let (prompt, completion) = (usage.prompt_tokens, usage.completion_tokens);
        json!({ "prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion })
    });
    let mut message = json!({ "role": "assistant", "content": reply.message.content });
    if let Some(reasoning) = &reply.message.reasoning {
        message["reasoning_content"] = json!(reasoning);
    }
    let calls = reply.message.tool_calls.iter().enumerate().map(|(index, call)| {
        let function = json!({ "name": call.name, "arguments": call.arguments });
        match form {
            Form::Whole => json!({ "id": call.id, "type": "function", "function": function }),
            Form::Events => {
                json!({ "index": index, "id": call.id, "type": "function", "function": function })
            }
        }
    });
    let calls: Vec<_> = calls.collect();
    if !calls.is_empty() {
        message["tool_calls"] = Value::Array(calls);
    }
    let id = format!("chatcmpl-{}", reply.key.as_str().get(..16).unwrap_or_default());
    let envelope = |object: &str, choice: Value, usage: Value| {
        json!({
            "id": id, "object": object, "created": 0, "model": reply.model, "choices": [choice], "usage": usage,
        })
    };
    match form {
        Form::Whole => {
            let choice = json!({ "index": 0, "message": message, "finish_reason": finish });
            response(200, "application/json", &envelope("chat.completion", choice, json!(usage)).to_string())
        }
        Form::Events => {
            let assistant = json!({ "index": 0, "delta": message, "finish_reason": null });
            let end = json!({ "index": 0, "delta": {}, "finish_reason": finish });
            let events = [(assistant, Value::Null), (end, json!(usage))].map(|(choice, usage)| {
                format!("data: {}\n\n", envelope("chat.completion.chunk", choice, usage))
            });
            response(200, "text/event-stream", &format!("{}data: [DONE]\n\n", events.concat()))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn requests_are_read() {
        let check = |text: &str, expect: Option<(&str, &str, &str)>| {
            let found = request(text.as_bytes());
            let found = found
                .as_ref()
                .map(|found| (found.method, found.path, std::str::from_utf8(&found.body).unwrap()));
            assert_eq!(found, expect, "{text:?}");
        };
        check("GET /v1/models?x=1 HTTP/1.1\r\nHost: x\r\n\r\n", Some(("GET", "/v1/models", "")));
        check("POST /v1/c HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}", Some(("POST", "/v1/c", "{}")));
        check(
            "POST /c HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1;x=y\r\nc\r\n0\r\n\r\n",
            Some(("POST", "/c", "abc")),
        );
        check("POST /c HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nab", None);
        check("nonsense", None);
        check("\r\n\r\n", None);
    }

    #[test]
    fn chats_are_read() {
        let read = |body: Value| chat(body.to_string().as_bytes());
        let (request, form) = read(json!({
            "model": "whatever", "stream": true, "stop": "END", "max_completion_tokens": 7, "temperature": 2,
            "messages": [
                { "role": "developer", "content": "be brief" },
                { "role": "user", "content": [{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }] },
                { "role": "assistant", "content": null, "tool_calls": [
                    { "id": "c1", "type": "function", "function": { "name": "sh", "arguments": "{}" } }] },
                { "role": "tool", "tool_call_id": "c1", "content": "out" },
            ],
            "tools": [{ "type": "function", "function": { "name": "sh", "description": "d", "parameters": {} } }],
        }))
        .unwrap();
        assert_eq!(form, Form::Events);
        assert_eq!((request.stop.as_slice(), request.max_tokens), (&["END".to_owned()][..], Some(7)));
        let texts: Vec<_> = request.messages.iter().map(|message| message.content.as_str()).collect();
        assert_eq!(texts, ["be brief", "ab", "", "out"]);
        assert_eq!(request.messages[2].tool_calls[0].name, "sh");
        assert_eq!(request.messages[3].tool_call_id.as_deref(), Some("c1"));
        assert_eq!(request.tools.len(), 1);
        assert!(
            read(json!({ "messages": [{ "role": "user", "content": [{ "type": "image_url" }] }] })).is_err()
        );
        assert!(read(json!({ "messages": [{ "role": "critic", "content": "x" }] })).is_err());
        assert!(chat(b"{").is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_can_be_read(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = request(&bytes);
            let _ = chat(&bytes);
        }
    }
}
