//! Calls in a Python module that run the solver's code, in its own process or in another one.

use tree_sitter::Node;

use super::python::{called, field};
use super::python_values::{Names, Value, arguments};
use super::starts::{Around, Roots, is_loading, shell_runs, words_run};
use crate::syntax::{Grammar, descendants, line, parse, text_of};

/// Functions that start a program, given by words or a path.
const PROGRAMS: [&str; 6] = [
    "subprocess.run",
    "subprocess.call",
    "subprocess.check_call",
    "subprocess.check_output",
    "subprocess.Popen",
    "asyncio.create_subprocess_exec",
];
/// Functions that pass a text to a shell.
const SHELLS: [&str; 5] = [
    "os.system",
    "os.popen",
    "subprocess.getoutput",
    "subprocess.getstatusoutput",
    "asyncio.create_subprocess_shell",
];
/// Functions that load code from a file, or add a folder to the module search path.
const LOADERS: [&str; 21] = [
    "runpy.run_path",
    "importlib.util.spec_from_file_location",
    "importlib.machinery.SourceFileLoader",
    "importlib.machinery.SourcelessFileLoader",
    "importlib.machinery.ExtensionFileLoader",
    "imp.load_source",
    "imp.load_dynamic",
    "zipimport.zipimporter",
    "site.addsitedir",
    "sys.path.insert",
    "sys.path.append",
    "sys.path.extend",
    "monkeypatch.syspath_prepend",
    "ctypes.CDLL",
    "ctypes.PyDLL",
    "ctypes.cdll.LoadLibrary",
    "shelve.open",
    "joblib.load",
    "pandas.read_pickle",
    "dill.load",
    "cloudpickle.load",
];
/// Functions that run a text as code, or read a data format that can name code (e.g. pickle).
const EVALUATORS: [&str; 10] = [
    "exec",
    "eval",
    "builtins.exec",
    "builtins.eval",
    "pickle.load",
    "pickle.loads",
    "dill.loads",
    "cloudpickle.loads",
    "yaml.unsafe_load",
    "runpy._run_code",
];

/// Lines and descriptions of calls that run the solver's code. `depth` counts modules inside
/// modules, e.g. `["python3", "-c", "exec(open('/app/x.py').read())"]`.
pub(super) fn starts_of_solver(text: &str, roots: &Roots<'_>, depth: u32) -> Vec<(u32, String)> {
    let Some(tree) = parse(Grammar::Python, text) else { return Vec::new() };
    let names = Names::of(tree.root_node(), text);
    let module = Module { names: &names, text, roots, depth };
    let mut found: Vec<(u32, String)> = Vec::new();
    for (node, scope) in &names.nodes {
        let what = match node.kind() {
            "call" => module.call(*node, *scope),
            "assignment" | "augmented_assignment" => module.search_path(*node, *scope),
            _ => None,
        };
        found.extend(what.map(|what| (line(*node), what)));
    }
    found
}

struct Module<'m, 't, 'a> {
    names: &'m Names<'t, 'a>,
    text: &'a str,
    roots: &'m Roots<'m>,
    depth: u32,
}

impl Module<'_, '_, '_> {
    fn call(&self, call: Node<'_>, scope: usize) -> Option<String> {
        let name = called(call, self.text);
        let whole = self.names.whole_name(name);
        let given = arguments(call);
        let at =
            |place: usize| given.get(place).copied().filter(|argument| argument.kind() != "keyword_argument");
        let named = |name: &str| {
            let found = given.iter().find(|argument| field(**argument, "name", self.text) == Some(name))?;
            found.child_by_field_name("value")
        };
        let values =
            |node: Option<Node<'_>>| node.map(|node| self.names.values(node, scope)).unwrap_or_default();
        let starts = match whole.as_str() {
            name if PROGRAMS.contains(&name) => {
                let shell = named("shell").is_some_and(|shell| text_of(shell, self.text) == "True");
                let mut commands = values(at(0).or_else(|| named("args")));
                if name.starts_with("asyncio") {
                    let words = given.iter().flat_map(|word| self.names.values(*word, scope));
                    commands = vec![Value::Words(words.filter_map(text).collect())];
                }
                let around = self.around(values(named("cwd")), [named("input"), named("stdin")], scope, call);
                self.loads(named("env"), scope)
                    || values(named("executable")).into_iter().filter_map(text).any(|it| self.roots.hold(&it))
                    || commands.into_iter().any(|command| self.command(command, shell, &around))
            }
            // It runs one of the tests' own programs with a time limit.
            "patience.run_within" => {
                let around = self.around(values(named("cwd")), [named("input"), named("stdin")], scope, call);
                values(at(1)).into_iter().any(|command| self.command(command, false, &around))
            }
            name if SHELLS.contains(&name) => {
                let around = self.around(Vec::new(), [None, None], scope, call);
                values(at(0)).into_iter().any(|command| self.command(command, true, &around))
            }
            "pexpect.spawn" | "pexpect.run" | "pty.spawn" => {
                let around = self.around(values(named("cwd")), [None, None], scope, call);
                values(at(0)).into_iter().any(|command| self.command(command, true, &around))
            }
            name if is_exec(name) => {
                let from = usize::from(name.starts_with("os.spawn"));
                let around = self.around(Vec::new(), [None, None], scope, call);
                let program = values(at(from)).into_iter().find_map(text).unwrap_or_default();
                let listed = given.iter().skip(from + 1).flat_map(|words| self.names.values(*words, scope));
                // The first word is only the name that the program sees.
                let words = listed.flat_map(|value| match value {
                    Value::Words(words) => words,
                    Value::Text(text) => vec![text],
                });
                let words: Vec<_> = std::iter::once(program).chain(words.skip(1)).collect();
                words_run(&words, &around, self.roots)
            }
            name if LOADERS.contains(&name) || name.ends_with(".load_extension") => {
                given.iter().any(|argument| self.leads(*argument, scope))
            }
            name if EVALUATORS.contains(&name) => {
                values(at(0)).into_iter().filter_map(text).any(|text| self.roots.wrote(&text))
            }
            _ => false,
        };
        starts.then(|| format!("`{name}` runs the solver's code as the user of the tests"))
    }

    /// `sys.path[:0] = ["/app"]` or `sys.path += ["/app"]`.
    fn search_path(&self, assignment: Node<'_>, scope: usize) -> Option<String> {
        let left = field(assignment, "left", self.text).filter(|left| left.starts_with("sys.path"))?;
        let right = assignment.child_by_field_name("right")?;
        let is_path = left == "sys.path" || left.starts_with("sys.path[");
        (is_path && self.leads(right, scope)).then(|| "the tests import modules of the solver's".to_owned())
    }

    /// Whether a value is a path of the solver's, a list with such a path, or the content of such a
    /// file.
    fn leads(&self, node: Node<'_>, scope: usize) -> bool {
        let leads = |text: &String| self.roots.hold(text) || self.roots.wrote(text);
        self.names.values(node, scope).iter().any(|value| match value {
            Value::Text(text) => leads(text),
            Value::Words(words) => words.iter().any(leads),
        })
    }

    fn command(&self, command: Value, shell: bool, around: &Around) -> bool {
        match command {
            Value::Text(text) if shell => shell_runs(&text, around, self.roots),
            Value::Text(text) => words_run(&[text], around, self.roots),
            Value::Words(words) if shell => {
                words.first().is_some_and(|text| shell_runs(text, around, self.roots))
            }
            Value::Words(words) => words_run(&words, around, self.roots),
        }
    }

    fn around(
        &self,
        folders: Vec<Value>,
        inputs: [Option<Node<'_>>; 2],
        scope: usize,
        call: Node<'_>,
    ) -> Around {
        let folder = folders.into_iter().find_map(text).or_else(|| self.folder_before(call, scope));
        let mut texts = inputs.into_iter().flatten().flat_map(|node| self.names.values(node, scope));
        let input = texts.any(|value| text(value).is_some_and(|text| self.roots.wrote(&text)));
        Around { folder, input, depth: self.depth }
    }

    /// The working folder after `os.chdir` earlier in the same function.
    fn folder_before(&self, call: Node<'_>, scope: usize) -> Option<String> {
        let before = self.names.nodes.iter().take_while(|(node, _)| node.start_byte() < call.start_byte());
        let changes = before.filter(|(node, place)| {
            *place == scope
                && node.kind() == "call"
                && matches!(
                    self.names.whole_name(called(*node, self.text)).as_str(),
                    "os.chdir" | "monkeypatch.chdir"
                )
        });
        let (node, _) = changes.last()?;
        self.names.values(*arguments(*node).first()?, scope).into_iter().find_map(text)
    }

    /// Whether an environment sets a variable that makes programs load the solver's code, e.g.
    /// `PYTHONPATH`.
    fn loads(&self, env: Option<Node<'_>>, scope: usize) -> bool {
        let pairs = env.into_iter().flat_map(descendants).filter(|node| node.kind() == "pair");
        pairs.into_iter().any(|pair| {
            let part = |name: &str| pair.child_by_field_name(name);
            let name = part("key").and_then(|key| self.names.values(key, scope).into_iter().find_map(text));
            name.is_some_and(|name| is_loading(&name))
                && part("value").is_some_and(|value| self.leads(value, scope))
        })
    }
}

fn text(value: Value) -> Option<String> {
    match value {
        Value::Text(text) => Some(text),
        Value::Words(_) => None,
    }
}

fn is_exec(name: &str) -> bool {
    let ends = ["exec", "spawn", "posix_spawn"];
    name.strip_prefix("os.").is_some_and(|name| ends.iter().any(|start| name.starts_with(start)))
}
