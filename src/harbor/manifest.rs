//! The types of `task.toml`, as `models/task/config.py` of harbor 0.25 declares them.
//!
//! Every key is optional here, because a reader must tell the keys in a file from Harbor's
//! defaults. Parts that termsmith only passes on stay plain TOML. A number may be written as text,
//! because Harbor's parser (pydantic) accepts that.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A whole `task.toml`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    pub schema_version: Option<String>,
    /// Deprecated name of `schema_version`. Empty after parsing.
    pub version: Option<String>,
    pub source: Option<String>,
    /// `mean` or `final`.
    pub multi_step_reward_strategy: Option<String>,
    /// Paths, or tables with `source`, `destination`, `exclude` and `service`.
    pub artifacts: Option<Vec<toml::Value>>,
    pub task: Option<Package>,
    /// Free-form. The table `termsmith` in it is termsmith's.
    pub metadata: Option<toml::Table>,
    pub agent: Option<Agent>,
    pub verifier: Option<Verifier>,
    pub environment: Option<Environment>,
    pub solution: Option<Solution>,
    pub steps: Option<Vec<StepEntry>>,
}

/// `[task]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Package {
    /// `organisation/name`.
    pub name: Option<String>,
    pub version: Option<String>,
    pub description: Option<String>,
    pub authors: Option<Vec<Author>>,
    pub keywords: Option<Vec<String>>,
}

/// An author of a task or dataset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Author {
    pub name: String,
    pub email: Option<String>,
}

/// `[agent]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Agent {
    /// Seconds. Without it there is no limit.
    #[serde(default, deserialize_with = "number")]
    pub timeout_sec: Option<f64>,
    /// Name or number of the user.
    pub user: Option<toml::Value>,
    pub network_mode: Option<String>,
    pub allowed_hosts: Option<Vec<String>>,
}

/// `[verifier]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Verifier {
    /// Seconds.
    #[serde(default, deserialize_with = "number")]
    pub timeout_sec: Option<f64>,
    /// Name or number of the user.
    pub user: Option<toml::Value>,
    /// `shared` or `separate`.
    pub environment_mode: Option<String>,
    pub network_mode: Option<String>,
    pub allowed_hosts: Option<Vec<String>>,
    /// Tables with `command`, `service`, `timeout_sec` and `user`.
    pub collect: Option<Vec<toml::Table>>,
    pub env: Option<BTreeMap<String, String>>,
    pub environment: Option<Environment>,
}

/// `[environment]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// Seconds for build and start together.
    #[serde(default, deserialize_with = "number")]
    pub build_timeout_sec: Option<f64>,
    /// The image. If it is set, the Dockerfile is not built.
    pub docker_image: Option<String>,
    /// `linux` or `windows`. Lower case after parsing.
    pub os: Option<String>,
    #[serde(default, deserialize_with = "number", serialize_with = "whole_where_whole")]
    pub cpus: Option<f64>,
    #[serde(default, deserialize_with = "whole")]
    pub memory_mb: Option<i64>,
    #[serde(default, deserialize_with = "whole")]
    pub storage_mb: Option<i64>,
    #[serde(default, deserialize_with = "whole")]
    pub gpus: Option<i64>,
    pub gpu_types: Option<Vec<String>>,
    pub skills_dir: Option<String>,
    pub workdir: Option<String>,
    /// `public`, `no-network` or `allowlist`.
    pub network_mode: Option<String>,
    pub allowed_hosts: Option<Vec<String>>,
    /// Deprecated: `memory_mb` as text, e.g. `2G`. Empty after parsing.
    pub memory: Option<toml::Value>,
    /// Deprecated: `storage_mb` as text, e.g. `10G`. Empty after parsing.
    pub storage: Option<toml::Value>,
    /// Deprecated: `network_mode` as a boolean. Empty after parsing.
    pub allow_internet: Option<bool>,
    pub tpu: Option<Tpu>,
    pub env: Option<BTreeMap<String, String>>,
    pub healthcheck: Option<Healthcheck>,
    pub mcp_servers: Option<Vec<McpServer>>,
}

/// Writes whole cores as integers. Harbor before 0.25 accepts no other form.
fn whole_where_whole<S: Serializer>(cpus: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    match cpus {
        None => serializer.serialize_none(),
        Some(cpus) if cpus.fract() == 0.0 && cpus.abs() < 1e9 => serializer.serialize_i64(*cpus as i64),
        Some(cpus) => serializer.serialize_f64(*cpus),
    }
}

fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    struct Number;

    impl Visitor<'_> for Number {
        type Value = f64;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a number")
        }

        fn visit_i64<E: Error>(self, number: i64) -> Result<f64, E> {
            Ok(number as f64)
        }

        fn visit_f64<E: Error>(self, number: f64) -> Result<f64, E> {
            Ok(number)
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<f64, E> {
            text.trim().parse().map_err(|_| E::invalid_value(Unexpected::Str(text), &self))
        }
    }

    deserializer.deserialize_any(Number).map(Some)
}

fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    struct Whole;

    impl Visitor<'_> for Whole {
        type Value = i64;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a whole number")
        }

        fn visit_i64<E: Error>(self, number: i64) -> Result<i64, E> {
            Ok(number)
        }

        fn visit_f64<E: Error>(self, number: f64) -> Result<i64, E> {
            /// Up to here, a float represents every whole number exactly.
            const EXACT: f64 = (1_u64 << 53) as f64;
            let is_whole = number.fract() == 0.0 && number.abs() <= EXACT;
            is_whole
                .then_some(number as i64)
                .ok_or_else(|| E::invalid_value(Unexpected::Float(number), &self))
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<i64, E> {
            // `600.0` is a whole number.
            let digits = text
                .trim()
                .split_once('.')
                .filter(|(_, rest)| !rest.is_empty() && rest.chars().all(|digit| digit == '0'));
            let digits = digits.map_or(text.trim(), |(digits, _)| digits);
            digits.parse().map_err(|_| E::invalid_value(Unexpected::Str(text), &self))
        }
    }

    deserializer.deserialize_any(Whole).map(Some)
}

/// `[environment.tpu]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tpu {
    pub r#type: String,
    /// E.g. `2x4`.
    pub topology: String,
}

/// `[environment.healthcheck]`. Times are in seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Healthcheck {
    pub command: String,
    #[serde(default, deserialize_with = "number")]
    pub interval_sec: Option<f64>,
    #[serde(default, deserialize_with = "number")]
    pub timeout_sec: Option<f64>,
    #[serde(default, deserialize_with = "number")]
    pub start_period_sec: Option<f64>,
    #[serde(default, deserialize_with = "number")]
    pub start_interval_sec: Option<f64>,
    #[serde(default, deserialize_with = "whole")]
    pub retries: Option<i64>,
}

/// `[[environment.mcp_servers]]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct McpServer {
    pub name: String,
    pub transport: Option<String>,
    pub url: Option<String>,
    pub command: Option<String>,
    pub args: Option<Vec<String>>,
    pub headers: Option<BTreeMap<String, String>>,
}

/// `[solution]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Solution {
    pub env: Option<BTreeMap<String, String>>,
}

/// `[[steps]]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepEntry {
    pub name: String,
    /// A number, or a table with a number for each reward.
    pub min_reward: Option<toml::Value>,
    pub artifacts: Option<Vec<toml::Value>>,
    pub agent: Option<Agent>,
    pub verifier: Option<Verifier>,
    pub healthcheck: Option<Healthcheck>,
}
