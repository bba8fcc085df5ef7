//! A trial that should fail runs its checks only up to the first failure, if they can run without
//! pytest.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/templates/verifier/run_checks.py");
/// Prints the results and the status, or `null`.
const RUN: &str =
    "import json, run_checks, sys; print(json.dumps(run_checks._run_without_pytest()), file=sys.stderr)";

/// The result of `tests`. The checks named in `likely` run first.
fn run(tests: &str, likely: &str) -> Value {
    let folder = tempfile::tempdir().unwrap();
    fs::copy(SCRIPT, folder.path().join("run_checks.py")).unwrap();
    fs::write(folder.path().join("test_outputs.py"), tests).unwrap();
    let output = Command::new("python3")
        .args(["-B", "-c", RUN])
        .current_dir(folder.path())
        .env("TERMSMITH_FIRST_FAILURE", likely)
        .env("SUBJECT_ROOT", "/nowhere/copy")
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stderr).unwrap();
    serde_json::from_str(printed.lines().last().unwrap()).unwrap_or_else(|_| panic!("{printed}"))
}

#[test]
fn plain_checks_run_without_pytest_up_to_the_first_failure() {
    let check = |tests: &str, likely: &str, status: u32, expect: &[(&str, bool, &str)]| {
        let results: serde_json::Map<String, Value> = expect
            .iter()
            .map(|(id, passed, message)| {
                ((*id).to_owned(), json!({ "id": id, "passed": passed, "message": message }))
            })
            .collect();
        assert_eq!(run(tests, likely), json!([results, status]), "{tests}");
    };
    let plain = "def test_b():\n    pass\ndef test_a():\n    assert False, '/nowhere/copy/app/x is missing'\ndef test_c():\n    exit(0)\n";
    let not_run = "did not run";
    let failed = "AssertionError: /app/x is missing";
    check(plain, "", 1, &[("test_b", true, ""), ("test_a", false, failed), ("test_c", false, not_run)]);
    check(
        plain,
        "test_c\ntest_b",
        1,
        &[("test_b", true, ""), ("test_a", false, not_run), ("test_c", false, "SystemExit: 0")],
    );
    check("def test_a():\n    pass\n", "test_x", 0, &[("test_a", true, "")]);
}

#[test]
fn what_only_pytest_can_run_is_left_to_it() {
    let check = |tests: &str| assert_eq!(run(tests, ""), Value::Null, "{tests}");
    check("def test_a(tmp_path):\n    pass\n");
    check("class TestA:\n    def test_a(self):\n        pass\ndef test_b():\n    pass\n");
    check("def setup_module():\n    pass\ndef test_a():\n    pass\n");
    check("import sys\nsys.modules['pytest'] = sys\ndef test_a():\n    pass\n");
    check("import unheard_of\ndef test_a():\n    pass\n");
    check("test_a = 1\n");
    check("");
}
