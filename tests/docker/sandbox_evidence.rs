//! Processes of a container attack its guest. The tests check the evidence after the end of a
//! sandbox.

use std::time::{Duration, Instant};

use bollard::Docker;
use bollard::query_parameters::{KillContainerOptionsBuilder, RemoveContainerOptionsBuilder};
use termsmith::model::Blame;
use termsmith::sandbox::{
    ArchiveError, Engine, Evidence, ExecLimit, Process, PtyEvent, PtySize, Sandbox, SandboxError,
    process_engine,
};

use crate::support::engine::{docker, launch, limit, output, run, shell};

fn api() -> Docker {
    Docker::connect_with_defaults().unwrap()
}

/// Expected state of a sandbox after an attack on its guest.
#[derive(Clone, Copy, Debug)]
enum Expect {
    Survives,
    Lost(Evidence),
    /// The sandbox survives, or the evidence blames the solver. It never blames another party.
    SurvivesOrBlamed,
}

/// Runs `script` in a new sandbox, then checks whether the guest answers.
async fn check(engine: &Engine, name: &str, script: &str, expect: Expect) {
    let sandbox = launch(engine).await;
    let attack = sandbox.shell(script, &limit(Duration::from_secs(8))).await;
    // The shell may have died, and the next one may fail to start because processes ran out. Only
    // an answer of the guest counts.
    let after = sandbox.shell("echo usable", &limit(Duration::from_secs(8))).await;
    let lost =
        [attack.as_ref().err(), after.as_ref().err()].into_iter().flatten().find_map(|error| match error {
            SandboxError::Lost(loss) => Some(loss.clone()),
            _ => None,
        });
    match (expect, &lost) {
        (Expect::Survives | Expect::SurvivesOrBlamed, None) => {}
        (Expect::Lost(evidence), Some(loss)) if loss.evidence == evidence => {}
        (Expect::SurvivesOrBlamed, Some(loss)) if loss.blame() != Some(Blame::Infra) => {}
        _ => panic!("{name}: {expect:?}, but {lost:?}; the attack: {attack:?}; after it: {after:?}"),
    }
}

/// Number of events that an engine keeps for all containers (dockerd's `eventsLimit`).
const ENGINE_EVENTS: usize = 256;
/// An out-of-memory event this long ago does not explain a kill.
const LONG_BEFORE: Duration = Duration::from_secs(8);

#[test]
fn the_guest_survives_attacks_or_the_evidence_is_against_the_attacker() {
    use Expect::{Lost, Survives, SurvivesOrBlamed};
    run(async {
        let Some(engine) = docker().await else { return };
        let limits = "for r in cpu=1:1 nofile=1:1 as=1:1 fsize=1:1 nproc=1:1 stack=1:1; do \
                      prlimit --pid 1 --$r 2>/dev/null && echo set $r; done; ";
        let burn = "yes | head -c 300000000";
        let hogs = |count: usize| {
            format!(
                "for i in $(seq {count}); do perl -e '@a = map {{ 0 x 1000000 }} 1..60; sleep 5' & done; wait"
            )
        };
        let rows: &[(&str, String, Expect)] = &[
            // The kernel would end process 1 at its own processor limit.
            ("resource limits", format!("{limits}{burn}"), Survives),
            (
                "resource limits under other groups",
                format!(
                    "for g in 65534 1; do perl -e '$! = 0; syscall(119, {0}, {0}, {0}); \
                     print syscall(302, 1, 0, pack(q(QQ), 1, 1), 0), qq( $!\\n)'; done; {burn}",
                    "$ENV{g} + 0"
                ),
                Survives,
            ),
            (
                "priorities",
                "renice 19 1; chrt -i -p 0 1; perl -e 'syscall(251, 1, 1, 3 << 13)'; for i in 1 2 3 4; do yes >/dev/null & done; sleep 2"
                    .to_owned(),
                SurvivesOrBlamed,
            ),
            ("signals", "for s in $(seq 1 64); do kill -$s 1; done; sleep 0.2".to_owned(), Survives),
            ("signals to everything", "kill -STOP -1; kill -KILL -1".to_owned(), Survives),
            ("a stopped shell", "kill -STOP $$; echo no".to_owned(), Survives),
            (
                "reboot",
                "perl -e 'syscall(169, 0xfee1dead, 672274793, $_) for 0, 0x1234567, 0x4321fedc, 0xa1b2c3d4'".to_owned(),
                Survives,
            ),
            (
                "files of process 1",
                "for f in $(find /proc/1 -maxdepth 2 -type f -not -name oom_score_adj; ls -d /proc/1/fd/*); do \
                 for v in 0 1 -1000; do timeout 1 sh -c \"echo $v >$f\"; done; done 2>/dev/null"
                    .to_owned(),
                Survives,
            ),
            (
                "files of the kernel",
                "for f in /proc/sysrq-trigger $(find /sys/fs/cgroup -type f 2>/dev/null); do echo 1 >$f; echo FROZEN >$f; done 2>/dev/null"
                    .to_owned(),
                Survives,
            ),
            ("no process left", "perl -e 'for (1..200) { fork // last or sleep 30 } sleep 1'".to_owned(), Survives),
            ("a fork bomb", ":(){ :|:& };:; sleep 1".to_owned(), Survives),
            ("a null device that blocks", "rm /dev/null; mkfifo /dev/null; exit".to_owned(), Survives),
            ("devices that block", "rm /dev/ptmx /dev/null; mkfifo /dev/ptmx; echo x >/dev/null; exit".to_owned(), Survives),
            ("no files left", "rm -rf --no-preserve-root / 2>/dev/null; exit".to_owned(), Survives),
            ("floods", "yes & yes >&2 & exit".to_owned(), Survives),
            ("memory used up by a child", "perl -e '@a = map { 0 x 10000000 } 1..100'; sleep 0.3".to_owned(), Survives),
            ("memory at its edge", "head -c 60000000 /dev/zero >/dev/shm/x; perl -e '@a = map { 0 x 1000000 } 1..50; sleep 3'".to_owned(), SurvivesOrBlamed),
            ("the guest offered to the kernel", format!("echo 1000 >/proc/1/oom_score_adj; {}", hogs(6)), Lost(Evidence::OutOfMemory)),
        ];
        for (name, script, expect) in rows {
            check(&engine, name, script, *expect).await;
        }
    });
}

#[test]
fn kills_from_outside_differ_from_the_containers_own_end() {
    run(async {
        let Some(engine) = docker().await else { return };
        let lost =
            async |sandbox: &Sandbox, name: &str| match sandbox.shell("true", &ExecLimit::default()).await {
                Err(SandboxError::Lost(loss)) => loss.evidence,
                other => panic!("{name}: {other:?}"),
            };
        let kill = async |sandbox: &Sandbox| {
            let options = KillContainerOptionsBuilder::new().signal("SIGKILL").build();
            api().kill_container(sandbox.id().as_str(), Some(options)).await.unwrap();
        };

        let sandbox = launch(&engine).await;
        kill(&sandbox).await;
        assert_eq!(lost(&sandbox, "killed").await, Evidence::KilledFromOutside);

        // A child was killed for its memory long ago, and the container continued. Since then its
        // neighbours had more events than the engine keeps.
        let sandbox = launch(&engine).await;
        shell(&sandbox, "perl -e '@a = map { 0 x 10000000 } 1..100'").await;
        let neighbour = launch(&engine).await;
        let later = Instant::now() + LONG_BEFORE;
        for _ in 0..ENGINE_EVENTS {
            let options = KillContainerOptionsBuilder::new().signal("SIGCONT").build();
            api().kill_container(neighbour.id().as_str(), Some(options)).await.unwrap();
        }
        tokio::time::sleep_until(later.into()).await;
        kill(&sandbox).await;
        assert_eq!(lost(&sandbox, "killed after a child's end").await, Evidence::KilledFromOutside);

        let sandbox = launch(&engine).await;
        let options = RemoveContainerOptionsBuilder::new().force(true).build();
        api().remove_container(sandbox.id().as_str(), Some(options)).await.unwrap();
        assert_eq!(lost(&sandbox, "removed").await, Evidence::Removed);

        let sandbox = launch(&engine).await;
        api().pause_container(sandbox.id().as_str()).await.unwrap();
        let SandboxError::Lost(loss) = sandbox.diagnose("no answer".to_owned()).await else {
            panic!("paused")
        };
        assert_eq!(loss.evidence, Evidence::Paused);
        api().unpause_container(sandbox.id().as_str()).await.unwrap();

        let SandboxError::Lost(loss) = sandbox.diagnose("no answer".to_owned()).await else {
            panic!("silent")
        };
        assert!(matches!(loss.evidence, Evidence::Silent | Evidence::HostBusy), "{loss}");
        shell(&sandbox, "for i in 1 2 3 4; do while :; do :; done & done").await;
        let SandboxError::Lost(loss) = sandbox.diagnose("no answer".to_owned()).await else {
            panic!("burning")
        };
        assert_eq!(loss.evidence, Evidence::Silent, "a container that burns its own time");
    });
}

#[test]
fn missing_and_unreadable_roots_are_not_infrastructure_failures() {
    run(async {
        let Some(engine) = docker().await else { return };
        let sandbox = launch(&engine).await;
        shell(&sandbox, "ln -s /app/loop /app/loop; echo x >file; mkdir whole; echo y >whole/file").await;
        let stopped = sandbox.stop().await.unwrap();
        let archive = async |root: &str| stopped.archive(root, 1 << 20).await;
        assert!(archive("/app/whole").await.is_ok());
        let missing = archive("/app/none").await;
        assert!(matches!(missing, Err(ArchiveError::Missing { .. })), "{missing:?}");
        for root in ["/app/loop/below", "/app/file/below"] {
            let unreadable = archive(root).await;
            assert!(
                matches!(unreadable, Err(ArchiveError::Unreadable { .. } | ArchiveError::Missing { .. })),
                "{root}: {unreadable:?}"
            );
        }
    });
}

#[test]
fn requests_that_the_guest_cannot_take_are_not_sent() {
    run(async {
        let engine = process_engine();
        let sandbox = launch(&engine).await;
        let long = "x".repeat(5000);
        let check = |name: &str, refused: Option<SandboxError>| {
            let refused = refused.unwrap();
            assert_eq!(refused.blame(), Some(Blame::Caller), "{name}: {refused}");
        };
        for path in [long.as_str(), "a\0b"] {
            check("put", sandbox.put(path, b"", 0o644).await.err());
            let get = sandbox.get(path, 10).await.err();
            check(
                "get",
                get.map(|error| match error {
                    termsmith::sandbox::GetError::Sandbox(error) => error,
                    other => panic!("{other}"),
                }),
            );
            check("relay", sandbox.serve_relay(path).await.err());
            let process = Process { cwd: path.to_owned(), ..Process::new("/bin/true") };
            check("spawn", sandbox.spawn(&process).await.err());
            check("pty", sandbox.pty(&process, PtySize { rows: 2, cols: 2 }).await.err());
        }
        assert_eq!(shell(&sandbox, "echo usable").await.output, b"usable\n");
    });
}

#[test]
fn a_terminal_without_open_descriptors_is_not_polled_and_can_be_reopened() {
    run(async {
        let Some(engine) = docker().await else { return };
        let sandbox = launch(&engine).await;
        // Processor time of process 1, in clock ticks: fields 14 and 15.
        let script = "t=$(tty); exec 3>/app/ticks </dev/null >/dev/null 2>&1; \
                      ticks() { set -- $(cut -d')' -f2- /proc/1/stat); echo $((${12} + ${13})); }; \
                      a=$(ticks); sleep 2; b=$(ticks); echo $((b - a)) >&3; echo back >$t; sleep 0.6; exit 7";
        let process = Process::new("/bin/bash").args(["-c", script]).env("PATH", "/usr/bin:/bin");
        let mut pty = sandbox.pty(&process, PtySize { rows: 24, cols: 80 }).await.unwrap();
        let mut text = Vec::new();
        loop {
            match pty.next().await {
                PtyEvent::Output(bytes) => text.extend(bytes),
                PtyEvent::Ended(_) => break,
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(String::from_utf8_lossy(&text), "back\r\n");
        let ticks: u32 = output(&sandbox, "cat /app/ticks").await.trim().parse().unwrap();
        // A loop that polls without sleeping would take 200 ticks.
        assert!(ticks < 40, "{ticks} ticks");
    });
}
