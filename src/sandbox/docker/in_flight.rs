//! Deleted files that are hidden in descriptors in flight.
//!
//! A descriptor that waits in a Unix socket belongs to no process. The kernel only says how many
//! wait. A deleted file behind such a descriptor takes disk space that is visible nowhere else. So
//! the space counts that the disk has lost since the container had nothing in flight.

use std::collections::HashMap;

use crate::sandbox::ContainerId;

/// Observations at one time.
#[derive(Clone, Debug, Default)]
pub(super) struct Look {
    /// Free bytes of the disk. `None` if they are unknown, or if a quota limits each container.
    pub(super) free: Option<u64>,
    /// Bytes that each container visibly holds.
    pub(super) used: HashMap<ContainerId, u64>,
}

impl Look {
    /// Bytes that the disk has lost since `earlier`, and that no container visibly holds. A
    /// container that was removed meanwhile can only make this smaller.
    pub(super) fn unexplained_since(&self, earlier: &Self) -> u64 {
        let (Some(before), Some(now)) = (earlier.free, self.free) else { return 0 };
        let had = |id| earlier.used.get(id).copied().unwrap_or_default();
        let grown: u64 = self.used.iter().map(|(id, bytes)| bytes.saturating_sub(had(id))).sum();
        before.saturating_sub(now).saturating_sub(grown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_containers_hold_explains_a_loss() {
        let look = |free: Option<u64>, used: &[(&str, u64)]| Look {
            free,
            used: used.iter().map(|(name, bytes)| (ContainerId((*name).to_owned()), *bytes)).collect(),
        };
        let check = |earlier: Look, now: Look, expect: u64| {
            assert_eq!(now.unexplained_since(&earlier), expect, "{earlier:?} {now:?}");
        };
        check(look(Some(100), &[("a", 5)]), look(Some(40), &[("a", 5)]), 60);
        check(look(Some(100), &[("a", 5)]), look(Some(40), &[("a", 25), ("b", 30)]), 10);
        check(look(Some(100), &[("a", 5)]), look(Some(100), &[]), 0);
        check(look(Some(100), &[("a", 50)]), look(Some(90), &[]), 10);
        // A file of `a` was deleted, and its descriptor is in flight.
        check(look(Some(100), &[("a", 50)]), look(Some(70), &[("a", 20)]), 30);
        check(look(Some(40), &[]), look(Some(100), &[]), 0);
        check(look(None, &[]), look(Some(0), &[]), 0);
        check(look(Some(100), &[]), look(None, &[]), 0);
    }
}
