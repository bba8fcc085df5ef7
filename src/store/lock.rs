//! The lock of a run folder. It allows one writer at a time.

use std::fs::{self, File, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;

use super::StoreError;

/// An advisory lock on a run folder. The kernel releases it when the process ends for any reason.
#[derive(Debug)]
pub(super) struct RunLock {
    _file: File,
}

impl RunLock {
    pub(super) fn acquire(path: &Path) -> Result<Self, StoreError> {
        let mut file = fs::OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            // The file is emptied below, so a link to another file must not be followed.
            .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed())
            .open(path)
            .map_err(StoreError::io("open lock", path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                if let Err(error) = file.read_to_string(&mut text) {
                    tracing::debug!(lock = %path.display(), %error, "process of the lock not read");
                }
                return Err(StoreError::Locked { path: path.to_owned(), pid: text.trim().parse().ok() });
            }
            Err(TryLockError::Error(source)) => return Err(StoreError::io("lock", path)(source)),
        }
        // The process id is only used in another process's error message.
        let written = file
            .set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| write!(file, "{}", std::process::id()));
        if let Err(error) = written {
            tracing::debug!(lock = %path.display(), %error, "process id not written to the lock");
        }
        Ok(Self { _file: file })
    }
}
