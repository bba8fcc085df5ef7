//! Owner labels of containers and snapshots. A sweep removes the objects of a process that has
//! ended, and no object of a living one.

use std::fmt;
use std::fs;
use std::io;

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

/// Identifies one process of one host permanently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    /// Host and PID namespace. Process numbers can only be compared within one namespace.
    pub(super) host: String,
    /// Boot id of that host. A process number means nothing after a reboot.
    pub(super) boot: String,
    pub(super) pid: u32,
    /// Start time in clock ticks since boot, because process numbers are reused.
    pub(super) started: u64,
}

impl Owner {
    /// This process.
    pub(super) fn current() -> Self {
        let pid = std::process::id();
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
        let machine = ["/etc/machine-id", "/etc/hostname", "/proc/sys/kernel/hostname"].map(read);
        let machine = machine.into_iter().find(|id| !id.is_empty()).unwrap_or_default();
        // Containers of one image often have the same machine id. Their PID namespaces differ.
        let namespace = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        let host = digest(&format!("{machine} {}", namespace.display()));
        let boot = digest(&read("/proc/sys/kernel/random/boot_id"));
        let started = match Life::of(pid) {
            Life::Started(at) => at,
            Life::Ended | Life::Unknown => UNKNOWN_START,
        };
        Self { host, boot, pid, started }
    }

    /// Parses a label.
    pub(super) fn parse(label: &str) -> Option<Self> {
        let mut fields = label.split(':');
        let owner = Self {
            host: fields.next()?.to_owned(),
            boot: fields.next()?.to_owned(),
            pid: fields.next()?.parse().ok()?,
            started: fields.next()?.parse().ok()?,
        };
        fields.next().is_none().then_some(owner)
    }

    /// Whether the owner has certainly ended, as far as `observer` can know. Always false for an
    /// owner on another host.
    pub(super) fn is_dead(&self, observer: &Self, life: impl Fn(u32) -> Life) -> bool {
        let has_ended = || match life(self.pid) {
            Life::Started(at) => self.started != UNKNOWN_START && self.started != at,
            Life::Ended => true,
            Life::Unknown => false,
        };
        self.host == observer.host && (self.boot != observer.boot || has_ended())
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}:{}", self.host, self.boot, self.pid, self.started)
    }
}

/// The start of an owner that could not read its own start.
const UNKNOWN_START: u64 = 0;

/// The state of a process number of this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    /// A process with this number started at that time, and has not ended.
    Started(u64),
    Ended,
    /// The process may live. E.g. `hidepid=2` hides the processes of other users, and a process
    /// without a free descriptor can read nothing.
    Unknown,
}

impl Life {
    pub(super) fn of(pid: u32) -> Self {
        Self::from(fs::read_to_string(format!("/proc/{pid}/stat")), || is_free(pid))
    }

    /// `stat` is the result of reading `/proc/PID/stat`. `is_free` says whether no process has the
    /// number.
    fn from(stat: io::Result<String>, is_free: impl Fn() -> bool) -> Self {
        let error = match stat {
            Ok(stat) => return start(&stat).unwrap_or(Self::Unknown),
            Err(error) => error.kind(),
        };
        if error == io::ErrorKind::NotFound && is_free() { Self::Ended } else { Self::Unknown }
    }
}

/// Whether no process has this number.
fn is_free(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) == Err(Errno::SRCH))
}

/// Field 22 of proc(5). It is counted from the last `)`, because a process name may contain
/// anything.
fn start(stat: &str) -> Option<Life> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    let is_zombie = matches!(fields.next()?, "Z" | "X");
    let started = fields.nth(18)?.parse().ok()?;
    Some(if is_zombie { Life::Ended } else { Life::Started(started) })
}

/// A hash that is short enough for names, and long enough to tell hosts apart.
fn digest(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex()[..12].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_round_trip() {
        let owner = Owner::current();
        assert_eq!(Owner::parse(&owner.to_string()), Some(owner));
        for bad in ["", "a:b:1", "a:b:x:1", "a:b:1:x", "a:b:1:2:3"] {
            assert_eq!(Owner::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn an_owner_is_dead_only_if_it_certainly_ended() {
        let observer = Owner { host: "h".into(), boot: "b".into(), pid: 1, started: 10 };
        let check = |owner: Owner, life: Life, dead: bool| {
            assert_eq!(owner.is_dead(&observer, |_| life), dead, "{owner:?} {life:?}");
        };
        let owner = Owner { pid: 7, ..observer.clone() };
        check(owner.clone(), Life::Started(10), false);
        check(owner.clone(), Life::Ended, true);
        check(owner.clone(), Life::Unknown, false);
        check(owner.clone(), Life::Started(11), true);
        check(Owner { started: UNKNOWN_START, ..owner.clone() }, Life::Started(11), false);
        check(Owner { started: UNKNOWN_START, ..owner }, Life::Ended, true);
        check(Owner { boot: "earlier".into(), ..observer.clone() }, Life::Started(10), true);
        check(Owner { host: "other".into(), ..observer.clone() }, Life::Ended, false);
        check(Owner { host: "other".into(), boot: "earlier".into(), ..observer.clone() }, Life::Ended, false);
    }

    #[test]
    fn a_process_that_cannot_be_read_may_live() {
        let stat = |state: &str| {
            let rest: Vec<String> = (4..30).map(|field| field.to_string()).collect();
            Ok(format!("7 (a) b) {state} {}", rest.join(" ")))
        };
        let failed = |number: i32| Err(io::Error::from_raw_os_error(number));
        let check = |stat: io::Result<String>, is_free: bool, expect: Life| {
            let name = format!("{stat:?} {is_free}");
            assert_eq!(Life::from(stat, || is_free), expect, "{name}");
        };
        check(stat("S"), false, Life::Started(22));
        check(stat("Z"), false, Life::Ended);
        check(Ok(String::new()), false, Life::Unknown);
        const ENOENT: i32 = 2;
        check(failed(ENOENT), true, Life::Ended);
        // `hidepid=2`.
        check(failed(ENOENT), false, Life::Unknown);
        // ESRCH, EACCES, EMFILE.
        for error in [3, 13, 24] {
            check(failed(error), true, Life::Unknown);
        }
    }

    #[test]
    fn this_process_is_alive() {
        let owner = Owner::current();
        assert_ne!(owner.started, UNKNOWN_START);
        assert!(!owner.is_dead(&owner, Life::of));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        assert_eq!(Life::of(child.id()), Life::Ended);
    }
}
