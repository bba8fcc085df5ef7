//! The engine pauses a container. No program may meet a time limit because of that, and nothing
//! else may stop the clock.

use std::time::{Duration, Instant};

use bollard::Docker;
use termsmith::model::ShellOutcome;
use termsmith::sandbox::{Evidence, Process, ProcessOutcome, Sandbox, SandboxError, SandboxTime as _};

use crate::support::engine::{docker, eventually, launch, limit, run};

/// Time limit of the commands.
const LIMIT: Duration = Duration::from_secs(4);
/// Longer than the limit.
const PAUSE: Duration = Duration::from_secs(9);

fn api() -> Docker {
    Docker::connect_with_defaults().unwrap()
}

/// Pauses the container for [`PAUSE`], a second after this begins.
async fn pause(sandbox: &Sandbox) {
    let id = sandbox.id().as_str();
    tokio::time::sleep(Duration::from_secs(1)).await;
    api().pause_container(id).await.unwrap();
    tokio::time::sleep(PAUSE).await;
    api().unpause_container(id).await.unwrap();
}

/// Whether the sandbox's clock moves.
async fn runs(sandbox: &Sandbox) -> bool {
    let before = sandbox.clock().elapsed();
    tokio::time::sleep(Duration::from_millis(50)).await;
    sandbox.clock().elapsed() > before
}

#[test]
fn a_pause_is_no_part_of_a_time_limit() {
    run(async {
        let Some(engine) = docker().await else { return };
        let check = async |command: &str, expect: ShellOutcome| {
            let sandbox = launch(&engine).await;
            let (began, disturbed) = (sandbox.clock().elapsed(), sandbox.clock().disturbed());
            let wall = Instant::now();
            let exec = limit(LIMIT);
            let (ran, ()) = tokio::join!(sandbox.shell(command, &exec), pause(&sandbox));
            let ran = ran.unwrap();
            assert_eq!(ran.outcome, expect, "{command}");
            assert!(wall.elapsed() > PAUSE, "{command}: {:?}", wall.elapsed());
            assert!(ran.took < PAUSE, "{command}: {:?}", ran.took);
            assert!(sandbox.clock().is_disturbed_since(disturbed), "{command}");
            assert!(sandbox.clock().elapsed() - began < PAUSE, "{command}");
            assert!(runs(&sandbox).await, "{command}");
        };
        let program = async || {
            let sandbox = launch(&engine).await;
            let process = Process { timeout: LIMIT, ..Process::new("/bin/sleep").args(["2"]) };
            let (ran, ()) = tokio::join!(sandbox.spawn(&process), pause(&sandbox));
            assert_eq!(ran.unwrap().outcome, ProcessOutcome::Exited(0));
        };
        tokio::join!(
            check("sleep 2; echo done", ShellOutcome::Exited(0)),
            // The rest of the time limit counts after the pause.
            check("sleep 30", ShellOutcome::TimedOut),
            program(),
        );
    });
}

/// If something else stopped the clock, a solver would gain time.
#[test]
fn processes_of_a_container_do_not_stop_its_clock() {
    run(async {
        let Some(engine) = docker().await else { return };
        let sandbox = launch(&engine).await;
        let disturbed = sandbox.clock().disturbed();
        let hostile = "kill -STOP 1 -1; renice -n 19 1; chrt -i -p 0 1; \
                       for i in 1 2 3 4; do while :; do :; done & done; sleep 30";
        let wall = Instant::now();
        let ran = sandbox.shell(hostile, &limit(LIMIT)).await;
        // The guest may be too slow to answer. That never counts as a pause.
        match ran {
            Ok(ran) => assert_eq!(ran.outcome, ShellOutcome::TimedOut),
            Err(SandboxError::Lost(loss)) => assert_ne!(loss.evidence, Evidence::Paused),
            Err(error) => panic!("{error}"),
        }
        assert!(wall.elapsed() >= LIMIT);
        assert!(!sandbox.clock().is_disturbed_since(disturbed), "{:?}", sandbox.clock().disturbed());
        eventually("the clock runs", async || runs(&sandbox).await).await;
    });
}
