//! What an agent did in each turn, in a form that two rollouts can be compared by.
//!
//! Two messages with the same command are the same action, whatever their prose says. Spaces, empty
//! lines and comments inside commands do not count either.

use std::sync::LazyLock;

use regex::Regex;

use crate::model::{Rollout, Shown, ToolCall, Turn, TurnKind, squeeze};

/// The start of a here-document, with its delimiter as group 1. It does not match `<<<`, or a shift
/// by a number as in `1 << 2`.
static HEREDOC: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"(?:^|[^<])<<-?\s*['"\\]?([A-Za-z_]\w*)"#).ok());

/// A line that starts a here-document with code or settings. There `#` begins a comment. In other
/// here-documents `#` may be a heading.
static PROGRAM: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?x)
        (?: ^ | [\s|;&(/] ) (?: python[\d.]* | bash | sh | ruby | perl | awk ) (?: \s | $ )
        | \. (?: py | sh | bash | rb | pl | awk | ya?ml | toml | conf | cfg | ini | mk ) \b
        | \b [Mm]akefile \b",
    )
    .ok()
});

/// One turn, reduced to what was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Action {
    pub(super) kind: TurnKind,
    /// The normalised commands, keystrokes or function calls. Empty if nothing was carried out.
    pub(super) text: String,
}

impl Action {
    /// The action of a turn.
    pub(super) fn of(turn: &Turn) -> Self {
        let text = if !turn.acts.is_empty() {
            joined(turn.acts.iter().map(|act| normalised(act.text())))
        } else {
            match turn.kind {
                // An agent with its own loop, or an imported rollout. Only its calls are known, or
                // else the message itself.
                TurnKind::Acted if turn.tool_calls.is_empty() => squeeze(&turn.content),
                TurnKind::Acted => joined(turn.tool_calls.iter().map(call)),
                TurnKind::Asked => squeeze(&turn.content),
                TurnKind::Submitted | TurnKind::Claimed | TurnKind::Malformed => String::new(),
            }
        };
        Self { kind: turn.kind, text }
    }
}

/// The actions of a rollout, one for each turn.
pub(super) fn actions(rollout: &Rollout) -> Vec<Action> {
    rollout.record.turns.iter().map(Action::of).collect()
}

/// The commands among `actions`, in order. Questions and malformed replies are left out.
pub(super) fn commands(actions: &[Action]) -> Vec<&str> {
    let ran = |action: &&Action| match action.kind {
        TurnKind::Acted | TurnKind::Submitted | TurnKind::Claimed => !action.text.is_empty(),
        TurnKind::Asked | TurnKind::Malformed => false,
    };
    actions.iter().filter(ran).map(|action| action.text.as_str()).collect()
}

/// The first turn at which the actions differ. `None` if one side has all actions of the other.
pub(super) fn divergence(one: &[Action], other: &[Action]) -> Option<usize> {
    one.iter().zip(other).position(|(one, other)| one != other)
}

/// Whether two observations show the same text. Ids of function calls are not compared, because
/// they differ between rollouts.
pub(super) fn same_observation(one: &[Shown], other: &[Shown]) -> bool {
    let texts =
        |shown: &[Shown]| shown.iter().map(|shown| shown.content.trim().to_owned()).collect::<Vec<_>>();
    texts(one) == texts(other)
}

/// A command or keystrokes, without comments, extra spaces and empty lines. Here-documents with
/// data keep them.
pub(super) fn normalised(text: &str) -> String {
    /// A here-document whose end has not been reached.
    struct Open {
        delimiter: String,
        program: bool,
    }
    let mut open: Option<Open> = None;
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        let comment = line.trim_start().starts_with('#') && !line.trim_start().starts_with("#!");
        match &open {
            Some(document) if line.trim() == document.delimiter => {
                lines.push(line.trim().to_owned());
                open = None;
            }
            Some(document) => {
                if !(comment && document.program) {
                    lines.push(line.trim_end().to_owned());
                }
            }
            None if comment => {}
            None => {
                let heredoc = HEREDOC.as_ref().and_then(|pattern| pattern.captures(line));
                open = heredoc.and_then(|found| found.get(1)).map(|delimiter| Open {
                    delimiter: delimiter.as_str().to_owned(),
                    program: PROGRAM.as_ref().is_some_and(|pattern| pattern.is_match(line)),
                });
                lines.push(squeeze(line));
            }
        }
    }
    lines.retain(|line| !line.is_empty());
    lines.join("\n")
}

fn joined(texts: impl Iterator<Item = String>) -> String {
    texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
}

/// A function call: the command in it, or its arguments as JSON with sorted keys.
fn call(call: &ToolCall) -> String {
    let Ok(arguments) = serde_json::from_str::<serde_json::Value>(&call.arguments) else {
        return format!("{} {}", call.name, squeeze(&call.arguments));
    };
    match arguments.get("command").and_then(serde_json::Value::as_str) {
        Some(command) => normalised(command),
        None => format!("{} {arguments}", call.name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Act;

    #[test]
    fn commands_are_normalised() {
        let check = |text: &str, expect: &str| assert_eq!(normalised(text), expect, "{text:?}");
        check("", "");
        check("  ls   -la \n\n", "ls -la");
        check("# I look first.\nls", "ls");
        check("#!/bin/sh\nls", "#!/bin/sh\nls");
        check("ls\npwd\n", "ls\npwd");
        // In a here-document with code, indentation counts and comments do not.
        check(
            "cat > a.py <<'EOF'\n# sums\nif x:\n    y  =  1  \n\nEOF\nls",
            "cat > a.py <<'EOF'\nif x:\n    y  =  1\nEOF\nls",
        );
        check("python3 - <<EOF\n# sums\nprint(1)\nEOF", "python3 - <<EOF\nprint(1)\nEOF");
        check(
            "cat > Makefile <<EOF\n# all\nall:\n\tmake x\nEOF",
            "cat > Makefile <<EOF\nall:\n\tmake x\nEOF",
        );
        // In a here-document with text, `# Sums` is data.
        check("cat > a.md <<EOF\n# Sums\nEOF\n# bye", "cat > a.md <<EOF\n# Sums\nEOF");
        check("cat <<< word\n# note", "cat <<< word");
        check("echo $((1 << 3))\n# note\nls", "echo $((1 << 3))\nls");
        check("cat <<EOF\nnever ended", "cat <<EOF\nnever ended");
    }

    #[test]
    fn actions_of_turns() {
        let check = |turn: Turn, expect: &str| {
            let kind = turn.kind;
            assert_eq!(Action::of(&turn), Action { kind, text: expect.to_owned() });
        };
        let turn = |content: &str, kind| Turn { content: content.to_owned(), kind, ..Turn::default() };
        let calls = |arguments: &str, kind| {
            let call =
                ToolCall { id: "c".to_owned(), name: "bash".to_owned(), arguments: arguments.to_owned() };
            Turn { tool_calls: vec![call], ..turn("", kind) }
        };
        let keys = |keys: &[&str]| Turn {
            acts: keys.iter().map(|keys| Act::Keys { keys: (*keys).to_owned() }).collect(),
            ..turn("I look.", TurnKind::Acted)
        };
        check(keys(&["ls\n", "pwd\n"]), "ls\npwd");
        check(keys(&["ls\npwd\n"]), "ls\npwd");
        check(calls(r#"{"timeout":5,"command":"ls  -l"}"#, TurnKind::Acted), "ls -l");
        check(calls(r#"{"path":"b", "new":"a"}"#, TurnKind::Acted), r#"bash {"new":"a","path":"b"}"#);
        check(calls("{bad  ", TurnKind::Acted), "bash {bad");
        check(calls(r#"{"summary":"all done"}"#, TurnKind::Submitted), "");
        check(turn("Which  port?", TurnKind::Asked), "Which port?");
        check(turn("An agent of another harness.", TurnKind::Acted), "An agent of another harness.");
        check(turn("The work is done.", TurnKind::Submitted), "");
        check(turn("no JSON", TurnKind::Malformed), "");
    }

    #[test]
    fn the_divergence_is_the_first_differing_action() {
        let action = |text: &str| match text {
            "." => Action { kind: TurnKind::Submitted, text: String::new() },
            text => Action { kind: TurnKind::Acted, text: text.to_owned() },
        };
        let check = |one: &str, other: &str, expect: Option<usize>| {
            let [one, other] = [one, other].map(|text| text.split(' ').map(action).collect::<Vec<_>>());
            assert_eq!(divergence(&one, &other), expect);
        };
        check("a b .", "a c .", Some(1));
        check("a b .", "a .", Some(1));
        check("a b .", "b a .", Some(0));
        check("a b .", "a b .", None);
        // A limit ended one side early. All of its actions also occur in the other.
        check("a b c", "a b", None);
    }
}
