//! Mutants: a solution with one small mistake.

use std::collections::BTreeSet;

use super::check::{Checker, MOST_BYTES, digest, step};
use super::edit::{Edit, line_of};
use super::edits::edits;
use super::language::Language;
use super::operator::Operator;
use crate::model::{File, FileTree, RelPath};

/// Maximum number of mutants of a solution. If there are more, every n-th is kept. No time budget
/// allows to try them all.
const MOST_MUTANTS: usize = 2_000;

/// Maximum bytes of all mutants together. Each is a whole solution, and all are in memory at once.
const MOST_HELD: usize = 1 << 30;

/// A solution with one mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mutant {
    pub operator: Operator,
    /// File and line, from 1, e.g. `solve.sh:12`.
    pub place: String,
    /// The file, and the function or embedded program in it. Samples are spread over regions.
    pub region: String,
    /// Description of the change, for people.
    pub what: String,
    /// Why a trial of it would probably tell nothing: it is likely equivalent, or leaves no output.
    pub uninformative: Option<&'static str>,
    /// All files of the solution.
    pub files: FileTree,
}

impl Mutant {
    /// Its name in certificates, e.g. "comparison solve.sh:12: `<` became `<=` in `a < b`".
    pub fn name(&self) -> String {
        format!("{} {}: {}", self.operator.as_str(), self.place, self.what)
    }
}

/// The mutants of `solution`, by file and position. No two are equal, and none equals the solution.
/// An edited file has no more syntax errors than before, if its grammar is bundled. Of a very long
/// solution, some mutants are left out.
pub fn mutants(solution: &FileTree) -> Vec<Mutant> {
    let files = solution.iter().filter_map(|(path, file)| {
        let text = file.as_text().filter(|text| text.len() <= MOST_BYTES)?;
        let language = Language::of_file(path.as_str(), text)?;
        Some((path, text, language, edits(language, text)))
    });
    let files: Vec<(&RelPath, &str, Language, Vec<Edit>)> = files.collect();
    let costs = files
        .iter()
        .flat_map(|(_, text, language, edits)| edits.iter().map(|edit| edit.cost(*language, text.len())));
    let step = step(costs);
    let mut sites: Vec<(&RelPath, &str, Edit)> = Vec::new();
    let mut number: usize = 0;
    for (path, text, language, edits) in files {
        let mut checker = Checker::new(language, text);
        let mut seen = BTreeSet::from([digest(text)]);
        for edit in edits {
            number += 1;
            let wanted = number.is_multiple_of(step);
            if wanted && checker.applied(&edit).is_some_and(|mutated| seen.insert(digest(&mutated))) {
                sites.push((path, text, edit));
            }
        }
    }
    let size: usize = solution.iter().map(|(_, file)| file.bytes.len()).sum();
    let most = MOST_MUTANTS.min(MOST_HELD / size.max(1)).max(1);
    let step = sites.len().div_ceil(most).max(1);
    sites
        .into_iter()
        .step_by(step)
        .filter_map(|(path, text, edit)| mutant(solution, path, text, edit))
        .collect()
}

fn mutant(solution: &FileTree, path: &RelPath, text: &str, edit: Edit) -> Option<Mutant> {
    let mutated = edit.apply(text, 0..text.len())?;
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
