//! Reads and writes content-addressed records.

use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::run_dir::check_run;
use super::{RunDir, StoreError};
use crate::folder::read_file;
use crate::model::{File, Key, canonical_json};

/// Folder of notes about work that has begun and is not committed.
const NOTES: &str = "begun";
/// Maximum bytes of a record. The longest records contain an imported rollout, whose file has at
/// most half of this.
const LARGEST_RECORD: u64 = 512 << 20;

/// A pipeline stage. Raise `version` whenever the same input would give another result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stage {
    pub name: &'static str,
    pub version: u32,
}

/// The key of a stage's result for `input`: BLAKE3 over stage name, stage version and canonical
/// input.
pub fn key<T: Serialize>(stage: Stage, input: &T) -> Result<Key, StoreError> {
    let input = canonical_json(input).map_err(StoreError::Encode)?;
    let mut hasher = blake3::Hasher::new();
    for part in [stage.name, &stage.version.to_string(), &input] {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    Ok(Key::of(&hasher.finalize()))
}

/// The records of one run folder, for reading. It needs no lock, because committed records never
/// change. So a run can be read while another process writes it.
#[derive(Clone, Debug)]
pub struct ReadStore {
    root: Arc<Path>,
}

/// The records of one run folder, for reading and writing. Clones share the folder and its lock, so
/// that other threads can wait for the disk.
#[derive(Clone, Debug)]
pub struct Store {
    read: ReadStore,
    dir: Arc<RunDir>,
}

impl Deref for Store {
    type Target = ReadStore;

    fn deref(&self) -> &ReadStore {
        &self.read
    }
}

#[derive(Serialize)]
struct RecordOut<'a, T> {
    stage: &'a str,
    version: u32,
    value: &'a T,
}

#[derive(Deserialize)]
struct RecordIn<T> {
    value: T,
}

#[derive(Deserialize)]
struct VersionIn {
    version: u32,
}

impl ReadStore {
    /// Opens an existing run folder for reading. Takes no lock, and does not touch `.scratch/`.
    pub fn open(root: &Path) -> Result<Self, StoreError> {
        check_run(root)?;
        Ok(Self { root: root.into() })
    }

    /// The run folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The committed result at `key`. `None` if there is none.
    pub fn get<T: DeserializeOwned>(&self, stage: Stage, key: &Key) -> Result<Option<T>, StoreError> {
        let path = self.root.join(record_path("store", Some(stage.name), key));
        Ok(read::<RecordIn<T>>(&path)?.map(|record| record.value))
    }

    /// The version of the stage that wrote the result at `key`. `None` if there is no result.
    pub fn version(&self, stage: Stage, key: &Key) -> Result<Option<u32>, StoreError> {
        let path = self.root.join(record_path("store", Some(stage.name), key));
        Ok(read::<VersionIn>(&path)?.map(|record| record.version))
    }

    /// The observations of the execution with key `key`. `None` if there are none.
    pub fn observed<T: DeserializeOwned>(&self, key: &Key) -> Result<Option<T>, StoreError> {
        read(&self.root.join(record_path("observed", None, key)))
    }

    /// All notes. A note that cannot be parsed is `None`.
    pub fn notes<T: DeserializeOwned>(&self) -> Result<Vec<(Key, Option<T>)>, StoreError> {
        let mut notes = Vec::new();
        for file in list(&self.root.join(NOTES))? {
            if let Some(key) = key_of(&file) {
                match read(&file) {
                    Ok(value) => notes.push((key, value)),
                    Err(StoreError::Malformed { .. }) => notes.push((key, None)),
                    Err(error) => return Err(error),
                }
            }
        }
        notes.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(notes)
    }

    /// The keys of all results of a stage, sorted.
    pub fn keys(&self, stage: Stage) -> Result<Vec<Key>, StoreError> {
        let top = self.root.join("store").join(stage.name);
        let mut keys = Vec::new();
        // File managers and synchronisers may leave other files here.
        for folder in list(&top)?.into_iter().filter(|entry| entry.is_dir()) {
            for file in list(&folder)? {
                keys.extend(key_of(&file));
            }
        }
        keys.sort();
        Ok(keys)
    }
}

impl Store {
    /// The records in `dir`, for writing.
    pub fn new(dir: RunDir) -> Self {
        Self { read: ReadStore { root: dir.root().into() }, dir: Arc::new(dir) }
    }

    /// The run folder, for writing derived files.
    pub fn dir(&self) -> &RunDir {
        &self.dir
    }

    /// Commits a result.
    pub fn put<T: Serialize>(&self, stage: Stage, key: &Key, value: &T) -> Result<(), StoreError> {
        let record = RecordOut { stage: stage.name, version: stage.version, value };
        let text = canonical_json(&record).map_err(StoreError::Encode)?;
        self.dir.publish_file(&record_path("store", Some(stage.name), key), &File::text(text + "\n"))?;
        Ok(())
    }

    /// Stores the observations of an execution. Call it before [`put`](Self::put) with the same
    /// key, so that every committed result has its observations. Observations without a committed
    /// result are replaced when the work is repeated.
    pub fn observe<T: Serialize>(&self, key: &Key, value: &T) -> Result<(), StoreError> {
        let text = serde_json::to_string(value).map_err(StoreError::Encode)?;
        self.dir.publish_file(&record_path("observed", None, key), &File::text(text + "\n"))?;
        Ok(())
    }

    /// Notes that the work of `key` has begun. The note is not synced: it survives a killed
    /// process, but not a power failure.
    pub fn note<T: Serialize>(&self, key: &Key, value: &T) -> Result<(), StoreError> {
        let text = serde_json::to_string(value).map_err(StoreError::Encode)?;
        self.dir.note_file(&note_path(key), &File::text(text + "\n"))
    }

    /// Removes a note, because its work is committed.
    pub fn forget(&self, key: &Key) -> Result<(), StoreError> {
        self.dir.remove(&note_path(key))
    }
}

/// The key in the name of a record's file. `None` for files with other names.
fn key_of(file: &Path) -> Option<Key> {
    Key::parse(file.file_name()?.to_str()?.strip_suffix(".json")?).ok()
}

fn note_path(key: &Key) -> String {
    format!("{NOTES}/{key}.json")
}

fn record_path(area: &str, stage: Option<&str>, key: &Key) -> String {
    let prefix = key.as_str().get(..2).unwrap_or("__");
    match stage {
        Some(stage) => format!("{area}/{stage}/{prefix}/{key}.json"),
        None => format!("{area}/{prefix}/{key}.json"),
    }
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, StoreError> {
    let Some(bytes) = read_file(path, LARGEST_RECORD)? else { return Ok(None) };
    serde_json::from_slice(&bytes)
        .map(Some)
        .map_err(|source| StoreError::Malformed { path: path.to_owned(), source })
}

fn list(dir: &Path) -> Result<Vec<PathBuf>, StoreError> {
    match fs::read_dir(dir) {
        Ok(entries) => Ok(entries.flatten().map(|entry| entry.path()).collect()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(StoreError::io("read folder", dir)(error)),
    }
}
