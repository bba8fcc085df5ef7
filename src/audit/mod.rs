//! The audit: coverage of a run. It counts planned, certified and solved tasks along every axis,
//! and names the empty cells.
//!
//! It is a pure function of blueprints, their results and the domain specs. It counts only the axes
//! and two cross tables, because nearly every cell of the full product would be empty.

mod funnel;
mod gaps;
mod render;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use funnel::{AuthoredEntry, CallCount, Funnel, Lost, StageCount, call_row, funnel};
pub use gaps::{Axis, Gap, GapState};
pub use render::table;

use crate::model::{Blueprint, Difficulty, DomainId, EngineeringKind, Scores};

/// The values that a domain spec declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainAxes {
    pub id: DomainId,
    pub skills: Vec<SkillAxes>,
    /// Engineering kinds with a weight above 0.
    pub kinds: Vec<EngineeringKind>,
    /// Difficulties with a weight above 0.
    pub difficulties: Vec<Difficulty>,
}

/// A skill and the operations that it exercises.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillAxes {
    pub id: String,
    pub operations: Vec<String>,
}

/// A blueprint and its results.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditEntry {
    pub blueprint: Blueprint,
    /// `None` until screening is complete.
    pub certified: Option<bool>,
    pub rollouts: Scores,
}

/// The coverage of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "termsmith audit")]
pub struct Audit {
    /// Version of this format.
    pub version: u32,
    pub total: Tally,
    pub domains: BTreeMap<DomainId, DomainAudit>,
    /// Over all domains. A task counts once in each of its operations.
    pub operations: BTreeMap<String, Tally>,
    pub kinds: BTreeMap<EngineeringKind, Tally>,
    pub difficulties: BTreeMap<Difficulty, Tally>,
    /// Declared cells that are empty, and cells that no spec declares. Sorted by domain and axis.
    pub gaps: Vec<Gap>,
    /// What became of the blueprints that a model wrote. `None` if there are none.
    pub authoring: Option<Funnel>,
}

/// One domain along each axis, and two cross tables. All declared cells are present, also empty
/// ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DomainAudit {
    pub total: Tally,
    /// Skill → operation → tasks that exercise both. Only for operations that the skill declares.
    pub skills_by_operation: BTreeMap<String, BTreeMap<String, Tally>>,
    pub skills: BTreeMap<String, Tally>,
    pub operations: BTreeMap<String, Tally>,
    pub kinds: BTreeMap<EngineeringKind, Tally>,
    pub difficulties: BTreeMap<Difficulty, Tally>,
    pub kinds_by_difficulty: BTreeMap<EngineeringKind, BTreeMap<Difficulty, Tally>>,
}

/// Tasks and rollouts of one cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tally {
    /// Tasks that were planned.
    pub planned: u32,
    /// Tasks that screening certified.
    pub certified: u32,
    /// Tasks that screening rejected.
    pub rejected: u32,
    /// Tasks with at least one scored rollout.
    pub attempted: u32,
    /// Tasks with at least one passing rollout.
    pub solved: u32,
    pub rollouts: Scores,
}

impl Tally {
    fn count(&mut self, entry: &AuditEntry) {
        self.planned += 1;
        self.certified += u32::from(entry.certified == Some(true));
        self.rejected += u32::from(entry.certified == Some(false));
        self.attempted += u32::from(entry.rollouts.scored > 0);
        self.solved += u32::from(entry.rollouts.passed > 0);
        self.rollouts += entry.rollouts;
    }
}

impl Audit {
    /// The version that this build writes.
    pub const VERSION: u32 = 6;

    /// An audit with every cell that `specs` declare, and all counts 0.
    fn empty(specs: &[DomainAxes]) -> Self {
        let domains: BTreeMap<_, _> =
            specs.iter().map(|spec| (spec.id.clone(), DomainAudit::empty(spec))).collect();
        Self {
            version: Self::VERSION,
            total: Tally::default(),
            operations: domains.values().flat_map(|domain| domain.operations.clone()).collect(),
            kinds: domains.values().flat_map(|domain| domain.kinds.clone()).collect(),
            difficulties: domains.values().flat_map(|domain| domain.difficulties.clone()).collect(),
            domains,
            gaps: Vec::new(),
            authoring: None,
        }
    }
}

/// Counts `entries` over the axes of `specs`.
pub fn audit(entries: impl IntoIterator<Item = AuditEntry>, specs: &[DomainAxes]) -> Audit {
    let mut audit = Audit::empty(specs);
    for entry in entries {
        let blueprint = &entry.blueprint;
        audit.total.count(&entry);
        for operation in &blueprint.operations {
            audit.operations.entry(operation.clone()).or_default().count(&entry);
        }
        audit.kinds.entry(blueprint.kind).or_default().count(&entry);
        audit.difficulties.entry(blueprint.difficulty).or_default().count(&entry);
        audit.domains.entry(blueprint.domain.clone()).or_default().count(&entry);
    }
    audit.gaps = gaps::find(&audit, specs);
    audit
}

impl DomainAudit {
    /// A domain with every cell that `spec` declares, and all counts 0.
    fn empty(spec: &DomainAxes) -> Self {
        let empty_row =
            |operations: &[String]| operations.iter().map(|id| (id.clone(), Tally::default())).collect();
        let operations: Vec<String> =
            spec.skills.iter().flat_map(|skill| &skill.operations).cloned().collect();
        let difficulties: BTreeMap<_, _> =
            spec.difficulties.iter().map(|level| (*level, Tally::default())).collect();
        Self {
            total: Tally::default(),
            skills_by_operation: spec
                .skills
                .iter()
                .map(|skill| (skill.id.clone(), empty_row(&skill.operations)))
                .collect(),
            skills: spec.skills.iter().map(|skill| (skill.id.clone(), Tally::default())).collect(),
            operations: empty_row(&operations),
            kinds: spec.kinds.iter().map(|kind| (*kind, Tally::default())).collect(),
            kinds_by_difficulty: spec.kinds.iter().map(|kind| (*kind, difficulties.clone())).collect(),
            difficulties,
        }
    }

    fn count(&mut self, entry: &AuditEntry) {
        let blueprint = &entry.blueprint;
        self.total.count(entry);
        for skill in &blueprint.skills {
            self.skills.entry(skill.clone()).or_default().count(entry);
            for operation in &blueprint.operations {
                // Count only the operations that the skill declares. The task's other operations
                // belong to its other skills.
                if let Some(cell) =
                    self.skills_by_operation.get_mut(skill).and_then(|row| row.get_mut(operation))
                {
                    cell.count(entry);
                }
            }
        }
        for operation in &blueprint.operations {
            self.operations.entry(operation.clone()).or_default().count(entry);
        }
        self.kinds.entry(blueprint.kind).or_default().count(entry);
        self.difficulties.entry(blueprint.difficulty).or_default().count(entry);
        let row = self.kinds_by_difficulty.entry(blueprint.kind).or_default();
        row.entry(blueprint.difficulty).or_default().count(entry);
    }
}

#[cfg(test)]
mod fixture;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts() {
        let audit = fixture::audited();
        assert_eq!(
            audit.total,
            Tally {
                planned: 4,
                certified: 2,
                rejected: 1,
                attempted: 2,
                solved: 1,
                rollouts: Scores { scored: 5, unscored: 1, passed: 2 }
            }
        );
        let games = &audit.domains["games"];
        assert_eq!((games.total.planned, games.total.solved), (3, 1));
        assert_eq!(games.skills["maps"].planned, 2);
        assert_eq!(games.kinds[&EngineeringKind::BugFix].certified, 1);
        assert_eq!(games.kinds_by_difficulty[&EngineeringKind::FromScratch][&Difficulty::Easy].planned, 2);
        // Only `scores` declares `database`, so `maps` has no such cell.
        assert_eq!(games.skills_by_operation["scores"]["database"].planned, 1);
        assert!(!games.skills_by_operation["maps"].contains_key("database"));
        assert_eq!(audit.operations["text-editing"].planned, 3);
    }

    #[test]
    fn the_json_form_round_trips() {
        let audit = fixture::audited();
        let text = serde_json::to_string(&audit).unwrap();
        assert_eq!(serde_json::from_str::<Audit>(&text).unwrap(), audit);
        assert!(serde_json::from_str::<Audit>(&text.replacen("{", "{\"extra\":1,", 1)).is_err());
    }
}
