//! How rollouts end: limits, refusals, invalid replies and attempts to cheat. Each end has its
//! cause and its failure kind.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::bench::{Bench, files};
use crate::support::corpus::task_dir;
use crate::support::endpoint::{Answer, Server};

/// The next message of a model, by the number of its messages before.
type NextMessage = fn(usize) -> String;

pub(crate) fn block(command: &str) -> String {
    format!("So.\n\n```bash\n{command}\n```")
}

/// A complete reply. (One in twelve of the server's ordinary replies is cut off.)
pub(crate) fn whole(text: &str) -> Answer {
    let message = json!({ "role": "assistant", "content": text });
    let body = json!({
        "id": "x", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{ "index": 0, "finish_reason": "stop", "message": message }],
    });
    let headers = vec![("content-type", "application/json".to_owned())];
    Answer::Raw { status: 200, headers, body: body.to_string() }
}

const SOLVED: &str =
    "chmod 755 /srv/keys; chmod 600 /srv/keys/host.key; chmod 644 /srv/keys/host.pub; chown -R 0:0 /srv/keys";

struct Row {
    name: &'static str,
    says: NextMessage,
    args: &'static [&'static str],
    /// `end`, `outcome`, `failure_kind`, `mask_sample`, `reward`.
    expect: Value,
}

fn rows() -> Vec<Row> {
    vec![
        Row {
            name: "solves",
            says: |assistant| block(if assistant == 0 { SOLVED } else { "submit" }),
            args: &[],
            expect: json!(["submitted", "pass", "none", false, 1.0]),
        },
        Row {
            name: "gives up",
            says: |_| block("submit"),
            args: &[],
            expect: json!(["submitted", "fail", "policy", false, 0.0]),
        },
        Row {
            name: "goes on for ever",
            says: |_| block("true"),
            args: &["--max-steps", "3"],
            expect: json!(["step_limit", "fail", "policy", false, 0.0]),
        },
        Row {
            name: "says nothing that is understood",
            says: |_| "I am a teapot.".to_owned(),
            args: &["--max-steps", "3"],
            expect: json!(["step_limit", "fail", "policy", false, 0.0]),
        },
        Row {
            name: "uses its tokens up",
            says: |_| block("true"),
            args: &["--trial-tokens", "2000"],
            expect: json!(["token_limit", "fail", "policy", false, 0.0]),
        },
        Row {
            name: "uses its dollars up",
            says: |_| block("true"),
            args: &["--settings", "priced.toml", "--trial-usd", "0.01"],
            expect: json!(["dollar_limit", "fail", "policy", false, 0.0]),
        },
        Row {
            name: "does not come to an end in time",
            says: |_| block("sleep 100"),
            args: &["--trial-seconds", "3"],
            expect: json!(["timed_out", "timeout", "policy", false, 0.0]),
        },
        Row {
            name: "takes its machine down",
            says: |_| {
                block(
                    "head -c 3G /dev/zero | tail | wc -c; while :; do fork=$fork$(head -c 10M /dev/zero | tr '\\0' x); done",
                )
            },
            args: &["--max-steps", "1"],
            expect: json!(["step_limit", "fail", "policy", false, 0.0]),
        },
        Row {
            name: "solves, and looks for the tests",
            says: |assistant| match assistant {
                0 => block("find / -name 'test_outputs*' -o -name 'solve.sh'"),
                1 => block(SOLVED),
                _ => block("submit"),
            },
            args: &[],
            expect: json!(["submitted", "pass", "exploit", false, 0.0]),
        },
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_ending_has_its_cause() {
    for row in rows() {
        let says = row.says;
        let server = Server::start(move |body, _| {
            let messages = body["messages"].as_array().unwrap();
            Answer::Text(says(messages.iter().filter(|message| message["role"] == "assistant").count()))
        })
        .await;
        let (found, _) = tokio::task::block_in_place(|| run_rollout(&server, row.args));
        assert_eq!(found, row.expect, "{}", row.name);
    }
}

/// Runs a rollout of `sound-modes`. Returns the expected fields of its row, and its document.
pub(crate) fn run_rollout(server: &Server, args: &[&str]) -> (Value, Value) {
    run_rollout_of(&task_dir("sound-modes"), server, args)
}

/// Like [`run_rollout`], for the task in this folder.
pub(crate) fn run_rollout_of(task: &Path, server: &Server, args: &[&str]) -> (Value, Value) {
    let bench = Bench::new();
    let task = task.display().to_string();
    let base_url = server.base_url();
    bench.write(
        "priced.toml",
        &format!(
            "version = 1\n[endpoints.e]\nbase_url = \"{base_url}\"\nusd_per_1m_input_tokens = 1.0\n\
             usd_per_1m_output_tokens = 2.0\n[roles.expert]\nendpoint = \"e\"\nmodel = \"m\"\nmax_tokens = 64\n"
        ),
    );
    let mut all =
        vec!["--json", "rollout", &task, "--scaffold", "bash-block", "--sft", "all", "--out", "out"];
    if !args.contains(&"--settings") {
        all.extend(["--base-url", &base_url, "--model", "m", "--reply-tokens", "64"]);
    }
    all.extend(args);
    let report: Value = serde_json::from_str(&bench.run(&all).ok().out).unwrap();
    let last = report["rollouts"].as_array().unwrap().last().unwrap();
    let id = last["id"].as_str().unwrap().to_owned();
    let shown = bench.run(&["--json", "show", &id, "--out", "out"]).ok();
    let document: Value = serde_json::from_str(&shown.out).unwrap();
    let extra = &document["extra"];
    let names = ["end", "outcome", "failure_kind", "mask_sample", "reward"];
    (Value::Array(names.iter().map(|name| extra[name].clone()).collect()), document)
}

/// Foreign tasks are judged in the solver's container. A further round or a fork begins with the
/// files from before the tests were uploaded.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rounds_and_forks_of_tasks_judged_in_place() {
    let server = Server::start(|body, _| {
        let messages = body["messages"].as_array().unwrap();
        let assistant = messages.iter().filter(|message| message["role"] == "assistant").count();
        Answer::Text(match assistant {
            0 => block("echo kept > /srv/note; sleep 1000 & chmod 600 /srv/keys/host.key"),
            2 => block(&format!("cat /srv/note; echo /te*ts; pgrep sleep; {SOLVED}")),
            _ => block("submit"),
        })
    })
    .await;
    let (found, document) =
        tokio::task::block_in_place(|| run_rollout(&server, &["--arm", "self-correction", "--rounds", "1"]));
    assert_eq!(found, json!(["submitted", "pass", "none", false, 1.0]));
    assert_eq!(document["extra"]["rounds"].as_array().unwrap().len(), 1);
    let told = document["steps"].to_string();
    assert!(told.contains("checks failed"), "{told}");
    let steps = document["steps"].as_array().unwrap();
    let second = steps.iter().rfind(|step| step.get("observation").is_some()).unwrap();
    let shown = second["observation"].to_string();
    assert!(shown.contains("kept") && shown.contains("/te*ts"), "{shown}");

    let (found, document) =
        tokio::task::block_in_place(|| run_rollout(&server, &["--arm", "fork", "--fork-at", "1", "-k", "1"]));
    assert_eq!(found, json!(["submitted", "fail", "policy", false, 0.0]));
    assert_eq!(document["extra"]["fork"]["turns"], 1);
}

/// Each step is a conversation of its own, in the same container. It is judged before the next
/// begins.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_of_two_steps() {
    /// `solves` says whether the second step is solved.
    async fn server(solves: bool) -> Server {
        Server::start(move |body, _| {
            let messages = body["messages"].as_array().unwrap();
            let task = messages[1]["content"].as_str().unwrap();
            let assistant = messages.iter().filter(|message| message["role"] == "assistant").count();
            let second = task.contains("first.txt");
            Answer::Text(block(match (second, assistant) {
                (false, 0) => "LC_ALL=C sort /app/names.txt > /app/sorted.txt",
                (true, 0) if solves => "head -n 1 /app/sorted.txt > /app/first.txt",
                (true, 0) => "echo nobody > /app/first.txt",
                _ => "submit",
            }))
        })
        .await
    }
    let bench = Bench::new();
    let task = task_dir("sound-two-steps").display().to_string();
    for (solves, out, expect) in [(true, "good", "pass"), (false, "bad", "fail")] {
        let server = server(solves).await;
        let base_url = server.base_url();
        let args = [
            "--json",
            "rollout",
            &task,
            "--scaffold",
            "bash-block",
            "--base-url",
            &base_url,
            "--model",
            "m",
            "--sft",
            "all",
            "--out",
            out,
        ];
        let document = tokio::task::block_in_place(|| {
            let report: Value = serde_json::from_str(&bench.run(&args).ok().out).unwrap();
            assert_eq!(report["rollouts"][0]["outcome"], expect);
            assert_eq!(report["export"]["configs"][0]["rows"], 2, "each step is a row");
            let id = report["rollouts"][0]["id"].as_str().unwrap();
            let shown = bench.run(&["--json", "show", id, "--out", out]).ok();
            bench.run(&["show", id, "--out", out]).ok().says("step `pick` of the task");
            serde_json::from_str::<Value>(&shown.out).unwrap()
        });
        assert_eq!(document.as_array().unwrap().len(), 2);
        assert_eq!(document[1]["extra"]["task_step"], "pick");
        let checks = document[0]["extra"]["checks"].as_array().unwrap();
        let names: Vec<_> = checks.iter().map(|check| check["id"].as_str().unwrap()).collect();
        assert!(names.iter().any(|name| name.starts_with("sort/")), "{names:?}");
        assert!(names.iter().any(|name| name.starts_with("pick/")), "{names:?}");
        // No request is sent again.
        assert_eq!(server.requests(), 4);
        tokio::task::block_in_place(|| bench.run(&args).ok());
        assert_eq!(server.requests(), 4);
    }
    let base_url = server(true).await.base_url();
    let args = [
        "rollout",
        &task,
        "--scaffold",
        "bash",
        "--arm",
        "self-correction",
        "--base-url",
        &base_url,
        "--model",
        "m",
    ];
    let refused = tokio::task::block_in_place(|| bench.run(&[&args[..], &["--out", "no"]].concat()));
    refused.ends(65).says("this task has several");
}

/// A task names the user of its agent's shells. The image has the user's groups and home.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_without_root() {
    const LOOK: &str = "cd; pwd; cat /srv/safe/seal";
    const SOLVE: &str = "id -un > /srv/box/who; id -Gn | tr ' ' '\\n' | LC_ALL=C sort > /srv/box/groups";
    for scaffold in ["bash-block", "terminus"] {
        let server = Server::start(move |body, _| {
            let messages = body["messages"].as_array().unwrap();
            let assistant = messages.iter().filter(|message| message["role"] == "assistant").count();
            let command = if assistant == 0 { LOOK } else { SOLVE };
            if scaffold == "bash-block" {
                return Answer::Text(block(if assistant == 2 { "submit" } else { command }));
            }
            let keys = json!([{ "keystrokes": format!("{command}\n"), "duration": 5 }]);
            let keys = if assistant < 2 { keys } else { json!([]) };
            let reply =
                json!({ "analysis": "", "plan": "", "commands": keys, "task_complete": assistant >= 2 });
            whole(&reply.to_string())
        })
        .await;
        let bench = Bench::new();
        let task = task_dir("sound-agent-user").display().to_string();
        let base_url = server.base_url();
        let args = [
            "--json",
            "rollout",
            &task,
            "--scaffold",
            scaffold,
            "--early-wake",
            "--base-url",
            &base_url,
            "--model",
            "m",
            "--out",
            "out",
        ];
        let shown = tokio::task::block_in_place(|| {
            let report: Value = serde_json::from_str(&bench.run(&args).ok().out).unwrap();
            assert_eq!(report["rollouts"][0]["outcome"], "pass", "{scaffold}");
            bench.run(&["show", report["rollouts"][0]["id"].as_str().unwrap(), "--out", "out"]).ok().out
        });
        assert!(shown.contains("/home/clerk") && shown.contains("Permission denied"), "{shown}");
    }
}

/// A policy can provoke its provider's filter. So the state that it left is judged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_filtered_episode_is_judged_by_its_state() {
    let check = async |command: &'static str, expect: Value| {
        let server = Server::start(move |body, _| {
            let messages = body["messages"].as_array().unwrap();
            if !messages.iter().any(|message| message["role"] == "assistant") {
                return whole(&block(command));
            }
            let message = json!({ "role": "assistant", "content": "I" });
            let choice = json!({ "index": 0, "finish_reason": "content_filter", "message": message });
            let headers = vec![("content-type", "application/json".to_owned())];
            Answer::Raw { status: 200, headers, body: json!({ "choices": [choice] }).to_string() }
        })
        .await;
        let (found, _) = tokio::task::block_in_place(|| run_rollout(&server, &[]));
        assert_eq!(found, expect, "{command}");
    };
    check("true", json!(["content_filtered", "fail", "policy", false, 0.0])).await;
    check(SOLVED, json!(["content_filtered", "pass", "none", false, 1.0])).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_judge_model_adds_labels() {
    let server = Server::start(|body, _| {
        let messages = body["messages"].as_array().unwrap();
        let told = messages[0]["content"].as_str().unwrap();
        if told.contains("hallucinated_success") {
            let label =
                json!({ "label": "hallucinated_success", "steps": [1], "why": "nothing was looked at" });
            return Answer::Text(json!({ "labels": [label] }).to_string());
        }
        Answer::Text(block("submit"))
    })
    .await;
    let (found, document) = tokio::task::block_in_place(|| run_rollout(&server, &["--judge", "model"]));
    assert_eq!(found, json!(["submitted", "fail", "policy", false, 0.0]));
    assert_eq!(document["extra"]["judge_labels"], json!(["hallucinated_success"]));
    let judge = document["extra"]["judge"].as_str().unwrap();
    assert!(judge.starts_with("rules-") && judge.contains("+m@"), "{judge}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn existing_rollouts_are_labelled() {
    let server = Server::start(|body, _| {
        let assistant = body["messages"][1]["content"].as_str().unwrap();
        let lost = json!({ "label": "hallucinated_success", "steps": [1], "why": "nothing was looked at" });
        assert!(assistant.contains("submit"), "{assistant}");
        Answer::Text(json!({ "labels": [lost] }).to_string())
    })
    .await;
    let bench = Bench::new();
    let task = task_dir("sound-modes").display().to_string();
    let solver = Server::start(|_, _| Answer::Text(block("submit"))).await;
    let (url, judge) = (solver.base_url(), server.base_url());
    let rollout =
        ["rollout", &task, "--scaffold", "bash-block", "--base-url", &url, "--model", "m", "--out", "out"];
    let args = ["--json", "judge", "--base-url", &judge, "--model", "j", "--sft", "all", "--out", "out"];
    tokio::task::block_in_place(|| {
        bench.run(&rollout).ok();
        // A rollout without messages needs no request.
        bench.run(&["rollout", &task, "--scaffold", "nop", "--out", "out"]).ok();
        let first: Value = serde_json::from_str(&bench.run(&args).ok().out).unwrap();
        assert_eq!((&first["judged"], &first["known"]), (&json!(2), &json!(0)));
        let report: Value =
            serde_json::from_str(&bench.run(&["--json", "report", "--out", "out"]).ok().out).unwrap();
        assert!(report.to_string().contains("hallucinated_success"), "{report}");
        let again: Value = serde_json::from_str(&bench.run(&args).ok().out).unwrap();
        assert_eq!((&again["judged"], &again["known"]), (&json!(0), &json!(2)));
    });
    assert_eq!(server.requests(), 1);
    let documents = files(&bench.path("out/trajectories"));
    assert!(documents.values().any(|text| String::from_utf8_lossy(text).contains("+j@")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_adversary_that_passes_revokes_the_certificate() {
    let server = Server::start(|body, _| {
        let messages = body["messages"].as_array().unwrap();
        let told = messages[1]["content"].as_str().unwrap();
        assert!(told.contains("the task was NOT done"), "{told}");
        let assistant = messages.iter().filter(|message| message["role"] == "assistant").count();
        // A task whose test checks only that the output exists.
        Answer::Text(block(if assistant == 0 { "touch /app/errors.txt" } else { "submit" }))
    })
    .await;
    let bench = Bench::new();
    let weak = task_dir("weak-existence");
    copy(&weak, &bench.path("task"));
    bench.write("task/certificate.json", "{}");
    let base_url = server.base_url();
    let args = ["rollout", "task", "--scaffold", "bash-block", "--base-url", &base_url, "--model", "m"];
    let ran = tokio::task::block_in_place(|| {
        bench.run(&[&args[..], &["--adversary", "tests", "--out", "out"]].concat()).ends(1)
    });
    ran.says("revoked: rollout");
    let revoked: Value =
        serde_json::from_str(&std::fs::read_to_string(bench.path("task/revoked.json")).unwrap()).unwrap();
    assert_eq!(revoked["version"], 1);
}

fn copy(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            std::fs::copy(&path, &target).unwrap();
        }
    }
}
