//! Things that the kernel counts for all containers of a user together: one container could take
//! them all.

use super::open_files::OpenFiles;

/// A limit of the watchdog's on what processes of a container hold open.
pub(super) struct Pool {
    pub(super) name: &'static str,
    /// What a container may hold. Far more than programs use, and a part of what the host has.
    pub(super) limit: u64,
    held: fn(&OpenFiles) -> u64,
}

pub(super) const POOLS: [Pool; 4] = [
    // Of 128 (`/proc/sys/fs/inotify/max_user_instances`).
    Pool { name: "inotify instances", limit: 64, held: |open| open.inotify },
    // Of about 5 million (`/proc/sys/fs/epoll/max_user_watches`; it depends on the memory).
    Pool { name: "epoll watches", limit: 1 << 18, held: |open| open.watches },
    // Of 1024, before the kernel gives smaller buffers (`/proc/sys/fs/pipe-user-pages-soft`).
    Pool { name: "pipes", limit: 512, held: |open| open.pipes },
    // Of 4096: no process may send another descriptor when so many wait (its limit of open files).
    Pool { name: "descriptors in flight", limit: 1024, held: |open| open.in_flight },
];

/// The limit that a container exceeds.
pub(super) fn excess(open: &OpenFiles) -> Option<String> {
    let exceeded = POOLS.iter().find(|pool| (pool.held)(open) > pool.limit)?;
    Some(format!("limit of {} {} exceeded", exceeded.limit, exceeded.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pool_has_a_limit() {
        let check = |open: OpenFiles, expect: Option<&str>| {
            assert_eq!(excess(&open).as_deref(), expect, "{open:?}");
        };
        let most =
            OpenFiles { inotify: 64, watches: 1 << 18, pipes: 512, in_flight: 1024, ..OpenFiles::default() };
        check(most, None);
        check(OpenFiles { inotify: 65, ..most }, Some("limit of 64 inotify instances exceeded"));
        let watches = (1 << 18) + 1;
        check(OpenFiles { watches, ..most }, Some("limit of 262144 epoll watches exceeded"));
        check(OpenFiles { pipes: 513, ..most }, Some("limit of 512 pipes exceeded"));
        check(OpenFiles { in_flight: 1025, ..most }, Some("limit of 1024 descriptors in flight exceeded"));
    }
}
