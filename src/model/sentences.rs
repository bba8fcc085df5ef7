//! Splits an instruction into sentences.

/// Replaces each run of white space by one blank. Instructions are wrapped at different columns.
pub fn squeeze(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Maximum number of words of a bold text that counts as a heading. A longer one counts as a
/// sentence.
const HEADING_WORDS: usize = 4;

/// The text of an instruction without headings and code blocks, with white space squeezed. Then its
/// sentences, each with its byte offset in that text.
pub(super) fn sentences(instruction: &str) -> (String, Vec<(usize, String)>) {
    let mut blocks: Vec<String> = Vec::new();
    let mut in_code = false;
    let mut open = false;
    let mut in_list = false;
    for line in instruction.lines() {
        let trimmed = line.trim();
        // An indented code block. In a list, an indented line belongs to an item instead.
        if !in_code && !open && !in_list && !trimmed.is_empty() && is_indented(line) {
            continue;
        }
        if trimmed.starts_with("```") {
            in_code = !in_code;
            open = false;
            continue;
        }
        let separates = trimmed.is_empty() || trimmed.starts_with('#') || is_table_rule(trimmed);
        if in_code || separates {
            open = false;
            in_list = in_list && !trimmed.starts_with('#');
            continue;
        }
        let begins = begins_item(trimmed) || trimmed.starts_with('|');
        match blocks.last_mut().filter(|_| open && !begins) {
            Some(block) => {
                block.push(' ');
                block.push_str(trimmed);
            }
            None => blocks.push(trimmed.to_owned()),
        }
        open = !trimmed.starts_with('|');
        in_list = begins || (in_list && line.starts_with(char::is_whitespace));
    }
    let mut text = String::new();
    let mut sentences = Vec::new();
    for block in blocks {
        let block = squeeze(&block);
        for sentence in sentences_of(&block) {
            if !text.is_empty() {
                text.push(' ');
            }
            // The number of a list item is not a sentence. It stays in the text, because a
            // quotation may span several items.
            if sentence.chars().any(char::is_alphabetic) && !is_heading(sentence) && !leads_in(sentence) {
                sentences.push((text.len(), sentence.to_owned()));
            }
            text.push_str(sentence);
        }
    }
    (text, sentences)
}

/// The sentences of a paragraph with squeezed white space. A semicolon also ends a sentence, since
/// it often separates two demands.
fn sentences_of(block: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    let mut start = 0;
    for (at, mark) in block.match_indices(['.', '!', '?', ';']) {
        let next = block[at + 1..].strip_prefix(' ').and_then(|rest| rest.chars().next());
        let begins = |next: char| next.is_uppercase() || "`*\"'(".contains(next);
        if next.is_some_and(|next| mark == ";" || begins(next)) {
            sentences.push(block[start..=at].trim());
            start = at + 1;
        }
    }
    sentences.push(block[start..].trim());
    sentences.retain(|sentence| !sentence.is_empty());
    sentences
}

/// Whether the sentence is a few bold words that stand alone, e.g. `**Broken files.**`. Such text
/// is a heading.
fn is_heading(sentence: &str) -> bool {
    let item = if begins_item(sentence) {
        sentence.split_once(' ').map_or(sentence, |(_, rest)| rest)
    } else {
        sentence
    };
    let bare = item.trim_end_matches(['.', ':']).strip_prefix("**").and_then(|rest| rest.strip_suffix("**"));
    bare.is_some_and(|words| !words.contains("**") && words.split_whitespace().count() <= HEADING_WORDS)
}

/// Whether the words only announce an example, e.g. `for instance`.
fn leads_in(sentence: &str) -> bool {
    const LEAD_INS: [&str; 5] = ["for example", "for instance", "example", "examples", "an example"];
    let words = sentence.strip_suffix(':').map(str::to_lowercase);
    words.is_some_and(|words| LEAD_INS.contains(&words.as_str()))
}

/// Whether Markdown reads the line as code, given that no paragraph precedes it.
fn is_indented(line: &str) -> bool {
    line.starts_with("    ") || line.starts_with('\t')
}

fn begins_item(line: &str) -> bool {
    let number = line.trim_start_matches(|letter: char| letter.is_ascii_digit());
    line.starts_with("- ")
        || line.starts_with("* ")
        || (number.len() < line.len() && (number.starts_with(". ") || number.starts_with(") ")))
}

fn is_table_rule(line: &str) -> bool {
    line.starts_with('|') && line.chars().all(|letter| "|-: ".contains(letter))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::model) const INSTRUCTION: &str = "\
# Heading

Some background. Write `out.txt`, sorted;
duplicates are dropped.

1. `first`: one rule.
   It goes on e.g. here.
2. second rule

```
out.txt could be this. And this.
```

| column | meaning |
|---|---|
| a | a row. |
";

    #[test]
    fn sentences_are_found_in_paragraphs_lists_and_tables() {
        let headings = sentences(
            "**Broken files**\n\n- **Odd names:** none.\n- **A long beginning that says something.** More.",
        );
        let found: Vec<_> = headings.1.iter().map(|(_, sentence)| sentence.as_str()).collect();
        assert_eq!(found, ["- **Odd names:** none.", "- **A long beginning that says something.** More."]);
        let code = sentences(
            "Logs are like this. For example:\n\n    12.5 start of a line\n\n- an item\n\n    that goes on\n\nEnd\n    of it.",
        );
        let found: Vec<_> = code.1.iter().map(|(_, sentence)| sentence.as_str()).collect();
        assert_eq!(found, ["Logs are like this.", "- an item", "that goes on", "End of it."]);
        let fenced = sentences(
            "- an item\n\n# Heading\n\n    indented code\n\nRun:\n    ```\n    make all\n    ```\n\nThe output is sorted.",
        );
        let found: Vec<_> = fenced.1.iter().map(|(_, sentence)| sentence.as_str()).collect();
        assert_eq!(found, ["- an item", "Run:", "The output is sorted."]);
        let (text, found) = sentences(INSTRUCTION);
        assert!(text.contains("duplicates are dropped. 1. `first`: one rule. It goes on"), "{text}");
        let found: Vec<&str> = found.iter().map(|(at, sentence)| &text[*at..*at + sentence.len()]).collect();
        assert_eq!(
            found,
            [
                "Some background.",
                "Write `out.txt`, sorted;",
                "duplicates are dropped.",
                "`first`: one rule.",
                "It goes on e.g. here.",
                "2. second rule",
                "| column | meaning |",
                "| a | a row. |",
            ]
        );
    }
}
