//! Where engines listen, and which of those places answers.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use super::System;
use super::http::{self, Endpoint, HttpError, Response, Timeouts};

/// Docker's socket where nothing else was said.
pub(super) const DEFAULT_SOCKET: &str = "/var/run/docker.sock";
/// A healthy engine answers a ping within a millisecond; one that systemd has yet to start takes a few seconds.
const PING: Timeouts = Timeouts { idle: Duration::from_secs(5), total: Duration::from_secs(5) };

/// A place where no engine answered.
#[derive(Debug)]
pub(super) struct ProbeFailure {
    pub(super) endpoint: Endpoint,
    pub(super) why: Why,
}

/// Why it did not answer.
#[derive(Debug)]
pub(super) enum Why {
    /// No reply, and the error.
    Http(HttpError),
    /// Something replied, but not as an engine does.
    NoEngine { status: u16 },
}

impl ProbeFailure {
    /// The place exists, but this user may not use it.
    pub(super) fn is_denied(&self) -> bool {
        matches!(&self.why, Why::Http(error) if error.kind() == io::ErrorKind::PermissionDenied)
    }

    /// In words.
    pub(super) fn explain(&self) -> String {
        match &self.why {
            Why::Http(error) => {
                let cause =
                    std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
                format!("{error}{cause}")
            }
            Why::NoEngine { status } => format!("{} answers a ping with status {status}", self.endpoint),
        }
    }
}

/// What DOCKER_HOST asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum DockerHost {
    /// Nothing: look around.
    Any,
    /// This place and no other.
    This(Endpoint),
    /// A kind of address that is not spoken here (`ssh://`, TLS).
    Unknown(String),
}

/// Reads DOCKER_HOST.
pub(super) fn docker_host(system: &System) -> DockerHost {
    let Some(host) = system.var("DOCKER_HOST") else { return DockerHost::Any };
    if let Some(path) = host.strip_prefix("unix://").filter(|path| path.starts_with('/')) {
        return DockerHost::This(Endpoint::Unix(system.path(path)));
    }
    let plain = system.var("DOCKER_TLS_VERIFY").is_none();
    match host.strip_prefix("tcp://").or_else(|| host.strip_prefix("http://")) {
        Some(address) if plain => {
            let address = address.trim_end_matches('/');
            // Docker's port for plain HTTP.
            let with_port = if has_port(address) { address.to_owned() } else { format!("{address}:2375") };
            DockerHost::This(Endpoint::Tcp(with_port))
        }
        _ => DockerHost::Unknown(host.to_owned()),
    }
}

fn has_port(address: &str) -> bool {
    let (_, end) = address.rsplit_once(']').unwrap_or(("", address));
    end.contains(':')
}

/// The places to try, best first: the system's Docker, then a user's own, then Podman.
fn candidates(system: &System) -> Vec<Endpoint> {
    match docker_host(system) {
        DockerHost::This(endpoint) => return vec![endpoint],
        DockerHost::Unknown(_) => return Vec::new(),
        DockerHost::Any => {}
    }
    let mut sockets = vec![PathBuf::from(DEFAULT_SOCKET)];
    let runtime = system.var("XDG_RUNTIME_DIR").map(PathBuf::from);
    sockets.extend(runtime.iter().map(|folder| folder.join("docker.sock")));
    sockets.extend(system.var("HOME").map(|home| PathBuf::from(home).join(".docker/run/docker.sock")));
    sockets.extend(runtime.iter().map(|folder| folder.join("podman/podman.sock")));
    sockets.push(PathBuf::from("/run/podman/podman.sock"));
    sockets.into_iter().map(|socket| Endpoint::Unix(system.path(socket))).collect()
}

/// The first place where an engine answers, or what every place did instead.
pub(super) fn find(system: &System) -> Result<Endpoint, Vec<ProbeFailure>> {
    let mut silences = Vec::new();
    for endpoint in candidates(system) {
        match ping(&endpoint) {
            Ok(()) => return Ok(endpoint),
            Err(why) => silences.push(ProbeFailure { endpoint, why }),
        }
    }
    Err(silences)
}

/// Whether an engine answers there.
pub(super) fn ping(endpoint: &Endpoint) -> Result<(), Why> {
    match http::get(endpoint, "/_ping", PING) {
        Ok(Response { status: 200, body }) if body.starts_with(b"OK") => Ok(()),
        Ok(Response { status, .. }) => Err(Why::NoEngine { status }),
        Err(error) => Err(Why::Http(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::fake::{Machine, Reply};
    use super::*;

    #[test]
    fn docker_host_is_read_as_docker_reads_it() {
        let tcp = |address: &str| DockerHost::This(Endpoint::Tcp(address.to_owned()));
        let unknown = |host: &str| DockerHost::Unknown(host.to_owned());
        for (host, tls, expected) in [
            ("", "", DockerHost::Any),
            ("tcp://engine.example:2375", "", tcp("engine.example:2375")),
            ("tcp://engine.example/", "", tcp("engine.example:2375")),
            ("http://127.0.0.1:80", "", tcp("127.0.0.1:80")),
            ("tcp://[::1]", "", tcp("[::1]:2375")),
            ("tcp://[::1]:99", "", tcp("[::1]:99")),
            ("tcp://engine.example:2376", "1", unknown("tcp://engine.example:2376")),
            ("ssh://me@engine.example", "", unknown("ssh://me@engine.example")),
            ("unix://relative", "", unknown("unix://relative")),
        ] {
            let machine = Machine::new().env("DOCKER_HOST", host).env("DOCKER_TLS_VERIFY", tls);
            assert_eq!(docker_host(&machine.system()), expected, "{host}");
        }
        let machine = Machine::new().env("DOCKER_HOST", "unix:///x/docker.sock");
        let expected = DockerHost::This(Endpoint::Unix(machine.system().path("/x/docker.sock")));
        assert_eq!(docker_host(&machine.system()), expected);
    }

    /// Which socket is chosen when engines listen on these.
    fn check(env: &[(&str, &str)], listening: &[&str], expected: Option<&str>) {
        let mut machine = Machine::new();
        for (name, value) in env {
            machine = machine.env(name, value);
        }
        for socket in listening {
            machine.engine(socket, &[("GET /_ping", Reply::text(200, "OK"))]);
        }
        let expected = expected.map(|socket| Endpoint::Unix(machine.system().path(socket)));
        assert_eq!(find(&machine.system()).ok(), expected, "{env:?} {listening:?}");
    }

    #[test]
    fn the_first_engine_that_answers_is_taken() {
        let env = [("XDG_RUNTIME_DIR", "/run/user/7"), ("HOME", "/home/me")];
        check(&env, &[], None);
        check(&env, &["/run/podman/podman.sock"], Some("/run/podman/podman.sock"));
        check(
            &env,
            &["/run/podman/podman.sock", "/run/user/7/podman/podman.sock"],
            Some("/run/user/7/podman/podman.sock"),
        );
        check(&env, &["/home/me/.docker/run/docker.sock"], Some("/home/me/.docker/run/docker.sock"));
        check(&env, &["/run/user/7/docker.sock", "/run/podman/podman.sock"], Some("/run/user/7/docker.sock"));
        check(&env, &["/run/user/7/docker.sock", "/var/run/docker.sock"], Some("/var/run/docker.sock"));
        check(&[], &["/run/user/7/docker.sock"], None);
        // DOCKER_HOST excludes all others.
        check(&[("DOCKER_HOST", "unix:///x.sock")], &["/var/run/docker.sock"], None);
        check(&[("DOCKER_HOST", "unix:///x.sock")], &["/var/run/docker.sock", "/x.sock"], Some("/x.sock"));
        check(&[("DOCKER_HOST", "ssh://x")], &["/var/run/docker.sock"], None);
    }

    #[test]
    fn something_else_on_the_socket_is_no_engine() {
        let machine = Machine::new();
        machine.engine("/var/run/docker.sock", &[("GET /_ping", Reply::text(404, "who?"))]);
        let silences = find(&machine.system()).unwrap_err();
        assert!(silences[0].explain().ends_with("answers a ping with status 404"), "{silences:?}");
        assert!(!silences[0].is_denied());
    }
}
