//! Reads and writes content-addressed records.

use std::cmp::Reverse;
use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::run_dir::{builds_of, check_run};
use super::stage::{LONGEST_BUILD, Origin};
use super::{RunDir, Stage, StoreError, build_id};
use crate::folder::{read_file, read_start};
use crate::model::{File, Key, canonical_json};

/// Folder of notes about work that has started and is not committed.
const NOTES: &str = "started";
/// Maximum bytes of a record. The longest records contain an imported rollout, whose file has at
/// most half of this.
const LARGEST_RECORD: u64 = 512 << 20;
/// How the record of a computed result begins.
const BUILD_BEFORE: &str = "{\"build\":\"";

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

/// Orders the results of several builds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Recency {
    is_own: bool,
    /// Place among the builds that wrote to the folder.
    place: Option<usize>,
    build: String,
}

#[derive(Serialize)]
struct RecordOut<'a, T> {
    #[serde(skip_serializing_if = "Option::is_none")]
    build: Option<&'a str>,
    stage: &'a str,
    value: &'a T,
}

#[derive(Deserialize)]
struct RecordIn<T> {
    value: T,
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

    /// The build that computed the result at `key`. `None` for a record that is missing or given.
    pub fn build(&self, stage: Stage, key: &Key) -> Result<Option<String>, StoreError> {
        let path = self.root.join(record_path("store", Some(stage.name), key));
        // The fields of records are in the order of their names.
        let start = read_start(&path, (BUILD_BEFORE.len() + LONGEST_BUILD) as u64)?.unwrap_or_default();
        let named = start.strip_prefix(BUILD_BEFORE.as_bytes()).unwrap_or_default();
        let name = named.split(|byte| *byte == b'"').next().unwrap_or_default();
        Ok(String::from_utf8(name.to_vec()).ok().filter(|name| !name.is_empty()))
    }

    /// The keys of a stage, of the results of several builds for one input only that of the latest
    /// build.
    pub fn latest(&self, stage: Stage) -> Result<Vec<Key>, StoreError> {
        let mut keys = self.keys(stage)?;
        self.retain_latest(stage, &mut keys)?;
        Ok(keys)
    }

    /// Leaves the key of the latest build where several of `keys` are of one input.
    pub fn retain_latest(&self, stage: Stage, keys: &mut Vec<Key>) -> Result<(), StoreError> {
        keys.sort();
        keys.dedup();
        let is_unique = |pair: &[Key]| pair[0].asked() != pair[1].asked();
        if keys.windows(2).all(is_unique) {
            return Ok(());
        }
        let mut ranked = Vec::with_capacity(keys.len());
        for key in keys.drain(..) {
            ranked.push((key.asked().to_owned(), Reverse(self.recency(stage, &key)?), key));
        }
        ranked.sort();
        ranked.dedup_by(|one, other| one.0 == other.0);
        keys.extend(ranked.into_iter().map(|(_, _, key)| key));
        Ok(())
    }

    /// How late the build is that computed a result: this build is the latest one, then come those
    /// that wrote to the folder, the last one first.
    pub fn recency(&self, stage: Stage, key: &Key) -> Result<Recency, StoreError> {
        let build = self.build(stage, key)?.unwrap_or_default();
        let place = builds_of(&self.root)?.iter().position(|name| *name == build);
        Ok(Recency { is_own: build == build_id(), place, build })
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
        let build = match stage.origin {
            Origin::Computed => Some(build_id()),
            Origin::Given => None,
        };
        let record = RecordOut { build, stage: stage.name, value };
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

    /// Notes that the work of `key` has started. The note is not synced: it survives a killed
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
