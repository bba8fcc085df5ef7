//! Conditions under which the reference of a sound task must pass.

use serde::{Deserialize, Serialize};

use crate::model::Limits;
use crate::sandbox::{Sandbox, SandboxError};

/// How a trial differs from an ordinary one. A verdict that depends on it is a defect of the task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Condition {
    #[default]
    Ordinary,
    /// The checks run in another order.
    Shuffled,
    /// Loopback only, whatever the task declares.
    Offline,
    /// Half of the declared processor time.
    HalfCpu,
    /// The clock is a year ahead for every dynamically linked program.
    Clock,
    /// The image is built again, without the layer cache.
    Rebuilt,
}

impl Condition {
    /// All conditions except the ordinary one, cheapest first.
    pub const SPECIAL: [Self; 5] = [Self::Shuffled, Self::Offline, Self::HalfCpu, Self::Clock, Self::Rebuilt];

    /// Name in certificates.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ordinary => "ordinary",
            Self::Shuffled => "shuffled",
            Self::Offline => "offline",
            Self::HalfCpu => "half-cpu",
            Self::Clock => "clock",
            Self::Rebuilt => "rebuilt",
        }
    }

    /// The limits of a trial's containers.
    pub(super) fn limits(self, limits: &Limits) -> Limits {
        match self {
            Self::HalfCpu => Limits { cpus: limits.cpus / 2.0, ..limits.clone() },
            Self::Ordinary | Self::Shuffled | Self::Offline | Self::Clock | Self::Rebuilt => limits.clone(),
        }
    }

    /// Prepares a fresh container for the condition.
    pub(super) async fn prepare(self, sandbox: &Sandbox) -> Result<(), SandboxError> {
        if self != Self::Clock {
            return Ok(());
        }
        let Some(library) = fake_clock() else { return Ok(()) };
        sandbox.put(CLOCK_LIBRARY, &library, 0o755).await?;
        sandbox.put("/etc/faketimerc", CLOCK_OFFSET.as_bytes(), 0o644).await?;
        // Written last: every dynamic program that starts from now on reads the other two files.
        sandbox.put("/etc/ld.so.preload", format!("{CLOCK_LIBRARY}\n").as_bytes(), 0o644).await
    }
}

/// Path of the library in a container.
const CLOCK_LIBRARY: &str = "/usr/lib/termsmith-clock.so";
/// libfaketime's notation for a start a year from now.
const CLOCK_OFFSET: &str = "+365d\n";
/// Paths where distributions install libfaketime.
pub const CLOCK_LIBRARIES: [&str; 3] = [
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1",
    "/usr/lib/faketime/libfaketime.so.1",
];

/// The host's libfaketime, or `None` where it is not installed.
fn fake_clock() -> Option<Vec<u8>> {
    CLOCK_LIBRARIES.iter().find_map(|place| std::fs::read(place).ok())
}

/// Whether this host can change the clock of a container.
pub fn clock_can_move() -> bool {
    CLOCK_LIBRARIES.iter().any(|place| std::fs::metadata(place).is_ok())
}
