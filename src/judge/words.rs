//! The regular expressions that classify outputs and messages: `templates/judge/*.txt`.
//!
//! They are data, so a new expression needs no code. They are compiled in, and not read through
//! `Assets`: a version of the rules must mean the same expressions in every row. And detectors are
//! pure functions.

use std::sync::LazyLock;

use regex::RegexSet;

macro_rules! lists {
    ($($(#[$doc:meta])* $name:ident = $file:literal;)*) => {
        $(
            $(#[$doc])*
            pub(super) static $name: LazyLock<RegexSet> =
                LazyLock::new(|| read(include_str!(concat!("../../templates/judge/", $file))));
        )*

        #[cfg(test)]
        const FILES: &[(&str, &str)] =
            &[$(($file, include_str!(concat!("../../templates/judge/", $file)))),*];
    };
}

lists! {
    /// Errors in the output of a command whose status does not decide.
    ERRORS = "errors.txt";
    /// Lines with errors, on a terminal.
    SCREEN_ERRORS = "screen-errors.txt";
    /// Lines that look like errors and are none.
    NOISE = "noise.txt";
    /// Programs that print files, e.g. `cat`.
    READERS = "readers.txt";
    /// Programs whose status 1 is a result, e.g. `grep`.
    ANSWERERS = "answerers.txt";
    /// Programs that look for another program, e.g. `which`.
    FINDERS = "finders.txt";
    /// A final message that admits that the task is not done.
    ADMISSIONS = "admissions.txt";
    /// A message that says that a failure was expected.
    EXPECTED = "expected.txt";
    /// A final message that gives up.
    SURRENDERS = "surrenders.txt";
    /// A message that says that an obstacle was avoided.
    WORKAROUNDS = "workarounds.txt";
    /// An output that says that the environment lacks or forbids something.
    LIMITATIONS = "limitations.txt";
    /// A message that refuses.
    REFUSALS = "refusals.txt";
    /// A message that says that the agent is unable.
    INABILITIES = "inabilities.txt";
}

/// Whether an expression of the list matches in `text`, in any case.
pub(super) fn says(list: &RegexSet, text: &str) -> bool {
    list.is_match(&plain(text))
}

/// Whether an expression of the list matches in a line of `text`, in any case.
pub(super) fn any_line(list: &RegexSet, text: &str) -> bool {
    plain(text).lines().any(|line| list.is_match(line.trim_end()))
}

/// Text in the form of the lists: lower case, with straight apostrophes.
fn plain(text: &str) -> String {
    text.to_lowercase().replace('\u{2019}', "'")
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.is_empty() && !line.starts_with("# "))
}

/// A list that does not compile matches nothing, and only misses labels. A test compiles all lists.
fn read(text: &str) -> RegexSet {
    RegexSet::new(lines(text)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_list_compiles_and_is_lower_case() {
        for (file, text) in FILES {
            let list = RegexSet::new(lines(text)).unwrap_or_else(|error| panic!("{file}: {error}"));
            assert!(!list.is_empty(), "{file}");
            for line in lines(text) {
                // Capitals have a meaning only in character classes.
                let letters = line.replace("\\W", "").replace("\\S", "");
                assert!(!letters.contains(char::is_uppercase), "{file}: {line}");
                assert_eq!(line.trim_start(), line, "{file}: {line}");
            }
        }
    }

    #[test]
    fn every_file_is_used() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/templates/judge");
        for entry in std::fs::read_dir(folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            assert!(name == "NOTICE.md" || FILES.iter().any(|(file, _)| *file == name), "{name}");
        }
    }

    #[test]
    fn apostrophes_and_case_do_not_matter() {
        assert!(says(&SURRENDERS, "I CAN\u{2019}T FINISH this."));
        assert!(!says(&SURRENDERS, "All is finished."));
        assert!(any_line(&SCREEN_ERRORS, "x\nTraceback (most recent call last):\ny"));
    }
}
