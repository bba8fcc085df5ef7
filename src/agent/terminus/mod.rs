//! The terminus-2 protocol: prompts, replies, keys and observations byte for byte as in Harbor 0.24
//! and 0.25.
//!
//! Everything here is pure. The tests compare it with the results of Harbor's code for the same
//! replies. Some replies end Harbor's code with an uncaught exception: half a surrogate pair or NUL
//! in keystrokes, a duration beyond all floats, a tag of blanks alone. This code continues.

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

/// The reply format of the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    #[default]
    Json,
    Xml,
}

impl Format {
    /// Parses a reply.
    pub fn parse(self, response: &str) -> Parsed {
        match self {
            Self::Json => json::parse(response),
            Self::Xml => xml::parse(response),
        }
    }

    /// The usable part of a truncated reply. Only XML marks the end of a reply, so JSON has none.
    ///
    /// Harbor means to salvage too, but fails: it then takes a string for a response.
    pub fn salvage(self, truncated: &str) -> Option<&str> {
        match self {
            Self::Json => None,
            Self::Xml => xml::salvage(truncated),
        }
    }
}
