//! What can go wrong while exporting, each with a path or a trajectory and what to do.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

use arrow_schema::ArrowError;
use parquet::errors::ParquetError;

use super::messages::MessageError;
use super::pairs::MixedTasks;

/// An export that failed. What an earlier export wrote is as it was, except where [`StorageError`] says otherwise.
#[derive(Debug, thiserror::Error)]
pub enum ExportError<E: Error + 'static> {
    /// The rollouts could not be read.
    #[error("failed to read the rollouts to export")]
    Source(#[source] E),
    #[error(transparent)]
    Rows(#[from] RowsError),
    #[error(
        "failed to render the dataset card from its template\nhint: if the template is your own, mend it; else report this"
    )]
    Card(#[source] Box<minijinja::Error>),
}

impl<E: Error + 'static> From<StorageError> for ExportError<E> {
    fn from(error: StorageError) -> Self {
        WriteError::from(error).into()
    }
}

impl<E: Error + 'static> From<WriteError> for ExportError<E> {
    fn from(error: WriteError) -> Self {
        Self::Rows(error.into())
    }
}

/// Rows that could not be made or written.
#[derive(Debug, thiserror::Error)]
pub enum RowsError {
    #[error(transparent)]
    Conversation(#[from] MessageError),
    #[error(transparent)]
    Pairs(#[from] MixedTasks),
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// Rows that could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// Rows and schema disagree.
    #[error("failed to encode rows for `{}`: they do not fit their schema\nhint: this is a bug in termsmith; please report it", path.display())]
    Encode {
        path: PathBuf,
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
}

/// The file system refused.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    #[error("no space left for `{}`\nhint: free some and run the same command again; what was exported before is still there", path.display())]
    Full {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("`{}` is on a read-only file system\nhint: choose another output folder or mount it writable", path.display())]
    ReadOnly {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("no permission to write `{}`\nhint: change its owner or mode, or choose another output folder", path.display())]
    Denied {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("failed to {action} `{}`", path.display())]
    Other {
        action: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

impl StorageError {
    /// Sorts `source`, which came up in the attempt to `action` the file or folder at `path`.
    pub fn new(action: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full { path, source },
            io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnly { path, source },
            io::ErrorKind::PermissionDenied => Self::Denied { path, source },
            _ => Self::Other { action, path, source },
        }
    }
}

/// `result.during("create", path)`: an I/O result with what was tried, and on what.
pub(super) trait During<T> {
    fn during(self, action: &'static str, path: &Path) -> Result<T, StorageError>;
}

impl<T> During<T> for io::Result<T> {
    fn during(self, action: &'static str, path: &Path) -> Result<T, StorageError> {
        self.map_err(|source| StorageError::new(action, path, source))
    }
}

impl WriteError {
    /// The I/O error inside `source`, if that is what it was, else a disagreement of rows and schema.
    pub(super) fn from_parquet(path: &Path, source: ParquetError) -> Self {
        match source {
            ParquetError::External(inner) => match inner.downcast::<io::Error>() {
                Ok(io) => Self::Storage(StorageError::new("write", path, *io)),
                Err(inner) => Self::Encode { path: path.to_owned(), source: inner },
            },
            other => Self::Encode { path: path.to_owned(), source: Box::new(other) },
        }
    }

    pub(super) fn from_arrow(path: &Path, source: ArrowError) -> Self {
        Self::Encode { path: path.to_owned(), source: Box::new(source) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn storage_errors_say_what_to_do() {
        let check = |kind: io::ErrorKind, expect: &str| {
            let error = StorageError::new("create", Path::new("out/data"), io::Error::from(kind));
            assert_eq!(error.to_string(), expect);
            assert!(error.source().is_some());
        };
        check(
            io::ErrorKind::StorageFull,
            "no space left for `out/data`\nhint: free some and run the same command again; what was exported before is still there",
        );
        check(
            io::ErrorKind::QuotaExceeded,
            "no space left for `out/data`\nhint: free some and run the same command again; what was exported before is still there",
        );
        check(
            io::ErrorKind::ReadOnlyFilesystem,
            "`out/data` is on a read-only file system\nhint: choose another output folder or mount it writable",
        );
        check(
            io::ErrorKind::PermissionDenied,
            "no permission to write `out/data`\nhint: change its owner or mode, or choose another output folder",
        );
        check(io::ErrorKind::NotADirectory, "failed to create `out/data`");
    }
}
