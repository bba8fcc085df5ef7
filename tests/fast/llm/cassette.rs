//! Recordings are made and replayed.

use std::path::Path;

use termsmith::llm::{Cassette, ChatMessage, ChatRequest, Models, Options, Recorder};

use super::{call_all, env, fresh_dir, fresh_store, options, request, settings, site};
use crate::support::clock::TestClock;
use crate::support::endpoint::Server;

/// Records calls 0 to 4 of a server, twice. The second run finds them in the file.
async fn record(server: &Server, file: &Path) -> Vec<String> {
    let clock = TestClock::jumping();
    let mut contents = Vec::new();
    for count in [3, 5] {
        let (_dir, store) = fresh_store();
        let recorder = Some(Recorder::open(file).unwrap().into());
        let options = Options { recorder, ..options(&clock) };
        let models = Models::new(settings(server, "", ""), env, &store, options).unwrap();
        contents = call_all(&models, count, 2)
            .await
            .into_iter()
            .map(|reply| reply.unwrap().message.content)
            .collect();
    }
    assert_eq!(std::fs::read_to_string(file).unwrap().lines().count(), 5);
    contents
}

#[tokio::test]
async fn a_recording_is_replayed_without_server_or_key() {
    let dir = fresh_dir();
    let file = dir.path().join("run.jsonl");
    let server = Server::faultless().await;
    let contents = record(&server, &file).await;
    let settings = settings(&server, "", "");
    let requests = server.requests();
    drop(server);
    let compressed = dir.path().join("run.jsonl.zst");
    std::fs::write(&compressed, zstd::encode_all(&*std::fs::read(&file).unwrap(), 3).unwrap()).unwrap();
    assert_eq!(Cassette::open(&compressed).unwrap().len(), 5);
    let error = Recorder::open(&compressed).unwrap_err().to_string();
    assert!(error.contains("cannot be appended to a compressed recording"), "{error}");

    let (_dir, store) = fresh_store();
    let clock = TestClock::jumping();
    let replay = || Options { cassette: Some(Cassette::open(&file).unwrap()), ..options(&clock) };
    let models = Models::new(settings.clone(), |_| None, &store, replay()).unwrap();
    models.ready(site(0).role).unwrap();
    for round in 0..2 {
        let replies: Vec<_> = call_all(&models, 5, 5).await.into_iter().map(Result::unwrap).collect();
        let replayed: Vec<_> = replies.iter().map(|reply| reply.message.content.clone()).collect();
        assert_eq!(replayed, contents);
        assert!(replies.iter().all(|reply| reply.drift.is_none() && reply.committed == (round == 1)));
    }
    assert_eq!((models.tally().sent, models.tally().spent.tokens), (0, 0));
    assert!(requests >= 5);

    // The recording has no call at this site.
    let error = models.call(&site(9), &request(9)).await.unwrap_err().to_string();
    let expected = format!(
        "recording `{}` has no call at expert/step of `unit-9`, round 0, step 0, sample 0\n\
         hint: record it again, or run against a model",
        file.display()
    );
    assert_eq!(error, expected);
}

#[tokio::test]
async fn drift_is_reported_and_not_fatal() {
    let dir = fresh_dir();
    let file = dir.path().join("run.jsonl");
    let server = Server::faultless().await;
    let contents = record(&server, &file).await;
    let settings = settings(&server, "", "temperature = 0.2");
    let (_dir, store) = fresh_store();
    let clock = TestClock::jumping();
    let options = Options { cassette: Some(Cassette::open(&file).unwrap()), ..options(&clock) };
    let models = Models::new(settings, env, &store, options).unwrap();
    let changed = ChatRequest::of(vec![ChatMessage::system("Count.\nSlowly."), ChatMessage::user("call 2")]);
    let reply = models.call(&site(2), &changed).await.unwrap();
    assert_eq!(reply.message.content, contents[2]);
    insta::assert_snapshot!(reply.drift.unwrap());
    let tally = models.tally();
    assert_eq!((tally.drifted, &tally.drifts[0].0), (1, &site(2)));
}

#[test]
fn invalid_recordings_are_refused() {
    let dir = fresh_dir();
    let file = dir.path().join("run.jsonl");
    let line = |version: u32, unit: &str| {
        format!(
            "{{\"version\":{version},\"site\":{{\"role\":\"judge\",\"unit\":\"{unit}\",\"stage\":\"s\",\"round\":0,\"step\":0,\"sample\":0}},\"request\":{{}},\"response\":{{}}}}\n"
        )
    };
    for (text, expected) in [
        (line(1, "a") + "nonsense\n", "run.jsonl:2: expected ident"),
        (line(2, "a"), "run.jsonl:1: version 2 of the format is unknown"),
        (
            line(1, "a") + "\n" + &line(1, "a"),
            "run.jsonl:3: the call at judge/s of `a`, round 0, step 0, sample 0 is recorded twice",
        ),
        (line(1, "a").replace("\"stage\"", "\"state\""), "run.jsonl:1: unknown field `state`"),
    ] {
        std::fs::write(&file, text).unwrap();
        for error in [Cassette::open(&file).err().unwrap(), Recorder::open(&file).err().unwrap()] {
            assert!(error.to_string().contains(expected), "{error}");
        }
    }
    let missing = Cassette::open(&dir.path().join("none")).err().unwrap().to_string();
    assert!(missing.starts_with("failed to read `"), "{missing}");

    // A killed process left a part of a line. It is cut off, and the other lines stay.
    std::fs::write(&file, line(1, "a") + &line(1, "b")[..40]).unwrap();
    Recorder::open(&file).unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), line(1, "a"));
    assert_eq!(Cassette::open(&file).unwrap().len(), 1);
}
