//! Programs in the sandbox that run their own loop: what is recorded of them, and how they end.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::endings::whole;
use crate::support::bench::{Bench, files};
use crate::support::corpus::{prepared, task_dir};
use crate::support::endpoint::{Answer, Server};

/// Two requests that are sent at once both arrive within this time, even on a busy host.
const BOTH_ASK: Duration = Duration::from_secs(60);

/// A small agent: it asks for a message, runs the command in it, and exits.
const AGENT: &str = r#"python3 - <<'PY'
import json, os, subprocess, urllib.request
url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
messages = [{"role": "system", "content": "You are a program."},
            {"role": "user", "content": open(os.environ["INSTRUCTION_FILE"]).read()}]
tools = [{"type": "function", "function": {"name": "sh", "description": "run", "parameters": {"type": "object"}}}]
for _ in range(9):
    body = json.dumps({"model": os.environ["MODEL"], "messages": messages, "tools": tools}).encode()
    request = urllib.request.Request(url, body, {"content-type": "application/json"})
    message = json.load(urllib.request.urlopen(request))["choices"][0]["message"]
    for call in message.get("tool_calls") or []:
        # As clients do that parse arguments and print them anew.
        function = call["function"]
        function["arguments"] = json.dumps(json.loads(function["arguments"]), separators=(",", ":"))
    messages.append(message)
    if not message.get("tool_calls"):
        break
    for call in message["tool_calls"]:
        command = json.loads(call["function"]["arguments"])["command"]
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": done.stdout + done.stderr + "."})
PY"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_installed_agent_reaches_the_model_without_a_network() {
    let server = Server::start(|body, _| {
        let messages = body["messages"].as_array().unwrap();
        let assistant = messages.iter().filter(|message| message["role"] == "assistant").count();
        let command = "mkdir -p /app/report; ls /sys/class/net; ls /app/readings";
        let function = json!({ "name": "sh", "arguments": format!(r#"{{"command": "{command}"}}"#) });
        let call = json!([{ "id": format!("c{assistant}"), "type": "function", "function": function }]);
        let message = if assistant < 2 {
            json!({ "role": "assistant", "content": "On.", "tool_calls": call })
        } else {
            json!({ "role": "assistant", "content": "That is all." })
        };
        let reply = json!({
            "id": "x", "object": "chat.completion", "created": 1, "model": "m",
            "choices": [{ "index": 0, "finish_reason": "stop", "message": message }],
            "usage": { "prompt_tokens": 5, "completion_tokens": 5, "total_tokens": 10 },
        });
        let headers = vec![("content-type", "application/json".to_owned())];
        Answer::Raw { status: 200, headers, body: reply.to_string() }
    })
    .await;
    let bench = Bench::new();
    let task = prepared(&bench.path(""), "room-files").display().to_string();
    let base_url = server.base_url();
    let mut args = vec!["--json", "rollout", &task, "--scaffold", "command", "--agent-command", AGENT];
    args.extend(["--base-url", &base_url, "--model", "m", "--sft", "all", "--out", "out"]);
    let (document, repeated) = tokio::task::block_in_place(|| {
        let report: Value = serde_json::from_str(&bench.run(&args).ok().out).unwrap();
        let id = report["rollouts"][0]["id"].as_str().unwrap().to_owned();
        let shown = bench.run(&["--json", "show", &id, "--out", "out"]).ok();
        (serde_json::from_str::<Value>(&shown.out).unwrap(), bench.run(&args).ok())
    });
    assert_eq!(document["extra"]["end"], "submitted", "{document}");
    assert_eq!(document["extra"]["outcome"], "fail");
    let steps = document["steps"].as_array().unwrap();
    let sources: Vec<_> = steps.iter().map(|step| step["source"].as_str().unwrap()).collect();
    assert_eq!(sources, ["system", "user", "agent", "agent", "agent"]);
    let observed = steps[3]["observation"]["results"][0]["content"].as_str().unwrap();
    // Only the loopback device, and the task's own files.
    assert!(observed.starts_with("lo\n") && observed.contains("north.csv"), "{observed}");
    assert_eq!(steps[4]["message"], "That is all.");
    assert_eq!(server.requests(), 3, "{}", repeated.err);
    // Its model calls are turns. The limit refuses further ones, and ends the rollout.
    for (limit, expect, replies) in
        [(["--max-steps", "1"], "step_limit", 1), (["--trial-tokens", "20"], "token_limit", 2)]
    {
        let args = [&args[..], &limit].concat();
        let document = tokio::task::block_in_place(|| {
            let report: Value = serde_json::from_str(&bench.run(&args).ok().out).unwrap();
            let id = report["rollouts"][0]["id"].as_str().unwrap().to_owned();
            serde_json::from_str::<Value>(&bench.run(&["--json", "show", &id, "--out", "out"]).ok().out)
                .unwrap()
        });
        assert_eq!(document["extra"]["end"], expect, "{document}");
        let agent = document["steps"].as_array().unwrap().iter().filter(|step| step["source"] == "agent");
        assert_eq!(agent.count(), replies, "{document}");
    }
}

/// If an agent ends before a model answered it, that says nothing about the model. The command line
/// is at fault.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_never_starts_is_no_rollout() {
    let server = Server::start(|_, _| whole("Hello.")).await;
    let base_url = server.base_url();
    let task = task_dir("sound-modes").display().to_string();
    let ask = |path: &str| {
        let body = r#"{"model":"m","messages":[{"role":"user","content":"Hello?"}]}"#;
        format!(
            "exec 3<>/dev/tcp/127.0.0.1/8421; printf 'POST {path} HTTP/1.1\\r\\nhost: x\\r\\n\
             content-type: application/json\\r\\ncontent-length: {}\\r\\n\\r\\n%s' '{body}' >&3; cat <&3 >/dev/null",
            body.len()
        )
    };
    // The exit status, and words of the message. For a rollout, words of its observations.
    let check = |command: &str, status: i32, says: &str| {
        let bench = Bench::new();
        let args = ["rollout", &task, "--scaffold", "command", "--agent-command", command, "--out", "out"];
        let args = [&args[..], &["--base-url", &base_url, "--model", "m", "--trial-seconds", "5"]].concat();
        let ran = tokio::task::block_in_place(|| bench.run(&args)).ends(status);
        let (rollouts, observed) = (bench.path("out/store/rollout"), bench.path("out/observed"));
        let stored = if rollouts.exists() { files(&rollouts).len() } else { 0 };
        assert_eq!(stored, usize::from(status == 0), "{command}: {}", ran.err);
        if status == 0 {
            let seen = files(&observed);
            let says = says.as_bytes();
            let is_kept = seen.values().any(|text| text.windows(says.len()).any(|part| part == says));
            assert!(is_kept, "{command}: `{}` is kept", String::from_utf8_lossy(says));
        } else {
            assert!(ran.err.contains(says), "{command}: {}", ran.err);
        }
    };
    const UNUSABLE: i32 = 78;
    check("/opt/agent/bin/none --go", UNUSABLE, "/opt/agent/bin/none: No such file or directory");
    check("echo no key is set; exit 3", UNUSABLE, "no key is set");
    check("true", UNUSABLE, "(it printed nothing)");
    check("exec sleep 100", UNUSABLE, "time limit");
    // Another protocol.
    check(
        &ask("/v1/completions"),
        UNUSABLE,
        "its last request was refused: POST /v1/completions is not supported",
    );
    check(&format!("{}; echo lost my way; exit 127", ask("/v1/chat/completions")), 0, "lost my way");
}

/// A reply with calls of functions, which are named by `name(arguments)`.
fn calling(text: &str, calls: &[(&str, Value)]) -> Answer {
    let calls: Vec<Value> = calls
        .iter()
        .enumerate()
        .map(|(index, (name, arguments))| {
            let arguments = arguments.to_string().replace("\":", "\": ");
            json!({ "id": format!("c{index}"), "type": "function", "function": { "name": name, "arguments": arguments } })
        })
        .collect();
    let message = json!({ "role": "assistant", "content": text, "tool_calls": calls });
    let choice = json!({ "index": 0, "finish_reason": "tool_calls", "message": message });
    let usage = json!({ "prompt_tokens": 5, "completion_tokens": 5, "total_tokens": 10 });
    let headers = vec![("content-type", "application/json".to_owned())];
    let body = json!({ "id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage });
    Answer::Raw { status: 200, headers, body: body.to_string() }
}

/// What small agents have in common: `ask` sends a request, and `say` makes the message of a role.
const CLIENT: &str = r#"
import json, os, sys, threading, time, urllib.error, urllib.request
url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
def tool(name):
    return {"type": "function", "function": {"name": name, "description": "d", "parameters": {"type": "object"}}}
def say(role, content):
    return {"role": role, "content": content}
def ask(messages, tools=()):
    body = json.dumps({"model": os.environ["MODEL"], "messages": messages, "tools": [tool(name) for name in tools]})
    request = urllib.request.Request(url, body.encode(), {"content-type": "application/json"})
    message = json.load(urllib.request.urlopen(request))["choices"][0]["message"]
    for call in message.get("tool_calls") or []:
        call["id"] += "-renamed"
        function = call["function"]
        function["arguments"] = json.dumps(json.loads(function["arguments"]), separators=(",", ":"))
    return message
task = [say("system", "You are a program."), say("user", open(os.environ["INSTRUCTION_FILE"]).read())]
"#;

/// The command line of a small agent.
fn program(code: &str) -> String {
    format!("python3 - <<'PY'\n{CLIENT}{code}\nPY")
}

/// A title first, then two sub-agents that ask at the same time. The main thread goes on when both
/// have reported, in the other order.
const DELEGATING: &str = r#"
ask([say("system", "You write titles."), say("user", "A title for: " + task[1]["content"])])
first = ask(task, ["run", "task"])
reports = {}
def work(call):
    prompt = json.loads(call["function"]["arguments"])["prompt"]
    below = [say("system", "You search."), say("user", prompt)]
    said = ask(below, ["run"])
    below += [said, {"role": "tool", "tool_call_id": said["tool_calls"][0]["id"], "content": "found"}]
    reports[call["id"]] = ask(below, ["run"])["content"]
threads = [threading.Thread(target=work, args=(call,)) for call in first["tool_calls"]]
for thread in threads: thread.start()
for thread in threads: thread.join()
task.append(first)
for id, report in sorted(reports.items(), reverse=True):
    task.append({"role": "tool", "tool_call_id": id, "content": report})
task.append(say("system", "All have reported."))
ask(task, ["run", "task"])
"#;

fn texts(body: &Value) -> (String, usize) {
    let messages = body["messages"].as_array().unwrap();
    let said = messages.iter().filter(|message| message["role"] == "assistant").count();
    (messages[0]["content"].as_str().unwrap().to_owned(), said)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agents_conversations_are_recorded_apart() {
    let searching = AtomicUsize::new(0);
    let server = Server::start(move |body, _| match texts(body) {
        (system, _) if system == "You write titles." => whole("A title."),
        (system, 0) if system == "You search." => {
            // No reply before the other one asks too.
            searching.fetch_add(1, Ordering::SeqCst);
            let asked = Instant::now();
            tokio::task::block_in_place(|| {
                while searching.load(Ordering::SeqCst) < 2 && asked.elapsed() < BOTH_ASK {
                    std::thread::sleep(Duration::from_millis(10));
                }
            });
            calling("I look.", &[("run", json!({ "command": "ls" }))])
        }
        (system, _) if system == "You search." => whole("I have looked."),
        (_, 0) => {
            let task = |prompt: &str| ("task", json!({ "prompt": prompt }));
            calling("Two parts.", &[task("Look into the first half."), task("Look into the second half.")])
        }
        _ => whole("All is done."),
    })
    .await;
    let bench = Bench::new();
    let task = prepared(&bench.path(""), "room-files").display().to_string();
    let base_url = server.base_url();
    let command = program(DELEGATING);
    let args = ["--json", "rollout", &task, "--scaffold", "command", "--agent-command", &command];
    // The title is no step.
    let args =
        [&args[..], &["--base-url", &base_url, "--model", "m", "--max-steps", "6", "--out", "out"]].concat();
    let (shown, document) = tokio::task::block_in_place(|| {
        let report: Value = serde_json::from_str(&bench.run(&args).ok().out).unwrap();
        let id = report["rollouts"][0]["id"].as_str().unwrap().to_owned();
        let document = bench.run(&["--json", "show", &id, "--out", "out"]).ok().out;
        (
            bench.run(&["show", &id, "--out", "out"]).ok().out,
            serde_json::from_str::<Value>(&document).unwrap(),
        )
    });
    assert_eq!(document["extra"]["end"], "submitted", "{document}");
    assert_eq!(server.requests(), 7);
    assert!(server.most_at_once() >= 2, "both sub-agents wait at the same time");
    let heads: Vec<&str> = shown.lines().filter(|line| line.starts_with("── thread")).collect();
    assert_eq!(
        heads,
        ["── thread 1 (auxiliary) ──", "── thread 2 (subagent) ──", "── thread 3 (subagent) ──"],
        "{shown}"
    );
    let (main, others) = shown.split_once("── thread 1").unwrap();
    let in_order = [
        "── turn 1 ──",
        "Two parts.",
        "I have looked.",
        "I have looked.",
        "All have reported.",
        "── turn 2 ──",
    ];
    let mut rest = main;
    for part in in_order {
        rest = rest.split_once(part).unwrap_or_else(|| panic!("{part}: {shown}")).1;
    }
    assert!(!main.contains("I look."), "{shown}");
    assert_eq!(others.matches("I look.").count(), 2, "{shown}");
    assert_eq!(others.matches("A title.").count(), 1, "{shown}");
    // The second run finds all replies, in whichever order the agent asks.
    let again = tokio::task::block_in_place(|| {
        std::fs::remove_dir_all(bench.path("out/store/rollout")).unwrap();
        bench.run(&args).ok()
    });
    assert_eq!(server.requests(), 7, "{}", again.err);
}

/// Some clients try again after a refusal, for minutes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_past_its_limit_is_ended() {
    let server = Server::start(|_, _| whole("Hello.")).await;
    let bench = Bench::new();
    let task = prepared(&bench.path(""), "room-files").display().to_string();
    let base_url = server.base_url();
    let command = program(
        r#"
while True:
    try:
        task.append(ask(task, ["run"]))
        task.append(say("user", "Go on."))
    except urllib.error.HTTPError as error:
        print("I go on after", error.code, flush=True)
        time.sleep(0.2)
"#,
    );
    let args = ["--json", "rollout", &task, "--scaffold", "command", "--agent-command", &command];
    let args =
        [&args[..], &["--base-url", &base_url, "--model", "m", "--max-steps", "2", "--out", "out"]].concat();
    let started = Instant::now();
    let document = tokio::task::block_in_place(|| {
        let report: Value = serde_json::from_str(&bench.run(&args).ok().out).unwrap();
        let id = report["rollouts"][0]["id"].as_str().unwrap().to_owned();
        serde_json::from_str::<Value>(&bench.run(&["--json", "show", &id, "--out", "out"]).ok().out).unwrap()
    });
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
    assert_eq!(document["extra"]["end"], "step_limit", "{document}");
    assert_eq!(server.requests(), 2);
    let seen = files(&bench.path("out/observed"));
    let says = b"I go on after 403";
    assert!(
        seen.values().any(|text| text.windows(says.len()).any(|part| part == says)),
        "its output is kept"
    );
}

/// A history that the agent has changed is no rollout.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_rewrites_its_history_is_unusable() {
    let server = Server::start(|_, _| whole("I did it.")).await;
    let base_url = server.base_url();
    let check = |code: &str, status: i32, says: &str| {
        let bench = Bench::new();
        let task = prepared(&bench.path(""), "room-files").display().to_string();
        let command = program(code);
        let args = ["rollout", &task, "--scaffold", "command", "--agent-command", &command, "--out", "out"];
        let args = [&args[..], &["--base-url", &base_url, "--model", "m"]].concat();
        let ran = tokio::task::block_in_place(|| bench.run(&args)).ends(status);
        assert!(ran.err.contains(says), "{code}: {}", ran.err);
        assert_eq!(bench.path("out/store/rollout").exists(), status == 0, "{code}");
    };
    let changed = r#"
said = ask(task, ["run"])
said["content"] = "I did something else."
ask(task + [said, say("user", "Go on.")], ["run"])
"#;
    check(changed, 78, "I did something else.");
    let examples = r#"
shots = [say("user", "An example."), say("assistant", "Done.")]
said = ask(task[:1] + shots + task[1:])
ask(task[:1] + shots + task[1:] + [said, say("user", "Go on.")])
"#;
    check(examples, 0, "");
}
