//! Shows what happened in the trials of failing rows: below the rows of `screen`, and in its JSON.

use std::fmt::Write as _;

use serde::Serialize;

use crate::model::{Certificate, Row, RowKind, RowTiming, ShellOutcome, Timings, TrialSeen};

/// Lines of a failed build's log that are shown below its row.
const MAX_LOG_LINES: usize = 4;

/// A certificate, with what happened in the trials of its failing rows.
#[derive(Serialize)]
pub(super) struct WithSeen<'a> {
    #[serde(flatten)]
    certificate: &'a Certificate,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    seen: Vec<OfRow<'a>>,
}

#[derive(Serialize)]
struct OfRow<'a> {
    kind: RowKind,
    name: &'a str,
    act_seconds: f64,
    #[serde(flatten)]
    seen: &'a TrialSeen,
}

impl<'a> WithSeen<'a> {
    pub(super) fn new(certificate: &'a Certificate, timings: &'a Timings) -> Self {
        let of_row = |row: &'a RowTiming| {
            let RowTiming { kind, name, act_seconds, seen, .. } = row;
            Some(OfRow { kind: *kind, name, act_seconds: *act_seconds, seen: seen.as_ref()? })
        };
        Self { certificate, seen: timings.rows.iter().filter_map(of_row).collect() }
    }
}

/// The lines below a row of the table. Empty if the row is ok.
pub(super) fn below(timings: &Timings, row: &Row) -> String {
    let of_row = timings.rows.iter().find(|timing| timing.kind == row.kind && timing.name == row.name);
    let mut text = String::new();
    if row.kind == RowKind::Build && !row.ok {
        // The note continues with the build's log. Its end names the fault.
        let lines: Vec<&str> = row.note.lines().skip(1).collect();
        for line in &lines[lines.len().saturating_sub(MAX_LOG_LINES)..] {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "      build | {line}");
        }
    }
    let Some((timing, seen)) = of_row.and_then(|timing| Some((timing, timing.seen.as_ref()?))) else {
        return text;
    };
    if let Some(act) = seen.act {
        let changed = seen.changed_files.map_or_else(String::new, |count| format!(", changed {count} files"));
        // Writing to a String cannot fail.
        let _ = writeln!(text, "      solution: {} after {:.1} s{changed}", ended(act), timing.act_seconds);
    }
    for (whose, lines) in [("solution", &seen.act_output), ("tests", &seen.tests_output)] {
        for line in lines {
            let _ = writeln!(text, "      {whose} | {line}");
        }
    }
    text
}

fn ended(act: ShellOutcome) -> String {
    match act {
        ShellOutcome::Exited(status) => format!("exit status {status}"),
        ShellOutcome::TimedOut => "out of time".to_owned(),
        ShellOutcome::ShellDied(status) => format!("its shell ended with status {status}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ScreeningCost, TaskDigest};

    #[test]
    fn a_failing_row_is_followed_by_what_its_trial_showed() {
        let check = |act: Option<ShellOutcome>, lines: [&[&str]; 2], expect: &str| {
            let [act_output, tests_output] =
                lines.map(|lines| lines.iter().map(|line| (*line).to_owned()).collect());
            let changed_files = act.map(|_| 0);
            let seen = TrialSeen { act, changed_files, act_output, tests_output };
            let timing = RowTiming {
                kind: RowKind::Reference,
                name: "1".to_owned(),
                seconds: 2.0,
                act_seconds: 0.12,
                peak_memory: None,
                seen: Some(seen),
            };
            let timings = Timings {
                version: Timings::VERSION,
                task: "a".to_owned(),
                task_digest: TaskDigest::parse(format!("sha256:{}", "0".repeat(64))).unwrap(),
                agent_timeout_sec: 1,
                memory_mb: 1,
                cost: ScreeningCost::default(),
                rows: vec![timing],
            };
            let row = |name: &str| Row {
                kind: RowKind::Reference,
                name: name.to_owned(),
                outcome: None,
                passed_of: None,
                ok: false,
                counts: true,
                equivalent: false,
                note: String::new(),
            };
            assert_eq!(below(&timings, &row("1")), expect);
            assert_eq!(below(&timings, &row("2")), "");
            let note = "it does not build: 1\n2\n3\n4\n5\n6".to_owned();
            let build = below(&timings, &Row { kind: RowKind::Build, note, ..row("1") });
            assert_eq!(build, "      build | 3\n      build | 4\n      build | 5\n      build | 6\n");
        };
        check(
            Some(ShellOutcome::Exited(0)),
            [&[], &["no tests ran"]],
            "      solution: exit status 0 after 0.1 s, changed 0 files\n      tests | no tests ran\n",
        );
        check(
            Some(ShellOutcome::TimedOut),
            [&["a"], &[]],
            "      solution: out of time after 0.1 s, changed 0 files\n      solution | a\n",
        );
        check(None, [&[], &["x"]], "      tests | x\n");
    }
}
