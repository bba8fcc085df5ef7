//! The script runs in a folder in place of `/`. It finds only programs in that folder: a few of
//! this machine's, and stubs that note how they were called.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::FIX_SCRIPT;

const TOOLS: [&str; 16] = [
    "awk", "cat", "chmod", "date", "env", "grep", "mktemp", "rm", "sed", "sh", "sleep", "sort", "tail",
    "test", "timeout", "touch",
];
/// A stub that answers once a file exists.
const DOCKER: &str = r#"case $3 in version) test -e "$FIX_ROOT/answers" ;; esac"#;
const STARTS: &str = r#"touch "$FIX_ROOT/answers""#;
const DEBIAN: &str = "ID=debian\nVERSION_CODENAME=bookworm\n";
const UPDATE: &str = "apt-get -o DPkg::Lock::Timeout=180 update -q";
const INSTALL: &str = "apt-get -o DPkg::Lock::Timeout=180 install -y --no-install-recommends --no-remove";

struct Machine(TempDir);

struct Ran {
    ok: bool,
    printed: String,
    errors: String,
    /// Calls of stubs. Questions whether the engine answers are left out.
    commands: Vec<String>,
}

impl Machine {
    /// Debian 12 with nothing installed. The user is root.
    fn new() -> Self {
        let machine = Self(tempfile::tempdir().unwrap()).file("/etc/os-release", DEBIAN);
        for folder in ["bin", "tmp", "run", "var/log", "proc/net"] {
            fs::create_dir_all(machine.path(folder)).unwrap();
        }
        symlink("../run", machine.path("var/run")).unwrap();
        for tool in TOOLS {
            let folders = ["/usr/bin", "/bin"].map(|folder| Path::new(folder).join(tool));
            let found = folders.iter().find(|path| path.exists()).unwrap();
            symlink(found, machine.path("bin").join(tool)).unwrap();
        }
        machine.stub("apt-get", "").uid(0)
    }

    /// The same machine with Docker, which does not run.
    fn with_docker() -> Self {
        Self::new().stub("dockerd", "").stub("docker", DOCKER)
    }

    fn path(&self, path: &str) -> std::path::PathBuf {
        self.0.path().join(path.trim_start_matches('/'))
    }

    fn file(self, path: &str, text: &str) -> Self {
        let file = self.path(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
        self
    }

    fn process(self, pid: u32, name: &str, state: char) -> Self {
        self.file(&format!("/proc/{pid}/stat"), &format!("{pid} ({name}) {state} 1 1 1 0 -1\n"))
    }

    fn listening(self, sockets: &[&str]) -> Self {
        let mut table = "Num       RefCount Protocol Flags    Type St Inode Path\n".to_owned();
        for socket in sockets {
            table += &format!("0000000000000001: 00000002 00000000 00010000 0001 01  4042 {socket}\n");
        }
        // An accepted connection has its listener's name, but is no listener.
        table += "0000000000000002: 00000003 00000000 00000000 0001 03  4043 /run/docker.sock\n";
        self.file("/proc/net/unix", &table)
    }

    fn uid(self, uid: u32) -> Self {
        self.program("id", &format!("echo {uid}"))
    }

    /// A program that notes how it is called, then does `body`.
    fn stub(self, name: &str, body: &str) -> Self {
        let note = format!("echo \"{name} $*\" >>\"$FIX_ROOT/commands\"\n{body}");
        self.program(name, &note)
    }

    fn program(self, name: &str, body: &str) -> Self {
        let path = self.path("bin").join(name);
        // A tool there may be a link to this machine's own tool.
        let _ = fs::remove_file(&path);
        fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        self
    }

    fn fix(&self, part: &str) -> Ran {
        let script = self.path("fix.sh");
        fs::write(&script, FIX_SCRIPT).unwrap();
        let mut command = Command::new(self.path("bin/sh"));
        command.arg(script).arg(part).env_clear().stdin(Stdio::null());
        command.env("PATH", self.path("bin")).env("FIX_ROOT", self.0.path()).env("TMPDIR", self.path("tmp"));
        let output = command.output().unwrap();
        let root = self.0.path().display().to_string();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace(&root, "");
        let commands = fs::read_to_string(self.path("commands")).unwrap_or_default().replace(&root, "");
        assert_eq!(fs::read_dir(self.path("tmp")).unwrap().count(), 0, "temporary files are removed");
        Ran {
            ok: output.status.success(),
            printed: text(&output.stdout),
            errors: text(&output.stderr),
            commands: commands
                .lines()
                .filter(|line| !line.starts_with("docker -H"))
                .map(str::to_owned)
                .collect(),
        }
    }
}

/// A part that succeeds with these calls, and prints these lines.
fn check(machine: &Machine, part: &str, commands: &[&str], printed: &[&str]) {
    let ran = machine.fix(part);
    assert!(ran.ok, "{}", ran.errors);
    assert_eq!(ran.commands, commands);
    assert_eq!(ran.printed.lines().collect::<Vec<_>>(), printed);
}

/// A part that fails with this error.
fn check_failure(machine: &Machine, part: &str, errors: &str) {
    let ran = machine.fix(part);
    assert_eq!((ran.ok, ran.errors.as_str()), (false, errors));
}

/// The command line of a started dockerd.
const DIRECT: &str = "setsid --fork sh -c cd / && echo $$ && exec \"$0\" >>\"$1\" 2>&1 </dev/null /bin/dockerd /var/log/docker.log";
const IN_BACKGROUND: &str =
    "Starting dockerd in the background (no systemd runs here; log: /var/log/docker.log) …";
const WAITING: &str = "Waiting for dockerd to answer …";

#[test]
fn a_bare_machine_gets_an_engine() {
    let installs = r#"case "$*" in *install*) for name in docker dockerd; do
        printf '#!/bin/sh\ncase $3 in version) test -e "$FIX_ROOT/answers" ;; esac\n' >"$FIX_ROOT/bin/$name"
        chmod 755 "$FIX_ROOT/bin/$name"; done ;; esac"#;
    let bare = || Machine::new().stub("apt-get", installs).stub("setsid", STARTS);
    let installed = format!("{INSTALL} docker.io iptables");
    let installing = "Installing docker.io iptables (system packages, by apt-get) …";
    check(&bare(), "engine", &[UPDATE, &installed, DIRECT], &[installing, IN_BACKGROUND, WAITING]);
    // The package has started it.
    let started = bare().stub("apt-get", &format!("{installs}\n{STARTS}"));
    check(&started, "engine", &[UPDATE, &installed], &[installing]);
    // Old lists are enough if they contain the package.
    let old = bare().stub("apt-get", &format!("case $3 in update) exit 1 ;; esac\n{installs}\n{STARTS}"));
    check(&old, "engine", &[UPDATE, &installed], &[installing]);
}

#[test]
fn a_daemon_that_is_installed_is_started() {
    let machine = || Machine::with_docker().stub("setsid", STARTS).stub("systemctl", STARTS);
    check(&machine(), "engine", &[DIRECT], &[IN_BACKGROUND, WAITING]);
    let starting = "Starting Docker (systemctl start docker) …";
    let systemd = || machine().file("/run/systemd/system/x", "");
    check(&systemd(), "engine", &["systemctl start docker"], &[starting, WAITING]);
    let sudo = r#"test "$2" = true || { shift; "$@"; }"#;
    let user = systemd().uid(1000).stub("sudo", sudo);
    let commands = ["sudo -n true", "sudo -n systemctl start docker", "systemctl start docker"];
    check(&user, "engine", &commands, &[starting, WAITING]);
    // The script waits for a dockerd that runs, and leaves one alone that answers.
    let running = machine().file("/run/docker.pid", "77").process(77, "dockerd", 'S');
    let running = running.program("sleep", STARTS);
    check(&running, "engine", &[], &[WAITING]);
    check(&machine().file("/answers", ""), "engine", &[], &[]);
}

#[test]
fn a_failure_says_why_and_what_to_do() {
    let log = "starting\nfailed to start daemon: no space left\n";
    let silent = Machine::with_docker()
        .stub("setsid", "echo 4242")
        .program("date", "echo 7")
        .file("/var/log/docker.log", log);
    check_failure(
        &silent,
        "engine",
        "dockerd does not answer on `/var/run/docker.sock` after 0 s\n  | starting\n  | failed to start daemon: no space left\n\
         hint: read the log (`/var/log/docker.log`, or `journalctl -u docker`), stop the daemon, and run the doctor again\n",
    );
    let masked = Machine::with_docker().file("/run/systemd/system/x", "");
    check_failure(
        &masked.stub("systemctl", "echo Unit docker.service is masked. >&2; exit 1"),
        "engine",
        "`systemctl start docker` failed\n  | Unit docker.service is masked.\n",
    );
    let no_package = Machine::new().stub("apt-get", "echo \"E: $3\"; case $3 in install) exit 100 ;; esac");
    check_failure(&no_package, "clock", "`apt-get install libfaketime` failed\n  | E: install\n");
    // The package is missing, because its list could not be fetched.
    let offline = Machine::new().stub("apt-get", "echo \"E: $3\"; exit 100");
    check_failure(&offline, "clock", "`apt-get update` failed\n  | E: update\n");
    let needs_root = "this needs root, and `sudo` asks for a password or is not installed\nhint: run as root: `apt-get update && \
         apt-get install -y --no-install-recommends --no-remove libfaketime`; then run the doctor again\n";
    check_failure(&Machine::new().uid(1000), "clock", needs_root);
    check_failure(&Machine::new().uid(1000).stub("sudo", "exit 1"), "clock", needs_root);
    let fedora = || Machine::new().file("/etc/os-release", "ID=fedora\nPRETTY_NAME=\"Fedora Linux 41\"\n");
    let unknown = |what: &str| {
        format!(
            "Fedora Linux 41 is not based on Debian, so its package names are unknown\n\
             hint: install {what} yourself (names of Debian), then run the doctor again\n"
        )
    };
    check_failure(&fedora(), "engine", &unknown("docker.io iptables"));
    let offline = fedora().stub("docker", "exit 1");
    check_failure(&offline, "base-image", &unknown("the image debian:bookworm-slim"));
    check_failure(&Machine::new(), "all", "usage: fix-docker.sh engine|base-image|clock\n");
}

#[test]
fn the_clock_library_is_installed() {
    let installed = format!("{INSTALL} libfaketime");
    let installing = "Installing libfaketime (system packages, by apt-get) …";
    for system in [DEBIAN, "ID=ubuntu\n", "ID=\"kali\"\nID_LIKE='debian'\n"] {
        let machine = Machine::new().file("/etc/os-release", system);
        check(&machine, "clock", &[UPDATE, &installed], &[installing]);
    }
}

const OWN_PID: &str = "/run/docker/containerd/containerd.pid";
const OWN_SOCKET: &str = "/run/docker/containerd/containerd.sock";
const SYSTEM_SOCKET: &str = "/run/containerd/containerd.sock";

/// Checks which of `files` are removed while `processes` live and the sockets in `listening` have
/// listeners.
fn check_stale(files: &[(&str, &str)], processes: &[(u32, &str, char)], listening: &[&str], gone: &[&str]) {
    let machine = Machine::with_docker().stub("setsid", STARTS);
    let machine = files.iter().fold(machine, |machine, (path, text)| machine.file(path, text));
    let machine =
        processes.iter().fold(machine, |machine, (pid, name, state)| machine.process(*pid, name, *state));
    let machine = machine.listening(listening);
    let ran = machine.fix("engine");
    assert!(ran.ok, "{}", ran.errors);
    let missing = files.iter().map(|(path, _)| *path).filter(|path| !machine.path(path).exists());
    assert_eq!(missing.collect::<Vec<_>>(), gone, "{files:?}");
    let said = ran.printed.lines().find(|line| line.starts_with("Removing stale files of a dead daemon:"));
    assert_eq!(said.is_some(), !gone.is_empty(), "{}", ran.printed);
    for path in gone {
        assert!(said.is_some_and(|said| said.contains(path)), "removed without an announcement: {path}");
    }
}

#[test]
fn pid_files_of_dead_or_other_processes_are_removed() {
    let pid = [("/run/docker.pid", "77")];
    check_stale(&pid, &[], &[], &["/run/docker.pid"]);
    check_stale(&pid, &[(77, "bash", 'S')], &[], &["/run/docker.pid"]);
    check_stale(&pid, &[(77, "dockerd", 'Z')], &[], &["/run/docker.pid"]);
    check_stale(&pid, &[(77, "x) S (dockerd", 'S')], &[], &["/run/docker.pid"]);
    check_stale(&pid, &[(7, "dockerd", 'S')], &[], &["/run/docker.pid"]);
    for broken in ["", "0", "-1", "none", "99999999999"] {
        check_stale(&[("/run/docker.pid", broken)], &[(1, "dockerd", 'S')], &[], &["/run/docker.pid"]);
    }
    check_stale(&[(OWN_PID, "5")], &[(5, "dockerd", 'S')], &[], &[OWN_PID]);
    check_stale(&[(OWN_PID, "5\n")], &[(5, "containerd", 'D')], &[], &[]);
    check_stale(&[("/run/docker-ssd.pid", "5")], &[], &[], &["/run/docker-ssd.pid"]);
    check_stale(&[("/run/other.pid", "5")], &[], &[], &[]);
}

#[test]
fn sockets_without_a_listener_are_removed() {
    check_stale(&[("/run/docker.sock", "")], &[], &[], &["/run/docker.sock"]);
    check_stale(&[("/run/docker.sock", "")], &[], &["/var/run/docker.sock"], &[]);
    check_stale(&[(SYSTEM_SOCKET, "")], &[], &[SYSTEM_SOCKET], &[]);
    check_stale(&[(SYSTEM_SOCKET, "")], &[], &[], &[SYSTEM_SOCKET]);
    // The socket of a living daemon stays, even before the daemon listens.
    let starting = [(OWN_PID, "5"), (OWN_SOCKET, "")];
    check_stale(&starting, &[(5, "containerd", 'S')], &[], &[]);
    check_stale(&starting, &[], &[], &[OWN_PID, OWN_SOCKET]);
    // A dead dockerd does not imply a dead containerd.
    let both = [("/run/docker.pid", "4"), ("/run/docker.sock", ""), (OWN_PID, "5"), (OWN_SOCKET, "")];
    check_stale(&both, &[(5, "containerd", 'S')], &[OWN_SOCKET], &["/run/docker.pid", "/run/docker.sock"]);
    // Without the kernel's list of listeners no socket counts as dead.
    let machine = Machine::with_docker().stub("setsid", STARTS).file("/run/docker.sock", "");
    assert!(machine.fix("engine").ok && machine.path("/run/docker.sock").exists());
}

/// A machine whose engine reaches no registry, and whose apt has these sources.
fn offline(sources: &str) -> Machine {
    let apt = format!("case $1 in indextargets) printf '%s' '{sources}' ;; esac");
    let machine = Machine::new()
        .stub("apt-get", &apt)
        .stub("docker", "case $1 in pull) echo no such host; exit 1 ;; esac");
    let keyring = machine.file("/usr/share/keyrings/debian-archive-keyring.gpg", "");
    keyring.stub("mmdebstrap", r#"for last; do :; done; [ "$last" != - ] || cat >"$FIX_ROOT/sources""#)
}

const PULL: &str = "docker pull debian:bookworm-slim";
const PULLING: &str = "Pulling debian:bookworm-slim …";

#[test]
fn an_image_is_pulled_where_a_registry_answers() {
    check(&Machine::new().stub("docker", ""), "base-image", &[PULL], &[PULLING]);
}

#[test]
fn without_a_registry_the_image_is_built_from_the_systems_mirrors() {
    let check = |targets: &str, sources: &str, from: &str| {
        let machine = offline(targets);
        let ran = machine.fix("base-image");
        assert!(ran.ok, "{}", ran.errors);
        let given = fs::read_to_string(machine.path("sources")).unwrap_or_default();
        assert_eq!(given, sources, "{targets}");
        let built = ran.commands.iter().find(|command| command.starts_with("mmdebstrap ")).unwrap();
        // A mirror behind TLS must be usable inside the image too.
        assert_eq!(built.contains("--include=ca-certificates"), sources.contains("https:"), "{built}");
        let imported = "docker import --change CMD [\"bash\"] --change LABEL termsmith.bootstrap=1 --change ENV \
                        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin ";
        assert!(ran.commands.last().unwrap().starts_with(imported), "{:?}", ran.commands);
        let said: Vec<_> = ran.printed.lines().collect();
        let building = format!("Building debian:bookworm-slim with mmdebstrap (about 20 s) from {from} …");
        assert_eq!(said, [PULLING, "That failed, so the image is built here: no such host", &building]);
    };
    let own = "this system's mirror";
    check("", "", "Debian's archive");
    check("http://m.example/debian bookworm\n", "deb http://m.example/debian bookworm main\n", own);
    check("https://m.example bookworm\n", "deb https://m.example bookworm main\n", own);
    // Another release of Debian finds our release on its mirror.
    check(
        "http://m.example/d trixie\nhttp://m.example/d trixie-updates\nhttp://m.example/s trixie-security\nhttp://m.example/d sid\n",
        "deb http://m.example/d bookworm main\ndeb http://m.example/d bookworm-updates main\ndeb http://m.example/s bookworm-security main\n",
        own,
    );
    for other in [
        "file:/srv/debian bookworm\n",
        "cdrom:[x]/ bookworm\n",
        "http://user:secret@m.example/debian bookworm\n",
        "mirror+file:/etc/apt/mirrors bookworm\n",
        "http://m.example/debian bookworm-backports\n",
    ] {
        check(other, "", "Debian's archive");
    }
}

#[test]
fn what_the_build_needs_is_installed() {
    let machine = Machine::new().file("/etc/os-release", "ID=ubuntu\n").stub("docker", "test $1 != pull");
    let ran = machine.fix("base-image");
    assert_eq!(
        ran.commands[..3],
        [PULL.to_owned(), UPDATE.to_owned(), format!("{INSTALL} mmdebstrap debian-archive-keyring")]
    );
    assert!(ran.errors.starts_with("`mmdebstrap` failed\n"), "{}", ran.errors);
}

#[test]
fn a_failed_build_never_becomes_an_image() {
    let failing = offline("").stub("mmdebstrap", "echo E: cannot fetch >&2; exit 25");
    check_failure(&failing, "base-image", "`mmdebstrap` failed\n  | E: cannot fetch\n");
    let commands = fs::read_to_string(failing.path("commands")).unwrap();
    assert!(!commands.contains("docker import"), "{commands}");
    let full = "case $1 in pull) exit 1 ;; import) echo no space left on device >&2; exit 1 ;; esac";
    let full = offline("").stub("docker", full);
    check_failure(&full, "base-image", "`docker import` failed\n  | no space left on device\n");
}

#[test]
fn the_script_is_short_enough_to_be_read() {
    assert!(FIX_SCRIPT.lines().count() <= 200);
}
