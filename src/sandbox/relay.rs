//! Requests from inside a sandbox to the host, over a socket that the guest serves.

use std::collections::HashMap;

use tokio::sync::{mpsc, oneshot};

use crate::guest::frame::{CHUNK, MAX_INPUT, ToGuest, ToHost};

use super::connection::{Operation, Sender};

/// Requests that may wait for the receiver. The guest opens no more than a few dozen at once.
const CALL_QUEUE: usize = 32;
/// Maximum total size of incomplete requests. Less than the number of connections times the maximum length, which would be too much memory.
const MAX_PENDING: usize = 2 * MAX_INPUT;

/// One request from inside the sandbox.
#[derive(Debug)]
pub struct RelayCall {
    /// Everything that the client wrote.
    pub request: Vec<u8>,
    /// The reply to the client, at most 16 MiB. Dropping it closes the connection without a reply.
    pub reply: oneshot::Sender<Vec<u8>>,
}

/// Receives requests of a listening operation until the receiver is dropped or the sandbox ends.
pub(super) fn serve(mut operation: Operation) -> mpsc::Receiver<RelayCall> {
    let (calls, receiver) = mpsc::channel(CALL_QUEUE);
    tokio::spawn(async move {
        let mut requests: HashMap<u32, Vec<u8>> = HashMap::new();
        // The answer to the listen was not the last one; from here on only a cancel ends the operation.
        operation.finished = false;
        loop {
            let message = tokio::select! {
                message = operation.next() => message,
                () = calls.closed() => return,
            };
            match message {
                Ok(ToHost::Call { call, bytes, .. }) => {
                    let pending: usize = requests.values().map(Vec::len).sum();
                    if pending + bytes.len() > MAX_PENDING {
                        return;
                    }
                    requests.entry(call).or_default().extend_from_slice(&bytes);
                }
                Ok(ToHost::CallEnd { id, call }) => {
                    let (reply, answer) = oneshot::channel();
                    let request = requests.remove(&call).unwrap_or_default();
                    if calls.send(RelayCall { request, reply }).await.is_err() {
                        return;
                    }
                    tokio::spawn(answer_call(operation.sender(), id, call, answer));
                }
                Ok(_) | Err(_) => return,
            }
        }
    });
    receiver
}

async fn answer_call(sender: Sender, id: u32, call: u32, answer: oneshot::Receiver<Vec<u8>>) {
    let bytes = answer.await.unwrap_or_default();
    for piece in bytes.chunks(CHUNK) {
        if sender.send(&ToGuest::Reply { id, call, bytes: piece.to_vec() }).await.is_err() {
            return;
        }
    }
    // A sandbox that has ended in the meantime needs no reply.
    let _ = sender.send(&ToGuest::ReplyEnd { id, call }).await;
}
