//! termsmith turns domain specs into verified terminal environments, runs expert agents in them,
//! and writes training data.
//!
//! The modules, top to bottom. A module may use only modules of lower lines, not of its own line
//! (`tests/fast/module_order.rs` enforces this):
//! 1. `cli`
//! 2. `pipeline`, `doctor`
//! 3. `authoring`, `export`, `audit`
//! 4. `author`, `screen`, `rollout`, `recording`
//! 5. `agent`
//! 6. `judge`, `lint`, `mutate`, `verify`
//! 7. `llm`, `sandbox`, `harbor`
//! 8. `domain`, `prompts`, `store`
//! 9. `assets`
//! 10. `clock`, `folder`, `guest`, `retry`, `syntax`
//! 11. `model`

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
