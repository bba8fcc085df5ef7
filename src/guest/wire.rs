//! Non-blocking frames on the guest's standard streams.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::time::Instant;

use super::clock::Clock;
use super::frame::{CHUNK, FrameBuffer, Id, Limit, Message, Stream, ToGuest, ToHost};
use super::pools::{Start, limit_of};
use super::sys::{self, POLLIN, POLLOUT, PollFd};

/// With more queued bytes than this, no further output is read. Answers are always queued.
const COMFORTABLE: usize = 4 * CHUNK;

/// Descriptors and deadline of the next poll.
#[derive(Debug, Default)]
pub(super) struct Interest {
    fds: Vec<PollFd>,
    until: Option<Instant>,
    at_once: bool,
}

impl Interest {
    /// Wake up when `fd` is readable, or its other end is closed.
    pub(super) fn read(&mut self, fd: &impl AsRawFd) {
        self.fds.push(PollFd { fd: fd.as_raw_fd(), events: POLLIN, revents: 0 });
    }

    /// Wake up when `fd` is writable.
    pub(super) fn write(&mut self, fd: &impl AsRawFd) {
        self.fds.push(PollFd { fd: fd.as_raw_fd(), events: POLLOUT, revents: 0 });
    }

    /// Wake up at once: there is work left.
    pub(super) fn at_once(&mut self) {
        self.at_once = true;
    }

    /// Wake up at `instant` at the latest.
    pub(super) fn until(&mut self, instant: Instant) {
        self.until = Some(self.until.map_or(instant, |until| until.min(instant)));
    }

    /// Sleeps. Instants are readings of `clock`.
    pub(super) fn wait(mut self, clock: &Clock) {
        let until = if self.at_once { Some(Instant::now()) } else { None };
        let until = until.or_else(|| self.until.and_then(|until| clock.machine(until)));
        sys::wait(&mut self.fds, until);
    }
}

/// The queue of outgoing frames.
#[derive(Debug, Default)]
pub(super) struct Outbound {
    bytes: Vec<u8>,
    /// Number of bytes that were written.
    start: usize,
}

impl Outbound {
    /// Queues one frame.
    pub(super) fn send(&mut self, message: &ToHost) {
        message.encode(&mut self.bytes);
    }

    /// Queues bytes as chunks.
    pub(super) fn send_bytes(&mut self, id: Id, stream: Stream, bytes: &[u8]) {
        for piece in bytes.chunks(CHUNK) {
            self.send(&ToHost::Chunk { id, stream, bytes: piece.to_vec() });
        }
    }

    /// Queues a failure. `doing` says what failed, e.g. "cannot listen".
    pub(super) fn fail(&mut self, id: Id, doing: &str, error: &io::Error) {
        self.failed(id, doing, error, Limit::Unknown);
    }

    /// Queues the failure of a start, with the limit that it met.
    pub(super) fn fail_start(&mut self, id: Id, what: &str, error: &io::Error, start: Start) {
        self.failed(id, &format!("cannot start {what}"), error, limit_of(error, start));
    }

    fn failed(&mut self, id: Id, doing: &str, error: &io::Error, limit: Limit) {
        let message = format!("{doing}: {error}").into_bytes();
        self.send(&ToHost::Failed { id, errno: error.raw_os_error().unwrap_or(0), limit, message });
    }

    /// Whether more output may be queued.
    pub(super) fn has_room(&self) -> bool {
        self.bytes.len() - self.start < COMFORTABLE
    }
}

/// The connection to the host.
#[derive(Debug)]
pub(super) struct Wire {
    input: File,
    output: File,
    inbound: FrameBuffer,
    pub(super) out: Outbound,
}

impl Wire {
    /// Takes standard input and output for itself.
    pub(super) fn take() -> io::Result<Self> {
        const STDIN: RawFd = 0;
        const STDOUT: RawFd = 1;
        let (input, output) = (sys::take_stream(STDIN)?, sys::take_stream(STDOUT)?);
        Ok(Self { input, output, inbound: FrameBuffer::default(), out: Outbound::default() })
    }

    /// Adds the descriptors that the connection waits for.
    pub(super) fn interest(&self, interest: &mut Interest) {
        interest.read(&self.input);
        if self.out.start < self.out.bytes.len() {
            interest.write(&self.output);
        }
    }

    /// Writes as much as the pipe accepts.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        while self.out.start < self.out.bytes.len() {
            match self.output.write(&self.out.bytes[self.out.start..]) {
                Ok(count) => self.out.start += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.out.bytes.drain(..self.out.start);
        self.out.start = 0;
        Ok(())
    }

    /// Reads the available bytes, for [`Wire::next_message`]. `Ok(false)` when the host has closed
    /// the connection.
    pub(super) fn fill(&mut self) -> io::Result<bool> {
        let mut piece = [0; CHUNK];
        match self.input.read(&mut piece) {
            Ok(0) => Ok(false),
            Ok(count) => {
                self.inbound.extend(&piece[..count]);
                Ok(true)
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                Ok(true)
            }
            Err(error) => Err(error),
        }
    }

    /// The next received message.
    pub(super) fn next_message(&mut self) -> io::Result<Option<ToGuest>> {
        self.inbound.next_message().map_err(io::Error::other)
    }
}

/// The state of a source after a read.
#[derive(Debug)]
pub(super) enum Source {
    /// There may be more now.
    More,
    /// Nothing for now.
    Dry,
    Ended,
    Failed(io::Error),
}

/// Passes available bytes to `sink`, at most `limit`.
pub(super) fn read_some(source: &mut impl Read, limit: usize, mut sink: impl FnMut(&[u8])) -> Source {
    let mut piece = [0; CHUNK];
    let mut left = limit;
    while left > 0 {
        let size = left.min(CHUNK);
        match source.read(&mut piece[..size]) {
            Ok(0) => return Source::Ended,
            Ok(count) => {
                sink(&piece[..count]);
                left -= count;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Source::Dry,
            Err(error) => return Source::Failed(error),
        }
    }
    Source::More
}

/// Like [`read_some`], for pipes and terminals: they fail only when nothing can come any more.
/// `false` at the end.
pub(super) fn read_ready(source: &mut impl Read, limit: usize, sink: impl FnMut(&[u8])) -> bool {
    matches!(read_some(source, limit, sink), Source::More | Source::Dry)
}

/// Writes as much of `source` (from `start` on) as the target takes now. `false` when the reader
/// has closed its end.
pub(super) fn write_ready(target: &mut impl Write, source: &[u8], start: &mut usize) -> bool {
    while *start < source.len() {
        match target.write(&source[*start..]) {
            Ok(count) => *start += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives these answers, one for each read.
    struct Answers(Vec<io::Result<&'static [u8]>>);

    impl Read for Answers {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let bytes = self.0.remove(0)?;
            buffer[..bytes.len()].copy_from_slice(bytes);
            Ok(bytes.len())
        }
    }

    #[test]
    fn an_error_is_no_end() {
        let error = |kind: io::ErrorKind| Err(io::Error::from(kind));
        let check = |answers: Vec<io::Result<&'static [u8]>>, expect: &str| {
            let mut read = Vec::new();
            let left = read_some(&mut Answers(answers), 4, |bytes| read.extend_from_slice(bytes));
            assert_eq!(format!("{} {left:?}", String::from_utf8_lossy(&read)), expect);
        };
        check(vec![Ok(b"ab"), Ok(b"")], "ab Ended");
        check(vec![Ok(b"ab"), Ok(b"cd")], "abcd More");
        check(vec![Ok(b"ab"), error(io::ErrorKind::WouldBlock)], "ab Dry");
        check(vec![error(io::ErrorKind::Interrupted), Ok(b"ab"), Ok(b"")], "ab Ended");
        check(
            vec![Ok(b"ab"), error(io::ErrorKind::StaleNetworkFileHandle)],
            "ab Failed(Kind(StaleNetworkFileHandle))",
        );
    }
}
