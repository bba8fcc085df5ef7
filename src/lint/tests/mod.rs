//! Every rule has rows that it must report, and similar rows that it must not.

mod attacks;
mod choices;
mod drafts;
mod formats;
mod rows_checks;
mod rows_config;
mod rows_image;
mod rows_scans;
mod rows_scripts;
mod shell;
mod starts;

use std::collections::BTreeSet;

use super::linted_task::LintedTask;
use super::*;
use crate::assets::Assets;
use crate::model::{File, RelPath};

/// Changes to a sound task, and the places and messages that the rule must report then.
pub(super) struct Row {
    pub(super) rule: &'static str,
    pub(super) files: &'static [(&'static str, &'static str)],
    pub(super) expect: &'static [&'static str],
}

pub(super) const fn row(
    rule: &'static str,
    files: &'static [(&'static str, &'static str)],
    expect: &'static [&'static str],
) -> Row {
    Row { rule, files, expect }
}

const SOUND: [(&str, &str); 6] = [
    (
        "task.toml",
        "schema_version = \"1.4\"\nartifacts = [\"/app/out.csv\"]\n[task]\nname = \"org/a-task\"\n[agent]\ntimeout_sec = 600.0\n[verifier]\ntimeout_sec = 60.0\nenvironment_mode = \"separate\"\n",
    ),
    ("instruction.md", "<!-- canary 1 -->\n\nSort `/app/in.csv` into `/app/out.csv`.\n"),
    ("environment/Dockerfile", "FROM debian:bookworm-slim\nCOPY app/ /app/\n"),
    ("environment/app/in.csv", "b\na\n"),
    ("solution/solve.sh", "#!/bin/bash\nsort /app/in.csv > /app/out.csv\n"),
    (
        "tests/test.sh",
        "#!/bin/bash\n# canary 1\necho 0 > /logs/verifier/reward.txt\npytest /tests && echo 1 > /logs/verifier/reward.txt\n",
    ),
];

pub(super) fn rules() -> Rules {
    Rules::load(&Assets::embedded()).unwrap()
}

/// The sound task with these files replaced. `GONE` in place of a text removes the file.
pub(super) fn task(changes: &[(&str, &str)]) -> FileTree {
    let mut files = FileTree::default();
    for (path, text) in SOUND.iter().chain(changes) {
        let path = RelPath::new(*path).unwrap();
        if *text == GONE {
            files.files.remove(&path);
        } else {
            let executable = path.as_str().ends_with(".sh") && !path.as_str().starts_with("environment/");
            files.insert(path, File { bytes: text.as_bytes().to_vec(), executable });
        }
    }
    files
}

/// In place of a text: removes the file.
pub(super) const GONE: &str = "\0";
/// In place of a path: a symbolic link within the task, or one that leaves it.
const LINK: &str = "link:";
const ESCAPE: &str = "escape:";
/// In place of a path: an empty folder.
const FOLDER: &str = "folder:";
/// In place of a path: the name of the task's folder.
const NAME: &str = "name:";

fn check(rules: &Rules, row: &Row) -> Result<(), String> {
    let changes: Vec<_> = row.files.iter().filter(|(path, _)| !path.contains(':')).copied().collect();
    let special = |(path, _): &(&str, &str)| {
        let link = path.strip_prefix(LINK).map(|path| (path, SpecialFileKind::Link));
        let (path, kind) = link.or_else(|| Some((path.strip_prefix(ESCAPE)?, SpecialFileKind::Escape)))?;
        Some(SpecialFile { path: path.to_owned(), kind })
    };
    let special_files: Vec<_> = row.files.iter().filter_map(special).collect();
    let mut files = task(&changes);
    let folders = row.files.iter().filter_map(|(path, _)| path.strip_prefix(FOLDER));
    files.empty_folders.extend(folders.map(|path| RelPath::new(path).unwrap()));
    let (manifest, read) = parse_manifest(files.text("task.toml").unwrap()).unwrap();
    let known: BTreeSet<_> = rules.iter().map(|rule| rule.id.as_str()).collect();
    let linted = LintedTask {
        name: row.files.iter().find_map(|(path, _)| path.strip_prefix(NAME)).unwrap_or("a-task"),
        manifest: &manifest,
        files: &files,
        read: &read,
        special_files: &special_files,
        draft: None,
        known: &known,
    };
    let rule = rules.get(row.rule).unwrap_or_else(|| panic!("no rule {}", row.rule));
    let got: Vec<_> = rule
        .matches(&linted)
        .into_iter()
        .map(|found| match found.line {
            Some(line) => format!("{}:{line} {}", found.file, found.message),
            None => format!("{} {}", found.file, found.message),
        })
        .collect();
    if got == row.expect {
        return Ok(());
    }
    Err(format!("{} on {:?}\n  finds {got:?}\n  not   {:?}", row.rule, row.files, row.expect))
}

fn all_rows() -> impl Iterator<Item = &'static Row> {
    rows_config::ROWS
        .iter()
        .chain(rows_image::ROWS)
        .chain(rows_checks::ROWS)
        .chain(rows_scans::ROWS)
        .chain(rows_scripts::ROWS)
}

#[test]
fn rules_find_what_they_must_and_nothing_else() {
    let rules = rules();
    let wrong: Vec<_> = all_rows().filter_map(|row| check(&rules, row).err()).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// These two rules need a draft. `tests::drafts` has their rows.
const OF_DRAFTS: [&str; 2] = ["few-checks", "few-wrong-solutions"];

#[test]
fn every_rule_has_rows_of_both_kinds_and_is_documented() {
    let rules = rules();
    for rule in rules.iter().filter(|rule| !OF_DRAFTS.contains(&rule.id.as_str())) {
        let found =
            |positive: bool| all_rows().any(|row| row.rule == rule.id && row.expect.is_empty() != positive);
        assert!(found(true), "{} has no row in which it finds something", rule.id);
        assert!(found(false), "{} has no row in which it finds nothing", rule.id);
    }
    for rule in rules.iter() {
        assert!(rule.explain.len() > 40, "{} is not explained", rule.id);
        assert!(!rule.source.is_empty() && !rule.hint.is_empty(), "{}", rule.id);
    }
    for (id, _) in super::rules::FUNCTIONS {
        assert!(rules.get(id).is_some(), "the function `{id}` has no file");
    }
}

#[test]
fn a_sound_task_has_no_findings_that_count() {
    let files = task(&[(
        "tests/test_outputs.py",
        "\"\"\"canary 1\"\"\"\n\n\ndef test_sorted():\n    \"\"\"Lines are in order.\"\"\"\n    lines = open('/app/out.csv').read().split()\n    assert lines == ['a', 'b']\n    assert len(lines) == 2\n    assert lines[0] == 'a'\n",
    )]);
    let parts = Parts { name: "a-task", files: &files, special_files: &[], draft: None };
    let found: Vec<_> = lint_files(&rules(), &parts).into_iter().map(|found| found.rule).collect();
    assert_eq!(found, ["task-fields"]);
}

#[test]
fn invalid_rule_files_are_refused() {
    let check = |text: &str, expect: &str| {
        let mut tree = FileTree::default();
        tree.insert(RelPath::new("templates/lint/x.toml").unwrap(), File::text(text));
        let message = Rules::load(&Assets::from_tree(tree)).unwrap_err().to_string();
        assert!(
            message.starts_with("lint rule `templates/lint/x.toml`: ") && message.contains(expect),
            "{message}"
        );
    };
    let rest = "severity = 'note'\nmessage = ''\nhint = ''\nexplain = ''\nsource = ''\n";
    check("severity = 'bad'", "unknown variant `bad`");
    check(&format!("{rest}mood = 1"), "unknown field `mood`");
    check(&format!("{rest}files = 'a'\nforbid = '('"), "regex parse error");
    check(&format!("{rest}files = 'a'\nforbid = 'b'\nrequire = 'c'"), "`forbid` or `require`, not both");
    check(&format!("{rest}files = 'a'"), "needs one of");
    check(rest, "has a function with its id");
}
