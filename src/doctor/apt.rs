//! Debian's packages: installing them, and finding out which mirror this system takes them from.

use std::path::PathBuf;

use super::distro::{Family, family};
use super::error::{FixError, tail};
use super::{Events, Invocation, Privilege, System};

/// Seconds to wait for another package manager to finish; unattended upgrades hold the lock for a minute or two.
const LOCK_SECONDS: u32 = 180;
/// Suites that go by role instead of by code name.
const ROLES: [&str; 5] = ["stable", "oldstable", "testing", "unstable", "sid"];

/// Installs Debian packages, and says so first.
pub(super) fn install(system: &System, packages: &[&str], events: &mut Events<'_>) -> Result<(), FixError> {
    if let Family::Other { name } = family(system) {
        return Err(FixError::UnknownSystem { system: name, what: "a Docker engine and mmdebstrap" });
    }
    let privilege = Privilege::of(system);
    let mut words = vec!["install", "-y", "--no-install-recommends", "--no-remove"];
    words.extend(packages);
    let by_hand =
        || FixError::NeedsRoot { command: format!("apt-get update && apt-get {}", words.join(" ")) };
    let update = apt_get(privilege, &["update", "-q"]).ok_or_else(by_hand)?;
    let install = apt_get(privilege, &words).ok_or_else(by_hand)?;

    events.action(format!("Installing {} (system packages, by apt-get) …", packages.join(", ")));
    let updated = run_checked(system, &update);
    run_checked(system, &install).map_err(|error| match updated {
        // The lists could not be fetched; what follows from that is not the news.
        Err(cause) => cause,
        Ok(()) => error,
    })
}

/// Runs a program that must succeed.
pub(super) fn run_checked(system: &System, invocation: &Invocation) -> Result<(), FixError> {
    let program = invocation.program().to_owned();
    let captured = system.run(invocation).map_err(|source| FixError::Spawn { program, source })?;
    if captured.ran.is_success() {
        return Ok(());
    }
    // apt explains itself on both streams, the reason last.
    let output = format!("{}\n{}", captured.stdout, captured.ran.stderr);
    Err(FixError::Failed { command: invocation.to_string(), code: captured.ran.code, tail: tail(&output) })
}

fn apt_get(privilege: Privilege, words: &[&str]) -> Option<Invocation> {
    let lock = format!("DPkg::Lock::Timeout={LOCK_SECONDS}");
    let prefix = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-o", &lock];
    privilege.apply(Invocation::new(prefix.into_iter().chain(words.iter().copied())))
}

/// One archive, one suite.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Source {
    uri: String,
    suite: String,
    components: Vec<String>,
}

/// apt lines for `suite` of Debian from the mirrors that this system uses; empty when its sources name none that can be
/// used from elsewhere. `codename` is this system's own.
pub(super) fn debian_lines(system: &System, codename: Option<&str>, suite: &str) -> Vec<String> {
    lines_for(&read_sources(system), codename, suite)
}

fn lines_for(sources: &[Source], codename: Option<&str>, suite: &str) -> Vec<String> {
    let own = |name: &str| codename == Some(name) || ROLES.contains(&name);
    let usable: Vec<&Source> = sources
        .iter()
        .filter(|source| {
            source.components.iter().any(|component| component == "main") && is_shareable(&source.uri)
        })
        .collect();
    let has_updates =
        |uri: &str| usable.iter().any(|source| source.uri == uri && source.suite.ends_with("-updates"));
    // Other archives use Debian's names, too; only the real one has updates, and it is usually called so.
    let rank = |source: &Source| (!has_updates(&source.uri), !source.uri.ends_with("/debian"));
    let Some(main) = usable.iter().filter(|source| own(&source.suite)).min_by_key(|source| rank(source))
    else {
        return Vec::new();
    };
    let mut lines = vec![format!("deb {} {suite} main", main.uri)];
    if has_updates(&main.uri) {
        lines.push(format!("deb {} {suite}-updates main", main.uri));
    }
    if let Some(security) = usable.iter().find(|source| source.suite.ends_with("-security")) {
        lines.push(format!("deb {} {suite}-security main", security.uri));
    }
    lines
}

/// Whether an image may carry this address: reachable from a container, and without a password in it.
fn is_shareable(uri: &str) -> bool {
    let address = uri.strip_prefix("http://").or_else(|| uri.strip_prefix("https://"));
    address.is_some_and(|address| !address.split('/').next().unwrap_or_default().contains('@'))
}

fn read_sources(system: &System) -> Vec<Source> {
    let mut files = vec![PathBuf::from("/etc/apt/sources.list")];
    let folder = system.path("/etc/apt/sources.list.d");
    files.extend(std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()));
    files.sort();
    let mut sources = Vec::new();
    for file in files {
        let file = system.path(file.strip_prefix(&system.root).unwrap_or(&file));
        let Ok(text) = std::fs::read_to_string(&file) else { continue };
        // apt, too, goes by the ending and ignores files with any other.
        match file.extension().and_then(|extension| extension.to_str()) {
            Some("list") => sources.extend(parse_one_line(&text)),
            Some("sources") => sources.extend(parse_deb822(&text)),
            _ => {}
        }
    }
    for source in &mut sources {
        // Cloud images point to a local list of mirrors; its first line is the preferred one.
        if let Some(list) = source.uri.strip_prefix("mirror+file:") {
            let list = std::fs::read_to_string(system.path(format!("/{}", list.trim_start_matches('/'))));
            let first = list.unwrap_or_default().split_whitespace().next().map(normal_uri);
            source.uri = first.unwrap_or_default();
        }
    }
    sources
}

/// `deb [options] uri suite component…`, one a line.
fn parse_one_line(text: &str) -> Vec<Source> {
    let parse = |line: &str| {
        let line = line.split('#').next().unwrap_or_default().trim();
        let rest = line.strip_prefix("deb")?;
        let rest = rest.strip_prefix([' ', '\t', '['])?;
        // The options end at the bracket; they may hold spaces.
        let rest = if line.contains('[') { rest.split_once(']')?.1 } else { rest };
        let mut words = rest.split_whitespace();
        let (uri, suite) = (words.next()?, words.next()?);
        Some(Source {
            uri: normal_uri(uri),
            suite: suite.to_owned(),
            components: words.map(str::to_owned).collect(),
        })
    };
    text.lines().filter_map(parse).collect()
}

/// Stanzas of `Key: value` lines (deb822); lists are separated by white space and may go on over indented lines.
fn parse_deb822(text: &str) -> Vec<Source> {
    let mut sources = Vec::new();
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    for stanza in lines.split(|line| line.trim().is_empty()) {
        let field = |name: &str| -> Vec<String> {
            let mut inside = false;
            let mut words = Vec::new();
            for line in stanza {
                let mut value = *line;
                if !line.starts_with([' ', '\t']) {
                    let (key, rest) = line.split_once(':').unwrap_or((line, ""));
                    inside = key.eq_ignore_ascii_case(name);
                    value = rest;
                }
                if inside {
                    words.extend(value.split_whitespace().map(str::to_owned));
                }
            }
            words
        };
        let disabled = field("Enabled").first().is_some_and(|word| word.eq_ignore_ascii_case("no"));
        if disabled || !field("Types").iter().any(|word| word == "deb") {
            continue;
        }
        for uri in field("URIs") {
            for suite in field("Suites") {
                sources.push(Source { uri: normal_uri(&uri), suite, components: field("Components") });
            }
        }
    }
    sources
}

/// Without the trailing slash that some write and some do not.
fn normal_uri(uri: &str) -> String {
    uri.trim_end_matches('/').to_owned()
}

#[cfg(test)]
mod tests;
