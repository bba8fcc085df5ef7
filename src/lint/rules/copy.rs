//! Rules about the sources of COPY and ADD.

use std::collections::{BTreeMap, BTreeSet};

use super::image::dockerfiles;
use crate::lint::compose::{build_arguments, context_elsewhere};
use crate::lint::expand::Variables;
use crate::lint::linted_task::LintedTask;
use crate::lint::rule::RuleMatch;
use crate::model::{IgnoreError, IgnoreRules, RelPath, Stars, cleaned, glob};
use crate::syntax::dockerfile::{Instruction, instructions};

pub(in crate::lint) fn copy_source(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    let mut matches = Vec::new();
    for (file, instructions) in dockerfiles(task) {
        let folder = file.trim_end_matches("Dockerfile");
        if context_elsewhere(task, folder) {
            continue;
        }
        let context = match Context::of(task, folder) {
            Ok(context) => context,
            Err(error) => {
                let line = u32::try_from(error.line).unwrap_or(u32::MAX);
                let message = format!("`{}` is not a valid pattern, so the build fails here", error.pattern);
                matches.push(RuleMatch::at(&format!("{folder}{}", error.file), line, message));
                continue;
            }
        };
        for transfer in transfers(&instructions, &build_arguments(task, folder)) {
            let places: Vec<_> =
                transfer.sources.iter().map(|source| (source, context.place(source))).collect();
            // A pattern may match nothing if the instruction copies something else.
            let copies = places.iter().any(|(_, place)| *place == Place::There);
            for (source, place) in places {
                let why = match place {
                    Place::There => continue,
                    Place::NotThere if copies && is_pattern(source) => continue,
                    Place::NotThere => "is not there",
                    Place::Excluded => ".dockerignore excludes",
                };
                let message = format!("{} of `{source}`, which {why}", transfer.word);
                matches.push(RuleMatch::at(file, transfer.line, message));
            }
        }
    }
    matches
}

/// The sources of one COPY or ADD that are in the build context.
struct Transfer {
    line: u32,
    word: String,
    sources: Vec<String>,
}

/// Names that an instruction may refer to, in one stage of a build.
#[derive(Clone, Debug, Default)]
struct Stage {
    /// ARG and ENV variables with a known value.
    variables: BTreeMap<String, String>,
    /// The stage's ONBUILD instructions. A stage that is based on it runs them.
    triggers: Vec<Instruction>,
}

/// The transfers that a build executes. `arguments` come from outside, so their defaults do not
/// apply.
fn transfers(instructions: &[Instruction], arguments: &BTreeSet<String>) -> Vec<Transfer> {
    let mut found = Vec::new();
    let mut global = Stage::default();
    let mut stages: BTreeMap<String, Stage> = BTreeMap::new();
    let mut current: Option<(String, Stage)> = None;
    for instruction in instructions {
        if instruction.word == "FROM" {
            if let Some((name, stage)) = current.take() {
                stages.insert(name, stage);
            }
            let words: Vec<_> = instruction.rest.split_whitespace().collect();
            let base = words.first().and_then(|base| stages.get(&base.to_lowercase())).cloned();
            let mut stage = base.unwrap_or_default();
            for trigger in std::mem::take(&mut stage.triggers) {
                found.extend(transfer(&trigger, &stage));
            }
            let name = words.get(2).map_or_else(|| stages.len().to_string(), |name| name.to_lowercase());
            current = Some((name, stage));
            continue;
        }
        // `ARG A` in a stage gets the value of an `ARG A=1` before the first stage.
        let declared = if current.is_some() { global.variables.clone() } else { BTreeMap::new() };
        let stage = current.as_mut().map_or(&mut global, |(_, stage)| stage);
        match instruction.word.as_str() {
            "ARG" => {
                for (name, value) in assignments(&instruction.rest) {
                    let value =
                        value.map(|value| expand(stage, &value)).or_else(|| declared.get(&name).cloned());
                    match value.filter(|value| !arguments.contains(&name) && !value.contains('$')) {
                        Some(value) => stage.variables.insert(name, value),
                        None => stage.variables.remove(&name),
                    };
                }
            }
            "ENV" => {
                for (name, value) in assignments(&instruction.rest) {
                    match value.map(|value| expand(stage, &value)).filter(|value| !value.contains('$')) {
                        Some(value) => stage.variables.insert(name, value),
                        None => stage.variables.remove(&name),
                    };
                }
            }
            "ONBUILD" => stage.triggers.extend(triggered(instruction)),
            _ => found.extend(transfer(instruction, stage)),
        }
    }
    found
}

/// The instruction after ONBUILD, at the same line.
fn triggered(instruction: &Instruction) -> Option<Instruction> {
    let inner = instructions(&instruction.rest).into_iter().next()?;
    Some(Instruction { line: instruction.line, ..inner })
}

/// The assignments in `A=1 B="2 3"`, `A`, or ENV's old form `A 1 2`.
fn assignments(rest: &str) -> Vec<(String, Option<String>)> {
    let first = rest.split_whitespace().next().unwrap_or_default();
    if !first.contains('=')
        && let Some((name, value)) = rest.split_once(char::is_whitespace)
    {
        return vec![(name.to_owned(), Some(value.trim().to_owned()))];
    }
    let words = crate::syntax::dockerfile::words(rest).into_iter();
    words
        .map(|word| match word.split_once('=') {
            Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
            None => (word.to_owned(), None),
        })
        .collect()
}

fn expand(stage: &Stage, text: &str) -> String {
    let mut variables = Variables::new("");
    for (name, value) in &stage.variables {
        variables.set(name, value);
    }
    variables.expand(text)
}

fn transfer(instruction: &Instruction, stage: &Stage) -> Option<Transfer> {
    if instruction.is_from_elsewhere() {
        return None;
    }
    let (sources, _) = instruction.transfer()?;
    let local = |source: &String| {
        let elsewhere = source.contains("://") || source.starts_with("<<") || source.starts_with("git@");
        // The value is unknown.
        !elsewhere && !source.contains('$')
    };
    let sources = sources.iter().map(|source| expand(stage, source)).filter(local).collect();
    Some(Transfer { line: instruction.line, word: instruction.word.clone(), sources })
}

/// Where a source is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    There,
    NotThere,
    Excluded,
}

/// The files of a build context.
struct Context<'a> {
    sent: Vec<&'a str>,
    excluded: Vec<&'a str>,
    /// Links and other entries whose content is unknown here.
    special: Vec<&'a str>,
}

impl<'a> Context<'a> {
    fn of(task: &LintedTask<'a>, folder: &str) -> Result<Self, IgnoreError> {
        let rules = IgnoreRules::of(&task.files.below(folder.trim_end_matches('/')))?;
        let below = |path: &'a str| path.strip_prefix(folder);
        let all = task.files.files.keys().chain(&task.files.empty_folders).map(RelPath::as_str);
        let (excluded, sent) = all.filter_map(below).partition(|path| rules.excludes(path));
        let special = task.special_files.iter().map(|special| special.path.as_str());
        let links = task.files.links.keys().map(RelPath::as_str);
        let special = special.chain(links).filter_map(below).collect();
        Ok(Self { sent, excluded, special })
    }

    fn place(&self, source: &str) -> Place {
        let source = cleaned(&format!("/{source}"));
        let pattern = is_pattern(&source).then(|| glob(&source, Stars::WithinFolder)).flatten();
        let is_at = |path: &&str| match &pattern {
            Some(pattern) => above(path).any(|path| pattern.is_match(path)),
            None => is_within(path, &source),
        };
        let leads_on = |path: &&str| is_at(path) || is_within(&source, path);
        if source.is_empty() || self.sent.iter().any(is_at) || self.special.iter().any(leads_on) {
            Place::There
        } else if self.excluded.iter().any(is_at) {
            Place::Excluded
        } else {
            Place::NotThere
        }
    }
}

fn is_pattern(source: &str) -> bool {
    source.contains(['*', '?', '[', '\\'])
}

/// A path and its parent folders.
fn above(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(end, _)| &path[..end]).chain([path])
}

fn is_within(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
