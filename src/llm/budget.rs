//! The hard budget of a run. An upper bound is reserved before a request is sent. So no number of
//! concurrent calls can exceed the budget.

use std::fmt;
use std::ops::{Add, Sub};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use super::Usage;

/// Picodollars in a dollar. A price of $0.000001 for 1M tokens is one picodollar for each token.
const PICO: f64 = 1e12;
/// Picodollars for a token that costs one dollar per 1M.
const PICO_PER_1M: f64 = 1e6;

/// Limits on the cost and the time of a run. `None` means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Budget {
    /// US dollars, over all runs in the folder.
    pub max_usd: Option<f64>,
    /// Input and output tokens, over all runs in the folder.
    pub max_tokens: Option<u64>,
    /// Time since this process started. Then a call in flight is cancelled.
    pub max_wall: Option<Duration>,
}

/// Tokens and their price.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// Input and output tokens.
    pub tokens: u64,
    /// 10⁻¹² US dollars. The number is whole, so sums are exact.
    pub picodollars: u64,
}

impl Cost {
    /// US dollars.
    pub fn usd(self) -> f64 {
        self.picodollars as f64 / PICO
    }
}

impl Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_add(other.tokens),
            picodollars: self.picodollars.saturating_add(other.picodollars),
        }
    }
}

impl Sub for Cost {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_sub(other.tokens),
            picodollars: self.picodollars.saturating_sub(other.picodollars),
        }
    }
}

/// Picodollars for a token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Price {
    input: u64,
    output: u64,
}

impl Price {
    /// From US dollars for 1M tokens, rounded up.
    pub(super) fn per_1m(input: f64, output: f64) -> Self {
        let pico = |usd: f64| (usd * PICO_PER_1M).ceil() as u64;
        Self { input: pico(input), output: pico(output) }
    }

    /// The cost of `usage`, as an upper bound: discounts for cached prompts do not count.
    pub(super) fn of(self, usage: Usage) -> Cost {
        let Usage { prompt_tokens, completion_tokens } = usage;
        let input = self.input.saturating_mul(prompt_tokens);
        let output = self.output.saturating_mul(completion_tokens);
        Cost {
            tokens: prompt_tokens.saturating_add(completion_tokens),
            picodollars: input.saturating_add(output),
        }
    }
}

/// The cap that a call could have exceeded. `usual` is the mean upper bound of earlier calls, in
/// tokens. It is 0 if there were none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BudgetExceeded {
    /// Tokens: spent up to now, the call's upper bound, and the cap.
    Tokens { spent: u64, wanted: u64, cap: u64, usual: u64 },
    /// The same in US dollars, and the call's tokens.
    Usd { spent: f64, wanted: f64, cap: f64, tokens: u64, usual: u64 },
    /// Time since the run began, and its cap.
    Wall { elapsed: Duration, cap: Duration },
}

/// A call is large if it may take a quarter of the cap, and eight times as much as a usual call.
const LARGE_SHARE: u64 = 4;
const LARGE_FACTOR: u64 = 8;

impl BudgetExceeded {
    /// Whether this call is so large that it alone is the reason, and not the run. Otherwise an
    /// agent that sends a request of some megabytes would end the whole run.
    pub fn by_one_large_call(&self) -> bool {
        let is_unusual = |tokens: u64, usual: u64| usual > 0 && tokens >= usual.saturating_mul(LARGE_FACTOR);
        match *self {
            Self::Tokens { wanted, cap, usual, .. } => {
                wanted >= cap / LARGE_SHARE && is_unusual(wanted, usual)
            }
            Self::Usd { wanted, cap, tokens, usual, .. } => {
                wanted >= cap / LARGE_SHARE as f64 && is_unusual(tokens, usual)
            }
            Self::Wall { .. } => false,
        }
    }
}

impl fmt::Display for BudgetExceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tokens { spent, wanted, cap, .. } => {
                write!(
                    f,
                    "{spent} of {cap} tokens are spent and the call may need {wanted}\nhint: raise --max-tokens"
                )
            }
            Self::Usd { spent, wanted, cap, .. } => {
                write!(
                    f,
                    "${spent:.4} of ${cap:.4} are spent and the call may need ${wanted:.4}\nhint: raise --max-usd"
                )
            }
            Self::Wall { elapsed, cap } => {
                let (elapsed, cap) = (elapsed.as_secs(), cap.as_secs());
                write!(f, "the run has taken {elapsed} s of {cap} s\nhint: raise --max-wall")
            }
        }
    }
}

/// Spent and reserved cost.
#[derive(Debug)]
pub(super) struct Ledger {
    max_tokens: Option<u64>,
    max_usd: Option<f64>,
    state: Mutex<State>,
    /// Notified when a reservation ends.
    freed: Notify,
}

#[derive(Debug, Default)]
struct State {
    spent: Cost,
    reserved: Cost,
    /// Number of calls with a reservation, and the tokens of all their upper bounds.
    calls: u64,
    bounds: u64,
}

/// The reserved upper bound of a request. Dropped before [`Reservation::sent`], it costs nothing.
/// Dropped later, it is charged in full, unless it was settled.
#[derive(Debug)]
#[must_use]
pub(super) struct Reservation<'a> {
    ledger: &'a Ledger,
    bound: Cost,
    charge: Cost,
}

impl Ledger {
    /// A ledger with `spent` in it.
    pub(super) fn new(budget: &Budget, spent: Cost) -> Self {
        Self {
            max_tokens: budget.max_tokens,
            max_usd: budget.max_usd,
            state: Mutex::new(State { spent, ..State::default() }),
            freed: Notify::new(),
        }
    }

    /// Cost up to now, without reservations.
    pub(super) fn spent(&self) -> Cost {
        self.state().spent
    }

    /// Adds the cost of an earlier process.
    pub(super) fn charge(&self, cost: Cost) {
        let mut state = self.state();
        state.spent = state.spent + cost;
    }

    /// Reserves `bound`. If only other reservations prevent it, waits until they end.
    pub(super) async fn reserve(&self, bound: Cost) -> Result<Reservation<'_>, BudgetExceeded> {
        loop {
            let freed = self.freed.notified();
            tokio::pin!(freed);
            // Registered before the state is read, so that no notification is missed.
            freed.as_mut().enable();
            {
                let mut state = self.state();
                let usual = state.bounds.checked_div(state.calls).unwrap_or_default();
                self.fits(state.spent, bound, usual)?;
                if self.fits(state.spent + state.reserved, bound, usual).is_ok() {
                    state.reserved = state.reserved + bound;
                    state.calls += 1;
                    state.bounds = state.bounds.saturating_add(bound.tokens);
                    tracing::debug!(
                        tokens = bound.tokens,
                        usd = bound.usd(),
                        spent_tokens = state.spent.tokens,
                        reserved_tokens = state.reserved.tokens,
                        "reserved budget"
                    );
                    return Ok(Reservation { ledger: self, bound, charge: Cost::default() });
                }
            }
            tracing::debug!(tokens = bound.tokens, "waiting for budget reserved by other calls");
            freed.await;
        }
    }

    fn fits(&self, spent: Cost, bound: Cost, usual: u64) -> Result<(), BudgetExceeded> {
        let total = spent + bound;
        if let Some(cap) = self.max_tokens.filter(|cap| total.tokens > *cap) {
            let (spent, wanted) = (spent.tokens, bound.tokens);
            return Err(BudgetExceeded::Tokens { spent, wanted, cap, usual });
        }
        if let Some(cap) = self.max_usd.filter(|cap| total.picodollars > (cap * PICO) as u64) {
            let (spent, wanted, tokens) = (spent.usd(), bound.usd(), bound.tokens);
            return Err(BudgetExceeded::Usd { spent, wanted, cap, tokens, usual });
        }
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reservation<'_> {
    /// The request is being sent. From now on the bound is charged, even if the future is dropped.
    pub(super) fn sent(&mut self) {
        self.charge = self.bound;
    }

    /// The request cost `cost`. A server may count more than the bound, and that is charged too.
    pub(super) fn settle(mut self, cost: Cost) -> Cost {
        self.charge = cost;
        cost
    }

    /// The server reported no usage.
    pub(super) fn charge_in_full(self) -> Cost {
        self.charge
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        let mut state = self.ledger.state();
        state.reserved = state.reserved - self.bound;
        state.spent = state.spent + self.charge;
        drop(state);
        self.ledger.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn a_large_call_is_told_from_a_run_at_its_end() {
        let check = |exceeded: BudgetExceeded, expect: bool| {
            assert_eq!(exceeded.by_one_large_call(), expect, "{exceeded:?}");
        };
        let tokens = |wanted, cap, usual| BudgetExceeded::Tokens { spent: 9, wanted, cap, usual };
        check(tokens(3_000_000, 2_000_000, 9_000), true);
        check(tokens(250_000, 200_000, 400), true);
        check(tokens(500_000, 2_000_000, 60_000), true);
        // An ordinary call, at the end of a run and of a small one.
        check(tokens(40_000, 2_000_000, 9_000), false);
        check(tokens(8_000, 10_000, 7_000), false);
        // Long contexts are usual in a run with such a budget.
        check(tokens(300_000, 100_000_000, 30_000), false);
        check(tokens(900_000, 2_000_000, 400_000), false);
        // The budget does not suffice for the first call.
        check(tokens(12_000, 10_000, 0), false);
        let usd = |wanted, cap, tokens| BudgetExceeded::Usd { spent: 0.0, wanted, cap, tokens, usual: 3_000 };
        check(usd(9.0, 2.0, 3_000_000), true);
        check(usd(0.03, 0.02, 3_000), false);
        check(usd(1.0, 100.0, 300_000), false);
        check(BudgetExceeded::Wall { elapsed: Duration::from_secs(9), cap: Duration::from_secs(9) }, false);
    }

    fn tokens(tokens: u64) -> Cost {
        Cost { tokens, picodollars: 0 }
    }

    #[test]
    fn prices_are_exact() {
        let usage = Usage { prompt_tokens: 1_000_000, completion_tokens: 500_000 };
        for (input, output, usd) in
            [(0.15, 0.60, 0.45), (2.5, 10.0, 7.5), (0.0, 0.0, 0.0), (0.000_001, 0.0, 0.000_001)]
        {
            let cost = Price::per_1m(input, output).of(usage);
            assert!((cost.usd() - usd).abs() < 1e-9, "{input} {output}: {}", cost.usd());
            assert_eq!(cost.tokens, 1_500_000);
        }
    }

    #[test]
    fn a_reservation_is_charged_once_it_is_sent_unless_it_is_settled() {
        let ledger = Ledger::new(&Budget { max_tokens: Some(100), ..Budget::default() }, tokens(10));
        let reserve = |n| ledger.reserve(tokens(n)).now_or_never();
        let first = reserve(60).unwrap().unwrap();
        // 70 are spent or reserved. So 30 fit, 40 wait for the 60 to be settled, and 91 never fit.
        let mut second = reserve(30).unwrap().unwrap();
        assert!(reserve(40).is_none());
        assert_eq!(
            reserve(91).unwrap().unwrap_err(),
            BudgetExceeded::Tokens { spent: 10, wanted: 91, cap: 100, usual: 45 }
        );
        second.sent();
        drop(second);
        assert_eq!(ledger.spent(), tokens(40));
        first.settle(tokens(5));
        assert_eq!(ledger.spent(), tokens(45));
        reserve(55).unwrap().unwrap().settle(Cost::default());
        assert_eq!(ledger.spent(), tokens(45));
        drop(reserve(55).unwrap().unwrap());
        assert_eq!(ledger.spent(), tokens(45), "a request that was never sent costs nothing");
    }

    #[tokio::test]
    async fn waiting_callers_get_released_reservations() {
        let ledger = Ledger::new(&Budget { max_tokens: Some(100), ..Budget::default() }, Cost::default());
        let first = ledger.reserve(tokens(90)).await.unwrap();
        let second =
            async { ledger.reserve(tokens(80)).await.map(|reservation| reservation.settle(tokens(80))) };
        let settle = async {
            tokio::task::yield_now().await;
            first.settle(tokens(20));
        };
        assert_eq!(tokio::join!(second, settle).0, Ok(tokens(80)));
        assert!(ledger.reserve(tokens(1)).await.is_err());
    }

    #[tokio::test]
    async fn dollars_are_capped() {
        let ledger = Ledger::new(&Budget { max_usd: Some(0.01), ..Budget::default() }, Cost::default());
        let price = Price::per_1m(1.0, 2.0);
        let bound = price.of(Usage { prompt_tokens: 4000, completion_tokens: 3000 });
        ledger
            .reserve(bound)
            .await
            .unwrap()
            .settle(price.of(Usage { prompt_tokens: 1, completion_tokens: 0 }));
        let error = ledger.reserve(bound).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "$0.0000 of $0.0100 are spent and the call may need $0.0100\nhint: raise --max-usd"
        );
    }
}
