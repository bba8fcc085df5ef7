//! Whether the host's other work kept a solver's programs from running. If so, a time limit that
//! they met proves nothing.
//!
//! Tests give programs seconds. On a machine with many more runnable threads than processors, even
//! a program that needs a tenth of its limit can meet it. The load of the host would then look like
//! a failure of the solver. So such a program gets more time.

use std::future::Future;
use std::time::{Duration, Instant};

use crate::sandbox::{Engine, HostLoad, Sandbox, SandboxTime as _};

/// Factor for the time limit of a program that a busy host keeps from running. All limits grow by
/// it if the tests run again beside a control.
pub(super) const PATIENCE: u32 = 5;

/// Time between two looks at a running program. Most programs end before the first look.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Mean number of other runnable threads per processor from which on the host is busy, and a time
/// limit proves nothing. Four trials at once on two processors stay below it.
const BUSY: f64 = 4.0;
/// Mean number of runnable threads below which a container sleeps. Other work keeps nothing from
/// running there.
const RUNNABLE: f64 = 0.5;
/// Total time that programs may lose to their limits. After that, each later program has `SHORT`.
const MAX_LOST: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_secs(1);
/// A container that used this share of a processor was not kept from running.
const SERVED: f64 = 0.5;

/// Observations of a solver's programs.
#[derive(Debug, Default)]
pub(super) struct Observed {
    /// A program met its time limit, and a busy host had kept it from running.
    pub(super) host_busy: bool,
    /// Time of the programs that met their limits.
    lost: Duration,
}

/// The container of a solver's programs, and the host that it shares with others.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) engine: &'a Engine,
    pub(super) programs: &'a Sandbox,
    /// The container's processors, e.g. 0.5.
    pub(super) cpus: f64,
}

/// Observations of the host: other runnable threads per processor, at each look.
#[derive(Debug, Default)]
pub(super) struct Looks(Vec<f64>);

/// Observations of one program.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Call {
    /// Mean number of other runnable threads per processor.
    others: f64,
    /// Mean number of runnable threads of its container.
    own: f64,
    /// Processor time that the container used within `elapsed`.
    used: Duration,
    elapsed: Duration,
}

impl Looks {
    /// Whether the host was so busy with other work that even the limit for all tests together
    /// proves nothing.
    pub(super) fn host_busy(&self) -> bool {
        mean(&self.0).is_some_and(|others| others >= BUSY)
    }
}

/// Runs `run`, the tests, and looks at the host meanwhile. Tests can run out of time even if they
/// start no program. The threads of `own` do not count as other work.
pub(super) async fn watched<T>(
    engine: &Engine,
    own: &[&Sandbox],
    run: impl Future<Output = T>,
) -> (T, Looks) {
    watched_every(LOOK_EVERY, || engine.host_load(), own, run).await
}

async fn watched_every<T>(
    pause: Duration,
    host_load: impl Fn() -> Option<HostLoad>,
    own: &[&Sandbox],
    run: impl Future<Output = T>,
) -> (T, Looks) {
    let mut looks = Vec::new();
    let looking = async {
        loop {
            tokio::time::sleep(pause).await;
            if let Some(load) = host_load()
                && let Some(others) = others_beside(load, own).await
            {
                looks.push(others);
            }
        }
    };
    let result = tokio::select! {
        result = run => result,
        never = looking => never,
    };
    (result, Looks(looks))
}

/// Runnable threads per processor, without those of `own`. The engine starts a process to count
/// those, so they are counted only if the result depends on them.
async fn others_beside(load: HostLoad, own: &[&Sandbox]) -> Option<f64> {
    let most = others(load, 0);
    if most < BUSY {
        return Some(most);
    }
    let mut threads = 0;
    for sandbox in own {
        threads += sandbox.runnable_threads().await?;
    }
    Some(others(load, threads))
}

impl Observed {
    /// The time limit of a program, if the tests ask for `asked`. Once programs have lost a minute
    /// to their limits, each later one has little time, since programs that hang must not take the
    /// time of all checks.
    pub(super) fn limit(&self, asked: Duration) -> Duration {
        if self.lost >= MAX_LOST { asked.min(SHORT) } else { asked }
    }

    /// Runs `call`, a program in `place`. `None` if it met its limit. If the host is too busy to
    /// run it, the limit is [`PATIENCE`] times as long. `met_a_limit` reads from the result whether
    /// a program that it started met a limit of its own.
    pub(super) async fn during<T>(
        &mut self,
        place: Place<'_>,
        limit: Duration,
        call: impl Future<Output = T>,
        met_a_limit: impl FnOnce(&T) -> bool,
    ) -> Option<T> {
        let started = Instant::now();
        let mut watch = Watch::default();
        let watching = async {
            loop {
                let left = limit.saturating_sub(started.elapsed());
                tokio::time::sleep(if left.is_zero() { LOOK_EVERY } else { left.min(LOOK_EVERY) }).await;
                watch.look(place).await;
                let elapsed = started.elapsed();
                if elapsed >= limit && (elapsed >= limit * PATIENCE || !watch.host_busy(place).await) {
                    return;
                }
            }
        };
        let ended = tokio::select! {
            ended = call => Some(ended),
            () = watching => None,
        };
        if ended.as_ref().is_none_or(met_a_limit) {
            self.lost += started.elapsed();
            self.host_busy |= watch.host_busy(place).await;
        }
        ended
    }
}

/// The looks at one program.
#[derive(Debug, Default)]
struct Watch {
    others: Vec<f64>,
    own: Vec<f64>,
    /// Time of the first look, and the processor time that the container had used before.
    began: Option<(Instant, Duration)>,
}

impl Watch {
    async fn look(&mut self, place: Place<'_>) {
        let Some(load) = place.engine.host_load() else { return };
        if self.began.is_none() {
            self.began = place.programs.processor_time().await.map(|used| (Instant::now(), used));
        }
        if let Some(own) = place.programs.runnable_threads().await {
            self.others.push(others(load, own));
            self.own.push(own.into());
        }
    }

    /// Whether a busy host kept the program from running.
    async fn host_busy(&self, place: Place<'_>) -> bool {
        let Some((since, before)) = self.began else { return false };
        let (Some(others), Some(own)) = (mean(&self.others), mean(&self.own)) else { return false };
        let Some(after) = place.programs.processor_time().await else { return false };
        let used = after.saturating_sub(before);
        Call { others, own, used, elapsed: since.elapsed() }.host_busy(place.cpus)
    }
}

impl Call {
    /// Whether the program wanted a processor, and the host's other work got it.
    fn host_busy(self, cpus: f64) -> bool {
        let share = self.used.as_secs_f64() / self.elapsed.as_secs_f64().max(f64::EPSILON);
        self.others >= BUSY && self.own >= RUNNABLE && share < SERVED * cpus.min(1.0)
    }
}

/// Whether the host has much work now.
pub(super) fn is_host_busy(engine: &Engine) -> bool {
    engine.host_load().is_some_and(|load| others(load, 0) >= BUSY)
}

/// Whether the host has much work now besides the container of `own`. A solver that starts many
/// threads does not make its own host look busy.
pub async fn is_host_busy_beside(engine: &Engine, own: &Sandbox) -> bool {
    let Some(load) = engine.host_load() else { return false };
    others_beside(load, &[own]).await.is_some_and(|others| others >= BUSY)
}

/// Runs `run`, which works in the container of `own`. On a busy host only a fifth of the time
/// counts. `lose` gets the other four fifths, e.g. to move a deadline.
pub async fn with_lost_time<T>(
    engine: &Engine,
    own: &Sandbox,
    lose: impl Fn(Duration),
    run: impl Future<Output = T>,
) -> T {
    let looking = async {
        loop {
            let since = own.clock().elapsed();
            tokio::time::sleep(LOOK_EVERY).await;
            if is_host_busy_beside(engine, own).await {
                lose(own.clock().elapsed().saturating_sub(since) * (PATIENCE - 1) / PATIENCE);
            }
        }
    };
    tokio::select! {
        result = run => result,
        never = looking => never,
    }
}

/// Runnable threads per processor, without the container's own.
fn others(load: HostLoad, own: u32) -> f64 {
    f64::from(load.runnable.saturating_sub(own)) / f64::from(load.processors)
}

fn mean(looks: &[f64]) -> Option<f64> {
    (!looks.is_empty()).then(|| looks.iter().sum::<f64>() / looks.len() as f64)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn only_programs_that_others_kept_from_running_get_more_time() {
        let check = |others: f64, own: f64, used: f64, elapsed: f64, cpus: f64, expect: bool| {
            let call = Call {
                others,
                own,
                used: Duration::from_secs_f64(used),
                elapsed: Duration::from_secs_f64(elapsed),
            };
            assert_eq!(call.host_busy(cpus), expect, "{call:?}, {cpus} cpus");
        };
        check(12.0, 1.0, 1.0, 20.0, 1.0, true);
        // The program slept.
        check(12.0, 0.1, 0.0, 20.0, 1.0, false);
        // The load was ordinary.
        check(3.0, 1.0, 1.0, 20.0, 1.0, false);
        // The program had a processor.
        check(12.0, 1.0, 19.0, 20.0, 1.0, false);
        check(50.0, 4.0, 15.0, 20.0, 4.0, false);
        // The program had half of its half processor.
        check(12.0, 1.0, 6.0, 20.0, 0.5, false);
        check(12.0, 1.0, 4.0, 20.0, 0.5, true);
        // The program had no time at all.
        check(12.0, 1.0, 0.0, 0.0, 1.0, true);
    }

    #[test]
    fn programs_that_hang_leave_the_later_ones_little_time() {
        let check = |lost: u64, asked: f64, expect: f64| {
            let observed = Observed { lost: Duration::from_secs(lost), ..Observed::default() };
            let limit = observed.limit(Duration::from_secs_f64(asked));
            assert_eq!(limit, Duration::from_secs_f64(expect), "{lost} {asked}");
        };
        check(0, 10.0, 10.0);
        check(59, 45.0, 45.0);
        check(60, 45.0, 1.0);
        check(60, 0.5, 0.5);
    }

    #[test]
    fn the_host_is_watched_while_tests_run_that_start_no_program() {
        let check = |runnable: Option<u32>, expect: bool| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            let seen = Cell::new(0);
            let load = || {
                seen.set(seen.get() + 1);
                runnable.map(|runnable| HostLoad { runnable, processors: 2 })
            };
            let pause = Duration::from_millis(1);
            let run = async {
                while seen.get() < 3 {
                    tokio::time::sleep(pause).await;
                }
            };
            let ((), looks) = runtime.block_on(watched_every(pause, load, &[], run));
            assert_eq!(looks.host_busy(), expect, "{runnable:?}: {looks:?}");
        };
        check(Some(20), true);
        check(Some(7), false);
        // The engine is on another host.
        check(None, false);
    }

    #[test]
    fn a_container_s_own_threads_are_no_load() {
        let check = |runnable: u32, own: u32, expect: f64| {
            assert!((others(HostLoad { runnable, processors: 2 }, own) - expect).abs() < f64::EPSILON);
        };
        check(12, 0, 6.0);
        check(240, 236, 2.0);
        // The host's threads and the container's are not counted at the same moment.
        check(3, 5, 0.0);
    }
}
