//! Parses `task.toml` leniently, and reports every deviation.

use std::fmt;

use toml::{Table, Value};

use super::manifest::{Environment, Manifest};
use super::{KNOWN_SCHEMA_VERSIONS, SCHEMA_VERSION};

/// A problem of a task directory that does not prevent reading it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub kind: FindingKind,
    /// Path below the task directory.
    pub file: String,
    /// A fragment that begins in lower case.
    pub message: String,
}

/// The subject of a [`Finding`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindingKind {
    /// A key that Harbor ignores. The message names it first, in backticks.
    UnknownKey,
    /// A deprecated name, or an unusual version.
    Deprecated,
    /// An old and a new key that contradict each other.
    Conflict,
    /// A problem of the directory's files.
    Directory,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}", self.file, self.message)
    }
}

/// The error for a text that is not a valid `task.toml`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed task.toml: {0}")]
pub struct ManifestError(String);

/// Parses a `task.toml` of schema 1.0 to 1.4. Modern keys replace deprecated ones.
pub fn parse_manifest(text: &str) -> Result<(Manifest, Vec<Finding>), ManifestError> {
    let error = |error: toml::de::Error| ManifestError(error.to_string().trim_end().to_owned());
    let written: Table = toml::from_str(text).map_err(error)?;
    let mut manifest: Manifest = toml::from_str(text).map_err(error)?;
    // The keys that the types have. Other keys would be lost when the manifest is written again.
    let known = Table::try_from(&manifest).map_err(|error| ManifestError(error.to_string()))?;
    let mut messages = Vec::new();
    unknown_keys(&written, &known, "", &mut messages);
    modernise_version(&mut manifest, &mut messages);
    let verifiers = manifest.steps.iter_mut().flatten().filter_map(|step| step.verifier.as_mut());
    let own =
        verifiers.chain(manifest.verifier.as_mut()).filter_map(|verifier| verifier.environment.as_mut());
    for environment in own.chain(manifest.environment.as_mut()) {
        modernise_environment(environment, &mut messages);
    }
    let finding = |(kind, message)| Finding { kind, file: "task.toml".to_owned(), message };
    Ok((manifest, messages.into_iter().map(finding).collect()))
}

fn unknown_keys(written: &Table, known: &Table, prefix: &str, messages: &mut Vec<(FindingKind, String)>) {
    for (key, value) in written {
        let path = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        match (value, known.get(key)) {
            (_, None) => {
                let message = format!("unknown key `{path}`, which Harbor ignores");
                messages.push((FindingKind::UnknownKey, message));
            }
            (Value::Table(written), Some(Value::Table(known))) => {
                unknown_keys(written, known, &path, messages);
            }
            (Value::Array(written), Some(Value::Array(known))) => {
                for (place, pair) in written.iter().zip(known).enumerate() {
                    if let (Value::Table(written), Value::Table(known)) = pair {
                        unknown_keys(written, known, &format!("{path}[{place}]"), messages);
                    }
                }
            }
            _ => {}
        }
    }
}

fn modernise_version(manifest: &mut Manifest, messages: &mut Vec<(FindingKind, String)>) {
    if let Some(old) = manifest.version.take() {
        let message = "`version` is deprecated; it is called `schema_version`".to_owned();
        messages.push((FindingKind::Deprecated, message));
        match &manifest.schema_version {
            Some(new) if *new != old => {
                let message = format!(
                    "`version` = {old} conflicts with `schema_version` = {new}, which takes precedence"
                );
                messages.push((FindingKind::Deprecated, message));
            }
            _ => manifest.schema_version = Some(old),
        }
    }
    match manifest.schema_version.as_deref() {
        None => {
            let message = format!("no `schema_version`; {SCHEMA_VERSION} is assumed, as Harbor does");
            messages.push((FindingKind::Deprecated, message));
        }
        Some(version) if !KNOWN_SCHEMA_VERSIONS.contains(&version) => {
            let message = format!("schema version {version} is unknown; it is read as {SCHEMA_VERSION}");
            messages.push((FindingKind::Deprecated, message));
        }
        Some(_) => {}
    }
}

fn modernise_environment(environment: &mut Environment, messages: &mut Vec<(FindingKind, String)>) {
    // Harbor accepts `Linux` too.
    environment.os = environment.os.take().map(|os| os.to_lowercase());
    size("memory", environment.memory.take(), &mut environment.memory_mb, messages);
    size("storage", environment.storage.take(), &mut environment.storage_mb, messages);
    if let Some(allowed) = environment.allow_internet.take() {
        let message = "`allow_internet` is deprecated; it is called `network_mode`".to_owned();
        messages.push((FindingKind::Deprecated, message));
        // As in Harbor, the modern keys take precedence.
        if environment.network_mode.is_none() && environment.allowed_hosts.is_none() {
            environment.network_mode = Some(if allowed { "public" } else { "no-network" }.to_owned());
        }
    }
}

fn size(key: &str, old: Option<Value>, new: &mut Option<i64>, messages: &mut Vec<(FindingKind, String)>) {
    let Some(old) = old else { return };
    messages.push((FindingKind::Deprecated, format!("`{key}` is deprecated; it is called `{key}_mb`")));
    let Some(text) = old.as_str() else {
        let message = format!("`{key}` = {old} is not text, so Harbor ignores it");
        messages.push((FindingKind::Deprecated, message));
        return;
    };
    let Some(mib) = mebibytes(text) else {
        let message = format!("`{key}` = {old} is not a size such as \"512M\" or \"2G\"");
        messages.push((FindingKind::Conflict, message));
        return;
    };
    match new {
        Some(stated) if *stated != mib => {
            let message = format!(
                "`{key}` = {old} conflicts with `{key}_mb` = {stated}, which takes precedence; Harbor refuses the task"
            );
            messages.push((FindingKind::Conflict, message));
        }
        _ => *new = Some(mib),
    }
}

/// The MiB in `2G`, `512M` or `1048576K`, as Harbor reads them.
fn mebibytes(text: &str) -> Option<i64> {
    let text = text.trim();
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let number: f64 =
        number.trim().parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0)?;
    match unit {
        "G" | "g" => Some((number * 1024.0) as i64),
        "M" | "m" => Some(number as i64),
        "K" | "k" => Some((number / 1024.0) as i64),
        _ => None,
    }
}
