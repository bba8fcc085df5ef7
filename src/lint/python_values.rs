//! Possible values of the expressions in a Python module. They tell whether a test starts a file of
//! the solver's, e.g. by `["python3", str(path("/app/x.py"))]`.

use std::collections::{BTreeMap, BTreeSet};

use tree_sitter::Node;

use super::python::{called, field};
use crate::syntax::{named_children, text_of};

/// Stands for a part of a text that is unknown.
pub(super) const UNKNOWN: char = '\u{E000}';
/// Stands for the folder with the tests' copy of the solver's files. `path("/app/x")` is this and
/// `/app/x`.
pub(super) const COPY: char = '\u{E001}';
/// Marks the content of a file, e.g. of `read_text("/app/x")`. The path follows.
pub(super) const CONTENT: char = '\u{E002}';

/// Maximum number of values of one expression that are tracked.
const MOST_VALUES: usize = 6;
/// Maximum number of words of one list that are tracked.
const MOST_WORDS: usize = 64;
/// Maximum bytes of a text that are tracked.
const MOST_BYTES: usize = 1 << 15;
/// Maximum nesting of expressions that is followed.
const DEPTH: u32 = 40;
/// Passes over the module. Each pass carries a value through one more call or name.
const PASSES: usize = 3;
/// Stands for the name of a function's return value.
const RETURNED: &str = "return";

/// A possible value of an expression.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Value {
    Text(String),
    /// A list or a tuple.
    Words(Vec<String>),
}

impl Value {
    fn into_text(self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text),
            Self::Words(_) => None,
        }
    }
}

/// A node and the function that it belongs to. 0 is the module.
type Placed<'t> = (Node<'t>, usize);

struct Function<'a> {
    /// Id of the function in [`Placed`].
    scope: usize,
    /// Names of parameters, without `self`.
    parameters: Vec<&'a str>,
}

/// The names in a module, and their values.
pub(super) struct Names<'t, 'a> {
    text: &'a str,
    /// Local names and what they were imported from. E.g. `run` is `subprocess.run` or
    /// `subject.run`.
    imports: BTreeMap<String, String>,
    functions: BTreeMap<&'a str, Function<'a>>,
    values: BTreeMap<(usize, &'a str), BTreeSet<Value>>,
    pub(super) nodes: Vec<Placed<'t>>,
}

impl<'t, 'a> Names<'t, 'a> {
    pub(super) fn of(root: Node<'t>, text: &'a str) -> Self {
        let mut names = Self {
            text,
            imports: BTreeMap::new(),
            functions: BTreeMap::new(),
            values: BTreeMap::new(),
            nodes: Vec::new(),
        };
        let mut open: Vec<Placed<'t>> = vec![(root, 0)];
        while let Some((node, scope)) = open.pop() {
            let mut inner = scope;
            match node.kind() {
                "function_definition" => {
                    // An inner function sees the names of the outer one.
                    inner = if scope == 0 { node.end_byte() } else { scope };
                    names.declare(node, inner);
                }
                "import_statement" | "import_from_statement" => names.import(node),
                _ => {}
            }
            names.nodes.push((node, inner));
            open.extend(named_children(node).into_iter().rev().map(|child| (child, inner)));
        }
        let nodes = std::mem::take(&mut names.nodes);
        for _ in 0..PASSES {
            for (node, scope) in &nodes {
                names.bind(*node, *scope);
            }
        }
        names.nodes = nodes;
        names
    }

    fn declare(&mut self, function: Node<'t>, scope: usize) {
        let Some(name) = field(function, "name", self.text) else { return };
        let parameters = function.child_by_field_name("parameters").map(named_children).unwrap_or_default();
        let parameters = parameters.into_iter().filter_map(|parameter| match parameter.kind() {
            "identifier" | "list_splat_pattern" => Some(text_of(parameter, self.text)),
            "default_parameter" | "typed_default_parameter" => field(parameter, "name", self.text),
            "typed_parameter" => named_children(parameter).first().map(|name| text_of(*name, self.text)),
            _ => None,
        });
        let parameters = parameters.filter(|name| !matches!(*name, "self" | "cls")).collect();
        self.functions.insert(name, Function { scope, parameters });
    }

    fn import(&mut self, node: Node<'t>) {
        let module = field(node, "module_name", self.text);
        for part in named_children(node) {
            let (name, local) = match part.kind() {
                "aliased_import" => (field(part, "name", self.text), field(part, "alias", self.text)),
                "dotted_name" => (Some(text_of(part, self.text)), None),
                _ => continue,
            };
            let Some(name) = name else { continue };
            match (module, local) {
                (Some(module), _) if module == name => {}
                (Some(module), local) => {
                    self.imports.insert(local.unwrap_or(name).to_owned(), format!("{module}.{name}"));
                }
                (None, Some(local)) => {
                    self.imports.insert(local.to_owned(), name.to_owned());
                }
                (None, None) => {}
            }
        }
    }

    /// The full name of a called function. After `import subprocess as sp`, `sp.run` is
    /// `subprocess.run`.
    pub(super) fn whole_name(&self, name: &str) -> String {
        let (first, rest) = name.split_once('.').unwrap_or((name, ""));
        match self.imports.get(first) {
            Some(_) if self.functions.contains_key(name) => name.to_owned(),
            Some(imported) if rest.is_empty() => imported.clone(),
            Some(imported) => format!("{imported}.{rest}"),
            None => name.to_owned(),
        }
    }

    fn set(&mut self, scope: usize, name: &'a str, values: Vec<Value>) {
        if values.is_empty() {
            return;
        }
        let known = self.values.entry((scope, name)).or_default();
        for value in values {
            if known.len() < MOST_VALUES {
                known.insert(value);
            }
        }
    }

    /// Records the values of the names that a node assigns.
    fn bind(&mut self, node: Node<'t>, scope: usize) {
        let part = |name: &str| node.child_by_field_name(name);
        match node.kind() {
            "assignment" | "named_expression" => {
                let (left, right) = match node.kind() {
                    "assignment" => (part("left"), part("right")),
                    _ => (part("name"), part("value")),
                };
                if let (Some(left), Some(right)) = (left, right) {
                    let scope = if left.kind() == "attribute" { 0 } else { scope };
                    self.set(scope, text_of(left, self.text), self.values(right, scope));
                }
            }
            "default_parameter" | "typed_default_parameter" => {
                if let (Some(name), Some(value)) = (field(node, "name", self.text), part("value")) {
                    self.set(scope, name, self.values(value, 0));
                }
            }
            "for_statement" | "for_in_clause" => {
                if let (Some(left), Some(right)) = (part("left"), part("right"))
                    && left.kind() == "identifier"
                {
                    let words = self.values(right, scope).into_iter().flat_map(|value| match value {
                        Value::Words(words) => words.into_iter().map(Value::Text).collect(),
                        Value::Text(_) => Vec::new(),
                    });
                    let words = words.collect();
                    self.set(scope, text_of(left, self.text), words);
                }
            }
            // `with open(x) as file`.
            "as_pattern" => {
                if let [value, target] = named_children(node)[..] {
                    self.set(scope, text_of(target, self.text), self.values(value, scope));
                }
            }
            "return_statement" => {
                if let [value] = named_children(node)[..] {
                    self.set(scope, RETURNED, self.values(value, scope));
                }
            }
            "call" => self.bind_parameters(node, scope),
            _ => {}
        }
    }

    /// Records the arguments of a call as values of the function's parameters.
    fn bind_parameters(&mut self, call: Node<'t>, scope: usize) {
        let Some(function) = self.function(called(call, self.text)) else { return };
        let (inner, parameters) = (function.scope, function.parameters.clone());
        let mut at = 0;
        let mut rest = Vec::new();
        for argument in arguments(call) {
            if argument.kind() == "keyword_argument" {
                let value = argument.child_by_field_name("value");
                let name = parameters.iter().find(|name| field(argument, "name", self.text) == Some(**name));
                if let (Some(name), Some(value)) = (name, value) {
                    self.set(inner, name, self.values(value, scope));
                }
                continue;
            }
            match parameters.get(at) {
                Some(name) if name.starts_with('*') => rest.push(argument),
                Some(name) => {
                    self.set(inner, name, self.values(argument, scope));
                    at += 1;
                }
                None => {}
            }
        }
        if let Some(name) = parameters.get(at).and_then(|name| name.strip_prefix('*')) {
            self.set(inner, name, self.words(&rest, scope, DEPTH));
        }
    }

    fn function(&self, name: &str) -> Option<&Function<'a>> {
        self.functions.get(name.strip_prefix("self.").unwrap_or(name))
    }

    /// The possible values of an expression. Empty if nothing is known.
    pub(super) fn values(&self, node: Node<'_>, scope: usize) -> Vec<Value> {
        self.of_node(node, scope, DEPTH)
    }

    fn of_node(&self, node: Node<'_>, scope: usize, depth: u32) -> Vec<Value> {
        let Some(depth) = depth.checked_sub(1) else { return Vec::new() };
        let inner = |node: Node<'_>| self.of_node(node, scope, depth);
        let parts = || named_children(node);
        let mut found = match node.kind() {
            "string" => self.of_string(node, scope, depth),
            "concatenated_string" => {
                let parts: Vec<_> = parts().into_iter().map(|part| texts(inner(part))).collect();
                combined(&parts).into_iter().map(|parts| Value::Text(parts.concat())).collect()
            }
            "identifier" | "attribute" => self.of_name(node, scope, depth),
            "parenthesized_expression" | "await" | "boolean_operator" => {
                parts().into_iter().flat_map(inner).collect()
            }
            // The condition is the middle part.
            "conditional_expression" => match parts()[..] {
                [first, _, last] => [inner(first), inner(last)].concat(),
                _ => Vec::new(),
            },
            "named_expression" => node.child_by_field_name("value").map(inner).unwrap_or_default(),
            "binary_operator" => self.of_operator(node, scope, depth),
            "list" | "tuple" | "set" | "expression_list" => self.words(&parts(), scope, depth),
            "subscript" => self.of_subscript(node, scope, depth),
            "call" => self.of_call(node, scope, depth),
            _ => Vec::new(),
        };
        found.truncate(MOST_VALUES);
        for value in &mut found {
            match value {
                Value::Text(text) if text.len() > MOST_BYTES => *text = UNKNOWN.to_string(),
                Value::Words(words) => words.truncate(MOST_WORDS),
                Value::Text(_) => {}
            }
        }
        found
    }

    fn of_string(&self, node: Node<'_>, scope: usize, depth: u32) -> Vec<Value> {
        let raw = text_of(node, self.text).split(['"', '\'']).next().unwrap_or("").contains(['r', 'R']);
        let parts = named_children(node).into_iter().filter_map(|part| match part.kind() {
            "string_content" => {
                let content = text_of(part, self.text);
                Some(vec![if raw { content.to_owned() } else { unescaped(content) }])
            }
            "interpolation" => {
                let value = named_children(part).first().copied();
                Some(texts(value.map(|value| self.of_node(value, scope, depth)).unwrap_or_default()))
            }
            _ => None,
        });
        combined(&parts.collect::<Vec<_>>()).into_iter().map(|parts| Value::Text(parts.concat())).collect()
    }

    fn of_name(&self, node: Node<'_>, scope: usize, depth: u32) -> Vec<Value> {
        let name = text_of(node, self.text);
        let known = self.values.get(&(scope, name)).or_else(|| self.values.get(&(0, name)));
        if let Some(known) = known {
            return known.iter().cloned().collect();
        }
        match self.whole_name(name).as_str() {
            "subject.ROOT" => return vec![Value::Text(COPY.to_string())],
            "sys.executable" => return vec![Value::Text("python3".to_owned())],
            _ => {}
        }
        if field(node, "attribute", self.text) != Some("parent") {
            return Vec::new();
        }
        let object = node.child_by_field_name("object");
        let paths = object.map(|object| self.of_node(object, scope, depth)).unwrap_or_default();
        paths.into_iter().filter_map(Value::into_text).map(|path| Value::Text(parent(&path))).collect()
    }

    fn of_operator(&self, node: Node<'_>, scope: usize, depth: u32) -> Vec<Value> {
        let side = |name: &str| {
            let side = node.child_by_field_name(name);
            side.map(|side| self.of_node(side, scope, depth)).unwrap_or_default()
        };
        let (left, right) = (side("left"), side("right"));
        match field(node, "operator", self.text) {
            Some("/") => {
                let pairs = combined(&[texts(left), texts(right)]);
                pairs.iter().map(|parts| Value::Text(joined(parts))).collect()
            }
            Some("+") => {
                let lists = |values: &[Value]| -> Vec<Vec<String>> {
                    let lists = values.iter().filter_map(|value| match value {
                        Value::Words(words) => Some(words.clone()),
                        Value::Text(_) => None,
                    });
                    lists.collect()
                };
                let (before, after) = (lists(&left), lists(&right));
                if before.is_empty() && after.is_empty() {
                    let pairs = combined(&[texts(left), texts(right)]);
                    return pairs.iter().map(|parts| Value::Text(parts.concat())).collect();
                }
                let known = before.len().max(after.len());
                let pick = |lists: &[Vec<String>], at: usize| {
                    let last = lists.len().saturating_sub(1);
                    lists.get(at.min(last)).cloned().unwrap_or_else(|| vec![UNKNOWN.to_string()])
                };
                (0..known).map(|at| Value::Words([pick(&before, at), pick(&after, at)].concat())).collect()
            }
            Some("%") => {
                let given = right.into_iter().next().map(|value| match value {
                    Value::Words(words) => words,
                    Value::Text(text) => vec![text],
                });
                let given = given.unwrap_or_default();
                texts(left).iter().map(|text| Value::Text(filled(text, "%s", &given))).collect()
            }
            _ => Vec::new(),
        }
    }

    fn of_subscript(&self, node: Node<'_>, scope: usize, depth: u32) -> Vec<Value> {
        let object = field(node, "value", self.text).unwrap_or_default();
        let key = node.child_by_field_name("subscript");
        let keys = key.map(|key| self.of_node(key, scope, depth)).unwrap_or_default();
        if self.whole_name(object) == "os.environ" {
            return keys.into_iter().filter_map(variable).collect();
        }
        let place: Option<usize> = key.and_then(|key| text_of(key, self.text).parse().ok());
        let value = node.child_by_field_name("value");
        let values = value.map(|value| self.of_node(value, scope, depth)).unwrap_or_default();
        let elements = values.into_iter().filter_map(|value| match value {
            Value::Words(words) => words.get(place?).cloned().map(Value::Text),
            // A part of the solver's text is the solver's too.
            Value::Text(text) => text.starts_with(CONTENT).then_some(Value::Text(text)),
        });
        elements.collect()
    }

    fn of_call(&self, call: Node<'_>, scope: usize, depth: u32) -> Vec<Value> {
        let name = called(call, self.text);
        if let Some(function) = self.function(name) {
            let returned = self.values.get(&(function.scope, RETURNED));
            return returned.into_iter().flatten().cloned().collect();
        }
        let given: Vec<_> =
            arguments(call).into_iter().filter(|part| part.kind() != "keyword_argument").collect();
        let argument = |at: usize| -> Vec<Value> {
            given.get(at).map(|node| self.of_node(*node, scope, depth)).unwrap_or_default()
        };
        let all = || -> Vec<Vec<String>> {
            combined(&given.iter().map(|node| texts(self.of_node(*node, scope, depth))).collect::<Vec<_>>())
        };
        let first_texts = || argument(0).into_iter().filter_map(Value::into_text);
        match self.whole_name(name).as_str() {
            "subject.path" | "subject.lpath" => {
                let places = first_texts().map(|path| format!("{COPY}/{}", path.trim_start_matches('/')));
                return places.map(Value::Text).collect();
            }
            "subject.read_text" | "subject.read_bytes" => {
                return first_texts().map(|path| Value::Text(format!("{CONTENT}{COPY}{path}"))).collect();
            }
            "os.getenv" | "os.environ.get" => {
                return argument(0).into_iter().filter_map(variable).chain(argument(1)).collect();
            }
            "open" | "io.open" => return first_texts().filter_map(|path| content(&path)).collect(),
            "os.path.join" | "Path" | "pathlib.Path" | "PurePath" | "pathlib.PurePath" => {
                return all().iter().map(|parts| Value::Text(joined(parts))).collect();
            }
            "os.path.dirname" => return first_texts().map(|path| Value::Text(parent(&path))).collect(),
            "shlex.split" => return first_texts().map(|text| Value::Words(split(&text))).collect(),
            "os.path.abspath" | "os.path.realpath" | "os.path.normpath" | "os.fspath" | "os.fsencode"
            | "shlex.quote" | "str" | "bytes" | "list" | "tuple" | "sorted" | "compile" | "ast.parse"
            | "io.StringIO" | "io.BytesIO" | "textwrap.dedent" | "glob.glob" | "glob.iglob" => {
                let listed = name.ends_with("glob");
                return argument(0)
                    .into_iter()
                    .map(|value| match value {
                        Value::Text(text) if listed => Value::Words(vec![text]),
                        value => value,
                    })
                    .collect();
            }
            _ => {}
        }
        let function = call.child_by_field_name("function");
        let object = function.and_then(|function| function.child_by_field_name("object"));
        let Some((object, method)) =
            object.zip(function.and_then(|function| field(function, "attribute", self.text)))
        else {
            return Vec::new();
        };
        let objects = || self.of_node(object, scope, depth);
        let paths = || objects().into_iter().filter_map(Value::into_text);
        match method {
            "resolve" | "absolute" | "as_posix" | "expanduser" | "strip" | "rstrip" | "lstrip" | "encode"
            | "decode" | "removesuffix" | "replace" | "read" | "readlines" => objects(),
            "joinpath" => {
                let parts = all();
                let places = paths().flat_map(|path| {
                    let joined_to = |parts: &Vec<String>| Value::Text(format!("{path}/{}", joined(parts)));
                    parts.iter().map(joined_to).collect::<Vec<_>>()
                });
                places.collect()
            }
            "with_name" | "with_suffix" => {
                paths().map(|path| Value::Text(format!("{}/{UNKNOWN}", parent(&path)))).collect()
            }
            "glob" | "rglob" | "iterdir" => {
                paths().map(|path| Value::Words(vec![format!("{path}/{UNKNOWN}")])).collect()
            }
            "read_text" | "read_bytes" | "open" => paths().filter_map(|path| content(&path)).collect(),
            "split" if given.is_empty() => paths().map(|text| Value::Words(split(&text))).collect(),
            "join" => {
                let between = paths().next().unwrap_or_else(|| UNKNOWN.to_string());
                let lists = argument(0).into_iter().filter_map(|value| match value {
                    Value::Words(words) => Some(Value::Text(words.join(&between))),
                    Value::Text(_) => None,
                });
                lists.collect()
            }
            "format" => {
                let given = all().into_iter().next().unwrap_or_default();
                paths().map(|text| Value::Text(filled(&text, "{}", &given))).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The lists that the elements can make.
    fn words(&self, elements: &[Node<'_>], scope: usize, depth: u32) -> Vec<Value> {
        let elements = elements.iter().filter(|element| element.kind() != "comment").take(MOST_WORDS);
        let each = elements.map(|element| match element.kind() {
            "list_splat" => {
                let inner = named_children(*element).first().copied();
                let values = inner.map(|inner| self.of_node(inner, scope, depth)).unwrap_or_default();
                let lists = values.into_iter().filter_map(|value| match value {
                    Value::Words(words) => Some(words),
                    Value::Text(_) => None,
                });
                let lists: Vec<_> = lists.collect();
                if lists.is_empty() { vec![vec![UNKNOWN.to_string()]] } else { lists }
            }
            _ => texts(self.of_node(*element, scope, depth)).into_iter().map(|text| vec![text]).collect(),
        });
        combined(&each.collect::<Vec<_>>()).into_iter().map(|words| Value::Words(words.concat())).collect()
    }
}

/// The arguments of a call.
pub(super) fn arguments(call: Node<'_>) -> Vec<Node<'_>> {
    let arguments = call.child_by_field_name("arguments").map(named_children).unwrap_or_default();
    arguments.into_iter().filter(|argument| argument.kind() != "comment").collect()
}

/// The texts among the values. One unknown text if there is none.
fn texts(values: Vec<Value>) -> Vec<String> {
    let texts: Vec<_> = values.into_iter().filter_map(Value::into_text).collect();
    if texts.is_empty() { vec![UNKNOWN.to_string()] } else { texts }
}

/// Rows with one value of each part. There are as many rows as the longest part has values, and not
/// all combinations.
fn combined<T: Clone>(parts: &[Vec<T>]) -> Vec<Vec<T>> {
    let rows = parts.iter().map(Vec::len).max().unwrap_or(1).min(MOST_VALUES);
    let row = |at: usize| parts.iter().filter_map(|part| part.get(at).or(part.last()).cloned()).collect();
    (0..rows).map(row).collect()
}

/// A path made of parts. An absolute part replaces the parts before it, but not the copy's folder.
fn joined(parts: &[String]) -> String {
    let mut path = String::new();
    for part in parts {
        if path.is_empty() || part.starts_with(['/', COPY]) {
            path.clone_from(part);
        } else {
            path = format!("{}/{part}", path.trim_end_matches('/'));
        }
    }
    path
}

fn parent(path: &str) -> String {
    path.rsplit_once('/').map_or_else(|| UNKNOWN.to_string(), |(folder, _)| folder.to_owned())
}

/// Stands for the content of a file.
fn content(path: &str) -> Option<Value> {
    (!path.starts_with(UNKNOWN)).then(|| Value::Text(format!("{CONTENT}{path}")))
}

/// The value of an environment variable that run_checks.py sets.
fn variable(name: Value) -> Option<Value> {
    matches!(name, Value::Text(name) if name == "SUBJECT_ROOT").then(|| Value::Text(COPY.to_string()))
}

fn split(text: &str) -> Vec<String> {
    text.split_whitespace().map(|word| word.trim_matches(['"', '\'']).to_owned()).collect()
}

/// `text` with the given values in place of each `mark`.
fn filled(text: &str, mark: &str, given: &[String]) -> String {
    let mut parts = text.split(mark);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for (at, part) in parts.enumerate() {
        out.push_str(given.get(at).map_or("\u{E000}", String::as_str));
        out.push_str(part);
    }
    out
}

fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        match (char, char == '\\') {
            (_, true) => match chars.next() {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some('\n') | None => {}
                Some(other) => out.push(other),
            },
            (char, false) => out.push(char),
        }
    }
    out
}
