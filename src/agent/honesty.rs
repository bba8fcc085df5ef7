//! The scripted expert may know only what it has seen.
//!
//! A literal is fixture-derived when it stands in the task's fixtures. One that occurs in a message or command of the
//! expert must stand in the instruction or in an earlier observation. Words that the recipe's author wrote into the script
//! itself are taken for general knowledge, unless they look like names of data (a digit or an underscore in them) and the
//! data files hold them.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use crate::model::{FileTree, Turn};

/// Shorter words are in every text by chance.
const SHORTEST_LITERAL: usize = 3;

/// A literal that the expert used before it could know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leak {
    /// Turn, from 0.
    pub turn: usize,
    pub literal: String,
}

/// Every literal in `turns` that comes from `fixtures` and was not seen before. `script` is the source of the expert's
/// script, `shown` what it read: the first message, then one observation a command.
pub fn unseen_literals(
    fixtures: &FileTree,
    script: &str,
    prompt: &str,
    turns: &[Turn],
    shown: &[&str],
) -> Vec<Leak> {
    let everything = tokens_of(fixtures, |_| true);
    let data = tokens_of(fixtures, |path| !is_program(path));
    let written = tokens(script);
    let mut seen = prompt.to_owned();
    let mut shown = shown.iter();
    let mut leaks = Vec::new();
    for (place, turn) in turns.iter().enumerate() {
        let said = format!("{}\n{}", turn.thought, turn.command.as_deref().unwrap_or_default());
        for literal in tokens(&said) {
            let suspicious = if written.contains(literal) {
                data.contains(literal) && literal.contains(|c: char| c == '_' || c.is_ascii_digit())
            } else {
                everything.contains(literal)
            };
            if suspicious && !seen.contains(literal) {
                leaks.push(Leak { turn: place, literal: literal.to_owned() });
            }
        }
        if turn.command.is_some()
            && let Some(observation) = shown.next()
        {
            seen.push('\n');
            seen.push_str(observation);
        }
        // What it wrote itself it knows from then on.
        seen.push_str(&said);
    }
    leaks
}

fn is_program(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name == "Dockerfile"
        || name == "Makefile"
        || [".py", ".sh", ".mk", ".awk", ".c", ".h", ".js"].iter().any(|ending| name.ends_with(ending))
}

fn tokens_of(files: &FileTree, keep: impl Fn(&str) -> bool) -> BTreeSet<&str> {
    files
        .iter()
        .filter(|(path, _)| keep(path.as_str()))
        .filter_map(|(_, file)| file.as_text())
        .flat_map(tokens)
        .collect()
}

fn tokens(text: &str) -> BTreeSet<&str> {
    static WORD: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"[A-Za-z0-9_]+").ok());
    let Some(word) = WORD.as_ref() else { return BTreeSet::new() };
    word.find_iter(text).map(|found| found.as_str()).filter(|word| word.len() >= SHORTEST_LITERAL).collect()
}
