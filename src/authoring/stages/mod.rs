//! All stages of writing a task. A new stage is one file and one line here.

mod attacks;
mod blind;
mod checks;
mod clauses;
mod configuration;
mod environment;
mod feasibility;
mod idea;
mod instruction;
mod mistakes;
mod screening;
mod solution;

use super::stage::StageRef;

pub(super) use blind::Blind;
pub use blind::{BLIND, BlindSolvers, blind_attempts};
pub(super) use checks::Checks;
pub(super) use clauses::{Clauses, clauses_in};
pub(super) use configuration::Configured;
pub(super) use environment::{Environment, left_over};
pub(super) use feasibility::Feasibility;
pub(super) use feasibility::{Judgement, judged};
pub(super) use idea::{Idea, sampled, shown};
pub(super) use instruction::Instruction;
pub use screening::SCREENING;
pub(super) use solution::Solution;

/// The stages in order. Each is written after the earlier ones are settled, and sees their results.
pub(super) const STAGES: &[StageRef] = &[
    &idea::Idea,
    &feasibility::Feasibility,
    &environment::Environment,
    &instruction::Instruction,
    &solution::Solution,
    &checks::Checks,
    &attacks::Attacks,
    &clauses::Clauses,
    &mistakes::Mistakes,
    &configuration::Configuration,
    &screening::Screening,
    &blind::Blind,
];

/// The place of a stage in [`STAGES`].
pub(super) fn place(stage: StageRef) -> usize {
    STAGES.iter().position(|other| other.name() == stage.name()).unwrap_or(STAGES.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assets::Assets;
    use crate::authoring::estimate::Usual;
    use crate::authoring::stage::{Asks, AuthorStage, StageCounts};
    use crate::authoring::working::Working;
    use crate::model::{Difficulty, EquivalentMutant};

    /// A block of a reply.
    pub(super) fn file(path: &str, content: &str) -> String {
        format!("<file path=\"{path}\">\n{content}\n</file>\n")
    }

    /// Checks that `reply` is taken, or that the problem contains this text.
    pub(super) fn accepts(stage: &dyn AuthorStage, reply: &str, expect: Result<(), &str>) {
        let mut working = Working::new(String::new(), String::new(), Difficulty::Easy);
        match (stage.accept(reply, &mut working, &StageCounts::default()), expect) {
            (Ok(()), Ok(())) => {}
            (Err(problem), Err(part)) => assert!(problem.contains(part), "{problem}"),
            (found, expect) => panic!("{found:?} where {expect:?} was expected: {reply}"),
        }
    }

    /// Whether judgements of mutants still hold after `reply`.
    pub(super) fn keeps_judged(stage: &dyn AuthorStage, reply: &str) -> bool {
        let mut working = Working::new(String::new(), String::new(), Difficulty::Easy);
        let judged = EquivalentMutant { mutant: "m".to_owned(), why: "b".to_owned() };
        working.clauses.equivalent.push(judged);
        let _ = stage.accept(reply, &mut working, &StageCounts::default());
        !working.clauses.equivalent.is_empty()
    }

    #[test]
    fn every_stage_is_complete() {
        let usual = Usual::load(&Assets::embedded(), &StageCounts::default()).unwrap();
        for stage in STAGES {
            let name = stage.name();
            assert_eq!(STAGES.iter().filter(|other| other.name() == name).count(), 1, "{name}");
            assert_eq!(usual.of(name).is_some(), stage.asks() != Asks::Nobody, "{name}");
            assert!(stage.option().is_none_or(|option| option.name == name), "{name}");
        }
    }
}
