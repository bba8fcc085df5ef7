//! Overlap of an agent's commands with the task's solutions. A high overlap suggests that the
//! solution was memorised, or recited by a script.

use std::collections::BTreeSet;

use super::actions::{actions, commands};
use crate::model::{FileTree, Rollout};

/// Minimum number of characters of a line that is compared. Shorter lines, e.g. `fi`, `done` or
/// `import re`, occur in every program.
pub(super) const SHORTEST_LINE: usize = 12;

/// The lines of a task's solutions that are long enough to be compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Solutions(BTreeSet<String>);

impl Solutions {
    /// The lines of the text files in `trees`.
    pub fn of<'a>(trees: impl IntoIterator<Item = &'a FileTree>) -> Self {
        let texts = trees.into_iter().flat_map(|tree| tree.files.values()).filter_map(|file| file.as_text());
        Self(texts.flat_map(lines).map(str::to_owned).collect())
    }

    /// The share of distinct lines in the commands of `rollout` that also occur in a solution. In
    /// per cent, rounded down. `None` if no line is long enough.
    pub(super) fn overlap(&self, rollout: &Rollout) -> Option<usize> {
        let actions = actions(rollout);
        let written: BTreeSet<&str> = commands(&actions).into_iter().flat_map(lines).collect();
        if self.0.is_empty() || written.is_empty() {
            return None;
        }
        let both = written.iter().filter(|line| self.0.contains(**line)).count();
        Some(both * 100 / written.len())
    }
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| line.chars().count() >= SHORTEST_LINE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Act, File, RelPath, Turn, TurnKind};

    #[test]
    fn lines_of_commands_are_sought_in_solutions() {
        let check = |solution: &str, keys: &[&str], expect: Option<usize>| {
            let tree = FileTree::from_iter([(RelPath::new("solve.sh").unwrap(), File::text(solution))]);
            let mut rollout = crate::export::fixture::rollout("coding", 1, 1, 1, 1);
            let turn = |keys: &&str| Turn {
                acts: vec![Act::Keys { keys: (*keys).to_owned() }],
                kind: TurnKind::Acted,
                ..Turn::default()
            };
            rollout.record.turns = keys.iter().map(turn).collect();
            assert_eq!(Solutions::of([&tree]).overlap(&rollout), expect, "{keys:?}");
        };
        check("cp /app/one /app/two\n", &["cp /app/one /app/two\n"], Some(100));
        check("  cp /app/one /app/two\n", &["cp /app/one /app/two\n", "cat /app/two/three\n"], Some(50));
        // A line counts once. Short lines do not count.
        check(
            "cp /app/one /app/two\ndone\n",
            &["cp /app/one /app/two\ndone\ncp /app/one /app/two\n"],
            Some(100),
        );
        check("cp /app/one /app/two\n", &["rm -rf /app/other\n"], Some(0));
        check("cp /app/one /app/two\n", &["ls\n"], None);
        check("ls\n", &["cp /app/one /app/two\n"], None);
    }
}
