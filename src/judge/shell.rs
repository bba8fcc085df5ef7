//! Analysis of shell commands: which programs a command runs, and how much two commands differ.

use crate::model::squeeze;
use crate::syntax::{Grammar, named_children, parse, text_of};

/// Longer texts are not compared by edit distance. In characters, without the common start and end.
/// The cost is quadratic, and they differ by more than a small edit.
const MOST_COMPARED: usize = 2_000;

/// Words that can stand before a program's name.
const PREFIXES: [&str; 9] = ["sudo", "env", "time", "nohup", "exec", "!", "then", "do", "stdbuf"];

/// Whether a command begins a pipeline, or reads from the command before.
#[derive(Clone, Copy)]
enum Position {
    First,
    Piped,
}

/// The pipelines of a command, in order. Each is a list of simple commands without redirections.
/// Substitutions and function bodies are left out. Text that is no shell code is one command.
pub(super) fn pipelines(command: &str) -> Vec<Vec<&str>> {
    let mut pipelines: Vec<Vec<&str>> = Vec::new();
    if let Some(tree) = parse(Grammar::Bash, command) {
        // A list of work instead of recursion: the text is untrusted and may nest deeply.
        let mut open = vec![(tree.root_node(), Position::First)];
        while let Some((node, position)) = open.pop() {
            match node.kind() {
                "command"
                | "test_command"
                | "declaration_command"
                | "unset_command"
                | "variable_assignment" => {
                    let simple = text_of(node, command).trim();
                    match (position, pipelines.last_mut()) {
                        (Position::Piped, Some(last)) => last.push(simple),
                        (Position::First, _) | (Position::Piped, None) => pipelines.push(vec![simple]),
                    }
                }
                "pipeline" => {
                    let parts = named_children(node).into_iter().enumerate();
                    let parts: Vec<_> = parts
                        .map(|(at, part)| (part, if at == 0 { position } else { Position::Piped }))
                        .collect();
                    open.extend(parts.into_iter().rev());
                }
                // `cat <<EOF | sort`: the grammar makes the rest of the line a part of the
                // redirection.
                "heredoc_redirect" => {
                    let after_operator = node.child_by_field_name("right");
                    open.extend(named_children(node).into_iter().rev().map(|part| {
                        let joined = Some(part) != after_operator;
                        (part, if joined { Position::Piped } else { Position::First })
                    }));
                }
                "command_substitution"
                | "process_substitution"
                | "heredoc_body"
                | "function_definition"
                | "string" => {}
                _ => open.extend(named_children(node).into_iter().rev().map(|part| (part, position))),
            }
        }
    }
    if pipelines.is_empty() && !command.trim().is_empty() {
        pipelines.push(vec![command.trim()]);
    }
    pipelines
}

/// The name of a simple command's program, without folder and version: `python` for
/// `/usr/bin/python3.11 -V`.
pub(super) fn program(simple: &str) -> &str {
    let is_assignment = |word: &&str| {
        let name = word.split_once('=').map(|(name, _)| name);
        name.is_some_and(|name| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        })
    };
    let mut words =
        simple.split_whitespace().skip_while(|word| is_assignment(word) || PREFIXES.contains(word));
    let mut word = words.next().unwrap_or_default();
    if word == "timeout" {
        word = words
            .find(|word| !word.starts_with('-') && !word.starts_with(|c: char| c.is_ascii_digit()))
            .unwrap_or_default();
    }
    let name = word.trim_start_matches(['(', '{', '"', '\'']).trim_end_matches(['"', '\'', ')']);
    let name = name.rsplit('/').next().unwrap_or(name);
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    if bare.is_empty() { name } else { bare }
}

/// The program that gives a command its exit status: the last one of the last pipeline.
pub(super) fn last_program(command: &str) -> &str {
    pipelines(command).last().and_then(|pipeline| pipeline.last().copied()).map_or("", program)
}

/// The program whose output a command shows, perhaps filtered: the first one of the last pipeline.
pub(super) fn source_program(command: &str) -> &str {
    pipelines(command).last().and_then(|pipeline| pipeline.first().copied()).map_or("", program)
}

/// How much two commands differ, from 0 to 1: the Levenshtein distance of their characters by the
/// length of the longer one. Blanks in a row count as one.
pub(super) fn difference(one: &str, other: &str) -> f64 {
    let characters = |text: &str| squeeze(text).chars().collect::<Vec<_>>();
    let (one, other) = (characters(one), characters(other));
    let longer = one.len().max(other.len());
    if longer == 0 {
        return 0.0;
    }
    let common = one.iter().zip(&other).take_while(|(a, b)| a == b).count();
    let (one, other) = (one.get(common..).unwrap_or_default(), other.get(common..).unwrap_or_default());
    let common = one.iter().rev().zip(other.iter().rev()).take_while(|(a, b)| a == b).count();
    let (one, other) = (
        one.get(..one.len() - common).unwrap_or_default(),
        other.get(..other.len() - common).unwrap_or_default(),
    );
    if one.len().max(other.len()) > MOST_COMPARED {
        return 1.0;
    }
    let (one, other): (String, String) = (one.iter().collect(), other.iter().collect());
    strsim::levenshtein(&one, &other) as f64 / longer as f64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn commands_are_split() {
        let check = |command: &str, expect: &[&[&str]]| assert_eq!(pipelines(command), expect, "{command}");
        check("", &[]);
        check("ls", &[&["ls"]]);
        check("cd /app && make 2>&1 | tail -3", &[&["cd /app"], &["make", "tail -3"]]);
        check("a; b || c\nd &", &[&["a"], &["b"], &["c"], &["d"]]);
        check("grep -E 'a|b;c' f | wc -l", &[&["grep -E 'a|b;c' f", "wc -l"]]);
        check("echo \"x && \\\" y\" | cat", &[&["echo \"x && \\\" y\"", "cat"]]);
        check("make &> log; tail log", &[&["make"], &["tail log"]]);
        check("make |& head", &[&["make", "head"]]);
        check("echo a\\;b", &[&["echo a\\;b"]]);
        check("cat <<EOF | sort\nb && c\nEOF\nls", &[&["cat", "sort"], &["ls"]]);
        check("cat > a <<EOF && make\nb\nEOF", &[&["cat"], &["make"]]);
        check("if a; then b | c; fi", &[&["a"], &["b", "c"]]);
        check("f() { rm x; }; echo $(ls | wc) \"$(id)\" > log", &[&["echo $(ls | wc) \"$(id)\""]]);
        check("cat x | while read l; do echo $l; done", &[&["cat x", "read l", "echo $l"]]);
        check("(cd x; make)", &[&["cd x"], &["make"]]);
    }

    #[test]
    fn programs_are_named() {
        let check = |simple: &str, expect: &str| assert_eq!(program(simple), expect, "{simple}");
        check("ls -la", "ls");
        check("/usr/bin/python3.11 x.py", "python");
        check("LC_ALL=C sudo env A=b sort x", "sort");
        check("timeout -k 5 10 make all", "make");
        check("! grep -q x y", "grep");
        check("(cd x", "cd");
        check("[ -f x ]", "[");
        check("./run.sh", "run.sh");
        check("7z x a", "7z");
        check("", "");
        assert_eq!(last_program("cat x | grep y"), "grep");
        assert_eq!(source_program("cd /app && cat x | grep y"), "cat");
    }

    #[test]
    fn differences() {
        let check = |one: &str, other: &str, expect: f64| {
            assert!(
                (difference(one, other) - expect).abs() < 1e-9,
                "{one} {other} {}",
                difference(one, other)
            );
        };
        check("", "", 0.0);
        check("ls", "ls", 0.0);
        check("ls   -l ", "ls -l", 0.0);
        check("abcd", "", 1.0);
        check("kitten", "sitting", 3.0 / 7.0);
        check("gcc a.c", "gcc b.c", 1.0 / 7.0);
        check(&"a".repeat(3_000), &"b".repeat(3_000), 1.0);
        check(&format!("{}x", "a".repeat(9_999)), &format!("{}y", "a".repeat(9_999)), 1e-4);
    }

    proptest! {
        #[test]
        fn any_command_can_be_read(command in "[a-z|&;\"'\\\\ \n>é]{0,40}") {
            for part in pipelines(&command).concat() {
                prop_assert!(command.contains(part));
            }
        }

        #[test]
        fn a_difference_is_a_metric(one in "[ab]{0,6}", other in "[ab]{0,6}") {
            let there = difference(&one, &other);
            prop_assert!((0.0..=1.0).contains(&there));
            prop_assert!((there - difference(&other, &one)).abs() < 1e-9);
            prop_assert_eq!(there == 0.0, one == other);
        }
    }
}
