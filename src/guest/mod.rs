//! The guest: process 1 of every sandbox. It executes the host's requests and reports over its standard streams.
//!
//! Standard library only. One thread does the work; that of `spawning` only kills children that would block it. The modules:
//! - [`frame`] (with its `codec`), [`head_tail`] and the exit statuses of [`ending`] are shared with the host; the others are not.
//! - `wire` reads and writes frames on the standard streams; `sys` contains all foreign calls but those of `filter`, the system-call filter.
//! - `shell`, `program`, `files`, `relay` are the services; `account` is the user of shells. Each service has a `turn`, which does all work that does not block.
//! - `spawning` starts children; `table` reads `/proc`; `clock` is the clock of all time limits;
//!   `pools` finds out whose limit a failed start met.
//!
//! A process in the sandbox must be unable to block or end the guest: all I/O is non-blocking, process 1 of a PID namespace
//! receives no signal from inside, and a non-dumpable process hides `/proc/1/fd` from a root without `SYS_PTRACE`.

#![cfg_attr(
    test,
    expect(
        dead_code,
        reason = "the library's tests cover the modules, and only the guest binary calls `run`"
    )
)]

pub mod ending;
pub mod frame;
pub mod head_tail;

mod codec;

/// Pseudo-terminals of a container, where the engine can limit them. Programs such as `tmux` and
/// `script` hold one for each window. A container with fewer is not the reason why the host has
/// none left.
pub const MAX_TERMINALS: u32 = 64;

// Compiled into the guest binary, and into the library's tests only: nothing in the library can call `run`, which closes and replaces the
// descriptors and signals of its process.
#[cfg(any(guest_binary, test))]
mod account;
#[cfg(any(guest_binary, test))]
mod clock;
#[cfg(any(guest_binary, test))]
mod event_loop;
#[cfg(any(guest_binary, test))]
mod files;
#[cfg(all(any(guest_binary, test), any(target_arch = "x86_64", target_arch = "aarch64")))]
mod filter;
#[cfg(any(guest_binary, test))]
mod http;
#[cfg(any(guest_binary, test))]
mod names;
#[cfg(any(guest_binary, test))]
mod pools;
#[cfg(any(guest_binary, test))]
mod program;
#[cfg(any(guest_binary, test))]
mod relay;
#[cfg(any(guest_binary, test))]
mod shell;
#[cfg(any(guest_binary, test))]
mod spawning;
#[cfg(any(guest_binary, test))]
mod sys;
#[cfg(any(guest_binary, test))]
mod table;
#[cfg(any(guest_binary, test))]
mod wire;

#[cfg(guest_binary)]
pub(crate) use event_loop::{out_of_memory, run};
