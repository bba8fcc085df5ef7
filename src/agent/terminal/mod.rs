//! A terminal as a model sees it: what tmux 3.3a would print of its pane, without tmux in the sandbox.
//!
//! No crate does that. Others emulate other terminals: what is cleared does not go into their history, nor does what scrolls out
//! of a region; history is trimmed line by line and not by tenths; wide characters, margins and broken sequences end in other
//! cells. Of the 110 written and 150 random inputs of `tests/golden/tmux_screens.json`, `alacritty_terminal` 0.26 shows tmux's
//! screen for 84 and 104, and its full pane for 77 and 61; `vt100` 0.18 for 79 and 54, and 71 and 37. So the grid here follows
//! tmux's own sources (ISC licence, see `NOTICE`) and shows all of them, and over a thousand other random ones, without a
//! dependency.
//!
//! [`Screen`] is bytes in, text out. [`Terminal`] is a shell in a sandbox on one, which also knows when the shell is done: the
//! guest looks at the terminal's foreground and settings and at the shell's state. A marker in the prompt would be simpler and
//! surer, but it would stand in the model's environment, in its `set` and in the output of programs that print prompts.

mod edit;
mod grid;
mod parser;
mod screen;
mod session;
mod width;

#[cfg(test)]
mod tests;

pub use screen::{HISTORY_LINES, KeyModes, Screen};
pub use session::{SIZE, Terminal, WaitOutcome, Wake};
pub(in crate::agent) use width::is_printable;
