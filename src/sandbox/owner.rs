//! Owner labels: a sweep removes what a killed process left behind, and nothing that a living one uses.

use std::fmt;
use std::fs;

/// Identifies one process of one host permanently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    /// Host and PID namespace: process numbers can be compared only within it.
    pub(super) host: String,
    /// Boot id of that host; process numbers of an earlier boot are meaningless.
    pub(super) boot: String,
    pub(super) pid: u32,
    /// Start time in clock ticks since boot: process numbers are reused.
    pub(super) started: u64,
}

impl Owner {
    /// This process.
    pub(super) fn current() -> Self {
        let pid = std::process::id();
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
        let machine = ["/etc/machine-id", "/etc/hostname", "/proc/sys/kernel/hostname"].map(read);
        let machine = machine.into_iter().find(|id| !id.is_empty()).unwrap_or_default();
        // Containers made from one image often share their machine id; their PID namespaces differ.
        let namespace = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        let host = digest(&format!("{machine} {}", namespace.display()));
        let boot = digest(&read("/proc/sys/kernel/random/boot_id"));
        Self { host, boot, pid, started: start_time(pid).unwrap_or_default() }
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

    /// Whether the owner has certainly ended, as far as `observer` can tell. Always `false` for owners on other hosts.
    pub(super) fn is_dead(&self, observer: &Self, start_time: impl Fn(u32) -> Option<u64>) -> bool {
        self.host == observer.host
            && (self.boot != observer.boot || start_time(self.pid) != Some(self.started))
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}:{}", self.host, self.boot, self.pid, self.started)
    }
}

/// Start time of a living process: field 22 of proc(5), counted from the last `)` because names may contain anything.
pub(super) fn start_time(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    let is_zombie = matches!(fields.next()?, "Z" | "X");
    let started = fields.nth(18)?.parse().ok()?;
    (!is_zombie).then_some(started)
}

/// Short enough for names, long enough to distinguish hosts.
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
        let check = |owner: Owner, alive: Option<u64>, dead: bool| {
            assert_eq!(owner.is_dead(&observer, |_| alive), dead, "{owner:?} {alive:?}");
        };
        check(Owner { pid: 7, ..observer.clone() }, Some(10), false);
        check(Owner { pid: 7, ..observer.clone() }, None, true);
        check(Owner { pid: 7, ..observer.clone() }, Some(11), true);
        check(Owner { boot: "earlier".into(), ..observer.clone() }, Some(10), true);
        check(Owner { host: "other".into(), ..observer.clone() }, None, false);
        check(Owner { host: "other".into(), boot: "earlier".into(), ..observer.clone() }, None, false);
    }

    #[test]
    fn this_process_is_alive() {
        let owner = Owner::current();
        assert!(!owner.is_dead(&owner, start_time));
    }
}
