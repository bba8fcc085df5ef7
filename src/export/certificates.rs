//! What the card says about the certificates of the exported tasks.

use serde::Serialize;

use crate::model::{Certificate, CheckClass, Outcome, Row, RowKind, Tally};

/// Sums over the certificates of the exported tasks.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Certificates {
    /// Number of certified tasks.
    pub tasks: u64,
    pub mutants: Tally,
    pub clauses: Tally,
    pub variants: Tally,
    pub attacks: Tally,
    /// Mutants that passed, each named by its task and mutant.
    pub survivors: Vec<String>,
    /// Checks that pass in the untouched environment, and all checks. Their ratio is the
    /// `pass_ratio` for doing nothing.
    pub untouched: Tally,
}

impl Certificates {
    /// Adds a certificate. Certificates of rejected tasks are ignored.
    pub fn add(&mut self, certificate: &Certificate) {
        if !certificate.certified {
            return;
        }
        self.tasks += 1;
        let rates = &certificate.rates;
        for (sum, tally) in [
            (&mut self.mutants, rates.killed),
            (&mut self.clauses, rates.clauses),
            (&mut self.variants, rates.accepted),
            (&mut self.attacks, rates.repelled),
        ] {
            sum.good += tally.good;
            sum.counted += tally.counted;
        }
        // A survivor's row is `ok`, because a survivor alone never rejects a task. So `ok` cannot
        // be used here.
        let survived =
            |row: &&Row| row.kind == RowKind::Mutant && row.counts && row.outcome == Some(Outcome::Pass);
        let names = certificate.rows.iter().filter(survived);
        self.survivors.extend(names.map(|row| format!("{}: {}", certificate.task, row.name)));
        for check in &certificate.checks {
            self.untouched.counted += 1;
            self.untouched.good += u32::from(check.class == CheckClass::P2P);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_are_added_up() {
        let certificate = |certified: bool| -> Certificate {
            let row = |name: &str, outcome: &str, counts: bool| serde_json::json!({ "kind": "mutant", "name": name, "outcome": outcome, "ok": true, "counts": counts });
            let check =
                |id: &str, class: &str| serde_json::json!({ "id": id, "class": class, "weight": 1.0 });
            let certificate = serde_json::json!({
                "version": 3,
                "task": "a-task",
                "task_digest": format!("sha256:{:064x}", 1),
                "environment_digest": format!("blake3:{:064x}", 1),
                "tool": "0.1.0",
                "certified": certified,
                "rows": [row("dies", "fail", true), row("survives", "pass", true), row("equals", "pass", false)],
                "rates": {
                    "killed": { "good": 1, "counted": 2 },
                    "killed_by_operator": {},
                    "accepted": { "good": 3, "counted": 3 },
                    "repelled": { "good": 4, "counted": 4 },
                    "steady": { "good": 0, "counted": 0 },
                    "flake_upper": 0.5
                },
                "checks": [check("a", "F2P"), check("b", "P2P"), check("c", "F2P"), check("d", "F2P")],
                "reasons": []
            });
            serde_json::from_value(certificate).unwrap()
        };
        let mut all = Certificates::default();
        all.add(&certificate(false));
        assert_eq!(all, Certificates::default());
        all.add(&certificate(true));
        all.add(&certificate(true));
        assert_eq!((all.tasks, all.mutants), (2, Tally { good: 2, counted: 4 }));
        assert_eq!(all.survivors, ["a-task: survives", "a-task: survives"]);
        assert_eq!(all.untouched.rate(), Some(0.25));
    }
}
