//! Modified solutions, with which screening tests a task's checks: cuts, ablations and mutants.
//! Also the legal variants of the state that a solution leaves.
//!
//! Everything here is a pure function of text. Trials decide elsewhere whether a mutant counts.

mod ablate;
mod bash;
mod bash_flags;
mod bash_operators;
mod check;
mod cuts;
mod edit;
mod edits;
mod embedded;
mod language;
mod literal;
mod make;
mod mutants;
mod operator;
mod python;
mod python_call;
mod python_literal;
mod sample;
mod statement;
#[cfg(test)]
mod tests;
mod tokens;
mod variant;

pub use ablate::{Ablation, ablations};
pub use cuts::{Cut, cuts};
pub use mutants::{Mutant, mutants};
pub use operator::Operator;
pub use sample::sample;
pub use variant::{VariantError, parse_variant, variants};
