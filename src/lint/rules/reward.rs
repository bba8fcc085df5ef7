//! Rule about the values that the tests write to `reward.json`.

use serde_json::Value;

use crate::lint::linted_task::{LintedTask, in_tests};
use crate::lint::programs::base_name;
use crate::lint::python::module;
use crate::lint::rule::RuleMatch;
use crate::lint::shell::{Command, commands, pythons};

const FILE: &str = "reward.json";

pub(in crate::lint) fn reward_json(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    let mut matches = Vec::new();
    for (path, text) in task.texts(|path| in_tests(path) && path.ends_with(".sh")) {
        for command in commands(text) {
            let Some(why) = written(&command).and_then(|json| refused(&json)) else { continue };
            matches.push(RuleMatch::at(path, command.line, message(&why)));
        }
    }
    for python in pythons(task.texts(in_tests)) {
        let rewards = module(&python.text).rewards.into_iter();
        matches.extend(
            rewards.map(|(line, why)| RuleMatch::at(python.file, python.before + line, message(&why))),
        );
    }
    matches
}

fn message(why: &str) -> String {
    format!("reward.json has {why}: Harbor reads it before reward.txt, and accepts only numbers")
}

/// The JSON that a command writes to the reward file.
fn written(command: &Command) -> Option<String> {
    let by_tee = command.name() == "tee" && command.words.iter().any(|word| base_name(word) == FILE);
    if !by_tee && !command.writes.iter().any(|file| base_name(file) == FILE) {
        return None;
    }
    match command.name() {
        "echo" | "printf" => {
            Some(command.words[1..].iter().find(|word| word.trim_start().starts_with('{'))?.clone())
        }
        "cat" | "tee" => command.input.clone(),
        _ => None,
    }
}

/// Why Harbor refuses a JSON text, whatever its variables contain. `None` if Harbor may accept it.
fn refused(json: &str) -> Option<String> {
    let value: Value = match serde_json::from_str(&with_numbers(json)) {
        Ok(value) => value,
        // The value of a variable may complete it.
        Err(_) if json.contains(['$', '%', '`']) => return None,
        Err(_) => return Some("no JSON in it".to_owned()),
    };
    let Value::Object(entries) = value else { return Some("no object of numbers".to_owned()) };
    let bad = entries.iter().find(|(_, value)| !matches!(value, Value::Number(_) | Value::Bool(_)));
    bad.map(|(key, value)| {
        let what = match value {
            Value::String(_) => "a text",
            Value::Array(_) => "a list",
            Value::Object(_) => "an object",
            _ => "null",
        };
        format!("{what} at `{key}`")
    })
}

/// JSON in a shell text, with a number in place of every variable and every `%s`.
fn with_numbers(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find(['$', '%', '\\']) {
        out.push_str(&rest[..at]);
        let here = &rest[at..];
        let length = match here.as_bytes() {
            [b'\\', b'n', ..] => {
                out.push(' ');
                rest = &here[2..];
                continue;
            }
            [b'$', b'{', ..] => here.find('}').map_or(here.len(), |end| end + 1),
            [b'$', b'(', ..] => {
                let mut depth = 0_i32;
                here.char_indices()
                    .find(|(_, char)| {
                        depth += i32::from(*char == '(') - i32::from(*char == ')');
                        *char == ')' && depth == 0
                    })
                    .map_or(here.len(), |(end, _)| end + 1)
            }
            [b'$', ..] => {
                1 + here[1..]
                    .find(|char: char| !char.is_ascii_alphanumeric() && char != '_')
                    .unwrap_or(here.len() - 1)
            }
            [b'%', ..] => {
                let end = here.find(|char: char| char.is_ascii_alphabetic()).unwrap_or(here.len() - 1);
                end + 1
            }
            _ => {
                out.push('\\');
                rest = &here[1..];
                continue;
            }
        };
        out.push('1');
        rest = &here[length..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_may_be_numbers() {
        let check = |json: &str, expect: Option<&str>| assert_eq!(refused(json).as_deref(), expect, "{json}");
        check("{\"reward\": 1.0}", None);
        check("{\"reward\": $R, \"b\": ${B:-0}, \"c\": $(f (x)), \"d\": %d, \"e\": %.2f}", None);
        check("{\"reward\": \"$R\"}", Some("a text at `reward`"));
        check("{\"reward\": 1, \"failures\": []}", Some("a list at `failures`"));
        check("{\"reward\": 1, \"a\": {\"b\": 1}}\\n", Some("an object at `a`"));
        check("{\"reward\": null}", Some("null at `reward`"));
        check("[1]", Some("no object of numbers"));
        check("{{\"reward\": 1}}", Some("no JSON in it"));
        // The value of the variable is unknown.
        check("{\"reward\": $R $A}", None);
        check("$JSON", Some("no object of numbers"));
    }
}
