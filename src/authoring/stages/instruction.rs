//! The stage that writes the text for solvers. Its rules need no trial.

use std::sync::LazyLock;

use futures_util::future::{FutureExt as _, LocalBoxFuture, ready};
use minijinja::context;
use regex::Regex;

use crate::authoring::PromptContext;
use crate::authoring::examine::Examination;
use crate::authoring::stage::{Asks, AuthorStage, Examined, Found, Prompt, StageCounts};
use crate::authoring::working::Working;
use crate::llm::ModelRole;

/// Accepted number of words. A shorter instruction leaves the result open, and a longer one is a
/// manual.
const WORDS: std::ops::RangeInclusive<usize> = 60..=1200;

/// Words that belong to the harness and not to the requester's world, e.g. names of test tools.
static HARNESS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?i)\b(pytest|test_outputs|solve\.sh|reference solution|grader|hidden tests?|unit tests? will)\b",
    )
    .ok()
});
/// Orders to type a command. An instruction should demand a final state (prescription level of
/// LongCLI-Bench).
static PRESCRIBES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?im)^\s*(?:\d+\.|[-*])?\s*(?:first|then|next|now|step \d+)[,:]?\s+(?:run|execute|type|use)\b",
    )
    .ok()
});

#[derive(Debug)]
pub(in crate::authoring) struct Instruction;

impl AuthorStage for Instruction {
    fn name(&self) -> &'static str {
        "instruction"
    }

    fn asks(&self) -> Asks {
        Asks::Model(ModelRole::Author)
    }

    fn prompt(&self, _: &PromptContext<'_>, working: &Working) -> Option<Prompt> {
        let (request, difficulty) = (&working.request, working.difficulty.as_str());
        let task = context! { request, difficulty, files => working.machine_text() };
        Some(Prompt { system: context! {}, task })
    }

    fn accept(&self, reply: &str, working: &mut Working, _: &StageCounts) -> Result<(), String> {
        let text = reply.trim();
        let fenced = text.strip_prefix("```markdown").or_else(|| text.strip_prefix("```md"));
        let text = fenced.and_then(|text| text.strip_suffix("```")).unwrap_or(text).trim();
        text.clone_into(&mut working.instruction);
        working.forget_judged();
        Ok(())
    }

    fn examine<'a>(&'a self, draft: &'a mut Examination<'_>) -> LocalBoxFuture<'a, Examined> {
        ready(Ok(Found::of(&Self, problems(&draft.working.instruction)))).boxed_local()
    }
}

/// The problems of `instruction`.
fn problems(instruction: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let words = instruction.split_whitespace().count();
    if !WORDS.contains(&words) {
        problems.push(format!("it has {words} words; {} to {} are expected", WORDS.start(), WORDS.end()));
    }
    if !instruction.contains("/app") {
        problems.push("it names no path below /app, so nobody knows where the result belongs".to_owned());
    }
    let found = |pattern: &'static LazyLock<Option<Regex>>| {
        pattern
            .as_ref()
            .and_then(|pattern| pattern.find(instruction))
            .map(|found| found.as_str().trim().to_owned())
    };
    if let Some(word) = found(&HARNESS) {
        problems.push(format!("it mentions `{word}`: a requester knows nothing of checks"));
    }
    if let Some(order) = found(&PRESCRIBES) {
        problems.push(format!("“{order}” says how to work; say what is to be there in the end"));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authoring::stages::tests::{accepts, keeps_judged};

    #[test]
    fn any_text_is_an_instruction() {
        accepts(&Instruction, "Sort it.", Ok(()));
        assert!(!keeps_judged(&Instruction, "Sort it."));
    }

    #[test]
    fn instructions_are_judged_by_their_words() {
        let long = "The file `/app/orders.csv` lists orders, and each of them has a date. ".repeat(8);
        let check = |text: &str, expect: &[&str]| {
            let found = problems(text);
            assert_eq!(found.len(), expect.len(), "{text}: {found:?}");
            for (found, part) in found.iter().zip(expect) {
                assert!(found.contains(part), "{found}");
            }
        };
        check(&long, &[]);
        check("Sort /app/x.", &["2 words"]);
        check(&long.replace("/app", "/srv"), &["no path"]);
        check(&format!("{long}\nThe hidden tests look at it."), &["hidden tests"]);
        check(&format!("{long}\n1. First, run `make`."), &["says how to work"]);
        check(&format!("{long}\nThe program runs first. Then run times are compared."), &[]);
    }
}
