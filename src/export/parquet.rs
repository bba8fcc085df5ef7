//! Writes rows to Parquet files as a stream. Memory holds one batch of rows and one compressed row
//! group.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_json::ReaderBuilder;
use arrow_json::reader::Decoder;
use arrow_schema::{DataType, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;

use super::Bounds;
use super::error::WriteError;
use super::row::{Column, Row, is_json, schema};
use crate::store::StoreError;

/// File metadata: key of the config's name.
pub const CONFIG_KEY: &str = "termsmith.config";
/// File metadata: key of [`Row::SCHEMA_VERSION`].
pub const SCHEMA_VERSION_KEY: &str = "termsmith.schema_version";
/// File metadata: key of termsmith's version.
pub const TOOL_VERSION_KEY: &str = "termsmith.version";

/// Zstandard's default level. Higher levels take several times as long, and save a few per cent.
const ZSTD_LEVEL: i32 = 3;

/// Number of values that a column writer gets at once. The writer checks the page size only between
/// such batches. Messages can be large, so with the default of 1024 a page could grow to many times
/// its 1 MiB.
const WRITE_BATCH: usize = 64;

/// A shard under its temporary name. The final name includes the number of shards.
#[derive(Clone, Debug)]
pub(super) struct Unnamed {
    part: PathBuf,
    rows: u64,
    bytes: u64,
}

/// A finished shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shard {
    /// E.g. `train-00000-of-00001.parquet`.
    pub name: String,
    pub rows: u64,
    /// Size of the file in bytes.
    pub bytes: u64,
}

/// Writes the rows of one config and one split into numbered shards in a folder.
///
/// The final names include the number of shards, which is known only at the end. Until
/// [`name_shards`] the names end in `.part`.
pub struct Shards<R> {
    folder: PathBuf,
    split: &'static str,
    bounds: Bounds,
    schema: SchemaRef,
    decoder: Decoder,
    pending: Vec<R>,
    pending_bytes: usize,
    open: Option<OpenShard>,
    closed: Vec<Unnamed>,
}

struct OpenShard {
    path: PathBuf,
    writer: ArrowWriter<File>,
    rows: u64,
    bytes: usize,
    group_bytes: usize,
}

impl<R> std::fmt::Debug for Shards<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shards")
            .field("folder", &self.folder)
            .field("closed", &self.closed)
            .finish_non_exhaustive()
    }
}

impl<R: Row> Shards<R> {
    /// Creates a writer in `folder`. The folder must exist, and contain no shard of this split.
    pub fn create(folder: &Path, split: &'static str, bounds: Bounds) -> Result<Self, WriteError> {
        let schema = schema::<R>();
        let decoder = ReaderBuilder::new(Arc::clone(&schema))
            .with_strict_mode(true)
            .build_decoder()
            .map_err(|source| WriteError::from_arrow(folder, source))?;
        Ok(Self {
            folder: folder.to_owned(),
            split,
            bounds,
            schema,
            decoder,
            pending: Vec::new(),
            pending_bytes: 0,
            open: None,
            closed: Vec::new(),
        })
    }

    /// Appends one row.
    pub fn push(&mut self, row: R) -> Result<(), WriteError> {
        let weight = row.weight();
        let filled = self.pending_bytes + self.open.as_ref().map_or(0, |open| open.bytes);
        if filled > 0 && filled + weight > self.bounds.shard {
            self.close_shard()?;
        }
        self.pending.push(row);
        self.pending_bytes += weight;
        if self.pending_bytes >= self.bounds.batch { self.encode() } else { Ok(()) }
    }

    /// Writes the remaining rows. Without any row it writes no file.
    pub(super) fn finish(mut self) -> Result<Vec<Unnamed>, WriteError> {
        if self.open.is_some() || !self.pending.is_empty() {
            self.close_shard()?;
        }
        Ok(self.closed)
    }

    /// Like `finish`, but writes an empty shard if there was no row. Readers then find the schema.
    pub(super) fn finish_with_schema(mut self) -> Result<Vec<Unnamed>, WriteError> {
        if self.closed.is_empty() {
            self.close_shard()?;
        }
        self.finish()
    }

    /// Encodes the pending rows into the open shard.
    fn encode(&mut self) -> Result<(), WriteError> {
        let mut open = match self.open.take() {
            Some(open) => open,
            None => self.open_shard()?,
        };
        let encode = |source| WriteError::from_arrow(&open.path, source);
        self.decoder.serialize(&self.pending).map_err(encode)?;
        if let Some(batch) = self.decoder.flush().map_err(encode)? {
            open.writer.write(&batch).map_err(|source| WriteError::from_parquet(&open.path, source))?;
        }
        open.rows += self.pending.len() as u64;
        open.bytes += self.pending_bytes;
        open.group_bytes += self.pending_bytes;
        if open.group_bytes >= self.bounds.row_group {
            open.writer.flush().map_err(|source| WriteError::from_parquet(&open.path, source))?;
            open.group_bytes = 0;
        }
        self.pending.clear();
        self.pending_bytes = 0;
        self.open = Some(open);
        Ok(())
    }

    fn open_shard(&self) -> Result<OpenShard, WriteError> {
        let path = part_path(&self.folder, self.split, self.closed.len());
        let file = File::create(&path).map_err(StoreError::io("create", &path))?;
        let writer = ArrowWriter::try_new(file, Arc::clone(&self.schema), Some(properties::<R>()))
            .map_err(|source| WriteError::from_parquet(&path, source))?;
        Ok(OpenShard { path, writer, rows: 0, bytes: 0, group_bytes: 0 })
    }

    fn close_shard(&mut self) -> Result<(), WriteError> {
        self.encode()?;
        let Some(open) = self.open.take() else { return Ok(()) };
        let (path, rows) = (open.path, open.rows);
        // This writes the footer. `into_inner` would write it too, but loses the cause of an I/O
        // error.
        let mut writer = open.writer;
        writer.finish().map_err(|source| WriteError::from_parquet(&path, source))?;
        let file = writer.inner();
        file.sync_all().map_err(StoreError::io("sync", &path))?;
        let bytes = file.metadata().map_err(StoreError::io("read the size of", &path))?.len();
        self.closed.push(Unnamed { part: path, rows, bytes });
        Ok(())
    }
}

/// Renames the shards of one split to their final names.
pub(super) fn name_shards(
    folder: &Path,
    split: &str,
    shards: Vec<Unnamed>,
) -> Result<Vec<Shard>, WriteError> {
    let count = shards.len();
    let named = shards.into_iter().enumerate().map(|(number, Unnamed { part, rows, bytes })| {
        let name = format!("{split}-{number:05}-of-{count:05}.parquet");
        fs::rename(&part, folder.join(&name)).map_err(StoreError::io("rename", &part))?;
        Ok(Shard { name, rows, bytes })
    });
    named.collect()
}

fn part_path(folder: &Path, split: &str, number: usize) -> PathBuf {
    folder.join(format!("{split}-{number:05}.part"))
}

fn properties<R: Row>() -> WriterProperties {
    let metadata = [
        (CONFIG_KEY, R::CONFIG.to_owned()),
        (SCHEMA_VERSION_KEY, R::SCHEMA_VERSION.to_string()),
        (TOOL_VERSION_KEY, env!("CARGO_PKG_VERSION").to_owned()),
    ];
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL).unwrap_or_default()))
        // Page statistics come with the page index. With it, viewers can read single rows of a
        // large file.
        .set_statistics_enabled(EnabledStatistics::Page)
        .set_write_batch_size(WRITE_BATCH)
        .set_key_value_metadata(Some(
            metadata.into_iter().map(|(key, value)| KeyValue::new(key.to_owned(), value)).collect(),
        ));
    // Statistics would copy the least and the greatest message into the footer, where nobody needs
    // them. The page index still has the offsets of these columns.
    message_columns::<R>()
        .into_iter()
        .fold(properties, |properties, column| {
            properties.set_column_statistics_enabled(column, EnabledStatistics::None)
        })
        .build()
}

/// The leaf columns of lists of messages, and of JSON.
fn message_columns<R: Row>() -> Vec<ColumnPath> {
    let mut paths = Vec::new();
    for Column { field, .. } in R::columns() {
        let DataType::List(item) = field.data_type() else { continue };
        let leaves: &[&str] = match item.data_type() {
            DataType::Struct(_) => &["role", "content"],
            _ if is_json(item) => &[""],
            _ => continue,
        };
        paths.extend(leaves.iter().map(|leaf| {
            let path = [field.name(), "list", "element", leaf];
            ColumnPath::new(path.into_iter().filter(|part| !part.is_empty()).map(str::to_owned).collect())
        }));
    }
    paths
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::export::row::text;
    use crate::export::split::{TEST, TRAIN};
    use crate::export::train::FailedTurns;
    use crate::export::{ExportOptions, RowsError, fixture, sft};
    use crate::model::Rollout;

    #[test]
    fn a_full_disk_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = part_path(dir.path(), TRAIN, 0);
        symlink("/dev/full", &path).unwrap();
        let mut shards = Shards::create(dir.path(), TRAIN, Bounds::default()).unwrap();
        for row in sft::Row::all(&fixture::rollout("games", 0, 0, 2, 8), FailedTurns::Mask).unwrap() {
            shards.push(row).unwrap();
        }
        let error = shards.finish().unwrap_err();
        let WriteError::Storage(StoreError::Io { path: named, source, .. }) = &error else {
            panic!("{error:?}")
        };
        assert_eq!((named, source.kind()), (&path, ErrorKind::StorageFull));
        assert!(error.to_string().contains("hint: free some space"), "{error}");

        // The file fits into the writer's buffer, so it is written only when it is closed.
        let path = part_path(dir.path(), TEST, 0);
        symlink("/dev/full", &path).unwrap();
        let shards = Shards::<sft::Row>::create(dir.path(), TEST, Bounds::default()).unwrap();
        let error = shards.finish_with_schema().unwrap_err();
        assert!(matches!(&error, WriteError::Storage(StoreError::Io { .. })), "{error:?}");
    }

    #[test]
    fn rows_that_do_not_fit_their_schema_are_refused() {
        #[derive(serde::Serialize)]
        struct Odd {
            wanted: Option<&'static str>,
            unknown: &'static str,
        }
        impl Row for Odd {
            const CONFIG: &'static str = "odd";
            const SCHEMA_VERSION: u32 = 1;
            const TAGS: &'static [&'static str] = &[];
            fn columns() -> Vec<Column> {
                vec![text("wanted", "")]
            }
            fn about(_: &ExportOptions) -> String {
                String::new()
            }
            fn of_task(_: &[Rollout], _: &ExportOptions) -> Result<Vec<Self>, RowsError> {
                Ok(Vec::new())
            }
            fn split_group(&self) -> &str {
                ""
            }
            fn weight(&self) -> usize {
                1
            }
        }
        let dir = tempfile::tempdir().unwrap();
        for odd in [Odd { wanted: Some(""), unknown: "x" }, Odd { wanted: None, unknown: "" }] {
            let mut shards = Shards::create(dir.path(), TRAIN, Bounds::default()).unwrap();
            shards.push(odd).unwrap();
            assert!(matches!(shards.finish(), Err(WriteError::Encode { .. })));
        }
    }
}
