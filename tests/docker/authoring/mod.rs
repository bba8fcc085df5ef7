//! Tasks written by a simulated model, in real containers: what each stage accepts, is told, and
//! leads to.

mod author;
mod banded;
mod cast;
mod ends;
mod in_shell;
mod replayed;
mod resumed;
mod sampled;
mod screened;
