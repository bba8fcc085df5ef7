//! Names questions to judges.

use serde::Serialize;

use super::StageError;
use crate::model::canonical_json;
use crate::store::StoreError;

/// Characters of a name. Two questions of one authoring have the same name by chance once in 10¹⁴
/// times.
const LENGTH: usize = 12;

/// The name of a question, for its call site. It is a hash of the question's content `shown`. So
/// different questions have different sites, and an equal question gets the stored answer.
pub(super) fn question<T: Serialize>(shown: &T) -> Result<String, StageError> {
    let text = canonical_json(shown).map_err(StoreError::Encode)?;
    Ok(blake3::hash(text.as_bytes()).to_hex().as_str()[..LENGTH].to_owned())
}
