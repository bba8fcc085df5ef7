//! Files in and out of the sandbox.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::frame::{CHUNK, Id, Stream, ToHost};
use super::sys::{ELOOP, O_NOFOLLOW, O_NONBLOCK};
use super::wire::{Outbound, read_ready};

/// `errno` values that the host tells apart.
pub(super) const EFBIG: i32 = 27;
/// Reported for anything that is not a regular file.
pub(super) const EINVAL: i32 = 22;

/// Transfers under way.
#[derive(Debug, Default)]
pub(super) struct Files {
    puts: Vec<Put>,
    gets: Vec<Get>,
}

#[derive(Debug)]
struct Put {
    id: Id,
    path: PathBuf,
    mode: u32,
    /// The file under a temporary name, or why there is none.
    file: io::Result<(File, PathBuf)>,
}

#[derive(Debug)]
struct Get {
    id: Id,
    file: File,
}

impl Files {
    /// Begins to write a file. It appears under its name when it is complete, in one step: a link, FIFO or device that was
    /// planted there is replaced, not written to.
    pub(super) fn put(&mut self, id: Id, mode: u32, path: &[u8]) {
        let path = PathBuf::from(OsStr::from_bytes(path));
        let file = create_beside(&path, id);
        self.puts.push(Put { id, path, mode, file });
    }

    /// Takes a piece of a file. `false` if no file is being written under `id`.
    pub(super) fn data(&mut self, id: Id, bytes: &[u8]) -> bool {
        let Some(put) = self.puts.iter_mut().find(|put| put.id == id) else { return false };
        if let Ok((file, _)) = &mut put.file
            && let Err(error) = file.write_all(bytes)
        {
            put.abandon();
            put.file = Err(error);
        }
        true
    }

    /// Completes a file.
    pub(super) fn end(&mut self, id: Id, out: &mut Outbound) -> bool {
        let Some(place) = self.puts.iter().position(|put| put.id == id) else { return false };
        match self.puts.swap_remove(place).complete() {
            Ok(()) => out.send(&ToHost::Done { id }),
            Err((path, error)) => out.fail(id, &format!("cannot write `{}`", path.display()), &error),
        }
        true
    }

    /// Begins to read a file.
    pub(super) fn get(&mut self, id: Id, max: u64, path: &[u8], out: &mut Outbound) {
        let path = Path::new(OsStr::from_bytes(path));
        match open_regular(path, max) {
            Ok(file) => self.gets.push(Get { id, file }),
            Err(error) => out.fail(id, &format!("cannot read `{}`", path.display()), &error),
        }
    }

    /// Forgets a transfer.
    pub(super) fn cancel(&mut self, id: Id) {
        self.gets.retain(|get| get.id != id);
        if let Some(place) = self.puts.iter().position(|put| put.id == id) {
            self.puts.swap_remove(place).abandon();
        }
    }

    /// Whether it could go on at once.
    pub(super) fn is_busy(&self) -> bool {
        !self.gets.is_empty()
    }

    /// Sends pieces while the host takes them.
    pub(super) fn turn(&mut self, out: &mut Outbound) {
        self.gets.retain_mut(|get| {
            while out.has_room() {
                let mut sent = false;
                let mut sink = |bytes: &[u8]| {
                    out.send_bytes(get.id, Stream::Out, bytes);
                    sent = true;
                };
                if !read_ready(&mut get.file, CHUNK, &mut sink) && !sent {
                    out.send(&ToHost::Done { id: get.id });
                    return false;
                }
            }
            true
        });
    }
}

impl Put {
    fn abandon(&self) {
        if let Ok((_, temporary)) = &self.file {
            // Nothing depends on the removal; the name is not one that anybody looks for.
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

/// Makes the folders of `path` and a new file in the last of them.
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

/// Opens a regular file of at most `max` bytes, without following a link in the last component and without waiting on a FIFO.
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
