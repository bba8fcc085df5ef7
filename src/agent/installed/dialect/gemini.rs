//! Gemini's `generateContent`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::gemini_schema::json_schema;
use super::{Dialect, Form, Operation, Parsed, Refusal, RefusalKind, Voice};
use crate::agent::installed::http::{self, Request};
use crate::llm::protocol::content::{Arguments, Gathered, data_url};
use crate::llm::{ChatMessage, ChatRequest, ChatRole, Finish, Reply, Tool, ToolCall};

pub(super) static DIALECT: Dialect = Dialect {
    name: "gemini",
    operation: |path| match path.rsplit_once(':') {
        Some((_, "generateContent" | "streamGenerateContent")) => Some(Operation::Generate),
        Some((_, "countTokens")) => Some(Operation::CountTokens),
        Some(_) | None => None,
    },
    read,
    counted: |tokens| json!({ "totalTokens": tokens }).to_string(),
    refusal: |refusal| (refusal.kind.status(), error(refusal).to_string()),
};

/// Between two texts of a content.
const BETWEEN_TEXTS: &str = "\n";

/// The fields of a request that are used. Google's own clients write some names with underscores.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Sent<'a> {
    #[serde(borrow)]
    contents: Vec<Contents<'a>>,
    #[serde(borrow, default, alias = "system_instruction")]
    system_instruction: Option<Contents<'a>>,
    #[serde(default)]
    tools: Option<Vec<SentTools>>,
    #[serde(default, alias = "tool_config")]
    tool_config: Option<ToolConfig>,
    #[serde(default, alias = "generation_config")]
    generation_config: Option<GenerationConfig>,
}

#[derive(Deserialize)]
struct Contents<'a> {
    #[serde(default)]
    role: Option<String>,
    #[serde(borrow, default)]
    parts: Vec<Part<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    thought: Option<bool>,
    #[serde(default, alias = "thought_signature")]
    thought_signature: Option<String>,
    #[serde(default, alias = "inline_data")]
    inline_data: Option<Blob>,
    #[serde(borrow, default, alias = "function_call")]
    function_call: Option<FunctionCall<'a>>,
    #[serde(borrow, default, alias = "function_response")]
    function_response: Option<FunctionResponse<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Blob {
    #[serde(alias = "mime_type")]
    mime_type: String,
    data: String,
}

#[derive(Deserialize)]
struct FunctionCall<'a> {
    #[serde(default)]
    id: Option<String>,
    name: String,
    #[serde(borrow, default)]
    args: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct FunctionResponse<'a> {
    #[serde(default)]
    id: Option<String>,
    name: String,
    #[serde(borrow, default)]
    response: Option<&'a RawValue>,
    #[serde(borrow, default)]
    parts: Option<Vec<Part<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SentTools {
    #[serde(default, alias = "function_declarations")]
    function_declarations: Option<Vec<Declaration>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Declaration {
    name: String,
    #[serde(default)]
    description: Option<String>,
    /// In Gemini's own form of a schema.
    #[serde(default)]
    parameters: Option<Value>,
    #[serde(default, alias = "parameters_json_schema")]
    parameters_json_schema: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolConfig {
    #[serde(default, alias = "function_calling_config")]
    function_calling_config: Option<CallingConfig>,
}

#[derive(Deserialize)]
struct CallingConfig {
    #[serde(default)]
    mode: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct GenerationConfig {
    #[serde(alias = "max_output_tokens")]
    max_output_tokens: Option<u32>,
    #[serde(alias = "stop_sequences")]
    stop_sequences: Option<Vec<String>>,
    #[serde(alias = "thinking_config")]
    thinking_config: Option<ThinkingConfig>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ThinkingConfig {
    #[serde(default, alias = "include_thoughts")]
    include_thoughts: Option<bool>,
}

fn read(request: &Request) -> Result<Parsed, String> {
    let sent: Sent<'_> = serde_json::from_slice(&request.body).map_err(|error| error.to_string())?;
    let config = sent.generation_config.unwrap_or_default();
    let mut history = History::default();
    if let Some(system) = sent.system_instruction {
        history.add(ChatRole::System, system.parts)?;
    }
    for Contents { role, parts } in sent.contents {
        match role.as_deref() {
            None | Some("user" | "function") => history.add(ChatRole::User, parts)?,
            Some("model") => history.add(ChatRole::Assistant, parts)?,
            Some(other) => return Err(format!("contents of role `{other}` are not supported")),
        }
    }
    let declared = sent.tools.into_iter().flatten().filter_map(|tools| tools.function_declarations).flatten();
    let mode = sent.tool_config.and_then(|config| config.function_calling_config?.mode);
    // Without `alt=sse`, the stream is a list.
    let is_stream = request.path.ends_with(":streamGenerateContent");
    let is_events = request.query.split('&').any(|field| field == "alt=sse");
    let form = if is_stream && is_events { Form::Stream } else { Form::Whole };
    let whole = if is_stream { Whole::List } else { Whole::Object };
    let shows = config.thinking_config.is_some_and(|thinking| thinking.include_thoughts == Some(true));
    let thoughts = if shows { Thoughts::Shown } else { Thoughts::Hidden };
    let request = ChatRequest {
        messages: history.messages,
        tools: declared.map(tool).collect(),
        no_tool_calls: mode.as_deref() == Some("NONE"),
        stop: config.stop_sequences.unwrap_or_default(),
        max_tokens: config.max_output_tokens,
        ..ChatRequest::default()
    };
    Ok(Parsed { request, form, voice: Box::new(Gemini { whole, thoughts }) })
}

fn tool(sent: Declaration) -> Tool {
    let parameters = sent.parameters_json_schema.or_else(|| sent.parameters.map(json_schema));
    Tool {
        name: sent.name,
        description: sent.description.unwrap_or_default(),
        parameters: parameters.unwrap_or_else(|| json!({})),
    }
}

/// A conversation that is being read.
#[derive(Default)]
struct History {
    messages: Vec<ChatMessage>,
    /// Ids of calls without a result yet, by the name of the function. Clients may leave ids out.
    open: BTreeMap<String, Vec<String>>,
    calls: usize,
}

impl History {
    fn add(&mut self, role: ChatRole, parts: Vec<Part<'_>>) -> Result<(), String> {
        let mut said = Gathered::default();
        let mut message = ChatMessage::text(role, "");
        let mut has_results = false;
        for part in parts {
            if let Some(call) = part.function_call {
                message.tool_calls.push(self.call(call));
            } else if let Some(result) = part.function_response {
                let result = self.result(result)?;
                self.messages.push(result);
                has_results = true;
            } else if let Some(text) = part.text {
                if part.thought == Some(true) {
                    message.reasoning.get_or_insert_default().push_str(&text);
                } else {
                    said.text(&text, BETWEEN_TEXTS);
                }
            } else if let Some(Blob { mime_type, data }) = part.inline_data {
                said.image(data_url(&mime_type, &data));
            } else if part.thought_signature.is_none() {
                return Err("only parts with text, inline data and functions are supported".to_owned());
            }
            message.signature = message.signature.or(part.thought_signature);
        }
        if !said.is_empty() || !has_results {
            self.messages.push(said.into_message(message));
        }
        Ok(())
    }

    fn call(&mut self, call: FunctionCall<'_>) -> ToolCall {
        let id = call.id.unwrap_or_else(|| format!("call_{}", self.calls));
        self.calls += 1;
        self.open.entry(call.name.clone()).or_default().push(id.clone());
        ToolCall { id, name: call.name, arguments: call.args.map_or("{}", RawValue::get).to_owned() }
    }

    fn result(&mut self, sent: FunctionResponse<'_>) -> Result<ChatMessage, String> {
        let open = self.open.entry(sent.name.clone()).or_default();
        let place = match &sent.id {
            Some(id) => open.iter().position(|other| other == id),
            None if open.is_empty() => None,
            None => Some(0),
        };
        let found = place.map(|place| open.remove(place));
        let id = sent.id.or(found).unwrap_or(sent.name);
        let (text, tool_failed) = shown(sent.response.map_or("{}", RawValue::get));
        let mut all = Gathered::default();
        all.text(&text, BETWEEN_TEXTS);
        for part in sent.parts.into_iter().flatten() {
            let blob = part.inline_data.ok_or("results of functions may only have inline data")?;
            all.image(data_url(&blob.mime_type, &blob.data));
        }
        Ok(all.into_message(ChatMessage { tool_failed, ..ChatMessage::tool(id, "") }))
    }
}

/// The text of a function's result, and whether it is an error. A result must be an object. Clients
/// put a text into its field `output` or `error`.
fn shown(response: &str) -> (String, bool) {
    #[derive(Deserialize)]
    #[serde(untagged, deny_unknown_fields)]
    enum Usual {
        Output { output: String },
        Error { error: String },
    }
    match serde_json::from_str(response) {
        Ok(Usual::Output { output }) => (output, false),
        Ok(Usual::Error { error }) => (error, true),
        Err(_) => (response.to_owned(), false),
    }
}

/// Whether the client asked for thoughts. Others do not expect any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Thoughts {
    Shown,
    Hidden,
}

/// The form of a reply that is no stream of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whole {
    Object,
    List,
}

/// Writes a `GenerateContentResponse`.
#[derive(Debug)]
struct Gemini {
    whole: Whole,
    thoughts: Thoughts,
}

/// Raw arguments keep their order only in typed fields.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Response<'a> {
    candidates: [Candidate<'a>; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    usage_metadata: Option<Value>,
    model_version: &'a str,
    response_id: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'a> {
    content: WrittenContent<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    finish_reason: Option<&'static str>,
    index: u32,
}

#[derive(Serialize)]
struct WrittenContent<'a> {
    role: &'static str,
    parts: Vec<WrittenPart<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase", untagged)]
enum WrittenPart<'a> {
    Thought {
        text: &'a str,
        thought: bool,
    },
    Text {
        text: &'a str,
    },
    #[serde(rename_all = "camelCase")]
    Call {
        function_call: WrittenCall<'a>,
    },
}

#[derive(Serialize)]
struct WrittenCall<'a> {
    id: &'a str,
    name: &'a str,
    args: Arguments<'a>,
}

impl Gemini {
    fn parts<'r>(&self, reply: &'r Reply) -> Vec<WrittenPart<'r>> {
        let message = &reply.message;
        let thoughts = message.reasoning.as_deref().filter(|_| self.thoughts == Thoughts::Shown);
        let mut parts: Vec<_> =
            thoughts.map(|text| WrittenPart::Thought { text, thought: true }).into_iter().collect();
        if !message.content.is_empty() || message.tool_calls.is_empty() {
            parts.push(WrittenPart::Text { text: &message.content });
        }
        parts.extend(message.tool_calls.iter().map(|call| WrittenPart::Call {
            function_call: WrittenCall { id: &call.id, name: &call.name, args: Arguments(&call.arguments) },
        }));
        parts
    }

    fn response(reply: &Reply, parts: Vec<WrittenPart<'_>>, place: Place) -> String {
        let is_last = place == Place::Last;
        let content = WrittenContent { role: "model", parts };
        let finish_reason = is_last.then(|| finish_reason(reply));
        let response = Response {
            candidates: [Candidate { content, finish_reason, index: 0 }],
            usage_metadata: usage(reply).filter(|_| is_last),
            model_version: &reply.model,
            response_id: reply.key.as_str().get(..24).unwrap_or_default().to_owned(),
        };
        serde_json::to_string(&response).unwrap_or_default()
    }
}

/// The place of a part in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Before,
    Last,
}

impl Voice for Gemini {
    fn whole(&mut self, reply: &Reply) -> String {
        let response = Self::response(reply, self.parts(reply), Place::Last);
        match self.whole {
            Whole::Object => response,
            Whole::List => format!("[{response}]"),
        }
    }

    fn events(&mut self, reply: &Reply) -> String {
        let parts = self.parts(reply);
        let last = parts.len().saturating_sub(1);
        let events = parts.into_iter().enumerate().map(|(index, part)| {
            let place = if index == last { Place::Last } else { Place::Before };
            http::event(None, &Self::response(reply, vec![part], place))
        });
        events.collect()
    }

    /// Google's clients cannot read comments.
    fn alive(&mut self) -> String {
        http::event(None, r#"{"usageMetadata":{}}"#)
    }

    fn refused(&mut self, refusal: &Refusal) -> String {
        http::event(None, &error(refusal).to_string())
    }
}

fn finish_reason(reply: &Reply) -> &'static str {
    match reply.finish {
        Finish::Length => "MAX_TOKENS",
        Finish::ContentFilter => "SAFETY",
        Finish::Stop | Finish::ToolCalls | Finish::Other(_) => "STOP",
    }
}

fn usage(reply: &Reply) -> Option<Value> {
    reply.usage.map(|usage| {
        let (prompt, completion) = (usage.prompt_tokens, usage.completion_tokens);
        json!({
            "promptTokenCount": prompt, "candidatesTokenCount": completion,
            "totalTokenCount": prompt + completion,
        })
    })
}

fn error(refusal: &Refusal) -> Value {
    let (status, message) = match refusal.kind {
        RefusalKind::Malformed | RefusalKind::Encoding | RefusalKind::Upgrade | RefusalKind::TooLarge => {
            ("INVALID_ARGUMENT", refusal.message.clone())
        }
        // Clients know it by its first words.
        RefusalKind::ContextLength => (
            "INVALID_ARGUMENT",
            format!(
                "The input token count exceeds the maximum number of tokens allowed: {}",
                refusal.message
            ),
        ),
        RefusalKind::Limit => ("PERMISSION_DENIED", refusal.message.clone()),
        RefusalKind::Unsupported => ("NOT_FOUND", refusal.message.clone()),
        RefusalKind::Busy => ("UNAVAILABLE", refusal.message.clone()),
    };
    json!({ "error": { "code": refusal.kind.status(), "message": message, "status": status } })
}
