//! Unpacks archives in a running sandbox.

use super::sandbox::{FILE_TIMEOUT, failed};
use super::{EngineError, Preload, Process, ProcessOutcome, Sandbox, SandboxError, Spooled};

/// Maximum size of an archive that is sent in one piece. The engine uploads larger ones.
const MAX_UNPACKED: u64 = 8 << 20;
/// Standard folders for programs.
const CLEAN_PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";
/// Maximum bytes of a helper program's error output.
const MAX_COMPLAINT: usize = 4096;

impl Sandbox {
    /// Unpacks a tar archive into `/` with the image's own `tar`. Owners and modes stay. No command
    /// of a solver may have run in the sandbox before.
    ///
    /// Larger archives, and images without `tar`, need an upload by the engine. That takes ten
    /// times as long, since the engine starts a process for each.
    pub async fn unpack(&self, archive: &Spooled) -> Result<(), SandboxError> {
        self.unpack_with("tar", archive).await
    }

    async fn unpack_with(&self, tar: &str, archive: &Spooled) -> Result<(), SandboxError> {
        if archive.len() > MAX_UNPACKED {
            return self.upload(archive).await;
        }
        let bytes = archive.bytes().map_err(|source| EngineError::Spool { source })?;
        let process = Process {
            argv: [tar, "-x", "-p", "--numeric-owner", "-C", "/", "-f", "-"].map(Into::into).to_vec(),
            env: vec![("PATH".into(), CLEAN_PATH.into())],
            cwd: "/".to_owned(),
            stdin: bytes,
            timeout: FILE_TIMEOUT,
            max_output: MAX_COMPLAINT,
        };
        let done = self.spawn(&process).await?;
        match done.outcome {
            ProcessOutcome::Exited(0) => Ok(()),
            // The image lacks `tar`. That is not the solver's fault, and no reason not to judge.
            ProcessOutcome::NotStarted(why) => {
                tracing::debug!(container = %self.id(), why, "`tar` cannot be started, so the engine unpacks");
                self.upload(archive).await
            }
            ProcessOutcome::Exited(_) | ProcessOutcome::Signaled(_) | ProcessOutcome::TimedOut => {
                Err(failed(&done.stderr))
            }
        }
    }

    async fn upload(&self, archive: &Spooled) -> Result<(), SandboxError> {
        let preload = Preload { dest: "/".to_owned(), tar: archive.clone() };
        Ok(self.container.handle.upload(&preload).await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Limits, Profile};
    use crate::sandbox::{Image, LaunchSpec, Network, process_engine};

    #[tokio::test]
    async fn the_engine_unpacks_where_the_image_has_no_tar() {
        let engine = process_engine();
        let (image, limits) = (Image::named("none"), Limits::default());
        let spec = LaunchSpec {
            image: &image,
            limits: &limits,
            profile: Profile::Plain,
            network: Network::None,
            workdir: "/",
            purpose: "test",
            preload: Vec::new(),
            layer: None,
        };
        let sandbox = engine.launch(&spec).await.unwrap();
        let mut empty = tar::Builder::new(Vec::new());
        empty.finish().unwrap();
        let empty = Spooled::from(empty.into_inner().unwrap());
        let too_large = Spooled::from(vec![0; usize::try_from(MAX_UNPACKED).unwrap() + 1]);
        let check = async |tar: &str, archive: &Spooled, expect: Result<(), &str>| {
            let unpacked = sandbox.unpack_with(tar, archive).await.map_err(|error| error.to_string());
            assert_eq!(unpacked, expect.map_err(str::to_owned), "{tar}");
        };
        // This engine has no uploads. Its refusal shows that an upload was tried.
        let refused = Err("the process engine cannot upload an archive");
        check("tar", &empty, Ok(())).await;
        check("tar", &too_large, refused).await;
        check("no-such-program", &empty, refused).await;
        drop(sandbox);
        engine.close().await;
    }
}
