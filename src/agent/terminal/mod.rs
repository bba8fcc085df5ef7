//! An emulated terminal. It shows what tmux 3.3a would print of its pane, without tmux in the
//! sandbox.
//!
//! No crate does this. Other emulators differ from tmux in these points:
//!
//! - Cleared text, and text that scrolls out of a region, do not go into their history.
//! - They trim the history by lines. tmux drops a tenth of it at once.
//! - Wide characters, margins and broken sequences end in other cells.
//!
//! `tests/golden/tmux_screens.json` has 110 written and 150 random inputs. `alacritty_terminal`
//! 0.26 shows tmux's screen for 84 and 104 of them, and tmux's full pane for 77 and 61. `vt100`
//! 0.18 shows the screen for 79 and 54, and the full pane for 71 and 37. The grid here follows
//! tmux's sources (ISC licence, see `NOTICE`). It matches all of these inputs, and over a thousand
//! other random ones.
//!
//! [`Screen`] turns bytes into text. [`Terminal`] runs a shell of a sandbox on a [`Screen`], and
//! detects when the shell is idle. For that, the guest reads the terminal's foreground process
//! group, its settings and the shell's state. A marker in the prompt would be simpler, but the
//! model could see it, e.g. in the output of `set`.

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
