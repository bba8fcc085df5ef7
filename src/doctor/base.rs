//! The image that all tasks start from: present, pulled, or built here from a Debian mirror.

use std::cell::RefCell;
use std::io;
use std::time::Duration;

use serde::Deserialize;

use super::distro::{Family, family};
use super::endpoint;
use super::engine::message_of;
use super::error::{FixError, tail};
use super::http::{self, Endpoint, Timeouts};
use super::system::Ran;
use super::{Context, Events, Finding, Invocation, Privilege, System, apt};

/// Repository and tag, as task Dockerfiles name it: public, so that a task also builds where we never were.
const IMAGE: (&str, &str) = ("debian", "bookworm-slim");
/// The release of Debian that this is.
const SUITE: &str = "bookworm";
/// Marks an image that was built here. `termsmith clean` keeps it: it is as dear as a pulled one.
const LABEL: &str = "termsmith.bootstrap";

/// A question about an image.
const QUESTION: Timeouts = Timeouts { idle: Duration::from_secs(20), total: Duration::from_secs(20) };
/// Where no registry can be reached some networks drop packets silently, and an engine tries for minutes.
const PULL: Timeouts = Timeouts { idle: Duration::from_secs(45), total: Duration::from_secs(600) };
/// mmdebstrap is silent until its packages are downloaded and installed, which a slow mirror draws out.
const IMPORT: Timeouts = Timeouts { idle: Duration::from_secs(900), total: Duration::from_secs(1800) };

/// Debian's keys on other systems, for a mirror that is not theirs.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// What makes the tree the slim image: run by mmdebstrap with the tree's path as `$1`.
const CUSTOMIZE: &str = include_str!("base/customize.sh");
/// Files that slim images leave out; dpkg keeps to it for packages that are installed later, too.
const SLIM: [&str; 8] = [
    "path-exclude=/usr/share/doc/*",
    "path-include=/usr/share/doc/*/copyright",
    "path-exclude=/usr/share/info/*",
    "path-exclude=/usr/share/lintian/*",
    "path-exclude=/usr/share/locale/*",
    "path-include=/usr/share/locale/locale.alias",
    "path-exclude=/usr/share/man/*",
    // An image that a crash corrupts is thrown away; syncing every file triples the time of an installation.
    "force-unsafe-io",
];

/// Is the image there?
pub(super) fn look(context: &Context<'_>) -> Finding {
    let (repository, tag) = IMAGE;
    let Ok(endpoint) = endpoint::find(context.system) else { return Finding::needs_engine() };
    match inspect(&endpoint, &format!("{repository}:{tag}")) {
        Ok(Some(image)) => {
            let origin = if image.is_ours() { ", built here" } else { "" };
            Finding::ok(format!("{repository}:{tag}, {} MB{origin}", image.size / 1_000_000))
        }
        Ok(None) => Finding::missing(format!("the engine has no image {repository}:{tag}")).hint(
            "`termsmith doctor --fix` pulls it, or builds it from a Debian mirror where no registry answers",
        ),
        Err(error) => Finding::missing(error.explain()),
    }
}

/// Pulls the image, or else builds it.
pub(super) fn fix(context: &Context<'_>, events: &mut Events<'_>) -> Result<(), FixError> {
    let endpoint = endpoint::find(context.system).map_err(|_| FixError::NoEngine)?;
    let (repository, tag) = IMAGE;
    events.action(format!("Pulling {repository}:{tag} …"));
    match pull(&endpoint, repository, tag) {
        Ok(()) => Ok(()),
        Err(error) => {
            events.note(format!("That failed, so the image is built here ({})", error.explain()));
            bootstrap(context.system, &endpoint, repository, tag, events)
        }
    }
}

/// `GET /images/…/json`, as far as it matters here.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Image {
    /// Bytes.
    size: u64,
    config: Option<Config>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Config {
    labels: Option<std::collections::BTreeMap<String, String>>,
}

impl Image {
    fn is_ours(&self) -> bool {
        let labels = self.config.as_ref().and_then(|config| config.labels.as_ref());
        labels.is_some_and(|labels| labels.contains_key(LABEL))
    }
}

fn inspect(endpoint: &Endpoint, image: &str) -> Result<Option<Image>, FixError> {
    let refused = |status, message| FixError::Refused { what: "describe the image", status, message };
    let reply = http::get(endpoint, &format!("/images/{image}/json"), QUESTION)?;
    match reply.status {
        404 => Ok(None),
        200 => serde_json::from_slice(&reply.body).map(Some).map_err(|error| refused(200, error.to_string())),
        status => Err(refused(status, message_of(&reply.body))),
    }
}

fn pull(endpoint: &Endpoint, repository: &str, tag: &str) -> Result<(), FixError> {
    let path = format!("/images/create?fromImage={}&tag={}", http::encode(repository), http::encode(tag));
    let reply = http::post(endpoint, &path, PULL)?;
    accept("pull the image", &reply)
}

/// Builds a slim Debian image with mmdebstrap and imports it, without a file in between.
pub(super) fn bootstrap(
    system: &System,
    endpoint: &Endpoint,
    repository: &str,
    tag: &str,
    events: &mut Events<'_>,
) -> Result<(), FixError> {
    let (lines, keyring) = match family(system) {
        Family::Debian { codename } => (apt::debian_lines(system, codename.as_deref(), SUITE), None),
        // Their own mirrors carry something else; mmdebstrap knows Debian's archive by itself.
        Family::Derivative { .. } => (Vec::new(), Some(KEYRING)),
        Family::Other { name } => {
            return Err(FixError::UnknownSystem { system: name, what: "the image debian:bookworm-slim" });
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
    events.action(format!("Building {repository}:{tag} from {from}, with mmdebstrap (about 20 s) …"));
    let command = mmdebstrap(&lines, keyring);
    // Without root mmdebstrap makes do with user namespaces.
    let command = Privilege::of(system).apply(command.clone()).unwrap_or(command);
    let ended = RefCell::new(None);
    let reply = http::upload(endpoint, &import_path(repository, tag), IMPORT, &mut |body| {
        let ran = (system.runner)(&command, body)?;
        let is_success = ran.is_success();
        *ended.borrow_mut() = Some(ran);
        // Cut off, so that the engine does not take half a tree for an image.
        if is_success { Ok(()) } else { Err(io::Error::other("mmdebstrap failed")) }
    });
    match ended.into_inner() {
        Some(Ran { code, stderr }) if code != Some(0) => {
            Err(FixError::Failed { command: command_name(&command), code, tail: tail(&stderr) })
        }
        _ => accept("import the image", &reply?),
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
    // It would remove the one that the hook writes.
    words.push("--skip=chroot/policy-rc.d".to_owned());
    if lines.iter().any(|line| line.contains(" https://")) {
        // Otherwise apt in the image could not verify the mirror that it came from.
        words.push("--include=ca-certificates".to_owned());
    }
    words.extend(keyring.map(|keyring| format!("--keyring={keyring}")));
    words.push(format!("--customize-hook={CUSTOMIZE}"));
    words.extend([SUITE.to_owned(), "-".to_owned()]);
    words.extend(lines.iter().cloned());
    Invocation(words)
}

fn import_path(repository: &str, tag: &str) -> String {
    // As the public image has it, and our mark.
    let changes = [
        "CMD [\"bash\"]".to_owned(),
        "ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned(),
        format!("LABEL {LABEL}=1"),
    ];
    let mut path =
        format!("/images/create?fromSrc=-&repo={}&tag={}", http::encode(repository), http::encode(tag));
    for change in changes {
        path.push_str("&changes=");
        path.push_str(&http::encode(&change));
    }
    path
}

/// The engine reports the progress of pulls and imports line by line, and a failure as the last line of a success.
fn accept(what: &'static str, reply: &http::Response) -> Result<(), FixError> {
    #[derive(Deserialize)]
    struct Line {
        error: Option<String>,
    }
    let status = reply.status;
    if !reply.is_success() {
        return Err(FixError::Refused { what, status, message: message_of(&reply.body) });
    }
    let text = String::from_utf8_lossy(&reply.body);
    let failure = text.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok()?.error).next_back();
    failure.map_or(Ok(()), |message| Err(FixError::Refused { what, status, message }))
}

#[cfg(test)]
mod tests;
