//! Detects the language of a text, and checks whether it parses.

use tree_sitter::Tree;

use crate::syntax::{Grammar, children, depth, parse};

/// Maximum depth of a syntax tree that is walked. Walks are recursive, and texts are untrusted.
/// Programs by people are a tenth as deep.
const MOST_NESTED: usize = 400;

/// Copying a byte costs a fraction of parsing it. Without a bundled grammar, a text is only copied.
const COPIED: usize = 16;

/// How a text is mutated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Language {
    Bash,
    Python,
    Make,
    /// A program in a language without a bundled grammar. Only its numbers and comparisons are
    /// edited.
    Other,
    /// Lines with values, e.g. configuration or tables.
    Data,
}

/// Extensions of files that do not affect a result.
const PROSE: [&str; 3] = ["md", "rst", "adoc"];

/// Extensions of program files without a bundled grammar.
const PROGRAMS: [&str; 17] = [
    "awk", "sed", "jq", "sql", "pl", "pm", "rb", "js", "ts", "c", "h", "cc", "cpp", "go", "rs", "lua",
    "patch",
];

impl Language {
    /// The language by the file's name, or else by its first line. `None` for prose.
    pub(super) fn of_file(path: &str, text: &str) -> Option<Self> {
        let name = path.rsplit('/').next().unwrap_or(path);
        let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
        Some(match ending {
            "sh" | "bash" => Self::Bash,
            "py" => Self::Python,
            "mk" => Self::Make,
            _ if PROSE.contains(&ending) => return None,
            _ if PROGRAMS.contains(&ending) => Self::Other,
            _ if name.eq_ignore_ascii_case("makefile") || name == "GNUmakefile" => Self::Make,
            _ => Self::of_shebang(text).unwrap_or(Self::Data),
        })
    }

    /// The language by the `#!` line.
    pub(super) fn of_shebang(text: &str) -> Option<Self> {
        let line = text.lines().next()?.strip_prefix("#!")?;
        let program = line.split_whitespace().map(|word| word.rsplit('/').next().unwrap_or(word));
        Self::of_interpreter(program.filter(|word| *word != "env").find(|word| !word.starts_with('-'))?)
    }

    /// The language that the interpreter `name` runs. `None` if it is no interpreter.
    pub(super) fn of_interpreter(name: &str) -> Option<Self> {
        let name = name.rsplit('/').next().unwrap_or(name);
        match name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.') {
            "bash" | "sh" | "dash" => Some(Self::Bash),
            "python" | "pypy" => Some(Self::Python),
            "make" => Some(Self::Make),
            "awk" | "gawk" | "mawk" | "nawk" | "sed" | "jq" | "perl" | "ruby" | "node" | "sqlite"
            | "psql" | "mysql" | "bc" | "dc" | "ed" | "lua" => Some(Self::Other),
            _ => None,
        }
    }

    /// The cost of checking an edit of `bytes` bytes in this language, as a number of parsed bytes.
    pub(super) fn cost(self, bytes: usize) -> usize {
        match self {
            Self::Bash | Self::Python => bytes,
            Self::Make | Self::Other | Self::Data => bytes / COPIED,
        }
    }

    /// Number of syntax errors. 0 without a bundled grammar.
    pub(super) fn faults(self, text: &str) -> usize {
        let Some(tree) = self.tree(text) else { return 0 };
        let mut open = vec![tree.root_node()];
        let mut count = 0;
        while let Some(node) = open.pop() {
            if node.has_error() {
                count += usize::from(node.is_error() || node.is_missing());
                open.extend(children(node));
            }
        }
        count
    }

    /// The syntax tree. `None` without a bundled grammar, or if the text is nested too deep.
    pub(super) fn parse(self, text: &str) -> Option<Tree> {
        self.tree(text).filter(|tree| depth(tree) <= MOST_NESTED)
    }

    fn tree(self, text: &str) -> Option<Tree> {
        match self {
            Self::Bash => parse(Grammar::Bash, text),
            Self::Python => parse(Grammar::Python, text),
            Self::Make | Self::Other | Self::Data => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_of_files() {
        for (path, text, expect) in [
            ("solve.sh", "", Some(Language::Bash)),
            ("lib/a.py", "", Some(Language::Python)),
            ("Makefile", "", Some(Language::Make)),
            ("tool", "#!/usr/bin/env python3\n", Some(Language::Python)),
            ("tool", "#!/bin/sh -e\n", Some(Language::Bash)),
            ("tool", "#!/usr/bin/perl -w\n", Some(Language::Other)),
            ("query.sql", "", Some(Language::Other)),
            ("a.conf", "x = 1\n", Some(Language::Data)),
            ("README.md", "", None),
        ] {
            assert_eq!(Language::of_file(path, text), expect, "{path} {text}");
        }
    }

    #[test]
    fn faults_are_counted() {
        for (language, text, sound) in [
            (Language::Bash, "if a; then b; fi\n", true),
            (Language::Bash, "if a; then b\n", false),
            (Language::Python, "x = [1, 2]\n", true),
            (Language::Python, "x = [1, 2\n", false),
            (Language::Data, "]]", true),
            // A recursive walk of these texts would overflow any stack.
            (Language::Python, &"(".repeat(20_000), false),
            (Language::Bash, &"(".repeat(20_000), false),
        ] {
            assert_eq!(language.faults(text) == 0, sound, "{text}");
        }
    }
}
