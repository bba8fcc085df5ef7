//! The commands of a shell text: their words, the files of their output, and the fate of their exit
//! status.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use tree_sitter::Node;

use super::expand::Variables;
use super::programs::{is_python, is_test_run, program};
use crate::syntax::{Grammar, children, descendants, line, named_children, parse, text_of};

/// Maximum number of nested shells that are followed, e.g. `bash -c "bash -c …"`.
const DEPTH: u32 = 3;
/// Maximum number of redirections around a command that are tracked, e.g. of a subshell.
const MOST_FILES: usize = 8;

/// What the script does with a command's exit status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    /// The status decides: with `set -e`, a failure ends the script.
    Kept,
    /// `if`, `while`, `!`, `&&` or `
    ///
    /// ` tests it.
    Tested,
    /// `
    ///
    /// true` discards it.
    Discarded,
    /// The pipeline ends with the status of another command.
    Piped,
}

/// One command. `[ … ]` counts as a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Command {
    pub(super) line: u32,
    /// The words, without assignments and quotes. A variable with one known value is replaced.
    /// Other variables stay as written.
    pub(super) words: Vec<String>,
    pub(super) status: Status,
    /// Whether the next statement reads `$?`.
    pub(super) asked: bool,
    /// Whether another program or a variable receives its output.
    pub(super) captured: bool,
    /// Files that receive its output.
    pub(super) writes: Vec<String>,
    /// Files that it reads by `<`.
    pub(super) reads: Vec<String>,
    /// The text of its here-document.
    pub(super) input: Option<String>,
    /// The function that the command belongs to.
    pub(super) function: Option<String>,
    /// Whether the command may be skipped: after `&&` or `
    ///
    /// `, or inside `if`, `case` or a loop.
    pub(super) conditional: bool,
}

impl Command {
    /// Name and arguments of the program. Prefixes such as `sudo` and `timeout 5` are removed.
    pub(super) fn program(&self) -> &[String] {
        program(&self.words)
    }

    /// The name of the program, without its folder.
    pub(super) fn name(&self) -> &str {
        self.program().first().map_or("", |word| word.rsplit('/').next().unwrap_or(word))
    }
}

impl Command {
    /// The Python text that it runs by `-c` or a here-document, and the number of lines before it.
    fn python(&self) -> Option<(u32, &str)> {
        let rest = self.program().get(1..).filter(|_| is_python(self.name()))?;
        let first = rest.iter().position(|word| word == "-c" || word == "-" || !word.starts_with('-'));
        match first.map(|at| (at, rest[at].as_str())) {
            Some((at, "-c")) => Some((self.line - 1, rest.get(at + 1)?)),
            None | Some((_, "-")) => Some((self.line, self.input.as_deref()?)),
            Some(_) => None,
        }
    }
}

/// A Python text in a file of the task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Python<'a> {
    pub(super) file: &'a str,
    /// Number of lines before it in the file.
    pub(super) before: u32,
    pub(super) text: String,
}

/// The Python files among `files`, and Python texts inside shell files.
pub(super) fn pythons<'a>(files: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<Python<'a>> {
    let mut found = Vec::new();
    for (file, text) in files {
        if file.ends_with(".py") {
            found.push(Python { file, before: 0, text: text.to_owned() });
        } else if file.ends_with(".sh") {
            let commands = commands(text);
            let inside = commands.iter().filter_map(Command::python);
            found.extend(inside.map(|(before, text)| Python { file, before, text: text.to_owned() }));
        }
    }
    found
}

/// The commands of a shell text.
#[derive(Debug, Default)]
pub(super) struct Shell {
    /// In the order of the text.
    pub(super) commands: Vec<Command>,
    /// Functions of the script that run tests.
    runners: BTreeSet<String>,
}

impl Shell {
    /// Reads the text of a script in `folder`, e.g. `/tests`.
    pub(super) fn read(text: &str, folder: &str) -> Self {
        let mut shell = Self::default();
        read(text, &Place { folder, line: 0, depth: 0 }, &mut shell.commands);
        shell.runners = shell
            .commands
            .iter()
            .filter(|command| is_test_run(&command.words))
            .filter_map(|command| command.function.clone())
            .collect();
        shell
    }

    /// Whether a command runs tests, directly or by a function of the script.
    pub(super) fn runs_tests(&self, command: &Command) -> bool {
        is_test_run(&command.words) || self.runners.contains(command.name())
    }

    /// Whether `set -o pipefail` is on: a pipeline then fails with any of its commands.
    pub(super) fn has_pipefail(&self) -> bool {
        let sets = |command: &Command| {
            command.name() == "set" && command.words.iter().any(|word| word == "pipefail")
        };
        self.commands.iter().any(sets)
    }
}

/// The commands of a shell text.
pub(super) fn commands(text: &str) -> Vec<Command> {
    Shell::read(text, "").commands
}

struct Place<'a> {
    folder: &'a str,
    /// Number of lines before the text.
    line: u32,
    depth: u32,
}

/// Facts about a node that come from the nodes around it.
#[derive(Clone)]
struct Around {
    status: Status,
    asked: bool,
    captured: bool,
    conditional: bool,
    writes: Rc<[String]>,
    reads: Rc<[String]>,
    input: Option<Rc<str>>,
    function: Option<Rc<str>>,
}

impl Around {
    fn nothing() -> Self {
        Self {
            status: Status::Kept,
            asked: false,
            captured: false,
            conditional: false,
            writes: Rc::new([]),
            reads: Rc::new([]),
            input: None,
            function: None,
        }
    }

    /// The facts inside `$(…)`, a here-document or an argument.
    fn substituted(&self) -> Self {
        Self { captured: true, function: self.function.clone(), ..Self::nothing() }
    }

    fn with(&self, status: Status) -> Self {
        Self { status, ..self.clone() }
    }
}

fn read(text: &str, place: &Place<'_>, found: &mut Vec<Command>) {
    let Some(tree) = parse(Grammar::Bash, text) else { return };
    let mut reader =
        Reader { text, variables: variables(tree.root_node(), text, place.folder), open: Vec::new() };
    reader.open.push((tree.root_node(), Around::nothing()));
    while let Some((node, around)) = reader.open.pop() {
        let before = reader.open.len();
        if matches!(node.kind(), "command" | "test_command") {
            let command = reader.command(node, &around);
            let shell = shell_text(&command).filter(|_| place.depth < DEPTH);
            let (from, at) = (found.len(), command.line);
            found.push(Command { line: command.line + place.line, ..command });
            if let Some(inner) = shell {
                let inside =
                    Place { line: place.line + at - 1 + inner.below, depth: place.depth + 1, ..*place };
                read(&inner.text, &inside, found);
                inherit(found, from);
            }
        }
        reader.enter(node, &around);
        // The stack returns the last one first.
        reader.open[before..].reverse();
    }
}

/// A shell text inside another one.
struct Inner {
    text: String,
    /// Number of lines from the command to the text.
    below: u32,
}

/// The text that a command passes to a shell, e.g. by `bash -c "…"` or `sh <<EOF`.
fn shell_text(command: &Command) -> Option<Inner> {
    let words = command.program();
    let beside = |text: String| Inner { text, below: 0 };
    let shell = matches!(command.name(), "bash" | "sh" | "dash" | "zsh" | "su" | "runuser");
    let takes_text = |word: &String| {
        word == "--command" || (word.starts_with('-') && !word.starts_with("--") && word.ends_with('c'))
    };
    match (command.name(), words.iter().position(takes_text)) {
        ("eval", _) => Some(beside(words.get(1..)?.join(" "))),
        (_, Some(at)) if shell => words.get(at + 1).cloned().map(beside),
        (_, None) if shell && words[1..].iter().all(|word| word.starts_with('-')) => {
            command.input.clone().map(|text| Inner { text, below: 1 })
        }
        _ => None,
    }
}

/// Passes facts of a shell command on to the commands inside it. The last one's status is the
/// shell's status. All of them write where the shell writes.
fn inherit(found: &mut [Command], from: usize) {
    let Some((outer, inner)) = found.get_mut(from..).and_then(<[Command]>::split_first_mut) else { return };
    let last = inner.len().saturating_sub(1);
    for (at, command) in inner.iter_mut().enumerate() {
        if at == last && command.status == Status::Kept {
            command.status = outer.status;
            command.asked |= outer.asked;
        }
        command.captured |= outer.captured;
        command.writes.extend(outer.writes.iter().cloned());
        command.function = command.function.take().or_else(|| outer.function.clone());
    }
}

/// Variables that have the same known value in all of their assignments.
fn variables(root: Node<'_>, text: &str, folder: &str) -> Variables {
    let mut values: BTreeMap<&str, Option<String>> = BTreeMap::new();
    let mut known = Variables::new(folder);
    for node in descendants(root) {
        let name = match node.kind() {
            "variable_assignment" => node.child_by_field_name("name"),
            "for_statement" => node.child_by_field_name("variable"),
            _ => continue,
        };
        let Some(name) = name.map(|name| text_of(name, text)) else { continue };
        let value = node.child_by_field_name("value").filter(|_| node.kind() == "variable_assignment");
        let value =
            value.map(|value| known.expand(text_of(value, text))).filter(|value| !value.contains(['$', '`']));
        let one = values.entry(name).or_insert_with(|| value.clone());
        if *one != value {
            *one = None;
        }
        match one {
            Some(value) => known.set(name, value),
            None => known.forget(name),
        }
    }
    known
}

struct Reader<'t, 'a> {
    text: &'a str,
    variables: Variables,
    open: Vec<(Node<'t>, Around)>,
}

impl<'t> Reader<'t, '_> {
    fn command(&self, node: Node<'t>, around: &Around) -> Command {
        let mut words: Vec<String> = Vec::new();
        let (mut writes, mut reads) = (around.writes.to_vec(), around.reads.to_vec());
        let mut input = around.input.as_ref().map(std::string::ToString::to_string);
        if node.kind() == "test_command" {
            words =
                text_of(node, self.text).split_whitespace().map(|word| self.variables.expand(word)).collect();
        } else {
            for part in named_children(node) {
                match part.kind() {
                    "variable_assignment" | "comment" => {}
                    "file_redirect" => self.file(part, &mut writes, &mut reads),
                    "herestring_redirect" => {
                        input =
                            Some(self.variables.expand(text_of(part, self.text).trim_start_matches("<<<")));
                    }
                    _ => words.push(self.variables.expand(text_of(part, self.text))),
                }
            }
        }
        Command {
            line: line(node),
            words,
            status: around.status,
            asked: around.asked,
            captured: around.captured,
            writes,
            reads,
            input,
            function: around.function.as_ref().map(std::string::ToString::to_string),
            conditional: around.conditional,
        }
    }

    /// Adds the file of a redirection. A redirection of standard error alone (`2>/dev/null`) is
    /// skipped.
    fn file(&self, redirect: Node<'t>, writes: &mut Vec<String>, reads: &mut Vec<String>) {
        let parts = children(redirect);
        let Some(file) = parts.last().map(|file| self.variables.expand(text_of(*file, self.text))) else {
            return;
        };
        let descriptor = redirect.child_by_field_name("descriptor").map(|node| text_of(node, self.text));
        let operator = parts.iter().map(tree_sitter::Node::kind).find(|kind| kind.contains(['<', '>']));
        match operator {
            Some("<") => reads.push(file),
            Some(">" | ">>" | ">|" | "&>" | "&>>") if matches!(descriptor, None | Some("1")) => {
                writes.push(file);
            }
            _ => {}
        }
        writes.truncate(MOST_FILES);
    }

    /// Pushes the parts of a node on the stack.
    fn enter(&mut self, node: Node<'t>, around: &Around) {
        match node.kind() {
            "list" => self.list(node, around, around),
            "pipeline" => {
                let parts = named_children(node);
                for (at, part) in parts.iter().enumerate() {
                    let last = at + 1 == parts.len();
                    let piped = Around { captured: true, ..around.with(Status::Piped) };
                    self.open.push((*part, if last { around.clone() } else { piped }));
                }
            }
            "redirected_statement" => self.redirected(node, around),
            "if_statement" | "elif_clause" => self.branches(node, around, "then"),
            "while_statement" => self.branches(node, around, "do_group"),
            "negated_command" => self.each(node, &around.with(Status::Tested)),
            "function_definition" => {
                let name = node.child_by_field_name("name").map(|name| Rc::from(text_of(name, self.text)));
                self.each(node, &Around { function: name, ..Around::nothing() });
            }
            "command_substitution" | "process_substitution" => {
                self.sequence(&named_children(node), &around.substituted());
            }
            "program" | "compound_statement" | "subshell" => self.sequence(&named_children(node), around),
            "do_group" | "else_clause" | "case_item" => {
                self.sequence(&named_children(node), &Around { conditional: true, ..around.clone() });
            }
            "command" | "test_command" | "variable_assignment" | "heredoc_body" | "file_redirect" => {
                self.each(node, &around.substituted());
            }
            _ => self.each(node, around),
        }
    }

    fn each(&mut self, node: Node<'t>, around: &Around) {
        self.open.extend(named_children(node).into_iter().map(|part| (part, around.clone())));
    }

    /// A sequence of statements. The status of the last one is the status of the whole.
    fn sequence(&mut self, parts: &[Node<'t>], around: &Around) {
        let parts: Vec<_> = parts.iter().filter(|part| part.kind() != "comment").collect();
        for (at, part) in parts.iter().enumerate() {
            let here = match parts.get(at + 1) {
                None => around.clone(),
                Some(next) => {
                    let status = if around.status == Status::Kept { Status::Kept } else { Status::Tested };
                    Around { asked: self.asks(**next), ..around.with(status) }
                }
            };
            self.open.push((**part, here));
        }
    }

    /// Whether the first part of a statement reads `$?`.
    fn asks(&self, statement: Node<'t>) -> bool {
        let mut first = statement;
        // E.g. the first part of `[ $? = 0 ] && a` does, and the second part of `a
        //
        // x=$?` does not count.
        while matches!(
            first.kind(),
            "list"
                | "pipeline"
                | "redirected_statement"
                | "if_statement"
                | "case_statement"
                | "negated_command"
        ) {
            let Some(part) = named_children(first).first().copied() else { break };
            first = part;
        }
        let text = text_of(first, self.text);
        let said = text.starts_with("echo") || text.starts_with("printf");
        !said && (text.contains("$?") || text.contains("PIPESTATUS"))
    }

    /// `a && b` or `a
    ///
    /// b`. `right` holds the facts for the second part.
    fn list(&mut self, node: Node<'t>, around: &Around, right: &Around) {
        let parts: Vec<_> = children(node).into_iter().filter(|part| part.kind() != "comment").collect();
        let [first, operator, second] = parts[..] else { return self.each(node, around) };
        let harmless = operator.kind() == "||" && is_true(text_of(second, self.text));
        let status = if harmless { Status::Discarded } else { Status::Tested };
        self.open.push((first, around.with(status)));
        self.open.push((second, Around { conditional: true, ..right.clone() }));
    }

    /// A statement with redirections. In a list they belong to the last command.
    fn redirected(&mut self, node: Node<'t>, around: &Around) {
        let (mut writes, mut reads) = (around.writes.to_vec(), around.reads.to_vec());
        let mut input = around.input.clone();
        let mut status = around.status;
        let mut rest = Vec::new();
        let mut redirects = named_children(node);
        let body = node.child_by_field_name("body");
        redirects.retain(|part| Some(*part) != body);
        while let Some(part) = redirects.pop() {
            match part.kind() {
                "file_redirect" => {
                    self.file(part, &mut writes, &mut reads);
                    rest.push((part, around.substituted()));
                }
                "heredoc_redirect" => {
                    status = self.status_after(part).unwrap_or(status);
                    redirects.extend(named_children(part));
                }
                "heredoc_body" => {
                    input = Some(Rc::from(text_of(part, self.text)));
                    rest.push((part, around.substituted()));
                }
                "heredoc_start" | "heredoc_end" | "file_descriptor" => {}
                // `cat <<EOF
                // sort` and `cat <<EOF && sort`.
                _ => rest.push((part, Around { conditional: true, ..around.clone() })),
            }
        }
        let piped = rest.iter().any(|(part, _)| part.kind() == "pipeline");
        let inside = Around {
            writes: writes.into(),
            reads: reads.into(),
            input,
            captured: around.captured || piped,
            ..around.with(status)
        };
        match body {
            Some(body) if body.kind() == "list" => self.list(body, around, &inside),
            Some(body) => self.open.push((body, inside)),
            None => {}
        }
        self.open.extend(rest);
    }

    /// The fate of the status before `<<EOF
    ///
    /// …`. There the grammar makes the rest part of the redirection.
    fn status_after(&self, redirect: Node<'t>) -> Option<Status> {
        let parts = children(redirect);
        let at = parts.iter().position(|part| matches!(part.kind(), "||" | "&&"))?;
        let right = parts.get(at + 1).map_or("", |right| text_of(*right, self.text));
        let harmless = parts[at].kind() == "||" && is_true(right);
        Some(if harmless { Status::Discarded } else { Status::Tested })
    }

    /// A statement that runs the nodes after `then` only under a condition. The nodes before it are
    /// the test.
    fn branches(&mut self, node: Node<'t>, around: &Around, then: &str) {
        let parts = children(node);
        let at = parts.iter().position(|part| part.kind() == then).unwrap_or(parts.len());
        let named = |parts: &[Node<'t>]| -> Vec<Node<'t>> {
            parts.iter().filter(|part| part.is_named()).copied().collect()
        };
        self.sequence(&named(&parts[..at]), &around.with(Status::Tested));
        let inside = Around { conditional: true, ..around.clone() };
        self.sequence(&named(&parts[at..]), &inside);
    }
}

/// Whether a command does nothing and always succeeds.
fn is_true(text: &str) -> bool {
    matches!(text.trim(), "true" | ":" | "/bin/true" | "/usr/bin/true")
}
