//! Limits the rollouts that run at once on a host: by number, by memory and by processors.

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::model::Limits;

/// Share of the host's memory that can be reserved for sandboxes together. The rest is for the
/// engine, this process and the page cache.
const MEMORY_SHARE: f64 = 0.85;
/// Reservations for each processor. Rollouts wait for models most of the time, so one processor
/// serves several.
const RESERVATIONS_PER_CPU: u32 = 8;
/// Processors are reserved in hundredths, since a semaphore counts whole permits.
const CENTI: f64 = 100.0;

/// The free capacity of a host. A rollout reserves one slot, its task's memory limit and its
/// processors, and releases them at its end.
#[derive(Debug)]
pub struct Capacity {
    number: Semaphore,
    memory_mb: Semaphore,
    centi_cpus: Semaphore,
    total_mb: u32,
    total_cpus: u32,
}

/// The reservation of one rollout.
#[derive(Debug)]
pub struct CapacityPermit<'a> {
    _parts: [SemaphorePermit<'a>; 3],
}

impl Capacity {
    /// Capacity for `number` rollouts on a host of `memory_mb` MiB and `cpus` processors.
    pub fn new(number: u32, memory_mb: u64, cpus: u32) -> Self {
        let total_mb = clamp((memory_mb as f64 * MEMORY_SHARE) as u64);
        let total_cpus = clamp(u64::from(cpus) * u64::from(RESERVATIONS_PER_CPU) * CENTI as u64);
        Self {
            number: Semaphore::new(number.max(1) as usize),
            memory_mb: Semaphore::new(total_mb as usize),
            centi_cpus: Semaphore::new(total_cpus as usize),
            total_mb,
            total_cpus,
        }
    }

    /// Waits for capacity for a task with these limits. A task that exceeds the host's capacity
    /// gets all of it.
    pub async fn take(&self, limits: &Limits) -> Option<CapacityPermit<'_>> {
        let memory = limits.memory_mb.clamp(1, self.total_mb);
        let cpus = clamp((limits.cpus * CENTI) as u64).min(self.total_cpus);
        // All callers acquire in this order, so two tasks cannot deadlock.
        let number = self.number.acquire().await.ok()?;
        let memory = self.memory_mb.acquire_many(memory).await.ok()?;
        let cpus = self.centi_cpus.acquire_many(cpus).await.ok()?;
        Some(CapacityPermit { _parts: [number, memory, cpus] })
    }
}

fn clamp(value: u64) -> u32 {
    /// Tokio's semaphores hold at least this many permits on every platform.
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
    fn reserved_capacity_is_not_available_to_others() {
        let check = |capacity: Capacity, tasks: &[Limits], fit: usize| {
            let mut held = Vec::new();
            for limits in tasks {
                held.extend(capacity.take(limits).now_or_never().flatten());
            }
            assert_eq!(held.len(), fit, "{tasks:?}");
        };
        let small = task(1000, 1.0);
        check(Capacity::new(2, 100_000, 64), &[small.clone(), small.clone(), small.clone()], 2);
        // 85 % of 4000 MiB is 3400 MiB.
        check(Capacity::new(9, 4000, 64), &[small.clone(), small.clone(), small.clone(), small.clone()], 3);
        check(Capacity::new(9, 100_000, 1), &vec![task(10, 4.0); 3], 2);
        // A task that is larger than the host runs alone.
        check(Capacity::new(9, 1000, 1), &[task(50_000, 99.0), small], 1);
    }
}
