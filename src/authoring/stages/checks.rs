//! The stage that writes the tests. Its model sees no solution.

use futures_util::future::{FutureExt as _, LocalBoxFuture};
use minijinja::context;

use super::{Environment, Instruction, Solution};
use crate::author::check_ids;
use crate::authoring::arbiter::{self, Fault};
use crate::authoring::examine::{Examination, changed_paths, ended, failures, no_verdict, tail, with_reason};
use crate::authoring::reply_files::corrected;
use crate::authoring::stage::{Asks, AuthorStage, Examined, FEEDBACK, Found, Prompt, Shell, StageCounts};
use crate::authoring::working::{CHECKS, Working};
use crate::authoring::{PromptContext, quotes};
use crate::llm::ModelRole;
use crate::model::{File, FileTree, RelPath};
use crate::verify::{Act, Condition};

#[derive(Debug)]
pub(in crate::authoring) struct Checks;

impl AuthorStage for Checks {
    fn name(&self) -> &'static str {
        "checks"
    }

    fn asks(&self) -> Asks {
        Asks::Model(ModelRole::Author)
    }

    fn texts(&self) -> &'static [&'static str] {
        &["task.md.j2", FEEDBACK, "shell.md"]
    }

    fn shell(&self) -> Option<Shell> {
        Some(Shell::DraftWithTests)
    }

    fn prompt(&self, context: &PromptContext<'_>, working: &Working) -> Option<Prompt> {
        let (instruction, files) = (&working.instruction, working.machine_text());
        let subject = context.kit.subject_interface();
        // Each task has its own seed, so inputs differ between tasks.
        let seed = context.blueprint.seed.derive(&["checks"]).0 % 1_000_000;
        Some(Prompt { system: context! { subject, seed }, task: context! { instruction, files } })
    }

    fn accept(&self, reply: &str, working: &mut Working, _: &StageCounts) -> Result<(), String> {
        let path = RelPath::new(CHECKS).map_err(|error| error.to_string())?;
        let before = FileTree::from_iter([(path, File::text(working.checks.clone()))]);
        let files = corrected(reply, &before)?;
        let text = files.text(CHECKS).ok_or_else(|| format!("there is no `{CHECKS}`"))?;
        if check_ids(text).is_empty() {
            return Err(format!("`{CHECKS}` has no function called `test_…` at the top level"));
        }
        text.clone_into(&mut working.checks);
        Ok(())
    }

    fn examine<'a>(&'a self, draft: &'a mut Examination<'_>) -> LocalBoxFuture<'a, Examined> {
        examined(draft).boxed_local()
    }
}

async fn examined(draft: &mut Examination<'_>) -> Examined {
    let task = draft.working.task(draft.context)?;
    let hashed = draft.context.hashed(&task)?;
    let quoted = quotes::problems(&task.checks, &draft.working.checks, &draft.working.instruction);
    if !quoted.is_empty() {
        return Ok(Found::of(&Checks, quoted));
    }
    let (untouched, before) = draft.trial(&hashed, Act::Nothing, Condition::Ordinary).await?;
    if let Some(problem) = no_verdict(&untouched, &before) {
        return Ok(Some(Found::one(&Checks, problem)));
    }
    if untouched.verdict.passed() {
        let problem = "every check passes on the untouched machine, where nothing has been done".to_owned();
        return Ok(Some(Found::one(&Checks, problem)));
    }
    let (reference, log) = draft.trial(&hashed, Act::Solve(&task.solution), Condition::Ordinary).await?;
    if let Some(problem) = no_verdict(&reference, &log) {
        return Ok(Some(Found::one(&Checks, problem)));
    }
    let failures = failures(&reference.verdict, &log.verifier);
    if failures.is_empty() {
        return Ok(None);
    }
    let changed = changed_paths(&before.fingerprint, &log.fingerprint);
    let judged = arbiter::judged(draft.context, draft.working, changed.as_deref(), &failures).await?;
    let of = |what: &str| failures.iter().map(|failure| format!("{what} fails {failure}")).collect();
    Ok(Some(match judged.fault {
        Fault::Solution => {
            let mut problems = with_reason(of("your solution"), &judged.reason);
            let ended = ended(reference.exit);
            problems.push(format!("your solution {ended}; the end of its output:\n{}", tail(&log.output)));
            problems.extend(changed.map(|changed| format!("what it did to files: {changed}")));
            Found { stage: &Solution, problems }
        }
        Fault::Environment => {
            Found { stage: &Environment, problems: with_reason(of("a solution"), &judged.reason) }
        }
        Fault::Checks => {
            let mut problems = with_reason(of("a correct solution"), &judged.reason);
            problems.extend(changed.map(|changed| format!("what that solution did to files: {changed}")));
            Found { stage: &Checks, problems }
        }
        Fault::Instruction => Found::one(
            &Instruction,
            format!("it can be read in two ways, or leaves something open: {}", judged.reason),
        ),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authoring::stages::tests::{accepts, file};

    #[test]
    fn tests_are_functions_of_one_file() {
        let check = |reply: &str, expect: Result<(), &str>| accepts(&Checks, reply, expect);
        check(&file("test_outputs.py", "def test_a():\n    pass"), Ok(()));
        check(&file("test_outputs.py", "def check_a():\n    pass"), Err("no function called `test_…`"));
        check(&file("tests.py", ""), Err("no `test_outputs.py`"));
    }
}
