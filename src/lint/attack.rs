//! `templates/attacks/*.toml`: attacks against a verifier, one per file.

use regex::Regex;
use serde::Deserialize;

use crate::assets::Assets;

/// Folder of the attack files.
const FOLDER: &str = "templates/attacks";

/// One attack, or one variant of it.
#[derive(Clone, Debug)]
pub struct Attack {
    /// The row of the table of attacks, e.g. `D-02`. Several attacks may share it.
    pub id: String,
    /// The stem of the file. It is unique, and begins with the id.
    pub name: String,
    pub title: String,
    pub kind: Kind,
    /// The files that it plants. Always present for executed attacks.
    pub plants: Option<String>,
    /// The property of the clean room that stops it.
    pub stopped_by: Option<String>,
    /// Where the attack was observed.
    pub source: String,
}

/// How an attack is executed or detected.
#[derive(Clone, Debug)]
pub enum Kind {
    /// A trial that does no work. The script runs as root in the solver's container.
    Execute {
        /// The script, in bash.
        script: String,
        alone: Alone,
    },
    /// Patterns over the task's files. If the list is empty, a lint function with the attack's name
    /// detects it.
    Scan(Vec<Scan>),
    /// Patterns over the commands of a trajectory.
    Trace(Vec<Trace>),
}

/// Where an executed attack needs a trial of its own, because it would mask the other attacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub enum Alone {
    #[default]
    Nowhere,
    /// Where the tests run in the solver's container. There it shares a trial with others of this
    /// kind. In a clean room its files do not reach the tests, so it can share any trial.
    Shared,
    /// In every mode.
    Always,
}

/// A pattern of a `scan` attack. Files whose path and text match it are reported.
#[derive(Clone, Debug)]
pub struct Scan {
    /// Matches the path below the task directory.
    pub files: Regex,
    pub pattern: Regex,
    pub message: String,
}

/// A pattern of a `trace` attack. Commands that match it are reported.
#[derive(Clone, Debug)]
pub struct Trace {
    pub pattern: Regex,
    pub message: String,
}

/// A command of a trajectory that looks like an attack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceFinding {
    /// The row of the table of attacks, e.g. `D-12`.
    pub id: String,
    /// The stem of the attack file.
    pub name: String,
    /// Index of the command, from 0.
    pub command: usize,
    /// The part of the command that matched.
    pub evidence: String,
    pub message: String,
}

/// The error for an invalid attack file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("attack `{FOLDER}/{file}`: {message}")]
pub struct AttackError {
    pub file: String,
    pub message: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Declared {
    id: String,
    title: String,
    kind: DeclaredKind,
    script: Option<String>,
    alone: Option<DeclaredAlone>,
    plants: Option<String>,
    stopped_by: Option<String>,
    source: String,
    scan: Option<Vec<DeclaredScan>>,
    trace: Option<Vec<DeclaredTrace>>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(untagged, expecting = "`alone` is true, false or \"shared\"")]
enum DeclaredAlone {
    Flag(bool),
    Where(DeclaredWhere),
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum DeclaredWhere {
    Shared,
}

impl DeclaredAlone {
    fn place(self) -> Alone {
        match self {
            Self::Flag(true) => Alone::Always,
            Self::Flag(false) => Alone::Nowhere,
            Self::Where(DeclaredWhere::Shared) => Alone::Shared,
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum DeclaredKind {
    Execute,
    Scan,
    Trace,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DeclaredScan {
    files: String,
    pattern: String,
    message: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DeclaredTrace {
    pattern: String,
    message: String,
}

/// Reads every attack, in the order of the file names. Sub-folders are included.
pub fn attacks(assets: &Assets) -> Result<Vec<Attack>, AttackError> {
    let mut found: Vec<Attack> = Vec::new();
    for (path, bytes, _) in assets.files_under(FOLDER) {
        let Some(stem) = path.as_str().strip_suffix(".toml") else { continue };
        let name = stem.rsplit('/').next().unwrap_or(stem);
        let bad = |message: String| AttackError { file: path.to_string(), message };
        let text = std::str::from_utf8(bytes).map_err(|error| bad(error.to_string()))?;
        let attack = parse(name, text).map_err(&bad)?;
        if found.iter().any(|other| other.name == attack.name) {
            return Err(bad(format!("another file is called `{name}.toml`")));
        }
        found.push(attack);
    }
    Ok(found)
}

fn parse(name: &str, text: &str) -> Result<Attack, String> {
    let declared: Declared = toml::from_str(text).map_err(|error| error.to_string())?;
    let Declared { id, title, kind, script, alone, plants, stopped_by, source, scan, trace } = declared;
    let number = id.strip_prefix("D-").filter(|digits| digits.len() == 2 && digits.parse::<u8>().is_ok());
    if number.is_none() {
        return Err(format!("`id` is `{id}`; it must have the form `D-02`"));
    }
    if !name.strip_prefix(&id).is_some_and(|slug| slug.starts_with('-') && slug.len() > 1) {
        return Err(format!("the file's name must have the form `{id}-SLUG.toml`"));
    }
    let kind = match (kind, script, scan, trace) {
        (DeclaredKind::Execute, Some(script), None, None) => {
            if plants.is_none() || stopped_by.is_none() {
                return Err("an attack of kind `execute` needs `plants` and `stopped_by`".to_owned());
            }
            Kind::Execute { script, alone: alone.map(DeclaredAlone::place).unwrap_or_default() }
        }
        (DeclaredKind::Execute, ..) => {
            return Err("kind `execute` needs `script`, and neither `scan` nor `trace`".to_owned());
        }
        _ if alone.is_some() => return Err("`alone` is only for kind `execute`".to_owned()),
        (DeclaredKind::Scan, None, Some(scan), None) => Kind::Scan(
            scan.into_iter()
                .map(|scan| {
                    let (files, pattern) = (regex(&scan.files)?, regex(&scan.pattern)?);
                    Ok(Scan { files, pattern, message: scan.message })
                })
                .collect::<Result<_, String>>()?,
        ),
        (DeclaredKind::Scan, ..) => {
            return Err("kind `scan` needs `[[scan]]`, and neither `script` nor `trace`".to_owned());
        }
        (DeclaredKind::Trace, None, None, Some(trace)) if !trace.is_empty() => Kind::Trace(
            trace
                .into_iter()
                .map(|trace| Ok(Trace { pattern: regex(&trace.pattern)?, message: trace.message }))
                .collect::<Result<_, String>>()?,
        ),
        (DeclaredKind::Trace, ..) => {
            return Err("kind `trace` needs `[[trace]]`, and neither `script` nor `scan`".to_owned());
        }
    };
    Ok(Attack { id, name: name.to_owned(), title, kind, plants, stopped_by, source })
}

fn regex(source: &str) -> Result<Regex, String> {
    Regex::new(source).map_err(|error| error.to_string())
}

impl Attack {
    /// A paragraph that explains the attack.
    pub fn explain(&self) -> String {
        let mut text = format!("Attack {}: {}.", self.id, self.title);
        if let Some(plants) = &self.plants {
            text.push_str(&format!("\nIt plants {}.", plants.trim_end_matches('.')));
        }
        if let Some(stopped_by) = &self.stopped_by {
            text.push_str(&format!("\nStopped by {}.", stopped_by.trim_end_matches('.')));
        }
        text
    }
}

/// Commands that match a `trace` attack, in the order of the commands. Each attack is reported once
/// per command.
pub fn trace_findings<'a>(
    attacks: &[Attack],
    commands: impl IntoIterator<Item = &'a str>,
) -> Vec<TraceFinding> {
    let mut found = Vec::new();
    for (command, text) in commands.into_iter().enumerate() {
        for attack in attacks {
            let Kind::Trace(traces) = &attack.kind else { continue };
            let evidence = traces.iter().find_map(|trace| Some((trace, trace.pattern.find(text)?)));
            if let Some((trace, evidence)) = evidence {
                found.push(TraceFinding {
                    id: attack.id.clone(),
                    name: attack.name.clone(),
                    command,
                    evidence: evidence.as_str().to_owned(),
                    message: trace.message.clone(),
                });
            }
        }
    }
    found
}
