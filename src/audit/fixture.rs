//! A small run for the tests of this module.

use super::{Audit, AuditEntry, DomainAxes, SkillAxes, audit};
use crate::model::{Blueprint, Difficulty, DomainId, EngineeringKind, RecipeId, Scores, Seed, TaskAuthor};

/// Two declared domains. In [`audited`] one of them has no tasks, and a task has a third,
/// undeclared domain.
pub(super) fn specs() -> Vec<DomainAxes> {
    let skill = |id: &str, operations: &[&str]| SkillAxes {
        id: id.to_owned(),
        operations: operations.iter().map(|&id| id.to_owned()).collect(),
    };
    let domain = |id: &str, skills: Vec<SkillAxes>| DomainAxes {
        id: DomainId::parse(id).unwrap(),
        skills,
        kinds: vec![EngineeringKind::FromScratch, EngineeringKind::BugFix, EngineeringKind::Refactor],
        difficulties: Difficulty::ALL.to_vec(),
    };
    vec![
        domain(
            "games",
            vec![
                skill("maps", &["text-editing"]),
                skill("scores", &["text-editing", "database"]),
                skill("replays", &["media-processing", "text-editing"]),
            ],
        ),
        domain("security", vec![skill("keys", &["security"])]),
    ]
}

pub(super) fn entry(
    domain: &str,
    skills: &[&str],
    operations: &[&str],
    kind: EngineeringKind,
    difficulty: Difficulty,
) -> AuditEntry {
    let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
    AuditEntry {
        blueprint: Blueprint {
            index: 0,
            seed: Seed(1),
            domain: DomainId::parse(domain).unwrap(),
            author: TaskAuthor::Recipe(RecipeId::parse("games/r").unwrap()),
            skills: texts(skills),
            operations: texts(operations),
            kind,
            persona: "p".to_owned(),
            language: "bash".to_owned(),
            difficulty,
            fixture: "f".to_owned(),
            verifier: "v".to_owned(),
        },
        certified: None,
        rollouts: Scores::default(),
    }
}

pub(super) fn audited() -> Audit {
    use Difficulty::{Easy, Medium};
    use EngineeringKind::{BugFix, FromScratch};
    let entries = [
        AuditEntry {
            certified: Some(true),
            rollouts: Scores { scored: 3, unscored: 1, passed: 2 },
            ..entry("games", &["maps"], &["text-editing"], FromScratch, Easy)
        },
        AuditEntry {
            certified: Some(true),
            rollouts: Scores { scored: 2, unscored: 0, passed: 0 },
            ..entry("games", &["maps", "scores"], &["text-editing", "database"], BugFix, Medium)
        },
        AuditEntry {
            certified: Some(false),
            ..entry("games", &["cheats"], &["text-editing"], FromScratch, Easy)
        },
        entry("cooking", &["soup"], &["network"], FromScratch, Easy),
    ];
    audit(entries, &specs())
}
