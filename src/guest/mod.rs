//! The guest: process 1 of every sandbox. It executes the host's requests, and answers over its
//! standard streams.
//!
//! It uses the standard library only. One thread does the work. A second one, of `spawning`, only
//! kills children that would block the first. The modules:
//! - The host uses [`frame`] (with `codec`), [`head_tail`] and [`ending`] (exit statuses) too.
//! - `wire` reads and writes frames on the standard streams.
//! - `sys` has all foreign calls, but for those of `filter`, the system-call filter.
//! - `shell`, `program`, `files` and `relay` are the services. Each has a `turn` for its work that
//!   does not block. `account` is the user of shells. `http` finds the end of a request to `relay`.
//! - `spawning` starts children. `table` reads `/proc`. `clock` is the clock of all time limits.
//! - `pools` finds out whose limit a failed start met.
//!
//! No process of the sandbox can block or end the guest. All I/O is non-blocking. Process 1 of a
//! PID namespace gets no signal from inside. Root without `SYS_PTRACE` cannot open `/proc/1/fd` of
//! a process that is not dumpable.

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

/// Maximum number of pseudo-terminals of a container, if the engine can limit them. Programs such
/// as `tmux` and `script` hold one for each window. If the host has none left, a container with
/// fewer than these is not the reason.
pub const MAX_TERMINALS: u32 = 64;

// These are in the guest binary, and in the library's tests. The library itself must not call
// `run`: it replaces the descriptors and signal handlers of its process.
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
