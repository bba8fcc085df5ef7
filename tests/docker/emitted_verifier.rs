//! `tests/test.sh` of emitted tasks, as a harness runs it: the reward that it leaves, or none.

use std::time::Duration;

use termsmith::model::{File, Limits, RelPath, environment_digest};
use termsmith::sandbox::{ImageSpec, LaunchSpec, Network};

use crate::support::engine::{docker, limit, run};
use crate::support::task::{Shape, task};

/// The limit for all checks in the emitted script, which would make the test slow.
const EMITTED: &str = "seconds=290\n";
/// The limit instead: enough for the checks to begin on a busy host, and for programs to have half
/// of it.
const SECONDS: [&str; 2] = ["seconds=6\n", "seconds=15\n"];
/// The beginning of the checks: the host of this test may be busy, and that must not decide.
const SETTLED: &str =
    "import os, time\nimport patience\nfrom subject import run\npatience._slowness = lambda: 1\n";
/// What the script knows of the container's processor time, and the same for one that had a
/// processor all the time.
const USED: [&str; 2] = ["before=$(used)\n", "before=-99999\n"];
/// A program whose threads want twelve processors.
const TWELVE: &str =
    "run(['bash', '-c', 'for i in {1..12}; do while :; do :; done & done; wait'], timeout=3)";
/// The beginning of checks with a processor.
const SERVED: &str = "'served'; ";
/// How a harness starts it.
const ORDINARY: &str = "bash /tests/test.sh";

#[test]
fn checks_that_run_out_of_time_leave_no_reward() {
    run(async {
        let Some(engine) = docker().await else { return };
        let task = task(Shape::Programs);
        let digest = environment_digest(&task.environment, "core");
        let timeout = Duration::from_secs(600);
        let image = ImageSpec { digest: digest.as_str(), context: &task.environment, timeout };
        let image = engine.ensure_image(&image).await.unwrap();
        let script = task.tests.text("test.sh").unwrap().to_owned();
        assert!(script.contains(EMITTED) && script.contains(USED[0]), "{script}");
        // Those of the saboteurs' task are below the bounds that its verifier sets for programs.
        let limits = Limits::default();
        let check = async |starts: &str, checks: &str, expect: (&str, &str)| {
            let spec = LaunchSpec {
                image: &image,
                limits: &limits,
                profile: task.profile,
                network: Network::None,
                workdir: "/app",
                purpose: "test",
                preload: Vec::new(),
            };
            let sandbox = engine.launch(&spec).await.unwrap();
            let mut tests = task.tests.clone();
            let seconds = SECONDS[usize::from(checks.contains("sleep', '"))];
            let script = match checks.strip_prefix(SERVED) {
                Some(_) => script.replace(USED[0], USED[1]),
                None => script.clone(),
            };
            let script = File::text(script.replace(EMITTED, seconds));
            tests.insert(RelPath::new("test.sh").unwrap(), script);
            let checks = format!("{SETTLED}def test_it():\n    {checks}\n");
            tests.insert(RelPath::new("test_outputs.py").unwrap(), File::text(checks.clone()));
            sandbox.put_tree("/tests", &tests).await.unwrap();
            let command = format!(
                "{starts} >/tmp/log 2>&1; echo status $?; cd /logs/verifier && cat reward.txt reward.json 2>/dev/null"
            );
            let done = sandbox.shell(&command, &limit(Duration::from_secs(60))).await.unwrap();
            let shown = String::from_utf8(done.output).unwrap();
            let log = sandbox.shell("cat /tmp/log", &limit(Duration::from_secs(60))).await.unwrap();
            let log = String::from_utf8_lossy(&log.output).into_owned();
            let mut lines = shown.lines();
            let found = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
            assert_eq!(found, expect, "{starts}: {checks}{shown}{log}");
            sandbox.destroy().await;
        };
        check(ORDINARY, "done = run(['echo', 'x']); assert done.stdout == 'x\\n', done", ("status 0", "1"))
            .await;
        check(ORDINARY, "assert run(['false']).code == 0", ("status 0", "0")).await;
        // The checks themselves are slow: no verdict.
        check(ORDINARY, "time.sleep(1000)", ("status 124", "")).await;
        check(ORDINARY, "[run(['true']) for _ in range(3)]; time.sleep(1000)", ("status 124", "")).await;
        // A program of the solver's met its own limit, which is a failing check.
        check(ORDINARY, "assert run(['sleep', '99'], timeout=1).code == 0", ("status 0", "0")).await;
        check(ORDINARY, "run(['sleep', '99'], timeout=1); time.sleep(99)", ("status 0", "0")).await;
        // The same in a probe, which itself is within its limit.
        check(ORDINARY, "from subject import probe; probe('tell()', {}); time.sleep(99)", ("status 0", "0"))
            .await;
        // Programs of the solver's took the time, one by one within their limits, or one that has
        // not met its limit.
        check(ORDINARY, "[run(['sleep', '1']) for _ in range(99)]", ("status 0", "0")).await;
        check(ORDINARY, "run(['sleep', '99'], timeout=60)", ("status 0", "0")).await;
        // The same programs on a busy machine, where they had a fifth of that time.
        check(
            ORDINARY,
            "patience._slowness = lambda: 5; run(['sleep', '99'], timeout=60)",
            ("status 124", ""),
        )
        .await;
        // The tests took a processor all the time, e.g. a git tree of 10^30 files was read.
        check(ORDINARY, &format!("{SERVED}time.sleep(1000)"), ("status 0", "0")).await;
        // Threads of the subject's are no load of the machine.
        let counted = format!(
            "import threading; one = threading.Thread(target=lambda: {TWELVE}); one.start(); time.sleep(1.5); \
             found = patience._running_here(); one.join(); assert found >= 12, found"
        );
        check(ORDINARY, &counted, ("status 0", "1")).await;
        // The tests broke, which the solver may have caused.
        check(ORDINARY, "os._exit(3)", ("status 0", "0")).await;
        check(ORDINARY, "os.kill(os.getpid(), 9)", ("status 0", "0")).await;
        // The harness's own limit ends the script.
        let killed = "bash -c 'timeout -s KILL 1 bash /tests/test.sh; exit 9'";
        check(killed, "time.sleep(1000)", ("status 9", "")).await;
        check(
            "mkdir -p /logs/verifier/reward.txt; bash /tests/test.sh",
            "assert run(['false']).code == 0",
            ("status 0", "0"),
        )
        .await;
    });
}
