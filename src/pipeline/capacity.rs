//! How many rollouts a host can hold at once: by number, by memory and by processors.

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::model::Limits;

/// Share of the host's memory that sandboxes may be promised together. The rest is the engine's, ours, and the page cache's.
const MEMORY_SHARE: f64 = 0.85;
/// Rollouts wait for models most of the time, so processors are promised several times over.
const PROMISES_PER_CPU: u32 = 8;
/// Processors are promised in hundredths.
const CENTI: f64 = 100.0;

/// What a host has left. A rollout takes a place, its task's memory limit and its processors, and gives them back at its end.
#[derive(Debug)]
pub struct Capacity {
    number: Semaphore,
    memory_mb: Semaphore,
    centi_cpus: Semaphore,
    total_mb: u32,
    total_cpus: u32,
}

/// What one rollout has taken.
#[derive(Debug)]
pub struct CapacityPermit<'a> {
    _parts: [SemaphorePermit<'a>; 3],
}

impl Capacity {
    /// Room for `number` rollouts on a host of `memory_mb` MiB and `cpus` processors.
    pub fn new(number: u32, memory_mb: u64, cpus: u32) -> Self {
        let total_mb = clamp((memory_mb as f64 * MEMORY_SHARE) as u64);
        let total_cpus = clamp(u64::from(cpus) * u64::from(PROMISES_PER_CPU) * CENTI as u64);
        Self {
            number: Semaphore::new(number.max(1) as usize),
            memory_mb: Semaphore::new(total_mb as usize),
            centi_cpus: Semaphore::new(total_cpus as usize),
            total_mb,
            total_cpus,
        }
    }

    /// Waits for room for a task with these limits. One that wants more than there is gets all of it, alone.
    pub async fn take(&self, limits: &Limits) -> Option<CapacityPermit<'_>> {
        let memory = limits.memory_mb.clamp(1, self.total_mb);
        let cpus = clamp((limits.cpus * CENTI) as u64).min(self.total_cpus);
        // Always in this order, so that nobody holds what another waits for.
        let number = self.number.acquire().await.ok()?;
        let memory = self.memory_mb.acquire_many(memory).await.ok()?;
        let cpus = self.centi_cpus.acquire_many(cpus).await.ok()?;
        Some(CapacityPermit { _parts: [number, memory, cpus] })
    }
}

fn clamp(value: u64) -> u32 {
    /// Tokio's semaphores hold fewer permits than this on every platform.
    const MOST: u64 = 1 << 28;
    u32::try_from(value.clamp(1, MOST)).unwrap_or(u32::MAX >> 4)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn task(memory_mb: u32, cpus: f64) -> Limits {
        Limits { memory_mb, cpus, ..Limits::default() }
    }

    #[test]
    fn what_is_taken_is_not_there_for_others() {
        let check = |capacity: Capacity, tasks: &[Limits], fit: usize| {
            let mut held = Vec::new();
            for limits in tasks {
                held.extend(capacity.take(limits).now_or_never().flatten());
            }
            assert_eq!(held.len(), fit, "{tasks:?}");
        };
        let small = task(1000, 1.0);
        check(Capacity::new(2, 100_000, 64), &[small.clone(), small.clone(), small.clone()], 2);
        // 85 % of 4000 MiB.
        check(Capacity::new(9, 4000, 64), &[small.clone(), small.clone(), small.clone(), small.clone()], 3);
        check(Capacity::new(9, 100_000, 1), &vec![task(10, 4.0); 3], 2);
        // Larger than the host: alone, but not never.
        check(Capacity::new(9, 1000, 1), &[task(50_000, 99.0), small], 1);
    }
}
