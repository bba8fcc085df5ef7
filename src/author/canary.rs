//! The canary text of a task. If it is found in a corpus, the task has leaked into it.

use crate::model::{Seed, TaskName};

/// A canary in the form of a UUID. It depends on the task's name and seed, so each task has its
/// own.
pub fn canary(name: &TaskName, seed: Seed) -> String {
    let hash = blake3::hash(format!("termsmith canary\0{name}\0{seed}").as_bytes()).to_hex();
    let part = |from: usize, to: usize| &hash.as_str()[from..to];
    format!(
        "termsmith-canary {}-{}-{}-{}-{}",
        part(0, 8),
        part(8, 12),
        part(12, 16),
        part(16, 20),
        part(20, 32)
    )
}
