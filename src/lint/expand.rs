//! The value of a shell word, if the text of the script determines it.

use std::collections::BTreeMap;

/// Variables with one known value.
#[derive(Debug, Default)]
pub(super) struct Variables {
    values: BTreeMap<String, String>,
    /// The script's folder in the container. Empty if it is unknown.
    folder: String,
}

impl Variables {
    pub(super) fn new(folder: &str) -> Self {
        Self { values: BTreeMap::new(), folder: folder.to_owned() }
    }

    pub(super) fn set(&mut self, name: &str, value: &str) {
        self.values.insert(name.to_owned(), value.to_owned());
    }

    pub(super) fn forget(&mut self, name: &str) {
        self.values.remove(name);
    }

    /// A word without its quotes. Variables and substitutions of unknown value stay as written.
    pub(super) fn expand(&self, word: &str) -> String {
        let mut out = String::with_capacity(word.len());
        let mut quoted = false;
        let mut rest = word;
        while let Some(char) = rest.chars().next() {
            let after = &rest[char.len_utf8()..];
            rest = match char {
                '"' => {
                    quoted = !quoted;
                    after
                }
                '\'' if !quoted => {
                    let (inside, after) = after.split_once('\'').unwrap_or((after, ""));
                    out.push_str(inside);
                    after
                }
                '\\' => {
                    let next = after.chars().next();
                    let kept = quoted && !matches!(next, Some('"' | '\\' | '$' | '`' | '\n'));
                    if kept {
                        out.push('\\');
                    }
                    out.extend(next.filter(|next| *next != '\n'));
                    &after[next.map_or(0, char::len_utf8)..]
                }
                '$' => {
                    let (length, value) = self.dollar(after);
                    match value {
                        Some(value) => out.push_str(&value),
                        None => out.push_str(&rest[..1 + length]),
                    }
                    &after[length..]
                }
                other => {
                    out.push(other);
                    after
                }
            };
        }
        out
    }

    /// Number of bytes of `text` that belong to the `$` before it, and the value if it is known.
    fn dollar(&self, text: &str) -> (usize, Option<String>) {
        if let Some(inside) = text.strip_prefix('{') {
            let length = inside.find('}').unwrap_or(inside.len());
            return ((length + 2).min(text.len()), self.braces(&inside[..length]));
        }
        if text.starts_with('(') {
            let length = closing(text);
            return (length, self.own_folder(&text[..length]));
        }
        let name = text.find(|char: char| !char.is_ascii_alphanumeric() && char != '_').unwrap_or(text.len());
        (name, self.values.get(&text[..name]).cloned())
    }

    /// The value of `${…}`, given the text inside: `NAME` or `NAME:-default`.
    fn braces(&self, inside: &str) -> Option<String> {
        if matches!(inside, "0%/*" | "BASH_SOURCE%/*" | "BASH_SOURCE[0]%/*") {
            return Some(self.folder.clone()).filter(|folder| !folder.is_empty());
        }
        let end =
            inside.find(|char: char| !char.is_ascii_alphanumeric() && char != '_').unwrap_or(inside.len());
        let (name, rest) = inside.split_at(end);
        let default = rest.strip_prefix(":-").or_else(|| rest.strip_prefix(":="));
        match (self.values.get(name), rest.is_empty(), default) {
            (Some(value), true, _) | (Some(value), _, Some(_)) => Some(value.clone()),
            // A default inside a default stays as written, so that nested text cannot exhaust the
            // stack.
            (None, _, Some(default)) if !default.contains("${") => {
                Some(self.expand(default)).filter(|value| !value.contains('$'))
            }
            _ => None,
        }
    }

    /// The script's folder, for `$(dirname "$0")`, also inside `$(cd … && pwd)`.
    fn own_folder(&self, substitution: &str) -> Option<String> {
        let own = [
            "dirname \"$0\"",
            "dirname $0",
            "dirname \"${BASH_SOURCE",
            "dirname ${BASH_SOURCE",
            "dirname -- \"$0\"",
            "dirname -- \"${BASH_SOURCE",
        ];
        let known = own.iter().any(|own| substitution.contains(own)) && !substitution.contains("..");
        Some(self.folder.clone()).filter(|folder| known && !folder.is_empty())
    }
}

/// The length of a substitution that begins with `(`.
fn closing(text: &str) -> usize {
    let mut depth = 0_usize;
    for (at, char) in text.char_indices() {
        match char {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_have_values() {
        let check = |word: &str, expect: &str| {
            let mut variables = Variables::new("/tests");
            variables.set("A", "/a");
            assert_eq!(variables.expand(word), expect, "{word}");
        };
        check("a\"b c\"'d $A'", "ab cd $A");
        check("$A/x${A}y", "/a/x/ay");
        check("${B:-$A/b} ${A:-c} $B ${B} ${#A}", "/a/b /a $B ${B} ${#A}");
        check("\"\\$A\" \\$A \"\\n\"", "$A $A \\n");
        check("'open \"", "open \"");
        check("$", "$");
        check("${", "${");
        check("$(a (b) c)d", "$(a (b) c)d");
        check("$(", "$(");
        check("a\\\nb", "ab");
        check("ä$Aö", "ä/aö");
        check("${B:-${C:-d}}", "${B:-${C:-d}}");
        check(&"${B:-".repeat(50_000), &"${B:-".repeat(50_000));
    }
}
