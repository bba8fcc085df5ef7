//! The stage that writes attacks: scripts that try to pass without doing the work.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use futures_util::future::{FutureExt as _, LocalBoxFuture};
use minijinja::context;

use super::Checks;
use crate::authoring::PromptContext;
use crate::authoring::examine::Examination;
use crate::authoring::reply_files::files_in;
use crate::authoring::stage::{Asks, AuthorStage, Examined, Found, Prompt, StageCounts};
use crate::authoring::working::{ENTRY, Working, Wrong};
use crate::llm::ModelRole;
use crate::model::{FileTree, RelPath, WrongSolution};

/// The line in an attack that names the words it violates.
const VIOLATES: &str = "# violates:";
/// Number of attacks in one reply that are executed.
const MAX: usize = 6;
/// Lines of code of one attack. Longer scripts were whole solutions with a hidden flaw. Finite
/// checks always miss some of those. LiteCoder's attacks are shortcuts.
const MAX_LINES: usize = 30;

#[derive(Debug)]
pub(in crate::authoring) struct Attacks;

impl AuthorStage for Attacks {
    fn name(&self) -> &'static str {
        "attacks"
    }

    fn asks(&self) -> Asks {
        Asks::Model(ModelRole::Adversary)
    }

    fn prompt(&self, _: &PromptContext<'_>, working: &Working) -> Option<Prompt> {
        let Working { instruction, checks, .. } = working;
        let task = context! { instruction, files => working.machine_text(), checks };
        Some(Prompt { system: context! {}, task })
    }

    fn accept(&self, reply: &str, working: &mut Working, _: &StageCounts) -> Result<(), String> {
        let attacks = attacks(&files_in(reply)?)?;
        working.wrong.insert(self.name(), attacks);
        Ok(())
    }

    fn examine<'a>(&'a self, draft: &'a mut Examination<'_>) -> LocalBoxFuture<'a, Examined> {
        async {
            let passing = draft.passing(self).await?;
            let passing: Vec<_> = passing.into_iter().map(|(attack, _)| attack).collect();
            Ok(unstopped(draft.survivors, &passing))
        }
        .boxed_local()
    }
}

/// The scripts of a reply, by name. The author of the checks is told which words each one violates.
fn attacks(files: &FileTree) -> Result<Vec<Wrong>, String> {
    let mut attacks = Vec::new();
    for (number, (path, file)) in (1..=MAX).zip(files.iter()) {
        let text = file.as_text().ok_or_else(|| format!("`{path}` is not text"))?;
        let why = text.lines().find_map(|line| line.trim().strip_prefix(VIOLATES)).map(str::trim);
        let why = why.ok_or_else(|| format!("`{path}` has no line `{VIOLATES} …`"))?;
        let code = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let lines = code.count();
        if lines > MAX_LINES {
            return Err(format!(
                "`{path}` has {lines} lines of code, and {MAX_LINES} are the most: a shortcut is short"
            ));
        }
        let entry = RelPath::new(ENTRY).map_err(|error| error.to_string())?;
        attacks.push(Wrong {
            identity: text.to_owned(),
            feedback: why.to_owned(),
            solution: WrongSolution {
                name: format!("attack-{number}"),
                why: why.to_owned(),
                files: FileTree::from_iter([(entry, file.clone())]),
            },
        });
    }
    Ok(attacks)
}

/// The first time that attacks pass, the author of the checks is asked about them. The second time,
/// their own author is asked.
fn unstopped(survivors: &mut BTreeSet<String>, passing: &[Wrong]) -> Option<Found> {
    let (new, again): (Vec<&Wrong>, Vec<&Wrong>) =
        passing.iter().partition(|attack| !survivors.contains(&attack.identity));
    if new.is_empty() {
        let feedback = again.iter().map(|attack| {
            format!(
                "this script, which is to violate “{}”, passes every check again, after these were strengthened because of it. Perhaps its results are right for every \
                 input that the instruction allows: leave it out, or make what is wrong plain:\n{}",
                attack.feedback, attack.identity
            )
        });
        return Found::of(&Attacks, feedback.collect());
    }
    let mut shown: BTreeSet<String> = BTreeSet::new();
    let mut problems = Vec::new();
    for attack in &new {
        problems.push(format!(
            "this script passes every check, although it violates “{}”:\n{}",
            attack.feedback,
            without_repeated(&attack.identity, &shown)
        ));
        shown.extend(attack.identity.lines().map(str::to_owned));
        survivors.insert(attack.identity.clone());
    }
    Found::of(&Checks, problems)
}

/// `script` without long runs of lines that `shown` has. Attacks on one task share most of their
/// text.
fn without_repeated(script: &str, shown: &BTreeSet<String>) -> String {
    /// Shorter runs stay, because they show where the other lines belong.
    const LONG: usize = 4;
    let mut text = String::new();
    let lines: Vec<_> = script.lines().collect();
    for run in lines.chunk_by(|one, other| shown.contains(*one) == shown.contains(*other)) {
        if run.len() >= LONG && shown.contains(run[0]) {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "[{} lines as in a script above]", run.len());
        } else {
            run.iter().for_each(|line| {
                let _ = writeln!(text, "{line}");
            });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authoring::stages::tests::{accepts, file};

    #[test]
    fn attacks_are_short_and_name_what_they_violate() {
        let check = |script: &str, expect: Result<(), &str>| accepts(&Attacks, &file("1.sh", script), expect);
        check("#!/bin/bash\n# violates: sorted\ntrue", Ok(()));
        check("#!/bin/bash\ntrue", Err("no line `# violates:"));
        let lines = |count: usize| format!("# violates: sorted\n\n{}", "true\n".repeat(count));
        check(&lines(MAX_LINES), Ok(()));
        check(&lines(MAX_LINES + 1), Err("31 lines of code"));
    }

    #[test]
    fn passing_attacks_are_told_to_the_checks_author_and_then_to_their_own() {
        let mut survivors = BTreeSet::new();
        let mut check = |scripts: &[&str], expect: Option<(&str, usize)>| {
            let reply = |script: &&str| file("1.sh", &format!("# violates: sorted\n{script}"));
            let attacks: Vec<_> = scripts
                .iter()
                .flat_map(|script| attacks(&files_in(&reply(script)).unwrap()).unwrap())
                .collect();
            let found = unstopped(&mut survivors, &attacks);
            let found = found.map(|found| (found.stage.name(), found.problems.len()));
            assert_eq!(found, expect, "{scripts:?}");
        };
        check(&[], None);
        check(&["one", "two"], Some(("checks", 2)));
        check(&["one", "three"], Some(("checks", 1)));
        check(&["one", "three"], Some(("attacks", 2)));
        check(&[], None);
    }

    #[test]
    fn scripts_are_shown_without_what_was_shown_before() {
        let check = |script: &str, shown: &str, expect: &str| {
            let shown = shown.lines().map(str::to_owned).collect();
            assert_eq!(without_repeated(script, &shown), expect);
        };
        check("a\nb\n", "", "a\nb\n");
        check("a\nb\nc\nd\nnew\n", "a\nb\nc\nd\ne\n", "[4 lines as in a script above]\nnew\n");
        check("a\nnew\nb\nc", "a\nb\nc\n", "a\nnew\nb\nc\n");
    }
}
