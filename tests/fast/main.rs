//! Tests that need no container engine. `make test-fast` runs them.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    missing_debug_implementations,
    reason = "a failed step ends a test; tests print what they saw"
)]

mod bases;
mod beside;
mod cli;
mod export;
mod first_failure;
#[path = "../../src/export/fixture.rs"]
mod fixture;
mod foreign_files;
mod harbor_atif;
mod judge;
mod lint;
mod llm;
mod many_runs;
mod module_order;
mod mutants;
mod options;
mod readme;
mod recordings;
#[path = "../../src/export/shapes.rs"]
mod shapes;
#[path = "../support/mod.rs"]
mod support;
mod toy_engine;

// `fixture` and `shapes` expect `model` in the crate that they are a part of.
use termsmith::model;
