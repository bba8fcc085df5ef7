//! Rows that show that a task's verdict depends on nothing but the work, e.g. not on the clock.

use super::table::{Expect, Planned, Table, fails};
use super::target::{Extent, Only, ScreeningTarget};
use crate::model::{FileTree, RelPath, Rigor, RowKind, followed_by};
use crate::syntax::shell_word;
use crate::verify::{Act, Condition, Fingerprint, TrialError, TrialRunner, clock_can_move};

/// Trials of the reference for the row `flake`. They find a verdict that flips one time in five
/// with a probability of 99 %.
pub(super) const FLAKE_REFERENCES: u32 = 20;

/// Plans trials of the reference under ordinary and special conditions, and one of the second
/// solution.
pub(super) fn plan<'a>(
    target: &ScreeningTarget<'a>,
    extent: Extent,
    only: &Only,
    table: &mut Table,
) -> Vec<Planned<'a>> {
    let Some(solution) = target.task.solution() else { return Vec::new() };
    let mut rows = Vec::new();
    let references = match only {
        Only::Rows(_) if only.wants_row(RowKind::Reference, "flake") => FLAKE_REFERENCES,
        Only::Rows(_) => 1,
        Only::All => extent.references,
    };
    rows.extend((2..=references).map(|number| reference(solution, number)));
    for condition in conditions(extent.rigor, only) {
        if !only.wants_row(RowKind::Reference, condition.name()) {
            continue;
        }
        match target.inapplicable(condition) {
            Some(why) => table.skipped(RowKind::Reference, condition.name(), why),
            None => rows.push(Planned {
                name: condition.name().to_owned(),
                condition,
                repeat: 0,
                about: format!("the reference solution ({})", about(condition)),
                ..reference(solution, 1)
            }),
        }
    }
    if let Some(second) = target.second.filter(|_| only.wants(RowKind::SecondSolution)) {
        rows.push(Planned {
            kind: RowKind::SecondSolution,
            act: Act::Solve(second),
            repeat: 0,
            about: "the second solution".to_owned(),
            ..reference(solution, 1)
        });
    }
    rows
}

/// An ordinary trial of the reference.
pub(super) fn reference(solution: &FileTree, number: u32) -> Planned<'_> {
    Planned {
        kind: RowKind::Reference,
        name: number.to_string(),
        act: Act::Solve(solution),
        condition: Condition::Ordinary,
        repeat: number,
        expect: Expect::Pass,
        about: "the reference solution".to_owned(),
    }
}

/// An error if this host cannot make a requested row. A row that is merely left out would look as
/// if it held.
pub(super) fn require_tools(rigor: Rigor, only: &Only) -> Result<(), TrialError> {
    let wanted = conditions(rigor, only).into_iter().any(|condition| {
        condition == Condition::Clock && only.wants_row(RowKind::Reference, condition.name())
    });
    if !wanted {
        return Ok(());
    }
    clock_can_move().map_err(|why| TrialError::MissingTool { condition: Condition::Clock.name(), why })
}

fn conditions(rigor: Rigor, only: &Only) -> Vec<Condition<'static>> {
    match (only, rigor) {
        (Only::Rows(_), _) | (Only::All, Rigor::Full) => Condition::SPECIAL.to_vec(),
        (Only::All, Rigor::Standard) => vec![Condition::Shuffled],
        (Only::All, Rigor::Quick) => Vec::new(),
    }
}

fn about(condition: Condition<'_>) -> &'static str {
    match condition {
        Condition::Ordinary => "as ever",
        Condition::Shuffled => "checks in another order",
        Condition::Offline => "without network",
        Condition::HalfCpu => "at half the processor time",
        Condition::Clock => "the clock a year ahead",
        Condition::Rebuilt => "the image built anew",
        Condition::FirstFailure { .. } => "up to the first failure",
    }
}

/// Adds the row `inputs`: does the reference leave its given inputs unchanged? An input may change
/// if the reference fails with the original restored.
pub(super) async fn inputs(
    runner: &TrialRunner<'_>,
    target: &ScreeningTarget<'_>,
    solution: &FileTree,
    reference: &Fingerprint,
    untouched: &Fingerprint,
    table: &mut Table,
) -> Result<(), TrialError> {
    let edited: Vec<_> = given(target, reference, untouched)
        .into_iter()
        .filter(|path| match (reference.get(path), untouched.get(path)) {
            (Some(now), Some(then)) => now.hash != then.hash,
            (Some(now), None) => now.edited,
            (None, then) => then.is_some(),
        })
        .collect();
    let (mut demanded, mut unasked) = (Vec::new(), Vec::new());
    for path in edited {
        let is_demanded = match restored(target, solution, &path) {
            Some(files) if !called_input(&path) => {
                let act = Act::Solve(&files);
                let likely = Condition::FirstFailure { likely: &[], known: &[] };
                let row = (RowKind::Inputs, "unmodified");
                fails(&target.trial(runner, row, act, likely, 0).await?.0.verdict)
            }
            _ => false,
        };
        if is_demanded { demanded.push(path) } else { unasked.push(path) }
    }
    let (ok, note) = match (demanded.as_slice(), unasked.as_slice()) {
        ([], []) => (true, String::new()),
        (files, []) => (true, format!("the tests fail without the changes of {}", files.join(", "))),
        (_, files) => (false, format!("the reference solution changes given inputs: {}", files.join(", "))),
    };
    table.row(RowKind::Inputs, "unmodified", ok, &note);
    Ok(())
}

/// The reference, after which the given file `path` is restored.
fn restored(target: &ScreeningTarget<'_>, solution: &FileTree, path: &str) -> Option<FileTree> {
    const RESTORED: &str = "restored";
    let given = target.task.tests().get(&format!("pristine{path}"))?;
    let place = shell_word(path);
    let after = format!("mkdir -p \"$(dirname {place})\"\ncat \"$(dirname \"$0\")/{RESTORED}\" > {place}");
    let mut files = followed_by(solution, &after)?;
    files.insert(RelPath::new(RESTORED).ok()?, given.clone());
    Some(files)
}

/// The inputs: data files with a pristine copy among the tests, and files that are called inputs.
fn given(target: &ScreeningTarget<'_>, reference: &Fingerprint, untouched: &Fingerprint) -> Vec<String> {
    let pristine = target.task.tests().iter().filter_map(|(path, _)| path.as_str().strip_prefix("pristine/"));
    let mut given: Vec<String> =
        pristine.map(|path| format!("/{path}")).filter(|path| is_data(path)).collect();
    let named = reference.keys().chain(untouched.keys());
    given.extend(named.filter(|path| called_input(path)).cloned());
    given.sort();
    given.dedup();
    given
}

/// Whether a file holds data. Programs are no inputs, since a task may ask to repair them.
fn is_data(path: &str) -> bool {
    const DATA: [&str; 9] = [".csv", ".tsv", ".json", ".jsonl", ".log", ".txt", ".xml", ".db", ".sqlite"];
    DATA.iter().any(|end| path.ends_with(end))
}

fn called_input(path: &str) -> bool {
    path.rsplit('/').take(2).any(|part| {
        part == "in" || part == "inputs" || part.split(['.', '-', '_']).any(|word| word == "input")
    })
}
