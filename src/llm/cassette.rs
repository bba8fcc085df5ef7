//! Cassettes: recordings of model calls. A recorded run can be replayed without a model.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{CallSite, Drift, drift::drift};
use crate::folder::{WalkError, read_named_by_user};

/// Version of a line's format.
const VERSION: u32 = 1;
/// Extension of a compressed recording.
const COMPRESSED: &str = "zst";
/// Maximum bytes of a recording, also when decompressed. They are enough for hundreds of tasks. A
/// small compressed file could have any number.
const MAX_BYTES: u64 = 1 << 30;

/// A line of a recording: a call.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    version: u32,
    site: CallSite,
    /// Body of the request.
    request: Value,
    /// Body of the response.
    response: Value,
}

/// A recording that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CassetteError {
    #[error("failed to {action} recording `{}`: {source}", path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(transparent)]
    Read(#[from] WalkError),
    #[error("{}:{line}: {message}\nhint: a recording is made by --record; each line is one call", path.display())]
    Line { path: PathBuf, line: usize, message: String },
    #[error("recording `{}` has no call at {site}\nhint: record it again, or run against a model", path.display())]
    Missing { path: PathBuf, site: Box<CallSite> },
    #[error("recording `{}` has a response at {site} that cannot be read: {message}\nhint: record the call again", path.display())]
    Unreadable { path: PathBuf, site: Box<CallSite>, message: String },
}

/// A recording that is used in place of endpoints.
#[derive(Debug)]
pub struct Cassette {
    path: PathBuf,
    lines: BTreeMap<CallSite, Line>,
}

impl Cassette {
    /// Reads the recording in `path`. It may be compressed (`.zst`).
    pub fn open(path: &Path) -> Result<Self, CassetteError> {
        let text = text_of(path)?;
        Ok(Self { path: path.to_owned(), lines: parse(path, &text)? })
    }

    /// Number of recorded calls.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether it has no calls.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// The recorded response at `site`, and how `request` differs from the recorded request.
    pub(super) fn reply(
        &self,
        site: &CallSite,
        request: &Value,
    ) -> Result<(String, Option<Drift>), CassetteError> {
        match self.lines.get(site) {
            Some(line) => Ok((line.response.to_string(), drift(&line.request, request))),
            None => Err(CassetteError::Missing { path: self.path.clone(), site: Box::new(site.clone()) }),
        }
    }

    pub(super) fn unreadable(&self, site: &CallSite, message: String) -> CassetteError {
        CassetteError::Unreadable { path: self.path.clone(), site: Box::new(site.clone()), message }
    }
}

/// A recording that is being written. Calls that the file has are not written again.
#[derive(Debug)]
pub struct Recorder {
    path: PathBuf,
    state: Mutex<Recording>,
}

#[derive(Debug)]
struct Recording {
    file: fs::File,
    sites: BTreeSet<CallSite>,
}

impl Recorder {
    /// Continues the recording in `path`, or creates it. A killed process may have left a part of a
    /// line at the end. It is cut off.
    pub fn open(path: &Path) -> Result<Self, CassetteError> {
        if is_compressed(path) {
            let source = io::Error::other(
                "calls cannot be appended to a compressed recording; record to a plain file, and compress that with `zstd`",
            );
            return Err(io_error("continue", path)(source));
        }
        // Without NONBLOCK, opening a named pipe waits for a reader.
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let mut options = fs::OpenOptions::new();
        let file = options.create(true).append(true).custom_flags(flags).open(path);
        let file = file.map_err(io_error("open", path))?;
        let mut bytes = read_named_by_user(path, MAX_BYTES)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        file.set_len(whole as u64).map_err(io_error("mend", path))?;
        bytes.truncate(whole);
        let sites = parse(path, &utf8(path, bytes)?)?.into_keys().collect();
        Ok(Self { path: path.to_owned(), state: Mutex::new(Recording { file, sites }) })
    }

    /// Appends a call. Returns when it is on the disk.
    pub(super) fn record(&self, site: &CallSite, request: &Value, body: &str) -> Result<(), CassetteError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.sites.contains(site) {
            return Ok(());
        }
        let write = |state: &mut Recording| -> io::Result<()> {
            let response = serde_json::from_str(body)?;
            let line = Line { version: VERSION, site: site.clone(), request: request.clone(), response };
            // One write for each line, so that lines of concurrent processes do not mix.
            state.file.write_all(format!("{}\n", serde_json::to_string(&line)?).as_bytes())?;
            state.file.sync_data()
        };
        write(&mut state).map_err(io_error("append to", &self.path))?;
        state.sites.insert(site.clone());
        Ok(())
    }
}

/// The text of a recording. A call repeats the start of its conversation, so recordings compress
/// well.
fn text_of(path: &Path) -> Result<String, CassetteError> {
    let bytes = read_named_by_user(path, MAX_BYTES)?;
    if !is_compressed(path) {
        return utf8(path, bytes);
    }
    let mut text = Vec::new();
    let decoder = zstd::Decoder::new(bytes.as_slice()).map_err(io_error("decompress", path))?;
    decoder.take(MAX_BYTES + 1).read_to_end(&mut text).map_err(io_error("decompress", path))?;
    if text.len() as u64 > MAX_BYTES {
        let source = io::Error::other(format!("it has more than {} MiB", MAX_BYTES >> 20));
        return Err(io_error("decompress", path)(source));
    }
    utf8(path, text)
}

fn utf8(path: &Path, bytes: Vec<u8>) -> Result<String, CassetteError> {
    String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        CassetteError::Line { path: path.to_owned(), line, message: "the file is not UTF-8".to_owned() }
    })
}

fn is_compressed(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == COMPRESSED)
}

fn parse(path: &Path, text: &str) -> Result<BTreeMap<CallSite, Line>, CassetteError> {
    let mut lines = BTreeMap::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let fault = |message: String| CassetteError::Line { path: path.to_owned(), line: index + 1, message };
        let line: Line = serde_json::from_str(line).map_err(|error| fault(error.to_string()))?;
        if line.version != VERSION {
            let message =
                format!("version {} of the format is unknown; this build reads {VERSION}", line.version);
            return Err(fault(message));
        }
        let site = line.site.clone();
        if lines.insert(site.clone(), line).is_some() {
            return Err(fault(format!("the call at {site} is recorded twice")));
        }
    }
    Ok(lines)
}

fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> CassetteError {
    let path = path.to_owned();
    move |source| CassetteError::Io { action, path, source }
}
