//! The stage that writes the reference solution.

use futures_util::future::{FutureExt as _, LocalBoxFuture};
use minijinja::context;

use crate::authoring::PromptContext;
use crate::authoring::examine::{Examination, ended, tail};
use crate::authoring::reply_files::corrected;
use crate::authoring::stage::{Asks, AuthorStage, Examined, FEEDBACK, Found, Prompt, Shell, StageCounts};
use crate::authoring::working::{ENTRY, Working};
use crate::llm::ModelRole;
use crate::model::ShellOutcome;
use crate::verify::{Act, Condition};

/// Time limit in seconds that the prompt names. Screening runs the solution dozens of times.
const SECONDS: u32 = 60;

#[derive(Debug)]
pub(in crate::authoring) struct Solution;

impl AuthorStage for Solution {
    fn name(&self) -> &'static str {
        "solution"
    }

    fn asks(&self) -> Asks {
        Asks::Model(ModelRole::Author)
    }

    fn texts(&self) -> &'static [&'static str] {
        &["task.md.j2", FEEDBACK, "shell.md"]
    }

    fn shell(&self) -> Option<Shell> {
        Some(Shell::Draft)
    }

    fn prompt(&self, context: &PromptContext<'_>, working: &Working) -> Option<Prompt> {
        let (instruction, files) = (&working.instruction, working.machine_text());
        let commands = context.recording.map(|recording| recording.commands.clone());
        let system = context! { seconds => SECONDS };
        Some(Prompt { system, task: context! { instruction, files, commands } })
    }

    fn accept(&self, reply: &str, working: &mut Working, _: &StageCounts) -> Result<(), String> {
        let files = corrected(reply, &working.solution)?;
        if files.text(ENTRY).is_none() {
            return Err(format!("there is no `{ENTRY}`"));
        }
        working.solution = files;
        working.forget_judged();
        Ok(())
    }

    fn examine<'a>(&'a self, draft: &'a mut Examination<'_>) -> LocalBoxFuture<'a, Examined> {
        examined(draft).boxed_local()
    }
}

async fn examined(draft: &mut Examination<'_>) -> Examined {
    let task = draft.working.task(draft.context)?;
    let hashed = draft.context.hashed(&task)?;
    let (record, log) = draft.trial(&hashed, Act::Solve(&task.solution), Condition::Ordinary).await?;
    if record.exit == Some(ShellOutcome::Exited(0)) {
        return Ok(None);
    }
    let problem = match record.exit {
        None => format!("`solve.sh` could not be run: {}", record.verdict.cause),
        exit => format!("`solve.sh` {}; the end of its output:\n{}", ended(exit), tail(&log.output)),
    };
    Ok(Some(Found::one(&Solution, problem)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authoring::stages::tests::{accepts, file, keeps_judged};

    #[test]
    fn a_solution_has_an_entry_point() {
        let check = |reply: &str, expect: Result<(), &str>| accepts(&Solution, reply, expect);
        check(&file("solve.sh", "true"), Ok(()));
        check(&file("run.sh", "true"), Err("no `solve.sh`"));
        assert!(!keeps_judged(&Solution, &file("solve.sh", "true")));
        assert!(keeps_judged(&Solution, &file("run.sh", "true")));
    }
}
