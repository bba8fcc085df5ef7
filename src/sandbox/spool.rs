//! Archives that may be too large for memory.

use std::fs::File;
use std::io::{Read, Result, Write};
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use tempfile::{SpooledData, SpooledTempFile};

/// Maximum size of an archive in memory. Most submissions have a few kilobytes, and several are
/// judged at once.
const IN_MEMORY: usize = 4 << 20;

/// Collects bytes in memory. Beyond [`IN_MEMORY`] it moves them to an unnamed temporary file, which
/// ends with the process.
#[derive(Debug)]
pub struct Spool {
    file: SpooledTempFile,
    len: u64,
}

impl Spool {
    pub fn new() -> Self {
        Self { file: SpooledTempFile::new(IN_MEMORY), len: 0 }
    }

    /// Number of bytes collected so far.
    pub fn written(&self) -> u64 {
        self.len
    }

    /// The collected bytes. They cannot change any more.
    pub fn finish(self) -> Result<Spooled> {
        let stored = match self.file.into_inner() {
            SpooledData::InMemory(bytes) => Stored::Memory(bytes.into_inner()),
            SpooledData::OnDisk(file) => Stored::File(file),
        };
        Ok(Spooled { stored: Arc::new(stored), len: self.len })
    }
}

impl Default for Spool {
    fn default() -> Self {
        Self::new()
    }
}

impl Write for Spool {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        let written = self.file.write(bytes)?;
        self.len += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> Result<()> {
        self.file.flush()
    }
}

/// Bytes in memory or in an unnamed temporary file. Clones share them.
#[derive(Clone, Debug)]
pub struct Spooled {
    stored: Arc<Stored>,
    len: u64,
}

#[derive(Debug)]
enum Stored {
    Memory(Vec<u8>),
    File(File),
}

impl Spooled {
    /// Number of bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// A reader of all bytes from the first. Several readers can be used at once.
    pub fn reader(&self) -> SpooledReader {
        SpooledReader { spooled: self.clone(), at: 0 }
    }

    /// All bytes. Only for archives that are small.
    pub fn bytes(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.reader().read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

impl From<Vec<u8>> for Spooled {
    fn from(bytes: Vec<u8>) -> Self {
        let len = bytes.len() as u64;
        Self { stored: Arc::new(Stored::Memory(bytes)), len }
    }
}

/// Reads a [`Spooled`] from its beginning to its end.
#[derive(Debug)]
pub struct SpooledReader {
    spooled: Spooled,
    at: u64,
}

impl Read for SpooledReader {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let count = match &*self.spooled.stored {
            Stored::File(file) => file.read_at(buffer, self.at)?,
            Stored::Memory(bytes) => {
                let rest = usize::try_from(self.at).ok().and_then(|at| bytes.get(at..)).unwrap_or_default();
                let count = rest.len().min(buffer.len());
                buffer[..count].copy_from_slice(&rest[..count]);
                count
            }
        };
        self.at += count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_by_every_reader() {
        for len in [0, 1, IN_MEMORY, IN_MEMORY + 1, 3 * IN_MEMORY] {
            let wanted: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
            let mut spool = Spool::new();
            for piece in wanted.chunks(70_000) {
                spool.write_all(piece).unwrap();
            }
            assert_eq!(spool.written(), len as u64);
            let spooled = spool.finish().unwrap();
            let on_disk = matches!(*spooled.stored, Stored::File(_));
            assert_eq!(on_disk, len > IN_MEMORY, "{len} bytes");
            let mut started = spooled.reader();
            let mut first = vec![0; len.min(10)];
            started.read_exact(&mut first).unwrap();
            assert_eq!(spooled.bytes().unwrap(), wanted, "another reader is not moved");
            let mut rest = Vec::new();
            started.read_to_end(&mut rest).unwrap();
            assert_eq!([first, rest].concat(), wanted);
        }
    }
}
