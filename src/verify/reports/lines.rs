//! Parsers for reports in lines, as runners print them for people.

/// `ok 1 - name`, `not ok 2 - name # TODO …`. A skipped test has not passed. A test marked TODO
/// does not count.
pub(super) fn tap(text: &str) -> Vec<(String, bool)> {
    let test = |line: &str| {
        let (passed, rest) = match line.strip_prefix("not ok") {
            Some(rest) => (false, rest),
            None => (true, line.strip_prefix("ok")?),
        };
        let rest = rest.strip_prefix(' ').or(rest.is_empty().then_some(""))?;
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, rest) = rest.split_at(digits);
        let (name, directive) = rest.split_once(" # ").unwrap_or((rest, ""));
        let name = name.trim().trim_start_matches("- ").trim();
        let directive = directive.to_ascii_uppercase();
        if directive.starts_with("TODO") {
            return None;
        }
        let name = if name.is_empty() { number } else { name };
        (!name.is_empty()).then(|| (name.to_owned(), passed && !directive.starts_with("SKIP")))
    };
    text.lines().filter_map(test).collect()
}

/// `--- PASS: TestX (0.00s)`. Subtests are indented.
pub(super) fn go_test(text: &str) -> Vec<(String, bool)> {
    let test = |line: &str| {
        let rest = line.trim_start().strip_prefix("--- ")?;
        let (status, rest) = rest.split_once(": ")?;
        let name = rest.split(" (").next()?.trim();
        matches!(status, "PASS" | "FAIL" | "SKIP").then(|| (name.to_owned(), status == "PASS"))
    };
    text.lines().filter_map(test).collect()
}

/// `test module::name ... ok`.
pub(super) fn cargo_test(text: &str) -> Vec<(String, bool)> {
    let test = |line: &str| {
        let (name, status) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
        let status = status.split([' ', ',']).next()?;
        matches!(status, "ok" | "FAILED" | "ignored").then(|| (name.to_owned(), status == "ok"))
    };
    text.lines().filter_map(test).collect()
}

/// `tests/test_a.py::test_b PASSED [ 50%]`, or `PASSED tests/test_a.py::test_b` of the short
/// summary.
pub(super) fn pytest(text: &str) -> Vec<(String, bool)> {
    const STATUS: [&str; 6] = ["PASSED", "FAILED", "ERROR", "SKIPPED", "XFAIL", "XPASS"];
    let test = |line: &str| {
        let mut words = line.split_whitespace();
        let (first, second) = (words.next()?, words.next()?);
        let (status, id) = if STATUS.contains(&second) { (second, first) } else { (first, second) };
        let (_, name) = id.split_once("::")?;
        STATUS.contains(&status).then(|| (name.to_owned(), status == "PASSED"))
    };
    text.lines().filter_map(test).collect()
}

/// `path: OK`, `path: FAILED`, `path: FAILED open or read`.
pub(super) fn checksums(text: &str) -> Vec<(String, bool)> {
    let test = |line: &str| {
        let (path, status) = line.rsplit_once(": ")?;
        let passed = match status {
            "OK" => true,
            "FAILED" | "FAILED open or read" => false,
            _ => return None,
        };
        Some((path.to_owned(), passed))
    };
    text.lines().filter_map(test).collect()
}

/// The last `Score: x/y`.
pub(super) fn score(text: &str) -> Vec<(String, bool)> {
    /// More points than any task has. A larger number is no score.
    const MAX_POINTS: u32 = 1000;
    let points = |line: &str| {
        let at = line.to_ascii_lowercase().find("score:")?;
        let (got, of) = line.get(at + "score:".len()..)?.split_once('/')?;
        let of = of.trim_start();
        let digits = of.len() - of.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (got, of) = (got.trim().parse::<u32>().ok()?, of.get(..digits)?.parse::<u32>().ok()?);
        (got <= of && of > 0 && of <= MAX_POINTS).then_some((got, of))
    };
    let Some((got, of)) = text.lines().filter_map(points).next_back() else { return Vec::new() };
    (1..=of).map(|point| (format!("point {point}"), point <= got)).collect()
}
