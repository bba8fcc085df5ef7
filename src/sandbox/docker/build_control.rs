//! Whether the engine can run the steps of a build at all.
//!
//! If a step's command ended, it has a status, and the Dockerfile is at fault. A step without a
//! status was ended by the engine. Either the Dockerfile asks for something impossible, e.g. a
//! missing file of COPY. Or the engine cannot make containers, e.g. without disk space. Its
//! messages do not tell these apart reliably, so a container of the same image decides.

use crate::model::{Limits, Profile};
use crate::sandbox::{EngineError, Image, LaunchSpec, Network};

use super::DockerEngine;

/// Start of the builder's line about the image that a step has made.
const MADE: &str = " ---> ";
/// Length of an image's short id.
const SHORT_ID: usize = 12;

impl DockerEngine {
    /// Starts a container like those of build steps in `image`. It has the usual network, and the
    /// guest as its only program, which needs nothing of the image. An error means that the engine
    /// is at fault.
    pub(super) async fn starts_steps(&self, image: &str) -> Result<(), EngineError> {
        let image = Image::named(image);
        let limits = Limits::default();
        let spec = LaunchSpec {
            image: &image,
            limits: &limits,
            profile: Profile::Stock,
            network: Network::Public,
            workdir: "/",
            purpose: "build-control",
            preload: Vec::new(),
            layer: None,
        };
        self.launch(&spec).await?.destroy().await;
        Ok(())
    }
}

/// The image that a step has made, if `text` is the builder's line about it.
pub(super) fn made_image(text: &str) -> Option<&str> {
    let id = text.strip_prefix(MADE)?.trim();
    (id.len() == SHORT_ID && id.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(id)
}

/// Whether the engine says that the step's command ended with a status.
pub(super) fn is_status_of_command(error: &str) -> bool {
    let status = error.trim_end().rsplit_once("returned a non-zero code: ").map(|(_, status)| status);
    error.starts_with("The command '") && status.is_some_and(|status| status.parse::<u8>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_of_the_command() {
        let check = |error: &str, expect: bool| assert_eq!(is_status_of_command(error), expect, "{error}");
        check("The command '/bin/sh -c x' returned a non-zero code: 1", true);
        check("The command '/bin/sh -c x' returned a non-zero code: 137\n", true);
        check("failed to create endpoint a on network bridge: could not find bridge docker0", false);
        check(
            "failed to set up container networking: driver failed programming external connectivity",
            false,
        );
        check("error creating overlay mount to /var/lib/docker/overlay2/x: no space left on device", false);
        check("COPY failed: file not found in build context or excluded by .dockerignore: stat a", false);
        check("OCI runtime create failed: exec: \"x\": executable file not found in $PATH", false);
    }

    #[test]
    fn images_of_steps_are_read_from_the_log() {
        let check = |text: &str, expect: Option<&str>| assert_eq!(made_image(text), expect, "{text}");
        check(" ---> f930023b6bde\n", Some("f930023b6bde"));
        check(" ---> Using cache\n", None);
        check(" ---> Running in f930023b6bde\n", None);
        check("f930023b6bde\n", None);
    }
}
