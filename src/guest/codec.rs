//! Encoding of frame fields. Integers are little-endian. Byte strings and lists follow their
//! length.

use super::frame::{FrameError, Limit, Program, Stream, Termination};

/// Begins the body of a message with its kind.
pub(super) fn encode(out: &mut Vec<u8>, kind: u8) -> Encoder<'_> {
    out.push(kind);
    Encoder(out)
}

/// Appends fields to the body of a message.
pub(super) struct Encoder<'a>(&'a mut Vec<u8>);

impl Encoder<'_> {
    fn raw(self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    pub(super) fn u8(self, value: u8) -> Self {
        self.raw(&[value])
    }

    pub(super) fn u16(self, value: u16) -> Self {
        self.raw(&value.to_le_bytes())
    }

    pub(super) fn u32(self, value: u32) -> Self {
        self.raw(&value.to_le_bytes())
    }

    pub(super) fn i32(self, value: i32) -> Self {
        self.raw(&value.to_le_bytes())
    }

    pub(super) fn u64(self, value: u64) -> Self {
        self.raw(&value.to_le_bytes())
    }

    pub(super) fn bytes(self, bytes: &[u8]) -> Self {
        // The receiver refuses a field longer than a frame. Senders check lengths before.
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.u32(length).raw(bytes)
    }

    fn list(self, items: &[Vec<u8>]) -> Self {
        let count = u32::try_from(items.len()).unwrap_or(u32::MAX);
        items.iter().fold(self.u32(count), |encode, item| encode.bytes(item))
    }

    pub(super) fn program(self, program: &Program) -> Self {
        self.list(&program.argv).list(&program.env).bytes(&program.cwd)
    }

    pub(super) fn limit(self, limit: Limit) -> Self {
        self.u8(match limit {
            Limit::Unknown => 0,
            Limit::Own => 1,
            Limit::Host => 2,
        })
    }

    pub(super) fn how(self, how: Termination) -> Self {
        let (kind, status) = match how {
            Termination::Exited(status) => (0, status),
            Termination::Signaled(signal) => (1, signal),
            Termination::TimedOut => (2, 0),
            Termination::ShellDied(status) => (3, status),
        };
        self.u8(kind).i32(status)
    }
}

/// Reads fields from the front of a message's body.
pub(super) struct Decoder<'a>(pub(super) &'a [u8]);

impl Decoder<'_> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], FrameError> {
        let (head, rest) = self.0.split_first_chunk::<N>().ok_or(FrameError::Truncated)?;
        self.0 = rest;
        Ok(*head)
    }

    pub(super) fn u8(&mut self) -> Result<u8, FrameError> {
        Ok(u8::from_le_bytes(self.array()?))
    }

    pub(super) fn u16(&mut self) -> Result<u16, FrameError> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub(super) fn u32(&mut self) -> Result<u32, FrameError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(super) fn i32(&mut self) -> Result<i32, FrameError> {
        Ok(i32::from_le_bytes(self.array()?))
    }

    pub(super) fn u64(&mut self) -> Result<u64, FrameError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub(super) fn flag(&mut self) -> Result<bool, FrameError> {
        Ok(self.u8()? != 0)
    }

    pub(super) fn bytes(&mut self) -> Result<Vec<u8>, FrameError> {
        let length = self.u32()? as usize;
        let (head, rest) = self.0.split_at_checked(length).ok_or(FrameError::Truncated)?;
        self.0 = rest;
        Ok(head.to_vec())
    }

    fn list(&mut self) -> Result<Vec<Vec<u8>>, FrameError> {
        // Not `with_capacity`: the sender chose this count, and nothing has checked it.
        (0..self.u32()?).map(|_| self.bytes()).collect()
    }

    pub(super) fn program(&mut self) -> Result<Program, FrameError> {
        Ok(Program { argv: self.list()?, env: self.list()?, cwd: self.bytes()? })
    }

    pub(super) fn stream(&mut self) -> Result<Stream, FrameError> {
        Ok(if self.flag()? { Stream::Err } else { Stream::Out })
    }

    pub(super) fn limit(&mut self) -> Result<Limit, FrameError> {
        match self.u8()? {
            0 => Ok(Limit::Unknown),
            1 => Ok(Limit::Own),
            2 => Ok(Limit::Host),
            kind => Err(FrameError::UnknownKind(kind)),
        }
    }

    pub(super) fn how(&mut self) -> Result<Termination, FrameError> {
        let (kind, status) = (self.u8()?, self.i32()?);
        match kind {
            0 => Ok(Termination::Exited(status)),
            1 => Ok(Termination::Signaled(status)),
            2 => Ok(Termination::TimedOut),
            3 => Ok(Termination::ShellDied(status)),
            kind => Err(FrameError::UnknownKind(kind)),
        }
    }

    pub(super) fn end<T>(self, message: T) -> Result<T, FrameError> {
        if self.0.is_empty() { Ok(message) } else { Err(FrameError::Trailing(self.0.len())) }
    }
}
