//! A regular expression over some files of a task.

use regex::Regex;

use crate::model::FileTree;

/// Maximum findings per rule and file; more would repeat the same problem.
pub(super) const MOST_IN_ONE_FILE: usize = 10;

pub(super) struct Pattern {
    files: Regex,
    wanted: Compiled,
    /// Lines that are exempt.
    unless: Option<Regex>,
}

enum Compiled {
    Forbid(Regex),
    Require(Regex),
}

/// What a pattern requires.
pub(super) enum Wanted<'a> {
    /// Must not occur, except in comments.
    Forbid(&'a str),
    /// Must occur.
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
                    let commented = !path.as_str().ends_with(".md");
                    let mut lines: Vec<u32> = forbid
                        .find_iter(text)
                        .filter(|found| !self.excused(line_around(text, found.start()), commented))
                        .map(|found| line_of(text, found.start()))
                        .collect();
                    lines.dedup();
                    locations.extend(
                        lines.into_iter().take(MOST_IN_ONE_FILE).map(|line| (file.clone(), Some(line))),
                    );
                }
            }
        }
        locations
    }

    fn excused(&self, line: &str, commented: bool) -> bool {
        (commented && is_comment(line)) || self.unless.as_ref().is_some_and(|unless| unless.is_match(line))
    }
}

/// The number of the line at byte `offset`, from 1.
pub(super) fn line_of(text: &str, offset: usize) -> u32 {
    let before = text.as_bytes().get(..offset).unwrap_or(text.as_bytes());
    u32::try_from(before.iter().filter(|byte| **byte == b'\n').count()).unwrap_or(u32::MAX - 1) + 1
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
