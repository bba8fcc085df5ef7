//! Tests of the lint settings of tasks, and of rules for termsmith's own drafts.

use super::*;
use crate::harbor::DeclaredVerifier;

/// Rules with findings that count, and rules with suppressed findings and the reason.
fn ended(toml: &str, also: &[(&str, &str)]) -> (Vec<String>, Vec<String>) {
    let mut changes = vec![("task.toml", toml), ("solution/solve.sh", "make -j $(nproc)\n")];
    changes.extend(also);
    let files = task(&changes);
    let parts = Parts { name: "a-task", files: &files, special_files: &[], draft: None };
    let (suppressed, counted): (Vec<_>, Vec<_>) =
        lint_files(&rules(), &parts).into_iter().partition(|found| found.suppressed.is_some());
    let with_reason = |found: Finding| format!("{}: {}", found.rule, found.suppressed.unwrap_or_default());
    (counted.into_iter().map(|found| found.rule).collect(), suppressed.into_iter().map(with_reason).collect())
}

const HEAD: &str = "schema_version = \"1.4\"\ntask.name = \"org/a-task\"\nagent.timeout_sec = 1\nverifier.environment_mode = \"separate\"\n";

#[test]
fn suppressed_and_selected_rules() {
    let check = |toml: &str, counted: &[&str], suppressed: &[&str]| {
        let got = ended(&format!("{HEAD}{toml}"), &[]);
        assert_eq!((got.0, got.1), (owned(counted), owned(suppressed)), "{toml}");
    };
    check("", &["nproc", "task-fields"], &[]);
    check(
        "[metadata.termsmith.lint.ignore]\nnproc = \"four at most\"\n",
        &["task-fields"],
        &["nproc: four at most"],
    );
    check(
        "[metadata.termsmith.lint]\nignore = [\"nproc\"]\n",
        &["task-fields", "unreasoned-ignore"],
        &["nproc: no reason is given"],
    );
    check(
        "[metadata.harbor.lint]\nignore = [\"nproc\"]\n[metadata.termsmith.lint.ignore]\nnproc = \"x\"\n",
        &["task-fields", "unreasoned-ignore"],
        &["nproc: x"],
    );
    check("[metadata.termsmith.lint]\nignore = 1\n", &["nproc", "task-fields", "unreasoned-ignore"], &[]);
    check(
        "[metadata.harbor.lint]\nextend-select = [\"root-agent\"]\n",
        &["root-agent", "nproc", "task-fields"],
        &[],
    );
    // A task that declares termsmith as its author, but cannot be read as such, is reported.
    check("[metadata.termsmith]\nformat = 7\n", &["nproc", "invalid-task-config", "task-fields"], &[]);
    check("[metadata.termsmith]\nprogrammes = true\n", &["nproc", "invalid-task-config", "task-fields"], &[]);
    // Harbor's `select` applies to Harbor's rules only.
    check(
        "[metadata.harbor.lint]\nselect = [\"unpinned-image\"]\n",
        &["unpinned-image", "nproc", "task-fields"],
        &[],
    );
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[test]
fn tasks_that_termsmith_made_are_held_to_more() {
    let severities = |files: &FileTree| -> Vec<String> {
        let parts = Parts { name: "a-task", files, special_files: &[], draft: None };
        let found = lint_files(&rules(), &parts).into_iter();
        found
            .filter(|found| ["no-absolute-path", "shared-verifier", INVALID_CONFIG].contains(&&*found.rule))
            .map(|found| format!("{} {}", found.severity.as_str(), found.rule))
            .collect()
    };
    let foreign = ["note no-absolute-path", "warning shared-verifier"];
    let shared = "schema_version = \"1.4\"\ntask.name = \"org/a-task\"\nagent.timeout_sec = 1\n";
    assert_eq!(severities(&task(&[("task.toml", shared), ("instruction.md", "Sort.\n")])), foreign);

    let ours = drafts::directory("Sort.\n", DeclaredVerifier::Shared);
    assert_eq!(severities(&ours), ["error no-absolute-path"]);
    // A task of another format, or one that was edited. It is linted as a foreign task, and the
    // reason is reported.
    for (from, to) in [("format = 4", "format = 2"), ("format = 4\n", ""), ("\"no-network\"", "\"public\"")] {
        let text = ours.text("task.toml").unwrap();
        assert!(text.contains(from), "{from}");
        let mut changed = ours.clone();
        changed.insert(RelPath::new("task.toml").unwrap(), File::text(text.replace(from, to)));
        let mut found = severities(&changed);
        found.sort();
        let [first, last] = foreign;
        assert_eq!(found, [first, "warning invalid-task-config", last], "{to}");
    }
}

#[test]
fn a_malformed_manifest_is_the_only_finding() {
    let check = |toml: &str, expect: &str| {
        let files = task(&[("task.toml", toml), ("instruction.md", "")]);
        let parts = Parts { name: "a-task", files: &files, special_files: &[], draft: None };
        let found: Vec<_> = lint_files(&rules(), &parts)
            .iter()
            .map(|found| format!("{} {} {}", found.location(), found.rule, found.message))
            .collect();
        assert_eq!(found, [expect]);
    };
    check(
        "a = 1\nb = ",
        "task.toml:2 invalid-task-config malformed: string values must be quoted, expected literal string",
    );
    check(
        "[agent]\ntimeout_sec = \"x\"\n",
        "task.toml:2 invalid-task-config malformed: invalid value: string \"x\", expected a number",
    );
}

#[test]
fn odd_directories_never_panic() {
    use std::fs;
    use std::os::unix::fs::symlink;
    let dir = tempfile::tempdir().unwrap();
    let task_dir = dir.path().join("a-task");
    for (path, file) in task(&[]).iter() {
        let path = task_dir.join(path.as_str());
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, &file.bytes).unwrap();
    }
    // The name looks like a backup file, but the file is linted all the same.
    fs::write(task_dir.join("environment/old~"), "sudo\r\n").unwrap();
    symlink("../solution/solve.sh", task_dir.join("tests/within")).unwrap();
    symlink("/etc/hostname", task_dir.join("tests/out")).unwrap();
    symlink("nowhere", task_dir.join("solution/gone")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(task_dir.join("environment/socket")).unwrap();
    let found: Vec<_> = lint_dir(&rules(), &task_dir)
        .unwrap()
        .into_iter()
        .filter(|found| found.severity == Severity::Error)
        .map(|found| format!("{} {}", found.location(), found.rule))
        .collect();
    assert_eq!(
        found,
        [
            "environment/socket invalid-task-files",
            "solution/gone invalid-task-files",
            "tests/out invalid-task-files",
            "tests/within symbolic-link",
        ]
    );
    assert!(lint_dir(&rules(), &dir.path().join("none")).is_err());
    for odd in ["tests/within", "tests/out", "solution/gone", "environment/socket"] {
        fs::remove_file(task_dir.join(odd)).unwrap();
    }
    let read = crate::harbor::read_task(&task_dir).unwrap();
    assert_eq!(lint_task(&rules(), &read), lint_dir(&rules(), &task_dir).unwrap());
}
