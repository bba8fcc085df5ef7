//! Brings the reply to an agent's client, which may give up while the model works.

use std::future::Future;
use std::time::Duration;

use super::dialect::{Refusal, Responder};
use crate::llm::Reply;
use crate::sandbox::RelayReply;

/// Time between two signs of life. The shortest time-out of a client without any byte is 180 s by
/// default (Claude Code), and users set shorter ones. Most refusals come before the first sign, so
/// they still have a status of their own.
const SIGN_OF_LIFE: Duration = Duration::from_secs(10);

/// What a client gets.
#[derive(Debug)]
pub(super) enum Answer {
    Reply(Box<Reply>),
    Refused(Refusal),
}

/// What became of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delivery {
    /// It was handed to the client's connection.
    Sent,
    /// The client closed its connection before.
    ClientGone,
}

/// Sends the client signs of life until there is an answer, and then the answer. A client that goes
/// away does not stop the work on its answer. If the work fails, the connection is closed.
pub(super) async fn deliver<E>(
    client: RelayReply,
    mut responder: Responder,
    work: impl Future<Output = Result<Answer, E>>,
) -> Result<Delivery, E> {
    tokio::pin!(work);
    let answer = loop {
        tokio::select! {
            biased;
            answer = &mut work => break answer?,
            () = tokio::time::sleep(SIGN_OF_LIFE) => {}
        }
        // A client that is gone is found out again when it is sent the answer.
        if let Some(bytes) = responder.alive()
            && client.send(bytes).await.is_err()
        {
            break work.await?;
        }
    };
    let bytes = match &answer {
        Answer::Reply(reply) => responder.reply(reply),
        Answer::Refused(refusal) => responder.refuse(refusal),
    };
    Ok(match client.all(bytes).await {
        Ok(()) => Delivery::Sent,
        Err(_) => Delivery::ClientGone,
    })
}
