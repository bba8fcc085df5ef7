//! A committed reply is never requested again.

use std::sync::atomic::{AtomicUsize, Ordering};

use termsmith::llm::{CALL, CallRecord, CallSeen, Models};

use super::{call_all, env, fresh_store, options, request, settings, site, store};
use crate::support::clock::TestClock;
use crate::support::endpoint::{Answer, Kind, Server, until};

/// When a run is killed.
#[derive(Clone, Copy, Debug)]
enum Kill {
    /// When so many calls are committed, and eight more are in flight.
    At(usize),
    /// After so many yields to the runtime, in whatever state the calls are.
    AfterTurns(usize),
}

/// Drops a run with calls in flight, and resumes it with the same store.
async fn check(kill: Kill) {
    let arrived = AtomicUsize::new(0);
    let server = Server::start(move |_, _| {
        let number = arrived.fetch_add(1, Ordering::Relaxed);
        let stuck = matches!(kill, Kill::At(done) if (done..done + 8).contains(&number));
        Answer::Do(if stuck { Kind::Stalled } else { Kind::Reply })
    })
    .await;
    let (dir, store_1) = fresh_store();
    let clock = TestClock::jumping();
    let first = Models::new(settings(&server, "", ""), env, &store_1, options(&clock)).unwrap();
    let arrivals = server.arrivals();
    let killed = async move {
        match kill {
            Kill::At(done) => until(arrivals, done + 8).await,
            Kill::AfterTurns(turns) => {
                for _ in 0..turns {
                    tokio::task::yield_now().await;
                }
            }
        }
    };
    let run = async move {
        tokio::select! {
            biased;
            () = killed => {}
            _ = call_all(&first, 60, 8) => {}
        }
    };
    // It has a runtime of its own, which ends like a process.
    tokio::task::block_in_place(|| tokio::runtime::Runtime::new().unwrap().block_on(run));
    let mut committed = Vec::new();
    for key in store_1.keys(CALL).unwrap() {
        committed.push(store_1.get::<CallRecord>(CALL, &key).unwrap().unwrap());
    }
    drop(store_1);
    let (sent, before) = (server.requests(), server.by_text());
    if let Kill::At(done) = kill {
        assert_eq!((committed.len(), sent), (done, done + 8));
    }

    let store_2 = store(dir.path());
    let models = Models::new(settings(&server, "", ""), env, &store_2, options(&clock)).unwrap();
    let replies: Vec<_> = call_all(&models, 60, 8).await.into_iter().map(Result::unwrap).collect();
    let after = server.by_text();
    for record in &committed {
        let text = record.site.unit.replace("unit-", "call ");
        assert_eq!((before[&text], after[&text]), (1, 1), "{text}");
    }
    assert_eq!(replies.iter().filter(|reply| reply.committed).count(), committed.len());
    let tally = models.tally();
    assert_eq!((tally.committed as usize, tally.replies), (committed.len(), 60));
    // Calls that were sent and not committed are sent again, and counted.
    assert!((sent - committed.len()..=8).contains(&(tally.repeated as usize)), "{kill:?} {tally:?}");
    assert_eq!(tally.sent as usize, 60 - committed.len());
    assert_eq!(store_2.notes::<CallSeen>().unwrap(), []);
    // Each record has its observation.
    for key in store_2.keys(CALL).unwrap() {
        let seen: CallSeen = store_2.observed(&key).unwrap().unwrap();
        assert!(!seen.in_flight && seen.attempts.len() == 1 && seen.charged.tokens > 0, "{seen:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_run_pays_for_nothing_twice() {
    for done in [0, 1, 23, 52] {
        check(Kill::At(done)).await;
    }
    for turns in [1, 10, 100, 1000] {
        check(Kill::AfterTurns(turns)).await;
    }
}

#[tokio::test]
async fn a_committed_reply_is_the_reply() {
    let server = Server::faultless().await;
    let (_dir, store) = fresh_store();
    let clock = TestClock::jumping();
    let models = Models::new(settings(&server, "", ""), env, &store, options(&clock)).unwrap();
    let first = models.call(&site(0), &request(0)).await.unwrap();
    let second = models.call(&site(0), &request(0)).await.unwrap();
    assert_eq!((first.committed, second.committed, second.attempts), (false, true, 0));
    assert_eq!((&first.message, &first.usage, &first.key), (&second.message, &second.usage, &second.key));
    assert_eq!(first.served.as_millis(), second.served.as_millis(), "the time that it took is kept");
    // Fields that this version does not read are kept.
    let record: CallRecord = store.get(CALL, &first.key).unwrap().unwrap();
    let body: serde_json::Value = serde_json::from_str(&record.body).unwrap();
    assert_eq!((&body["served_by"]["rack"], &record.site), (&7.into(), &site(0)));
    // Another site, another request and another model are other calls.
    models.call(&site(1), &request(0)).await.unwrap();
    models.call(&site(0), &request(1)).await.unwrap();
    let other =
        Models::new(settings(&server, "", "temperature = 0.1"), env, &store, options(&clock)).unwrap();
    other.call(&site(0), &request(0)).await.unwrap();
    assert_eq!(server.requests(), 4);
}

#[tokio::test]
async fn failures_are_charged_but_not_committed() {
    let server = Server::start(|_, attempt| {
        let kinds = [Kind::Reset, Kind::TooMany, Kind::NoChoices, Kind::Reply];
        Answer::Do(kinds[attempt as usize % 4])
    })
    .await;
    let (_dir, store) = fresh_store();
    let clock = TestClock::jumping();
    let models = Models::new(settings(&server, "", ""), env, &store, options(&clock)).unwrap();
    let reply = models.call(&site(0), &request(0)).await.unwrap();
    let seen: CallSeen = store.observed(&reply.key).unwrap().unwrap();
    let faults: Vec<_> =
        seen.attempts.iter().map(|attempt| attempt.fault.clone().unwrap_or_default()).collect();
    assert!(faults[0].starts_with("the connection ended early"), "{faults:?}");
    assert_eq!(faults[1..], ["status 429: slow down", "the response has no choices", ""]);
    // A reset is charged in full, a 429 not at all, and a reply without choices by its usage.
    let counted = 2 * reply.usage.map(|usage| usage.prompt_tokens + usage.completion_tokens).unwrap();
    assert!(seen.charged.tokens > counted + 512 && seen.charged.tokens >= server.billed(), "{seen:?}");
    assert_eq!(seen.charged, models.tally().spent);
    assert_eq!(store.keys(CALL).unwrap().len(), 1);
}

#[tokio::test]
async fn an_unreadable_note_is_charged_in_full() {
    let server = Server::faultless().await;
    let clock = TestClock::jumping();
    let (_dir, other) = fresh_store();
    let models = Models::new(settings(&server, "", ""), env, &other, options(&clock)).unwrap();
    let key = models.call(&site(0), &request(0)).await.unwrap().key;
    let once = models.tally().spent.tokens;

    let (dir, store) = fresh_store();
    let notes = dir.path().join("started");
    std::fs::create_dir_all(&notes).unwrap();
    std::fs::write(notes.join(format!("{key}.json")), "").unwrap();
    let models = Models::new(settings(&server, "", ""), env, &store, options(&clock)).unwrap();
    models.call(&site(0), &request(0)).await.unwrap();
    let tally = models.tally();
    assert_eq!(tally.repeated, 1);
    assert!(tally.spent.tokens > once + 512, "{tally:?}");
}
