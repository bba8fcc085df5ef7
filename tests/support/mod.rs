//! Code that several tests use. Each test binary includes this folder.

#![allow(dead_code, reason = "each test binary uses a part")]

pub(crate) mod bench;
pub(crate) mod clock;
pub(crate) mod corpus;
pub(crate) mod endpoint;
pub(crate) mod engine;
pub(crate) mod runner;
pub(crate) mod task;
