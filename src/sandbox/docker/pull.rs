//! Base images. They are pulled before a build, so that the registry's answer has a status of its
//! own. A failed pull is never the Dockerfile's fault.

use std::time::Duration;

use bollard::errors::Error;
use bollard::query_parameters::CreateImageOptionsBuilder;
use futures_util::StreamExt as _;

use crate::sandbox::{EngineError, Image, ImageError};
use crate::syntax::builder::{Base, EmptyBase, bases};

use super::{DockerEngine, Shared, api};

/// The tag of a name that has none.
const LATEST: &str = "latest";

impl DockerEngine {
    /// The image with this name, pulled if the engine does not have it.
    pub(in crate::sandbox) async fn pulled(
        &self,
        name: &str,
        timeout: Duration,
    ) -> Result<Image, EngineError> {
        self.shared.have(name, timeout).await?;
        Ok(Image::named(name))
    }
}

impl Shared {
    /// Pulls the bases of a Dockerfile that the engine does not have. Each pull may take `timeout`.
    pub(super) async fn have_bases(&self, dockerfile: &str, timeout: Duration) -> Result<(), ImageError> {
        for base in bases(dockerfile) {
            match base {
                Base::Image(name) => self.have(&name, timeout).await?,
                Base::Empty { line, text, why } => {
                    let why = match why {
                        EmptyBase::OutOfScope => {
                            "FROM does not see an ARG between stages: declare it before the first FROM"
                        }
                        EmptyBase::NoValue => "no ARG before the first FROM gives it a value",
                    };
                    return Err(ImageError::Build {
                        log: format!("Dockerfile, line {line}: the base `{text}` is empty: {why}"),
                    });
                }
            }
        }
        Ok(())
    }

    /// Pulls an image that the engine does not have. If several callers ask, one of them pulls.
    async fn have(&self, name: &str, timeout: Duration) -> Result<(), EngineError> {
        let lock = self.build_lock(name);
        let _in_process = lock.lock().await;
        if self.has_image(name).await? {
            return Ok(());
        }
        tracing::info!(image = name, "pulling an image");
        let (from, tag) = parts(name);
        let options = CreateImageOptionsBuilder::new().from_image(from).tag(tag).build();
        let mut events = Box::pin(self.docker.create_image(Some(options), None, None));
        let pull = async {
            while let Some(event) = events.next().await {
                event?;
            }
            Ok::<(), Error>(())
        };
        match tokio::time::timeout(timeout, pull).await {
            Ok(Ok(())) if self.has_image(name).await? => Ok(()),
            Ok(Ok(())) => Err(unanswered(name, "its answer ended early".to_owned())),
            Ok(Err(error)) => Err(not_pulled(name, &error)),
            Err(_) => Err(unanswered(name, format!("it is not there after {} s", timeout.as_secs()))),
        }
    }
}

/// The repository and the tag or digest of an image's name. Without a tag, an engine would pull all
/// of them.
fn parts(name: &str) -> (&str, &str) {
    if let Some(parts) = name.split_once('@') {
        return parts;
    }
    let last = name.rfind('/').map_or(0, |slash| slash + 1);
    match name[last..].rfind(':') {
        Some(colon) => (&name[..last + colon], &name[last + colon + 1..]),
        None => (name, LATEST),
    }
}

fn unanswered(name: &str, message: String) -> EngineError {
    EngineError::Registry { image: name.to_owned(), message }
}

/// The error of a registry's answer. A refused name is refused again, and everything else may pass.
fn not_pulled(name: &str, error: &Error) -> EngineError {
    let message = api::full_message(error);
    match api::status(error) {
        Some(400 | 401 | 403 | 404) => EngineError::MissingImage { base: name.to_owned(), message },
        _ => unanswered(name, message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Blame;

    #[test]
    fn names_have_a_tag_or_a_digest() {
        let check = |name: &str, from: &str, tag: &str| assert_eq!(parts(name), (from, tag));
        check("debian", "debian", "latest");
        check("debian:12", "debian", "12");
        check("localhost:5000/a/b", "localhost:5000/a/b", "latest");
        check("localhost:5000/a/b:1", "localhost:5000/a/b", "1");
        check("a/b@sha256:00", "a/b", "sha256:00");
    }

    #[test]
    fn only_a_registry_in_trouble_is_asked_again() {
        let check = |status_code: u16, expect: Blame| {
            let error = Error::DockerResponseServerError { status_code, message: "no".to_owned() };
            assert_eq!(not_pulled("a", &error).blame(), expect, "{status_code}");
        };
        check(404, Blame::Caller);
        check(400, Blame::Caller);
        check(500, Blame::Infra);
        check(429, Blame::Infra);
        let cut = Error::DockerStreamError { error: "connection reset".to_owned() };
        assert_eq!(not_pulled("a", &cut).blame(), Blame::Infra);
    }
}
