//! Mutants of bash scripts, made from the syntax tree. Embedded programs are mutated in their own
//! languages.

use tree_sitter::Node;

use super::bash_flags;
use super::bash_operators;
use super::edit::{Edit, EditsOf, above, quoted};
use super::embedded::{self, Program};
use super::language::Language;
use super::literal::{integer_plus, word_beside};
use super::operator::Operator;
use super::statement::changes_state;
use crate::syntax::{children, named_children, text_of};

/// Commands whose arguments are messages for people.
const SAYING: [&str; 3] = ["echo", "printf", "logger"];

/// Commands that configure the shell itself. Without them a script does the same, unless something
/// fails.
const SETTING_UP: [&str; 4] = ["set", "shopt", "umask", "trap"];

/// Commands whose arguments are variable names.
const NAMING: [&str; 6] = ["read", "local", "declare", "export", "unset", "getopts"];

/// Commands whose first plain argument is a subcommand. Replacing it would only cause an error.
const WITH_COMMANDS: [&str; 12] = [
    "git",
    "go",
    "cargo",
    "pip",
    "pip3",
    "apt-get",
    "systemctl",
    "service",
    "npm",
    "ip",
    "openssl",
    "docker",
];

/// Folder of the solution's own files. They are not part of the result.
const SOLUTION: &str = "/solution/";

/// Redirection targets that discard output.
const NOWHERE: [&str; 1] = ["/dev/null"];

/// Number of the script's first paths that mutants put in place of its other paths. Each path is
/// compared with all of these, so the number is limited.
const MOST_PATHS: usize = 500;

const FUNCTION: &str = "function_definition";

/// Every edit of `text`, unordered and not yet parsed. `embedded` edits the programs in it.
pub(super) fn edits(text: &str, embedded: EditsOf<'_>) -> Vec<Edit> {
    let Some(tree) = Language::Bash.parse(text) else { return Vec::new() };
    let mut walk = Walk { text, embedded, paths: paths(tree.root_node(), text), found: Vec::new() };
    walk.node(tree.root_node(), 0);
    walk.found
}

/// Edits that remove a statement of `text`, one for each statement that changes state or is a step
/// of a tool.
pub(super) fn dropped_statements(text: &str) -> Vec<Edit> {
    let Some(tree) = Language::Bash.parse(text) else { return Vec::new() };
    let mut found = Vec::new();
    statements(tree.root_node(), text, &mut found);
    found
        .into_iter()
        .map(|node| {
            let region = above(node, &[FUNCTION]).map_or(0, |node| node.start_byte());
            Edit::drop(text, node.byte_range(), ":", Operator::DroppedStatement).region(region)
        })
        .collect()
}

struct Walk<'a> {
    text: &'a str,
    embedded: EditsOf<'a>,
    /// Words of the whole script that look like paths, each once.
    paths: Vec<&'a str>,
    found: Vec<Edit>,
}

impl<'a> Walk<'a> {
    fn node(&mut self, node: Node<'a>, region: usize) {
        let here = if node.kind() == FUNCTION { node.start_byte() } else { region };
        let known = self.found.len();
        match node.kind() {
            "comment" => return,
            "command" => self.command(node),
            "list" => self.list(node),
            "negated_command" => self.negated(node),
            "if_statement" | "elif_clause" | "while_statement" => self.condition(node),
            "file_redirect" => self.redirect(node),
            "binary_expression" => self.found.extend(bash_operators::binary(node, self.text)),
            "unary_expression" => self.found.extend(bash_operators::unary(node, self.text)),
            "number" => self.number(node),
            "variable_assignment" => self.assignment(node),
            "heredoc_redirect" => self.heredoc(node),
            _ => {}
        }
        for edit in &mut self.found[known..] {
            // Embedded programs have already set regions of their own.
            edit.region = if edit.region == 0 { here } else { edit.region };
        }
        for child in children(node) {
            // Here-documents are edited in their own language.
            if child.kind() != "heredoc_body" {
                self.node(child, here);
            }
        }
    }

    fn command(&mut self, node: Node<'a>) {
        let Some(name) = node.child_by_field_name("name") else { return };
        let mut cursor = node.walk();
        let arguments: Vec<_> = node.children_by_field_name("argument", &mut cursor).collect();
        let called = text_of(name, self.text);
        if SETTING_UP.contains(&called) {
            return;
        }
        let held = embedded::in_arguments(called, &arguments, self.text);
        let holder = held.as_ref().map(|(_, holder, _)| *holder);
        if let Some((program, _, at)) = held {
            self.program(program, at);
        }
        self.found.extend(bash_flags::edits(called, name, &arguments, self.text));
        let says = SAYING.contains(&called);
        let unheard = says && !is_heard(node, self.text) || NAMING.contains(&called);
        let verb = arguments
            .iter()
            .find(|node| node.kind() == "word" && !text_of(**node, self.text).starts_with('-'))
            .filter(|_| WITH_COMMANDS.contains(&called));
        for argument in &arguments {
            if unheard || verb == Some(argument) || holder == Some(*argument) {
                continue;
            }
            self.word(*argument, says);
        }
    }

    /// Edits of an argument that is text or a path.
    fn word(&mut self, node: Node<'a>, says: bool) {
        let text = text_of(node, self.text);
        match node.kind() {
            "word" if text.starts_with('-') || text.starts_with('+') => {
                if let Some(digits) = text.get(1..).filter(|rest| rest.bytes().all(|b| b.is_ascii_digit()))
                    && !digits.is_empty()
                {
                    self.off_by_one(node);
                }
            }
            "word" | "concatenation" if text.contains('/') => self.path(node),
            "raw_string" | "string" | "word" | "concatenation" => {
                if node.kind() == "raw_string"
                    && !says
                    && is_code(text)
                    && let Some(inner) = embedded::unquoted(node)
                    && let Some(code) = self.text.get(inner.clone())
                {
                    self.program(fragment(code), inner);
                }
                let Some(other) = word_beside(text) else { return };
                let expands = text.contains('$') && node.kind() != "raw_string";
                let edit = Edit::replace(self.text, node.byte_range(), other, Operator::Constant)
                    .what(format!("`{}` became another text", quoted(text)))
                    .uninformative_if(expands && !says, "names a variable that does not exist");
                self.found.push(edit);
            }
            _ => {}
        }
    }

    /// Replaces a path by another path of the same kind in the script, or by one that does not
    /// exist.
    fn path(&mut self, node: Node<'a>) {
        let text = text_of(node, self.text);
        let at = self.paths.iter().position(|path| *path == text);
        let others = at.map(|at| self.paths[at + 1..].iter().chain(&self.paths[..at]));
        let other = others.and_then(|mut others| others.find(|path| kind(path) == kind(text)));
        if let Some(other) = other {
            self.found.push(Edit::replace(self.text, node.byte_range(), *other, Operator::Path));
        }
        if let Some(renamed) = word_beside(text) {
            let edit = Edit::replace(self.text, node.byte_range(), renamed, Operator::Path);
            self.found.push(edit.uninformative("the file would be missing where it is looked for"));
        }
    }

    fn redirect(&mut self, node: Node<'a>) {
        let text = text_of(node, self.text);
        let Some(target) = node.child_by_field_name("destination") else { return };
        if NOWHERE.contains(&text_of(target, self.text)) {
            return;
        }
        let Some(operator) = children(node).into_iter().find(|child| !child.is_named()) else { return };
        match operator.kind() {
            ">" => self.found.push(
                Edit::replace(self.text, operator.byte_range(), ">>", Operator::Redirection)
                    .what(format!("`{}` appends", quoted(text)))
                    .uninformative("appending to a file that is not there yet is the same"),
            ),
            ">>" => self.found.push(
                Edit::replace(self.text, operator.byte_range(), ">", Operator::Redirection)
                    .what(format!("`{}` overwrites", quoted(text))),
            ),
            ">&" => self.found.push(
                Edit::drop(self.text, node.byte_range(), "", Operator::Redirection)
                    .uninformative_if(is_message(node, self.text), "a message to the other stream"),
            ),
            _ => return,
        }
        if operator.kind() != ">&" && text_of(target, self.text).contains('/') {
            self.path(target);
        }
    }

    fn list(&mut self, node: Node<'a>) {
        let parts = children(node);
        let (Some(left), Some(right)) = (parts.first(), parts.last()) else { return };
        let Some(operator) = parts.iter().find(|part| matches!(part.kind(), "&&" | "||")) else { return };
        let rest = left.end_byte()..right.end_byte();
        if operator.kind() == "||" {
            self.found.push(Edit::drop(self.text, rest, "", Operator::ErrorHandling));
        } else {
            let guard = left.start_byte()..right.start_byte();
            self.found.push(Edit::drop(self.text, guard, "", Operator::ErrorHandling));
        }
        let other = if operator.kind() == "||" { "&&" } else { "||" };
        self.found.push(Edit::replace(self.text, operator.byte_range(), other, Operator::Logic).what(
            format!("`{}` became `{other}` before `{}`", operator.kind(), quoted(text_of(*right, self.text))),
        ));
    }

    fn negated(&mut self, node: Node<'a>) {
        let Some(inner) = named_children(node).into_iter().next() else { return };
        let bang = node.start_byte()..inner.start_byte();
        self.found.push(
            Edit::drop(self.text, bang, "", Operator::Logic)
                .what(format!("`!` dropped before `{}`", quoted(text_of(inner, self.text)))),
        );
    }

    /// `if a` becomes `if ! a`, unless the condition has an operator that can be inverted.
    fn condition(&mut self, node: Node<'a>) {
        let Some(condition) = named_children(node).into_iter().next() else { return };
        if !matches!(condition.kind(), "command" | "pipeline") {
            return;
        }
        let start = condition.start_byte();
        self.found.push(
            Edit::replace(self.text, start..start, "! ", Operator::Logic)
                .what(format!("`{}` negated", quoted(text_of(condition, self.text)))),
        );
    }

    fn number(&mut self, node: Node<'a>) {
        let counted =
            above(node, &["arithmetic_expansion", "c_style_for_statement", "subscript", "expansion"]);
        let in_arithmetic = node.parent().is_some_and(|parent| parent.kind() == "test_command");
        if counted.is_some() || in_arithmetic || above(node, &["binary_expression"]).is_some() {
            self.off_by_one(node);
            return;
        }
        // The `2` of `2>` is a file descriptor.
        if node.parent().is_some_and(|parent| parent.kind() == "file_redirect") {
            return;
        }
        self.value(node, Operator::Constant);
    }

    fn off_by_one(&mut self, node: Node<'a>) {
        self.value(node, Operator::OffByOne);
    }

    /// The number plus 1, and minus 1.
    fn value(&mut self, node: Node<'a>, operator: Operator) {
        for by in [1, -1] {
            if let Some(other) = integer_plus(text_of(node, self.text), by) {
                let what = format!("`{}` became `{other}`", text_of(node, self.text));
                self.found.push(Edit::replace(self.text, node.byte_range(), other, operator).what(what));
            }
        }
    }

    fn assignment(&mut self, node: Node<'a>) {
        let Some(value) = node.child_by_field_name("value") else { return };
        match value.kind() {
            "word" | "raw_string" | "concatenation" if text_of(value, self.text).contains('/') => {
                self.path(value);
            }
            "word" | "raw_string" => self.word(value, false),
            "string" if !text_of(value, self.text).contains('$') => self.word(value, false),
            _ => {}
        }
    }

    fn heredoc(&mut self, node: Node<'a>) {
        let Some(body) = named_children(node).into_iter().find(|child| child.kind() == "heredoc_body") else {
            return;
        };
        let program = embedded::in_heredoc(node, body, self.text);
        self.program(program, body.byte_range());
    }

    fn program(&mut self, program: Program, at: std::ops::Range<usize>) {
        let Some(inner) = self.text.get(at.clone()) else { return };
        let Program(language) = program;
        let edits = (self.embedded)(language, inner).into_iter();
        self.found.extend(edits.map(|edit| edit.embedded(language, at.clone())));
        if language == Language::Bash {
            self.found.extend(dropped_statements(inner).into_iter().map(|edit| edit.shifted(at.start)));
        }
    }
}

/// The properties that a path and its replacement must share: the file ending, and whether the path
/// belongs to the solution.
fn kind(path: &str) -> (&str, bool) {
    (path.rsplit_once('.').map_or("", |(_, ending)| ending), path.starts_with(SOLUTION))
}

/// Whether a quoted word looks like code, e.g. a program passed to `awk`: words with an operator
/// between them.
fn is_code(text: &str) -> bool {
    text.contains(' ') && text.contains(['<', '>', '=', '(']) && !text.contains('%')
}

/// The language of a piece of code. A line of Python out of context usually still parses.
fn fragment(code: &str) -> Program {
    let is_python = Language::Python.faults(code.trim_start()) <= 1;
    Program(if is_python { Language::Python } else { Language::Other })
}

/// Whether something uses a command's output: a file, a pipe, a variable, or the caller of a
/// function.
fn is_heard(node: Node<'_>, text: &str) -> bool {
    let listeners = ["pipeline", "command_substitution", "process_substitution", FUNCTION];
    let redirected = above(node, &["redirected_statement"]).is_some_and(|node| changes_state(node, text));
    (redirected || above(node, &listeners).is_some()) && !is_message(node, text)
}

/// Whether the command around `node` prints to standard error.
fn is_message(node: Node<'_>, text: &str) -> bool {
    above(node, &["redirected_statement"]).is_some_and(|node| text_of(node, text).contains(">&2"))
}

/// The first words that are paths, in order, each once.
fn paths<'a>(node: Node<'_>, text: &'a str) -> Vec<&'a str> {
    let mut found = Vec::new();
    let mut open = vec![node];
    while let Some(node) = open.pop().filter(|_| found.len() < MOST_PATHS) {
        if matches!(node.kind(), "word" | "concatenation") {
            let word = text.get(node.byte_range()).unwrap_or_default();
            let plain = word.contains('/') && !word.starts_with("/dev/") && !word.contains(['*', '\n', '$']);
            if plain && !found.contains(&word) {
                found.push(word);
            }
            continue;
        }
        if !matches!(node.kind(), "heredoc_body" | "comment") {
            let mut below = children(node);
            below.reverse();
            open.extend(below);
        }
    }
    found
}

/// State-changing statements, outer before inner. An outer one with a single inner one is skipped,
/// because removing either has the same effect.
fn statements<'t>(node: Node<'t>, text: &str, found: &mut Vec<Node<'t>>) {
    let conditional = matches!(node.kind(), "if_statement" | "elif_clause" | "while_statement");
    for (place, child) in named_children(node).into_iter().enumerate() {
        match child.kind() {
            "heredoc_body" | "comment" | "test_command" | "command_substitution" => {}
            FUNCTION | "compound_statement" | "subshell" | "do_group" | "else_clause" | "elif_clause"
            | "case_item" => {
                statements(child, text, found);
            }
            "if_statement"
            | "for_statement"
            | "while_statement"
            | "c_style_for_statement"
            | "case_statement" => {
                let mut inner = Vec::new();
                statements(child, text, &mut inner);
                if inner.len() != 1 {
                    found.push(child);
                }
                found.append(&mut inner);
            }
            "command" | "redirected_statement" | "pipeline" | "list" | "negated_command" => {
                let is_condition = conditional && place == 0;
                if !is_condition && changes_state(child, text) {
                    found.push(child);
                }
            }
            _ => {}
        }
    }
}
