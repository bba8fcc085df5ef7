//! Debian's packages: installing them, and finding out which mirror this system takes them from.

use std::fs;
use std::path::PathBuf;

use super::distro::{Family, family};
use super::error::FixError;
use super::heartbeat::Heartbeat;
use super::{Events, Invocation, Privilege, System};

/// Seconds to wait for another package manager to finish; unattended upgrades hold the lock for a minute or two.
const LOCK_SECONDS: u32 = 180;
/// Suites that are named by their role instead of a code name.
const ROLES: [&str; 5] = ["stable", "oldstable", "testing", "unstable", "sid"];

/// Announces and installs Debian packages. The package lists are fetched once per run of the doctor.
pub(super) fn install(system: &System, packages: &[&str], events: &mut Events<'_>) -> Result<(), FixError> {
    let names = packages.join(", ");
    match family(system) {
        Family::Debian { .. } | Family::Derivative { .. } => {}
        Family::Other { name } => return Err(FixError::UnknownSystem { system: name, what: names }),
    }
    let privilege = Privilege::of(system);
    let mut words = vec!["install", "-y", "--no-install-recommends", "--no-remove"];
    words.extend(packages);
    let by_hand =
        || FixError::NeedsRoot { command: format!("apt-get update && apt-get {}", words.join(" ")) };
    let update = apt_get(privilege, &["update", "-q"]).ok_or_else(by_hand)?;
    let install = apt_get(privilege, &words).ok_or_else(by_hand)?;

    events.action(format!("Installing {names} (system packages, by apt-get) …"));
    let mut heartbeat = Heartbeat::new(events, format!("apt-get is installing {names}"));
    let mut on_wait = || heartbeat.beat_if_due();
    let updated = if system.lists_are_fresh.get() {
        Ok(())
    } else {
        system.run_checked(&update, &mut on_wait).map(|_| system.lists_are_fresh.set(true))
    };
    match (system.run_checked(&install, &mut on_wait), updated) {
        (Ok(_), Ok(())) => Ok(()),
        (Ok(_), Err(error)) => {
            tracing::warn!(error = error.explain(), "package lists were not fetched, older ones were enough");
            Ok(())
        }
        // The package is missing because its list could not be fetched.
        (Err(_), Err(cause)) => Err(cause),
        (Err(error), Ok(())) => Err(error),
    }
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

/// apt lines for `suite` of Debian from the mirrors that this system uses; empty when none of them can be used in a
/// container. `codename` is this system's own.
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
    // Other archives use Debian's suite names, too; only Debian's own has updates, and its path usually ends in `/debian`.
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
    match fs::read_dir(system.path("/etc/apt/sources.list.d")) {
        Ok(entries) => files.extend(entries.flatten().map(|entry| entry.path())),
        Err(error) => tracing::debug!(%error, "no folder of apt sources"),
    }
    files.sort();
    let mut sources = Vec::new();
    for file in files {
        let file = system.path(file.strip_prefix(&system.root).unwrap_or(&file));
        let text = match fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) => {
                tracing::debug!(path = %file.display(), %error, "cannot read apt sources");
                continue;
            }
        };
        // apt ignores files with any other extension, too.
        match file.extension().and_then(|extension| extension.to_str()) {
            Some("list") => sources.extend(parse_one_line(&text)),
            Some("sources") => sources.extend(parse_deb822(&text)),
            Some(_) | None => {}
        }
    }
    for source in &mut sources {
        // Cloud images name a local list of mirrors; its first line is the preferred one.
        if let Some(list) = source.uri.strip_prefix("mirror+file:") {
            let list = fs::read_to_string(system.path(format!("/{}", list.trim_start_matches('/'))));
            let first = list.unwrap_or_default().split_whitespace().next().map(normal_uri);
            source.uri = first.unwrap_or_default();
        }
    }
    sources
}

/// `deb [options] uri suite component…`, one per line.
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

/// Stanzas of `Key: value` lines (deb822); lists are separated by white space and may continue on indented lines.
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

/// Without the optional trailing slash.
fn normal_uri(uri: &str) -> String {
    uri.trim_end_matches('/').to_owned()
}

#[cfg(test)]
mod tests;
