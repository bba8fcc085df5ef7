//! The embedded guest binary, and its file on this host.

use std::fs;
use std::path::{Path, PathBuf};

use super::EngineError;
use crate::model::File;
use crate::store::replace_file;

/// The static program that `build.rs` compiled.
pub(super) const BYTES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/guest"));

/// Cache folder that all processes of one build share: the guest, lock files.
pub(super) fn cache_dir() -> PathBuf {
    let from = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = from("XDG_CACHE_HOME").or_else(|| from("HOME").map(|home| home.join(".cache")));
    base.unwrap_or_else(std::env::temp_dir).join("termsmith")
}

/// Writes the guest into `cache` if it is not there. Its name is its hash, so different builds do not conflict.
pub(super) fn install(cache: &Path) -> Result<PathBuf, EngineError> {
    let path = cache.join(format!("guest-{}", &blake3::hash(BYTES).to_hex()[..16]));
    // The content is checked, not only the name: a full disk or another user may have left a different file.
    if fs::read(&path).is_ok_and(|bytes| bytes == BYTES) {
        return Ok(path);
    }
    let temporary = cache.join(format!("guest.{}.part", std::process::id()));
    let written = fs::create_dir_all(cache)
        .and_then(|()| replace_file(&temporary, &path, &File { bytes: BYTES.to_vec(), executable: true }));
    match written {
        Ok(()) => Ok(path),
        Err(source) => Err(EngineError::Io { action: "write the guest to", path, source }),
    }
}
