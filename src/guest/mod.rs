//! The guest: process 1 of every sandbox. It runs what the host asks for and reports over its standard streams.
//!
//! Standard library only, one thread. The modules:
//! - [`frame`] (with its `codec`), [`head_tail`] and the exit statuses of [`ending`] are shared with the host; nothing else here is.
//! - `wire` turns standard input and output into frames; `sys` holds all foreign calls.
//! - `shell`, `program`, `files`, `relay` are the services; `account` says whose shells are. Each has a `turn`: it does what can be done without waiting.
//! - `table` reads `/proc`.
//!
//! Whatever runs in the sandbox must neither block nor end the guest: everything is non-blocking, process 1 of a PID namespace
//! takes no signal from inside, and a non-dumpable process has no `/proc/1/fd` for a root without `SYS_PTRACE`.

pub mod ending;
pub mod frame;
pub mod head_tail;

mod account;
mod codec;
mod event_loop;
mod files;
mod http;
mod names;
mod program;
mod relay;
mod shell;
mod sys;
mod table;
mod wire;

pub use event_loop::{out_of_memory, run};
