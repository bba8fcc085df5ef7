//! The body of a response. Required fields are read strictly, extensions of servers leniently.
//!
//! The body itself tells its protocol, so a stored one can be read without the settings.

use serde::de::{DeserializeOwned, Error as _, IgnoredAny};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::protocol::{messages, responses};
use super::{ChatMessage, Finish, TokenLogprob, ToolCall, Usage};

/// The first reply in the body of a response. `None` if it has none.
pub(super) fn read_reply(body: &str) -> serde_json::Result<Option<ParsedReply>> {
    /// The fields that tell a protocol.
    #[derive(Deserialize)]
    struct Marks {
        #[serde(default)]
        choices: Option<IgnoredAny>,
        #[serde(default)]
        output: Option<IgnoredAny>,
        #[serde(default)]
        stop_reason: Option<IgnoredAny>,
    }
    let marks: Marks = serde_json::from_str(body)?;
    match marks {
        Marks { choices: None, output: Some(_), .. } => {
            serde_json::from_str(body).and_then(ResponsesReply::into_reply).map(Some)
        }
        Marks { choices: None, stop_reason: Some(_), .. } => {
            serde_json::from_str(body).and_then(MessagesReply::into_reply).map(Some)
        }
        _ => serde_json::from_str(body).map(Response::into_reply),
    }
}

/// A response of OpenAI's Responses API.
#[derive(Deserialize)]
struct ResponsesReply {
    #[serde(default)]
    model: Option<String>,
    output: Vec<responses::Item>,
    #[serde(default)]
    incomplete_details: Option<Incomplete>,
    #[serde(default, deserialize_with = "lenient")]
    usage: Option<AnyUsage>,
}

#[derive(Deserialize)]
struct Incomplete {
    reason: String,
}

impl ResponsesReply {
    fn into_reply(self) -> serde_json::Result<ParsedReply> {
        let message = responses::read_output(self.output).map_err(serde_json::Error::custom)?;
        let finish = match self.incomplete_details {
            Some(Incomplete { reason }) if reason == "max_output_tokens" => Finish::Length,
            Some(Incomplete { reason }) => Finish::of(Some(&reason)),
            None if message.tool_calls.is_empty() => Finish::Stop,
            None => Finish::ToolCalls,
        };
        Ok(ParsedReply::plain(message, finish, self.usage, self.model))
    }
}

/// A message of Anthropic's API.
#[derive(Deserialize)]
struct MessagesReply<'a> {
    #[serde(default)]
    model: Option<String>,
    #[serde(borrow)]
    content: Vec<messages::Block<'a>>,
    stop_reason: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    usage: Option<AnyUsage>,
}

impl MessagesReply<'_> {
    fn into_reply(self) -> serde_json::Result<ParsedReply> {
        let message = messages::read_assistant(self.content).map_err(serde_json::Error::custom)?;
        let finish = Finish::of(self.stop_reason.as_deref());
        Ok(ParsedReply::plain(message, finish, self.usage, self.model))
    }
}

/// The counts of tokens in all protocols.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum AnyUsage {
    Chat(Usage),
    Newer {
        input_tokens: u64,
        output_tokens: u64,
        /// Anthropic counts these apart.
        #[serde(default)]
        cache_creation_input_tokens: Option<u64>,
        #[serde(default)]
        cache_read_input_tokens: Option<u64>,
    },
}

impl AnyUsage {
    fn usage(self) -> Option<Usage> {
        let usage = match self {
            Self::Chat(usage) => usage,
            Self::Newer {
                input_tokens,
                output_tokens,
                cache_creation_input_tokens: created,
                cache_read_input_tokens: read,
            } => Usage {
                prompt_tokens: [created, read].into_iter().flatten().fold(input_tokens, u64::saturating_add),
                completion_tokens: output_tokens,
            },
        };
        is_counted(&usage).then_some(usage)
    }
}

/// A chat completion.
#[derive(Debug, Deserialize)]
struct Response {
    #[serde(default, deserialize_with = "lenient")]
    model: Option<String>,
    choices: Vec<Choice>,
    #[serde(default, deserialize_with = "lenient")]
    usage: Option<Usage>,
    /// From vLLM, with `return_token_ids`.
    #[serde(default, deserialize_with = "lenient")]
    prompt_token_ids: Option<Vec<u32>>,
}

/// A reply: a message, or the continuation of a text.
#[derive(Debug, Deserialize)]
#[serde(try_from = "AnyChoice")]
struct Choice {
    message: Message,
    finish_reason: Option<String>,
    logprobs: Option<Logprobs>,
    token_ids: Option<Vec<u32>>,
}

#[derive(Debug, Deserialize)]
struct AnyChoice {
    #[serde(default)]
    message: Option<Message>,
    /// From `/completions`.
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    finish_reason: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    logprobs: Option<Logprobs>,
    /// From vLLM, with `return_token_ids`.
    #[serde(default, deserialize_with = "lenient")]
    token_ids: Option<Vec<u32>>,
}

impl TryFrom<AnyChoice> for Choice {
    type Error = &'static str;

    fn try_from(choice: AnyChoice) -> Result<Self, Self::Error> {
        let AnyChoice { message, text, finish_reason, logprobs, token_ids } = choice;
        let continuation = text.map(|content| Message { content, ..Message::default() });
        let message = message.or(continuation).ok_or("missing field `message`")?;
        Ok(Self { message, finish_reason, logprobs, token_ids })
    }
}

#[derive(Debug, Default, Deserialize)]
struct Message {
    #[serde(default, deserialize_with = "text")]
    content: String,
    /// The name of DeepSeek, vLLM, SGLang and llama.cpp.
    #[serde(default, deserialize_with = "lenient")]
    reasoning_content: Option<String>,
    /// The name of OpenRouter and of newer vLLM.
    #[serde(default, deserialize_with = "lenient")]
    reasoning: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<Call>>,
    /// Servers of NeMo Gym have the ids here.
    #[serde(default, deserialize_with = "lenient")]
    prompt_token_ids: Option<Vec<u32>>,
    #[serde(default, deserialize_with = "lenient")]
    generation_token_ids: Option<Vec<u32>>,
}

#[derive(Debug, Deserialize)]
struct Call {
    #[serde(default)]
    id: Option<String>,
    function: Function,
}

#[derive(Debug, Deserialize)]
struct Function {
    name: String,
    /// The protocol says a string, but some servers send the object.
    #[serde(default)]
    arguments: Value,
}

#[derive(Debug, Deserialize)]
struct Logprobs {
    content: Vec<TokenLogprob>,
}

/// The first reply of a response, with normalised fields.
#[derive(Debug)]
pub(super) struct ParsedReply {
    pub(super) message: ChatMessage,
    pub(super) finish: Finish,
    pub(super) usage: Option<Usage>,
    pub(super) prompt_token_ids: Option<Vec<u32>>,
    pub(super) completion_token_ids: Option<Vec<u32>>,
    pub(super) logprobs: Option<Vec<TokenLogprob>>,
    pub(super) model: Option<String>,
}

impl ParsedReply {
    /// A reply without extensions.
    fn plain(message: ChatMessage, finish: Finish, usage: Option<AnyUsage>, model: Option<String>) -> Self {
        Self {
            message,
            finish,
            usage: usage.and_then(AnyUsage::usage),
            prompt_token_ids: None,
            completion_token_ids: None,
            logprobs: None,
            model,
        }
    }
}

impl Response {
    fn into_reply(self) -> Option<ParsedReply> {
        let choice = self.choices.into_iter().next()?;
        let message = choice.message;
        let calls = message.tool_calls.unwrap_or_default().into_iter().enumerate();
        let tool_calls = calls
            .map(|(index, call)| ToolCall {
                id: call.id.unwrap_or_else(|| format!("call_{index}")),
                name: call.function.name,
                arguments: match call.function.arguments {
                    Value::String(text) => text,
                    Value::Null => String::new(),
                    object => object.to_string(),
                },
            })
            .collect();
        Some(ParsedReply {
            message: ChatMessage {
                reasoning: message.reasoning_content.or(message.reasoning),
                tool_calls,
                ..ChatMessage::assistant(message.content)
            },
            finish: Finish::of(choice.finish_reason.as_deref()),
            usage: self.usage.filter(is_counted),
            prompt_token_ids: self.prompt_token_ids.or(message.prompt_token_ids),
            completion_token_ids: choice.token_ids.or(message.generation_token_ids),
            logprobs: choice
                .logprobs
                .map(|logprobs| logprobs.content)
                .filter(|tokens| tokens.iter().all(is_possible)),
            model: self.model,
        })
    }
}

/// The usage in a body that may have no reply. It is charged all the same.
pub(super) fn usage_of(body: &str) -> Option<Usage> {
    #[derive(Deserialize)]
    struct UsageOnly {
        usage: AnyUsage,
    }
    serde_json::from_str(body).ok().and_then(|body: UsageOnly| body.usage.usage())
}

/// Maximum tokens of a call. No model has such a context. The sum over a conversation still fits a
/// column of 64 bits.
const MAX_TOKENS: u64 = u32::MAX as u64;
/// A log-probability is at most 0, but some servers round it up.
const MAX_LOGPROB: f64 = 1e-3;

/// Whether the server counts tokens, and the counts are possible. Servers that do not count send
/// zeros, but every prompt has tokens.
fn is_counted(usage: &Usage) -> bool {
    let Usage { prompt_tokens, completion_tokens } = *usage;
    let possible = prompt_tokens.max(completion_tokens) <= MAX_TOKENS;
    if !possible {
        tracing::warn!(prompt_tokens, completion_tokens, "impossible counts of tokens are left out");
    }
    possible && prompt_tokens > 0
}

/// Whether trainers can read the value: they store 32 bits.
fn is_possible(token: &TokenLogprob) -> bool {
    (f64::from(f32::MIN)..=MAX_LOGPROB).contains(&token.logprob)
}

/// An extension of the protocol. `None` if it cannot be read: none is worth losing a reply.
fn lenient<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<Option<T>, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(deserializer)?).ok())
}

/// The text of a message. It is a string, null, or a list of parts; the texts of parts are joined.
fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Null => Ok(String::new()),
        Value::String(text) => Ok(text),
        Value::Array(parts) => Ok(parts.iter().filter_map(|part| part.get("text")?.as_str()).collect()),
        _ => Err(D::Error::custom("`content` is neither text nor a list of parts")),
    }
}
