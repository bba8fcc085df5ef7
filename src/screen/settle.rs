//! Many small things in one trial, and halves of them where that trial does not tell them apart.

use std::future::Future;

use futures_util::future::LocalBoxFuture;

/// What a trial of several things says of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Says {
    /// There is nothing wrong with any of them.
    Clear,
    /// Something is wrong with one of them, or with some together.
    Guilty,
    /// Nothing: one of them broke the trial, and what the others would have done is not known.
    Nothing,
}

/// Things that were tried together, and the trial that speaks for each of them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Settled<T, R> {
    pub(super) items: Vec<T>,
    pub(super) says: Says,
    pub(super) record: R,
}

/// Tries `items` in one trial, and halves of them as long as the trial of a group is not clear. Each item comes back exactly once,
/// in the smallest group whose trial speaks for it: things that are wrong only together come back together.
pub(super) fn settle<'a, T, R, E, F>(
    items: &'a [T],
    run: &'a impl Fn(&'a [T]) -> F,
    says: &'a impl Fn(&R) -> Says,
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
        let whole = Settled { items: items.to_vec(), says: says(&record), record };
        if whole.says == Says::Clear || items.len() == 1 {
            return Ok(vec![whole]);
        }
        let (left, right) = items.split_at(items.len() / 2);
        let mut halves = settle(left, run, says).await?;
        halves.extend(settle(right, run, says).await?);
        let found = halves.iter().any(|half| half.says == Says::Guilty);
        // Only together are they wrong, so only the trial of all of them says so.
        Ok(if whole.says == Says::Guilty && !found { vec![whole] } else { halves })
    })
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn check(items: &[u32], says: impl Fn(&[u32]) -> Says + Sync, expect: &[(&[u32], Says)], trials: usize) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let asked = AtomicUsize::new(0);
        let run = |group: &[u32]| {
            asked.fetch_add(1, Ordering::Relaxed);
            let said = says(group);
            async move { Ok::<_, Infallible>(said) }
        };
        let found = runtime.block_on(settle(items, &run, &|said: &Says| *said)).unwrap();
        let found: Vec<_> = found.iter().map(|settled| (settled.items.as_slice(), settled.says)).collect();
        assert_eq!(found, expect);
        assert_eq!(asked.into_inner(), trials);
    }

    fn guilty(guilty: bool) -> Says {
        if guilty { Says::Guilty } else { Says::Clear }
    }

    #[test]
    fn offenders_are_found_by_halves() {
        use Says::{Clear, Guilty};
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
    fn who_breaks_the_trial_speaks_for_nobody_else() {
        use Says::{Clear, Guilty, Nothing};
        // 2 breaks every trial it is in, and 4 would score.
        let says = |group: &[u32]| match group {
            group if group.contains(&2) => Nothing,
            group => guilty(group.contains(&4)),
        };
        check(&[1, 2, 3, 4], says, &[(&[1], Clear), (&[2], Nothing), (&[3], Clear), (&[4], Guilty)], 7);
        // Together they break it, apart they do not.
        check(
            &[1, 2],
            |group| if group.len() == 2 { Nothing } else { Clear },
            &[(&[1], Clear), (&[2], Clear)],
            3,
        );
    }
}
