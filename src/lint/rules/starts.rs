//! Rule about tests that run the solver's code by themselves.

use std::collections::BTreeMap;

use crate::lint::linted_task::{LintedTask, in_tests};
use crate::lint::pattern::MOST_IN_ONE_FILE;
use crate::lint::python_starts::starts_of_solver;
use crate::lint::rule::RuleMatch;
use crate::lint::starts::Roots;

/// The root of a task that declares none.
const USUAL: &str = "/app";
/// Folders of programs that the tests use. A task may judge files in them too.
const PROGRAMS: [&str; 5] = ["/usr", "/bin", "/sbin", "/lib", "/lib64"];
/// Files that termsmith copies into `tests/`.
const SHIPPED: [&str; 5] = ["subject.py", "run_checks.py", "beside.py", "many_runs.py", "patience.py"];

pub(in crate::lint) fn solver_code(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    let roots = Roots(roots(task));
    let mut matches = Vec::new();
    for (path, text) in modules(task) {
        let found = starts_of_solver(text, &roots, 0).into_iter().take(MOST_IN_ONE_FILE);
        matches.extend(found.map(|(line, what)| RuleMatch::at(path, line, what)));
    }
    matches
}

fn roots<'a>(task: &LintedTask<'a>) -> Vec<&'a str> {
    let declared = || {
        let table = task.manifest.metadata.as_ref()?.get("termsmith")?.as_table()?;
        let roots = table.get("roots")?.as_array()?;
        Some(roots.iter().filter_map(toml::Value::as_str).collect::<Vec<_>>())
    };
    let of_draft =
        task.draft.map(|draft| draft.task.submission.roots.iter().map(String::as_str).collect::<Vec<_>>());
    let mut roots = of_draft.or_else(declared).unwrap_or_else(|| vec![USUAL]);
    let is_system =
        |root: &str| PROGRAMS.iter().any(|folder| root == *folder || root.starts_with(&format!("{folder}/")));
    roots.retain(|root| *root != "/" && !is_system(root));
    roots
}

/// The test modules, and the modules of `tests/` that they import. A probe's text, which runs
/// beside the solver's programs, is not imported.
fn modules<'a>(task: &LintedTask<'a>) -> BTreeMap<&'a str, &'a str> {
    let mut found: BTreeMap<&str, &str> =
        task.test_modules().filter(|(path, _)| !path.contains("/pristine/")).collect();
    let mut open: Vec<&str> = found.values().copied().collect();
    let helpers: Vec<_> = task.texts(|path| in_tests(path) && path.ends_with(".py")).collect();
    while let Some(text) = open.pop() {
        let imports = |name: &str| {
            text.lines().any(|line| {
                let line = line.trim_start();
                let rest = line.strip_prefix("import ").or_else(|| line.strip_prefix("from "));
                rest.is_some_and(|rest| {
                    rest.split([',', ' ']).take_while(|word| *word != "import").any(|word| word == name)
                })
            })
        };
        for (path, helper) in &helpers {
            let name = path.rsplit('/').next().unwrap_or(path);
            let beside = path.matches('/').count() == 1;
            if beside
                && !SHIPPED.contains(&name)
                && imports(name.trim_end_matches(".py"))
                && found.insert(path, helper).is_none()
            {
                open.push(helper);
            }
        }
    }
    found
}
