//! Conditions under which the reference of a sound task must pass.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Serialize;

use super::no_verdict::{NoVerdict, Phase};
use super::trial::TrialLog;
use crate::clock::now_ms;
use crate::model::{CheckId, CheckResult, Limits, Verdict};
use crate::sandbox::{
    Engine, EngineError, LaunchSpec, Process, ProcessOutcome, ProcessResult, Sandbox, SandboxError,
};

/// How a trial differs from an ordinary one. A sound task has the same verdict under every
/// condition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Condition<'a> {
    #[default]
    Ordinary,
    /// The checks run in another order.
    Shuffled,
    /// The container has no network but loopback, whatever the task declares.
    Offline,
    /// The container has half of the declared processor time.
    HalfCpu,
    /// The clock is a year ahead for every program that is dynamically linked.
    Clock,
    /// The image is built again, without the layer cache.
    Rebuilt,
    /// The tests end at the first failed check. That is cheaper if only the outcome is wanted.
    FirstFailure {
        /// Checks that are expected to fail, and so run first. They are part of the trial's key,
        /// since the record says which check failed first.
        likely: &'a [CheckId],
        /// States with known results. The tests are not run again on such a state.
        #[serde(skip)]
        known: &'a [KnownState],
    },
}

/// A final state and the checks that fail on it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KnownState {
    /// [`StateHashes::exact`](super::StateHashes::exact).
    pub exact: String,
    pub failed: BTreeSet<CheckId>,
}

impl KnownState {
    /// The state of a trial. `None` if some tests did not run.
    pub fn of(verdict: &Verdict, log: &TrialLog) -> Option<Self> {
        let failed = verdict.checks.iter().filter(|check| !check.passed);
        let failed = failed.map(|check| check.id.clone()).collect();
        Some(Self { exact: log.state.clone()?, failed })
    }
}

impl Condition<'_> {
    /// The conditions under which a reference must pass too, cheapest first.
    pub const SPECIAL: [Self; 5] = [Self::Shuffled, Self::Offline, Self::HalfCpu, Self::Clock, Self::Rebuilt];

    /// The results for the state with this hash, if they are known. They are those of `checks` that
    /// would run, in this order.
    pub(super) fn known(self, state: &str, checks: &[CheckId]) -> Option<Vec<CheckResult>> {
        let Self::FirstFailure { likely, known } = self else { return None };
        let KnownState { failed, .. } = known.iter().find(|known| known.exact == state)?;
        let (first, rest): (Vec<_>, Vec<_>) = checks.iter().partition(|id| likely.contains(id));
        let order: Vec<&CheckId> = first.into_iter().chain(rest).collect();
        let run = order.iter().position(|id| failed.contains(*id)).map_or(order.len(), |at| at + 1);
        let ran = checks.iter().filter(|id| order[..run].contains(id));
        Some(ran.map(|id| CheckResult { id: id.clone(), passed: !failed.contains(id) }).collect())
    }

    /// Name in certificates.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ordinary => "ordinary",
            Self::Shuffled => "shuffled",
            Self::Offline => "offline",
            Self::HalfCpu => "half-cpu",
            Self::Clock => "clock",
            Self::Rebuilt => "rebuilt",
            Self::FirstFailure { .. } => "first-failure",
        }
    }

    /// The limits of a trial's containers.
    pub(super) fn limits(self, limits: &Limits) -> Limits {
        match self {
            Self::HalfCpu => Limits { cpus: limits.cpus / 2.0, ..limits.clone() },
            Self::Ordinary
            | Self::Shuffled
            | Self::Offline
            | Self::Clock
            | Self::Rebuilt
            | Self::FirstFailure { .. } => limits.clone(),
        }
    }

    /// Prepares a fresh container for the condition.
    pub(super) async fn prepare(self, sandbox: &Sandbox) -> Result<(), SandboxError> {
        if self != Self::Clock {
            return Ok(());
        }
        match fake_clock() {
            Some(library) => move_clock(sandbox, &library).await,
            None => Err(SandboxError::Failed { message: NO_LIBRARY.to_owned() }),
        }
    }

    /// Checks whether this host can make the condition in the image of `spec`. The check uses a
    /// container of its own, before any work is done.
    pub(super) async fn require(self, engine: &Engine, spec: &LaunchSpec<'_>) -> Result<(), NoVerdict> {
        if self != Self::Clock {
            return Ok(());
        }
        let moved = match fake_clock() {
            Some(library) => clock_moves(engine, spec, &library).await?,
            None => Err(NO_LIBRARY.to_owned()),
        };
        moved.map_err(|why| NoVerdict::Unmet {
            condition: self.name(),
            why: format!("libfaketime does not move the clock in this image: {why}"),
        })
    }
}

/// Checks whether libfaketime moves the clock in a container of `spec`. `Err` inside is the reason.
///
/// A library that does not fit the image, e.g. one for a newer glibc, only makes the dynamic linker
/// print a warning. Static programs and musl never load it.
pub async fn clock_moves(
    engine: &Engine,
    spec: &LaunchSpec<'_>,
    library: &[u8],
) -> Result<Result<(), String>, NoVerdict> {
    let lost = |error| NoVerdict::Sandbox { phase: Phase::Prepare, error };
    let sandbox = engine.launch(spec).await?;
    move_clock(&sandbox, library).await.map_err(lost)?;
    let date = Process {
        argv: ["date", "+%s"].map(Into::into).to_vec(),
        env: vec![("PATH".into(), "/usr/bin:/bin".into())],
        ..Process::new("date")
    };
    let done = sandbox.spawn(&date).await.map_err(lost)?;
    sandbox.destroy().await;
    moved(&done, now_ms() / 1000)
}

/// Whether `date +%s`, run at `now`, printed a moved time.
fn moved(done: &ProcessResult, now: u64) -> Result<Result<(), String>, NoVerdict> {
    match done.outcome {
        ProcessOutcome::Exited(0) => Ok(is_a_year_ahead(now, &done.stdout, &done.stderr)),
        // `date` takes a millisecond. The host was too busy, or had no memory for it.
        ProcessOutcome::TimedOut | ProcessOutcome::Signaled(SIGKILL) => {
            let message = format!("`date` ended as {:?}", done.outcome);
            Err(EngineError::Transport { action: "read the clock of a container", message }.into())
        }
        // `date` crashed under the library.
        ProcessOutcome::Exited(_) | ProcessOutcome::Signaled(_) | ProcessOutcome::NotStarted(_) => {
            let message = String::from_utf8_lossy(&done.stderr);
            Ok(Err(format!("`date` fails: {:?} {}", done.outcome, message.trim())))
        }
    }
}

async fn move_clock(sandbox: &Sandbox, library: &[u8]) -> Result<(), SandboxError> {
    sandbox.put(CLOCK_LIBRARY, library, 0o755).await?;
    sandbox.put("/etc/faketimerc", CLOCK_OFFSET.as_bytes(), 0o644).await?;
    // This file is written last. Every dynamic program that starts from now on reads the other two.
    sandbox.put("/etc/ld.so.preload", format!("{CLOCK_LIBRARY}\n").as_bytes(), 0o644).await
}

/// Whether the output of `date +%s`, run at `now`, is a year ahead. `Err` is the reason.
fn is_a_year_ahead(now: u64, output: &[u8], warnings: &[u8]) -> Result<(), String> {
    let output = String::from_utf8_lossy(output);
    let ahead = output.trim().parse::<u64>().ok().and_then(|date| date.checked_sub(now));
    if ahead.is_some_and(|ahead| ahead.abs_diff(CLOCK_AHEAD_SEC) <= CLOCK_TOLERANCE_SEC) {
        return Ok(());
    }
    let warnings = String::from_utf8_lossy(warnings);
    let warning =
        warnings.lines().next().unwrap_or("its `date` does not load libraries of /etc/ld.so.preload");
    Err(warning.trim().to_owned())
}

/// Path of the library in a container.
const CLOCK_LIBRARY: &str = "/usr/lib/termsmith-clock.so";
/// libfaketime's notation for a start a year from now.
const CLOCK_OFFSET: &str = "+365d\n";
/// [`CLOCK_OFFSET`] in seconds.
const CLOCK_AHEAD_SEC: u64 = 365 * 24 * 60 * 60;
/// Maximum time between the start of `date` and the reading of its output, on a busy machine.
const CLOCK_TOLERANCE_SEC: u64 = 60 * 60;
/// The signal by which the kernel's OOM killer and engines end processes (signal(7)).
const SIGKILL: i32 = 9;
const NO_LIBRARY: &str = "libfaketime is not installed on this host";
/// Paths where distributions install libfaketime.
pub const CLOCK_LIBRARIES: [&str; 3] = [
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1",
    "/usr/lib/faketime/libfaketime.so.1",
];

/// The host's libfaketime. `None` if it is not installed.
fn fake_clock() -> Option<Vec<u8>> {
    CLOCK_LIBRARIES.iter().find_map(|place| std::fs::read(place).ok())
}

/// Checks whether this host's libfaketime moves the clock of the host's own `date`. `Err` is the
/// reason. If the library does not load here, nothing is known about images.
pub fn clock_can_move() -> Result<(), String> {
    let library = CLOCK_LIBRARIES.iter().find(|place| Path::new(place).is_file());
    library.map_or_else(|| Err(NO_LIBRARY.to_owned()), |library| moves_the_hosts_date(library))
}

fn moves_the_hosts_date(library: &str) -> Result<(), String> {
    let date = std::process::Command::new("date")
        .arg("+%s")
        .env("LD_PRELOAD", library)
        .env("FAKETIME", CLOCK_OFFSET.trim())
        .output()
        .map_err(|error| format!("cannot run `date` with {library}: {error}"))?;
    is_a_year_ahead(now_ms() / 1000, &date.stdout, &date.stderr)
        .map_err(|warning| format!("{library} does not move the clock of this host: {warning}"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::model::Blame;

    #[test]
    fn a_library_that_does_not_load_on_this_host_is_told_before_any_trial() {
        let dir = tempfile::tempdir().unwrap();
        let library = dir.path().join("libfaketime.so.1");
        std::fs::write(&library, "no library").unwrap();
        let why = moves_the_hosts_date(library.to_str().unwrap()).unwrap_err();
        assert!(why.contains("does not move the clock of this host") && why.contains("preloaded"), "{why}");
    }

    #[test]
    fn a_date_that_had_no_time_to_run_says_nothing_of_the_image() {
        let check = |outcome: ProcessOutcome, expect: Option<&str>| {
            let done = ProcessResult {
                outcome,
                stdout: Vec::new(),
                stderr: b"no such file".to_vec(),
                stdout_bytes: 0,
                stderr_bytes: 0,
                took: Duration::ZERO,
            };
            match (moved(&done, 0), expect) {
                (Ok(Err(why)), Some(part)) => assert!(why.contains(part), "{why}"),
                (Err(error), None) => assert_eq!(error.blame(), Some(Blame::Infra), "{error}"),
                (found, _) => panic!("{:?} gives {found:?}", done.outcome),
            }
        };
        check(ProcessOutcome::TimedOut, None);
        check(ProcessOutcome::Signaled(SIGKILL), None);
        check(ProcessOutcome::Signaled(11), Some("Signaled(11)"));
        check(ProcessOutcome::Exited(127), Some("no such file"));
        check(ProcessOutcome::NotStarted("none".to_owned()), Some("NotStarted"));
    }

    #[test]
    fn equal_submissions_with_other_likely_checks_have_other_keys() {
        let key = |likely: &[&str]| {
            let likely: Vec<_> = likely.iter().map(|id| CheckId::parse(*id).unwrap()).collect();
            serde_json::to_string(&Condition::FirstFailure { likely: &likely, known: &[] }).unwrap()
        };
        assert_eq!(key(&["a"]), key(&["a"]));
        for other in [&["b"][..], &["a", "b"], &["b", "a"], &[]] {
            assert_ne!(key(&["a"]), key(other), "{other:?}");
        }
    }

    #[test]
    fn the_clock_has_moved_only_if_date_says_so() {
        const NOW: u64 = 1_700_000_000;
        let check = |output: &str, warnings: &str, expect: Result<(), &str>| {
            let found = is_a_year_ahead(NOW, output.as_bytes(), warnings.as_bytes());
            match (&found, expect) {
                (Ok(()), Ok(())) => {}
                (Err(why), Err(part)) => assert!(why.contains(part), "{why}"),
                (Ok(()) | Err(_), _) => panic!("{output:?} gives {found:?}"),
            }
        };
        let ahead = (NOW + CLOCK_AHEAD_SEC).to_string();
        check(&format!("{ahead}\n"), "", Ok(()));
        check(&format!("{}\n", NOW + CLOCK_AHEAD_SEC - 3), "", Ok(()));
        let warning = "ERROR: ld.so: object '/usr/lib/termsmith-clock.so' cannot be preloaded: ignored.\n";
        check(&format!("{NOW}\n"), warning, Err("cannot be preloaded"));
        check(&format!("{NOW}\n"), "", Err("ld.so.preload"));
        check(&format!("{}\n", NOW + CLOCK_AHEAD_SEC / 2), "", Err("ld.so.preload"));
        check(&format!("{}\n", NOW - 5), "", Err("ld.so.preload"));
        check("", "", Err("ld.so.preload"));
        check("today\n", "", Err("ld.so.preload"));
    }

    #[test]
    fn a_known_state_has_the_results_that_its_tests_would_have() {
        let id = |name: &str| CheckId::parse(name).unwrap();
        let checks = ["a", "b", "c", "d"].map(id);
        let known = [
            KnownState { exact: "right".to_owned(), failed: BTreeSet::new() },
            KnownState { exact: "wrong".to_owned(), failed: ["b", "d"].map(id).into() },
        ];
        let check = |state: &str, likely: &[&str], expect: Option<&[(&str, bool)]>| {
            let likely: Vec<_> = likely.iter().map(|name| id(name)).collect();
            let condition = Condition::FirstFailure { likely: &likely, known: &known };
            let found = condition.known(state, &checks);
            let expect = expect.map(|all| {
                all.iter().map(|(name, passed)| CheckResult { id: id(name), passed: *passed }).collect()
            });
            assert_eq!(found, expect, "{state} {likely:?}");
        };
        check("other", &[], None);
        let all = [("a", true), ("b", true), ("c", true), ("d", true)];
        check("right", &["c"], Some(&all));
        check("wrong", &[], Some(&[("a", true), ("b", false)]));
        check("wrong", &["c"], Some(&[("a", true), ("b", false), ("c", true)]));
        check("wrong", &["d"], Some(&[("d", false)]));
        check("wrong", &["d", "c"], Some(&[("c", true), ("d", false)]));
        assert_eq!(Condition::Ordinary.known("right", &checks), None);
    }
}
