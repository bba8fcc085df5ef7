//! Labels: the detectors against trajectories with labels by hand, and the model judge against an
//! endpoint.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step ends the test")]
#![allow(missing_debug_implementations, reason = "tests print what they compare")]

#[path = "../llm/clock.rs"]
#[allow(dead_code, reason = "the client's tests use more of it")]
mod clock;
#[path = "../llm/endpoint.rs"]
#[allow(dead_code, reason = "the client's tests use more of it")]
mod endpoint;
mod model;
mod real;
mod table;
