//! An API key: sent in a header, and removed from all texts of a server.

use std::borrow::Cow;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

/// Stands in place of a key.
const REDACTED: &str = "[redacted]";
/// From this length on, a key is removed from errors. Shorter keys are placeholders for local
/// servers, e.g. `test`, whose letters occur in other words.
const MIN_IN_ERRORS: usize = 8;
/// From this length on, a key is removed from replies too. A reply is data, e.g. a model may write
/// `password` in a command. Keys of providers have at least 20 characters.
const MIN_IN_REPLIES: usize = 16;
/// Maximum number of backslashes before an escaped character. JSON in JSON in JSON has seven.
const MAX_BACKSLASHES: usize = 7;

/// A key from an environment variable. It is never printed, not even by `Debug`.
#[derive(Clone)]
pub(super) struct Secret {
    key: String,
    /// Its base64 forms. There are three, since a form depends on the place in a group of three
    /// bytes.
    encoded: Vec<String>,
}

impl Secret {
    /// The key in `value`, without blanks around it. `None` if no header can hold it.
    pub(super) fn new(value: &str) -> Option<Self> {
        let value = value.trim();
        let sendable = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_graphic());
        sendable
            .then(|| Self { key: value.to_owned(), encoded: (0..3).map(|at| encoded(value, at)).collect() })
    }

    /// The key itself, for the header.
    pub(super) fn expose(&self) -> &str {
        &self.key
    }

    /// The text of an error, without the key.
    pub(super) fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.redact_from(MIN_IN_ERRORS, text)
    }

    /// The body of a response, without the key. Bodies are stored, so the key would reach every
    /// export.
    pub(super) fn redact_body<'t>(&self, body: &'t str) -> Cow<'t, str> {
        self.redact_from(MIN_IN_REPLIES, body)
    }

    fn redact_from<'t>(&self, least: usize, text: &'t str) -> Cow<'t, str> {
        if self.key.len() < least {
            return Cow::Borrowed(text);
        }
        // A body has megabytes, but few of its bytes can begin a key.
        let forms = self.encoded.iter().chain([&self.key]).filter_map(|form| form.bytes().next());
        let begins: Vec<u8> = forms.chain([b'\\', b'%']).collect();
        let (mut kept, mut copied) = (String::new(), 0);
        for at in text.bytes().enumerate().filter(|(_, byte)| begins.contains(byte)).map(|(at, _)| at) {
            if at < copied {
                continue;
            }
            if let Some(length) = self.length_at(text, at) {
                kept.push_str(text.get(copied..at).unwrap_or_default());
                kept.push_str(REDACTED);
                copied = at + length;
            }
        }
        if copied == 0 {
            return Cow::Borrowed(text);
        }
        kept.push_str(text.get(copied..).unwrap_or_default());
        Cow::Owned(kept)
    }

    /// Length of the key at this place of `text`, in any of its forms.
    fn length_at(&self, text: &str, at: usize) -> Option<usize> {
        let rest = text.as_bytes().get(at..)?;
        let encoded = self.encoded.iter().find(|form| rest.starts_with(form.as_bytes()));
        encoded.map(String::len).or_else(|| {
            self.key.bytes().try_fold(0, |read, byte| Some(read + escaped(rest.get(read..)?, byte)?))
        })
    }
}

/// Length of `byte` at the start of `text`. It may stand there as itself, escaped as in JSON
/// (`\u0073`, `\/`), or as in a URL (`%73`).
fn escaped(text: &[u8], byte: u8) -> Option<usize> {
    let first = *text.first()?;
    let is_hex = |digits: Option<&[u8]>| {
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        digits.is_some_and(|digits| u8::from_str_radix(digits, 16) == Ok(byte))
    };
    if first == b'%' && is_hex(text.get(1..3)) {
        return Some(3);
    }
    if first == b'\\' {
        let slashes = text.iter().take(MAX_BACKSLASHES).take_while(|&&one| one == b'\\').count();
        let rest = text.get(slashes..)?;
        if rest.starts_with(b"u00") && is_hex(rest.get(3..5)) {
            return Some(slashes + 5);
        }
        if byte != b'\\' && rest.first() == Some(&byte) && !byte.is_ascii_alphanumeric() {
            return Some(slashes + 1);
        }
        return (byte == b'\\').then_some(slashes);
    }
    (first == byte).then_some(1)
}

/// The base64 form of `key` after `before` other bytes, without the characters that depend on the
/// bytes around the key.
fn encoded(key: &str, before: usize) -> String {
    let mut bytes = vec![0; before];
    bytes.extend_from_slice(key.as_bytes());
    let whole = bytes.len() / 3 * 4;
    let text = STANDARD_NO_PAD.encode(&bytes);
    text.get((before * 8).div_ceil(6)..whole).unwrap_or_default().to_owned()
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
            ("12345678", "é12345678é", "é[redacted]é"),
        ] {
            let key = Secret::new(key).unwrap();
            assert_eq!(format!("{key:?}"), "[redacted]");
            assert_eq!(key.redact(text), expected);
        }
        for bad in ["", " ", "a\nb", "schlüssel", "two words"] {
            assert!(Secret::new(bad).is_none(), "{bad:?}");
        }
    }

    #[test]
    fn every_form_of_a_key_is_removed_from_a_reply() {
        let key = "sk-proj/4f9a\"77c1+x";
        let every = |form: fn(u8) -> String| key.bytes().map(form).collect::<String>();
        let quoted = serde_json::to_string(key).unwrap();
        let json = quoted[1..quoted.len() - 1].to_owned();
        let secret = Secret::new(key).unwrap();
        let check = |form: &str| {
            let body = format!("{{\"content\":\"{form} and {form}\"}}");
            assert_eq!(secret.redact_body(&body), "{\"content\":\"[redacted] and [redacted]\"}", "{form}");
        };
        check(key);
        check(&json);
        check(&json.replace('/', "\\/"));
        // The arguments of a tool call are JSON in JSON.
        let twice = serde_json::to_string(&json).unwrap();
        check(&twice[1..twice.len() - 1]);
        check(&every(|byte| format!("\\u{byte:04x}")));
        check(&every(|byte| format!("\\\\u{byte:04X}")));
        check(&every(|byte| format!("%{byte:02X}")));
        check("sk-proj%2F4f9a%2277c1%2bx");
        let other = |text: &str| assert_eq!(secret.redact_body(text), text);
        other("sk-proj/4f9a");
        other("SK-PROJ/4F9A\"77C1+X");
        other("");
        let short = Secret::new("password").unwrap();
        assert_eq!(short.redact_body("cat password.txt"), "cat password.txt");
        for before in ["", "u", "us", "user:"] {
            let sent = STANDARD_NO_PAD.encode(format!("{before}{key}"));
            let left = secret.redact_body(&sent).into_owned();
            assert!(left.contains(REDACTED) && left.len() < REDACTED.len() + 12, "{before:?}: {left}");
        }
    }
}
