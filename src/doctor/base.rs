//! The image that all tasks start from: present, pulled, or built here from a Debian mirror.

use std::io;

use bollard::models::ImageInspect;

use super::client::{self, ImageName};
use super::distro::{Family, family};
use super::error::{FixError, tail};
use super::heartbeat::Heartbeat;
use super::system::Exit;
use super::{Context, Events, Finding, Invocation, Privilege, System, apt};
use crate::sandbox::discovery::Endpoint;

/// The image that task Dockerfiles name: a public one, so that a task can be built on any machine.
const IMAGE: ImageName = ImageName { repository: "debian", tag: "bookworm-slim" };
/// Its release of Debian.
const SUITE: &str = "bookworm";
/// Marks an image that was built here. `termsmith clean` keeps it: it is as expensive to replace as a pulled one.
const LABEL: &str = "termsmith.bootstrap";

/// Debian's keys, which derivatives need to verify a Debian mirror.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// Turns the tree into the slim image: mmdebstrap runs it with the tree's path as `$1`.
const CUSTOMIZE: &str = include_str!("base/customize.sh");
/// Files that slim images leave out; dpkg leaves them out of packages that are installed later, too.
const SLIM: [&str; 8] = [
    "path-exclude=/usr/share/doc/*",
    "path-include=/usr/share/doc/*/copyright",
    "path-exclude=/usr/share/info/*",
    "path-exclude=/usr/share/lintian/*",
    "path-exclude=/usr/share/locale/*",
    "path-include=/usr/share/locale/locale.alias",
    "path-exclude=/usr/share/man/*",
    // An image that a crash corrupts is discarded; syncing every file triples the time of an installation.
    "force-unsafe-io",
];

/// Whether the engine has the image.
pub(super) fn inspect(context: &Context<'_>) -> Finding {
    let Ok(endpoint) = client::find(context.system) else { return Finding::needs_engine() };
    match client::image(&endpoint, IMAGE) {
        Ok(Some(image)) => {
            let origin = if was_built_here(&image) { ", built here" } else { "" };
            Finding::ok(format!("{IMAGE}, {} MB{origin}", image.size.unwrap_or_default() / 1_000_000))
        }
        Ok(None) => Finding::missing(format!("the engine has no image {IMAGE}")).hint(
            "`termsmith doctor --fix` pulls it, or builds it from a Debian mirror if no registry answers",
        ),
        Err(error) => Finding::missing(error.explain()),
    }
}

fn was_built_here(image: &ImageInspect) -> bool {
    let labels = image.config.as_ref().and_then(|config| config.labels.as_ref());
    labels.is_some_and(|labels| labels.contains_key(LABEL))
}

/// Pulls the image, or else builds it.
pub(super) fn fix(context: &Context<'_>, events: &mut Events<'_>) -> Result<(), FixError> {
    let endpoint = client::find(context.system).map_err(|_| FixError::NoEngine)?;
    events.action(format!("Pulling {IMAGE} …"));
    let mut heartbeat = Heartbeat::new(events, format!("the engine is pulling {IMAGE}"));
    match client::pull(&endpoint, IMAGE, &mut heartbeat) {
        Ok(()) => Ok(()),
        Err(error) => {
            events.note(format!("That failed, so the image is built here ({})", error.explain()));
            bootstrap(context.system, &endpoint, events)
        }
    }
}

/// Builds a slim Debian image with mmdebstrap and imports it as a stream.
fn bootstrap(system: &System, endpoint: &Endpoint, events: &mut Events<'_>) -> Result<(), FixError> {
    let (lines, keyring) = match family(system) {
        Family::Debian { codename } => (apt::debian_lines(system, codename.as_deref(), SUITE), None),
        // Mirrors of a derivative do not carry Debian; mmdebstrap knows Debian's own archive.
        Family::Derivative { .. } => (Vec::new(), Some(KEYRING)),
        Family::Other { name } => {
            return Err(FixError::UnknownSystem { system: name, what: format!("the image {IMAGE}") });
        }
    };
    let mut wanted = Vec::new();
    if system.find_program("mmdebstrap").is_none() {
        wanted.push("mmdebstrap");
    }
    if keyring.is_some_and(|keyring| !system.path(keyring).is_file()) {
        wanted.push("debian-archive-keyring");
    }
    if !wanted.is_empty() {
        apt::install(system, &wanted, events)?;
    }

    let from = if lines.is_empty() { "Debian's archive" } else { "this system's Debian mirror" };
    events.action(format!("Building {IMAGE} from {from}, with mmdebstrap (about 20 s) …"));
    let command = mmdebstrap(&lines, keyring);
    // Without root mmdebstrap uses user namespaces.
    let command = Privilege::of(system).apply(command.clone()).unwrap_or(command);
    let mut ended = None;
    let mut heartbeat = Heartbeat::new(events, format!("mmdebstrap is building {IMAGE}"));
    let imported = client::import(endpoint, IMAGE, changes(), &mut heartbeat, |body, on_wait| {
        let exit = system.run_into(&command, body, on_wait)?;
        let is_success = exit.is_success();
        ended = Some(exit);
        if is_success { Ok(()) } else { Err(io::Error::other("mmdebstrap failed")) }
    });
    match ended {
        Some(Exit { code, stderr }) if code != Some(0) => {
            Err(FixError::Failed { command: command_name(&command), code, tail: tail(&stderr) })
        }
        Some(_) | None => imported,
    }
}

/// The program without its arguments, which fill a screen.
fn command_name(command: &Invocation) -> String {
    let program = command.0.iter().find(|word| word.ends_with("mmdebstrap"));
    program.map_or_else(|| command.program().to_owned(), |program| format!("{program} … {SUITE}"))
}

fn mmdebstrap(lines: &[String], keyring: Option<&str>) -> Invocation {
    let mut words: Vec<String> =
        ["mmdebstrap", "--variant=minbase", "--format=tar"].map(str::to_owned).into();
    words.extend(SLIM.map(|option| format!("--dpkgopt={option}")));
    words.push("--aptopt=Acquire::Languages \"none\"".to_owned());
    // The step would remove the file that the hook writes.
    words.push("--skip=chroot/policy-rc.d".to_owned());
    if lines.iter().any(|line| line.contains(" https://")) {
        // Otherwise apt in the image could not verify its mirror.
        words.push("--include=ca-certificates".to_owned());
    }
    words.extend(keyring.map(|keyring| format!("--keyring={keyring}")));
    words.push(format!("--customize-hook={CUSTOMIZE}"));
    words.extend([SUITE.to_owned(), "-".to_owned()]);
    words.extend(lines.iter().cloned());
    Invocation(words)
}

/// The configuration of the public image, and the label.
fn changes() -> Vec<String> {
    vec![
        "CMD [\"bash\"]".to_owned(),
        "ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned(),
        format!("LABEL {LABEL}=1"),
    ]
}

#[cfg(test)]
mod tests;
