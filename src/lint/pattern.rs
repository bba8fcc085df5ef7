//! A regular expression over some files of a task.

use regex::Regex;

use crate::model::FileTree;

/// Maximum number of findings per rule and file. More would repeat the same problem.
pub(super) const MOST_IN_ONE_FILE: usize = 10;

pub(super) struct Pattern {
    files: Regex,
    wanted: Compiled,
    /// Lines that match this are exempt.
    unless: Option<Regex>,
}

enum Compiled {
    Forbid(Regex),
    Require(Regex),
}

/// Whether a pattern must or must not occur in a text.
pub(super) enum Wanted<'a> {
    /// It must not occur, except in comments.
    Forbid(&'a str),
    /// It must occur.
    Require(&'a str),
}

impl Pattern {
    pub(super) fn new(files: &str, wanted: &Wanted<'_>, unless: Option<&str>) -> Result<Self, String> {
        let regex = |source: &str| Regex::new(source).map_err(|error| error.to_string());
        Ok(Self {
            files: regex(files)?,
            wanted: match wanted {
                Wanted::Forbid(source) => Compiled::Forbid(regex(source)?),
                Wanted::Require(source) => Compiled::Require(regex(source)?),
            },
            unless: unless.map(regex).transpose()?,
        })
    }

    /// Files and lines that violate the pattern.
    pub(super) fn locations(&self, files: &FileTree) -> Vec<(String, Option<u32>)> {
        let mut locations = Vec::new();
        for (path, file) in files.iter().filter(|(path, _)| self.files.is_match(path.as_str())) {
            let Some(text) = file.as_text() else { continue };
            let file = path.to_string();
            match &self.wanted {
                Compiled::Require(require) if !require.is_match(text) => locations.push((file, None)),
                Compiled::Require(_) => {}
                Compiled::Forbid(forbid) => {
                    let lines = self.forbidden_lines(forbid, text, !path.as_str().ends_with(".md"));
                    locations.extend(lines.into_iter().map(|line| (file.clone(), Some(line))));
                }
            }
        }
        locations
    }

    /// The first lines with a match that is not exempt. Each line is tested once. Lines after the
    /// last reported one are not tested.
    fn forbidden_lines(&self, forbid: &Regex, text: &str, commented: bool) -> Vec<u32> {
        let mut lines = Vec::new();
        let (mut number, mut counted, mut decided) = (1, 0, 0);
        for found in forbid.find_iter(text) {
            if found.start() < decided {
                continue;
            }
            number += newlines(&text[counted..found.start()]);
            counted = found.start();
            let line = line_around(text, found.start());
            decided = text[counted..].find('\n').map_or(usize::MAX, |length| counted + length + 1);
            if self.excused(line, commented) {
                continue;
            }
            lines.push(number);
            if lines.len() == MOST_IN_ONE_FILE {
                break;
            }
        }
        lines
    }

    fn excused(&self, line: &str, commented: bool) -> bool {
        (commented && is_comment(line)) || self.unless.as_ref().is_some_and(|unless| unless.is_match(line))
    }
}

/// The line number of byte `offset`, from 1.
pub(super) fn line_of(text: &str, offset: usize) -> u32 {
    newlines(text.get(..offset).unwrap_or(text)).saturating_add(1)
}

fn newlines(text: &str) -> u32 {
    u32::try_from(text.bytes().filter(|byte| *byte == b'\n').count()).unwrap_or(u32::MAX)
}

fn is_comment(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with('#') && !line.starts_with("#!")
}

fn line_around(text: &str, offset: usize) -> &str {
    let start = text[..offset].rfind('\n').map_or(0, |end| end + 1);
    let end = text[offset..].find('\n').map_or(text.len(), |length| offset + length);
    &text[start..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{File, RelPath};

    /// The lines that contain `a`, except those with `ok`.
    fn lines(path: &str, text: &str) -> Vec<u32> {
        let pattern = Pattern::new("", &Wanted::Forbid("a|$"), Some("ok")).unwrap();
        let mut files = FileTree::default();
        files.insert(RelPath::new(path).unwrap(), File::text(text));
        pattern.locations(&files).into_iter().filter_map(|(_, line)| line).collect()
    }

    #[test]
    fn lines_are_found_once_and_in_order() {
        let check =
            |path: &str, text: &str, expect: &[u32]| assert_eq!(lines(path, text), expect, "{text:?}");
        check("x.sh", "", &[1]);
        check("x.sh", "a a\nb ok\n  # a\na\na ok\nend", &[1, 4, 6]);
        check("x.md", "# a\nb ok\n\n", &[1, 4]);
        check("x.sh", &"a\n".repeat(30), &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    }

    #[test]
    fn many_matches_are_found_soon() {
        assert_eq!(lines("x.sh", &"aaaa\n".repeat(100_000)).len(), MOST_IN_ONE_FILE);
        assert_eq!(lines("x.sh", &format!("# {}\n", "a".repeat(200_000))), [2]);
        // Every line but the last is exempt, so all lines are tested.
        assert_eq!(lines("x.sh", &"a ok\n".repeat(20_000)), [20_001]);
    }
}
