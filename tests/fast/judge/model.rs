//! The model judge against an endpoint.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use tempfile::TempDir;
use termsmith::assets::Assets;
use termsmith::judge::{
    JudgeError, JudgeId, JudgedTrajectory, Judgement, Judgements, Label, MESSAGE_BYTES, OBSERVATION_BYTES,
    RULES, TASK_BYTES, WHOLE_BYTES, commit_judgement, find_judgement, judge, judge_id, judge_once,
    judge_texts, merged, read_judgement,
};
use termsmith::llm::{AskError, Models, Options, Settings};
use termsmith::model::{Act, Key, ShellOutcome, Shown, TrajectoryRecord, Turn};
use termsmith::prompts::PromptSet;
use termsmith::store::{RunDir, Store};

use super::table::cases;
use crate::support::clock::TestClock;
use crate::support::endpoint::{Answer, Server};

/// Name of a trajectory with five steps.
const LOOP: &str = "make without a rule, three times";

const GOOD: &str = r#"{"labels": [
  {"label": "mechanical_loop", "steps": [1, 2, 3], "why": "It runs make all three times."},
  {"label": "hallucinated_success", "steps": [5], "why": "It never ran the program."}
]}"#;

fn trajectory(name: &str) -> (TrajectoryRecord, Vec<Vec<Shown>>) {
    cases().iter().find(|case| case.name == name).unwrap().recorded()
}

/// A server that replies with these texts: the first one to the request, the second one to the
/// corrected request.
async fn server(texts: [&str; 2]) -> Server {
    let texts = texts.map(str::to_owned);
    Server::start(move |body, _| {
        let corrected = body["messages"].as_array().unwrap().len() > 2;
        Answer::Text(texts[usize::from(corrected)].clone())
    })
    .await
}

fn settings(server: &Server, model: &str, endpoint: &str) -> Settings {
    let base = server.base_url();
    let text = format!(
        "version = 1\n[endpoints.test]\nbase_url = \"{base}\"\n{endpoint}\n\
         [roles.judge]\nendpoint = \"test\"\nmodel = \"{model}\"\nmax_tokens = 512\n"
    );
    Settings::parse("termsmith.toml", &text).unwrap()
}

fn models(settings: Settings, store: &Store) -> Models {
    let options = Options { clock: TestClock::jumping() as Arc<_>, ..Options::default() };
    Models::new(settings, |_: &str| None, store, options).unwrap()
}

fn fresh_store() -> (TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    (dir, store)
}

fn store(dir: &Path) -> Store {
    Store::new(RunDir::open(dir).unwrap())
}

fn texts() -> PromptSet {
    judge_texts(&Assets::embedded()).unwrap()
}

struct Asked {
    judgement: Result<Judgement, JudgeError>,
    /// Bodies of all requests.
    requests: Vec<Value>,
}

async fn ask(texts_of_server: [&str; 2], record: &TrajectoryRecord, shown: &[Vec<Shown>]) -> Asked {
    let server = server(texts_of_server).await;
    let (_dir, store) = fresh_store();
    let models = models(settings(&server, "tiny", ""), &store);
    let judgement =
        judge(&models, &texts(), "0123456789abcdef", JudgedTrajectory { record, shown, handoffs: &[] }).await;
    Asked { judgement, requests: server.seen().into_iter().map(|seen| seen.body).collect() }
}

/// Each row: the replies; the labels with their turns, or a part of the error; the number of
/// requests.
async fn check(replies: [&str; 2], expected: Result<&[(Label, &[usize])], &str>, requests: usize) {
    let (record, shown) = trajectory(LOOP);
    let asked = ask(replies, &record, &shown).await;
    match (asked.judgement, expected) {
        (Ok(judgement), Ok(labels)) => {
            let found: Vec<_> = judgement
                .labels
                .iter()
                .map(|(label, evidence)| (*label, evidence.turns.as_slice()))
                .collect();
            assert_eq!(found, labels, "{replies:?}");
        }
        (Err(JudgeError::Ask(error @ AskError::Unusable { .. })), Err(part)) => {
            assert!(error.to_string().contains(part), "{error}");
        }
        (got, _) => panic!("{replies:?}: {got:?}"),
    }
    assert_eq!(asked.requests.len(), requests, "{replies:?}");
}

#[tokio::test]
async fn replies() {
    let both: &[(Label, &[usize])] =
        &[(Label::MechanicalLoop, &[0, 1, 2]), (Label::HallucinatedSuccess, &[4])];
    let nothing = r#"{"labels": []}"#;
    check([GOOD, ""], Ok(both), 1).await;
    check([nothing, ""], Ok(&[]), 1).await;
    // JSON within other text.
    let fenced = format!("Here is what I found:\n```json\n{GOOD}\n```\nThat is all.");
    check([&fenced, ""], Ok(both), 1).await;
    check([&format!("{GOOD} I hope this helps."), ""], Ok(both), 1).await;
    // Fields in another order, steps in another order, and a step twice.
    let shuffled = r#"{"labels": [{"why": "So.", "steps": [3, 1, 2, 1], "label": "mechanical_loop"}]}"#;
    check([shuffled, ""], Ok(&both[..1]), 1).await;
    // A label that occurs twice.
    let twice = r#"{"labels": [{"label": "mechanical_loop", "steps": [1, 2], "why": "A."},
                               {"label": "mechanical_loop", "steps": [3, 2], "why": "B."}]}"#;
    check([twice, ""], Ok(&both[..1]), 1).await;
}

#[tokio::test]
async fn replies_that_are_sent_back() {
    let reply = |label: &str, steps: &str, why: &str| {
        format!(r#"{{"labels": [{{"label": "{label}", "steps": {steps}, "why": "{why}"}}]}}"#)
    };
    for (bad, fault) in [
        (
            reply("mechanical_loop", "[1, 6]", "So."),
            "`mechanical_loop` names step 6, and the steps are 1 to 5",
        ),
        (reply("mechanical_loop", "[0]", "So."), "names step 0"),
        (reply("mechanical_loop", "[-1]", "So."), "invalid value: integer `-1`"),
        (reply("mechanical_loop", "[]", "So."), "names no step"),
        (reply("mechanical_loop", "[1]", " "), "does not say why"),
        (reply("laziness", "[1]", "So."), "unknown variant `laziness`"),
        (r#"{"labels": [], "score": 3}"#.to_owned(), "unknown field `score`"),
        (r#"{"labels": ["mechanical_loop"]}"#.to_owned(), "invalid type: string"),
        ("It loops.".to_owned(), "it holds no JSON"),
        (String::new(), "it is empty"),
    ] {
        check([&bad, r#"{"labels": []}"#], Ok(&[]), 2).await;
        check([&bad, &bad], Err(fault), 2).await;
    }
}

#[tokio::test]
async fn the_correction_names_the_problem() {
    let (record, shown) = trajectory(LOOP);
    let bad = r#"{"labels": [{"label": "context_drift", "steps": [9], "why": "So."}]}"#;
    let asked = ask([bad, GOOD], &record, &shown).await;
    asked.judgement.unwrap();
    let correction = asked.requests[1]["messages"][3]["content"].as_str().unwrap();
    assert!(correction.contains("`context_drift` names step 9, and the steps are 1 to 5"), "{correction}");
}

#[tokio::test]
async fn the_request_to_the_judge() {
    let (record, shown) = trajectory(LOOP);
    let asked = ask([GOOD, ""], &record, &shown).await;
    let messages = asked.requests[0]["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 2);
    let system = messages[0]["content"].as_str().unwrap();
    for label in Label::ALL {
        assert!(system.contains(&format!("- `{}`: ", label.as_str())), "{}", label.as_str());
    }
    assert!(system.contains("Strictly ignore all deviations that are related to JSON formatting"));
    insta::assert_snapshot!(messages[1]["content"].as_str().unwrap());
}

#[tokio::test]
async fn long_texts_keep_their_end() {
    let (mut record, _) = trajectory(LOOP);
    record.prompt = "task ".repeat(10_000);
    let turn = |number: usize| Turn {
        content: format!("first {number} {} last {number}", "word ".repeat(10_000)),
        acts: vec![Act::Command { command: "ls".to_owned(), outcome: Some(ShellOutcome::Exited(0)) }],
        ..Turn::default()
    };
    record.turns = (1..=200).map(turn).collect();
    let shown: Vec<_> =
        (1..=200).map(|number| vec![Shown::text(format!("{number} {}", "out ".repeat(10_000)))]).collect();
    let names = |step: u32| {
        format!(r#"{{"labels": [{{"label": "context_drift", "steps": [{step}], "why": "So."}}]}}"#)
    };
    let asked = ask([&names(100), &names(200)], &record, &shown).await;
    // A step that the judge was not shown is no evidence.
    assert_eq!(asked.requests.len(), 2);
    assert_eq!(asked.judgement.unwrap().labels[&Label::ContextDrift].turns, [199]);
    let text = asked.requests[0]["messages"][1]["content"].as_str().unwrap();
    // Marks of quotation and of omission are extra.
    assert!(text.len() < TASK_BYTES + WHOLE_BYTES + 1_000, "{}", text.len());
    assert!(text.contains("The agent made 200 steps."));
    assert!(
        text.contains("## Step 1\n") && text.contains("## Step 200\n") && !text.contains("## Step 100\n")
    );
    assert!(text.contains("| first 200 word") && text.contains("last 200\n"));
    let message = record.turns[0].content.len();
    assert!(text.contains(&format!("[… {} of {message} bytes left out …]", message - MESSAGE_BYTES)));
    let observation = shown[0][0].content.trim_end().len();
    assert!(
        text.contains(&format!("[… {} of {observation} bytes left out …]", observation - OBSERVATION_BYTES))
    );
    let correction = asked.requests[1]["messages"][3]["content"].as_str().unwrap();
    assert!(correction.contains("names step 100, which you were not shown"), "{correction}");
}

#[tokio::test]
async fn a_trajectory_without_messages_is_not_judged() {
    let (record, shown) = trajectory("nothing said at all");
    let asked = ask([GOOD, GOOD], &record, &shown).await;
    assert!(asked.judgement.unwrap().labels.is_empty());
    assert_eq!(asked.requests.len(), 0);
}

#[tokio::test]
async fn servers_can_be_held_to_the_labels() {
    let server = server([GOOD, ""]).await;
    let (_dir, store) = fresh_store();
    let models = models(settings(&server, "tiny", "json = \"schema\""), &store);
    let (record, shown) = trajectory(LOOP);
    judge(
        &models,
        &texts(),
        "0123456789abcdef",
        JudgedTrajectory { record: &record, shown: &shown, handoffs: &[] },
    )
    .await
    .unwrap();
    let format = server.seen()[0].body["response_format"].to_string();
    for label in Label::ALL {
        assert!(format.contains(label.as_str()), "{format}");
    }
    assert!(format.contains("\"additionalProperties\":false"), "{format}");
}

#[tokio::test]
async fn a_judgement_is_asked_for_once_and_never_overwritten() {
    let server = server([GOOD, ""]).await;
    let (dir, store) = fresh_store();
    let (record, shown) = trajectory(LOOP);
    let rollout = Key::parse("ab".repeat(32)).unwrap();
    let texts = texts();
    let tiny = models(settings(&server, "tiny", ""), &store);
    assert_eq!(read_judgement(&store, &rollout).unwrap(), None);
    let unit = "abababababababab";
    let trajectory = JudgedTrajectory { record: &record, shown: &shown, handoffs: &[] };
    let first = judge_once(&tiny, &texts, &store, &rollout, unit, trajectory).await.unwrap();
    assert_eq!(judge_once(&tiny, &texts, &store, &rollout, unit, trajectory).await.unwrap(), first);
    assert_eq!(server.requests(), 1);
    assert_eq!(read_judgement(&store, &rollout).unwrap().as_ref(), Some(&first));

    // Another judge has its own record.
    let huge = models(settings(&server, "huge", ""), &store);
    let second = judge_once(&huge, &texts, &store, &rollout, unit, trajectory).await.unwrap();
    assert_eq!(server.requests(), 2);
    let by = |models: &Models| find_judgement(&store, &rollout, &judge_id(models, &texts).unwrap()).unwrap();
    assert_eq!((by(&tiny), by(&huge)), (Some(first.clone()), Some(second.clone())));
    let files = || {
        let shelves = std::fs::read_dir(dir.path().join("store/judgement")).unwrap().flatten();
        shelves.map(|shelf| std::fs::read_dir(shelf.path()).unwrap().count()).sum::<usize>()
    };
    assert_eq!(files(), 2);

    // The same judge gives another result. Its first judgement stays.
    let changed = Judgement { judge: first.judge.clone(), labels: std::collections::BTreeMap::new() };
    commit_judgement(&store, &rollout, &changed).unwrap();
    assert_eq!(by(&tiny), Some(first));
    assert_eq!(files(), 2);
}

#[test]
fn of_several_judges_the_one_that_judged_most_counts() {
    let (_dir, store) = fresh_store();
    let judgement = |model: &str| Judgement {
        judge: JudgeId { model: model.to_owned(), prompts: "0123456789abcdef".to_owned() },
        labels: std::collections::BTreeMap::new(),
    };
    let key = |digit: &str| Key::parse(digit.repeat(64)).unwrap();
    for (rollout, model) in [("a", "small"), ("a", "large"), ("b", "large"), ("c", "small")] {
        commit_judgement(&store, &key(rollout), &judgement(model)).unwrap();
    }
    let judge_of = |rollout: &str| {
        let all = Judgements::read(&store).unwrap();
        all.of(&key(rollout)).map(|judgement| judgement.judge.model.clone())
    };
    // Both have judged two rollouts. Then the last name in the alphabet counts.
    assert_eq!(judge_of("a").as_deref(), Some("small"));
    assert_eq!(judge_of("b").as_deref(), Some("large"));
    commit_judgement(&store, &key("d"), &judgement("large")).unwrap();
    assert_eq!(judge_of("a").as_deref(), Some("large"));
    assert_eq!(judge_of("c").as_deref(), Some("small"));
    assert_eq!(judge_of("e"), None);
}

#[test]
fn labels_are_merged() {
    let judgement: Judgement = serde_json::from_value(json!({
        "judge": {"model": "tiny", "prompts": "0123456789abcdef0123"},
        "labels": {
            "context_drift": {"turns": [1], "why": "So."},
            "mechanical_loop": {"turns": [0, 1], "why": "So."},
        },
    }))
    .unwrap();
    let rules = [Label::MechanicalLoop, Label::PrematureSurrender];
    let check = |rules: &[Label], judgement, labels: &[&str], judge: &str| {
        let (found, by) = merged(rules, judgement);
        assert_eq!(
            (found.iter().map(String::as_str).collect::<Vec<_>>().as_slice(), by.as_str()),
            (labels, judge)
        );
    };
    check(&[], None, &[], RULES);
    check(&rules, None, &["mechanical_loop", "premature_surrender"], RULES);
    let both = format!("{RULES}+tiny@0123456789ab");
    check(&[], Some(&judgement), &["mechanical_loop", "context_drift"], &both);
    check(&rules, Some(&judgement), &["mechanical_loop", "context_drift", "premature_surrender"], &both);
}
