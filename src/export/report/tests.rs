use std::convert::Infallible;

use crate::export::fixture::{rollout, unmeasured};
use crate::model::{Actor, AdversaryView, Arm, Exploit, ModelActor, Tokens, TurnKind, wilson};

use super::*;

fn attempt(index: u32, number: u32, passed: u32) -> Attempt {
    let rollout = rollout("games", index, number, 2, passed);
    Attempt { rollout, seconds: Some(10.0 + f64::from(number)), usd: None }
}

/// The attempt as a model's. Each turn read 100 tokens and wrote 10.
fn by_model(mut attempt: Attempt, arm: Arm, adversary: Option<AdversaryView>) -> Attempt {
    let record = &mut attempt.rollout.record;
    record.actor = Actor::Model(ModelActor {
        model: "m".to_owned(),
        endpoint: "local".to_owned(),
        arm,
        adversary,
        program: None,
    });
    for turn in &mut record.turns {
        turn.usage = Some(Tokens { prompt: 100, completion: 10 });
    }
    attempt.usd = Some(0.25);
    attempt.rollout.id.push_str(arm.as_str());
    attempt
}

fn exploited(mut attempt: Attempt) -> Attempt {
    let found =
        |turn| Exploit { thread: 0, turn, attack: "D-12".to_owned(), message: "reads tests".to_owned() };
    attempt.rollout.record.exploits = vec![found(0), found(1)];
    attempt.rollout.rewards = Some(crate::model::Rewards::NOTHING);
    attempt
}

fn masked(attempt: Attempt) -> Attempt {
    Attempt { rollout: unmeasured(attempt.rollout), ..attempt }
}

fn of(attempts: Vec<Attempt>) -> Report {
    report([Ok::<_, Infallible>(attempts)]).unwrap()
}

fn several() -> Report {
    let scripted = [attempt(0, 0, 8), attempt(0, 1, 8), attempt(0, 2, 2), attempt(0, 3, 8), attempt(1, 0, 8)];
    let base = |attempt| by_model(attempt, Arm::Base, None);
    let mut labelled = base(attempt(2, 0, 7));
    labelled.rollout.labels = vec!["mechanical_loop".to_owned(), "ignored_error".to_owned()];
    let model = [
        base(attempt(0, 0, 8)),
        base(attempt(0, 1, 5)),
        base(masked(attempt(0, 2, 8))),
        base(attempt(1, 0, 0)),
        exploited(base(attempt(1, 1, 8))),
        labelled,
        by_model(attempt(0, 0, 8), Arm::Plan, None),
        by_model(exploited(attempt(0, 1, 8)), Arm::Base, Some(AdversaryView::Tests)),
    ];
    report([Ok::<_, Infallible>(scripted.to_vec()), Ok(model.to_vec())]).unwrap()
}

#[test]
fn attempts_are_counted() {
    let check = |attempts: Vec<Attempt>, expect: (u64, u64, u64)| {
        let report = of(attempts);
        let counts = report.solvers[0].counts;
        assert_eq!((counts.scored, counts.unscored, counts.passed), expect);
    };
    check(vec![attempt(0, 0, 8)], (1, 0, 1));
    check(vec![attempt(0, 0, 7)], (1, 0, 0));
    check(vec![attempt(0, 0, 8), attempt(0, 0, 8)], (1, 0, 1));
    check(vec![attempt(0, 0, 8), attempt(1, 0, 8)], (2, 0, 2));
    check(vec![masked(attempt(0, 0, 8))], (0, 1, 0));
    check(vec![exploited(attempt(0, 0, 8))], (1, 0, 0));
    check(vec![masked(attempt(0, 0, 8)), attempt(0, 1, 8), attempt(0, 2, 0)], (2, 1, 1));
    assert_eq!(of(Vec::new()).solvers, []);
    assert_eq!(report([Ok(Vec::new()), Err("broken")]), Err("broken"));
}

#[test]
fn rates_are_means_over_tasks() {
    let report = several();
    let scripted = report.solvers.iter().find(|solver| solver.solver.teacher == "scripted").unwrap();
    let rate = scripted.pass_rate.unwrap();
    assert_eq!(rate, wilson(0.8, 5).unwrap());
    // Task 0 passed 3 of 4 attempts, task 1 passed 1 of 1. Only task 0 has two attempts or more.
    let found: Vec<_> =
        scripted.at.iter().map(|at| (at.k, at.tasks, at.pass_at.mean, at.pass_all.mean)).collect();
    assert_eq!(found, [(1, 2, 0.875, 0.875), (2, 1, 1.0, 0.5), (4, 1, 1.0, 0.0)]);
    assert_eq!(scripted.at[0].pass_at, wilson(0.875, 2).unwrap());
    assert_eq!(scripted.tasks[0].at.len(), 3);
    assert_eq!(scripted.tasks[1].at, [TaskAt { k: 1, pass_at: 1.0, pass_all: 1.0 }]);
}

#[test]
fn bands_of_step_scores() {
    let check = |scores: &[f64], expect: [u64; 5]| assert_eq!(StepScores::of(scores).bands(), expect);
    check(&[], [0; 5]);
    check(&[0.0, 0.299_999], [2, 0, 0, 0, 0]);
    check(&[0.3, 0.599_999], [0, 2, 0, 0, 0]);
    check(&[0.6, 0.799_999], [0, 0, 2, 0, 0]);
    check(&[0.8, 0.999_999], [0, 0, 0, 2, 0]);
    check(&[1.0], [0, 0, 0, 0, 1]);
    assert_eq!(StepScores::of(&[0.5, 1.0, 0.0]).mean, Some(0.5));
    assert_eq!(StepScores::of(&[]).mean, None);
}

#[test]
fn effort_of_attempts() {
    let report = of(vec![attempt(0, 0, 8), attempt(0, 1, 8), attempt(0, 5, 8), attempt(0, 7, 0)]);
    let effort = &report.solvers[0].breakdown.effort;
    let seconds = Spread { known: 3, total: 36.0, mean: 12.0, median: 11.0 };
    assert_eq!(effort[&AttemptClass::Passed].seconds, seconds);
    assert_eq!(
        effort[&AttemptClass::Failed].seconds,
        Spread { known: 1, total: 17.0, mean: 17.0, median: 17.0 }
    );
    assert_eq!(effort[&AttemptClass::Passed].prompt_tokens, Spread::default());
    let two = of(vec![attempt(0, 0, 8), attempt(0, 1, 8)]);
    assert_eq!(two.solvers[0].breakdown.effort[&AttemptClass::Passed].seconds.median, 10.5);
}

/// Imported rollouts have a reward, but no checks.
#[test]
fn imported_rollouts_have_no_step_scores() {
    let mut one = attempt(0, 0, 8);
    one.rollout.record.turns[0].kind = TurnKind::Acted;
    one.rollout.record.actor = Actor::Imported(crate::model::Origin {
        agent: "terminus-2".to_owned(),
        agent_version: None,
        model: None,
        format: "ATIF-v1.6".to_owned(),
        source: String::new(),
    });
    let report = of(vec![one]);
    assert_eq!(report.solvers[0].breakdown.step_scores, StepScores::default());
    assert_eq!(report.solvers[0].counts.passed, 1);
}

#[test]
fn the_report_as_text() {
    insta::assert_snapshot!(text(&several()));
    assert_eq!(text(&of(Vec::new())), "no rollouts\n");
}

#[test]
fn the_report_as_json() {
    let report = several();
    let json = serde_json::to_string_pretty(&report).unwrap();
    // The last digit of a number may change in parsing.
    assert_eq!(text(&serde_json::from_str(&json).unwrap()), text(&report));
    let one = of(vec![by_model(attempt(0, 0, 8), Arm::Base, None)]);
    insta::assert_snapshot!(serde_json::to_string_pretty(&one).unwrap());
}
