//! The guest: process 1 of every sandbox. It executes the host's requests and reports over its standard streams.
//!
//! Standard library only, one thread. The modules:
//! - [`frame`] (with its `codec`), [`head_tail`] and the exit statuses of [`ending`] are shared with the host; the others are not.
//! - `wire` reads and writes frames on the standard streams; `sys` contains all foreign calls.
//! - `shell`, `program`, `files`, `relay` are the services; `account` is the user of shells. Each service has a `turn`, which does all work that does not block.
//! - `table` reads `/proc`.
//!
//! A process in the sandbox must be unable to block or end the guest: all I/O is non-blocking, process 1 of a PID namespace
//! receives no signal from inside, and a non-dumpable process hides `/proc/1/fd` from a root without `SYS_PTRACE`.

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
