//! Finds the endpoint of a container engine. `run` and `doctor` share this list and this test.

use std::error::Error as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fmt, io};

use bollard::errors::Error;
use bollard::{API_DEFAULT_VERSION, Docker};
use thiserror::Error;

/// Docker's socket if `DOCKER_HOST` is not set.
pub(super) const DEFAULT_SOCKET: &str = "/var/run/docker.sock";
/// Docker's port for plain HTTP.
const PLAIN_HTTP_PORT: u16 = 2375;
/// Time-out of a ping. A healthy engine answers within milliseconds. An engine that systemd starts
/// on demand takes a few seconds.
const PING_TIMEOUT: Duration = Duration::from_secs(10);
/// First bytes of an engine's answer to a ping.
const PONG: &str = "OK";

/// Where an engine listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Endpoint {
    /// A Unix socket.
    Unix(PathBuf),
    /// `host:port`, without TLS.
    Tcp(String),
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix://{}", path.display()),
            Self::Tcp(address) => write!(f, "tcp://{address}"),
        }
    }
}

impl Endpoint {
    /// A client for this endpoint. Its requests fail if an answer does not begin within `timeout`.
    /// It sends nothing yet.
    pub(super) fn client(&self, timeout: Duration) -> Result<Docker, Error> {
        let seconds = timeout.as_secs().max(1);
        match self {
            Self::Unix(path) => {
                Docker::connect_with_unix(&path.to_string_lossy(), seconds, API_DEFAULT_VERSION)
            }
            Self::Tcp(_) => Docker::connect_with_http(&self.to_string(), seconds, API_DEFAULT_VERSION),
        }
    }
}

/// The settings that determine the endpoint.
#[derive(Clone, Debug, Default)]
pub(super) struct Environment {
    /// `DOCKER_HOST`.
    pub(super) docker_host: Option<String>,
    /// Whether `DOCKER_TLS_VERIFY` is set.
    pub(super) tls: bool,
    /// `XDG_RUNTIME_DIR`.
    pub(super) runtime_dir: Option<PathBuf>,
    /// `HOME`.
    pub(super) home: Option<PathBuf>,
    /// Root of the file system: `/`, or a folder in tests.
    pub(super) root: PathBuf,
}

impl Environment {
    /// The environment of this process.
    pub(super) fn current() -> Self {
        Self::new(PathBuf::from("/"), |name| env::var(name).ok())
    }

    /// Reads the variables. An empty one counts as not set, as for Docker.
    pub(super) fn new(root: PathBuf, var: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| var(name).filter(|value| !value.is_empty());
        Self {
            docker_host: set("DOCKER_HOST"),
            tls: set("DOCKER_TLS_VERIFY").is_some(),
            runtime_dir: set("XDG_RUNTIME_DIR").map(PathBuf::from),
            home: set("HOME").map(PathBuf::from),
            root,
        }
    }

    /// An absolute path below the root.
    fn path(&self, absolute: impl AsRef<Path>) -> PathBuf {
        let absolute = absolute.as_ref();
        self.root.join(absolute.strip_prefix("/").unwrap_or(absolute))
    }
}

/// The value of `DOCKER_HOST`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DockerHost {
    /// Not set: the usual sockets are tried.
    Unset,
    /// Only this endpoint is used.
    Endpoint(Endpoint),
    /// An address that is not supported, e.g. `ssh://` or TLS.
    Unsupported(String),
}

impl DockerHost {
    /// Parses `DOCKER_HOST` as Docker's own client does.
    pub(super) fn of(environment: &Environment) -> Self {
        let Some(host) = &environment.docker_host else { return Self::Unset };
        if let Some(path) = host.strip_prefix("unix://").filter(|path| path.starts_with('/')) {
            return Self::Endpoint(Endpoint::Unix(environment.path(path)));
        }
        match host.strip_prefix("tcp://").or_else(|| host.strip_prefix("http://")) {
            Some(address) if !environment.tls => {
                let address = address.trim_end_matches('/');
                Self::Endpoint(Endpoint::Tcp(if has_port(address) {
                    address.to_owned()
                } else {
                    format!("{address}:{PLAIN_HTTP_PORT}")
                }))
            }
            Some(_) | None => Self::Unsupported(host.clone()),
        }
    }
}

fn has_port(address: &str) -> bool {
    let (_, end) = address.rsplit_once(']').unwrap_or(("", address));
    end.contains(':')
}

/// The usual sockets in order of preference: the system's Docker, the user's own Docker, then
/// Podman.
fn usual_sockets(environment: &Environment) -> Vec<Endpoint> {
    let of_session = |socket: &str| environment.runtime_dir.as_ref().map(|folder| folder.join(socket));
    let of_home = |socket: &str| environment.home.as_ref().map(|home| home.join(socket));
    let sockets = [
        Some(PathBuf::from(DEFAULT_SOCKET)),
        of_session("docker.sock"),
        of_home(".docker/run/docker.sock"),
        of_home(".docker/desktop/docker.sock"),
        of_session("podman/podman.sock"),
        Some(PathBuf::from("/run/podman/podman.sock")),
    ];
    sockets.into_iter().flatten().map(|socket| Endpoint::Unix(environment.path(socket))).collect()
}

/// An endpoint at which no engine answered.
#[derive(Debug)]
pub(super) struct ProbeFailure {
    pub(super) endpoint: Endpoint,
    pub(super) cause: ProbeError,
}

impl ProbeFailure {
    /// The socket exists, but this user has no permission to use it.
    pub(super) fn is_denied(&self) -> bool {
        matches!(self.cause, ProbeError::Denied)
    }
}

/// Why no engine answered at an endpoint.
#[derive(Debug, Error)]
pub(super) enum ProbeError {
    #[error("there is no such socket")]
    NoSocket,
    /// This user may not look into the socket's folder, e.g. Podman's. There may be no socket.
    #[error("{0}")]
    Inaccessible(io::Error),
    #[error("permission to connect is denied")]
    Denied,
    #[error("{}", reason(.0))]
    NoAnswer(Error),
    #[error("no answer to a ping within {} s", PING_TIMEOUT.as_secs())]
    TimedOut,
    /// Another kind of server answered.
    #[error("the server there is not a container engine (its answer to a ping: {answer})")]
    NotAnEngine { answer: String },
}

/// No endpoint of this environment has an engine that answers.
#[derive(Debug, Error)]
pub(super) enum NotFound {
    #[error("only unix:// and tcp:// without TLS are supported")]
    UnsupportedHost { host: String },
    #[error("{}", list(failures))]
    NoAnswer { failures: Vec<ProbeFailure> },
}

impl NotFound {
    /// The endpoint for error messages: `DOCKER_HOST`, or the usual socket.
    pub(super) fn endpoint(&self) -> String {
        match self {
            Self::UnsupportedHost { host } => host.clone(),
            Self::NoAnswer { failures } => failures
                .iter()
                .find(|failure| !matches!(failure.cause, ProbeError::NoSocket))
                .or(failures.first())
                .map(|failure| failure.endpoint.to_string())
                .unwrap_or_default(),
        }
    }
}

/// The sockets that exist, with their failures. If there are none, all endpoints that were tried.
fn list(failures: &[ProbeFailure]) -> String {
    let existing: Vec<String> = failures
        .iter()
        .filter(|failure| !matches!(failure.cause, ProbeError::NoSocket))
        .map(|ProbeFailure { endpoint, cause }| format!("{endpoint}: {cause}"))
        .collect();
    if !existing.is_empty() {
        return existing.join("; ");
    }
    let tried: Vec<String> = failures.iter().map(|failure| failure.endpoint.to_string()).collect();
    format!("there is no such socket (tried {})", tried.join(", "))
}

/// The first endpoint at which an engine answers a ping.
pub(super) async fn find(environment: &Environment) -> Result<Endpoint, NotFound> {
    let candidates = match DockerHost::of(environment) {
        DockerHost::Endpoint(endpoint) => vec![endpoint],
        DockerHost::Unsupported(host) => return Err(NotFound::UnsupportedHost { host }),
        DockerHost::Unset => usual_sockets(environment),
    };
    let mut failures = Vec::new();
    for endpoint in candidates {
        match ping(&endpoint).await {
            Ok(()) => return Ok(endpoint),
            Err(cause) => {
                tracing::debug!(%endpoint, %cause, "no engine answers here");
                failures.push(ProbeFailure { endpoint, cause });
            }
        }
    }
    Err(NotFound::NoAnswer { failures })
}

/// Whether an engine answers at this endpoint.
async fn ping(endpoint: &Endpoint) -> Result<(), ProbeError> {
    if let Endpoint::Unix(path) = endpoint {
        match path.try_exists() {
            Ok(true) => {}
            Ok(false) => return Err(ProbeError::NoSocket),
            Err(error) => return Err(ProbeError::Inaccessible(error)),
        }
    }
    let docker = endpoint.client(PING_TIMEOUT).map_err(ProbeError::NoAnswer)?;
    match tokio::time::timeout(PING_TIMEOUT, docker.ping()).await {
        Ok(Ok(answer)) if answer.starts_with(PONG) => Ok(()),
        Ok(Ok(answer)) => {
            Err(ProbeError::NotAnEngine { answer: answer.lines().next().unwrap_or_default().to_owned() })
        }
        Ok(Err(Error::DockerResponseServerError { status_code, .. })) => {
            Err(ProbeError::NotAnEngine { answer: format!("status {status_code}") })
        }
        Ok(Err(Error::RequestTimeoutError)) | Err(_) => Err(ProbeError::TimedOut),
        Ok(Err(error)) if io_kind(&error) == Some(io::ErrorKind::PermissionDenied) => Err(ProbeError::Denied),
        Ok(Err(error)) => Err(ProbeError::NoAnswer(error)),
    }
}

/// The innermost cause. Bollard's own text is often only "error in the client".
fn reason(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = error.to_string();
        cause = error.source();
    }
    text
}

/// The kind of the operating system's error that caused this one.
fn io_kind(error: &Error) -> Option<io::ErrorKind> {
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return Some(error.kind());
        }
        cause = error.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixListener;
    use std::thread;

    use super::*;

    /// A test's file or server at a socket's path.
    #[derive(Clone, Copy)]
    enum At {
        /// A socket file without a listener, as a killed daemon leaves it.
        Dead(&'static str),
        /// A file that is not a socket.
        File(&'static str),
        /// A listener that closes each connection without an answer.
        Closing(&'static str),
        /// A server with this answer to every request.
        Server(&'static str, u16, &'static str),
    }

    /// An engine.
    const fn engine(path: &'static str) -> At {
        At::Server(path, 200, "OK")
    }

    fn place(root: &Path, at: At) {
        let (At::Dead(path) | At::File(path) | At::Closing(path) | At::Server(path, ..)) = at;
        let path = root.join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let listener = match at {
            At::File(_) => return fs::write(path, "").unwrap(),
            At::Dead(_) | At::Closing(_) | At::Server(..) => UnixListener::bind(&path).unwrap(),
        };
        match at {
            At::File(_) | At::Dead(_) => {}
            At::Closing(_) => drop(thread::spawn(move || listener.incoming().for_each(drop))),
            At::Server(_, status, body) => drop(thread::spawn(move || {
                for mut stream in listener.incoming().flatten() {
                    let mut head = Vec::new();
                    while !head.ends_with(b"\r\n\r\n") {
                        let mut byte = [0];
                        if stream.read(&mut byte).unwrap_or(0) == 0 {
                            break;
                        }
                        head.push(byte[0]);
                    }
                    let _ =
                        write!(stream, "HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n{body}", body.len());
                }
            })),
        }
    }

    fn look(root: &Path, vars: &[(&str, &str)]) -> Result<Endpoint, NotFound> {
        let var =
            |name: &str| vars.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        let environment = Environment::new(root.to_owned(), var);
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
            .block_on(find(&environment))
    }

    /// Compares the chosen socket, or the error, for an environment with these files.
    fn check(vars: &[(&str, &str)], places: &[At], expected: Result<&str, &str>) {
        let dir = tempfile::tempdir().unwrap();
        for at in places {
            place(dir.path(), *at);
        }
        let root = dir.path().display().to_string();
        let found = look(dir.path(), vars);
        let found = found.map(|endpoint| endpoint.to_string()).map_err(|error| error.to_string());
        let short = |text: String| text.replace(&root, "");
        assert_eq!(
            found.map(short).map_err(|text| text.replace(&root, "")),
            expected.map(|socket| format!("unix://{socket}")).map_err(str::to_owned),
            "{vars:?}"
        );
    }

    const SYSTEM: &str = "/var/run/docker.sock";
    const SESSION: &str = "/run/user/7/docker.sock";
    const HOME: &str = "/home/me/.docker/run/docker.sock";
    const DESKTOP: &str = "/home/me/.docker/desktop/docker.sock";
    const PODMAN: &str = "/run/user/7/podman/podman.sock";
    const ROOT_PODMAN: &str = "/run/podman/podman.sock";
    const VARS: [(&str, &str); 2] = [("XDG_RUNTIME_DIR", "/run/user/7"), ("HOME", "/home/me")];

    #[test]
    fn the_first_socket_with_an_engine_that_answers_is_chosen() {
        for (places, expected) in [
            (&[engine(SYSTEM), engine(SESSION)][..], SYSTEM),
            (&[engine(SESSION), engine(HOME), engine(ROOT_PODMAN)], SESSION),
            (&[engine(HOME), engine(DESKTOP), engine(PODMAN)], HOME),
            (&[engine(DESKTOP), engine(PODMAN)], DESKTOP),
            (&[engine(PODMAN), engine(ROOT_PODMAN)], PODMAN),
            (&[engine(ROOT_PODMAN)], ROOT_PODMAN),
            // An existing socket is not enough. `run` once chose these.
            (&[At::Dead(SYSTEM), engine(SESSION)], SESSION),
            (&[At::File(SYSTEM), engine(HOME)], HOME),
            (&[At::Closing(SYSTEM), engine(HOME)], HOME),
            (&[At::Server(SYSTEM, 404, "who?"), engine(PODMAN)], PODMAN),
            (&[At::Server(SYSTEM, 200, "<html>"), engine(PODMAN)], PODMAN),
            (&[At::Dead(SYSTEM), At::Dead(SESSION), At::Dead(HOME), engine(ROOT_PODMAN)], ROOT_PODMAN),
        ] {
            check(&VARS, places, Ok(expected));
        }
    }

    #[test]
    fn docker_host_excludes_the_usual_sockets() {
        let host = [("DOCKER_HOST", "unix:///x.sock")];
        check(&host, &[engine(SYSTEM), engine("/x.sock")], Ok("/x.sock"));
        check(&host, &[engine(SYSTEM)], Err("there is no such socket (tried unix:///x.sock)"));
        check(&[("DOCKER_HOST", "")], &[engine(SYSTEM)], Ok(SYSTEM));
        check(
            &[("DOCKER_HOST", "ssh://x")],
            &[engine(SYSTEM)],
            Err("only unix:// and tcp:// without TLS are supported"),
        );
        // Only variables tell of sockets in a session or a home folder.
        check(
            &[],
            &[engine(SESSION), engine(HOME)],
            Err(
                "there is no such socket (tried unix:///var/run/docker.sock, unix:///run/podman/podman.sock)",
            ),
        );
    }

    #[test]
    fn errors_say_what_is_wrong_with_each_socket_that_exists() {
        check(
            &VARS,
            &[At::Dead(SYSTEM)],
            Err("unix:///var/run/docker.sock: Connection refused (os error 111)"),
        );
        check(
            &VARS,
            &[At::Dead(SYSTEM), At::Server(PODMAN, 404, "who?")],
            Err("unix:///var/run/docker.sock: Connection refused (os error 111); \
                 unix:///run/user/7/podman/podman.sock: the server there is not a container engine (its answer to a ping: \
                 status 404)"),
        );
    }

    #[test]
    fn docker_host_is_read_as_docker_reads_it() {
        let tcp = |address: &str| DockerHost::Endpoint(Endpoint::Tcp(address.to_owned()));
        let unsupported = |host: &str| DockerHost::Unsupported(host.to_owned());
        for (host, tls, expected) in [
            ("", "", DockerHost::Unset),
            ("tcp://engine.example:2375", "", tcp("engine.example:2375")),
            ("tcp://engine.example/", "", tcp("engine.example:2375")),
            ("http://127.0.0.1:80", "", tcp("127.0.0.1:80")),
            ("tcp://[::1]", "", tcp("[::1]:2375")),
            ("tcp://[::1]:99", "", tcp("[::1]:99")),
            ("tcp://engine.example:2376", "1", unsupported("tcp://engine.example:2376")),
            ("ssh://me@engine.example", "", unsupported("ssh://me@engine.example")),
            ("unix://relative", "", unsupported("unix://relative")),
            (
                "unix:///x/docker.sock",
                "",
                DockerHost::Endpoint(Endpoint::Unix(PathBuf::from("/root/x/docker.sock"))),
            ),
        ] {
            let environment = Environment::new(PathBuf::from("/root"), |name| match name {
                "DOCKER_HOST" => Some(host.to_owned()),
                "DOCKER_TLS_VERIFY" => Some(tls.to_owned()),
                _ => None,
            });
            assert_eq!(DockerHost::of(&environment), expected, "{host}");
        }
    }
}
