//! The policy trait: what decides an agent's next message.

use std::future::Future;

use super::conversation::Conversation;
use super::error::AgentError;
use super::scaffold::AssistantMessage;

/// Where the next assistant message comes from.
pub trait Policy: Send {
    /// The next message of the conversation.
    fn next(
        &mut self,
        conversation: &Conversation,
    ) -> impl Future<Output = Result<AssistantMessage, AgentError>> + Send;
}
