//! Sockets in the sandbox that the host answers: one request and one reply for each connection.
//!
//! On a Unix socket, a request is everything up to the client's end of writing. On a loopback port,
//! it is an HTTP/1.1 message: there, programs reach a model's endpoint without a network.
//!
//! Requests and replies pass through in pieces. So a request may have any length, and a client gets
//! the start of a reply while the host works on the rest.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use super::frame::{CHUNK, Id, MAX_CALLS, MAX_INPUT, PORT_PREFIX, ToHost};
use super::http::{CONTINUE, Message, Scanner};
use super::sys;
use super::wire::{Interest, Outbound, Source, read_some, write_ready};

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
    Request(Scanner),
    /// The host has the request.
    Reply(Reply),
    /// The reply became longer than the guest can hold.
    Broken,
}

/// The part of a reply that the client has not been sent.
#[derive(Debug, Default)]
struct Reply {
    bytes: Vec<u8>,
    sent: usize,
    /// The host sends no more.
    is_whole: bool,
}

/// What becomes of a connection after a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Stays,
    Closed,
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
        let held: usize = self.calls.iter().map(Call::held).sum();
        let Some(call) = self.find(id, number) else { return };
        if held + bytes.len() > MAX_INPUT {
            call.stage = Stage::Broken;
        } else if let Stage::Reply(reply) = &mut call.stage {
            reply.bytes.extend_from_slice(bytes);
        }
    }

    /// A reply is complete.
    pub(super) fn end_reply(&mut self, id: Id, number: u32) {
        if let Some(Call { stage: Stage::Reply(reply), .. }) = self.find(id, number) {
            reply.is_whole = true;
        }
    }

    /// Adds the descriptors that the relay waits for.
    pub(super) fn interest(&self, interest: &mut Interest, out: &Outbound) {
        if self.calls.len() < MAX_CALLS {
            self.listeners.iter().for_each(|(_, listener)| listener.interest(interest));
        }
        self.calls.iter().for_each(|call| call.interest(interest, out));
    }

    /// Does all work that does not block.
    pub(super) fn turn(&mut self, out: &mut Outbound) {
        for (id, listener) in &self.listeners {
            while self.calls.len() < MAX_CALLS
                && let Ok(socket) = listener.accept()
            {
                let stage = Stage::Request(Scanner::default());
                let number = self.next_call;
                self.calls.push(Call { listener: *id, number, socket, stage, continued: false });
                self.next_call = self.next_call.wrapping_add(1);
            }
        }
        self.calls.retain_mut(|call| match call.turn(out) {
            Next::Stays => true,
            Next::Closed => {
                call.socket.close();
                out.send(&ToHost::CallClosed { id: call.listener, call: call.number });
                false
            }
        });
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
    /// Number of bytes of its reply that are held.
    fn held(&self) -> usize {
        match &self.stage {
            Stage::Reply(reply) => reply.bytes.len(),
            Stage::Request(_) | Stage::Broken => 0,
        }
    }

    fn interest(&self, interest: &mut Interest, out: &Outbound) {
        match (&self.stage, &self.socket) {
            (Stage::Request(_), _) if out.has_room() => self.socket.waits_for_reading(interest),
            (Stage::Reply(reply), _) if reply.has_work() => self.socket.waits_for_writing(interest),
            // A client of a port that closes its connection does not want the reply. On a Unix
            // socket, the end of the request looks the same.
            (Stage::Reply(_), Socket::Port(_)) => self.socket.waits_for_reading(interest),
            (Stage::Request(_), _) | (Stage::Reply(_), Socket::Unix(_)) => {}
            (Stage::Broken, _) => interest.at_once(),
        }
    }

    /// Continues with a connection.
    fn turn(&mut self, out: &mut Outbound) -> Next {
        match &mut self.stage {
            Stage::Request(_) if !out.has_room() => Next::Stays,
            Stage::Request(scanner) => {
                let mut piece = Vec::new();
                let source = read_some(&mut self.socket, CHUNK, |bytes| piece.extend_from_slice(bytes));
                let open = matches!(source, Source::More | Source::Dry);
                let end = match &mut self.socket {
                    Socket::Unix(_) if open => None,
                    Socket::Unix(_) => Some(piece.len()),
                    Socket::Port(_) if piece.is_empty() && open => None,
                    Socket::Port(socket) => match scanner.take(&piece) {
                        Message::Complete(end) => Some(end),
                        // A client that closes the connection within a message has sent no request.
                        Message::Partial { .. } if !open => return Next::Closed,
                        Message::Partial { expects_continue } => {
                            if expects_continue && !self.continued {
                                self.continued = true;
                                // A client that does not get it sends its body all the same.
                                let _ = socket.write(CONTINUE);
                            }
                            None
                        }
                        Message::Malformed => return Next::Closed,
                    },
                };
                piece.truncate(end.unwrap_or(piece.len()));
                if !piece.is_empty() {
                    out.send(&ToHost::Call { id: self.listener, call: self.number, bytes: piece });
                }
                if end.is_some() {
                    out.send(&ToHost::CallEnd { id: self.listener, call: self.number });
                    self.stage = Stage::Reply(Reply::default());
                }
                Next::Stays
            }
            Stage::Reply(reply) => {
                if !reply.write(&mut self.socket) || (reply.is_whole && reply.bytes.is_empty()) {
                    return Next::Closed;
                }
                match &mut self.socket {
                    Socket::Unix(_) => Next::Stays,
                    // Bytes after the request are dropped: no further one is read.
                    socket @ Socket::Port(_) => match read_some(socket, CHUNK, |_| {}) {
                        Source::More | Source::Dry => Next::Stays,
                        Source::Ended | Source::Failed(_) => Next::Closed,
                    },
                }
            }
            Stage::Broken => Next::Closed,
        }
    }
}

impl Reply {
    /// Whether it can go on as soon as the socket can be written to.
    fn has_work(&self) -> bool {
        !self.bytes.is_empty() || self.is_whole
    }

    /// Writes what the client takes now. `false` when it has closed the connection.
    fn write(&mut self, socket: &mut Socket) -> bool {
        let open = write_ready(socket, &self.bytes, &mut self.sent);
        // Not after each write: a move of the rest costs more than it saves.
        if self.sent > self.bytes.len() / 2 {
            self.bytes.drain(..self.sent);
            self.sent = 0;
        }
        open
    }
}
