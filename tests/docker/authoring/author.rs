//! A simulated author. It writes one small task, and makes the mistakes that a test wants.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::support::bench::Bench;
use crate::support::endpoint::{Answer, Kind, Server};

/// The stages and judges, each with the beginning of its system prompt.
static STAGES: LazyLock<Vec<(String, String)>> = LazyLock::new(|| {
    let prompts = Path::new(env!("CARGO_MANIFEST_DIR")).join("templates/prompts");
    let folders =
        fs::read_dir(&prompts).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let stages = folders.filter_map(|folder| {
        let stage = match folder.as_str() {
            // The scaffold of blind solvers.
            "bash-block" => "blind",
            folder => folder.strip_prefix("author-")?,
        };
        let texts = ["system.md", "system.md.j2"].map(|name| prompts.join(&folder).join(name));
        let text = texts.iter().find_map(|path| fs::read_to_string(path).ok())?;
        let beginning = text.split(['{', '\n']).next().unwrap();
        Some((stage.to_owned(), beginning.to_owned()))
    });
    let mut stages: Vec<_> = stages.collect();
    stages.sort();
    stages
});
/// The model's name of the weak solver. Its prompts are those of the stage `blind`.
const WEAK: &str = "weak";

pub(crate) const INSTRUCTION: &str = "The file `/app/names.txt` lists the guests of a dinner, one name on each line, some of them several times. Write \
`/app/sorted.txt` with every name once, sorted bytewise, one on each line, each line ended by a line feed. Write `/app/count.txt` with the number of \
different names as one decimal number on a line of its own. The names keep their spelling. `/app/names.txt` stays as it is. Nothing else is wanted, \
and nobody will look for more than these two files.";

pub(crate) const ENVIRONMENT: &str =
    "<file path=\"app/names.txt\">\nZoe\nadam\nÉmile\nBo\nbo\nBo\nAnna Lee\nZoe\nadam\n</file>";

pub(crate) const SOLUTION: &str = "<file path=\"solve.sh\">\n#!/bin/bash\nset -euo pipefail\nexport LC_ALL=C\nsort -u names.txt > sorted.txt\nwc -l < sorted.txt > count.txt\n</file>";

/// The checks without the check of the count.
pub(crate) const CHECKS_WITHOUT_COUNT: &str = "import subject

NAMES = subject.pristine(\"app/names.txt\").read_text().splitlines()
TRUTH = sorted(set(NAMES), key=str.encode)


def test_sorted():
    \"\"\"“every name once, sorted bytewise, one on each line, each line ended by a line feed”: the whole file.\"\"\"
    assert subject.read_text(\"/app/sorted.txt\") == \"\".join(name + \"\\n\" for name in TRUTH)


def test_once():
    \"\"\"“every name once”: no more lines than names.\"\"\"
    assert len(subject.read_text(\"/app/sorted.txt\").splitlines()) == len(TRUTH)


def test_spelling():
    \"\"\"“The names keep their spelling”: nothing is renamed.\"\"\"
    assert set(subject.read_text(\"/app/sorted.txt\").splitlines()) <= set(NAMES)


def test_input():
    \"\"\"“`/app/names.txt` stays as it is”: compared with the given file.\"\"\"
    assert subject.read_bytes(\"/app/names.txt\") == subject.pristine(\"app/names.txt\").read_bytes()
";

const COUNT: &str = "

def test_count():
    \"\"\"“the number of different names as one decimal number on a line of its own”: the whole file.\"\"\"
    assert subject.read_text(\"/app/count.txt\") == f\"{len(TRUTH)}\\n\"
";

/// A check of something that the instruction leaves open.
pub(crate) const UNFOUNDED: &str = "

def test_report():
    \"\"\"“nobody will look for more than these two files”: a report.\"\"\"
    assert subject.exists(\"/app/report.txt\"), \"there is no report\"
";

const ATTACKS: &str = "<file path=\"1.sh\">\n#!/bin/bash\n# violates: every name once, sorted bytewise\ncp names.txt sorted.txt\nwc -l < sorted.txt > count.txt\n</file>\n<file path=\"2.sh\">\n#!/bin/bash\n# violates: the number of different names\nLC_ALL=C sort -u names.txt > sorted.txt\necho 0 > count.txt\n</file>";

const CLAUSES: &str = "<file path=\"clauses.toml\">
background = [
    \"The file `/app/names.txt` lists the guests of a dinner, one name on each line, some of them several times.\",
    \"Nothing else is wanted, and nobody will look for more than these two files.\",
]

[[clause]]
id = \"sorted-once\"
says = [\"Write `/app/sorted.txt` with every name once, sorted bytewise, one on each line, each line ended by a line feed.\"]
[[clause.violation]]
name = \"several-times\"
that = \"keeps the repetitions\"
edit = [{ file = \"solve.sh\", from = \"sort -u\", to = \"sort\" }]

[[clause]]
id = \"count\"
says = [\"Write `/app/count.txt` with the number of different names as one decimal number on a line of its own.\"]
[[clause.violation]]
name = \"all-lines\"
that = \"counts all lines\"
edit = [{ file = \"solve.sh\", from = \"wc -l < sorted.txt\", to = \"wc -l < names.txt\" }]

[[clause]]
id = \"spelling\"
says = [\"The names keep their spelling.\"]
[[clause.violation]]
name = \"lower-case\"
that = \"writes the names in lower case\"
after = \"tr A-Z a-z < /app/sorted.txt > /app/x; mv /app/x /app/sorted.txt\"

[[clause]]
id = \"input\"
says = [\"`/app/names.txt` stays as it is.\"]
[[clause.violation]]
name = \"sorted-in-place\"
that = \"sorts the given file\"
after = \"sort -o /app/names.txt /app/names.txt\"
</file>";

const MISTAKES: &str = "<file path=\"mistakes.toml\">
[[mistake]]
name = \"letter-case\"
that = \"takes names that differ in letter case alone for one\"
violates = \"The names keep their spelling.\"
shown = \"Of Bo and bo only one is written; both are names.\"
edit = [{ file = \"solve.sh\", from = \"sort -u\", to = \"sort -fu\" }]
[[mistake]]
name = \"no-line-feed\"
that = \"writes the number without a line feed\"
violates = \"on a line of its own\"
shown = \"`wc -l` counts no line in the file of the number.\"
after = \"printf %s $(cat count.txt) > x; mv x count.txt\"
</file>";

const CONFIGURATION: &str = r#"{"minutes": 10, "weights": {"test_sorted": 3, "test_once": 1, "test_spelling": 1, "test_input": 1, "test_count": 2}}"#;

/// A block of checks.
pub(crate) fn checks(text: &str) -> String {
    format!("<file path=\"test_outputs.py\">\n{text}</file>")
}

pub(crate) fn all_checks() -> String {
    format!("{CHECKS_WITHOUT_COUNT}{COUNT}")
}

/// The replies of a careful author. `before` is the number of earlier replies in this conversation.
pub(crate) fn good(stage: &str, before: usize) -> String {
    match stage {
        "idea" | "recording" => "Please sort my guest list: /app/names.txt has repetitions.".to_owned(),
        "feasibility" => {
            r#"{"feasible": true, "reason": "It is exact.", "difficulty": "easy", "title": "Sort a guest list"}"#.to_owned()
        }
        "environment" => ENVIRONMENT.to_owned(),
        "instruction" => INSTRUCTION.to_owned(),
        "solution" => SOLUTION.to_owned(),
        "checks" => checks(&all_checks()),
        "attacks" => ATTACKS.to_owned(),
        "clauses" => CLAUSES.to_owned(),
        "mistakes" => MISTAKES.to_owned(),
        "configuration" => CONFIGURATION.to_owned(),
        "arbiter" => r#"{"fault": "checks", "words": "", "reason": "No words demand it."}"#.to_owned(),
        "blind" if before == 0 => {
            "I sort them.\n\n```bash\nexport LC_ALL=C\nsort -u names.txt > sorted.txt; wc -l < sorted.txt > count.txt\n```"
                .to_owned()
        }
        "weak" if before == 0 => "I look.\n\n```bash\nls\n```".to_owned(),
        "blind" | "weak" => "Done.\n\n```bash\nsubmit\n```".to_owned(),
        other => panic!("a request of the stage {other}"),
    }
}

/// The stage that sent a request.
pub(crate) fn stage_of(body: &Value) -> &'static str {
    if body.get("prompt").is_some() {
        return "idea";
    }
    if body["model"] == WEAK {
        return WEAK;
    }
    let system = body["messages"][0]["content"].as_str().unwrap();
    let found = STAGES.iter().find(|(_, beginning)| system.starts_with(beginning));
    &found.unwrap_or_else(|| panic!("a request of no stage: {system}")).0
}

/// A server whose model replies with the result of `says`. If that is `None`, it replies like a
/// careful author.
pub(crate) async fn server(says: impl Fn(&str, usize) -> Option<String> + Send + Sync + 'static) -> Server {
    troubled(says, |_, _| Kind::Reply).await
}

/// Like [`server`], behind an endpoint with faults. `troubled` chooses a fault by the request and
/// the number of times it was sent.
pub(crate) async fn troubled(
    says: impl Fn(&str, usize) -> Option<String> + Send + Sync + 'static,
    trouble: impl Fn(&Value, u32) -> Kind + Send + Sync + 'static,
) -> Server {
    answering(says, move |body, attempt| match trouble(body, attempt) {
        Kind::Reply => None,
        kind => Some(Answer::Do(kind)),
    })
    .await
}

/// Like [`server`], with other answers to some requests.
pub(crate) async fn answering(
    says: impl Fn(&str, usize) -> Option<String> + Send + Sync + 'static,
    other: impl Fn(&Value, u32) -> Option<Answer> + Send + Sync + 'static,
) -> Server {
    Server::start(move |body, attempt| {
        if let Some(answer) = other(body, attempt) {
            return answer;
        }
        let stage = stage_of(body);
        let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
        let before = messages.iter().filter(|message| message["role"] == "assistant").count();
        let text = says(stage, before).unwrap_or_else(|| good(stage, before));
        let reply = json!({
            "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": body["model"],
            "choices": [{
                "index": 0, "finish_reason": "stop", "text": text,
                "message": body.get("messages").map(|_| json!({ "role": "assistant", "content": text })),
            }],
            "usage": { "prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110 },
        });
        Answer::Raw {
            status: 200,
            headers: vec![("content-type", "application/json".to_owned())],
            body: reply.to_string(),
        }
    })
    .await
}

/// Arguments of a run of one blueprint.
pub(crate) const RUN: [&str; 15] = [
    "run",
    "--oneshot",
    "--author",
    "model",
    "--domain",
    "data_science",
    "--count",
    "1",
    "--seed",
    "3",
    "--rigor",
    "quick",
    "--attempts",
    "0",
    "--json",
];

/// Names the server in the bench's settings.
pub(crate) fn configure(bench: &Bench, server: &Server) {
    let mut settings = format!("version = 1\n[endpoints.test]\nbase_url = \"{}\"\n", server.base_url());
    for role in ["sampler", "author", "judge", "adversary", "solver", "weak"] {
        let model = if role == "weak" { "weak" } else { "made-up" };
        settings.push_str(&format!(
            "[roles.{role}]\nendpoint = \"test\"\nmodel = \"{model}\"\nmax_tokens = 4000\n"
        ));
    }
    bench.write("termsmith.toml", &settings);
}

/// The number of requests of each stage.
pub(crate) fn requests(server: &Server) -> Vec<(&'static str, usize)> {
    let seen: Vec<_> = server.seen().iter().map(|seen| stage_of(&seen.body)).collect();
    let count = |stage: &str| seen.iter().filter(|other| **other == stage).count();
    let stages = STAGES.iter().map(|(stage, _)| stage.as_str()).chain([WEAK]);
    stages.map(|stage| (stage, count(stage))).filter(|(_, count)| *count > 0).collect()
}
