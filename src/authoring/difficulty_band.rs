//! Measures a task's difficulty: a strong and a weak solver try it. A task outside the wanted band
//! is rewritten to be harder or easier (an evolution).
//!
//! A policy learns most from a task that it passes about half the time. It learns nothing from a
//! task that everyone passes or that nobody passes. TMax and FACET use pass-rate bands too
//! (`reference/landscape.md`).

use minijinja::context;

use super::working::Working;
use super::{StageContext, StageError};
use crate::llm::{CallSite, ChatMessage, ChatRequest, ModelRole};
use crate::model::{DifficultyBand, DifficultyRecord, Passed};
use crate::rollout::{AgentConfig, PreparedTask, Texts, attempt, read_record};

/// Number of times that a task is evolved. An evolution costs as much as a new task.
pub(super) const MAX_EVOLUTIONS: u32 = 2;
/// The stage name of the call that asks for a harder or easier request.
const STAGE: &str = "author-evolve";

/// A strong and a weak solver.
#[derive(Clone, Copy, Debug)]
pub struct SolverPair<'a> {
    pub texts: &'a Texts,
    pub strong: &'a AgentConfig,
    pub weak: &'a AgentConfig,
    /// Attempts of each solver.
    pub attempts: u32,
}

/// Lets both solvers try the draft. `edition` numbers its versions, so each version is tried anew.
pub(super) async fn measured(
    context: &StageContext<'_>,
    pair: &SolverPair<'_>,
    working: &Working,
    edition: u32,
) -> Result<DifficultyRecord, StageError> {
    let draft = working.draft(context)?;
    let hashed = context.hashed(&draft.task)?;
    let prepared = PreparedTask { edition, ..PreparedTask::ours(&hashed) };
    let strong = passed(context, pair, pair.strong, &prepared).await?;
    let weak = passed(context, pair, pair.weak, &prepared).await?;
    Ok(DifficultyRecord {
        evolution: context.evolution,
        strong,
        weak,
        difficulty_band: difficulty_band(strong, weak),
    })
}

async fn passed(
    context: &StageContext<'_>,
    pair: &SolverPair<'_>,
    agent: &AgentConfig,
    prepared: &PreparedTask<'_>,
) -> Result<Passed, StageError> {
    let mut passed = 0;
    for number in 0..pair.attempts {
        let key = attempt(context.runner, context.models, pair.texts, prepared, agent, number).await?;
        let record = read_record(context.runner.store, &key)?;
        passed += u32::from(record.is_some_and(|(record, _)| record.verdict.passed()));
    }
    Ok(Passed { passed, of: pair.attempts })
}

/// The band. A task is wanted if the weak solver passes less than half of its attempts, and the
/// strong one passes at least once.
fn difficulty_band(strong: Passed, weak: Passed) -> DifficultyBand {
    if 2 * weak.passed >= weak.of {
        DifficultyBand::TooEasy
    } else if strong.passed == 0 {
        DifficultyBand::TooHard
    } else {
        DifficultyBand::Wanted
    }
}

/// Asks for the request of a harder or easier task. `context` is that of the next evolution.
pub(super) async fn evolved(
    context: &StageContext<'_>,
    working: &Working,
    measured: &DifficultyRecord,
) -> Result<String, StageError> {
    let texts = &context.texts.evolve;
    let Working { request, instruction, .. } = working;
    let DifficultyRecord { strong, weak, difficulty_band, .. } = measured;
    let rate = |passed: &Passed| context! { passed => passed.passed, of => passed.of };
    let task = context! {
        request, instruction, band => difficulty_band.as_str(), strong => rate(strong), weak => rate(weak)
    };
    let request = ChatRequest::of(vec![
        ChatMessage::system(texts.text("system.md")?),
        ChatMessage::user(texts.render("task.md.j2", task)?),
    ]);
    let site = CallSite {
        role: ModelRole::Author,
        unit: context.unit.to_owned(),
        stage: STAGE.to_owned(),
        round: context.evolution,
        step: 0,
        sample: 0,
    };
    Ok(context.models.call(&site, &request).await?.message.content.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_are_by_what_passed() {
        let check = |strong: (u32, u32), weak: (u32, u32), expect: DifficultyBand| {
            let of = |(passed, of)| Passed { passed, of };
            assert_eq!(difficulty_band(of(strong), of(weak)), expect, "{strong:?} {weak:?}");
        };
        check((3, 3), (0, 3), DifficultyBand::Wanted);
        check((1, 3), (1, 3), DifficultyBand::Wanted);
        check((3, 3), (2, 3), DifficultyBand::TooEasy);
        check((2, 2), (1, 2), DifficultyBand::TooEasy);
        check((0, 3), (3, 3), DifficultyBand::TooEasy);
        check((0, 3), (0, 3), DifficultyBand::TooHard);
    }
}
