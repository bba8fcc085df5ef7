//! From an agent's requests to calls, and from these to a conversation.

use std::time::Instant;

use serde_json::json;
use tokio::sync::mpsc;

use super::Installed;
use super::wire::{self, Form};
use crate::agent::conversation::{Conversation, TurnSeen};
use crate::agent::episode::AgentError;
use crate::agent::scaffold::Opening;
use crate::clock::now_ms;
use crate::llm::{CallError, CallSite, ChatMessage, ChatRequest, ChatRole, Finish, Reply};
use crate::model::{Shown, Tokens, ToolCall, ToolDefinition, Turn, TurnKind};
use crate::sandbox::RelayCall;

/// Answers one agent.
pub(super) struct Proxy<'a, 't> {
    installed: &'a Installed<'a>,
    conversation: &'t mut Conversation,
    /// Every message of the conversation so far, the last reply included.
    messages: Vec<ChatMessage>,
    calls: u32,
}

impl<'a, 't> Proxy<'a, 't> {
    pub(super) fn new(installed: &'a Installed<'a>, conversation: &'t mut Conversation) -> Self {
        Self { installed, conversation, messages: Vec::new(), calls: 0 }
    }

    /// Answers until the sandbox ends; then it waits for ever. Returns what ends the whole run.
    pub(super) async fn serve(&mut self, mut calls: mpsc::Receiver<RelayCall>) -> AgentError {
        while let Some(call) = calls.recv().await {
            let answer = match self.answer(&call.request).await {
                Ok(answer) => answer,
                Err(error) => return error,
            };
            // A caller that has gone away needs no answer.
            let _ = call.reply.send(answer);
        }
        std::future::pending().await
    }

    /// The last message ended the agent's work.
    pub(super) fn finish(&mut self) {
        if let (Some(turn), Some(seen)) = (self.conversation.turns.last_mut(), self.conversation.seen.last())
            && seen.shown.is_empty()
        {
            turn.kind = TurnKind::Submitted;
        }
    }

    async fn answer(&mut self, bytes: &[u8]) -> Result<Vec<u8>, AgentError> {
        let Some(request) = wire::request(bytes) else { return Ok(wire::error(400, "no HTTP request")) };
        match (request.method, request.path.trim_end_matches('/')) {
            ("GET", path) if path.ends_with("/models") => {
                let (settings, _) = self.installed.models.settings(self.installed.role)?;
                let model = json!({ "id": settings.model, "object": "model", "owned_by": "termsmith" });
                let list = json!({ "object": "list", "data": [model] });
                Ok(wire::response(200, "application/json", &list.to_string()))
            }
            ("POST", path) if path.ends_with("/chat/completions") => match wire::chat(&request.body) {
                Ok((request, form)) => self.chat(request, form).await,
                Err(fault) => Ok(wire::error(400, &fault)),
            },
            (method, path) => Ok(wire::error(404, &format!("{method} {path} is not offered"))),
        }
    }

    async fn chat(&mut self, request: ChatRequest, form: Form) -> Result<Vec<u8>, AgentError> {
        let site = CallSite {
            role: self.installed.role,
            unit: self.installed.unit.to_owned(),
            stage: "request".to_owned(),
            round: 0,
            step: self.calls,
            sample: 0,
        };
        self.calls += 1;
        let asked = Instant::now();
        let reply = match self.installed.models.call(&site, &request).await {
            Ok(reply) => reply,
            // What the agent did wrong it is told, and may mend; what would meet every other call ends the run.
            Err(
                error @ (CallError::ContextLength { .. }
                | CallError::ContentFilter { .. }
                | CallError::Refused { .. }),
            ) => {
                return Ok(wire::error(400, &error.to_string()));
            }
            Err(error) => return Err(error.into()),
        };
        self.take_down(request, &reply, asked.elapsed().as_secs_f64() * 1e3);
        Ok(wire::answer(&reply, form))
    }

    /// Goes on with the conversation, or begins another one where the request does not go on from the last reply.
    fn take_down(&mut self, request: ChatRequest, reply: &Reply, think_ms: f64) {
        let goes_on = !self.messages.is_empty()
            && request.messages.len() > self.messages.len()
            && request.messages.iter().zip(&self.messages).all(|(one, other)| said_alike(one, other));
        let new = if goes_on { request.messages.get(self.messages.len()..) } else { None };
        match (new, self.conversation.seen.last_mut()) {
            (Some(new), Some(seen)) => seen.shown = new.iter().map(shown).collect(),
            _ => *self.conversation = begun(&request),
        }
        self.messages = request.messages;
        self.messages.push(reply.message.clone());
        let calls = reply.message.tool_calls.iter();
        self.conversation.turns.push(Turn {
            content: reply.message.content.clone(),
            reasoning: reply.message.reasoning.clone(),
            tool_calls: calls
                .map(|call| ToolCall {
                    id: call.id.clone(),
                    name: call.name.clone(),
                    arguments: call.arguments.clone(),
                })
                .collect(),
            call: Some(reply.key.clone()),
            usage: reply
                .usage
                .map(|usage| Tokens { prompt: usage.prompt_tokens, completion: usage.completion_tokens }),
            cut_off: reply.finish == Finish::Length,
            ..Turn::default()
        });
        self.conversation.seen.push(TurnSeen { at_ms: now_ms(), think_ms, ..TurnSeen::default() });
    }
}

/// Clients send back what was said, but not always everything about it.
fn said_alike(one: &ChatMessage, other: &ChatMessage) -> bool {
    one.role == other.role && one.content == other.content && one.tool_calls == other.tool_calls
}

fn shown(message: &ChatMessage) -> Shown {
    Shown { tool_call: message.tool_call_id.clone(), content: message.content.clone() }
}

/// A conversation before its first reply.
fn begun(request: &ChatRequest) -> Conversation {
    let of = |role: ChatRole| {
        let texts = request.messages.iter().filter(|message| message.role == role);
        texts.map(|message| message.content.as_str()).collect::<Vec<_>>().join("\n\n")
    };
    let tools = request.tools.iter().map(|tool| ToolDefinition {
        name: tool.name.clone(),
        description: tool.description.clone(),
        parameters: tool.parameters.clone(),
    });
    let opening =
        Opening { system: of(ChatRole::System), prompt: of(ChatRole::User), tools: tools.collect() };
    Conversation { opening, ..Conversation::default() }
}
