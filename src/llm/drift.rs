//! Drift: how a request differs from the recorded one.

use std::fmt;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Maximum number of lines that are shown of a difference.
const MAX_LINES: usize = 40;
/// Unchanged lines that are shown around a change.
const CONTEXT: usize = 2;
/// Maximum number of characters that are shown of a line.
const MAX_WIDTH: usize = 400;
/// Maximum number of cells in the table of common subsequences. A part that needs more counts as
/// all different.
const MAX_CELLS: usize = 4_000_000;

/// A difference, as the first lines of a unified diff.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drift(pub String);

impl fmt::Display for Drift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The difference between `then` and `now`. `None` if they are equal.
pub(super) fn drift(then: &Value, now: &Value) -> Option<Drift> {
    if then == now {
        return None;
    }
    let (then, now) = (lines(then), lines(now));
    let edits = diff(&then, &now);
    let mut out = "--- recorded\n+++ now\n".to_owned();
    let near = |index: usize| {
        let from = index.saturating_sub(CONTEXT);
        let to = (index + CONTEXT + 1).min(edits.len());
        edits[from..to].iter().any(|edit| !matches!(edit, Edit::Same(_)))
    };
    let (mut shown, mut gap) = (0, false);
    for (index, edit) in edits.iter().enumerate() {
        if !near(index) {
            gap = true;
            continue;
        }
        if shown == MAX_LINES {
            let rest = (index..edits.len()).filter(|index| near(*index)).count();
            let _ = writeln!(out, "({rest} more lines)");
            break;
        }
        if std::mem::take(&mut gap) {
            out.push_str("@@\n");
        }
        let (sign, line) = match edit {
            Edit::Same(line) => (' ', line),
            Edit::Gone(line) => ('-', line),
            Edit::New(line) => ('+', line),
        };
        let line: String = line.chars().take(MAX_WIDTH).collect();
        let _ = writeln!(out, "{sign}{line}");
        shown += 1;
    }
    Some(Drift(out))
}

/// JSON as lines: sorted keys, one value on each line, long texts split at their line ends.
fn lines(value: &Value) -> Vec<String> {
    let mut out = Vec::new();
    print("", value, 0, &mut out);
    out
}

fn print(label: &str, value: &Value, depth: usize, out: &mut Vec<String>) {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(map) => {
            out.push(format!("{indent}{label}{{"));
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            for (key, value) in entries {
                print(&format!("{key}: "), value, depth + 1, out);
            }
            out.push(format!("{indent}}}"));
        }
        Value::Array(items) => {
            out.push(format!("{indent}{label}["));
            for item in items {
                print("", item, depth + 1, out);
            }
            out.push(format!("{indent}]"));
        }
        Value::String(text) if text.contains('\n') => {
            out.push(format!("{indent}{label}|"));
            out.extend(text.split('\n').map(|line| format!("{indent}  {line}")));
        }
        scalar => out.push(format!("{indent}{label}{scalar}")),
    }
}

#[derive(Clone, Copy)]
enum Edit<'a> {
    Same(&'a str),
    Gone(&'a str),
    New(&'a str),
}

/// A shortest edit from `old` to `new`, from the table of longest common subsequences.
fn diff<'a>(old: &'a [String], new: &'a [String]) -> Vec<Edit<'a>> {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let tail = old[head..].iter().rev().zip(new[head..].iter().rev()).take_while(|(a, b)| a == b).count();
    let (a, b) = (&old[head..old.len() - tail], &new[head..new.len() - tail]);
    let mut edits: Vec<_> = old[..head].iter().map(|line| Edit::Same(line)).collect();
    let width = b.len() + 1;
    if (a.len() + 1) * width > MAX_CELLS {
        edits.extend(a.iter().map(|line| Edit::Gone(line)));
        edits.extend(b.iter().map(|line| Edit::New(line)));
    } else {
        let mut common = vec![0_u32; (a.len() + 1) * width];
        for i in (0..a.len()).rev() {
            for j in (0..b.len()).rev() {
                common[i * width + j] = if a[i] == b[j] {
                    common[(i + 1) * width + j + 1] + 1
                } else {
                    common[(i + 1) * width + j].max(common[i * width + j + 1])
                };
            }
        }
        let (mut i, mut j) = (0, 0);
        while i < a.len() || j < b.len() {
            if i < a.len() && j < b.len() && a[i] == b[j] {
                edits.push(Edit::Same(&a[i]));
                (i, j) = (i + 1, j + 1);
            } else if j == b.len()
                || (i < a.len() && common[(i + 1) * width + j] >= common[i * width + j + 1])
            {
                edits.push(Edit::Gone(&a[i]));
                i += 1;
            } else {
                edits.push(Edit::New(&b[j]));
                j += 1;
            }
        }
    }
    edits.extend(old[old.len() - tail..].iter().map(|line| Edit::Same(line)));
    edits
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn differences_are_shown_by_line() {
        let request = |system: &str, temperature: f64| {
            json!({
                "model": "m", "temperature": temperature, "max_tokens": 64, "top_p": 1, "seed": 3,
                "messages": [{"role": "system", "content": system}, {"role": "user", "content": "hello"}],
            })
        };
        let then = request("You are careful.\nAnswer in JSON.\nOne line each.\nNo prose.\nThank you.", 0.5);
        assert_eq!(drift(&then, &then), None);
        let now = request("You are careful.\nAnswer in JSON.\nTwo lines each.\nNo prose.\nThank you.", 0.7);
        insta::assert_snapshot!(drift(&then, &now).unwrap(), @r#"
        --- recorded
        +++ now
        @@
                 You are careful.
                 Answer in JSON.
        -        One line each.
        +        Two lines each.
                 No prose.
                 Thank you.
        @@
           model: "m"
           seed: 3
        -  temperature: 0.5
        +  temperature: 0.7
           top_p: 1
         }
        "#);
    }

    #[test]
    fn long_differences_are_cut() {
        let many = |prefix: &str| json!((0..100).map(|i| format!("{prefix}{i}")).collect::<Vec<_>>());
        let text = drift(&many("a"), &many("b")).unwrap().0;
        assert_eq!(text.lines().count(), 2 + MAX_LINES + 1, "{text}");
        assert!(text.ends_with("(162 more lines)\n"), "{text}");
    }
}
