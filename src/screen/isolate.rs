//! Many small things in one trial, and bisection when the trial is not as it must be.

use std::future::Future;

/// The items, alone or in the smallest groups, for which `bad` holds: asked for all of them at once first, and then for halves
/// of what was bad. A group that is bad only together comes out as a group.
pub(super) async fn isolate<T, E, F>(items: &[T], mut bad: impl FnMut(Vec<T>) -> F) -> Result<Vec<Vec<T>>, E>
where
    T: Clone,
    F: Future<Output = Result<bool, E>>,
{
    let mut guilty = Vec::new();
    if items.is_empty() || !bad(items.to_vec()).await? {
        return Ok(guilty);
    }
    let mut suspects = vec![items.to_vec()];
    while let Some(group) = suspects.pop() {
        if group.len() == 1 {
            guilty.push(group);
            continue;
        }
        let (left, right) = group.split_at(group.len() / 2);
        let (left, right) = (left.to_vec(), right.to_vec());
        let left_bad = bad(left.clone()).await?;
        let right_bad = bad(right.clone()).await?;
        if left_bad {
            suspects.push(left);
        }
        if right_bad {
            suspects.push(right);
        }
        if !left_bad && !right_bad {
            guilty.push(group);
        }
    }
    guilty.sort_by_key(|group| items.len() - group.len());
    Ok(guilty)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn check(items: &[u32], bad: impl Fn(&[u32]) -> bool, expect: &[&[u32]], trials: usize) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let asked = std::cell::Cell::new(0);
        let mut found = runtime
            .block_on(isolate::<_, Infallible, _>(items, |group| {
                asked.set(asked.get() + 1);
                let verdict = bad(&group);
                async move { Ok(verdict) }
            }))
            .unwrap();
        found.sort();
        assert_eq!(found, expect);
        assert_eq!(asked.get(), trials);
    }

    #[test]
    fn offenders_are_found_by_halves() {
        check(&[], |_| true, &[], 0);
        check(&[1, 2, 3, 4], |_| false, &[], 1);
        check(&[1], |_| true, &[&[1]], 1);
        check(&[1, 2, 3, 4], |group| group.contains(&3), &[&[3]], 5);
        check(&[1, 2, 3, 4], |group| group.contains(&1) || group.contains(&4), &[&[1], &[4]], 7);
        check(&[1, 2, 3, 4], |group| group.contains(&1) && group.contains(&4), &[&[1, 2, 3, 4]], 3);
    }
}
