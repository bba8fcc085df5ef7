//! Programs inside a shell script: in here-documents, and as arguments of interpreters.

use std::ops::Range;

use tree_sitter::Node;

use super::language::Language;
use crate::syntax::{children, named_children, text_of};

/// The language of a program that is embedded in a shell script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Program(pub(super) Language);

/// The program among the arguments of `called`: its language, the argument, and the range without
/// quotes.
pub(super) fn in_arguments<'t>(
    called: &str,
    arguments: &[Node<'t>],
    text: &str,
) -> Option<(Program, Node<'t>, Range<usize>)> {
    let language = Language::of_interpreter(called)?;
    let node = program_argument(called, language, arguments, text)?;
    Some((Program(language), node, unquoted(node)?))
}

/// The bytes between the quotes of a string. If the closing quote is missing, the range may end
/// inside a character.
pub(super) fn unquoted(node: Node<'_>) -> Option<Range<usize>> {
    let (start, end) = (node.start_byte() + 1, node.end_byte().checked_sub(1)?);
    (start <= end).then_some(start..end)
}

fn program_argument<'t>(
    called: &str,
    language: Language,
    arguments: &[Node<'t>],
    text: &str,
) -> Option<Node<'t>> {
    let quoted =
        |node: &&Node<'t>| matches!(node.kind(), "raw_string" | "string") && node.byte_range().len() > 2;
    let after = |option: &str| {
        let at = arguments.iter().position(|node| text_of(*node, text) == option)?;
        arguments.get(at + 1).filter(quoted).copied()
    };
    match language {
        Language::Bash | Language::Python => after("-c"),
        Language::Other
            if called.ends_with("perl") || called.ends_with("ruby") || called.ends_with("node") =>
        {
            arguments.iter().enumerate().find_map(|(at, node)| {
                let word = text_of(*node, text);
                let starts = word.starts_with('-') && word.ends_with('e');
                starts.then(|| arguments.get(at + 1).filter(quoted).copied()).flatten()
            })
        }
        // The last quoted word that is not the value of an option, as in `awk -F '\t' '…' FILE` and
        // `sqlite3 FILE '…'`.
        Language::Other => {
            let valued = |at: usize| {
                at > 0 && {
                    let before = text_of(arguments[at - 1], text);
                    before.starts_with('-')
                        && !matches!(before, "-e" | "-E" | "-r" | "-n" | "-i" | "-c" | "-s" | "-nE" | "-rn")
                }
            };
            arguments
                .iter()
                .enumerate()
                .filter(|(at, _)| !valued(*at))
                .map(|(_, node)| node)
                .find(quoted)
                .copied()
        }
        Language::Make | Language::Data => None,
    }
}

/// The language of a here-document. It follows from the program that reads it, from the file that
/// it is written to, or from its first line.
pub(super) fn in_heredoc(redirect: Node<'_>, body: Node<'_>, text: &str) -> Program {
    let content = text_of(body, text);
    let statement = redirect.parent();
    let command = statement.and_then(|node| node.child_by_field_name("body")).and_then(last_command);
    let name = command.and_then(|command| command.child_by_field_name("name"));
    let called = name.map_or("", |name| text_of(name, text));
    if let Some(language) = Language::of_interpreter(called)
        && !matches!(called, "awk" | "sed" | "jq")
    {
        return Program(language);
    }
    // In `tee FILE` and `install /dev/stdin FILE` the file is the last argument, unless output is
    // redirected.
    let arguments = command.map(named_children).unwrap_or_default().into_iter().skip(1);
    let redirects = statement.map(children).unwrap_or_default().into_iter().chain(children(redirect));
    let targets = redirects
        .filter(|node| node.kind() == "file_redirect")
        .filter_map(|node| node.child_by_field_name("destination"));
    let names = arguments.chain(targets).map(|node| text_of(node, text).trim_matches(['"', '\'']));
    let names = names.filter(|name| *name != "/dev/stdin" && !name.starts_with('-'));
    let by_name: Vec<_> = names.filter_map(|name| Language::of_file(name, content)).collect();
    Program(by_name.last().copied().or_else(|| Language::of_shebang(content)).unwrap_or(Language::Data))
}

/// The command that reads the standard input of a statement. In a pipeline or a list it is the last
/// one.
fn last_command(node: Node<'_>) -> Option<Node<'_>> {
    match node.kind() {
        "command" => Some(node),
        "list" | "pipeline" | "redirected_statement" | "negated_command" => {
            named_children(node).into_iter().rev().find_map(last_command)
        }
        _ => None,
    }
}
