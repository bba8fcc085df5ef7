//! Observations of a failed row's trial: how its solution ended, and the last lines that were
//! printed.

use crate::model::TrialSeen;
use crate::verify::{Fingerprint, TrialLog};

/// Maximum lines of an output. They hold a shell's message, or the end of a traceback.
const MAX_LINES: usize = 8;
/// Maximum characters of one line.
const MAX_LINE: usize = 300;

/// The observations in `log`. `untouched` are the files of the untouched trial, unless `log` is
/// that trial's own.
pub(super) fn seen(log: &TrialLog, untouched: Option<&Fingerprint>) -> TrialSeen {
    TrialSeen {
        act: log.exit,
        changed_files: untouched
            .filter(|_| log.exit.is_some())
            .map(|before| differing(before, &log.fingerprint)),
        act_output: last_lines(&log.output),
        tests_output: last_lines(&log.verifier.output),
    }
}

/// The number of files that were added, removed or changed.
fn differing(before: &Fingerprint, after: &Fingerprint) -> usize {
    let changed =
        after.iter().filter(|(path, now)| before.get(*path).is_none_or(|then| then.hash != now.hash)).count();
    changed + before.keys().filter(|path| !after.contains_key(*path)).count()
}

fn last_lines(output: &str) -> Vec<String> {
    let lines: Vec<&str> = output.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let shortened = |line: &&str| match line.char_indices().nth(MAX_LINE) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => (*line).to_owned(),
    };
    lines[lines.len().saturating_sub(MAX_LINES)..].iter().map(shortened).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::FileFingerprint;

    #[test]
    fn the_last_lines_are_kept_within_bounds() {
        let check = |output: &str, expect: &[&str]| assert_eq!(last_lines(output), expect, "{output:?}");
        check("", &[]);
        check("\n \n", &[]);
        check("a\n\nb  \n", &["a", "b"]);
        check("1\n2\n3\n4\n5\n6\n7\n8\n9\n", &["2", "3", "4", "5", "6", "7", "8", "9"]);
        let long = "é".repeat(MAX_LINE + 1);
        check(&long, &[&format!("{}…", "é".repeat(MAX_LINE))]);
    }

    #[test]
    fn changed_files_are_those_that_the_untouched_trial_has_not() {
        let fingerprint = |files: &[(&str, &str)]| -> Fingerprint {
            files
                .iter()
                .map(|(path, text)| ((*path).to_owned(), FileFingerprint::of(path, text.as_bytes())))
                .collect()
        };
        let before = fingerprint(&[("/app/beat", "1"), ("/app/in", "a")]);
        let check = |after: &[(&str, &str)], expect: usize| {
            assert_eq!(differing(&before, &fingerprint(after)), expect, "{after:?}");
        };
        check(&[("/app/beat", "1"), ("/app/in", "a")], 0);
        check(&[("/app/beat", "1"), ("/app/in", "b")], 1);
        check(&[("/app/beat", "1"), ("/app/in", "a"), ("/app/out", "")], 1);
        check(&[("/app/out", "")], 3);
    }
}
