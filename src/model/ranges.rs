//! Numbers in foreign records that are too large for termsmith's formats.

use super::{Rollout, Tokens};

/// Maximum number of tokens of one model call. Sums over a run stay far below 2⁶³.
pub const MOST_TOKENS: u64 = 1 << 40;
/// Maximum number of attempts at one task. A larger number is not a real count.
pub const MOST_ATTEMPTS: u32 = 1_000_000;

impl Rollout {
    /// Removes the numbers that are out of range, and returns how many there were.
    ///
    /// A run folder may come from elsewhere. Export columns have signed types, so one such number
    /// would make every export fail.
    pub fn leave_out_of_range(&mut self) -> u32 {
        let mut count = 0;
        let mut drop_tokens = |usage: &mut Option<Tokens>| {
            let is_odd = |usage: &mut Tokens| usage.prompt > MOST_TOKENS || usage.completion > MOST_TOKENS;
            count += u32::from(usage.take_if(is_odd).is_some());
        };
        let record = &mut self.record;
        let others = record.threads.iter_mut().map(|thread| (&mut thread.turns, &mut thread.handoffs));
        for (turns, handoffs) in others.chain([(&mut record.turns, &mut record.handoffs)]) {
            turns.iter_mut().for_each(|turn| drop_tokens(&mut turn.usage));
            let asides = handoffs.iter_mut().flat_map(|handoff| &mut handoff.asides);
            asides.for_each(|aside| drop_tokens(&mut aside.usage));
        }
        let is_odd = |seed: &mut u64| *seed > i64::MAX.cast_unsigned();
        count += u32::from(self.metadata.seed.take_if(is_odd).is_some());
        if self.record.attempt > MOST_ATTEMPTS {
            self.record.attempt = 0;
            count += 1;
        }
        count
    }
}
