//! Tests of termsmith's own drafts, which contain more than a directory.

use super::*;
use crate::harbor::{DeclaredVerifier, Publication, write_task};
use crate::model::{
    Blueprint, CheckId, Difficulty, DomainId, Draft, EngineeringKind, ExpertScript, Limits, Profile,
    RecipeId, Seed, SubmissionSpec, Task, TaskAuthor, TaskName, WrongSolution,
};

fn draft(checks: &[&str], wrong: usize) -> Draft {
    let blueprint = Blueprint {
        index: 0,
        seed: Seed(1),
        domain: DomainId::parse("coding").unwrap(),
        author: TaskAuthor::Recipe(RecipeId::parse("coding/a-task").unwrap()),
        skills: Vec::new(),
        operations: Vec::new(),
        kind: EngineeringKind::BugFix,
        persona: String::new(),
        language: String::new(),
        difficulty: Difficulty::Easy,
        fixture: String::new(),
        verifier: String::new(),
    };
    let task = Task {
        name: TaskName::parse("a-task").unwrap(),
        title: String::new(),
        blueprint,
        base: "core".to_owned(),
        recipe_version: 1,
        canary: String::new(),
        instruction: String::new(),
        environment: FileTree::default(),
        solution: FileTree::default(),
        tests: FileTree::default(),
        checks: checks.iter().map(|name| CheckId::parse(*name).unwrap()).collect(),
        weights: [].into(),
        limits: Limits::default(),
        profile: Profile::Plain,
        submission: SubmissionSpec {
            roots: vec!["/app".to_owned()],
            programs: false,
            bring_up: None,
            shared_because: None,
        },
    };
    let one = WrongSolution { name: "w".to_owned(), why: String::new(), files: FileTree::default() };
    Draft {
        task,
        second: None,
        clauses: crate::model::Clauses::default(),
        wrong: vec![one; wrong],
        variants: Vec::new(),
        variants_excluded: std::collections::BTreeMap::new(),
        expert: ExpertScript::default(),
    }
}

/// A task directory as termsmith writes it.
pub(super) fn directory(instruction: &str, verifier: DeclaredVerifier) -> FileTree {
    let canary = "canary 1".to_owned();
    let task = Task { instruction: instruction.to_owned(), canary, ..draft(&[], 0).task };
    write_task(&task, &Publication { verifier, ..Publication::default() }).unwrap()
}

#[test]
fn drafts_need_checks_and_wrong_solutions() {
    let check = |checks: &[&str], wrong: usize, expect: &[&str]| {
        let found = lint_draft(&rules(), &task(&[]), &draft(checks, wrong)).into_iter();
        let errors: Vec<_> = found
            .filter(|found| found.stops() && found.rule != "no-canary")
            .map(|found| format!("{} {} {}", found.location(), found.rule, found.message))
            .collect();
        assert_eq!(errors, expect);
    };
    let enough = ["a", "b", "c", "d", "e", "f", "g", "h"];
    check(&enough, 3, &[]);
    check(&enough[..7], 3, &["tests/test_outputs.py few-checks 7 checks; at least 8 are needed"]);
    check(&enough, 2, &["recipe.toml few-wrong-solutions 2 known wrong solutions; at least 3 are needed"]);
    let twice = ["a", "b", "c", "d", "e", "f", "g", "a"];
    check(&twice, 3, &["tests/test_outputs.py same-check-twice `a` is defined twice"]);
}
