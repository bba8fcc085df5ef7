//! The most likely place of each kind of failure, and the request to its author.

use crate::model::{Part, RowKind};

/// The part to look at first, and the request.
pub(crate) fn repair(kind: RowKind, name: &str) -> (Part, &'static str) {
    match (kind, name) {
        (RowKind::Lint, _) => (Part::Environment, "fix the file and line that the message names"),
        (RowKind::Build, _) => {
            (Part::Environment, "make the Dockerfile build from an empty cache; the log's end names the step")
        }
        (RowKind::Untouched, _) => (Part::Tests, "make at least one check fail in the untouched environment"),
        (RowKind::Reference, "shuffled") => {
            (Part::Tests, "make every check independent of earlier ones: each prepares its own state")
        }
        (RowKind::Reference, "offline") => (
            Part::Environment,
            "put files that are fetched at run time into the image, or declare the network",
        ),
        (RowKind::Reference, "half-cpu") => {
            (Part::Tests, "judge by results, not by time; or raise the limits for slow machines")
        }
        (RowKind::Reference, "clock") => {
            (Part::Tests, "compute with the dates of the inputs, never with today's")
        }
        (RowKind::Reference, "rebuilt") => {
            (Part::Environment, "make the image independent of its build time: pin versions, ship the files")
        }
        (RowKind::Reference, "1") => {
            (Part::Solution, "make the reference pass the failed checks, or correct those checks")
        }
        (RowKind::Reference, _) => (
            Part::Tests,
            "find the difference between runs, e.g. time, order, randomness, or a process that still runs",
        ),
        (RowKind::SecondSolution, _) => (
            Part::Instruction,
            "let the instruction demand what the failed checks test, or drop those checks",
        ),
        (RowKind::WrongSolution | RowKind::TruncatedSolution | RowKind::AblatedSolution, _) => {
            (Part::Tests, "add a check that fails for this solution and passes for the reference")
        }
        (RowKind::Clause, _) => (
            Part::Tests,
            "add a check for these words of the instruction, with inputs that show the violation",
        ),
        (RowKind::Mutant, _) => (Part::Tests, "add checks of the values that the surviving mutants change"),
        (RowKind::Variant, _) => {
            (Part::Tests, "compare meaning instead of form, or state the form in the instruction")
        }
        (RowKind::Attack, _) => (
            Part::Tests,
            "trust nothing that the solver can write: absolute tools, `env -i`, `python3 -I`, recomputed truth, fresh reward files",
        ),
        (RowKind::Inputs, _) => (Part::Solution, "work on a copy of the inputs"),
        (RowKind::Leak, _) => (
            Part::Environment,
            "keep the answer out of the build context; deleting it in a later layer does not",
        ),
        (RowKind::Blind, _) => (
            Part::Instruction,
            "find out which of the failed checks no sentence demands; if all are demanded, the task may just be hard: try a stronger solver",
        ),
    }
}
