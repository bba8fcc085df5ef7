//! Tests that need a container engine. `make test` runs them.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    missing_debug_implementations,
    reason = "a failed step ends a test; tests print what they saw"
)]

mod authoring;
mod build_faults;
mod emitted_verifier;
mod gauntlet;
mod pipeline;
mod recipes;
mod references;
mod rollout;
mod sandbox;
mod sandbox_docker;
mod sandbox_evidence;
mod sandbox_images;
mod sandbox_limits;
mod sandbox_pauses;
mod sandbox_programs;
mod sandbox_speed;
#[path = "../support/mod.rs"]
mod support;
mod terminal;
