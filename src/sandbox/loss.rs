//! Why a sandbox was lost, and who is at fault.

use std::fmt;

use crate::model::Blame;

/// A lost sandbox, with the evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    pub evidence: Evidence,
    /// Diagnostics for messages and `observed/`: exit status, the guest's last words, the stream's
    /// error.
    pub detail: String,
}

/// Evidence from the engine, the host and the guest about the end of a sandbox.
///
/// The guest is process 1 of its PID namespace, so no process in the container can end it by a
/// signal. Without an out-of-memory event and without a kill of ours, a SIGKILL came from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Evidence {
    /// The container was at its own memory limit, so the kernel killed some of its processes.
    OutOfMemory,
    /// The watchdog killed the container for exceeding its own limits, e.g. bytes, files or pipes.
    OwnLimit,
    /// The watchdog killed the container. Deleted files in flight between its processes may hold
    /// the space that the disk lacks. Another program of the host may hold it as well.
    FilesInFlight,
    /// The guest met a limit of the container, e.g. of processes, descriptors or memory. It ended,
    /// or could not start a program.
    GuestLimit,
    /// The guest could not start a program, because of a limit that all containers of the host
    /// share. E.g. the host has no terminals left.
    HostLimit,
    /// The container ended by SIGKILL, without an out-of-memory event and without a kill of ours.
    KilledFromOutside,
    /// The engine no longer has the container. No process inside can remove it.
    Removed,
    /// The host's disk is full, or so nearly full that writes fail.
    HostDiskFull,
    /// The guest does not answer, and the host has no processor time left for it. No other process
    /// of the container is runnable.
    HostBusy,
    /// The container is or was paused, or termsmith was stopped. No process inside can cause that.
    Paused,
    /// The container still runs, but the stream to its guest ended or failed.
    StreamBroken,
    /// The guest broke the protocol. Processes of the container cannot reach its streams, so
    /// termsmith has a bug.
    Protocol,
    /// The guest does not answer, though the container runs and the host has free processor time.
    Silent,
    /// The container ended with a status that nothing above explains.
    Unexplained,
}

impl Evidence {
    /// Who is at fault. `None` if the evidence does not say. Then `verify` judges again in fresh
    /// containers, beside a control.
    pub fn blame(self) -> Option<Blame> {
        match self {
            Self::OutOfMemory | Self::OwnLimit | Self::GuestLimit => Some(Blame::Solver),
            Self::KilledFromOutside
            | Self::Removed
            | Self::HostDiskFull
            | Self::HostLimit
            | Self::HostBusy
            | Self::Paused
            | Self::StreamBroken
            | Self::Protocol => Some(Blame::Infra),
            Self::FilesInFlight | Self::Silent | Self::Unexplained => None,
        }
    }

    /// The wording used in messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OutOfMemory => "out of memory",
            Self::OwnLimit => "a limit of the container was exceeded",
            Self::FilesInFlight => "its files in flight may exceed the disk limit",
            Self::GuestLimit => "the guest met a limit of the container",
            Self::HostLimit => "the host has none left for any container",
            Self::KilledFromOutside => "killed from outside the container",
            Self::Removed => "the container was removed from outside",
            Self::HostDiskFull => "the disk of the host is full",
            Self::HostBusy => "the host has no free processor time",
            Self::Paused => "the container was paused from outside, or termsmith was stopped",
            Self::StreamBroken => "the stream to the guest broke while the container runs",
            Self::Protocol => "the guest broke the protocol",
            Self::Silent => "the guest does not answer",
            Self::Unexplained => "the container ended for an unknown reason",
        }
    }
}

impl Loss {
    /// Who is at fault, see [`Evidence::blame`].
    pub fn blame(&self) -> Option<Blame> {
        self.evidence.blame()
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.evidence.as_str())?;
        if !self.detail.is_empty() {
            write!(f, " ({})", self.detail)?;
        }
        Ok(())
    }
}
