use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// Writes `task` to a directory and reads it back.
fn round_trip(task: &Task) -> Task {
    let dir = tempfile::tempdir().unwrap();
    lay_out(dir.path(), &write_task(task, &Publication::default()).unwrap());
    let read = read_task(dir.path()).unwrap();
    assert_eq!(read.findings, []);
    read.into_task().unwrap()
}

#[test]
fn a_task_toml_is_golden() {
    let service = Task {
        submission: SubmissionSpec {
            roots: vec!["/app".to_owned(), "/etc".to_owned()],
            programs: true,
            bring_up: Some("serve &\nsleep 1".to_owned()),
            shared_because: None,
        },
        ..task()
    };
    let files = write_task(
        &service,
        &Publication {
            image_prefix: Some("registry.example/termsmith/".to_owned()),
            ..Publication::default()
        },
    )
    .unwrap();
    insta::assert_snapshot!("task_toml", files.text("task.toml").unwrap());
    insta::assert_snapshot!(files.text("instruction.md").unwrap(), @"
    <!-- termsmith-canary 01234567-89ab-cdef-0123-456789abcdef: a text with this line in it was copied from this task -->

    Repair `/app/settle.py`.
    ");
    let plain = write_task(&task(), &Publication::default()).unwrap();
    assert!(!plain.text("task.toml").unwrap().contains("docker_image"));
}

#[test]
fn programs_that_ran_in_a_directory_change_no_task() {
    let dir = tempfile::tempdir().unwrap();
    let files = write_task(&task(), &Publication::default()).unwrap();
    lay_out(dir.path(), &files);
    let left = [
        ("environment/app/__pycache__/settle.cpython-311.pyc", File::text("x")),
        ("tests/__pycache__/test_outputs.cpython-311.pyc", File::text("x")),
        ("solution/solve.sh~", File::text("x")),
    ];
    lay_out(dir.path(), &tree(&left));
    let read = read_task(dir.path()).unwrap();
    assert_eq!(read.findings, []);
    assert_eq!(read.digest(), crate::model::task_digest(&files));
    assert_eq!(read.into_task().unwrap(), task());
}

#[test]
fn tasks_come_back_whole() {
    let limits = Limits { cpus: 0.5, memory_mb: 1, storage_mb: u32::MAX, pids: 9, ..Limits::default() };
    let submission = SubmissionSpec {
        roots: vec!["/srv/a b".to_owned()],
        programs: true,
        bring_up: Some("a\n'b' \"c\"".to_owned()),
        shared_because: Some("owners of files".to_owned()),
    };
    for (what, task) in [
        ("plain", task()),
        ("limits", Task { limits, ..task() }),
        ("weights", Task { weights: [(CheckId::parse("test_a").unwrap(), 2.5)].into(), ..task() }),
        ("submission", Task { submission, profile: Profile::Net, ..task() }),
        ("instruction that begins with blank lines", Task { instruction: "\n\n  x".to_owned(), ..task() }),
        (
            "instruction that looks like a canary",
            Task { instruction: "# canary\ntext\n".to_owned(), ..task() },
        ),
        ("no instruction", Task { instruction: String::new(), ..task() }),
        ("no checks", Task { checks: vec![], ..task() }),
        ("no solution", Task { solution: FileTree::default(), ..task() }),
    ] {
        assert_eq!(write_and_read(&task), task, "{what}");
    }
}

/// Like [`round_trip`], but accepts a finding about an empty instruction.
fn write_and_read(task: &Task) -> Task {
    let dir = tempfile::tempdir().unwrap();
    lay_out(dir.path(), &write_task(task, &Publication::default()).unwrap());
    read_task(dir.path()).unwrap().into_task().unwrap()
}

#[test]
fn tasks_that_cannot_be_written_are_refused() {
    let with_canary = |canary: &str| Task { canary: canary.to_owned(), ..task() };
    let with_file = |name: &str| Task { tests: tree(&[(name, File::text(""))]), ..task() };
    for (task, expected) in [
        (
            with_canary("canary\ncanary"),
            "the canary of task `data-science-settle-meter-readings-0007` does not fit",
        ),
        (with_canary("canary --> x"), "the canary of task"),
        (with_canary("bird"), "the canary of task"),
        (
            with_file("a.py~"),
            "task `data-science-settle-meter-readings-0007` has `tests/a.py~`, which Harbor treats as a leftover file",
        ),
        (
            with_file("__pycache__/a"),
            "task `data-science-settle-meter-readings-0007` has `tests/__pycache__/a`",
        ),
    ] {
        let message = write_task(&task, &Publication::default()).unwrap_err().to_string();
        assert!(message.starts_with(expected), "{message}");
    }
}

fn texts() -> impl Strategy<Value = String> {
    // Quotes, backslashes, control characters and scripts that TOML must escape.
    proptest::string::string_regex("[ -~\\n\\t\"'\\\\\\[\\]#\u{7f}é漢\u{1F600}]{0,40}").unwrap()
}

fn trees() -> impl Strategy<Value = FileTree> {
    let files = prop::collection::btree_map(
        "[a-z]{1,3}(/[a-z. ]{0,3}[a-z]){0,2}",
        (any::<Vec<u8>>(), any::<bool>()),
        1..4,
    );
    files.prop_map(|files: BTreeMap<String, (Vec<u8>, bool)>| {
        let mut tree = FileTree::default();
        for (name, (bytes, executable)) in files {
            // A file cannot be below another file.
            let clashes = tree.iter().any(|(have, _)| {
                name.starts_with(&format!("{have}/")) || have.as_str().starts_with(&format!("{name}/"))
            });
            if let (false, Ok(path)) = (clashes, RelPath::new(name)) {
                tree.insert(path, File { bytes, executable });
            }
        }
        tree
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_task_comes_back_whole(
        title in texts(),
        instruction in texts(),
        persona in texts(),
        bring_up in prop::option::of(texts()),
        seed in 0..=i64::MAX as u64,
        index: u32,
        cpus in 0.01f64..64.0,
        seconds: u32,
        tests in trees(),
        environment in trees(),
    ) {
        let blueprint = Blueprint { persona, seed: Seed(seed), index, ..blueprint() };
        let mut task = Task { title, instruction, tests, environment, name: task_name(&blueprint), blueprint, ..task() };
        task.submission.bring_up = bring_up;
        task.limits = Limits { cpus, agent_timeout_sec: seconds, ..task.limits };
        prop_assert_eq!(write_and_read(&task), task);
    }
}

#[test]
fn a_written_directory_has_no_findings() {
    assert_eq!(round_trip(&task()), task());
}
