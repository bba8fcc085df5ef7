//! Gaps: empty cells and undeclared cells, by name.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Audit, DomainAudit, DomainAxes, Tally};
use crate::model::{Difficulty, DomainId, EngineeringKind};

/// A cell of one domain without tasks, without certified tasks, without solved tasks, or without a
/// declaration.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Gap {
    pub state: GapState,
    pub domain: DomainId,
    pub axis: Axis,
    /// The value on that axis. For [`Axis::Domain`] it is the domain's id. For
    /// [`Axis::SkillOperation`] it is `skill/operation`.
    pub value: String,
}

/// Why a cell is a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GapState {
    /// Tasks have the value, but no spec declares it. The name may be misspelt or outdated.
    Undeclared,
    /// The spec declares the value, but no task with it was planned.
    NeverPlanned,
    /// Tasks were planned, but screening rejected all that it finished.
    NeverCertified,
    /// Certified tasks were attempted, but no rollout passed.
    NeverSolved,
}

/// The axis of a gap's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Axis {
    Domain,
    Skill,
    Operation,
    Kind,
    Difficulty,
    SkillOperation,
}

impl GapState {
    /// All states, the most basic first.
    pub const ALL: [Self; 4] =
        [Self::Undeclared, Self::NeverPlanned, Self::NeverCertified, Self::NeverSolved];

    /// The state of a cell. `None` if it is no gap, or if its tasks are not finished yet.
    fn of(tally: &Tally) -> Option<Self> {
        if tally.planned == 0 {
            Some(Self::NeverPlanned)
        } else if tally.certified == 0 && tally.rejected > 0 {
            Some(Self::NeverCertified)
        } else if tally.solved == 0 && tally.attempted > 0 {
            Some(Self::NeverSolved)
        } else {
            None
        }
    }
}

/// The gaps of `audit` against `specs`, sorted.
pub(super) fn find(audit: &Audit, specs: &[DomainAxes]) -> Vec<Gap> {
    let mut gaps = Vec::new();
    for (id, domain) in &audit.domains {
        match specs.iter().find(|spec| spec.id == *id) {
            None => gaps.push(gap(GapState::Undeclared, id, Axis::Domain, id.as_str())),
            // Report one gap for the domain, not one for each of its skills.
            Some(_) if domain.total.planned == 0 => {
                gaps.push(gap(GapState::NeverPlanned, id, Axis::Domain, id.as_str()));
            }
            Some(spec) => in_domain(id, domain, spec, &mut gaps),
        }
    }
    gaps.sort();
    gaps
}

fn in_domain(id: &DomainId, domain: &DomainAudit, spec: &DomainAxes, gaps: &mut Vec<Gap>) {
    let declares_skill = |skill: &str| spec.skills.iter().any(|declared| declared.id == skill);
    let declares_operation = |operation: &str| {
        spec.skills.iter().any(|skill| skill.operations.iter().any(|declared| declared == operation))
    };
    let mut check = |axis: Axis, value: &str, declared: bool, tally: &Tally| {
        let state = if declared { GapState::of(tally) } else { Some(GapState::Undeclared) };
        gaps.extend(state.map(|state| gap(state, id, axis, value)));
    };
    for (skill, tally) in &domain.skills {
        check(Axis::Skill, skill, declares_skill(skill), tally);
    }
    for (operation, tally) in &domain.operations {
        check(Axis::Operation, operation, declares_operation(operation), tally);
    }
    for (kind, tally) in &domain.kinds {
        check(Axis::Kind, EngineeringKind::as_str(*kind), spec.kinds.contains(kind), tally);
    }
    for (level, tally) in &domain.difficulties {
        check(Axis::Difficulty, Difficulty::as_str(*level), spec.difficulties.contains(level), tally);
    }
    for (skill, row) in &domain.skills_by_operation {
        // Skills and operations without any task were reported above.
        let planned = |tallies: &BTreeMap<String, Tally>, key: &str| {
            tallies.get(key).is_some_and(|tally| tally.planned > 0)
        };
        let row = row.iter().filter(|(operation, _)| {
            planned(&domain.skills, skill) && planned(&domain.operations, operation)
        });
        for (operation, _) in row.filter(|(_, tally)| tally.planned == 0) {
            check(Axis::SkillOperation, &format!("{skill}/{operation}"), true, &Tally::default());
        }
    }
}

fn gap(state: GapState, domain: &DomainId, axis: Axis, value: &str) -> Gap {
    Gap { state, domain: domain.clone(), axis, value: value.to_owned() }
}

#[cfg(test)]
mod tests {
    use crate::audit::{AuditEntry, audit, fixture};
    use crate::model::Scores;

    use super::*;

    #[track_caller]
    fn check(entries: Vec<AuditEntry>, expect: &[(GapState, &str, Axis, &str)]) {
        let audit = audit(entries, &fixture::specs());
        let found: Vec<_> = audit
            .gaps
            .iter()
            .map(|gap| (gap.state, gap.domain.as_str(), gap.axis, gap.value.as_str()))
            .collect();
        assert_eq!(found, expect);
    }

    #[test]
    fn gaps() {
        use Axis::{Difficulty as Level, Domain, Kind, Operation, Skill, SkillOperation};
        use GapState::{NeverCertified, NeverPlanned, NeverSolved, Undeclared};

        check(
            vec![],
            &[(NeverPlanned, "games", Domain, "games"), (NeverPlanned, "security", Domain, "security")],
        );

        let keys = || {
            let entry = fixture::entry(
                "security",
                &["keys"],
                &["security"],
                EngineeringKind::BugFix,
                Difficulty::Easy,
            );
            AuditEntry {
                certified: Some(true),
                rollouts: Scores { scored: 1, unscored: 0, passed: 1 },
                ..entry
            }
        };
        let unused = [
            (NeverPlanned, "games", Domain, "games"),
            (NeverPlanned, "security", Kind, "from-scratch"),
            (NeverPlanned, "security", Kind, "refactor"),
            (NeverPlanned, "security", Level, "medium"),
            (NeverPlanned, "security", Level, "hard"),
        ];
        let mut expect = unused.to_vec();
        expect.sort();
        check(vec![keys()], &expect);

        // A cell attempted without success; a rejected one; one that is not screened yet, which is
        // no gap.
        let cell = [(Skill, "keys"), (Operation, "security"), (Kind, "bug-fix"), (Level, "easy")];
        for (certified, scored, state) in
            [(Some(true), 2, Some(NeverSolved)), (Some(false), 0, Some(NeverCertified)), (None, 0, None)]
        {
            let mut expect = unused.to_vec();
            expect.extend(
                state.iter().flat_map(|&state| cell.map(|(axis, value)| (state, "security", axis, value))),
            );
            expect.sort();
            check(
                vec![AuditEntry { certified, rollouts: Scores { scored, unscored: 0, passed: 0 }, ..keys() }],
                &expect,
            );
        }

        // A domain that no spec declares.
        let odd = AuditEntry {
            blueprint: crate::model::Blueprint {
                domain: crate::model::DomainId::parse("secureity").unwrap(),
                ..keys().blueprint
            },
            ..keys()
        };
        let mut expect = unused.to_vec();
        expect.push((Undeclared, "secureity", Domain, "secureity"));
        expect.sort();
        check(vec![keys(), odd], &expect);

        // First, `database` has no task. Then `replays` and `text-editing` have tasks, but none in
        // common.
        let maps =
            fixture::entry("games", &["maps"], &["text-editing"], EngineeringKind::BugFix, Difficulty::Easy);
        let scores = fixture::entry(
            "games",
            &["scores"],
            &["text-editing"],
            EngineeringKind::BugFix,
            Difficulty::Easy,
        );
        let found = audit([maps, scores], &fixture::specs()).gaps;
        assert!(found.iter().any(|gap| gap.axis == Operation && gap.value == "database"));
        assert!(!found.iter().any(|gap| gap.axis == SkillOperation));
        let replays = fixture::entry(
            "games",
            &["replays"],
            &["media-processing"],
            EngineeringKind::BugFix,
            Difficulty::Easy,
        );
        let maps =
            fixture::entry("games", &["maps"], &["text-editing"], EngineeringKind::BugFix, Difficulty::Easy);
        let found = audit([maps, replays], &fixture::specs()).gaps;
        let crossed: Vec<_> =
            found.iter().filter(|gap| gap.axis == SkillOperation).map(|gap| gap.value.as_str()).collect();
        assert_eq!(crossed, ["replays/text-editing"]);
    }
}
