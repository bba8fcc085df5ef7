//! The official clients against a server of the dialects.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};

use super::replies::reply_of;
use super::{Asked, ChatRequest, Inquiry, Refusal, RefusalKind, Request, inquire};
use crate::llm::{ChatMessage, ChatRole, Finish, Reply, ToolCall};
use crate::sandbox::Received;

/// A Python with the packages `openai`, `anthropic` and `google-genai`. It may be any program: a
/// script can run an agent against the URL in its second argument.
const PYTHON: &str = "TERMSMITH_TEST_CLIENTS";

#[test]
#[ignore = "needs the official clients in Python"]
fn official_clients_understand_the_dialects() {
    let python = std::env::var(PYTHON).unwrap_or_else(|_| panic!("{PYTHON} names a Python"));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            std::thread::spawn(move || answer(stream.unwrap()));
        }
    });
    let status = std::process::Command::new(python).args(["tests/clients/dialects.py", &url]).status();
    assert!(status.unwrap().success());
}

fn answer(mut stream: TcpStream) {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let mut bytes = Vec::new();
    let request = loop {
        let mut piece = [0; 65536];
        match stream.read(&mut piece).unwrap() {
            0 => return,
            count => bytes.extend_from_slice(&piece[..count]),
        }
        let Ok(request) = Request::read(&Received::Whole(bytes.clone())) else { continue };
        let length: usize = request.header("content-length").map_or(0, |length| length.parse().unwrap());
        if request.body.len() >= length {
            break request;
        }
    };
    if request.path == "/count" {
        let count = COUNT.load(Ordering::Relaxed).to_string();
        return stream.write_all(&super::http::json(&count)).unwrap();
    }
    COUNT.fetch_add(1, Ordering::Relaxed);
    match inquire(&request, "m") {
        Inquiry::Answered(response) | Inquiry::Refused { response, .. } => {
            stream.write_all(&response).unwrap();
        }
        Inquiry::Asked(Asked { request, mut responder }) => {
            let words = said(&request);
            for _ in 0..if words.starts_with("slow") { 2 } else { 0 } {
                stream.write_all(&responder.alive().unwrap()).unwrap();
            }
            let refused = match words.as_str() {
                "limit" | "slow limit" => Some(RefusalKind::Limit),
                "context" => Some(RefusalKind::ContextLength),
                _ => None,
            };
            let response = match refused {
                Some(kind) => responder.refuse(&Refusal::new(kind, "no")),
                None => responder.reply(&reply_to(&request)),
            };
            stream.write_all(&response).unwrap();
        }
    }
}

/// The user's words.
fn said(request: &ChatRequest) -> String {
    let user = request.messages.iter().find(|message| message.role == ChatRole::User);
    user.map(|message| message.content.clone()).unwrap_or_default()
}

fn reply_to(request: &ChatRequest) -> Reply {
    let results = request.messages.iter().filter(|message| message.role == ChatRole::Tool).count();
    if results > 0 {
        return reply_of(ChatMessage::assistant(format!("Done: {results} results.")), Finish::Stop);
    }
    // The shells of agents. They differ in the name of the command.
    let shells = ["Bash", "bash", "exec_command", "run_shell_command"];
    let shell = request.tools.iter().find(|tool| shells.contains(&tool.name.as_str()));
    let call = |id: &str, arguments: &str| ToolCall {
        id: id.into(),
        name: shell.map_or("sh", |tool| &tool.name).to_owned(),
        arguments: match shell {
            Some(tool) if tool.name == "exec_command" => arguments.replace("command", "cmd"),
            Some(_) | None => arguments.to_owned(),
        },
    };
    let message = ChatMessage {
        reasoning: Some("Hm.".into()),
        tool_calls: vec![call("c1", r#"{"z": 1, "command": "ls"}"#), call("c2", r#"{"command": "pwd"}"#)],
        ..ChatMessage::assistant("I look.")
    };
    reply_of(message, Finish::ToolCalls)
}
