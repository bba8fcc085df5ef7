//! The rows of a config. Their columns have fixed types that never depend on the data.
//!
//! A reader of many shards takes the schema of the first one. So every shard has every column with
//! the same type, even if the column is empty. Maps and Null columns do not occur. The logical type
//! JSON occurs only where values have no common type, e.g. the arguments of functions: `datasets`
//! before 4.7 cannot open a file with it.

use std::sync::Arc;

use arrow_schema::extension::{ExtensionType as _, Json};
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};
use serde::Serialize;

use super::ExportOptions;
use super::error::RowsError;
use crate::model::{Message, Rollout};

/// A column, and its description in the dataset card.
#[derive(Clone, Debug)]
pub struct Column {
    pub field: Field,
    pub about: &'static str,
}

/// A row of one config. The struct's fields have the names of the columns.
pub trait Row: Serialize + Sized + 'static {
    /// Name of the config, and of its folder.
    const CONFIG: &'static str;
    /// Version of the schema. It is written into every file. Raise it with every change of
    /// [`columns`](Row::columns).
    const SCHEMA_VERSION: u32;

    /// Tags that the config adds to the dataset card.
    const TAGS: &'static [&'static str];

    /// The columns, in order.
    fn columns() -> Vec<Column>;

    /// The description of the config in the dataset card, as Markdown.
    fn about(options: &ExportOptions) -> String;

    /// Makes the rows of one task's rollouts.
    fn of_task(rollouts: &[Rollout], options: &ExportOptions) -> Result<Vec<Self>, RowsError>;

    /// The split group: its rows stay in one split. See [`split`](super::split).
    fn split_group(&self) -> &str;

    /// Approximate bytes of text in the row. Row groups and shards are bounded by the sum.
    fn weight(&self) -> usize;
}

/// The Arrow schema of `R`.
pub fn schema<R: Row>() -> SchemaRef {
    Arc::new(Schema::new(R::columns().into_iter().map(|column| column.field).collect::<Vec<_>>()))
}

/// Estimated bytes of all columns other than messages: ids, digests, tags and numbers.
pub(super) const METADATA_WEIGHT: usize = 1024;

/// Estimated bytes of `messages`.
pub(super) fn weight_of(messages: &[Message]) -> usize {
    /// Estimated bytes for role and list offsets.
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

/// A column that is null where the value is unknown.
pub(super) fn optional(name: &str, data_type: DataType, about: &'static str) -> Column {
    Column { field: Field::new(name, data_type, true), about }
}

/// A list without nulls. Its items are called `element`, as in Parquet's specification. Arrow's
/// default is `item`.
pub(super) fn list(name: &str, item: DataType, about: &'static str) -> Column {
    column(name, DataType::List(Arc::new(Field::new("element", item, false))), about)
}

/// The type of a list of JSON values. Loaders that know the logical type return e.g. a list of
/// dictionaries.
pub(super) fn json_list() -> DataType {
    let item = Field::new("element", DataType::Utf8, false).with_extension_type(Json::default());
    DataType::List(Arc::new(item))
}

/// Whether the field holds JSON.
pub(super) fn is_json(field: &Field) -> bool {
    field.extension_type_name() == Some(Json::NAME)
}

/// A list of chat messages.
pub(super) fn messages(name: &str, about: &'static str) -> Column {
    let fields = ["role", "content"].map(|field| Field::new(field, DataType::Utf8, false));
    list(name, DataType::Struct(Fields::from(fields.to_vec())), about)
}
