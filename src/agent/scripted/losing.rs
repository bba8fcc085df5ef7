//! Plans of losing rollouts. A plan repeats a passing plan up to a decision, e.g. to skip a check,
//! and then differs.

use std::collections::BTreeSet;

use rand::rngs::ChaCha20Rng;
use rand::seq::{IndexedRandom as _, SliceRandom as _};
use rand::{RngExt as _, SeedableRng as _};

use super::plan::{
    Plan, Planned, PlannedRole, Shows, again_turn, look_turns, other_check_turn, pick, step_turn, submit,
    wrong_repair_turn,
};
use crate::model::{ExpertScript, FailureMode, MadeMistake, Mistake, OwnCheck, ScriptStep, Seed};

/// Minimum novelty ([`novelty`]) of a losing plan. If both sides of a pair ran the same commands,
/// the pair would only teach wording.
pub const LEAST_NOVELTY: f64 = 0.6;
/// A losing plan should have this many turns more than its passing plan. All five are drawn equally
/// often, so that length does not tell winners from losers.
const LENGTH_DIFFERENCES: [i32; 5] = [-2, -1, 0, 1, 2];
/// Plans that are drawn for each mode. The best one is taken.
const DRAWS: usize = 40;
/// Maximum number of optional steps and checks that are added after the decision.
const MOST_ADDED: usize = 6;
/// Probability that a check is repeated after the decision. Passing plans repeat checks after each
/// repair, so losing plans must repeat as often.
const REPEAT_PROBABILITY: f64 = 0.3;
/// Probability that the last wrong repair is checked, and the work submitted although the check
/// fails.
const LAST_CHECK_PROBABILITY: f64 = 0.35;

/// A losing plan, and how it relates to its passing plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Losing {
    pub plan: Plan,
    pub mode: FailureMode,
    pub mistake: String,
    /// Number of first turns that both plans share.
    pub shared: usize,
}

/// How a rollout comes to lose: the mode, the mistake, and the number of turns before the decision.
#[derive(Clone, Copy, Debug)]
pub struct Decision<'a> {
    pub mode: FailureMode,
    pub mistake: &'a Mistake,
    pub shared: usize,
}

/// All points at which a rollout that follows `passing` can go wrong.
pub fn decisions<'a>(script: &'a ExpertScript, passing: &Plan) -> Vec<Decision<'a>> {
    let mut found = Vec::new();
    for (turn, planned) in passing.turns.iter().enumerate() {
        let named = |name: &str| script.mistakes.iter().find(|mistake| mistake.name == name);
        match &planned.role {
            PlannedRole::Check { mistake } => {
                let Some(mistake) = named(mistake) else { continue };
                found.push(Decision { mode: FailureMode::SkippedCheck, mistake, shared: turn });
                found.push(Decision { mode: FailureMode::MisreadCheck, mistake, shared: turn + 1 });
            }
            PlannedRole::Repair { mistake } => {
                let Some(mistake) = named(mistake) else { continue };
                found.push(Decision { mode: FailureMode::GaveUp, mistake, shared: turn });
                found.push(Decision { mode: FailureMode::WrongRepair, mistake, shared: turn });
            }
            PlannedRole::Step { id } => {
                let possible = script.mistakes_of(&passing.strategy).filter(|mistake| {
                    mistake.step == *id
                        && !passing
                            .mistakes
                            .iter()
                            .any(|made| made.name == mistake.name || is_open(made, turn))
                        && planned.run.as_ref().is_some_and(|run| mistake.fault.apply(run).is_some())
                });
                found.extend(possible.map(|mistake| Decision {
                    mode: FailureMode::MissedRequirement,
                    mistake,
                    shared: turn,
                }));
            }
            PlannedRole::Slip { .. }
            | PlannedRole::Look { .. }
            | PlannedRole::WrongRepair { .. }
            | PlannedRole::Again { .. }
            | PlannedRole::OtherCheck { .. }
            | PlannedRole::Submit => {}
        }
    }
    found
}

/// Whether the mistake has been made at this turn, and not repaired.
fn is_open(made: &MadeMistake, turn: usize) -> bool {
    made.made <= turn && made.repaired.is_none_or(|repaired| turn <= repaired)
}

/// Draws a losing plan that follows `passing` up to a decision. `None` if the script has no
/// decision.
pub fn losing(script: &ExpertScript, passing: &Plan, seed: Seed) -> Option<Losing> {
    let mut rng = ChaCha20Rng::seed_from_u64(seed.0);
    let possible = decisions(script, passing);
    let mut modes: Vec<_> = possible.iter().map(|decision| decision.mode).collect();
    modes.sort_unstable();
    modes.dedup();
    // The mode is drawn before the decision: a script can have far more missed requirements than
    // other decisions.
    modes.shuffle(&mut rng);
    let wanted = *LENGTH_DIFFERENCES.choose(&mut rng)?;
    let mut best: Option<(bool, i64, Losing)> = None;
    for mode in modes {
        let of_mode: Vec<_> = possible.iter().filter(|decision| decision.mode == mode).collect();
        for _ in 0..DRAWS {
            let drawn = lose(script, passing, **of_mode.choose(&mut rng)?, &mut rng);
            let novel = novelty(&drawn, passing) >= LEAST_NOVELTY;
            let difference = drawn.plan.turns.len() as i64 - passing.turns.len() as i64;
            let distance = (difference - i64::from(wanted)).abs();
            let better = best
                .as_ref()
                .is_none_or(|(was_novel, was_distance, _)| (novel, -distance) > (*was_novel, -*was_distance));
            if better {
                best = Some((novel, distance, drawn));
            }
        }
        // Another mode is tried only if this one has no plan with enough novelty.
        if best.as_ref().is_some_and(|(novel, _, _)| *novel) {
            break;
        }
    }
    best.map(|(_, _, losing)| losing)
}

/// Share of the losing plan's commands after the decision that the passing plan does not run after
/// it. 1 if there are none.
pub fn novelty(losing: &Losing, passing: &Plan) -> f64 {
    let substances = |plan: &Plan| -> Vec<String> {
        plan.turns.iter().skip(losing.shared).filter_map(Planned::substance).collect()
    };
    let theirs: BTreeSet<_> = substances(passing).into_iter().collect();
    let ours = substances(&losing.plan);
    if ours.is_empty() {
        return 1.0;
    }
    ours.iter().filter(|run| !theirs.contains(*run)).count() as f64 / ours.len() as f64
}

/// A plan that follows `passing` up to this decision, and then loses.
pub fn lose(script: &ExpertScript, passing: &Plan, decision: Decision<'_>, rng: &mut ChaCha20Rng) -> Losing {
    let Decision { mode, mistake, shared } = decision;
    let (before, after) = passing.turns.split_at(shared.min(passing.turns.len()));
    let mut turns = before.to_vec();
    let mut mistakes: Vec<_> = passing.mistakes.iter().filter(|made| made.made < shared).cloned().collect();
    for made in &mut mistakes {
        made.repaired = made.repaired.filter(|repaired| *repaired < shared);
        made.wrong_repairs.retain(|turn| *turn < shared);
    }
    let tail = Tail { script, passing, after, mistake };
    match mode {
        FailureMode::MissedRequirement => {
            mistakes.push(MadeMistake {
                name: mistake.name.clone(),
                kind: mistake.kind,
                made: shared,
                wrong_repairs: Vec::new(),
                repaired: None,
            });
            turns.extend(tail.faulty_step(rng));
        }
        FailureMode::WrongRepair => turns.extend(tail.wrong_repairs(before, rng)),
        FailureMode::GaveUp => turns.extend(tail.another_look(rng)),
        FailureMode::SkippedCheck | FailureMode::MisreadCheck => {}
    }
    turns.extend(tail.rest(&turns, rng));
    turns.push(submit(script, rng));
    if mode == FailureMode::MisreadCheck
        && let (Some(next), Some(check)) = (turns.get_mut(shared), &mistake.check)
    {
        next.say = format!("{} {}", pick(&check.misread, rng), next.say);
    }
    // In a losing rollout the output may differ from the script's patterns. That is no error; it
    // only withholds a claim.
    for turn in turns.iter_mut().skip(shared) {
        turn.shows = match std::mem::replace(&mut turn.shows, Shows::Anything) {
            Shows::Must(pattern) | Shows::IfClaimed(pattern) => Shows::IfClaimed(pattern),
            Shows::Anything => Shows::Anything,
        };
    }
    Losing {
        plan: Plan { strategy: passing.strategy.clone(), turns, mistakes },
        mode,
        mistake: mistake.name.clone(),
        shared,
    }
}

/// The parts of a losing plan after its decision.
struct Tail<'a> {
    script: &'a ExpertScript,
    passing: &'a Plan,
    /// The passing plan's turns after the decision.
    after: &'a [Planned],
    mistake: &'a Mistake,
}

impl<'a> Tail<'a> {
    fn check(&self) -> Option<&'a OwnCheck> {
        self.mistake.check.as_ref()
    }

    /// The passing plan's next step in the same form, with the fault.
    fn faulty_step(&self, rng: &mut ChaCha20Rng) -> Option<Planned> {
        let planned = self.after.first()?;
        let step = self.script.step(&self.mistake.step)?;
        let way = step.ways.iter().find(|way| Some(&way.run) == planned.run.as_ref())?;
        let mut turn = step_turn(step, way, Some(self.mistake), rng);
        if self.mistake.say.is_empty() {
            turn.say.clone_from(&planned.say);
        }
        Some(turn)
    }

    /// Repairs that miss the cause. A check follows each but the last. After the last, it follows
    /// with [`LAST_CHECK_PROBABILITY`].
    fn wrong_repairs(&self, before: &[Planned], rng: &mut ChaCha20Rng) -> Vec<Planned> {
        let Some(check) = self.check() else { return Vec::new() };
        let done: BTreeSet<_> = before.iter().filter_map(|turn| turn.run.as_deref()).collect();
        let mut wrong: Vec<_> =
            check.wrong_repairs.iter().filter(|repair| !done.contains(repair.run.as_str())).collect();
        wrong.shuffle(rng);
        let count = if wrong.is_empty() { 0 } else { rng.random_range(1..=wrong.len()) };
        let mut turns = Vec::new();
        for (index, repair) in wrong.into_iter().take(count).enumerate() {
            if index > 0 {
                turns.push(again_turn(self.mistake, check, &check.wrong, None, rng));
            }
            turns.push(wrong_repair_turn(self.mistake, repair, rng));
        }
        if !turns.is_empty() && rng.random_bool(LAST_CHECK_PROBABILITY) {
            turns.push(again_turn(self.mistake, check, &check.wrong, None, rng));
        }
        turns
    }

    /// One of the looks for the cause, once more. `None` if there is only one.
    fn another_look(&self, rng: &mut ChaCha20Rng) -> Option<Planned> {
        let looks = look_turns(self.mistake, self.check()?, rng);
        let again = looks.choose(rng).filter(|_| looks.len() > 1);
        again.cloned()
    }

    /// The remaining steps, if possible in other forms than the passing plan's. Then some optional
    /// steps and checks.
    fn rest(&self, turns: &[Planned], rng: &mut ChaCha20Rng) -> Vec<Planned> {
        let theirs: BTreeSet<_> = self.after.iter().filter_map(Planned::substance).collect();
        let mut done: BTreeSet<_> =
            turns.iter().filter_map(|turn| step_id(turn).map(str::to_owned)).collect();
        let mut rest = Vec::new();
        for step in self.after.iter().filter_map(step_id).filter_map(|id| self.script.step(id)) {
            if !step.optional && done.insert(step.id.clone()) {
                rest.extend(other_way(step, &theirs, rng));
            }
        }
        let mut added = self.added(&done, &theirs, turns, rng);
        added.truncate(rng.random_range(0..=MOST_ADDED));
        rest.extend(added);
        if rng.random_bool(REPEAT_PROBABILITY) {
            let repeated = self.repeated(turns.iter().chain(&rest), rng);
            rest.extend(repeated);
        }
        rest
    }

    /// Repeats one of the checks for other mistakes that were run.
    fn repeated<'t>(&self, ran: impl Iterator<Item = &'t Planned>, rng: &mut ChaCha20Rng) -> Option<Planned> {
        let named = |turn: &Planned| {
            let (PlannedRole::OtherCheck { mistake } | PlannedRole::Again { mistake }) = &turn.role else {
                return None;
            };
            let mut others = self.script.mistakes.iter().filter(|other| other.name != self.mistake.name);
            others.find(|other| other.name == *mistake)
        };
        let lasts = |mistake: &&Mistake| mistake.check.as_ref().is_some_and(|check| check.lasting);
        let others: Vec<_> = ran.filter_map(named).filter(lasts).collect();
        let mistake = others.choose(rng)?;
        let check = mistake.check.as_ref()?;
        Some(Planned { say: pick(&check.again, rng), ..other_check_turn(mistake, check, rng) })
    }

    /// Optional steps, and checks for other mistakes, that have not been run. Those that the
    /// passing plan does not run come first.
    fn added(
        &self,
        done: &BTreeSet<String>,
        theirs: &BTreeSet<String>,
        turns: &[Planned],
        rng: &mut ChaCha20Rng,
    ) -> Vec<Planned> {
        let strategy = &self.passing.strategy;
        // A look at the start of the work would be out of place now.
        let position = |id: &str| self.script.steps_of(strategy).position(|step| step.id == id);
        let reached = turns.iter().filter_map(step_id).filter_map(position).max();
        let steps = self.script.steps_of(strategy).enumerate().filter(|(at, _)| Some(*at) > reached);
        let steps = steps.map(|(_, step)| step).filter(|step| step.optional && !done.contains(&step.id));
        let mut added: Vec<_> = steps.filter_map(|step| other_way(step, theirs, rng)).collect();
        let ran: BTreeSet<_> = turns.iter().filter_map(|turn| turn.run.as_deref()).collect();
        for mistake in self.script.mistakes_of(strategy).filter(|mistake| mistake.name != self.mistake.name) {
            let check = mistake.check.as_ref().filter(|check| check.lasting);
            if let Some(check) = check.filter(|check| !ran.contains(check.run.as_str())) {
                added.push(other_check_turn(mistake, check, rng));
            }
        }
        added.shuffle(rng);
        added.sort_by_key(|turn| turn.substance().is_some_and(|run| theirs.contains(&run)));
        added
    }
}

fn step_id(turn: &Planned) -> Option<&str> {
    if let PlannedRole::Step { id } = &turn.role { Some(id) } else { None }
}

/// The step in a form with a command that is not in `theirs`. If there is none, in any form.
fn other_way(step: &ScriptStep, theirs: &BTreeSet<String>, rng: &mut ChaCha20Rng) -> Option<Planned> {
    let mut ways: Vec<_> = step.ways.iter().map(|way| step_turn(step, way, None, rng)).collect();
    ways.shuffle(rng);
    ways.sort_by_key(|turn| turn.substance().is_some_and(|run| theirs.contains(&run)));
    ways.into_iter().next()
}
