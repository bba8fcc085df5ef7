//! Conditions that an expert script must meet to be usable.

use std::collections::BTreeSet;

use crate::model::{ExpertScript, Mistake, OwnCheck, ScriptTurn};

/// The first condition that `script` violates.
pub(super) fn check(script: &ExpertScript) -> Result<(), String> {
    if script.strategies.is_empty() || script.steps.is_empty() || script.done.is_empty() {
        return Err("it needs strategies, steps, and texts for `done`".to_owned());
    }
    unique("strategy", script.strategies.iter())?;
    unique("step", script.steps.iter().map(|step| &step.id))?;
    unique("mistake", script.mistakes.iter().map(|mistake| &mistake.name))?;
    for step in &script.steps {
        known_strategies(script, &format!("step `{}`", step.id), &step.strategies)?;
        for way in &step.ways {
            turn(&format!("step `{}`", step.id), way)?;
        }
    }
    for strategy in &script.strategies {
        if script.steps_of(strategy).next().is_none() {
            return Err(format!("strategy `{strategy}` has no step"));
        }
    }
    for slip in &script.slips {
        if script.step(&slip.before).is_none() {
            return Err(format!("a slip is placed before step `{}`, which does not exist", slip.before));
        }
    }
    if script.mistakes.is_empty() {
        return Err("it needs at least one mistake: an expert that never errs teaches no recovery".to_owned());
    }
    script.mistakes.iter().try_for_each(|mistake| self::mistake(script, mistake))
}

fn mistake(script: &ExpertScript, mistake: &Mistake) -> Result<(), String> {
    let place = format!("mistake `{}`", mistake.name);
    known_strategies(script, &place, &mistake.strategies)?;
    if !mistake.from.starts_with("clause:") && !mistake.from.starts_with("wrong:") {
        return Err(format!(
            "{place}: `from` names a violation, `clause:ID/VIOLATION`, or a wrong solution, `wrong:NAME`"
        ));
    }
    let mut possible = false;
    for strategy in &script.strategies {
        if !script.mistakes_of(strategy).any(|other| other.name == mistake.name) {
            continue;
        }
        let position = |id: &str| script.steps_of(strategy).position(|step| step.id == id);
        let Some(made) = position(&mistake.step) else { continue };
        let Some(step) = script.steps_of(strategy).nth(made) else { continue };
        if step.optional {
            return Err(format!(
                "{place}: step `{}` is optional, so the fault may never be written",
                step.id
            ));
        }
        possible |= step.ways.iter().any(|way| mistake.fault.apply(&way.run).is_some());
        if let Some(check) = &mistake.check {
            let after = position(&check.after).ok_or_else(|| {
                format!(
                    "{place}: its check comes after step `{}`, which strategy `{strategy}` lacks",
                    check.after
                )
            })?;
            let optional = script.steps_of(strategy).nth(after).is_some_and(|step| step.optional);
            if after < made || optional {
                return Err(format!(
                    "{place}: its check comes after step `{}`, which must be the faulty step or a later one, and not optional",
                    check.after
                ));
            }
        }
    }
    if !possible {
        return Err(format!(
            "{place}: no way of step `{}` can have the fault; each `from` must occur exactly once in its command",
            mistake.step
        ));
    }
    mistake.check.as_ref().map_or(Ok(()), |check| own_check(&place, check))
}

fn own_check(place: &str, check: &OwnCheck) -> Result<(), String> {
    for (what, texts) in [("say", &check.say), ("again", &check.again), ("misread", &check.misread)] {
        if texts.is_empty() {
            return Err(format!("{place}: its check needs texts for `{what}`"));
        }
    }
    if check.look.is_empty() || check.wrong_repairs.is_empty() {
        return Err(format!("{place}: it needs `look` and `wrong_repair`"));
    }
    check
        .look
        .iter()
        .chain([&check.repair])
        .chain(&check.wrong_repairs)
        .try_for_each(|each| turn(place, each))
}

fn turn(place: &str, turn: &ScriptTurn) -> Result<(), String> {
    if turn.say.is_empty() || turn.run.trim().is_empty() {
        return Err(format!("{place}: each turn needs something to say and something to run"));
    }
    Ok(())
}

fn known_strategies(script: &ExpertScript, place: &str, names: &[String]) -> Result<(), String> {
    match names.iter().find(|name| !script.strategies.contains(name)) {
        Some(name) => Err(format!("{place}: there is no strategy `{name}`")),
        None => Ok(()),
    }
}

fn unique<'a>(what: &str, names: impl Iterator<Item = &'a String>) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(format!("there are two {what} entries `{name}`"));
        }
    }
    Ok(())
}
