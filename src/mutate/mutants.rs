//! Mutants: a solution with one small mistake in it.

use std::collections::BTreeSet;

use super::edit::{Edit, line_of};
use super::language::Language;
use super::operator::Operator;
use crate::model::{File, FileTree, RelPath};

/// Files above this size are data that a solution brings along, whose lines are all alike.
const MOST_BYTES: usize = 128 << 10;

/// Maximum number of mutants; of more, every n-th is kept, since no time budget tries them all.
const MOST_MUTANTS: usize = 2_000;

/// A solution with one mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mutant {
    pub operator: Operator,
    /// File and line, from 1: `solve.sh:12`.
    pub place: String,
    /// The file, and the function or embedded program in it; samples are spread over regions.
    pub region: String,
    /// Description of the change, for people.
    pub what: String,
    /// Why a trial of it is unlikely to be informative: it is probably equivalent, or leaves no output at all.
    pub uninformative: Option<&'static str>,
    /// The whole solution.
    pub files: FileTree,
}

/// Every mutant of `solution`, by file and position. No two are equal, and none equals the solution. Each file with a
/// bundled grammar has no more syntax errors than before.
pub fn mutants(solution: &FileTree) -> Vec<Mutant> {
    let mut sites: Vec<(&RelPath, &str, Edit)> = Vec::new();
    for (path, file) in solution.iter() {
        let Some(text) = file.as_text().filter(|text| text.len() <= MOST_BYTES) else { continue };
        let Some(language) = Language::of_file(path.as_str(), text) else { continue };
        let mut seen = BTreeSet::from([text.to_owned()]);
        for edit in language.edits(text) {
            if edit.apply(text).is_some_and(|mutated| seen.insert(mutated)) {
                sites.push((path, text, edit));
            }
        }
    }
    let step = sites.len().div_ceil(MOST_MUTANTS).max(1);
    sites
        .into_iter()
        .step_by(step)
        .filter_map(|(path, text, edit)| mutant(solution, path, text, edit))
        .collect()
}

fn mutant(solution: &FileTree, path: &RelPath, text: &str, edit: Edit) -> Option<Mutant> {
    let mutated = edit.apply(text)?;
    let mut files = solution.clone();
    let executable = solution.get(path.as_str()).is_some_and(|file| file.executable);
    files.insert(path.clone(), File { bytes: mutated.into_bytes(), executable });
    Some(Mutant {
        operator: edit.operator,
        place: format!("{path}:{}", line_of(text, edit.range.start)),
        region: format!("{path}:{}", line_of(text, edit.region)),
        what: edit.what,
        uninformative: edit.uninformative,
        files,
    })
}
