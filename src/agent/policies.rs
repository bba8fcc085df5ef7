//! Policies: who writes the next assistant message.

use super::control::{self, in_other_words};
use super::conversation::Conversation;
use super::error::AgentError;
use super::policy::Policy;
use super::scaffold::AssistantMessage;
use crate::llm::{CallSite, ChatRequest, Finish, ModelRole, Models, Tool};
use crate::model::{End, Tokens, ToolCall};

/// A model behind an endpoint.
#[derive(Debug)]
pub struct ModelPolicy<'a> {
    pub models: &'a Models,
    pub role: ModelRole,
    /// Id of the rollout.
    pub unit: &'a str,
    /// Round of self-correction, from 0.
    pub round: u32,
    /// Texts at which the server stops the reply.
    pub stop: Vec<String>,
    pub logprobs: Logprobs,
}

/// Whether requests ask for log-probabilities of tokens. Some servers refuse such requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Logprobs {
    #[default]
    No,
    Ask,
}

impl Policy for ModelPolicy<'_> {
    async fn next(&mut self, conversation: &Conversation) -> Result<AssistantMessage, AgentError> {
        let tools = conversation.opening.tools.iter().map(|tool| Tool {
            name: tool.name.clone(),
            description: tool.description.clone(),
            parameters: tool.parameters.clone(),
        });
        let request = ChatRequest {
            tools: tools.collect(),
            stop: self.stop.clone(),
            logprobs: self.logprobs == Logprobs::Ask,
            ..ChatRequest::of(conversation.messages())
        };
        let site = CallSite {
            role: self.role,
            unit: self.unit.to_owned(),
            stage: "step".to_owned(),
            round: self.round,
            step: u32::try_from(conversation.turns.len()).unwrap_or(u32::MAX),
            sample: 0,
        };
        let control = in_other_words(conversation, &request);
        let reply = control::call(self.models, &site, &request, control).await?;
        if reply.finish == Finish::ContentFilter {
            let cause = "the server withheld the policy's reply".to_owned();
            return Err(AgentError::Refused { end: End::ContentFiltered, cause });
        }
        let calls = reply.message.tool_calls.into_iter();
        Ok(AssistantMessage {
            content: reply.message.content,
            reasoning: reply.message.reasoning,
            tool_calls: calls
                .map(|call| ToolCall { id: call.id, name: call.name, arguments: call.arguments })
                .collect(),
            call: Some(reply.key),
            usage: reply
                .usage
                .map(|usage| Tokens { prompt: usage.prompt_tokens, completion: usage.completion_tokens }),
            cut_off: reply.finish == Finish::Length,
            served: Some(reply.served),
        })
    }
}
