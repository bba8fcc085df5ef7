//! Asks a model whether mutants that pass every check violate the instruction at all. The model
//! sees no checks.
//!
//! A mutant that violates nothing is equivalent to the reference, so no check can stop it. Deciding
//! that is undecidable in general, and expensive by hand. Meta's ACH asks a model too (arXiv
//! 2501.12862). Here the model must quote the words that a mutant violates. Mutants without such
//! words are set aside. The certificate names them, with the model's reason.

use std::collections::BTreeMap;

use minijinja::value::Serde;
use minijinja::{Value, context};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::question::question;
use super::working::Working;
use super::{StageContext, StageError};
use crate::llm::{AskError, CallSite, ChatMessage, ChatRequest, ModelRole, ask_checked};
use crate::model::{Certificate, EquivalentMutant, FileTree, Outcome, RowKind, squeeze};
use crate::mutate::mutants;

/// Mutants in one request. The model has to think through each of them.
const MOST: usize = 20;

/// A mutant that passed, as the judge sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Survivor {
    name: String,
    /// The changed lines, before and after.
    change: String,
}

/// The judgements in one reply.
#[derive(Debug, Default)]
pub(super) struct Judgements {
    pub(super) equivalent: Vec<EquivalentMutant>,
    /// The words that a mutant violates, by its name. Empty if the judge did not say.
    pub(super) violated: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct Reply {
    mutants: Vec<Judged>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct Judged {
    number: usize,
    #[serde(default)]
    violates: String,
    reason: String,
}

/// The surviving mutants that the judge must still see. Empty unless the mutants reject the draft.
/// At most [`MOST`].
pub(super) fn open(
    certificate: &Certificate,
    solution: &FileTree,
    violated: &BTreeMap<String, String>,
) -> Vec<Survivor> {
    if !certificate.reasons.iter().any(|reason| reason.kind == RowKind::Mutant) {
        return Vec::new();
    }
    let rows = certificate.rows.iter().filter(|row| row.kind == RowKind::Mutant && row.counts);
    let names = rows.filter(|row| row.outcome == Some(Outcome::Pass)).map(|row| &row.name);
    let names: Vec<_> = names.filter(|name| !violated.contains_key(*name)).take(MOST).collect();
    if names.is_empty() {
        return Vec::new();
    }
    let all: BTreeMap<_, _> =
        mutants(solution).into_iter().map(|mutant| (mutant.name(), mutant.files)).collect();
    let shown = |name: &String| Survivor {
        name: name.clone(),
        change: all.get(name).map(|files| change(solution, files)).unwrap_or_default(),
    };
    names.into_iter().map(shown).collect()
}

/// The lines in which two solutions differ.
fn change(before: &FileTree, after: &FileTree) -> String {
    let texts = |path: &str| Some((before.text(path)?, after.text(path)?));
    let changed = before.iter().filter_map(|(path, _)| texts(path.as_str())).find(|(old, new)| old != new);
    let Some((old, new)) = changed else { return String::new() };
    let (old, new): (Vec<_>, Vec<_>) = (old.lines().collect(), new.lines().collect());
    let same = |pairs: &mut dyn Iterator<Item = (&&str, &&str)>| {
        pairs.take_while(|(one, other)| one == other).count()
    };
    let head = same(&mut old.iter().zip(&new));
    let most = old.len().min(new.len()) - head;
    let tail = same(&mut old.iter().rev().zip(new.iter().rev())).min(most);
    let lines = |sign: &str, lines: &[&str]| -> String {
        lines[head..lines.len() - tail].iter().map(|line| format!("   {sign} {line}\n")).collect()
    };
    format!("{}{}", lines("-", &old), lines("+", &new))
}

/// Asks about `survivors`. If the judge gives no usable answer, all of them count as violations.
pub(super) async fn judged(
    context: &StageContext<'_>,
    working: &Working,
    survivors: &[Survivor],
) -> Result<Judgements, StageError> {
    let texts = &context.texts.equivalence;
    let instruction = &working.instruction;
    let (files, solution) = (&working.machine_text(), &working.solution_text());
    let request = ChatRequest::of(vec![
        ChatMessage::system(texts.text("system.md")?),
        ChatMessage::user(texts.render(
            "task.md.j2",
            context! { instruction, files, solution, mutants => Value::from(Serde(survivors)) },
        )?),
    ]);
    let shown = json!({
        "instruction": instruction, "files": files, "solution": solution, "survivors": survivors,
    });
    let site = CallSite {
        role: ModelRole::Judge,
        unit: context.unit.to_owned(),
        stage: format!("author-equivalence/{}", question(&shown)?),
        round: context.evolution,
        step: 0,
        sample: 0,
    };
    let whole = squeeze(instruction);
    let reply = ask_checked(context.models, &site, &request, |reply: &Reply| {
        problem(reply, survivors.len(), &whole).map_or(Ok(()), Err)
    });
    match reply.await {
        Ok(reply) => Ok(sorted(survivors, &reply)),
        Err(AskError::Unusable { .. }) => Ok(sorted(survivors, &Reply { mutants: Vec::new() })),
        Err(error) => Err(error.into()),
    }
}

/// What is wrong with a reply about `count` mutants.
fn problem(reply: &Reply, count: usize, instruction: &str) -> Option<String> {
    let mut numbers: Vec<_> = reply.mutants.iter().map(|judged| judged.number).collect();
    numbers.sort_unstable();
    if numbers != (1..=count).collect::<Vec<_>>() {
        return Some(format!("each number from 1 to {count} must be there once"));
    }
    let misquotes = |judged: &&Judged| !instruction.contains(&squeeze(&judged.violates));
    let misquoted = reply.mutants.iter().find(misquotes)?;
    Some(format!("`violates` of number {} is not in the instruction: quote it verbatim", misquoted.number))
}

/// The judgements of `reply`, by mutant. A mutant that the reply does not name counts as a
/// violation.
fn sorted(survivors: &[Survivor], reply: &Reply) -> Judgements {
    let mut judgements = Judgements::default();
    for (index, Survivor { name, .. }) in survivors.iter().enumerate() {
        match reply.mutants.iter().find(|judged| judged.number == index + 1) {
            Some(judged) if judged.violates.trim().is_empty() => judgements
                .equivalent
                .push(EquivalentMutant { mutant: name.clone(), why: squeeze(&judged.reason) }),
            judged => {
                let words = judged.map(|judged| squeeze(&judged.violates)).unwrap_or_default();
                judgements.violated.insert(name.clone(), words);
            }
        }
    }
    judgements
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{File, RelPath};

    #[test]
    fn changed_lines_are_shown_before_and_after() {
        let tree = |text: &str| {
            FileTree::from_iter([(RelPath::new("solve.sh").unwrap(), File::script(text.to_owned()))])
        };
        let check = |before: &str, after: &str, expect: &str| {
            assert_eq!(change(&tree(before), &tree(after)), expect, "{before:?} {after:?}");
        };
        check("a\nb\nc\n", "a\nx\nc\n", "   - b\n   + x\n");
        check("a\nb\nc\n", "a\nc\n", "   - b\n");
        check("a\na\n", "a\n", "   - a\n");
        check("a\nb\n", "b\na\n", "   - a\n   - b\n   + b\n   + a\n");
        check("a\n", "a\n", "");
    }

    #[test]
    fn replies_name_each_mutant_once_and_quote_the_instruction() {
        let check = |reply: &str, expect: Result<(usize, &[&str]), &str>| {
            let reply: Reply = serde_json::from_str(reply).unwrap();
            let survivors =
                ["one", "two"].map(|name| Survivor { name: name.to_owned(), change: String::new() });
            match (problem(&reply, survivors.len(), &squeeze("Sort the\nrows. Count them.")), expect) {
                (None, Ok((equivalent, violated))) => {
                    let found = sorted(&survivors, &reply);
                    assert_eq!(found.equivalent.len(), equivalent, "{found:?}");
                    assert_eq!(found.violated.values().collect::<Vec<_>>(), violated, "{found:?}");
                }
                (Some(problem), Err(part)) => assert!(problem.contains(part), "{problem}"),
                (found, expect) => panic!("{found:?} where {expect:?} was expected"),
            }
        };
        let (equal, rows) = (
            r#"{"number": 1, "reason": "No input has it."}"#,
            r#""violates": "Sort the rows", "reason": "b, a""#,
        );
        check(&format!(r#"{{"mutants": [{equal}, {{"number": 2, {rows}}}]}}"#), Ok((1, &["Sort the rows"])));
        check(&format!(r#"{{"mutants": [{equal}]}}"#), Err("each number from 1 to 2"));
        check(&format!(r#"{{"mutants": [{equal}, {equal}]}}"#), Err("each number from 1 to 2"));
        check(
            &format!(
                r#"{{"mutants": [{equal}, {{"number": 2, "violates": "Sort columns", "reason": ""}}]}}"#
            ),
            Err("of number 2 is not in the instruction"),
        );
    }
}
