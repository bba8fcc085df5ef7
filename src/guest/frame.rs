//! The frames between host and guest: `u32` length, then kind, operation id and fields, all little-endian.
//!
//! Both sides decode strictly: a frame that is too long, of unknown kind, too short or with bytes left over ends the
//! connection. Bulk data travels in [`CHUNK`]-sized pieces, so neither side ever holds more than it has agreed to keep.

use super::codec::{Take, put};

/// Bumped whenever a frame changes. Host and guest come from one build, so a mismatch means a foreign guest.
pub const VERSION: u32 = 4;
/// Longest frame after its length field: a [`MAX_COMMAND`] with its envelope.
pub const MAX_FRAME: usize = MAX_COMMAND + 64 * 1024;
/// Longest shell command, and longest argument vector and environment together.
pub const MAX_COMMAND: usize = 1024 * 1024;
/// Piece of a file, of standard input or of an output: large enough that the envelope does not matter, small enough that
/// an answer to another operation never waits long behind it.
pub const CHUNK: usize = 64 * 1024;
/// Most bytes of standard input of one program and of one relay request or reply, which the guest holds in memory.
pub const MAX_INPUT: usize = 16 * 1024 * 1024;

/// Begins the path of a listen that is no path but a port of the loopback address, in decimal.
pub const PORT_PREFIX: &[u8] = b"port:";

/// Names an operation; chosen by the host.
pub type Id = u32;

/// What the host asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToGuest {
    /// First frame: where the shell starts and what it has for a home.
    Boot {
        version: u32,
        workdir: Vec<u8>,
        home: Vec<u8>,
    },
    Shell {
        id: Id,
        timeout_ms: u64,
        keep: u64,
        command: Vec<u8>,
    },
    /// Standard input follows as `Data` and ends with `End`.
    Spawn {
        id: Id,
        timeout_ms: u64,
        keep: u64,
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
    /// Content follows as `Data` and ends with `End`.
    Put {
        id: Id,
        mode: u32,
        path: Vec<u8>,
    },
    Get {
        id: Id,
        max: u64,
        path: Vec<u8>,
    },
    /// Opens a socket whose calls go to the host. A path that begins with [`PORT_PREFIX`] is a loopback port.
    Listen {
        id: Id,
        path: Vec<u8>,
    },
    /// Part of the answer to a relay call.
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
    /// Asks what a terminal's program is doing.
    Peek {
        id: Id,
    },
    /// Nobody waits for the operation any more: end it as if its time were up.
    Cancel {
        id: Id,
    },
    /// Whose shells and terminals are that start from here on. Programs outside of them stay root's.
    Account {
        id: Id,
        account: Account,
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

/// What to execute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    pub argv: Vec<Vec<u8>>,
    /// `NAME=value` entries: the whole environment.
    pub env: Vec<Vec<u8>>,
    pub cwd: Vec<u8>,
}

/// What the guest answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToHost {
    /// Sent unasked when the guest is up.
    Hello {
        version: u32,
    },
    /// A put, a listen or the boot (id 0) is done; a get has sent everything.
    Done {
        id: Id,
    },
    Failed {
        id: Id,
        errno: i32,
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
        how: How,
        restarted: bool,
        bytes: u64,
        micros: u64,
    },
    ProcessDone {
        id: Id,
        how: How,
        stdout: u64,
        stderr: u64,
        micros: u64,
    },
    /// What a terminal's program does now. Comes after all output that was there before.
    Peeked {
        id: Id,
        /// It waits for keys itself: it is in the foreground, takes keys one by one, has read all there were, and sleeps.
        at_prompt: bool,
        /// Start of the youngest other process of its session, in clock ticks since boot; 0 without any.
        youngest: u64,
    },
    /// Part of a relay request.
    Call {
        id: Id,
        call: u32,
        bytes: Vec<u8>,
    },
    CallEnd {
        id: Id,
        call: u32,
    },
}

impl ToHost {
    /// The operation that it answers.
    pub fn id(&self) -> Id {
        match self {
            Self::Hello { .. } => 0,
            Self::Done { id }
            | Self::Failed { id, .. }
            | Self::Chunk { id, .. }
            | Self::ShellDone { id, .. }
            | Self::ProcessDone { id, .. }
            | Self::Peeked { id, .. }
            | Self::Call { id, .. }
            | Self::CallEnd { id, .. } => *id,
        }
    }
}

/// Which output a chunk belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    Out,
    Err,
}

/// How something that ran has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    Exited(i32),
    Signaled(i32),
    TimedOut,
    /// The shell ended with this status before the command was through.
    ShellDied(i32),
}

/// Why bytes are not a frame.
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

/// A message that knows its bytes.
pub trait Message: Sized {
    /// Appends the frame, with its length field.
    fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        self.fields(out);
        let length = u32::try_from(out.len() - start - 4).unwrap_or(u32::MAX);
        out[start..start + 4].copy_from_slice(&length.to_le_bytes());
    }

    /// Appends kind and fields.
    fn fields(&self, out: &mut Vec<u8>);

    /// Reads kind and fields.
    fn decode(body: &[u8]) -> Result<Self, FrameError>;
}

/// Bytes as they arrive, cut into frames.
#[derive(Debug, Default)]
pub struct FrameBuffer {
    bytes: Vec<u8>,
    /// Start of the first frame that was not taken yet; consumed bytes are dropped when more arrive.
    start: usize,
}

impl FrameBuffer {
    /// Adds bytes from the wire.
    pub fn extend(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.start);
        self.start = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole message, if there is one.
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
                put(out, 0).u32(*version).bytes(workdir).bytes(home);
            }
            Self::Shell { id, timeout_ms, keep, command } => {
                put(out, 1).u32(*id).u64(*timeout_ms).u64(*keep).bytes(command);
            }
            Self::Spawn { id, timeout_ms, keep, program } => {
                put(out, 2).u32(*id).u64(*timeout_ms).u64(*keep).program(program);
            }
            Self::Pty { id, rows, cols, program } => {
                put(out, 3).u32(*id).u16(*rows).u16(*cols).program(program);
            }
            Self::Resize { id, rows, cols } => {
                put(out, 4).u32(*id).u16(*rows).u16(*cols);
            }
            Self::Put { id, mode, path } => {
                put(out, 5).u32(*id).u32(*mode).bytes(path);
            }
            Self::Get { id, max, path } => {
                put(out, 6).u32(*id).u64(*max).bytes(path);
            }
            Self::Listen { id, path } => {
                put(out, 7).u32(*id).bytes(path);
            }
            Self::Reply { id, call, bytes } => {
                put(out, 8).u32(*id).u32(*call).bytes(bytes);
            }
            Self::ReplyEnd { id, call } => {
                put(out, 9).u32(*id).u32(*call);
            }
            Self::Data { id, bytes } => {
                put(out, 10).u32(*id).bytes(bytes);
            }
            Self::End { id } => {
                put(out, 11).u32(*id);
            }
            Self::Cancel { id } => {
                put(out, 12).u32(*id);
            }
            Self::Peek { id } => {
                put(out, 13).u32(*id);
            }
            Self::Account { id, account: Account { uid, gid, groups, name, home } } => {
                // A user is in some dozens of groups; the kernel has a bound of its own, 65,536.
                let count = u16::try_from(groups.len()).unwrap_or(u16::MAX);
                let mut fields = put(out, 14).u32(*id).u32(*uid).u32(*gid).u16(count);
                for group in groups.iter().take(count.into()) {
                    fields = fields.u32(*group);
                }
                fields.bytes(name).bytes(home);
            }
        }
    }

    fn decode(body: &[u8]) -> Result<Self, FrameError> {
        let mut take = Take(body);
        let message = match take.u8()? {
            0 => Self::Boot { version: take.u32()?, workdir: take.bytes()?, home: take.bytes()? },
            1 => Self::Shell {
                id: take.u32()?,
                timeout_ms: take.u64()?,
                keep: take.u64()?,
                command: take.bytes()?,
            },
            2 => Self::Spawn {
                id: take.u32()?,
                timeout_ms: take.u64()?,
                keep: take.u64()?,
                program: take.program()?,
            },
            3 => {
                Self::Pty { id: take.u32()?, rows: take.u16()?, cols: take.u16()?, program: take.program()? }
            }
            4 => Self::Resize { id: take.u32()?, rows: take.u16()?, cols: take.u16()? },
            5 => Self::Put { id: take.u32()?, mode: take.u32()?, path: take.bytes()? },
            6 => Self::Get { id: take.u32()?, max: take.u64()?, path: take.bytes()? },
            7 => Self::Listen { id: take.u32()?, path: take.bytes()? },
            8 => Self::Reply { id: take.u32()?, call: take.u32()?, bytes: take.bytes()? },
            9 => Self::ReplyEnd { id: take.u32()?, call: take.u32()? },
            10 => Self::Data { id: take.u32()?, bytes: take.bytes()? },
            11 => Self::End { id: take.u32()? },
            12 => Self::Cancel { id: take.u32()? },
            13 => Self::Peek { id: take.u32()? },
            14 => {
                let (id, uid, gid) = (take.u32()?, take.u32()?, take.u32()?);
                let groups = (0..take.u16()?).map(|_| take.u32()).collect::<Result<_, _>>()?;
                let (name, home) = (take.bytes()?, take.bytes()?);
                Self::Account { id, account: Account { uid, gid, groups, name, home } }
            }
            kind => return Err(FrameError::UnknownKind(kind)),
        };
        take.end(message)
    }
}

impl Message for ToHost {
    fn fields(&self, out: &mut Vec<u8>) {
        match self {
            Self::Hello { version } => {
                put(out, 0).u32(*version);
            }
            Self::Done { id } => {
                put(out, 1).u32(*id);
            }
            Self::Failed { id, errno, message } => {
                put(out, 2).u32(*id).i32(*errno).bytes(message);
            }
            Self::Chunk { id, stream, bytes } => {
                put(out, 3).u32(*id).u8(u8::from(*stream == Stream::Err)).bytes(bytes);
            }
            Self::ShellDone { id, how, restarted, bytes, micros } => {
                put(out, 4).u32(*id).how(*how).u8(u8::from(*restarted)).u64(*bytes).u64(*micros);
            }
            Self::ProcessDone { id, how, stdout, stderr, micros } => {
                put(out, 5).u32(*id).how(*how).u64(*stdout).u64(*stderr).u64(*micros);
            }
            Self::Call { id, call, bytes } => {
                put(out, 6).u32(*id).u32(*call).bytes(bytes);
            }
            Self::CallEnd { id, call } => {
                put(out, 7).u32(*id).u32(*call);
            }
            Self::Peeked { id, at_prompt, youngest } => {
                put(out, 8).u32(*id).u8(u8::from(*at_prompt)).u64(*youngest);
            }
        }
    }

    fn decode(body: &[u8]) -> Result<Self, FrameError> {
        let mut take = Take(body);
        let message = match take.u8()? {
            0 => Self::Hello { version: take.u32()? },
            1 => Self::Done { id: take.u32()? },
            2 => Self::Failed { id: take.u32()?, errno: take.i32()?, message: take.bytes()? },
            3 => Self::Chunk { id: take.u32()?, stream: take.stream()?, bytes: take.bytes()? },
            4 => Self::ShellDone {
                id: take.u32()?,
                how: take.how()?,
                restarted: take.flag()?,
                bytes: take.u64()?,
                micros: take.u64()?,
            },
            5 => Self::ProcessDone {
                id: take.u32()?,
                how: take.how()?,
                stdout: take.u64()?,
                stderr: take.u64()?,
                micros: take.u64()?,
            },
            6 => Self::Call { id: take.u32()?, call: take.u32()?, bytes: take.bytes()? },
            7 => Self::CallEnd { id: take.u32()?, call: take.u32()? },
            8 => Self::Peeked { id: take.u32()?, at_prompt: take.flag()?, youngest: take.u64()? },
            kind => return Err(FrameError::UnknownKind(kind)),
        };
        take.end(message)
    }
}

#[cfg(test)]
#[path = "frame_tests.rs"]
mod tests;
