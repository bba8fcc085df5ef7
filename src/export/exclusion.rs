//! Which rollouts give no rows of `sft` and `sft_tools`, and why.

use super::actions::{actions, commands};
use super::function_messages::has_functions;
use super::messages::has_empty_message;
use super::rollout_columns::working_threads;
use super::train::{FailedTurns, flags};
use super::{ExportOptions, SftFilter};
use crate::model::Rollout;

/// Why a rollout gives no rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exclusion {
    NotPassing,
    WithoutTurns,
    Adversarial,
    WithEmptyMessage,
    WithFailedTurns,
    NearDuplicate,
}

/// For each rollout of a task, the first reason why it gives no rows. `None` if it gives rows.
pub(super) fn exclusions(rollouts: &[Rollout], options: &ExportOptions) -> Vec<Option<Exclusion>> {
    let mut passes = Vec::new();
    let exclusions = rollouts.iter().map(|rollout| {
        let exclusion = exclusion(rollout, options);
        // If failures are rows too, duplicates stay: rewards are estimated from the numbers of
        // passes and failures.
        if exclusion.is_some() || options.sft == SftFilter::All {
            return exclusion;
        }
        // The same commands with other prose teach nothing new. As function calls they do: they
        // are rows of another config.
        let actions = actions(rollout);
        let commands: Vec<String> = commands(&actions).into_iter().map(str::to_owned).collect();
        let pass = (has_functions(rollout), commands);
        if passes.contains(&pass) {
            return Some(Exclusion::NearDuplicate);
        }
        passes.push(pass);
        None
    });
    exclusions.collect()
}

/// The first reason why `rollout` gives no rows, without regard to other rollouts of its task.
fn exclusion(rollout: &Rollout, options: &ExportOptions) -> Option<Exclusion> {
    if options.sft == SftFilter::Passing && !rollout.record.succeeded() {
        Some(Exclusion::NotPassing)
    } else if rollout.record.turns.is_empty() {
        Some(Exclusion::WithoutTurns)
    } else if rollout.record.is_adversarial() {
        Some(Exclusion::Adversarial)
    } else if working_threads(rollout).any(|view| has_empty_message(&view.rollout)) {
        Some(Exclusion::WithEmptyMessage)
    } else if options.failed_turns == FailedTurns::Drop
        && working_threads(rollout).any(|view| flags(&view.rollout).contains(&false))
    {
        Some(Exclusion::WithFailedTurns)
    } else {
        None
    }
}

/// The rows and flags that `options` ask for, for the dataset card.
pub(super) fn describe(options: &ExportOptions) -> String {
    let rows = match options.sft {
        SftFilter::Passing => {
            "those that passed every check. If several passes of a task ran the same commands, only the first has rows."
        }
        SftFilter::All => "all in which the agent wrote a message. Rewards can be estimated from them.",
    };
    let train = match options.failed_turns {
        FailedTurns::Mask => {
            "`train` is false for a message if it violates the protocol, if its command reported an error, or if it wrote a file that\nwas written again, differently, after a command failed. So a model reads the mistake, and is trained on the repair."
        }
        FailedTurns::All => "`train` is true for all messages.",
        FailedTurns::Drop => {
            "`train` is true for all messages. Trajectories are left out if a command failed in them, or if a file was written again\nafter that."
        }
    };
    format!("Trajectories: {rows}\n\n{train}")
}
