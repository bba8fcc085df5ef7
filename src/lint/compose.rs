//! The parts of a task's compose files that lint needs.

use std::collections::BTreeSet;

use super::linted_task::{LintedTask, SpecialFile, SpecialFileKind, in_tests};
use super::yaml::{Node, YamlError, parse};

/// One compose file.
pub(super) struct Compose<'a> {
    pub(super) file: &'a str,
    pub(super) root: Result<Node, YamlError>,
}

/// A bind mount: a folder or file of the host that a container sees.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Bind {
    pub(super) line: u32,
    pub(super) source: String,
    pub(super) read_only: bool,
}

/// The compose files of the solver's environment and of the verifier's.
pub(super) fn composes<'a>(task: &LintedTask<'a>) -> Vec<Compose<'a>> {
    task.texts(|path| {
        path == "environment/docker-compose.yaml"
            || (in_tests(path) && path.ends_with("tests/docker-compose.yaml"))
    })
    .map(|(file, text)| Compose { file, root: parse(text) })
    .collect()
}

impl Compose<'_> {
    /// Name and definition of each service.
    pub(super) fn services(&self) -> Vec<(String, Node)> {
        let root = self.root.as_ref().ok();
        root.and_then(|root| root.get("services")).map(|services| services.entries()).unwrap_or_default()
    }

    /// The folder that relative paths start from, relative to the task directory.
    fn folder(&self) -> &str {
        self.file.trim_end_matches("docker-compose.yaml").trim_end_matches('/')
    }

    /// The path of a bind's source below the task directory. `None` if it is outside of the compose
    /// file's folder.
    pub(super) fn inside(&self, source: &str) -> Option<String> {
        if source.starts_with(['/', '~', '$']) {
            return None;
        }
        let mut parts: Vec<&str> = Vec::new();
        for part in source.split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    parts.pop()?;
                }
                part => parts.push(part),
            }
        }
        let rest = parts.join("/");
        Some(if rest.is_empty() { self.folder().to_owned() } else { format!("{}/{rest}", self.folder()) })
    }
}

/// The bind mounts of a service, without paths that Harbor fills in itself.
pub(super) fn binds(service: &Node) -> Vec<Bind> {
    let volumes = service.get("volumes").map(|volumes| volumes.items()).unwrap_or_default();
    volumes.iter().filter_map(bind).filter(|bind| !bind.source.contains("${HOST_")).collect()
}

fn bind(volume: &Node) -> Option<Bind> {
    if let Some(text) = volume.text() {
        // `${A:-b}` contains a colon that does not separate source and target.
        let end = if text.starts_with("${") { text.find('}')? + 1 } else { 0 };
        let colon = end + text[end..].find(':')?;
        let (source, rest) = (&text[..colon], &text[colon + 1..]);
        let host = source.starts_with(['.', '/', '~', '$']);
        let options = rest.split_once(':').map_or("", |(_, options)| options);
        let read_only = options.split(',').any(|option| option == "ro");
        return host.then(|| Bind { line: volume.line, source: source.to_owned(), read_only });
    }
    let kind = volume.get("type")?;
    let source = volume.get("source").or_else(|| volume.get("src"))?;
    (kind.text()? == "bind").then_some(())?;
    let read_only = volume.get("read_only").is_some_and(|value| is_true(&value));
    Some(Bind { line: volume.line, source: source.text()?.to_owned(), read_only })
}

pub(super) fn is_true(node: &Node) -> bool {
    node.text().is_some_and(|text| matches!(text.to_ascii_lowercase().as_str(), "true" | "yes" | "on"))
}

/// Whether a compose file next to the Dockerfile in `context` builds from another folder.
pub(super) fn context_elsewhere(task: &LintedTask<'_>, context: &str) -> bool {
    composes(task).iter().filter(|compose| compose.file.starts_with(context)).any(|compose| {
        compose.services().iter().any(|(_, service)| {
            let build = service.get("build");
            let folder =
                build.and_then(|build| if build.is_map() { build.get("context") } else { Some(build) });
            folder.is_some_and(|folder| {
                !matches!(folder.text(), None | Some("" | "." | "./" | "${CONTEXT_DIR}"))
            })
        })
    })
}

/// Names of the build arguments in the compose files next to the Dockerfile in `context`.
pub(super) fn build_arguments(task: &LintedTask<'_>, context: &str) -> BTreeSet<String> {
    let composes = composes(task);
    let services = composes.iter().filter(|it| it.file.starts_with(context)).flat_map(Compose::services);
    let arguments = services.filter_map(|(_, service)| service.get("build")?.get("args"));
    arguments
        .flat_map(|arguments| {
            let listed = arguments.items().into_iter().filter_map(|item| {
                let text = item.text()?;
                Some(text.split_once('=').map_or(text, |(name, _)| name).to_owned())
            });
            let named = arguments.entries().into_iter().map(|(name, _)| name);
            listed.chain(named).collect::<Vec<_>>()
        })
        .collect()
}

/// The symbolic link that is part of `path`, if there is one.
pub(super) fn link_at<'a>(special_files: &'a [SpecialFile], path: &str) -> Option<&'a SpecialFile> {
    special_files.iter().find(|oddity| {
        matches!(oddity.kind, SpecialFileKind::Link | SpecialFileKind::Escape)
            && path.strip_prefix(&oddity.path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}
