//! Compares the detectors with the labels in `*.toml`. These labels follow from the definitions.
//!
//! A step has the agent's message (`say`) and one of these:
//! - `run`: a command, with `status`, `timeout`, `died` or `lost`
//! - `calls`: several calls in a message, or `arguments` that cannot be read
//! - `keys`: typed into a terminal
//! - `malformed`, `asked` or `submit`
//!
//! `shows` is the output. The scaffold's own lines are added to it. `screen` is the text of a
//! terminal as it is. `claim` says, in a terminal, that the work is done. `times` repeats the step.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::json;
use termsmith::judge::{Label, findings, labels};
use termsmith::model::{
    Act, Actor, End, EnvironmentDigest, Outcome, ShellOutcome, Shown, TaskDigest, TaskName, ToolCall,
    TrajectoryRecord, Turn, TurnKind, Verdict,
};

const FILES: [(&str, &str); 8] = [
    ("clean.toml", include_str!("clean.toml")),
    ("feedback.toml", include_str!("feedback.toml")),
    ("later.toml", include_str!("later.toml")),
    ("loops.toml", include_str!("loops.toml")),
    ("refusal.toml", include_str!("refusal.toml")),
    ("rigid.toml", include_str!("rigid.toml")),
    ("surrender.toml", include_str!("surrender.toml")),
    ("unseen.toml", include_str!("unseen.toml")),
];

/// Minimum precision and recall of each label of the detectors.
const LEAST: f64 = 0.95;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    trajectory: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    pub(crate) name: String,
    scaffold: String,
    labels: BTreeSet<Label>,
    #[serde(default = "submitted")]
    end: End,
    steps: Vec<Step>,
}

fn submitted() -> End {
    End::Submitted
}

#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Step {
    say: String,
    run: Option<String>,
    arguments: Option<String>,
    status: i32,
    timeout: bool,
    died: Option<i32>,
    lost: bool,
    shows: String,
    calls: Vec<Step>,
    keys: Option<String>,
    screen: Option<String>,
    malformed: bool,
    asked: bool,
    claim: bool,
    submit: bool,
    times: Option<usize>,
}

impl Step {
    fn outcome(&self) -> Option<ShellOutcome> {
        match (self.lost, self.timeout, self.died) {
            (true, ..) => None,
            (_, true, _) => Some(ShellOutcome::TimedOut),
            (_, _, Some(status)) => Some(ShellOutcome::ShellDied(status)),
            _ => Some(ShellOutcome::Exited(self.status)),
        }
    }

    /// The output in the form of the scaffold's observations.
    fn observation(&self) -> String {
        let output = if self.shows.is_empty() { "(no output)" } else { &self.shows };
        match (&self.run, self.outcome()) {
            (Some(_), Some(ShellOutcome::Exited(status))) => format!("{output}\n[exit status {status}]"),
            _ => output.to_owned(),
        }
    }

    fn act(&self) -> Option<Act> {
        Some(Act::Command { command: self.run.clone()?, outcome: self.outcome() })
    }

    fn kind(&self) -> TurnKind {
        match self {
            Self { submit: true, .. } => TurnKind::Submitted,
            Self { claim: true, .. } => TurnKind::Claimed,
            Self { malformed: true, .. } => TurnKind::Malformed,
            Self { asked: true, .. } => TurnKind::Asked,
            _ => TurnKind::Acted,
        }
    }

    /// The turn and its observations, as the scaffold records them.
    fn recorded(&self, scaffold: &str, number: usize) -> (Turn, Vec<Shown>) {
        let mut turn = Turn { content: self.say.clone(), kind: self.kind(), ..Turn::default() };
        if self.malformed && self.calls.is_empty() || self.asked {
            return (turn, vec![Shown::text(&self.shows)]);
        }
        match scaffold {
            "bash" => {
                let single = self.run.as_ref().map(|_| self);
                let mut shown = Vec::new();
                for (place, call) in self.calls.iter().chain(single).enumerate() {
                    let id = format!("call_{number}_{place}");
                    let arguments = call
                        .arguments
                        .clone()
                        .unwrap_or_else(|| json!({ "command": call.run.as_deref().unwrap() }).to_string());
                    turn.tool_calls.push(ToolCall { id: id.clone(), name: "bash".to_owned(), arguments });
                    turn.acts.extend(call.act());
                    if !call.lost {
                        shown.push(Shown::result(id, call.observation()));
                    }
                }
                (turn, shown)
            }
            "bash-block" | "react" => {
                let action = if self.submit { Some("submit") } else { self.run.as_deref() };
                let action = action.unwrap_or_else(|| panic!("a step of {scaffold} without `run`"));
                turn.acts.extend(self.act());
                let mut observation = self.observation();
                if scaffold == "react" {
                    turn.content = format!("Thought: {}\nAction: {action}", self.say);
                    observation = format!("Observation:\n{observation}");
                } else {
                    turn.content = format!("{}\n\n```bash\n{action}\n```", self.say);
                }
                (turn, if self.submit { Vec::new() } else { vec![Shown::text(observation)] })
            }
            _ => self.typed(turn, scaffold),
        }
    }

    fn typed(&self, mut turn: Turn, scaffold: &str) -> (Turn, Vec<Shown>) {
        let done = self.claim || self.submit;
        turn.content = if scaffold == "terminus-json" {
            let commands: Vec<_> =
                self.keys.iter().map(|keys| json!({ "keystrokes": keys, "duration": 0.1 })).collect();
            json!({ "analysis": self.say, "plan": "", "commands": commands, "task_complete": done })
                .to_string()
        } else {
            let keys = self.keys.as_deref().unwrap_or_default();
            let keys = format!("<keystrokes duration=\"0.1\">{keys}</keystrokes>");
            let analysis = format!("<analysis>{}</analysis>\n<plan></plan>", self.say);
            format!(
                "<response>\n{analysis}\n<commands>{keys}</commands>\n<task_complete>{done}</task_complete>\n</response>"
            )
        };
        turn.acts.extend(self.keys.iter().map(|keys| Act::Keys { keys: keys.clone() }));
        if self.submit {
            return (turn, Vec::new());
        }
        let screen = self.screen.clone().unwrap_or_else(|| match &self.keys {
            Some(keys) => {
                let printed = if self.shows.is_empty() { String::new() } else { format!("{}\n", self.shows) };
                format!("New Terminal Output:\nroot@box:/app# {}\n{printed}root@box:/app# ", keys.trim_end())
            }
            None => "Current Terminal Screen:\nroot@box:/app# \n\n\n".to_owned(),
        });
        let shown = if self.claim {
            let question = "Are you sure you want to mark the task as complete? This will trigger your solution to be graded and \
                            you won't be able to make any further corrections.";
            format!("Current terminal state:\n{screen}\n\n{question}")
        } else {
            screen
        };
        (turn, vec![Shown::text(shown)])
    }
}

impl Case {
    pub(crate) fn recorded(&self) -> (TrajectoryRecord, Vec<Vec<Shown>>) {
        let steps = self.steps.iter().flat_map(|step| std::iter::repeat_n(step, step.times.unwrap_or(1)));
        let (turns, shown) =
            steps.enumerate().map(|(number, step)| step.recorded(&self.scaffold, number)).unzip();
        let record = TrajectoryRecord {
            task: TaskName::parse("a-task").unwrap(),
            task_digest: TaskDigest::parse("sha256:0").ok(),
            environment_digest: EnvironmentDigest::parse("blake3:0").ok(),
            attempt: 0,
            actor: Actor::Nop,
            scaffold: self.scaffold.clone(),
            system: String::new(),
            prompt: "Do what is to be done.".to_owned(),
            opening: Vec::new(),
            tools: Vec::new(),
            turns,
            threads: Vec::new(),
            end: self.end,
            verdict: Verdict {
                outcome: Outcome::Fail,
                cause: "a check failed".to_owned(),
                checks: Vec::new(),
            },
            rounds: Vec::new(),
            plans: Vec::new(),
            handoffs: Vec::new(),
            fork: None,
            exploits: Vec::new(),
        };
        (record, shown)
    }
}

pub(crate) fn cases() -> Vec<Case> {
    let read = |(name, text): &(&str, &str)| {
        toml::from_str::<File>(text).unwrap_or_else(|error| panic!("{name}: {error}")).trajectory
    };
    FILES.iter().flat_map(read).collect()
}

#[derive(Default)]
struct Counts {
    right: usize,
    wrong: usize,
    missed: usize,
}

impl Counts {
    fn precision(&self) -> f64 {
        self.right as f64 / (self.right + self.wrong) as f64
    }

    fn recall(&self) -> f64 {
        self.right as f64 / (self.right + self.missed) as f64
    }
}

/// Scores of labels, against the labels by hand.
pub(crate) struct Tally {
    /// The scores as a table.
    pub(crate) table: String,
    counts: BTreeMap<Label, Counts>,
}

/// Compares only labels that detectors assign. Others have no labels by hand.
pub(crate) fn tally<'a>(found: impl Iterator<Item = (&'a Case, BTreeSet<Label>)>) -> Tally {
    let mut counts: BTreeMap<Label, Counts> = Label::ALL
        .into_iter()
        .filter(|label| label.is_deterministic())
        .map(|label| (label, Counts::default()))
        .collect();
    let mut slips = String::new();
    let mut cases = 0;
    for (case, found) in found {
        cases += 1;
        for (label, count) in &mut counts {
            let (wanted, got) = (case.labels.contains(label), found.contains(label));
            match (wanted, got) {
                (true, true) => count.right += 1,
                (false, true) => count.wrong += 1,
                (true, false) => count.missed += 1,
                (false, false) => {}
            }
            if wanted != got {
                let slip = if got { "wrongly labelled" } else { "not labelled" };
                writeln!(slips, "`{}`: {slip} {}", case.name, label.as_str()).unwrap();
            }
        }
    }
    let mut table = format!(
        "{cases} trajectories\n{:<20} {:>6} {:>6} {:>7} {:>10} {:>7}\n",
        "label", "right", "wrong", "missed", "precision", "recall"
    );
    for (label, count) in &counts {
        let Counts { right, wrong, missed } = count;
        let (precision, recall) = (count.precision(), count.recall());
        let label = label.as_str();
        writeln!(table, "{label:<20} {right:>6} {wrong:>6} {missed:>7} {precision:>10.3} {recall:>7.3}")
            .unwrap();
    }
    table.push_str(&slips);
    Tally { table, counts }
}

#[test]
#[allow(clippy::print_stdout, reason = "the table is the result, and is shown with --nocapture")]
fn precision_and_recall() {
    let cases = cases();
    let labelled = |case: &Case| {
        let (record, shown) = case.recorded();
        labels(&record, &shown).into_iter().collect()
    };
    let Tally { table, counts } = tally(cases.iter().map(|case| (case, labelled(case))));
    println!("{table}");
    for (label, count) in counts {
        assert!(count.right + count.missed >= 8, "too few trajectories of {}", label.as_str());
        // NaN must fail too.
        assert!(count.precision() >= LEAST && count.recall() >= LEAST, "{}:\n{table}", label.as_str());
    }
}

#[test]
fn the_table_is_large_and_names_are_unique() {
    let cases = cases();
    let names: BTreeSet<_> = cases.iter().map(|case| &case.name).collect();
    assert_eq!(names.len(), cases.len());
    assert!(cases.len() >= 60, "{}", cases.len());
    assert!(cases.iter().filter(|case| case.labels.is_empty()).count() >= 40);
    for scaffold in ["bash", "bash-block", "react", "terminus-json", "terminus-xml"] {
        assert!(cases.iter().any(|case| case.scaffold == scaffold), "{scaffold}");
    }
}

#[test]
fn evidence_names_existing_turns() {
    for case in cases() {
        let (record, shown) = case.recorded();
        let found = findings(&record, &shown);
        assert!(found.is_sorted_by_key(|finding| finding.label), "{}", case.name);
        for finding in found {
            assert!(finding.label.is_deterministic());
            assert!(!finding.turns.is_empty() && finding.turns.is_sorted(), "{}: {finding:?}", case.name);
            assert!(
                finding.turns.iter().all(|turn| *turn < record.turns.len()),
                "{}: {finding:?}",
                case.name
            );
            assert!(!finding.note.is_empty());
        }
    }
}

#[test]
fn nothing_is_labelled_when_nothing_was_shown() {
    // A record without observations. Only its messages can be judged.
    for case in cases() {
        let (record, _) = case.recorded();
        let found = labels(&record, &[]);
        let said_only = |label: &Label| {
            *label == Label::ExplicitRefusal
                || *label == Label::MechanicalLoop
                    && record.turns.iter().any(|turn| turn.kind == TurnKind::Malformed)
        };
        assert!(found.iter().all(said_only), "{}: {found:?}", case.name);
    }
}
