//! The stage that writes mistakes: whole wrong solutions, as edits of the reference. Its model has
//! not seen the tests, and writes what an implementer may overlook.
//!
//! A violation breaks one sentence. Tests that noticed each violation still passed a fifth of the
//! wrong solutions that an outsider wrote. Those mixed up several sentences, or met an input that
//! no sentence names.

use std::collections::BTreeSet;

use futures_util::future::{FutureExt as _, LocalBoxFuture};
use minijinja::context;
use serde::Deserialize;

use super::Checks;
use crate::authoring::PromptContext;
use crate::authoring::examine::{Effect, Examination};
use crate::authoring::reply_files::files_in;
use crate::authoring::stage::{Asks, AuthorStage, Examined, Found, Prompt, StageCounts, StageOption};
use crate::authoring::working::{Working, Wrong};
use crate::llm::ModelRole;
use crate::model::{FileTree, TextEdit, Violation, WrongSolution, is_kebab_case, squeeze};

/// The file in a reply.
const FILE: &str = "mistakes.toml";
/// Prefix of a mistake's name in a certificate.
const PREFIX: &str = "mistake-";

/// The default number. With more, most mistakes of an outsider repeated earlier ones.
const USUAL: u32 = 6;
/// The largest number that fits into one reply.
const MOST: u32 = 20;

#[derive(Debug)]
pub(in crate::authoring) struct Mistakes;

impl AuthorStage for Mistakes {
    fn name(&self) -> &'static str {
        "mistakes"
    }

    fn asks(&self) -> Asks {
        Asks::Model(ModelRole::Adversary)
    }

    fn option(&self) -> Option<StageOption> {
        Some(StageOption {
            name: self.name(),
            help: "Wrong solutions of each task that an adversary writes without seeing the tests, and that these have to stop; 0 leaves the stage out",
            usual: USUAL,
            most: MOST,
        })
    }

    fn prompt(&self, context: &PromptContext<'_>, working: &Working) -> Option<Prompt> {
        let (files, solution) = (working.machine_text(), working.solution_text());
        let count = context.counts.of(self.name());
        let task = context! { instruction => &working.instruction, files, solution, count };
        Some(Prompt { system: context! {}, task })
    }

    fn accept(&self, reply: &str, working: &mut Working, counts: &StageCounts) -> Result<(), String> {
        let most = counts.of(self.name());
        let mistakes = mistakes(reply, &working.solution, &working.instruction, most)?;
        working.wrong.insert(self.name(), mistakes);
        Ok(())
    }

    fn examine<'a>(&'a self, draft: &'a mut Examination<'_>) -> LocalBoxFuture<'a, Examined> {
        async {
            let passing = draft.passing(self).await?;
            Ok(overlooked(draft.survivors, &passing))
        }
        .boxed_local()
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reply {
    #[serde(default)]
    mistake: Vec<Written>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: String,
    that: String,
    /// Words of the instruction.
    violates: String,
    /// An input, the wrong result, and the right one.
    shown: String,
    #[serde(default)]
    edit: Vec<TextEdit>,
    #[serde(default)]
    after: Option<String>,
}

/// The mistakes of a reply, at most `most` of them. Their texts for the checks' author contain no
/// line of the reference, which that author must not see.
fn mistakes(reply: &str, solution: &FileTree, instruction: &str, most: u32) -> Result<Vec<Wrong>, String> {
    let files = files_in(reply)?;
    let text = files.text(FILE).ok_or_else(|| format!("there is no `{FILE}`"))?;
    let Reply { mistake } = toml::from_str(text).map_err(|error| format!("`{FILE}`: {error}"))?;
    let instruction = squeeze(instruction);
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let mut found: Vec<Wrong> = Vec::new();
    for written in mistake.into_iter().take(most) {
        let Written { name, that, violates, shown, edit, after } = written;
        let row = format!("{PREFIX}{name}");
        if !is_kebab_case(&name) || found.iter().any(|other| other.solution.name == row) {
            return Err(format!("`{name}` is not kebab-case, or two mistakes have this name"));
        }
        let words = squeeze(&violates);
        if words.is_empty() || !instruction.contains(&words) {
            return Err(format!("`{name}` violates “{violates}”, which the instruction does not say"));
        }
        let violation = Violation { name, that: that.clone(), edit, after };
        let identity = violation.identity();
        let files = violation.apply(solution).map_err(|error| error.to_string())?;
        found.push(Wrong {
            feedback: format!("a solution that {that} violates “{violates}”: {shown}"),
            solution: WrongSolution { name: row, why: that, files },
            identity,
        });
    }
    Ok(found)
}

/// The first time that mistakes pass, the author of the checks is asked about them. The second
/// time, or if a mistake changes nothing, the mistakes' own author is asked.
fn overlooked(survivors: &mut BTreeSet<String>, passing: &[(Wrong, Effect)]) -> Option<Found> {
    let feedback = |mistake: &Wrong, what: &str| format!("{}\n   {what}", mistake.feedback);
    let is_new = |(mistake, effect): &&(Wrong, Effect)| {
        *effect == Effect::Some && !survivors.contains(&mistake.identity)
    };
    let (new, again): (Vec<_>, Vec<_>) = passing.iter().partition(is_new);
    if !new.is_empty() {
        survivors.extend(new.iter().map(|(mistake, _)| mistake.identity.clone()));
        let what = "Yet it passes every check. (If the instruction allows what it does, change nothing for it: then its author is asked to prove it.)";
        let problems = new.into_iter().map(|(mistake, _)| feedback(mistake, what));
        return Found::of(&Checks, problems.collect());
    }
    let problems: Vec<_> = again
        .into_iter()
        .map(|(mistake, effect)| match effect {
            Effect::None => feedback(mistake, "But it leaves what the reference leaves: replace it, or leave it out."),
            Effect::Some => feedback(
                mistake,
                "It passes every check again, after these were strengthened because of it. Perhaps the instruction allows what it does, or no machine that it allows has \
                 such an input: leave it out, or replace it by one whose result is plainly wrong.",
            ),
        })
        .collect();
    Found::of(&Mistakes, problems)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{File, RelPath};

    #[test]
    fn mistakes_edit_the_reference_and_quote_the_instruction() {
        let script = File::script("join a b > out\n");
        let solution = FileTree::from_iter([(RelPath::new("solve.sh").unwrap(), script)]);
        let check = |text: &str, expect: Result<&[(&str, &str)], &str>| {
            let reply = format!("<file path=\"mistakes.toml\">\n{text}\n</file>");
            match (mistakes(&reply, &solution, "Join by\nboth keys.", 2), expect) {
                (Ok(found), Ok(expect)) => {
                    let found = found.iter().map(|one| {
                        (one.solution.name.as_str(), one.solution.files.text("solve.sh").unwrap())
                    });
                    assert_eq!(found.collect::<Vec<_>>(), expect, "{text}");
                }
                (Err(problem), Err(part)) => assert!(problem.contains(part), "{problem}"),
                (found, expect) => panic!("{found:?} where {expect:?} was expected: {text}"),
            }
        };
        let one = |name: &str, violates: &str, change: &str| {
            format!(
                "[[mistake]]\nname = \"{name}\"\nthat = \"joins by one key\"\nviolates = \"{violates}\"\nshown = \"a row\"\n{change}\n"
            )
        };
        let edit = "edit = [{ from = \"join a\", to = \"join -1 1 a\" }]";
        let by_one = one("by-one", "by both keys", edit);
        let edited = ("mistake-by-one", "join -1 1 a b > out\n");
        check(&by_one, Ok(&[edited]));
        check("", Ok(&[]));
        // There may be two mistakes, so the third one is ignored.
        let more: String = ["a", "b", "c"].map(|name| one(name, "Join", edit)).concat();
        check(&more, Ok(&[("mistake-a", edited.1), ("mistake-b", edited.1)]));
        check(&by_one.repeat(2), Err("two mistakes have this name"));
        check(&one("By One", "Join", edit), Err("not kebab-case"));
        check(&one("a", "by one key", edit), Err("which the instruction does not say"));
        check(&one("a", "", edit), Err("which the instruction does not say"));
        check(&one("a", "Join", ""), Err("changes nothing"));
        check(&one("a", "Join", &edit.replace("join a", "sort")), Err("0 times"));
        check("[[mistake]]\nname = \"a\"", Err("missing field"));
        check("[[mistakes]]", Err("unknown field"));
    }

    #[test]
    fn the_checks_author_is_told_no_line_of_the_reference() {
        let script = File::script("join a b > out\n");
        let solution = FileTree::from_iter([(RelPath::new("solve.sh").unwrap(), script)]);
        let reply = "<file path=\"mistakes.toml\">\n[[mistake]]\nname = \"empty\"\nthat = \"leaves it empty\"\nviolates = \"Join\"\nshown = \"any row\"\nafter = \"\
                     true > out\"\n</file>";
        let found = mistakes(reply, &solution, "Join.", 6).unwrap();
        assert_eq!(found[0].feedback, "a solution that leaves it empty violates “Join”: any row");
    }

    #[test]
    fn passing_mistakes_are_told_to_the_checks_author_and_then_to_their_own() {
        let mut survivors = BTreeSet::new();
        let mut check = |passing: &[(&str, Effect)], expect: Option<(&str, usize)>| {
            let mistake = |(identity, effect): &(&str, Effect)| {
                let solution =
                    WrongSolution { name: "m".to_owned(), why: "x".to_owned(), files: FileTree::default() };
                (Wrong { solution, identity: (*identity).to_owned(), feedback: "it".to_owned() }, *effect)
            };
            let passing: Vec<_> = passing.iter().map(mistake).collect();
            let found = overlooked(&mut survivors, &passing);
            assert_eq!(found.map(|found| (found.stage.name(), found.problems.len())), expect);
        };
        let (one, two) = (("one", Effect::Some), ("two", Effect::Some));
        check(&[], None);
        check(&[("none", Effect::None)], Some(("mistakes", 1)));
        check(&[one, ("none", Effect::None)], Some(("checks", 1)));
        check(&[one, two], Some(("checks", 1)));
        check(&[one, two], Some(("mistakes", 2)));
    }
}
