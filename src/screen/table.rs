//! The rows of a certificate, and the message for each failed row.

use std::collections::BTreeMap;

use crate::model::{
    Check, CheckClass, CheckId, Outcome, Part, RejectReason, Row, RowKind, RowTiming, Verdict,
};
use crate::verify::{Act, Condition, Fingerprint, TrialError, TrialLog, TrialRecord, TrialRunner};

use super::repair::repair;
use super::seen::seen;
use super::target::ScreeningTarget;

/// The expected result of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expect {
    Pass,
    Fail,
    /// It must fail, unless its final state equals the reference's.
    FailUnlessEqual,
}

/// A trial that is to be made, with its row.
#[derive(Clone, Debug)]
pub(super) struct Planned<'a> {
    pub(super) kind: RowKind,
    pub(super) name: String,
    pub(super) act: Act<'a>,
    pub(super) condition: Condition<'a>,
    pub(super) repeat: u32,
    pub(super) expect: Expect,
    /// The first words of its rejection message.
    pub(super) about: String,
}

impl Planned<'_> {
    /// Runs the trial, or reads its record.
    pub(super) async fn trial(
        &self,
        runner: &TrialRunner<'_>,
        target: &ScreeningTarget<'_>,
    ) -> Result<(TrialRecord, TrialLog), TrialError> {
        target.trial(runner, (self.kind, &self.name), self.act, self.condition, self.repeat).await
    }
}

/// The rows so far, and the reasons for rejection.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) rows: Vec<Row>,
    pub(super) checks: Vec<Check>,
    pub(super) reasons: Vec<RejectReason>,
    pub(super) timings: Vec<RowTiming>,
    /// Why correct work may not pass here. Empty if no reason is known.
    pub(super) hint: String,
    /// The files after the untouched trial, once it was made.
    pub(super) untouched: Option<Fingerprint>,
    /// Number of trials that were left out for lack of time.
    pub(super) left_out: usize,
    /// The checks that failed in a trial that should fail.
    pub(super) noticed: BTreeMap<(RowKind, String), Vec<CheckId>>,
    /// A condition that this host could not make.
    pub(super) unmet: Option<Unmet>,
}

/// A condition that a host cannot make in the task's image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmet {
    pub condition: &'static str,
    pub why: String,
}

impl From<Unmet> for TrialError {
    fn from(Unmet { condition, why }: Unmet) -> Self {
        Self::Unmet { condition, why }
    }
}

impl Table {
    pub(super) fn rejected(&self) -> bool {
        !self.reasons.is_empty()
    }

    /// Adds a row that has no trial.
    pub(super) fn row(&mut self, kind: RowKind, name: &str, ok: bool, note: &str) {
        self.push(plain(kind, name, ok, note));
    }

    /// Adds the row of a static finding in a file of `part`.
    pub(super) fn lint_row(&mut self, rule: &str, ok: bool, note: &str, part: Part) {
        if !ok {
            let (_, ask) = repair(RowKind::Lint, rule);
            self.reasons.push(RejectReason {
                kind: RowKind::Lint,
                name: rule.to_owned(),
                message: note.to_owned(),
                part,
                ask: ask.to_owned(),
            });
        }
        self.rows.push(plain(RowKind::Lint, rule, ok, note));
    }

    /// Adds a row that rejects because of several other rows, e.g. the kill rate.
    pub(super) fn verdict(&mut self, kind: RowKind, name: &str, note: &str) {
        self.push(Row { counts: false, ..plain(kind, name, false, note) });
    }

    /// Adds a row without a result. `why` is the reason.
    pub(super) fn skipped(&mut self, kind: RowKind, name: &str, why: &str) {
        self.push(Row { counts: false, ..plain(kind, name, true, why) });
    }

    /// Adds the row of a trial that cannot be made in the task's image. It rejects the task, since
    /// a certificate must not omit a trial.
    pub(super) fn could_not_run(&mut self, planned: &Planned<'_>, unmet: Unmet) {
        let message = format!("{} could not run: {}", planned.about, unmet.why);
        self.unmet.get_or_insert(unmet);
        self.reasons.push(RejectReason {
            kind: planned.kind,
            name: planned.name.clone(),
            message: message.clone(),
            part: Part::Environment,
            ask: "let the image have a dynamic `date` and a C library no older than this host's, or screen on a host with an older one"
                .to_owned(),
        });
        self.rows.push(Row { counts: false, ..plain(planned.kind, &planned.name, false, &message) });
    }

    pub(super) fn push(&mut self, row: Row) {
        if !row.ok {
            let (kind, name, message) = (row.kind, row.name.clone(), row.note.clone());
            let (part, ask) = repair(kind, &name);
            self.reasons.push(RejectReason { kind, name, message, part, ask: ask.to_owned() });
        }
        self.rows.push(row);
    }

    /// Adds the row of a trial, with its cost.
    pub(super) fn push_timed(&mut self, row: Row, log: &TrialLog) {
        self.timings.push(RowTiming {
            kind: row.kind,
            name: row.name.clone(),
            seconds: log.seconds,
            act_seconds: log.used.seconds,
            peak_memory: log.used.peak_memory,
            seen: (!row.ok).then(|| seen(log, self.untouched.as_ref())),
        });
        self.push(row);
    }

    /// Adds a note if no wrong answer was tried. The certificate then shows that right work passes,
    /// but not that wrong work fails.
    pub(super) fn unprobed(&mut self) {
        let is_probe = |row: &Row| {
            let kind = matches!(row.kind, RowKind::WrongSolution | RowKind::Clause | RowKind::Mutant);
            kind && row.counts
        };
        if !self.rejected() && !self.rows.iter().any(is_probe) {
            let why =
                "nothing was probed: no mutant counts, and no violation and no wrong solution was tried";
            self.skipped(RowKind::Mutant, "probes", why);
        }
    }

    /// Adds the untouched trial. Its verdict puts the checks into classes.
    pub(super) fn untouched(&mut self, verdict: &Verdict, log: &TrialLog, weights: &BTreeMap<CheckId, f64>) {
        let classed = |passed| if passed { CheckClass::P2P } else { CheckClass::F2P };
        let checks = verdict.checks.iter();
        self.checks = checks
            .map(|check| Check {
                id: check.id.clone(),
                class: classed(check.passed),
                weight: weights.get(&check.id).copied().unwrap_or(1.0),
            })
            .collect();
        let note = match verdict.outcome {
            Outcome::Fail if !verdict.checks.is_empty() => String::new(),
            Outcome::Pass => "every check passes although nothing was done".to_owned(),
            Outcome::Fail | Outcome::Timeout | Outcome::Infra | Outcome::VerifierError => {
                format!("no verdict on the untouched environment: {}", verdict.cause)
            }
        };
        let ok = note.is_empty();
        // A task may pay for doing nothing, e.g. partial credit. That rejects no task, but trainers
        // that take the number should know.
        let paid = log.reward.filter(|reward| ok && *reward > 0.0);
        let note = paid.map_or(note, |reward| format!("doing nothing has a reward of {reward}"));
        self.push_timed(trial_row(RowKind::Untouched, "1", verdict, ok, &note), log);
        self.untouched = Some(log.fingerprint.clone());
    }

    /// Adds a planned trial that has ended. `equal` means that it left the reference's final state.
    pub(super) fn trial(&mut self, planned: &Planned<'_>, verdict: &Verdict, log: &TrialLog, equal: bool) {
        let unless_equal = planned.expect == Expect::FailUnlessEqual;
        if unless_equal && equal {
            let note = "leaves the reference's final state".to_owned();
            let row = self.trial_row(planned.kind, &planned.name, verdict, true, &note);
            self.push_timed(Row { counts: false, ..row }, log);
            return;
        }
        if planned.expect != Expect::Pass {
            let failed = verdict.checks.iter().filter(|check| !check.passed);
            let failed = failed.map(|check| check.id.clone()).collect();
            self.noticed.insert((planned.kind, planned.name.clone()), failed);
        }
        let (ok, note) = match planned.expect {
            Expect::Pass if verdict.passed() => (true, String::new()),
            Expect::Pass if !self.hint.is_empty() => {
                (false, format!("{} does not pass: {} ({})", planned.about, why(verdict), self.hint))
            }
            Expect::Pass => (false, format!("{} does not pass: {}", planned.about, why(verdict))),
            Expect::Fail | Expect::FailUnlessEqual if fails(verdict) => (true, String::new()),
            Expect::Fail | Expect::FailUnlessEqual if verdict.passed() && equal => (
                false,
                format!("{} leaves the reference's final state, so it violates nothing", planned.about),
            ),
            Expect::Fail | Expect::FailUnlessEqual if verdict.passed() => {
                (false, format!("{} passes every check", planned.about))
            }
            Expect::Fail | Expect::FailUnlessEqual => {
                (false, format!("no verdict on {}: {}", planned.about, verdict.cause))
            }
        };
        // A violation that left the reference's state violates nothing, so it does not test the
        // checks.
        let counts = !(planned.expect == Expect::Fail && verdict.passed() && equal);
        let row = self.trial_row(planned.kind, &planned.name, verdict, ok, &note);
        self.push_timed(Row { counts, ..row }, log);
    }

    /// The row of a trial. If the tests ended at the first failed check, the row names that check
    /// in place of a number of passed checks.
    pub(super) fn trial_row(
        &self,
        kind: RowKind,
        name: &str,
        verdict: &Verdict,
        ok: bool,
        note: &str,
    ) -> Row {
        let row = trial_row(kind, name, verdict, ok, note);
        let ended_early = !verdict.checks.is_empty() && verdict.checks.len() < self.checks.len();
        let failed = verdict.checks.iter().find(|check| !check.passed);
        match failed.filter(|_| ended_early) {
            Some(check) if note.is_empty() => {
                Row { passed_of: None, note: format!("`{}` fails first", check.id), ..row }
            }
            Some(_) => Row { passed_of: None, ..row },
            None => row,
        }
    }
}

/// Whether a verdict is valid and gives no reward.
pub(super) fn fails(verdict: &Verdict) -> bool {
    matches!(verdict.outcome, Outcome::Fail | Outcome::Timeout)
}

/// The row of a trial.
pub(super) fn trial_row(kind: RowKind, name: &str, verdict: &Verdict, ok: bool, note: &str) -> Row {
    let passed = verdict.checks.iter().filter(|check| check.passed).count();
    let passed_of = (!verdict.checks.is_empty()).then(|| {
        (u32::try_from(passed).unwrap_or(u32::MAX), u32::try_from(verdict.checks.len()).unwrap_or(u32::MAX))
    });
    Row { outcome: Some(verdict.outcome), passed_of, ..plain(kind, name, ok, note) }
}

fn plain(kind: RowKind, name: &str, ok: bool, note: &str) -> Row {
    Row {
        kind,
        name: name.to_owned(),
        outcome: None,
        passed_of: None,
        ok,
        counts: true,
        equivalent: false,
        note: note.to_owned(),
    }
}

/// The failed checks, or the cause if there are none.
pub(super) fn why(verdict: &Verdict) -> String {
    let failed: Vec<_> =
        verdict.checks.iter().filter(|check| !check.passed).map(|check| check.id.as_str()).collect();
    if failed.is_empty() { verdict.cause.clone() } else { format!("{} fail", failed.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{CheckResult, FileTree};
    use crate::screen::soundness::reference;

    #[test]
    fn a_reward_for_doing_nothing_is_said() {
        let check = |reward: Option<f64>, expect: &str| {
            let checks = vec![CheckResult { id: CheckId::reward(), passed: false }];
            let log = TrialLog { reward, ..TrialLog::default() };
            let mut table = Table::default();
            table.untouched(&Verdict::from_checks(checks), &log, &BTreeMap::new());
            assert_eq!((table.rows[0].ok, table.rows[0].note.as_str()), (true, expect), "{reward:?}");
        };
        check(None, "");
        check(Some(0.0), "");
        check(Some(-1.0), "");
        check(Some(0.2), "doing nothing has a reward of 0.2");
    }

    #[test]
    fn a_table_without_a_wrong_answer_says_so() {
        let row = |kind, counts| Row { counts, ..plain(kind, "x", true, "") };
        let check = |rows: &[Row], expect: bool| {
            let mut table = Table { rows: rows.to_vec(), ..Table::default() };
            table.unprobed();
            assert_eq!(table.rows.len() > rows.len(), expect, "{rows:?}");
            assert!(!table.rejected());
        };
        check(&[row(RowKind::Reference, true), row(RowKind::Attack, true)], true);
        check(&[row(RowKind::Mutant, false), row(RowKind::WrongSolution, false)], true);
        check(&[row(RowKind::TruncatedSolution, true)], true);
        check(&[row(RowKind::Mutant, true)], false);
        check(&[row(RowKind::Clause, true)], false);
        check(&[row(RowKind::WrongSolution, true)], false);
    }

    #[test]
    fn a_row_that_could_not_run_is_not_ok() {
        let solution = FileTree::default();
        let planned = Planned {
            name: "clock".to_owned(),
            about: "the reference solution (the clock a year ahead)".to_owned(),
            ..reference(&solution, 1)
        };
        let mut table = Table::default();
        let unmet = Unmet { condition: "clock", why: "cannot be preloaded".to_owned() };
        table.could_not_run(&planned, unmet.clone());
        // A certificate that depends on the host must not be stored.
        assert_eq!(table.unmet, Some(unmet));
        let [row] = table.rows.as_slice() else { panic!("{:?}", table.rows) };
        assert_eq!((row.ok, row.counts), (false, false));
        let message = "the reference solution (the clock a year ahead) could not run: cannot be preloaded";
        assert_eq!(row.note, message);
        assert!(table.rejected());
        assert_eq!(table.reasons[0].message, message);
    }
}
