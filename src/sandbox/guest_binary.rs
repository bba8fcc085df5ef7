//! The embedded guest binary, and its file on this host.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::EngineError;

/// The static program that an engine starts as the first process of its containers. `build.rs`
/// compiled it.
pub const BYTES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/guest"));

/// The cache folder that all processes of one build share. It holds the guest and lock files.
pub(super) fn cache_dir() -> PathBuf {
    let from = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = from("XDG_CACHE_HOME").or_else(|| from("HOME").map(|home| home.join(".cache")));
    base.unwrap_or_else(std::env::temp_dir).join("termsmith")
}

/// Writes the guest into `cache` if it is missing. Its name is its hash, so different builds do not
/// conflict.
pub(super) fn install(cache: &Path) -> Result<PathBuf, EngineError> {
    let path = cache.join(format!("guest-{}", &blake3::hash(BYTES).to_hex()[..16]));
    // The content is compared too. A full disk or another user may have left a different file under
    // this name.
    if fs::read(&path).is_ok_and(|bytes| bytes == BYTES) {
        return Ok(path);
    }
    let written = fs::create_dir_all(cache).and_then(|()| {
        // Processes in other PID namespaces may share the cache and have the same process number.
        // So the number makes no unique name.
        let mut file = NamedTempFile::new_in(cache)?;
        file.write_all(BYTES)?;
        file.as_file().set_permissions(fs::Permissions::from_mode(0o755))?;
        file.as_file().sync_all()?;
        file.persist(&path).map_err(|error| error.error)
    });
    match written {
        Ok(_) => Ok(path),
        Err(source) => Err(EngineError::Io { action: "write the guest to", path, source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_install_the_guest_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let cache = folder.path().join("cache");
        std::thread::scope(|scope| {
            let installs: Vec<_> = (0..8).map(|_| scope.spawn(|| install(&cache).unwrap())).collect();
            for installed in installs {
                assert!(fs::read(installed.join().unwrap()).unwrap() == BYTES);
            }
        });
        // Nothing but the guest is left.
        assert_eq!(fs::read_dir(&cache).unwrap().count(), 1);
    }
}
