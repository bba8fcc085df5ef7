use std::path::PathBuf;

use super::super::discovery::DEFAULT_SOCKET;
use super::fake::{Machine, Reply, run};
use super::*;
use crate::sandbox::diagnosis::{Limit, Status};

const INFO: &str = r#"{"Driver":"overlay2","MemoryLimit":true,"PidsLimit":true,"CpuCfsQuota":true,"DockerRootDir":"/var/lib/docker"}"#;
const VERSION: &str =
    r#"{"Version":"20.10.24+dfsg1","Components":[{"Name":"Engine","Version":"20.10.24+dfsg1"}]}"#;
const IMAGE_REQUEST: &str = "GET /images/debian:bookworm-slim/json";

/// A machine with an engine. `info` and `image` are the engine's answers about itself and the
/// image.
fn with_engine(info: Reply, image: Reply) -> Machine {
    let routes = [
        ("GET /_ping", (200, "OK")),
        ("GET /version", (200, VERSION)),
        ("GET /info", info),
        (IMAGE_REQUEST, image),
    ];
    Machine::new().engine(DEFAULT_SOCKET, &routes)
}

/// The rows of the report, without the folder that stands for the root.
fn rows(machine: &Machine) -> String {
    let root = machine.host().root.display().to_string();
    let rows = run(diagnose(&machine.host())).rows.into_iter().map(|(name, found)| {
        let part = found.part.map(|part| format!(" <{part}>")).unwrap_or_default();
        format!("{} {name}: {}{part}\n", found.status.as_str(), found.detail).replace(&root, "")
    });
    rows.collect()
}

#[test]
fn an_engine_that_answers_is_described() {
    let machine = with_engine((200, INFO), (200, r#"{"Size":75000000}"#));
    insta::assert_snapshot!(rows(&machine), @r"
    ok engine: Docker 20.10.24+dfsg1 at unix:///var/run/docker.sock, overlay2, cgroup v1
    ok limits: memory, processes and CPU by the kernel, disk by polling every 3 s, since overlay2 has no usable quotas
    ok base image: debian:bookworm-slim, 75 MB
    ");
    let found = run(diagnose(&machine.host()));
    assert_eq!(found.image_folder, Some(machine.host().path("/var/lib/docker")));
    let address = format!("unix://{}", machine.host().path(DEFAULT_SOCKET).display());
    assert_eq!(found.address, Some(address));
    let limited = |limit: &Limit| limit.name == "processes";
    assert!(found.limits.iter().any(limited), "{:?}", found.limits);
}

#[test]
fn what_the_script_can_provide_names_its_part() {
    insta::assert_snapshot!(rows(&Machine::new()), @r"
    missing engine: no Docker or Podman answers, and Docker is not installed <engine>
    missing limits: unknown until an engine answers
    missing base image: unknown until an engine answers
    ");
    let elsewhere = Machine::new().env("DOCKER_HOST", "ssh://me@engine.example");
    assert!(rows(&elsewhere).starts_with(
        "missing engine: DOCKER_HOST is `ssh://me@engine.example`: only unix:// and tcp:// without TLS are supported\n"
    ));
    let without_image = with_engine((200, INFO), (404, r#"{"message":"No such image"}"#));
    assert!(
        rows(&without_image)
            .ends_with("missing base image: the engine has no image debian:bookworm-slim <base-image>\n")
    );
    let parts = ["engine", "base-image"];
    for part in parts {
        assert!(FIX_SCRIPT.contains(&format!("\n{part}) ")), "{part}");
    }
}

#[test]
fn an_engine_that_answers_with_errors_is_missing() {
    for machine in [
        with_engine((500, r#"{"message":"broken"}"#), (200, "{}")),
        with_engine((200, INFO), (500, r#"{"message":"broken"}"#)),
    ] {
        let text = rows(&machine);
        assert!(text.starts_with("missing engine: unix:///var/run/docker.sock: "), "{text}");
        assert!(text.contains("broken\n"), "{text}");
    }
}

#[test]
fn the_row_of_the_image_says_where_it_comes_from() {
    let check = |image: &'static str, expect: &str| {
        let text = rows(&with_engine((200, INFO), (200, image)));
        assert_eq!(text.lines().last(), Some(expect));
    };
    check(r#"{"Size":74800000,"Config":{"Labels":null}}"#, "ok base image: debian:bookworm-slim, 74 MB");
    check(
        r#"{"Size":80000000,"Config":{"Labels":{"termsmith.bootstrap":"1"}}}"#,
        "ok base image: debian:bookworm-slim, 80 MB, built here",
    );
    for word in [BASE_IMAGE, BUILT_HERE] {
        assert!(FIX_SCRIPT.contains(word), "{word}");
    }
}

#[test]
fn versions_that_were_not_tested_are_warned_about() {
    let check = |version: &str, info: &str, status: Status, detail: &str| {
        let endpoint = Endpoint::Tcp("e:1".to_owned());
        let finding =
            judge(&endpoint, &serde_json::from_str(version).unwrap(), &serde_json::from_str(info).unwrap());
        assert_eq!((finding.status, finding.detail.as_str()), (status, detail), "{version}");
        assert_eq!(finding.hint.is_some(), status != Status::Ok, "a warning says what is wrong");
    };
    let docker = |version: &str| {
        format!(r#"{{"Version":"{version}","Components":[{{"Name":"Engine","Version":"1"}}],"More":1}}"#)
    };
    let overlay = r#"{"Driver":"overlay2","CgroupVersion":"2"}"#;
    let tail = "at tcp://e:1, overlay2, cgroup v2";
    for (version, status) in [
        ("20.10.24+dfsg1", Status::Ok),
        ("20.10", Status::Ok),
        ("20.1", Status::Warn),
        ("20.100.1", Status::Warn),
        ("26.1.5", Status::Warn),
    ] {
        check(&docker(version), overlay, status, &format!("Docker {version} {tail}"));
    }
    let podman = r#"{"Version":"20.10","Components":[{"Name":"Podman Engine","Version":"4"},{"Name":"Conmon","Version":"2"}]}"#;
    check(podman, overlay, Status::Warn, &format!("Podman 20.10 {tail}"));
    check("{}", overlay, Status::Warn, &format!("Docker of unknown version {tail}"));
    // Older engines do not name their cgroup version. It is 1.
    check(
        &docker("19.03.1"),
        r#"{"Driver":"vfs"}"#,
        Status::Warn,
        "Docker 19.03.1 at tcp://e:1, vfs, cgroup v1",
    );
}

/// Facts about a host with an engine of this description.
fn with_facts<T>(info: &str, mounts: &str, reads_layers: bool, judge: impl Fn(&limits::Facts<'_>) -> T) -> T {
    let (info, version) = (serde_json::from_str(info).unwrap(), SystemVersion::default());
    judge(&limits::Facts { info: &info, version: &version, mounts, reads_layers, has_tcp_limits: true })
}

#[test]
fn absent_limits_are_named() {
    const ALL: &str = r#"{"MemoryLimit":true,"PidsLimit":true,"CpuCfsQuota":true,"Driver":"overlay2","DriverStatus":[["Backing Filesystem","extfs"]]}"#;
    for (info, reads_layers, status, detail) in [
        (
            ALL,
            true,
            Status::Ok,
            "memory, processes and CPU by the kernel, disk by polling every 3 s, since overlay2 on extfs has no usable quotas",
        ),
        // A user of the group `docker`, or an engine elsewhere.
        (ALL, false, Status::Warn, "the disk of containers is not limited: only root can read their layers"),
        (
            r#"{"MemoryLimit":true,"PidsLimit":false,"CpuCfsQuota":true}"#,
            true,
            Status::Warn,
            "the engine cannot limit processes",
        ),
        ("{}", true, Status::Warn, "the engine cannot limit memory, processes, CPU"),
        (
            r#"{"MemoryLimit":true,"PidsLimit":true,"CpuCfsQuota":true,"Driver":"overlay2","DriverStatus":[["Backing Filesystem","tmpfs"]]}"#,
            true,
            Status::Warn,
            "the engine keeps the files of containers in memory, where they count toward their memory limits",
        ),
    ] {
        let finding = with_facts(info, "", reads_layers, judge_limits);
        assert_eq!((finding.status, finding.detail.as_str()), (status, detail), "{info}");
    }
}

#[test]
fn layers_are_read_by_root_on_the_engines_machine() {
    let local = Endpoint::Unix(PathBuf::from(DEFAULT_SOCKET));
    let remote = Endpoint::Tcp("e:1".to_owned());
    for (uid, endpoint, expect) in [(0, &local, true), (1000, &local, false), (0, &remote, false)] {
        assert_eq!(reads_layers(&Machine::new().uid(uid).host(), endpoint), expect, "{uid} {endpoint}");
    }
}

#[test]
fn disk_quotas_need_a_file_system_that_is_mounted_with_them() {
    let xfs = r#"{"Driver":"overlay2","DockerRootDir":"/var/lib/docker","DriverStatus":[["Backing Filesystem","xfs"]]}"#;
    let polled = "disk by polling every 3 s, since overlay2 on xfs has no usable quotas";
    let quota = "disk by quota (overlay2 on xfs)";
    for (info, mounts, detail) in [
        (xfs, "", polled),
        (xfs, "/dev/a / ext4 rw 0 0\n/dev/b /var/lib/docker xfs rw,prjquota 0 0\n", quota),
        (xfs, "/dev/a / xfs rw,prjquota 0 0\n/dev/b /var/lib xfs rw,noquota 0 0\n", polled),
        (xfs, "/dev/b /var/lib xfs rw,noquota 0 0\n/dev/c /var/lib xfs rw,pquota 0 0\n", quota),
        (xfs, "/dev/b /var/lib/other xfs rw,pquota 0 0\n", polled),
        (r#"{"Driver":"btrfs"}"#, "", "disk by polling every 3 s, since btrfs has no usable quotas"),
    ] {
        assert_eq!(with_facts(info, mounts, true, disk_limit).as_deref(), Some(detail), "{mounts}");
        let by_quota = (detail == quota).then_some(detail);
        assert_eq!(with_facts(info, mounts, false, disk_limit).as_deref(), by_quota, "{mounts}");
    }
}
