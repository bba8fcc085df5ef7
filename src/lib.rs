//! termsmith turns domain specs into verified terminal environments, runs expert agents in them, and writes training data.
//!
//! The rooms, top to bottom; each may use only those below it (`tests/module_order.rs` enforces it):
//! `cli` → `audit` · `export` · `rollout` · `screen` · `author` → `agent` · `judge` · `verify` → `sandbox` · `harbor` →
//! `domain` · `store` → `model`. `assets` (embedded folders) stands beside `model`.

pub mod assets;
pub mod domain;
pub mod folder;
pub mod harbor;
pub mod model;
pub mod store;
