//! Conversations that would exceed the context. They end, or continue from a summary. Each part is
//! a segment of its own.

use std::fs::File;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use arrow_array::cast::AsArray as _;
use arrow_array::types::Int32Type;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Value, json};

use crate::support::bench::Bench;
use crate::support::corpus::task_dir;
use crate::support::endpoint::{Answer, Server};

/// Turns with a command, before the model submits.
const STEPS: usize = 20;
/// Maximum tokens of a request's messages.
const CONTEXT: u64 = 4_000;
/// Tokens of a reply.
const REPLY: u64 = 100;

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    Step,
    Summary,
    Questions,
    Answers,
    Short,
}

fn wanted(body: &Value) -> Wanted {
    let last = body["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap();
    let asks = [
        ("You will go on in a new one", Wanted::Summary),
        ("You are about to hand off your work", Wanted::Summary),
        ("Please begin by asking several questions", Wanted::Questions),
        ("The next agent has a few questions for you", Wanted::Answers),
        ("what still holds of the notes", Wanted::Short),
        ("Next steps (2-3 sentences)", Wanted::Short),
    ];
    asks.iter().find(|(text, _)| last.contains(text)).map_or(Wanted::Step, |(_, wanted)| *wanted)
}

/// Tokens of the messages, as this server counts them.
fn length(body: &Value) -> u64 {
    const BYTES_PER_TOKEN: usize = 4;
    (body["messages"].to_string().len() / BYTES_PER_TOKEN) as u64
}

#[derive(Clone, Copy)]
enum Speaks {
    Block,
    Terminus,
    Calls,
}

/// The next step. It changes the folder, prints it, and fills the conversation.
fn step(speaks: Speaks, number: usize, read: u64) -> Answer {
    let go = if number == 0 { "cd /srv; " } else { "" };
    let command = format!("{go}printf 'x%.0s' {{1..1800}}; date +%N; echo step {number} in $PWD");
    let done = number >= STEPS;
    match speaks {
        Speaks::Block => {
            let command = if done { "submit" } else { &command };
            says(&format!("So.\n\n```bash\n{command}\n```"), read)
        }
        Speaks::Terminus => {
            let keys = json!({ "keystrokes": format!("{command}\n"), "duration": 5.0 });
            let commands = if done { String::new() } else { keys.to_string() };
            let order = format!("\"plan\":\"B\",\"commands\":[{commands}],\"task_complete\":{done}");
            says(&format!("{{\"analysis\":\"A\",{order}}}"), read)
        }
        Speaks::Calls => {
            let function = json!({ "name": "bash", "arguments": json!({ "command": command }).to_string() });
            let call = json!({ "id": format!("c{number}"), "type": "function", "function": function });
            let calls = if done { json!([]) } else { json!([call]) };
            reply(&json!({ "role": "assistant", "content": "On.", "tool_calls": calls }), read)
        }
    }
}

fn says(text: &str, read: u64) -> Answer {
    reply(&json!({ "role": "assistant", "content": text }), read)
}

fn reply(message: &Value, read: u64) -> Answer {
    let body = json!({
        "id": "x", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{ "index": 0, "finish_reason": "stop", "message": message }],
        "usage": { "prompt_tokens": read, "completion_tokens": 9, "total_tokens": read + 9 },
    });
    Answer::Raw {
        status: 200,
        headers: vec![("content-type", "application/json".to_owned())],
        body: body.to_string(),
    }
}

fn too_long() -> Answer {
    let error = json!({ "error": { "message": "This model's maximum context length is less", "code": "context_length_exceeded" } });
    Answer::Raw {
        status: 400,
        headers: vec![("content-type", "application/json".to_owned())],
        body: error.to_string(),
    }
}

/// A server with this context. A request that is refused as too long does not count as a step.
async fn server(speaks: Speaks, refuses: fn(&Value) -> bool) -> Server {
    let steps = AtomicUsize::new(0);
    Server::start(move |body, _| {
        if length(body) > CONTEXT || refuses(body) {
            return too_long();
        }
        let text = match wanted(body) {
            Wanted::Step => return step(speaks, steps.fetch_add(1, Ordering::Relaxed), length(body)),
            Wanted::Summary => "I SUM UP: some steps are done.",
            Wanted::Questions => "1. WHICH STEP IS NEXT?",
            Wanted::Answers => "1. The one after the last.",
            Wanted::Short => "IN SHORT: go on.",
        };
        says(text, length(body))
    })
    .await
}

struct RolloutResult {
    documents: Vec<Value>,
    /// `segment`, `n_segments` and `n_context` of each row of `sft` or `sft_tools`.
    rows: Vec<(i32, i32, i32)>,
    pairs: bool,
}

impl RolloutResult {
    /// Documents of the conversation itself, in order.
    fn parts(&self) -> Vec<&Value> {
        let aside =
            |document: &&Value| !document["trajectory_id"].as_str().unwrap().contains("summarization");
        self.documents.iter().filter(aside).collect()
    }

    fn end(&self) -> &str {
        self.documents[0]["extra"]["end"].as_str().unwrap()
    }
}

fn settings(bench: &Bench, server: &Server, context: Option<u64>) {
    let context = context.map_or_else(String::new, |most| format!("max_context = {most}\n"));
    bench.write(
        "termsmith.toml",
        &format!(
            "version = 1\n[endpoints.e]\nbase_url = \"{}\"\n{context}[roles.expert]\nendpoint = \"e\"\nmodel = \"m\"\n\
             max_tokens = {REPLY}\n",
            server.base_url()
        ),
    );
}

fn arguments<'a>(task: &'a str, scaffold: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec![
        "--json",
        "rollout",
        task,
        "--scaffold",
        scaffold,
        "--early-wake",
        "--sft",
        "all",
        "--out",
        "out",
    ];
    args.extend(more);
    args
}

fn run_rollout(bench: &Bench, args: &[&str]) -> RolloutResult {
    let report: Value = serde_json::from_str(&bench.run(args).ok().out).unwrap();
    let id = report["rollouts"][0]["id"].as_str().unwrap().to_owned();
    let shown: Value =
        serde_json::from_str(&bench.run(&["--json", "show", &id, "--out", "out"]).ok().out).unwrap();
    let documents = match shown {
        Value::Array(all) => all,
        one => vec![one],
    };
    let mut rows = Vec::new();
    for config in ["sft", "sft_tools"] {
        let file = bench.path(&format!("out/data/{config}/train-00000-of-00001.parquet"));
        let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(file).unwrap()).unwrap();
        for batch in reader.build().unwrap() {
            let batch = batch.unwrap();
            let column = |name: &str| batch.column_by_name(name).unwrap().as_primitive::<Int32Type>().clone();
            let (segment, of, context) = (column("segment"), column("n_segments"), column("n_context"));
            rows.extend((0..segment.len()).map(|at| (segment.value(at), of.value(at), context.value(at))));
        }
    }
    let mut configs = report["export"]["configs"].as_array().unwrap().iter();
    let pairs = configs.any(|config| config["name"] == "pref_dmpo" && config["rows"] != 0);
    RolloutResult { documents, rows, pairs }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conversation_continues_from_a_summary() {
    // The context is known in advance, or learned from a refusal.
    let rows = [
        ("bash-block", Speaks::Block, Some(CONTEXT), 2),
        ("bash-block", Speaks::Block, None, 2),
        ("terminus", Speaks::Terminus, Some(CONTEXT), 3),
        ("terminus", Speaks::Terminus, None, 3),
        ("bash", Speaks::Calls, None, 2),
    ];
    let task = task_dir("sound-modes").display().to_string();
    for (scaffold, speaks, context, n_context) in rows {
        let server = server(speaks, |_| false).await;
        let bench = Bench::new();
        settings(&bench, &server, context);
        let args = arguments(&task, scaffold, &["--summarise"]);
        let result = tokio::task::block_in_place(|| run_rollout(&bench, &args));
        let name = format!("{scaffold}, context {context:?}");
        assert_eq!(result.end(), "submitted", "{name}");
        let parts = result.parts();
        assert!(parts.len() >= 3, "{name}: {} parts", parts.len());
        let of = i32::try_from(parts.len()).unwrap();
        let first = if scaffold == "terminus" { 1 } else { 2 };
        let expect: Vec<_> = (0..of).map(|at| (at, of, if at == 0 { first } else { n_context })).collect();
        assert_eq!(result.rows, expect, "{name}");
        assert!(!result.pairs);

        for (number, part) in parts.iter().enumerate() {
            let steps = part["steps"].as_array().unwrap();
            let last = steps.last().unwrap();
            let goes_on = number + 1 < parts.len();
            assert_eq!(last["extra"]["context_management"]["type"] == "compaction", goes_on, "{name}");
            assert_eq!(part.get("continued_trajectory_ref").is_some(), goes_on, "{name}");
            if number > 0 {
                let copied: Vec<_> = steps.iter().filter(|step| step["is_copied_context"] == true).collect();
                let text = serde_json::to_string(&copied).unwrap();
                assert!(text.contains("I SUM UP") || text.contains("WHICH STEP"), "{name}: {text}");
            }
        }
        // The container kept its state, and each step was executed once.
        let all: Vec<&Value> = parts
            .iter()
            .flat_map(|part| part["steps"].as_array().unwrap())
            .filter(|step| step["source"] == "agent" && step["is_copied_context"] != true)
            .collect();
        let shown: Vec<String> = all.iter().map(|step| step["observation"].to_string()).collect();
        for number in 0..STEPS {
            let told = shown.iter().filter(|text| text.contains(&format!("step {number} in /srv"))).count();
            assert!(told >= 1, "{name}: step {number} was shown {told} times");
        }
        let seen = server.seen();
        let answered = seen.iter().filter(|seen| length(&seen.body) <= CONTEXT);
        let steps = answered.clone().filter(|seen| wanted(&seen.body) == Wanted::Step).count();
        assert_eq!(all.len(), steps, "{name}");
        for asked in seen.iter().filter(|seen| wanted(&seen.body) == Wanted::Summary) {
            let with_tools = asked.body.get("tools").is_some();
            assert_eq!(with_tools, scaffold == "bash", "{name}");
            assert_eq!(asked.body["tool_choice"] == "none", with_tools, "{name}");
        }
        // With a known context, the summary covers everything.
        let assistant = |messages: &Value| {
            messages.as_array().unwrap().iter().filter(|message| message["role"] == "assistant").count()
        };
        let summed_up: Vec<_> = seen
            .iter()
            .filter(|seen| wanted(&seen.body) == Wanted::Summary)
            .map(|seen| assistant(&seen.body["messages"]))
            .collect();
        let assistant = |part: &&Value| {
            let steps = part["steps"].as_array().unwrap();
            steps.iter().filter(|step| step["source"] == "agent").count()
        };
        let assistant: Vec<_> = parts.iter().map(assistant).take(parts.len() - 1).collect();
        assert!(context.is_none() || summed_up == assistant, "{name}: {summed_up:?} of {assistant:?}");
        if context.is_some() {
            assert_eq!(answered.count(), seen.len(), "{name}: nothing is sent that would not fit");
        }
        if scaffold == "terminus" {
            let asked: Vec<_> = seen.iter().filter(|seen| wanted(&seen.body) == Wanted::Questions).collect();
            let messages = asked[0].body["messages"].as_array().unwrap();
            assert_eq!(messages.len(), 1, "the questions are asked in a conversation of their own");
            assert!(messages[0]["content"].as_str().unwrap().contains(" in /srv"), "and sees the screen");
        }

        // A repeated command reads everything from the store.
        let before = server.requests();
        tokio::task::block_in_place(|| bench.run(&args).ok());
        assert_eq!(server.requests(), before, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handoffs_without_a_full_summary() {
    let task = task_dir("sound-modes").display().to_string();
    let check = async |name: &str, refuses: fn(&Value) -> bool, args: &[&str], end: &str, says: &str| {
        let server = server(Speaks::Block, refuses).await;
        let bench = Bench::new();
        settings(&bench, &server, None);
        let result =
            tokio::task::block_in_place(|| run_rollout(&bench, &arguments(&task, "bash-block", args)));
        assert_eq!(result.end(), end, "{name}");
        let parts = result.parts();
        assert_eq!(parts.len() > 1, !says.is_empty(), "{name}");
        if let Some(part) = parts.get(1) {
            let context = part["steps"][1]["message"].as_str().unwrap();
            assert!(context.contains(says), "{name}: {context}");
        }
    };
    check("none is asked for", |_| false, &[], "context_full", "").await;
    let no_summary = |body: &Value| wanted(body) == Wanted::Summary;
    check("a short one is", no_summary, &["--summarise"], "submitted", "IN SHORT").await;
    let none_at_all = |body: &Value| wanted(body) != Wanted::Step;
    check("not even that", none_at_all, &["--summarise"], "submitted", "Last, this was said and run").await;
    // The conversation after a summary does not fit either. Another summary would not help.
    let never_again = |body: &Value| body["messages"].to_string().contains("I SUM UP");
    check("it does not help", never_again, &["--summarise"], "context_full", "I SUM UP").await;
}

/// The command is killed when a request of one of these kinds arrives.
const KILLS: [Wanted; 3] = [Wanted::Summary, Wanted::Questions, Wanted::Answers];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupted_summary_is_resumed() {
    let server = server(Speaks::Terminus, |_| false).await;
    let bench = Bench::new();
    settings(&bench, &server, Some(CONTEXT));
    let task = task_dir("sound-modes").display().to_string();
    let args = arguments(&task, "terminus", &["--summarise"]);
    for kind in KILLS {
        let asked = |kind| server.seen().iter().filter(|seen| wanted(&seen.body) == kind).count();
        let before = asked(kind);
        let mut running = bench.spawn(&args);
        let reached = async {
            while asked(kind) == before && running.try_wait().unwrap().is_none() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(300), reached).await.unwrap();
        // It may have ended already.
        let _ = running.kill();
        running.wait().unwrap();
    }
    let result = tokio::task::block_in_place(|| run_rollout(&bench, &args));
    assert_eq!(result.end(), "submitted");
    let mut bodies: Vec<String> = server.seen().iter().map(|seen| seen.body.to_string()).collect();
    bodies.sort();
    let sent = bodies.len();
    bodies.dedup();
    assert!(sent - bodies.len() <= KILLS.len(), "{} repeated", sent - bodies.len());
    // The screen shows the clock, and the recorded turns are executed at another time. The requests
    // are equal nevertheless.
    let handoffs = result.parts().len() - 1;
    let questions = bodies.iter().filter(|body| body.contains("Please begin by asking several questions"));
    let answered = bodies.iter().filter(|body| body.contains("The next agent has a few questions for you"));
    assert_eq!(answered.count(), handoffs);
    // Each is in the request itself, and in the requests after it.
    let alone = questions.filter(|body| !body.contains("WHICH STEP"));
    assert_eq!(alone.count(), handoffs);
}
