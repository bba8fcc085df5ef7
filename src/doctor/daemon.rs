//! Starting a Docker daemon that is installed, with or without an init system.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::client::ping;
use super::error::{FixError, tail};
use super::heartbeat::Heartbeat;
use super::stale::{self, is_running};
use super::{Events, Invocation, Privilege, System};
use crate::sandbox::discovery::{DEFAULT_SOCKET, Endpoint, ProbeError};

/// The log of a daemon that is started without an init system; the package's init script uses the same file.
const LOG: &str = "/var/log/docker.log";
/// Pause between two pings of a daemon that is starting.
const POLL: Duration = Duration::from_millis(100);
/// Refusals in succession after which this user may not connect. A daemon makes its socket before it gives it to its group.
const REFUSALS: u32 = 3;
/// Starts the daemon detached from terminal and folder, so that it outlives this process, and prints its process id, which
/// `exec` keeps. A user's `PATH` may leave out the folders of iptables and containerd.
const DETACHED: &str =
    r#"cd / && echo $$ && PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin" exec "$0" >>"$1" 2>&1 </dev/null"#;

/// What starts services on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Init {
    Systemd,
    /// A classic init with the package's script.
    Script,
    None,
}

/// Starts dockerd and waits until it answers.
pub(super) fn start(system: &System, dockerd: &Path, events: &mut Events<'_>) -> Result<(), FixError> {
    let privilege = Privilege::of(system);
    let as_root = |words: &[&str], by_hand: &str| {
        let command = Invocation::new(words.iter().copied());
        privilege.apply(command).ok_or_else(|| FixError::NeedsRoot { command: by_hand.to_owned() })
    };
    match Init::of(system) {
        Init::Systemd => {
            let command = as_root(&["systemctl", "start", "docker"], "systemctl start docker")?;
            events.action("Starting Docker (systemctl start docker) …");
            system.run_checked(&command, &mut || {})?;
            await_answer(system, None, events, || journal(system))
        }
        Init::Script => {
            let command = as_root(&["service", "docker", "start"], "service docker start")?;
            stale::clear(system, privilege, events)?;
            events.action("Starting Docker (service docker start) …");
            system.run_checked(&command, &mut || {})?;
            await_answer(system, None, events, || read_log(system))
        }
        Init::None => {
            let dockerd = dockerd.display().to_string();
            let command =
                as_root(&["setsid", "--fork", "sh", "-c", DETACHED, &dockerd, LOG], "setsid --fork dockerd")?;
            stale::clear(system, privilege, events)?;
            events.action(format!(
                "Starting `{dockerd}` in the background (no init system runs here; log: `{LOG}`) …"
            ));
            let output = system.run_checked(&command, &mut || {})?;
            await_answer(system, output.stdout.trim().parse().ok(), events, || read_log(system))
        }
    }
}

/// Waits for a dockerd that runs but does not answer yet.
pub(super) fn wait_for(system: &System, pid: u32, events: &mut Events<'_>) -> Result<(), FixError> {
    events.action(format!("Waiting for dockerd (process {pid}) to answer …"));
    await_answer(system, Some(pid), events, || read_log(system)).map_err(|error| match error {
        FixError::StartTimedOut { socket, tail, .. } if is_running(system, pid, "dockerd") => {
            FixError::Unresponsive { pid, socket, tail }
        }
        error => error,
    })
}

/// Pings the socket until the daemon answers or refuses this user, the time is over, or the process `pid` has ended.
fn await_answer(
    system: &System,
    pid: Option<u32>,
    events: &mut Events<'_>,
    log: impl Fn() -> String,
) -> Result<(), FixError> {
    let endpoint = Endpoint::Unix(system.path(DEFAULT_SOCKET));
    await_ping(system, pid, events, log, || ping(&endpoint))
}

/// [`await_answer`], with this ping.
fn await_ping(
    system: &System,
    pid: Option<u32>,
    events: &mut Events<'_>,
    log: impl Fn() -> String,
    mut ping: impl FnMut() -> Result<(), ProbeError>,
) -> Result<(), FixError> {
    let socket = system.path(DEFAULT_SOCKET);
    let mut heartbeat = Heartbeat::new(events, "dockerd is starting");
    let began = Instant::now();
    let mut refusals = 0;
    loop {
        refusals = match ping() {
            Ok(()) => return Ok(()),
            Err(ProbeError::Denied) => refusals + 1,
            Err(_) => 0,
        };
        if refusals == REFUSALS {
            return Err(FixError::Denied { socket });
        }
        let has_ended =
            pid.is_some_and(|pid| !["dockerd", "sh"].iter().any(|name| is_running(system, pid, name)));
        if has_ended || began.elapsed() >= system.start_timeout {
            let seconds = began.elapsed().as_secs();
            return Err(FixError::StartTimedOut { socket, seconds, tail: tail(&log()) });
        }
        heartbeat.beat_if_due();
        thread::sleep(POLL);
    }
}

impl Init {
    fn of(system: &System) -> Self {
        // systemd's own test (sd_booted(3)).
        if system.path("/run/systemd/system").is_dir() {
            return Self::Systemd;
        }
        let first = std::fs::read_to_string(system.path("/proc/1/comm")).unwrap_or_default();
        let is_init = first.trim().contains("init");
        let has_script =
            system.path("/etc/init.d/docker").is_file() && system.find_program("service").is_some();
        if is_init && has_script { Self::Script } else { Self::None }
    }
}

fn read_log(system: &System) -> String {
    match std::fs::read(system.path(LOG)) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) => {
            tracing::debug!(path = LOG, %error, "cannot read the daemon's log");
            String::new()
        }
    }
}

fn journal(system: &System) -> String {
    let command = Invocation::new(["journalctl", "--no-pager", "--lines=20", "--unit=docker"]);
    system.run(&command).map(|output| output.stdout).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::fake::{Machine, Reply};
    use super::*;

    const DIRECT: &str = "setsid --fork sh -c";

    /// What is run to start the daemon, if the daemon then answers.
    fn check(machine: &Machine, expected: &[&str]) {
        for command in ["systemctl start", "service docker", DIRECT, "sudo -n"] {
            machine.when_run(command, Reply::text(0, ""), |machine| {
                machine.engine(DEFAULT_SOCKET, &[("GET /_ping", Reply::text(200, "OK"))]);
            });
        }
        start(&machine.system(), Path::new("/usr/sbin/dockerd"), &mut Events::new(&mut |_| {})).unwrap();
        let commands: Vec<String> =
            machine.commands().iter().map(|c| c.replace(&format!(" '{DETACHED}'"), "")).collect();
        assert_eq!(commands, expected);
    }

    #[test]
    fn the_init_system_starts_the_daemon() {
        let script = || {
            Machine::new()
                .file("/etc/init.d/docker", "")
                .file("/usr/sbin/service", "")
                .file("/proc/1/comm", "init\n")
        };
        check(&script(), &["service docker start"]);
        check(&script().folder("/run/systemd/system"), &["systemctl start docker"]);
        check(&script().uid(9).file("/usr/bin/sudo", ""), &["sudo -n true", "sudo -n service docker start"]);
    }

    #[test]
    fn without_an_init_system_the_daemon_is_started_directly() {
        let direct = "setsid --fork sh -c /usr/sbin/dockerd /var/log/docker.log";
        check(&Machine::new(), &[direct]);
        // The script is there, but pid 1 is a shell or the like, as in a container.
        let script = Machine::new().file("/etc/init.d/docker", "").file("/usr/sbin/service", "");
        check(&script.file("/proc/1/comm", "bash\n"), &[direct]);
    }

    #[test]
    fn stale_files_are_removed_before_the_daemon_starts() {
        let machine = Machine::new().file("/run/docker.pid", "77");
        machine.when_run(DIRECT, Reply::text(0, ""), |machine| {
            assert!(!machine.system().path("/run/docker.pid").exists(), "dockerd would refuse to start");
            machine.engine(DEFAULT_SOCKET, &[("GET /_ping", Reply::text(200, "OK"))]);
        });
        start(&machine.system(), Path::new("/usr/sbin/dockerd"), &mut Events::new(&mut |_| {})).unwrap();
    }

    fn check_failure(machine: &Machine, expected: &str) {
        let error = start(&machine.system(), Path::new("/usr/sbin/dockerd"), &mut Events::new(&mut |_| {}))
            .unwrap_err();
        let text = error.explain().replace(&machine.system().root.display().to_string(), "");
        assert_eq!(text, expected);
    }

    #[test]
    fn the_log_of_a_daemon_that_does_not_start_is_quoted() {
        let machine = Machine::new().file(LOG, "starting\nfailed to start daemon: no space left\n");
        check_failure(
            &machine,
            "dockerd was started but does not answer on `/var/run/docker.sock` after 0 s\n  | starting\n  | failed to start daemon: no space left",
        );
        // The process has ended, so that waiting is of no use.
        let machine = machine.start_timeout(Duration::from_secs(3600));
        machine.when_run(DIRECT, Reply::text(0, "4242\n"), |_| {});
        check_failure(
            &machine,
            "dockerd was started but does not answer on `/var/run/docker.sock` after 0 s\n  | starting\n  | failed to start daemon: no space left",
        );
        let machine = Machine::new().folder("/run/systemd/system");
        machine.when_run("systemctl", Reply::text(1, "Unit docker.service is masked."), |_| {});
        check_failure(
            &machine,
            "`systemctl start docker` ended with status 1\n  | Unit docker.service is masked.",
        );
        check_failure(
            &Machine::new().uid(1000),
            "this needs root, and `sudo` asks for a password or is not installed",
        );
    }

    #[test]
    fn a_daemon_that_refuses_this_user_is_not_waited_for() {
        let check = |pings: &[ProbeError], expect: &str| {
            let machine = Machine::new().start_timeout(Duration::from_secs(3600));
            let mut number = 0;
            let ping = || {
                number += 1;
                match pings.get(number - 1) {
                    Some(ProbeError::Denied) => Err(ProbeError::Denied),
                    Some(_) => Err(ProbeError::NoSocket),
                    None => Ok(()),
                }
            };
            let ended = await_ping(&machine.system(), None, &mut Events::new(&mut |_| {}), String::new, ping);
            let ended = match &ended {
                Ok(()) => "answers",
                Err(FixError::Denied { .. }) => "denied",
                Err(_) => "failed",
            };
            assert_eq!(ended, expect, "{pings:?}");
        };
        check(&[], "answers");
        check(&[ProbeError::NoSocket, ProbeError::NoSocket], "answers");
        // The socket is not its group's yet.
        check(&[ProbeError::NoSocket, ProbeError::Denied, ProbeError::Denied], "answers");
        check(&[ProbeError::Denied, ProbeError::Denied, ProbeError::NoSocket, ProbeError::Denied], "answers");
        check(&[ProbeError::NoSocket, ProbeError::Denied, ProbeError::Denied, ProbeError::Denied], "denied");
    }

    #[test]
    fn a_running_daemon_is_waited_for() {
        let machine = Machine::new().process(77, "dockerd", 'S').file(LOG, "busy\n");
        let wait = |machine: &Machine| wait_for(&machine.system(), 77, &mut Events::new(&mut |_| {}));
        let error = wait(&machine).unwrap_err();
        assert!(
            matches!(&error, FixError::Unresponsive { pid: 77, tail, .. } if tail == "busy"),
            "{error:?}"
        );
        machine.engine(DEFAULT_SOCKET, &[("GET /_ping", Reply::text(200, "OK"))]);
        wait(&machine).unwrap();
        assert_eq!(machine.commands(), [""; 0], "no second daemon is started");
    }
}
