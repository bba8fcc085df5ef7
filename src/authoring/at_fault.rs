//! Decides which stage must mend what a screening found, and what that stage is told.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::stage::{Found, StageRef};
use super::stages::{self, place};
use crate::model::{Certificate, Clauses, Outcome, Part, RejectReason, RowKind};

/// Added to the problem of a violation that may change nothing.
const MAY_HAVE_NO_EFFECT: &str =
    " (its effect may be none: replace it by a violation that changes a result, or drop it)";
/// Added to the problem of lines of the reference that no check needs.
const MAY_BE_NOT_DEMANDED: &str = " again, after these were asked for one that notices it: if no sentence of the instruction demands what these lines do, leave them out; else keep \
     them, and let them do plainly what it demands";

/// A rejected certificate, with the judgements about its mutants.
#[derive(Debug)]
pub(super) struct Rejection<'a> {
    pub(super) certificate: &'a Certificate,
    pub(super) clauses: &'a Clauses,
    /// The words of the instruction that surviving mutants violate, by the mutant's name.
    pub(super) violated: &'a BTreeMap<String, String>,
}

impl Rejection<'_> {
    /// The problems, and the stage that must mend them. `survivors` holds the wrong solutions that
    /// passed an earlier version. Those of this certificate are added.
    pub(super) fn found(&self, survivors: &mut BTreeSet<String>) -> Option<Found> {
        let reasons = self.certificate.reasons.iter();
        let feedback: Vec<_> = reasons
            .map(|reason| {
                let (stage, hint) = self.at_fault(reason, survivors);
                (stage, format!("{}{hint}", reason.message))
            })
            .collect();
        let (first, _) = feedback.iter().min_by_key(|(stage, _)| place(*stage))?;
        let (first, of_first) = (*first, place(*first));
        let problems = feedback.into_iter().filter(|(stage, _)| place(*stage) == of_first);
        Found::of(first, problems.map(|(_, problem)| problem).collect())
    }

    /// The stage that must mend a row, and a text that is added to the row's message.
    fn at_fault(&self, reason: &RejectReason, survivors: &mut BTreeSet<String>) -> (StageRef, String) {
        let Self { certificate, clauses, violated } = *self;
        let plainly = |stage: StageRef| (stage, String::new());
        match reason.kind {
            RowKind::Lint => plainly(stage_of(reason.part)),
            RowKind::Build | RowKind::Leak => plainly(&stages::Environment),
            RowKind::Inputs => plainly(&stages::Solution),
            RowKind::Blind => plainly(&stages::Blind),
            // If a violation changes nothing, or no check notices it twice, it may be no violation.
            RowKind::Clause
                if without_effect(certificate, &reason.name)
                    || !survivors.insert(identity(clauses, &reason.name)) =>
            {
                (&stages::Clauses, MAY_HAVE_NO_EFFECT.to_owned())
            }
            // Perhaps no sentence demands these lines. Then no check can notice their absence, and
            // the reference does not need them. The authors of checks and of the solution are asked
            // in turn.
            RowKind::AblatedSolution if !toggled(survivors, &reason.name) => {
                (&stages::Solution, MAY_BE_NOT_DEMANDED.to_owned())
            }
            RowKind::Mutant => (&stages::Checks, surviving_mutants(certificate, violated)),
            RowKind::Clause
            | RowKind::Untouched
            | RowKind::Reference
            | RowKind::SecondSolution
            | RowKind::WrongSolution
            | RowKind::TruncatedSolution
            | RowKind::AblatedSolution
            | RowKind::Variant
            | RowKind::Attack => plainly(&stages::Checks),
        }
    }
}

/// The stage that writes a part of a task.
fn stage_of(part: Part) -> StageRef {
    match part {
        Part::Environment => &stages::Environment,
        Part::Solution => &stages::Solution,
        Part::Instruction => &stages::Instruction,
        Part::Tests => &stages::Checks,
    }
}

/// Adds `name` to `names`, or removes it if they have it. Returns whether it was added.
fn toggled(names: &mut BTreeSet<String>, name: &str) -> bool {
    let is_new = names.insert(name.to_owned());
    if !is_new {
        names.remove(name);
    }
    is_new
}

/// A list of the mutants that pass, with the words that they violate. The author of the checks must
/// notice them.
fn surviving_mutants(certificate: &Certificate, violated: &BTreeMap<String, String>) -> String {
    let rows = certificate.rows.iter().filter(|row| row.kind == RowKind::Mutant && row.counts);
    let passed = rows.filter(|row| row.outcome == Some(Outcome::Pass));
    passed.fold(String::new(), |mut text, row| {
        // Writing to a String cannot fail.
        let _ = match violated.get(&row.name).filter(|words| !words.is_empty()) {
            Some(words) => write!(text, "\n   - {} (against “{words}”)", row.name),
            None => write!(text, "\n   - {}", row.name),
        };
        text
    })
}

/// The rows of violations that passed an earlier version of the checks.
pub(super) fn survived(clauses: &Clauses, survivors: &BTreeSet<String>) -> Vec<(RowKind, Option<String>)> {
    let all = clauses
        .clause
        .iter()
        .flat_map(|clause| clause.violation.iter().map(move |violation| (clause, violation)));
    let again = all.map(|(clause, violation)| clause.row_name(violation));
    again
        .filter(|name| survivors.contains(&identity(clauses, name)))
        .map(|name| (RowKind::Clause, Some(name)))
        .collect()
}

/// What identifies a violation across versions: its row's name and its content, since a later
/// violation may get the same name.
fn identity(clauses: &Clauses, row: &str) -> String {
    let all = clauses
        .clause
        .iter()
        .flat_map(|clause| clause.violation.iter().map(move |violation| (clause, violation)));
    let found = all.into_iter().find(|(clause, violation)| clause.row_name(violation) == row);
    found.map_or_else(|| row.to_owned(), |(_, violation)| format!("{row} {}", violation.identity()))
}

/// Whether a violation left the same state as the reference.
fn without_effect(certificate: &Certificate, name: &str) -> bool {
    certificate.rows.iter().any(|row| row.kind == RowKind::Clause && row.name == name && !row.counts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{EnvironmentDigest, Row, TaskDigest};

    #[test]
    fn a_rejection_goes_to_the_stage_that_can_mend_it() {
        let mut survivors = BTreeSet::new();
        let violated = ["arithmetic: survives", "flag: killed"]
            .map(|name| (name.to_owned(), "Count.".to_owned()))
            .into();
        let mut check = |reasons: &[(RowKind, &str)], expect: (&str, &str)| {
            let reason = |(kind, name): &(RowKind, &str)| RejectReason {
                kind: *kind,
                name: (*name).to_owned(),
                message: format!("{name} passes"),
                part: Part::Tests,
                ask: String::new(),
            };
            let row = |name: &str, outcome, counts| Row {
                kind: RowKind::Mutant,
                name: name.to_owned(),
                outcome: Some(outcome),
                passed_of: None,
                ok: true,
                counts,
                equivalent: false,
                note: String::new(),
            };
            let certificate = Certificate {
                reasons: reasons.iter().map(reason).collect(),
                rows: vec![
                    row("arithmetic: survives", Outcome::Pass, true),
                    row("flag: killed", Outcome::Fail, true),
                    row("flag: equal", Outcome::Pass, false),
                ],
                ..Certificate::without_rows(
                    "task",
                    TaskDigest::parse("abc").unwrap(),
                    EnvironmentDigest::parse("abc").unwrap(),
                )
            };
            let clauses = Clauses::default();
            let rejection = Rejection { certificate: &certificate, clauses: &clauses, violated: &violated };
            let found = rejection.found(&mut survivors).unwrap();
            assert_eq!((found.stage.name(), found.problems.join("; ").as_str()), expect, "{reasons:?}");
        };
        // The finding is in a file of the checks' author. The paths that it mentions do not matter.
        let finding = "tests/test_outputs.py: a path below solution/";
        check(
            &[(RowKind::Lint, finding)],
            ("checks", "tests/test_outputs.py: a path below solution/ passes"),
        );
        let ablated = (RowKind::AblatedSolution, "chmod");
        check(&[ablated, (RowKind::Clause, "count/zero")], ("checks", "chmod passes; count/zero passes"));
        let not_demanded = "chmod passes again, after these were asked for one that notices it: if no sentence of the instruction demands what these lines do, leave them \
                            out; else keep them, and let them do plainly what it demands";
        check(&[ablated, (RowKind::Variant, "spaces")], ("solution", not_demanded));
        // The solution's author kept the lines. Now the checks must notice their absence.
        check(&[ablated], ("checks", "chmod passes"));
        check(
            &[(RowKind::Clause, "count/zero")],
            (
                "clauses",
                "count/zero passes (its effect may be none: replace it by a violation that changes a result, or drop it)",
            ),
        );
        check(
            &[(RowKind::Mutant, "kill rate")],
            ("checks", "kill rate passes\n   - arithmetic: survives (against “Count.”)"),
        );
    }

    #[test]
    fn violations_that_passed_before_are_tried_first() {
        let check = |survivors: &[&str], expect: &[&str]| {
            let text = "[[clause]]\nid = \"count\"\nsays = [\"Count.\"]\nchecks = []\n\
                [[clause.violation]]\nname = \"zero\"\nthat = \"counts nothing\"\n\
                [[clause.violation]]\nname = \"all-lines\"\nthat = \"counts all lines\"\n";
            let clauses: Clauses = toml::from_str(text).unwrap();
            let survivors = survivors.iter().map(|name| (*name).to_owned()).collect();
            let rows = survived(&clauses, &survivors).into_iter();
            let names: Vec<_> =
                rows.filter_map(|(kind, name)| name.filter(|_| kind == RowKind::Clause)).collect();
            assert_eq!(names, expect);
        };
        let [zero, all_lines] = ["zero", "all-lines"].map(|name| format!("count/{name} "));
        check(&[], &[]);
        // An attack's script, a violation that no longer exists, a violation to be tried, and the
        // name of a violation with other content.
        check(&["cp a b", "count/gone ", &all_lines, "count/zero true"], &["count/all-lines"]);
        check(&[&all_lines, &zero], &["count/zero", "count/all-lines"]);
    }
}
