//! The honesty rule: a scripted expert uses no fixture data before it has seen it.
//!
//! A literal comes from the fixtures if it occurs in their files, e.g. a column name. The expert
//! may use it only if the instruction or an earlier observation has it. Words of the script itself
//! are general knowledge, unless they look like names of data: they have a digit or an underscore,
//! and occur in data files.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use crate::model::{File, FileTree, Shown, Turn, TurnKind};

/// Shorter words occur by chance.
const SHORTEST_LITERAL: usize = 3;

/// A literal that the expert used before it had seen it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leak {
    /// Turn, from 0.
    pub turn: usize,
    pub literal: String,
}

/// All literals in `turns` that come from `fixtures` and were used before they were seen. `script`
/// is the source of the expert's script, `prompt` the first message, `shown` the observations after
/// each turn. Names of `tools` are general knowledge.
pub fn unseen_literals(
    fixtures: &FileTree,
    script: &str,
    tools: &[String],
    prompt: &str,
    turns: &[Turn],
    shown: &[Vec<Shown>],
) -> Vec<Leak> {
    let everything = tokens_of(fixtures, |_, _| true);
    let data = tokens_of(fixtures, |path, file| !is_program(path, file));
    let written = tokens(script);
    let mut seen = prompt.to_owned();
    let mut leaks = Vec::new();
    for (index, (turn, shown)) in turns.iter().zip(shown).enumerate() {
        let assistant = without_marks(turn);
        for literal in tokens(&assistant) {
            let suspicious = if written.contains(literal) {
                data.contains(literal)
                    && literal.contains(|c: char| c == '_' || c.is_ascii_digit())
                    && !tools.iter().any(|tool| tool == literal)
            } else {
                everything.contains(literal)
            };
            if suspicious && !seen.contains(literal) {
                leaks.push(Leak { turn: index, literal: literal.to_owned() });
            }
        }
        for shown in shown {
            seen.push('\n');
            seen.push_str(&shown.content);
        }
        // The expert knows its own text.
        seen.push_str(&assistant);
    }
    leaks
}

/// A message without the scaffold's syntax: fences and the submit block.
fn without_marks(turn: &Turn) -> String {
    let own = |line: &&str| {
        let mark = line.starts_with("```") || (turn.kind == TurnKind::Submitted && *line == "submit");
        !mark
    };
    turn.content.lines().filter(own).fold(String::new(), |text, line| text + line + "\n")
}

/// Whether a file is source code. Its keywords and common identifiers are general knowledge.
fn is_program(path: &str, file: &File) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    file.bytes.starts_with(b"#!")
        || name == "Makefile"
        || [".py", ".sh", ".mk", ".awk", ".c", ".h", ".js"].iter().any(|ending| name.ends_with(ending))
}

fn tokens_of(files: &FileTree, keep: impl Fn(&str, &File) -> bool) -> BTreeSet<&str> {
    files
        .iter()
        // The Dockerfile is not visible to a solver.
        .filter(|(path, file)| path.as_str() != "Dockerfile" && keep(path.as_str(), file))
        .filter_map(|(_, file)| file.as_text())
        .flat_map(tokens)
        .collect()
}

fn tokens(text: &str) -> BTreeSet<&str> {
    static WORD: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"[A-Za-z0-9_]+").ok());
    let Some(word) = WORD.as_ref() else { return BTreeSet::new() };
    word.find_iter(text).map(|found| found.as_str()).filter(|word| word.len() >= SHORTEST_LITERAL).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::RelPath;

    const PROMPT: &str = "Sum the amounts of /app/sales.csv into /app/total.txt.";

    fn check(script: &str, turns: &[(&str, &str)], expect: &[&str]) {
        let mut fixtures = FileTree::default();
        for (path, text) in [
            ("app/sales.csv", "region_id,amount\nnorth7,120\n"),
            ("app/tool.py", "def load_rows(path):\n    return path\n"),
            ("app/run", "#!/usr/bin/env python3\n"),
        ] {
            fixtures.insert(RelPath::new(path).unwrap(), File::text(text));
        }
        let assistant: Vec<_> = turns
            .iter()
            .map(|(command, _)| Turn { content: (*command).to_owned(), ..Turn::default() })
            .collect();
        let shown: Vec<_> = turns.iter().map(|(_, observation)| vec![Shown::text(*observation)]).collect();
        let leaks = unseen_literals(&fixtures, script, &["python3".to_owned()], PROMPT, &assistant, &shown);
        assert_eq!(leaks.iter().map(|leak| leak.literal.as_str()).collect::<Vec<_>>(), expect, "{turns:?}");
    }

    #[test]
    fn unseen_literals_are_leaks() {
        check("", &[("cat /app/sales.csv", "")], &[]);
        check("", &[("grep north7 /app/sales.csv", "")], &["north7"]);
        check("", &[("cat /app/sales.csv", "region_id,amount\nnorth7,120"), ("grep north7 x", "")], &[]);
        check("", &[("grep north7 x", "region_id,amount\nnorth7,120")], &["north7"]);
        // A name of data is a leak, even if the script has it.
        check("cut region_id", &[("cut region_id", "")], &["region_id"]);
        check("cut region_id", &[("head -1 /app/sales.csv", "region_id,amount"), ("cut region_id", "")], &[]);
        // Ordinary words, keywords and names of tools are general knowledge.
        check("sum the amount", &[("sum the amount", "")], &[]);
        check("grep load_rows", &[("grep load_rows", "")], &[]);
        check("python3 -c pass", &[("python3 -c pass", "")], &[]);
        // Not if only this task's fixtures have them.
        check("", &[("grep load_rows", "")], &["load_rows"]);
        check("", &[("echo 120", "")], &["120"]);
    }
}
