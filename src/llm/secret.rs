//! An API key: sent in a header, and removed from the text of errors.

use std::fmt;

/// What replaces a key in an error's text.
const REDACTED: &str = "[redacted]";
/// Shorter keys are not redacted: they are placeholders of local servers (`test`, `none`, `EMPTY`), their letters occur in ordinary
/// words, and what is that short is no secret. Providers' keys have 20 characters and more.
const MIN_REDACTED_LEN: usize = 8;

/// A key as an environment variable held it. Never printed, not even by `Debug`.
#[derive(Clone)]
pub(super) struct Secret(String);

impl Secret {
    /// The key in `value`, without surrounding whitespace. `None` where it cannot be sent in a header.
    pub(super) fn new(value: &str) -> Option<Self> {
        let value = value.trim();
        let sendable = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_graphic());
        sendable.then(|| Self(value.to_owned()))
    }

    /// The key itself, for the header.
    pub(super) fn expose(&self) -> &str {
        &self.0
    }

    /// `text` without the key: servers quote it in their errors. Never to be used on a model's message, which is data.
    pub(super) fn redact(&self, text: &str) -> String {
        if self.0.len() < MIN_REDACTED_LEN { text.to_owned() } else { text.replace(&self.0, REDACTED) }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_redacted() {
        for (key, text, expected) in [
            (" sk-12345 \n", "bad key sk-12345 (sk-12345)", "bad key [redacted] ([redacted])"),
            ("test", "echo pytest latest", "echo pytest latest"),
            ("1234567", "1234567", "1234567"),
            ("12345678", "12345678", "[redacted]"),
        ] {
            let key = Secret::new(key).unwrap();
            assert_eq!(format!("{key:?}"), "[redacted]");
            assert_eq!(key.redact(text), expected);
        }
        for bad in ["", " ", "a\nb", "schlüssel", "two words"] {
            assert!(Secret::new(bad).is_none(), "{bad:?}");
        }
    }
}
