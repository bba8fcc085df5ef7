//! Screening: the table of trials that a draft must survive, cheapest rows first.
//!
//! Admission is computed from trial records alone. A draft that does not build, is passed by doing nothing, or fails its
//! own reference is rejected at once; all other rows run even when one of them fails, so that a rejection names
//! everything that is wrong.

mod cuts;
mod table;

pub use cuts::{Cut, cuts};
pub use table::{SCREEN, screen};
