//! Pid files and sockets of killed daemons, which prevent the next start.
//!
//! dockerd refuses to start while its pid file names any living process, and waits for a containerd whose pid file or socket
//! exists although the process does not. A machine restored from a snapshot and a restarted container have both.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::error::FixError;
use super::{Events, Invocation, Privilege, System};

/// A daemon's files in `/run`.
struct Daemon {
    /// The process's name, as the kernel knows it.
    name: &'static str,
    pid_file: &'static str,
    sockets: &'static [&'static str],
}

const DAEMONS: [Daemon; 4] = [
    Daemon { name: "dockerd", pid_file: "/run/docker.pid", sockets: &["/run/docker.sock"] },
    // Written by the init script, for the same process.
    Daemon { name: "dockerd", pid_file: "/run/docker-ssd.pid", sockets: &[] },
    // The containerd that dockerd starts.
    Daemon {
        name: "containerd",
        pid_file: "/run/docker/containerd/containerd.pid",
        sockets: &[
            "/run/docker/containerd/containerd.sock",
            "/run/docker/containerd/containerd.sock.ttrpc",
            "/run/docker/containerd/containerd-debug.sock",
        ],
    },
    // The system's containerd, which dockerd prefers if its socket exists.
    Daemon {
        name: "containerd",
        pid_file: "/run/containerd/containerd.pid",
        sockets: &["/run/containerd/containerd.sock", "/run/containerd/containerd.sock.ttrpc"],
    },
];

/// The process that dockerd's pid file names, if it is a living dockerd.
pub(super) fn running_dockerd(system: &System) -> Option<u32> {
    let pid = parse_pid(&fs::read_to_string(system.path(DAEMONS[0].pid_file)).ok()?)?;
    is_running(system, pid, DAEMONS[0].name).then_some(pid)
}

/// Announces and removes the files of dead daemons.
pub(super) fn clear(system: &System, privilege: Privilege, events: &mut Events<'_>) -> Result<(), FixError> {
    let stale = find(system, privilege);
    let known: Vec<String> = stale
        .iter()
        .filter(|path| system.path(path).exists())
        .map(|path| path.display().to_string())
        .collect();
    if !known.is_empty() {
        events.action(format!("Removing stale files of a dead daemon: {} …", known.join(", ")));
    }
    if privilege == Privilege::Sudo && !stale.is_empty() {
        let paths = stale.iter().map(|path| path.display().to_string());
        let words = ["sudo", "-n", "rm", "-f", "--"].map(str::to_owned).into_iter().chain(paths);
        return system.run_checked(&Invocation::new(words), &mut || {}).map(|_| ());
    }
    for path in stale {
        match fs::remove_file(system.path(&path)) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                return Err(FixError::Unremovable { path, source });
            }
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

/// Pid files that name no living process of that daemon, and sockets without a listener.
fn find(system: &System, privilege: Privilege) -> Vec<PathBuf> {
    let listening = listening_sockets(system);
    let mut stale = Vec::new();
    for daemon in &DAEMONS {
        if let Some(text) = read(system, privilege, daemon.pid_file) {
            if parse_pid(&text).is_some_and(|pid| is_running(system, pid, daemon.name)) {
                continue;
            }
            stale.push(PathBuf::from(daemon.pid_file));
        }
        // Only root can read the folders, so with sudo it is unknown what exists; removing a missing file is no error.
        let seen = |socket: &&str| privilege == Privilege::Sudo || system.path(socket).exists();
        // Without the kernel's list of listeners no socket counts as dead.
        let is_dead = |socket: &&str| listening.as_ref().is_some_and(|alive| !alive.contains(*socket));
        let dead = daemon.sockets.iter().copied().filter(seen).filter(is_dead);
        stale.extend(dead.map(PathBuf::from));
    }
    stale
}

fn read(system: &System, privilege: Privilege, path: &str) -> Option<String> {
    match fs::read_to_string(system.path(path)) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied && privilege == Privilege::Sudo => {
            let output = system.run(&Invocation::new(["sudo", "-n", "cat", path])).ok()?;
            output.exit.is_success().then_some(output.stdout)
        }
        Err(_) => None,
    }
}

fn parse_pid(text: &str) -> Option<u32> {
    text.trim().parse().ok().filter(|pid| *pid > 0)
}

/// Whether the process lives and is that program. A zombie does not count: without an init process it is never reaped.
pub(super) fn is_running(system: &System, pid: u32, name: &str) -> bool {
    let stat = fs::read_to_string(system.path(format!("/proc/{pid}/stat"))).unwrap_or_default();
    // `pid (name) state …`; a name may hold parentheses itself.
    let Some((head, tail)) = stat.rsplit_once(')') else { return false };
    let state = tail.trim_start().chars().next();
    head.split_once('(').is_some_and(|(_, comm)| comm == name) && !matches!(state, Some('Z' | 'X') | None)
}

/// Paths of sockets with a listener, from the kernel's table, which all users may read.
fn listening_sockets(system: &System) -> Option<BTreeSet<String>> {
    /// The kernel's flag for a socket that accepts connections.
    const ACCEPTS: &str = "00010000";
    let table = fs::read_to_string(system.path("/proc/net/unix")).ok()?;
    let path = |line: &str| {
        let mut fields = line.split_whitespace();
        let flags = fields.nth(3)?;
        let path = Path::new(fields.nth(3)?);
        // `/var/run` is a link to `/run`, and the table has the path that the listener used.
        let path =
            path.strip_prefix("/var").map_or_else(|_| path.to_owned(), |rest| Path::new("/").join(rest));
        (flags == ACCEPTS).then(|| path.display().to_string())
    };
    Some(table.lines().filter_map(path).collect())
}

#[cfg(test)]
mod tests {
    use super::super::fake::Machine;
    use super::*;

    const OWN_PID: &str = "/run/docker/containerd/containerd.pid";
    const OWN_SOCKET: &str = "/run/docker/containerd/containerd.sock";
    const SYSTEM_SOCKET: &str = "/run/containerd/containerd.sock";

    /// Which of these files are removed while these processes live and these sockets have listeners.
    fn check(files: &[(&str, &str)], processes: &[(u32, &str, char)], listening: &[&str], expected: &[&str]) {
        let machine = files.iter().fold(Machine::new(), |machine, (path, text)| machine.file(path, text));
        let machine = processes.iter().fold(machine, |m, (pid, comm, state)| m.process(*pid, comm, *state));
        let machine = machine.listening(listening);
        let system = machine.system();
        let mut printed = Vec::new();
        clear(&system, Privilege::Root, &mut Events::new(&mut |event| printed.push(format!("{event:?}"))))
            .unwrap();
        let gone: Vec<&str> =
            files.iter().map(|(path, _)| *path).filter(|path| !system.path(path).exists()).collect();
        assert_eq!(gone, expected);
        for path in expected {
            assert!(printed[0].contains(path), "removed without an announcement: {path}; {printed:?}");
        }
        assert_eq!(printed.is_empty(), expected.is_empty(), "{printed:?}");
    }

    #[test]
    fn pid_files_of_dead_or_other_processes_are_removed() {
        let pid = [("/run/docker.pid", "77")];
        check(&pid, &[], &[], &["/run/docker.pid"]);
        check(&pid, &[(77, "dockerd", 'S')], &[], &[]);
        check(&pid, &[(77, "bash", 'S')], &[], &["/run/docker.pid"]);
        check(&pid, &[(77, "dockerd", 'Z')], &[], &["/run/docker.pid"]);
        check(&pid, &[(77, "x) S (dockerd", 'S')], &[], &["/run/docker.pid"]);
        check(&pid, &[(7, "dockerd", 'S')], &[], &["/run/docker.pid"]);
        check(&[("/run/docker.pid", "77\n")], &[(77, "dockerd", 'D')], &[], &[]);
        for broken in ["", "0", "-1", "none", "99999999999"] {
            check(&[("/run/docker.pid", broken)], &[(1, "dockerd", 'S')], &[], &["/run/docker.pid"]);
        }
        check(&[(OWN_PID, "5")], &[(5, "dockerd", 'S')], &[], &[OWN_PID]);
        check(&[("/run/docker-ssd.pid", "5")], &[], &[], &["/run/docker-ssd.pid"]);
        check(&[("/run/other.pid", "5")], &[], &[], &[]);
    }

    #[test]
    fn sockets_without_a_listener_are_removed() {
        check(&[("/run/docker.sock", "")], &[], &[], &["/run/docker.sock"]);
        check(&[("/run/docker.sock", "")], &[], &["/var/run/docker.sock"], &[]);
        check(&[(SYSTEM_SOCKET, "")], &[], &[SYSTEM_SOCKET], &[]);
        check(&[(SYSTEM_SOCKET, "")], &[], &[], &[SYSTEM_SOCKET]);
        // A living daemon keeps its socket even before it listens.
        let starting = [(OWN_PID, "5"), (OWN_SOCKET, "")];
        check(&starting, &[(5, "containerd", 'S')], &[], &[]);
        check(&starting, &[], &[], &[OWN_PID, OWN_SOCKET]);
        // A dead dockerd does not imply a dead containerd.
        let both = [("/run/docker.pid", "4"), ("/run/docker.sock", ""), (OWN_PID, "5"), (OWN_SOCKET, "")];
        check(&both, &[(5, "containerd", 'S')], &[OWN_SOCKET], &["/run/docker.pid", "/run/docker.sock"]);
    }

    #[test]
    fn with_sudo_the_files_are_removed_by_a_command() {
        let machine = Machine::new().uid(1000).file("/run/docker.pid", "77").listening(&[SYSTEM_SOCKET]);
        clear(&machine.system(), Privilege::Sudo, &mut Events::new(&mut |_| {})).unwrap();
        assert_eq!(
            machine.commands(),
            [format!(
                "sudo -n rm -f -- /run/docker.pid /run/docker.sock {OWN_SOCKET} {OWN_SOCKET}.ttrpc \
                 /run/docker/containerd/containerd-debug.sock {SYSTEM_SOCKET}.ttrpc"
            )]
        );
        // The command is a fake, and the process itself must not try: the files are root's.
        assert!(machine.system().path("/run/docker.pid").exists());
    }
}
