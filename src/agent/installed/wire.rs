//! HTTP and OpenAI's chat protocol: the requests of agents' clients, and the responses to them.

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

/// Most header lines of a request. OpenAI's clients send about twenty.
const MAX_HEADERS: usize = 100;

/// Parses a complete HTTP/1.1 request.
pub(super) fn request(bytes: &[u8]) -> Option<Request<'_>> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut head = httparse::Request::new(&mut headers);
    let httparse::Status::Complete(end) = head.parse(bytes).ok()? else { return None };
    let (method, path) = (head.method?, head.path?);
    let chunked = head.headers.iter().any(|header| {
        header.name.eq_ignore_ascii_case("transfer-encoding")
            && header.value.to_ascii_lowercase().ends_with(b"chunked")
    });
    let body = bytes.get(end..)?;
    let body = if chunked { unchunked(body)? } else { body.to_vec() };
    Some(Request { method, path: path.split('?').next()?, body })
}

fn unchunked(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let httparse::Status::Complete((start, size)) = httparse::parse_chunk_size(rest).ok()? else {
            return None;
        };
        let size = usize::try_from(size).ok()?;
        rest = rest.get(start..)?;
        if size == 0 {
            return Some(body);
        }
        body.extend_from_slice(rest.get(..size)?);
        rest = rest.get(size.checked_add(2)?..)?;
    }
}

/// A response with its head.
pub(super) fn response(status: u16, kind: &str, body: &str) -> Vec<u8> {
    let reason = if status == 200 { "OK" } else { "Error" };
    let head = format!(
        "HTTP/1.1 {status} {reason}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body.as_bytes()].concat()
}

/// An error in the form that OpenAI's clients expect.
pub(super) fn error(status: u16, message: &str) -> Vec<u8> {
    let body = json!({ "error": { "message": message, "type": "invalid_request_error", "code": null } });
    response(status, "application/json", &body.to_string())
}

/// The fields of a chat request that are used. Model and sampling are the role's, whatever the client sends.
#[derive(Deserialize)]
struct Client {
    messages: Vec<ClientMessage>,
    #[serde(default)]
    tools: Option<Vec<ClientTool>>,
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
struct ClientMessage {
    role: String,
    #[serde(default)]
    content: Value,
    #[serde(default)]
    reasoning_content: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<ClientCall>>,
    #[serde(default)]
    tool_call_id: Option<String>,
}

#[derive(Deserialize)]
struct ClientCall {
    id: String,
    function: ClientFunction,
}

#[derive(Deserialize)]
struct ClientFunction {
    name: String,
    arguments: String,
}

#[derive(Deserialize)]
struct ClientTool {
    function: Tool,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Stop {
    One(String),
    Several(Vec<String>),
}

/// How a client expects its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResponseForm {
    Json,
    /// Server-sent events (`stream: true`), all at once.
    EventStream,
}

/// A client's chat request.
pub(super) fn chat(body: &[u8]) -> Result<(ChatRequest, ResponseForm), String> {
    let sent: Client = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let messages = sent.messages.into_iter().map(message).collect::<Result<_, _>>()?;
    let request = ChatRequest {
        messages,
        tools: sent.tools.into_iter().flatten().map(|tool| tool.function).collect(),
        stop: match sent.stop {
            None => Vec::new(),
            Some(Stop::One(stop)) => vec![stop],
            Some(Stop::Several(stops)) => stops,
        },
        max_tokens: sent.max_tokens.or(sent.max_completion_tokens),
        ..ChatRequest::default()
    };
    Ok((request, if sent.stream == Some(true) { ResponseForm::EventStream } else { ResponseForm::Json }))
}

fn message(sent: ClientMessage) -> Result<ChatMessage, String> {
    let role = match sent.role.as_str() {
        "system" | "developer" => ChatRole::System,
        "user" => ChatRole::User,
        "assistant" => ChatRole::Assistant,
        "tool" => ChatRole::Tool,
        other => return Err(format!("messages of role `{other}` are not supported")),
    };
    let calls = sent.tool_calls.into_iter().flatten();
    Ok(ChatMessage {
        role,
        content: text(&sent.content)?,
        reasoning: sent.reasoning_content,
        tool_calls: calls
            .map(|call| ToolCall {
                id: call.id,
                name: call.function.name,
                arguments: call.function.arguments,
            })
            .collect(),
        tool_call_id: sent.tool_call_id,
    })
}

/// A string, or the joined text of several parts.
fn text(content: &Value) -> Result<String, String> {
    match content {
        Value::Null => Ok(String::new()),
        Value::String(text) => Ok(text.clone()),
        Value::Array(parts) => parts
            .iter()
            .map(|part| {
                part.get("text").and_then(Value::as_str).ok_or("only text parts are supported".to_owned())
            })
            .collect::<Result<Vec<_>, _>>()
            .map(|parts| parts.concat()),
        _ => Err("`content` is neither text nor parts".to_owned()),
    }
}

/// The response to a chat request.
pub(super) fn completion(reply: &Reply, form: ResponseForm) -> Vec<u8> {
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
            ResponseForm::Json => json!({ "id": call.id, "type": "function", "function": function }),
            ResponseForm::EventStream => {
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
        ResponseForm::Json => {
            let choice = json!({ "index": 0, "message": message, "finish_reason": finish });
            response(200, "application/json", &envelope("chat.completion", choice, json!(usage)).to_string())
        }
        ResponseForm::EventStream => {
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
        check(
            "POST /c HTTP/1.1\r\ntransfer-encoding: gzip, Chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
            Some(("POST", "/c", "a")),
        );
        // A header value that contains `chunked`, and a body that looks like the end of a chunk.
        check(
            "POST /c HTTP/1.1\r\nX-Note: transfer-encoding: chunked\r\n\r\n0\r\n\r\n",
            Some(("POST", "/c", "0\r\n\r\n")),
        );
        check("POST /c HTTP/1.1\r\nHost: x\r\n", None);
        check("POST /c", None);
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
        assert_eq!(form, ResponseForm::EventStream);
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
