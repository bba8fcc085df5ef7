//! Parses rows of the screening table on the command line.

use super::failure::Failure;
use crate::model::RowKind;
use crate::screen::Only;

/// The rows that `--only` names. All rows if it was not given.
pub(super) fn only(texts: &[String]) -> Result<Only, Failure> {
    if texts.is_empty() {
        return Ok(Only::All);
    }
    let parsed = texts.iter().map(|text| row(text).map_err(Failure::usage)).collect::<Result<Vec<_>, _>>()?;
    Ok(Only::Rows(parsed))
}

/// `kind` or `kind:name`.
pub(super) fn row(text: &str) -> Result<(RowKind, Option<String>), String> {
    let (kind, name) =
        text.split_once(':').map_or((text, None), |(kind, name)| (kind, Some(name.to_owned())));
    let kind = RowKind::ALL.into_iter().find(|known| known.name() == kind).ok_or_else(|| {
        let known: Vec<_> = RowKind::ALL.iter().map(|kind| kind.name()).collect();
        format!("no row `{kind}`\nhint: known rows: {}", known.join(", "))
    })?;
    Ok((kind, name))
}
