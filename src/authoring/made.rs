//! Reads the files that `setup.sh` made on a machine, as a solver finds them.
//!
//! Checks compare with these files, and all stages after the environment's are shown them.

use std::io::Read as _;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::stages::left_over;
use super::{StageContext, StageError};
use crate::model::{File, FileTree, RelPath};
use crate::sandbox::{GetError, Process, ProcessOutcome, SandboxError};
use crate::store::{Stage, key};
use crate::verify::{HashedTask, NoVerdict, Phase, TrialError, solver_container};

/// The record of a machine's files.
const MACHINE: Stage = Stage::computed("machine");

/// The script that packs them.
const SCRIPT: &str = include_str!("made.sh");
/// The folder that the script writes to.
const OUT: &str = "/tmp/made";
/// Bytes of all files together. They become a part of the tests. The prompt asks for at most 200
/// kB.
const MAX_BYTES: u64 = 2 << 20;
/// Bytes of the header that `tar` writes for each file.
const HEADER: u64 = 512;
/// Files of a machine.
const MAX_FILES: u64 = 2_000;
/// Time limit of the script.
const PACKING: Duration = Duration::from_secs(60);

/// The files of a machine, and its links.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Made {
    /// Files by path, e.g. `app/notes.txt`. A git repository is a file `….git.bundle`.
    pub(super) files: FileTree,
    /// Links as `app/name -> target`, in order.
    pub(super) links: Vec<String>,
}

/// Reads the files of the built machine. The inner `Err` is a problem that the machine's author is
/// told.
pub(super) async fn made(
    context: &StageContext<'_>,
    hashed: &HashedTask<'_>,
) -> Result<Result<Made, String>, StageError> {
    let runner = context.runner;
    let key = key(MACHINE, &json!({ "environment": hashed.environment_digest, "script": SCRIPT }))?;
    // The files of one build count for all builds. A machine that differs from build to build fails
    // its own checks.
    if let Some((read, ())) = runner.recall::<Result<Made, String>, ()>(MACHINE, &key)? {
        return Ok(read);
    }
    let _slot = runner.slot().await?;
    let read = runner.retry(|| read(context, hashed)).await.map_err(TrialError::from)?;
    runner.commit(MACHINE, &key, &read, &())?;
    Ok(read)
}

async fn read(
    context: &StageContext<'_>,
    hashed: &HashedTask<'_>,
) -> Result<Result<Made, String>, NoVerdict> {
    let image = context.runner.image(hashed).await?;
    let engine = context.runner.engine.get().await?;
    let sandbox = engine.launch(&solver_container(&image, &hashed.task)).await?;
    let lost = |error| NoVerdict::Sandbox { phase: Phase::Prepare, error };
    let mut pack = Process::new("/bin/bash").args(["-c", SCRIPT, "made", OUT]);
    pack.timeout = PACKING;
    let packed = sandbox.spawn(&pack).await.map_err(lost)?;
    if packed.outcome != ProcessOutcome::Exited(0) {
        let printed = String::from_utf8_lossy(&packed.stderr);
        return Ok(Err(format!(
            "the files below /app cannot be read ({:?}): {}",
            packed.outcome,
            printed.trim()
        )));
    }
    let most = MAX_BYTES + MAX_FILES * 2 * HEADER;
    let mut parts = Vec::new();
    for name in ["made.tar", "links"] {
        match sandbox.get(&format!("{OUT}/{name}"), most).await {
            Ok(bytes) => parts.push(bytes),
            Err(GetError::Sandbox(error @ (SandboxError::Lost(_) | SandboxError::Engine(_)))) => {
                return Err(lost(error));
            }
            Err(_) => {
                return Ok(Err(format!("there is more than {MAX_BYTES} bytes below /app: make it smaller")));
            }
        }
    }
    sandbox.destroy().await;
    let links = parts.pop().unwrap_or_default();
    let links = String::from_utf8_lossy(&links).lines().map(str::to_owned).collect();
    let files = files_of(&parts.pop().unwrap_or_default());
    let shipped = files.and_then(|files| left_over(&files).map_or(Ok(files), Err));
    Ok(shipped.map(|files| Made { files, links }))
}

/// The regular files of an archive.
fn files_of(archive: &[u8]) -> Result<FileTree, String> {
    let damaged = |error: std::io::Error| format!("the files below /app cannot be read: {error}");
    let mut files = FileTree::default();
    let mut archive = tar::Archive::new(archive);
    for entry in archive.entries().map_err(damaged)? {
        let mut entry = entry.map_err(damaged)?;
        let path = String::from_utf8(entry.path_bytes().into_owned()).map_err(|error| {
            format!("a file's name is not UTF-8: {}", String::from_utf8_lossy(error.as_bytes()))
        })?;
        let path = RelPath::new(&path).map_err(|error| error.to_string())?;
        let executable = entry.header().mode().map_err(damaged)? & 0o100 != 0;
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).map_err(damaged)?;
        files.insert(path, File { bytes, executable });
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archives_become_files() {
        let mut tar = tar::Builder::new(Vec::new());
        for (name, mode, content) in [("app/run.sh", 0o755, "true\n"), ("app/data/x.csv", 0o600, "a,b\n")] {
            let mut header = tar::Header::new_gnu();
            header.set_mode(mode);
            header.set_size(content.len() as u64);
            tar.append_data(&mut header, name, content.as_bytes()).unwrap();
        }
        let found = files_of(&tar.into_inner().unwrap()).unwrap();
        let found: Vec<_> =
            found.iter().map(|(path, file)| (path.as_str(), file.executable, file.as_text())).collect();
        assert_eq!(found, [("app/data/x.csv", false, Some("a,b\n")), ("app/run.sh", true, Some("true\n"))]);
    }
}
