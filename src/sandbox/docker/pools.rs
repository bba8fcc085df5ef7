//! Kernel objects that are limited for all containers of a user together. One container could take
//! them all.

use super::open_files::OpenFiles;

/// The watchdog's limit on one kind of object that a container holds open.
pub(super) struct Pool {
    pub(super) name: &'static str,
    /// Maximum number for a container. It is far more than programs use, and a part of what the
    /// host has.
    pub(super) limit: u64,
    held: fn(&OpenFiles) -> u64,
}

pub(super) const POOLS: [Pool; 4] = [
    // The host has 128 (`/proc/sys/fs/inotify/max_user_instances`).
    Pool { name: "inotify instances", limit: 64, held: |open| open.inotify },
    // The host has about 5 million, depending on its memory
    // (`/proc/sys/fs/epoll/max_user_watches`).
    Pool { name: "epoll watches", limit: 1 << 18, held: |open| open.watches },
    // After 1024 the kernel gives smaller buffers (`/proc/sys/fs/pipe-user-pages-soft`).
    Pool { name: "pipes", limit: 512, held: |open| open.pipes },
    // If 4096 wait, no process may send another descriptor (its limit of open files).
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
