//! Parses a Dockerfile into instructions. It knows enough of the language to lint and build:
//! continuations, comments, heredocs, flags.

/// One instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Instruction {
    /// Line of its beginning, from 1.
    pub(crate) line: u32,
    /// The instruction's name in upper case, e.g. `COPY`.
    pub(crate) word: String,
    /// Flags such as `--from=x`. RUN's flags are left out.
    pub(crate) flags: Vec<String>,
    /// The rest of the instruction, with its lines joined by one space.
    pub(crate) rest: String,
    /// Text of its here-documents.
    pub(crate) heredoc: Option<String>,
}

/// The instructions of `text`.
pub(crate) fn instructions(text: &str) -> Vec<Instruction> {
    let mut found = Vec::new();
    let lines: Vec<&str> = text.lines().collect();
    let mut at = 0;
    while let Some(first) = lines.get(at) {
        let line = u32::try_from(at + 1).unwrap_or(u32::MAX);
        at += 1;
        if first.trim().is_empty() || first.trim_start().starts_with('#') {
            continue;
        }
        let mut whole = String::new();
        let mut part = *first;
        loop {
            let trimmed = part.trim_end();
            // Comments and empty lines inside a continued instruction are skipped, and do not end
            // it.
            let skipped = !whole.is_empty() && (trimmed.is_empty() || trimmed.trim_start().starts_with('#'));
            let more = trimmed.strip_suffix('\\');
            if !skipped {
                if !whole.is_empty() {
                    whole.push(' ');
                }
                whole.push_str(more.unwrap_or(trimmed).trim());
            }
            if more.is_none() && !skipped {
                break;
            }
            match lines.get(at) {
                Some(next) => part = next,
                None => break,
            }
            at += 1;
        }
        let (word, rest) = whole.split_once(char::is_whitespace).unwrap_or((&whole, ""));
        let word = word.to_uppercase();
        let mut rest = rest.trim();
        let mut flags = Vec::new();
        while rest.starts_with("--") && word != "ENTRYPOINT" && word != "CMD" {
            let (flag, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            flags.push(flag.to_owned());
            rest = after.trim_start();
        }
        let mut bodies = Vec::new();
        if matches!(word.as_str(), "RUN" | "COPY" | "ADD") {
            for heredoc in words(rest).into_iter().filter_map(Heredoc::opened_by) {
                let after = lines.get(at..).unwrap_or_default();
                // A heredoc without its final line would reach to the end of the file. The build
                // fails there, so no rule applies.
                let Some(length) = after.iter().position(|line| heredoc.ends_at(line)) else { continue };
                bodies.extend_from_slice(&after[..length]);
                at += length + 1;
            }
        }
        let heredoc = (!bodies.is_empty()).then(|| bodies.join("\n"));
        found.push(Instruction { line, word, flags, rest: rest.to_owned(), heredoc });
    }
    found
}

/// A here-document, as BuildKit recognises it: a separate word `<<WORD`, with or without a file
/// descriptor before it.
struct Heredoc {
    /// The line after its text.
    delimiter: String,
    /// For `<<-`: tabs at the beginning of lines are removed.
    tabs_stripped: bool,
}

impl Heredoc {
    /// The here-document that a word opens. The shift in `$((1<<20))` opens none.
    fn opened_by(word: &str) -> Option<Self> {
        let after = word.trim_start_matches(|c: char| c.is_ascii_digit()).strip_prefix("<<")?;
        let (tabs_stripped, after) = match after.strip_prefix('-') {
            Some(after) => (true, after),
            None => (false, after),
        };
        let delimiter: String = after.chars().filter(|c| !matches!(c, '"' | '\'' | '\\')).collect();
        (!delimiter.is_empty() && !after.contains('<')).then_some(Self { delimiter, tabs_stripped })
    }

    fn ends_at(&self, line: &str) -> bool {
        let line = line.trim_end_matches('\r');
        let line = if self.tabs_stripped { line.trim_start_matches('\t') } else { line };
        line == self.delimiter
    }
}

/// The words of an instruction, with their quotes. Blanks inside quotes or after a backslash do not
/// separate words.
pub(crate) fn words(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let (mut from, mut quote, mut escaped) = (0, None, false);
    for (at, char) in text.char_indices() {
        match (quote, char) {
            _ if escaped => escaped = false,
            (None | Some('"'), '\\') => escaped = true,
            (None, '"' | '\'') => quote = Some(char),
            (Some(open), close) if open == close => quote = None,
            (None, blank) if blank.is_whitespace() => {
                found.push(&text[from..at]);
                from = at + blank.len_utf8();
            }
            (None | Some(_), _) => {}
        }
    }
    found.push(&text[from..]);
    found.retain(|word| !word.is_empty());
    found
}

impl Instruction {
    /// For COPY and ADD: sources and destination. `None` for other instructions.
    pub(crate) fn transfer(&self) -> Option<(Vec<String>, String)> {
        if self.word != "COPY" && self.word != "ADD" {
            return None;
        }
        let mut words: Vec<String> = if self.rest.starts_with('[') {
            serde_json::from_str(&self.rest).ok()?
        } else {
            self.rest.split_whitespace().map(|word| word.trim_matches(['"', '\'']).to_owned()).collect()
        };
        let destination = words.pop()?;
        Some((words, destination))
    }

    /// Whether it copies from another stage or image, and not from the build context.
    pub(crate) fn is_from_elsewhere(&self) -> bool {
        self.flags.iter().any(|flag| flag.starts_with("--from="))
    }

    /// For CMD, ENTRYPOINT and HEALTHCHECK: the command as a shell line.
    pub(crate) fn command_line(&self) -> String {
        let rest = self.rest.strip_prefix("CMD").map_or(self.rest.as_str(), str::trim_start);
        match serde_json::from_str::<Vec<String>>(rest) {
            Ok(words) => super::shell_line(words.iter().map(String::as_str)),
            Err(_) => rest.to_owned(),
        }
    }

    /// For RUN: the shell text. `None` for other instructions.
    pub(crate) fn script(&self) -> Option<String> {
        (self.word == "RUN").then(|| match &self.heredoc {
            Some(body) => format!("{}\n{body}", self.rest),
            None => self.rest.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_found() {
        let text = "# syntax\nfrom a AS b\n\nRUN apt-get update \\\n  # why\n\n && x  \\\n && y\nCOPY --from=b --chmod=1 a b /c/\nRUN <<EOF\nhere\nEOF\nCOPY [\"a b\", \"/d\"]\nUSER u";
        let got: Vec<_> = instructions(text)
            .into_iter()
            .map(|one| format!("{} {} {:?} {} {:?}", one.line, one.word, one.flags, one.rest, one.heredoc))
            .collect();
        assert_eq!(
            got,
            [
                "2 FROM [] a AS b None",
                "4 RUN [] apt-get update && x && y None",
                "9 COPY [\"--from=b\", \"--chmod=1\"] a b /c/ None",
                "10 RUN [] <<EOF Some(\"here\")",
                "13 COPY [] [\"a b\", \"/d\"] None",
                "14 USER [] u None",
            ]
        );
        let copy = &instructions("COPY [\"a b\", \"/d\"]")[0];
        assert_eq!(copy.transfer(), Some((vec!["a b".to_owned()], "/d".to_owned())));
    }

    #[test]
    fn only_here_documents_take_the_lines_after_an_instruction() {
        let check = |text: &str, expect: &[(&str, Option<&str>)]| {
            let got = instructions(text);
            let got: Vec<_> = got.iter().map(|one| (one.word.as_str(), one.heredoc.as_deref())).collect();
            assert_eq!(got, expect, "{text}");
        };
        let plain: &[(&str, Option<&str>)] = &[("RUN", None), ("USER", None)];
        check("RUN echo $((1<<20))\nUSER u", plain);
        check("RUN echo $(( 1 << 20 ))\nUSER u", plain);
        check("RUN echo $((1 <<20))\nUSER u", plain);
        check("RUN echo \"a <<EOF\"\nUSER u\nEOF", &[("RUN", None), ("USER", None), ("EOF", None)]);
        check("RUN cat <<<EOF\nUSER u", plain);
        check("RUN cat <<EOF > /a\nUSER u", plain);
        check("RUN cat <<EOF > /a\nb\nEOF\nUSER u", &[("RUN", Some("b")), ("USER", None)]);
        check("RUN cat 3<<'E F'\nb\n EOF\nE F\nUSER u", &[("RUN", Some("b\n EOF")), ("USER", None)]);
        check("RUN <<-EOF\n\tb\n\tEOF\nUSER u", &[("RUN", Some("\tb")), ("USER", None)]);
        check("COPY <<a <<b /c/\n1\na\n2\nb\nUSER u", &[("COPY", Some("1\n2")), ("USER", None)]);
        check("CMD cat <<EOF\nUSER u\nEOF", &[("CMD", None), ("USER", None), ("EOF", None)]);
    }
}
