//! Requests that a server refuses. If the policy's text is the reason, the policy has failed. For
//! any other reason, the caller is at fault.

use std::time::Duration;

use serde_json::{Value, json};
use termsmith::agent::{
    AgentError, Conversation, Deadline, Driver, Ended, EpisodeContext, Hooks, Logprobs, Machine, ModelPolicy,
    NoTurnLog, StepLimits, run_episode,
};
use termsmith::llm::{CallError, ModelRole};
use termsmith::model::{Assume, End, TurnKind};
use tokio_util::sync::CancellationToken;

use super::deadlines::{fresh_store, installed_at, models};
use super::endings::whole;
use super::scaffolds::scaffold;
use crate::support::endpoint::{Answer, Kind, Server};
use crate::support::engine::{docker, launch, process, run};

/// Longer than any episode here.
const LONG: Duration = Duration::from_secs(60);
/// The text that servers here refuse.
const BAD: &str = "<|bad|>";

fn raw(status: u16, body: &Value) -> Answer {
    let headers = vec![("content-type", "application/json".to_owned())];
    Answer::Raw { status, headers, body: body.to_string() }
}

fn refused(status: u16, error: &Value) -> Answer {
    raw(status, &json!({ "error": error }))
}

/// A message with calls of `bash` that have these arguments.
fn calls(arguments: &[&str]) -> Answer {
    let calls: Vec<_> = arguments
        .iter()
        .enumerate()
        .map(|(index, arguments)| {
            let function = json!({ "name": "bash", "arguments": arguments });
            json!({ "id": format!("call_{index}"), "type": "function", "function": function })
        })
        .collect();
    let message = json!({ "role": "assistant", "content": null, "tool_calls": calls });
    raw(200, &json!({ "choices": [{ "index": 0, "finish_reason": "tool_calls", "message": message }] }))
}

/// A reply with half of a surrogate pair. That is no JSON text.
fn half_a_pair() -> Answer {
    let headers = vec![("content-type", "application/json".to_owned())];
    let body = r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"\ud800"}}]}"#;
    Answer::Raw { status: 200, headers, body: body.to_owned() }
}

/// Number of the policy's messages in a request.
fn turns(body: &Value) -> usize {
    body["messages"].as_array().unwrap().iter().filter(|message| message["role"] == "assistant").count()
}

async fn episode(
    server: &Server,
    option: &str,
    conversation: &mut Conversation,
    drain: &CancellationToken,
) -> Result<Ended, AgentError> {
    let (_dir, store) = fresh_store();
    let models = models(server, &store, 30.0, 2);
    let sandbox = launch(&process()).await;
    let limits = StepLimits { turns: 4, ..StepLimits::scripted(LONG) };
    let scaffold = scaffold(option);
    let Driver::TurnByTurn(protocol) = scaffold.driver() else { panic!("it has a loop of its own") };
    let (role, unit, stop) = (ModelRole::Expert, "u", Vec::new());
    let mut policy = ModelPolicy { models: &models, role, unit, round: 0, stop, logprobs: Logprobs::No };
    let (deadline, drain) = (Deadline::after(LONG, sandbox.clock().clone()), drain.clone());
    let episode = EpisodeContext {
        sandbox: &sandbox,
        env: &[],
        limits: &limits,
        deadline,
        assume: Assume::Nothing,
        machine: Machine::Fresh,
        drain,
    };
    let mut log = NoTurnLog;
    run_episode(protocol, &mut policy, conversation, "Do it.", &episode, Hooks::none(&mut log)).await
}

/// Servers refuse a history with such calls. So the next request must go without them.
#[test]
fn a_malformed_call_is_a_mistake_of_one_turn() {
    run(async {
        let check = async |arguments: &'static str, status: u16| {
            let server = Server::start(move |body, _| {
                for message in body["messages"].as_array().unwrap() {
                    for call in message["tool_calls"].as_array().into_iter().flatten() {
                        let arguments = call["function"]["arguments"].as_str().unwrap();
                        match serde_json::from_str::<Value>(arguments) {
                            Ok(value) if value.is_object() => {}
                            _ => {
                                return refused(
                                    status,
                                    &json!({ "message": "'str' object has no attribute" }),
                                );
                            }
                        }
                    }
                }
                if turns(body) == 0 { calls(&[arguments]) } else { whole("I give up.") }
            })
            .await;
            let mut conversation = Conversation::default();
            let ended = episode(&server, "bash", &mut conversation, &CancellationToken::new()).await.unwrap();
            assert_eq!(ended.end, End::Submitted, "{arguments} {status}");
            let first = &conversation.turns[0];
            assert_eq!((first.kind, first.acts.len()), (TurnKind::Malformed, 0), "{arguments}");
            assert_eq!(first.tool_calls[0].arguments, arguments, "it is stored as it was written");
            let shown = &conversation.seen[0].shown[0].content;
            assert!(shown.contains("Nothing was run"), "{arguments}: {shown}");
        };
        for arguments in [r#"{"command": "ls"#, r#""ls""#, r#"["ls"]"#, "null", "", "content_filter {"] {
            check(arguments, 400).await;
            check(arguments, 500).await;
        }
    });
}

/// The answer of a server. It depends on the number of the policy's messages in the request, on
/// whether the refused text is in it, and on the attempt.
type Answers = fn(usize, bool, u32) -> Answer;

#[test]
fn a_refusal_is_the_policys_failure_only_if_its_text_is_refused() {
    fn goes_on(turns: usize) -> Answer {
        whole(&if turns == 0 {
            format!("{BAD}\n\n```bash\ntrue\n```")
        } else {
            "```bash\nsubmit\n```".to_owned()
        })
    }
    fn error(status: u16) -> Answer {
        refused(
            status,
            &json!({ "message": format!("cannot tokenize {BAD}"), "type": "BadRequestError", "code": status }),
        )
    }
    fn filter() -> Answer {
        refused(400, &json!({ "message": "flagged", "code": "content_filter" }))
    }
    #[derive(Debug, PartialEq)]
    enum Is {
        Ended(End),
        /// An error of the caller or of the endpoint.
        Error,
    }
    run(async {
        let check = async |name: &str, answers: Answers, expect: Is| {
            let server = Server::start(move |body, attempt| {
                answers(turns(body), body.to_string().contains(BAD), attempt)
            })
            .await;
            let mut conversation = Conversation::default();
            let ended = episode(&server, "bash-block", &mut conversation, &CancellationToken::new()).await;
            let found = match ended {
                Ok(ended) => Is::Ended(ended.end),
                Err(AgentError::Call(
                    CallError::Refused { .. }
                    | CallError::Exhausted { .. }
                    | CallError::Auth { .. }
                    | CallError::ContentFilter { .. },
                )) => Is::Error,
                Err(error) => panic!("{name}: {error}"),
            };
            assert_eq!(found, expect, "{name}");
        };
        let ended = Is::Ended;
        check("no refusal", |turns, _, _| goes_on(turns), ended(End::Submitted)).await;
        check(
            "400",
            |turns, bad, _| if bad { error(400) } else { goes_on(turns) },
            ended(End::RequestRefused),
        )
        .await;
        check(
            "422",
            |turns, bad, _| if bad { error(422) } else { goes_on(turns) },
            ended(End::RequestRefused),
        )
        .await;
        check(
            "406 of a gateway",
            |turns, bad, _| if bad { error(406) } else { goes_on(turns) },
            ended(End::RequestRefused),
        )
        .await;
        check(
            "451 of a gateway",
            |turns, bad, _| if bad { error(451) } else { goes_on(turns) },
            ended(End::RequestRefused),
        )
        .await;
        check(
            "403 of a gateway",
            |turns, bad, _| if bad { error(403) } else { goes_on(turns) },
            ended(End::RequestRefused),
        )
        .await;
        check(
            "500",
            |turns, bad, _| if bad { error(500) } else { goes_on(turns) },
            ended(End::RequestRefused),
        )
        .await;
        check(
            "filtered text",
            |turns, bad, _| if bad { filter() } else { goes_on(turns) },
            ended(End::ContentFiltered),
        )
        .await;
        check(
            "429, as for a text above the limit per minute",
            |turns, bad, _| if bad { error(429) } else { goes_on(turns) },
            ended(End::RequestRefused),
        )
        .await;
        check(
            "half of a surrogate pair in the reply",
            |turns, bad, _| if bad { half_a_pair() } else { goes_on(turns) },
            ended(End::RequestRefused),
        )
        .await;
        check("a server that sends no JSON", |_, _, _| half_a_pair(), Is::Error).await;
        check(
            "a server that hangs up",
            |turns, bad, _| if bad { Answer::Do(Kind::Reset) } else { goes_on(turns) },
            ended(End::RequestRefused),
        )
        .await;
        // Two attempts are a call here. The server recovers after it.
        check(
            "500 for a while",
            |turns, bad, attempt| if bad && attempt < 2 { error(500) } else { goes_on(turns) },
            ended(End::Submitted),
        )
        .await;
        check("the first request", |_, _, _| error(400), Is::Error).await;
        check("the first request, filtered", |_, _, _| filter(), Is::Error).await;
        check(
            "every second request",
            |turns, _, _| if turns > 0 { error(400) } else { goes_on(turns) },
            Is::Error,
        )
        .await;
        check(
            "every second request, 500",
            |turns, _, _| if turns > 0 { error(500) } else { goes_on(turns) },
            Is::Error,
        )
        .await;
        check(
            "every second request, filtered",
            |turns, _, _| if turns > 0 { filter() } else { goes_on(turns) },
            Is::Error,
        )
        .await;
        check("another model", |turns, _, _| if turns > 0 { error(404) } else { goes_on(turns) }, Is::Error)
            .await;
        check(
            "no credit",
            |turns, _, _| {
                if turns > 0 {
                    refused(429, &json!({ "code": "insufficient_quota" }))
                } else {
                    goes_on(turns)
                }
            },
            Is::Error,
        )
        .await;
    });
}

/// The request has no text of the policy. Only the reply is unreadable.
#[test]
fn a_first_reply_that_is_no_json_is_the_policys_failure() {
    run(async {
        let server =
            Server::start(
                |body, _| {
                    if body.to_string().contains("Do it.") { half_a_pair() } else { whole("ok") }
                },
            )
            .await;
        let mut conversation = Conversation::default();
        let ended = episode(&server, "bash", &mut conversation, &CancellationToken::new()).await.unwrap();
        assert_eq!(ended.end, End::RequestRefused);
    });
}

#[test]
fn the_calls_of_one_message_are_bounded() {
    run(async {
        let server = Server::start(|body, _| {
            if turns(body) > 0 { whole("Done.") } else { calls(&[r#"{"command": "true"}"#; 40]) }
        })
        .await;
        let mut conversation = Conversation::default();
        let ended = episode(&server, "bash", &mut conversation, &CancellationToken::new()).await.unwrap();
        assert_eq!((ended.end, conversation.turns[0].acts.len()), (End::Submitted, 32));
        let shown = &conversation.seen[0].shown;
        assert_eq!(shown.len(), 40, "every call has an answer");
        assert!(shown[31].content.contains("exit status 0"), "{}", shown[31].content);
        assert!(shown[32].content.contains("a message can make 32 calls"), "{}", shown[32].content);

        let drain = CancellationToken::new();
        drain.cancel();
        let mut conversation = Conversation::default();
        let ended = episode(&server, "bash", &mut conversation, &drain).await;
        assert!(matches!(ended, Err(AgentError::Drained)), "{ended:?}");
        assert!(conversation.turns.is_empty(), "the turn is executed again by the next run");
    });
}

/// The agent is a program of the caller, and can send anything.
#[test]
fn an_installed_agent_answers_for_its_own_requests() {
    run(async {
        let Some(engine) = docker().await else { return };
        let body = r#"{"messages":[{"role":"user","content":"Bad?"}]}"#;
        let then = format!(
            "cat <&3 >/dev/null; exec 4<>/dev/tcp/127.0.0.1/8421; printf 'POST /v1/chat/completions HTTP/1.1\\r\\n\
             host: x\\r\\ncontent-type: application/json\\r\\ncontent-length: {}\\r\\n\\r\\n%s' '{body}' >&4; \
             cat <&4 >/dev/null; exit 1",
            body.len()
        );
        let then = then.as_str();
        let check = async |status: u16, everyone: bool, expect: Option<End>| {
            let server = Server::start(move |body, _| {
                let text = body.to_string();
                // The agent's request, then the same or another one, then the control.
                if text.contains("Bad?") || (everyone && !text.contains("Hello?")) {
                    refused(status, &json!({ "message": "no" }))
                } else {
                    whole("Hello.")
                }
            })
            .await;
            let sandbox = launch(&engine).await;
            let ended = installed_at(&server, &sandbox, then, LONG).await;
            assert_eq!(ended.ok(), expect, "{status} {everyone}");
        };
        tokio::join!(
            check(400, false, Some(End::Submitted)),
            check(500, false, Some(End::Submitted)),
            check(400, true, None),
            check(500, true, None),
        );
    });
}
