//! The forms that messages have in the protocols of endpoints, for both directions: termsmith asks
//! endpoints, and installed agents ask termsmith.

pub(crate) mod content;
pub(crate) mod messages;
pub(crate) mod responses;
#[cfg(test)]
mod tests;
