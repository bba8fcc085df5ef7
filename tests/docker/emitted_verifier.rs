//! Runs `tests/test.sh` of published tasks as a harness does. Checks the reward that it leaves, if
//! any.

use std::time::Duration;

use termsmith::model::{File, Limits, RelPath, environment_digest};
use termsmith::sandbox::{ImageSpec, LaunchSpec, Network};

use crate::support::engine::{docker, limit, run};
use crate::support::task::{Shape, task};

/// The limit for all checks in the published script. It would make the test slow.
const EMITTED: &str = "seconds=290\n";
/// Shorter limits in its place. They suffice for the checks to begin on a busy host, and for
/// programs to have half of the time.
const SECONDS: [&str; 2] = ["seconds=6\n", "seconds=15\n"];
/// The beginning of the checks. The host of this test may be busy, and must not decide the result.
const SETTLED: &str =
    "import os, time\nimport patience\nfrom subject import run\npatience._slowness = lambda: 1\n";
/// How the script reads the container's processor time. The second text claims that the container
/// had a processor all the time.
const USED: [&str; 2] = ["before=$(used)\n", "before=-99999\n"];
/// A program whose threads want twelve processors.
const TWELVE: &str =
    "run(['bash', '-c', 'for i in {1..12}; do while :; do :; done & done; wait'], timeout=3)";
/// The beginning of checks that had a processor.
const SERVED: &str = "'served'; ";
/// How a harness starts the script.
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
        // The limits of the saboteurs' task are lower than those that its verifier sets for
        // programs.
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
                layer: None,
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
        // The checks themselves are slow, so there is no verdict.
        check(ORDINARY, "time.sleep(1000)", ("status 124", "")).await;
        check(ORDINARY, "[run(['true']) for _ in range(3)]; time.sleep(1000)", ("status 124", "")).await;
        // A program of the solver met its own limit, so the check fails.
        check(ORDINARY, "assert run(['sleep', '99'], timeout=1).code == 0", ("status 0", "0")).await;
        check(ORDINARY, "run(['sleep', '99'], timeout=1); time.sleep(99)", ("status 0", "0")).await;
        // The same in a probe, which is within its own limit.
        check(ORDINARY, "from subject import probe; probe('tell()', {}); time.sleep(99)", ("status 0", "0"))
            .await;
        // The solver's programs took the time: many short ones, or one that has not met its limit
        // yet.
        check(ORDINARY, "[run(['sleep', '1']) for _ in range(99)]", ("status 0", "0")).await;
        check(ORDINARY, "run(['sleep', '99'], timeout=60)", ("status 0", "0")).await;
        // The same programs on a busy machine, where they had a fifth of that time.
        check(
            ORDINARY,
            "patience._slowness = lambda: 5; run(['sleep', '99'], timeout=60)",
            ("status 124", ""),
        )
        .await;
        // The tests had a processor all the time. E.g. they read a git tree of 10^30 files.
        check(ORDINARY, &format!("{SERVED}time.sleep(1000)"), ("status 0", "0")).await;
        // Threads of the solver's programs do not make the machine busy.
        let counted = format!(
            "import threading; one = threading.Thread(target=lambda: {TWELVE}); one.start(); time.sleep(1.5); \
             found = patience._running_here(); one.join(); assert found >= 12, found"
        );
        check(ORDINARY, &counted, ("status 0", "1")).await;
        // The tests broke. The solver may have caused that.
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
