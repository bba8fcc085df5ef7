//! Canary text of a task, by which a leak of the task into a corpus can be found.

use crate::model::{Seed, TaskName};

/// A canary in the shape of a UUID, unique to the task's name and seed.
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
