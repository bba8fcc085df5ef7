//! Every recipe passes `recipe check`: it is screened, and every variation of its expert is run and checked by the honesty rule.

#![allow(clippy::unwrap_used, reason = "a failed step ends the test")]

mod common;

use std::collections::BTreeSet;

use common::Bench;

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

#[test]
fn every_recipe_passes_its_check() {
    let bench = Bench::new();
    let checked = bench.run(&["--json", "recipe", "check", "--seeds", "1"]).ok().out;
    let mut seen = BTreeSet::new();
    for report in serde_json::Deserializer::from_str(&checked).into_iter::<serde_json::Value>() {
        let report = report.unwrap();
        let recipe = report["recipe"].as_str().unwrap();
        assert_eq!(report["problems"].as_array().unwrap().len(), 0, "{recipe}: {}", report["problems"]);
        assert_eq!(report["certificate"]["certified"], true, "{recipe}");
        let runs = report["expert_runs"].as_array().unwrap();
        assert!(runs.len() >= 6, "{recipe} has {} runs of its expert", runs.len());
        seen.insert(recipe.split('/').next().unwrap().to_owned());
    }
    assert_eq!(seen.iter().map(String::as_str).collect::<Vec<_>>(), DOMAINS);
}
