//! Stages that try things out in a shell on the draft's machine before they reply.

use super::author::{RUN, all_checks, configure, server, stage_of};
use crate::support::bench::{Bench, assert_same};
use crate::support::endpoint::Server;
use crate::support::engine::docker;

/// A run is killed after so many requests, i.e. in the middle of each stage's shell.
const KILLS: [usize; 3] = [4, 8, 12];
/// Limits in `src/authoring`: commands that a stage may run, and versions that it may write.
const COMMANDS: usize = 24;
const VERSIONS: usize = 8;

fn block(command: &str) -> String {
    format!("I look first.\n\n```bash\n{command}\n```")
}

/// An author that tries things out.
fn says(stage: &str, before: usize) -> Option<String> {
    Some(match (stage, before) {
        ("environment", 0) => block("ls -A /app; id -un; sort -V </dev/null && echo sorts"),
        ("solution", 0) => block("cd /tmp && sort -u /app/names.txt | wc -l > n"),
        ("solution", 1) => block("pwd; cat n; false"),
        ("checks", 0) => block(&format!(
            "cat > /tests/test_outputs.py <<'END'\n{}\nEND\nbash /tests/test.sh 2>&1 | grep -c 'does not exist'",
            all_checks()
        )),
        ("checks", 1) => block("touch /app/sorted.txt; exit 3"),
        ("checks", 2) => block("ls /app"),
        _ => return None,
    })
}

/// What the model of `stage` was shown last.
fn shown(server: &Server, stage: &str) -> Vec<String> {
    let seen = server.seen();
    let of_stage = seen.iter().filter(|seen| stage_of(&seen.body) == stage);
    let last = of_stage.max_by_key(|seen| seen.body["messages"].as_array().unwrap().len()).unwrap();
    let messages = last.body["messages"].as_array().unwrap();
    let texts = messages.iter().skip(2).filter(|message| message["role"] == "user");
    texts.map(|message| message["content"].as_str().unwrap().trim().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stages_try_things_out_before_they_reply() {
    if docker().await.is_none() {
        return;
    }
    let calm = server(says).await;
    let bench = Bench::new();
    configure(&bench, &calm);
    let args: Vec<_> = RUN.into_iter().filter(|word| *word != "--oneshot").chain(["--out", "out"]).collect();
    bench.run(&args).ok();
    let check = |stage: &str, expect: &[&[&str]]| {
        let shown = shown(&calm, stage);
        assert_eq!(shown.len(), expect.len(), "{stage}: {shown:?}");
        for (text, parts) in shown.iter().zip(expect) {
            for part in *parts {
                assert!(text.contains(part), "{stage}: {part:?} is not in {text:?}");
            }
        }
    };
    check("environment", &[&["root\nsorts", "[exit status 0]", "23 commands left."]]);
    check(
        "solution",
        &[&["(no output)", "[exit status 0]"], &["/tmp\n6\n", "[exit status 1]", "22 commands left."]],
    );
    check(
        "checks",
        &[
            &["[exit status 0]"],
            &["the shell ended and was started again"],
            &["names.txt\nsorted.txt", "[exit status 0]", "21 commands left."],
        ],
    );

    // After kills in the middle of the stages' shells, the conversations are the same.
    let server = server(says).await;
    let killed = Bench::new();
    configure(&killed, &server);
    for kill_at in KILLS {
        let mut running = killed.spawn(&args);
        while server.requests() < kill_at && running.try_wait().unwrap().is_none() {
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
        let _ = running.kill();
        running.wait().unwrap();
    }
    killed.run(&args).ok();
    for folder in ["authoring", "draft", "certificate", "stage_shell"] {
        let folder = format!("out/store/{folder}");
        assert_same(&bench.path(&folder), &killed.path(&folder));
    }
    let (once, now) = (calm.requests(), server.requests());
    assert!(now <= once + KILLS.len(), "{now} requests instead of {once}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stage_that_never_replies_ends() {
    if docker().await.is_none() {
        return;
    }
    let server = server(|stage, _| (stage == "environment").then(|| block("true"))).await;
    let bench = Bench::new();
    configure(&bench, &server);
    let args: Vec<_> = RUN.into_iter().filter(|word| *word != "--oneshot").chain(["--out", "out"]).collect();
    bench.run(&args);
    let asked = server.seen().iter().filter(|seen| stage_of(&seen.body) == "environment").count();
    assert_eq!(asked, COMMANDS + VERSIONS);
    let told = shown(&server, "environment");
    assert!(told[COMMANDS - 1].contains("No commands are left"), "{}", told[COMMANDS - 1]);
    let rejected = std::fs::read_dir(bench.path("out/rejected")).unwrap().count();
    assert_eq!(rejected, 1);
}
