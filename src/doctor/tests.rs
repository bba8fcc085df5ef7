use super::fake::{Machine, Reply};
use super::*;

const SOCKET: &str = "/var/run/docker.sock";
const INFO: &str =
    r#"{"Driver":"overlay2","CgroupVersion":"1","MemoryLimit":true,"PidsLimit":true,"CpuCfsQuota":true}"#;
const VERSION: &str =
    r#"{"Version":"20.10.24+dfsg1","Components":[{"Name":"Engine","Version":"20.10.24+dfsg1"}]}"#;

fn start_engine(machine: &Machine) {
    machine.engine(
        SOCKET,
        &[
            ("GET /_ping", Reply::text(200, "OK")),
            ("GET /version", Reply::text(200, VERSION)),
            ("GET /info", Reply::text(200, INFO)),
            ("GET /images/debian:bookworm-slim/json", Reply::text(200, r#"{"Size":75000000}"#)),
        ],
    );
}

/// A machine with everything but an engine.
fn machine() -> Machine {
    Machine::new().file("/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1", "")
}

/// The rows up to the clock library; the others depend on the machine of the test.
fn summary(machine: &Machine, report: &Report) -> String {
    let root = machine.system().root.display().to_string();
    let rows = report.rows.iter().take(4).map(|row| {
        let hint = row.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
        format!("{} {}: {}{hint}\n", row.status.as_str(), row.name, row.detail).replace(&root, "")
    });
    rows.collect()
}

fn repair_machine(machine: &Machine) -> (String, String) {
    let mut printed = String::new();
    let report = repair(&machine.system(), Path::new("/tmp"), &mut |event| printed += &format!("{event}\n"));
    (summary(machine, &report), printed)
}

#[test]
fn a_machine_that_is_ready_is_not_changed() {
    let machine = machine().file("/etc/os-release", "ID=debian\n");
    start_engine(&machine);
    let (rows, printed) = repair_machine(&machine);
    insta::assert_snapshot!(rows, @r"
    ok engine: Docker 20.10.24+dfsg1 at unix:///var/run/docker.sock, overlay2, cgroup v1
    ok limits: memory, processes and CPU by the kernel, disk by polling every 3 s, since overlay2 has no usable quotas
    ok base image: debian:bookworm-slim, 75 MB
    ok clock: `/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1`
    ");
    assert_eq!((printed.as_str(), machine.commands(), machine.posts()), ("", Vec::new(), Vec::new()));
}

#[test]
fn a_diagnosis_changes_nothing() {
    let machine = machine().file("/etc/os-release", "ID=debian\n").file("/run/docker.pid", "77");
    let report = diagnose(&machine.system(), Path::new("/tmp"));
    assert!(!report.healthy);
    insta::assert_snapshot!(summary(&machine, &report), @r"
    missing engine: no Docker or Podman answers, and Docker is not installed (`termsmith doctor --fix` installs docker.io and iptables on systems with apt)
    missing limits: unknown until an engine answers (see the row `engine`)
    missing base image: unknown until an engine answers (see the row `engine`)
    ok clock: `/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1`
    ");
    assert_eq!(machine.commands(), [""; 0]);
    assert!(machine.system().path("/run/docker.pid").exists());
}

#[test]
fn a_bare_machine_gets_an_engine() {
    let machine = machine().file("/etc/os-release", "ID=debian\n").file("/run/docker.pid", "77");
    machine.when_run(
        "env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=180 install",
        Reply::text(0, ""),
        |m| {
            let _ = m.clone().file("/usr/sbin/dockerd", "");
        },
    );
    machine.when_run("setsid", Reply::text(0, ""), start_engine);
    let (rows, printed) = repair_machine(&machine);
    insta::assert_snapshot!(rows, @r"
    fixed engine: Docker 20.10.24+dfsg1 at unix:///var/run/docker.sock, overlay2, cgroup v1
    ok limits: memory, processes and CPU by the kernel, disk by polling every 3 s, since overlay2 has no usable quotas
    ok base image: debian:bookworm-slim, 75 MB
    ok clock: `/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1`
    ");
    insta::assert_snapshot!(printed, @r"
    Installing docker.io, iptables (system packages, by apt-get) …
    Removing stale files of a dead daemon: /run/docker.pid …
    Starting `/usr/sbin/dockerd` in the background (no init system runs here; log: `/var/log/docker.log`) …
    ");
}

#[test]
fn an_engine_that_the_package_started_is_not_started_again() {
    let machine = machine().file("/etc/os-release", "ID=ubuntu\nID_LIKE=debian\n");
    machine.when_run("env", Reply::text(0, ""), start_engine);
    let (rows, _) = repair_machine(&machine);
    assert!(rows.starts_with("fixed engine"), "{rows}");
    assert_eq!(machine.commands().len(), 2, "update and install: {:?}", machine.commands());
}

/// The row `engine` after a fix that cannot work.
fn check_stop(machine: &Machine, expected: &str) {
    let (rows, printed) = repair_machine(machine);
    assert_eq!(rows.lines().next(), Some(expected));
    assert_eq!((printed.as_str(), machine.commands().iter().any(|c| c.contains("apt-get"))), ("", false));
}

#[test]
fn hints_say_what_to_do_where_no_fix_is_possible() {
    check_stop(
        &machine().file("/etc/os-release", "ID=debian\n").uid(1000),
        "missing engine: this needs root, and `sudo` asks for a password or is not installed (run as root: \
         `apt-get update && apt-get install -y --no-install-recommends --no-remove docker.io iptables`; then run the doctor \
         again)",
    );
    check_stop(
        &machine().file("/etc/os-release", "ID=arch\nNAME=\"Arch Linux\"\n"),
        "missing engine: Arch Linux is not based on Debian, so its package names are unknown (install docker.io, iptables yourself \
         (names of Debian), then run the doctor again)",
    );
    check_stop(
        &machine().file("/usr/sbin/dockerd", "").env("DOCKER_HOST", "ssh://me@engine.example"),
        "missing engine: DOCKER_HOST is ssh://me@engine.example, which the doctor cannot start: it starts only the engine of \
         this machine (start the engine there, or unset DOCKER_HOST)",
    );
    check_stop(
        &machine().file("/usr/sbin/dockerd", "").env("DOCKER_HOST", "unix:///elsewhere.sock"),
        "missing engine: DOCKER_HOST is unix:///elsewhere.sock, which the doctor cannot start: it starts only the engine of this \
         machine (start the engine there, or unset DOCKER_HOST)",
    );
}

#[test]
fn an_ineffective_fix_is_reported_as_missing() {
    fn missing(_: &Context<'_>) -> Finding {
        Finding::missing("still").hint("look")
    }
    fn warn(_: &Context<'_>) -> Finding {
        Finding::warn("meh")
    }
    fn works(_: &Context<'_>, _: &mut Events<'_>) -> Result<(), FixError> {
        Ok(())
    }
    fn fails(_: &Context<'_>, _: &mut Events<'_>) -> Result<(), FixError> {
        Err(FixError::Refused { action: "do it", message: "no".into() })
    }
    let check = |inspect, fix| Check { name: "x", inspect, fix };
    for (check, expected) in [
        (check(missing, Some(works)), Finding::missing("still").hint("look")),
        (check(missing, None), Finding::missing("still").hint("look")),
        (check(missing, Some(fails)), Finding::missing("the engine failed to do it: no")),
        // The machine is not changed because of a warning.
        (check(warn, Some(fails)), Finding::warn("meh")),
    ] {
        let system = machine().system();
        let context = Context { system: &system, out: Path::new("/tmp") };
        let report = repair_with(&[check], &context, &mut Events::new(&mut |_| {}));
        assert_eq!(report.healthy, expected.status != Status::Missing);
        assert_eq!(report.rows, [Row::new("x", expected)]);
    }
}

#[test]
fn names_of_checks_are_unique() {
    let names: std::collections::BTreeSet<&str> = CHECKS.iter().map(|check| check.name).collect();
    assert_eq!(names.len(), CHECKS.len());
}
