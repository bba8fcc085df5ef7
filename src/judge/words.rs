//! The words by which detectors read outputs and messages: `templates/judge/*.txt`.
//!
//! They are data, so that a word is added without touching code. They are compiled in rather than read through `Assets`, because
//! detectors are pure functions that run wherever a rollout is read back, and because a version of the rules has to mean the same
//! words in every row that carries it.

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
    /// Errors in the output of a command whose status does not tell.
    ERRORS = "errors.txt";
    /// Lines of errors on a terminal.
    SCREEN_ERRORS = "screen-errors.txt";
    /// Lines that look like errors and are none.
    NOISE = "noise.txt";
    /// Programs that print what stands in files.
    READERS = "readers.txt";
    /// Programs whose status 1 is an answer.
    ANSWERERS = "answerers.txt";
    /// Programs that say whether a program is there.
    FINDERS = "finders.txt";
    /// A final message admits that the work is not done.
    ADMISSIONS = "admissions.txt";
    /// A message says that a failure is what was wanted.
    EXPECTED = "expected.txt";
    /// A final message gives up.
    SURRENDERS = "surrenders.txt";
    /// A message says that an obstacle was got around.
    WORKAROUNDS = "workarounds.txt";
    /// The environment lacks or forbids something.
    LIMITATIONS = "limitations.txt";
    /// An agent will not.
    REFUSALS = "refusals.txt";
    /// An agent says that it cannot.
    INABILITIES = "inabilities.txt";
}

/// Whether any of a list's expressions is found in `text`, in any case.
pub(super) fn says(list: &RegexSet, text: &str) -> bool {
    list.is_match(&plain(text))
}

/// Whether any of a list's expressions is found in a line of `text`, in any case.
pub(super) fn any_line(list: &RegexSet, text: &str) -> bool {
    plain(text).lines().any(|line| list.is_match(line.trim_end()))
}

/// As the lists are written: lower case, straight apostrophes.
fn plain(text: &str) -> String {
    text.to_lowercase().replace('\u{2019}', "'")
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.is_empty() && !line.starts_with("# "))
}

/// A list that does not compile finds nothing, so that it costs labels and makes none. A test compiles them all.
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
                // Classes of characters are the only capitals that can mean something.
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
