//! Errors of an export. Each names a path or a trajectory, and has a hint.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

use arrow_schema::ArrowError;
use parquet::errors::ParquetError;

use super::messages::MessageError;
use super::pairs::MixedTasks;
use super::separability::SeparableError;
use crate::store::StoreError;

/// An export that failed. The files of an earlier export are unchanged, unless the error says
/// otherwise.
#[derive(Debug, thiserror::Error)]
pub enum ExportError<E: Error + 'static> {
    /// The rollouts could not be read.
    #[error("failed to read the rollouts to export")]
    Source(#[source] E),
    #[error(transparent)]
    Rows(#[from] RowsError),
    /// Occurs only in a strict export.
    #[error(transparent)]
    Separable(#[from] SeparableError),
    #[error(
        "failed to render the dataset card from its template\nhint: if the template is your own, correct it; otherwise report this"
    )]
    Card(#[source] Box<minijinja::Error>),
}

impl<E: Error + 'static> From<StoreError> for ExportError<E> {
    fn from(error: StoreError) -> Self {
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
    Storage(#[from] StoreError),
    /// The rows do not fit their schema.
    #[error("failed to encode rows for `{}`: they do not fit their schema\nhint: this is a bug in termsmith; please report it", path.display())]
    Encode {
        path: PathBuf,
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
}

impl WriteError {
    /// The error for `source`: the I/O error inside it, if there is one. Otherwise the rows do not
    /// match their schema, which is a bug.
    pub(super) fn from_parquet(path: &Path, source: ParquetError) -> Self {
        match source {
            ParquetError::External(inner) => Self::from_any(path, inner),
            other => Self::from_any(path, Box::new(other)),
        }
    }

    pub(super) fn from_arrow(path: &Path, source: ArrowError) -> Self {
        match source {
            ArrowError::IoError(_, io) => Self::Storage(StoreError::io("write", path)(io)),
            ArrowError::ExternalError(inner) => Self::from_any(path, inner),
            other => Self::from_any(path, Box::new(other)),
        }
    }

    fn from_any(path: &Path, source: Box<dyn Error + Send + Sync>) -> Self {
        match source.downcast::<io::Error>() {
            Ok(io) => Self::Storage(StoreError::io("write", path)(*io)),
            Err(source) => Self::Encode { path: path.to_owned(), source },
        }
    }
}
