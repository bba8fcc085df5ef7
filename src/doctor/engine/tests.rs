use super::super::Status;
use super::super::fake::Machine;
use super::*;
use crate::sandbox::discovery::ProbeError;

fn check_version(version: &str, info: &str, status: Status, detail: &str) {
    let endpoint = Endpoint::Tcp("e:1".to_owned());
    let finding =
        judge(&endpoint, &serde_json::from_str(version).unwrap(), &serde_json::from_str(info).unwrap());
    assert_eq!((finding.status, finding.detail.as_str()), (status, detail), "{version}");
    assert_eq!(finding.hint.is_some(), status != Status::Ok, "a warning says what is wrong");
}

#[test]
fn versions_that_were_not_tested_are_warned_about() {
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
        check_version(&docker(version), overlay, status, &format!("Docker {version} {tail}"));
    }
    let podman = r#"{"Version":"20.10","Components":[{"Name":"Podman Engine","Version":"4"},{"Name":"Conmon","Version":"2"}]}"#;
    check_version(podman, overlay, Status::Warn, &format!("Podman 20.10 {tail}"));
    check_version("{}", overlay, Status::Warn, &format!("Docker of unknown version {tail}"));
    // Older engines do not say which cgroups they use: it is the first kind.
    check_version(
        &docker("19.03.1"),
        r#"{"Driver":"vfs"}"#,
        Status::Warn,
        "Docker 19.03.1 at tcp://e:1, vfs, cgroup v1",
    );
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
        let finding = judge_limits(&serde_json::from_str(info).unwrap(), "", reads_layers);
        assert_eq!((finding.status, finding.detail.as_str()), (status, detail), "{info}");
    }
}

#[test]
fn layers_are_read_by_root_on_the_engines_machine() {
    let local = Endpoint::Unix(PathBuf::from(DEFAULT_SOCKET));
    let remote = Endpoint::Tcp("e:1".to_owned());
    for (uid, endpoint, expect) in [(0, &local, true), (1000, &local, false), (0, &remote, false)] {
        assert_eq!(reads_layers(&Machine::new().uid(uid).system(), endpoint), expect, "{uid} {endpoint}");
    }
}

#[test]
fn only_dockers_own_socket_is_opened_by_its_group() {
    let (machine, io) = (Machine::new(), || std::io::Error::from(std::io::ErrorKind::PermissionDenied));
    let system = machine.system();
    let failure = |socket: &str, cause| ProbeFailure { endpoint: Endpoint::Unix(system.path(socket)), cause };
    let podman = "/run/podman/podman.sock";
    for (failures, expect) in [
        (vec![], None),
        (vec![failure(DEFAULT_SOCKET, ProbeError::Denied)], Some(DEFAULT_SOCKET)),
        (vec![failure(DEFAULT_SOCKET, ProbeError::NoSocket)], None),
        // An ordinary user may not look into Podman's folder, whether there is a socket or not.
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
        let found = denied(&system, &failures);
        assert_eq!(found, expect.map(|socket| system.path(socket)), "{failures:?}");
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
        let info = serde_json::from_str(info).unwrap();
        assert_eq!(disk_limit(&info, mounts, true).as_deref(), Some(detail), "{mounts}");
        let by_quota = (detail == quota).then_some(detail);
        assert_eq!(disk_limit(&info, mounts, false).as_deref(), by_quota, "{mounts}");
    }
}

/// The state of the engine on a machine where none answers.
fn check_state(machine: &Machine, expected: &Engine) {
    assert_eq!(Engine::of(&machine.system()), *expected);
}

#[test]
fn the_state_of_an_engine_that_does_not_answer_is_found() {
    let installed = || Machine::new().file("/usr/sbin/dockerd", "");
    let stopped = Engine::Stopped { dockerd: PathBuf::from("/usr/sbin/dockerd") };
    check_state(&Machine::new(), &Engine::Missing);
    check_state(&installed(), &stopped);
    check_state(&installed().file("/run/docker.pid", "77"), &stopped);
    check_state(&installed().file("/run/docker.pid", "77").process(77, "cron", 'S'), &stopped);
    check_state(
        &installed().file("/run/docker.pid", "77").process(77, "dockerd", 'S'),
        &Engine::Running { pid: 77 },
    );
    // A socket whose listener is gone.
    let abandoned = installed();
    drop(std::os::unix::net::UnixListener::bind(abandoned.system().path(DEFAULT_SOCKET)).unwrap());
    check_state(&abandoned, &stopped);
    // `DOCKER_HOST` with the default socket is still this machine's engine.
    let root = installed();
    let default = format!("unix://{DEFAULT_SOCKET}");
    check_state(&root.env("DOCKER_HOST", &default), &stopped);
    // A program elsewhere in the PATH.
    let own = Machine::new().env("PATH", "/opt/docker:/usr/bin").file("/opt/docker/dockerd", "");
    check_state(&own, &Engine::Stopped { dockerd: PathBuf::from("/opt/docker/dockerd") });
}
