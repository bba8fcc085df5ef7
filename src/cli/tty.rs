//! Connects the user's terminal to a terminal in a sandbox.

use std::io::{IsTerminal as _, Write as _};

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::io::AsyncReadExt as _;
use tokio::signal::unix::{SignalKind, signal};

use super::exit::Status;
use super::failure::Failure;
use crate::sandbox::{Process, PtyEvent, PtySize, Sandbox};

/// The size for a terminal that does not report its own.
const DEFAULT_SIZE: PtySize = PtySize { rows: 24, cols: 80 };

/// Runs an interactive shell until it ends. Keys are sent raw, so Ctrl-C reaches the sandbox and
/// not termsmith. If standard input is not a terminal, its bytes are typed, and its end is typed as
/// Ctrl-D.
pub(super) async fn attach(sandbox: &Sandbox, workdir: &str) -> Result<(), Failure> {
    let mut shell = Process::new("/bin/bash").args(["-i"]);
    for (name, value) in [
        ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
        ("HOME", "/root"),
        ("LANG", "C.UTF-8"),
        ("TERM", "xterm-256color"),
    ] {
        shell = shell.env(name, value);
    }
    shell.cwd = workdir.to_owned();
    // The task's own limit is for agents. A person may take longer.
    shell.timeout = std::time::Duration::from_secs(24 * 3600);
    let _raw = RawMode::enter();
    let mut pty = sandbox.pty(&shell, size()).await?;
    let input = pty.input();
    let mut resized = signal(SignalKind::window_change())
        .map_err(Failure::io("listen for changes of the terminal's size"))?;
    let mut keys = tokio::io::stdin();
    let mut typed = [0; 4096];
    let mut typing = true;
    loop {
        tokio::select! {
            event = pty.next() => match event {
                PtyEvent::Output(bytes) => {
                    let mut out = std::io::stdout().lock();
                    out.write_all(&bytes).and_then(|()| out.flush()).map_err(Failure::io("write to the terminal"))?;
                }
                // Answers to requests that this loop never makes.
                PtyEvent::Status(_) => {}
                PtyEvent::Ended(_) => return Ok(()),
                PtyEvent::Lost(cause) => {
                    return Err(Failure::message(Status::Failed, format!("the sandbox was lost: {cause}")));
                }
            },
            read = keys.read(&mut typed), if typing => match read.map_err(Failure::io("read from the terminal"))? {
                0 => {
                    const END_OF_TRANSMISSION: &[u8] = b"\x04";
                    typing = false;
                    input.write(END_OF_TRANSMISSION).await;
                }
                count => input.write(&typed[..count]).await,
            },
            _ = resized.recv() => input.resize(size()).await,
        }
    }
}

fn size() -> PtySize {
    tcgetwinsize(std::io::stdout())
        .map_or(DEFAULT_SIZE, |size| PtySize { rows: size.ws_row.max(1), cols: size.ws_col.max(1) })
}

/// Sets the terminal to raw mode until it is dropped.
struct RawMode {
    before: Termios,
}

impl RawMode {
    fn enter() -> Option<Self> {
        let stdin = std::io::stdin();
        if !stdin.is_terminal() {
            return None;
        }
        let before = tcgetattr(&stdin).ok()?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(&stdin, OptionalActions::Now, &raw).ok()?;
        Some(Self { before })
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        // If this fails, the terminal is gone, and there is no other to report it to.
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &self.before);
    }
}
