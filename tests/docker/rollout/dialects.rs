//! Installed agents that speak other protocols, or send too much.

use serde_json::{Value, json};

use super::endings::whole;
use crate::support::bench::Bench;
use crate::support::corpus::prepared;
use crate::support::endpoint::Server;

/// Asks in each protocol, sends bad input, and tells the model at the end what came of it.
const AGENT: &str = r#"python3 - <<'PY'
import json, os, socket, threading, urllib.error, urllib.request
URL, found = "http://127.0.0.1:8421", {}
def send(path, body):
    request = urllib.request.Request(URL + path, body, {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
def ask(path, **body):
    return send(path, json.dumps(body).encode())
user = [{"role": "user", "content": "hi"}]
found["chat"] = ask("/v1/chat/completions", messages=user, stream=True)
found["responses"] = ask("/v1/responses", input="hi", stream=True)
found["messages"] = ask("/v1/messages?beta=true", messages=user, max_tokens=9, stream=True)
found["gemini"] = ask("/v1beta/models/m:streamGenerateContent?alt=sse", contents=[{"parts": [{"text": "hi"}]}])
found["long"] = send("/v1/messages", b" " * (50 << 20))
found["models"] = []
def many():
    with urllib.request.urlopen(URL + "/v1/models") as reply:
        found["models"].append(json.load(reply)["data"][0]["id"])
threads = [threading.Thread(target=many) for _ in range(250)]
for thread in threads: thread.start()
for _ in range(20):
    gone = socket.create_connection(("127.0.0.1", 8421))
    gone.sendall(b"POST /v1/messages HTTP/1.1\r\ncontent-length: 900000\r\n\r\n{" + b" " * 100000)
    gone.close()
for thread in threads: thread.join()
found["models"] = len(found["models"])
ask("/v1/chat/completions", messages=[{"role": "user", "content": json.dumps(found)}])
PY"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_speak_any_dialect() {
    let server = Server::start(|_, _| whole("Hello.")).await;
    let base_url = server.base_url();
    let bench = Bench::new();
    let task = prepared(&bench.path(""), "room-files").display().to_string();
    let args = ["rollout", &task, "--scaffold", "command", "--agent-command", AGENT, "--out", "out"];
    let args = [&args[..], &["--base-url", &base_url, "--model", "m"]].concat();
    tokio::task::block_in_place(|| bench.run(&args).ok());
    let seen = server.seen();
    let last = seen.last().unwrap().body["messages"][0]["content"].as_str().unwrap().to_owned();
    let found: Value = serde_json::from_str(&last).unwrap();
    let check = |what: &str, status: u16, says: &str| {
        assert_eq!(found[what][0], json!(status), "{what}: {found}");
        assert!(found[what][1].as_str().unwrap().contains(says), "{what}: {found}");
    };
    check("chat", 200, "data: [DONE]\n\n");
    check("responses", 200, "event: response.completed\n");
    check("messages", 200, "event: message_stop\n");
    check("gemini", 200, r#""finishReason":"STOP""#);
    check("long", 413, r#""request_too_large""#);
    assert_eq!(found["models"], 250);
    assert_eq!(server.requests(), 5);
}
