//! `task.toml`, as `models/task/config.py` of harbor 0.25 declares it.
//!
//! Every key is optional here: a reader must distinguish the keys of a file from Harbor's defaults. Parts that termsmith
//! only passes on are kept as plain TOML.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, Serializer};

/// A whole `task.toml`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    pub schema_version: Option<String>,
    /// Deprecated name of `schema_version`. Gone after parsing.
    pub version: Option<String>,
    pub source: Option<String>,
    /// `mean` or `final`.
    pub multi_step_reward_strategy: Option<String>,
    /// Paths, or tables with `source`, `destination`, `exclude` and `service`.
    pub artifacts: Option<Vec<toml::Value>>,
    pub task: Option<Package>,
    /// Free-form; termsmith's part is the table `termsmith`.
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
    /// Seconds; without it there is no limit.
    pub timeout_sec: Option<f64>,
    /// Name or number.
    pub user: Option<toml::Value>,
    pub network_mode: Option<String>,
    pub allowed_hosts: Option<Vec<String>>,
}

/// `[verifier]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Verifier {
    /// Seconds.
    pub timeout_sec: Option<f64>,
    /// Name or number.
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
    /// Seconds, for build and start together.
    pub build_timeout_sec: Option<f64>,
    /// With it, the Dockerfile is not built.
    pub docker_image: Option<String>,
    /// `linux` or `windows`.
    pub os: Option<String>,
    #[serde(serialize_with = "whole_where_whole")]
    pub cpus: Option<f64>,
    pub memory_mb: Option<i64>,
    pub storage_mb: Option<i64>,
    pub gpus: Option<i64>,
    pub gpu_types: Option<Vec<String>>,
    pub skills_dir: Option<String>,
    pub workdir: Option<String>,
    /// `public`, `no-network` or `allowlist`.
    pub network_mode: Option<String>,
    pub allowed_hosts: Option<Vec<String>>,
    /// Deprecated: `memory_mb` as text (`2G`). Gone after parsing.
    pub memory: Option<toml::Value>,
    /// Deprecated: `storage_mb` as text (`10G`). Gone after parsing.
    pub storage: Option<toml::Value>,
    /// Deprecated: `network_mode` as yes or no. Gone after parsing.
    pub allow_internet: Option<bool>,
    pub tpu: Option<Tpu>,
    pub env: Option<BTreeMap<String, String>>,
    pub healthcheck: Option<Healthcheck>,
    pub mcp_servers: Option<Vec<McpServer>>,
}

/// Harbor before 0.25 accepts whole cores only, written as integers.
fn whole_where_whole<S: Serializer>(cpus: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    match cpus {
        None => serializer.serialize_none(),
        Some(cpus) if cpus.fract() == 0.0 && cpus.abs() < 1e9 => serializer.serialize_i64(*cpus as i64),
        Some(cpus) => serializer.serialize_f64(*cpus),
    }
}

/// `[environment.tpu]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tpu {
    pub r#type: String,
    /// `2x4`.
    pub topology: String,
}

/// `[environment.healthcheck]`. Times in seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Healthcheck {
    pub command: String,
    pub interval_sec: Option<f64>,
    pub timeout_sec: Option<f64>,
    pub start_period_sec: Option<f64>,
    pub start_interval_sec: Option<f64>,
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
    /// A number, or a table of them by reward.
    pub min_reward: Option<toml::Value>,
    pub artifacts: Option<Vec<toml::Value>>,
    pub agent: Option<Agent>,
    pub verifier: Option<Verifier>,
    pub healthcheck: Option<Healthcheck>,
}
