//! Tests that put the whole machine under load, or an engine under faults. Each runs alone.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    missing_debug_implementations,
    reason = "a failed step ends a test; tests print what they saw"
)]

mod engine_faults;
mod host;
mod sabotage;
#[path = "../support/mod.rs"]
mod support;
