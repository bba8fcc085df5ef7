//! A draft in the making, which the stages fill in.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::LazyLock;

use regex::Regex;

use super::made::Made;
use super::stages::{Configured, STAGES};
use super::{StageContext, StageError};
use crate::author::canary;
use crate::author::{Shipping, check_ids, shipped_tests};
use crate::harbor::task_name;
use crate::model::{
    Clauses, Difficulty, Draft, ExpertScript, File, FileTree, RelPath, SubmissionSpec, Task, WrongSolution,
};

/// The folder that solutions write to.
pub(super) const WORKDIR: &str = "/app";
/// The path of that folder in a stage's reply.
pub(super) const APP: &str = "app/";
/// The script for everything that is no plain file, e.g. a repository. It runs while the image is
/// built.
pub(super) const SETUP: &str = "setup.sh";
/// The file of a solution that is run.
pub(super) const ENTRY: &str = "solve.sh";
/// The file of the tests.
pub(super) const CHECKS: &str = "test_outputs.py";
/// Tests for a draft without any. With them its solution can be executed before tests are written.
const NO_CHECKS: &str = "def test_nothing():\n    \"\"\"Passes.\"\"\"\n";
/// Bytes of one file, and of all files, that a prompt shows. A model can only continue what it
/// sees, so a script of usual length is shown whole.
const SHOWN_OF_FILE: usize = 20_000;
const SHOWN: usize = 60_000;
/// Bytes of a file that `setup.sh` made. The prompt shows `setup.sh` too, so less is needed.
const SHOWN_OF_MADE: usize = 2_000;
/// Suffix of a packed git repository in the files that [`super::made`] reads.
const BUNDLE: &str = ".bundle";

/// A draft in the making.
#[derive(Clone, Debug)]
pub(super) struct Working {
    pub(super) request: String,
    pub(super) title: String,
    pub(super) difficulty: Difficulty,
    /// Files `app/…`, and `setup.sh` if there is one.
    pub(super) machine: FileTree,
    /// The files that `setup.sh` made. `None` if there is no script, or if it has not run yet.
    pub(super) made: Option<Made>,
    pub(super) instruction: String,
    pub(super) solution: FileTree,
    /// The text of `test_outputs.py`. Empty before it is written.
    pub(super) checks: String,
    /// Wrong solutions, by the stage that wrote them.
    pub(super) wrong: BTreeMap<&'static str, Vec<Wrong>>,
    pub(super) clauses: Clauses,
    pub(super) configured: Configured,
    /// A blind solver's commands as a script.
    pub(super) second: Option<FileTree>,
}

/// A solution that the checks have to stop.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Wrong {
    pub(super) solution: WrongSolution,
    /// What the solution changes. If a later version makes the same change under another name, it
    /// is the same wrong solution.
    pub(super) identity: String,
    /// The text about it for the author of the checks, e.g. the words that it violates. It contains
    /// no line of the reference.
    pub(super) feedback: String,
}

impl Working {
    /// A draft that is only a request.
    pub(super) fn new(request: String, title: String, difficulty: Difficulty) -> Self {
        Self {
            request,
            title,
            difficulty,
            machine: FileTree::default(),
            made: None,
            instruction: String::new(),
            solution: FileTree::default(),
            checks: String::new(),
            wrong: BTreeMap::new(),
            clauses: Clauses::default(),
            configured: Configured::default(),
            second: None,
        }
    }

    /// The wrong solutions that a stage wrote.
    pub(super) fn wrong_of(&self, stage: &str) -> &[Wrong] {
        self.wrong.get(stage).map_or(&[], Vec::as_slice)
    }

    /// Forgets which mutants are equivalent. The judgements depend on the machine, the instruction
    /// and the solution.
    pub(super) fn forget_judged(&mut self) {
        self.clauses.equivalent.clear();
    }

    /// The draft as a task.
    pub(super) fn task(&self, context: &StageContext<'_>) -> Result<Task, StageError> {
        let spec = context.spec;
        let mut blueprint = context.blueprint.clone();
        blueprint.difficulty = self.difficulty;
        let name = task_name(&blueprint);
        let canary = canary(&name, blueprint.seed);
        let environment = self.environment(context)?;
        let submission = SubmissionSpec {
            roots: vec![WORKDIR.to_owned()],
            programs: runs_programs(&self.checks),
            bring_up: None,
            shared_because: None,
        };
        let text = if self.checks.is_empty() { NO_CHECKS } else { &self.checks };
        let own = FileTree::from_iter([(rel(CHECKS)?, File::text(text.to_owned()))]);
        let checks = check_ids(text);
        // Checks may have been renamed after they got their weights.
        let weights = self.configured.weights.iter().filter(|(check, _)| checks.contains(check));
        let weights = weights.map(|(check, weight)| (check.clone(), f64::from(*weight))).collect();
        let mut limits = spec.limits();
        if let Some(minutes) = self.configured.minutes {
            limits.agent_timeout_sec = minutes * 60;
        }
        let given = self.made.as_ref().map_or(&environment, |made| &made.files);
        let shipping =
            Shipping { environment: given, canary: &canary, submission: &submission, limits: &limits };
        let tests = shipped_tests(context.kit, own, shipping)?;
        Ok(Task {
            name,
            title: self.title.clone(),
            blueprint,
            base: spec.base.clone(),
            recipe_version: 0,
            canary,
            instruction: format!("{}\n", self.instruction.trim()),
            environment,
            solution: self.solution.clone(),
            checks,
            tests,
            weights,
            limits,
            profile: spec.profile,
            submission,
        })
    }

    /// The draft with everything that screening needs.
    pub(super) fn draft(&self, context: &StageContext<'_>) -> Result<Draft, StageError> {
        let wrong = STAGES.iter().flat_map(|stage| self.wrong_of(stage.name()));
        Ok(Draft {
            task: self.task(context)?,
            second: self.second.clone(),
            wrong: wrong.map(|wrong| wrong.solution.clone()).collect(),
            clauses: self.clauses.clone(),
            variants: context.kit.unconditional_variants(),
            variants_excluded: BTreeMap::new(),
            expert: ExpertScript::default(),
        })
    }

    fn environment(&self, context: &StageContext<'_>) -> Result<FileTree, StageError> {
        let base = context.kit.base(&context.spec.base).unwrap_or_default();
        let mut dockerfile = format!("{}\n\nCOPY app/ {WORKDIR}/\nWORKDIR {WORKDIR}\n", base.trim_end());
        if self.machine.get(SETUP).is_some() {
            dockerfile
                .push_str("COPY setup.sh /tmp/setup.sh\nRUN bash /tmp/setup.sh && rm -f /tmp/setup.sh\n");
        }
        let mut environment = self.machine.clone();
        environment.insert(rel("Dockerfile")?, File::text(dockerfile));
        Ok(environment)
    }

    /// The machine for a prompt: every file with its content, long files shortened.
    pub(super) fn machine_text(&self) -> String {
        let made = self.made.as_ref();
        // Files that `setup.sh` removed or changed are left out, because a solver does not find
        // them.
        let kept = |path: &RelPath, file: &File| {
            made.is_none_or(|made| made.files.get(path.as_str()).is_some_and(|made| made.bytes == file.bytes))
        };
        let given = self.machine.iter().filter(|(path, file)| path.as_str() == SETUP || kept(path, file));
        let mut text = shown(
            given.map(|(path, file)| match path.as_str() {
                SETUP => (
                    "setup.sh, which ran once in /app while the machine was made and is gone".to_owned(),
                    file,
                ),
                path => (format!("/{path}"), file),
            }),
            SHOWN_OF_FILE,
        );
        let Some(made) = made else { return text };
        let of_setup = made.files.iter().filter(|(path, file)| {
            self.machine.get(path.as_str()).is_none_or(|given| given.bytes != file.bytes)
        });
        let of_setup = of_setup.map(|(path, file)| match path.as_str().strip_suffix(BUNDLE) {
            Some(repository) => {
                (format!("/{repository}, a repository; `pristine(\"{path}\")` is a bundle of it"), file)
            }
            None => (format!("/{path}, made by setup.sh"), file),
        });
        text.push_str(&shown(of_setup, SHOWN_OF_MADE));
        for link in &made.links {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "== /{link}");
        }
        text
    }

    /// The solution for a prompt.
    pub(super) fn solution_text(&self) -> String {
        files_text(&self.solution)
    }
}

/// Files for a prompt.
pub(super) fn files_text(files: &FileTree) -> String {
    shown(files.iter().map(|(path, file)| (path.to_string(), file)), SHOWN_OF_FILE)
}

/// Files as one text, with at most `of_file` bytes of each.
fn shown<'a>(files: impl Iterator<Item = (String, &'a File)>, of_file: usize) -> String {
    let mut text = String::new();
    for (name, file) in files {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "== {name} ({} bytes)", file.bytes.len());
        match file.as_text() {
            None => text.push_str("(not text)\n"),
            Some(_) if text.len() > SHOWN => text.push_str("(not shown)\n"),
            Some(content) => {
                let most = content.len().min(of_file);
                let end = (0..=most).rev().find(|place| content.is_char_boundary(*place)).unwrap_or(0);
                text.push_str(&content[..end]);
                if end < content.len() {
                    let _ = write!(text, "\n… ({} further bytes)", content.len() - end);
                }
                if !text.ends_with('\n') {
                    text.push('\n');
                }
            }
        }
    }
    text
}

/// Whether tests run the solver's programs. They may import the functions for it by any name. A
/// needless container costs less than programs in the wrong container.
fn runs_programs(checks: &str) -> bool {
    static RUNS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\b(?:run|run_many|probe)\b").ok());
    let checks = checks.replace("subprocess.run", "");
    RUNS.as_ref().is_some_and(|pattern| pattern.is_match(&checks))
}

/// `path` as a path of a file tree.
pub(super) fn rel(path: &str) -> Result<RelPath, StageError> {
    RelPath::new(path).map_err(StageError::Path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_run_by_any_name_of_the_function() {
        let check = |checks: &str, expect: bool| assert_eq!(runs_programs(checks), expect, "{checks}");
        check("from subject import run\nrun(['/app/x'])", true);
        check("import subject\nsubject.run(['/app/x'])", true);
        check("import subject as s\ns.run_many(cases)", true);
        check("from subject import run_many as tried\ntried(cases)", true);
        check("from subject import probe, answers\nanswers(probe(TEXT, []), 1)", true);
        check("import subject, subprocess\nsubprocess.run(['true'])\nsubject.read_text('/app/x')", false);
        check("def test_runs():\n    pass", false);
    }
}
