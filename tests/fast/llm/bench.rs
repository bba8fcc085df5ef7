//! Measures 500 concurrent calls, and calls a real server. It is run by hand: `cargo test --test
//! fast llm::bench -- --ignored --nocapture`.

use std::time::Instant;

use termsmith::llm::{ChatMessage, ChatRequest, Models, Options, Settings};

use super::{call_all, env, fresh_store, settings, site};
use crate::support::endpoint::{Answer, Kind, Server};

/// Peak resident memory of this process, in MiB.
fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap() / 1024
}

#[ignore = "a measurement"]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_hundred_calls_at_once() {
    let server = Server::gated(500, |_, _| Answer::Do(Kind::Reply)).await;
    let (_dir, store) = fresh_store();
    let models =
        Models::new(settings(&server, "concurrency = 500", ""), env, &store, Options::default()).unwrap();
    for calls in [500, 5000] {
        let before = peak_mib();
        let start = Instant::now();
        let replies = call_all(&models, calls, 500).await;
        let (took, new) =
            (start.elapsed(), replies.iter().filter(|reply| !reply.as_ref().unwrap().committed).count());
        eprintln!(
            "{calls} calls, {new} of them new: {took:.2?}, {:.0} new calls/s, {} at once, peak {before} → {} MiB with server",
            new as f64 / took.as_secs_f64(),
            server.most_at_once(),
            peak_mib()
        );
    }
}

/// `TERMSMITH_TEST_SETTINGS` is a termsmith.toml with a role `expert`.
#[ignore = "needs a model"]
#[tokio::test]
async fn a_real_server_answers() {
    let Ok(file) = std::env::var("TERMSMITH_TEST_SETTINGS") else { return };
    let settings = Settings::load(file.as_ref()).unwrap();
    let (_dir, store) = fresh_store();
    let models = Models::new(settings, |name| std::env::var(name).ok(), &store, Options::default()).unwrap();
    let long = "word ".repeat(20_000);
    for (number, text) in ["Name one planet.", "Write a haiku about tar.", &long].into_iter().enumerate() {
        let request = ChatRequest { logprobs: number == 1, ..ChatRequest::of(vec![ChatMessage::user(text)]) };
        let site = site(number.try_into().unwrap());
        match models.call(&site, &request).await {
            Ok(reply) => eprintln!("{reply:#?}"),
            Err(error) => eprintln!("{error}"),
        }
    }
    eprintln!("{:#?}", models.tally());
}
