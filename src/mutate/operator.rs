//! Mutation operators: the kinds of mistakes that mutants make.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kind of mistake that a mutant makes. Kill rates are reported per operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Operator {
    /// A number, word or text is replaced.
    Constant,
    /// An option of a command, or a keyword argument of a call, is omitted, added or swapped.
    Flag,
    /// Another file is read or written.
    Path,
    /// Another comparison, e.g. `<` for `<=`, `==` for `!=`, or `-f` for `-d`.
    Comparison,
    /// A sort is inverted, uses another key, or is omitted.
    SortOrder,
    /// `>` for `>>`, or output goes elsewhere.
    Redirection,
    /// A guard, an exception handler or a `
    ///
    /// exit` is removed.
    ErrorHandling,
    /// A range, slice, index or count is off by one.
    OffByOne,
    /// A condition is negated, or `and` replaces `or`.
    Logic,
    /// `+` for `-`, `*` for `/`, or another rounding mode.
    Arithmetic,
    /// A statement of an embedded program is removed.
    DroppedStatement,
    /// A line of data is removed, moved or changed.
    Content,
}

impl Operator {
    /// All operators, in the order of reports.
    pub const ALL: [Self; 12] = [
        Self::Constant,
        Self::Flag,
        Self::Path,
        Self::Comparison,
        Self::SortOrder,
        Self::Redirection,
        Self::ErrorHandling,
        Self::OffByOne,
        Self::Logic,
        Self::Arithmetic,
        Self::DroppedStatement,
        Self::Content,
    ];

    /// The id used in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Constant => "constant",
            Self::Flag => "flag",
            Self::Path => "path",
            Self::Comparison => "comparison",
            Self::SortOrder => "sort-order",
            Self::Redirection => "redirection",
            Self::ErrorHandling => "error-handling",
            Self::OffByOne => "off-by-one",
            Self::Logic => "logic",
            Self::Arithmetic => "arithmetic",
            Self::DroppedStatement => "dropped-statement",
            Self::Content => "content",
        }
    }
}
