//! A shell on an emulated terminal in a sandbox.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::screen::{KeyModes, Screen};
use crate::sandbox::{
    Process, ProcessOutcome, Pty, PtyEvent, PtyInput, PtySize, PtyStatus, Sandbox, SandboxClock, SandboxError,
};

/// The size of Harbor's pane.
pub const SIZE: PtySize = PtySize { rows: 40, cols: 160 };
/// tmux waits this long for the end of a string, e.g. a title. After that, bytes are text again.
const STRING_TIMEOUT: Duration = Duration::from_secs(5);
/// First interval between polls of the shell. Most commands finish within it. Three polls take much
/// less than the shortest wait that models ask for (0.1 s).
const POLL: Duration = Duration::from_millis(2);
/// Number of polls with that interval. Later ones are rarer, since each reads the process table.
const QUICK_POLLS: u32 = 20;
/// Interval between the later polls.
const LATER_POLL: Duration = Duration::from_millis(20);
/// Time for the guest to take keys or answer a poll. It needs milliseconds, and more on a host
/// without free memory or processor time.
const ANSWER: Duration = Duration::from_secs(30);
/// Number of polls in a row at which the shell must be at its prompt, without output between them.
/// A shell can sleep for a moment between two keys, and a background job can still print.
const CALM_POLLS: u32 = 3;

/// Whether a wait may end early.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wake {
    /// No. As in Harbor, every wait lasts its full time.
    #[default]
    Never,
    /// Yes, once the shell is back at its prompt and all processes that were started since
    /// [`Terminal::press`] have ended. More waiting would not change the screen. If the shell was
    /// at its prompt before, and nothing was typed, the model waits for something else: that wait
    /// lasts its full time.
    WhenDone,
}

/// How a wait ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitOutcome {
    Elapsed,
    /// It ended early ([`Wake::WhenDone`]).
    Early,
    /// The shell ended.
    Ended(ProcessOutcome),
    /// The sandbox ended. The text says how.
    Lost(String),
}

/// A shell on a terminal. It also runs between waits. Dropping this value kills it.
#[derive(Debug)]
pub struct Terminal {
    shared: Arc<Mutex<Screen>>,
    input: PtyInput,
    progress: watch::Receiver<Progress>,
    /// Number of polls so far. Answers come in order, even after the wait of a poll has ended.
    asked: u64,
    /// The state just before the last keys.
    before: Before,
    /// [`ANSWER`]; tests use a shorter time.
    answer: Duration,
    /// The guest did not answer the last poll, or take keys, in time. A wait then ends at once.
    silent: bool,
    /// Waits are measured with this clock, which stands still while the container is paused.
    clock: SandboxClock,
    _pump: AbortOnDropHandle<()>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Before {
    status: PtyStatus,
    typed: bool,
}

/// How much programs have written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    pub bytes: u64,
    pub pushed_lines: u64,
}

/// The counts and the last answer of the terminal's reader.
#[derive(Clone, Debug, Default)]
struct Progress {
    /// Number of pieces of output.
    outputs: u64,
    /// Bytes of output.
    bytes: u64,
    /// Number of answered polls.
    polls: u64,
    /// The answer to the last poll.
    last_status: PtyStatus,
    end: Option<WaitOutcome>,
}

impl Terminal {
    /// Starts `bash --login` in the sandbox's work directory. Its environment is the image's
    /// ([`crate::sandbox::ImageConfig::env`]) and tmux's variables.
    pub async fn open(
        sandbox: &Sandbox,
        environment: &[(String, String)],
        size: PtySize,
    ) -> Result<Self, SandboxError> {
        let mut process = Process::new("bash").args(["--login"]);
        sandbox.workdir().clone_into(&mut process.cwd);
        process.env = environment.iter().map(|(name, value)| (name.into(), value.into())).collect();
        for (name, value, replaces) in VARIABLES {
            let known = process.env.iter().position(|(known, _)| *known == **name);
            match known {
                Some(index) if *replaces => process.env[index].1 = (*value).into(),
                Some(_) => {}
                None => process.env.push(((*name).into(), (*value).into())),
            }
        }
        Self::start(sandbox, &process, size).await
    }

    /// Starts any program.
    pub async fn start(sandbox: &Sandbox, process: &Process, size: PtySize) -> Result<Self, SandboxError> {
        let pty = sandbox.pty(process, size).await?;
        let input = pty.input();
        let shared = Arc::new(Mutex::new(Screen::new(size.rows, size.cols)));
        let (sender, progress) = watch::channel(Progress::default());
        let pump = tokio::spawn(pump(pty, shared.clone(), sender));
        let before = Before::default();
        let pump = AbortOnDropHandle::new(pump);
        let clock = sandbox.clock().clone();
        let (asked, answer, silent) = (0, ANSWER, false);
        Ok(Self { shared, input, progress, asked, before, answer, silent, clock, _pump: pump })
    }

    /// The visible screen: `tmux capture-pane -p`.
    pub fn screen(&self) -> String {
        lock(&self.shared).screen()
    }

    /// The history and the visible screen: `tmux capture-pane -p -S -`.
    pub fn full_pane(&self) -> String {
        lock(&self.shared).full_pane()
    }

    /// History with screen, and screen alone, of the same moment.
    pub fn panes(&self) -> (String, String) {
        let screen = lock(&self.shared);
        (screen.full_pane(), screen.screen())
    }

    /// How many bytes the terminal got, and how many lines they pushed off the top of the screen.
    pub fn written(&self) -> Written {
        let bytes = self.progress.borrow().bytes;
        Written { bytes, pushed_lines: lock(&self.shared).pushed() }
    }

    /// The key modes that programs have requested.
    pub fn key_modes(&self) -> KeyModes {
        lock(&self.shared).key_modes()
    }

    /// Whether the shell is still running.
    pub fn is_alive(&self) -> bool {
        self.progress.borrow().end.is_none()
    }

    /// Sends bytes to the terminal ([`crate::agent::terminus::to_bytes`] makes them from
    /// keystrokes). If the guest does not take them, the next wait returns [`WaitOutcome::Lost`].
    pub async fn press(&mut self, keys: &[u8]) {
        self.before = Before { status: self.poll().await, typed: !keys.is_empty() };
        if !keys.is_empty() && !self.silent {
            let taken = self.clock.timeout(self.answer, self.input.write(keys)).await;
            self.silent = taken.is_none();
        }
    }

    /// Waits for `duration`, or less if `wake` allows. Output is processed meanwhile.
    pub async fn wait_quiet(&mut self, duration: Duration, wake: Wake) -> WaitOutcome {
        if self.silent {
            return silent();
        }
        let clock = self.clock.clone();
        let done = async {
            match wake {
                Wake::Never => self.end().await,
                Wake::WhenDone if self.before.status.at_prompt && !self.before.typed => self.end().await,
                Wake::WhenDone => self.done().await,
            }
        };
        tokio::select! {
            biased;
            done = done => done,
            () = clock.sleep(duration) => WaitOutcome::Elapsed,
        }
    }

    async fn end(&mut self) -> WaitOutcome {
        let ended = self.progress.wait_for(|progress| progress.end.is_some()).await;
        ended.ok().and_then(|progress| progress.end.clone()).unwrap_or_else(gone)
    }

    /// Waits until the commands are done ([`Wake::WhenDone`]).
    async fn done(&mut self) -> WaitOutcome {
        let (mut calm, mut outputs) = (0, u64::MAX);
        for number in 0_u32.. {
            let status = self.poll().await;
            let progress = self.progress.borrow().clone();
            if let Some(end) = progress.end {
                return end;
            }
            if self.silent {
                return silent();
            }
            let finished = status.at_prompt && status.youngest <= self.before.status.youngest;
            calm = if finished && progress.outputs == outputs { calm + 1 } else { u32::from(finished) };
            if calm >= CALM_POLLS {
                return WaitOutcome::Early;
            }
            outputs = progress.outputs;
            tokio::time::sleep(if number < QUICK_POLLS { POLL } else { LATER_POLL }).await;
        }
        // Reached only after 4 billion polls.
        WaitOutcome::Elapsed
    }

    /// Asks for the state of the shell. The default if the shell has ended or the guest is silent.
    async fn poll(&mut self) -> PtyStatus {
        let (clock, answer) = (self.clock.clone(), self.answer);
        let answered = clock.timeout(answer, async {
            self.input.request_status().await;
            self.asked += 1;
            let asked = self.asked;
            let seen =
                self.progress.wait_for(|progress| progress.polls >= asked || progress.end.is_some()).await;
            seen.map(|progress| progress.last_status).unwrap_or_default()
        });
        let status = answered.await;
        self.silent = status.is_none();
        status.unwrap_or_default()
    }
}

/// The variables that tmux sets in its pane, and whether each replaces the image's. There is no
/// tmux server, so `TMUX` itself is left out.
const VARIABLES: &[(&str, &str, bool)] = &[
    ("TERM", "tmux-256color", true),
    ("TERM_PROGRAM", "tmux", true),
    ("TERM_PROGRAM_VERSION", "3.3a", true),
    ("SHELL", "/bin/bash", true),
    ("HOME", "/root", false),
    ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", false),
    ("LANG", "C.UTF-8", false),
];

/// Feeds output to the screen, and answers the terminal's queries. It also runs between waits:
/// unread output would block the whole sandbox.
async fn pump(mut pty: Pty, shared: Arc<Mutex<Screen>>, progress: watch::Sender<Progress>) {
    let input = pty.input();
    let mut open_string: Option<(u64, Instant)> = None;
    loop {
        match pty.next().await {
            PtyEvent::Output(bytes) => {
                let answers = {
                    let mut screen = lock(&shared);
                    if open_string.is_some_and(|(_, since)| since.elapsed() >= STRING_TIMEOUT) {
                        screen.abandon_string();
                    }
                    screen.feed(&bytes);
                    open_string = screen.open_string().map(|number| match open_string {
                        Some((known, since)) if known == number => (number, since),
                        _ => (number, Instant::now()),
                    });
                    screen.take_answers()
                };
                if !answers.is_empty() {
                    input.write(&answers).await;
                }
                progress.send_modify(|progress| {
                    progress.outputs += 1;
                    progress.bytes += bytes.len() as u64;
                });
            }
            PtyEvent::Status(status) => progress.send_modify(|progress| {
                progress.polls += 1;
                progress.last_status = status;
            }),
            PtyEvent::Ended(outcome) => {
                progress.send_modify(|progress| progress.end = Some(WaitOutcome::Ended(outcome)));
                return;
            }
            PtyEvent::Lost(why) => {
                progress.send_modify(|progress| progress.end = Some(WaitOutcome::Lost(why)));
                return;
            }
        }
    }
}

fn gone() -> WaitOutcome {
    WaitOutcome::Lost("the reader of the terminal has ended".to_owned())
}

fn silent() -> WaitOutcome {
    WaitOutcome::Lost("the terminal's guest gave no answer in time".to_owned())
}

/// A poisoned lock has a valid state: no change panics halfway.
fn lock(shared: &Mutex<Screen>) -> MutexGuard<'_, Screen> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use rustix::process::{Pid, Signal, kill_process};

    use super::*;
    use crate::model::{Limits, Profile};
    use crate::sandbox::{ExecLimit, Image, LaunchSpec, Network, process_engine};

    /// Reached only if the test fails.
    const LONG: Duration = Duration::from_secs(60);
    /// The time for an answer in this test.
    const SHORT: Duration = Duration::from_millis(500);

    #[tokio::test]
    async fn a_silent_guest_is_a_loss() {
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
        let guest = sandbox.shell("echo $PPID", &ExecLimit::default()).await.unwrap().output;
        let guest = Pid::from_raw(String::from_utf8(guest).unwrap().trim().parse().unwrap()).unwrap();
        for wake in [Wake::Never, Wake::WhenDone] {
            let mut terminal = Terminal::open(&sandbox, &[], SIZE).await.unwrap();
            terminal.press(b"true\n").await;
            assert_ne!(terminal.wait_quiet(SHORT, wake).await, silent(), "{wake:?}: it answers");
            terminal.answer = SHORT;
            kill_process(guest, Signal::STOP).unwrap();
            let waited = tokio::time::timeout(LONG, async {
                terminal.press(b"true\n").await;
                terminal.wait_quiet(LONG, wake).await
            });
            assert_eq!(waited.await.ok(), Some(silent()), "{wake:?}");
            kill_process(guest, Signal::CONT).unwrap();
        }
        drop(sandbox);
        engine.close().await;
    }
}
