//! Requests from inside a sandbox to the host, over a socket that the guest serves.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::guest::frame::{CHUNK, Id, MAX_CALLS, MAX_HEAD, ToGuest, ToHost};

use super::connection::{Operation, Sender};

/// Longest request. Anthropic's API takes no longer one (32 MB), and few agents send one of 1 MB.
pub const MAX_REQUEST: usize = 32 << 20;
/// Maximum total size of the requests of one socket that arrive or wait for their reply.
const MAX_HELD: usize = 2 * MAX_REQUEST;
/// Bytes of a request that stay if it is refused: they have an HTTP request's head.
const START: usize = MAX_HEAD;
/// Parts of a reply that may wait for the writer.
const PARTS: usize = 2;

/// One request from inside the sandbox.
#[derive(Debug)]
pub struct RelayCall {
    pub request: Received,
    /// Dropping it closes the connection.
    pub reply: RelayReply,
}

/// A request, as far as it was kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// Everything that the client wrote. On a port, it ends with the HTTP message.
    Whole(Vec<u8>),
    /// It was longer than [`MAX_REQUEST`].
    TooLarge { start: Vec<u8> },
    /// Other requests of the sandbox took all the memory for requests.
    NoRoom { start: Vec<u8> },
}

impl Received {
    /// The whole request. `None` if only its start was kept.
    pub fn whole(&self) -> Option<&[u8]> {
        match self {
            Self::Whole(bytes) => Some(bytes),
            Self::TooLarge { .. } | Self::NoRoom { .. } => None,
        }
    }
}

/// The client has closed its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the client has closed its connection")]
pub struct ClientGone;

/// The reply to one request.
#[derive(Debug)]
pub struct RelayReply {
    parts: mpsc::Sender<Vec<u8>>,
    /// Cancelled when the connection is closed.
    closed: CancellationToken,
    /// The memory of the request.
    _room: Option<OwnedSemaphorePermit>,
}

impl RelayReply {
    /// Sends a part of the reply. The client gets it at once. It may leave at most 16 MiB unread.
    pub async fn send(&self, bytes: Vec<u8>) -> Result<(), ClientGone> {
        tokio::select! {
            biased;
            () = self.closed.cancelled() => Err(ClientGone),
            sent = self.parts.send(bytes) => sent.map_err(|_| ClientGone),
        }
    }

    /// Sends the whole reply, or the rest of it.
    pub async fn all(self, bytes: Vec<u8>) -> Result<(), ClientGone> {
        self.send(bytes).await
    }

    /// A reply whose parts go to the receiver. The client leaves when the guard is dropped.
    #[cfg(test)]
    pub(crate) fn to_receiver() -> (Self, mpsc::Receiver<Vec<u8>>, DropGuard) {
        let (parts, receiver) = mpsc::channel(PARTS);
        let closed = CancellationToken::new();
        (Self { parts, closed: closed.clone(), _room: None }, receiver, closed.drop_guard())
    }

    /// Completes when the client has closed its connection.
    pub async fn closed(&self) {
        self.closed.cancelled().await;
    }
}

/// Receives requests of a listening operation. Ends when the receiver is dropped, or when the
/// sandbox ends.
pub(super) fn serve(operation: Operation) -> mpsc::Receiver<RelayCall> {
    serve_within(operation, MAX_HELD)
}

/// [`serve`], with this bound on the total size of requests.
fn serve_within(mut operation: Operation, max_held: usize) -> mpsc::Receiver<RelayCall> {
    // The guest has no more open connections. Of further requests, the client is gone.
    let (calls, receiver) = mpsc::channel(MAX_CALLS);
    let room = Arc::new(Semaphore::new(max_held));
    tokio::spawn(async move {
        let mut arriving: HashMap<u32, Arriving> = HashMap::new();
        let mut open: HashMap<u32, DropGuard> = HashMap::new();
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
                    let arriving = arriving.entry(call).or_default();
                    arriving.add(&bytes, &room);
                }
                Ok(ToHost::CallEnd { id, call }) => {
                    let arrived = arriving.remove(&call).unwrap_or_default();
                    let (parts, to_send) = mpsc::channel(PARTS);
                    let closed = CancellationToken::new();
                    open.insert(call, closed.clone().drop_guard());
                    let reply = RelayReply { parts, closed: closed.clone(), _room: arrived.room };
                    tokio::spawn(send_reply(operation.sender(), (id, call), to_send));
                    match calls.try_send(RelayCall { request: arrived.request, reply }) {
                        Ok(()) => {}
                        Err(mpsc::error::TrySendError::Full(_)) => {
                            tracing::debug!("too many requests of a sandbox wait: one gets no reply");
                        }
                        Err(mpsc::error::TrySendError::Closed(_)) => return,
                    }
                }
                Ok(ToHost::CallClosed { call, .. }) => {
                    arriving.remove(&call);
                    open.remove(&call);
                }
                Ok(_) | Err(_) => return,
            }
        }
    });
    receiver
}

/// A request that is arriving.
struct Arriving {
    request: Received,
    room: Option<OwnedSemaphorePermit>,
}

impl Default for Arriving {
    fn default() -> Self {
        Self { request: Received::Whole(Vec::new()), room: None }
    }
}

impl Arriving {
    /// Adds a piece. Of a request that is refused, nothing is added.
    fn add(&mut self, bytes: &[u8], room: &Arc<Semaphore>) {
        let Received::Whole(kept) = &mut self.request else { return };
        let is_short = kept.len() + bytes.len() <= MAX_REQUEST;
        let size = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let taken = if is_short { room.clone().try_acquire_many_owned(size).ok() } else { None };
        kept.extend_from_slice(bytes);
        match (taken, &mut self.room) {
            (Some(taken), Some(room)) => room.merge(taken),
            (Some(taken), none) => *none = Some(taken),
            (None, _) => {
                let mut start = std::mem::take(kept);
                start.truncate(START);
                start.shrink_to_fit();
                self.room = None;
                self.request =
                    if is_short { Received::NoRoom { start } } else { Received::TooLarge { start } };
            }
        }
    }
}

/// Sends a reply, part by part.
async fn send_reply(sender: Sender, (id, call): (Id, u32), mut parts: mpsc::Receiver<Vec<u8>>) {
    while let Some(bytes) = parts.recv().await {
        for piece in bytes.chunks(CHUNK) {
            if sender.send(&ToGuest::Reply { id, call, bytes: piece.to_vec() }).await.is_err() {
                return;
            }
        }
    }
    // A sandbox that has ended in the meantime needs no reply.
    let _ = sender.send(&ToGuest::ReplyEnd { id, call }).await;
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
    use std::os::unix::net::UnixStream;
    use std::thread::{JoinHandle, spawn};

    use super::*;
    use crate::model::{Limits, Profile};
    use crate::sandbox::{Image, LaunchSpec, Network, process_engine};

    /// The bound on the size of requests.
    const MAX: usize = 1_000;

    /// Sends a request of so many bytes, and returns the reply.
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

    /// Runs `test` with a sandbox that listens at `path` below its work directory, or at a port.
    async fn with_relay(
        place: impl FnOnce(&str) -> String,
        test: impl AsyncFnOnce(String, mpsc::Receiver<RelayCall>),
    ) {
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
            layer: None,
        };
        let sandbox = engine.launch(&spec).await.unwrap();
        let path = place(sandbox.workdir());
        let listen = |id| ToGuest::Listen { id, path: path.clone().into_bytes() };
        let mut operation = sandbox.begin(listen).await.unwrap();
        assert!(matches!(operation.next().await, Ok(ToHost::Done { .. })));
        test(path, serve_within(operation, MAX)).await;
        drop(sandbox);
        engine.close().await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn requests_are_bounded_by_their_size() {
        with_relay(
            |workdir| format!("{workdir}/relay"),
            async |path, mut calls| {
                let first = ask(&path, 600);
                let waiting = calls.recv().await.unwrap();
                // It was received, and has no reply yet.
                let second = ask(&path, 401);
                let refused = calls.recv().await.unwrap();
                assert_eq!(refused.request, Received::NoRoom { start: vec![b'x'; 401] });
                refused.reply.all(b"no room".to_vec()).await.unwrap();
                assert_eq!(second.join().unwrap(), b"no room");
                let third = ask(&path, 400);
                let fitting = calls.recv().await.unwrap();
                let lengths = [&waiting, &fitting].map(|call| call.request.whole().map(<[u8]>::len));
                assert_eq!(lengths, [Some(600), Some(400)]);
                waiting.reply.all(b"one".to_vec()).await.unwrap();
                assert_eq!(first.join().unwrap(), b"one");
                let fourth = ask(&path, 600);
                calls.recv().await.unwrap().reply.all(b"four".to_vec()).await.unwrap();
                assert_eq!(fourth.join().unwrap(), b"four", "the answered one made room");
                drop(fitting);
                assert_eq!(third.join().unwrap(), b"");
            },
        )
        .await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn replies_arrive_in_parts_and_clients_may_leave() {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        with_relay(
            |_| format!("port:{port}"),
            async |_, mut calls| {
                let mut client = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
                // The second request is dropped.
                client.write_all(b"GET /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\n").unwrap();
                let call = calls.recv().await.unwrap();
                assert_eq!(call.request.whole(), Some(&b"GET /a HTTP/1.1\r\n\r\n"[..]));
                let mut seen = [0; 5];
                for part in ["first", "other"] {
                    call.reply.send(part.into()).await.unwrap();
                    client.read_exact(&mut seen).unwrap();
                    assert_eq!(seen, part.as_bytes());
                }
                drop(client);
                call.reply.closed().await;
                assert_eq!(call.reply.send(b"late".to_vec()).await, Err(ClientGone));
                // One that leaves within its request was never there.
                let mut client = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
                client.write_all(b"POST /a HTTP/1.1\r\nContent-Length: 900\r\n\r\n").unwrap();
                client.write_all(&[b'x'; 500]).unwrap();
                drop(client);
                let long = [b'x'; 800];
                let mut client = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
                client.write_all(b"POST /a HTTP/1.1\r\nContent-Length: 800\r\n\r\n").unwrap();
                client.write_all(&long).unwrap();
                let call = calls.recv().await.unwrap();
                assert!(call.request.whole().unwrap().ends_with(&long), "the other one made room");
            },
        )
        .await;
    }

    #[test]
    fn long_requests_keep_their_start() {
        let room = Arc::new(Semaphore::new(MAX_HELD));
        let mut arriving = Arriving::default();
        for _ in 0..MAX_REQUEST / CHUNK {
            arriving.add(&[b'x'; CHUNK], &room);
        }
        assert_eq!(room.available_permits(), MAX_HELD - MAX_REQUEST);
        arriving.add(b"y", &room);
        arriving.add(b"z", &room);
        assert_eq!(arriving.request, Received::TooLarge { start: vec![b'x'; START] });
        assert_eq!(room.available_permits(), MAX_HELD);
    }
}
