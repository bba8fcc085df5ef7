//! termsmith turns domain specs into verified terminal environments, runs expert agents in them, and writes training data.
//!
//! The modules, top to bottom; each may use only those below it (`tests/module_order.rs` enforces this):
//! `cli` → `pipeline` · `doctor` → `audit` · `export` → `rollout` · `screen` · `author` · `recording` → `agent` → `judge` · `lint` · `mutate` ·
//! `verify` →
//! `llm` · `sandbox` · `harbor` → `domain` · `prompts` · `store` → `assets` → `clock` · `folder` · `guest` · `retry` · `syntax` → `model`.

pub mod agent;
pub mod assets;
pub mod audit;
pub mod author;
pub mod authoring;
pub mod cli;
pub mod clock;
pub mod doctor;
pub mod domain;
pub mod export;
pub mod folder;
pub mod guest;
pub mod harbor;
pub mod judge;
pub mod lint;
pub mod llm;
pub mod model;
pub mod mutate;
pub mod pipeline;
pub mod prompts;
pub mod recording;
pub mod retry;
pub mod rollout;
pub mod sandbox;
pub mod screen;
pub mod store;
mod syntax;
pub mod verify;
