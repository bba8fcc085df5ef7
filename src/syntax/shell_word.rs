//! Quoting for shells.

use std::borrow::Cow;

/// `text` as one word of a POSIX shell, quoted like Python's `shlex.quote`.
///
/// The crate `shlex` also quotes `=`, `,` and `%`, and prefers double quotes. It would change the
/// bytes of published tasks and of the command line on a dataset's card.
pub(crate) fn shell_word(text: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(format!("'{}'", text.replace('\'', r"'\''")))
    }
}

/// A command line that a shell splits into these words.
pub(crate) fn shell_line<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    words.into_iter().map(shell_word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_shell_reads_each_word_as_it_is() {
        let check = |word: &str, expect: &str| {
            assert_eq!(shell_word(word), expect, "{word:?}");
            let script = format!("printf %s {expect}");
            let printed = Command::new("sh").args(["-c", &script]).output().unwrap().stdout;
            assert_eq!(String::from_utf8(printed).unwrap(), word, "{word:?}");
        };
        check("", "''");
        check("/app/a-b_1.txt", "/app/a-b_1.txt");
        check("terminus=3,bash=1", "terminus=3,bash=1");
        check("a b", "'a b'");
        check("it's", r"'it'\''s'");
        check("$HOME `ls` \\n\n*~", "'$HOME `ls` \\n\n*~'");
        check("späť", "'späť'");
    }
}
