//! The stage that writes clauses: what each sentence of the instruction demands, and solutions that
//! violate it. Its model sees no tests.

use futures_util::future::{FutureExt as _, LocalBoxFuture, ready};
use minijinja::context;

use crate::authoring::examine::Examination;
use crate::authoring::reply_files::files_in;
use crate::authoring::stage::{Asks, AuthorStage, Examined, Found, Prompt, StageCounts};
use crate::authoring::working::Working;
use crate::authoring::{PromptContext, quotes};
use crate::llm::ModelRole;
use crate::model::{self, ClauseError};

/// The file in a reply.
const FILE: &str = "clauses.toml";

#[derive(Debug)]
pub(in crate::authoring) struct Clauses;

impl AuthorStage for Clauses {
    fn name(&self) -> &'static str {
        "clauses"
    }

    fn asks(&self) -> Asks {
        Asks::Model(ModelRole::Adversary)
    }

    fn prompt(&self, _: &PromptContext<'_>, working: &Working) -> Option<Prompt> {
        let (files, solution) = (working.machine_text(), working.solution_text());
        let task = context! { instruction => &working.instruction, files, solution };
        Some(Prompt { system: context! {}, task })
    }

    fn accept(&self, reply: &str, working: &mut Working, _: &StageCounts) -> Result<(), String> {
        let written = clauses_in(reply)?;
        // A judge decides which mutants are equivalent. The author of the clauses cannot.
        let equivalent = std::mem::take(&mut working.clauses.equivalent);
        working.clauses = model::Clauses { equivalent, ..written };
        Ok(())
    }

    fn examine<'a>(&'a self, draft: &'a mut Examination<'_>) -> LocalBoxFuture<'a, Examined> {
        ready(examined(draft)).boxed_local()
    }
}

/// Finds contradictions between the clauses, the instruction and the solution. Checks are another
/// author's concern.
fn examined(draft: &mut Examination<'_>) -> Examined {
    let task = draft.working.task(draft.context)?;
    let clauses = &draft.working.clauses;
    let mut problems = clauses.problems(&task.instruction, &task.solution, &task.checks, &Default::default());
    problems.retain(|problem| !matches!(problem, ClauseError::NoCheck(_) | ClauseError::UnknownCheck { .. }));
    if problems.is_empty() {
        draft.working.clauses = quotes::assigned(clauses.clone(), &draft.working.checks);
    }
    Ok(Found::of(&Clauses, problems.iter().map(ToString::to_string).collect()))
}

/// The clauses in a reply. They name no checks, because the model does not see any.
pub(in crate::authoring) fn clauses_in(reply: &str) -> Result<model::Clauses, String> {
    let files = files_in(reply)?;
    let text = files.text(FILE).ok_or_else(|| format!("there is no `{FILE}`"))?;
    let mut table: toml::Table = toml::from_str(text).map_err(|error| format!("`{FILE}`: {error}"))?;
    for clause in table.get_mut("clause").and_then(toml::Value::as_array_mut).into_iter().flatten() {
        if let Some(clause) = clause.as_table_mut() {
            clause.insert("checks".to_owned(), toml::Value::Array(Vec::new()));
        }
    }
    table.try_into().map_err(|error: toml::de::Error| format!("`{FILE}`: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authoring::stages::tests::{accepts, file, keeps_judged};

    #[test]
    fn clauses_are_one_file() {
        let check = |text: &str, expect: Result<(), &str>| accepts(&Clauses, &file(FILE, text), expect);
        let one = "background = [\"x\"]\n[[clause]]\nid = \"a\"\nsays = [\"b\"]";
        check(one, Ok(()));
        check("clause = 3 4", Err("clauses.toml"));
        check("[[clause]]\nname = \"a\"", Err("unknown field"));
        assert!(keeps_judged(&Clauses, &file(FILE, one)));
    }
}
