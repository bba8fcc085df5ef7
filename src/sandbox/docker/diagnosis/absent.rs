//! Why no engine answers, and how to mend that.

use std::fs;
use std::path::PathBuf;

use super::super::discovery::{DEFAULT_SOCKET, DockerHost, Endpoint, Environment, NotFound, ProbeFailure};
use crate::sandbox::diagnosis::{Finding, Host};

/// The part of the script that installs and starts an engine.
const PART: &str = "engine";

/// The row of an engine that does not answer.
pub(super) fn explain(host: &Host, environment: &Environment, error: &NotFound) -> Finding {
    Absence::of(host, environment, error).finding()
}

/// Why this machine's engine does not answer.
#[derive(Debug, PartialEq, Eq)]
enum Absence {
    /// `DOCKER_HOST` names an endpoint that does not answer, and this machine cannot start it.
    NotLocal {
        host: String,
        why: String,
    },
    /// The engine listens, but this user may not connect.
    Denied {
        socket: PathBuf,
    },
    /// The engine's process lives, but does not answer yet.
    Running {
        pid: u32,
    },
    /// The engine is installed, but does not run.
    Stopped {
        dockerd: PathBuf,
    },
    NotInstalled,
}

impl Absence {
    fn of(host: &Host, environment: &Environment, error: &NotFound) -> Self {
        let failures = match error {
            NotFound::UnsupportedHost { host } => {
                return Self::NotLocal { host: host.clone(), why: error.to_string() };
            }
            NotFound::NoAnswer { failures } => failures,
        };
        match DockerHost::of(environment) {
            DockerHost::Endpoint(endpoint) if !is_default(host, &endpoint) => {
                let why = failures.first().map(|failure| failure.cause.to_string()).unwrap_or_default();
                return Self::NotLocal { host: environment.docker_host.clone().unwrap_or_default(), why };
            }
            DockerHost::Endpoint(_) | DockerHost::Unset | DockerHost::Unsupported(_) => {}
        }
        if let Some(socket) = denied(host, failures) {
            return Self::Denied { socket };
        }
        if let Some(pid) = running_dockerd(host) {
            return Self::Running { pid };
        }
        host.find_program("dockerd").map_or(Self::NotInstalled, |dockerd| Self::Stopped { dockerd })
    }

    fn finding(&self) -> Finding {
        match self {
            Self::NotLocal { host, why } => Finding::missing(format!("DOCKER_HOST is `{host}`: {why}"))
                .hint("start the engine there, or unset DOCKER_HOST"),
            Self::Denied { socket } => Finding::missing(format!("access to `{}` is denied", socket.display())).hint(
                "run `sudo usermod -aG docker \"$USER\"`, then log in again (members of that group are as powerful as root)",
            ),
            Self::Running { pid } => {
                Finding::missing(format!("dockerd runs (process {pid}) but does not answer"))
                    .hint("`termsmith doctor --fix` waits for it")
                    .provided_by(PART)
            }
            Self::Stopped { dockerd } => {
                Finding::missing(format!("`{}` is installed but not running", dockerd.display()))
                    .hint("`termsmith doctor --fix` starts it")
                    .provided_by(PART)
            }
            Self::NotInstalled => {
                Finding::missing("no Docker or Podman answers, and Docker is not installed")
                    .hint("`termsmith doctor --fix` installs docker.io and iptables on systems with apt")
                    .provided_by(PART)
            }
        }
    }
}

/// The socket of this machine's Docker, if it refused this user. Members of Docker's group can open
/// it, and no other socket.
fn denied(host: &Host, failures: &[ProbeFailure]) -> Option<PathBuf> {
    failures.iter().filter(|failure| failure.is_denied()).find_map(|failure| match &failure.endpoint {
        Endpoint::Unix(path) if is_default(host, &failure.endpoint) => Some(path.clone()),
        Endpoint::Unix(_) | Endpoint::Tcp(_) => None,
    })
}

/// Whether this machine's engine would listen at `endpoint`.
fn is_default(host: &Host, endpoint: &Endpoint) -> bool {
    let local = [DEFAULT_SOCKET, "/run/docker.sock"].map(|socket| Endpoint::Unix(host.path(socket)));
    local.contains(endpoint)
}

/// The process that dockerd's pid file names, if it is a living dockerd. A zombie is none. Without
/// an init process nobody reaps it.
fn running_dockerd(host: &Host) -> Option<u32> {
    let pid = fs::read_to_string(host.path("/run/docker.pid")).ok()?.trim().parse().ok()?;
    let stat = fs::read_to_string(host.path(format!("/proc/{pid}/stat"))).ok()?;
    // The line is `pid (name) state …`, and a name may contain parentheses.
    let (head, tail) = stat.rsplit_once(')')?;
    let state = tail.trim_start().chars().next()?;
    let (_, name) = head.split_once('(')?;
    (name == "dockerd" && !matches!(state, 'Z' | 'X')).then_some(pid)
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::os::unix::net::UnixListener;

    use super::super::super::discovery::{self, ProbeError};
    use super::super::fake::{Machine, run};
    use super::*;

    #[test]
    fn only_dockers_own_socket_is_opened_by_its_group() {
        let (machine, io) = (Machine::new(), || io::Error::from(io::ErrorKind::PermissionDenied));
        let host = machine.host();
        let failure =
            |socket: &str, cause| ProbeFailure { endpoint: Endpoint::Unix(host.path(socket)), cause };
        let podman = "/run/podman/podman.sock";
        for (failures, expect) in [
            (vec![], None),
            (vec![failure(DEFAULT_SOCKET, ProbeError::Denied)], Some(DEFAULT_SOCKET)),
            (vec![failure(DEFAULT_SOCKET, ProbeError::NoSocket)], None),
            // An ordinary user may not look into Podman's folder, so whether it has a socket is
            // unknown.
            (
                vec![
                    failure(DEFAULT_SOCKET, ProbeError::NoSocket),
                    failure(podman, ProbeError::Inaccessible(io())),
                ],
                None,
            ),
            (vec![failure(podman, ProbeError::Denied)], None),
            (
                vec![failure(podman, ProbeError::Denied), failure(DEFAULT_SOCKET, ProbeError::Denied)],
                Some(DEFAULT_SOCKET),
            ),
        ] {
            let found = denied(&host, &failures);
            assert_eq!(found, expect.map(|socket| host.path(socket)), "{failures:?}");
        }
    }

    fn check(machine: &Machine, expected: &Absence) {
        let host = machine.host();
        let environment = Environment::new(host.root.clone(), |name| host.env.get(name).cloned());
        let error = run(discovery::find(&environment)).unwrap_err();
        assert_eq!(Absence::of(&host, &environment, &error), *expected);
    }

    #[test]
    fn the_state_of_an_engine_that_does_not_answer_is_found() {
        let installed = || Machine::new().file("/usr/sbin/dockerd", "");
        let stopped = Absence::Stopped { dockerd: PathBuf::from("/usr/sbin/dockerd") };
        check(&Machine::new(), &Absence::NotInstalled);
        check(&installed(), &stopped);
        // A zombie, another program, another process, a name with parentheses.
        let pid = || installed().file("/run/docker.pid", "77\n");
        check(&pid(), &stopped);
        check(&pid().process(77, "cron", 'S'), &stopped);
        check(&pid().process(77, "dockerd", 'Z'), &stopped);
        check(&pid().process(77, "x) S (dockerd", 'S'), &stopped);
        check(&pid().process(7, "dockerd", 'S'), &stopped);
        check(&pid().process(77, "dockerd", 'D'), &Absence::Running { pid: 77 });
        // A socket without a listener.
        let abandoned = installed();
        drop(UnixListener::bind(abandoned.host().path(DEFAULT_SOCKET)).unwrap());
        check(&abandoned, &stopped);
        // `DOCKER_HOST` with the default socket is still this machine's engine.
        let default = format!("unix://{DEFAULT_SOCKET}");
        check(&installed().env("DOCKER_HOST", &default), &stopped);
        // A program elsewhere in the PATH.
        let own = Machine::new().env("PATH", "/opt/docker:/usr/bin").file("/opt/docker/dockerd", "");
        check(&own, &Absence::Stopped { dockerd: PathBuf::from("/opt/docker/dockerd") });
        let why = "only unix:// and tcp:// without TLS are supported".to_owned();
        let host = "ssh://me@engine.example".to_owned();
        check(&installed().env("DOCKER_HOST", &host), &Absence::NotLocal { host, why });
        let why = "there is no such socket".to_owned();
        let host = "unix:///elsewhere.sock".to_owned();
        check(&installed().env("DOCKER_HOST", &host), &Absence::NotLocal { host, why });
    }
}
