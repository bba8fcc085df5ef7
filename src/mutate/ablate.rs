//! Ablated solutions: the reference without one of its state-changing statements.

use std::collections::BTreeSet;

use super::bash;
use super::check::{Checker, MOST_BYTES, step};
use super::edit::{line_of, quoted};
use super::language::Language;

/// Maximum number of characters of a statement that an author is shown. They are enough for a
/// command of several lines. Heredocs are longer, but their beginning identifies them.
const MOST_SHOWN: usize = 400;

/// A script without one of its statements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ablation {
    /// First line of the omitted statement, from 1.
    pub line: usize,
    /// The beginning of the omitted statement, used in names.
    pub statement: String,
    /// The omitted statement in one line, for authors. At most [`MOST_SHOWN`] characters.
    pub whole: String,
    pub script: String,
}

/// For each state-changing statement of `script`, the script without it, in text order. Statements
/// inside functions, loops and conditionals count too.
///
/// Empty if there is only one such statement, since omitting it means doing nothing. Also empty if
/// the script is not bash, or is very long. Of a long script, some statements are skipped.
pub fn ablations(script: &str) -> Vec<Ablation> {
    let dropped = if script.len() > MOST_BYTES { Vec::new() } else { bash::dropped_statements(script) };
    if dropped.len() < 2 {
        return Vec::new();
    }
    let step = step(dropped.iter().map(|edit| edit.cost(Language::Bash, script.len())));
    let mut checker = Checker::new(Language::Bash, script);
    let mut seen = BTreeSet::new();
    dropped
        .iter()
        .step_by(step)
        .filter_map(|edit| Some((edit, checker.applied(edit)?)))
        .filter(|(_, mutated)| seen.insert(mutated.clone()))
        .map(|(edit, mutated)| {
            let code = script.get(edit.range.clone()).unwrap_or_default();
            Ablation {
                line: line_of(script, edit.range.start),
                statement: quoted(code),
                whole: shown(code),
                script: mutated,
            }
        })
        .collect()
}

/// `code` in one line, cut if it is long.
fn shown(code: &str) -> String {
    let whole = code.replace("\\\n", " ").split_whitespace().collect::<Vec<_>>().join(" ");
    let mut text: String = whole.chars().take(MOST_SHOWN).collect();
    if text.len() < whole.len() {
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(script: &str, expect: &[(usize, &str)]) {
        let got: Vec<_> = ablations(script).into_iter().map(|one| (one.line, one.script)).collect();
        let expect: Vec<_> = expect.iter().map(|(line, script)| (*line, (*script).to_owned())).collect();
        assert_eq!(got, expect, "{script:?}");
    }

    #[test]
    fn each_statement_is_left_out_once() {
        check("", &[]);
        check("mkdir a\n", &[]);
        check("set -e\ncd /app\nx=1\necho hello\n", &[]);
        check("mkdir a\ntouch a/b\n", &[(1, ":\ntouch a/b\n"), (2, "mkdir a\n:\n")]);
        check("mkdir a && touch b\nrm c\n", &[(1, ":\nrm c\n"), (2, "mkdir a && touch b\n:\n")]);
        check(
            "cat > a <<'E'\nmkdir x\nE\nsort a > b\n",
            &[(1, ":\nsort a > b\n"), (4, "cat > a <<'E'\nmkdir x\nE\n:\n")],
        );
        check("ls | wc -l\necho a > /dev/null\nmkdir a\n", &[]);
    }

    #[test]
    fn authors_are_shown_whole_commands() {
        let check = |script: &str, expect: &[&str]| {
            let got: Vec<_> = ablations(script).into_iter().map(|one| one.whole).collect();
            assert_eq!(got, expect, "{script:?}");
        };
        check("sed -i \\\n  's/a/b/' f\ntouch b\n", &["sed -i 's/a/b/' f", "touch b"]);
        let long = format!("cat > a <<'E'\n{}\nE", "x".repeat(MOST_SHOWN));
        let shown: String = long.replace('\n', " ").chars().take(MOST_SHOWN).chain(['…']).collect();
        check(&format!("{long}\ntouch b\n"), &[&shown, "touch b"]);
    }

    #[test]
    fn statements_inside_others_are_left_out_too() {
        check(
            "f() {\n  rm a\n  mv b c\n}\nf\n",
            &[
                (2, "f() {\n  :\n  mv b c\n}\nf\n"),
                (3, "f() {\n  rm a\n  :\n}\nf\n"),
                (5, "f() {\n  rm a\n  mv b c\n}\n:\n"),
            ],
        );
        // A loop with one statement counts as that statement.
        check(
            "for x in 1 2; do\n  touch $x\ndone\nmv 1 3\n",
            &[(2, "for x in 1 2; do\n  :\ndone\nmv 1 3\n"), (4, "for x in 1 2; do\n  touch $x\ndone\n:\n")],
        );
        check(
            "if grep -q a b; then\n  rm b\nelse\n  rm c\nfi\n",
            &[
                (1, ":\n"),
                (2, "if grep -q a b; then\n  :\nelse\n  rm c\nfi\n"),
                (4, "if grep -q a b; then\n  rm b\nelse\n  :\nfi\n"),
            ],
        );
    }
}
