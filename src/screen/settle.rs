//! Group testing: many items share a trial. If that trial does not tell them apart, halves of the
//! group are tried.

use std::future::Future;

use futures_util::future::LocalBoxFuture;

/// The result of a trial for a group of items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GroupVerdict {
    /// No item is at fault.
    Clear,
    /// At least one item is at fault, or some are only in combination.
    Guilty,
    /// Unknown: one item broke the trial, so the other items were not tested.
    Unknown,
}

/// Items that were tried together, with the trial that holds for each of them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Settled<T, R> {
    pub(super) items: Vec<T>,
    pub(super) verdict: GroupVerdict,
    pub(super) record: R,
}

/// Tries `items` in one trial. While the trial of a group is not clear, its halves are tried. Each
/// item is returned exactly once, in the smallest group whose trial holds for it. Items that fail
/// only in combination are returned together.
pub(super) fn settle<'a, T, R, E, F>(
    items: &'a [T],
    run: &'a impl Fn(&'a [T]) -> F,
    judge: &'a impl Fn(&R) -> GroupVerdict,
) -> LocalBoxFuture<'a, Result<Vec<Settled<T, R>>, E>>
where
    T: Copy,
    R: 'a,
    E: 'a,
    F: Future<Output = Result<R, E>> + 'a,
{
    Box::pin(async move {
        if items.is_empty() {
            return Ok(Vec::new());
        }
        let record = run(items).await?;
        let whole = Settled { items: items.to_vec(), verdict: judge(&record), record };
        if whole.verdict == GroupVerdict::Clear || items.len() == 1 {
            return Ok(vec![whole]);
        }
        let (left, right) = items.split_at(items.len() / 2);
        let mut halves = settle(left, run, judge).await?;
        halves.extend(settle(right, run, judge).await?);
        let found = halves.iter().any(|half| half.verdict == GroupVerdict::Guilty);
        // The items fail only in combination, so only the trial of all of them shows it.
        Ok(if whole.verdict == GroupVerdict::Guilty && !found { vec![whole] } else { halves })
    })
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn check(
        items: &[u32],
        judge: impl Fn(&[u32]) -> GroupVerdict + Sync,
        expect: &[(&[u32], GroupVerdict)],
        trials: usize,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let trials_run = AtomicUsize::new(0);
        let run = |group: &[u32]| {
            trials_run.fetch_add(1, Ordering::Relaxed);
            let verdict = judge(group);
            async move { Ok::<_, Infallible>(verdict) }
        };
        let found = runtime.block_on(settle(items, &run, &|verdict: &GroupVerdict| *verdict)).unwrap();
        let found: Vec<_> = found.iter().map(|settled| (settled.items.as_slice(), settled.verdict)).collect();
        assert_eq!(found, expect);
        assert_eq!(trials_run.into_inner(), trials);
    }

    fn guilty(guilty: bool) -> GroupVerdict {
        if guilty { GroupVerdict::Guilty } else { GroupVerdict::Clear }
    }

    #[test]
    fn faulty_items_are_found_by_bisection() {
        use GroupVerdict::{Clear, Guilty};
        check(&[], |_| Guilty, &[], 0);
        check(&[1, 2, 3, 4], |_| Clear, &[(&[1, 2, 3, 4], Clear)], 1);
        check(&[1], |_| Guilty, &[(&[1], Guilty)], 1);
        check(
            &[1, 2, 3, 4],
            |group| guilty(group.contains(&3)),
            &[(&[1, 2], Clear), (&[3], Guilty), (&[4], Clear)],
            5,
        );
        check(
            &[1, 2, 3, 4],
            |group| guilty(group.contains(&1) && group.contains(&4)),
            &[(&[1, 2, 3, 4], Guilty)],
            3,
        );
    }

    #[test]
    fn a_trial_without_verdict_is_no_evidence_about_other_items() {
        use GroupVerdict::{Clear, Guilty, Unknown};
        // 2 breaks every trial that contains it. 4 would get a reward.
        let judge = |group: &[u32]| match group {
            group if group.contains(&2) => Unknown,
            group => guilty(group.contains(&4)),
        };
        check(&[1, 2, 3, 4], judge, &[(&[1], Clear), (&[2], Unknown), (&[3], Clear), (&[4], Guilty)], 7);
        // These items break the trial only in combination.
        check(
            &[1, 2],
            |group| if group.len() == 2 { Unknown } else { Clear },
            &[(&[1], Clear), (&[2], Clear)],
            3,
        );
    }
}
