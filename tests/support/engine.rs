//! Engines and sandboxes for tests.

use std::sync::LazyLock;
use std::time::Duration;

use termsmith::model::{File, FileTree, Limits, Profile, RelPath};
use termsmith::sandbox::{
    ENGINES, Engine, EngineEntry, ExecLimit, Image, ImageSpec, LaunchSpec, Network, Sandbox, process_engine,
};

/// All tests share one runtime, because an engine belongs to the runtime that made it.
pub(crate) static RUNTIME: LazyLock<tokio::runtime::Runtime> =
    LazyLock::new(|| tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap());

static PROCESS: LazyLock<Engine> = LazyLock::new(process_engine);

/// The row of Docker, for tests that are about Docker itself.
pub(crate) static DOCKER: LazyLock<&EngineEntry> =
    LazyLock::new(|| ENGINES.iter().find(|entry| entry.name == "docker").unwrap());

/// The engines that tests have connected to, one for each row.
static CONNECTED: LazyLock<Vec<tokio::sync::OnceCell<Engine>>> =
    LazyLock::new(|| ENGINES.iter().map(|_| tokio::sync::OnceCell::new()).collect());

/// Runs a test on the shared runtime.
pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
    RUNTIME.block_on(async {
        let result = test.await;
        // Otherwise temporary folders would outlive the test process.
        PROCESS.close().await;
        // Containers that are still being removed would too. Without nextest, the tests of a
        // process share the engine, and the next sweep of any process removes leftovers.
        if std::env::var_os("NEXTEST").is_some() {
            for engine in CONNECTED.iter().filter_map(|engine| engine.get()) {
                engine.close().await;
            }
        }
        result
    })
}

/// The engine that runs sandboxes as plain processes.
pub(crate) fn process() -> Engine {
    PROCESS.clone()
}

/// A Docker engine. `None` if the environment says that there is none.
pub(crate) async fn docker() -> Option<Engine> {
    connected(&DOCKER).await
}

/// The engine of a row. `None` if the environment says that there is none. Any other problem fails
/// the test.
async fn connected(entry: &EngineEntry) -> Option<Engine> {
    if std::env::var("TERMSMITH_TEST_ENGINE").is_ok_and(|engine| engine == "none") {
        return None;
    }
    let nth = ENGINES.iter().position(|other| other.name == entry.name).unwrap();
    let engine = CONNECTED[nth].get_or_init(async || match entry.connect().await {
        Ok(engine) => engine,
        Err(error) => {
            panic!("{error}\n(set TERMSMITH_TEST_ENGINE=none to leave out the tests that need an engine)")
        }
    });
    Some(engine.await.clone())
}

/// The engines that tests of behaviour run on.
pub(crate) async fn engines() -> Vec<(&'static str, Engine)> {
    let mut engines = vec![("process", PROCESS.clone())];
    for entry in ENGINES {
        engines.extend(connected(entry).await.map(|engine| (entry.name, engine)));
    }
    engines
}

/// The limits are small, so that several sandboxes fit beside each other.
pub(crate) fn limits() -> Limits {
    Limits { memory_mb: 128, storage_mb: 64, pids: 64, ..Limits::default() }
}

pub(crate) const WORKDIR: &str = "/app";

/// Image of the tests' containers.
pub(crate) fn base() -> Image {
    Image::named("debian:bookworm-slim")
}

pub(crate) fn spec<'a>(image: &'a Image, limits: &'a Limits) -> LaunchSpec<'a> {
    LaunchSpec {
        image,
        limits,
        profile: Profile::Plain,
        network: Network::None,
        workdir: WORKDIR,
        purpose: "test",
        preload: Vec::new(),
        layer: None,
    }
}

pub(crate) async fn launch(engine: &Engine) -> Sandbox {
    engine.launch(&spec(&base(), &limits())).await.unwrap()
}

pub(crate) fn limit(timeout: Duration) -> ExecLimit {
    ExecLimit { timeout, ..ExecLimit::default() }
}

/// Runs a command with a generous time-out.
pub(crate) async fn shell(sandbox: &Sandbox, command: &str) -> termsmith::sandbox::ShellResult {
    sandbox.shell(command, &ExecLimit::default()).await.unwrap()
}

/// Output of a command with a generous time-out, as text.
pub(crate) async fn output(sandbox: &Sandbox, command: &str) -> String {
    String::from_utf8(shell(sandbox, command).await.output).unwrap()
}

/// A build context.
pub(crate) fn context(files: &[(&str, &str)]) -> FileTree {
    let mut tree = FileTree::default();
    for (path, text) in files {
        tree.insert(RelPath::new(*path).unwrap(), File::text(*text));
    }
    tree
}

pub(crate) fn image_spec<'a>(digest: &'a str, context: &'a FileTree) -> ImageSpec<'a> {
    ImageSpec { digest, context, timeout: Duration::from_secs(60) }
}

/// Waits until `condition` holds. Only a failing test reaches the time limit.
pub(crate) async fn eventually(what: &str, condition: impl AsyncFn() -> bool) {
    for _ in 0..600 {
        if condition().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("never: {what}");
}
