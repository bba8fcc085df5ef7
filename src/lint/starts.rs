//! Whether a command runs the solver's code. That is a file below a root which is started, or given
//! to an interpreter. A tool that only reads such a file does not run it, e.g. `jq . /app/x.json`.

use super::programs::{base_name, is_python, program};
use super::python_starts::starts_of_solver;
use super::python_values::{CONTENT, COPY, UNKNOWN};
use super::shell::{Command, commands};

/// Maximum number of nested programs that are followed, e.g. `xargs bash -c "python3 …"`.
const DEPTH: u32 = 4;
/// Programs that run code of a folder's project, e.g. `make -C /app`.
const BUILDERS: [&str; 29] = [
    "make",
    "gmake",
    "ninja",
    "cmake",
    "ctest",
    "meson",
    "tox",
    "nox",
    "mvn",
    "mvnw",
    "gradle",
    "gradlew",
    "rake",
    "ant",
    "sbt",
    "just",
    "bazel",
    "pytest",
    "py.test",
    "pytest-3",
    "nosetests",
    "nose2",
    "npx",
    "bundle",
    "bats",
    "phpunit",
    "rspec",
    "jest",
    "mocha",
];
/// Programs that run code of the project only with one of these words. E.g. `go vet` only reads it.
const BUILDERS_BY_VERB: [(&[&str], &[&str]); 5] = [
    (&["cargo"], &["build", "run", "test", "check", "bench", "clippy", "nextest", "install"]),
    (&["go"], &["run", "test", "generate"]),
    (&["npm", "yarn", "pnpm", "bun"], &["run", "test", "t", "start", "install", "i", "ci", "exec", "build"]),
    (&["pip", "pip3"], &["install", "wheel", "download"]),
    (&["uv", "poetry", "composer", "dotnet", "deno"], &["run", "test", "install", "build", "sync"]),
];
/// Modules of `python -m` that run the files given to them.
const MODULES: [&str; 17] = [
    "pytest", "py.test", "unittest", "nose", "nose2", "doctest", "runpy", "cProfile", "profile", "pdb",
    "trace", "coverage", "pip", "build", "tox", "timeit", "IPython",
];
/// Interpreters, and the letters of their options that take program text, e.g. `perl -e`.
const INTERPRETERS: [(&[&str], &str); 9] = [
    (&["perl"], "eE"),
    (&["ruby"], "e"),
    (&["node", "nodejs", "bun"], "ep"),
    (&["php"], "rBRE"),
    (&["lua", "luajit"], ""),
    (&["Rscript", "julia"], "e"),
    (&["guile"], "c"),
    (&["tclsh", "wish", "expect"], "c"),
    (&["busybox"], ""),
];
/// Options of interpreters that check a program without running it, e.g. `php -l`.
const ONLY_READS: [(&[&str], &[&str]); 3] =
    [(&["ruby"], &["-c"]), (&["node", "nodejs"], &["--check", "-c"]), (&["php"], &["-l"])];
const SHELLS: [&str; 6] = ["bash", "sh", "dash", "zsh", "ksh", "ash"];
/// Environment variables that make a program load code.
const LOADING: [&str; 7] =
    ["PYTHONPATH", "PYTHONSTARTUP", "PERL5LIB", "RUBYLIB", "NODE_PATH", "BASH_ENV", "LD_PRELOAD"];

/// Whether the variable makes programs load code from the path in its value.
pub(super) fn is_loading(name: &str) -> bool {
    LOADING.contains(&name)
}

/// The roots: the folders with the solver's files.
pub(super) struct Roots<'a>(pub(super) Vec<&'a str>);

impl Roots<'_> {
    /// Whether a path leads to a file below a root, or to the tests' copy of it.
    pub(super) fn hold(&self, path: &str) -> bool {
        let path = path.trim_matches(['"', '\'']);
        let below = |root: &&str| {
            let rest = path.strip_prefix(root.trim_end_matches('/'));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        path.starts_with(COPY) || self.0.iter().any(below)
    }

    /// Whether a text comes from a file of the solver's.
    pub(super) fn wrote(&self, text: &str) -> bool {
        let mut contents = text.split(CONTENT);
        contents.next();
        contents.any(|path| self.hold(path))
    }
}

/// Working folder, standard input and nesting of a started program.
#[derive(Clone, Default)]
pub(super) struct Around {
    pub(super) folder: Option<String>,
    /// Whether its standard input is a text of the solver's.
    pub(super) input: bool,
    pub(super) depth: u32,
}

/// Whether a shell text runs the solver's code.
pub(super) fn shell_runs(text: &str, around: &Around, roots: &Roots<'_>) -> bool {
    // The solver's text is part of this text, e.g. `echo $(…)`.
    if around.depth > DEPTH || roots.wrote(text) {
        return around.depth <= DEPTH;
    }
    let mut around = Around { depth: around.depth + 1, ..around.clone() };
    let mut piped = false;
    for command in commands(text) {
        let words = command.program();
        let read = command.reads.iter().any(|file| roots.hold(&in_folder(file, &around)));
        let here = Around { input: around.input || read || piped, ..around.clone() };
        let sources = matches!(command.name(), "source" | ".")
            && words.get(1).is_some_and(|file| roots.hold(&in_folder(file, &around)));
        // The commands of an inner shell are in the list as well.
        if sources || (!has_text(&command) && words_run(&command.words, &here, roots)) {
            return true;
        }
        if command.name() == "cd" && !command.captured {
            around.folder = words.get(1).map(|folder| in_folder(folder, &around));
        }
        // `cat /app/x.sh
        // bash`.
        piped = command.captured
            && command.name() == "cat"
            && words.iter().any(|word| roots.hold(&in_folder(word, &around)));
    }
    false
}

/// Whether a shell gets its script as a text: `bash -c "…"`, or a here-document.
fn has_text(command: &Command) -> bool {
    SHELLS.contains(&command.name())
        && (text_of_shell(command.program()).is_some() || command.input.is_some())
}

/// The word after `-c`, `-lc` and the like.
fn text_of_shell(words: &[String]) -> Option<&String> {
    let takes_text = |word: &String| word.starts_with('-') && !word.starts_with("--") && word.ends_with('c');
    words.get(words.iter().position(takes_text)? + 1)
}

/// The path that a word names, resolved against the program's working folder.
fn in_folder(word: &str, around: &Around) -> String {
    match &around.folder {
        Some(folder) if !word.starts_with(['/', COPY, UNKNOWN, CONTENT, '-', '$', '~']) => {
            format!("{}/{}", folder.trim_end_matches('/'), word.trim_start_matches("./"))
        }
        _ => word.to_owned(),
    }
}

/// Whether the words of a command run the solver's code.
pub(super) fn words_run(words: &[String], around: &Around, roots: &Roots<'_>) -> bool {
    let loads = words
        .iter()
        .any(|word| word.split_once('=').is_some_and(|(name, value)| is_loading(name) && roots.hold(value)));
    let words = program(words);
    let Some((first, rest)) = words.split_first().filter(|_| around.depth <= DEPTH) else { return false };
    let holds = |word: &str| roots.hold(&in_folder(word, around));
    // A name without a slash is looked up in PATH, and not in the working folder.
    if loads || (first.contains('/') && holds(first)) {
        return true;
    }
    let name = base_name(first);
    let deeper = Around { depth: around.depth + 1, ..around.clone() };
    let here = around.folder.as_deref().is_some_and(|folder| roots.hold(folder));
    let given = || rest.iter().any(|word| holds(word) || roots.hold(value(word)));
    let has = |verbs: &[&str]| rest.iter().any(|word| verbs.contains(&word.as_str()));
    if SHELLS.contains(&name) {
        return shell(rest, &deeper, roots, &holds);
    }
    if is_python(name) {
        return python(rest, around, here, roots, &holds);
    }
    if let Some((_, letters)) = INTERPRETERS.iter().find(|(names, _)| names.contains(&name)) {
        let reads = ONLY_READS.iter().any(|(names, options)| names.contains(&name) && has(options));
        if name == "busybox" {
            return words_run(rest, &deeper, roots);
        }
        return !reads && interpreter(rest, letters, around, roots, &holds);
    }
    let by_verb = BUILDERS_BY_VERB.iter().any(|(names, verbs)| names.contains(&name) && has(verbs));
    if BUILDERS.contains(&name) || by_verb {
        return (here || given() || around.input) && !has(&["--version", "--help"]);
    }
    match name {
        // Their own language can start programs.
        "awk" | "gawk" | "mawk" | "nawk" | "sed" => {
            let file = |pair: &[String]| {
                matches!(pair[0].as_str(), "-f" | "--file" | "-i" | "-E" | "-l") && holds(&pair[1])
            };
            let takes_file = name != "sed" || !has(&["--sandbox"]);
            // `sed -i` changes the file, it does not run it.
            let by_option = rest
                .windows(2)
                .any(|pair| file(pair) && (name != "sed" || matches!(pair[0].as_str(), "-f" | "--file")));
            let joined = rest.iter().any(|word| {
                let value = word.strip_prefix("--file=").or_else(|| word.strip_prefix("-f"));
                value.is_some_and(&holds)
            });
            takes_file && (by_option || joined || rest.iter().any(|word| roots.wrote(word)))
        }
        // sqlite3's scripts can start programs with `.shell`.
        "sqlite3" => {
            let reads = rest.iter().any(|word| {
                let file = word.trim_start().strip_prefix(".read ");
                roots.wrote(word) || file.is_some_and(|file| holds(file.trim()))
            });
            let by_init = rest.windows(2).any(|pair| pair[0].ends_with("-init") && holds(&pair[1]));
            !has(&["-safe", "--safe"]) && (reads || by_init || around.input)
        }
        "xargs" | "strace" | "ltrace" | "valgrind" => {
            let at = rest.iter().position(|word| {
                let name = base_name(word);
                SHELLS.contains(&name)
                    || is_python(name)
                    || INTERPRETERS.iter().any(|it| it.0.contains(&name))
            });
            at.is_some_and(|at| words_run(&rest[at..], &deeper, roots))
        }
        "find" => {
            let at = rest.iter().position(|word| matches!(word.as_str(), "-exec" | "-execdir" | "-ok"));
            let found = |word: &String| if word == "{}" { rest[0].clone() } else { word.clone() };
            at.is_some_and(|at| {
                let inner: Vec<_> = rest[at + 1..].iter().map(found).collect();
                words_run(&inner, &deeper, roots)
            })
        }
        _ => false,
    }
}

/// The value in an option, e.g. `/app` in `--directory=/app` and `-C/app`.
fn value(option: &str) -> &str {
    match option.split_once('=') {
        Some((_, value)) => value,
        None if option.starts_with('-') => option.find(['/', COPY]).map_or("", |at| &option[at..]),
        None => "",
    }
}

fn shell(rest: &[String], around: &Around, roots: &Roots<'_>, holds: &dyn Fn(&str) -> bool) -> bool {
    if let Some(text) = text_of_shell(rest) {
        return shell_runs(text, around, roots);
    }
    match rest.iter().find(|word| !word.starts_with(['-', '+'])) {
        // With `-n` the shell only checks the script.
        Some(script) => holds(script) && !rest.iter().any(|word| word == "-n"),
        None => around.input,
    }
}

fn python(
    rest: &[String],
    around: &Around,
    here: bool,
    roots: &Roots<'_>,
    holds: &dyn Fn(&str) -> bool,
) -> bool {
    let mut isolated = false;
    let mut left = rest.iter();
    while let Some(word) = left.next() {
        let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) else {
            return if word == "-" { around.input } else { holds(word) };
        };
        if letters.starts_with(['W', 'X']) {
            if letters.len() == 1 {
                left.next();
            }
            continue;
        }
        let text = (!letters.starts_with('-')).then(|| letters.find(['c', 'm'])).flatten();
        let flags = &letters[..text.unwrap_or(letters.len())];
        isolated |= !letters.starts_with('-') && flags.contains(['I', 'P']);
        let Some(at) = text else { continue };
        let joined = &letters[at + 1..];
        let program = if joined.is_empty() { left.next().map_or("", String::as_str) } else { joined };
        // Modules in the working folder take precedence over those of the library.
        let shadowed = here && !isolated;
        if letters[at..].starts_with('m') {
            let mut words = left;
            return shadowed || (MODULES.contains(&program) && words.any(|word| holds(word)));
        }
        return roots.wrote(program)
            || (shadowed && program.contains("import"))
            || (around.depth < DEPTH && !starts_of_solver(program, roots, around.depth + 1).is_empty());
    }
    around.input
}

/// Whether another interpreter runs the solver's code. `letters` are those of the options that take
/// program text.
fn interpreter(
    rest: &[String],
    letters: &str,
    around: &Around,
    roots: &Roots<'_>,
    holds: &dyn Fn(&str) -> bool,
) -> bool {
    let long = ["--eval", "--print"];
    for (at, word) in rest.iter().enumerate() {
        if !word.starts_with('-') {
            return holds(word);
        }
        let cluster =
            !word.starts_with("--") && !letters.is_empty() && word.ends_with(|c| letters.contains(c));
        if cluster || long.contains(&word.as_str()) {
            return rest.get(at + 1).is_some_and(|text| roots.wrote(text));
        }
        // `perl -I/app/lib` or `ruby -r/app/x`.
        if roots.hold(value(word)) {
            return true;
        }
    }
    around.input
}
