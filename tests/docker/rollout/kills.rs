//! A command that was killed at any time continues when it is repeated. No reply is paid for twice.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rand::rngs::ChaCha20Rng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::Value;

use super::solver::{Numbered, SEED, Solver, TASKS};
use crate::support::bench::{Bench, files};
use crate::support::corpus::task_dir;
use crate::support::endpoint::{Answer, Server};

const ATTEMPTS: &str = "2";
/// The command is killed after this many requests, each time at a random moment.
const KILLS: [usize; 6] = [1, 4, 7, 11, 14, 18];
/// Within this time, a rollout sends its next request, is judged, or begins.
const MOST_PAUSE_MS: u64 = 700;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_command_pays_for_nothing_twice() {
    let solver = Arc::new(Solver::new());
    let server = Server::start(move |body, _| Answer::Text(solver.reply(body, Numbered::Yes))).await;
    let bench = Bench::new();
    bench.write(
        "termsmith.toml",
        &format!(
            "version = 1\n[endpoints.test]\nbase_url = \"{}\"\n\
             [roles.expert]\nendpoint = \"test\"\nmodel = \"made-up\"\nmax_tokens = 64\nseed = {SEED}\n",
            server.base_url()
        ),
    );
    let dirs: Vec<String> = TASKS.iter().map(|name| task_dir(name).display().to_string()).collect();
    let mut args = vec!["rollout", "--scaffold", "bash-block", "-k", ATTEMPTS, "--out", "out"];
    args.extend(dirs.iter().map(String::as_str));
    let seed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    println!("seed {seed}");
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let mut in_flight = 0;
    for kill_at in KILLS {
        let mut running = bench.spawn(&args);
        // There may be no request left for a later kill. Then the command ends by itself.
        let reached = async {
            while server.requests() < kill_at && running.try_wait().unwrap().is_none() {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(300), reached).await.unwrap();
        let pause = rng.random_range(0..MOST_PAUSE_MS);
        println!("killed {pause} ms after request {kill_at}");
        tokio::time::sleep(Duration::from_millis(pause)).await;
        // It may have ended already.
        let _ = running.kill();
        running.wait().unwrap();
        let committed = committed(&bench);
        // Requests that were sent and not committed were in flight at a kill.
        in_flight = server.requests() - committed.len().min(server.requests());
    }
    let done = bench.run(&args).ok();
    assert!(done.out.contains("8 rollouts of 4 tasks"), "{}", done.out);

    let kept = committed(&bench);
    let mut by_body: BTreeMap<String, usize> = BTreeMap::new();
    for seen in server.seen() {
        *by_body.entry(seen.body.to_string()).or_default() += 1;
    }
    let repeated: usize = by_body.values().map(|sent| sent - 1).sum();
    assert_eq!(by_body.len(), kept.len(), "every request that was ever sent has its one reply in the end");
    assert!(repeated <= in_flight, "{repeated} calls were repeated, and {in_flight} were in flight");
    // No committed reply was requested again. Each line is a conversation.
    let turns = kept.len();
    assert_eq!(server.requests(), turns + repeated);

    let again = server.requests();
    bench.run(&args).ok();
    assert_eq!(server.requests(), again, "what is done is not done again");
}

/// The numbers of all replies in the store.
fn committed(bench: &Bench) -> BTreeSet<String> {
    let calls = files(&bench.path("out/store/call"));
    let content = |bytes: &Vec<u8>| {
        let record: Value = serde_json::from_slice(bytes).ok()?;
        let text = record["value"].to_string();
        let from = text.find("I go on (")? + "I go on (".len();
        Some(text[from..].split(')').next()?.to_owned())
    };
    calls.values().filter_map(content).collect()
}
