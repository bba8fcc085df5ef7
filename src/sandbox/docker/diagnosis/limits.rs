//! The limits of a container on this machine: one table, with the enforcer of each limit.

use bollard::models::{SystemInfo, SystemVersion};

use super::super::build_disk::MAX_BUILD_BYTES;
use super::super::launch::OPEN_FILES;
use super::super::pools::POOLS;
use super::super::quota::POLLED_EVERY;
use super::super::tcp::PART;
use super::super::terminals::are_limited;
use super::super::writable_layer::{MAX_FILES, MAX_PATHS};
use crate::guest::MAX_TERMINALS;
use crate::sandbox::diagnosis::{By, Limit};

/// The facts that the table depends on.
pub(super) struct Facts<'a> {
    pub(super) info: &'a SystemInfo,
    pub(super) version: &'a SystemVersion,
    pub(super) mounts: &'a str,
    /// Whether this user can count the bytes that containers write, and change their cgroups.
    pub(super) reads_layers: bool,
    /// Whether the machine limits socket buffers (cgroup v1).
    pub(super) has_tcp_limits: bool,
}

/// The table.
pub(super) fn limits(facts: &Facts<'_>) -> Vec<Limit> {
    use By::{Cgroup, Kernel, Nothing, Quota, Seccomp, Watchdog};
    let info = facts.info;
    let if_present = |present: bool, by: By| if present { by } else { Nothing };
    let cgroup = |present: Option<bool>| if_present(present == Some(true), Cgroup);
    let watchdog = if_present(facts.reads_layers, Watchdog);
    let has_quotas = super::has_quotas(info, facts.mounts);
    let disk = if has_quotas { Quota } else { watchdog };
    let refused = |other: By| (Seccomp, other);
    let both = |by: By| (by, by);
    let terminals = if_present(are_limited(info, facts.version), Kernel);
    let (tcp, tcp_detail) = if info.cgroup_version.is_some_and(|version| version.to_string() == "2") {
        (cgroup(info.memory_limit), "counted as memory".to_owned())
    } else {
        let part = format!("1/{PART} of the memory, on top of it");
        (if_present(facts.reads_layers && facts.has_tcp_limits, Cgroup), part)
    };
    let seconds = POLLED_EVERY.as_secs();
    let one_call = if has_quotas { both(Quota) } else { refused(Nothing) };
    let mut rows = vec![
        ("memory", both(cgroup(info.memory_limit)), "`memory_mb`, without swap".to_owned()),
        ("socket buffers", both(tcp), tcp_detail),
        ("processes", both(cgroup(info.pids_limit)), "`pids`".to_owned()),
        ("processor time", both(cgroup(info.cpu_cfs_quota)), "`cpus`".to_owned()),
        ("open files", both(Kernel), format!("{} a process", OPEN_FILES.1)),
        ("size of a file", both(Kernel), "`storage_mb`".to_owned()),
        ("disk", both(disk), format!("`storage_mb`; the watchdog looks every {seconds} s")),
        ("disk in one call", one_call, "`fallocate` and requests like it are refused".to_owned()),
        ("deleted files in flight", both(disk), "by the free space that the disk loses".to_owned()),
        ("files and folders", both(watchdog), format!("{MAX_FILES}, and {} MiB of paths", MAX_PATHS >> 20)),
        (
            "disk of a build",
            both(watchdog),
            format!("{} GiB; not what `FROM`, `COPY` and `ADD` bring", MAX_BUILD_BYTES >> 30),
        ),
        ("pseudo-terminals", both(terminals), MAX_TERMINALS.to_string()),
    ];
    rows.extend(POOLS.iter().map(|pool| (pool.name, both(watchdog), pool.limit.to_string())));
    rows.extend([
        ("asynchronous I/O", refused(Nothing), "`io_setup` and `io_uring` are refused".to_owned()),
        (
            "disk reads in one call",
            refused(Nothing),
            "`O_DIRECT` is refused: no signal ends such a read".to_owned(),
        ),
        ("disk throughput", both(Nothing), "containers and the host share it".to_owned()),
        ("size of a pipe", refused(Nothing), "a pipe cannot be made larger".to_owned()),
        ("pending signals", both(Nothing), "all containers share those of the user root".to_owned()),
        ("message queues", both(Nothing), "all containers share those of the user root".to_owned()),
        ("network", both(Kernel), "loopback only, unless the task asks for more".to_owned()),
        ("AF_VSOCK sockets", refused(Nothing), "refused; newer engines refuse them too".to_owned()),
        (
            "messages by the host's counters",
            both(Nothing),
            "free disk, free memory, load, TCP memory and pending signals can be read".to_owned(),
        ),
    ]);
    let row = |(name, (own_tasks, other_tasks), detail): (&str, (By, By), String)| Limit {
        name: name.to_owned(),
        own_tasks,
        other_tasks,
        detail,
    };
    rows.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::diagnosis::limits_table;

    const DOCKER: &str = r#"{"Components":[{"Name":"Engine","Version":"20.10"}]}"#;
    const EXT4: &str = r#"{"MemoryLimit":true,"PidsLimit":true,"CpuCfsQuota":true,"CgroupVersion":"1","Driver":"overlay2","DriverStatus":[["Backing Filesystem","extfs"]]}"#;

    fn of(info: &str, version: &str, mounts: &str, reads_layers: bool) -> Vec<Limit> {
        limits(&Facts {
            info: &serde_json::from_str(info).unwrap(),
            version: &serde_json::from_str(version).unwrap(),
            mounts,
            reads_layers,
            has_tcp_limits: true,
        })
    }

    #[test]
    fn the_table_says_what_enforces_each_limit() {
        insta::assert_snapshot!(limits_table(&of(EXT4, DOCKER, "", true)), @r"
        limit of a container             own tasks  other tasks
        memory                           cgroup     cgroup       `memory_mb`, without swap
        socket buffers                   cgroup     cgroup       1/8 of the memory, on top of it
        processes                        cgroup     cgroup       `pids`
        processor time                   cgroup     cgroup       `cpus`
        open files                       kernel     kernel       4096 a process
        size of a file                   kernel     kernel       `storage_mb`
        disk                             watchdog   watchdog     `storage_mb`; the watchdog looks every 3 s
        disk in one call                 seccomp    nothing      `fallocate` and requests like it are refused
        deleted files in flight          watchdog   watchdog     by the free space that the disk loses
        files and folders                watchdog   watchdog     250000, and 32 MiB of paths
        disk of a build                  watchdog   watchdog     10 GiB; not what `FROM`, `COPY` and `ADD` bring
        pseudo-terminals                 kernel     kernel       64
        inotify instances                watchdog   watchdog     64
        epoll watches                    watchdog   watchdog     262144
        pipes                            watchdog   watchdog     512
        descriptors in flight            watchdog   watchdog     1024
        asynchronous I/O                 seccomp    nothing      `io_setup` and `io_uring` are refused
        disk reads in one call           seccomp    nothing      `O_DIRECT` is refused: no signal ends such a read
        disk throughput                  nothing    nothing      containers and the host share it
        size of a pipe                   seccomp    nothing      a pipe cannot be made larger
        pending signals                  nothing    nothing      all containers share those of the user root
        message queues                   nothing    nothing      all containers share those of the user root
        network                          kernel     kernel       loopback only, unless the task asks for more
        AF_VSOCK sockets                 seccomp    nothing      refused; newer engines refuse them too
        messages by the host's counters  nothing    nothing      free disk, free memory, load, TCP memory and pending signals can be read
        ");
        assert_eq!(limits_table(&[]), "");
    }

    #[test]
    fn limits_depend_on_the_engine_its_disk_and_the_user() {
        let check = |found: &[Limit], name: &str, own: By, other: By| {
            let row = found.iter().find(|limit| limit.name == name).unwrap();
            assert_eq!((row.own_tasks, row.other_tasks), (own, other), "{name}");
        };
        use By::{Cgroup, Kernel, Nothing, Quota, Seccomp, Watchdog};
        // A user of the group `docker`.
        let plain = of(EXT4, DOCKER, "", false);
        for name in ["disk", "deleted files in flight", "files and folders", "disk of a build", "pipes"] {
            check(&plain, name, Nothing, Nothing);
        }
        check(&plain, "socket buffers", Nothing, Nothing);
        check(&plain, "memory", Cgroup, Cgroup);
        check(&plain, "disk in one call", Seccomp, Nothing);
        let xfs = r#"{"Driver":"overlay2","DockerRootDir":"/var/lib/docker","CgroupVersion":"2","MemoryLimit":true,"DriverStatus":[["Backing Filesystem","xfs"]]}"#;
        let quota = of(xfs, DOCKER, "/dev/b /var/lib/docker xfs rw,prjquota 0 0\n", true);
        for name in ["disk", "deleted files in flight", "disk in one call"] {
            check(&quota, name, Quota, Quota);
        }
        check(&quota, "files and folders", Watchdog, Watchdog);
        check(&quota, "socket buffers", Cgroup, Cgroup);
        check(&quota, "processes", Nothing, Nothing);
        check(&quota, "pseudo-terminals", Kernel, Kernel);
        let podman = of(EXT4, r#"{"Components":[{"Name":"Podman Engine","Version":"4"}]}"#, "", true);
        check(&podman, "pseudo-terminals", Nothing, Nothing);
    }
}
