//! Requests from inside a sandbox to the host. The guest serves a socket for them.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use crate::guest::frame::{CHUNK, MAX_INPUT, ToGuest, ToHost};

use super::connection::{Operation, Sender};

/// Requests that may wait for the receiver. The guest opens a few dozen at most.
const CALL_QUEUE: usize = 32;
/// Maximum total size of incomplete requests. If every connection could send a request of maximum
/// length, they would take too much memory.
const MAX_PENDING: usize = 2 * MAX_INPUT;
/// Maximum total size of complete requests without a reply. No test and no agent comes near it.
/// Without this bound, a program could make this process hold half a gigabyte.
const MAX_UNANSWERED: usize = 4 * MAX_INPUT;

/// One request from inside the sandbox.
#[derive(Debug)]
pub struct RelayCall {
    /// Everything that the client wrote.
    pub request: Vec<u8>,
    /// The reply to the client, at most 16 MiB. Dropping it closes the connection without a reply.
    pub reply: oneshot::Sender<Vec<u8>>,
}

/// Receives requests of a listening operation. Ends when the receiver is dropped, or when the
/// sandbox ends.
pub(super) fn serve(operation: Operation) -> mpsc::Receiver<RelayCall> {
    serve_within(operation, MAX_UNANSWERED)
}

/// [`serve`], with a bound on the size of unanswered requests. A request beyond the bound gets no
/// reply, since waiting would hold up everything else on the connection.
fn serve_within(mut operation: Operation, max_unanswered: usize) -> mpsc::Receiver<RelayCall> {
    let (calls, receiver) = mpsc::channel(CALL_QUEUE);
    let room = Arc::new(Semaphore::new(max_unanswered));
    tokio::spawn(async move {
        let mut requests: HashMap<u32, Vec<u8>> = HashMap::new();
        // More answers follow the answer to the listen. From now on only a cancel ends the
        // operation.
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
                    let size = u32::try_from(request.len()).unwrap_or(u32::MAX);
                    let taken = room.clone().try_acquire_many_owned(size).ok();
                    if taken.is_none() {
                        tracing::debug!(
                            bytes = request.len(),
                            "too many requests of a sandbox wait: one gets no reply"
                        );
                        drop(reply);
                    } else if calls.send(RelayCall { request, reply }).await.is_err() {
                        return;
                    }
                    tokio::spawn(answer_call(operation.sender(), id, call, answer, taken));
                }
                Ok(_) | Err(_) => return,
            }
        }
    });
    receiver
}

/// Sends the reply, and then frees the room that the request took.
async fn answer_call(
    sender: Sender,
    id: u32,
    call: u32,
    answer: oneshot::Receiver<Vec<u8>>,
    taken: Option<OwnedSemaphorePermit>,
) {
    let bytes = answer.await.unwrap_or_default();
    drop(taken);
    for piece in bytes.chunks(CHUNK) {
        if sender.send(&ToGuest::Reply { id, call, bytes: piece.to_vec() }).await.is_err() {
            return;
        }
    }
    // A sandbox that has ended meanwhile needs no reply.
    let _ = sender.send(&ToGuest::ReplyEnd { id, call }).await;
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::Shutdown;
    use std::os::unix::net::UnixStream;
    use std::thread::{JoinHandle, spawn};

    use super::*;
    use crate::model::{Limits, Profile};
    use crate::sandbox::{Image, LaunchSpec, Network, process_engine};

    /// The bound on unanswered requests in this test.
    const MAX: usize = 1_000;

    /// Sends a request of `bytes` bytes, and returns the reply.
    fn ask(path: &str, bytes: usize) -> JoinHandle<Vec<u8>> {
        let mut stream = UnixStream::connect(path).unwrap();
        spawn(move || {
            stream.write_all(&vec![b'x'; bytes]).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            let mut reply = Vec::new();
            stream.read_to_end(&mut reply).unwrap();
            reply
        })
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn unanswered_requests_are_bounded_by_their_size() {
        let engine = process_engine();
        let (image, limits) = (Image::named("none"), Limits::default());
        let spec = LaunchSpec {
            image: &image,
            limits: &limits,
            profile: Profile::Plain,
            network: Network::None,
            workdir: "/",
            purpose: "test",
            preload: Vec::new(),
        };
        let sandbox = engine.launch(&spec).await.unwrap();
        let path = format!("{}/relay", sandbox.workdir());
        let listen = |id| ToGuest::Listen { id, path: path.clone().into_bytes() };
        let mut operation = sandbox.begin(listen).await.unwrap();
        assert!(matches!(operation.next().await, Ok(ToHost::Done { .. })));
        let mut calls = serve_within(operation, MAX);
        let first = ask(&path, 600);
        let waiting = calls.recv().await.unwrap();
        // It was received, and has no reply yet.
        assert_eq!(ask(&path, 401).join().unwrap(), b"", "there is no room for it");
        let second = ask(&path, 400);
        let fitting = calls.recv().await.unwrap();
        assert_eq!((waiting.request.len(), fitting.request.len()), (600, 400));
        waiting.reply.send(b"one".to_vec()).unwrap();
        assert_eq!(first.join().unwrap(), b"one");
        let third = ask(&path, 600);
        calls.recv().await.unwrap().reply.send(b"three".to_vec()).unwrap();
        assert_eq!(third.join().unwrap(), b"three", "the answered one made room");
        drop(fitting);
        assert_eq!(second.join().unwrap(), b"");
        drop((calls, sandbox));
        engine.close().await;
    }
}
