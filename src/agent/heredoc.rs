//! Here documents of bash (`<<EOF`). Their text is data, even if it looks like syntax, e.g. a
//! README that has fences.

/// Length in bytes of the here documents that `line` opens. `rest` is the text after the line. The
/// delimiter lines count. `None` if the line opens no document, or one of them never ends.
pub(super) fn length(line: &str, rest: &str) -> Option<usize> {
    let documents = opened_by(line);
    let mut lines = rest.split_inclusive('\n');
    let mut read = 0;
    for document in &documents {
        loop {
            let line = lines.next()?;
            read += line.len();
            if document.ends_at(line) {
                break;
            }
        }
    }
    (read > 0).then_some(read)
}

#[derive(Debug)]
struct Document {
    delimiter: String,
    /// `<<-`: tabs before the delimiter are ignored.
    tabs: bool,
}

impl Document {
    fn ends_at(&self, line: &str) -> bool {
        let line = line.strip_suffix('\n').unwrap_or(line);
        let line = line.strip_suffix('\r').unwrap_or(line);
        let line = if self.tabs { line.trim_start_matches('\t') } else { line };
        line == self.delimiter
    }
}

/// The here documents that a line opens. Neither `<<<` nor a shift (`1 << 3`) opens one.
fn opened_by(line: &str) -> Vec<Document> {
    let mut documents = Vec::new();
    let mut rest = line;
    while let Some(at) = rest.find("<<") {
        let after = &rest[at + 2..];
        if let Some(after) = after.strip_prefix('<') {
            rest = after;
            continue;
        }
        rest = after;
        let tabs = after.starts_with('-');
        let word = after.strip_prefix('-').unwrap_or(after).trim_start_matches([' ', '\t']);
        let delimiter = delimiter(word);
        if !delimiter.is_empty() {
            documents.push(Document { delimiter, tabs });
        }
    }
    documents
}

fn delimiter(word: &str) -> String {
    if let Some(quote) = word.chars().next().filter(|c| matches!(c, '\'' | '"')) {
        return word[1..].split_once(quote).map(|(inner, _)| inner.to_owned()).unwrap_or_default();
    }
    let word = word.strip_prefix('\\').unwrap_or(word);
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let word: String = word.chars().take_while(|&c| is_part(c)).collect();
    if word.starts_with(|c: char| c.is_ascii_digit()) { String::new() } else { word }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn here_documents_end_at_their_delimiters() {
        let check = |line: &str, rest: &str, expect: Option<&str>| {
            assert_eq!(length(line, rest).map(|length| &rest[..length]), expect, "{line} {rest}");
        };
        check("cat <<EOF", "a\nEOF\nb", Some("a\nEOF\n"));
        check("cat > a <<'EOF' && ls", "a\n EOF\nEOF", Some("a\n EOF\nEOF"));
        check("cat << \"E F\"", "E\nE F\n", Some("E\nE F\n"));
        check("cat <<\\EOF", "EOF\r\n", Some("EOF\r\n"));
        check("cat <<-EOF", "\ta\n\t\tEOF\n", Some("\ta\n\t\tEOF\n"));
        check("cat <<EOF", "\tEOF\n", None);
        check("cat <<A - <<B", "A\nB\nA\n", Some("A\nB\n"));
        check("cat <<EOF", "a\n", None);
        check("cat <<<EOF", "EOF\n", None);
        check("echo $((1 << 3))", "3\n", None);
        check("cat <<", "\n", None);
        check("ls", "ls\n", None);
    }
}
