//! A terminal as a model sees it: what tmux 3.3a would print of its pane, without tmux in the sandbox.
//!
//! No crate does that. `vt100`, `avt` and `alacritty_terminal` emulate other terminals: what is cleared does not go into their
//! history, nor does what scrolls out of a region; their history is trimmed line by line and not by tenths; and wide characters,
//! margins and broken sequences end in other cells. So the grid here follows tmux's own sources (ISC licence, see `NOTICE`),
//! and the tests compare it with captures of the real one.

mod edit;
mod grid;
mod parser;
mod screen;
mod session;
mod width;

#[cfg(test)]
mod tests;

pub use screen::{HISTORY_LINES, KeyModes, Screen};
pub use session::{SIZE, Terminal, Waited, Wake};
pub(in crate::agent) use width::is_printable;
