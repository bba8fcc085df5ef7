//! A program on a pseudo-terminal: bytes in, bytes out. The caller emulates the terminal.

use crate::guest::frame::{CHUNK, ToGuest, ToHost};

use super::ProcessOutcome;
use super::connection::{Operation, Sender};
use super::sandbox::process_outcome;

/// Size of a terminal in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PtySize {
    pub rows: u16,
    pub cols: u16,
}

/// An event of a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PtyEvent {
    Output(Vec<u8>),
    /// The answer to [`PtyInput::request_status`]. It follows all output that was written before
    /// the answer.
    Status(PtyStatus),
    /// The program has ended. Nothing follows.
    Ended(ProcessOutcome),
    /// The sandbox has ended. Nothing follows.
    Lost(String),
}

/// The state of a terminal's program at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PtyStatus {
    /// The program itself is in the foreground, reads single keys, has read all pending input, and
    /// sleeps. A shell with line editing is then at its prompt.
    pub at_prompt: bool,
    /// Start time of the youngest other process of its session, in clock ticks since boot. 0 if
    /// there is none.
    pub youngest: u64,
}

/// A terminal in a sandbox. Dropping it kills its program.
///
/// The caller must read its events. A terminal whose output nobody reads finally blocks every
/// answer of its sandbox.
#[derive(Debug)]
pub struct Pty {
    operation: Operation,
}

impl Pty {
    pub(super) fn new(mut operation: Operation) -> Self {
        // More answers follow the answer to the start.
        operation.finished = false;
        Self { operation }
    }

    /// The next event.
    pub async fn next(&mut self) -> PtyEvent {
        match self.operation.next().await {
            Ok(ToHost::Chunk { bytes, .. }) => PtyEvent::Output(bytes),
            Ok(ToHost::PtyState { at_prompt, youngest, .. }) => {
                PtyEvent::Status(PtyStatus { at_prompt, youngest })
            }
            Ok(ToHost::ProcessDone { how, .. }) => {
                self.operation.finished = true;
                PtyEvent::Ended(process_outcome(how))
            }
            Ok(other) => PtyEvent::Lost(format!("the guest answered {other:?}")),
            Err(closed) => PtyEvent::Lost(closed.detail),
        }
    }

    /// A handle for input. It can be used while [`Pty::next`] waits.
    pub fn input(&self) -> PtyInput {
        PtyInput { id: self.operation.id, sender: self.operation.sender() }
    }
}

/// Input and size of a [`Pty`].
#[derive(Clone, Debug)]
pub struct PtyInput {
    id: u32,
    sender: Sender,
}

impl PtyInput {
    /// Sends input. If the terminal has ended, its events say so.
    pub async fn write(&self, bytes: &[u8]) {
        for piece in bytes.chunks(CHUNK) {
            let _ = self.sender.send(&ToGuest::Data { id: self.id, bytes: piece.to_vec() }).await;
        }
    }

    /// Requests the program's state, which [`Pty::next`] returns. A program that has ended gives no
    /// answer.
    pub async fn request_status(&self) {
        let _ = self.sender.send(&ToGuest::PtyStateRequest { id: self.id }).await;
    }

    /// Changes the size. The program gets SIGWINCH.
    pub async fn resize(&self, size: PtySize) {
        let _ = self.sender.send(&ToGuest::Resize { id: self.id, rows: size.rows, cols: size.cols }).await;
    }
}
