//! A Dockerfile as a list of instructions. Enough of the language to lint it: continuations, comments, heredocs, flags.

/// One instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Instruction {
    /// Where it begins, from 1.
    pub(super) line: u32,
    /// Upper case.
    pub(super) word: String,
    /// `--from=x`, without those of RUN.
    pub(super) flags: Vec<String>,
    /// The rest, its lines joined by one space.
    pub(super) rest: String,
    /// Bodies of here documents.
    pub(super) heredoc: Option<String>,
}

/// The instructions of `text`.
pub(super) fn instructions(text: &str) -> Vec<Instruction> {
    let mut found = Vec::new();
    let mut lines = text.lines().zip(1_u32..);
    while let Some((first, line)) = lines.next() {
        if first.trim().is_empty() || first.trim_start().starts_with('#') {
            continue;
        }
        let mut whole = String::new();
        let mut part = first;
        loop {
            let trimmed = part.trim_end();
            // A comment or an empty line within a continued instruction is not part of it, and does not end it.
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
            match lines.next() {
                Some((next, _)) => part = next,
                None => break,
            }
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
        let heredoc =
            heredoc_end(rest).filter(|_| matches!(word.as_str(), "RUN" | "COPY" | "ADD")).map(|end| {
                let body: Vec<_> =
                    lines.by_ref().map(|(line, _)| line).take_while(|line| line.trim() != end).collect();
                body.join("\n")
            });
        found.push(Instruction { line, word, flags, rest: rest.to_owned(), heredoc });
    }
    found
}

/// The word that ends the here document which `rest` opens.
fn heredoc_end(rest: &str) -> Option<String> {
    let (_, after) = rest.split_once("<<")?;
    let after = after.strip_prefix('-').unwrap_or(after);
    let word: String = after
        .trim_start_matches(['"', '\''])
        .chars()
        .take_while(|char| char.is_alphanumeric() || *char == '_')
        .collect();
    (!word.is_empty()).then_some(word)
}

impl Instruction {
    /// For COPY and ADD: sources and destination.
    pub(super) fn transfer(&self) -> Option<(Vec<String>, String)> {
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

    /// Whether it copies from another stage or image, not from the build context.
    pub(super) fn is_from_elsewhere(&self) -> bool {
        self.flags.iter().any(|flag| flag.starts_with("--from="))
    }

    /// For RUN: the shell text.
    pub(super) fn script(&self) -> Option<String> {
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
}
