//! The complete screening of one task, cheapest rows first.

use std::time::{Duration, Instant};

use futures_util::future::join_all;

use super::damage::{Damaged, SERVED};
use super::leak::leak;
use super::likely::Places;
use super::rates::rates;
use super::soundness;
use super::table::{Expect, Planned, Table, Unmet};
use super::target::{Ends, Extent, Only, ScreeningTarget};
use super::unsteady::Unsteady;
use super::{battery, clauses, forms};
use crate::model::{
    Certificate, EquivalentMutant, File, FileTree, RelPath, Rigor, Row, RowKind, Seed, ShellOutcome, Tally,
    Timings, Verdict,
};
use crate::mutate::{Mutant, ablations, cuts, mutants, sample};
use crate::store::Stage;
use crate::verify::{
    Act, Condition, Fingerprint, KnownState, NOT_APPLICABLE, TrialError, TrialLog, TrialRunner, well_formed,
};

/// Certificates.
pub const SCREEN: Stage = Stage::computed("certificate");

/// An edited reference may take this many times as long as the reference, since the machine may be
/// busier.
const EDIT_FACTOR: u32 = 10;
/// Minimum time limit of an edited reference. Most references take less than a second, and such a
/// short time is no measure.
const EDIT_AT_LEAST: Duration = Duration::from_secs(60);
/// A kill rate over fewer counted mutants rejects no task, unless no mutant is left to try.
const ENOUGH_MUTANTS: u32 = 12;
/// Mutants that are tried for each mutant that should count. About every second one leaves no
/// answer, or the correct one.
const MUTANTS_PER_COUNTED: usize = 3;
/// Mutants that run between two looks at the time budget.
const BATCH: usize = 8;
/// A kill rate over fewer mutants never rejects a task.
const FEWEST_MUTANTS: u32 = 3;
/// Minimum kill rate. A verifier that accepts more than one in seven wrong answers is rejected.
const MIN_KILL_RATE: f64 = 0.85;

/// The result of screening, and its cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Screening {
    pub certificate: Certificate,
    pub timings: Timings,
    /// A condition that this host cannot make, e.g. a moved clock. Its row rejects the task.
    pub unmet: Option<Unmet>,
}

impl Screening {
    /// The certificate, if every row ran. A row that this host cannot make says nothing about the
    /// task, and no author can mend it. So such a certificate must not be stored.
    pub fn conclusive(self) -> Result<(Certificate, Timings), TrialError> {
        match self.unmet {
            Some(unmet) => Err(unmet.into()),
            None => Ok((self.certificate, self.timings)),
        }
    }
}

/// Makes the certificate, and all rows after lint and build, which `table` already has.
pub(super) async fn run(
    runner: &TrialRunner<'_>,
    target: &ScreeningTarget<'_>,
    extent: Extent,
    only: &Only,
    mut table: Table,
) -> Result<Screening, TrialError> {
    // Rows that were requested by name are all made.
    let full =
        Extent { rigor: extent.rigor, budget: extent.budget, ends: extent.ends, ..Extent::of(Rigor::Full) };
    let extent = if matches!(only, Only::Rows(_)) { full } else { extent };
    if !table.rejected() {
        soundness::require_tools(extent.rigor, only)?;
        trials(runner, target, extent, only, &mut table).await?;
        if matches!(only, Only::All) {
            table.unprobed();
        }
    }
    let certified = !table.rejected();
    let clauses = clauses::records(target.clauses, &table);
    let limits = target.task.limits();
    let timings = Timings {
        version: Timings::VERSION,
        task: target.task.name().to_owned(),
        task_digest: target.digest.clone(),
        agent_timeout_sec: limits.agent_timeout_sec,
        memory_mb: limits.memory_mb,
        cost: target.meter.cost(),
        rows: table.timings,
    };
    let certificate = Certificate {
        version: Certificate::VERSION,
        task: target.task.name().to_owned(),
        task_digest: target.digest.clone(),
        environment_digest: target.task.environment_digest().clone(),
        tool: env!("CARGO_PKG_VERSION").to_owned(),
        certified,
        rigor: extent.rigor,
        judging: target.task.judging(),
        left_out: u32::try_from(table.left_out).unwrap_or(u32::MAX),
        clauses,
        uncovered: clauses::uncovered(target.clauses, target.instruction),
        rates: clauses::with_wrong(rates(&table.rows), target.clauses, &table.rows),
        rows: table.rows,
        checks: table.checks,
        reasons: table.reasons,
    };
    Ok(Screening { certificate, timings, unmet: table.unmet })
}

async fn trials(
    runner: &TrialRunner<'_>,
    target: &ScreeningTarget<'_>,
    extent: Extent,
    only: &Only,
    table: &mut Table,
) -> Result<(), TrialError> {
    let started = Instant::now();
    let (record, untouched) =
        target.trial(runner, (RowKind::Untouched, "1"), Act::Nothing, Condition::Ordinary, 0).await?;
    table.untouched(&record.verdict, &untouched, target.task.weights());
    let first_verdict = record.verdict;
    if table.rejected() {
        return Ok(());
    }
    let Some(solution) = target.task.solution() else {
        table.skipped(RowKind::Reference, "1", "the task brings no solution, so nothing is known of it");
        return battery::attacks(runner, target, extent.rigor, only, table).await;
    };
    let planned = soundness::reference(solution, 1);
    let (record, reference) = planned.trial(runner, target).await?;
    table.trial(&planned, &record.verdict, &reference, false);
    if table.rejected() {
        return Ok(());
    }
    let script = solution.text("solve.sh").unwrap_or_default();
    let partial = partial(script, solution, extent, only);
    let mut planned = soundness::plan(target, extent, only, table);
    planned.extend(target.wrong.iter().filter(|_| only.wants(RowKind::WrongSolution)).map(|wrong| Planned {
        kind: RowKind::WrongSolution,
        name: wrong.name.clone(),
        act: Act::Solve(&wrong.files),
        condition: clauses::wrong(target.clauses, &wrong.name),
        expect: Expect::Fail,
        repeat: 0,
        about: format!("a solution that {}", wrong.why),
    }));
    let violations = clauses::drawn(target, solution, extent, only, table);
    let within = within(&reference);
    planned.extend(violations.iter().map(|violation| violation.planned(within)));
    let fingerprints = [&reference.fingerprint, &untouched.fingerprint];
    let damaged = Damaged::of(target, solution, fingerprints, extent.rigor, only, table);
    planned.extend(damaged.planned(within));
    planned.extend(partial.iter().map(|(kind, name, files, about)| Planned {
        kind: *kind,
        name: name.clone(),
        act: Act::Edit { solution: files, within },
        // One failed check is enough to know that these solutions fail.
        condition: Condition::FirstFailure { likely: &[], known: &[] },
        expect: Expect::FailUnlessEqual,
        repeat: 0,
        about: about.clone(),
    }));
    // An edited solution may leave the state of the reference, or of the untouched task. Then the
    // results are known, and no tests run.
    let known: Vec<KnownState> = [(&first_verdict, &untouched), (&record.verdict, &reference)]
        .into_iter()
        .filter_map(|(verdict, log)| KnownState::of(verdict, log))
        .collect();
    for row in &mut planned {
        if let Condition::FirstFailure { known: states, .. } = &mut row.condition {
            *states = &known;
        }
    }
    let over = |table: &Table| extent.ends == Ends::Rejected && table.rejected();
    // The slow conditions run last, e.g. a rebuilt image or half the processors. An author who is
    // sent back earlier need not wait for them.
    let later: Vec<_> = match extent.ends {
        Ends::Complete => Vec::new(),
        Ends::Rejected => planned.extract_if(.., |row| is_of_correct_work_under_conditions(row)).collect(),
    };
    let expected = planned.len() + later.len() + others(target, extent, only);
    target.expect(runner, expected);
    let unsteady = make(runner, target, &planned, &reference, Unsteady::default(), table).await?;
    if over(table) {
        return Ok(());
    }
    let unsteady = make(runner, target, &later, &reference, unsteady, table).await?;
    if over(table) {
        return Ok(());
    }
    if only.wants(RowKind::Inputs) && extent.rigor != Rigor::Quick {
        soundness::inputs(runner, target, solution, &reference.fingerprint, &untouched.fingerprint, table)
            .await?;
    }
    if only.wants(RowKind::Leak) && (extent.rigor == Rigor::Full || matches!(only, Only::Rows(_))) {
        leak(runner, target, &reference.fingerprint, &untouched.fingerprint, table).await?;
    }
    if over(table) {
        return Ok(());
    }
    if extent.rigor == Rigor::Quick && matches!(only, Only::All) {
        return Ok(());
    }
    forms::variants(runner, target, only, table).await?;
    if over(table) {
        return Ok(());
    }
    // Attacks come before mutants. A time budget may leave out mutants, but no attack.
    battery::attacks(runner, target, extent.rigor, only, table).await?;
    if over(table) {
        return Ok(());
    }
    if only.wants(RowKind::Mutant) {
        let states = States {
            reference: &reference.fingerprint,
            known: &known,
            reference_canonical_form: reference.canonical_form.as_deref(),
            untouched: &untouched.fingerprint,
            unsteady: &unsteady,
            equivalent: &target.clauses.equivalent,
            within,
        };
        let deadline = extent.budget.map(|budget| started + budget);
        mutation(runner, target, solution, extent, deadline, &states, table).await?;
    }
    Ok(())
}

/// The number of trials after those of correct, partial and wrong solutions, as far as it is known
/// at the start.
fn others(target: &ScreeningTarget<'_>, extent: Extent, only: &Only) -> usize {
    if extent.rigor == Rigor::Quick && matches!(only, Only::All) {
        return 0;
    }
    let attacks = battery::trials(target, extent.rigor, only);
    let variants = usize::from(only.wants(RowKind::Variant) && !target.variants.is_empty());
    let mutants = if only.wants(RowKind::Mutant) { extent.mutants } else { 0 };
    attacks + variants + mutants
}

/// The time limit of an edited reference. Many edits loop for ever, and a task may allow an hour.
///
/// The limit is in the key of the edit's trial, and hosts measure different times. So it is
/// [`EDIT_AT_LEAST`] times a power of two, e.g. 60 s for every reference that takes less than 6 s.
fn within(reference: &TrialLog) -> Duration {
    let taken = Duration::try_from_secs_f64(reference.used.seconds).unwrap_or_default();
    let mut limit = EDIT_AT_LEAST;
    while limit < taken.saturating_mul(EDIT_FACTOR) {
        limit = limit.saturating_mul(2);
    }
    limit
}

/// Whether `row` tries correct work under unusual circumstances, e.g. half the processors.
fn is_of_correct_work_under_conditions(row: &Planned<'_>) -> bool {
    row.expect == Expect::Pass
        && (row.kind == RowKind::SecondSolution || row.condition != Condition::Ordinary)
}

/// Makes the trials of `planned`, and their rows. If an ordinary run of the reference left another
/// state than the first one, returns the difference. Otherwise returns `unsteady`.
async fn make(
    runner: &TrialRunner<'_>,
    target: &ScreeningTarget<'_>,
    planned: &[Planned<'_>],
    reference: &TrialLog,
    mut unsteady: Unsteady,
    table: &mut Table,
) -> Result<Unsteady, TrialError> {
    let trials = planned.iter().map(|row| row.trial(runner, target));
    // All trials are awaited, so that an interrupted run commits those in progress.
    for (row, ended) in planned.iter().zip(join_all(trials).await) {
        let (record, log) = match ended {
            Ok(ended) => ended,
            Err(TrialError::Unmet { condition, why }) => {
                table.could_not_run(row, Unmet { condition, why });
                continue;
            }
            Err(error) => return Err(error),
        };
        let is_damaged = row.kind == RowKind::WrongSolution && matches!(row.act, Act::Edit { .. });
        if is_damaged && record.exit == Some(ShellOutcome::Exited(NOT_APPLICABLE)) {
            table.skipped(row.kind, &row.name, SERVED);
            continue;
        }
        let equal = log.state.is_some() && log.state == reference.state;
        if row.kind == RowKind::Reference && row.condition == Condition::Ordinary && !equal {
            unsteady = Unsteady::of(&reference.fingerprint, &log.fingerprint);
        }
        let is_unstopped = row.expect == Expect::FailUnlessEqual && record.verdict.passed();
        let equal = equal || (is_unstopped && unsteady.explains(&log.fingerprint, &reference.fingerprint));
        table.trial(row, &record.verdict, &log, equal);
    }
    Ok(unsteady)
}

/// Cuts and ablations of the reference, each with its files and the message of a rejection.
fn partial(
    script: &str,
    solution: &FileTree,
    extent: Extent,
    only: &Only,
) -> Vec<(RowKind, String, FileTree, String)> {
    let mut found = Vec::new();
    if only.wants(RowKind::TruncatedSolution) {
        found.extend(cuts(script).into_iter().rev().take(extent.cuts).map(|cut| {
            let name = format!("{} of {}", cut.kept, cut.of);
            let about = format!("the reference cut after {name} statements");
            (RowKind::TruncatedSolution, name, with_script(solution, cut.script), about)
        }));
    }
    if only.wants(RowKind::AblatedSolution) {
        found.extend(ablations(script).into_iter().take(extent.ablations).map(|ablation| {
            let name = format!("solve.sh:{} {}", ablation.line, ablation.statement);
            let about = format!("the reference without `{}`", ablation.whole);
            (RowKind::AblatedSolution, name, with_script(solution, ablation.script), about)
        }));
    }
    found
}

/// States and lists that mutants are compared with.
struct States<'a> {
    reference: &'a Fingerprint,
    /// States with known results.
    known: &'a [KnownState],
    reference_canonical_form: Option<&'a str>,
    untouched: &'a Fingerprint,
    unsteady: &'a Unsteady,
    /// Mutants that violate nothing.
    equivalent: &'a [EquivalentMutant],
    /// Time limit of a mutant.
    within: Duration,
}

/// Tries mutants of the reference until enough of them count. Each survivor shows a missing check.
/// Only a rate over enough mutants rejects the task.
async fn mutation(
    runner: &TrialRunner<'_>,
    target: &ScreeningTarget<'_>,
    solution: &FileTree,
    extent: Extent,
    deadline: Option<Instant>,
    states: &States<'_>,
    table: &mut Table,
) -> Result<(), TrialError> {
    let all = mutants(solution);
    let chosen: Vec<Mutant> = sample(all, extent.mutants.saturating_mul(MUTANTS_PER_COUNTED), Seed(0));
    let late = || deadline.is_some_and(|deadline| Instant::now() >= deadline);
    let places = Places::of(target.clauses, solution, table);
    let mut left = chosen.as_slice();
    let mut counted = 0;
    while counted < extent.mutants && !left.is_empty() {
        if late() {
            table.left_out += (extent.mutants - counted).min(left.len());
            break;
        }
        let wanted = extent.mutants - counted;
        let wanted = if deadline.is_some() { wanted.min(BATCH) } else { wanted };
        let (batch, rest) = left.split_at(wanted.min(left.len()));
        left = rest;
        target.expect(runner, wanted);
        let within = states.within;
        let trials = batch.iter().map(async |mutant| {
            let act = Act::Edit { solution: &mutant.files, within };
            let likely = places.likely(&mutant.place);
            let condition = Condition::FirstFailure { likely: &likely, known: states.known };
            target.trial(runner, (RowKind::Mutant, &mutant.name()), act, condition, 0).await
        });
        let ended = join_all(trials).await.into_iter().collect::<Result<Vec<_>, _>>()?;
        for (mutant, (record, log)) in batch.iter().zip(ended) {
            counted += usize::from(push_mutant(mutant, &record.verdict, &log, states, table));
        }
    }
    let killed = rates(&table.rows).killed;
    if let Some(rate) = too_low(killed, left.is_empty()) {
        let note = format!(
            "{} of {} well-formed wrong answers pass, a kill rate of {rate:.2}, where {MIN_KILL_RATE} is wanted; each surviving mutant of the reference shows a check \
             that is missing",
            killed.counted - killed.good,
            killed.counted
        );
        // This row is no mutant, so the rate excludes it.
        table.verdict(RowKind::Mutant, "kill rate", &note);
    }
    Ok(())
}

/// The kill rate, if it rejects the task. `exhausted` means that no mutant is left to try.
fn too_low(killed: Tally, exhausted: bool) -> Option<f64> {
    let enough = if exhausted { FEWEST_MUTANTS } else { ENOUGH_MUTANTS };
    killed.rate().filter(|rate| killed.counted >= enough && *rate < MIN_KILL_RATE)
}

/// Adds the row of a mutant. Returns whether the mutant counts.
fn push_mutant(
    mutant: &Mutant,
    verdict: &Verdict,
    log: &TrialLog,
    states: &States<'_>,
    table: &mut Table,
) -> bool {
    // Two unknown forms are not equal.
    let equal = (log.canonical_form.is_some()
        && log.canonical_form.as_deref() == states.reference_canonical_form)
        || (verdict.passed() && states.unsteady.explains(&log.fingerprint, states.reference));
    let formed = well_formed(&log.fingerprint, states.reference, states.untouched);
    let name = mutant.name();
    let listed = || states.equivalent.iter().find(|known| known.mutant == name);
    let (counts, equivalent, note) = match (equal, formed, verdict.passed()) {
        (true, _, _) => (false, false, "leaves the reference's final state".to_owned()),
        (_, false, _) => (false, false, "leaves no complete answer".to_owned()),
        (_, _, true) => match listed() {
            Some(known) => (false, true, format!("set aside as equivalent: {}", known.why)),
            None => (true, false, "survives: a check is missing".to_owned()),
        },
        _ => (true, false, String::new()),
    };
    let row = table.trial_row(RowKind::Mutant, &name, verdict, true, &note);
    table.push_timed(Row { counts, equivalent, ..row }, log);
    counts
}

fn with_script(solution: &FileTree, script: String) -> FileTree {
    let mut files = solution.clone();
    if let Ok(path) = RelPath::new("solve.sh") {
        files.insert(path, File::script(script));
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Outcome;
    use crate::mutate::Operator;
    use crate::verify::FileFingerprint;

    #[test]
    fn a_low_kill_rate_rejects_once_no_more_can_be_counted() {
        let check = |good: u32, counted: u32, exhausted: bool, expect: bool| {
            let found = too_low(Tally { good, counted }, exhausted);
            assert_eq!(found.is_some(), expect, "{good} of {counted}, {exhausted}: {found:?}");
        };
        check(0, 11, true, true);
        check(0, 3, true, true);
        check(0, 2, true, false);
        check(11, 11, true, false);
        // The time budget ended the row.
        check(0, 11, false, false);
        check(0, 12, false, true);
        check(11, 12, false, false);
        check(0, 0, true, false);
    }

    #[test]
    fn an_edit_may_take_at_least_ten_times_as_long_as_the_reference() {
        let check = |seconds: f64, expect: u64| {
            let mut reference = TrialLog::default();
            reference.used.seconds = seconds;
            assert_eq!(within(&reference), Duration::from_secs(expect), "{seconds}");
        };
        check(0.0, 60);
        check(0.4, 60);
        check(6.0, 60);
        check(6.1, 120);
        check(30.0, 480);
        check(31.0, 480);
        check(f64::NAN, 60);
    }

    #[test]
    fn a_mutant_counts_unless_its_state_is_known_to_mean_the_same() {
        let fingerprint = |text: &str| {
            Fingerprint::from([("/app/a.json".to_owned(), FileFingerprint::of("/a.json", text.as_bytes()))])
        };
        let reference = fingerprint("{\"a\": 1}");
        let check_known =
            |outcome, known: &str, canonical_form: Option<&str>, of_reference: Option<&str>, counts: bool| {
                let states = States {
                    reference: &reference,
                    known: &[],
                    reference_canonical_form: of_reference,
                    untouched: &Fingerprint::new(),
                    unsteady: &Unsteady::default(),
                    equivalent: &[EquivalentMutant {
                        mutant: known.to_owned(),
                        why: "no input has it".to_owned(),
                    }],
                    within: EDIT_AT_LEAST,
                };
                let log = TrialLog {
                    canonical_form: canonical_form.map(str::to_owned),
                    fingerprint: fingerprint("{\"a\":1}"),
                    ..TrialLog::default()
                };
                let mutant = Mutant {
                    operator: Operator::ALL[0],
                    place: "solve.sh:1".to_owned(),
                    region: String::new(),
                    what: "x".to_owned(),
                    uninformative: None,
                    files: FileTree::default(),
                };
                let verdict = Verdict::without_checks(outcome, "");
                let mut table = Table::default();
                assert_eq!(
                    push_mutant(&mutant, &verdict, &log, &states, &mut table),
                    counts,
                    "{canonical_form:?} {known}"
                );
                let Row { equivalent, note, .. } = table.rows.remove(0);
                (equivalent, note)
            };
        let check = |canonical_form, of_reference, counts| {
            let (equivalent, _) = check_known(Outcome::Pass, "another", canonical_form, of_reference, counts);
            assert!(!equivalent, "{canonical_form:?}");
        };
        check(Some("a"), Some("a"), false);
        // The files have equal canonical forms, but a mode or a link differs.
        check(Some("b"), Some("a"), true);
        check(None, None, true);
        check(None, Some("a"), true);
        // The mutant is listed as equivalent. It must not fail a check.
        let name = format!("{} solve.sh:1: x", Operator::ALL[0].as_str());
        let set_aside = check_known(Outcome::Pass, &name, None, None, false);
        assert_eq!(set_aside, (true, "set aside as equivalent: no input has it".to_owned()));
        let (equivalent, _) = check_known(Outcome::Fail, &name, None, None, true);
        assert!(!equivalent);
    }
}
