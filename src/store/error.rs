//! Errors of the run folder, each with a hint.

use std::io;
use std::path::{Path, PathBuf};

use crate::folder::{Fault, WalkError};

/// A failure of the run folder. Records that were committed before are not lost.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("failed to {action} `{}`: {source}{}", path.display(), hint(source))]
    Io {
        action: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(
        "`{}` was written in run format {found}, newer than the {known} this termsmith knows\nhint: use the termsmith that wrote it ({tool}), or another --out folder",
        path.display()
    )]
    Newer { path: PathBuf, found: u32, known: u32, tool: String },
    #[error(
        "`{}` is not a record that this termsmith can read: {source}\nhint: another build of termsmith probably wrote this folder. Delete the folder, or give a new one as --out. If only this file is damaged, delete the file, and it will be made again",
        path.display()
    )]
    Malformed {
        path: PathBuf,
        #[source]
        source: serde_json::Error,
    },
    #[error("`{}` is in use by another termsmith{}\nhint: wait for it, stop it, or choose another --out folder", path.display(), holder(*pid))]
    Locked { path: PathBuf, pid: Option<u32> },
    #[error("`{}` is not a termsmith run folder (it has no `run.json`)\nhint: give the --out folder of a `termsmith run`", path.display())]
    NotARun { path: PathBuf },
    /// Entries of an ordinary folder could be replaced or removed later.
    #[error(
        "`{}` cannot become a run folder: it has no `run.json`, and `{entry}` in it is not termsmith's\nhint: give a new or an empty folder as --out",
        path.display()
    )]
    Occupied { path: PathBuf, entry: String },
    /// A run folder may come from elsewhere, e.g. with a link in place of a record.
    #[error(transparent)]
    Entry(WalkError),
    #[error("failed to encode a record: {0}")]
    Encode(#[source] serde_json::Error),
}

impl StoreError {
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
        let path = path.to_owned();
        move |source| StoreError::Io { action, path, source }
    }
}

impl From<WalkError> for StoreError {
    fn from(WalkError { path, fault }: WalkError) -> Self {
        match fault {
            Fault::Io(source) => Self::Io { action: "read", path, source },
            fault => Self::Entry(WalkError { path, fault }),
        }
    }
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "\nhint: free some space and run the same command again; it continues where it stopped"
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "\nhint: choose an --out folder that you may write to"
        }
        _ => "",
    }
}

fn holder(pid: Option<u32>) -> String {
    pid.map_or_else(String::new, |pid| format!(" (process {pid})"))
}
