//! Recordings of terminal sessions that become tasks, and those that are refused.

use serde_json::{Value, json};

use super::author::{configure, requests, server};
use crate::support::bench::Bench;
use crate::support::engine::docker;

const SESSION: [&str; 5] = [
    "\u{1b}[01;32mme@box\u{1b}[00m:/app$ head -3 names.txt\r\nZoe\r\nadam\r\nBo\r\n",
    "me@box:/app$ sort names.txt > sorted.txt\r\n",
    "me@box:/app$ uniq sorted.txt > x && mv x sorted.txt\r\n",
    "me@box:/app$ wc -l < sorted.txt > count.txt\r\n",
    "me@box:/app$ exit\r\n",
];

/// The session as an asciicast of this version, or as a transcript.
fn recorded(version: u32) -> String {
    let pairs = |code: Option<&str>| {
        let event = |data: &&str| match code {
            Some(code) => json!([0.5, code, data]),
            None => json!([0.5, data]),
        };
        SESSION.iter().map(event).collect::<Vec<Value>>()
    };
    let lines = |header: Value| {
        let events = pairs(Some("o"));
        [header].iter().chain(&events).map(|line| format!("{line}\n")).collect::<String>()
    };
    match version {
        1 => json!({"version": 1, "width": 80, "height": 24, "title": "Guests", "stdout": pairs(None)})
            .to_string(),
        2 => lines(json!({"version": 2, "width": 80, "height": 24, "title": "Guests"})),
        3 => lines(json!({"version": 3, "term": {"cols": 80, "rows": 24}, "title": "Guests"})),
        _ => SESSION.concat().replace("\r\n", "\n"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recordings_become_tasks() {
    if docker().await.is_none() {
        return;
    }
    let mut names = Vec::new();
    for version in 0..4 {
        let server = server(|_, _| None).await;
        let bench = Bench::new();
        configure(&bench, &server);
        bench.write("guests.cast", &recorded(version));
        let args =
            ["import", "cast", "guests.cast", "--domain", "data_science", "--rigor", "quick", "--out", "out"];
        bench.run(&args).ok();
        let asked = requests(&server);
        assert!(asked.contains(&("recording", 1)), "{asked:?}");
        assert!(!asked.iter().any(|(stage, _)| *stage == "idea"), "{asked:?}");
        let shown = |stage: &str, part: &str| {
            let seen = server.seen();
            let body = seen.iter().map(|seen| seen.body.to_string());
            assert!(body.into_iter().any(|body| body.contains(part)), "{stage}: no `{part}`");
        };
        shown("recording", "me@box:/app$ head -3 names.txt\\nZoe\\nadam");
        shown("solution", "<commands>\\nhead -3 names.txt\\nsort names.txt > sorted.txt\\n");
        let tasks: Vec<_> = std::fs::read_dir(bench.path("out/tasks")).unwrap().collect();
        assert_eq!(tasks.len(), 1);
        names.extend(tasks.into_iter().map(|task| task.unwrap().file_name()));
        // A second import pays for nothing.
        let before = server.requests();
        bench.run(&args).ok();
        assert_eq!(server.requests(), before);
    }
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 4, "the name follows from the recording: {names:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recordings_that_become_no_task_are_named() {
    let server = server(|_, _| None).await;
    let bench = Bench::new();
    configure(&bench, &server);
    let cases = [
        ("vim.txt", "$ make\n$ vim a.c\n$ make\n$ make install\n", "full-screen program"),
        ("mail.txt", "$ make\n$ ./a > b\n$ ./c > d\nfrom jane@corp.com\n", "e-mail"),
        ("look.txt", "$ ls\n$ cat a\n$ exit\n", "0 of its commands do more than look"),
        ("broken.cast", "{\"version\":2}\n[0.1,\"o\",\"a\"]\nno\n[0.1,\"o\",\"a\"]\n", "broken.cast`:3"),
        ("empty.txt", "nothing happened\n", "shows no command"),
        ("missing.cast", "", "does not exist"),
    ];
    for (name, text, says) in cases {
        if name != "missing.cast" {
            bench.write(name, text);
        }
        bench
            .run(&["import", "cast", name, "--out", "out"])
            .ends(65)
            .says(says)
            .says("no recording can become a task");
    }
    assert_eq!(server.requests(), 0);
}
