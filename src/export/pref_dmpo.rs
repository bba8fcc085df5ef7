//! Config `pref_dmpo`: pairs of whole trajectories for DMPO, with the weight of each turn.
//!
//! `prompt`, `chosen` and `rejected` are message lists that TRL reads as they are. But TRL's DPO
//! trainer puts the observations in `chosen` and `rejected` into the loss. `turn_index_…` names the
//! messages that belong there.
//!
//! Columns about one side have the side at the end of their name, e.g. `turns_rejected`: ms-swift
//! takes every column that begins with `rejected_` for part of a conversation.

use arrow_schema::DataType;
use serde::Serialize;

use super::ExportOptions;
use super::error::RowsError;
use super::function_messages::definitions;
use super::licence::licence;
use super::messages::{MessageError, conversation};
use super::pairs::{Pair, pairs};
use super::phi::{Gamma, weights};
use super::row::{
    Column, METADATA_WEIGHT, Row as RowOf, column, json_list, list, messages, optional, text, weight_of,
};
use super::split;
use crate::model::{Actor, EnvironmentDigest, FailureMode, Message, Role, Rollout, TaskDigest};

/// The description of the config in the card.
const ABOUT: &str = "\
Pairs of whole trajectories of one task, in one environment, for Direct Multi-Turn Preference Optimization (DMPO, arXiv
2406.14868). The loss of a side is a sum over its assistant turns t: φ(t, T) times the log-ratio of the turn's tokens.
T is the number of assistant turns of that side. Here γ = {gamma}. For another γ, compute φ from `turns_…`:

    φ(t, T) = γ^t (1 − γ^(T−t)) / (1 − γ^T), and (T − t) / T for γ = 1

Trainers for single-turn preferences, e.g. TRL's DPO, put the observations in `chosen` and `rejected` into the loss. Mask
everything but the messages at `turn_index_…`.

`pair_kind` says how the sides are related:

- `fork`: both were in the same container state when their actions diverged. Either one was forked from the other, or
  both had run the same commands and read the same output.
- `near_miss`: the rejected side did part of the work, and at most a quarter of its checks failed (one may always fail).
- `best_worst`: any other two rollouts.
- `self_correction`: two rounds of one rollout. `rejected` ends with a round that failed. `chosen` continues with the next
  round, which passed. Mask by `train_…`: it is true in these two rounds only.

`divergence_turn` is the first turn at which the sides do different things. Before it, the messages of the sides differed
in wording only, so the row has the chosen side's messages for both. A side that breaks a check that the untouched
environment passes is never chosen.

Pair policy: `{policy}`";

/// Columns about a pair that `pref_dmpo` and `pref_step` share.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PairColumns {
    pub pair_id: String,
    pub pair_kind: &'static str,
    pub prompt: Vec<Message>,
    pub chosen: Vec<Message>,
    pub rejected: Vec<Message>,
    /// JSON texts.
    pub tools: Option<Vec<String>>,
    pub divergence_turn: usize,
    pub reward_chosen: f64,
    pub f2p_chosen: f64,
    pub p2p_chosen: f64,
    pub trajectory_id_chosen: String,
    pub teacher_chosen: String,
    pub reward_rejected: f64,
    pub f2p_rejected: f64,
    pub p2p_rejected: f64,
    pub trajectory_id_rejected: String,
    pub teacher_rejected: String,
    pub failure_mode_rejected: Option<&'static str>,
    pub judge_labels_rejected: Vec<String>,
    pub reward_kind: &'static str,
    pub reward_margin: f64,
    pub pair_policy: String,
    pub task_id: String,
    pub task_digest: Option<TaskDigest>,
    pub environment_digest: Option<EnvironmentDigest>,
    pub domain: String,
    pub split_group: String,
    pub license: Option<&'static str>,
    pub tool_version: &'static str,
}

impl PairColumns {
    /// Approximate bytes of text.
    pub(super) fn weight(&self) -> usize {
        let sides = [&self.prompt, &self.chosen, &self.rejected];
        let tools: usize = self.tools.iter().flatten().map(String::len).sum();
        sides.into_iter().map(|side| weight_of(side)).sum::<usize>() + tools + METADATA_WEIGHT
    }
}

/// A row of `pref_dmpo`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    #[serde(flatten)]
    pub pair: PairColumns,
    pub gamma: Gamma,
    pub shared_turns: usize,
    pub turns_chosen: usize,
    pub turn_index_chosen: Vec<usize>,
    pub phi_chosen: Vec<f64>,
    pub train_chosen: Vec<bool>,
    pub turns_rejected: usize,
    pub turn_index_rejected: Vec<usize>,
    pub phi_rejected: Vec<f64>,
    pub train_rejected: Vec<bool>,
}

/// One side of a pair.
struct Side {
    prompt: Vec<Message>,
    messages: Vec<Message>,
    turn_index: Vec<usize>,
    phi: Vec<f64>,
}

impl Row {
    /// The row of `pair`, which the policy in `options` selected.
    pub fn new(pair: &Pair<'_>, options: &ExportOptions) -> Result<Self, MessageError> {
        let (chosen, rejected) = (pair.chosen, pair.rejected);
        let (policy, gamma) = (&options.pairs, options.gamma);
        let won = Side::of(chosen, chosen.record.turns.len(), gamma)?;
        let mut lost = Side::of(rejected, pair.rejected_turns, gamma)?;
        for turn in 0..pair.common_messages() {
            lost.take(&won, 2 * turn);
        }
        for turn in 0..pair.shared {
            lost.take(&won, 2 * turn + 1);
        }
        // Before the divergence both sides are the same. After it, errors of the chosen side must
        // not be imitated. Every turn of the rejected side is to be avoided.
        let flags = options.failed_turns.flags(chosen);
        let train_chosen = flags.iter().enumerate().map(|(turn, flag)| turn >= pair.divergence && *flag);
        let train_rejected = (0..lost.phi.len()).map(|turn| turn >= pair.rejected_from());
        Ok(Self {
            gamma,
            shared_turns: pair.shared,
            turns_chosen: won.phi.len(),
            turn_index_chosen: won.turn_index,
            phi_chosen: won.phi,
            train_chosen: train_chosen.collect(),
            turns_rejected: lost.phi.len(),
            turn_index_rejected: lost.turn_index,
            train_rejected: train_rejected.collect(),
            phi_rejected: lost.phi,
            pair: PairColumns {
                pair_id: pair.id(),
                pair_kind: pair.kind.as_str(),
                prompt: won.prompt,
                tools: definitions(chosen, 0),
                divergence_turn: pair.divergence,
                reward_chosen: pair.chosen_reward,
                f2p_chosen: pair.chosen_rewards.f2p,
                p2p_chosen: pair.chosen_rewards.p2p,
                trajectory_id_chosen: chosen.id.clone(),
                teacher_chosen: chosen.record.actor.teacher().to_owned(),
                chosen: won.messages,
                reward_rejected: pair.rejected_reward,
                f2p_rejected: pair.rejected_rewards.f2p,
                p2p_rejected: pair.rejected_rewards.p2p,
                trajectory_id_rejected: rejected.id.clone(),
                teacher_rejected: rejected.record.actor.teacher().to_owned(),
                failure_mode_rejected: failure_mode(rejected).map(FailureMode::as_str),
                judge_labels_rejected: rejected.labels.clone(),
                rejected: lost.messages,
                reward_kind: policy.reward.as_str(),
                reward_margin: pair.margin(),
                pair_policy: policy.describe(),
                task_id: chosen.record.task.to_string(),
                task_digest: chosen.record.task_digest.clone(),
                environment_digest: chosen.record.environment_digest.clone(),
                domain: chosen.metadata.domain.clone(),
                split_group: split::group(chosen),
                license: licence(chosen).and(licence(rejected)),
                tool_version: env!("CARGO_PKG_VERSION"),
            },
        })
    }
}

/// How a scripted rollout was meant to fail. `None` for other rollouts: their failures are known
/// only from a judge.
pub(super) fn failure_mode(rollout: &Rollout) -> Option<FailureMode> {
    match &rollout.record.actor {
        Actor::Scripted { failure, .. } => failure.as_ref().map(|failure| failure.mode),
        Actor::Oracle | Actor::Nop | Actor::Model(_) | Actor::Imported(_) => None,
    }
}

impl Side {
    /// The first `turns` turns of a rollout.
    fn of(rollout: &Rollout, turns: usize, gamma: Gamma) -> Result<Self, MessageError> {
        let mut conversation = conversation(rollout)?;
        // Messages alternate, and both the first and the last are the assistant's.
        conversation.answer.truncate((2 * turns).saturating_sub(1));
        let spoken =
            conversation.answer.iter().enumerate().filter(|(_, message)| message.role == Role::Assistant);
        let turn_index: Vec<usize> = spoken.map(|(at, _)| at).collect();
        let phi = weights(gamma, turn_index.len());
        Ok(Self { prompt: conversation.prompt, messages: conversation.answer, turn_index, phi })
    }

    /// Replaces message `at` by that of the other side.
    fn take(&mut self, other: &Self, at: usize) {
        if let (Some(own), Some(other)) = (self.messages.get_mut(at), other.messages.get(at)) {
            own.clone_from(other);
        }
    }
}

impl RowOf for Row {
    const CONFIG: &'static str = "pref_dmpo";
    const SCHEMA_VERSION: u32 = 6;
    const TAGS: &'static [&'static str] = &["preference", "dmpo"];

    fn about(options: &ExportOptions) -> String {
        ABOUT
            .replace("{gamma}", &options.gamma.get().to_string())
            .replace("{policy}", &options.pairs.describe())
    }

    fn of_task(rollouts: &[Rollout], options: &ExportOptions) -> Result<Vec<Self>, RowsError> {
        let mut rows = Vec::new();
        for pair in pairs(rollouts, &options.pairs)? {
            rows.push(Self::new(&pair, options)?);
        }
        Ok(rows)
    }

    fn columns() -> Vec<Column> {
        vec![
            text("pair_id", "name of the pair, unique in the dataset"),
            text(
                "pair_kind",
                "how the sides are related: `fork`, `near_miss`, `best_worst` or `self_correction`",
            ),
            messages("prompt", "the system message, if there is one, and the task. Both sides share it"),
            messages("chosen", "messages of the better side, from the first assistant message to the last"),
            messages("rejected", "messages of the worse side, from the first assistant message to the last"),
            optional(
                "tools",
                json_list(),
                "the functions that the model could call, the same for both sides. Null if there were none. Calls are text of the messages, as in Hermes' and Qwen's chat templates",
            ),
            column("gamma", DataType::Float64, "the discount γ that `phi_…` was computed with"),
            column(
                "divergence_turn",
                DataType::Int32,
                "first assistant turn, from 0, at which the sides do different things",
            ),
            column(
                "shared_turns",
                DataType::Int32,
                "number of turns at the beginning with equal commands and equal observations. Both sides have the same messages there",
            ),
            column("turns_chosen", DataType::Int32, "T: number of assistant turns of `chosen`"),
            list(
                "turn_index_chosen",
                DataType::Int32,
                "index in `chosen` of each assistant turn t = 0 … T − 1",
            ),
            list("phi_chosen", DataType::Float64, "φ(t, T) = γ^t (1 − γ^(T−t)) / (1 − γ^T) of each turn"),
            list(
                "train_chosen",
                DataType::Boolean,
                "whether to train on each turn: false before the divergence, and for turns that `sft` masks",
            ),
            column(
                "reward_chosen",
                DataType::Float64,
                "reward of the chosen rollout, of the kind in `reward_kind`",
            ),
            column(
                "f2p_chosen",
                DataType::Float64,
                "weighted share of passed checks, of those that fail in the untouched environment",
            ),
            column(
                "p2p_chosen",
                DataType::Float64,
                "weighted share of passed checks, of those that pass in the untouched environment. Always 1",
            ),
            text("trajectory_id_chosen", "id of the chosen rollout"),
            text(
                "teacher_chosen",
                "who wrote its messages: a model's name, or `scripted` for a recipe's script",
            ),
            column("turns_rejected", DataType::Int32, "T: number of assistant turns of `rejected`"),
            list(
                "turn_index_rejected",
                DataType::Int32,
                "index in `rejected` of each assistant turn t = 0 … T − 1",
            ),
            list("phi_rejected", DataType::Float64, "φ(t, T) of each turn, with T of this side"),
            list(
                "train_rejected",
                DataType::Boolean,
                "whether to train on each turn: false before the divergence",
            ),
            column(
                "reward_rejected",
                DataType::Float64,
                "reward of the rejected rollout. Always less than `reward_chosen`",
            ),
            column("f2p_rejected", DataType::Float64, "as `f2p_chosen`, for the rejected rollout"),
            column(
                "p2p_rejected",
                DataType::Float64,
                "as `p2p_chosen`, for the rejected rollout. Below 1 it broke existing behaviour",
            ),
            text("trajectory_id_rejected", "id of the rejected rollout"),
            text("teacher_rejected", "who wrote its messages"),
            optional(
                "failure_mode_rejected",
                DataType::Utf8,
                "how a scripted rollout was meant to fail, e.g. `skipped_check`. Null for other rollouts",
            ),
            list(
                "judge_labels_rejected",
                DataType::Utf8,
                "what went wrong in it, in LiteCoder's taxonomy. Labels never change a reward",
            ),
            text(
                "reward_kind",
                "the compared reward: `f2p` (column `f2p_…`, but 0 where `p2p_…` is below 1), `pass_ratio` (share of passed checks) or `binary`",
            ),
            column("reward_margin", DataType::Float64, "chosen minus rejected reward"),
            text("pair_policy", "the policy that selected the pair, with all of its settings, as JSON"),
            text("task_id", "name of the task, the same for both sides"),
            optional("task_digest", DataType::Utf8, "SHA-256 of the task's files, the same for both sides"),
            optional(
                "environment_digest",
                DataType::Utf8,
                "BLAKE3 of the environment's definition, the same for both sides",
            ),
            text("domain", "domain of the task"),
            text(
                "split_group",
                "the recipe, or the name of a group of similar tasks. Rows of a group are in one split",
            ),
            optional(
                "license",
                DataType::Utf8,
                "licence of the row (SPDX). Null if third parties have rights: in text by models, and in tasks by others",
            ),
            text("tool_version", "version of termsmith that wrote the row"),
        ]
    }

    fn split_group(&self) -> &str {
        &self.pair.split_group
    }

    fn weight(&self) -> usize {
        /// Index, φ and flag of one turn.
        const PER_TURN: usize = 13;
        self.pair.weight() + PER_TURN * (self.turns_chosen + self.turns_rejected)
    }
}

#[cfg(test)]
mod tests {
    use crate::export::fixture;
    use crate::export::pairs::pairs;

    use super::*;

    fn only(rollouts: &[Rollout], gamma: f64) -> Row {
        let options = ExportOptions { gamma: Gamma::new(gamma).unwrap(), ..ExportOptions::default() };
        let found = pairs(rollouts, &options.pairs).unwrap();
        assert_eq!(found.len(), 1, "{found:?}");
        Row::new(&found[0], &options).unwrap()
    }

    #[test]
    fn both_sides_of_a_pair() {
        let rollouts = [fixture::rollout("games", 3, 0, 2, 6), fixture::rollout("games", 3, 1, 3, 8)];
        let row = only(&rollouts, 0.7);

        assert_eq!(
            row.pair.prompt.iter().map(|message| message.role).collect::<Vec<_>>(),
            [Role::System, Role::User]
        );
        assert_eq!((row.turns_chosen, row.turns_rejected), (4, 3));
        assert_eq!(row.turn_index_chosen, [0, 2, 4, 6]);
        assert_eq!(row.turn_index_rejected, [0, 2, 4]);
        assert_eq!((row.pair.chosen.len(), row.pair.rejected.len()), (7, 5));
        for (side, index) in
            [(&row.pair.chosen, &row.turn_index_chosen), (&row.pair.rejected, &row.turn_index_rejected)]
        {
            assert!(index.iter().all(|&at| side[at].role == Role::Assistant));
        }
        assert_eq!(row.phi_chosen, weights(Gamma::new(0.7).unwrap(), 4));
        assert_eq!(row.phi_rejected, weights(Gamma::new(0.7).unwrap(), 3));
        assert_eq!(
            (row.pair.reward_chosen, row.pair.reward_rejected, row.pair.reward_margin),
            (1.0, 0.75, 0.25)
        );
        assert_eq!(
            (row.pair.f2p_chosen, row.pair.p2p_chosen, row.pair.f2p_rejected, row.pair.p2p_rejected),
            (1.0, 1.0, 0.75, 1.0)
        );
        assert_eq!(row.pair.trajectory_id_chosen, rollouts[1].id);
        assert_eq!(row.pair.trajectory_id_rejected, rollouts[0].id);
        assert_eq!((row.pair.failure_mode_rejected, row.pair.split_group.as_str()), (None, "games/roll-up"));
    }

    #[test]
    fn wording_before_the_divergence_is_that_of_the_chosen_side() {
        let check = |change: fn(&mut Rollout), expect: (&str, usize, usize, usize)| {
            let mut rollouts = [fixture::rollout("games", 3, 0, 3, 6), fixture::rollout("games", 3, 1, 3, 8)];
            for rollout in &mut rollouts {
                // The second command is the same, but its message differs.
                rollout.record.turns[1].acts = rollout.record.turns[0].acts.clone();
            }
            change(&mut rollouts[0]);
            let row = only(&rollouts, 0.95);
            let same = row
                .pair
                .chosen
                .iter()
                .zip(&row.pair.rejected)
                .take_while(|(one, other)| one == other)
                .count();
            assert_eq!((row.pair.pair_kind, row.pair.divergence_turn, row.shared_turns, same), expect);
            assert_eq!(row.train_chosen, [false, false, true, true]);
            assert_eq!(row.train_rejected, [false, false, true, true]);
        };
        check(|_| {}, ("fork", 2, 2, 4));
        // The outputs of the second command differ. So the sides share the messages up to that
        // command, and no later ones.
        check(|rollout| rollout.shown[1][0].content.push('!'), ("near_miss", 2, 1, 3));
        check(|rollout| rollout.shown[0][0].content.push('!'), ("near_miss", 2, 0, 1));
    }

    #[test]
    fn rounds_of_one_rollout() {
        let (_, mut rollout) =
            crate::export::shapes::shapes().into_iter().find(|(name, _)| *name == "rounds").unwrap();
        let failed = rollout.rewards;
        rollout.record.verdict.checks.iter_mut().for_each(|check| check.passed = true);
        rollout.record.verdict.outcome = crate::model::Outcome::Pass;
        rollout.rewards = fixture::rollout("games", 4, 0, 3, 8).rewards;
        rollout.round_rewards = vec![failed];
        let row = only(std::slice::from_ref(&rollout), 0.95);
        assert_eq!((row.pair.pair_kind, row.turns_chosen, row.turns_rejected), ("self_correction", 4, 2));
        assert_eq!(row.pair.chosen[..3], row.pair.rejected);
        assert_eq!(row.train_chosen, [false, false, true, true]);
        assert_eq!(row.train_rejected, [true, true]);
        assert!(row.pair.pair_id.ends_with("-round-1") && row.pair.reward_rejected < row.pair.reward_chosen);
        // The failed round has no rewards, or it did not fail.
        rollout.round_rewards = vec![None];
        assert!(pairs(std::slice::from_ref(&rollout), &ExportOptions::default().pairs).unwrap().is_empty());
    }

    #[test]
    fn names_that_trainers_read_another_way_do_not_occur() {
        // `margin` would change the loss of TRL's reward-model trainer. Other trainers use the
        // other names.
        const TAKEN: [&str; 11] = [
            "margin",
            "label",
            "labels",
            "messages",
            "channel",
            "options",
            "questions",
            "state",
            "kinds",
            "solution",
            "system",
        ];
        // ms-swift takes columns with these prefixes for parts of other conversations.
        const PREFIXES: [&str; 3] = ["rejected_", "positive_", "negative_"];
        for column in Row::columns() {
            let name = column.field.name().as_str();
            assert!(!TAKEN.contains(&name), "{name}");
            assert!(!PREFIXES.iter().any(|prefix| name.starts_with(prefix)), "{name}");
        }
    }
}
