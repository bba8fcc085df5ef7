//! A limit on concurrent trials.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// Slots for trials. A waiting trial with a lower `priority` is served earlier, e.g. 0 before 1.
/// Among equal priorities the trial that came first is served first.
///
/// Tasks of a run have different priorities, so that they finish one after the other. With equal
/// ones all would finish at the end, and an interrupted run would have finished none.
#[derive(Debug)]
pub struct Slots {
    shared: Arc<Mutex<Queue>>,
}

/// The right to run one trial. Dropping it frees the slot.
#[derive(Debug)]
pub struct SlotPermit {
    shared: Arc<Mutex<Queue>>,
}

#[derive(Debug)]
struct Queue {
    free: usize,
    /// Number of trials that had to wait so far.
    waited: u64,
    waiting: BTreeMap<(u32, u64), oneshot::Sender<SlotPermit>>,
}

impl Slots {
    /// `number` slots, all free.
    pub fn new(number: usize) -> Self {
        let queue = Queue { free: number, waited: 0, waiting: BTreeMap::new() };
        Self { shared: Arc::new(Mutex::new(queue)) }
    }

    /// Waits for a slot. A trial that stops waiting loses its place, and takes no slot.
    pub async fn acquire(&self, priority: u32) -> SlotPermit {
        loop {
            let granted = {
                let mut queue = lock(&self.shared);
                if queue.free > 0 {
                    queue.free -= 1;
                    return SlotPermit { shared: self.shared.clone() };
                }
                let (sender, granted) = oneshot::channel();
                queue.waited += 1;
                let place = (priority, queue.waited);
                queue.waiting.insert(place, sender);
                granted
            };
            // A sender is dropped only after it has sent a permit.
            if let Ok(permit) = granted.await {
                return permit;
            }
        }
    }
}

impl Drop for SlotPermit {
    fn drop(&mut self) {
        let next = {
            let mut queue = lock(&self.shared);
            queue.waiting.retain(|_, sender| !sender.is_closed());
            let next = queue.waiting.pop_first();
            queue.free += usize::from(next.is_none());
            next
        };
        if let Some((_, sender)) = next {
            // If nobody receives the permit, it is dropped, and passed on.
            drop(sender.send(Self { shared: self.shared.clone() }));
        }
    }
}

fn lock(shared: &Mutex<Queue>) -> MutexGuard<'_, Queue> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use futures_util::stream::{FuturesUnordered, StreamExt as _};

    use super::*;

    #[tokio::test]
    async fn the_lowest_number_is_served_first() {
        let slots = Slots::new(1);
        let held = slots.acquire(7).await;
        let waiting: FuturesUnordered<_> = [2, 0, 1, 0, 2]
            .into_iter()
            .enumerate()
            .map(|(nth, priority)| slots.acquire(priority).map(move |permit| ((priority, nth), permit)))
            .collect();
        let mut waiting = std::pin::pin!(waiting);
        assert!(waiting.next().now_or_never().is_none(), "all wait");
        drop(held);
        let order: Vec<_> = waiting.map(|(place, _permit)| place).collect().await;
        assert_eq!(order, [(0, 1), (0, 3), (1, 2), (2, 0), (2, 4)]);
    }

    #[tokio::test]
    async fn who_stops_waiting_takes_no_slot_away() {
        let slots = Slots::new(2);
        let (first, second) = (slots.acquire(0).await, slots.acquire(0).await);
        let mut given_up = Box::pin(slots.acquire(0));
        assert!(given_up.as_mut().now_or_never().is_none());
        let mut granted = Box::pin(slots.acquire(1));
        assert!(granted.as_mut().now_or_never().is_none());
        drop(given_up);
        // The slot is granted, but its new owner stops waiting before it sees the permit.
        drop(first);
        drop(granted);
        drop(second);
        let both = (slots.acquire(5).now_or_never(), slots.acquire(5).now_or_never());
        assert!(matches!(both, (Some(_), Some(_))), "{both:?}");
        assert!(slots.acquire(0).now_or_never().is_none());
    }
}
