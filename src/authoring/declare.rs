//! Has a model write the clauses of any task. It sees the instruction and the reference, and no
//! tests.

use minijinja::context;

use super::stage::Prompt;
use super::stage_conversation::{Asking, Evidence, StageConversation};
use super::stages::{self, clauses_in};
use super::working::files_text;
use super::{MAX_VERSIONS, StageError};
use crate::model::{ClauseError, Clauses, FileTree};

/// The parts of a task that its clauses depend on.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    pub instruction: &'a str,
    pub environment: &'a FileTree,
    pub solution: &'a FileTree,
}

/// Asks for the clauses of a task. The inner `Err` has the problems of the last version, after
/// [`MAX_VERSIONS`].
pub async fn declare_clauses(
    asking: &Asking<'_>,
    source: Source<'_>,
) -> Result<Result<Clauses, Vec<String>>, StageError> {
    let Source { instruction, environment, solution } = source;
    let task = context! {
        instruction, files => files_text(environment), solution => files_text(solution)
    };
    let prompt = Prompt { system: context! {}, task };
    let mut conversation = StageConversation::open(asking.texts, &stages::Clauses, prompt)?;
    loop {
        let reply = conversation.reply(asking).await?;
        let problems = match reply.and_then(|reply| clauses_in(&reply)) {
            Err(problem) => vec![problem],
            Ok(clauses) => match problems(&clauses, source) {
                problems if problems.is_empty() => return Ok(Ok(clauses)),
                problems => problems,
            },
        };
        if conversation.versions() >= MAX_VERSIONS {
            return Ok(Err(problems));
        }
        conversation.correct(asking, Evidence::Read, &problems)?;
    }
}

/// Contradictions, and sentences without a clause.
fn problems(clauses: &Clauses, source: Source<'_>) -> Vec<String> {
    let misfits = clauses.misfits(source.instruction, source.solution);
    let uncovered = clauses.uncovered(source.instruction).into_iter().map(ClauseError::Uncovered);
    misfits.into_iter().chain(uncovered).map(|problem| problem.to_string()).collect()
}
