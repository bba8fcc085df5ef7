//! An emulated terminal: it shows what tmux 3.3a would print of its pane, without tmux in the sandbox.
//!
//! No crate does this. Other emulators differ from tmux: cleared text and text that scrolls out of a region do not go into their history;
//! history is trimmed by lines, not by tenths; wide characters, margins and broken sequences end in other cells. Of the 110 written and 150
//! random inputs of `tests/golden/tmux_screens.json`, `alacritty_terminal` 0.26 shows tmux's screen for 84 and 104, and its full pane for
//! 77 and 61; `vt100` 0.18 for 79 and 54, and 71 and 37. The grid here follows tmux's sources (ISC licence, see `NOTICE`) and matches all
//! of these inputs, and over a thousand other random ones, without a dependency.
//!
//! [`Screen`] turns bytes into text. [`Terminal`] runs a shell of a sandbox on a [`Screen`], and detects when the shell is idle: the guest
//! reads the terminal's foreground process group, its settings and the shell's state. A marker in the prompt would be simpler, but the
//! model could see it, in `set` and in the output of programs that print prompts.

mod edit;
mod grid;
mod parser;
mod screen;
mod session;
mod width;

#[cfg(test)]
mod tests;

pub use screen::{HISTORY_LINES, KeyModes, Screen};
pub use session::{SIZE, Terminal, WaitOutcome, Wake, Written};
pub(in crate::agent) use width::is_printable;
