//! Prints notes about an export, for all commands that export.

use super::say;
use crate::export::ExportSummary;
use crate::pipeline::SECRETS;

/// Prints what a reader of the rows should know, e.g. that rows were left out.
pub(super) fn note(summary: &ExportSummary) {
    notes(summary).into_iter().for_each(say::note);
}

fn notes(summary: &ExportSummary) -> Vec<String> {
    let mut notes = Vec::new();
    let secrets = &summary.secrets;
    if !secrets.kinds.is_empty() {
        let kinds: Vec<_> =
            secrets.named().iter().map(|(about, count)| format!("{about}: {count}")).collect();
        let done =
            if secrets.masked { "they are masked in data/" } else { "--mask-secrets masks them in data/" };
        notes.push(format!(
            "note: {} trajectories hold values that look like credentials ({}); {SECRETS} names them, and {done}",
            secrets.trajectories.len(),
            kinds.join(", ")
        ));
    }
    if summary.left_out > 0 {
        notes.push(format!(
            "note: {} numbers of records are out of range, e.g. token counts above 2^40; they are null in data/",
            summary.left_out
        ));
    }
    notes
}
