//! Who is at fault when a model's endpoint refuses a request.
//!
//! Every request of an episode holds text of the policy, and a server may refuse it for that text
//! alone, e.g. for special tokens or by its content filter. It may also refuse every request, e.g.
//! because of a wrong parameter in the settings. An experiment decides: the *control* is a request
//! in the same place without the policy's text. If it is answered, the refusal is the policy's own
//! failure. Otherwise a policy could turn a failure into a sample that is left out.

use super::conversation::Conversation;
use super::error::AgentError;
use crate::llm::{AttemptError, CallError, CallSite, ChatMessage, ChatRequest, Models, Reply, ToolCall};
use crate::model::End;

/// The text of every message in a control.
const NEUTRAL: &str = "ok";

/// Sends `request` and returns the reply. If the server refuses it but answers `control`, the error
/// is [`AgentError::Refused`]. Without a control, the request holds no text of the policy. Then
/// only an unreadable reply can be the policy's fault.
pub(super) async fn call(
    models: &Models,
    site: &CallSite,
    request: &ChatRequest,
    control: Option<ChatRequest>,
) -> Result<Reply, AgentError> {
    let mut passed = 0;
    loop {
        let error = match models.call(site, request).await {
            Ok(reply) => return Ok(reply),
            Err(error) => error,
        };
        let Some(Suspicion { end, controls }) = suspicion(&error) else { return Err(error.into()) };
        let spare = is_unreadable(&error).then(greeting);
        let Some(control) = control.as_ref().or(spare.as_ref()) else { return Err(error.into()) };
        let site = CallSite { stage: format!("{}/control", site.stage), sample: passed, ..site.clone() };
        match models.call(&site, control).await {
            Ok(_) => passed += 1,
            // The run is stopping, or its budget is spent.
            Err(stopped @ (CallError::Cancelled(_) | CallError::Budget(_) | CallError::ShuttingDown)) => {
                return Err(stopped.into());
            }
            Err(_) => return Err(error.into()),
        }
        if passed == controls {
            tracing::warn!(end = end.as_str(), "the endpoint refuses the policy's text");
            return Err(AgentError::Refused { end, cause: error.to_string() });
        }
    }
}

/// A refusal that a request's text may have caused.
struct Suspicion {
    end: End,
    /// How often a control must be answered, each time after a refusal.
    controls: u32,
}

/// For errors that the same request always gets.
const FINAL: u32 = 1;
/// For errors that may be the server's own. It may recover between request and control, but hardly
/// twice.
const TWICE: u32 = 2;

fn suspicion(error: &CallError) -> Option<Suspicion> {
    match error {
        CallError::ContentFilter { .. } => Some(Suspicion { end: End::ContentFiltered, controls: FINAL }),
        // A gateway in front of a server has statuses of its own for a text, e.g. 403, 406 or 451.
        CallError::Refused { .. } | CallError::Auth { status: 403, .. } => {
            Some(Suspicion { end: End::RequestRefused, controls: FINAL })
        }
        // E.g. 429 for a text that is longer than the limit per minute, a reply that is no JSON
        // because the text asked for odd characters, or a text that crashes or stalls the server.
        CallError::Exhausted { last, .. } if !matches!(last, AttemptError::Connect(_)) => {
            Some(Suspicion { end: End::RequestRefused, controls: TWICE })
        }
        CallError::Exhausted { .. }
        | CallError::ContextLength { .. }
        | CallError::Auth { .. }
        | CallError::Budget(_)
        | CallError::Key { .. }
        | CallError::NoRole { .. }
        | CallError::Unsupported { .. }
        | CallError::NoPrice { .. }
        | CallError::Cassette(_)
        | CallError::Store(_)
        | CallError::Record { .. }
        | CallError::Cancelled(_)
        | CallError::ShuttingDown
        | CallError::Client(_) => None,
    }
}

/// Whether the server sent a reply that is no JSON, e.g. for half of a surrogate pair in a text.
fn is_unreadable(error: &CallError) -> bool {
    matches!(error, CallError::Exhausted { last: AttemptError::NotJson(_), .. })
}

/// A control without a conversation.
pub(super) fn greeting() -> ChatRequest {
    ChatRequest::of(vec![ChatMessage::user(NEUTRAL)])
}

/// A control for a request that continues `conversation`: the same turns, with [`NEUTRAL`] in place
/// of each text. `None` before the policy's first message.
pub(super) fn in_other_words(conversation: &Conversation, request: &ChatRequest) -> Option<ChatRequest> {
    if conversation.turns.is_empty() {
        return None;
    }
    let opening = &conversation.opening;
    let system = (!opening.system.is_empty()).then(|| ChatMessage::system(opening.system.clone()));
    let mut messages: Vec<ChatMessage> =
        system.into_iter().chain([ChatMessage::user(opening.prompt.clone())]).collect();
    for turn in conversation.turns.iter().skip(conversation.segment_start()) {
        match (turn.tool_calls.first(), opening.tools.first()) {
            (Some(call), Some(tool)) => {
                let arguments = "{}".to_owned();
                let call = ToolCall { id: call.id.clone(), name: tool.name.clone(), arguments };
                let answer = ChatMessage::tool(call.id.clone(), NEUTRAL);
                let calls = vec![call];
                messages.push(ChatMessage { tool_calls: calls, ..ChatMessage::assistant("") });
                messages.push(answer);
            }
            _ => messages.extend([ChatMessage::assistant(NEUTRAL), ChatMessage::user(NEUTRAL)]),
        }
    }
    Some(ChatRequest { messages, ..request.clone() })
}
