//! Gemini's form of a schema as JSON Schema. The words for types are in capitals there.

use serde_json::Value;

/// Values of these keywords are no schemas.
const NO_SCHEMAS: [&str; 4] = ["const", "default", "enum", "example"];

/// The JSON Schema of a schema.
pub(super) fn json_schema(schema: Value) -> Value {
    match schema {
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(key, value)| {
                let value = match value {
                    Value::String(word) if key == "type" => Value::String(word.to_ascii_lowercase()),
                    value if NO_SCHEMAS.contains(&key.as_str()) => value,
                    value => json_schema(value),
                };
                (key, value)
            });
            Value::Object(fields.collect())
        }
        Value::Array(items) => items.into_iter().map(json_schema).collect(),
        other => other,
    }
}
