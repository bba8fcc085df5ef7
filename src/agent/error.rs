//! Errors of episodes.

use std::time::Duration;

use super::installed::ForeignMessage;
use super::program::StartError;
use super::scripted::ScriptError;
use crate::llm::CallError;
use crate::model::End;
use crate::prompts::PromptsError;
use crate::sandbox::{EngineError, SandboxError};
use crate::store::StoreError;

/// Why an episode could not be completed: an error that the agent did not cause.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The sandbox was lost, and the solver is not known to be at fault.
    #[error(transparent)]
    Sandbox(SandboxError),
    /// A fresh sandbox could not be opened, before the agent was asked anything.
    #[error("the episode could not begin: {0}")]
    NotStarted(SandboxError),
    /// An agent with a loop of its own ended before a model answered it: its command line is wrong,
    /// or does not fit the task's image.
    #[error("the agent `{agent}` ended ({how}) before the model answered it\n{output}\nhint: {hint}")]
    NeverAsked { agent: String, how: String, output: String, hint: &'static str },
    /// An agent with a loop of its own changes its history, so its conversations cannot be
    /// recorded.
    #[error(transparent)]
    Foreign(#[from] ForeignMessage),
    /// The engine does not have the agent's layer.
    #[error(
        "version {version} of the agent `{agent}` is not on the engine\nhint: `termsmith agent add {agent}@{version}` installs it"
    )]
    NotInstalled { agent: String, version: String },
    /// It did not even print its version.
    #[error(
        "the agent `{agent}` cannot run in the task's image ({how})\n{output}\nhint: `termsmith agent check {agent} TASK` says what the image needs"
    )]
    CannotRun { agent: String, how: String, output: String },
    /// The agent printed no version in time. It may be fit all the same: on a busy host, Python
    /// takes a minute to start.
    #[error(
        "the agent `{agent}` did not print its version within {seconds} s\n{output}\nhint: the host is busy, or the agent hangs; the same command tries again"
    )]
    TooSlow { agent: String, seconds: u64, output: String },
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Prompts(#[from] PromptsError),
    #[error(transparent)]
    Call(#[from] CallError),
    /// The endpoint refuses what the policy wrote, and nothing else: the episode ends so, and its
    /// state is judged.
    #[error("{cause}")]
    Refused { end: End, cause: String },
    /// The run is stopping. The turn is executed again by the next run.
    #[error("the run is stopping\nhint: the same command continues where it stopped")]
    Drained,
    /// An agent with a loop of its own gave up on a late reply. The model did not cause the delay.
    #[error("the agent ended because a request waited {} s for the endpoint", waited.as_secs())]
    GaveUp { waited: Duration },
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(
        "the scripted expert cannot continue: {0}\nhint: `termsmith recipe check` runs the script and names the step"
    )]
    Script(#[from] ScriptError),
}
