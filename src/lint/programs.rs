//! The program that the words of a command run.

/// Programs that run another command, given after their own options.
const WRAPPERS: [&str; 17] = [
    "sudo", "exec", "env", "time", "timeout", "nohup", "nice", "ionice", "command", "builtin", "setsid",
    "stdbuf", "xvfb-run", "unbuffer", "taskset", "gosu", "faketime",
];
/// Options of wrappers and test runners that take the next word as their value.
const WITH_VALUE: [&str; 18] = [
    "-u",
    "-g",
    "-n",
    "-k",
    "-s",
    "-C",
    "-p",
    "-w",
    "-a",
    "--python",
    "--with",
    "--from",
    "--directory",
    "--project",
    "--with-requirements",
    "--with-editable",
    "--env-file",
    "--name",
];
/// Programs that only run tests.
const RUNNERS: [&str; 24] = [
    "pytest",
    "py.test",
    "pytest-3",
    "nosetests",
    "nose2",
    "tox",
    "nox",
    "ctest",
    "bats",
    "phpunit",
    "rspec",
    "jest",
    "vitest",
    "mocha",
    "ava",
    "shellspec",
    "prove",
    "busted",
    "ginkgo",
    "gotestsum",
    "stestr",
    "runtests",
    "trial",
    "lit",
];
/// Programs that run tests if one of these words is an argument.
const WITH_VERB: [(&[&str], &[&str]); 13] = [
    (&["cargo"], &["test", "nextest"]),
    (
        &[
            "go", "swift", "zig", "dotnet", "deno", "mix", "flutter", "dart", "forge", "stack", "cabal",
            "lein", "sbt",
        ],
        &["test"],
    ),
    (&["npm", "yarn", "pnpm", "bun"], &["test", "t"]),
    (&["node"], &["--test"]),
    (&["make", "gmake", "ninja"], &["test", "tests", "check"]),
    (&["mvn", "mvnw"], &["test", "verify"]),
    (&["gradle", "gradlew"], &["test", "check"]),
    (&["rake", "rails"], &["test", "spec"]),
    (&["bazel", "meson", "ant", "composer"], &["test"]),
    (&["dune"], &["test", "runtest"]),
    (&["crystal"], &["spec"]),
    (&["hatch"], &["test"]),
    (&["manage.py"], &["test"]),
];
/// Modules that run tests with `python -m`.
const MODULES: [&str; 9] =
    ["pytest", "py.test", "unittest", "nose", "nose2", "doctest", "tox", "xmlrunner", "twisted.trial"];
/// Programs that run another command, given after these words: `uv run`, `uvx`, `bundle exec`.
const LAUNCHERS: [(&str, &[&str]); 17] = [
    ("uv", &["run"]),
    ("uvx", &[]),
    ("pipx", &["run"]),
    ("poetry", &["run"]),
    ("pdm", &["run"]),
    ("hatch", &["run"]),
    ("pipenv", &["run"]),
    ("rye", &["run"]),
    ("conda", &["run"]),
    ("micromamba", &["run"]),
    ("npx", &[]),
    ("bunx", &[]),
    ("pnpm", &["exec", "dlx"]),
    ("yarn", &["exec", "dlx"]),
    ("npm", &["exec"]),
    ("bundle", &["exec"]),
    ("coverage", &["run"]),
];

/// The last part of a path.
pub(super) fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Name and arguments of a program. Prefixes such as `sudo`, `timeout 5` and `env A=b` are removed.
pub(super) fn program(words: &[String]) -> &[String] {
    let mut words = words;
    while let Some((first, mut rest)) = words.split_first() {
        let wrapper = base_name(first);
        if !WRAPPERS.contains(&wrapper) {
            break;
        }
        while let Some(word) = rest.first() {
            let own = word.starts_with('-') || (wrapper == "env" && word.contains('='));
            if !own {
                break;
            }
            let valued = WITH_VALUE.contains(&word.as_str()) && wrapper != "command" && wrapper != "time";
            rest = rest.get(if valued { 2.. } else { 1.. }).unwrap_or_default();
        }
        // These take one more word: a duration, processors, a user or a time.
        if matches!(wrapper, "timeout" | "taskset" | "gosu" | "faketime") {
            rest = rest.get(1..).unwrap_or_default();
        }
        words = rest;
    }
    words
}

/// Whether the words of a command run tests.
pub(super) fn is_test_run(words: &[String]) -> bool {
    let words = program(words);
    let Some((first, rest)) = words.split_first() else { return false };
    let name = base_name(first);
    let has = |verbs: &[&str]| rest.iter().any(|word| verbs.contains(&word.as_str()));
    if RUNNERS.contains(&name) {
        return !has(&["--version", "--help", "-V", "--collect-only", "--co"]);
    }
    if is_python(name) {
        return python_runs_tests(rest);
    }
    let script_of_packages = matches!(name, "npm" | "yarn" | "pnpm" | "bun")
        && rest.windows(2).any(|pair| pair[0] == "run" && pair[1].starts_with("test"));
    script_of_packages
        || WITH_VERB.iter().any(|(names, verbs)| names.contains(&name) && has(verbs))
        || is_test_file(name)
        || launched(name, rest).is_some_and(is_test_run_of)
}

fn is_test_run_of(words: &[String]) -> bool {
    is_test_run(words) || (words.first().is_some_and(|word| word == "-m") && python_runs_tests(words))
}

pub(super) fn is_python(name: &str) -> bool {
    name.starts_with("python")
        || name.starts_with("pypy")
        || matches!(name, "$PYTHON" | "${PYTHON}" | "sys.executable")
}

fn python_runs_tests(rest: &[String]) -> bool {
    let Some(at) = rest.iter().position(|word| word == "-m" || !word.starts_with('-')) else { return false };
    let word = &rest[at];
    if word != "-m" {
        let manages = base_name(word) == "manage.py" && rest.iter().any(|word| word == "test");
        return manages || is_test_file(base_name(word));
    }
    let Some(module) = rest.get(at + 1) else { return false };
    MODULES.contains(&module.as_str()) || launched(module, &rest[at + 2..]).is_some_and(is_test_run_of)
}

fn is_test_file(name: &str) -> bool {
    let stem = name.strip_suffix(".py");
    stem.is_some_and(|stem| {
        stem.starts_with("test_") || stem.ends_with("_test") || stem == "run_tests" || stem == "runtests"
    })
}

/// The command that a launcher runs, e.g. `pytest` for `uv run pytest`.
pub(super) fn launched<'a>(name: &str, rest: &'a [String]) -> Option<&'a [String]> {
    let (_, verbs) = LAUNCHERS.iter().find(|(launcher, _)| *launcher == name)?;
    let verb = rest.iter().position(|word| !word.starts_with('-'))?;
    let mut words = match verbs {
        [] => rest,
        verbs if verbs.contains(&rest[verb].as_str()) => &rest[verb + 1..],
        _ => return None,
    };
    while let Some(word) = words.first().filter(|word| word.starts_with('-') && *word != "-m") {
        words = words.get(if WITH_VALUE.contains(&word.as_str()) { 2.. } else { 1.. }).unwrap_or_default();
    }
    (!words.is_empty()).then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn test_runs_are_known_by_their_command() {
        let check = |text: &str, expect: bool| assert_eq!(is_test_run(&words(text)), expect, "{text}");
        for text in [
            "pytest /tests",
            "py.test",
            "/opt/venv/bin/pytest -q",
            "python3 -m pytest -q x",
            "python -u -m unittest discover",
            "python3.11 /tests/test_outputs.py",
            "timeout 600 pytest x",
            "timeout -k 5 600 python -m pytest",
            "sudo -u me env A=1 pytest",
            "uv run pytest x",
            "uv run --with pytest==8 pytest x",
            "uv run --no-project -p 3.12 python -m pytest",
            "uv run -m pytest",
            "uvx -p 3.13 -w pytest==8.4.1 pytest /tests",
            "poetry run pytest",
            "coverage run -m pytest",
            "python -m coverage run -m unittest",
            "cargo test --release",
            "cargo nextest run",
            "go test ./...",
            "npm test",
            "npm run test:unit",
            "npx jest",
            "make -C x check",
            "./gradlew test",
            "python manage.py test",
            "bats x.bats",
            "bundle exec rspec",
        ] {
            check(text, true);
        }
        for text in [
            "pip install pytest",
            "python3 -m pip install -q pytest==9.0.3",
            "apt-get install -y python3-pytest",
            "cp /tests/test_outputs.py /tmp/test_outputs.py",
            "echo pytest",
            "uv add pytest",
            "uv pip install pytest",
            "uvx ruff check",
            "uv run python /tests/grade.py",
            "which pytest",
            "pytest --version",
            "cargo build",
            "make all",
            "npm install",
            "npm run build",
            "python3 /tests/check.py",
            "cat pytest.log",
            "git checkout HEAD -- tests",
            "timeout 5",
            "env",
            "",
        ] {
            check(text, false);
        }
    }
}
