//! A JSON decoder like CPython 3.13's: it refuses the same texts with the same messages.

use std::fmt;

/// Deeper nesting is refused. Python allows some ten thousand levels, and then raises an exception
/// that Harbor does not catch.
const MAX_DEPTH: usize = 500;

/// A JSON value. As in Python, `NaN` and the infinities are numbers.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Null,
    Bool(bool),
    /// Digits: an integer has no bound.
    Int(String),
    Float(f64),
    Str(String),
    List(Vec<Value>),
    /// In the order of the text. If a name comes twice, its last value counts.
    Dict(Vec<(String, Value)>),
}

impl Value {
    /// `bool(value)`.
    pub(super) fn is_truthy(&self) -> bool {
        match self {
            Self::Null => false,
            Self::Bool(value) => *value,
            Self::Int(digits) => digits.bytes().any(|digit| matches!(digit, b'1'..=b'9')),
            Self::Float(value) => *value != 0.0,
            Self::Str(text) => !text.is_empty(),
            Self::List(items) => !items.is_empty(),
            Self::Dict(items) => !items.is_empty(),
        }
    }

    /// `float(value)` of an `int`, a `float` or a `bool`.
    pub(super) fn to_number(&self) -> Option<f64> {
        match self {
            Self::Bool(value) => Some(f64::from(u8::from(*value))),
            Self::Int(digits) => digits.parse().ok(),
            Self::Float(value) => Some(*value),
            _ => None,
        }
    }

    /// A string as it is, any other value as JSON.
    pub(super) fn to_text(&self) -> String {
        match self {
            Self::Str(text) => text.clone(),
            other => other.to_string(),
        }
    }
}

/// Like `json.dumps(…, ensure_ascii=False)`.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Int(digits) => f.write_str(digits),
            Self::Float(value) => write!(f, "{value:?}"),
            Self::Str(text) => write!(f, "{}", serde_json::Value::from(text.as_str())),
            Self::List(items) => {
                f.write_str("[")?;
                for (offset, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if offset > 0 { ", " } else { "" })?;
                }
                f.write_str("]")
            }
            Self::Dict(items) => {
                f.write_str("{")?;
                for (offset, (key, item)) in items.iter().enumerate() {
                    let key = serde_json::Value::from(key.as_str());
                    write!(f, "{}{key}: {item}", if offset > 0 { ", " } else { "" })?;
                }
                f.write_str("}")
            }
        }
    }
}

/// `json.JSONDecodeError`. Lines and columns count from 1, characters from 0.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}: line {line} column {column} (char {offset})")]
pub(super) struct DecodeError {
    message: &'static str,
    line: usize,
    column: usize,
    offset: usize,
}

/// `json.loads`.
pub(super) fn decode(text: &str) -> Result<Value, DecodeError> {
    let mut decoder = Decoder { text: text.chars().collect(), at: 0 };
    decoder.skip_space();
    let value = decoder.value(0)?;
    decoder.skip_space();
    if decoder.at < decoder.text.len() {
        return Err(decoder.error("Extra data", decoder.at));
    }
    Ok(value)
}

struct Decoder {
    text: Vec<char>,
    at: usize,
}

impl Decoder {
    fn error(&self, message: &'static str, offset: usize) -> DecodeError {
        let before = &self.text[..offset.min(self.text.len())];
        let line_start = before.iter().rposition(|c| *c == '\n').map_or(0, |newline| newline + 1);
        let line = before.iter().filter(|c| **c == '\n').count() + 1;
        DecodeError { message, line, column: offset - line_start + 1, offset }
    }

    fn peek(&self) -> Option<char> {
        self.text.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(' ' | '\t' | '\n' | '\r')) {
            self.at += 1;
        }
    }

    fn word(&mut self, word: &str, value: Value) -> Option<Value> {
        let end = self.at + word.len();
        self.text.get(self.at..end)?.iter().copied().eq(word.chars()).then(|| {
            self.at = end;
            value
        })
    }

    fn value(&mut self, depth: usize) -> Result<Value, DecodeError> {
        if depth > MAX_DEPTH {
            return Err(self.error("Too deeply nested", self.at));
        }
        let start = self.at;
        let found = match self.peek() {
            Some('"') => return self.string().map(Value::Str),
            Some('{') => return self.dict(depth),
            Some('[') => return self.list(depth),
            Some('n') => self.word("null", Value::Null),
            Some('t') => self.word("true", Value::Bool(true)),
            Some('f') => self.word("false", Value::Bool(false)),
            Some('N') => self.word("NaN", Value::Float(f64::NAN)),
            Some('I') => self.word("Infinity", Value::Float(f64::INFINITY)),
            Some('-') => self.word("-Infinity", Value::Float(f64::NEG_INFINITY)).or_else(|| self.number()),
            Some('0'..='9') => self.number(),
            _ => None,
        };
        found.ok_or_else(|| self.error("Expecting value", start))
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while self.peek().is_some_and(|c| c.is_ascii_digit()) {
            self.at += 1;
        }
        self.at - start
    }

    fn number(&mut self) -> Option<Value> {
        let start = self.at;
        self.at += usize::from(self.peek() == Some('-'));
        match self.peek()? {
            '0' => self.at += 1,
            '1'..='9' => _ = self.digits(),
            _ => return None,
        }
        let mut whole = true;
        if self.peek() == Some('.') && self.text.get(self.at + 1).is_some_and(char::is_ascii_digit) {
            self.at += 1;
            self.digits();
            whole = false;
        }
        if matches!(self.peek(), Some('e' | 'E')) {
            let exponent = self.at;
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some('+' | '-')));
            if self.digits() > 0 {
                whole = false;
            } else {
                self.at = exponent;
            }
        }
        let digits: String = self.text[start..self.at].iter().collect();
        if whole { Some(Value::Int(digits)) } else { digits.parse().ok().map(Value::Float) }
    }

    fn list(&mut self, depth: usize) -> Result<Value, DecodeError> {
        let mut items = Vec::new();
        self.at += 1;
        self.skip_space();
        if self.peek() == Some(']') {
            self.at += 1;
            return Ok(Value::List(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            if self.ends(']', "Illegal trailing comma before end of array")? {
                return Ok(Value::List(items));
            }
        }
    }

    fn dict(&mut self, depth: usize) -> Result<Value, DecodeError> {
        let mut items: Vec<(String, Value)> = Vec::new();
        self.at += 1;
        self.skip_space();
        if self.peek() == Some('}') {
            self.at += 1;
            return Ok(Value::Dict(items));
        }
        loop {
            if self.peek() != Some('"') {
                return Err(self.error("Expecting property name enclosed in double quotes", self.at));
            }
            let key = self.string()?;
            self.skip_space();
            if self.peek() != Some(':') {
                return Err(self.error("Expecting ':' delimiter", self.at));
            }
            self.at += 1;
            self.skip_space();
            let value = self.value(depth + 1)?;
            match items.iter_mut().find(|(known, _)| *known == key) {
                Some((_, known)) => *known = value,
                None => items.push((key, value)),
            }
            if self.ends('}', "Illegal trailing comma before end of object")? {
                return Ok(Value::Dict(items));
            }
        }
    }

    /// Reads the `,` or `close` after an item. True if the item was the last one.
    fn ends(&mut self, close: char, trailing: &'static str) -> Result<bool, DecodeError> {
        self.skip_space();
        if self.peek() == Some(close) {
            self.at += 1;
            return Ok(true);
        }
        if self.peek() != Some(',') {
            return Err(self.error("Expecting ',' delimiter", self.at));
        }
        let comma = self.at;
        self.at += 1;
        self.skip_space();
        if self.peek() == Some(close) { Err(self.error(trailing, comma)) } else { Ok(false) }
    }

    fn string(&mut self) -> Result<String, DecodeError> {
        let begin = self.at;
        let mut out = String::new();
        self.at += 1;
        loop {
            let unterminated = || self.error("Unterminated string starting at", begin);
            let at = self.at;
            match self.peek().ok_or_else(unterminated)? {
                '"' => {
                    self.at += 1;
                    return Ok(out);
                }
                '\\' => {
                    let escaped = self.text.get(at + 1).copied().ok_or_else(unterminated)?;
                    self.at += 2;
                    out.push(match escaped {
                        '"' | '\\' | '/' => escaped,
                        'b' => '\u{8}',
                        'f' => '\u{c}',
                        'n' => '\n',
                        'r' => '\r',
                        't' => '\t',
                        'u' => self.unicode_escape()?,
                        _ => return Err(self.error("Invalid \\escape", at)),
                    });
                }
                c if c < ' ' => return Err(self.error("Invalid control character at", at)),
                c => {
                    out.push(c);
                    self.at += 1;
                }
            }
        }
    }

    /// Reads the digits after `\u`. Half a surrogate pair becomes U+FFFD; Python keeps it, and then
    /// cannot send it.
    fn unicode_escape(&mut self) -> Result<char, DecodeError> {
        let first = self.hex(self.at)?;
        self.at += 4;
        // Like Python, looks for the second half only if text follows it.
        let more = self.at + 6 < self.text.len() && self.text[self.at..].starts_with(&['\\', 'u']);
        if (0xd800..0xdc00).contains(&first) && more {
            let second = self.hex(self.at + 2)?;
            if (0xdc00..0xe000).contains(&second) {
                self.at += 6;
                let code = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
        }
        Ok(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn hex(&self, from: usize) -> Result<u32, DecodeError> {
        let invalid = || self.error("Invalid \\uXXXX escape", from - 1);
        // The string's closing quote must still follow the digits.
        let digits =
            self.text.get(from..from + 4).filter(|_| from + 4 < self.text.len()).ok_or_else(invalid)?;
        digits.iter().try_fold(0, |value, digit| Some(value * 16 + digit.to_digit(16)?)).ok_or_else(invalid)
    }
}
