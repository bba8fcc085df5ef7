//! The rows of a config: columns with fixed types, never inferred from the data.
//!
//! Readers of many shards take the schema of the first one, so every shard carries every column
//! with the same type, empty or not. Types are plain ones that every reader knows: no JSON logical
//! type, no maps, no Null columns.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};
use serde::Serialize;

use super::ExportOptions;
use super::error::RowsError;
use crate::model::{Message, Rollout};

/// One column and its description in the dataset card.
#[derive(Clone, Debug)]
pub struct Column {
    pub field: Field,
    pub about: &'static str,
}

/// A row of one config. Field names of the struct are the names of the columns.
pub trait Row: Serialize + Sized + 'static {
    /// Name of the config and of its folder.
    const CONFIG: &'static str;
    /// Version of the schema, written into every file. Raise it with every change of
    /// [`columns`](Row::columns).
    const SCHEMA_VERSION: u32;

    /// Tags of the dataset card that the config brings.
    const TAGS: &'static [&'static str];

    /// The columns in order.
    fn columns() -> Vec<Column>;

    /// The description of the config in the dataset card, as Markdown.
    fn about(options: &ExportOptions) -> String;

    /// The rows of one task's rollouts.
    fn of_task(rollouts: &[Rollout], options: &ExportOptions) -> Result<Vec<Self>, RowsError>;

    /// The group of rows that it must not be separated from; see [`split`](super::split).
    fn split_group(&self) -> &str;

    /// About how many bytes of text the row holds; row groups and shards are bounded by the sum.
    fn weight(&self) -> usize;
}

/// The Arrow schema of `R`.
pub fn schema<R: Row>() -> SchemaRef {
    Arc::new(Schema::new(R::columns().into_iter().map(|column| column.field).collect::<Vec<_>>()))
}

/// Estimated bytes of the columns beside the messages: ids, digests, tags and numbers.
pub(super) const METADATA_WEIGHT: usize = 1024;

/// Estimated bytes of `messages`.
pub(super) fn weight_of(messages: &[Message]) -> usize {
    /// Role and list offsets.
    const PER_MESSAGE: usize = 16;
    messages.iter().map(|message| message.content.len() + PER_MESSAGE).sum()
}

pub(super) fn column(name: &str, data_type: DataType, about: &'static str) -> Column {
    Column { field: Field::new(name, data_type, false), about }
}

pub(super) fn text(name: &str, about: &'static str) -> Column {
    column(name, DataType::Utf8, about)
}

/// A number that is null where nothing was measured.
pub(super) fn measured(name: &str, about: &'static str) -> Column {
    Column { field: Field::new(name, DataType::Float64, true), about }
}

/// A column that is null where nothing is known.
pub(super) fn optional(name: &str, data_type: DataType, about: &'static str) -> Column {
    Column { field: Field::new(name, data_type, true), about }
}

/// A list without nulls. Parquet's specification names its items `element`; Arrow's own default is
/// `item`.
pub(super) fn list(name: &str, item: DataType, about: &'static str) -> Column {
    column(name, DataType::List(Arc::new(Field::new("element", item, false))), about)
}

/// A list of chat messages.
pub(super) fn messages(name: &str, about: &'static str) -> Column {
    let fields = ["role", "content"].map(|field| Field::new(field, DataType::Utf8, false));
    list(name, DataType::Struct(Fields::from(fields.to_vec())), about)
}
