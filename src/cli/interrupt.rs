//! Ctrl-C: the first one drains, the second one stops.

use tokio_util::sync::CancellationToken;

use super::failure::Failure;
use super::say;

/// Two tokens. The first interrupt cancels `drain`, the second one `kill`.
#[derive(Clone, Debug, Default)]
pub(super) struct Interrupts {
    /// Cancelled: start no new work, and commit the work in progress.
    pub(super) drain: CancellationToken,
    /// Cancelled: stop now, and destroy the sandboxes.
    pub(super) kill: CancellationToken,
}

impl Interrupts {
    /// Listens for SIGINT and SIGTERM for the rest of the process.
    pub(super) fn listen() -> Result<Self, Failure> {
        use tokio::signal::unix::{SignalKind, signal};
        let interrupts = Self::default();
        let mut int = signal(SignalKind::interrupt()).map_err(Failure::io("listen for Ctrl-C"))?;
        let mut term = signal(SignalKind::terminate()).map_err(Failure::io("listen for SIGTERM"))?;
        let tokens = interrupts.clone();
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    _ = int.recv() => {}
                    _ = term.recv() => {}
                }
                if tokens.drain.is_cancelled() {
                    say::note("stopping");
                    tokens.kill.cancel();
                } else {
                    say::note("finishing the work in progress; press Ctrl-C again to stop immediately");
                    tokens.drain.cancel();
                }
            }
        });
        Ok(interrupts)
    }
}
