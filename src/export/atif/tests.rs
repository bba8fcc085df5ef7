use std::collections::BTreeSet;

use crate::export::{fixture, shapes};

use super::*;
use crate::clock::instant;

fn stamps(turns: usize) -> Stamps {
    /// 2026-03-01, 12:00 UTC.
    const STARTED_MS: u64 = 1_772_366_400_000;
    let turn = |number: usize| instant(STARTED_MS + 250 + 1_000 * number as u64);
    Stamps { started: instant(STARTED_MS), turns: (1..=turns).map(turn).collect() }
}

/// Checks the rules of Harbor's validator on the JSON.
#[track_caller]
fn check_rules(document: &Value) {
    let steps = document["steps"].as_array().unwrap();
    assert!(!steps.is_empty());
    assert_eq!(document["schema_version"], "ATIF-v1.7");
    assert_eq!(document["final_metrics"]["total_steps"], steps.len());
    document["subagent_trajectories"].as_array().into_iter().flatten().for_each(check_rules);
    let agent_only =
        ["model_name", "reasoning_effort", "reasoning_content", "tool_calls", "metrics", "llm_call_count"];
    for (at, step) in steps.iter().enumerate() {
        assert_eq!(step["step_id"], at + 1);
        let source = step["source"].as_str().unwrap();
        assert!(["system", "user", "agent"].contains(&source));
        assert!(step["message"].is_string());
        for key in agent_only {
            assert!(source == "agent" || step.get(key).is_none(), "{key} on a {source} step");
        }
        if step["llm_call_count"] == 0 {
            assert!(step.get("metrics").is_none() && step.get("reasoning_content").is_none());
        }
        let calls: BTreeSet<_> = step["tool_calls"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|call| &call["tool_call_id"])
            .map(Value::to_string)
            .collect();
        let embedded: BTreeSet<_> = document["subagent_trajectories"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|embedded| embedded["trajectory_id"].to_string())
            .collect();
        for result in step["observation"]["results"].as_array().into_iter().flatten() {
            for reference in result["subagent_trajectory_ref"].as_array().into_iter().flatten() {
                let found = embedded.contains(&reference["trajectory_id"].to_string());
                assert!(found || reference["trajectory_path"].is_string(), "{reference}");
            }
            let source = result.get("source_call_id");
            assert!(source.is_none_or(|source| calls.contains(&source.to_string())), "{result}");
        }
    }
}

/// Each thread is embedded once, in the document of the one that began it. The result of its call
/// refers to it.
#[test]
fn threads_of_an_agent_program() {
    let (_, rollout) = shapes::shapes().into_iter().find(|(shape, _)| *shape == "sub-agents").unwrap();
    let document = document(&rollout, Calls::Parsed);
    let embedded = |document: &Value| -> Vec<(String, String)> {
        let all = document["subagent_trajectories"].as_array().into_iter().flatten();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        all.map(|one| (text(&one["trajectory_id"]), text(&one["extra"]["thread"]))).collect()
    };
    let thread = |number: usize, kind: &str| (format!("{}-thread-{number}", rollout.id), kind.to_owned());
    assert_eq!(
        embedded(&document),
        [thread(1, "auxiliary"), thread(2, "subagent"), thread(3, "subagent"), thread(5, "superseded")]
    );
    assert_eq!(embedded(&document["subagent_trajectories"][2]), [thread(4, "subagent")]);
    let results = document["steps"][2]["observation"]["results"].as_array().unwrap();
    let references: Vec<_> = results
        .iter()
        .map(|result| (&result["source_call_id"], &result["subagent_trajectory_ref"][0]["trajectory_id"]))
        .collect();
    assert_eq!(
        references,
        [(&json!("t2"), &json!(thread(3, "").0)), (&json!("t1"), &json!(thread(2, "").0))]
    );
    // Two calls of the main thread, and seven of the others, with 7 and 3 tokens each. The main
    // thread's have other numbers.
    assert_eq!(document["final_metrics"]["total_completion_tokens"], 2 * 10 + 7 * 3);
    assert!(document["steps"][4].get("tool_calls").is_none());
}

/// The first document of a rollout.
fn trajectory(
    rollout: &Rollout,
    stamps: Option<&Stamps>,
    calls: Calls,
    detail: impl Fn(&Key) -> Option<CallDetail>,
) -> Result<Trajectory, AtifError> {
    documents(rollout, "t", stamps, calls, detail).map(|all| all.into_iter().next().unwrap().trajectory)
}

fn document(rollout: &Rollout, calls: Calls) -> Value {
    let stamps = stamps(rollout.record.turns.len());
    serde_json::to_value(trajectory(rollout, Some(&stamps), calls, shapes::detail).unwrap()).unwrap()
}

#[test]
fn the_rules_of_the_format() {
    for (name, rollout) in shapes::shapes() {
        let stamps = stamps(rollout.record.turns.len());
        for calls in [Calls::Parsed, Calls::Spoken] {
            for document in documents(&rollout, "t", Some(&stamps), calls, shapes::detail).unwrap() {
                check_rules(&serde_json::to_value(document.trajectory).unwrap());
            }
        }
        let without_stamps = trajectory(&rollout, None, Calls::Parsed, |_| None).unwrap();
        assert!(!without_stamps.to_json().contains("timestamp"), "{name}");
    }
}

/// `expect` has one letter for the source of each step.
#[test]
fn who_speaks() {
    let check = |name: &str, expect: &str| {
        let (_, rollout) = shapes::shapes().into_iter().find(|(shape, _)| *shape == name).unwrap();
        let document = document(&rollout, Calls::Parsed);
        let steps = document["steps"].as_array().unwrap();
        let found: String = steps.iter().map(|step| &step["source"].as_str().unwrap()[..1]).collect();
        assert_eq!(found, expect, "{name}");
    };
    check("scripted", "suaaa");
    check("text", "suaaa");
    check("calls", "suaaaa");
    check("terminus", "uaaaa");
    check("rounds", "suaauaa");
    check("asked", "suauaa");
    check("fork", "suaaaa");
    check("step-limit", "suaaa");
    check("empty", "su");
    check("imported", "suaa");
    check("summarised", "suaas");
    check("summarised-terminus", "uaas");
    check("two-steps", "suaa");
    check("sub-agents", "suasa");
}

#[test]
fn every_shape() {
    for (name, rollout) in shapes::shapes() {
        let stamps = stamps(rollout.record.turns.len());
        let all = documents(&rollout, name, Some(&stamps), Calls::Parsed, shapes::detail).unwrap();
        for document in all {
            let text = document.trajectory.to_json().replace(env!("CARGO_PKG_VERSION"), "<version>");
            insta::assert_snapshot!(document.name.trim_end_matches(".json"), text);
        }
    }
    let (_, terminus) = shapes::shapes().into_iter().find(|(name, _)| *name == "terminus").unwrap();
    let spoken = trajectory(&terminus, None, Calls::Spoken, |_| None).unwrap();
    insta::assert_snapshot!(
        "terminus-spoken",
        spoken.to_json().replace(env!("CARGO_PKG_VERSION"), "<version>")
    );
}

#[test]
fn there_is_one_time_stamp_for_each_turn() {
    let rollout = fixture::rollout("games", 1, 0, 1, 8);
    let few = stamps(1);
    assert!(matches!(
        trajectory(&rollout, Some(&few), Calls::Parsed, |_| None),
        Err(AtifError::StampCount { turns: 2, stamps: 1, .. })
    ));
}
