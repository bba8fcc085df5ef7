//! A program on a pseudo-terminal: bytes in, bytes out. Emulating the terminal is the host's business.

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

/// What comes from a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PtyEvent {
    Output(Vec<u8>),
    /// The answer to [`PtyInput::peek`], after all output that was there before it.
    Peeked(Peek),
    /// The program has ended; nothing follows.
    Ended(ProcessOutcome),
    /// The sandbox has ended; nothing follows.
    Lost(String),
}

/// What the program of a terminal was doing when it was looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Peek {
    /// The program itself (for a shell: no command of it) is in the foreground, reads single keys, has read all that were typed,
    /// and sleeps. Of a shell with line editing this means that it stands at its prompt.
    pub at_prompt: bool,
    /// When the youngest other process of its session was started, in clock ticks since boot; 0 without any.
    pub youngest: u64,
}

/// A terminal in a sandbox. Dropping it kills its program.
///
/// Read its events: a terminal whose output nobody takes holds back every answer of its sandbox in the end.
#[derive(Debug)]
pub struct Pty {
    operation: Operation,
}

impl Pty {
    pub(super) fn new(mut operation: Operation) -> Self {
        // The answer to the start was not the last one.
        operation.finished = false;
        Self { operation }
    }

    /// What the terminal says next.
    pub async fn next(&mut self) -> PtyEvent {
        match self.operation.next().await {
            Ok(ToHost::Chunk { bytes, .. }) => PtyEvent::Output(bytes),
            Ok(ToHost::Peeked { at_prompt, youngest, .. }) => PtyEvent::Peeked(Peek { at_prompt, youngest }),
            Ok(ToHost::ProcessDone { how, .. }) => {
                self.operation.finished = true;
                PtyEvent::Ended(process_outcome(how))
            }
            Ok(other) => PtyEvent::Lost(format!("the guest answered {other:?}")),
            Err(closed) => PtyEvent::Lost(closed.detail),
        }
    }

    /// A handle for input, to be used while [`Pty::next`] waits.
    pub fn input(&self) -> PtyInput {
        PtyInput { id: self.operation.id, sender: self.operation.sender() }
    }
}

/// The keyboard and the frame of a [`Pty`].
#[derive(Clone, Debug)]
pub struct PtyInput {
    id: u32,
    sender: Sender,
}

impl PtyInput {
    /// Types bytes. That the terminal has ended is told by its events, not here.
    pub async fn write(&self, bytes: &[u8]) {
        for piece in bytes.chunks(CHUNK) {
            let _ = self.sender.send(&ToGuest::Data { id: self.id, bytes: piece.to_vec() }).await;
        }
    }

    /// Asks what the program is doing; [`Pty::next`] has the answer. A program that has ended gives none.
    pub async fn peek(&self) {
        let _ = self.sender.send(&ToGuest::Peek { id: self.id }).await;
    }

    /// Changes the size; the program gets SIGWINCH.
    pub async fn resize(&self, size: PtySize) {
        let _ = self.sender.send(&ToGuest::Resize { id: self.id, rows: size.rows, cols: size.cols }).await;
    }
}
