//! The script of a recipe's expert: its steps, its possible mistakes, and the checks that find
//! them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The script. Public parameters are filled in. `@{name}` stands for a value that the expert must
/// have seen in an output.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpertScript {
    /// Names of the strategies: ways to solve the task that run different commands.
    pub strategies: Vec<String>,
    pub steps: Vec<ScriptStep>,
    pub mistakes: Vec<Mistake>,
    pub slips: Vec<Slip>,
    /// Beginnings of the final message. One is drawn.
    pub done: Vec<String>,
}

/// A step of one or more strategies: one assistant turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptStep {
    pub id: String,
    /// The strategies that include the step. Empty means all.
    pub strategies: Vec<String>,
    /// Neighbouring steps of the same group run in random order.
    pub group: Option<String>,
    /// Whether a rollout may leave the step out.
    pub optional: bool,
    /// Alternative turns that do the step. One is drawn. Never empty.
    pub ways: Vec<ScriptTurn>,
    /// What the final message claims, if the step's output was as expected. E.g. "the totals
    /// match".
    pub claim: Option<String>,
}

/// One assistant turn of a script.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptTurn {
    /// Reasoning before the command. One text is drawn.
    pub say: Vec<String>,
    /// The command, verbatim.
    pub run: String,
    /// Regular expression that the observation must match.
    pub shows: Option<String>,
    /// Name → regular expression with one group, matched against the observation. Later turns use
    /// the matched text as `@{name}`.
    pub capture: BTreeMap<String, String>,
}

/// A fault that fails the tests, the expert's own check that shows it, and its repair.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mistake {
    pub name: String,
    pub kind: MistakeKind,
    /// The violation or wrong solution that the fault imitates: `clause:ID/VIOLATION` or
    /// `wrong:NAME`.
    pub from: String,
    /// The strategies in which the mistake can be made. Empty means all.
    pub strategies: Vec<String>,
    /// The id of the step in which the mistake is made.
    pub step: String,
    pub fault: Fault,
    /// Replaces the step's own texts where these would be untrue with the fault.
    pub say: Vec<String>,
    /// Pattern of the faulty command's output. It replaces the way's own `shows`.
    pub shows: Option<String>,
    /// `None` if no check that the instruction suggests would show the fault. Then only losing
    /// plans contain the mistake.
    pub check: Option<OwnCheck>,
}

/// How the command of a step is made faulty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// Replacements of texts that each occur once. A way without one of these texts cannot have the
    /// fault.
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

/// The expert's own check for a mistake, and the turns that may follow it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnCheck {
    /// The step after which it is run.
    pub after: String,
    pub say: Vec<String>,
    pub run: String,
    /// Regular expression that its output matches if the fault is present.
    pub wrong: String,
    /// Regular expression that its output matches if the fault is absent.
    pub right: String,
    /// Said when it is run again.
    pub again: Vec<String>,
    /// Said by an expert that misreads the faulty output as right.
    pub misread: Vec<String>,
    /// What the final message claims once the check has shown the right output.
    pub claim: String,
    /// Whether the check shows the same at the end of the work. If not, it is run only after its
    /// step.
    pub lasting: bool,
    /// Turns that look for the cause.
    pub look: Vec<ScriptTurn>,
    pub repair: ScriptTurn,
    /// Repairs that do not remove the fault.
    pub wrong_repairs: Vec<ScriptTurn>,
}

/// A typing error that the expert notices and corrects at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slip {
    /// Id of the step before which it happens.
    pub before: String,
    pub say: String,
    /// A command that visibly fails (non-zero exit status).
    pub run: String,
    /// The beginning of the next turn's text.
    pub fix: String,
}

/// The category of a mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MistakeKind {
    /// Wrong exactly at a limit, e.g. `<` for `<=`.
    Boundary,
    /// A wrong number, name or text.
    WrongValue,
    /// Right things in the wrong order.
    WrongOrder,
    /// A case of the input is not handled.
    MissingCase,
    /// A demand of the instruction is left out.
    MissingRequirement,
    /// The right content in the wrong format.
    WrongFormat,
    /// Something is changed that must stay as it was.
    SideEffect,
    /// Results of an earlier run are taken for current ones.
    StaleState,
    /// Text is executed as code, or split at the wrong place.
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

/// Why a losing scripted rollout fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureMode {
    /// A step is done wrongly, and the expert has no check that would show it.
    MissedRequirement,
    /// The fault is present, and the check that would show it is not run.
    SkippedCheck,
    /// The check shows the fault, and the expert misreads it as right.
    MisreadCheck,
    /// The check shows the fault, and the expert repairs something else.
    WrongRepair,
    /// The expert looks for the cause, does not find it, and stops.
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
    /// Index of the turn that made it, from 0.
    pub made: usize,
    /// Turns with repairs that did not remove the fault.
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

    /// The mistakes that can be made in a strategy. Their step belongs to the strategy.
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
    /// `command` with the fault. `None` if the fault does not fit the command.
    pub fn apply(&self, command: &str) -> Option<String> {
        match self {
            Self::Run(faulty) => Some(faulty.clone()),
            Self::Edits(edits) => edits.iter().try_fold(command.to_owned(), |text, edit| {
                (text.matches(&edit.from).count() == 1).then(|| text.replacen(&edit.from, &edit.to, 1))
            }),
        }
    }
}
