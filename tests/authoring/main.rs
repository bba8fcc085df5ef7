//! Tasks written by a simulated model, in real containers: what each stage accepts, is told, and leads to.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step ends the test")]
#![allow(
    missing_debug_implementations,
    dead_code,
    reason = "tests print what they compare; each uses a part of the harness"
)]

mod author;
mod banded;
mod cast;
#[path = "../common/mod.rs"]
mod common;
#[path = "../llm/endpoint.rs"]
mod endpoint;
mod ends;
mod in_shell;
mod replayed;
mod resumed;
mod sampled;
mod screened;
#[path = "../support/mod.rs"]
mod support;
