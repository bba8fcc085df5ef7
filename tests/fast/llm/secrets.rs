//! Errors, logs and stored replies never contain the key, although the server repeats it. Nothing
//! else in a reply changes.

use std::fs;
use std::path::Path;

use serde_json::json;
use termsmith::llm::{Cassette, Models, Options, Recorder};

use super::{KEY, env, fresh_store, options, request, settings, site};
use crate::support::clock::TestClock;
use crate::support::endpoint::{Answer, Server};

/// Files below `dir` that contain the key.
fn holding(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(holding(&path));
        } else if String::from_utf8_lossy(&fs::read(&path).unwrap()).contains(KEY) {
            found.push(path.display().to_string());
        }
    }
    found
}

#[tokio::test]
async fn errors_and_files_do_not_contain_the_key() {
    let raw = |status: u16, body: String| Answer::Raw {
        status,
        headers: vec![("x-request-id", "id-1".to_owned())],
        body,
    };
    let server = Server::start(move |body, attempt| {
        let echoed = format!("you sent Bearer {KEY}");
        match (body["messages"][1]["content"].as_str().unwrap(), attempt) {
            ("call 0", 0) => raw(429, echoed),
            ("call 0", 1) => raw(200, echoed),
            ("call 0", _) => Answer::Text("hello".to_owned()),
            ("call 1", _) => raw(401, format!("{{\"error\":{{\"message\":\"{echoed}\"}}}}")),
            (_, _) => raw(500, echoed),
        }
    })
    .await;
    let (dir, store) = fresh_store();
    let file = dir.path().join("run.jsonl");
    let clock = TestClock::jumping();
    let options = Options { recorder: Some(Recorder::open(&file).unwrap().into()), ..options(&clock) };
    let models = Models::new(settings(&server, "", ""), env, &store, options).unwrap();
    let mut texts = Vec::new();
    for number in 0..3 {
        match models.call(&site(number), &request(number)).await {
            Ok(reply) => texts.push(format!("{reply:?}")),
            Err(error) => texts.extend([error.to_string(), format!("{error:?}")]),
        }
    }
    texts.extend([format!("{models:?}"), format!("{:?}", models.tally())]);
    assert_eq!(texts.len(), 7);
    assert!(texts[1..5].iter().all(|text| text.contains("[redacted]")), "{texts:?}");
    assert!(texts.iter().all(|text| !text.contains(KEY)), "{texts:?}");
    assert_eq!(holding(dir.path()), Vec::<String>::new());
    assert!(file.metadata().unwrap().len() > 0);
    let expected = format!("Bearer {KEY}");
    assert!(server.seen().iter().all(|seen| seen.authorization.as_deref() == Some(&*expected)));
}

#[tokio::test]
async fn no_key_is_sent_where_none_is_configured_and_a_missing_one_is_named() {
    let server = Server::faultless().await;
    let (_dir, store) = fresh_store();
    let clock = TestClock::jumping();
    let mut without = settings(&server, "", "");
    without.endpoints.get_mut("test").unwrap().api_key_env = None;
    let models = Models::new(without, env, &store, options(&clock)).unwrap();
    models.call(&site(0), &request(0)).await.unwrap();
    assert_eq!(server.seen()[0].authorization, None);
    for (value, expected) in [
        (None, "the environment variable `TEST_KEY` is not set\nhint: export TEST_KEY="),
        (Some(""), "holds no key"),
        (Some("two words"), "holds no key"),
    ] {
        let env = |_: &str| value.map(str::to_owned);
        let models = Models::new(settings(&server, "", ""), env, &store, options(&clock)).unwrap();
        let error = models.ready(site(0).role).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

/// A reply is committed, recorded and replayed as it came, but without the key. A short key may be
/// an ordinary word, so it stays.
#[tokio::test]
async fn a_stored_reply_does_not_contain_the_key() {
    let escaped: String = KEY.chars().map(|c| format!("\\u{:04x}", u32::from(c))).collect();
    let arguments = format!(r#"{{"command": "echo {escaped}; echo {KEY}"}}"#);
    let check = async |key: &'static str, text: &str, expect: &str, replaced: u64| {
        let arguments = arguments.clone();
        let message = json!({
            "role": "assistant", "content": text, "reasoning": text,
            "tool_calls": [{ "id": text, "function": { "name": "bash", "arguments": arguments } }],
        });
        let choice = json!({ "message": message, "finish_reason": text });
        let body = json!({ "model": format!("m-{text}"), "choices": [choice] }).to_string();
        let server = Server::start(move |_, _| Answer::Raw {
            status: 200,
            headers: vec![("x-request-id", format!("id-{key}"))],
            body: body.clone(),
        })
        .await;
        let (dir, store) = fresh_store();
        let file = dir.path().join("run.jsonl");
        let clock = TestClock::jumping();
        let env = |_: &str| Some(key.to_owned());
        let recording = Options { recorder: Some(Recorder::open(&file).unwrap().into()), ..options(&clock) };
        let models = Models::new(settings(&server, "", ""), env, &store, recording).unwrap();
        let reply = models.call(&site(0), &request(0)).await.unwrap();
        assert_eq!(reply.message.content, expect, "{key}");
        assert_eq!(models.tally().keys_replaced, replaced, "{key}");
        let committed = models.call(&site(0), &request(0)).await.unwrap();
        assert_eq!((committed.committed, committed.message.content.as_str()), (true, expect), "{key}");
        if key == KEY {
            assert_eq!(holding(dir.path()), Vec::<String>::new());
            let call = reply.message.tool_calls[0].arguments.as_str();
            assert_eq!(call, r#"{"command": "echo [redacted]; echo [redacted]"}"#);
            assert_eq!(reply.model, format!("m-{expect}"));
        }

        let (_dir, store) = fresh_store();
        let replaying = Options { cassette: Some(Cassette::open(&file).unwrap()), ..options(&clock) };
        let models = Models::new(settings(&server, "", ""), env, &store, replaying).unwrap();
        let replayed = models.call(&site(0), &request(0)).await.unwrap();
        assert_eq!(replayed.message.content, expect, "{key}");
    };
    check("test", "echo pytest latest", "echo pytest latest", 0).await;
    check("password", "cat password.txt", "cat password.txt", 0).await;
    check(KEY, "export KEY=sk-test-4f9a77c1", "export KEY=[redacted]", 1).await;
    check(KEY, "echo sk-test-%34f9a77c1", "echo [redacted]", 1).await;
}
