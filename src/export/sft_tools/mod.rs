//! Config `sft_tools`: trajectories of models that could call functions, with these functions. A
//! row is one conversation, as chat templates take it.

use arrow_schema::DataType;
use serde::Serialize;

use super::ExportOptions;
use super::error::RowsError;
use super::exclusion::{describe, exclusions};
use super::function_messages::{FunctionConversation, definitions, has_functions, is_as_written};
use super::messages::MessageError;
use super::rollout_columns::{RolloutColumns, n_context, rows};
use super::row::{Column, METADATA_WEIGHT, Row as RowOf, column, json_list, list, optional};
use super::train::FailedTurns;
use crate::model::Rollout;

/// The description of the config in the card.
const ABOUT: &str = "\
Rollouts in which the model could call functions. Give `messages` and `tools` to a chat template, e.g. with
`tokenizer.apply_chat_template(row[\"messages\"], tools=row[\"tools\"])`. TRL, axolotl and ms-swift do that. `datasets` 4.7 or
newer returns both as lists of dictionaries, without keys that a message does not have. Older versions cannot open these files,
and pandas returns text.

- Messages stand as the model was sent them. Roles are `system`, `user`, `assistant` and `tool`.
- An assistant message has `content`, and may have `reasoning_content` and `tool_calls`. The reasoning is there also if the
  model's endpoint was not sent it again.
- The arguments of a call are an object, with the keys in the model's own order. Malformed arguments are `{}`, as the model was
  sent them back. Such a message is never trained on.
- `train` of an assistant message says the same as the column `train`. It is false in the context.";

/// A row of `sft_tools`. Messages and tools are JSON texts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    pub messages: Vec<String>,
    pub tools: Option<Vec<String>>,
    pub n_context: usize,
    pub train: Vec<bool>,
    #[serde(flatten)]
    pub rollout: RolloutColumns,
}

impl Row {
    /// The rows of `rollout`, one for each of its conversations. No filter is applied.
    pub fn all(rollout: &Rollout, failed_turns: FailedTurns) -> Result<Vec<Self>, MessageError> {
        rows(rollout, |thread, segment, columns| {
            let turns = thread.record.turns.get(segment.turns.clone()).unwrap_or_default();
            let flags = failed_turns.flags_of(thread, segment.turns.clone());
            // The model did not write what stands in place of malformed arguments.
            let train: Vec<bool> =
                flags.into_iter().zip(turns).map(|(flag, turn)| flag && is_as_written(turn)).collect();
            let FunctionConversation { messages, n_context } =
                FunctionConversation::of(thread, segment, &train);
            let tools = definitions(thread, segment.number);
            Ok(Self { messages, tools, n_context, train, rollout: columns })
        })
    }
}

impl RowOf for Row {
    const CONFIG: &'static str = "sft_tools";
    const SCHEMA_VERSION: u32 = 1;
    const TAGS: &'static [&'static str] = &["tool-use"];

    fn about(options: &ExportOptions) -> String {
        format!("{ABOUT}\n\n{}", describe(options))
    }

    fn of_task(rollouts: &[Rollout], options: &ExportOptions) -> Result<Vec<Self>, RowsError> {
        let mut rows = Vec::new();
        for (rollout, exclusion) in rollouts.iter().zip(exclusions(rollouts, options)) {
            if exclusion.is_none() && has_functions(rollout) {
                rows.extend(Self::all(rollout, options.failed_turns)?);
            }
        }
        Ok(rows)
    }

    fn columns() -> Vec<Column> {
        let mut columns = vec![
            column(
                "messages",
                json_list(),
                "the conversation, as the model was sent it and answered. The last message is the assistant's",
            ),
            optional(
                "tools",
                json_list(),
                "the functions that the model could call, as its requests declared them. Null if this conversation had none",
            ),
            n_context(),
            list(
                "train",
                DataType::Boolean,
                "for each assistant message after the context, whether to train on it. False if the arguments of a call are malformed: then `{}` stands in their place",
            ),
        ];
        columns.extend(RolloutColumns::columns());
        columns
    }

    fn split_group(&self) -> &str {
        &self.rollout.split_group
    }

    fn weight(&self) -> usize {
        /// Estimated bytes for the offset of a text.
        const PER_TEXT: usize = 8;
        let texts = self.messages.iter().chain(self.tools.iter().flatten());
        texts.map(|text| text.len() + PER_TEXT).sum::<usize>() + METADATA_WEIGHT
    }
}

#[cfg(test)]
mod tests;
