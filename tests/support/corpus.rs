//! Tasks of `tests/gauntlet`.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of a task in the tree. Tasks of our own format lack the verifier there.
pub(crate) fn task_dir(name: &str) -> PathBuf {
    assert!(!name.starts_with("room-"), "prepare `{name}`");
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/gauntlet").join(name)
}

/// Copies tasks to folders of their names in `folder`, complete.
pub(crate) fn prepare(folder: &Path, names: &[&str]) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/gauntlet/prepare.sh");
    let status = Command::new(script).arg(folder).args(names).status().unwrap();
    assert!(status.success(), "{script}: {status}");
}

/// Copies one task to a folder of its name in `folder`, and returns it.
pub(crate) fn prepared(folder: &Path, name: &str) -> PathBuf {
    prepare(folder, &[name]);
    folder.join(name)
}
