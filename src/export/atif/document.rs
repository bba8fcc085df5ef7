//! The ATIF objects that termsmith writes.

use serde::ser::Error as _;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::model::{CallDetail, Tokens};

/// The value of `schema_version`.
pub const SCHEMA_VERSION: &str = "ATIF-v1.7";

/// A document, and its file name.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    pub name: String,
    pub trajectory: Trajectory,
}

/// An ATIF document.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trajectory {
    pub(super) schema_version: &'static str,
    pub(super) session_id: String,
    pub(super) trajectory_id: String,
    pub(super) agent: Agent,
    pub(super) steps: Vec<Step>,
    pub(super) final_metrics: FinalMetrics,
    /// File name of the next segment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) continued_trajectory_ref: Option<String>,
    /// Threads that this one began.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) subagent_trajectories: Vec<Trajectory>,
    pub(super) extra: Map<String, Value>,
}

impl Trajectory {
    /// The content of the document's file.
    pub fn to_json(&self) -> String {
        // Keys of maps are text and numbers are finite, so this cannot fail.
        serde_json::to_string_pretty(self).map(|text| text + "\n").unwrap_or_default()
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Agent {
    pub(super) name: String,
    pub(super) version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) model_name: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) tool_definitions: Vec<Value>,
    pub(super) extra: Map<String, Value>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct Step {
    pub(super) step_id: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) timestamp: Option<String>,
    pub(super) source: &'static str,
    pub(super) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) tool_calls: Vec<ToolCall>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) observation: Option<Observation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) metrics: Option<Metrics>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) is_copied_context: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) llm_call_count: Option<u32>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub(super) extra: Map<String, Value>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct Metrics {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) prompt_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) completion_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cost_usd: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) prompt_token_ids: Option<Vec<u32>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) completion_token_ids: Option<Vec<u32>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) logprobs: Option<Vec<f64>>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct ToolCall {
    pub(super) tool_call_id: String,
    pub(super) function_name: String,
    pub(super) arguments: ObjectText,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub(super) extra: Map<String, Value>,
}

/// The text of a JSON object. Its keys keep their order.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ObjectText(String);

impl ObjectText {
    /// The text, if it is an object.
    pub(super) fn parse(text: &str) -> Option<Self> {
        serde_json::from_str::<Map<String, Value>>(text).ok().map(|_| Self(text.to_owned()))
    }

    pub(super) fn of(object: Value) -> Self {
        Self(Value::Object(self::object(object)).to_string())
    }
}

impl Serialize for ObjectText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serde_json::from_str::<&RawValue>(&self.0).map_err(S::Error::custom)?.serialize(serializer)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct Observation {
    pub(super) results: Vec<ObservationResult>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct ObservationResult {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) source_call_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) content: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) subagent_trajectory_ref: Vec<SubagentRef>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub(super) extra: Map<String, Value>,
}

/// Reference to another document: to a file, e.g. of a summary, or to an embedded one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct SubagentRef {
    pub(super) trajectory_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) session_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) trajectory_path: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct FinalMetrics {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) total_prompt_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) total_completion_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) total_cost_usd: Option<f64>,
    pub(super) total_steps: usize,
}

impl FinalMetrics {
    /// Sums over the calls whose tokens the server counted.
    pub(super) fn of<'a>(
        usages: &[Tokens],
        details: impl Iterator<Item = &'a CallDetail>,
        total_steps: usize,
    ) -> Self {
        let total = |of: fn(&Tokens) -> u64| usages.iter().map(of).reduce(|one, other| one + other);
        Self {
            total_prompt_tokens: total(|usage| usage.prompt),
            total_completion_tokens: total(|usage| usage.completion),
            total_cost_usd: details.filter_map(|detail| detail.usd).reduce(|one, other| one + other),
            total_steps,
        }
    }

    /// These sums, with those of embedded documents. Harbor reports only the outer document's. The
    /// steps are its own.
    pub(super) fn with(mut self, embedded: &[Trajectory]) -> Self {
        fn add<T: std::ops::Add<Output = T>>(sum: &mut Option<T>, more: Option<T>) {
            *sum = match (sum.take(), more) {
                (Some(sum), Some(more)) => Some(sum + more),
                (sum, more) => sum.or(more),
            };
        }
        for Trajectory { final_metrics, .. } in embedded {
            add(&mut self.total_prompt_tokens, final_metrics.total_prompt_tokens);
            add(&mut self.total_completion_tokens, final_metrics.total_completion_tokens);
            add(&mut self.total_cost_usd, final_metrics.total_cost_usd);
        }
        self
    }
}

/// The fields of a JSON object.
pub(super) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
