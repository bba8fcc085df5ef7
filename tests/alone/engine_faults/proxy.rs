//! A Unix socket in front of an engine's. Requests fail there as engines and networks do.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rand::rngs::ChaCha8Rng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, copy};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinHandle;

/// Maximum bytes of a head. Heads of requests and responses have a few hundred.
const MAX_HEAD: usize = 64 << 10;
/// Longest delay of a request. It is shorter than every time-out of termsmith. So a delay alone
/// must never cause a retry.
const MAX_DELAY_MS: u64 = 1500;
/// Maximum bytes of an answer that is cut off. It ends in the head, or in a small body.
const MAX_TRUNCATED: u64 = 600;
/// An attached stream is cut within this time, which is as long as a trial takes.
const MAX_ATTACHED_MS: u64 = 4000;

/// A fault of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// The answer is late.
    Delay,
    /// The connection ends before the engine sees the request.
    Reset,
    /// The engine carries out the request, and the connection ends without an answer.
    Unanswered,
    /// The answer ends in its head or body.
    Truncated,
    /// The answer has status 500. The engine never saw the request.
    Refused,
    /// The answer has status 500. The engine carried out the request.
    CarriedOutAndRefused,
    /// The answer has status 404, "No such container". The container exists.
    NoSuchContainer,
    /// The answer to a download of files has status 500. The engine never saw the request.
    DownloadRefused,
    /// The answer to an attachment has status 500. The engine never saw the request.
    AttachRefused,
    /// The answer to the start of a container has status 500. The engine never saw the request.
    StartRefused,
    /// An attached stream ends, but the container runs on.
    AttachDropped,
}

const KINDS: [Kind; 8] = [
    Kind::Delay,
    Kind::Reset,
    Kind::Unanswered,
    Kind::Truncated,
    Kind::Refused,
    Kind::CarriedOutAndRefused,
    Kind::NoSuchContainer,
    Kind::AttachDropped,
];

/// The proxy. It ends when this is dropped.
pub(crate) struct Proxy {
    folder: tempfile::TempDir,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

struct Shared {
    engine: PathBuf,
    faulty: AtomicBool,
    /// Kinds of faults that are injected.
    kinds: Vec<Kind>,
    /// Probability of a fault in one request, from 0 to 1.
    probability: f64,
    random: Mutex<ChaCha8Rng>,
    injected: Mutex<BTreeMap<Kind, u32>>,
}

impl Proxy {
    /// Listens in front of the engine's socket. Each request has one of these faults with this
    /// probability.
    pub(crate) fn start(engine: &Path, kinds: &[Kind], probability: f64, seed: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("sock")).unwrap();
        let shared = Arc::new(Shared {
            engine: engine.to_owned(),
            faulty: AtomicBool::new(true),
            kinds: kinds.to_vec(),
            probability,
            random: Mutex::new(ChaCha8Rng::seed_from_u64(seed)),
            injected: Mutex::default(),
        });
        let serving = shared.clone();
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let shared = serving.clone();
                // An error on either side ends this connection. The other side must see that too.
                tokio::spawn(async move { shared.serve(client).await });
            }
        });
        Self { folder, shared, accepting }
    }

    pub(crate) fn every_kind() -> &'static [Kind] {
        &KINDS
    }

    /// The address for clients.
    pub(crate) fn endpoint(&self) -> String {
        format!("unix://{}", self.folder.path().join("sock").display())
    }

    /// Injects no more faults.
    pub(crate) fn heal(&self) {
        self.shared.faulty.store(false, Ordering::Relaxed);
    }

    /// Injects faults again after [`Self::heal`].
    pub(crate) fn ail(&self) {
        self.shared.faulty.store(true, Ordering::Relaxed);
    }

    /// How often each kind was injected.
    pub(crate) fn injected(&self) -> BTreeMap<Kind, u32> {
        self.shared.injected.lock().unwrap().clone()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Shared {
    /// A connection carries one request. Both sides are told to close it afterwards, so the end of
    /// the connection is the end of the answer.
    async fn serve(&self, mut client: UnixStream) -> io::Result<()> {
        let head = Head::read(&mut client).await?;
        let fault = self.draw(&head);
        match fault {
            Some(Kind::Delay) => tokio::time::sleep(self.millis(MAX_DELAY_MS)).await,
            // The connection closes while the request's body is unread. The client sees a reset.
            Some(Kind::Reset) => return Ok(()),
            Some(Kind::Refused | Kind::DownloadRefused | Kind::AttachRefused | Kind::StartRefused) => {
                return answer(&mut client, 500, "injected: the engine is in trouble").await;
            }
            Some(Kind::NoSuchContainer) => {
                let name = head.container().unwrap_or_default();
                return answer(&mut client, 404, &format!("No such container: {name}")).await;
            }
            Some(Kind::Unanswered | Kind::Truncated | Kind::CarriedOutAndRefused | Kind::AttachDropped)
            | None => {}
        }
        let mut engine = UnixStream::connect(&self.engine).await?;
        engine.write_all(&head.for_engine()).await?;
        let (mut from_client, mut to_client) = client.split();
        let (mut from_engine, mut to_engine) = engine.split();
        match fault {
            Some(Kind::Unanswered) => {
                until_answered(&mut from_client, &mut to_engine, &mut from_engine).await
            }
            Some(Kind::CarriedOutAndRefused) => {
                until_answered(&mut from_client, &mut to_engine, &mut from_engine).await?;
                answer(&mut to_client, 500, "injected: trouble after the work was done").await
            }
            Some(Kind::Truncated) => {
                let mut some = (&mut from_engine).take(self.number(MAX_TRUNCATED));
                tokio::select! {
                    sent = copy(&mut some, &mut to_client) => sent.map(drop),
                    Err(error) = forward(&mut from_client, &mut to_engine) => Err(error),
                }
            }
            Some(Kind::AttachDropped) => {
                let cut = tokio::time::sleep(self.millis(MAX_ATTACHED_MS));
                tokio::select! {
                    () = cut => Ok(()),
                    ended = both_ways(from_client, to_engine, from_engine, to_client) => ended,
                }
            }
            // The kinds that are answered above do not come here.
            Some(_) | None if head.upgrades() => {
                both_ways(from_client, to_engine, from_engine, to_client).await
            }
            Some(_) | None => {
                // The end of the answer ends the request, even if the client sends more.
                tokio::select! {
                    sent = copy(&mut from_engine, &mut to_client) => sent.map(drop),
                    Err(error) = forward(&mut from_client, &mut to_engine) => Err(error),
                }
            }
        }
    }

    /// The fault of this request, if any.
    fn draw(&self, head: &Head) -> Option<Kind> {
        if !self.faulty.load(Ordering::Relaxed) {
            return None;
        }
        let applies = |kind: &&Kind| match kind {
            Kind::AttachDropped | Kind::AttachRefused => head.upgrades(),
            Kind::StartRefused => head.starts(),
            Kind::NoSuchContainer => head.container().is_some(),
            Kind::DownloadRefused => head.downloads(),
            Kind::Delay | Kind::Reset | Kind::Refused => true,
            // An upgraded connection has no answer with an end.
            Kind::Unanswered | Kind::Truncated | Kind::CarriedOutAndRefused => !head.upgrades(),
        };
        let kinds: Vec<&Kind> = self.kinds.iter().filter(applies).collect();
        let mut random = self.random.lock().unwrap();
        // Streams live longer than other requests, so they get more faults.
        let probability = if head.upgrades() { 2.0 * self.probability } else { self.probability };
        if kinds.is_empty() || !random.random_bool(probability.min(1.0)) {
            return None;
        }
        let kind = *kinds[random.random_range(0..kinds.len())];
        *self.injected.lock().unwrap().entry(kind).or_default() += 1;
        Some(kind)
    }

    fn number(&self, below: u64) -> u64 {
        self.random.lock().unwrap().random_range(0..below)
    }

    fn millis(&self, below: u64) -> Duration {
        Duration::from_millis(self.number(below))
    }
}

/// The head of a request.
struct Head {
    text: String,
}

impl Head {
    /// The end of the stream is an error.
    async fn read(stream: &mut UnixStream) -> io::Result<Self> {
        let mut bytes = Vec::new();
        // Read byte by byte, because the following bytes belong to the body.
        while !bytes.ends_with(b"\r\n\r\n") {
            if bytes.len() > MAX_HEAD {
                return Err(io::Error::other("a request head without an end"));
            }
            bytes.push(stream.read_u8().await?);
        }
        Ok(Self { text: String::from_utf8_lossy(&bytes).into_owned() })
    }

    fn upgrades(&self) -> bool {
        self.text.to_ascii_lowercase().contains("\r\nupgrade:")
    }

    fn downloads(&self) -> bool {
        let mut words = self.text.split(' ');
        words.next() == Some("GET") && words.next().is_some_and(|path| path.contains("/archive?"))
    }

    fn starts(&self) -> bool {
        self.text
            .split(' ')
            .nth(1)
            .is_some_and(|path| path.split('?').next().unwrap_or(path).ends_with("/start"))
    }

    /// The container that the path names.
    fn container(&self) -> Option<&str> {
        let path = self.text.split(' ').nth(1)?.split('?').next()?;
        let mut parts = path.split('/').skip_while(|part| *part != "containers").skip(1);
        parts.next().filter(|name| !matches!(*name, "json" | "create" | "prune"))
    }

    /// The head as the engine gets it. It says that the connection closes after the answer, so the
    /// engine tells the client.
    fn for_engine(&self) -> Vec<u8> {
        if self.upgrades() {
            return self.text.clone().into_bytes();
        }
        let is_kept = |line: &&str| !line.to_ascii_lowercase().starts_with("connection:");
        let kept: Vec<&str> = self.text.trim_end().split("\r\n").filter(is_kept).collect();
        format!("{}\r\nConnection: close\r\n\r\n", kept.join("\r\n")).into_bytes()
    }
}

/// Sends an answer of the proxy's own.
async fn answer(client: &mut (impl AsyncWrite + Unpin), status: u16, message: &str) -> io::Result<()> {
    let body = serde_json::json!({ "message": message }).to_string();
    let head = format!(
        "HTTP/1.1 {status} Injected\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    client.write_all(format!("{head}{body}").as_bytes()).await?;
    client.shutdown().await
}

/// Copies until the end of `from`, and ends `to` then.
async fn forward(from: &mut (impl AsyncRead + Unpin), to: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
    copy(from, to).await?;
    to.shutdown().await
}

/// Copies both directions of an upgraded connection, each until its own end.
async fn both_ways(
    mut from_client: impl AsyncRead + Unpin,
    mut to_engine: impl AsyncWrite + Unpin,
    mut from_engine: impl AsyncRead + Unpin,
    mut to_client: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    tokio::try_join!(forward(&mut from_client, &mut to_engine), forward(&mut from_engine, &mut to_client),)
        .map(drop)
}

/// Sends the request's body and reads the whole answer. The client gets none of it.
async fn until_answered(
    from_client: &mut (impl AsyncRead + Unpin),
    to_engine: &mut (impl AsyncWrite + Unpin),
    from_engine: &mut (impl AsyncRead + Unpin),
) -> io::Result<()> {
    let mut nowhere = tokio::io::sink();
    tokio::select! {
        answered = copy(from_engine, &mut nowhere) => answered.map(drop),
        Err(error) = forward(from_client, to_engine) => Err(error),
    }
}
