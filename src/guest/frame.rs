//! The frames between host and guest. A frame is its length (`u32`), a kind, an operation id and
//! fields. All integers are little-endian.
//!
//! Both sides decode strictly. A frame ends the connection if it is too long, truncated, of an
//! unknown kind, or has bytes left over. Bulk data comes in pieces of [`CHUNK`] bytes, so each side
//! needs little memory.

use super::codec::{Decoder, encode};

/// Raised with every change of a frame. Host and guest come from one build, so another version
/// means a guest of another build.
pub const VERSION: u32 = 7;
/// Maximum length of a frame, without its length field: a [`MAX_COMMAND`] and its envelope.
pub const MAX_FRAME: usize = MAX_COMMAND + 64 * 1024;
/// Maximum length of a shell command. Also of a program's arguments and environment together.
pub const MAX_COMMAND: usize = 1024 * 1024;
/// Length of a piece of a file, of input or of output. It is large enough that envelopes do not
/// matter, and small enough that other answers are not delayed.
pub const CHUNK: usize = 64 * 1024;
/// Maximum length of a program's input, and of the part of a reply that a relay's client has not
/// read yet. The guest holds these in memory.
pub const MAX_INPUT: usize = 16 * 1024 * 1024;
/// Maximum number of open connections of a relay. Further ones wait in the socket's queue.
pub const MAX_CALLS: usize = 200;
/// Maximum length of the head of an HTTP request.
pub const MAX_HEAD: usize = 64 * 1024;

/// A `Listen` path with this prefix is a loopback port, e.g. `port:8080`, instead of a Unix socket.
pub const PORT_PREFIX: &[u8] = b"port:";

/// Number of an operation. The host chooses it.
pub type Id = u32;

/// Messages from the host to the guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToGuest {
    /// The first frame: the shell's work directory, and its `HOME`.
    Boot {
        version: u32,
        workdir: Vec<u8>,
        home: Vec<u8>,
    },
    Shell {
        id: Id,
        timeout_ms: u64,
        max_output: u64,
        command: Vec<u8>,
    },
    /// `Data` with the standard input follows, then `End`.
    Spawn {
        id: Id,
        timeout_ms: u64,
        max_output: u64,
        program: Program,
    },
    Pty {
        id: Id,
        rows: u16,
        cols: u16,
        program: Program,
    },
    Resize {
        id: Id,
        rows: u16,
        cols: u16,
    },
    /// `Data` with the content follows, then `End`.
    PutFile {
        id: Id,
        mode: u32,
        path: Vec<u8>,
    },
    GetFile {
        id: Id,
        max: u64,
        path: Vec<u8>,
    },
    /// Opens a socket, and forwards its requests to the host. A path with [`PORT_PREFIX`] is a
    /// loopback port.
    Listen {
        id: Id,
        path: Vec<u8>,
    },
    /// A part of the reply to a relay request. The client gets it at once.
    Reply {
        id: Id,
        call: u32,
        bytes: Vec<u8>,
    },
    ReplyEnd {
        id: Id,
        call: u32,
    },
    Data {
        id: Id,
        bytes: Vec<u8>,
    },
    End {
        id: Id,
    },
    /// Asks for the state of a terminal's program.
    PtyStateRequest {
        id: Id,
    },
    /// The host does not wait any longer. The operation ends as if it had timed out.
    Cancel {
        id: Id,
    },
    /// The user of all shells and terminals that start after this. Other programs run as root.
    Account {
        id: Id,
        account: Account,
    },
    /// Kills every process but the guest.
    KillAll {
        id: Id,
    },
    /// The engine pauses the container. This has no answer.
    Paused,
    /// A pause of this length has ended. This has no answer.
    Resumed {
        micros: u64,
    },
}

/// A user of the container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    pub uid: u32,
    pub gid: u32,
    /// Supplementary groups.
    pub groups: Vec<u32>,
    pub name: Vec<u8>,
    pub home: Vec<u8>,
}

/// A program to execute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    pub argv: Vec<Vec<u8>>,
    /// The whole environment, as `NAME=value`.
    pub env: Vec<Vec<u8>>,
    pub cwd: Vec<u8>,
}

/// Messages from the guest to the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToHost {
    /// The guest is ready. It sends this without a request.
    Hello {
        version: u32,
    },
    /// A `PutFile`, `Listen`, `Account`, `KillAll` or the boot (id 0) has succeeded. A `GetFile`
    /// has sent everything.
    Done {
        id: Id,
    },
    Failed {
        id: Id,
        errno: i32,
        /// If a start failed: whose limit it met.
        limit: Limit,
        message: Vec<u8>,
    },
    /// Output of a program or a terminal, or content of a file.
    Chunk {
        id: Id,
        stream: Stream,
        bytes: Vec<u8>,
    },
    ShellDone {
        id: Id,
        how: Termination,
        restarted: bool,
        bytes: u64,
        micros: u64,
    },
    ProcessDone {
        id: Id,
        how: Termination,
        stdout: u64,
        stderr: u64,
        micros: u64,
    },
    /// State of a terminal's program. All earlier output was sent before.
    PtyState {
        id: Id,
        /// The program is in the foreground, reads single keys, has read all input, and sleeps.
        at_prompt: bool,
        /// Start time of the youngest other process of its session, in clock ticks since boot. 0 if
        /// there is none.
        youngest: u64,
    },
    /// A part of a relay request.
    Call {
        id: Id,
        call: u32,
        bytes: Vec<u8>,
    },
    CallEnd {
        id: Id,
        call: u32,
    },
    /// The connection of a relay request is closed, by the client or after the whole reply.
    CallClosed {
        id: Id,
        call: u32,
    },
}

impl ToHost {
    /// The operation of the message.
    pub fn id(&self) -> Id {
        match self {
            Self::Hello { .. } => 0,
            Self::Done { id }
            | Self::Failed { id, .. }
            | Self::Chunk { id, .. }
            | Self::ShellDone { id, .. }
            | Self::ProcessDone { id, .. }
            | Self::PtyState { id, .. }
            | Self::Call { id, .. }
            | Self::CallEnd { id, .. }
            | Self::CallClosed { id, .. } => *id,
        }
    }
}

/// Which output a chunk belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    Out,
    Err,
}

/// Whose limit prevented the start of a process or a terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Limit {
    /// None was met, or it is not known whose.
    #[default]
    Unknown,
    /// The container's own.
    Own,
    /// A limit that all containers of the host share. This container did not use it up.
    Host,
}

/// How a command or program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Termination {
    Exited(i32),
    Signaled(i32),
    TimedOut,
    /// The shell exited with this status before the command was complete.
    ShellDied(i32),
}

/// Why bytes are no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameError {
    TooLong(usize),
    Truncated,
    Trailing(usize),
    UnknownKind(u8),
}

impl std::fmt::Display for FrameError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TooLong(length) => write!(f, "frame of {length} bytes, longer than {MAX_FRAME}"),
            Self::Truncated => f.write_str("frame ends inside a field"),
            Self::Trailing(bytes) => write!(f, "{bytes} bytes after the last field of a frame"),
            Self::UnknownKind(kind) => write!(f, "unknown frame kind {kind}"),
        }
    }
}

impl std::error::Error for FrameError {}

/// A message in its binary form.
pub trait Message: Sized {
    /// Appends the whole frame.
    fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        self.fields(out);
        let length = u32::try_from(out.len() - start - 4).unwrap_or(u32::MAX);
        out[start..start + 4].copy_from_slice(&length.to_le_bytes());
    }

    /// Appends kind and fields.
    fn fields(&self, out: &mut Vec<u8>);

    /// Decodes kind and fields.
    fn decode(body: &[u8]) -> Result<Self, FrameError>;
}

/// Splits a byte stream into frames.
#[derive(Debug, Default)]
pub struct FrameBuffer {
    bytes: Vec<u8>,
    /// Offset of the first frame that is not decoded yet. The bytes before are dropped when more
    /// arrive.
    start: usize,
}

impl FrameBuffer {
    /// Adds received bytes.
    pub fn extend(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.start);
        self.start = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// The next complete message.
    pub fn next_message<M: Message>(&mut self) -> Result<Option<M>, FrameError> {
        let rest = &self.bytes[self.start..];
        let Some((length, rest)) = rest.split_first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_le_bytes(*length) as usize;
        if length > MAX_FRAME {
            return Err(FrameError::TooLong(length));
        }
        let Some(body) = rest.get(..length) else { return Ok(None) };
        let message = M::decode(body)?;
        self.start += 4 + length;
        Ok(Some(message))
    }
}

impl Message for ToGuest {
    fn fields(&self, out: &mut Vec<u8>) {
        match self {
            Self::Boot { version, workdir, home } => {
                encode(out, 0).u32(*version).bytes(workdir).bytes(home);
            }
            Self::Shell { id, timeout_ms, max_output, command } => {
                encode(out, 1).u32(*id).u64(*timeout_ms).u64(*max_output).bytes(command);
            }
            Self::Spawn { id, timeout_ms, max_output, program } => {
                encode(out, 2).u32(*id).u64(*timeout_ms).u64(*max_output).program(program);
            }
            Self::Pty { id, rows, cols, program } => {
                encode(out, 3).u32(*id).u16(*rows).u16(*cols).program(program);
            }
            Self::Resize { id, rows, cols } => {
                encode(out, 4).u32(*id).u16(*rows).u16(*cols);
            }
            Self::PutFile { id, mode, path } => {
                encode(out, 5).u32(*id).u32(*mode).bytes(path);
            }
            Self::GetFile { id, max, path } => {
                encode(out, 6).u32(*id).u64(*max).bytes(path);
            }
            Self::Listen { id, path } => {
                encode(out, 7).u32(*id).bytes(path);
            }
            Self::Reply { id, call, bytes } => {
                encode(out, 8).u32(*id).u32(*call).bytes(bytes);
            }
            Self::ReplyEnd { id, call } => {
                encode(out, 9).u32(*id).u32(*call);
            }
            Self::Data { id, bytes } => {
                encode(out, 10).u32(*id).bytes(bytes);
            }
            Self::End { id } => {
                encode(out, 11).u32(*id);
            }
            Self::Cancel { id } => {
                encode(out, 12).u32(*id);
            }
            Self::PtyStateRequest { id } => {
                encode(out, 13).u32(*id);
            }
            Self::Account { id, account: Account { uid, gid, groups, name, home } } => {
                // A user has at most some dozens of groups. The kernel's limit is 65,536.
                let count = u16::try_from(groups.len()).unwrap_or(u16::MAX);
                let mut fields = encode(out, 14).u32(*id).u32(*uid).u32(*gid).u16(count);
                for group in groups.iter().take(count.into()) {
                    fields = fields.u32(*group);
                }
                fields.bytes(name).bytes(home);
            }
            Self::KillAll { id } => {
                encode(out, 15).u32(*id);
            }
            Self::Paused => {
                encode(out, 16);
            }
            Self::Resumed { micros } => {
                encode(out, 17).u64(*micros);
            }
        }
    }

    fn decode(body: &[u8]) -> Result<Self, FrameError> {
        let mut decoder = Decoder(body);
        let message = match decoder.u8()? {
            0 => Self::Boot { version: decoder.u32()?, workdir: decoder.bytes()?, home: decoder.bytes()? },
            1 => Self::Shell {
                id: decoder.u32()?,
                timeout_ms: decoder.u64()?,
                max_output: decoder.u64()?,
                command: decoder.bytes()?,
            },
            2 => Self::Spawn {
                id: decoder.u32()?,
                timeout_ms: decoder.u64()?,
                max_output: decoder.u64()?,
                program: decoder.program()?,
            },
            3 => Self::Pty {
                id: decoder.u32()?,
                rows: decoder.u16()?,
                cols: decoder.u16()?,
                program: decoder.program()?,
            },
            4 => Self::Resize { id: decoder.u32()?, rows: decoder.u16()?, cols: decoder.u16()? },
            5 => Self::PutFile { id: decoder.u32()?, mode: decoder.u32()?, path: decoder.bytes()? },
            6 => Self::GetFile { id: decoder.u32()?, max: decoder.u64()?, path: decoder.bytes()? },
            7 => Self::Listen { id: decoder.u32()?, path: decoder.bytes()? },
            8 => Self::Reply { id: decoder.u32()?, call: decoder.u32()?, bytes: decoder.bytes()? },
            9 => Self::ReplyEnd { id: decoder.u32()?, call: decoder.u32()? },
            10 => Self::Data { id: decoder.u32()?, bytes: decoder.bytes()? },
            11 => Self::End { id: decoder.u32()? },
            12 => Self::Cancel { id: decoder.u32()? },
            13 => Self::PtyStateRequest { id: decoder.u32()? },
            14 => {
                let (id, uid, gid) = (decoder.u32()?, decoder.u32()?, decoder.u32()?);
                let groups = (0..decoder.u16()?).map(|_| decoder.u32()).collect::<Result<_, _>>()?;
                let (name, home) = (decoder.bytes()?, decoder.bytes()?);
                Self::Account { id, account: Account { uid, gid, groups, name, home } }
            }
            15 => Self::KillAll { id: decoder.u32()? },
            16 => Self::Paused,
            17 => Self::Resumed { micros: decoder.u64()? },
            kind => return Err(FrameError::UnknownKind(kind)),
        };
        decoder.end(message)
    }
}

impl Message for ToHost {
    fn fields(&self, out: &mut Vec<u8>) {
        match self {
            Self::Hello { version } => {
                encode(out, 0).u32(*version);
            }
            Self::Done { id } => {
                encode(out, 1).u32(*id);
            }
            Self::Failed { id, errno, limit, message } => {
                encode(out, 2).u32(*id).i32(*errno).limit(*limit).bytes(message);
            }
            Self::Chunk { id, stream, bytes } => {
                encode(out, 3).u32(*id).u8(u8::from(*stream == Stream::Err)).bytes(bytes);
            }
            Self::ShellDone { id, how, restarted, bytes, micros } => {
                encode(out, 4).u32(*id).how(*how).u8(u8::from(*restarted)).u64(*bytes).u64(*micros);
            }
            Self::ProcessDone { id, how, stdout, stderr, micros } => {
                encode(out, 5).u32(*id).how(*how).u64(*stdout).u64(*stderr).u64(*micros);
            }
            Self::Call { id, call, bytes } => {
                encode(out, 6).u32(*id).u32(*call).bytes(bytes);
            }
            Self::CallEnd { id, call } => {
                encode(out, 7).u32(*id).u32(*call);
            }
            Self::CallClosed { id, call } => {
                encode(out, 9).u32(*id).u32(*call);
            }
            Self::PtyState { id, at_prompt, youngest } => {
                encode(out, 8).u32(*id).u8(u8::from(*at_prompt)).u64(*youngest);
            }
        }
    }

    fn decode(body: &[u8]) -> Result<Self, FrameError> {
        let mut decoder = Decoder(body);
        let message = match decoder.u8()? {
            0 => Self::Hello { version: decoder.u32()? },
            1 => Self::Done { id: decoder.u32()? },
            2 => Self::Failed {
                id: decoder.u32()?,
                errno: decoder.i32()?,
                limit: decoder.limit()?,
                message: decoder.bytes()?,
            },
            3 => Self::Chunk { id: decoder.u32()?, stream: decoder.stream()?, bytes: decoder.bytes()? },
            4 => Self::ShellDone {
                id: decoder.u32()?,
                how: decoder.how()?,
                restarted: decoder.flag()?,
                bytes: decoder.u64()?,
                micros: decoder.u64()?,
            },
            5 => Self::ProcessDone {
                id: decoder.u32()?,
                how: decoder.how()?,
                stdout: decoder.u64()?,
                stderr: decoder.u64()?,
                micros: decoder.u64()?,
            },
            6 => Self::Call { id: decoder.u32()?, call: decoder.u32()?, bytes: decoder.bytes()? },
            7 => Self::CallEnd { id: decoder.u32()?, call: decoder.u32()? },
            8 => Self::PtyState { id: decoder.u32()?, at_prompt: decoder.flag()?, youngest: decoder.u64()? },
            9 => Self::CallClosed { id: decoder.u32()?, call: decoder.u32()? },
            kind => return Err(FrameError::UnknownKind(kind)),
        };
        decoder.end(message)
    }
}

#[cfg(test)]
mod tests;
