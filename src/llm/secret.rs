//! An API key: sent, and otherwise nowhere to be seen.

use std::fmt;

/// What stands where a key stood.
const REDACTED: &str = "[redacted]";

/// A key as an environment variable held it.
#[derive(Clone)]
pub(super) struct Secret(String);

impl Secret {
    /// The key in `value`, without the blanks around it. `None` where it cannot stand in a header.
    pub(super) fn new(value: &str) -> Option<Self> {
        let value = value.trim();
        let sendable = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_graphic());
        sendable.then(|| Self(value.to_owned()))
    }

    /// The key itself, for the header.
    pub(super) fn expose(&self) -> &str {
        &self.0
    }

    /// `text` without the key: servers quote it in their errors.
    pub(super) fn redact(&self, text: String) -> String {
        if text.contains(&self.0) { text.replace(&self.0, REDACTED) } else { text }
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
    fn keys_are_seen_nowhere() {
        let key = Secret::new(" sk-123 \n").unwrap();
        assert_eq!(format!("{key:?}"), "[redacted]");
        assert_eq!(key.redact("bad key sk-123 (sk-123)".to_owned()), "bad key [redacted] ([redacted])");
        for bad in ["", " ", "a\nb", "schlüssel", "two words"] {
            assert!(Secret::new(bad).is_none(), "{bad:?}");
        }
    }
}
