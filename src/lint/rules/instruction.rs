//! Rule that compares the instruction with the tests.

use std::collections::BTreeMap;

use regex::Regex;

use crate::lint::linted_task::LintedTask;
use crate::lint::pattern::line_of;
use crate::lint::rule::RuleMatch;

/// An absolute path of a file with an extension, in a folder where solvers work.
const PATH: &str = r"/(?:app|root|home|workspace|work|data|srv|opt|var|tmp|etc|output|results?)/[A-Za-z0-9_./-]*[A-Za-z0-9_-]\.[A-Za-z][A-Za-z0-9]{0,4}\b";

pub(in crate::lint) fn file_references(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    let Ok(pattern) = Regex::new(PATH) else { return Vec::new() };
    let solution: String = task.solution_scripts().map(|(_, text)| text).collect();
    let instructions = task.instructions();
    let context: Vec<_> = task
        .files
        .iter()
        .filter_map(|(path, _)| path.as_str().strip_prefix("environment/")?.rsplit('/').next())
        .collect();
    let mut matches: BTreeMap<&str, RuleMatch> = BTreeMap::new();
    for (file, text) in task.test_modules().chain(task.test_scripts()) {
        for found in pattern.find_iter(text) {
            let path = found.as_str();
            let name = path.rsplit('/').next().unwrap_or(path);
            let known = instructions.contains(name) || context.contains(&name);
            if solution.contains(path) && !known {
                let message = format!(
                    "the reference writes `{path}` and the tests read it, but the instruction does not name it"
                );
                matches
                    .entry(path)
                    .or_insert_with(|| RuleMatch::at(file, line_of(text, found.start()), message));
            }
        }
    }
    matches.into_values().collect()
}

pub(in crate::lint) fn suffix(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    let Some(seconds) = task.manifest.agent.as_ref().and_then(|agent| agent.timeout_sec) else {
        return Vec::new();
    };
    let Some(text) = task.files.text("instruction.md") else { return Vec::new() };
    let expected = format!("You have {seconds} seconds to complete this task.");
    if text.contains(&expected) {
        return Vec::new();
    }
    vec![RuleMatch::whole("instruction.md", format!("does not say \"{expected}\""))]
}
