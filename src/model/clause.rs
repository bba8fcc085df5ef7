//! Clauses: the sentences of an instruction that demand something. Each has solutions that violate
//! only that clause.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::sentences::{sentences, squeeze};
use super::{CheckId, File, FileTree, RelPath};

/// Name of the copied reference in a violation with `after`. `solve.sh` then runs this script and
/// `after`.
const REFERENCE: &str = "reference.sh";
/// The entry point of a solution.
const ENTRY: &str = "solve.sh";

/// `clauses.toml`: the demands of an instruction, and how each one can be violated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "termsmith clauses")]
pub struct Clauses {
    /// Text of the instruction that demands nothing, e.g. hints and descriptions of given files.
    #[serde(default)]
    pub background: Vec<String>,
    #[serde(default)]
    pub clause: Vec<Clause>,
    /// Mutants of the reference that violate nothing. Those that pass the checks do not count in
    /// the kill rate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub equivalent: Vec<EquivalentMutant>,
}

/// A mutant of the reference that is a correct solution as well.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EquivalentMutant {
    /// Name of the mutant in the certificate: operator, place and change.
    pub mutant: String,
    /// Why the mutant's results are right for every input that the instruction allows.
    pub why: String,
}

/// A testable demand of the instruction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Clause {
    /// Kebab-case, unique within the task.
    pub id: String,
    /// The words of the instruction that state the demand, verbatim except for white space.
    pub says: Vec<String>,
    /// The checks that test it.
    pub checks: Vec<CheckId>,
    /// Names of known wrong solutions that violate the clause.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wrong: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub violation: Vec<Violation>,
    /// The part that no violation below tests, and why: e.g. it cannot be executed, or a check is
    /// missing. The certificate repeats this text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untested: Option<String>,
}

/// A solution that violates one clause, satisfies all others, and looks like work. It is the
/// reference with edits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Violation {
    /// Kebab-case, unique within the clause.
    pub name: String,
    /// What the violation does instead, as the end of the sentence "a solution that …".
    pub that: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edit: Vec<TextEdit>,
    /// Bash that runs after the reference, as the same user and in the work directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// Replaces a text that occurs exactly once in a file of the solution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TextEdit {
    /// A path below `solution/`.
    #[serde(default = "entry")]
    pub file: String,
    pub from: String,
    pub to: String,
}

fn entry() -> String {
    ENTRY.to_owned()
}

/// A contradiction between clauses and their task.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClauseError {
    #[error("clause `{0}` is declared twice")]
    RepeatedClause(String),
    #[error("clause `{clause}` declares violation `{violation}` twice")]
    RepeatedViolation { clause: String, violation: String },
    #[error("`{0}` is not a valid name for a clause or a violation: names are kebab-case")]
    BadName(String),
    #[error("clause `{clause}` quotes words that are not in the instruction: `{words}`")]
    NotInInstruction { clause: String, words: String },
    #[error("`background` quotes words that are not in the instruction: `{0}`")]
    NoSuchBackground(String),
    #[error("clause `{0}` quotes no words of the instruction")]
    NoWords(String),
    #[error("clause `{clause}` names check `{check}`, which the tests do not have")]
    UnknownCheck { clause: String, check: CheckId },
    #[error("clause `{0}` names no check that tests it")]
    NoCheck(String),
    #[error("clause `{clause}` names the wrong solution `{wrong}`, which is not declared")]
    UnknownWrong { clause: String, wrong: String },
    #[error("clause `{0}` has neither a violation nor a reason in `untested`")]
    NoViolation(String),
    #[error("violation `{0}` changes nothing: it has neither an edit nor `after`")]
    NoChange(String),
    #[error("violation `{violation}` edits `solution/{file}`, which is no text file of the solution")]
    NoFile { violation: String, file: String },
    #[error(
        "violation `{violation}` replaces a text that occurs {times} times in `solution/{file}`, instead of once: `{from}`"
    )]
    NotOnce { violation: String, file: String, times: usize, from: String },
    #[error("violation `{violation}` replaces a text by itself: `{from}`")]
    SameText { violation: String, from: String },
    #[error("no clause and no `background` quotes this sentence of the instruction: `{0}`")]
    Uncovered(String),
}

impl Clauses {
    /// Whether nothing is declared.
    pub fn is_empty(&self) -> bool {
        self.quotes_nothing() && self.equivalent.is_empty()
    }

    /// Whether neither a clause nor the background quotes the instruction.
    pub fn quotes_nothing(&self) -> bool {
        self.background.is_empty() && self.clause.is_empty()
    }

    /// All contradictions between these clauses and their task. `wrong` holds the names of its
    /// known wrong solutions.
    pub fn problems(
        &self,
        instruction: &str,
        solution: &FileTree,
        checks: &[CheckId],
        wrong: &BTreeSet<&str>,
    ) -> Vec<ClauseError> {
        let text = squeeze(instruction);
        let mut problems = Vec::new();
        let mut ids = BTreeSet::new();
        for words in self.background.iter().filter(|words| !text.contains(&squeeze(words))) {
            problems.push(ClauseError::NoSuchBackground(words.clone()));
        }
        for clause in &self.clause {
            if !ids.insert(&clause.id) {
                problems.push(ClauseError::RepeatedClause(clause.id.clone()));
            }
            problems.extend(clause.problems(&text, solution, checks, wrong));
        }
        problems.extend(self.uncovered(instruction).into_iter().map(ClauseError::Uncovered));
        problems
    }

    /// The contradictions that instruction and solution alone show. Whether a check tests a clause
    /// is known only after its violations ran.
    pub fn misfits(&self, instruction: &str, solution: &FileTree) -> Vec<ClauseError> {
        let mut problems = self.problems(instruction, solution, &[], &BTreeSet::new());
        problems.retain(|problem| match problem {
            ClauseError::UnknownCheck { .. }
            | ClauseError::UnknownWrong { .. }
            | ClauseError::NoCheck(_)
            | ClauseError::Uncovered(_) => false,
            ClauseError::RepeatedClause(_)
            | ClauseError::RepeatedViolation { .. }
            | ClauseError::BadName(_)
            | ClauseError::NotInInstruction { .. }
            | ClauseError::NoSuchBackground(_)
            | ClauseError::NoWords(_)
            | ClauseError::NoViolation(_)
            | ClauseError::NoChange(_)
            | ClauseError::NoFile { .. }
            | ClauseError::NotOnce { .. }
            | ClauseError::SameText { .. } => true,
        });
        problems
    }

    /// Sentences of the instruction of which no clause and no background quotes a word. Headings
    /// and code blocks are no sentences.
    pub fn uncovered(&self, instruction: &str) -> Vec<String> {
        let says = self.clause.iter().flat_map(|clause| &clause.says);
        let quoted: Vec<String> = says.chain(&self.background).map(|words| squeeze(words)).collect();
        let covered = |sentence: &str, text: &str, start: usize| {
            let end = start + sentence.len();
            quoted.iter().filter(|words| !words.is_empty()).any(|words| {
                text.match_indices(words.as_str()).any(|(at, _)| at < end && start < at + words.len())
            })
        };
        let (text, sentences) = sentences(instruction);
        let missing = sentences.into_iter().filter(|(start, sentence)| !covered(sentence, &text, *start));
        missing.map(|(_, sentence)| sentence).collect()
    }
}

impl Clause {
    fn problems(
        &self,
        text: &str,
        solution: &FileTree,
        checks: &[CheckId],
        wrong: &BTreeSet<&str>,
    ) -> Vec<ClauseError> {
        let clause = || self.id.clone();
        let mut problems = Vec::new();
        let names = self.violation.iter().map(|violation| &violation.name);
        for name in std::iter::once(&self.id).chain(names.clone()).filter(|name| !is_kebab_case(name)) {
            problems.push(ClauseError::BadName(name.clone()));
        }
        if self.says.iter().all(|words| words.trim().is_empty()) {
            problems.push(ClauseError::NoWords(clause()));
        }
        for words in self.says.iter().filter(|words| !text.contains(&squeeze(words))) {
            problems.push(ClauseError::NotInInstruction { clause: clause(), words: words.clone() });
        }
        if self.checks.is_empty() && self.untested.is_none() {
            problems.push(ClauseError::NoCheck(clause()));
        }
        for check in self.checks.iter().filter(|check| !checks.contains(check)) {
            problems.push(ClauseError::UnknownCheck { clause: clause(), check: check.clone() });
        }
        for name in self.wrong.iter().filter(|name| !wrong.contains(name.as_str())) {
            problems.push(ClauseError::UnknownWrong { clause: clause(), wrong: name.clone() });
        }
        if self.wrong.is_empty() && self.violation.is_empty() && self.untested.is_none() {
            problems.push(ClauseError::NoViolation(clause()));
        }
        let mut seen = BTreeSet::new();
        for name in names.filter(|name| !seen.insert(*name)) {
            problems.push(ClauseError::RepeatedViolation { clause: clause(), violation: name.clone() });
        }
        problems.extend(self.violation.iter().filter_map(|violation| violation.apply(solution).err()));
        problems
    }

    /// The name of a violation's row in a certificate, e.g. `sorted/by-name`.
    pub fn row_name(&self, violation: &Violation) -> String {
        format!("{}/{}", self.id, violation.name)
    }
}

impl Violation {
    /// The text of its edits and commands. It tells violations with the same name apart.
    pub fn identity(&self) -> String {
        let edits = self.edit.iter().flat_map(|TextEdit { file, from, to }| [file, from, to]);
        let texts: Vec<&str> = edits.chain(&self.after).map(String::as_str).collect();
        texts.join("\0")
    }

    /// The files of the reference `solution` with this violation applied.
    pub fn apply(&self, solution: &FileTree) -> Result<FileTree, ClauseError> {
        let violation = || self.name.clone();
        if self.edit.is_empty() && self.after.as_deref().is_none_or(|script| script.trim().is_empty()) {
            return Err(ClauseError::NoChange(violation()));
        }
        let mut files = solution.clone();
        for TextEdit { file, from, to } in &self.edit {
            let no_file = || ClauseError::NoFile { violation: violation(), file: file.clone() };
            let path = RelPath::new(file.as_str()).map_err(|_| no_file())?;
            let text = files.text(file).ok_or_else(no_file)?;
            let times = if from.is_empty() { 0 } else { text.matches(from.as_str()).count() };
            if times != 1 {
                let (file, from) = (file.clone(), from.clone());
                return Err(ClauseError::NotOnce { violation: violation(), file, times, from });
            }
            if from == to {
                return Err(ClauseError::SameText { violation: violation(), from: from.clone() });
            }
            let text = text.replacen(from.as_str(), to, 1);
            let executable = files.get(file).is_some_and(|file| file.executable);
            files.insert(path, File { executable, ..File::text(text) });
        }
        if let Some(after) = &self.after {
            let no_file = || ClauseError::NoFile { violation: violation(), file: ENTRY.to_owned() };
            return followed_by(&files, after).ok_or_else(no_file);
        }
        Ok(files)
    }
}

/// A solution that runs `solution` and, if that succeeds, the bash code `after`. `None` if
/// `solution` has no `solve.sh`.
pub fn followed_by(solution: &FileTree, after: &str) -> Option<FileTree> {
    let mut files = solution.clone();
    let reference = files.text(ENTRY)?.to_owned();
    let wrapper = format!("#!/bin/bash\nbash \"$(dirname \"$0\")/{REFERENCE}\" || exit\n{after}\n");
    for (name, text) in [(REFERENCE, reference), (ENTRY, wrapper)] {
        files.insert(RelPath::new(name).ok()?, File::script(text));
    }
    Some(files)
}

/// Whether `name` is kebab-case: lower-case words with digits, joined by single hyphens.
pub fn is_kebab_case(name: &str) -> bool {
    !name.is_empty()
        && name.split('-').all(|word| {
            !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::sentences::tests::INSTRUCTION;

    fn clauses(text: &str) -> Clauses {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn sentences_that_nothing_quotes_are_named() {
        let check = |clauses_text: &str, expect: &[&str]| {
            assert_eq!(clauses(clauses_text).uncovered(INSTRUCTION), expect, "{clauses_text}");
        };
        let most = r#"background = ["Some background.", "column | meaning", "a row"]"#;
        check(
            most,
            &[
                "Write `out.txt`, sorted;",
                "duplicates are dropped.",
                "`first`: one rule.",
                "It goes on e.g. here.",
                "2. second rule",
            ],
        );
        // A quotation may span sentences and lines.
        let rest = r#"
[[clause]]
id = "a"
says = ["sorted; duplicates are", "one rule. It goes", "second rule"]
checks = ["test_a"]
untested = "it is an example"
"#;
        check(&format!("{most}\n{rest}"), &[]);
    }

    #[test]
    fn clauses_that_do_not_fit_are_refused() {
        const BACKGROUND: &str = r#"background = ["Some background.", "dropped", "one rule", "It goes", "second rule", "column", "a row"]"#;
        let mut solution = FileTree::default();
        solution.insert(RelPath::new("solve.sh").unwrap(), File::script("sort in | uniq > out.txt\n"));
        let checks = [CheckId::parse("test_a").unwrap()];
        let check = |clause: &str, expect: &[&str]| {
            let text = format!("{BACKGROUND}\n[[clause]]\n{clause}");
            let problems =
                clauses(&text).problems(INSTRUCTION, &solution, &checks, &BTreeSet::from(["known"]));
            let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
            assert_eq!(problems, expect, "{clause}");
        };
        let good = "id = \"a\"\nsays = [\"Write `out.txt`, sorted\"]\nchecks = [\"test_a\"]\n";
        let edit = |from: &str, to: &str| {
            format!(
                "{good}violation = [{{ name = \"v\", that = \"x\", edit = [{{ from = \"{from}\", to = \"{to}\" }}] }}]"
            )
        };
        check(&edit("sort", "sort -r"), &[]);
        check(&format!("{good}wrong = [\"known\"]"), &[]);
        check(
            &format!("{good}violation = [{{ name = \"v\", that = \"x\", after = \"rm /app/out.txt\" }}]"),
            &[],
        );
        check(good, &["clause `a` has neither a violation nor a reason in `untested`"]);
        check(
            &format!("{good}wrong = [\"other\"]"),
            &["clause `a` names the wrong solution `other`, which is not declared"],
        );
        check(&edit("sort", "sort"), &["violation `v` replaces a text by itself: `sort`"]);
        check(
            &edit("o", "0"),
            &[
                "violation `v` replaces a text that occurs 2 times in `solution/solve.sh`, instead of once: `o`",
            ],
        );
        check(
            &format!("{good}violation = [{{ name = \"v\", that = \"x\" }}]"),
            &["violation `v` changes nothing: it has neither an edit nor `after`"],
        );
        check(
            &edit("sort", "tac").replace("test_a", "test_b").replace("sorted", "unsorted"),
            &[
                "clause `a` quotes words that are not in the instruction: `Write `out.txt`, unsorted`",
                "clause `a` names check `test_b`, which the tests do not have",
                "no clause and no `background` quotes this sentence of the instruction: `Write `out.txt`, sorted;`",
            ],
        );
    }

    #[test]
    fn violations_edit_the_reference_or_what_it_leaves() {
        let mut solution = FileTree::default();
        solution.insert(RelPath::new("solve.sh").unwrap(), File::script("sort in > out\n"));
        let text_of = |files: &FileTree, path: &str| files.text(path).map(str::to_owned);
        let violation = |edit: &[(&str, &str)], after: Option<&str>| Violation {
            name: "v".to_owned(),
            that: "x".to_owned(),
            edit: edit
                .iter()
                .map(|(from, to)| TextEdit { file: entry(), from: (*from).to_owned(), to: (*to).to_owned() })
                .collect(),
            after: after.map(str::to_owned),
        };
        let edited = violation(&[("sort", "sort -r")], None).apply(&solution).unwrap();
        assert_eq!(text_of(&edited, "solve.sh").unwrap(), "sort -r in > out\n");
        let followed = violation(&[("sort", "sort -r")], Some("echo >> out")).apply(&solution).unwrap();
        assert_eq!(text_of(&followed, "reference.sh").unwrap(), "sort -r in > out\n");
        assert!(text_of(&followed, "solve.sh").unwrap().ends_with("|| exit\necho >> out\n"));
    }
}
