//! A budget holds for any number of concurrent calls.

use std::time::Duration;

use termsmith::llm::{Budget, BudgetExceeded, CallError, Models, Options};

use super::{call_all, env, fresh_dir, fresh_store, options, request, settings, site, store};
use crate::support::clock::TestClock;
use crate::support::endpoint::{Server, until};

const SHORT: &str = "timeout_sec = 0.3\nconcurrency = 32";
/// Two dollars per 1M tokens of input and output, so half a million tokens for a dollar.
const PRICES: &str = "usd_per_1m_input_tokens = 2\nusd_per_1m_output_tokens = 2";

/// Makes 200 calls, 32 at a time. The cap is reached before the last.
async fn check(server: &Server, budget: Budget, tokens: u64) {
    let (dir, store_1) = fresh_store();
    let clock = TestClock::jumping();
    let chosen = Options { budget, ..options(&clock) };
    let endpoint = format!("{SHORT}\n{PRICES}");
    let models = Models::new(settings(server, &endpoint, ""), env, &store_1, chosen).unwrap();
    let results = call_all(&models, 200, 32).await;
    let replies = results.iter().filter(|result| result.is_ok()).count();
    for error in results.into_iter().filter_map(Result::err) {
        assert!(matches!(error, CallError::Budget(_)), "{error}");
    }
    assert!((1..200).contains(&replies), "{replies} replies under a cap of {tokens}");
    assert!(server.billed() <= tokens, "{} of {tokens} were billed", server.billed());
    let tally = models.tally();
    assert!((server.billed()..=tokens).contains(&tally.spent.tokens), "{tally:?}");
    assert_eq!(tally.sent as usize, server.requests());

    // A second process with this folder gets no new budget, and committed replies cost nothing.
    drop(models);
    drop(store_1);
    let store_2 = store(dir.path());
    let chosen = Options { budget, ..options(&clock) };
    let models = Models::new(settings(server, &endpoint, ""), env, &store_2, chosen).unwrap();
    let again = call_all(&models, 200, 32).await;
    assert!(again.iter().filter(|result| result.is_ok()).count() >= replies);
    assert!(server.billed() <= tokens, "{} of {tokens} were billed in two runs", server.billed());
    assert_eq!(models.tally().committed as usize, replies);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_cap_is_exceeded() {
    for (seed, tokens) in [(1, 900), (2, 3_000), (3, 9_000), (4, 12_000)] {
        let max = Budget { max_tokens: Some(tokens), ..Budget::default() };
        check(&Server::faulty(seed).await, max, tokens).await;
        check(&Server::faultless().await, max, tokens).await;
        let max = Budget { max_usd: Some(tokens as f64 * 2e-6), ..Budget::default() };
        check(&Server::faulty(seed).await, max, tokens).await;
    }
}

/// Several runs in one folder. Each is killed with calls in flight.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_runs_exceed_no_cap() {
    const CAP: u64 = 12_000;
    let dir = fresh_dir();
    let server = Server::faultless().await;
    let settings = settings(&server, "concurrency = 8", "");
    for run in 0..12 {
        let (kill_at, billed) = (server.requests() + 10, server.billed());
        let (path, settings, arrivals) = (dir.path().to_owned(), settings.clone(), server.arrivals());
        let killed = async move {
            let store = store(&path);
            let budget = Budget { max_tokens: Some(CAP), ..Budget::default() };
            let chosen = Options { budget, ..options(&TestClock::jumping()) };
            let models = Models::new(settings, env, &store, chosen).unwrap();
            assert!(models.tally().spent.tokens >= billed, "what was in flight is forgotten");
            tokio::select! {
                biased;
                () = until(arrivals, kill_at) => {}
                _ = call_all(&models, 100, 8) => {}
            }
        };
        // It has a runtime of its own, which ends like a process.
        tokio::task::block_in_place(|| tokio::runtime::Runtime::new().unwrap().block_on(killed));
        assert!(server.billed() <= CAP, "{} of {CAP} after run {run}", server.billed());
    }
    assert!(server.requests() > 10, "{}", server.requests());
}

#[tokio::test]
async fn a_call_that_could_exceed_the_cap_is_not_sent() {
    let server = Server::faultless().await;
    let (_dir, store) = fresh_store();
    let clock = TestClock::jumping();
    let budget = Budget { max_tokens: Some(100), ..Budget::default() };
    let models =
        Models::new(settings(&server, "", ""), env, &store, Options { budget, ..options(&clock) }).unwrap();
    let error = models.call(&site(0), &request(0)).await.unwrap_err();
    let CallError::Budget(BudgetExceeded::Tokens { spent: 0, cap: 100, wanted, .. }) = error else {
        panic!("{error}")
    };
    assert!(wanted > 64 + 100, "{wanted}");
    assert_eq!(server.requests(), 0);
}

#[tokio::test]
async fn dollars_need_prices() {
    let server = Server::faultless().await;
    let (_dir, store) = fresh_store();
    let clock = TestClock::jumping();
    let budget = Budget { max_usd: Some(1.0), ..Budget::default() };
    let models =
        Models::new(settings(&server, "", ""), env, &store, Options { budget, ..options(&clock) }).unwrap();
    let site = site(0);
    for error in [models.ready(site.role).unwrap_err(), models.call(&site, &request(0)).await.unwrap_err()] {
        assert!(error.to_string().contains("hint: set usd_per_1m_input_tokens"), "{error}");
    }
    // Prices of a role suffice.
    let role = "usd_per_1m_input_tokens = 1\nusd_per_1m_output_tokens = 1";
    let models =
        Models::new(settings(&server, "", role), env, &store, Options { budget, ..options(&clock) }).unwrap();
    models.ready(site.role).unwrap();
    let usage = models.call(&site, &request(0)).await.unwrap().usage.unwrap();
    let tokens = usage.prompt_tokens + usage.completion_tokens;
    assert!((models.tally().spent.usd() - tokens as f64 * 1e-6).abs() < 1e-12);
}

/// The rate limit makes the second call wait until the run's time is up. So nothing is sent.
#[tokio::test]
async fn a_call_whose_time_is_up_before_it_is_sent_costs_nothing() {
    let server = Server::faultless().await;
    let (_dir, store) = fresh_store();
    let clock = TestClock::jumping();
    let budget =
        Budget { max_wall: Some(Duration::from_secs(60)), max_tokens: Some(100_000), ..Budget::default() };
    let settings = settings(&server, "requests_per_minute = 1", "");
    let models = Models::new(settings, env, &store, Options { budget, ..options(&clock) }).unwrap();
    models.call(&site(0), &request(0)).await.unwrap();
    let spent = models.tally().spent;
    let error = models.call(&site(1), &request(1)).await.unwrap_err();
    assert!(matches!(error, CallError::Budget(BudgetExceeded::Wall { .. })), "{error}");
    assert_eq!((models.tally().spent, server.requests()), (spent, 1));
}

/// If the note cannot be written, nothing is sent, and neither budget nor rate is used.
#[tokio::test]
async fn a_call_that_cannot_be_noted_costs_nothing() {
    let server = Server::faultless().await;
    let (dir, store) = fresh_store();
    let clock = TestClock::jumping();
    let settings = settings(&server, "requests_per_minute = 1", "");
    let models = Models::new(settings, env, &store, options(&clock)).unwrap();
    let notes = dir.path().join("started");
    if notes.exists() {
        std::fs::remove_dir_all(&notes).unwrap();
    }
    // A file is at the folder's path.
    std::fs::write(&notes, "").unwrap();
    let error = models.call(&site(0), &request(0)).await.unwrap_err();
    assert!(matches!(error, CallError::Store(_)), "{error}");
    assert_eq!((models.tally().spent.tokens, server.requests()), (0, 0));
    std::fs::remove_file(&notes).unwrap();
    models.call(&site(0), &request(0)).await.unwrap();
    assert_eq!((models.tally().repeated, server.requests()), (0, 1));
    assert!(clock.sleeps().is_empty(), "the grant of the first call was returned: {:?}", clock.sleeps());
}
