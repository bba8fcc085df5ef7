//! Content-addressed records.

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

/// Folder for notes of work that has begun and is not committed.
const NOTES: &str = "begun";
/// Bytes of a record. The longest ones hold an imported rollout, whose file has at most half of
/// this.
const LARGEST_RECORD: u64 = 512 << 20;

/// A pipeline stage. Bump `version` whenever the same input would give another result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stage {
    pub name: &'static str,
    pub version: u32,
}

/// The address of a stage's result for `input`: BLAKE3 over stage name, stage version and canonical
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

/// Records of one run folder, for reading. Holds no lock: committed records never change, so a run
/// can be read while it is being written.
#[derive(Clone, Debug)]
pub struct ReadStore {
    root: Arc<Path>,
}

/// Records of one run folder, for reading and writing. Clones share the folder and its lock, so
/// that disks can be waited for on other threads.
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
    /// Opens an existing run folder for reading: takes no lock, and leaves `.scratch/` alone.
    pub fn open(root: &Path) -> Result<Self, StoreError> {
        check_run(root)?;
        Ok(Self { root: root.into() })
    }

    /// The run folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The committed result at `key`, if there is one.
    pub fn get<T: DeserializeOwned>(&self, stage: Stage, key: &Key) -> Result<Option<T>, StoreError> {
        let path = self.root.join(record_path("store", Some(stage.name), key));
        Ok(read::<RecordIn<T>>(&path)?.map(|record| record.value))
    }

    /// The stage's version that wrote the result at `key`, if there is one.
    pub fn version(&self, stage: Stage, key: &Key) -> Result<Option<u32>, StoreError> {
        let path = self.root.join(record_path("store", Some(stage.name), key));
        Ok(read::<VersionIn>(&path)?.map(|record| record.version))
    }

    /// The observations of the execution of `key`.
    pub fn observed<T: DeserializeOwned>(&self, key: &Key) -> Result<Option<T>, StoreError> {
        read(&self.root.join(record_path("observed", None, key)))
    }

    /// All notes. `None` for a note that cannot be parsed.
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

    /// Every key of a stage, sorted.
    pub fn keys(&self, stage: Stage) -> Result<Vec<Key>, StoreError> {
        let top = self.root.join("store").join(stage.name);
        let mut keys = Vec::new();
        // File managers and synchronisers leave files of their own.
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
    /// Records in `dir`, for writing.
    pub fn new(dir: RunDir) -> Self {
        Self { read: ReadStore { root: dir.root().into() }, dir: Arc::new(dir) }
    }

    /// The run folder, for writing what is derived from records.
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

    /// Stores the observations of an execution. Must come before the [`put`](Self::put) of the same
    /// key, so that a committed result always has its observation. One that was never committed is
    /// replaced when the work is done again.
    pub fn observe<T: Serialize>(&self, key: &Key, value: &T) -> Result<(), StoreError> {
        let text = serde_json::to_string(value).map_err(StoreError::Encode)?;
        self.dir.publish_file(&record_path("observed", None, key), &File::text(text + "\n"))?;
        Ok(())
    }

    /// Notes that the work of `key` has begun. The note survives a killed process but, unlike
    /// [`observe`](Self::observe), not a power failure: it is not synced.
    pub fn note<T: Serialize>(&self, key: &Key, value: &T) -> Result<(), StoreError> {
        let text = serde_json::to_string(value).map_err(StoreError::Encode)?;
        self.dir.note_file(&note_path(key), &File::text(text + "\n"))
    }

    /// Removes a note: its work is committed.
    pub fn forget(&self, key: &Key) -> Result<(), StoreError> {
        self.dir.remove(&note_path(key))
    }
}

/// The key that a record's file is named after. Files with other names are not records.
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
