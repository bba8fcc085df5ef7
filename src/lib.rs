//! termsmith turns domain specs into verified terminal environments, runs expert agents in them, and writes training data.
//!
//! The rooms, top to bottom; each may use only those below it (`tests/module_order.rs` enforces it):
//! `cli` → `pipeline` · `doctor` → `audit` · `export` · `rollout` · `screen` · `author` → `agent` · `judge` · `verify` →
//! `sandbox` · `harbor` → `domain` · `store` → `assets` → `model`.

pub mod agent;
pub mod assets;
pub mod author;
pub mod cli;
pub mod doctor;
pub mod export;
pub mod judge;
pub mod model;
pub mod pipeline;
pub mod rollout;
pub mod screen;
pub mod store;
pub mod verify;
