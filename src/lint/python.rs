//! A light look at pytest modules: functions by indentation, no grammar. It may miss; it must not invent.

/// One `def`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Function<'a> {
    pub(super) name: &'a str,
    /// Of the `def`, from 1.
    pub(super) line: u32,
    /// Enclosing class, if any.
    pub(super) class: Option<&'a str>,
    /// Number and text of the lines after the signature, comments and empty lines left out.
    pub(super) body: Vec<(u32, &'a str)>,
}

/// The functions of a module, methods included; functions in functions belong to the outer one.
pub(super) fn functions(text: &str) -> Vec<Function<'_>> {
    let mut found: Vec<Function<'_>> = Vec::new();
    let mut class: Option<(usize, &str)> = None;
    // Indentation of the open function, and whether its signature has ended.
    let mut open: Option<(usize, bool)> = None;
    for (line, code) in (1_u32..).zip(text.lines()) {
        let stripped = code.trim_start();
        if stripped.is_empty() || stripped.starts_with('#') {
            continue;
        }
        let indent = code.len() - stripped.len();
        if open.is_some_and(|(outer, ended)| ended && indent <= outer) {
            open = None;
        }
        if let Some((_, ended)) = &mut open {
            if *ended {
                if let Some(function) = found.last_mut() {
                    function.body.push((line, code));
                }
            } else {
                *ended = stripped.trim_end().ends_with(':');
            }
            continue;
        }
        if class.is_some_and(|(outer, _)| indent <= outer) {
            class = None;
        }
        if let Some(rest) = stripped.strip_prefix("class ") {
            class = Some((indent, word(rest)));
        }
        let def = stripped.strip_prefix("async ").unwrap_or(stripped).trim_start().strip_prefix("def ");
        if let Some(rest) = def {
            let (_, after) = rest.split_once(':').unwrap_or((rest, ""));
            let mut body = Vec::new();
            let one_line = rest.contains("):") || rest.contains(") ->");
            if one_line && !after.trim().is_empty() && !rest.contains("->") {
                body.push((line, after));
            }
            let ended = stripped.split(" #").next().unwrap_or(stripped).trim_end().ends_with(':') || one_line;
            found.push(Function { name: word(rest), line, class: class.map(|(_, name)| name), body });
            open = Some((indent, ended));
        }
    }
    found
}

fn word(text: &str) -> &str {
    let end = text.find(|char: char| !char.is_alphanumeric() && char != '_').unwrap_or(text.len());
    &text[..end]
}

impl<'a> Function<'a> {
    /// Whether pytest collects it.
    pub(super) fn is_check(&self) -> bool {
        self.name.starts_with("test")
    }

    pub(super) fn has_docstring(&self) -> bool {
        let quoted = |code: &str| {
            let code = code.trim_start().trim_start_matches(['r', 'R', 'f', 'u', 'b']);
            code.starts_with('"') || code.starts_with('\'')
        };
        self.body.first().is_some_and(|(_, code)| quoted(code))
    }

    /// Lines that assert, without `assert` itself.
    pub(super) fn asserts(&self) -> impl Iterator<Item = (u32, &'a str)> {
        self.body.iter().filter_map(|(line, code)| Some((*line, condition(code)?)))
    }
}

/// What a line asserts.
pub(super) fn condition(code: &str) -> Option<&str> {
    let rest = code.trim_start().strip_prefix("assert")?;
    rest.starts_with([' ', '(']).then(|| rest.trim())
}

/// How deep a line is indented.
pub(super) fn indent(code: &str) -> usize {
    code.len() - code.trim_start().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found() {
        let text = "import x\n\ndef helper(a,\n           b=1):\n    return a\n\n\nclass TestX:\n    def test_a(self):\n        \"\"\"Doc.\"\"\"\n\n        # c\n        assert a == 1\n        def inner():\n            assert b\n    async def test_b(self): assert True\n\ndef test_c() -> None:\n    assert (x)\n";
        let got: Vec<_> = functions(text)
            .iter()
            .map(|it| {
                let asserts: Vec<_> = it.asserts().map(|(line, what)| format!("{line} {what}")).collect();
                format!("{} {} {:?} {} {asserts:?}", it.line, it.name, it.class, it.has_docstring())
            })
            .collect();
        assert_eq!(
            got,
            [
                "3 helper None false []",
                "9 test_a Some(\"TestX\") true [\"13 a == 1\", \"15 b\"]",
                "16 test_b Some(\"TestX\") false [\"16 True\"]",
                "18 test_c None false [\"19 (x)\"]",
            ]
        );
    }
}
