//! File transfers into and out of the sandbox.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::frame::{CHUNK, Id, Stream, ToHost};
use super::sys::{ELOOP, O_NOFOLLOW, O_NONBLOCK};
use super::wire::{Outbound, Source, read_some};

/// `errno` values with a meaning for the host.
pub(super) const EFBIG: i32 = 27;
/// Sent for anything but a regular file.
pub(super) const EINVAL: i32 = 22;

/// Transfers in progress.
#[derive(Debug, Default)]
pub(super) struct Files {
    uploads: Vec<Upload>,
    downloads: Vec<Download>,
}

#[derive(Debug)]
struct Upload {
    id: Id,
    path: PathBuf,
    mode: u32,
    /// The file and its temporary path, or the error that prevented it.
    file: io::Result<(File, PathBuf)>,
}

#[derive(Debug)]
struct Download {
    id: Id,
    file: File,
}

impl Files {
    /// Starts to write a file. Once complete, it is renamed in one step. So a link, FIFO or device
    /// with its name is replaced, and not written to.
    pub(super) fn put(&mut self, id: Id, mode: u32, path: &[u8]) {
        let path = PathBuf::from(OsStr::from_bytes(path));
        let file = create_beside(&path, id);
        self.uploads.push(Upload { id, path, mode, file });
    }

    /// Writes the next part of a file. `false`: no upload has this `id`.
    pub(super) fn data(&mut self, id: Id, bytes: &[u8]) -> bool {
        let Some(upload) = self.uploads.iter_mut().find(|upload| upload.id == id) else { return false };
        if let Ok((file, _)) = &mut upload.file
            && let Err(error) = file.write_all(bytes)
        {
            upload.abandon();
            upload.file = Err(error);
        }
        true
    }

    /// Completes a file. `false`: no upload has this `id`.
    pub(super) fn end(&mut self, id: Id, out: &mut Outbound) -> bool {
        let Some(place) = self.uploads.iter().position(|upload| upload.id == id) else { return false };
        match self.uploads.swap_remove(place).complete() {
            Ok(()) => out.send(&ToHost::Done { id }),
            Err((path, error)) => out.fail(id, &format!("cannot write `{}`", path.display()), &error),
        }
        true
    }

    /// Starts to read a file of at most `max` bytes.
    pub(super) fn get(&mut self, id: Id, max: u64, path: &[u8], out: &mut Outbound) {
        let path = Path::new(OsStr::from_bytes(path));
        match open_regular(path, max) {
            Ok(file) => self.downloads.push(Download { id, file }),
            Err(error) => out.fail(id, &format!("cannot read `{}`", path.display()), &error),
        }
    }

    /// Drops an upload or a download.
    pub(super) fn cancel(&mut self, id: Id) {
        self.downloads.retain(|get| get.id != id);
        if let Some(place) = self.uploads.iter().position(|upload| upload.id == id) {
            self.uploads.swap_remove(place).abandon();
        }
    }

    /// Whether a transfer can continue without waiting.
    pub(super) fn is_busy(&self) -> bool {
        !self.downloads.is_empty()
    }

    /// Sends parts of files while the queue has room.
    pub(super) fn turn(&mut self, out: &mut Outbound) {
        self.downloads.retain_mut(|get| send_parts(get.id, &mut get.file, out));
    }
}

/// Sends parts of a file while the queue has room. `false` when the transfer is over.
fn send_parts(id: Id, file: &mut impl Read, out: &mut Outbound) -> bool {
    while out.has_room() {
        match read_some(file, CHUNK, |bytes| out.send_bytes(id, Stream::Out, bytes)) {
            Source::More => {}
            // The next turn continues. Few files would block, e.g. those of FUSE.
            Source::Dry => return true,
            Source::Ended => {
                out.send(&ToHost::Done { id });
                return false;
            }
            // Otherwise the host would take this part for the whole file.
            Source::Failed(error) => {
                out.fail(id, "cannot read on", &error);
                return false;
            }
        }
    }
    true
}

impl Upload {
    fn abandon(&self) {
        if let Ok((_, temporary)) = &self.file {
            // A leftover temporary file does no harm, and nothing else uses its name.
            let _ = fs::remove_file(temporary);
        }
    }

    fn complete(self) -> Result<(), (PathBuf, io::Error)> {
        let (file, temporary) = match self.file {
            Ok(pair) => pair,
            Err(error) => return Err((self.path, error)),
        };
        let moved = file
            .set_permissions(Permissions::from_mode(self.mode))
            .and_then(|()| fs::rename(&temporary, &self.path));
        moved.map_err(|error| {
            let _ = fs::remove_file(&temporary);
            (self.path, error)
        })
    }
}

/// Creates the parent folders of `path`, and a temporary file beside `path`.
fn create_beside(path: &Path, id: Id) -> io::Result<(File, PathBuf)> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    };
    fs::create_dir_all(folder)?;
    let mut temporary = OsStr::new(".").to_owned();
    temporary.push(name);
    temporary.push(format!(".{id}.part"));
    let temporary = folder.join(temporary);
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
    Ok((file, temporary))
}

/// Opens a regular file of at most `max` bytes. It does not follow a link in the last component,
/// and does not block on a FIFO.
fn open_regular(path: &Path, max: u64) -> io::Result<File> {
    let file =
        OpenOptions::new().read(true).custom_flags(O_NOFOLLOW | O_NONBLOCK).open(path).map_err(|error| {
            match error.raw_os_error() {
                Some(ELOOP) => io::Error::from_raw_os_error(EINVAL),
                _ => error,
            }
        })?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::from_raw_os_error(EINVAL));
    }
    if metadata.len() > max {
        return Err(io::Error::from_raw_os_error(EFBIG));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of `left` parts. The read after them fails with `last`.
    struct Parts {
        left: usize,
        last: io::ErrorKind,
    }

    impl Read for Parts {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.left = self.left.checked_sub(1).ok_or(self.last)?;
            buffer.fill(b'x');
            Ok(buffer.len())
        }
    }

    #[test]
    fn a_torn_file_is_no_whole_one() {
        let check = |left: usize, last: io::ErrorKind, goes_on: bool| {
            let mut out = Outbound::default();
            assert_eq!(send_parts(7, &mut Parts { left, last }, &mut out), goes_on, "{left} {last}");
        };
        check(0, io::ErrorKind::StaleNetworkFileHandle, false);
        check(2, io::ErrorKind::StaleNetworkFileHandle, false);
        // The turn ends, although the queue has room.
        check(0, io::ErrorKind::WouldBlock, true);
        check(2, io::ErrorKind::WouldBlock, true);
        check(1000, io::ErrorKind::WouldBlock, true);
    }
}
