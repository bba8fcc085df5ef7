//! Limits of wall-clock time in checks. On a busy machine they decide the verdict.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::lint::linted_task::{LintedTask, in_tests};
use crate::lint::pattern::{MOST_IN_ONE_FILE, line_of};
use crate::lint::rule::RuleMatch;

/// Longest alarm that is reported, in seconds. An alarm ends a whole check. Longer ones are a last
/// resort, and fine.
const SHORT_ALARM: f64 = 30.0;
/// Longest time limit of a program that is reported, in seconds. At a load of ten per processor, a
/// program with half a second of work reaches it.
const SHORT_LIMIT: f64 = 5.0;

/// A pattern for a limit. Its first group is the seconds.
struct Limit {
    pattern: LazyLock<Option<Regex>>,
    short: f64,
}

/// Patterns for Python, also inside the text of a probe.
static IN_PYTHON: [Limit; 3] = [
    Limit {
        pattern: LazyLock::new(|| {
            regex(
                r"\b(?:signal\.)?(?:alarm|setitimer)\((?:\s*(?:signal\.)?ITIMER_REAL\s*,)?\s*(\d+(?:\.\d+)?)\s*[,)]",
            )
        }),
        short: SHORT_ALARM,
    },
    Limit {
        pattern: LazyLock::new(|| {
            regex(
                r"(?s)\b(?:subprocess\.(?:run|call|check_call|check_output)|\.communicate)\((?:[^()]|\([^()]*\))*?\btimeout\s*=\s*(\d+(?:\.\d+)?)\s*[,)]",
            )
        }),
        short: SHORT_LIMIT,
    },
    Limit {
        pattern: LazyLock::new(|| regex(r"@pytest\.mark\.timeout\(\s*(\d+(?:\.\d+)?)\s*[,)]")),
        short: SHORT_LIMIT,
    },
];
/// Pattern for shell scripts: timeout(1).
static IN_SHELL: [Limit; 1] = [Limit {
    pattern: LazyLock::new(|| {
        regex(r"(?m)(?:^|[\s;&|(/])timeout\s+(?:(?:-k|-s)\s+\S+\s+|-\S+\s+)*(\d+(?:\.\d+)?)s?\s+[^\s;]")
    }),
    short: SHORT_LIMIT,
}];

/// An assignment of a time difference. The group is the variable's name.
static SPAN: LazyLock<Option<Regex>> =
    LazyLock::new(|| regex(r"(?m)^\s*(\w+)\s*=\s*(?:time\.)?(?:time|monotonic|perf_counter)\(\)\s*-"));
/// An assertion with an upper bound of such a variable, or of the difference itself.
static BOUND: LazyLock<Option<Regex>> = LazyLock::new(|| {
    regex(
        r"(?m)^[ \t]*assert\s+\(?\s*(?:(\w+)|(?:time\.)?(?:time|monotonic|perf_counter)\(\)\s*-\s*\w+)\s*\)?\s*<",
    )
});

/// Never `None`, as the tests of the rule show.
fn regex(pattern: &str) -> Option<Regex> {
    Regex::new(pattern).ok()
}

fn captures<'a>(pattern: &Option<Regex>, text: &'a str) -> Vec<Captures<'a>> {
    pattern.iter().flat_map(|pattern| pattern.captures_iter(text)).collect()
}

pub(in crate::lint) fn unscaled_limit(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    let mut matches = Vec::new();
    for (path, text) in task.texts(in_tests) {
        let mut found = match path.rsplit('.').next() {
            Some("py") => [limits(text, &IN_PYTHON), bounds(text)].concat(),
            Some("sh") => limits(text, &IN_SHELL),
            _ => continue,
        };
        found.sort_unstable();
        let lines = found.into_iter().filter(|(line, _)| !is_comment(text, *line));
        matches.extend(lines.take(MOST_IN_ONE_FILE).map(|(line, what)| {
            RuleMatch::at(path, line, format!("a right solution can fail by {what} on a busy machine"))
        }));
    }
    matches
}

/// Lines and descriptions of short limits.
fn limits(text: &str, kinds: &[Limit]) -> Vec<(u32, String)> {
    let mut found = Vec::new();
    for kind in kinds {
        for found_limit in captures(&kind.pattern, text) {
            let Some(number) = found_limit.get(1) else { continue };
            let seconds: f64 = number.as_str().parse().unwrap_or(f64::MAX);
            // An alarm of 0 cancels the alarm.
            if seconds > 0.0 && seconds <= kind.short {
                let what = format!("a limit of {} s", number.as_str());
                found.push((line_of(text, number.start()), what));
            }
        }
    }
    found
}

/// Lines that assert that a measured time is short.
fn bounds(text: &str) -> Vec<(u32, String)> {
    let spans: BTreeSet<&str> =
        captures(&SPAN, text).iter().filter_map(|span| Some(span.get(1)?.as_str())).collect();
    captures(&BOUND, text)
        .iter()
        .filter(|bound| bound.get(1).is_none_or(|name| spans.contains(name.as_str())))
        .filter_map(|bound| {
            let end = bound.get(0)?.end();
            Some((line_of(text, end), "an upper bound of a measured time".to_owned()))
        })
        .collect()
}

fn is_comment(text: &str, line: u32) -> bool {
    text.lines().nth(line.saturating_sub(1) as usize).is_some_and(|line| line.trim_start().starts_with('#'))
}
