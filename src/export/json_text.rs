//! JSON text whose keys keep the order in which they were written.
//!
//! `serde_json` sorts the keys of an object. A model is trained on the order that it wrote, so the
//! text itself is rewritten here.

use serde_json::Value;

/// `text` as JSON.
pub(super) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// The JSON text `json` as Python's `json.dumps(…, ensure_ascii=False)` writes it: with a space
/// after each comma and colon, and without other white space. Chat templates write function calls
/// in this form.
///
/// An integer of more than 64 bits becomes a floating-point number: `datasets` refuses a file with
/// such an integer.
pub(super) fn as_python_writes(json: &str) -> String {
    let mut out = String::with_capacity(json.len() + json.len() / 8);
    let mut rest = json;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => string_length(rest),
            '-' | '0'..='9' => rest.find([',', '}', ']', ' ', '\t', '\r', '\n']).unwrap_or(rest.len()),
            _ => first.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        match first {
            '"' => match serde_json::from_str::<String>(token) {
                Ok(text) => out.push_str(&quoted(&text)),
                Err(_) => out.push_str(token),
            },
            '-' | '0'..='9' => out.push_str(&number(token)),
            ',' | ':' => {
                out.push(first);
                out.push(' ');
            }
            ' ' | '\t' | '\r' | '\n' => {}
            _ => out.push(first),
        }
        rest = after;
    }
    out
}

/// The length of the string at the start of `text`, with its quotes.
fn string_length(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '"' if !escaped => return at + 1,
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    text.len()
}

fn number(token: &str) -> String {
    let is_integer = !token.contains(['.', 'e', 'E']);
    let fits = token.parse::<i64>().is_ok() || token.parse::<u64>().is_ok();
    match token.parse::<f64>() {
        Ok(float) if is_integer && !fits => Value::from(float).to_string(),
        Ok(_) | Err(_) => token.to_owned(),
    }
}

/// Writes a JSON object key by key.
pub(super) struct ObjectText(String);

impl ObjectText {
    pub(super) fn new() -> Self {
        Self("{".to_owned())
    }

    /// Adds a key with a text.
    pub(super) fn text(self, key: &str, text: &str) -> Self {
        self.json(key, &quoted(text))
    }

    /// Adds a key whose value is this JSON.
    pub(super) fn json(mut self, key: &str, json: &str) -> Self {
        if self.0.len() > 1 {
            self.0.push_str(", ");
        }
        self.0.push_str(&quoted(key));
        self.0.push_str(": ");
        self.0.push_str(json);
        self
    }

    pub(super) fn end(self) -> String {
        self.0 + "}"
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn python_form() {
        let check = |json: &str, expect: &str| assert_eq!(as_python_writes(json), expect, "{json}");
        check("{}", "{}");
        check("{ \n}", "{}");
        check(r#"{"z":1,"a":[true,null,{"y":"x"}]}"#, r#"{"z": 1, "a": [true, null, {"y": "x"}]}"#);
        check(r#"{"z" : 1 , "a" : [ ] }"#, r#"{"z": 1, "a": []}"#);
        // Inside strings, nothing changes but escapes.
        check(r#"{"a":"b:c,d { \" \\","e":"\\"}"#, r#"{"a": "b:c,d { \" \\", "e": "\\"}"#);
        check(r#"{"a":"\u00e9\/\u0000\t"}"#, "{\"a\": \"é/\\u0000\\t\"}");
        check(r#"{"a":"é🦀"}"#, r#"{"a": "é🦀"}"#);
        // Numbers keep their form, unless `datasets` cannot read them.
        check(
            r#"{"a":-1.50,"b":1e3,"c":18446744073709551615}"#,
            r#"{"a": -1.50, "b": 1e3, "c": 18446744073709551615}"#,
        );
        check(
            r#"[18446744073709551616,-9223372036854775809]"#,
            "[1.8446744073709552e+19, -9.223372036854776e+18]",
        );
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_filter("JSON has no others", |float| float.is_finite()).prop_map(Value::from),
            ".*".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 5, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                proptest::collection::btree_map(".*", inner, 0..5)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn values_stay_as_they_are(json in any_json()) {
            for text in [json.to_string(), serde_json::to_string_pretty(&json).unwrap()] {
                let written = as_python_writes(&text);
                let read = |text: &str| serde_json::from_str::<Value>(text).unwrap();
                prop_assert_eq!(read(&written), read(&text));
                prop_assert_eq!(as_python_writes(&written), written);
            }
        }

        #[test]
        fn any_text_can_be_rewritten(text in ".*") {
            as_python_writes(&text);
        }
    }
}
