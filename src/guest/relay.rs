//! Sockets in the sandbox whose other end is the host: one request, one reply, closed.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::net::Shutdown;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use super::frame::{CHUNK, Id, MAX_INPUT, ToHost};
use super::sys;
use super::wire::{Interest, Outbound, read_ready, write_ready};

/// Calls that may be open at once; more wait in the socket's queue.
const MAX_CALLS: usize = 32;
/// Takes all permissions but the owner's from a new socket: 0600.
const PRIVATE: u32 = 0o177;

/// Listeners and their calls.
#[derive(Debug, Default)]
pub(super) struct Relay {
    listeners: Vec<(Id, UnixListener)>,
    calls: Vec<Call>,
    next_call: u32,
}

#[derive(Debug)]
struct Call {
    listener: Id,
    number: u32,
    socket: UnixStream,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// The caller speaks until it closes its side.
    Request(Vec<u8>),
    /// The host has been asked.
    Waiting(Vec<u8>),
    Reply {
        bytes: Vec<u8>,
        sent: usize,
    },
}

impl Relay {
    /// Listens at `path`, for the guest's user alone.
    pub(super) fn listen(&mut self, id: Id, path: &[u8]) -> io::Result<()> {
        let path = Path::new(OsStr::from_bytes(path));
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let listener = sys::with_umask(PRIVATE, || UnixListener::bind(path))?;
        listener.set_nonblocking(true)?;
        self.listeners.push((id, listener));
        Ok(())
    }

    /// Closes a listener and its calls.
    pub(super) fn cancel(&mut self, id: Id) {
        self.listeners.retain(|(listener, _)| *listener != id);
        self.calls.retain(|call| call.listener != id);
    }

    /// Takes a piece of a reply.
    pub(super) fn reply(&mut self, id: Id, number: u32, bytes: &[u8]) {
        if let Some(Call { stage: Stage::Waiting(reply), .. }) = self.find(id, number)
            && reply.len() + bytes.len() <= MAX_INPUT
        {
            reply.extend_from_slice(bytes);
        }
    }

    /// The reply is complete.
    pub(super) fn end_reply(&mut self, id: Id, number: u32) {
        if let Some(call) = self.find(id, number)
            && let Stage::Waiting(reply) = &mut call.stage
        {
            call.stage = Stage::Reply { bytes: std::mem::take(reply), sent: 0 };
        }
    }

    /// Adds what it waits for.
    pub(super) fn interest(&self, interest: &mut Interest, out: &Outbound) {
        if self.calls.len() < MAX_CALLS {
            self.listeners.iter().for_each(|(_, listener)| interest.read(listener));
        }
        for call in &self.calls {
            match call.stage {
                Stage::Request(_) if out.has_room() => interest.read(&call.socket),
                Stage::Request(_) | Stage::Waiting(_) => {}
                Stage::Reply { .. } => interest.write(&call.socket),
            }
        }
    }

    /// Does what can be done now.
    pub(super) fn turn(&mut self, out: &mut Outbound) {
        for (listener, socket) in &self.listeners {
            while self.calls.len() < MAX_CALLS
                && let Ok((socket, _)) = socket.accept()
                && socket.set_nonblocking(true).is_ok()
            {
                let stage = Stage::Request(Vec::new());
                self.calls.push(Call { listener: *listener, number: self.next_call, socket, stage });
                self.next_call = self.next_call.wrapping_add(1);
            }
        }
        self.calls.retain_mut(|call| call.turn(out));
    }

    fn find(&mut self, listener: Id, number: u32) -> Option<&mut Call> {
        self.calls.iter_mut().find(|call| call.listener == listener && call.number == number)
    }
}

impl Call {
    /// Goes on; `false` when it is over.
    fn turn(&mut self, out: &mut Outbound) -> bool {
        match &mut self.stage {
            Stage::Request(request) => {
                if !out.has_room() {
                    return true;
                }
                let open = read_ready(&mut self.socket, CHUNK, |bytes| request.extend_from_slice(bytes));
                if request.len() > MAX_INPUT {
                    return false;
                }
                if !open {
                    for piece in request.chunks(CHUNK) {
                        let (id, call) = (self.listener, self.number);
                        out.send(&ToHost::Call { id, call, bytes: piece.to_vec() });
                    }
                    out.send(&ToHost::CallEnd { id: self.listener, call: self.number });
                    self.stage = Stage::Waiting(Vec::new());
                }
                true
            }
            Stage::Waiting(_) => true,
            Stage::Reply { bytes, sent } => {
                let open = write_ready(&mut self.socket, bytes, sent);
                if open && *sent < bytes.len() {
                    return true;
                }
                // The caller reads to the end of the stream; it has nothing more to say, and neither have we.
                let _ = self.socket.shutdown(Shutdown::Both);
                false
            }
        }
    }
}
