//! Shards: *n* equal parts of a run.

use std::fmt;
use std::str::FromStr;

/// Part `index` of `count`, written `i/n` with `i` from 0. It contains blueprint *i* if *i* mod
/// `count` is `index`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    index: u32,
    count: u32,
}

/// The error for a text that is not a shard.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a shard\nhint: write `i/n` with i from 0 to n-1, such as `0/2` and `1/2`")]
pub struct ShardError(String);

impl Shard {
    /// The whole run as a single part.
    pub const WHOLE: Self = Self { index: 0, count: 1 };

    /// Part `index` of `count`. `None` unless `index < count`.
    pub fn new(index: u32, count: u32) -> Option<Self> {
        (index < count).then_some(Self { index, count })
    }

    /// Whether blueprint `index` belongs to this part.
    pub fn contains(self, index: u32) -> bool {
        index % self.count == self.index
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

impl FromStr for Shard {
    type Err = ShardError;

    fn from_str(text: &str) -> Result<Self, ShardError> {
        let parsed = || {
            let (index, count) = text.split_once('/')?;
            Self::new(index.parse().ok()?, count.parse().ok()?)
        };
        parsed().ok_or_else(|| ShardError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts() {
        for (text, expected) in [
            ("0/1", Some(Shard::WHOLE)),
            ("1/2", Shard::new(1, 2)),
            ("2/2", None),
            ("0/0", None),
            ("-1/2", None),
            ("1", None),
            ("1/2/3", None),
            ("", None),
        ] {
            assert_eq!(text.parse::<Shard>().ok(), expected, "{text}");
            if let Some(shard) = expected {
                assert_eq!(shard.to_string(), text);
            }
        }
    }
}
