//! Rules for an instruction that need no trial.

use std::sync::LazyLock;

use regex::Regex;

/// Words of an instruction: fewer leave the result open, more are no longer an instruction.
const WORDS: std::ops::RangeInclusive<usize> = 60..=1200;

/// Words that belong to the harness and not to the requester's world.
static HARNESS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?i)\b(pytest|test_outputs|solve\.sh|reference solution|grader|hidden tests?|unit tests? will)\b",
    )
    .ok()
});
/// Orders to type a command: the instruction demands a final state (prescription level of LongCLI-Bench).
static PRESCRIBES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?im)^\s*(?:\d+\.|[-*])?\s*(?:first|then|next|now|step \d+)[,:]?\s+(?:run|execute|type|use)\b",
    )
    .ok()
});

/// What is wrong with `instruction`.
pub(super) fn problems(instruction: &str) -> Vec<String> {
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
