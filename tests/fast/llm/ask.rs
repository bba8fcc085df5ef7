//! Structured replies.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use termsmith::llm::{AskError, Models, ask, ask_checked};

use super::{env, fresh_store, options, request, settings, site};
use crate::support::clock::TestClock;
use crate::support::endpoint::{Answer, Server};

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Label {
    loops: bool,
    step: u32,
}

/// A server that replies with these texts: the first one to the request, the second one to the
/// corrected request.
async fn server(texts: [&'static str; 2]) -> Server {
    Server::start(move |body, _| {
        let corrected = body["messages"].as_array().unwrap().len() > 2;
        Answer::Text(texts[usize::from(corrected)].to_owned())
    })
    .await
}

async fn check(texts: [&'static str; 2], expected: Result<u32, &str>, requests: usize) {
    let server = server(texts).await;
    let (_dir, store) = fresh_store();
    let clock = TestClock::jumping();
    let models = Models::new(settings(&server, "", ""), env, &store, options(&clock)).unwrap();
    let small = |label: &Label| {
        if label.step < 10 { Ok(()) } else { Err(format!("step {} does not exist", label.step)) }
    };
    // The second time, the replies are from the journal.
    for _ in 0..2 {
        match (ask_checked(&models, &site(0), &request(0), small).await, expected) {
            (Ok(label), Ok(step)) => assert_eq!(label.step, step, "{texts:?}"),
            (Err(error), Err(part)) => {
                assert!(
                    matches!(error, AskError::Unusable { .. }) && error.to_string().contains(part),
                    "{error}"
                );
            }
            (got, _) => panic!("{texts:?}: {got:?}"),
        }
        assert_eq!(server.requests(), requests, "{texts:?}");
    }
}

#[tokio::test]
async fn one_corrective_turn() {
    let good = r#"{"loops": true, "step": 3}"#;
    check([good, ""], Ok(3), 1).await;
    check(["Sure!\n```json\n{\"loops\": false, \"step\": 4}\n```", ""], Ok(4), 1).await;
    check(["I would say yes.", good], Ok(3), 2).await;
    check([r#"{"loops": "yes", "step": 3}"#, good], Ok(3), 2).await;
    check([r#"{"loops": true}"#, good], Ok(3), 2).await;
    check([r#"{"loops": true, "step": 77}"#, good], Ok(3), 2).await;
    check(["", "still no"], Err("it holds no JSON"), 2).await;
    check(["", r#"{"loops": true, "step": 78}"#], Err("step 78 does not exist"), 2).await;
    check(["", ""], Err("it is empty"), 2).await;
}

#[tokio::test]
async fn the_correction_states_the_problem() {
    let server = server([r#"{"loops": 1, "step": 3}"#, r#"{"loops": true, "step": 3}"#]).await;
    let (_dir, store) = fresh_store();
    let clock = TestClock::jumping();
    let models = Models::new(settings(&server, "", ""), env, &store, options(&clock)).unwrap();
    ask::<Label>(&models, &site(0), &request(0)).await.unwrap();
    let seen = server.seen();
    let messages = seen[1].body["messages"].as_array().unwrap();
    assert_eq!(messages[..2], seen[0].body["messages"].as_array().unwrap()[..]);
    assert_eq!(messages[2], json!({"role": "assistant", "content": r#"{"loops": 1, "step": 3}"#}));
    insta::assert_snapshot!(messages[3]["content"].as_str().unwrap());
}

#[tokio::test]
async fn servers_are_held_to_json_where_they_can_be() {
    for (mode, expected) in [
        ("json = \"none\"", Value::Null),
        ("json = \"object\"", json!({"type": "json_object"})),
        ("json = \"schema\"", json!({"type": "json_schema"})),
    ] {
        let server = server([r#"{"loops": true, "step": 3}"#, ""]).await;
        let (_dir, store) = fresh_store();
        let clock = TestClock::jumping();
        let models = Models::new(settings(&server, mode, ""), env, &store, options(&clock)).unwrap();
        ask::<Label>(&models, &site(0), &request(0)).await.unwrap();
        let format = &server.seen()[0].body["response_format"];
        assert_eq!(format["type"], expected["type"], "{mode}");
        if expected["type"] == "json_schema" {
            assert_eq!(format["json_schema"]["name"], "Label");
            assert_eq!(format["json_schema"]["schema"]["required"], json!(["loops", "step"]));
        }
    }
}
