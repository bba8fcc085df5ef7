//! Config `pref_dmpo`: pairs of whole trajectories for DMPO, with the weight of every turn.
//!
//! `prompt`, `chosen` and `rejected` are message lists that TRL reads as they are. Its DPO trainer puts the
//! observations inside `chosen` and `rejected` into the loss: `…_turn_index` names the messages that the loss belongs to.

use arrow_schema::DataType;
use serde::Serialize;

use super::ExportOptions;
use super::error::RowsError;
use super::messages::{MessageError, conversation};
use super::pairs::{Pair, PairPolicy, pairs};
use super::phi::{Gamma, weights};
use super::row::{Column, METADATA_WEIGHT, Row as RowOf, column, list, messages, optional, text, weight_of};
use crate::model::{EnvironmentDigest, Message, Role, Rollout, TaskDigest};

/// The description of the config in the card.
const ABOUT: &str = "\
Pairs of whole trajectories of one task, in one environment, for Direct Multi-Turn Preference Optimization (arXiv
2406.14868). The loss of a side is the sum over its assistant turns t of φ(t, T) times the log-ratio of the turn's tokens,
with T and t counted on that side. Here γ = {gamma}; for another one recompute φ from `…_turns` alone:

    φ(t, T) = γ^t (1 − γ^(T−t)) / (1 − γ^T), and (T − t) / T for γ = 1

Trainers for single-turn preferences (TRL's DPO among them) put the observations inside `chosen` and `rejected` into the loss;
mask everything but the messages at `…_turn_index`.

Pair policy: `{policy}`";

/// A row of `pref_dmpo`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    pub prompt: Vec<Message>,
    pub chosen: Vec<Message>,
    pub rejected: Vec<Message>,
    pub gamma: Gamma,
    pub chosen_turns: usize,
    pub chosen_turn_index: Vec<usize>,
    pub chosen_phi: Vec<f64>,
    pub chosen_reward: f64,
    pub chosen_trajectory_id: String,
    pub rejected_turns: usize,
    pub rejected_turn_index: Vec<usize>,
    pub rejected_phi: Vec<f64>,
    pub rejected_reward: f64,
    pub rejected_trajectory_id: String,
    pub reward_kind: &'static str,
    pub reward_margin: f64,
    pub pair_policy: String,
    pub task_id: String,
    pub task_digest: Option<TaskDigest>,
    pub environment_digest: Option<EnvironmentDigest>,
    pub domain: String,
    pub shared_turns: usize,
    pub chosen_teacher: String,
    pub rejected_teacher: String,
    pub license: Option<&'static str>,
    pub tool_version: &'static str,
}

/// One side of a pair.
struct Side {
    prompt: Vec<Message>,
    messages: Vec<Message>,
    turn_index: Vec<usize>,
    phi: Vec<f64>,
}

impl Row {
    /// The row of `pair`, which `policy` selected.
    pub fn new(pair: &Pair<'_>, policy: &PairPolicy, gamma: Gamma) -> Result<Self, MessageError> {
        let (chosen, rejected) = (pair.chosen, pair.rejected);
        let (won, lost) = (Side::of(chosen, gamma)?, Side::of(rejected, gamma)?);
        Ok(Self {
            prompt: won.prompt,
            gamma,
            chosen_turns: won.phi.len(),
            chosen_turn_index: won.turn_index,
            chosen_phi: won.phi,
            chosen_reward: pair.chosen_reward,
            chosen_trajectory_id: chosen.id.clone(),
            chosen: won.messages,
            rejected_turns: lost.phi.len(),
            rejected_turn_index: lost.turn_index,
            rejected_phi: lost.phi,
            rejected_reward: pair.rejected_reward,
            rejected_trajectory_id: rejected.id.clone(),
            rejected: lost.messages,
            reward_kind: policy.reward.as_str(),
            reward_margin: pair.margin(),
            pair_policy: policy.describe(),
            task_id: chosen.record.task.to_string(),
            task_digest: chosen.record.task_digest.clone(),
            environment_digest: chosen.record.environment_digest.clone(),
            domain: chosen.metadata.domain.clone(),
            shared_turns: shared_turns(chosen, rejected),
            chosen_teacher: chosen.record.actor.teacher().to_owned(),
            rejected_teacher: rejected.record.actor.teacher().to_owned(),
            license: super::licence(chosen).and(super::licence(rejected)),
            tool_version: env!("CARGO_PKG_VERSION"),
        })
    }
}

/// Turns at the beginning that both sides have in common: those before a fork, or messages that happen to be equal.
fn shared_turns(one: &Rollout, other: &Rollout) -> usize {
    let turns = one.record.turns.iter().zip(&other.record.turns);
    let shown = one.shown.iter().zip(&other.shown);
    let same = turns.zip(shown).take_while(|((one, other), (seen, also))| {
        (&one.content, &one.tool_calls) == (&other.content, &other.tool_calls) && seen == also
    });
    same.count()
}

impl Side {
    fn of(rollout: &Rollout, gamma: Gamma) -> Result<Self, MessageError> {
        let conversation = conversation(rollout)?;
        let spoken =
            conversation.answer.iter().enumerate().filter(|(_, message)| message.role == Role::Assistant);
        let turn_index: Vec<usize> = spoken.map(|(at, _)| at).collect();
        let phi = weights(gamma, turn_index.len());
        Ok(Self { prompt: conversation.prompt, messages: conversation.answer, turn_index, phi })
    }
}

impl RowOf for Row {
    const CONFIG: &'static str = "pref_dmpo";
    const SCHEMA_VERSION: u32 = 4;
    const TAGS: &'static [&'static str] = &["preference", "dmpo"];

    fn about(options: &ExportOptions) -> String {
        ABOUT
            .replace("{gamma}", &options.gamma.get().to_string())
            .replace("{policy}", &options.pairs.describe())
    }

    fn of_task(rollouts: &[Rollout], options: &ExportOptions) -> Result<Vec<Self>, RowsError> {
        let mut rows = Vec::new();
        for pair in pairs(rollouts, &options.pairs)? {
            rows.push(Self::new(&pair, &options.pairs, options.gamma)?);
        }
        Ok(rows)
    }

    fn columns() -> Vec<Column> {
        vec![
            messages("prompt", "system message, if there is one, and task; shared by both sides"),
            messages(
                "chosen",
                "what followed on the better side, from the first assistant message to the last",
            ),
            messages("rejected", "the same of the worse side"),
            column("gamma", DataType::Float64, "DMPO's discount γ that `…_phi` were computed with"),
            column("chosen_turns", DataType::Int32, "T, the assistant turns of `chosen`"),
            list("chosen_turn_index", DataType::Int32, "index in `chosen` of assistant turn t = 0 … T − 1"),
            list("chosen_phi", DataType::Float64, "φ(t, T) = γ^t (1 − γ^(T−t)) / (1 − γ^T) of each of them"),
            column("chosen_reward", DataType::Float64, "its reward of the kind in `reward_kind`"),
            text("chosen_trajectory_id", "id of its rollout"),
            column("rejected_turns", DataType::Int32, "T, the assistant turns of `rejected`"),
            list(
                "rejected_turn_index",
                DataType::Int32,
                "index in `rejected` of assistant turn t = 0 … T − 1",
            ),
            list("rejected_phi", DataType::Float64, "φ(t, T) of each of them, with T of this side"),
            column("rejected_reward", DataType::Float64, "its reward; always less than `chosen_reward`"),
            text("rejected_trajectory_id", "id of its rollout"),
            text("reward_kind", "`pass_ratio` (share of checks passed) or `binary`"),
            column("reward_margin", DataType::Float64, "chosen minus rejected reward"),
            text("pair_policy", "the policy that made the pair, with all its knobs, as JSON"),
            text("task_id", "name of the task; both sides solved the same one"),
            optional("task_digest", DataType::Utf8, "SHA-256 of the task's files; the same for both sides"),
            optional(
                "environment_digest",
                DataType::Utf8,
                "BLAKE3 of the environment's definition; the same for both sides",
            ),
            text("domain", "domain spec that the task was planned from"),
            column("shared_turns", DataType::Int32, "turns at the beginning that both sides have in common"),
            text("chosen_teacher", "who acted in it; `scripted` is a recipe's script, not a model"),
            text("rejected_teacher", "who acted in it"),
            optional(
                "license",
                DataType::Utf8,
                "licence of the row (SPDX); null where others have a say: what models wrote, and tasks of other makers",
            ),
            text("tool_version", "version of termsmith that wrote it"),
        ]
    }

    fn weight(&self) -> usize {
        /// Index and φ of one turn.
        const PER_TURN: usize = 12;
        let text: usize =
            [&self.prompt, &self.chosen, &self.rejected].into_iter().map(|side| weight_of(side)).sum();
        text + PER_TURN * (self.chosen_turns + self.rejected_turns) + METADATA_WEIGHT
    }
}

#[cfg(test)]
mod tests {
    use crate::export::fixture;
    use crate::export::pairs::pairs;

    use super::*;

    #[test]
    fn both_sides_of_a_pair() {
        let rollouts = [fixture::rollout("games", 3, 0, 2, 6), fixture::rollout("games", 3, 1, 4, 8)];
        let policy = PairPolicy::default();
        let gamma = Gamma::new(0.7).unwrap();
        let found = pairs(&rollouts, &policy).unwrap();
        let row = Row::new(&found[0], &policy, gamma).unwrap();

        assert_eq!(
            row.prompt.iter().map(|message| message.role).collect::<Vec<_>>(),
            [Role::System, Role::User]
        );
        assert_eq!((row.chosen_turns, row.rejected_turns), (5, 3));
        assert_eq!(row.chosen_turn_index, [0, 2, 4, 6, 8]);
        assert_eq!(row.rejected_turn_index, [0, 2, 4]);
        assert_eq!((row.chosen.len(), row.rejected.len()), (9, 5));
        for (side, index) in
            [(&row.chosen, &row.chosen_turn_index), (&row.rejected, &row.rejected_turn_index)]
        {
            assert!(index.iter().all(|&at| side[at].role == Role::Assistant));
        }
        assert_eq!(row.chosen_phi, weights(gamma, 5));
        assert_eq!(row.rejected_phi, weights(gamma, 3));
        assert_eq!((row.chosen_reward, row.rejected_reward, row.reward_margin), (1.0, 0.75, 0.25));
        assert_eq!(row.chosen_trajectory_id, rollouts[1].id);
        assert_eq!(row.rejected_trajectory_id, rollouts[0].id);
    }

    #[test]
    fn names_that_trainers_read_another_way_do_not_occur() {
        // `margin` would change TRL's reward-model loss; the others are shapes of other trainers.
        const TAKEN: [&str; 6] = ["margin", "label", "labels", "messages", "tools", "rejected_messages"];
        for column in Row::columns() {
            assert!(!TAKEN.contains(&column.field.name().as_str()), "{}", column.field.name());
        }
    }
}
