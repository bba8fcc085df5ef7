//! The host's end of the frame protocol: many concurrent operations over one byte stream.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::{Stream, StreamExt as _};
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::clock::Pauses;
use crate::guest::frame::{FrameBuffer, Id, Message as _, ToGuest, ToHost, VERSION};

/// Maximum wait for the guest's hello. It takes milliseconds, but longer on a host without free
/// memory or processors.
const HELLO_TIMEOUT: Duration = Duration::from_secs(30);
/// Frames that may wait for the writer. A small number, so that a large upload is not buffered
/// twice.
const WRITE_QUEUE: usize = 16;
/// Answers that may wait for their operation. A full queue blocks the whole connection, so no
/// answer is ever dropped.
const REPLY_QUEUE: usize = 64;
/// Maximum bytes of the guest's standard error. A guest writes there only if it fails.
const MAX_COMPLAINT: usize = 4096;

/// The guest's standard streams, as an engine provides them.
pub struct Streams {
    pub input: Pin<Box<dyn AsyncWrite + Send>>,
    pub output: Pin<Box<dyn Stream<Item = Result<Piece, String>> + Send>>,
}

/// Bytes that the guest wrote.
#[derive(Debug)]
pub enum Piece {
    /// Frames, from the guest's standard output.
    Out(Vec<u8>),
    /// Diagnostics, from the guest's standard error.
    Err(Vec<u8>),
}

impl std::fmt::Debug for Streams {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Streams")
    }
}

/// A connection to one guest. Its two tasks end with the stream, or when this value is dropped.
#[derive(Debug)]
pub(super) struct Connection {
    frames: mpsc::Sender<Vec<u8>>,
    operations: Arc<Mutex<Operations>>,
    next_id: AtomicU32,
    /// Ends the two tasks and the stream at [`Connection::close`], or when the connection's last
    /// user is dropped.
    streams: DropGuard,
}

/// The operations that wait for answers.
#[derive(Debug)]
enum Operations {
    Open(HashMap<Id, mpsc::Sender<ToHost>>),
    Closed(Closed),
}

/// The connection is closed. Only the engine knows why.
#[derive(Clone, Debug)]
pub struct Closed {
    pub symptom: Symptom,
    /// Diagnostics: the stream's error and the guest's standard error.
    pub detail: String,
}

/// How the host observed the end of a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symptom {
    /// The stream ended or failed. It ends when the guest ends.
    StreamEnded,
    /// The guest sent invalid frames, or an answer of the wrong kind.
    Protocol,
    /// The stream is open, but an answer did not arrive in time.
    Silent,
    /// The host closed the stream.
    ClosedByUs,
}

impl Closed {
    fn new(symptom: Symptom, detail: impl Into<String>) -> Self {
        Self { symptom, detail: detail.into() }
    }
}

impl Connection {
    /// Performs the handshake over new streams. Sends the guest its work directory and `HOME`.
    pub(super) async fn open(streams: Streams, workdir: &str, home: &str) -> Result<Arc<Self>, Closed> {
        let Streams { input, output } = streams;
        let (frames, to_write) = mpsc::channel(WRITE_QUEUE);
        let operations = Arc::new(Mutex::new(Operations::Open(HashMap::new())));
        let stop = CancellationToken::new();
        let connection = Arc::new(Self {
            frames,
            operations: operations.clone(),
            next_id: AtomicU32::new(BOOT + 1),
            streams: stop.clone().drop_guard(),
        });
        let mut boot = connection.register(BOOT)?;
        tokio::spawn(stop.clone().run_until_cancelled_owned(write_frames(input, to_write)));
        tokio::spawn(stop.run_until_cancelled_owned(read_frames(output, operations)));
        let silent =
            |_| Closed::new(Symptom::Silent, format!("no answer within {} s", HELLO_TIMEOUT.as_secs()));
        match tokio::time::timeout(HELLO_TIMEOUT, boot.next()).await.map_err(silent)?? {
            ToHost::Hello { version: VERSION } => {}
            other => {
                let detail = format!("expected a hello of version {VERSION}, got {other:?}");
                return Err(Closed::new(Symptom::Protocol, detail));
            }
        }
        let (workdir, home) = (workdir.as_bytes().to_vec(), home.as_bytes().to_vec());
        boot.send(&ToGuest::Boot { version: VERSION, workdir, home }).await?;
        match tokio::time::timeout(HELLO_TIMEOUT, boot.next()).await.map_err(silent)?? {
            ToHost::Done { .. } => {}
            ToHost::Failed { message, .. } => {
                // The guest runs. Its own hello is the only evidence.
                return Err(Closed::new(Symptom::Silent, String::from_utf8_lossy(&message)));
            }
            other => {
                let detail = format!("expected the end of the boot, got {other:?}");
                return Err(Closed::new(Symptom::Protocol, detail));
            }
        }
        boot.finished = true;
        drop(boot);
        Ok(connection)
    }

    /// Tells the guest of the container's pauses as long as this connection lasts. Its time limits
    /// stand still during a pause.
    pub(super) fn tell_pauses(&self, pauses: watch::Receiver<Pauses>) {
        let stop = self.streams.token().clone();
        tokio::spawn(stop.run_until_cancelled_owned(tell_pauses(pauses, self.frames.clone())));
    }

    /// Starts a new operation.
    pub(super) fn operation(self: &Arc<Self>) -> Result<Operation, Closed> {
        self.register(self.next_id.fetch_add(1, Ordering::Relaxed))
    }

    fn register(self: &Arc<Self>, id: Id) -> Result<Operation, Closed> {
        let (sender, replies) = mpsc::channel(REPLY_QUEUE);
        match &mut *lock(&self.operations) {
            Operations::Open(open) => open.insert(id, sender),
            Operations::Closed(why) => return Err(why.clone()),
        };
        Ok(Operation { id, connection: self.clone(), replies, finished: false })
    }

    fn closed(&self) -> Closed {
        match &*lock(&self.operations) {
            Operations::Open(_) => Closed::new(Symptom::StreamEnded, "the stream cannot be written to"),
            Operations::Closed(why) => why.clone(),
        }
    }

    /// How the stream ended, if it has ended.
    pub(super) fn end(&self) -> Option<Closed> {
        match &*lock(&self.operations) {
            Operations::Open(_) => None,
            Operations::Closed(why) => Some(why.clone()),
        }
    }

    /// Ends the stream now, even if operations still use the connection.
    pub(super) fn close(&self) {
        close(&self.operations, Closed::new(Symptom::ClosedByUs, "the sandbox was stopped"));
        self.streams.token().cancel();
    }
}

/// Operation id of the handshake. The guest expects this number.
const BOOT: Id = 0;

/// One request and its answers. Dropping it before the last answer cancels the operation in the
/// guest.
#[derive(Debug)]
pub(super) struct Operation {
    pub(super) id: Id,
    connection: Arc<Connection>,
    replies: mpsc::Receiver<ToHost>,
    /// The last answer has arrived, so there is nothing to cancel.
    pub(super) finished: bool,
}

impl Operation {
    /// Sends a frame.
    pub(super) async fn send(&self, message: &ToGuest) -> Result<(), Closed> {
        self.sender().send(message).await
    }

    /// A handle that can only send.
    pub(super) fn sender(&self) -> Sender {
        Sender { connection: self.connection.clone() }
    }

    /// The next answer.
    pub(super) async fn next(&mut self) -> Result<ToHost, Closed> {
        match self.replies.recv().await {
            Some(reply) => Ok(reply),
            None => Err(self.connection.closed()),
        }
    }
}

impl Drop for Operation {
    fn drop(&mut self) {
        if let Operations::Open(open) = &mut *lock(&self.connection.operations) {
            open.remove(&self.id);
        }
        if !self.finished {
            let mut frame = Vec::new();
            ToGuest::Cancel { id: self.id }.encode(&mut frame);
            let frames = self.connection.frames.clone();
            if let Err(mpsc::error::TrySendError::Full(frame)) = frames.try_send(frame)
                && let Ok(runtime) = tokio::runtime::Handle::try_current()
            {
                runtime.spawn(async move { frames.send(frame).await });
            }
        }
    }
}

/// Sends frames. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Sender {
    connection: Arc<Connection>,
}

impl Sender {
    /// Sends a frame. Frames are queued whole or not at all, so a dropped future cannot corrupt the
    /// stream.
    pub(super) async fn send(&self, message: &ToGuest) -> Result<(), Closed> {
        let mut frame = Vec::new();
        message.encode(&mut frame);
        self.connection.frames.send(frame).await.map_err(|_| self.connection.closed())
    }
}

async fn write_frames(mut input: Pin<Box<dyn AsyncWrite + Send>>, mut frames: mpsc::Receiver<Vec<u8>>) {
    while let Some(frame) = frames.recv().await {
        // The reader sees the end of the same stream, and reports it.
        if input.write_all(&frame).await.is_err() || input.flush().await.is_err() {
            return;
        }
    }
}

async fn tell_pauses(mut pauses: watch::Receiver<Pauses>, frames: mpsc::Sender<Vec<u8>>) {
    // This is the machine's time, because the guest's clock runs on while termsmith is stopped.
    let mut since: Option<Instant> = None;
    while pauses.changed().await.is_ok() {
        let is_paused = pauses.borrow_and_update().is_paused();
        let message = match (is_paused, since) {
            (true, None) => {
                since = Some(Instant::now());
                ToGuest::Paused
            }
            (false, Some(began)) => {
                since = None;
                let micros = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
                ToGuest::Resumed { micros }
            }
            // The pause ended before the guest was told of it. It was too short to matter.
            (true, Some(_)) | (false, None) => continue,
        };
        let mut frame = Vec::new();
        message.encode(&mut frame);
        if frames.send(frame).await.is_err() {
            return;
        }
    }
}

async fn read_frames(
    mut output: Pin<Box<dyn Stream<Item = Result<Piece, String>> + Send>>,
    operations: Arc<Mutex<Operations>>,
) {
    let mut frames = FrameBuffer::default();
    let mut complaint = Vec::new();
    let (symptom, why) = loop {
        match output.next().await {
            Some(Ok(Piece::Out(bytes))) => {
                frames.extend(&bytes);
                if let Err(error) = deliver(&mut frames, &operations).await {
                    break (Symptom::Protocol, format!("not a frame: {error}"));
                }
            }
            Some(Ok(Piece::Err(bytes))) => {
                let room = MAX_COMPLAINT - complaint.len();
                complaint.extend_from_slice(&bytes[..bytes.len().min(room)]);
            }
            Some(Err(error)) => break (Symptom::StreamEnded, error),
            None => break (Symptom::StreamEnded, "the stream has ended".to_owned()),
        }
    };
    let complaint = String::from_utf8_lossy(&complaint);
    let why = if complaint.is_empty() { why } else { format!("{why} ({})", complaint.trim()) };
    close(&operations, Closed { symptom, detail: why });
}

/// Closes the connection, which wakes all waiting operations. Only the first reason counts.
fn close(operations: &Mutex<Operations>, why: Closed) {
    let mut operations = lock(operations);
    if matches!(*operations, Operations::Open(_)) {
        *operations = Operations::Closed(why);
    }
}

/// Passes each complete frame to its operation.
async fn deliver(
    frames: &mut FrameBuffer,
    operations: &Mutex<Operations>,
) -> Result<(), crate::guest::frame::FrameError> {
    while let Some(message) = frames.next_message::<ToHost>()? {
        let waiting = match &*lock(operations) {
            Operations::Open(open) => open.get(&message.id()).cloned(),
            Operations::Closed(_) => None,
        };
        // Otherwise the operation was dropped meanwhile.
        if let Some(waiting) = waiting {
            let _ = waiting.send(message).await;
        }
    }
    Ok(())
}

/// A poisoned lock only means that another task panicked between two complete changes.
fn lock(operations: &Mutex<Operations>) -> MutexGuard<'_, Operations> {
    operations.lock().unwrap_or_else(PoisonError::into_inner)
}
