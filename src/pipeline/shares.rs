//! Several agents in one campaign, each with a share of the attempts.

use crate::rollout::AgentConfig;

/// The agents of a campaign. There is at least one.
#[derive(Clone, Debug)]
pub struct Agents {
    first: Box<AgentConfig>,
    /// How often each acts in a round of attempts, in the order of the command line.
    shares: Vec<(AgentConfig, u32)>,
}

impl Agents {
    /// One agent for all attempts.
    pub fn one(agent: AgentConfig) -> Self {
        Self { first: Box::new(agent), shares: Vec::new() }
    }

    /// Agents with their shares. `None` if there is no agent with a share.
    pub fn shared(shares: Vec<(AgentConfig, u32)>) -> Option<Self> {
        let (first, _) = shares.iter().find(|(_, share)| *share > 0)?;
        Some(Self { first: Box::new(first.clone()), shares })
    }

    /// The agent of one attempt. As many attempts at a task as all shares together give each agent
    /// its share. Fewer attempts begin at another place for each task.
    pub(super) fn of(&self, task: &str, attempt: u32) -> &AgentConfig {
        let weights: Vec<u32> = self.shares.iter().map(|(_, share)| *share).collect();
        let chosen = chosen(&weights, task, attempt);
        chosen.and_then(|chosen| self.shares.get(chosen)).map_or(&self.first, |(agent, _)| agent)
    }

    /// An agent, for what all have in common, e.g. the arm.
    pub(super) fn any(&self) -> &AgentConfig {
        &self.first
    }
}

/// The index of the weight that an attempt falls on.
fn chosen(weights: &[u32], task: &str, attempt: u32) -> Option<usize> {
    let total: u64 = weights.iter().map(|weight| u64::from(*weight)).sum();
    let start = blake3::hash(task.as_bytes());
    let start = start.as_bytes().first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
    let mut left = (u64::from(start) + u64::from(attempt)).checked_rem(total)?;
    weights.iter().position(|weight| match left.checked_sub(u64::from(*weight)) {
        Some(rest) => {
            left = rest;
            false
        }
        None => true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_are_shared_by_weight() {
        let check = |weights: &[u32], attempts: u32, expect: &[u32]| {
            for task in ["a", "b", "coding-mend-0000"] {
                let mut counts = vec![0; weights.len()];
                for attempt in 0..attempts {
                    counts[chosen(weights, task, attempt).unwrap()] += 1;
                }
                assert_eq!(counts, expect, "{weights:?} {task}");
            }
        };
        check(&[1], 3, &[3]);
        check(&[2, 1, 3], 6, &[2, 1, 3]);
        check(&[2, 1, 3], 12, &[4, 2, 6]);
        check(&[0, 1], 5, &[0, 5]);
        assert_eq!(chosen(&[], "a", 0), None);
        let first = |task: &str| chosen(&[1, 1], task, 0).unwrap();
        let firsts: Vec<_> = (0..20).map(|number| first(&number.to_string())).collect();
        assert!(firsts.contains(&0) && firsts.contains(&1), "one attempt per task reaches every agent");
    }
}
