use super::super::fake::{Machine, Reply};
use super::*;
use std::path::Path;

const SOCKET: &str = "/var/run/docker.sock";
const DEBIAN: &str = "ID=debian\nVERSION_CODENAME=bookworm\n";
const NO_REGISTRY: &str = r#"{"message":"dial tcp: lookup registry: no such host"}"#;

fn fix_it(machine: &Machine) -> (Result<(), FixError>, Vec<String>) {
    let system = machine.system();
    let mut printed = Vec::new();
    let result = fix(
        &Context { system: &system, out: Path::new("/out") },
        &mut Events::new(&mut |event| printed.push(event.to_string())),
    );
    (result, printed)
}

/// A machine whose engine pulls and imports with these replies.
fn machine(os_release: &str, pulled: Reply, imported: Reply) -> Machine {
    let machine = Machine::new().file("/etc/os-release", os_release);
    machine.engine(
        SOCKET,
        &[
            ("GET /_ping", Reply::text(200, "OK")),
            ("POST /images/create?fromImage", pulled),
            ("POST /images/create?fromSrc", imported),
            ("GET /images/debian:bookworm-slim/json", Reply::text(200, r#"{"Size":1}"#)),
        ],
    );
    machine
}

fn offline(os_release: &str) -> Machine {
    machine(os_release, Reply::text(500, NO_REGISTRY), Reply::text(200, "{\"status\":\"sha256:1\"}\r\n"))
}

fn with_mmdebstrap(machine: Machine) -> Machine {
    let machine = machine.file("/usr/bin/mmdebstrap", "");
    machine.when_run("mmdebstrap", Reply::text(0, "a tree as tar"), |_| {});
    machine
}

#[test]
fn an_image_is_pulled_where_a_registry_answers() {
    let progress = "{\"status\":\"Pulling\"}\r\n{\"status\":\"Done\"}\r\n";
    let machine = machine(DEBIAN, Reply::text(200, progress), Reply::text(500, "not asked"));
    let (result, printed) = fix_it(&machine);
    result.unwrap();
    assert_eq!(printed, ["Pulling debian:bookworm-slim …"]);
    assert_eq!(
        machine.posts(),
        [("POST /images/create?fromImage=debian&tag=bookworm-slim&platform=".to_owned(), Vec::new())]
    );
}

#[test]
fn a_pull_that_fails_half_way_is_a_failure() {
    let progress = "{\"status\":\"Pulling\"}\r\n{\"errorDetail\":{\"message\":\"too many requests\"},\"error\":\"too many requests\"}\r\n";
    let machine = with_mmdebstrap(machine(DEBIAN, Reply::text(200, progress), Reply::text(200, "")));
    let (result, printed) = fix_it(&machine);
    result.unwrap();
    assert!(printed[1].contains("too many requests"), "{printed:?}");
}

#[test]
fn without_a_registry_the_tree_is_streamed_into_the_engine() {
    let machine = with_mmdebstrap(offline(DEBIAN));
    let (result, printed) = fix_it(&machine);
    result.unwrap();
    let posts = machine.posts();
    let (line, body) = &posts[1];
    assert_eq!(
        line,
        "POST /images/create?fromSrc=-&repo=debian&tag=bookworm-slim&changes=CMD+%5B%22bash%22%5D\
         %0AENV+PATH%3D%2Fusr%2Flocal%2Fsbin%3A%2Fusr%2Flocal%2Fbin%3A%2Fusr%2Fsbin%3A%2Fusr%2Fbin%3A%2Fsbin%3A%2Fbin\
         %0ALABEL+termsmith.bootstrap%3D1&platform="
    );
    assert_eq!(body, b"a tree as tar");
    assert!(printed[1].contains("no such host"), "{printed:?}");
    assert!(printed[2].starts_with("Building debian:bookworm-slim from Debian's archive"), "{printed:?}");
}

#[test]
fn a_failed_file_system_never_becomes_an_image() {
    let machine = offline(DEBIAN).file("/usr/bin/mmdebstrap", "");
    machine.when_run("mmdebstrap", Reply::text(25, "E: cannot fetch"), |_| {});
    let (result, _) = fix_it(&machine);
    assert_eq!(
        result.unwrap_err().explain(),
        "`mmdebstrap … bookworm` ended with status 25\n  | E: cannot fetch"
    );
}

#[test]
fn the_reason_of_a_refused_import_is_reported() {
    let full = "{\"status\":\"…\"}\n{\"errorDetail\":{\"message\":\"no space left on device\"}}\n";
    let machine = with_mmdebstrap(machine(DEBIAN, Reply::text(500, NO_REGISTRY), Reply::text(200, full)));
    let message = fix_it(&machine).0.unwrap_err().explain();
    assert_eq!(message, "the engine failed to import the image: no space left on device");
}

/// What is run where no registry answers, without the options that are always there.
fn check_commands(machine: &Machine, expected: &[&str]) {
    let (result, _) = fix_it(machine);
    result.unwrap();
    let short = |command: String| {
        let hook = Invocation::new([format!("--customize-hook={CUSTOMIZE}")]).to_string();
        let mut short = command.replace(&format!("{hook} "), "");
        for option in SLIM {
            let option = Invocation::new([format!("--dpkgopt={option}")]).to_string();
            short = short.replace(&format!("{option} "), "");
        }
        short.replace("env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=180", "apt-get")
    };
    assert_eq!(machine.commands().into_iter().map(short).collect::<Vec<_>>(), expected);
}

#[test]
fn the_mirror_is_the_systems_own_or_debians_archive() {
    let options = "mmdebstrap --variant=minbase --format=tar '--aptopt=Acquire::Languages \"none\"' --skip=chroot/policy-rc.d";
    let mirror = offline(DEBIAN).file("/etc/apt/sources.list", "deb http://m.example/debian bookworm main\n");
    let expected = format!("{options} bookworm - 'deb http://m.example/debian bookworm main'");
    check_commands(&with_mmdebstrap(mirror), &[&expected]);

    // A mirror behind TLS must be usable from within the image.
    let mirror =
        offline(DEBIAN).file("/etc/apt/sources.list", "deb https://m.example/debian bookworm main\n");
    let expected = format!(
        "{options} --include=ca-certificates bookworm - 'deb https://m.example/debian bookworm main'"
    );
    check_commands(&with_mmdebstrap(mirror), &[&expected]);

    let ubuntu = offline("ID=ubuntu\nVERSION_CODENAME=noble\n").file(
        "/etc/apt/sources.list.d/ubuntu.sources",
        "Types: deb\nURIs: http://m.example/ubuntu\nSuites: noble\nComponents: main\n",
    );
    let expected = format!("{options} --keyring={KEYRING} bookworm -");
    check_commands(
        &ubuntu,
        &[
            "apt-get update -q",
            "apt-get install -y --no-install-recommends --no-remove mmdebstrap debian-archive-keyring",
            &expected,
        ],
    );
    check_commands(&with_mmdebstrap(offline("ID=ubuntu\n").file(KEYRING, "")), &[&expected]);
}

#[test]
fn systems_without_apt_get_a_clear_error() {
    let (result, _) = fix_it(&offline("ID=fedora\nPRETTY_NAME=\"Fedora Linux 41\"\n"));
    let error = result.unwrap_err();
    assert_eq!(error.explain(), "Fedora Linux 41 is not based on Debian, so its package names are unknown");
    assert_eq!(
        error.hint().unwrap(),
        "install the image debian:bookworm-slim yourself (names of Debian), then run the doctor again"
    );
}

/// The row for an image that the engine describes with this reply.
fn check_inspect(reply: Reply, expected: &Finding) {
    let machine = Machine::new();
    machine.engine(
        SOCKET,
        &[("GET /_ping", Reply::text(200, "OK")), ("GET /images/debian:bookworm-slim/json", reply)],
    );
    let system = machine.system();
    assert_eq!(inspect(&Context { system: &system, out: Path::new("/out") }), *expected);
}

#[test]
fn the_row_describes_the_image() {
    let ok = |text: &str| Finding::ok(text);
    check_inspect(
        Reply::text(200, r#"{"Size":74800000,"Config":{"Labels":null}}"#),
        &ok("debian:bookworm-slim, 74 MB"),
    );
    check_inspect(
        Reply::text(200, r#"{"Size":80000000,"Config":{"Labels":{"termsmith.bootstrap":"1"}}}"#),
        &ok("debian:bookworm-slim, 80 MB, built here"),
    );
    check_inspect(
        Reply::text(404, r#"{"message":"No such image"}"#),
        &Finding::missing("the engine has no image debian:bookworm-slim").hint(
            "`termsmith doctor --fix` pulls it, or builds it from a Debian mirror if no registry answers",
        ),
    );
    check_inspect(
        Reply::text(500, "broken"),
        &Finding::missing("the engine failed to describe the image: broken (status 500)"),
    );
}
