//! Whole wrong solutions of somebody who has not seen the tests: what an implementer overlooks, as edits of the reference.
//!
//! Violations break one sentence at a time, and tests that notice each of them still passed a fifth of the wrong solutions that an outsider wrote.
//! Those mix up what several sentences say together, or meet an input that no sentence names.

use serde::Deserialize;

use super::reply_files::files_in;
use crate::model::{FileTree, TextEdit, Violation, WrongSolution, is_kebab_case, squeeze};

/// The file of a reply.
const FILE: &str = "mistakes.toml";
/// Before the name of a mistake in a certificate.
const PREFIX: &str = "mistake-";

/// A mistake, with what the author of the checks is told of it: no line of the reference, which that author must not see.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Mistake {
    pub(super) wrong: WrongSolution,
    /// The same edits again are the same mistake, whatever it is called.
    pub(super) identity: String,
    /// What it does, what that violates, and where it shows.
    pub(super) told: String,
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
    /// An input, what comes of it, and what would be right.
    shown: String,
    #[serde(default)]
    edit: Vec<TextEdit>,
    #[serde(default)]
    after: Option<String>,
}

/// The mistakes of a reply, at most `most` of them. The error is told to the model.
pub(super) fn mistakes(
    reply: &str,
    solution: &FileTree,
    instruction: &str,
    most: u32,
) -> Result<Vec<Mistake>, String> {
    let files = files_in(reply)?;
    let text = files.text(FILE).ok_or_else(|| format!("there is no `{FILE}`"))?;
    let Reply { mistake } = toml::from_str(text).map_err(|error| format!("`{FILE}`: {error}"))?;
    let instruction = squeeze(instruction);
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let mut found: Vec<Mistake> = Vec::new();
    for written in mistake.into_iter().take(most) {
        let Written { name, that, violates, shown, edit, after } = written;
        let row = format!("{PREFIX}{name}");
        if !is_kebab_case(&name) || found.iter().any(|other| other.wrong.name == row) {
            return Err(format!("`{name}` is not kebab-case, or two mistakes have this name"));
        }
        let words = squeeze(&violates);
        if words.is_empty() || !instruction.contains(&words) {
            return Err(format!("`{name}` violates “{violates}”, which the instruction does not say"));
        }
        let violation = Violation { name, that: that.clone(), edit, after };
        let identity = violation.identity();
        let files = violation.apply(solution).map_err(|error| error.to_string())?;
        found.push(Mistake {
            told: format!("a solution that {that} violates “{violates}”: {shown}"),
            wrong: WrongSolution { name: row, why: that, files },
            identity,
        });
    }
    Ok(found)
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
                    let found = found
                        .iter()
                        .map(|one| (one.wrong.name.as_str(), one.wrong.files.text("solve.sh").unwrap()));
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
        // A third one is not taken.
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
        assert_eq!(found[0].told, "a solution that leaves it empty violates “Join”: any row");
    }
}
