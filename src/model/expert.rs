//! The script of a recipe's expert: what it can do, what it can get wrong, and how it finds out.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The script, with public parameters filled in and `@{name}` for values that the expert must have
/// observed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpertScript {
    /// Names of the ways to solve the task that differ in what is run.
    pub strategies: Vec<String>,
    pub steps: Vec<ScriptStep>,
    pub mistakes: Vec<Mistake>,
    pub slips: Vec<Slip>,
    /// Beginnings of the final message; one is drawn.
    pub done: Vec<String>,
}

/// A step of one or more strategies: one assistant turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptStep {
    pub id: String,
    /// The strategies that have it; empty for all.
    pub strategies: Vec<String>,
    /// Neighbouring steps of the same group come in a drawn order.
    pub group: Option<String>,
    /// Whether a rollout can leave it out.
    pub optional: bool,
    /// Ways to do it, of which one is drawn. Never empty.
    pub ways: Vec<ScriptTurn>,
    /// What the final message says was checked, once the step's output was as expected.
    pub claim: Option<String>,
}

/// One assistant turn of a script.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptTurn {
    /// Reasoning before the command; one text is drawn.
    pub say: Vec<String>,
    /// The command, verbatim.
    pub run: String,
    /// Regular expression that the observation must match.
    pub shows: Option<String>,
    /// Name → regular expression with one group, matched against the observation; later turns use
    /// it as `@{name}`.
    pub capture: BTreeMap<String, String>,
}

/// A real error: a fault that fails the tests, the expert's own check that shows it, and its
/// repair.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mistake {
    pub name: String,
    pub kind: MistakeKind,
    /// The violation or the wrong solution that it is like: `clause:ID/VIOLATION` or `wrong:NAME`.
    pub from: String,
    /// The strategies in which it can be made; empty for all.
    pub strategies: Vec<String>,
    /// The step in which it is made.
    pub step: String,
    pub fault: Fault,
    /// Said instead of the step's own texts, where these would be untrue of the fault.
    pub say: Vec<String>,
    /// What the faulty command's output must match, instead of the way's own `shows`.
    pub shows: Option<String>,
    /// `None` if no check that the instruction suggests would show it. The expert then only makes
    /// it where it loses.
    pub check: Option<OwnCheck>,
}

/// How the command of a step becomes a faulty one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// Replacements, each of text that occurs once. A way without one of them cannot be written
    /// wrongly so.
    Edits(Vec<CommandEdit>),
    /// The whole faulty command.
    Run(String),
}

/// A replacement in a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandEdit {
    /// Text that occurs exactly once.
    pub from: String,
    pub to: String,
}

/// The expert's own check of a mistake, and what follows from it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnCheck {
    /// The step after which it is run.
    pub after: String,
    pub say: Vec<String>,
    pub run: String,
    /// Regular expression of its output with the fault.
    pub wrong: String,
    /// Regular expression of its output without the fault.
    pub right: String,
    /// Said when it is run again.
    pub again: Vec<String>,
    /// Said by somebody who takes the faulty output for right.
    pub misread: Vec<String>,
    /// What the final message says was checked.
    pub claim: String,
    /// Whether it shows the same at the end of the work. If not, it is run where it belongs only.
    pub lasting: bool,
    /// Turns that find the cause.
    pub look: Vec<ScriptTurn>,
    pub repair: ScriptTurn,
    /// Repairs that leave the fault as it is.
    pub wrong_repairs: Vec<ScriptTurn>,
}

/// An error in typing that the expert notices and corrects.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slip {
    /// The step id that it happens before.
    pub before: String,
    pub say: String,
    /// A command that visibly fails (non-zero exit status).
    pub run: String,
    /// How the next turn begins.
    pub fix: String,
}

/// What kind of error a mistake is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MistakeKind {
    /// Wrong exactly at a limit.
    Boundary,
    /// A wrong number, name or text.
    WrongValue,
    /// Right things in the wrong order.
    WrongOrder,
    /// A case of the input is not handled.
    MissingCase,
    /// A demand of the instruction is left out.
    MissingRequirement,
    /// The right content in a wrong form.
    WrongFormat,
    /// Something is changed that must stay.
    SideEffect,
    /// What an earlier run left is taken for current.
    StaleState,
    /// Text is taken for code, or split where it must not be.
    Quoting,
}

impl MistakeKind {
    /// The id used in files, rows and reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Boundary => "boundary",
            Self::WrongValue => "wrong_value",
            Self::WrongOrder => "wrong_order",
            Self::MissingCase => "missing_case",
            Self::MissingRequirement => "missing_requirement",
            Self::WrongFormat => "wrong_format",
            Self::SideEffect => "side_effect",
            Self::StaleState => "stale_state",
            Self::Quoting => "quoting",
        }
    }
}

/// The decision by which a scripted rollout loses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureMode {
    /// A step is done wrongly, and no check of its own would tell.
    MissedRequirement,
    /// A fault is there, and the check that would show it is not run.
    SkippedCheck,
    /// The check shows the fault and is taken for right.
    MisreadCheck,
    /// The check shows the fault, and something else is repaired.
    WrongRepair,
    /// The cause is looked for, not found, and the work ends.
    GaveUp,
}

impl FailureMode {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::MissedRequirement, Self::SkippedCheck, Self::MisreadCheck, Self::WrongRepair, Self::GaveUp];

    /// The id used in files, rows and reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::MissedRequirement => "missed_requirement",
            Self::SkippedCheck => "skipped_check",
            Self::MisreadCheck => "misread_check",
            Self::WrongRepair => "wrong_repair",
            Self::GaveUp => "gave_up",
        }
    }
}

/// A mistake that a scripted rollout made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MadeMistake {
    pub name: String,
    pub kind: MistakeKind,
    /// The turn that made it, from 0.
    pub made: usize,
    /// Turns with repairs that left it as it was.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub wrong_repairs: Vec<usize>,
    /// The turn that repaired it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub repaired: Option<usize>,
}

impl ExpertScript {
    /// The step with this id.
    pub fn step(&self, id: &str) -> Option<&ScriptStep> {
        self.steps.iter().find(|step| step.id == id)
    }

    /// The steps of a strategy, in order.
    pub fn steps_of<'a>(&'a self, strategy: &str) -> impl Iterator<Item = &'a ScriptStep> {
        self.steps.iter().filter(move |step| applies(&step.strategies, strategy))
    }

    /// The mistakes that can be made in a strategy: in a step that it has.
    pub fn mistakes_of<'a>(&'a self, strategy: &str) -> impl Iterator<Item = &'a Mistake> {
        self.mistakes.iter().filter(move |mistake| {
            applies(&mistake.strategies, strategy)
                && self.step(&mistake.step).is_some_and(|step| applies(&step.strategies, strategy))
        })
    }
}

fn applies(strategies: &[String], strategy: &str) -> bool {
    strategies.is_empty() || strategies.iter().any(|name| name == strategy)
}

impl Fault {
    /// `command` with the fault; `None` if it cannot have it.
    pub fn apply(&self, command: &str) -> Option<String> {
        match self {
            Self::Run(faulty) => Some(faulty.clone()),
            Self::Edits(edits) => edits.iter().try_fold(command.to_owned(), |text, edit| {
                (text.matches(&edit.from).count() == 1).then(|| text.replacen(&edit.from, &edit.to, 1))
            }),
        }
    }
}
