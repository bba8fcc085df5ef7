//! Properties of a real engine: isolation, limits, images, and complete clean-up.

use std::process::{Command, Stdio};
use std::time::Duration;

use bollard::Docker;
use termsmith::model::Profile;
use termsmith::model::ShellOutcome::{Exited, ShellDied};
use termsmith::sandbox::{
    ChangeKind, Engine, EngineError, Evidence, ExecLimit, LaunchSpec, Network, Preload, Process, Sandbox,
    SandboxError,
};

use crate::support::engine::{
    DOCKER, base, docker, eventually, launch, limit, limits, output, run, shell, spec,
};

/// A direct connection to the same engine.
fn api() -> Docker {
    Docker::connect_with_defaults().unwrap()
}

/// The engine's status and message about a container. `None` if it exists.
async fn is_gone(name: &str) -> bool {
    api().inspect_container(name, None).await.is_err()
}

fn perl(script: &str) -> String {
    format!("perl -e '{script}'")
}

#[test]
fn the_guest_cannot_be_reached_from_inside() {
    run(async {
        let Some(engine) = docker().await else { return };
        let sandbox = launch(&engine).await;
        // This kills the shell and all other processes that it may kill. Process 1 is not among
        // them.
        let result = shell(&sandbox, "sh -c 'kill -9 -1'; echo survived the kill").await;
        assert_eq!((result.outcome, result.output.as_slice()), (ShellDied(137), &b""[..]));
        assert_eq!(output(&sandbox, "echo usable").await, "usable\n");
        let result = shell(&sandbox, "for s in 1 2 3 6 11 15 19 64; do kill -$s 1; done; echo sent").await;
        assert_eq!(result.output, b"sent\n");
        // The numbers of its descriptors can be listed. None can be opened.
        let fds = output(&sandbox, "ls /proc/1/fd").await;
        let open = fds.lines().flat_map(|fd| {
            [
                format!("head -c 1 /proc/1/fd/{fd}"),
                format!("echo x >/proc/1/fd/{fd}"),
                format!("stat -L /proc/1/fd/{fd}"),
            ]
        });
        let others = [
            "cat /proc/1/environ",
            "head -c 1 /proc/1/mem",
            "ls /proc/1/cwd/",
            "ls /proc/1/root/",
            "cat /proc/1/maps",
            "echo x >/.termsmith/guest",
        ];
        for command in open.chain(others.map(str::to_owned)) {
            let result = shell(&sandbox, &command).await;
            let text = String::from_utf8_lossy(&result.output);
            assert_ne!(result.outcome, Exited(0), "{command}: {text}");
            assert!(
                text.contains("Permission denied") || text.contains("Read-only file system"),
                "{command}: {text}"
            );
        }
        assert_eq!(output(&sandbox, "cat /proc/1/comm; echo $$ | grep -c .").await, "guest\n1\n");
    });
}

#[test]
fn orphans_are_reaped() {
    run(async {
        let Some(engine) = docker().await else { return };
        let sandbox = launch(&engine).await;
        shell(&sandbox, "for i in 1 2 3 4 5; do (sh -c 'exit 0' & exec true) & done; wait").await;
        // A zombie would be listed with state Z until it is reaped.
        assert!(
            !output(&sandbox, "cat /proc/$$/cmdline").await.contains("printf"),
            "the driver stays out of `ps`"
        );
        let wait = "until ! grep -l ' Z ' /proc/[0-9]*/stat 2>/dev/null | grep -q .; do :; done; echo none";
        assert_eq!(output(&sandbox, wait).await, "none\n");
    });
}

#[test]
fn limits_hold_and_the_sandbox_stays_usable() {
    run(async {
        let Some(engine) = docker().await else { return };
        let sandbox = launch(&engine).await;
        let bomb = sandbox.shell(":(){ :|:& };:; sleep 2", &limit(Duration::from_secs(5))).await.unwrap();
        let text = String::from_utf8_lossy(&bomb.output);
        assert!(text.contains("Resource temporarily unavailable"), "{text}");
        eventually("the bomb is over", async || {
            let kill = Process::new("/bin/sh").args(["-c", "kill -9 -1"]);
            let _ = sandbox.spawn(&kill).await.unwrap();
            let result = sandbox.shell("/bin/true", &limit(Duration::from_secs(5))).await;
            result.is_ok_and(|result| result.outcome == Exited(0))
        })
        .await;

        let hog = perl("@a = map { 0 x 10000000 } 1..100");
        let result = shell(&sandbox, &hog).await;
        assert_eq!(result.outcome, Exited(137), "{result:?}");
        assert_eq!(output(&sandbox, "echo usable").await, "usable\n");

        let file = shell(&sandbox, "head -c 200000000 /dev/zero >big; echo $?; stat -c %s big").await;
        let text = String::from_utf8(file.output).unwrap();
        assert!(text.ends_with("153\n67108864\n"), "{text}");
        assert_eq!(output(&sandbox, "ulimit -c; ulimit -n").await, "0\n1024\n");

        let state = sandbox.stop().await.unwrap().state().await.unwrap();
        assert!(state.oom_killed, "{state:?}");
        assert_eq!(state.exit_code, 137);
    });
}

#[test]
fn a_lost_sandbox_reports_its_evidence() {
    run(async {
        let Some(engine) = docker().await else { return };
        let sandbox = launch(&engine).await;
        // From outside, as the kernel or the watchdog would do it.
        let options = bollard::query_parameters::KillContainerOptionsBuilder::new().signal("SIGKILL").build();
        let limit = limit(Duration::from_secs(60));
        let running = sandbox.shell("sleep 1000", &limit);
        let kill = async {
            api().kill_container(sandbox.id().as_str(), Some(options)).await.unwrap();
        };
        let (lost, ()) = tokio::join!(running, kill);
        let Err(SandboxError::Lost(loss)) = lost else { panic!("{lost:?}") };
        assert_eq!(loss.evidence, Evidence::KilledFromOutside, "{loss}");
        let later = sandbox.shell("true", &ExecLimit::default()).await;
        assert!(matches!(later, Err(SandboxError::Lost(_))), "{later:?}");
    });
}

#[test]
fn the_profile_decides_capabilities_and_there_is_no_network() {
    run(async {
        let Some(engine) = docker().await else { return };
        let (image, limits) = (base(), limits());
        // Bits of CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID, NET_BIND_SERVICE. Bit
        // 12 is NET_ADMIN.
        const PLAIN: u64 = 1 | 1 << 1 | 1 << 3 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 7 | 1 << 10;
        for (profile, bits) in [(Profile::Plain, PLAIN), (Profile::Net, PLAIN | 1 << 12)] {
            let sandbox = engine.launch(&LaunchSpec { profile, ..spec(&image, &limits) }).await.unwrap();
            let status = output(&sandbox, "grep -E 'Cap(Prm|Eff|Bnd)|NoNewPrivs' /proc/self/status").await;
            let expected =
                format!("CapPrm:\t{bits:016x}\nCapEff:\t{bits:016x}\nCapBnd:\t{bits:016x}\nNoNewPrivs:\t1\n");
            assert_eq!(status, expected, "{profile:?}");
            assert_eq!(output(&sandbox, "ls /sys/class/net").await, "lo\n");
            assert_eq!(output(&sandbox, "hostname").await, "sandbox\n");
        }
    });
}

#[test]
fn a_network_can_be_shared_with_one_other_sandbox() {
    run(async {
        let Some(engine) = docker().await else { return };
        let server = launch(&engine).await;
        let serve = perl(
            "use IO::Socket::INET; my $s = IO::Socket::INET->new(Listen => 5, LocalAddr => q(127.0.0.1:8000)); \
             $| = 1; print qq(up\\n); while (my $c = $s->accept) { print $c qq(hello\\n); close $c }",
        );
        assert_eq!(output(&server, &format!("mkfifo up; {serve} >up & read x <up; echo $x")).await, "up\n");
        let (image, limits) = (base(), limits());
        let network = Network::Of(server.id().clone());
        let client = engine.launch(&LaunchSpec { network, ..spec(&image, &limits) }).await.unwrap();
        assert_eq!(output(&client, "cat </dev/tcp/127.0.0.1/8000").await, "hello\n");
        let other = launch(&engine).await;
        assert_eq!(shell(&other, "cat </dev/tcp/127.0.0.1/8000").await.outcome, Exited(1));
    });
}

#[test]
fn a_sabotaged_shell_is_an_error_and_not_a_hang() {
    run(async {
        let Some(engine) = docker().await else { return };
        let sandbox = launch(&engine).await;
        let sabotage = "rm -f /bin/bash /usr/bin/bash; printf '#!/bin/sh\\nexit 3\\n' >/usr/bin/bash; chmod +x /usr/bin/bash; exit";
        assert_eq!(shell(&sandbox, sabotage).await.outcome, ShellDied(0));
        let result = shell(&sandbox, "echo hello").await;
        assert_eq!((result.outcome, result.shell_restarted), (ShellDied(3), true), "{result:?}");
        sandbox.spawn(&Process::new("/bin/rm").args(["-f", "/bin/bash", "/usr/bin/bash"])).await.unwrap();
        let refused = sandbox.shell("echo hello", &ExecLimit::default()).await;
        let Err(SandboxError::Failed { message }) = refused else { panic!("{refused:?}") };
        assert_eq!(message, "cannot start `bash`: No such file or directory (os error 2)");
    });
}

#[test]
fn preloads_are_there_before_anything_runs() {
    run(async {
        let Some(engine) = docker().await else { return };
        let tar = {
            let mut tar = tar::Builder::new(Vec::new());
            let mut header = tar::Header::new_gnu();
            header.set_mode(0o755);
            header.set_size(6);
            tar.append_data(&mut header, "deep/file", &b"bytes\n"[..]).unwrap();
            tar.into_inner().unwrap()
        };
        let (image, limits) = (base(), limits());
        let preload = ["/new/and/deeper", "/usr/share", "/"]
            .map(|dest| Preload { dest: dest.to_owned(), tar: tar.clone().into() });
        let before = output(&launch(&engine).await, "stat -c '%a %u %Y' /usr /usr/share/doc").await;
        let sandbox =
            engine.launch(&LaunchSpec { preload: preload.into(), ..spec(&image, &limits) }).await.unwrap();
        let text = output(&sandbox, "cat /new/and/deeper/deep/file /usr/share/deep/file /deep/file").await;
        assert_eq!(text, "bytes\nbytes\nbytes\n");
        assert_eq!(output(&sandbox, "stat -c '%a %u %Y' /usr /usr/share/doc").await, before);
    });
}

#[test]
fn a_stopped_container_can_be_read_compared_and_committed() {
    run(async {
        let Some(engine) = docker().await else { return };
        let sandbox = launch(&engine).await;
        shell(&sandbox, "echo state >/app/file; rm /etc/issue; echo x >>/etc/profile; sleep 1000 &").await;
        let stopped = sandbox.stop().await.unwrap();
        let changes = stopped.changes().await.unwrap();
        let kind = |path: &str| changes.iter().find(|change| change.path == path).map(|change| change.kind);
        assert_eq!(kind("/app/file"), Some(ChangeKind::Added), "{changes:?}");
        assert_eq!(kind("/etc/issue"), Some(ChangeKind::Deleted), "{changes:?}");
        assert_eq!(kind("/etc/profile"), Some(ChangeKind::Modified), "{changes:?}");
        assert!(changes.iter().all(|change| !change.path.contains("termsmith")), "{changes:?}");
        let archive = stopped.archive("/app/file", 10_000).await.unwrap();
        assert!(archive.tar.bytes().unwrap().windows(6).any(|window| window == b"state\n"));

        let snapshot = stopped.commit().await.unwrap();
        let reference = snapshot.reference().to_owned();
        let name = stopped.id().as_str().to_owned();
        let copy = engine.launch(&spec(&snapshot, &limits())).await.unwrap();
        assert_eq!(
            output(&copy, "cat file; ls /etc/issue 2>&1; grep -l sleep /proc/[0-9]*/comm").await,
            "state\nls: cannot access '/etc/issue': No such file or directory\n"
        );
        drop((copy, stopped, snapshot));
        eventually("the snapshot and its container are removed", async || {
            api().inspect_image(&reference).await.is_err() && is_gone(&name).await
        })
        .await;
    });
}

/// Whiteout files. In an image's layer they would delete other files, or could not be written.
#[test]
fn a_state_with_names_of_deletions_is_not_committed() {
    run(async {
        let Some(engine) = docker().await else { return };
        for name in ["/app/.wh..", "/app/sub/.wh.file", "/app/.wh..wh..opq"] {
            let sandbox = launch(&engine).await;
            shell(&sandbox, &format!("mkdir -p /app/sub; touch {name}")).await;
            let refused = sandbox.stop().await.unwrap().commit().await.unwrap_err();
            assert!(
                matches!(&refused, EngineError::NotSavable { path } if path == name),
                "{name}: {refused}"
            );
        }
    });
}

/// Holes in a file take no blocks, but an image stores them as zeros.
#[test]
fn a_state_larger_than_the_disk_limit_is_not_committed() {
    run(async {
        let Some(engine) = docker().await else { return };
        let check = async |name: &str, command: &str, larger: bool| {
            let sandbox = launch(&engine).await;
            assert_eq!(output(&sandbox, command).await, "", "{name}");
            let running = sandbox.snapshot().await;
            assert_eq!(output(&sandbox, "echo resumed").await, "resumed\n", "{name}");
            let stopped = sandbox.stop().await.unwrap().commit().await;
            for committed in [running, stopped] {
                let refused = matches!(committed, Err(EngineError::StateTooLarge { limit_mib: 64 }));
                assert_eq!(refused, larger, "{name}: {committed:?}");
                assert_eq!(committed.is_err(), larger, "{name}: {committed:?}");
            }
        };
        check("files with holes", "cd /srv; truncate -s 40M a b", true).await;
        check("a smaller file with holes", "cd /srv; truncate -s 40M a", false).await;
        let names = "cd /srv; truncate -s 40M a; for name in b c d; do ln a $name; done";
        check("a file with several names", names, false).await;
    });
}

#[test]
fn a_stopped_container_can_be_started_again() {
    run(async {
        let Some(engine) = docker().await else { return };
        let sandbox = launch(&engine).await;
        shell(&sandbox, "echo state >/app/file; export LEFT=1; echo x >/dev/shm/x; setsid sleep 1000 &")
            .await;
        let stopped = sandbox.stop().await.unwrap();
        let name = stopped.id().as_str().to_owned();
        let again = stopped.restart("/").await.unwrap();
        assert_eq!(again.id().as_str(), name);
        assert_eq!(
            output(&again, "pwd; cat /app/file; echo $LEFT; ls /dev/shm; grep -l sleep /proc/[0-9]*/comm")
                .await,
            "/\nstate\n\n"
        );
        // A stopped sandbox is killed and removed like any other.
        let stopped = again.stop().await.unwrap();
        drop(stopped);
        eventually("the container is removed", async || is_gone(&name).await).await;

        // Root in the container made it unstartable. That gives an engine error, and does not hang.
        let sandbox = launch(&engine).await;
        shell(&sandbox, "cd /; mv /.termsmith /old; echo >/.termsmith; rm -rf /app; echo >/app").await;
        let refused = sandbox.stop().await.unwrap().restart("/").await.unwrap_err();
        assert!(matches!(refused, EngineError::NotStarted { .. } | EngineError::Guest { .. }), "{refused}");
    });
}

#[test]
fn an_archive_is_unpacked_with_owners_modes_and_links() {
    run(async {
        let Some(engine) = docker().await else { return };
        let sandbox = launch(&engine).await;
        let mut tar = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o640);
        header.set_uid(1234);
        header.set_gid(4321);
        header.set_size(5);
        tar.append_data(&mut header, "new/deep/file", &b"text\n"[..]).unwrap();
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_size(0);
        tar.append_link(&mut header, "new/link", "/etc/passwd").unwrap();
        sandbox.unpack(&tar.into_inner().unwrap().into()).await.unwrap();
        assert_eq!(
            output(&sandbox, "stat -c '%u %g %a' /new/deep/file; cat /new/deep/file; readlink /new/link")
                .await,
            "1234 4321 640\ntext\n/etc/passwd\n"
        );
        let failed = sandbox.unpack(&b"no archive at all".to_vec().into()).await.unwrap_err();
        assert!(failed.to_string().contains("tar"), "{failed}");
    });
}

#[test]
fn dropped_sandboxes_are_removed() {
    run(async {
        let engine = DOCKER.connect().await;
        if docker().await.is_none() {
            return;
        }
        let engine = engine.unwrap();
        let dropped = launch(&engine).await;
        let destroyed = launch(&engine).await;
        let stopped = launch(&engine).await.stop().await.unwrap();
        let names = [dropped.id(), destroyed.id(), stopped.id()].map(|id| id.as_str().to_owned());
        drop((dropped, stopped));
        destroyed.destroy().await;
        // The answer to this request is never read.
        let image = base();
        let limits = limits();
        let spec = spec(&image, &limits);
        let _ = tokio::time::timeout(Duration::from_millis(5), engine.launch(&spec)).await;
        engine.close().await;
        for name in &names {
            assert!(is_gone(name).await, "{name}");
        }
    });
}

/// Not a test: the owner process that `orphans_are_swept` kills.
#[test]
#[ignore = "run by another test as a process of its own"]
fn owner_process() {
    run(async {
        let engine = DOCKER.connect().await.unwrap();
        let sandbox = launch(&engine).await;
        println!("container {}", sandbox.id());
        std::future::pending::<()>().await;
    });
}

#[test]
fn orphans_are_swept_and_living_owners_are_not_disturbed() {
    run(async {
        let Some(engine) = docker().await else { return };
        let start = || {
            let mut owner = Command::new(std::env::current_exe().unwrap())
                .args(["--ignored", "--exact", "sandbox_docker::owner_process", "--nocapture"])
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let lines = std::io::BufRead::lines(std::io::BufReader::new(owner.stdout.take().unwrap()));
            let name = lines
                .map_while(Result::ok)
                .find_map(|line| Some(line.split_once("container ")?.1.to_owned()));
            (owner, name.unwrap())
        };
        let ((mut dead, orphan), (mut alive, used)) = (start(), start());
        dead.kill().unwrap();
        dead.wait().unwrap();
        // The guest ends with the stream, so an orphan costs only disk space until a sweep.
        eventually("the orphan has ended", async || {
            let state =
                api().inspect_container(&orphan, None).await.ok().and_then(|container| container.state);
            !state.and_then(|state| state.running).unwrap_or(false)
        })
        .await;
        let own = launch(&engine).await;
        engine.sweep().await.unwrap();
        assert!(is_gone(&orphan).await);
        assert!(!is_gone(&used).await);
        assert_eq!(output(&own, "echo undisturbed").await, "undisturbed\n");
        alive.kill().unwrap();
        alive.wait().unwrap();
        engine.sweep().await.unwrap();
        assert!(is_gone(&used).await);
    });
}

#[test]
fn a_missing_engine_is_named() {
    // It runs in a process of its own, since all threads share the environment.
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "sandbox_docker::unreachable_engine", "--nocapture"])
        .env("DOCKER_HOST", "unix:///nonexistent/docker.sock")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    // A filter that matches no test would succeed too.
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

#[test]
#[ignore = "run by another test with its own environment"]
fn unreachable_engine() {
    run(async {
        let Err(error) = DOCKER.connect().await else { panic!("there is an engine") };
        assert!(
            matches!(&error, EngineError::Unreachable { endpoint, .. } if endpoint == "unix:///nonexistent/docker.sock")
        );
        assert!(error.is_transient());
        assert!(error.to_string().contains("hint: start Docker or Podman"), "{error}");
    });
}

/// Needs an engine that cannot see the cache folder:
/// `unshare -m sh -c 'mount -t tmpfs none /mnt;
/// XDG_CACHE_HOME=/mnt exec cargo test --test docker sandbox_docker -- --ignored uploaded'`
#[test]
#[ignore = "needs a mount namespace of its own"]
fn a_guest_that_cannot_be_mounted_is_uploaded() {
    run(async {
        let Some(engine) = docker().await else { return };
        for _ in 0..2 {
            let sandbox = launch(&engine).await;
            assert_eq!(
                output(&sandbox, "cat /proc/1/comm; grep -c termsmith /proc/mounts").await,
                "guest\n0\n"
            );
            let changes = sandbox.stop().await.unwrap().changes().await.unwrap();
            assert!(changes.iter().all(|change| !change.path.contains("termsmith")), "{changes:?}");
        }
    });
}

/// So `Sandbox` can be held across awaits in spawned tasks.
#[test]
fn handles_can_be_sent() {
    fn check<T: Send + Sync>() {}
    check::<Engine>();
    check::<Sandbox>();
}
