//! Every recipe passes `recipe check`: its task is certified, and each branch of its expert ends as
//! planned.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::support::bench::{Bench, copy};

/// The ten domains of LiteCoder-Terminal.
const DOMAINS: [&str; 10] = [
    "ai_ml",
    "build_tools",
    "coding",
    "data_science",
    "games",
    "networking",
    "scientific_computing",
    "security",
    "system_admin",
    "version_control",
];

#[test]
fn every_domain_has_a_recipe_and_every_kind_occurs() {
    let bench = Bench::new();
    let listed = bench.run(&["recipe", "list"]).ok().out;
    for domain in DOMAINS {
        assert!(listed.lines().any(|line| line.starts_with(&format!("{domain}/"))), "{domain} in\n{listed}");
    }
    for kind in ["from-scratch", "feature-addition", "bug-fix", "refactor"] {
        assert!(listed.contains(kind), "{kind} in\n{listed}");
    }
}

/// `make test-slow` checks the other recipes.
#[test]
fn a_recipe_passes_its_check() {
    assert_eq!(checked(&["networking/trace-site-routes"]), ["networking"]);
}

#[test]
fn every_recipe_passes_its_check() {
    assert_eq!(checked(&[]), DOMAINS);
}

/// Checks these recipes, or all of them. Returns their domains.
fn checked(recipes: &[&str]) -> Vec<String> {
    let bench = Bench::new();
    let checked = bench.run(&[&["--json", "recipe", "check", "--seeds", "1"], recipes].concat());
    let mut seen = BTreeSet::new();
    let mut problems = Vec::new();
    for report in serde_json::Deserializer::from_str(&checked.out).into_iter::<serde_json::Value>() {
        let report = report.unwrap();
        let recipe = report["recipe"].as_str().unwrap();
        problems.extend(report["problems"].as_array().unwrap().iter().map(|why| format!("{recipe}: {why}")));
        assert_eq!(report["certificate"]["certified"], true, "{recipe}");
        let runs = report["expert_runs"].as_array().unwrap();
        assert!(runs.len() >= 6, "{recipe} has {} runs of its expert", runs.len());
        seen.insert(recipe.split('/').next().unwrap().to_owned());
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    checked.ok();
    seen.into_iter().collect()
}

#[test]
fn a_wrong_script_costs_its_attempt_and_is_named() {
    let bench = Bench::new();
    let built_in = Path::new(env!("CARGO_MANIFEST_DIR")).join("templates");
    copy(&built_in, &bench.path("templates"));
    let expert = bench.path("templates/recipes/games/extend-burrow-rules/expert.toml");
    let mut text = fs::read_to_string(&expert).unwrap();
    // A passing rollout ends with this step, and cannot go on after it. A losing one promises
    // nothing about what it is shown.
    text.push_str("\n[[step]]\nid = \"never\"\n[[step.way]]\nsay = [\"A last look.\"]\nrun = \"ls\"\nshows = \"never printed\"\n");
    fs::write(&expert, text).unwrap();
    let run = [
        "run",
        "--templates",
        "templates",
        "--domain",
        "games",
        "--count",
        "1",
        "--attempts",
        "2",
        "--rigor",
        "quick",
    ];
    bench
        .run(&run)
        .ends(65)
        .says("games-extend-burrow-rules-0000, attempt 0, has none: turn ")
        .says("the output does not match `never printed`")
        .says("`termsmith recipe check games/extend-burrow-rules --only expert`")
        .says("rollouts    1: 1 fail");
}
