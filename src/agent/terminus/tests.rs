//! Compares this module with Harbor's own code (`tests/readers/terminus_golden.py`) and with real
//! tmux (`tests/readers/tmux_golden.py`).

use std::process::Command as Program;

use proptest::prelude::*;
use serde::Deserialize;

use super::{Format, Next, Pane, Reading, Texts, Turns, to_bytes};
use crate::agent::terminal::{KeyModes, Screen};
use crate::assets::Assets;

const GOLDEN: &str = include_str!("../../../tests/golden/terminus.json");
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/readers/terminus_golden.py");
/// Environment variable with the path of a Python that has `harbor` installed.
const PYTHON: &str = "TERMSMITH_HARBOR_PYTHON";

#[derive(Deserialize)]
struct Golden {
    parse: Vec<ParseCase>,
    salvage: Vec<SalvageCase>,
    conversations: Vec<Conversation>,
    summaries: Vec<Summaries>,
    timeout: Vec<String>,
}

#[derive(Deserialize)]
struct ParseCase {
    format: String,
    reply: String,
    #[serde(flatten)]
    got: Got,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Got {
    /// Harbor does not catch this error, so its run ends.
    Raises { raises: String },
    Parsed {
        commands: Vec<Typed>,
        complete: bool,
        error: String,
        warning: String,
        analysis: String,
        plan: String,
        next: String,
    },
}

#[derive(Deserialize)]
struct Typed {
    keystrokes: String,
    duration: String,
}

#[derive(Deserialize)]
struct SalvageCase {
    text: String,
    salvaged: Option<String>,
}

#[derive(Deserialize)]
struct Conversation {
    name: String,
    format: String,
    output_limit: Option<u64>,
    instruction: String,
    /// Full pane and screen, one pair for each request to the model.
    panes: Vec<(String, String)>,
    replies: Vec<Reply>,
    prompts: Vec<String>,
    ended: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Reply {
    Whole(String),
    CutOff { cut: String },
}

#[derive(Deserialize)]
struct Summaries {
    screen: String,
    summary: String,
    questions: String,
    answers: String,
    handoff: String,
    short_summary: String,
    short_handoff: String,
    last_resort: String,
}

fn golden() -> Golden {
    serde_json::from_str(GOLDEN).unwrap()
}

fn format(name: &str) -> Format {
    if name == "xml" { Format::Xml } else { Format::Json }
}

fn texts(format: Format) -> Texts {
    Texts::load(&Assets::embedded(), format).unwrap()
}

/// The order of these warnings is free: Harbor takes them from Python sets.
fn without_order(text: &str) -> Vec<&str> {
    let mut words: Vec<&str> = text.split([' ', '\n', ',', '"']).collect();
    words.sort_unstable();
    words
}

fn comes_from_a_set(text: &str) -> bool {
    ["Unknown fields: ", "Unknown tag found", "Missing <"].iter().any(|part| text.contains(part))
}

fn assert_same(what: &str, ours: &str, harbors: &str) {
    if comes_from_a_set(harbors) {
        assert_eq!(without_order(ours), without_order(harbors), "{what}");
    } else {
        assert_eq!(ours, harbors, "{what}");
    }
}

#[test]
fn replies_are_read_as_by_harbor() {
    let cases = golden().parse;
    assert!(cases.len() > 200, "{}", cases.len());
    let mut raised = Vec::new();
    for case in &cases {
        let what = format!("{}: {}", case.format, case.reply);
        let parsed = format(&case.format).parse(&case.reply);
        let Got::Parsed { commands, complete, error, warning, analysis, plan, next } = &case.got else {
            let Got::Raises { raises } = &case.got else { unreachable!() };
            raised.push(raises.as_str());
            continue;
        };
        assert_eq!(parsed.error.clone().unwrap_or_default(), *error, "{what}");
        assert_same(&what, &parsed.warning.clone().unwrap_or_default(), warning);
        assert_eq!(
            (parsed.task_complete, &parsed.analysis, &parsed.plan),
            (*complete, analysis, plan),
            "{what}"
        );
        assert_eq!(parsed.commands.len(), commands.len(), "{what}");
        for (ours, harbors) in parsed.commands.iter().zip(commands) {
            assert_eq!(ours.keystrokes, harbors.keystrokes, "{what}");
            let duration: f64 = harbors.duration.parse().unwrap();
            assert!(ours.duration == duration || ours.duration.is_nan() && duration.is_nan(), "{what}");
        }
        let mut turns = Turns::new(texts(format(&case.format)));
        let message = match turns.read(&case.reply) {
            Reading::Rejected { message, .. } => message,
            Reading::Accepted(parsed) => match turns.observe(&parsed, "Current Terminal Screen:\n$ \n") {
                Next::Message(message) => message,
                Next::Done(_) => panic!("{what}"),
            },
        };
        assert_same(&what, &message, next);
    }
    // The tag of blanks alone.
    assert_eq!(raised, ["IndexError"; 1], "what ends Harbor's run");
}

#[test]
fn conversations_go_as_with_harbor() {
    for case in golden().conversations {
        let mut turns = Turns::new(texts(format(&case.format)));
        let mut pane = Pane::default();
        let mut now = 0;
        let mut look = |now: usize| {
            let (full, screen) = &case.panes[now.min(case.panes.len() - 1)];
            pane.show(full.clone(), screen, 0)
        };
        let mut prompts = vec![texts(format(&case.format)).task(&case.instruction, &look(0))];
        let mut ended = "replies";
        for reply in &case.replies {
            let reply = match reply {
                Reply::Whole(reply) => reply,
                Reply::CutOff { cut } => {
                    prompts.push(texts(format(&case.format)).too_long(cut, case.output_limit));
                    continue;
                }
            };
            now += 1;
            match turns.read(reply) {
                Reading::Rejected { message, .. } => prompts.push(message),
                Reading::Accepted(parsed) => match turns.observe(&parsed, &look(now)) {
                    Next::Message(message) => prompts.push(message),
                    Next::Done(_) => {
                        ended = "None";
                        break;
                    }
                },
            }
        }
        let harbors = if case.ended == "done" { "None" } else { "replies" };
        assert_eq!(ended, harbors, "{}", case.name);
        assert_eq!(prompts, case.prompts, "{}", case.name);
    }
}

#[test]
fn cut_off_replies_are_salvaged_as_by_harbor() {
    for case in golden().salvage {
        assert_eq!(Format::Xml.salvage(&case.text), case.salvaged.as_deref(), "{}", case.text);
        assert_eq!(Format::Json.salvage(&case.text), None);
    }
}

#[test]
fn summaries_and_time_outs_are_asked_for_as_by_harbor() {
    let golden = golden();
    let (texts, task) = (texts(Format::Json), "Do {this}.");
    let ours = &golden.summaries[0];
    assert_eq!(texts.summary(task), ours.summary);
    assert_eq!(texts.questions(task, "reply 1", "screen\n"), ours.questions);
    assert_eq!(texts.answers("reply 2"), ours.answers);
    assert_eq!(texts.handoff("reply 3"), ours.handoff);
    assert_eq!(texts.short_summary(task, &ours.screen), ours.short_summary);
    assert_eq!(texts.short_handoff(task, "short"), ours.short_handoff);
    assert_eq!(texts.last_resort(task, &ours.screen), ours.last_resort);
    assert_eq!(texts.timeout("sleep 9\n", "5.0", "$ sleep 9\n"), golden.timeout[0]);
}

/// Compares with a fresh run of Harbor, if the environment names one.
#[test]
#[expect(clippy::print_stderr, reason = "a test that is left out says so")]
fn the_golden_file_matches_harbor() {
    let Ok(python) = std::env::var(PYTHON) else {
        eprintln!("skipped: {PYTHON} names no Python with `harbor`");
        return;
    };
    let made = Program::new(python).arg(SCRIPT).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let made = String::from_utf8(made.stdout).unwrap();
    for (line, (fresh, kept)) in made.lines().zip(GOLDEN.lines()).enumerate() {
        if comes_from_a_set(kept) {
            let apart = |line: &str| line.replace("\\n", "\n");
            assert_eq!(without_order(&apart(fresh)), without_order(&apart(kept)), "line {}", line + 1);
        } else {
            assert_eq!(fresh, kept, "line {}", line + 1);
        }
    }
    assert_eq!(made.lines().count(), GOLDEN.lines().count());
}

#[derive(Deserialize)]
struct Keys {
    cases: Vec<KeyCase>,
}

#[derive(Deserialize)]
struct KeyCase {
    mode: String,
    key: String,
    bytes: String,
}

#[test]
fn keys_are_typed_as_by_tmux() {
    let golden: Keys = serde_json::from_str(include_str!("../../../tests/golden/tmux_keys.json")).unwrap();
    let mut wrong = Vec::new();
    for case in &golden.cases {
        let mut screen = Screen::new(5, 40);
        screen.feed(match case.mode.as_str() {
            "application" => b"\x1b[?1h\x1b=",
            "extended" => b"\x1b[>4;2m",
            _ => b"",
        });
        let expected: Vec<u8> = case.bytes.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect();
        let ours = to_bytes(&case.key, screen.key_modes());
        if ours != expected {
            wrong.push(format!(
                "{} {:?}: {:?}, not {:?}",
                case.mode,
                case.key,
                ours.escape_ascii().to_string(),
                expected.escape_ascii().to_string()
            ));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), golden.cases.len(), wrong.join("\n"));
}

#[test]
fn long_keystrokes_are_pasted() {
    let check = |text: &str, newline: u8| {
        let bytes = to_bytes(text, KeyModes::default());
        assert_eq!(bytes.len(), text.len());
        assert_eq!(bytes.last(), Some(&newline), "{} bytes", text.len());
    };
    // 16,000 bytes less the command, two quotes, and the newline.
    check(&format!("{}\n", "x".repeat(15_965)), b'\n');
    check(&format!("{}\n", "x".repeat(15_966)), b'\r');
    check(&format!("{}\n", "'".repeat(3_193)), b'\n');
    check(&format!("{}\n", "'".repeat(3_194)), b'\r');
}

proptest! {
    #[test]
    fn any_reply_can_be_read(reply in any::<String>()) {
        for format in [Format::Json, Format::Xml] {
            let parsed = format.parse(&reply);
            prop_assert!(parsed.commands.is_empty() || parsed.error.is_none());
            let mut turns = Turns::new(texts(format));
            if let Reading::Accepted(parsed) = turns.read(&reply) {
                turns.observe(&parsed, &reply);
            }
        }
        to_bytes(&reply, KeyModes::default());
    }

    #[test]
    fn any_bytes_can_be_read(
        pieces in prop::collection::vec(prop_oneof![
            prop::sample::select(vec![
                "{", "}", "[", "]", "\"", ":", ",", "\\", "\\u12", "analysis", "\"plan\":", "\"commands\": [", "null", "-", "1e", "\n",
                "<response>", "</response>", "<analysis>", "<commands>", "</commands>", "<keystrokes", " duration=", "'", ">", "/>", "<", "=", "&lt;",
                "<task_complete>", "true", "</task_complete>", "漢", "é", " ",
            ]).prop_map(|piece| piece.as_bytes().to_vec()),
            prop::collection::vec(any::<u8>(), 0..4),
        ], 0..60)
    ) {
        let bytes = pieces.concat();
        let reply = String::from_utf8_lossy(&bytes);
        for format in [Format::Json, Format::Xml] {
            format.parse(&reply);
            format.salvage(&reply);
        }
        let mut pane = Pane::default();
        pane.show(reply.chars().rev().collect(), &reply, 0);
        pane.show(reply.to_string(), &reply, 1);
    }
}
