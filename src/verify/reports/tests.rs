use proptest::prelude::*;

use super::*;

fn check(kind: ReportKind, text: &str, expect: &[(&str, bool)]) {
    let got = parse_report(kind, text).unwrap_or_default();
    let got: Vec<_> = got.iter().map(|check| (check.id.as_str(), check.passed)).collect();
    assert_eq!(got, expect, "{kind:?}: {text}");
}

#[test]
fn junit_cases_pass_unless_they_say_otherwise() {
    let suite = |cases: &str| {
        format!("<?xml version=\"1.0\"?><testsuites><testsuite>{cases}</testsuite></testsuites>")
    };
    check(ReportKind::Junit, &suite("<testcase classname=\"t\" name=\"a\"/>"), &[("t::a", true)]);
    check(
        ReportKind::Junit,
        &suite("<testcase name=\"a\"><failure message=\"no\">x</failure></testcase>"),
        &[("a", false)],
    );
    check(ReportKind::Junit, &suite("<testcase name=\"a\"><error/></testcase>"), &[("a", false)]);
    check(ReportKind::Junit, &suite("<testcase name=\"a\"><skipped/></testcase>"), &[("a", false)]);
    check(
        ReportKind::Junit,
        &suite("<testcase name=\"a\"><system-out>failure</system-out></testcase>"),
        &[("a", true)],
    );
    // pytest reports an error of the tear-down as a second case of the same name.
    check(
        ReportKind::Junit,
        &suite("<testcase name=\"a\"/><testcase name=\"a\"><error/></testcase>"),
        &[("a", false)],
    );
    check(ReportKind::Junit, "<testsuite>", &[]);
    check(ReportKind::Junit, "=== 2 passed ===", &[]);
}

#[test]
fn ctrf_tests_pass_by_their_status() {
    let report =
        |tests: &str| format!("{{\"results\": {{\"tool\": {{\"name\": \"x\"}}, \"tests\": [{tests}]}}}}");
    check(
        ReportKind::Ctrf,
        &report("{\"name\": \"a\", \"status\": \"passed\", \"duration\": 1}"),
        &[("a", true)],
    );
    check(
        ReportKind::Ctrf,
        &report("{\"name\": \"a\", \"status\": \"failed\"}, {\"name\": \"b\", \"status\": \"skipped\"}"),
        &[("a", false), ("b", false)],
    );
    check(ReportKind::Ctrf, &report(""), &[]);
    check(ReportKind::Ctrf, "{}", &[]);
}

#[test]
fn lines_are_read_as_runners_print_them() {
    check(
        ReportKind::Tap,
        "TAP version 13\n1..5\nok 1 - adds\nnot ok 2 - divides\nok 3 # SKIP no network\nnot ok 4 - later # TODO\nok 5\nokay then",
        &[("adds", true), ("divides", false), ("3", false), ("5", true)],
    );
    check(
        ReportKind::GoTest,
        "=== RUN   TestA\n--- PASS: TestA (0.00s)\n    --- FAIL: TestA/sub (0.01s)\n--- SKIP: TestB (0.00s)\nFAIL",
        &[("TestA", true), ("TestA/sub", false), ("TestB", false)],
    );
    check(
        ReportKind::CargoTest,
        "running 3 tests\ntest a::b ... ok\ntest a::c ... FAILED\ntest d ... ignored, slow\ntest result: FAILED. 1 passed;",
        &[("a::b", true), ("a::c", false), ("d", false)],
    );
    check(
        ReportKind::Pytest,
        "tests/test_a.py::test_b PASSED   [ 50%]\nFAILED tests/test_a.py::test_c - assert 1 == 2\n2 passed",
        &[("test_b", true), ("test_c", false)],
    );
    check(
        ReportKind::Checksums,
        "a/b.txt: OK\nc: FAILED\nd: e: OK\nf: FAILED open or read\nmd5sum: WARNING: 1 computed checksum did NOT match",
        &[("a/b.txt", true), ("c", false), ("d: e", true), ("f", false)],
    );
    check(
        ReportKind::Score,
        "Score: 1/3\nFinal Score: 2 / 3 points",
        &[("point 1", true), ("point 2", true), ("point 3", false)],
    );
    check(ReportKind::Score, "Score: 4/3", &[]);
    check(ReportKind::Score, "Score: many/3", &[]);
}

#[test]
fn reports_of_any_size_are_read_in_time_and_within_a_bound() {
    let check = |text: &str, expect: Result<usize, ReportError>| {
        assert_eq!(parse_report(ReportKind::Tap, text).map(|checks| checks.len()), expect);
    };
    let lines = |names: usize, each: usize| -> String {
        (0..each).flat_map(|_| 0..names).map(|name| format!("ok - {name}\n")).collect()
    };
    check(&lines(MAX_CHECKS, 1), Ok(MAX_CHECKS));
    // Few long results fit into a report, and too many short ones do not.
    check(&lines(MAX_CHECKS, 60), Ok(MAX_CHECKS));
    check(&lines(MAX_CHECKS + 1, 60), Err(ReportError::TooMany));
}

#[test]
fn the_report_format_is_detected() {
    let check = |text: &str, expect: Option<ReportKind>| {
        assert_eq!(find_report(text).map(|(kind, _)| kind), expect, "{text}");
    };
    check("ok 1 - a\n", Some(ReportKind::Tap));
    check("--- PASS: TestA (0.00s)", Some(ReportKind::GoTest));
    check("a: OK\n", Some(ReportKind::Checksums));
    check("Score: 1/2", Some(ReportKind::Score));
    check("all good", None);
}

proptest! {
    #[test]
    fn no_text_breaks_a_parser(text in ".{0,400}") {
        for kind in ReportKind::ALL {
            let _ = parse_report(kind, &text);
        }
    }
}
