//! Plans of passing rollouts: a strategy's steps in a drawn order, with real mistakes that the
//! expert finds and repairs.

use std::collections::BTreeMap;

use rand::rngs::ChaCha20Rng;
use rand::seq::{IndexedRandom as _, SliceRandom as _};
use rand::{RngExt as _, SeedableRng as _};
use serde::Serialize;

use crate::model::{
    ExpertScript, MadeMistake, Mistake, OwnCheck, ScriptStep, ScriptTurn, Seed, Slip, squeeze,
};

/// Probability of a slip, i.e. a typing error. Slips are rare: a model learns little from them.
const SLIP_PROBABILITY: f64 = 0.15;
/// Probability of each optional step, and of each check for a mistake that was not made.
const OPTIONAL_PROBABILITY: f64 = 0.5;
/// Probability that the first repair of a mistake does not repair it.
const SECOND_REPAIR_PROBABILITY: f64 = 0.25;
/// Weights of 0, 1, 2, 3 and 4 mistakes in a rollout. With these, more than half of the passing
/// rollouts have a mistake. A script may have room for fewer.
const MISTAKE_WEIGHTS: [u32; 5] = [3, 4, 2, 1, 1];

/// The plan of a rollout. Its last turn submits.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    pub strategy: String,
    pub turns: Vec<Planned>,
    pub mistakes: Vec<MadeMistake>,
}

/// One planned turn.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Planned {
    pub role: PlannedRole,
    pub say: String,
    /// The command. `None`: the turn submits.
    pub run: Option<String>,
    pub shows: Shows,
    pub capture: BTreeMap<String, String>,
    /// A claim that the final message may make if the observation is as expected, e.g. "the
    /// totals".
    pub claim: Option<String>,
}

/// The part of a turn in its plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum PlannedRole {
    Step {
        id: String,
    },
    Slip {
        before: String,
    },
    /// First check for a mistake that was made: it shows the mistake.
    Check {
        mistake: String,
    },
    Look {
        mistake: String,
    },
    WrongRepair {
        mistake: String,
    },
    Repair {
        mistake: String,
    },
    /// The same check, after a repair.
    Again {
        mistake: String,
    },
    /// Check for a mistake that was not made.
    OtherCheck {
        mistake: String,
    },
    Submit,
}

/// A condition on the output of a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum Shows {
    Anything,
    /// The output must match this pattern. Otherwise the script is wrong.
    Must(String),
    /// Any output is fine. The claim is made only if the output matches this pattern.
    IfClaimed(String),
}

impl Planned {
    /// The command with its blanks squeezed. Turns are the same if these are equal.
    pub fn substance(&self) -> Option<String> {
        self.run.as_deref().map(squeeze)
    }
}

/// A mistake that fits into a plan. `made` is the position of the step that makes it, `after` of
/// the step before its check.
#[derive(Clone, Copy, Debug)]
struct Placed<'a> {
    mistake: &'a Mistake,
    check: &'a OwnCheck,
    made: usize,
    after: usize,
}

/// Draws a plan that passes.
pub fn passing(script: &ExpertScript, strategy: &str, seed: Seed) -> Plan {
    let mut rng = ChaCha20Rng::seed_from_u64(seed.0);
    let steps = draw_steps(script, strategy, &mut rng);
    let mut candidates: Vec<_> = placed(script, strategy, &steps).collect();
    candidates.shuffle(&mut rng);
    let wanted = weighted(&MISTAKE_WEIGHTS, &mut rng);
    let mut made: Vec<Placed<'_>> = Vec::new();
    for candidate in candidates {
        let apart = |other: &Placed<'_>| candidate.after < other.made || other.after < candidate.made;
        if made.len() < wanted && made.iter().all(apart) {
            made.push(candidate);
        }
    }
    let slip = if rng.random_bool(SLIP_PROBABILITY) { script.slips.choose(&mut rng) } else { None };
    Builder { script, strategy, steps: &steps, made: &made, slip, options: Options::Drawn }.build(&mut rng)
}

/// The plan of a strategy with all optional steps and checks, and with `mistake`, if given.
/// `wrong_repair` is the index of a repair that is tried first and fails. `way` is the index of the
/// form that each step has. `None` if the mistake does not fit the strategy.
pub fn rehearsed(
    script: &ExpertScript,
    strategy: &str,
    mistake: Option<&str>,
    wrong_repair: Option<usize>,
    slip: Option<&Slip>,
    way: usize,
) -> Option<Plan> {
    let mut rng = ChaCha20Rng::seed_from_u64(0);
    let steps: Vec<_> = script.steps_of(strategy).collect();
    let made: Vec<_> = placed(script, strategy, &steps)
        .filter(|placed| Some(placed.mistake.name.as_str()) == mistake)
        .collect();
    if mistake.is_some() && made.is_empty() {
        return None;
    }
    let options = Options::All { way, wrong_repair };
    Some(Builder { script, strategy, steps: &steps, made: &made, slip, options }.build(&mut rng))
}

/// `plan` with every lasting check of its strategy before the submission. A lasting check has the
/// same output at the end of the work.
pub fn checked_at_the_end(script: &ExpertScript, mut plan: Plan) -> Plan {
    let mut rng = ChaCha20Rng::seed_from_u64(0);
    let submission = plan.turns.pop();
    let strategy = plan.strategy.clone();
    for mistake in script.mistakes_of(&strategy) {
        if let Some(check) = mistake.check.as_ref().filter(|check| check.lasting) {
            plan.turns.push(other_check_turn(mistake, check, &mut rng));
        }
    }
    plan.turns.extend(submission);
    plan
}

/// The strategy's steps: optional ones are drawn, and the order within each group is shuffled.
fn draw_steps<'a>(script: &'a ExpertScript, strategy: &'a str, rng: &mut ChaCha20Rng) -> Vec<&'a ScriptStep> {
    let mut steps: Vec<_> = script
        .steps_of(strategy)
        .filter(|step| !step.optional || rng.random_bool(OPTIONAL_PROBABILITY))
        .collect();
    for group in steps.chunk_by_mut(|one, other| one.group.is_some() && one.group == other.group) {
        group.shuffle(rng);
    }
    steps
}

fn placed<'a>(
    script: &'a ExpertScript,
    strategy: &'a str,
    steps: &'a [&'a ScriptStep],
) -> impl Iterator<Item = Placed<'a>> {
    let position = |id: &str| steps.iter().position(|step| step.id == id);
    script.mistakes_of(strategy).filter_map(move |mistake| {
        let check = mistake.check.as_ref()?;
        let (made, after) = (position(&mistake.step)?, position(&check.after)?);
        let possible = steps.get(made)?.ways.iter().any(|way| mistake.fault.apply(&way.run).is_some());
        possible.then_some(Placed { mistake, check, made, after })
    })
}

/// How the optional parts of a plan are chosen.
#[derive(Clone, Copy)]
enum Options {
    Drawn,
    /// All optional parts, and this form of each step.
    All {
        way: usize,
        wrong_repair: Option<usize>,
    },
}

struct Builder<'a> {
    script: &'a ExpertScript,
    strategy: &'a str,
    steps: &'a [&'a ScriptStep],
    made: &'a [Placed<'a>],
    slip: Option<&'a Slip>,
    options: Options,
}

impl Builder<'_> {
    fn build(&self, rng: &mut ChaCha20Rng) -> Plan {
        let mut plan = Plan { strategy: self.strategy.to_owned(), turns: Vec::new(), mistakes: Vec::new() };
        for (position, step) in self.steps.iter().enumerate() {
            let made = self.made.iter().find(|made| made.made == position);
            let slip = self.slip.filter(|slip| slip.before == step.id);
            if let Some(slip) = slip {
                plan.turns.push(slip_turn(slip));
            }
            if let Some(mut turn) = self.step(step, made.map(|made| made.mistake), rng) {
                if let Some(slip) = slip {
                    turn.say = format!("{} {}", slip.fix, turn.say);
                }
                if let Some(Placed { mistake, .. }) = made {
                    let made = MadeMistake {
                        name: mistake.name.clone(),
                        kind: mistake.kind,
                        made: plan.turns.len(),
                        wrong_repairs: Vec::new(),
                        repaired: None,
                    };
                    plan.mistakes.push(made);
                }
                plan.turns.push(turn);
            }
            if let Some(made) = self.made.iter().find(|made| made.after == position) {
                self.repair(made, &mut plan, rng);
            }
            self.other_checks(position, &mut plan, rng);
        }
        plan.turns.push(submit(self.script, rng));
        plan
    }

    /// A step in one of its forms, with the fault of `mistake`.
    fn step(&self, step: &ScriptStep, mistake: Option<&Mistake>, rng: &mut ChaCha20Rng) -> Option<Planned> {
        let possible: Vec<_> = step
            .ways
            .iter()
            .filter(|way| mistake.is_none_or(|mistake| mistake.fault.apply(&way.run).is_some()))
            .collect();
        let way = match self.options {
            Options::Drawn => *possible.choose(rng)?,
            Options::All { way, .. } => possible.get(way % possible.len().max(1))?,
        };
        Some(step_turn(step, way, mistake, rng))
    }

    /// After a mistake was made: its check, the search for the cause, the repair, and the check
    /// again.
    fn repair(&self, placed: &Placed<'_>, plan: &mut Plan, rng: &mut ChaCha20Rng) {
        let Placed { mistake, check, .. } = placed;
        plan.turns.push(check_turn(mistake, check, rng));
        plan.turns.extend(look_turns(mistake, check, rng));
        let wrong = match self.options {
            Options::Drawn if rng.random_bool(SECOND_REPAIR_PROBABILITY) => check.wrong_repairs.choose(rng),
            Options::Drawn => None,
            Options::All { wrong_repair, .. } => {
                wrong_repair.and_then(|index| check.wrong_repairs.get(index))
            }
        };
        let tried = wrong.map(|_| plan.turns.len());
        if let Some(wrong) = wrong {
            plan.turns.push(wrong_repair_turn(mistake, wrong, rng));
            plan.turns.push(again_turn(mistake, check, &check.wrong, None, rng));
        }
        if let Some(made) = plan.mistakes.iter_mut().find(|made| made.name == mistake.name) {
            made.wrong_repairs.extend(tried);
            made.repaired = Some(plan.turns.len());
        }
        let role = PlannedRole::Repair { mistake: mistake.name.clone() };
        plan.turns.push(plain_turn(role, &check.repair, rng));
        plan.turns.push(again_turn(mistake, check, &check.right, Some(&check.claim), rng));
    }

    /// Checks for mistakes that were not made. There are none while a fault is open: they might
    /// show it.
    fn other_checks(&self, position: usize, plan: &mut Plan, rng: &mut ChaCha20Rng) {
        if self.made.iter().any(|made| made.made <= position && position < made.after) {
            return;
        }
        let unmade = placed(self.script, self.strategy, self.steps).filter(|placed| {
            placed.after == position && !self.made.iter().any(|made| made.mistake.name == placed.mistake.name)
        });
        let mut unmade: Vec<_> = unmade.collect();
        if let Options::Drawn = self.options {
            unmade.retain(|_| rng.random_bool(OPTIONAL_PROBABILITY));
            unmade.shuffle(rng);
        }
        for Placed { mistake, check, .. } in unmade {
            let mut turn = other_check_turn(mistake, check, rng);
            turn.shows = Shows::Must(check.right.clone());
            plan.turns.push(turn);
        }
    }
}

fn slip_turn(slip: &Slip) -> Planned {
    Planned {
        role: PlannedRole::Slip { before: slip.before.clone() },
        say: slip.say.clone(),
        run: Some(slip.run.clone()),
        shows: Shows::Anything,
        capture: BTreeMap::new(),
        claim: None,
    }
}

/// A step in the form `way`, with the fault of `mistake` if the form can have it.
pub(super) fn step_turn(
    step: &ScriptStep,
    way: &ScriptTurn,
    mistake: Option<&Mistake>,
    rng: &mut ChaCha20Rng,
) -> Planned {
    let mut turn = plain_turn(PlannedRole::Step { id: step.id.clone() }, way, rng);
    turn.claim.clone_from(&step.claim);
    if let Some(mistake) = mistake {
        turn.run = mistake.fault.apply(&way.run);
        if !mistake.say.is_empty() {
            turn.say = pick(&mistake.say, rng);
        }
        if let Some(shows) = &mistake.shows {
            turn.shows = Shows::Must(shows.clone());
        }
    }
    turn
}

fn plain_turn(role: PlannedRole, turn: &ScriptTurn, rng: &mut ChaCha20Rng) -> Planned {
    Planned {
        role,
        say: pick(&turn.say, rng),
        run: Some(turn.run.clone()),
        shows: turn.shows.clone().map_or(Shows::Anything, Shows::Must),
        capture: turn.capture.clone(),
        claim: None,
    }
}

fn check_turn(mistake: &Mistake, check: &OwnCheck, rng: &mut ChaCha20Rng) -> Planned {
    Planned {
        role: PlannedRole::Check { mistake: mistake.name.clone() },
        say: pick(&check.say, rng),
        run: Some(check.run.clone()),
        shows: Shows::Must(check.wrong.clone()),
        capture: BTreeMap::new(),
        claim: None,
    }
}

/// A check for a mistake that was not made. It claims only what it shows.
pub(super) fn other_check_turn(mistake: &Mistake, check: &OwnCheck, rng: &mut ChaCha20Rng) -> Planned {
    Planned {
        role: PlannedRole::OtherCheck { mistake: mistake.name.clone() },
        shows: Shows::IfClaimed(check.right.clone()),
        claim: Some(check.claim.clone()),
        ..check_turn(mistake, check, rng)
    }
}

/// The check after a repair. `shows` is the pattern that its output must match.
pub(super) fn again_turn(
    mistake: &Mistake,
    check: &OwnCheck,
    shows: &str,
    claim: Option<&String>,
    rng: &mut ChaCha20Rng,
) -> Planned {
    Planned {
        role: PlannedRole::Again { mistake: mistake.name.clone() },
        say: pick(&check.again, rng),
        shows: Shows::Must(shows.to_owned()),
        claim: claim.cloned(),
        ..check_turn(mistake, check, rng)
    }
}

pub(super) fn look_turns(mistake: &Mistake, check: &OwnCheck, rng: &mut ChaCha20Rng) -> Vec<Planned> {
    let role = || PlannedRole::Look { mistake: mistake.name.clone() };
    check.look.iter().map(|look| plain_turn(role(), look, rng)).collect()
}

pub(super) fn wrong_repair_turn(mistake: &Mistake, wrong: &ScriptTurn, rng: &mut ChaCha20Rng) -> Planned {
    plain_turn(PlannedRole::WrongRepair { mistake: mistake.name.clone() }, wrong, rng)
}

pub(super) fn submit(script: &ExpertScript, rng: &mut ChaCha20Rng) -> Planned {
    Planned {
        role: PlannedRole::Submit,
        say: pick(&script.done, rng),
        run: None,
        shows: Shows::Anything,
        capture: BTreeMap::new(),
        claim: None,
    }
}

pub(super) fn pick(texts: &[String], rng: &mut ChaCha20Rng) -> String {
    texts.choose(rng).cloned().unwrap_or_default()
}

/// An index, drawn with these weights.
fn weighted(weights: &[u32], rng: &mut ChaCha20Rng) -> usize {
    let mut left = rng.random_range(0..weights.iter().sum::<u32>().max(1));
    for (index, weight) in weights.iter().enumerate() {
        match left.checked_sub(*weight) {
            Some(rest) => left = rest,
            None => return index,
        }
    }
    0
}
