//! Rollouts of models in real containers. The models are replayed recordings, or simulated ones
//! behind faulty endpoints.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "a failed step ends the test")]
#![allow(
    missing_debug_implementations,
    dead_code,
    reason = "tests print what they compare; each uses a part of the harness"
)]

#[path = "../llm/clock.rs"]
mod clock;
#[path = "../common/mod.rs"]
mod common;
mod copies;
mod deadlines;
mod endings;
#[path = "../llm/endpoint.rs"]
mod endpoint;
mod faults;
mod kept;
mod kills;
mod lost_states;
mod openings;
mod pauses;
mod recorded;
mod refusals;
#[path = "../sabotage/task.rs"]
mod sabotage_task;
mod scaffolds;
mod solver;
mod summaries;
#[path = "../support/mod.rs"]
mod support;
