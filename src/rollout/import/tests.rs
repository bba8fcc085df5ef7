use std::fs;
use std::os::unix::fs::symlink;

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::model::{Act, Actor, Outcome, TurnKind};

use super::*;

/// A document with these steps.
#[expect(clippy::needless_pass_by_value, reason = "it is made for this")]
fn document(steps: Value) -> Value {
    json!({
        "schema_version": "ATIF-v1.6",
        "agent": { "name": "terminus-2", "version": "2.0.0", "model_name": "far-model" },
        "steps": steps,
    })
}

fn one(document: &Value) -> Result<Imported, ImportError> {
    of_text(&document.to_string())
}

fn of_text(text: &str) -> Result<Imported, ImportError> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("some-task.json");
    fs::write(&path, text).unwrap();
    let imports = read_imports(&path)?;
    match (imports.rollouts.into_iter().next(), imports.refused.into_iter().next()) {
        (Some(imported), None) => Ok(imported),
        (_, Some(refused)) => Err(refused),
        (None, None) => panic!("nothing came of it"),
    }
}

fn user(text: &str) -> Value {
    json!({ "source": "user", "message": text })
}

fn agent(text: &str, seen: &str) -> Value {
    json!({ "source": "agent", "message": text, "observation": { "results": [{ "content": seen }] } })
}

/// The conversation in short: `>` and the agent's message with its kind and acts, `<` and what the
/// agent was shown.
fn told(imported: &Imported) -> String {
    let record = &imported.record;
    let mut lines = vec![format!("{}: {:?} {:?}", record.scaffold, record.system, record.prompt)];
    for (turn, shown) in record.turns.iter().zip(&imported.shown) {
        let acts: Vec<&str> = turn.acts.iter().map(Act::text).collect();
        let calls: Vec<_> =
            turn.tool_calls.iter().map(|call| format!("{}({})", call.name, call.arguments)).collect();
        lines.push(format!("> {:?} {:?} {acts:?} {calls:?}", turn.content, turn.kind));
        lines.extend(shown.iter().map(|shown| format!("< {:?} {:?}", shown.tool_call, shown.content)));
    }
    lines.join("\n")
}

#[test]
fn raw_terminus() {
    let reply = r#"{"analysis":"a","plan":"p","commands":[{"keystrokes":"ls\n"}]}"#;
    let done = r#"{"analysis":"a","plan":"p","commands":[],"task_complete":true}"#;
    let steps = json!([
        user("Task"),
        agent(reply, "src"),
        agent("what?", "ERROR"),
        agent(done, "sure?"),
        agent(done, "bye")
    ]);
    let imported = one(&document(steps)).unwrap();
    insta::assert_snapshot!(told(&imported));
    assert_eq!(imported.record.task.as_str(), "some-task");
    let Actor::Imported(origin) = &imported.record.actor else { panic!("{:?}", imported.record.actor) };
    assert_eq!((origin.agent.as_str(), origin.model.as_deref()), ("terminus-2", Some("far-model")));
    assert_eq!((origin.format.as_str(), origin.source.len()), ("ATIF-v1.6", 64));
}

#[test]
fn rendered_terminus() {
    let call = |id: &str, name: &str, arguments: Value| json!({ "tool_call_id": id, "function_name": name, "arguments": arguments });
    let keys =
        |id: &str, keys: &str| call(id, "bash_command", json!({ "keystrokes": keys, "duration": 1.0 }));
    let steps = json!([
        { "source": "system", "message": "Be good." },
        user("Task"),
        {
            "source": "agent", "message": "Analysis: a\nPlan: p",
            "tool_calls": [keys("call_0_1", "ls\n"), keys("call_0_2", "C-c")],
            "observation": { "results": [{ "content": "src" }] },
            "metrics": { "prompt_tokens": 7, "completion_tokens": 3, "prompt_token_ids": [1] },
        },
        {
            "source": "agent", "message": "", "reasoning_content": "done",
            "tool_calls": [call("call_1_task_complete", "mark_task_complete", json!({}))],
            "observation": { "results": [{ "content": "sure?" }] },
        },
        { "source": "agent", "message": "Analysis: yes", "tool_calls": [call("c", "mark_task_complete", json!({}))] },
    ]);
    let imported = one(&document(steps)).unwrap();
    insta::assert_snapshot!(told(&imported));
    let usage = imported.record.turns[0].usage.unwrap();
    assert_eq!((usage.prompt, usage.completion), (7, 3));
    assert_eq!(imported.record.turns[1].reasoning.as_deref(), Some("done"));
}

/// Agents that call functions, write a message in parts, repeat earlier steps, or have messages of
/// several texts.
#[test]
fn other_agents() {
    let mut other = document(json!([
        { "source": "user", "message": "old", "is_copied_context": true },
        { "source": "agent", "message": "old", "is_copied_context": true },
        { "step_id": 3, "source": "user", "message": [{ "type": "text", "text": "Ta" }, { "type": "text", "text": "sk" }] },
        { "source": "agent", "message": "Let me see." },
        {
            "source": "agent", "message": "",
            "tool_calls": [
                { "tool_call_id": "t1", "function_name": "Bash", "arguments": { "command": "ls" } },
                { "tool_call_id": "t2", "function_name": "Read", "arguments": { "path": "a" } },
            ],
            "observation": { "results": [
                { "source_call_id": "t1", "content": "src" },
                { "source_call_id": "t2", "content": [{ "type": "text", "text": "A" }] },
                { "subagent_trajectory_ref": [{ "trajectory_path": "x.json" }] },
            ] },
        },
        { "source": "system", "message": "Hurry." },
        { "source": "agent", "message": "Done." },
    ]));
    other["agent"]["name"] = json!("claude-code");
    other["agent"]["tool_definitions"] = json!([{ "type": "function", "function": { "name": "Bash" } }, 7]);
    let imported = one(&other).unwrap();
    insta::assert_snapshot!(told(&imported));
    assert_eq!(imported.record.tools.len(), 1);
    assert_eq!(imported.record.verdict.outcome, Outcome::VerifierError);
    assert!(imported.record.failure_kind().masks());
}

#[test]
fn invalid_documents_are_refused() {
    let check = |document: &Value, expect: &str| {
        let message = one(document).unwrap_err().to_string();
        assert!(message.contains(expect), "{message}");
        assert!(message.contains("some-task.json"), "{message}");
    };
    let good = || document(json!([user("Task"), agent("a", "b")]));
    let with = |change: fn(&mut Value)| {
        let mut document = good();
        change(&mut document);
        document
    };
    assert!(one(&good()).is_ok());
    check(&json!(null), "invalid type: null");
    check(&json!([]), "invalid length 0");
    check(&json!({}), "missing field `schema_version`");
    check(&with(|document| document["schema_version"] = json!("ATIF-v1.9")), "its format is `ATIF-v1.9`");
    check(&with(|document| document["schema_version"] = json!("ATIF-v1.")), "its format is `ATIF-v1.`");
    check(&with(|document| document["schema_version"] = json!(1.6)), "invalid type: floating point");
    check(&with(|document| document["agent"] = json!("terminus-2")), "invalid type: string");
    check(&with(|document| document["agent"] = json!({})), "missing field `name`");
    check(&with(|document| document["steps"] = json!({})), "invalid type: map");
    check(&with(|document| document["steps"] = json!([])), "the agent wrote no message");
    check(&with(|document| document["steps"][0]["source"] = json!("tool")), "unknown variant `tool`");
    check(&with(|document| document["steps"][1]["step_id"] = json!(7)), "its step 2 has the number 7");
    check(&with(|document| document["steps"][1]["step_id"] = json!(-1)), "invalid value: integer `-1`");
    check(
        &with(|document| document["steps"][0]["source"] = json!("system")),
        "there is no prompt before the first message",
    );
    check(
        &with(|document| document["steps"][1]["is_copied_context"] = json!(true)),
        "the agent wrote no message",
    );
    check(&with(|document| document["steps"][1]["message"] = json!(7)), "did not match any variant");
    check(
        &with(|document| {
            document["steps"][1]["message"] = json!([{ "type": "image", "source": { "path": "a" } }]);
        }),
        "its step 2 holds images or audio",
    );
    check(
        &with(|document| {
            document["steps"][1]["observation"]["results"][0]["content"] = json!([{ "type": "audio" }]);
        }),
        "its step 2 holds images or audio",
    );
    let summarised = json!([
        user("Task"),
        agent("a", "b"),
        { "source": "system", "message": "", "extra": { "context_management": { "type": "compaction" } } },
        agent("c", "d"),
    ]);
    check(&document(summarised), "summarised before its step 3");
}

/// Some agents write the result of a call as a step of its own.
#[test]
fn steps_with_results_only() {
    let check = |name: &str, steps: Value, expect: &[&str]| {
        let mut document = document(steps);
        document["agent"]["name"] = json!(name);
        let told = told(&one(&document).unwrap());
        assert_eq!(told.lines().skip(1).collect::<Vec<_>>(), expect, "{told}");
    };
    let call = |message: &str| {
        let call = json!({ "tool_call_id": "c", "function_name": "bash", "arguments": { "command": "ls" } });
        json!({ "source": "agent", "message": message, "tool_calls": [call] })
    };
    let results = |source: &str| json!({ "source": source, "message": "", "observation": { "results": [{ "source_call_id": "c", "content": "a" }] } });
    let looked = "> \"look\" Acted [\"ls\"] [\"bash({\\\"command\\\":\\\"ls\\\"})\"]";
    let done = "> \"done\" Submitted [] []";
    for source in ["agent", "system", "user"] {
        check(
            "other",
            json!([user("Task"), call("look"), results(source), { "source": "agent", "message": "done" }]),
            &[looked, "< Some(\"c\") \"a\"", done],
        );
    }
    // Two such steps in a row, and one before the first message.
    check(
        "other",
        json!([user("Task"), results("system"), call("look"), results("agent"), results("agent"), { "source": "agent", "message": "done" }]),
        &[looked, "< Some(\"c\") \"a\"", "< Some(\"c\") \"a\"", done],
    );
    // An empty reply of terminus-2 is a message.
    check(
        "terminus-2",
        json!([user("Task"), results("agent"), { "source": "agent", "message": "done" }]),
        &["> \"\" Acted [] []", "< None \"a\"", done],
    );
}

#[test]
fn numbers_and_characters_that_do_not_fit() {
    let with = |metrics: &str, message: &str| {
        format!(
            r#"{{"schema_version":"ATIF-v1.6","agent":{{"name":"other"}},"steps":[{{"source":"user","message":"Task"}},
            {{"source":"agent","message":"{message}","metrics":{metrics}}}]}}"#
        )
    };
    let check = |metrics: &str, expect: Option<(u64, u64)>, notes: &[&str]| {
        let imported = of_text(&with(metrics, "a")).unwrap();
        let usage = imported.record.turns[0].usage.map(|usage| (usage.prompt, usage.completion));
        assert_eq!(usage, expect, "{metrics}");
        assert_eq!(imported.notes.len(), notes.len(), "{:?}", imported.notes);
        assert!(
            imported.notes.iter().zip(notes).all(|(note, part)| note.contains(part)),
            "{:?}",
            imported.notes
        );
    };
    check(r#"{"prompt_tokens":7,"completion_tokens":3}"#, Some((7, 3)), &[]);
    check(r#"{"prompt_tokens":7.0,"completion_tokens":3}"#, Some((7, 3)), &[]);
    check(r#"{"prompt_tokens":7,"completion_tokens":null}"#, None, &[]);
    for odd in [
        "18446744073709551615",
        "9223372036854775808",
        "99999999999999999999999",
        "-1",
        "1.5",
        "\"7\"",
        "[]",
        "1e300",
    ] {
        let note = "1 numbers of tokens are left out, the first in step 2";
        check(&format!(r#"{{"prompt_tokens":7,"completion_tokens":{odd}}}"#), None, &[note]);
    }
    let text = |message: &str| of_text(&with("null", message)).unwrap().record.turns[0].content.clone();
    assert_eq!(text(r"cut \ud83d off"), "cut \u{fffd} off");
    assert_eq!(text(r"\ud83d\ude00"), "😀");
}

#[test]
fn a_document_has_a_bound() {
    let check = |steps: usize, expect: bool| {
        let mut all = vec![user("Task")];
        all.extend(std::iter::repeat_n(json!({ "source": "agent", "message": "a" }), steps - 1));
        let found = one(&document(Value::from(all)));
        assert_eq!(found.is_ok(), expect, "{steps}");
        if let Err(error) = found {
            assert!(error.to_string().contains("more than 50000 steps"), "{error}");
        }
    };
    check(super::document::MOST_STEPS, true);
    check(super::document::MOST_STEPS + 1, false);
}

#[test]
fn a_folder_of_files_of_several_formats() {
    let dir = tempfile::tempdir().unwrap();
    let good = || document(json!([user("Task"), agent("a", "b")])).to_string();
    lay(
        dir.path(),
        &[
            ("a.json", good()),
            ("b.json.gz", String::new()),
            ("c.json", good()[..40].to_owned()),
            ("notes.json", "{}".to_owned()),
            ("s.jsonl", "{}".to_owned()),
            ("more/d.json", good()),
        ],
    );
    // One unreadable file does not stop the others.
    symlink("/dev/zero", dir.path().join("b.json")).unwrap();
    let found = read_imports(dir.path()).unwrap();
    let name = |path: &PathBuf| path.strip_prefix(dir.path()).unwrap().to_str().unwrap().to_owned();
    let taken: Vec<_> = found.rollouts.iter().map(|imported| name(&imported.path)).collect();
    assert_eq!(taken, ["a.json", "more/d.json"]);
    assert_eq!(found.skipped.iter().map(name).collect::<Vec<_>>(), ["b.json.gz", "notes.json", "s.jsonl"]);
    let refused: Vec<_> = found.refused.iter().map(ToString::to_string).collect();
    assert!(
        refused[0].contains("b.json` is a symbolic link")
            && refused[1].contains("c.json` cannot be imported: its end is missing"),
        "{refused:?}"
    );
    assert_eq!(refused.len(), 2);
}

/// Writes a trial's folder with these files into `dir`.
fn lay(dir: &Path, files: &[(&str, String)]) {
    for (path, text) in files {
        let path = dir.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

#[test]
fn jobs_and_trials() {
    let dir = tempfile::tempdir().unwrap();
    let good = || document(json!([user("Task"), agent("a", "b")])).to_string();
    let result = |reward: f64| {
        json!({ "task_name": "org/t", "task_checksum": "abc", "verifier_result": { "rewards": { "reward": reward } } }).to_string()
    };
    lay(
        dir.path(),
        &[
            ("job/config.json", "{}".to_owned()),
            ("job/t__1/result.json", result(1.0)),
            ("job/t__1/agent/trajectory.json", good()),
            ("job/t__2/result.json", result(0.5)),
            ("job/t__2/agent/trajectory.json", good()),
            ("job/t__2/agent/trajectory.cont-1.json", good()),
            ("job/t__2/agent/trajectory.summarization-1-summary.json", "{}".to_owned()),
            ("job/t__3/result.json", "[".to_owned()),
            ("job/t__3/agent/trajectory.json", good()),
            ("job/t__4/agent/oracle.txt", String::new()),
            ("job/t__5/agent/episode-0/prompt.txt", "Task".to_owned()),
            ("job/t__5/agent/episode-0/response.txt", "hm".to_owned()),
            ("job/t__5/agent/episode-1/prompt.txt", "ERROR".to_owned()),
            (
                "job/t__5/agent/episode-1/response.txt",
                r#"{"analysis":"","plan":"","commands":[],"task_complete":true}"#.to_owned(),
            ),
            ("job/t__5/agent/episode-2/prompt.txt", "sure?".to_owned()),
            ("job/t__6/agent/trajectory.json", "\u{0}".to_owned()),
        ],
    );
    fs::write(dir.path().join("job/t__6/agent/trajectory.json"), [0xff]).unwrap();
    fs::create_dir_all(dir.path().join("job/t__7/agent")).unwrap();
    symlink("/etc/passwd", dir.path().join("job/t__7/agent/trajectory.json")).unwrap();
    // A link to a trial is not a trial, since it would count twice.
    symlink(dir.path().join("job/t__1"), dir.path().join("job/t__8")).unwrap();

    let imports = read_imports(dir.path()).unwrap();
    let taken: Vec<_> = imports
        .rollouts
        .iter()
        .map(|imported| {
            let record = &imported.record;
            (
                record.task.as_str(),
                record.attempt,
                record.verdict.outcome,
                imported.reward,
                record.turns.len(),
            )
        })
        .collect();
    assert_eq!(
        taken,
        [
            ("org/t", 0, Outcome::Pass, Some(1.0), 1),
            ("org/t", 1, Outcome::Fail, Some(0.5), 1),
            ("org/t", 2, Outcome::Fail, Some(0.5), 1),
            ("t__5", 0, Outcome::VerifierError, None, 2),
        ]
    );
    let rewards = imports.rollouts[1].record.rewards(&[]).unwrap();
    assert_eq!((rewards.binary, rewards.f2p), (0.0, 0.0));
    assert_eq!(imports.rollouts[3].record.turns[1].kind, TurnKind::Submitted);
    assert_eq!(imports.rollouts[3].shown[0][0].content, "ERROR");
    let refused: Vec<_> = imports.refused.iter().map(ToString::to_string).collect();
    for (message, expect) in refused.iter().zip([
        "t__3/result.json` is not valid: EOF",
        "t__4` cannot be imported: it has no `agent/trajectory.json`",
        "t__6/agent/trajectory.json` is not valid: expected value",
        "t__7/agent/trajectory.json` is a symbolic link",
    ]) {
        assert!(message.contains(expect), "{message}");
    }
    assert_eq!(refused.len(), 4);

    let trial = read_imports(&dir.path().join("job/t__1")).unwrap();
    assert_eq!((trial.rollouts.len(), trial.refused.len()), (1, 0));
    let empty = tempfile::tempdir().unwrap();
    assert!(matches!(read_imports(empty.path()), Err(ImportError::Nothing(_))));
    assert!(matches!(read_imports(&empty.path().join("none")), Err(ImportError::Nothing(_))));
}

/// Writes JSON files of several kinds. Checks which of them are rollouts, and how many parts each
/// has.
#[test]
fn continuations() {
    let mark = || {
        json!({ "source": "system", "message": "Performed context summarization",
            "extra": { "context_management": { "type": "compaction" } } })
    };
    let copied = |mut step: Value| {
        step["is_copied_context"] = json!(true);
        step
    };
    let going_on = |steps: Value, next: &str| {
        let mut document = document(steps);
        document["continued_trajectory_ref"] = json!(next);
        document.to_string()
    };
    let first = |next: &str| going_on(json!([user("Task"), agent("a", "b"), mark()]), next);
    let last = || {
        let steps =
            json!([copied(user("Task")), copied(agent("questions", "")), user("answers"), agent("c", "d")]);
        document(steps).to_string()
    };
    let check = |files: &[(&str, String)], taken: &[usize], refused: &str| {
        let dir = tempfile::tempdir().unwrap();
        lay(dir.path(), files);
        let found = read_imports(dir.path()).unwrap();
        let parts: Vec<_> =
            found.rollouts.iter().map(|imported| imported.record.handoffs.len() + 1).collect();
        assert_eq!(parts, taken, "{:?}", found.refused);
        let why: Vec<_> = found.refused.iter().map(ToString::to_string).collect();
        assert!(
            why.iter().all(|why| why.contains(refused)) && why.is_empty() == refused.is_empty(),
            "{why:?}"
        );
        found
    };
    let found = check(
        &[
            ("t/agent/trajectory.json", first("trajectory.cont-1.json")),
            ("t/agent/trajectory.cont-1.json", last()),
        ],
        &[2],
        "",
    );
    let [whole] = found.rollouts.as_slice() else { panic!("one rollout") };
    let turns: Vec<_> = whole.record.turns.iter().map(|turn| turn.content.as_str()).collect();
    assert_eq!((turns, whole.record.handoffs[0].turns), (vec!["a", "c"], 1));
    let read: Vec<_> = whole.handoffs[0].context.iter().map(|message| message.content.as_str()).collect();
    assert_eq!(read, ["Task", "questions", "answers"]);

    // Termsmith writes all rollouts into one folder.
    let ours = |segment: u64| {
        let mut document: Value = serde_json::from_str(&last()).unwrap();
        document["agent"]["name"] = json!("termsmith-bash");
        document["extra"] = json!({ "segment": segment });
        document.to_string()
    };
    let aside = || {
        let mut document = document(json!([user("Sum up."), agent("Summary.", "")]));
        document["agent"]["extra"] = json!({ "summarization_index": 1 });
        document.to_string()
    };
    let folder = [
        ("a.json", first("a.cont-1.json")),
        ("a.cont-1.json", ours(1)),
        ("a.summarization-1-summary.json", aside()),
        ("b.json", document(json!([user("Task"), agent("a", "b")])).to_string()),
        ("notes.json", "{}".to_owned()),
    ];
    check(&folder, &[2, 1], "");

    let gone = "is not a readable file beside it";
    for next in ["b.json", "../a.json", "/etc/passwd", "a.json", ""] {
        check(&[("a.json", first(next))], &[], gone);
    }
    // Two continuations that name each other.
    let [there, back] = [first("b.json"), going_on(json!([user("Task"), agent("a", "b"), mark()]), "a.json")];
    check(&[("a.json", there), ("b.json", back)], &[], gone);
}

fn any_json() -> impl Strategy<Value = Value> {
    let name = prop_oneof![
        Just("schema_version"),
        Just("agent"),
        Just("name"),
        Just("steps"),
        Just("source"),
        Just("message"),
        Just("tool_calls"),
        Just("observation"),
        Just("results"),
        Just("content"),
        Just("extra"),
        Just("fork"),
        Just("arguments"),
        Just("is_copied_context"),
        Just("acts"),
        Just("checks"),
        Just("outcome"),
        Just("x"),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop_oneof![Just("ATIF-v1.7"), Just("agent"), Just("user"), Just("terminus-2"), Just("termsmith-x")]
            .prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 48, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::hash_map(name.clone().prop_map(str::to_owned), inner, 0..8)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_json_is_read_or_refused(value in any_json(), part in any_json()) {
        let path = Path::new("x.json");
        let _ = atif::read(path, &value.to_string(), None);
        let result: Option<outcome::TrialResult> = serde_json::from_value(part.clone()).ok();
        // The head is well-formed, so that the rest is parsed.
        for agent in ["terminus-2", "termsmith-x"] {
            let document = json!({
                "schema_version": "ATIF-v1.7", "agent": { "name": agent }, "extra": part,
                "steps": [user("Task"), { "source": "agent", "message": "m", "extra": part, "tool_calls": [{ "arguments": part, "extra": part }] }],
            });
            let read = atif::read(path, &document.to_string(), result.as_ref());
            if let Ok(imported) = read {
                prop_assert_eq!(imported.record.turns.len(), imported.shown.len());
            }
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in ".{0,200}") {
        let _ = atif::read(Path::new("x.json"), &text, None);
    }
}
