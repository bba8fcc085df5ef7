//! Whether a shell would ask for another line of a command.

/// Words that open a compound command, and words that close one.
const OPENING: [&str; 7] = ["if", "case", "for", "while", "until", "select", "{"];
const CLOSING: [&str; 4] = ["fi", "esac", "done", "}"];
/// After these words another command begins.
const BEFORE_COMMAND: [&str; 7] = ["do", "then", "else", "elif", "!", "time", "{"];

/// Whether `command` lacks the end of a quotation, a here document, a list or a loop.
///
/// A parser of whole scripts cannot tell: it reads an unfinished here document up to the end of the
/// text.
pub(super) fn is_incomplete(command: &str) -> bool {
    let mut scan = Scan::default();
    let mut lines = command.lines();
    while let Some(line) = lines.next() {
        scan.line(line);
        // The shell reads the here-documents of a line before the next one.
        for Document { end, indented } in std::mem::take(&mut scan.documents) {
            let ends = |line: &str| (if indented { line.trim_start_matches('\t') } else { line }) == end;
            if !lines.by_ref().any(ends) {
                return true;
            }
        }
    }
    scan.quote.is_some() || scan.open > 0 || scan.continues
}

/// A here document whose text follows.
#[derive(Debug)]
struct Document {
    end: String,
    /// For `<<-`: tabs before the end mark are ignored.
    indented: bool,
}

/// The constructs that are open after the lines that were read.
#[derive(Debug, Default)]
struct Scan {
    quote: Option<char>,
    /// Open loops, conditions, groups and parentheses.
    open: usize,
    /// The last line ends in `\`, `|`, `&&` or `||`.
    continues: bool,
    documents: Vec<Document>,
    word: String,
    /// Whether a command begins with this word.
    leads: Option<bool>,
}

impl Scan {
    fn line(&mut self, line: &str) {
        if self.quote.is_none() && !std::mem::take(&mut self.continues) {
            self.leads = Some(true);
        }
        let characters: Vec<char> = line.chars().collect();
        let mut at = 0;
        while let Some(character) = characters.get(at).copied() {
            at += 1;
            match (self.quote, character) {
                (None | Some('"' | '`'), '\\') => {
                    if at == characters.len() {
                        self.continues = true;
                    }
                    self.word.push('\\');
                    at += 1;
                }
                (Some(quote), _) if quote == character => self.quote = None,
                (Some(_), _) => {}
                (None, '\'' | '"' | '`') => {
                    self.quote = Some(character);
                    self.word.push('\\');
                }
                (None, '#') if self.word.is_empty() => break,
                (None, '<') if characters.get(at) == Some(&'<') => {
                    at = self.document(&characters, at + 1);
                }
                (None, '(') => {
                    self.end_word();
                    self.open += 1;
                    self.leads = Some(true);
                }
                (None, ')') => {
                    self.end_word();
                    // The pattern of a `case` has no opening parenthesis.
                    self.open = self.open.saturating_sub(usize::from(!self.in_pattern(&characters, at)));
                    self.leads = Some(true);
                }
                (None, ';' | '|' | '&') => {
                    self.end_word();
                    self.leads = Some(true);
                }
                (None, character) if character.is_whitespace() => self.end_word(),
                (None, character) => self.word.push(character),
            }
        }
        if self.quote.is_none() {
            self.end_word();
            let text = line.trim_end();
            self.continues |= text.ends_with('|') || text.ends_with("&&");
        }
    }

    /// Whether the parenthesis before `at` ends the pattern of a `case`. Then none was opened on
    /// this line.
    fn in_pattern(&self, characters: &[char], at: usize) -> bool {
        let count = |sign: char| characters[..at].iter().filter(|character| **character == sign).count();
        count(')') > count('(') && self.open > 0
    }

    fn end_word(&mut self) {
        let word = std::mem::take(&mut self.word);
        if word.is_empty() {
            return;
        }
        if self.leads == Some(true) {
            if OPENING.contains(&word.as_str()) {
                self.open += 1;
            } else if CLOSING.contains(&word.as_str()) {
                self.open = self.open.saturating_sub(1);
            }
            let another =
                BEFORE_COMMAND.contains(&word.as_str()) || ["if", "while", "until"].contains(&word.as_str());
            self.leads = Some(another);
        }
    }

    /// Reads the end mark of a here document after `<<`. Returns where the line continues.
    fn document(&mut self, characters: &[char], mut at: usize) -> usize {
        self.end_word();
        // `<<<` has its text on the same line.
        if characters.get(at) == Some(&'<') {
            return at + 1;
        }
        let indented = characters.get(at) == Some(&'-');
        at += usize::from(indented);
        while characters.get(at) == Some(&' ') {
            at += 1;
        }
        let mut end = String::new();
        while let Some(character) =
            characters.get(at).filter(|c| !c.is_whitespace() && !";|&()<>".contains(**c))
        {
            if !matches!(character, '\'' | '"' | '\\') {
                end.push(*character);
            }
            at += 1;
        }
        // `$((1 << 2))` is a shift.
        if !end.is_empty() && !end.starts_with(|c: char| c.is_ascii_digit()) {
            self.documents.push(Document { end, indented });
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whether_a_shell_asks_for_more() {
        let check = |command: &str, expect: bool| assert_eq!(is_incomplete(command), expect, "{command}");
        for whole in [
            "",
            "ls -l",
            "echo 'a b' \"c\" # it's",
            "cat <<EOF\na\nEOF",
            "cat <<-'E'\n\ta\n\tE",
            "wc <<< text",
            "for i in 1 2; do echo $i; done",
            "if true; then ls; fi",
            "echo done",
            "echo if",
            "(cd a; ls)",
            "f() { ls; }",
            "case $1 in a) ls;; esac",
            "case $1 in\na) ls;;\nesac",
            "echo $(ls)",
            "a && b || c",
            "echo \\'",
            "make \\\nall",
            "echo $((1 << 2))",
            "[ -f a ] && { ls; }",
            "while read x; do\nls\ndone < a",
            "sleep 9 &",
            "diff a b",
            "sed 's/(//' a",
            "cat <<A <<B\n1\nA\n2\nB",
        ] {
            check(whole, false);
        }
        for part in [
            "echo 'a",
            "echo \"a\nb",
            "cat <<EOF",
            "cat > a <<EOF\none",
            "cat <<A <<B\n1\nA",
            "make \\",
            "ls |",
            "a &&",
            "a ||",
            "for i in 1 2; do",
            "for i in 1 2",
            "if true",
            "if true; then\nls",
            "while read x; do",
            "f() {",
            "case $1 in",
            "case $1 in\na) ls;;",
            "(cd a",
            "echo $(ls",
            "cat <<-E\n\ta",
        ] {
            check(part, true);
        }
    }
}
