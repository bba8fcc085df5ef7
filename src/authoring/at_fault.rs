//! Which stage has to mend what an examination found, and what it is told.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::examine::Found;
use super::mistakes::Mistake;
use crate::model::{AuthorStage, Certificate, Clauses, Outcome, Part, RowKind, WrongSolution};

/// What a rejected certificate asks for, and of whom. `survivors` are the wrong solutions that passed before; those of `certificate` are added. `violated` has the words
/// that surviving mutants violate.
pub(super) fn refused(
    certificate: &Certificate,
    clauses: &Clauses,
    survivors: &mut BTreeSet<String>,
    violated: &BTreeMap<String, String>,
) -> Found {
    let mut by_stage: Vec<(AuthorStage, String)> = Vec::new();
    for reason in &certificate.reasons {
        let stage = match reason.kind {
            RowKind::Lint => stage_of(reason.part),
            RowKind::Build | RowKind::Leak => AuthorStage::Environment,
            RowKind::Inputs => AuthorStage::Solution,
            RowKind::Blind => AuthorStage::Blind,
            // A violation of no effect, or that no check notices twice, may be none.
            RowKind::Clause if without_effect(certificate, &reason.name) => AuthorStage::Clauses,
            RowKind::Clause if !survivors.insert(identity(clauses, &reason.name)) => AuthorStage::Clauses,
            // No check can notice what no sentence demands; then the reference has no need of it either. Each is asked in turn.
            RowKind::AblatedSolution if !toggled(survivors, &reason.name) => AuthorStage::Solution,
            RowKind::Clause
            | RowKind::Untouched
            | RowKind::Reference
            | RowKind::SecondSolution
            | RowKind::WrongSolution
            | RowKind::TruncatedSolution
            | RowKind::AblatedSolution
            | RowKind::Mutant
            | RowKind::Variant
            | RowKind::Attack => AuthorStage::Checks,
        };
        let hint = match (reason.kind, stage) {
            (RowKind::Clause, AuthorStage::Clauses) => {
                " (its effect may be none: replace it by a violation that changes a result, or drop it)".to_owned()
            }
            (RowKind::AblatedSolution, AuthorStage::Solution) => {
                " again, after these were asked for one that notices it: if no sentence of the instruction demands what these lines do, leave them out; else keep \
                 them, and let them do plainly what it demands"
                    .to_owned()
            }
            (RowKind::Mutant, _) => surviving_mutants(certificate, violated),
            _ => String::new(),
        };
        by_stage.push((stage, format!("{}{hint}", reason.message)));
    }
    let first = by_stage.iter().map(|(stage, _)| *stage).min()?;
    let problems = by_stage.into_iter().filter(|(stage, _)| *stage == first);
    Some((first, problems.map(|(_, problem)| problem).collect()))
}

/// Asks the author of the checks about attacks that pass them for the first time, and then the author of those that pass again.
pub(super) fn unstopped(survivors: &mut BTreeSet<String>, passing: Vec<WrongSolution>) -> Found {
    let script = |attack: &WrongSolution| attack.files.text("solve.sh").unwrap_or_default().to_owned();
    let (new, again): (Vec<_>, Vec<_>) =
        passing.into_iter().partition(|attack| !survivors.contains(&script(attack)));
    if new.is_empty() && again.is_empty() {
        return None;
    }
    if new.is_empty() {
        let told = again.iter().map(|attack| {
            format!(
                "this script, which is to violate “{}”, passes every check again, after these were strengthened because of it. Perhaps its results are right for every \
                 input that the instruction allows: leave it out, or make what is wrong plain:\n{}",
                attack.why,
                script(attack)
            )
        });
        return Some((AuthorStage::Attacks, told.collect()));
    }
    let mut shown: BTreeSet<String> = BTreeSet::new();
    let mut problems = Vec::new();
    for attack in &new {
        let script = script(attack);
        problems.push(format!(
            "this script passes every check, although it violates “{}”:\n{}",
            attack.why,
            without_repeated(&script, &shown)
        ));
        shown.extend(script.lines().map(str::to_owned));
        survivors.insert(script);
    }
    Some((AuthorStage::Checks, problems))
}

/// Whether a solution's final state differs from the reference's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Some,
    None,
}

/// A mistake that passes every check.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passing<'a> {
    pub(super) mistake: &'a Mistake,
    pub(super) effect: Effect,
}

/// Asks the author of the checks about mistakes that pass them for the first time, and then the author of those that pass again or have no
/// effect.
pub(super) fn overlooked(survivors: &mut BTreeSet<String>, passing: &[Passing<'_>]) -> Found {
    let told = |mistake: &Mistake, what: &str| format!("{}\n   {what}", mistake.told);
    let is_new = |one: &Passing<'_>| one.effect == Effect::Some && !survivors.contains(&one.mistake.identity);
    let (new, again): (Vec<&Passing<'_>>, Vec<_>) = passing.iter().partition(|one| is_new(one));
    if !new.is_empty() {
        survivors.extend(new.iter().map(|one| one.mistake.identity.clone()));
        let what = "Yet it passes every check. (If the instruction allows what it does, change nothing for it: then its author is asked to prove it.)";
        let problems = new.into_iter().map(|one| told(one.mistake, what));
        return Some((AuthorStage::Checks, problems.collect()));
    }
    let problems: Vec<_> = again
        .into_iter()
        .map(|one| match one.effect {
            Effect::None => told(one.mistake, "But it leaves what the reference leaves: replace it, or leave it out."),
            Effect::Some => told(
                one.mistake,
                "It passes every check again, after these were strengthened because of it. Perhaps the instruction allows what it does, or no machine that it allows has \
                 such an input: leave it out, or replace it by one whose result is plainly wrong.",
            ),
        })
        .collect();
    (!problems.is_empty()).then_some((AuthorStage::Mistakes, problems))
}

/// The stage that writes a part of a task.
fn stage_of(part: Part) -> AuthorStage {
    match part {
        Part::Environment => AuthorStage::Environment,
        Part::Solution => AuthorStage::Solution,
        Part::Instruction => AuthorStage::Instruction,
        Part::Tests => AuthorStage::Checks,
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

/// The mutants that pass, with the words that they violate, for an author who has to notice them.
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

/// The rows of the violations that passed the checks of an earlier version.
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

/// What a violation does, by the name of its row: another one may get the same name.
fn identity(clauses: &Clauses, row: &str) -> String {
    let all = clauses
        .clause
        .iter()
        .flat_map(|clause| clause.violation.iter().map(move |violation| (clause, violation)));
    let found = all.into_iter().find(|(clause, violation)| clause.row_name(violation) == row);
    found.map_or_else(|| row.to_owned(), |(_, violation)| format!("{row} {}", violation.identity()))
}

/// Whether a violation left the reference's own state.
fn without_effect(certificate: &Certificate, name: &str) -> bool {
    certificate.rows.iter().any(|row| row.kind == RowKind::Clause && row.name == name && !row.counts)
}

/// `script` without long runs of lines that `shown` has: attacks on one task share most of their text.
fn without_repeated(script: &str, shown: &BTreeSet<String>) -> String {
    /// A shorter run says where the other lines belong.
    const LONG: usize = 4;
    let mut text = String::new();
    let lines: Vec<_> = script.lines().collect();
    for run in lines.chunk_by(|one, other| shown.contains(*one) == shown.contains(*other)) {
        if run.len() >= LONG && shown.contains(run[0]) {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "[{} lines as in a script above]", run.len());
        } else {
            run.iter().for_each(|line| {
                let _ = writeln!(text, "{line}");
            });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{EnvironmentDigest, FileTree, Part, RejectReason, Row, TaskDigest};

    #[test]
    fn a_rejection_goes_to_the_stage_that_can_mend_it() {
        let mut survivors = BTreeSet::new();
        let violated = ["arithmetic: survives", "flag: killed"]
            .map(|name| (name.to_owned(), "Count.".to_owned()))
            .into();
        let mut check = |reasons: &[(RowKind, &str)], expect: (AuthorStage, &str)| {
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
            let (stage, told) =
                refused(&certificate, &Clauses::default(), &mut survivors, &violated).unwrap();
            assert_eq!((stage, told.join("; ").as_str()), expect, "{reasons:?}");
        };
        // The author of the checks wrote the file, whatever its finding mentions.
        let finding = "tests/test_outputs.py: a path below solution/";
        check(
            &[(RowKind::Lint, finding)],
            (AuthorStage::Checks, "tests/test_outputs.py: a path below solution/ passes"),
        );
        let ablated = (RowKind::AblatedSolution, "chmod");
        check(
            &[ablated, (RowKind::Clause, "count/zero")],
            (AuthorStage::Checks, "chmod passes; count/zero passes"),
        );
        let not_demanded = "chmod passes again, after these were asked for one that notices it: if no sentence of the instruction demands what these lines do, leave them \
                            out; else keep them, and let them do plainly what it demands";
        check(&[ablated, (RowKind::Variant, "spaces")], (AuthorStage::Solution, not_demanded));
        // It was kept, so that the checks have to notice it after all.
        check(&[ablated], (AuthorStage::Checks, "chmod passes"));
        check(
            &[(RowKind::Clause, "count/zero")],
            (
                AuthorStage::Clauses,
                "count/zero passes (its effect may be none: replace it by a violation that changes a result, or drop it)",
            ),
        );
        check(
            &[(RowKind::Mutant, "kill rate")],
            (AuthorStage::Checks, "kill rate passes\n   - arithmetic: survives (against “Count.”)"),
        );
    }

    #[test]
    fn passing_attacks_are_told_to_the_checks_author_and_then_to_their_own() {
        let mut survivors = BTreeSet::new();
        let mut check = |scripts: &[&str], expect: Option<(AuthorStage, usize)>| {
            let attack = |script: &&str| WrongSolution {
                name: "attack-1".to_owned(),
                why: "sorted".to_owned(),
                files: FileTree::from_iter([(
                    crate::model::RelPath::new("solve.sh").unwrap(),
                    crate::model::File::script((*script).to_owned()),
                )]),
            };
            let found = unstopped(&mut survivors, scripts.iter().map(attack).collect());
            assert_eq!(found.map(|(stage, problems)| (stage, problems.len())), expect, "{scripts:?}");
        };
        check(&[], None);
        check(&["one", "two"], Some((AuthorStage::Checks, 2)));
        check(&["one", "three"], Some((AuthorStage::Checks, 1)));
        check(&["one", "three"], Some((AuthorStage::Attacks, 2)));
        check(&[], None);
    }

    #[test]
    fn passing_mistakes_are_told_to_the_checks_author_and_then_to_their_own() {
        let mut survivors = BTreeSet::new();
        let mut check = |passing: &[(&str, Effect)], expect: Option<(AuthorStage, usize)>| {
            let mistake = |(identity, effect): &(&str, Effect)| {
                let wrong =
                    WrongSolution { name: "m".to_owned(), why: "x".to_owned(), files: FileTree::default() };
                (Mistake { wrong, identity: (*identity).to_owned(), told: "it".to_owned() }, *effect)
            };
            let mistakes: Vec<_> = passing.iter().map(mistake).collect();
            let passing: Vec<_> =
                mistakes.iter().map(|(mistake, effect)| Passing { mistake, effect: *effect }).collect();
            let found = overlooked(&mut survivors, &passing);
            assert_eq!(found.map(|(stage, problems)| (stage, problems.len())), expect);
        };
        let (one, two) = (("one", Effect::Some), ("two", Effect::Some));
        check(&[], None);
        check(&[("none", Effect::None)], Some((AuthorStage::Mistakes, 1)));
        check(&[one, ("none", Effect::None)], Some((AuthorStage::Checks, 1)));
        check(&[one, two], Some((AuthorStage::Checks, 1)));
        check(&[one, two], Some((AuthorStage::Mistakes, 2)));
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
        // A script of an attack; a violation that is no longer there; another one of the same name.
        check(&["cp a b", "count/gone ", &all_lines, "count/zero true"], &["count/all-lines"]);
        check(&[&all_lines, &zero], &["count/zero", "count/all-lines"]);
    }

    #[test]
    fn scripts_are_shown_without_what_was_shown_before() {
        let check = |script: &str, shown: &str, expect: &str| {
            let shown = shown.lines().map(str::to_owned).collect();
            assert_eq!(without_repeated(script, &shown), expect);
        };
        check("a\nb\n", "", "a\nb\n");
        check("a\nb\nc\nd\nnew\n", "a\nb\nc\nd\ne\n", "[4 lines as in a script above]\nnew\n");
        check("a\nnew\nb\nc", "a\nb\nc\n", "a\nnew\nb\nc\n");
    }
}
