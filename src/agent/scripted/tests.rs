//! Plans drawn from a small script, and their messages.

use super::*;
use crate::model::{
    CommandEdit, FailureMode, Fault, Mistake, MistakeKind, OwnCheck, ScriptStep, ScriptTurn, Seed, Slip,
};

fn turn(say: &str, run: &str) -> ScriptTurn {
    ScriptTurn { say: vec![say.to_owned()], run: run.to_owned(), ..ScriptTurn::default() }
}

fn step(id: &str, ways: &[&str]) -> ScriptStep {
    ScriptStep {
        id: id.to_owned(),
        strategies: Vec::new(),
        group: None,
        optional: false,
        ways: ways.iter().map(|run| turn(&format!("now {id}."), run)).collect(),
        claim: None,
    }
}

fn mistake(name: &str, step: &str, after: &str, edit: (&str, &str)) -> Mistake {
    Mistake {
        name: name.to_owned(),
        kind: MistakeKind::Boundary,
        from: "wrong:x".to_owned(),
        strategies: Vec::new(),
        step: step.to_owned(),
        fault: Fault::Edits(vec![CommandEdit { from: edit.0.to_owned(), to: edit.1.to_owned() }]),
        say: Vec::new(),
        shows: None,
        check: Some(OwnCheck {
            after: after.to_owned(),
            say: vec!["a check.".to_owned()],
            run: format!("check {name}"),
            wrong: format!("{name} bad"),
            right: format!("{name} good"),
            again: vec!["again.".to_owned()],
            misread: vec!["fine.".to_owned()],
            claim: format!("the {name}"),
            lasting: true,
            look: vec![
                turn("look.", &format!("look {name}")),
                turn("closer.", &format!("look closer {name}")),
            ],
            repair: turn("repair.", &format!("repair {name}")),
            wrong_repairs: vec![
                turn("something.", &format!("mend {name}")),
                turn("else.", &format!("mend {name} else")),
            ],
        }),
    }
}

fn script() -> ExpertScript {
    let optional = |id: &str, ways: &[&str]| ScriptStep { optional: true, ..step(id, ways) };
    ExpertScript {
        strategies: vec!["awk".to_owned(), "python".to_owned()],
        steps: vec![
            step("look", &["ls", "find ."]),
            ScriptStep {
                strategies: vec!["awk".to_owned()],
                ..step("write", &["awk '$1 > 3'", "gawk '$1 > 3'"])
            },
            ScriptStep {
                id: "write-python".to_owned(),
                strategies: vec!["python".to_owned()],
                ..step("write", &["python3 > 3"])
            },
            step("run", &["./run", "bash run"]),
            optional("show", &["cat out", "head out"]),
            optional("count", &["wc -l out", "grep -c . out"]),
        ],
        mistakes: vec![
            mistake("limit", "write", "run", ("> 3", ">= 3")),
            mistake("limit-python", "write-python", "run", ("> 3", ">= 3")),
            mistake("ran", "run", "run", ("run", "walk")),
        ],
        slips: vec![Slip {
            before: "run".to_owned(),
            say: "run.".to_owned(),
            run: "./rnu".to_owned(),
            fix: "Mistyped.".to_owned(),
        }],
        done: vec!["Done.".to_owned()],
    }
}

/// The command of each turn. `.` is the submission.
fn commands(plan: &Plan) -> Vec<&str> {
    plan.turns.iter().map(|turn| turn.run.as_deref().unwrap_or(".")).collect()
}

#[test]
fn a_mistake_is_found_looked_at_and_repaired() {
    let check = |mistake: Option<&str>, wrong_repair: Option<usize>, expect: &[&str]| {
        let plan = rehearsed(&script(), "awk", mistake, wrong_repair, None, 0).unwrap();
        assert_eq!(commands(&plan), expect, "{mistake:?}");
    };
    let rest = ["cat out", "wc -l out", "."];
    let clean = ["ls", "awk '$1 > 3'", "./run", "check limit", "check ran"];
    check(None, None, &[&clean[..], &rest[..]].concat());
    let faulty = ["ls", "awk '$1 >= 3'", "./run", "check limit", "look limit", "look closer limit"];
    let repaired = ["repair limit", "check limit", "check ran"];
    check(Some("limit"), None, &[&faulty[..], &repaired[..], &rest[..]].concat());
    let twice = ["mend limit else", "check limit"];
    check(Some("limit"), Some(1), &[&faulty[..], &twice[..], &repaired[..], &rest[..]].concat());
    assert_eq!(rehearsed(&script(), "awk", Some("limit-python"), None, None, 0), None);
}

#[test]
fn losing_plans_share_the_passing_plan_up_to_their_decision() {
    let script = script();
    let mut modes = std::collections::BTreeMap::new();
    for seed in 0..400 {
        let strategy = &script.strategies[seed as usize % 2];
        let pass = passing(&script, strategy, Seed(seed));
        assert!(pass.turns.last().is_some_and(|turn| turn.role == PlannedRole::Submit));
        let lost = losing(&script, &pass, Seed(seed)).unwrap();
        assert_eq!(pass.turns[..lost.shared], lost.plan.turns[..lost.shared], "seed {seed}");
        assert_ne!(pass.turns.get(lost.shared), lost.plan.turns.get(lost.shared), "seed {seed}");
        let left = lost.plan.mistakes.iter().filter(|made| made.repaired.is_none());
        assert_eq!(
            left.map(|made| made.name.as_str()).collect::<Vec<_>>(),
            [lost.mistake.as_str()],
            "seed {seed}"
        );
        let repair = format!("repair {}", lost.mistake);
        assert!(!commands(&lost.plan).contains(&repair.as_str()), "seed {seed}");
        *modes.entry(lost.mode).or_insert(0) += 1;
    }
    assert_eq!(modes.into_keys().collect::<Vec<_>>(), FailureMode::ALL, "every mode is drawn");
}

#[test]
fn drawn_plans_have_the_shares_that_are_wanted() {
    const DRAWN: u32 = 400;
    let script = script();
    let (mut erring, mut slips, mut longer) = (0, 0, 0_i64);
    for seed in 0..DRAWN {
        let pass = passing(&script, "awk", Seed(seed.into()));
        erring += u32::from(!pass.mistakes.is_empty());
        slips += u32::from(pass.turns.iter().any(|turn| matches!(turn.role, PlannedRole::Slip { .. })));
        let lost = losing(&script, &pass, Seed(seed.into())).unwrap();
        longer += lost.plan.turns.len() as i64 - pass.turns.len() as i64;
        assert!(pass.mistakes.iter().all(|made| made.repaired.is_some_and(|repaired| repaired > made.made)));
    }
    assert!(erring * 2 >= DRAWN, "{erring} of {DRAWN} passes err, and at least half should");
    assert!(slips * 4 <= DRAWN, "{slips} of {DRAWN} passes have a slip, and they should be rare");
    assert!(longer.unsigned_abs() <= u64::from(DRAWN) * 2, "losing plans differ by {longer} turns in all");
}

/// Runs a plan and returns its messages. `shows` gives the output of a command.
fn run(plan: &Plan, shows: impl Fn(&str) -> String) -> Result<Vec<String>, ScriptError> {
    let mut agent = ScriptedAgent::new(&script(), plan, MessageFormat::BashBlock);
    let mut seen: Option<String> = None;
    let mut messages = Vec::new();
    for turn in &plan.turns {
        messages.push(agent.next_message(seen.as_deref())?.content);
        seen = turn.run.as_deref().map(&shows);
    }
    Ok(messages)
}

#[test]
fn only_what_was_shown_is_claimed() {
    let plan = rehearsed(&script(), "awk", None, None, None, 0).unwrap();
    let right =
        |command: &str| command.strip_prefix("check ").map(|name| format!("{name} good")).unwrap_or_default();
    let last = |messages: Vec<String>| messages.last().cloned().unwrap_or_default();
    let check = |plan: &Plan, expect: &str| {
        assert_eq!(last(run(plan, right).unwrap()), format!("{expect}\n\n```bash\nsubmit\n```"));
    };
    check(&plan, "Done. Checked: the limit; the ran.");
    let without = |turn: &Planned| turn.run.as_deref() != Some("check limit");
    let fewer =
        Plan { turns: plan.turns.iter().filter(|turn| without(turn)).cloned().collect(), ..plan.clone() };
    check(&fewer, "Done. Checked: the ran. Not checked: the limit.");
    // If its own check fails, a passing plan is an error of the script. A losing plan continues,
    // and does not make the claim.
    let wrong =
        |command: &str| command.strip_prefix("check ").map(|name| format!("{name} bad")).unwrap_or_default();
    assert!(matches!(run(&plan, wrong), Err(ScriptError::NotShown { .. })));
    let made = rehearsed(&script(), "awk", Some("limit"), None, None, 0).unwrap();
    let mut rng = <rand::rngs::ChaCha20Rng as rand::SeedableRng>::seed_from_u64(0);
    let script = script();
    let found = decisions(&script, &made);
    let misread = found.iter().find(|decision| decision.mode == FailureMode::MisreadCheck).unwrap();
    let lost = lose(&script, &made, *misread, &mut rng);
    let messages = run(&lost.plan, wrong).unwrap();
    assert!(messages[lost.shared].starts_with("fine. "), "{messages:?}");
    // The check ran, so "Not checked" does not list it either.
    assert!(!last(messages).contains("the limit"));
}

#[test]
fn placeholders_are_filled_from_what_was_shown() {
    let mut plan = rehearsed(&script(), "awk", None, None, None, 0).unwrap();
    plan.turns.truncate(2);
    plan.turns[0].capture.insert("file".to_owned(), r"(\w+)\.csv".to_owned());
    plan.turns[1].run = Some("wc @{file}.csv".to_owned());
    let check = |output: &str, expect: Result<bool, ()>| {
        let messages = run(&plan, |_| output.to_owned());
        assert_eq!(messages.map(|lines| lines[1].contains("wc a.csv")).map_err(|_| ()), expect, "{output}");
    };
    check("a.csv", Ok(true));
    check("nothing here", Err(()));
    plan.turns[1].run = Some("perl -e 'push @{ $x{a} }, 1' @{file}".to_owned());
    let filled = run(&plan, |_| "a.csv".to_owned()).unwrap();
    assert!(filled[1].contains("push @{ $x{a} }, 1' a"), "{filled:?}");
    plan.turns[0].capture.clear();
    assert_eq!(run(&plan, |_| String::new()), Err(ScriptError::Unseen("file".to_owned())));
}
