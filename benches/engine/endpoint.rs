//! A model endpoint that replies at once. It sends as many harmless commands as the model's name
//! says, and then submits.

use axum::body::Bytes;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::{Router, routing};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// The command of every message. It takes no time.
const COMMAND: &str = ":";

/// A server in this process.
pub(crate) struct Endpoint {
    pub(crate) base_url: String,
    task: JoinHandle<()>,
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Endpoint {
    pub(crate) async fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let base_url = format!("http://{}/v1", listener.local_addr()?);
        let app = Router::new().route("/v1/chat/completions", routing::post(answer));
        let task = tokio::spawn(async move {
            // It ends with the bench.
            let _ = axum::serve(listener, app).await;
        });
        Ok(Self { base_url, task })
    }
}

/// Name of the model that sends `steps` commands before it submits.
pub(crate) fn model(steps: usize) -> String {
    format!("instant-{steps}")
}

async fn answer(body: Bytes) -> Response {
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let steps = body["model"].as_str().and_then(|name| name.rsplit('-').next()?.parse().ok()).unwrap_or(0);
    let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
    let assistant = messages.iter().filter(|message| message["role"] == "assistant").count();
    let first = messages.first().and_then(|message| message["content"].as_str()).unwrap_or_default();
    let tools = body["tools"].as_array().is_some_and(|tools| !tools.is_empty());
    let message = reply(first, tools, assistant < steps, assistant);
    let reply = json!({
        "id": "x", "object": "chat.completion", "created": 1, "model": body["model"],
        "choices": [{ "index": 0, "finish_reason": "stop", "message": message }],
        "usage": { "prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20 },
    });
    ([(CONTENT_TYPE, "application/json")], reply.to_string()).into_response()
}

fn reply(first: &str, tools: bool, more: bool, assistant: usize) -> Value {
    let text = |content: String| json!({ "role": "assistant", "content": content });
    if tools {
        if !more {
            return text("Done.".to_owned());
        }
        let function = json!({ "name": "bash", "arguments": json!({ "command": COMMAND }).to_string() });
        let call = json!({ "id": format!("c{assistant}"), "type": "function", "function": function });
        return json!({ "role": "assistant", "content": "", "tool_calls": [call] });
    }
    let command = if more { COMMAND } else { "submit" };
    if first.contains("Thought:") {
        text(format!("Thought: on.\nAction: {command}"))
    } else if first.contains("```bash") {
        text(format!("On.\n\n```bash\n{command}\n```"))
    } else {
        let commands =
            if more { json!([{ "keystrokes": format!("{COMMAND}\n"), "duration": 0.1 }]) } else { json!([]) };
        text(
            json!({ "analysis": "a", "plan": "p", "commands": commands, "task_complete": !more }).to_string(),
        )
    }
}
