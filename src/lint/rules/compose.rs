//! Rules about compose files.

use crate::lint::compose::{Bind, Compose, binds, composes, is_true, link_at};
use crate::lint::linted_task::LintedTask;
use crate::lint::rule::RuleMatch;
use crate::lint::yaml::Node;

/// Keys of a service whose value `host` shares a namespace with the host.
const NAMESPACES: [&str; 6] = ["network_mode", "pid", "ipc", "uts", "userns_mode", "cgroup"];

fn each_service(task: &LintedTask<'_>, look: impl Fn(&str, &Node) -> Vec<(u32, String)>) -> Vec<RuleMatch> {
    let mut matches = Vec::new();
    for compose in composes(task) {
        for (name, service) in compose.services() {
            let found = look(&name, &service).into_iter();
            matches.extend(found.map(|(line, message)| RuleMatch::at(compose.file, line, message)));
        }
    }
    matches
}

fn each_bind(task: &LintedTask<'_>, look: impl Fn(&Compose<'_>, &Bind) -> Option<String>) -> Vec<RuleMatch> {
    let mut matches = Vec::new();
    for compose in composes(task) {
        for (_, service) in compose.services() {
            for bind in binds(&service) {
                matches.extend(
                    look(&compose, &bind).map(|message| RuleMatch::at(compose.file, bind.line, message)),
                );
            }
        }
    }
    matches
}

pub(in crate::lint) fn invalid(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    let mut matches = Vec::new();
    for compose in composes(task) {
        match &compose.root {
            Err(error) => {
                matches.push(RuleMatch::at(
                    compose.file,
                    error.line,
                    format!("invalid YAML: {}", error.message),
                ));
            }
            Ok(root) => {
                let services = compose.services();
                if services.is_empty() {
                    matches.push(RuleMatch::at(compose.file, root.line, "no `services`"));
                } else if services.iter().all(|(name, _)| name != "main") {
                    let message = "no service is called `main`; the solver works in that one";
                    matches.push(RuleMatch::at(compose.file, root.line, message));
                }
            }
        }
    }
    matches
}

pub(in crate::lint) fn privileged(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    each_service(task, |name, service| {
        let privileged = service.get("privileged").filter(is_true);
        privileged.map(|at| (at.line, format!("service `{name}` is privileged"))).into_iter().collect()
    })
}

pub(in crate::lint) fn capabilities(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    each_service(task, |name, service| {
        let added = service.get("cap_add").map(|added| added.items()).unwrap_or_default();
        added
            .iter()
            .filter_map(|added| {
                Some((added.line, format!("service `{name}` gets the capability {}", added.text()?)))
            })
            .collect()
    })
}

pub(in crate::lint) fn host_namespace(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    each_service(task, |name, service| {
        let mut found: Vec<_> = NAMESPACES
            .iter()
            .filter_map(|key| Some((key, service.get(key)?)))
            .filter(|(_, value)| value.text() == Some("host"))
            .map(|(key, value)| (value.line, format!("service `{name}` has `{key}: host`")))
            .collect();
        let devices = service.get("devices").map(|devices| devices.items()).unwrap_or_default();
        found.extend(
            devices.iter().map(|device| (device.line, format!("service `{name}` gets a device of the host"))),
        );
        found
    })
}

pub(in crate::lint) fn writable_bind(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    each_bind(task, |_, bind| {
        (!bind.read_only).then(|| format!("`{}` of the host can be written from the container", bind.source))
    })
}

pub(in crate::lint) fn external_bind(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    each_bind(task, |compose, bind| {
        let inside = compose.inside(&bind.source);
        inside.is_none().then(|| format!("`{}` lies outside of the compose file's folder", bind.source))
    })
}

pub(in crate::lint) fn symlink_bind(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    each_bind(task, |compose, bind| {
        let link = link_at(task.special_files, &compose.inside(&bind.source)?)?;
        Some(format!("`{}` leads through the symbolic link `{}`", bind.source, link.path))
    })
}
