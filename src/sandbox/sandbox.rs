//! A running sandbox: commands, programs, files, terminals and the relay. They are written once,
//! over the guest's frames.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use crate::guest::frame::{
    CHUNK, Limit, MAX_COMMAND, MAX_INPUT, PORT_PREFIX, Stream, Termination, ToGuest, ToHost,
};
use crate::model::{Blame, FileTree, ShellOutcome};

use super::clock::SandboxClock;
use super::connection::{Closed, Connection, Operation, Streams, Symptom};
use super::container::{Container, Pause};
use super::pty::{Pty, PtySize};
use super::relay::{self, RelayCall};
use super::request::{fits, no_nul, path_fits, program};
use super::stopped::{Change, Stopped};
use super::{
    ContainerId, EngineError, Evidence, ExecLimit, GetError, Image, Loss, Process, ProcessOutcome,
    ProcessResult, SandboxError, ShellResult,
};

/// Time that an answer may take beyond the command's own time-out. The guest kills in two stages,
/// and the host may be busy.
const ANSWER_SLACK: Duration = Duration::from_secs(30);
/// Time-out of a file operation. A program in the sandbox can delay one only by exhausting the
/// machine.
pub(super) const FILE_TIMEOUT: Duration = Duration::from_secs(120);
/// Maximum output of any request, so that a caller's mistake does not exhaust the guest's memory.
const MAX_OUTPUT: usize = MAX_INPUT;
/// Maximum length of the line that replaces omitted bytes.
const MARKER_SLACK: usize = 64;

/// A container with a guest in it.
///
/// All methods take `&self`, and can run at the same time. Shell commands are queued. Dropping a
/// future cancels its operation in the guest, and the connection stays usable. Dropping the sandbox
/// removes the container.
#[derive(Debug)]
pub struct Sandbox {
    connection: Arc<Connection>,
    pub(super) container: Container,
    clock: SandboxClock,
    workdir: String,
}

impl Sandbox {
    /// A sandbox over the streams of a guest that was just started in `container`. Waits for the
    /// guest's hello. Sends the shell's work directory and `HOME`.
    pub async fn connect(
        container: Container,
        streams: Streams,
        workdir: &str,
        home: &str,
    ) -> Result<Self, EngineError> {
        match Connection::open(streams, workdir, home).await {
            Ok(connection) => {
                let pauses = container.handle.pauses();
                if let Some(pauses) = pauses.clone() {
                    connection.tell_pauses(pauses);
                }
                let clock = SandboxClock::new(pauses);
                Ok(Self { connection, container, clock, workdir: workdir.to_owned() })
            }
            Err(closed) => Err(match container.handle.why_lost(closed).await {
                SandboxError::Engine(error) => error,
                SandboxError::Lost(loss) if loss.blame() == Some(Blame::Infra) => {
                    EngineError::Transport { action: "start the guest", message: loss.to_string() }
                }
                other => EngineError::Guest { message: other.to_string() },
            }),
        }
    }

    /// Runs one command in the long-lived shell. Folder, variables and functions persist between
    /// commands.
    ///
    /// The command's standard input is empty. At the time-out its processes are killed, and the
    /// shell continues. Services of earlier commands survive, and so does every process in a
    /// session of its own.
    pub async fn shell(&self, command: &str, limit: &ExecLimit) -> Result<ShellResult, SandboxError> {
        self.shell_until(command, limit, std::future::pending()).await
    }

    /// Like [`Self::shell`]. The command is also ended, as at its time-out, once `stop` completes.
    pub async fn shell_until(
        &self,
        command: &str,
        limit: &ExecLimit,
        stop: impl Future<Output = ()>,
    ) -> Result<ShellResult, SandboxError> {
        fits("the command", command.len(), MAX_COMMAND)?;
        no_nul("the command", command.as_bytes())?;
        let max_output = limit.max_output.min(MAX_OUTPUT);
        let request = |id| ToGuest::Shell {
            id,
            timeout_ms: millis(limit.timeout),
            max_output: max_output as u64,
            command: command.as_bytes().to_vec(),
        };
        let ended = self.run_until(request, &[], limit.timeout, max_output, stop).await?;
        let ToHost::ShellDone { how, restarted, bytes, micros, .. } = ended.last else {
            return Err(self.nonsense(&ended.last).await);
        };
        let outcome = match how {
            Termination::Exited(status) => ShellOutcome::Exited(status),
            Termination::TimedOut => ShellOutcome::TimedOut,
            Termination::ShellDied(status) | Termination::Signaled(status) => ShellOutcome::ShellDied(status),
        };
        let took = Duration::from_micros(micros);
        Ok(ShellResult { outcome, output: ended.stdout, bytes, shell_restarted: restarted, took })
    }

    /// Runs one program outside the shell. Its whole session is killed when it ends, or at its
    /// time-out.
    pub async fn spawn(&self, process: &Process) -> Result<ProcessResult, SandboxError> {
        fits("standard input", process.stdin.len(), MAX_INPUT)?;
        let program = program(process)?;
        let max_output = process.max_output.min(MAX_OUTPUT);
        let request = |id| ToGuest::Spawn {
            id,
            timeout_ms: millis(process.timeout),
            max_output: max_output as u64,
            program,
        };
        let ended = match self.run(request, &process.stdin, process.timeout, max_output).await {
            Ok(ended) => ended,
            Err(SandboxError::Failed { message }) => return Ok(not_started(message)),
            Err(error) => return Err(error),
        };
        let ToHost::ProcessDone { how, stdout, stderr, micros, .. } = ended.last else {
            return Err(self.nonsense(&ended.last).await);
        };
        Ok(ProcessResult {
            outcome: process_outcome(how),
            stdout: ended.stdout,
            stderr: ended.stderr,
            stdout_bytes: stdout,
            stderr_bytes: stderr,
            took: Duration::from_micros(micros),
        })
    }

    /// Writes a file with the permission bits `mode`, and creates its folders. An existing file,
    /// link or device is replaced in one step.
    pub async fn put(&self, path: &str, bytes: &[u8], mode: u32) -> Result<(), SandboxError> {
        let operation = self.begin_put(path, bytes, mode).await?;
        self.end_put(operation).await
    }

    /// Writes every file of `tree` below `dir`.
    pub async fn put_tree(&self, dir: &str, tree: &FileTree) -> Result<(), SandboxError> {
        // All requests are sent before the first answer is awaited. So there is one round trip, not
        // one for each file.
        let mut started = Vec::new();
        for (path, file) in tree.iter() {
            started.push(self.begin_put(&format!("{dir}/{path}"), &file.bytes, file.mode()).await?);
        }
        for operation in started {
            self.end_put(operation).await?;
        }
        Ok(())
    }

    /// Reads a regular file of at most `max` bytes. If the last component of `path` is a link, it
    /// is not followed.
    pub async fn get(&self, path: &str, max: u64) -> Result<Vec<u8>, GetError> {
        path_fits("the path", path)?;
        let limit = usize::try_from(max).unwrap_or(usize::MAX);
        let request = |id| ToGuest::GetFile { id, max, path: path.as_bytes().to_vec() };
        let (mut operation, errno) = (self.begin(request).await?, |errno| match errno {
            ENOENT | ENOTDIR => Some(GetError::Missing { path: path.to_owned() }),
            EINVAL => Some(GetError::NotRegular { path: path.to_owned() }),
            EFBIG => Some(GetError::TooLarge { path: path.to_owned(), max }),
            _ => None,
        });
        let mut content = Vec::new();
        loop {
            match self.next(&mut operation, FILE_TIMEOUT).await? {
                ToHost::Chunk { bytes, .. } if content.len() + bytes.len() <= limit => {
                    content.extend_from_slice(&bytes);
                }
                // The file has grown after the guest read its size.
                ToHost::Chunk { .. } => return Err(GetError::TooLarge { path: path.to_owned(), max }),
                ToHost::Done { .. } => return Ok(content),
                ToHost::Failed { errno: code, limit, message, .. } => {
                    return Err(match errno(code) {
                        Some(error) => error,
                        None => self.failed(code, limit, &message).await.into(),
                    });
                }
                other => return Err(self.nonsense(&other).await.into()),
            }
        }
    }

    /// Starts a program on a pseudo-terminal of its own. The time-out, standard input and
    /// `max_output` of `process` are not used. The image needs no software for it.
    pub async fn pty(&self, process: &Process, size: PtySize) -> Result<Pty, SandboxError> {
        let program = program(process)?;
        let request = |id| ToGuest::Pty { id, rows: size.rows, cols: size.cols, program };
        let mut operation = self.begin(request).await?;
        match self.next(&mut operation, FILE_TIMEOUT).await? {
            ToHost::Done { .. } => Ok(Pty::new(operation)),
            ToHost::Failed { errno, limit, message, .. } => Err(self.failed(errno, limit, &message).await),
            other => Err(self.nonsense(&other).await),
        }
    }

    /// Makes the guest listen on a Unix socket with mode 0600. Each connection's input becomes
    /// one [`RelayCall`]. Its reply is written back, and the connection is closed.
    /// Dropping the receiver closes the socket.
    pub async fn serve_relay(&self, socket_path: &str) -> Result<mpsc::Receiver<RelayCall>, SandboxError> {
        path_fits("the path", socket_path)?;
        self.listen(socket_path.as_bytes().to_vec()).await
    }

    /// Makes the guest listen on a port of the sandbox's loopback address. Each HTTP/1.1 request
    /// becomes one [`RelayCall`], with head and body as they were sent. The reply is written back
    /// as it is, and the connection is closed.
    pub async fn serve_port(&self, port: u16) -> Result<mpsc::Receiver<RelayCall>, SandboxError> {
        let path = [PORT_PREFIX, port.to_string().as_bytes()].concat();
        self.listen(path).await
    }

    async fn listen(&self, path: Vec<u8>) -> Result<mpsc::Receiver<RelayCall>, SandboxError> {
        let mut operation = self.begin(|id| ToGuest::Listen { id, path }).await?;
        match self.next(&mut operation, FILE_TIMEOUT).await? {
            ToHost::Done { .. } => Ok(relay::serve(operation)),
            ToHost::Failed { errno, limit, message, .. } => Err(self.failed(errno, limit, &message).await),
            other => Err(self.nonsense(&other).await),
        }
    }

    /// The engine's name for the container.
    pub fn id(&self) -> &ContainerId {
        &self.container.id
    }

    /// The folder in which the shell starts. The process engine has no `/app`, so callers must ask.
    pub fn workdir(&self) -> &str {
        &self.workdir
    }

    /// The clock of its programs.
    pub fn clock(&self) -> &SandboxClock {
        &self.clock
    }

    /// Present differences from the image. The guest's own mount point is left out.
    pub async fn changes(&self) -> Result<Vec<Change>, EngineError> {
        self.container.handle.changes().await
    }

    /// An error if the host's disk was full while the sandbox ran. A failure of its programs then
    /// proves nothing.
    pub async fn check_host_disk(&self) -> Result<(), SandboxError> {
        self.container.handle.host_disk_full().await.map_or(Ok(()), |loss| Err(SandboxError::Lost(loss)))
    }

    /// The sandbox's threads that run or could run now. `None` if that is not known.
    pub async fn runnable_threads(&self) -> Option<u32> {
        self.container.handle.runnable_threads().await
    }

    /// How often the kernel killed one of its processes for lack of memory, as far as that is
    /// known.
    pub fn out_of_memory_kills(&self) -> usize {
        self.container.handle.out_of_memory_kills()
    }

    /// Kills every process at once. Later requests fail with the sandbox's loss, and its evidence
    /// is the reason of this kill.
    pub async fn kill(&self) -> Result<(), EngineError> {
        self.container.handle.kill().await
    }

    /// Kills every process at once. The files exist until the result is dropped. An error if the
    /// host's disk was full meanwhile, since files may be incomplete.
    pub async fn stop(self) -> Result<Stopped, EngineError> {
        let Self { connection, container, .. } = self;
        if container.handle.ends_with_stream() {
            connection.close();
        }
        let killed = container.handle.kill().await;
        // Terminals and relays use the connection too, and an engine in trouble may never end its
        // stream.
        connection.close();
        killed?;
        if let Some(loss) = container.handle.host_disk_full().await {
            return Err(EngineError::Transport {
                action: "keep the files of a container",
                message: loss.to_string(),
            });
        }
        Ok(Stopped::new(container))
    }

    /// Commits the present files as an image. The image lives as long as the returned value and its
    /// clones. The processes are paused during the commit.
    pub async fn snapshot(&self) -> Result<Image, EngineError> {
        self.container.handle.commit(Pause::WhileCommitting).await
    }

    /// Kills and removes the sandbox in the background. [`super::Engine::close`] waits for that.
    /// Dropping the sandbox does the same.
    pub async fn destroy(self) {}

    /// Sends a request and its input, and collects output until the last answer.
    async fn run(
        &self,
        request: impl FnOnce(u32) -> ToGuest,
        input: &[u8],
        timeout: Duration,
        max_output: usize,
    ) -> Result<Ended, SandboxError> {
        self.run_until(request, input, timeout, max_output, std::future::pending()).await
    }

    /// [`Self::run`], cancelled once `stop` completes.
    async fn run_until(
        &self,
        request: impl FnOnce(u32) -> ToGuest,
        input: &[u8],
        timeout: Duration,
        max_output: usize,
        stop: impl Future<Output = ()>,
    ) -> Result<Ended, SandboxError> {
        let mut operation = self.begin(request).await?;
        let sender = operation.sender();
        let id = operation.id;
        // Input is sent while answers are read. A program may fill its output pipe before it has
        // read all of its input.
        let send = async move {
            for piece in input.chunks(CHUNK) {
                sender.send(&ToGuest::Data { id, bytes: piece.to_vec() }).await?;
            }
            sender.send(&ToGuest::End { id }).await?;
            stop.await;
            sender.send(&ToGuest::Cancel { id }).await
        };
        let receive = async {
            let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
            loop {
                match self.reply(&mut operation).await? {
                    ToHost::Chunk { stream, bytes, .. } => {
                        let collected = if stream == Stream::Out { &mut stdout } else { &mut stderr };
                        if collected.len() + bytes.len() > max_output + MARKER_SLACK {
                            return Err(self
                                .protocol("the guest sent more output than it may".to_owned())
                                .await);
                        }
                        collected.extend_from_slice(&bytes);
                    }
                    ToHost::Failed { errno, limit, message, .. } => {
                        return Err(self.failed(errno, limit, &message).await);
                    }
                    last => return Ok(Ended { stdout, stderr, last }),
                }
            }
        };
        let mut receive = std::pin::pin!(receive);
        let mut send = std::pin::pin!(send);
        let ended = self.clock.timeout(timeout.saturating_add(ANSWER_SLACK), async {
            tokio::select! {
                biased;
                ended = &mut receive => ended,
                sent = &mut send => match sent {
                    // The guest ends the command in time, or it is silent.
                    Ok(()) => match self.clock.timeout(ANSWER_SLACK, receive).await {
                        Some(ended) => ended,
                        None => Err(self.silent().await),
                    },
                    Err(closed) => Err(self.lost(closed).await),
                },
            }
        });
        match ended.await {
            Some(ended) => ended,
            None => Err(self.silent().await),
        }
    }

    async fn begin_put(&self, path: &str, bytes: &[u8], mode: u32) -> Result<Operation, SandboxError> {
        path_fits("the path", path)?;
        let operation =
            self.begin(|id| ToGuest::PutFile { id, mode, path: path.as_bytes().to_vec() }).await?;
        for piece in bytes.chunks(CHUNK) {
            self.send(&operation, &ToGuest::Data { id: operation.id, bytes: piece.to_vec() }).await?;
        }
        self.send(&operation, &ToGuest::End { id: operation.id }).await?;
        Ok(operation)
    }

    async fn end_put(&self, mut operation: Operation) -> Result<(), SandboxError> {
        match self.next(&mut operation, FILE_TIMEOUT).await? {
            ToHost::Done { .. } => Ok(()),
            ToHost::Failed { errno, limit, message, .. } => Err(self.failed(errno, limit, &message).await),
            other => Err(self.nonsense(&other).await),
        }
    }

    pub(super) async fn begin(
        &self,
        request: impl FnOnce(u32) -> ToGuest,
    ) -> Result<Operation, SandboxError> {
        let operation = match self.connection.operation() {
            Ok(operation) => operation,
            Err(closed) => return Err(self.lost(closed).await),
        };
        self.send(&operation, &request(operation.id)).await?;
        Ok(operation)
    }

    async fn send(&self, operation: &Operation, message: &ToGuest) -> Result<(), SandboxError> {
        match operation.send(message).await {
            Ok(()) => Ok(()),
            Err(closed) => Err(self.lost(closed).await),
        }
    }

    pub(super) async fn next(
        &self,
        operation: &mut Operation,
        timeout: Duration,
    ) -> Result<ToHost, SandboxError> {
        match self.clock.timeout(timeout, self.reply(operation)).await {
            Some(reply) => reply,
            None => Err(self.silent().await),
        }
    }

    async fn reply(&self, operation: &mut Operation) -> Result<ToHost, SandboxError> {
        match operation.next().await {
            Ok(reply) => {
                operation.finished = matches!(
                    reply,
                    ToHost::ShellDone { .. }
                        | ToHost::ProcessDone { .. }
                        | ToHost::Failed { .. }
                        | ToHost::Done { .. }
                );
                Ok(reply)
            }
            Err(closed) => Err(self.lost(closed).await),
        }
    }

    async fn silent(&self) -> SandboxError {
        self.lost(Closed { symptom: Symptom::Silent, detail: "no answer in time".to_owned() }).await
    }

    /// Asks engine, host and guest why this sandbox ended. `detail` is a diagnostic of the caller.
    pub async fn diagnose(&self, detail: String) -> SandboxError {
        let closed = self.connection.end();
        self.lost(closed.unwrap_or(Closed { symptom: Symptom::Silent, detail })).await
    }

    async fn lost(&self, closed: Closed) -> SandboxError {
        let error = self.container.handle.why_lost(closed).await;
        tracing::debug!(container = %self.container.id, %error, "sandbox lost");
        error
    }

    /// An answer of the wrong kind.
    pub(super) async fn nonsense(&self, reply: &ToHost) -> SandboxError {
        self.protocol(format!("the guest answered {reply:?}")).await
    }

    async fn protocol(&self, detail: String) -> SandboxError {
        self.lost(Closed { symptom: Symptom::Protocol, detail }).await
    }

    /// The error of a request that the guest could not carry out. The evidence must say which limit
    /// was met, or which disk is full.
    pub(super) async fn failed(&self, errno: i32, limit: Limit, message: &[u8]) -> SandboxError {
        let met = |evidence| {
            SandboxError::Lost(Loss { evidence, detail: String::from_utf8_lossy(message).into_owned() })
        };
        match limit {
            Limit::Own => return met(Evidence::GuestLimit),
            Limit::Host => return met(Evidence::HostLimit),
            Limit::Unknown => {}
        }
        if matches!(errno, ENOSPC | EDQUOT)
            && let Some(loss) = self.container.handle.why_full().await
        {
            return SandboxError::Lost(loss);
        }
        failed(message)
    }
}

const ENOENT: i32 = 2;
const ENOTDIR: i32 = 20;
const EINVAL: i32 = 22;
const EFBIG: i32 = 27;
const ENOSPC: i32 = 28;
const EDQUOT: i32 = 122;

/// The output and the last answer that [`Sandbox::run`] collected.
struct Ended {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    last: ToHost,
}

/// Converts the guest's termination into a process outcome.
pub(super) fn process_outcome(how: Termination) -> ProcessOutcome {
    match how {
        Termination::Exited(status) | Termination::ShellDied(status) => ProcessOutcome::Exited(status),
        Termination::Signaled(signal) => ProcessOutcome::Signaled(signal),
        Termination::TimedOut => ProcessOutcome::TimedOut,
    }
}

fn not_started(message: String) -> ProcessResult {
    ProcessResult {
        outcome: ProcessOutcome::NotStarted(message),
        stdout: Vec::new(),
        stderr: Vec::new(),
        stdout_bytes: 0,
        stderr_bytes: 0,
        took: Duration::ZERO,
    }
}

pub(super) fn failed(message: &[u8]) -> SandboxError {
    SandboxError::Failed { message: String::from_utf8_lossy(message).into_owned() }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
