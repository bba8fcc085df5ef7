//! The terminus-2 protocol: prompts, replies, keys and observations as in Harbor 0.24 and 0.25, byte for byte.
//!
//! Everything here is pure: texts and a little state in, texts out. The tests compare it with what Harbor's own code makes of
//! the same replies. Where that code ends with an exception that nobody catches (half a surrogate pair or NUL in keystrokes, a
//! duration beyond all floats, a tag of blanks alone), this goes on.

mod decode;
mod json;
mod keys;
mod names;
mod observation;
mod parsed;
mod python;
mod scan;
mod texts;
mod turn;
mod xml;

#[cfg(test)]
mod tests;

pub use keys::to_bytes;
pub use observation::{MAX_OUTPUT_BYTES, Pane, limit};
pub use parsed::{Command, Parsed};
pub use texts::{Texts, TextsError};
pub use turn::{Next, Reading, Turns};

/// Which of the two formats the model answers in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    #[default]
    Json,
    Xml,
}

impl Format {
    /// Reads a reply.
    pub fn parse(self, response: &str) -> Parsed {
        match self {
            Self::Json => json::parse(response),
            Self::Xml => xml::parse(response),
        }
    }

    /// What of a reply that was cut off by its length can still be used. Only XML says where a reply ends.
    ///
    /// (Harbor means to use it too, but fails on the string that it then has instead of a response.)
    pub fn salvage(self, truncated: &str) -> Option<&str> {
        match self {
            Self::Json => None,
            Self::Xml => xml::salvage(truncated),
        }
    }
}
