//! Streams rows to Parquet shards: memory holds one batch of rows and one compressed row group.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_json::ReaderBuilder;
use arrow_json::reader::Decoder;
use arrow_schema::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;

use super::error::WriteError;
use super::row::{Row, schema};
use crate::store::StoreError;

/// Key of the config's name in the file metadata.
pub const CONFIG_KEY: &str = "termsmith.config";
/// Key of [`Row::SCHEMA_VERSION`] in the file metadata.
pub const SCHEMA_VERSION_KEY: &str = "termsmith.schema_version";
/// Key of termsmith's version in the file metadata.
pub const TOOL_VERSION_KEY: &str = "termsmith.version";

/// Zstandard's default level; higher ones cost several times the time for a few per cent.
const ZSTD_LEVEL: i32 = 3;

/// Values that go to a column writer at once. It looks at the page size between such batches only,
/// and single messages can be large; the default of 1024 would let a page grow to many times its 1
/// MiB.
const WRITE_BATCH: usize = 64;

/// Sizes that bound files and memory, all in bytes of uncompressed text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Rows collected before they are encoded.
    pub batch: usize,
    /// A row group is closed when it holds this much. Readers load a row group at a time.
    pub row_group: usize,
    /// A shard is closed before it would hold more than this, unless a single row does.
    pub shard: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        // Hugging Face's limits are 100 MB a row group and 500 MB a shard. Encoding holds a batch
        // about four times over.
        Self { batch: 1 << 20, row_group: 32 << 20, shard: 400_000_000 }
    }
}

/// A shard without its final name, which carries the number of shards.
#[derive(Clone, Debug)]
pub(super) struct Unnamed {
    part: PathBuf,
    rows: u64,
    bytes: u64,
}

/// A finished shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shard {
    /// `train-00000-of-00001.parquet`
    pub name: String,
    pub rows: u64,
    /// Size of the file.
    pub bytes: u64,
}

/// Writes the rows of one config and split into numbered shards in a folder.
///
/// The names carry the number of shards, which is known at the end; until [`name_shards`] they end
/// in `.part`.
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
    /// Starts in `folder`, which must exist and hold no shard of this split.
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

    /// Writes what is left. Nothing is written if there was no row.
    pub(super) fn finish(mut self) -> Result<Vec<Unnamed>, WriteError> {
        if self.open.is_some() || !self.pending.is_empty() {
            self.close_shard()?;
        }
        Ok(self.closed)
    }

    /// The same, and an empty shard if there was no row, so that readers find the schema.
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
        // This writes the footer, which readers require. `into_inner` would too, but it loses the
        // cause of an I/O error.
        let mut writer = open.writer;
        writer.finish().map_err(|source| WriteError::from_parquet(&path, source))?;
        let file = writer.inner();
        file.sync_all().map_err(StoreError::io("sync", &path))?;
        let bytes = file.metadata().map_err(StoreError::io("read the size of", &path))?.len();
        self.closed.push(Unnamed { part: path, rows, bytes });
        Ok(())
    }
}

/// Gives the shards of one split their names.
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
        // With page statistics comes the page index, by which viewers read single rows of a large
        // file.
        .set_statistics_enabled(EnabledStatistics::Page)
        .set_write_batch_size(WRITE_BATCH)
        .set_key_value_metadata(Some(
            metadata.into_iter().map(|(key, value)| KeyValue::new(key.to_owned(), value)).collect(),
        ));
    // Least and greatest messages are of no use to anyone and would be copied into the footer.
    // Their pages are still indexed by offset.
    message_columns::<R>()
        .into_iter()
        .fold(properties, |properties, column| {
            properties.set_column_statistics_enabled(column, EnabledStatistics::None)
        })
        .build()
}

/// The leaf columns that hold messages.
fn message_columns<R: Row>() -> Vec<ColumnPath> {
    let lists_of_structs = R::columns().into_iter().filter(|column| match column.field.data_type() {
        arrow_schema::DataType::List(item) => item.data_type().is_nested(),
        _ => false,
    });
    let leaves = lists_of_structs.flat_map(|column| {
        ["role", "content"].map(|leaf| {
            let path = [column.field.name(), "list", "element", leaf];
            ColumnPath::new(path.into_iter().map(str::to_owned).collect())
        })
    });
    leaves.collect()
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::export::row::text;
    use crate::export::split::{TEST, TRAIN};
    use crate::export::train::FailedTurns;
    use crate::export::{Column, ExportOptions, RowsError, fixture, sft};
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

        // A file that fits into the writer's buffer is written when it is closed.
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
