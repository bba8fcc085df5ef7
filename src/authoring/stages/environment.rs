//! The stage that writes the machine: files below `/app`, and a script for everything that is no
//! plain file.

use futures_util::future::{FutureExt as _, LocalBoxFuture};
use minijinja::context;

use crate::authoring::examine::{Examination, tail};
use crate::authoring::reply_files::corrected;
use crate::authoring::stage::{Asks, AuthorStage, Examined, FEEDBACK, Found, Prompt, Shell, StageCounts};
use crate::authoring::working::{APP, SETUP, Working};
use crate::authoring::{PromptContext, StageError, made};
use crate::folder::is_clutter;
use crate::llm::ModelRole;
use crate::model::FileTree;
use crate::recording::Recording;

#[derive(Debug)]
pub(in crate::authoring) struct Environment;

impl AuthorStage for Environment {
    fn name(&self) -> &'static str {
        "environment"
    }

    fn asks(&self) -> Asks {
        Asks::Model(ModelRole::Author)
    }

    fn texts(&self) -> &'static [&'static str] {
        &["task.md.j2", FEEDBACK, "shell.md"]
    }

    fn shell(&self) -> Option<Shell> {
        Some(Shell::DraftOrEmpty)
    }

    fn prompt(&self, context: &PromptContext<'_>, working: &Working) -> Option<Prompt> {
        let base = context.kit.base(&context.spec.base).unwrap_or_default();
        let (request, difficulty) = (&working.request, working.difficulty.as_str());
        let language = &context.blueprint.language;
        let recording = context.recording.map(Recording::excerpt);
        let task = context! { request, difficulty, language, recording };
        Some(Prompt { system: context! { base }, task })
    }

    fn accept(&self, reply: &str, working: &mut Working, _: &StageCounts) -> Result<(), String> {
        let files = corrected(reply, &working.machine)?;
        let strange =
            files.iter().find(|(path, _)| !path.as_str().starts_with(APP) && path.as_str() != SETUP);
        if let Some((path, _)) = strange {
            return Err(format!("`{path}` is neither below `{APP}` nor `{SETUP}`"));
        }
        if let Some(path) = left_over(&files) {
            return Err(path);
        }
        if !files.iter().any(|(path, _)| path.as_str().starts_with(APP)) {
            return Err(format!("no file is below `{APP}`: the image needs that folder"));
        }
        working.machine = files;
        working.made = None;
        working.forget_judged();
        Ok(())
    }

    fn examine<'a>(&'a self, draft: &'a mut Examination<'_>) -> LocalBoxFuture<'a, Examined> {
        async { Ok(built(draft).await?.map(|problem| Found::one(&Self, problem))) }.boxed_local()
    }
}

/// Builds the machine, and reads the files that `setup.sh` made. Returns a problem for its author.
async fn built(draft: &mut Examination<'_>) -> Result<Option<String>, StageError> {
    let context = draft.context;
    let task = draft.working.task(context)?;
    let hashed = context.hashed(&task)?;
    if let Err(log) = context.runner.build(&hashed).await? {
        return Ok(Some(format!("the image does not build; the end of the log:\n{}", tail(&log))));
    }
    if draft.working.machine.get(SETUP).is_some() && draft.working.made.is_none() {
        match made::made(context, &hashed).await? {
            Ok(made) => draft.working.made = Some(made),
            Err(problem) => return Ok(Some(problem)),
        }
    }
    Ok(None)
}

/// The problem of files that Harbor does not package, because editors or programs leave files of
/// such names.
pub(in crate::authoring) fn left_over(files: &FileTree) -> Option<String> {
    let (path, _) = files.iter().find(|(path, _)| path.as_str().split('/').any(is_clutter))?;
    Some(format!(
        "`{path}` is named like a left-over, which tasks cannot ship: remove it, or give it another name"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authoring::stages::tests::{accepts, file, keeps_judged};

    #[test]
    fn a_machine_is_below_its_folder() {
        let check = |reply: &str, expect: Result<(), &str>| accepts(&Environment, reply, expect);
        check(&file("app/x.txt", "x"), Ok(()));
        check(&(file("app/x.txt", "x") + &file("setup.sh", "true")), Ok(()));
        check(&file("setup.sh", "true"), Err("no file is below"));
        check(&file("etc/passwd", "x"), Err("neither"));
        check(&file("app/../x", "x"), Err("app/../x"));
        check("Here it is.", Err("no block"));
        assert!(!keeps_judged(&Environment, &file("app/x.txt", "x")));
        assert!(keeps_judged(&Environment, "Here it is."));
    }
}
