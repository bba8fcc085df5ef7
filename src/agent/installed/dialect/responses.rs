//! OpenAI's Responses API.

use serde::Deserialize;
use serde_json::{Value, json};

use super::response_tools::{SentTool, Tools};
use super::{Dialect, Form, Operation, Parsed, Refusal, RefusalKind, Voice, chat};
use crate::agent::installed::http::{self, Request};
use crate::llm::protocol::content::{Content, Unsigned};
use crate::llm::protocol::responses::{Item, read_items, write_said};
use crate::llm::{ChatMessage, ChatRequest, Finish, Reply};

pub(super) static DIALECT: Dialect = Dialect {
    name: "responses",
    operation: |path| match path {
        _ if path.ends_with("/responses") => Some(Operation::Generate),
        _ if path.ends_with("/responses/input_tokens") => Some(Operation::CountTokens),
        _ => None,
    },
    read,
    counted: |tokens| json!({ "object": "response.input_tokens", "input_tokens": tokens }).to_string(),
    refusal: |refusal| {
        let status = match refusal.kind {
            // Codex tries again after 403, but not after this.
            RefusalKind::Limit => 400,
            kind => kind.status(),
        };
        (status, chat::error(refusal).to_string())
    },
};

/// The fields of a request that are used.
#[derive(Deserialize)]
struct Sent {
    input: Content<Item>,
    #[serde(default)]
    instructions: Option<String>,
    #[serde(default)]
    previous_response_id: Option<String>,
    #[serde(default)]
    tools: Option<Vec<SentTool>>,
    #[serde(default)]
    tool_choice: Value,
    #[serde(default)]
    max_output_tokens: Option<u32>,
    #[serde(default)]
    stream: Option<bool>,
}

fn read(request: &Request) -> Result<Parsed, String> {
    let sent: Sent = serde_json::from_slice(&request.body).map_err(|error| error.to_string())?;
    if sent.previous_response_id.is_some() {
        return Err("responses are not stored: send the whole conversation as `input`".to_owned());
    }
    let tools = Tools::of(sent.tools.unwrap_or_default());
    let mut messages: Vec<_> = sent.instructions.map(ChatMessage::system).into_iter().collect();
    match sent.input {
        Content::Text(text) => messages.push(ChatMessage::user(text)),
        Content::Parts(items) => {
            messages.extend(read_items(items, &|namespace, name| tools.flat(namespace, name))?);
        }
    }
    let id = blake3::hash(&request.body).to_hex()[..24].to_owned();
    let request = ChatRequest {
        messages,
        tools: tools.definitions(),
        no_tool_calls: sent.tool_choice == "none",
        max_tokens: sent.max_output_tokens,
        ..ChatRequest::default()
    };
    let voice = Responses { id, tools, sent: 0 };
    Ok(Parsed { request, form: Form::of(sent.stream), voice: Box::new(voice) })
}

/// Writes a response.
#[derive(Debug)]
struct Responses {
    /// Derived from the request, since the first event is sent before there is a reply.
    id: String,
    tools: Tools,
    /// Events that were sent.
    sent: u64,
}

impl Responses {
    /// A response without a reply yet.
    fn begun(&self) -> Value {
        json!({
            "id": format!("resp_{}", self.id), "object": "response", "created_at": 0,
            "status": "in_progress", "model": "", "output": [], "usage": null, "error": null,
            "incomplete_details": null, "instructions": null, "metadata": {},
            "parallel_tool_calls": true, "temperature": null, "top_p": null, "tool_choice": "auto",
            "tools": [], "store": false,
        })
    }

    fn response(&self, reply: &Reply) -> Value {
        let mut response = self.begun();
        response["model"] = json!(reply.model);
        response["output"] = json!(self.output(&reply.message));
        response["usage"] = usage(reply);
        match incomplete(&reply.finish) {
            None => response["status"] = json!("completed"),
            Some(reason) => {
                response["status"] = json!("incomplete");
                response["incomplete_details"] = json!({ "reason": reason });
            }
        }
        response
    }

    fn output(&self, message: &ChatMessage) -> Vec<Value> {
        let calls = message.tool_calls.iter().map(|call| self.tools.call(call));
        let items = write_said(message, Unsigned::Marked).into_iter().chain(calls);
        let with_ids = items.enumerate().map(|(index, mut item)| {
            let kind = Output::of(&item);
            item["id"] = json!(format!("{}_{}_{index}", kind.prefix(), self.id));
            if kind != Output::Reasoning {
                item["status"] = json!("completed");
            }
            item
        });
        with_ids.collect()
    }

    fn event(&mut self, kind: &str, mut data: Value) -> String {
        data["type"] = json!(kind);
        data["sequence_number"] = json!(self.sent);
        self.sent += 1;
        http::event(Some(kind), &data.to_string())
    }

    /// The first event, if it was not sent yet.
    fn created(&mut self) -> String {
        if self.sent > 0 {
            return String::new();
        }
        let response = self.begun();
        self.event("response.created", json!({ "response": response }))
    }

    /// The events of an item.
    fn item(&mut self, index: usize, item: &Value) -> String {
        let mut begun = item.clone();
        if let Some(status) = begun.get_mut("status") {
            *status = json!("in_progress");
        }
        let (id, at) = (&item["id"], json!(index));
        let kind = Output::of(item);
        let place = |rest: Value| {
            let mut data = json!({ "item_id": id, "output_index": at });
            if let (Value::Object(data), Value::Object(rest)) = (&mut data, rest) {
                data.extend(rest);
            }
            data
        };
        // The events of the parts, and what the item lacks before them.
        let inner: Vec<(&str, Value)> = match kind {
            Output::Reasoning => {
                begun["summary"] = json!([]);
                let (part, text) = (&item["summary"][0], &item["summary"][0]["text"]);
                let empty = json!({ "type": "summary_text", "text": "" });
                vec![
                    ("response.reasoning_summary_part.added", json!({ "summary_index": 0, "part": empty })),
                    ("response.reasoning_summary_text.delta", json!({ "summary_index": 0, "delta": text })),
                    ("response.reasoning_summary_text.done", json!({ "summary_index": 0, "text": text })),
                    ("response.reasoning_summary_part.done", json!({ "summary_index": 0, "part": part })),
                ]
            }
            Output::Message => {
                begun["content"] = json!([]);
                let (part, text) = (&item["content"][0], &item["content"][0]["text"]);
                let empty = json!({ "type": "output_text", "text": "", "annotations": [] });
                vec![
                    ("response.content_part.added", json!({ "content_index": 0, "part": empty })),
                    (
                        "response.output_text.delta",
                        json!({ "content_index": 0, "delta": text, "logprobs": [] }),
                    ),
                    (
                        "response.output_text.done",
                        json!({ "content_index": 0, "text": text, "logprobs": [] }),
                    ),
                    ("response.content_part.done", json!({ "content_index": 0, "part": part })),
                ]
            }
            Output::Function => {
                begun["arguments"] = json!("");
                let arguments = &item["arguments"];
                vec![
                    ("response.function_call_arguments.delta", json!({ "delta": arguments })),
                    (
                        "response.function_call_arguments.done",
                        json!({ "arguments": arguments, "name": item["name"] }),
                    ),
                ]
            }
            Output::Custom => {
                begun["input"] = json!("");
                let input = &item["input"];
                vec![
                    ("response.custom_tool_call_input.delta", json!({ "delta": input })),
                    ("response.custom_tool_call_input.done", json!({ "input": input })),
                ]
            }
            Output::Shell => Vec::new(),
        };
        let inner: Vec<_> = inner.into_iter().map(|(kind, data)| (kind, place(data))).collect();
        let mut out =
            self.event("response.output_item.added", json!({ "output_index": index, "item": begun }));
        for (kind, data) in inner {
            out += &self.event(kind, data);
        }
        out + &self.event("response.output_item.done", json!({ "output_index": index, "item": item }))
    }
}

impl Voice for Responses {
    fn whole(&mut self, reply: &Reply) -> String {
        self.response(reply).to_string()
    }

    fn events(&mut self, reply: &Reply) -> String {
        let response = self.response(reply);
        let mut out = self.created();
        for (index, item) in self.output(&reply.message).iter().enumerate() {
            out += &self.item(index, item);
        }
        let end = match incomplete(&reply.finish) {
            None => "response.completed",
            Some(_) => "response.incomplete",
        };
        out + &self.event(end, json!({ "response": response }))
    }

    /// Codex counts only events, so that a comment would not do.
    fn alive(&mut self) -> String {
        let created = self.created();
        if !created.is_empty() {
            return created;
        }
        let response = self.begun();
        self.event("response.in_progress", json!({ "response": response }))
    }

    fn refused(&mut self, refusal: &Refusal) -> String {
        let mut response = self.begun();
        let code = match refusal.kind {
            RefusalKind::ContextLength => "context_length_exceeded",
            // Codex tries again after other codes.
            _ => "invalid_prompt",
        };
        response["status"] = json!("failed");
        response["error"] = json!({ "code": code, "message": refusal.message });
        self.created() + &self.event("response.failed", json!({ "response": response }))
    }

    fn streams(&self, refusal: RefusalKind) -> bool {
        // Codex shortens its history after such an event, and gives up after a status.
        refusal == RefusalKind::ContextLength
    }
}

/// The kinds of items that are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Output {
    Reasoning,
    Message,
    Function,
    Custom,
    Shell,
}

impl Output {
    fn of(item: &Value) -> Self {
        match item["type"].as_str() {
            Some("reasoning") => Self::Reasoning,
            Some("function_call") => Self::Function,
            Some("custom_tool_call") => Self::Custom,
            Some("local_shell_call") => Self::Shell,
            _ => Self::Message,
        }
    }

    /// The start of an item's id.
    fn prefix(self) -> &'static str {
        match self {
            Self::Reasoning => "rs",
            Self::Message => "msg",
            Self::Function => "fc",
            Self::Custom => "ctc",
            Self::Shell => "lsh",
        }
    }
}

/// Why a response is incomplete, in the words of the protocol.
fn incomplete(finish: &Finish) -> Option<&'static str> {
    match finish {
        Finish::Length => Some("max_output_tokens"),
        Finish::ContentFilter => Some("content_filter"),
        Finish::Stop | Finish::ToolCalls | Finish::Other(_) => None,
    }
}

fn usage(reply: &Reply) -> Value {
    json!(reply.usage.map(|usage| {
        let (input, output) = (usage.prompt_tokens, usage.completion_tokens);
        json!({
            "input_tokens": input, "input_tokens_details": { "cached_tokens": 0 },
            "output_tokens": output, "output_tokens_details": { "reasoning_tokens": 0 },
            "total_tokens": input + output,
        })
    }))
}
