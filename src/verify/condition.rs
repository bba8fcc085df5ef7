//! Conditions under which a sound task's reference passes as well as ever.

use serde::{Deserialize, Serialize};

use crate::model::Limits;
use crate::sandbox::{Sandbox, SandboxError};

/// How a trial differs from an ordinary one. What makes a verdict depend on it is a defect of the task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Condition {
    #[default]
    Ordinary,
    /// The checks run in another order.
    Shuffled,
    /// Nothing but loopback, whatever the task declares.
    Offline,
    /// Half of the processor time that the task declares.
    HalfCpu,
    /// The clock stands a year ahead for every dynamically linked program.
    Clock,
    /// The image is built once more, with nothing taken from the layer cache.
    Rebuilt,
}

impl Condition {
    /// All but the ordinary one, cheapest first.
    pub const SPECIAL: [Self; 5] = [Self::Shuffled, Self::Offline, Self::HalfCpu, Self::Clock, Self::Rebuilt];

    /// Its name in certificates.
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
            _ => limits.clone(),
        }
    }

    /// Changes a fresh container so that the condition holds in it.
    pub(super) async fn prepare(self, sandbox: &Sandbox) -> Result<(), SandboxError> {
        if self != Self::Clock {
            return Ok(());
        }
        let Some(library) = fake_clock() else { return Ok(()) };
        sandbox.put(CLOCK_LIBRARY, &library, 0o755).await?;
        sandbox.put("/etc/faketimerc", CLOCK_OFFSET.as_bytes(), 0o644).await?;
        // Last: from here on every dynamic program that starts reads the other two.
        sandbox.put("/etc/ld.so.preload", format!("{CLOCK_LIBRARY}\n").as_bytes(), 0o644).await
    }
}

/// Where the library lies in a container.
const CLOCK_LIBRARY: &str = "/usr/lib/termsmith-clock.so";
/// libfaketime's notation for a start a year from now.
const CLOCK_OFFSET: &str = "+365d\n";
/// Where distributions install libfaketime.
pub const CLOCK_LIBRARIES: [&str; 3] = [
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1",
    "/usr/lib/faketime/libfaketime.so.1",
];

/// The host's libfaketime, or `None` where it is not installed.
fn fake_clock() -> Option<Vec<u8>> {
    CLOCK_LIBRARIES.iter().find_map(|place| std::fs::read(place).ok())
}

/// Whether this host can move clocks.
pub fn clock_can_move() -> bool {
    CLOCK_LIBRARIES.iter().any(|place| std::fs::metadata(place).is_ok())
}
