//! Reads from the kernel's log why it killed processes of a container: because the container was at
//! its memory limit, or because the host lacked memory.
//!
//! With cgroup v2 an engine reports both alike, since the kernel counts both in the container's
//! `memory.events`.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::Shared;

/// The log's records. Root can read them, and everybody if `kernel.dmesg_restrict` is 0. Containers
/// have no such device.
const LOG: &str = "/dev/kmsg";
/// Maximum size of a record. A read into a smaller buffer fails.
const MAX_RECORD: usize = 16 * 1024;
/// Maximum number of records that are read. A kernel's log has some thousands, and grows meanwhile.
const MAX_RECORDS: usize = 100_000;
/// The start of a record about an out-of-memory kill (Linux 5.0):
/// `oom-kill:constraint=…,oom_memcg=/docker/ID,task_memcg=/docker/ID,task=NAME,…`. If the host
/// lacked memory, `global_oom` is in place of `oom_memcg=…`.
const KILL: &str = "oom-kill:";
/// The group that met its limit.
const LIMITED: &str = "oom_memcg=";
/// The group of the killed process.
const KILLED: &str = "task_memcg=";
/// The killed process chose the text of this field itself. So it is not read.
const NAME: &str = ",task=";
/// The kernel's own records have lower numbers. Processes wrote the others.
const FIRST_OF_PROCESSES: u32 = 8;

impl Shared {
    /// Whether the kernel killed processes of the container because the host, or a group around the
    /// container, lacked memory. False if it killed any for the container's own limit, or if the
    /// log cannot be read.
    pub(super) async fn lacked_memory_of_host(&self, id: &str) -> bool {
        if !self.is_on_this_host() || id.is_empty() {
            return false;
        }
        let id = id.to_owned();
        // The log may have thousands of records, so the read may block.
        let read = tokio::task::spawn_blocking(move || records().map(|records| blames_host(&records, &id)));
        match read.await.map_err(io::Error::other).flatten() {
            Ok(blames_host) => blames_host,
            Err(error) => {
                tracing::debug!(%error, "the kernel's log cannot be read");
                false
            }
        }
    }
}

/// The log's records about out-of-memory kills.
fn records() -> io::Result<Vec<String>> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let mut log = File::options().read(true).custom_flags(flags).open(LOG)?;
    let mut record = vec![0; MAX_RECORD];
    let mut kills = Vec::new();
    for _ in 0..MAX_RECORDS {
        match log.read(&mut record) {
            Ok(0) => break,
            Ok(count) => {
                let text = String::from_utf8_lossy(&record[..count]);
                kills.extend(text.contains(KILL).then(|| text.into_owned()));
            }
            // All records were read.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            // The next record was overwritten meanwhile.
            Err(error) if error.raw_os_error() == Some(Errno::PIPE.raw_os_error()) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(kills)
}

/// Whether the records have kills in the container `id`, and none of them for its own limit.
fn blames_host(records: &[String], id: &str) -> bool {
    let of_container: Vec<bool> = records.iter().filter_map(|record| was_own_limit(record, id)).collect();
    !of_container.is_empty() && !of_container.contains(&true)
}

/// Whether a process of the container `id` was killed for the container's own limit. `None` if the
/// record is about something else.
fn was_own_limit(record: &str, id: &str) -> Option<bool> {
    // A line is `6,1032,42965321861,-;oom-kill:…`.
    let (head, text) = record.split_once(';')?;
    let number: u32 = head.split(',').next()?.parse().ok()?;
    let fields = text.strip_prefix(KILL).filter(|_| number < FIRST_OF_PROCESSES)?.split(NAME).next()?;
    let group = |name: &str| fields.split(',').find_map(|field| field.strip_prefix(name));
    group(KILLED)?.contains(id).then(|| group(LIMITED).is_some_and(|limited| limited.contains(id)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "2220693c308be72c021c03e19ef99803f2e0358e5848b48c3ecf41cef7e0976f";
    const OTHER: &str = "77d0ac9bd1e05a16f5f8e3e9e7bfa37b9d1f83d3f7e9ea44cc0e40a2c4f0ab11";

    /// A record as Linux 6.18 writes it.
    fn kill(why: &str, killed: &str, name: &str) -> String {
        format!(
            "6,1032,42965321861,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset={ID},mems_allowed=0,{why},\
             task_memcg={killed},task={name},pid=12925,uid=0\n SUBSYSTEM=x\n"
        )
    }

    #[test]
    fn kills_are_for_the_containers_own_memory_or_the_hosts() {
        let check =
            |records: &[String], expect: bool| assert_eq!(blames_host(records, ID), expect, "{records:?}");
        let (group, other) = (format!("/docker/{ID}"), format!("/docker/{OTHER}"));
        let scope = format!("/system.slice/docker-{ID}.scope");
        let limit_of = |group: &str| format!("oom_memcg={group}");
        let own = kill(&limit_of(&group), &group, "sh");
        let hosts = kill("global_oom", &group, "sh");
        check(&[], false);
        check(std::slice::from_ref(&own), false);
        check(std::slice::from_ref(&hosts), true);
        check(&[hosts.clone(), own], false);
        // cgroups that systemd made.
        check(&[kill(&limit_of(&scope), &scope, "sh")], false);
        check(&[kill("global_oom", &scope, "sh")], true);
        // The limit of a group around the container, and of a group inside it.
        check(&[kill(&limit_of("/docker"), &group, "sh")], true);
        check(&[kill(&limit_of(&format!("{group}/inner")), &format!("{group}/inner"), "sh")], false);
        // Kills in other containers.
        check(&[kill("global_oom", &other, "sh")], false);
        check(&[hosts.clone(), kill(&limit_of(&other), &other, "sh")], true);
        // Processes choose their names, and can write records of their own.
        check(&[kill(&limit_of(&other), &other, &format!("x,task_memcg={group}"))], false);
        check(&[hosts.clone(), kill(&limit_of(&other), &group, &format!("x,oom_memcg={group}"))], true);
        check(&[hosts.replacen("6,", "12,", 1)], false);
        check(&[hosts.replacen("oom-kill:", "init: oom-kill:", 1)], false);
    }

    #[test]
    fn the_log_is_read_where_it_can_be() {
        // The log cannot be read by every user, or in every container.
        let Ok(records) = records() else { return };
        assert!(records.iter().all(|record| record.contains(KILL)), "{records:?}");
    }
}
