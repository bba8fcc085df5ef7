//! Downloads when a task is built or judged.

use crate::lint::python::module;
use crate::lint::rule::RuleMatch;
use crate::lint::subject::{Subject, in_solution, in_tests};

/// Programs that download, and the arguments with which they do.
const DOWNLOADS: [(&str, &[&str]); 3] = [("curl", &[]), ("wget", &[]), ("git", &["clone", "fetch", "pull"])];
const INSTALLERS: [(&str, &[&str]); 12] = [
    ("pip", &["install", "download"]),
    ("pip3", &["install", "download"]),
    ("uv", &[]),
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
/// Hosts that are local.
const LOCAL: [&str; 4] = ["localhost", "127.0.0.1", "0.0.0.0", "[::1]"];
/// Options of pip and uv whose argument is not a package.
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

/// Commands of a file, one a line: line number and words. Continued lines are joined; comments are left out.
fn commands(text: &str) -> Vec<(u32, Vec<String>)> {
    let mut found = Vec::new();
    let mut lines = text.lines().zip(1_u32..);
    while let Some((first, line)) = lines.next() {
        if first.trim_start().starts_with('#') {
            continue;
        }
        let mut whole = first.to_owned();
        while whole.ends_with('\\') {
            whole.pop();
            match lines.next() {
                Some((next, _)) => whole.push_str(next),
                None => break,
            }
        }
        for command in whole.split(['&', ';', '|', '(', ')', '`', '{', '}']) {
            let words: Vec<_> = command
                .split_whitespace()
                .map(|word| word.trim_matches(['"', '\'', ',', '[', ']']).to_owned())
                .take_while(|word| !word.starts_with('#'))
                .filter(|word| !word.is_empty())
                .collect();
            if !words.is_empty() {
                found.push((line, words));
            }
        }
    }
    found
}

/// Words that may precede a program's name.
fn program(words: &[String]) -> Option<(usize, &str)> {
    let prefix = |word: &str| {
        matches!(word, "RUN" | "sudo" | "exec" | "then" | "do" | "if" | "!" | "while" | "-m" | "env" | "time")
            || word.starts_with("python")
            || (word.contains('=') && !word.starts_with('='))
            || word.starts_with("--mount")
    };
    let at = words.iter().position(|word| !prefix(word))?;
    Some((at, words[at].rsplit('/').next().unwrap_or_default()))
}

fn runs_any(words: &[String], table: &[(&str, &[&str])]) -> Option<String> {
    let (at, name) = program(words)?;
    let (_, needed) = table.iter().find(|(program, _)| *program == name)?;
    let rest = &words[at + 1..];
    // A request to a service of the task is not a download.
    if rest.iter().any(|word| LOCAL.iter().any(|host| word.contains(host))) {
        return None;
    }
    (needed.is_empty() || rest.iter().any(|word| needed.contains(&word.as_str()))).then(|| name.to_owned())
}

/// Hits in the verifier's scripts, and in the lists and strings of commands that its Python starts.
fn in_verifier(subject: &Subject<'_>, table: &[(&str, &[&str])], what: &str) -> Vec<RuleMatch> {
    let mut matches: Vec<RuleMatch> = Vec::new();
    for (path, text) in subject.texts(|path| in_tests(path) && path.ends_with(".sh")) {
        for (line, words) in commands(text) {
            if let Some(name) = runs_any(&words, table) {
                matches.push(RuleMatch::at(path, line, format!("`{name}` {what} when the work is judged")));
            }
        }
    }
    for (path, text) in subject.texts(|path| in_tests(path) && path.ends_with(".py")) {
        for call in module(text).programs {
            for (_, words) in commands(&call.words) {
                if let Some(name) = runs_any(&words, table) {
                    matches.push(RuleMatch::at(
                        path,
                        call.line,
                        format!("`{name}` {what} when the work is judged"),
                    ));
                }
            }
        }
    }
    matches.dedup();
    matches
}

pub(in crate::lint) fn verifier_download(subject: &Subject<'_>) -> Vec<RuleMatch> {
    in_verifier(subject, &DOWNLOADS, "fetches something")
}

pub(in crate::lint) fn verifier_install(subject: &Subject<'_>) -> Vec<RuleMatch> {
    in_verifier(subject, &INSTALLERS, "installs something")
}

pub(in crate::lint) fn unpinned_python(subject: &Subject<'_>) -> Vec<RuleMatch> {
    let mut matches = Vec::new();
    let looked = |path: &str| {
        path.ends_with("Dockerfile") || (path.ends_with(".sh") && (in_tests(path) || in_solution(path)))
    };
    for (path, text) in subject.texts(looked) {
        for (line, words) in commands(text) {
            if let Some(package) = unpinned(&words) {
                matches.push(RuleMatch::at(
                    path,
                    line,
                    format!("`{package}` is installed in whatever version is newest"),
                ));
            }
        }
    }
    matches
}

/// The first package of a pip or uv command that names no version.
fn unpinned(words: &[String]) -> Option<&str> {
    let (at, name) = program(words)?;
    let rest = &words[at + 1..];
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

/// `uvx -p 3.13 -w pytest==8 pytest`: the arguments of `-w` and `--from` need a version; the program itself may be provided by them.
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
