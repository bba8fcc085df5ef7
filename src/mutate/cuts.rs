//! Truncated solutions: the reference, cut before one of its top-level state-changing statements.

use std::collections::BTreeSet;

use super::language::Language;
use super::statement::changes_state;
use crate::syntax::named_children;

/// Maximum number of cuts per solution. More rarely find new weaknesses.
const MAX_CUTS: usize = 4;

/// The beginning of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Number of state-changing statements that are kept, and the number of all.
    pub kept: usize,
    pub of: usize,
    pub script: String,
}

/// At most [`MAX_CUTS`] beginnings of `script`. Each ends before a state-changing top-level
/// statement and keeps at least one. Empty if the script has fewer than two such statements, or is
/// not bash.
pub fn cuts(script: &str) -> Vec<Cut> {
    let starts = state_changing_statements(script);
    let of = starts.len();
    // Keeping none of them would equal the untouched trial.
    let places: BTreeSet<usize> = match of {
        0 | 1 => BTreeSet::new(),
        _ => (0..MAX_CUTS.min(of - 1)).map(|nth| of - 1 - nth * (of - 1) / MAX_CUTS.min(of - 1)).collect(),
    };
    places
        .into_iter()
        .filter_map(|kept| Some(Cut { kept, of, script: script.get(..*starts.get(kept)?)?.to_owned() }))
        .collect()
}

fn state_changing_statements(script: &str) -> Vec<usize> {
    let Some(tree) = Language::Bash.parse(script) else { return Vec::new() };
    named_children(tree.root_node())
        .into_iter()
        .filter(|node| changes_state(*node, script))
        .map(|node| node.start_byte())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(script: &str, expect: &[&str]) {
        let got: Vec<_> = cuts(script).into_iter().map(|cut| cut.script).collect();
        assert_eq!(got, expect, "{script:?}");
    }

    #[test]
    fn cuts_end_before_state_changing_statements() {
        check("", &[]);
        check("mkdir a\n", &[]);
        check("mkdir a\ntouch a/b\n", &["mkdir a\n"]);
        check(
            "set -eu\ncd /app\nmkdir a\necho made\ntouch a/b\necho done\n",
            &["set -eu\ncd /app\nmkdir a\necho made\n"],
        );
        check("x=1\nmkdir a; touch b\n", &["x=1\nmkdir a; "]);
        check("cat > a <<'E'\nmkdir x\nE\nsort a > b\n", &["cat > a <<'E'\nmkdir x\nE\n"]);
        check("f() { rm -r a; }\nmkdir a\nf\n", &["f() { rm -r a; }\nmkdir a\n"]);
        check(
            "for x in 1 2; do\n  touch $x\ndone\nif true; then\n  rm 1\nfi\n",
            &["for x in 1 2; do\n  touch $x\ndone\n"],
        );
        check("echo a > b\ncat b > c\n", &["echo a > b\n"]);
        check("mkdir a && touch a/b\nmv a c\n", &["mkdir a && touch a/b\n"]);
        // A final statement that only checks the result or cleans up is no state change.
        check(
            "die() { echo \"$1\" >&2; exit 1; }\nmkdir a\ntrap 'rm -rf x' EXIT\ntouch b\n[[ -e b ]] || die no\n",
            &["die() { echo \"$1\" >&2; exit 1; }\nmkdir a\ntrap 'rm -rf x' EXIT\n"],
        );
        check("again() { again; }\nmkdir a\nagain\n", &["again() { again; }\nmkdir a\n"]);
        check("log() { echo \"$1\" >> l; }\nmkdir a\nlog b\n", &["log() { echo \"$1\" >> l; }\nmkdir a\n"]);
    }

    #[test]
    fn at_most_four_cuts_and_always_the_last() {
        let script: String = (0..20).map(|n| format!("touch {n}\n")).collect();
        let kept: Vec<_> = cuts(&script).iter().map(|cut| cut.kept).collect();
        assert_eq!(kept.len(), 4);
        assert_eq!(kept.last(), Some(&19));
    }
}
