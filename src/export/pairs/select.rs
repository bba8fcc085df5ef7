//! The selection of pairs, and the reason why a rollout is in none.

use serde::Serialize;

use super::kind::{PairKind, shared_turns};
use super::{Looping, MixedTasks, Pair, PairPolicy, Preference, breaks_p2p};
use crate::export::actions::{Action, actions, commands, divergence};
use crate::export::function_messages::has_functions;
use crate::export::messages::{has_empty_message, has_odd_order};
use crate::export::version::version;
use crate::judge::Label;
use crate::model::{Message, Rewards, Rollout, ToolDefinition};

/// The pairs of one task, and its rollouts without a pair.
#[derive(Clone, Debug, PartialEq)]
pub struct Selection<'a> {
    /// Best first.
    pub pairs: Vec<Pair<'a>>,
    /// In the order of the rollouts.
    pub unpaired: Vec<(&'a Rollout, Unpaired)>,
}

/// Why a rollout is in no pair. There is a reason for each other rollout of the task; the one that
/// comes last in this order is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unpaired {
    /// It cannot be part of a pair: it was not measured, has no or empty messages, has several
    /// conversations, was told to cheat, or is a loop.
    NoSide,
    /// No other rollout of the task can be part of a pair.
    Alone,
    /// The other rollouts were given another system message, task text or other functions.
    OtherPrompt,
    /// The rewards are equal, or differ by less than the policy's margin.
    EqualReward,
    /// The better side breaks a P2P check.
    BreaksP2p,
    /// One side has too many times the turns of the other.
    Lengths,
    /// Both sides did the same, or one has all actions of the other.
    SameActions,
    /// The policy's limit of pairs was reached, or another pair has the same commands.
    LimitReached,
}

impl Unpaired {
    pub const ALL: [Self; 8] = [
        Self::NoSide,
        Self::Alone,
        Self::OtherPrompt,
        Self::EqualReward,
        Self::BreaksP2p,
        Self::Lengths,
        Self::SameActions,
        Self::LimitReached,
    ];

    /// The reason as the card states it.
    pub fn describe(self) -> &'static str {
        match self {
            Self::NoSide => {
                "unusable: not measured, no messages or an empty one, several conversations, told to cheat, or repeating itself in a loop"
            }
            Self::Alone => "no other rollout of the task is usable",
            Self::OtherPrompt => {
                "the other rollouts were given another system message or task text, or other functions"
            }
            Self::EqualReward => "the rewards are equal, or differ by less than the policy's margin",
            Self::BreaksP2p => "the better side breaks a check that the untouched environment passes",
            Self::Lengths => "one side has too many times as many turns as the other",
            Self::SameActions => "no differing action: both sides did the same, or one stopped earlier",
            Self::LimitReached => {
                "the policy's limit of pairs was reached, or another pair has the same commands"
            }
        }
    }
}

/// Selects the pairs of one task.
pub fn select<'a>(rollouts: &'a [Rollout], policy: &PairPolicy) -> Result<Selection<'a>, MixedTasks> {
    check_same_task(rollouts)?;
    let sides: Vec<Side<'a>> = rollouts.iter().filter_map(|rollout| Side::of(rollout, policy)).collect();
    let mut candidates: Vec<Candidate<'_, 'a>> = Vec::new();
    for chosen in &sides {
        candidates.extend(sides.iter().filter_map(|rejected| Candidate::of(chosen, rejected, policy).ok()));
        candidates.extend(Candidate::of_rounds(chosen, policy));
    }
    candidates.sort_by(|one, other| one.order(other, policy.prefer));
    let pairs = spread(&candidates, policy);
    let unpaired = rollouts.iter().filter(|rollout| !pairs.iter().any(|pair| has(pair, rollout)));
    let unpaired = unpaired.map(|rollout| (rollout, reason(rollout, &sides, policy))).collect();
    Ok(Selection { pairs, unpaired })
}

fn has(pair: &Pair<'_>, rollout: &Rollout) -> bool {
    pair.chosen.id == rollout.id || pair.rejected.id == rollout.id
}

/// A rollout that may be part of a pair: measured, with turns, and no loop unless the policy keeps
/// loops.
struct Side<'a> {
    rollout: &'a Rollout,
    rewards: Rewards,
    reward: f64,
    actions: Vec<Action>,
    opening: Vec<Message>,
}

impl<'a> Side<'a> {
    fn of(rollout: &'a Rollout, policy: &PairPolicy) -> Option<Self> {
        let rewards = rollout.rewards?;
        let kept = !is_looping(rollout) || policy.looping == Looping::Keep;
        // Not usable are an adversary's messages, which must not be imitated, and empty messages,
        // which chat templates refuse. Rollouts of several conversations are not usable either,
        // because no single one led to the reward. Pairs are text, in which roles must alternate.
        let whole = rollout.record.handoffs.is_empty();
        let alternates = !has_functions(rollout) || !has_odd_order(rollout);
        let usable = !rollout.record.turns.is_empty()
            && whole
            && !rollout.record.is_adversarial()
            && !has_empty_message(rollout)
            && alternates;
        let reward = policy.reward.of(&rewards);
        (kept && usable).then(|| Self {
            rollout,
            rewards,
            reward,
            actions: actions(rollout),
            opening: rollout.record.opening(),
        })
    }

    fn id(&self) -> &'a str {
        &self.rollout.id
    }

    fn turns(&self) -> usize {
        self.actions.len()
    }

    /// The first messages, and the functions. They must be equal on both sides of a pair.
    fn instructions(&self) -> (&[Message], &'a [ToolDefinition]) {
        (&self.opening, &self.rollout.record.tools)
    }
}

pub(super) fn is_looping(rollout: &Rollout) -> bool {
    rollout.labels.iter().any(|label| label == Label::MechanicalLoop.as_str())
}

fn check_same_task(rollouts: &[Rollout]) -> Result<(), MixedTasks> {
    let Some(first) = rollouts.first() else { return Ok(()) };
    match rollouts.iter().find(|other| version(other) != version(first)) {
        None => Ok(()),
        Some(other) => Err(MixedTasks {
            task: first.record.task.to_string(),
            one: first.id.clone(),
            other: other.id.clone(),
        }),
    }
}

/// A pair that the policy allows.
struct Candidate<'s, 'a> {
    pair: Pair<'a>,
    chosen: &'s Side<'a>,
    rejected: &'s Side<'a>,
}

impl<'s, 'a> Candidate<'s, 'a> {
    fn of(chosen: &'s Side<'a>, rejected: &'s Side<'a>, policy: &PairPolicy) -> Result<Self, Unpaired> {
        if chosen.instructions() != rejected.instructions() {
            return Err(Unpaired::OtherPrompt);
        }
        check_rewards(chosen.reward, rejected.reward, policy)?;
        if breaks_p2p(&chosen.rewards) {
            return Err(Unpaired::BreaksP2p);
        }
        if turn_ratio(chosen.turns(), rejected.turns()) > policy.max_turn_ratio {
            return Err(Unpaired::Lengths);
        }
        let at = divergence(&chosen.actions, &rejected.actions).ok_or(Unpaired::SameActions)?;
        // The sides must differ in a command, not only in a message such as a question or a
        // malformed reply.
        if commands(&chosen.actions) == commands(&rejected.actions) {
            return Err(Unpaired::SameActions);
        }
        let shared = shared_turns(chosen.rollout, rejected.rollout, at);
        let pair = Pair {
            chosen: chosen.rollout,
            rejected: rejected.rollout,
            chosen_rewards: chosen.rewards,
            rejected_rewards: rejected.rewards,
            chosen_reward: chosen.reward,
            rejected_reward: rejected.reward,
            kind: PairKind::of(rejected.rollout, at, shared),
            divergence: at,
            shared,
            rejected_turns: rejected.turns(),
        };
        Ok(Self { pair, chosen, rejected })
    }

    /// The last two rounds of a rollout, if the last one is better.
    fn of_rounds(side: &'s Side<'a>, policy: &PairPolicy) -> Option<Self> {
        let failed = side.rollout.record.rounds.last()?;
        let rewards = (*side.rollout.round_rewards.get(side.rollout.record.rounds.len() - 1)?)?;
        let reward = policy.reward.of(&rewards);
        let fits = side.rollout.record.succeeded()
            && check_rewards(side.reward, reward, policy).is_ok()
            && !breaks_p2p(&side.rewards)
            && (1..side.turns()).contains(&failed.turns)
            && turn_ratio(side.turns(), failed.turns) <= policy.max_turn_ratio;
        let pair = Pair {
            chosen: side.rollout,
            rejected: side.rollout,
            chosen_rewards: side.rewards,
            rejected_rewards: rewards,
            chosen_reward: side.reward,
            rejected_reward: reward,
            kind: PairKind::SelfCorrection,
            divergence: failed.turns,
            shared: failed.turns,
            rejected_turns: failed.turns,
        };
        fits.then_some(Self { pair, chosen: side, rejected: side })
    }

    /// Most instructive first. Ids make the order total, so that it does not depend on the order of
    /// the attempts.
    fn order(&self, other: &Self, prefer: Preference) -> std::cmp::Ordering {
        let (one, two) = (&self.pair, &other.pair);
        let rejected = match prefer {
            Preference::NearMiss => two.rejected_reward.total_cmp(&one.rejected_reward),
            Preference::WidestMargin => one.rejected_reward.total_cmp(&two.rejected_reward),
        };
        let ratio = |candidate: &Self| turn_ratio(candidate.chosen.turns(), candidate.pair.rejected_turns);
        (one.kind.cmp(&two.kind))
            .then(two.chosen_reward.total_cmp(&one.chosen_reward))
            .then(rejected)
            .then(ratio(self).total_cmp(&ratio(other)))
            .then_with(|| {
                (self.chosen.id(), self.rejected.id()).cmp(&(other.chosen.id(), other.rejected.id()))
            })
    }

    /// Whether both have the same kind and the same rewards.
    fn is_as_good_as(&self, other: &Self) -> bool {
        let (one, two) = (&self.pair, &other.pair);
        one.kind == two.kind
            && one.chosen_reward == two.chosen_reward
            && one.rejected_reward == two.rejected_reward
    }

    /// Whether both compare the same commands. In pairs of rounds the rejected side is part of the
    /// chosen one.
    fn repeats(&self, other: &Self) -> bool {
        self.pair.kind == other.pair.kind
            && commands(&self.chosen.actions) == commands(&other.chosen.actions)
            && commands(&self.rejected.actions) == commands(&other.rejected.actions)
    }
}

fn check_rewards(chosen: f64, rejected: f64, policy: &PairPolicy) -> Result<(), Unpaired> {
    let better = chosen > rejected && chosen - rejected >= policy.min_margin;
    if better { Ok(()) } else { Err(Unpaired::EqualReward) }
}

fn turn_ratio(one: usize, other: usize) -> f64 {
    one.max(other) as f64 / one.min(other) as f64
}

/// The best candidates within the policy's limits. Among equally good ones, those with the least
/// used sides come first. So several winners and several losers appear.
fn spread<'a>(candidates: &[Candidate<'_, 'a>], policy: &PairPolicy) -> Vec<Pair<'a>> {
    let mut taken: Vec<&Candidate<'_, 'a>> = Vec::new();
    for equal in candidates.chunk_by(Candidate::is_as_good_as) {
        let mut left: Vec<&Candidate<'_, 'a>> = equal.iter().collect();
        while taken.len() < policy.max_pairs_per_task {
            let lost = |id: &str| taken.iter().filter(|other| other.rejected.id() == id).count();
            left.retain(|candidate| {
                lost(candidate.rejected.id()) < policy.max_pairs_per_loser
                    && !taken.iter().any(|other| candidate.repeats(other))
            });
            let uses = |side: &Side<'_>| taken.iter().filter(|other| has(&other.pair, side.rollout)).count();
            let least = (0..left.len())
                .min_by_key(|&at| left.get(at).map(|next| uses(next.chosen) + uses(next.rejected)));
            let Some(least) = least else { break };
            taken.push(left.remove(least));
        }
    }
    taken.into_iter().map(|candidate| candidate.pair).collect()
}

/// Why a rollout is in no pair.
fn reason(rollout: &Rollout, sides: &[Side<'_>], policy: &PairPolicy) -> Unpaired {
    let Some(own) = sides.iter().find(|side| side.id() == rollout.id) else { return Unpaired::NoSide };
    let others = sides.iter().filter(|side| side.id() != rollout.id);
    let reasons = others.map(|other| {
        // The better of the two is the side that could be chosen.
        let (chosen, rejected) = if own.reward > other.reward { (own, other) } else { (other, own) };
        Candidate::of(chosen, rejected, policy).err().unwrap_or(Unpaired::LimitReached)
    });
    reasons.max().unwrap_or(Unpaired::Alone)
}
