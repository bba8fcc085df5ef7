//! The fields of ATIF v1.0 to v1.8 that rollouts need. Unknown fields are ignored, because versions
//! add different ones.

use std::fmt;

use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::atif::{Empty, OURS, TERMINUS};
use crate::model::MOST_TOKENS;

/// Characters of a value that are shown in a note.
const LONGEST_ODD: usize = 40;

#[derive(Debug, Deserialize)]
pub(super) struct Document {
    pub(super) schema_version: String,
    pub(super) agent: Agent,
    #[serde(deserialize_with = "steps")]
    pub(super) steps: Vec<Step>,
    /// File of the part that follows a summary.
    #[serde(default)]
    pub(super) continued_trajectory_ref: Option<String>,
    #[serde(default)]
    pub(super) extra: Option<Map<String, Value>>,
}

/// Steps of a document. The longest known rollouts have some thousands.
pub(super) const MOST_STEPS: usize = 50_000;

/// The steps, as long as there are not too many: each takes more memory than its text.
fn steps<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Vec<Step>, D::Error> {
    struct Steps;

    impl<'de> Visitor<'de> for Steps {
        type Value = Vec<Step>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of steps")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> std::result::Result<Self::Value, A::Error> {
            let mut steps = Vec::new();
            while let Some(step) = list.next_element()? {
                if steps.len() == MOST_STEPS {
                    return Err(A::Error::custom(format_args!("it has more than {MOST_STEPS} steps")));
                }
                steps.push(step);
            }
            Ok(steps)
        }
    }

    deserializer.deserialize_seq(Steps)
}

#[derive(Debug, Deserialize)]
pub(super) struct Agent {
    pub(super) name: String,
    #[serde(default)]
    pub(super) version: Option<String>,
    #[serde(default)]
    pub(super) model_name: Option<String>,
    #[serde(default)]
    pub(super) tool_definitions: Option<Vec<Value>>,
    #[serde(default)]
    pub(super) extra: Option<Map<String, Value>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Source {
    System,
    User,
    Agent,
}

#[derive(Debug, Deserialize)]
pub(super) struct Step {
    #[serde(default)]
    pub(super) step_id: Option<u64>,
    #[serde(default)]
    pub(super) timestamp: Option<String>,
    pub(super) source: Source,
    #[serde(default)]
    pub(super) message: Option<Content>,
    #[serde(default)]
    pub(super) reasoning_content: Option<String>,
    #[serde(default)]
    pub(super) tool_calls: Option<Vec<Call>>,
    #[serde(default)]
    pub(super) observation: Option<Observation>,
    #[serde(default)]
    pub(super) metrics: Option<Metrics>,
    #[serde(default)]
    pub(super) is_copied_context: Option<bool>,
    #[serde(default)]
    pub(super) extra: Option<Map<String, Value>>,
}

impl Agent {
    /// The meaning of this agent's steps without a message.
    pub(super) fn without_message(&self) -> Empty {
        if self.name == TERMINUS || self.name.starts_with(OURS) {
            Empty::IsMessage
        } else {
            Empty::IsNoMessage
        }
    }
}

impl Step {
    /// Whether it holds nothing but observations.
    pub(super) fn only_observes(&self, text: &str) -> bool {
        let silent = text.is_empty() && self.reasoning_content.as_deref().unwrap_or_default().is_empty();
        let calls = self.tool_calls.as_deref().unwrap_or_default();
        silent && calls.is_empty() && self.metrics.is_none() && self.observation.is_some()
    }

    pub(super) fn is_copied(&self) -> bool {
        self.is_copied_context == Some(true)
    }

    /// A value of `extra`.
    pub(super) fn extra(&self, name: &str) -> Option<&Value> {
        self.extra.as_ref()?.get(name)
    }
}

/// Text, or a list of parts since v1.6.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Content {
    Text(String),
    Parts(Vec<Part>),
}

#[derive(Debug, Deserialize)]
pub(super) struct Part {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    text: Option<String>,
}

impl Content {
    /// The whole text. `None` if a part is not text.
    pub(super) fn text(&self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text.clone()),
            Self::Parts(parts) => {
                parts.iter().map(|part| part.text.as_deref().filter(|_| part.kind == "text")).collect()
            }
        }
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct Call {
    #[serde(default)]
    pub(super) tool_call_id: String,
    #[serde(default)]
    pub(super) function_name: String,
    #[serde(default)]
    pub(super) arguments: Arguments,
    #[serde(default)]
    pub(super) extra: Option<Map<String, Value>>,
}

/// The arguments of a call.
#[derive(Debug, Default)]
pub(super) struct Arguments {
    pub(super) value: Value,
    /// The JSON text. Its keys have the model's order.
    pub(super) text: String,
}

impl<'de> Deserialize<'de> for Arguments {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let value = serde_json::from_str(text.get()).map_err(D::Error::custom)?;
        Ok(Self { value, text: text.get().to_owned() })
    }
}

impl Call {
    /// Whether `extra` has the flag `name`.
    pub(super) fn is(&self, name: &str) -> bool {
        self.extra.as_ref().and_then(|extra| extra.get(name)) == Some(&Value::Bool(true))
    }

    /// An argument, if it is text.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.arguments.value.get(name)?.as_str()
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct Observation {
    #[serde(default)]
    pub(super) results: Vec<Result>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Result {
    #[serde(default)]
    pub(super) source_call_id: Option<String>,
    #[serde(default)]
    pub(super) content: Option<Content>,
    #[serde(default)]
    pub(super) extra: Option<Map<String, Value>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Metrics {
    #[serde(default)]
    pub(super) prompt_tokens: Count,
    #[serde(default)]
    pub(super) completion_tokens: Count,
}

/// A number of tokens, as another program wrote it.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub(super) struct Count(Value);

impl Count {
    /// The number. `None` if there is none. `Err` is the text in its place, if that is no number.
    pub(super) fn number(&self) -> std::result::Result<Option<u64>, String> {
        if self.0.is_null() {
            return Ok(None);
        }
        // Some programs write `12.0`.
        let whole = || format!("{:.0}", self.0.as_f64().filter(|number| number.fract() == 0.0)?).parse().ok();
        let number = self.0.as_u64().or_else(whole);
        let number = number.filter(|number| *number <= MOST_TOKENS);
        number.map(Some).ok_or_else(|| self.0.to_string().chars().take(LONGEST_ODD).collect())
    }
}
