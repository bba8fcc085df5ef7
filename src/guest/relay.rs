//! Sockets in the sandbox that the host answers: one request and one reply for each connection.
//!
//! On a Unix socket, a request is everything up to the client's end of writing. On a loopback port,
//! it is an HTTP/1.1 message: there, programs reach a model's endpoint without a network.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use super::frame::{CHUNK, Id, MAX_INPUT, PORT_PREFIX, ToHost};
use super::http::{CONTINUE, Message, Scanner};
use super::sys;
use super::wire::{Interest, Outbound, read_ready, write_ready};

/// Maximum number of open connections. Further ones wait in the socket's queue.
const MAX_CALLS: usize = 32;
/// Umask for a new socket: only the owner may use it (0600).
const PRIVATE: u32 = 0o177;

/// Listeners and their connections.
#[derive(Debug, Default)]
pub(super) struct Relay {
    listeners: Vec<(Id, Listener)>,
    calls: Vec<Call>,
    next_call: u32,
}

#[derive(Debug)]
enum Listener {
    Unix(UnixListener),
    Port(TcpListener),
}

#[derive(Debug)]
enum Socket {
    Unix(UnixStream),
    Port(TcpStream),
}

#[derive(Debug)]
struct Call {
    listener: Id,
    number: u32,
    socket: Socket,
    stage: Stage,
    /// The client got [`CONTINUE`].
    continued: bool,
}

#[derive(Debug)]
enum Stage {
    /// The request is arriving.
    Request {
        bytes: Vec<u8>,
        scanner: Scanner,
    },
    /// The host has the request. The bytes are the reply so far.
    Waiting(Vec<u8>),
    Reply {
        bytes: Vec<u8>,
        sent: usize,
    },
}

impl Relay {
    /// Listens at `path`, for the guest's user only. A path like `port:8080` is a loopback port.
    pub(super) fn listen(&mut self, id: Id, path: &[u8]) -> io::Result<()> {
        if let Some(port) = path.strip_prefix(PORT_PREFIX) {
            let port = std::str::from_utf8(port).ok().and_then(|port| port.parse().ok());
            let port: u16 = port.ok_or(io::ErrorKind::InvalidInput)?;
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
            listener.set_nonblocking(true)?;
            self.listeners.push((id, Listener::Port(listener)));
            return Ok(());
        }
        let path = Path::new(OsStr::from_bytes(path));
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let listener = sys::with_umask(PRIVATE, || UnixListener::bind(path))?;
        listener.set_nonblocking(true)?;
        self.listeners.push((id, Listener::Unix(listener)));
        Ok(())
    }

    /// Closes a listener and its connections.
    pub(super) fn cancel(&mut self, id: Id) {
        self.listeners.retain(|(listener, _)| *listener != id);
        self.calls.retain(|call| call.listener != id);
    }

    /// Queues a part of a reply.
    pub(super) fn reply(&mut self, id: Id, number: u32, bytes: &[u8]) {
        if let Some(Call { stage: Stage::Waiting(reply), .. }) = self.find(id, number)
            && reply.len() + bytes.len() <= MAX_INPUT
        {
            reply.extend_from_slice(bytes);
        }
    }

    /// A reply is complete.
    pub(super) fn end_reply(&mut self, id: Id, number: u32) {
        if let Some(call) = self.find(id, number)
            && let Stage::Waiting(reply) = &mut call.stage
        {
            call.stage = Stage::Reply { bytes: std::mem::take(reply), sent: 0 };
        }
    }

    /// Adds the descriptors that the relay waits for.
    pub(super) fn interest(&self, interest: &mut Interest, out: &Outbound) {
        if self.calls.len() < MAX_CALLS {
            self.listeners.iter().for_each(|(_, listener)| listener.interest(interest));
        }
        for call in &self.calls {
            match call.stage {
                Stage::Request { .. } if out.has_room() => call.socket.waits_for_reading(interest),
                Stage::Request { .. } | Stage::Waiting(_) => {}
                Stage::Reply { .. } => call.socket.waits_for_writing(interest),
            }
        }
    }

    /// Does all work that does not block.
    pub(super) fn turn(&mut self, out: &mut Outbound) {
        for (id, listener) in &self.listeners {
            while self.calls.len() < MAX_CALLS
                && let Ok(socket) = listener.accept()
            {
                let stage = Stage::Request { bytes: Vec::new(), scanner: Scanner::default() };
                let number = self.next_call;
                self.calls.push(Call { listener: *id, number, socket, stage, continued: false });
                self.next_call = self.next_call.wrapping_add(1);
            }
        }
        self.calls.retain_mut(|call| call.turn(out));
    }

    fn find(&mut self, listener: Id, number: u32) -> Option<&mut Call> {
        self.calls.iter_mut().find(|call| call.listener == listener && call.number == number)
    }
}

impl Listener {
    fn interest(&self, interest: &mut Interest) {
        match self {
            Self::Unix(listener) => interest.read(listener),
            Self::Port(listener) => interest.read(listener),
        }
    }

    fn accept(&self) -> io::Result<Socket> {
        match self {
            Self::Unix(listener) => {
                let (socket, _) = listener.accept()?;
                socket.set_nonblocking(true)?;
                Ok(Socket::Unix(socket))
            }
            Self::Port(listener) => {
                let (socket, _) = listener.accept()?;
                socket.set_nonblocking(true)?;
                Ok(Socket::Port(socket))
            }
        }
    }
}

/// Evaluates an expression with the inner socket, of either kind.
macro_rules! either {
    ($socket:expr, $inner:ident => $do:expr) => {
        match $socket {
            Socket::Unix($inner) => $do,
            Socket::Port($inner) => $do,
        }
    };
}

impl Socket {
    fn waits_for_reading(&self, interest: &mut Interest) {
        either!(self, socket => interest.read(socket));
    }

    fn waits_for_writing(&self, interest: &mut Interest) {
        either!(self, socket => interest.write(socket));
    }

    /// Shuts down both directions: neither side has anything left to send.
    fn close(&self) {
        let _ = either!(self, socket => socket.shutdown(Shutdown::Both));
    }
}

impl Read for Socket {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        either!(self, socket => socket.read(bytes))
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        either!(self, socket => socket.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        either!(self, socket => socket.flush())
    }
}

impl Call {
    /// Continues with a connection. `false` when it is finished.
    fn turn(&mut self, out: &mut Outbound) -> bool {
        match &mut self.stage {
            Stage::Request { bytes: request, scanner } => {
                if !out.has_room() {
                    return true;
                }
                let open = read_ready(&mut self.socket, CHUNK, |bytes| request.extend_from_slice(bytes));
                if request.len() > MAX_INPUT {
                    return false;
                }
                let complete = match &mut self.socket {
                    Socket::Unix(_) => !open,
                    Socket::Port(socket) => match scanner.look(request) {
                        Message::Complete => true,
                        // A client that closes the connection within a message has sent no request.
                        Message::Partial { .. } if !open => return false,
                        Message::Partial { expects_continue } => {
                            if expects_continue && !self.continued {
                                self.continued = true;
                                // A client that does not get it sends its body all the same.
                                let _ = socket.write(CONTINUE);
                            }
                            false
                        }
                        Message::Malformed => return false,
                    },
                };
                if complete {
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
                self.socket.close();
                false
            }
        }
    }
}
