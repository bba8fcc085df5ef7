//! What each stage is asked, and how its reply becomes a part of the draft.

use minijinja::context;

use super::configuration::Configuration;
use super::mistakes::mistakes;
use super::reply_files::{corrected, files_in};
use super::stage_conversation::StageConversation;
use super::working::{APP, CHECKS, SETUP, Working};
use super::{PromptContext, StageError};
use crate::folder::is_clutter;
use crate::model::{AuthorStage, Clauses, File, FileTree, RelPath, WrongSolution};
use crate::recording::Recording;

/// Seconds that the prompt gives a reference solution. Screening runs it dozens of times.
const SOLUTION_SECONDS: u32 = 60;
/// A solution's entry point.
const ENTRY: &str = "solve.sh";
/// The line of an attack that names the words it violates.
const VIOLATES: &str = "# violates:";
/// Attacks of one reply that are executed.
const MAX_ATTACKS: usize = 6;
/// Lines of code of one attack. In a longer one players hid a flaw in a whole solution, of which there is always another that finite checks miss;
/// LiteCoder's attacks are shortcuts.
const MAX_ATTACK_LINES: usize = 30;

/// The conversation of `stage`, with the parts of the draft that it may see.
pub(super) fn open(
    context: &PromptContext<'_>,
    stage: AuthorStage,
    working: &Working,
) -> Result<StageConversation, StageError> {
    let files = working.machine_text();
    let Working { request, instruction, checks, .. } = working;
    let difficulty = working.difficulty.as_str();
    let language = &context.blueprint.language;
    let recording = context.recording.map(Recording::excerpt);
    let commands = context.recording.map(|recording| recording.commands.clone());
    let (system, task) = match stage {
        AuthorStage::Environment => {
            let base = context.kit.base(&context.spec.base).unwrap_or_default();
            (context! { base }, context! { request, difficulty, language, recording })
        }
        AuthorStage::Instruction => (context! {}, context! { request, difficulty, files }),
        AuthorStage::Solution => {
            (context! { seconds => SOLUTION_SECONDS }, context! { instruction, files, commands })
        }
        AuthorStage::Checks => {
            let subject = context.kit.subject_interface();
            // A seed per task, so that inputs differ between tasks.
            let seed = context.blueprint.seed.derive(&["checks"]).0 % 1_000_000;
            (context! { subject, seed }, context! { instruction, files })
        }
        AuthorStage::Attacks => (context! {}, context! { instruction, files, checks }),
        AuthorStage::Clauses => {
            (context! {}, context! { instruction, files, solution => working.solution_text() })
        }
        AuthorStage::Mistakes => {
            let (solution, count) = (working.solution_text(), context.mistakes);
            (context! {}, context! { instruction, files, solution, count })
        }
        AuthorStage::Configuration => {
            (context! {}, context! { instruction, difficulty, checks, solution => working.solution_text() })
        }
        AuthorStage::Idea | AuthorStage::Feasibility | AuthorStage::Screening | AuthorStage::Blind => {
            (context! {}, context! {})
        }
    };
    StageConversation::open(context.texts, stage, system, task)
}

/// Reads a reply of `stage` into the draft, with at most `most_mistakes` mistakes. The error is told to the model.
pub(super) fn accept(
    stage: AuthorStage,
    reply: &str,
    working: &mut Working,
    most_mistakes: u32,
) -> Result<(), String> {
    match stage {
        AuthorStage::Environment => {
            let files = corrected(reply, &working.machine)?;
            let strange =
                files.iter().find(|(path, _)| !path.as_str().starts_with(APP) && path.as_str() != SETUP);
            if let Some((path, _)) = strange {
                return Err(format!("`{path}` is neither below `{APP}` nor `{SETUP}`"));
            }
            if let Some(path) = left_over(&files) {
                return Err(path);
            }
            if !files.iter().any(|(path, _)| path.as_str().starts_with(APP)) {
                return Err(format!("no file is below `{APP}`: the image needs that folder"));
            }
            working.machine = files;
            working.made = None;
        }
        AuthorStage::Instruction => {
            let text = reply.trim();
            let fenced = text.strip_prefix("```markdown").or_else(|| text.strip_prefix("```md"));
            let text = fenced.and_then(|text| text.strip_suffix("```")).unwrap_or(text).trim();
            text.clone_into(&mut working.instruction);
        }
        AuthorStage::Solution => {
            let files = corrected(reply, &working.solution)?;
            if files.text(ENTRY).is_none() {
                return Err(format!("there is no `{ENTRY}`"));
            }
            working.solution = files;
        }
        AuthorStage::Checks => {
            let path = RelPath::new(CHECKS).map_err(|error| error.to_string())?;
            let before = FileTree::from_iter([(path, File::text(working.checks.clone()))]);
            let files = corrected(reply, &before)?;
            let text = files.text(CHECKS).ok_or_else(|| format!("there is no `{CHECKS}`"))?;
            if crate::author::check_ids(text).is_empty() {
                return Err(format!("`{CHECKS}` has no function called `test_…` at the top level"));
            }
            text.clone_into(&mut working.checks);
        }
        AuthorStage::Attacks => working.attacks = attacks(&files_in(reply)?)?,
        AuthorStage::Clauses => {
            let written = clauses_in(reply)?;
            // A judge says which mutants are equivalent, not the author of the clauses.
            let equivalent = std::mem::take(&mut working.clauses.equivalent);
            working.clauses = Clauses { equivalent, ..written };
        }
        AuthorStage::Mistakes => {
            working.mistakes = mistakes(reply, &working.solution, &working.instruction, most_mistakes)?;
        }
        AuthorStage::Configuration => {
            working.configuration = Configuration::parse(reply, &crate::author::check_ids(&working.checks))?;
        }
        AuthorStage::Idea | AuthorStage::Feasibility | AuthorStage::Screening | AuthorStage::Blind => {}
    }
    // Mutants were judged against the machine, the instruction and the solution. A reply that
    // could not be read has changed none of them.
    if stage <= AuthorStage::Solution {
        working.clauses.equivalent.clear();
    }
    Ok(())
}

/// The problem of a file that Harbor does not package, because its name is a left-over's.
pub(super) fn left_over(files: &FileTree) -> Option<String> {
    let (path, _) = files.iter().find(|(path, _)| path.as_str().split('/').any(is_clutter))?;
    Some(format!(
        "`{path}` is named like a left-over, which tasks cannot ship: remove it, or give it another name"
    ))
}

/// The scripts, by name, each with the words that it says it violates.
fn attacks(files: &FileTree) -> Result<Vec<WrongSolution>, String> {
    let mut attacks = Vec::new();
    for (number, (path, file)) in (1..=MAX_ATTACKS).zip(files.iter()) {
        let text = file.as_text().ok_or_else(|| format!("`{path}` is not text"))?;
        let why = text.lines().find_map(|line| line.trim().strip_prefix(VIOLATES)).map(str::trim);
        let why = why.ok_or_else(|| format!("`{path}` has no line `{VIOLATES} …`"))?;
        let code = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let lines = code.count();
        if lines > MAX_ATTACK_LINES {
            return Err(format!(
                "`{path}` has {lines} lines of code, and {MAX_ATTACK_LINES} are the most: a shortcut is short"
            ));
        }
        let entry = RelPath::new(ENTRY).map_err(|error| error.to_string())?;
        attacks.push(WrongSolution {
            name: format!("attack-{number}"),
            why: why.to_owned(),
            files: FileTree::from_iter([(entry, file.clone())]),
        });
    }
    Ok(attacks)
}

/// `clauses.toml` as a model writes it: without checks, which it does not see.
pub(super) fn clauses_in(reply: &str) -> Result<Clauses, String> {
    let files = files_in(reply)?;
    let text = files.text("clauses.toml").ok_or("there is no `clauses.toml`")?;
    let mut table: toml::Table = toml::from_str(text).map_err(|error| format!("`clauses.toml`: {error}"))?;
    for clause in table.get_mut("clause").and_then(toml::Value::as_array_mut).into_iter().flatten() {
        if let Some(clause) = clause.as_table_mut() {
            clause.insert("checks".to_owned(), toml::Value::Array(Vec::new()));
        }
    }
    table.try_into().map_err(|error: toml::de::Error| format!("`clauses.toml`: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Difficulty, EquivalentMutant};

    fn check(stage: AuthorStage, reply: &str, expect: Result<(), &str>) {
        let mut working = Working::begun(String::new(), String::new(), Difficulty::Easy);
        let judged = EquivalentMutant { mutant: "m".to_owned(), why: "b".to_owned() };
        working.clauses.equivalent.push(judged);
        // An accepted reply that changes the judged files discards the judge's answers.
        let is_changed = expect.is_ok() && stage <= AuthorStage::Solution;
        let left = usize::from(!is_changed);
        match (accept(stage, reply, &mut working, 6), expect) {
            (Ok(()), Ok(())) => {}
            (Err(problem), Err(part)) => assert!(problem.contains(part), "{problem}"),
            (found, expect) => panic!("{found:?} where {expect:?} was expected: {reply}"),
        }
        assert_eq!(working.clauses.equivalent.len(), left, "{reply}");
    }

    #[test]
    fn replies_are_checked_for_their_form() {
        let file = |path: &str, content: &str| format!("<file path=\"{path}\">\n{content}\n</file>\n");
        use AuthorStage::{Attacks, Checks, Clauses, Environment, Instruction, Solution};
        check(Environment, &file("app/x.txt", "x"), Ok(()));
        check(Environment, &(file("app/x.txt", "x") + &file("setup.sh", "true")), Ok(()));
        check(Environment, &file("setup.sh", "true"), Err("no file is below"));
        check(Environment, &file("etc/passwd", "x"), Err("neither"));
        check(Environment, &file("app/../x", "x"), Err("app/../x"));
        check(Environment, "Here it is.", Err("no block"));
        check(Instruction, "Sort it.", Ok(()));
        check(Solution, &file("solve.sh", "true"), Ok(()));
        check(Solution, &file("run.sh", "true"), Err("no `solve.sh`"));
        check(Checks, &file("test_outputs.py", "def test_a():\n    pass"), Ok(()));
        check(
            Checks,
            &file("test_outputs.py", "def check_a():\n    pass"),
            Err("no function called `test_…`"),
        );
        check(Checks, &file("tests.py", ""), Err("no `test_outputs.py`"));
        check(Attacks, &file("1.sh", "#!/bin/bash\n# violates: sorted\ntrue"), Ok(()));
        check(Attacks, &file("1.sh", "#!/bin/bash\ntrue"), Err("no line `# violates:"));
        let lines = |count: usize| format!("# violates: sorted\n\n{}", "true\n".repeat(count));
        check(Attacks, &file("1.sh", &lines(MAX_ATTACK_LINES)), Ok(()));
        check(Attacks, &file("1.sh", &lines(MAX_ATTACK_LINES + 1)), Err("31 lines of code"));
        check(
            Clauses,
            &file("clauses.toml", "background = [\"x\"]\n[[clause]]\nid = \"a\"\nsays = [\"b\"]"),
            Ok(()),
        );
        check(Clauses, &file("clauses.toml", "clause = 3 4"), Err("clauses.toml"));
        check(Clauses, &file("clauses.toml", "[[clause]]\nname = \"a\""), Err("unknown field"));
    }
}
