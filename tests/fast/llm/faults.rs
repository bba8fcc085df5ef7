//! Failures of endpoints and connections, and what they are charged.

use std::collections::BTreeSet;
use std::time::Duration;

use termsmith::llm::{
    AttemptError, Budget, CallError, CallSeen, Clock, Finish, Models, Options, Reply, RetryPolicy,
};
use termsmith::retry::Backoff;
use tokio_util::sync::CancellationToken;

use super::{call_all, env, fresh_store, options, request, settings, site};
use crate::support::clock::TestClock;
use crate::support::endpoint::{Answer, Kind, Server};

/// Time limit, for a connection that stalls. All else is answered sooner, even on a busy machine.
const SHORT: &str = "timeout_sec = 0.3";
const SHORT_SECONDS: f64 = 0.3;

/// The parts of a reply that failures before it must not change.
fn essence(reply: &Reply) -> (String, Option<String>, Finish, Option<u64>) {
    let usage = reply.usage.map(|usage| usage.prompt_tokens + usage.completion_tokens);
    (reply.message.content.clone(), reply.message.reasoning.clone(), reply.finish.clone(), usage)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failures_change_no_reply() {
    let mut runs = Vec::new();
    for server in [Server::faultless().await, Server::faulty(11).await] {
        let (_dir, store) = fresh_store();
        let clock = TestClock::jumping();
        let endpoint = format!("concurrency = 32\n{SHORT}");
        let models = Models::new(settings(&server, &endpoint, ""), env, &store, options(&clock)).unwrap();
        let replies: Vec<_> = call_all(&models, 200, 32).await.into_iter().map(Result::unwrap).collect();
        assert!(server.most_at_once() <= 32);
        assert_eq!(models.tally().sent as usize, server.requests());
        assert!(models.tally().spent.tokens >= server.billed());
        runs.push((replies.iter().map(essence).collect::<Vec<_>>(), replies, server));
    }
    let [(good, _, calm), (borne, replies, rough)] = &runs[..] else { panic!("two runs") };
    assert_eq!(good, borne);
    assert_eq!(calm.requests(), 200);
    let kinds: BTreeSet<Kind> = rough.seen().iter().map(|seen| seen.kind).collect();
    assert_eq!(kinds.len(), Kind::FAULTS.len() + 1, "{kinds:?}");
    let hit = replies.iter().filter(|reply| reply.attempts > 1).count();
    assert!((45..=75).contains(&hit), "{hit} of 200 calls met a fault");
    assert!(good.iter().any(|(_, _, finish, _)| *finish == Finish::Length));
}

/// Answers with one failure, then a reply. Checks the longest wait and the number of requests.
async fn check_retry(kind: Kind, waits: std::ops::RangeInclusive<f64>) {
    let server =
        Server::start(move |_, attempt| Answer::Do(if attempt == 0 { kind } else { Kind::Reply })).await;
    let (_dir, store) = fresh_store();
    let clock = TestClock::jumping();
    let models = Models::new(settings(&server, SHORT, ""), env, &store, options(&clock)).unwrap();
    let reply = models.call(&site(0), &request(0)).await.unwrap();
    assert_eq!((reply.attempts, server.requests()), (2, 2), "{kind:?}");
    let waited = clock.sleeps().iter().map(Duration::as_secs_f64).fold(0.0, f64::max);
    assert!(waits.contains(&waited), "{kind:?}: waited {waited} s");
    // The reply's time includes neither the failed attempt nor the pause after it.
    assert!(reply.served.as_secs_f64() < SHORT_SECONDS, "{kind:?}: served {:?}", reply.served);
}

#[tokio::test]
async fn each_failure_is_retried_and_retry_after_is_obeyed() {
    for kind in Kind::FAULTS {
        match kind {
            Kind::TooManyWithWait => check_retry(kind, 2.0..=2.5).await,
            Kind::TooManyWithDate => check_retry(kind, 8.5..=9.5).await,
            _ => check_retry(kind, 0.0..=0.5).await,
        }
    }
}

#[tokio::test]
async fn retry_after_holds_all_callers_of_the_endpoint() {
    let server = Server::start(|_, attempt| {
        let refusal = |wait: &str| Answer::Raw {
            status: 429,
            headers: vec![("retry-after", wait.to_owned())],
            body: String::new(),
        };
        // The server asks for ten days. The policy waits five minutes at most.
        if attempt == 0 { refusal("864000") } else { Answer::Do(Kind::Reply) }
    })
    .await;
    let (_dir, store) = fresh_store();
    let clock = TestClock::jumping();
    let models = Models::new(settings(&server, "concurrency = 1", ""), env, &store, options(&clock)).unwrap();
    for reply in call_all(&models, 2, 2).await {
        assert_eq!(reply.unwrap().attempts, 2);
    }
    let waits = clock.sleeps();
    let long = waits.iter().filter(|wait| wait.as_secs() >= 299).count();
    assert!(long >= 2, "both wait, the second without a refusal of its own: {waits:?}");
    assert!(waits.iter().all(|wait| wait.as_secs_f64() <= 300.5), "{waits:?}");
}

#[tokio::test]
async fn refusals_are_final_and_free() {
    let error = |message: &str| format!("{{\"error\":{{\"message\":\"{message}\"}}}}");
    for (status, body, expected) in [
        (400, error("This model's maximum context length is 10 tokens"), "longer than the model's context"),
        (400, "{\"error\":{\"code\":\"content_filter\",\"message\":\"no\"}}".to_owned(), "content filter"),
        (401, error("who are you"), "check the key in `TEST_KEY`"),
        (403, error("not you"), "answered 403: not you"),
        (404, error("no such model"), "check the role's `model`"),
        (402, error("pay"), "quota"),
        (429, "{\"error\":{\"type\":\"insufficient_quota\",\"message\":\"pay\"}}".to_owned(), "quota"),
        (422, error("bad"), "answered 422: bad"),
        (307, String::new(), "redirects are not followed"),
    ] {
        let server = Server::start(move |_, _| Answer::Raw {
            status,
            headers: vec![("location", "http://127.0.0.1:1/".to_owned())],
            body: body.clone(),
        })
        .await;
        let (_dir, store) = fresh_store();
        let clock = TestClock::jumping();
        let models = Models::new(settings(&server, "", ""), env, &store, options(&clock)).unwrap();
        let error = models.call(&site(0), &request(0)).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{status}: {error}");
        assert_eq!(server.requests(), 1, "{status}");
        assert_eq!(models.tally().spent.tokens, 0, "{status}");
    }
}

/// If the byte were replaced, the altered message would be a valid reply.
#[tokio::test]
async fn a_message_that_is_not_utf8_is_no_reply() {
    let server = Server::start(|_, attempt| {
        let text = "so be it".to_owned();
        if attempt == 0 { Answer::NotUtf8(text) } else { Answer::Text(text) }
    })
    .await;
    let (_dir, store) = fresh_store();
    let clock = TestClock::jumping();
    let models = Models::new(settings(&server, "", ""), env, &store, options(&clock)).unwrap();
    let reply = models.call(&site(0), &request(0)).await.unwrap();
    assert_eq!((reply.message.content.as_str(), reply.attempts), ("so be it", 2));
    let seen: CallSeen = store.observed(&reply.key).unwrap().unwrap();
    let fault = seen.attempts[0].fault.clone().unwrap_or_default();
    assert!(fault.starts_with("the response is not JSON"), "{fault}");
    assert!(models.tally().spent.tokens >= server.billed());
}

#[tokio::test]
async fn attempts_are_limited() {
    let server = Server::start(|_, _| Answer::Do(Kind::HtmlGateway)).await;
    let (_dir, store) = fresh_store();
    let clock = TestClock::jumping();
    let retry = RetryPolicy::default();
    let retry = RetryPolicy { backoff: Backoff { attempts: 3, ..retry.backoff }, ..retry };
    let options = Options { retry, ..options(&clock) };
    let models = Models::new(settings(&server, "", ""), env, &store, options).unwrap();
    let error = models.call(&site(0), &request(0)).await.unwrap_err();
    let CallError::Exhausted { attempts: 3, last: AttemptError::Status { status: 502, .. }, .. } = error
    else {
        panic!("{error}");
    };
    assert_eq!((server.requests(), clock.sleeps().len()), (3, 2));
}

/// A request to such a server takes its whole time limit, so there are few attempts. Failures that
/// take no time get all attempts.
#[tokio::test]
async fn a_server_that_drips_ends_a_call() {
    let check = async |kind: Kind, expect: u32| {
        let server = Server::start(move |_, _| Answer::Do(kind)).await;
        let (_dir, store) = fresh_store();
        let clock = TestClock::jumping();
        let models = Models::new(settings(&server, SHORT, ""), env, &store, options(&clock)).unwrap();
        let error = models.call(&site(0), &request(0)).await.unwrap_err();
        let CallError::Exhausted { attempts, .. } = error else { panic!("{error}") };
        assert_eq!(attempts, expect, "{kind:?}");
    };
    check(Kind::Stalled, 3).await;
    check(Kind::TooMany, 8).await;
}

#[tokio::test]
async fn a_refused_connection_costs_nothing() {
    let gone = Server::faultless().await;
    let settings = settings(&gone, "", "");
    drop(gone);
    let (_dir, store) = fresh_store();
    let clock = TestClock::jumping();
    let models = Models::new(settings, env, &store, options(&clock)).unwrap();
    let error = models.call(&site(0), &request(0)).await.unwrap_err().to_string();
    assert!(error.contains("gave no reply in 8 attempts; the last: no connection"), "{error}");
    assert_eq!(models.tally().spent.tokens, 0);
}

#[tokio::test]
async fn rate_limits_are_kept() {
    let server = Server::faultless().await;
    let (_dir, store) = fresh_store();
    let clock = TestClock::jumping();
    let endpoint = "requests_per_minute = 2\nconcurrency = 3";
    let models = Models::new(settings(&server, endpoint, ""), env, &store, options(&clock)).unwrap();
    for reply in call_all(&models, 7, 7).await {
        reply.unwrap();
    }
    let minutes = Clock::elapsed(&*clock).as_secs() / 60;
    assert_eq!(minutes, 3, "seven requests at 2 per minute begin within the fourth minute");
    assert!(server.most_at_once() <= 3);
}

#[tokio::test]
async fn a_stopped_run_sends_nothing_more() {
    let server =
        Server::start(|_, attempt| Answer::Do(if attempt == 0 { Kind::TooMany } else { Kind::Reply })).await;
    let (_dir, store) = fresh_store();
    let clock = TestClock::still();
    let drain = CancellationToken::new();
    let options = Options { drain: drain.clone(), ..options(&clock) };
    let models = Models::new(settings(&server, "", ""), env, &store, options).unwrap();
    // The run is stopped while a call waits for its second attempt.
    let stop = async {
        clock.until_sleeping(1).await;
        drain.cancel();
    };
    let (site_0, request_0) = (site(0), request(0));
    let (waiting, ()) = tokio::join!(models.call(&site_0, &request_0), stop);
    assert!(matches!(waiting, Err(CallError::Cancelled(_))), "{waiting:?}");
    let late = models.call(&site(1), &request(1)).await;
    assert!(matches!(late, Err(CallError::Cancelled(_))), "{late:?}");
    assert_eq!(server.requests(), 1);
}

#[tokio::test]
async fn max_wall_ends_a_wait() {
    let server = Server::start(|_, _| Answer::Do(Kind::TooMany)).await;
    let (_dir, store) = fresh_store();
    let clock = TestClock::still();
    let budget = Budget { max_wall: Some(Duration::from_secs(10)), ..Budget::default() };
    let retry = RetryPolicy::default();
    let backoff =
        Backoff { base: Duration::from_secs(1000), cap: Duration::from_secs(1000), ..retry.backoff };
    let retry = RetryPolicy { backoff, ..retry };
    let options = Options { budget, retry, ..options(&clock) };
    let models = Models::new(settings(&server, "", ""), env, &store, options).unwrap();
    let pass = async {
        server.until(1).await;
        clock.advance(Duration::from_secs(10));
    };
    let (site_0, request_0) = (site(0), request(0));
    let (error, ()) = tokio::join!(models.call(&site_0, &request_0), pass);
    let error = error.unwrap_err().to_string();
    assert_eq!(error, "the budget is reached: the run has taken 10 s of 10 s\nhint: raise --max-wall");
    assert_eq!(server.requests(), 1);
}
