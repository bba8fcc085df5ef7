//! The engine's API for the doctor, which is synchronous: each call runs bollard on a runtime of its own.

use std::future::Future;
use std::io::{self, Write};
use std::pin::pin;
use std::thread;
use std::time::Duration;

use bollard::body_try_stream;
use bollard::errors::Error;
use bollard::models::{CreateImageInfo, ImageInspect, SystemInfo, SystemVersion};
use bollard::query_parameters::{CreateImageOptions, CreateImageOptionsBuilder};
use futures_util::{Stream, StreamExt, stream};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::System;
use super::error::FixError;
use super::heartbeat::Heartbeat;
use crate::sandbox::discovery::{self, Endpoint, NotFound, ProbeError};

/// Bytes of an upload that travel as one chunk.
const UPLOAD_CHUNK: usize = 256 << 10;
/// Chunks that wait for the engine, so that the producer is not ahead by more than a few.
const UPLOAD_QUEUE: usize = 4;
/// Pause between two looks at an upload that the engine has yet to finish.
const POLL: Duration = Duration::from_millis(50);

/// How long a call may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timeouts {
    /// Longest time without anything from the engine.
    pub(super) idle: Duration,
    /// Longest time of the whole call.
    pub(super) total: Duration,
}

/// A request for the engine's state or an image's; slow while the engine is busy with many containers.
const QUERY: Timeouts = Timeouts { idle: Duration::from_secs(20), total: Duration::from_secs(20) };
/// Where no registry can be reached some networks drop packets silently, and an engine tries for minutes.
const PULL: Timeouts = Timeouts { idle: Duration::from_secs(45), total: Duration::from_secs(600) };
/// The engine answers an import after the last byte, which a slow mirror delays.
const IMPORT: Timeouts = Timeouts { idle: Duration::from_secs(1800), total: Duration::from_secs(1800) };

/// An image's repository and tag.
#[derive(Clone, Copy, Debug)]
pub(super) struct ImageName {
    pub(super) repository: &'static str,
    pub(super) tag: &'static str,
}

impl std::fmt::Display for ImageName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.repository, self.tag)
    }
}

/// The first endpoint of this machine at which an engine answers.
pub(super) fn find(system: &System) -> Result<Endpoint, NotFound> {
    let environment = system.environment();
    block_on(discovery::find(&environment)).unwrap_or_else(|error| {
        tracing::warn!(%error, "cannot start a runtime to look for engines");
        Err(NotFound::NoAnswer { failures: Vec::new() })
    })
}

/// Whether an engine answers there.
pub(super) fn ping(endpoint: &Endpoint) -> Result<(), ProbeError> {
    block_on(discovery::ping(endpoint)).unwrap_or_else(|error| Err(ProbeError::Inaccessible(error)))
}

/// `GET /version`.
pub(super) fn version(endpoint: &Endpoint) -> Result<SystemVersion, FixError> {
    let call = Call { endpoint, action: "describe its version", timeouts: QUERY };
    call.run(async |docker| docker.version().await)
}

/// `GET /info`.
pub(super) fn info(endpoint: &Endpoint) -> Result<SystemInfo, FixError> {
    let call = Call { endpoint, action: "describe itself", timeouts: QUERY };
    call.run(async |docker| docker.info().await)
}

/// The image, or `None` where the engine has none of that name.
pub(super) fn image(endpoint: &Endpoint, name: ImageName) -> Result<Option<ImageInspect>, FixError> {
    let call = Call { endpoint, action: "describe the image", timeouts: QUERY };
    call.run(async |docker| match docker.inspect_image(&name.to_string()).await {
        Err(Error::DockerResponseServerError { status_code: 404, .. }) => Ok(None),
        result => result.map(Some),
    })
}

/// Pulls the image from its registry.
pub(super) fn pull(
    endpoint: &Endpoint,
    name: ImageName,
    heartbeat: &mut Heartbeat<'_, '_>,
) -> Result<(), FixError> {
    let call = Call { endpoint, action: "pull the image", timeouts: PULL };
    let options = CreateImageOptionsBuilder::new().from_image(name.repository).tag(name.tag).build();
    call.run(async |docker| {
        let mut progress = docker.create_image(Some(options), None, None);
        let mut ended = pin!(drain(&mut progress, PULL.idle));
        loop {
            tokio::select! {
                ended = &mut ended => return ended,
                () = tokio::time::sleep(heartbeat.until_next()) => heartbeat.beat(),
            }
        }
    })?;
    // An engine may report a failure in a form that bollard does not take for one.
    match image(endpoint, name)? {
        Some(_) => Ok(()),
        None => Err(call.refused("the pull ended, but there is no such image".to_owned())),
    }
}

/// Imports the file system whose tar archive `produce` writes, with these changes to its configuration.
///
/// `produce` runs on this thread, and calls its second argument while it waits. When it fails the upload is cut off, so that the engine does not make an image of half a tree.
pub(super) fn import(
    endpoint: &Endpoint,
    name: ImageName,
    changes: Vec<String>,
    heartbeat: &mut Heartbeat<'_, '_>,
    produce: impl FnOnce(&mut dyn Write, &mut dyn FnMut()) -> io::Result<()>,
) -> Result<(), FixError> {
    let call = Call { endpoint, action: "import the image", timeouts: IMPORT };
    let options = CreateImageOptionsBuilder::new()
        .from_src("-")
        .repo(name.repository)
        .tag(name.tag)
        .changes(changes)
        .build();
    let (sender, receiver) = mpsc::channel(UPLOAD_QUEUE);
    thread::scope(|scope| {
        let upload = scope.spawn(move || call.run(async |docker| upload(&docker, options, receiver).await));
        let mut body = io::BufWriter::with_capacity(UPLOAD_CHUNK, Upload(sender.clone()));
        let produced = produce(&mut body, &mut || heartbeat.beat_if_due()).and_then(|()| body.flush());
        // After a failure the buffered rest must not follow on drop.
        drop(body.into_parts());
        if let Err(error) = &produced {
            // The receiver is gone where the engine has ended the upload; it is that answer that counts then.
            let cut = io::Error::new(error.kind(), "the upload was cut off");
            if sender.blocking_send(Err(cut)).is_err() {
                tracing::debug!("the upload had ended before it was cut off");
            }
        }
        drop(sender);
        while !upload.is_finished() {
            heartbeat.beat_if_due();
            thread::sleep(POLL);
        }
        let answer =
            upload.join().unwrap_or_else(|_| Err(call.refused("the upload's thread panicked".to_owned())));
        match (produced, answer) {
            (Ok(()), answer) => answer,
            // An engine that refuses an upload half-way says why; the producer only met a closed pipe.
            (Err(_), Err(refusal @ FixError::Refused { .. })) => Err(refusal),
            (Err(error), _) => Err(call.unreachable(error.to_string())),
        }
    })
}

async fn upload(
    docker: &bollard::Docker,
    options: CreateImageOptions,
    chunks: mpsc::Receiver<io::Result<Vec<u8>>>,
) -> Result<(), Error> {
    let chunks = stream::unfold(chunks, async |mut chunks| {
        let chunk = chunks.recv().await?;
        Some((chunk.map(Into::into), chunks))
    });
    let mut progress = docker.create_image(Some(options), Some(body_try_stream(chunks)), None);
    drain(&mut progress, IMPORT.idle).await
}

/// Reads the engine's progress to its end; a failure is the last item of a successful response.
async fn drain(
    progress: &mut (impl Stream<Item = Result<CreateImageInfo, Error>> + Unpin),
    idle: Duration,
) -> Result<(), Error> {
    loop {
        match timeout(idle, progress.next()).await {
            Ok(None) => return Ok(()),
            Ok(Some(item)) => drop(item?),
            Err(_) => return Err(Error::RequestTimeoutError),
        }
    }
}

/// Sends what is written as chunks of an upload.
struct Upload(mpsc::Sender<io::Result<Vec<u8>>>);

impl Write for Upload {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let sent = self.0.blocking_send(Ok(buffer.to_owned()));
        sent.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        Ok(buffer.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// One request, and how to describe its failures.
#[derive(Clone, Copy)]
struct Call<'a> {
    endpoint: &'a Endpoint,
    /// "the engine failed to …"
    action: &'static str,
    timeouts: Timeouts,
}

impl Call<'_> {
    fn run<T>(self, request: impl AsyncFnOnce(bollard::Docker) -> Result<T, Error>) -> Result<T, FixError> {
        let docker = self.endpoint.client(self.timeouts.total).map_err(|error| self.failed(error))?;
        let answer = block_on(async { timeout(self.timeouts.total, request(docker)).await })
            .map_err(|error| self.unreachable(error.to_string()))?;
        match answer {
            Ok(result) => result.map_err(|error| self.failed(error)),
            Err(_) => Err(self.failed(Error::RequestTimeoutError)),
        }
    }

    fn failed(self, error: Error) -> FixError {
        match error {
            Error::DockerResponseServerError { status_code, message } => {
                self.refused(format!("{} (status {status_code})", message.trim()))
            }
            Error::DockerStreamError { error } => self.refused(error),
            Error::RequestTimeoutError => self.unreachable("no answer in time".to_owned()),
            error => self.unreachable(discovery::reason(&error)),
        }
    }

    fn refused(self, message: String) -> FixError {
        FixError::Refused { action: self.action, message }
    }

    fn unreachable(self, reason: String) -> FixError {
        FixError::NoReply { endpoint: self.endpoint.to_string(), action: self.action, reason }
    }
}

fn block_on<F: Future>(future: F) -> io::Result<F::Output> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(future))
}
