//! Rules about downloads while a task is built or judged.

use crate::lint::linted_task::{LintedTask, in_solution, in_tests};
use crate::lint::programs::{base_name, is_python, launched, program};
use crate::lint::python::module;
use crate::lint::rule::RuleMatch;
use crate::lint::shell;
use crate::syntax::dockerfile::instructions;

/// Programs that download, each with the arguments that make it do so. No arguments means always.
const DOWNLOADS: [(&str, &[&str]); 3] = [("curl", &[]), ("wget", &[]), ("git", &["clone", "fetch", "pull"])];
const INSTALLERS: [(&str, &[&str]); 12] = [
    ("pip", &["install", "download"]),
    ("pip3", &["install", "download"]),
    // `uv run` installs the packages after `--with`.
    ("uv", &["add", "sync", "install", "--with", "--with-requirements", "--with-editable", "-w"]),
    ("uvx", &[]),
    ("apt-get", &["install", "update"]),
    ("apt", &["install", "update"]),
    ("apk", &["add"]),
    ("npm", &["install", "ci", "i"]),
    ("npx", &[]),
    ("cargo", &["install"]),
    ("gem", &["install"]),
    ("conda", &["install"]),
];
/// Options that keep an installer off the network.
const OFFLINE: [&str; 4] = ["--no-index", "--offline", "--dry-run", "--version"];
/// Names of the local host.
const LOCAL: [&str; 4] = ["localhost", "127.0.0.1", "0.0.0.0", "[::1]"];
/// Options of pip and uv whose value is not a package.
const WITH_WORD: [&str; 14] = [
    "-r",
    "--requirement",
    "-c",
    "--constraint",
    "-i",
    "--index-url",
    "--extra-index-url",
    "-f",
    "--find-links",
    "-t",
    "--target",
    "-p",
    "--python",
    "--prefix",
];

/// The commands of a shell text: line number and words.
fn commands(text: &str) -> Vec<(u32, Vec<String>)> {
    shell::commands(text).into_iter().map(|command| (command.line, command.words)).collect()
}

/// The program that the words run, and its arguments. `python -m pip` counts as `pip`.
fn called(words: &[String]) -> Option<(&str, &[String])> {
    let (first, rest) = program(words).split_first()?;
    let behind_python = |rest: &'_ [String]| rest.iter().position(|word| word == "-m").filter(|at| *at <= 2);
    let at = if is_python(base_name(first)) { behind_python(rest) } else { None };
    match at {
        Some(at) => rest.get(at + 1).map(|module| (module.as_str(), &rest[at + 2..])),
        // The words of a list in Python, e.g. `[sys.executable, "-m", "pip"]`.
        None if first == "-m" => rest.split_first().map(|(module, rest)| (module.as_str(), rest)),
        None => Some((base_name(first), rest)),
    }
}

fn runs_any(words: &[String], table: &[(&str, &[&str])]) -> Option<String> {
    let (name, rest) = called(words)?;
    if let Some(inner) = launched(name, rest)
        && let Some(found) = runs_any(inner, table)
    {
        return Some(found);
    }
    let (_, needed) = table.iter().find(|(program, _)| *program == name)?;
    if rest.iter().any(|word| OFFLINE.contains(&word.as_str())) {
        return None;
    }
    // A request to the task's own service is no download.
    if rest.iter().any(|word| LOCAL.iter().any(|host| word.contains(host))) {
        return None;
    }
    if matches!(name, "curl" | "wget") {
        return rest.iter().any(|word| is_remote(word) || is_host(word)).then(|| name.to_owned());
    }
    let source = rest.iter().skip(1).find(|word| !word.starts_with('-'));
    if name == "git"
        && source.is_some_and(|word| word.starts_with(['/', '.', '$', '~']) || word.starts_with("file:"))
    {
        return None;
    }
    let needs =
        |word: &String| needed.contains(&word.split_once('=').map_or(word.as_str(), |(word, _)| word));
    (needed.is_empty() || rest.iter().any(needs)).then(|| name.to_owned())
}

/// Matches in the verifier's scripts, and in the commands that its Python code starts.
fn in_verifier(task: &LintedTask<'_>, table: &[(&str, &[&str])], what: &str) -> Vec<RuleMatch> {
    let mut matches: Vec<RuleMatch> = Vec::new();
    for (path, text) in task.texts(|path| in_tests(path) && path.ends_with(".sh")) {
        for (line, words) in commands(text) {
            if let Some(name) = runs_any(&words, table) {
                matches.push(RuleMatch::at(path, line, format!("`{name}` {what} while the tests run")));
            }
        }
    }
    for (path, text) in task.texts(|path| in_tests(path) && path.ends_with(".py")) {
        for call in module(text).programs {
            for (_, words) in commands(&call.words) {
                if let Some(name) = runs_any(&words, table) {
                    matches.push(RuleMatch::at(
                        path,
                        call.line,
                        format!("`{name}` {what} while the tests run"),
                    ));
                }
            }
        }
    }
    matches.dedup();
    matches
}

pub(in crate::lint) fn verifier_download(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    let mut matches = in_verifier(task, &DOWNLOADS, "downloads something");
    for python in shell::pythons(task.texts(in_tests)) {
        let fetches = module(&python.text).fetches.into_iter();
        matches.extend(fetches.filter(|fetch| fetch.url.is_none_or(is_remote)).map(|fetch| {
            let message = format!("`{}` downloads something while the tests run", fetch.call);
            RuleMatch::at(python.file, python.before + fetch.line, message)
        }));
    }
    matches
}

/// Whether a word is the name of a host without a scheme, e.g. `get.example.com/x`.
fn is_host(word: &str) -> bool {
    const DOMAINS: [&str; 8] = ["com", "org", "net", "io", "dev", "sh", "ai", "co"];
    let name = word.split('/').next().unwrap_or_default();
    let plain = |char: char| char.is_ascii_alphanumeric() || "-.".contains(char);
    // `install.sh` is a file, although `sh` is a top-level domain.
    let end = name.rsplit_once('.').filter(|(_, end)| *end != "sh" || word.contains('/'));
    name.chars().all(plain) && end.is_some_and(|(_, end)| DOMAINS.contains(&end))
}

/// Whether a URL leads to another host. False for this machine, a service of the task, or a private
/// address.
fn is_remote(url: &str) -> bool {
    let Some((_, rest)) =
        url.split_once("://").filter(|(scheme, _)| matches!(*scheme, "http" | "https" | "ftp"))
    else {
        return false;
    };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or_default();
    let name = host.split(':').next().unwrap_or_default();
    let is_private =
        ["127.", "10.", "192.168.", "0.", "169.254."].iter().any(|start| name.starts_with(start))
            || [".local", ".internal", ".localhost", ".test"].iter().any(|end| name.ends_with(end));
    name.contains('.') && !name.contains('{') && !is_private
}

pub(in crate::lint) fn trial_fetch(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    const TABLES: [&[(&str, &[&str])]; 2] = [&DOWNLOADS, &INSTALLERS];
    let mut matches = Vec::new();
    for (path, text) in task.solution_scripts() {
        for (line, words) in commands(text) {
            let found = TABLES.iter().any(|table| runs_any(&words, table).is_some());
            let names_url = || words.iter().any(|word| word.contains("://") || word.starts_with("git@"));
            let asks_only = matches!(called(&words), Some(("curl" | "wget" | "git", _))) && !names_url();
            if found && !asks_only {
                matches.push(RuleMatch::at(path, line, "the reference downloads something"));
            }
        }
    }
    matches.dedup();
    matches
}

pub(in crate::lint) fn verifier_install(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    in_verifier(task, &INSTALLERS, "installs something")
}

pub(in crate::lint) fn unpinned_python(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    let mut matches = Vec::new();
    let looked = |path: &str| {
        path.ends_with("Dockerfile") || (path.ends_with(".sh") && (in_tests(path) || in_solution(path)))
    };
    for (path, text) in task.texts(looked) {
        let found = if path.ends_with("Dockerfile") { built(text) } else { commands(text) };
        for (line, words) in found {
            if let Some(package) = unpinned(&words) {
                matches.push(RuleMatch::at(
                    path,
                    line,
                    format!("`{package}` is installed in its newest version"),
                ));
            }
        }
    }
    matches
}

/// The commands of a Dockerfile, at the lines of their instructions.
fn built(text: &str) -> Vec<(u32, Vec<String>)> {
    let runs = instructions(text).into_iter().filter_map(|run| Some((run.line, run.script()?)));
    runs.flat_map(|(line, script)| commands(&script).into_iter().map(move |(_, words)| (line, words)))
        .collect()
}

/// The first package of a pip or uv command that has no version.
fn unpinned(words: &[String]) -> Option<&str> {
    let (name, rest) = called(words)?;
    let packages = match name {
        "pip" | "pip3" => &rest[rest.iter().position(|word| word == "install")? + 1..],
        "uv" => {
            let at = rest.iter().position(|word| word == "add" || word == "install")?;
            &rest[at + 1..]
        }
        "uvx" => return unpinned_uvx(rest),
        _ => return None,
    };
    let mut skip = false;
    packages.iter().map(String::as_str).find(|word| {
        let value = std::mem::replace(&mut skip, WITH_WORD.contains(word));
        !value && is_unpinned(word)
    })
}

/// The same for `uvx -p 3.13 -w pytest==8 pytest`. The packages after `-w` and `--from` need a
/// version. The program itself may come from one of them.
fn unpinned_uvx(words: &[String]) -> Option<&str> {
    let with: Vec<_> = words
        .windows(2)
        .filter(|pair| matches!(pair[0].as_str(), "-w" | "--with" | "--from"))
        .map(|pair| pair[1].as_str())
        .collect();
    let loose = with.iter().copied().find(|word| is_unpinned(word));
    let alone = || words.first().map(String::as_str).filter(|word| with.is_empty() && is_unpinned(word));
    loose.or_else(alone)
}

fn is_unpinned(word: &str) -> bool {
    let named = word.starts_with(|char: char| char.is_ascii_alphabetic());
    let file = [".whl", ".tar.gz", ".txt", ".zip"].iter().any(|ending| word.ends_with(ending));
    let place = word.contains("://") || word.contains('/') || word.contains('$') || word.contains('@');
    named && !file && !place && !word.contains("==")
}
