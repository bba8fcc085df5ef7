//! Tasks of `tests/gauntlet`.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of a task in the tree. For a task of our own format it lacks the verifier.
pub(crate) fn task_dir(name: &str) -> PathBuf {
    assert!(!name.starts_with("room-"), "prepare `{name}`");
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/gauntlet").join(name)
}

/// Copies complete tasks into `folder`. Each has a folder with its name.
pub(crate) fn prepare(folder: &Path, names: &[&str]) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/gauntlet/prepare.sh");
    let status = Command::new(script).arg(folder).args(names).status().unwrap();
    assert!(status.success(), "{script}: {status}");
}

/// Copies one complete task into `folder`, and returns its folder.
pub(crate) fn prepared(folder: &Path, name: &str) -> PathBuf {
    prepare(folder, &[name]);
    folder.join(name)
}
