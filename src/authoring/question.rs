//! Names of questions to judges.

use serde::Serialize;

use super::StageError;
use crate::model::canonical_json;
use crate::store::StoreError;

/// Characters of a name: two questions of one authoring have the same one by chance once in 10¹⁴
/// times.
const LENGTH: usize = 12;

/// The name of a question that shows `shown`, for its call site. Two questions of one authoring
/// differ in what they show; the same question has the same answer.
pub(super) fn question<T: Serialize>(shown: &T) -> Result<String, StageError> {
    let text = canonical_json(shown).map_err(StoreError::Encode)?;
    Ok(blake3::hash(text.as_bytes()).to_hex().as_str()[..LENGTH].to_owned())
}
