//! The fields of ATIF v1.0 to v1.8 that rollouts need. Unknown fields are ignored, because versions add different ones.

use serde::Deserialize;
use serde_json::{Map, Value};

#[derive(Debug, Deserialize)]
pub(super) struct Document {
    pub(super) schema_version: String,
    pub(super) agent: Agent,
    pub(super) steps: Vec<Step>,
    /// File of the part that follows a summary.
    #[serde(default)]
    pub(super) continued_trajectory_ref: Option<String>,
    #[serde(default)]
    pub(super) extra: Option<Map<String, Value>>,
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

impl Step {
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
    /// All of its text; `None` if a part is not text.
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
    pub(super) arguments: Value,
    #[serde(default)]
    pub(super) extra: Option<Map<String, Value>>,
}

impl Call {
    /// Whether `extra` has the flag `name`.
    pub(super) fn is(&self, name: &str) -> bool {
        self.extra.as_ref().and_then(|extra| extra.get(name)) == Some(&Value::Bool(true))
    }

    /// An argument that is text.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.arguments.get(name)?.as_str()
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
    pub(super) prompt_tokens: Option<u64>,
    #[serde(default)]
    pub(super) completion_tokens: Option<u64>,
}
