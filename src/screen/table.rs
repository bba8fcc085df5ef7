//! The rows, and how each is judged.

use futures_util::future::join_all;

use super::cuts::cuts;
use crate::lint::{Rules, lint_draft};
use crate::model::{
    Certificate, Check, CheckClass, Draft, File, FileTree, Outcome, RejectReason, RelPath, Row, RowKind,
    Verdict,
};
use crate::store::Stage;
use crate::verify::{Act, Filed, Lab, LabError};

/// Bump when the table changes: certificates of the old table are then made anew.
pub const SCREEN: Stage = Stage { name: "certificate", version: 1 };

/// References that must pass, each in fresh containers.
const REFERENCES: u32 = 2;

/// What a row's trial must end with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expect {
    Pass,
    Fail,
    /// Fail, unless it left the very state that this passing trial left.
    FailUnlessEqual,
}

struct Planned<'a> {
    kind: RowKind,
    name: String,
    act: Act<'a>,
    repeat: u32,
    expect: Expect,
    /// What a rejection says of it.
    about: String,
}

/// Screens a draft. `directory` is its Harbor directory, `rules` the static rules.
pub async fn screen(
    lab: &Lab<'_>,
    rules: &Rules,
    draft: &Draft,
    filed: &Filed<'_>,
    directory: &FileTree,
) -> Result<Certificate, LabError> {
    let mut table = Table { rows: Vec::new(), checks: Vec::new(), reasons: Vec::new() };
    table.lint(rules, directory, draft);
    if !table.rejected() {
        match lab.build(filed).await? {
            Ok(()) => table.row(RowKind::Build, "1", true, ""),
            Err(log) => table.row(RowKind::Build, "1", false, &format!("the image does not build: {log}")),
        }
    }
    if !table.rejected() {
        let (untouched, _) = lab.trial(filed, Act::Nothing, 0).await?;
        table.untouched(&untouched.verdict);
    }
    let mut reference_state = None;
    if !table.rejected() {
        let planned = reference(draft, 1);
        let (record, log) = lab.trial(filed, planned.act, planned.repeat).await?;
        reference_state = log.state;
        table.trial(&planned, &record.verdict, false);
    }
    if !table.rejected() {
        let scripts: Vec<_> = cuts(draft.task.solution.text("solve.sh").unwrap_or_default())
            .into_iter()
            .map(|cut| (format!("{} of {}", cut.kept, cut.of), with_script(&draft.task.solution, cut.script)))
            .collect();
        let planned = rest(draft, &scripts);
        let trials = planned.iter().map(|row| lab.trial(filed, row.act, row.repeat));
        // All are waited for, so that a drained run commits what was under way.
        let ended = join_all(trials).await.into_iter().collect::<Result<Vec<_>, _>>()?;
        for (row, (record, log)) in planned.iter().zip(ended) {
            let equal = log.state.is_some() && log.state == reference_state;
            table.trial(row, &record.verdict, equal);
        }
    }
    Ok(Certificate {
        version: Certificate::VERSION,
        task: draft.task.name.to_string(),
        task_digest: crate::model::task_digest(directory),
        environment_digest: filed.environment_digest.clone(),
        tool: env!("CARGO_PKG_VERSION").to_owned(),
        certified: !table.rejected(),
        rows: table.rows,
        checks: table.checks,
        reasons: table.reasons,
    })
}

fn reference(draft: &Draft, number: u32) -> Planned<'_> {
    Planned {
        kind: RowKind::Reference,
        name: number.to_string(),
        act: Act::Solve(&draft.task.solution),
        repeat: number,
        expect: Expect::Pass,
        about: "the reference solution".to_owned(),
    }
}

fn rest<'a>(draft: &'a Draft, cuts: &'a [(String, FileTree)]) -> Vec<Planned<'a>> {
    let mut rows: Vec<_> = (2..=REFERENCES).map(|number| reference(draft, number)).collect();
    rows.push(Planned {
        kind: RowKind::SecondSolution,
        name: "1".to_owned(),
        act: Act::Solve(&draft.second),
        repeat: 0,
        expect: Expect::Pass,
        about: "the second solution".to_owned(),
    });
    rows.extend(draft.wrong.iter().map(|wrong| Planned {
        kind: RowKind::WrongSolution,
        name: wrong.name.clone(),
        act: Act::Solve(&wrong.files),
        repeat: 0,
        expect: Expect::Fail,
        about: format!("a solution that {}", wrong.why),
    }));
    rows.extend(cuts.iter().map(|(name, files)| Planned {
        kind: RowKind::TruncatedSolution,
        name: name.clone(),
        act: Act::Solve(files),
        repeat: 0,
        expect: Expect::FailUnlessEqual,
        about: format!("the reference cut after {name} statements"),
    }));
    rows
}

fn with_script(solution: &FileTree, script: String) -> FileTree {
    let mut files = solution.clone();
    if let Ok(path) = RelPath::new("solve.sh") {
        files.insert(path, File::script(script));
    }
    files
}

struct Table {
    rows: Vec<Row>,
    checks: Vec<Check>,
    reasons: Vec<RejectReason>,
}

impl Table {
    fn rejected(&self) -> bool {
        !self.reasons.is_empty()
    }

    fn row(&mut self, kind: RowKind, name: &str, ok: bool, note: &str) {
        self.push(Row {
            kind,
            name: name.to_owned(),
            outcome: None,
            passed_of: None,
            ok,
            note: note.to_owned(),
        });
    }

    fn push(&mut self, row: Row) {
        if !row.ok {
            let (kind, name, message) = (row.kind, row.name.clone(), row.note.clone());
            self.reasons.push(RejectReason { kind, name, message });
        }
        self.rows.push(row);
    }

    fn lint(&mut self, rules: &Rules, directory: &FileTree, draft: &Draft) {
        let findings = lint_draft(rules, directory, draft);
        if findings.is_empty() {
            self.row(RowKind::Lint, "all rules", true, "");
        }
        for finding in findings {
            let note = format!("{}: {} ({})", finding.place(), finding.message, finding.hint);
            self.row(RowKind::Lint, &finding.rule, !finding.stops(), &note);
        }
    }

    fn untouched(&mut self, verdict: &Verdict) {
        let classed = |passed| if passed { CheckClass::P2P } else { CheckClass::F2P };
        let checks = verdict.checks.iter();
        self.checks = checks
            .map(|check| Check { id: check.id.clone(), class: classed(check.passed), weight: 1.0 })
            .collect();
        let note = match verdict.outcome {
            Outcome::Fail if !verdict.checks.is_empty() => String::new(),
            Outcome::Pass => "every check passes although nothing was done".to_owned(),
            _ => format!("no verdict on the untouched environment: {}", verdict.cause),
        };
        self.push(trial_row(RowKind::Untouched, "1", verdict, note.is_empty(), note));
    }

    fn trial(&mut self, planned: &Planned<'_>, verdict: &Verdict, equal_to_reference: bool) {
        let fails = verdict.outcome == Outcome::Fail || verdict.outcome == Outcome::Timeout;
        let (ok, note) = match planned.expect {
            Expect::Pass if verdict.passed() => (true, String::new()),
            Expect::Pass => (false, format!("{} does not pass: {}", planned.about, why(verdict))),
            Expect::FailUnlessEqual if equal_to_reference => {
                (true, "leaves the reference's final state; not counted".to_owned())
            }
            Expect::Fail | Expect::FailUnlessEqual if fails => (true, String::new()),
            Expect::Fail | Expect::FailUnlessEqual if verdict.passed() => {
                (false, format!("{} passes every check", planned.about))
            }
            Expect::Fail | Expect::FailUnlessEqual => {
                (false, format!("no verdict on {}: {}", planned.about, verdict.cause))
            }
        };
        self.push(trial_row(planned.kind, &planned.name, verdict, ok, note));
    }
}

fn trial_row(kind: RowKind, name: &str, verdict: &Verdict, ok: bool, note: String) -> Row {
    let passed = verdict.checks.iter().filter(|check| check.passed).count();
    let passed_of = (!verdict.checks.is_empty()).then(|| {
        (u32::try_from(passed).unwrap_or(u32::MAX), u32::try_from(verdict.checks.len()).unwrap_or(u32::MAX))
    });
    Row { kind, name: name.to_owned(), outcome: Some(verdict.outcome), passed_of, ok, note }
}

fn why(verdict: &Verdict) -> String {
    let failed: Vec<_> =
        verdict.checks.iter().filter(|check| !check.passed).map(|check| check.id.as_str()).collect();
    if failed.is_empty() { verdict.cause.clone() } else { format!("{} fail", failed.join(", ")) }
}
