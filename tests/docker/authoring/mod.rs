//! A simulated model writes tasks in real containers. The tests check what each stage accepts, what
//! it is told, and how drafts end.

mod author;
mod cast;
mod difficulty;
mod ends;
mod in_shell;
mod replayed;
mod resumed;
mod sampled;
mod screened;
