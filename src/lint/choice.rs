//! A task's own lint settings: `[metadata.termsmith.lint]` and `[metadata.harbor.lint]`.

use toml::{Table, Value};

use crate::harbor::Manifest;

const OURS: &str = "metadata.termsmith.lint";
const HARBORS: &str = "metadata.harbor.lint";

/// The rules of Harbor 0.25. Harbor's `select` applies only to these.
const HARBOR_RULES: [&str; 17] = [
    "invalid-task-config",
    "unknown-config-field",
    "invalid-task-files",
    "shared-verifier",
    "artifact-log-overlap",
    "overlapping-artifacts",
    "compose-privileged",
    "compose-additional-capabilities",
    "compose-writable-bind-mount",
    "compose-external-bind-mount",
    "compose-symlink-bind-mount",
    "unpinned-python-dependency",
    "verifier-runtime-install",
    "verifier-network-download",
    "agent-image-test-leak",
    "root-agent",
    "unpinned-image",
];

/// A task's lint settings.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) ignored: Vec<Ignored>,
    /// If set, of Harbor's rules only these run.
    select: Option<Vec<String>>,
    /// Opt-in rules that the task turns on.
    extend: Vec<String>,
    /// Key and rule id of every rule in `select` and `extend`.
    asked: Vec<(String, String)>,
    /// Key and message of each setting that cannot be read.
    pub(super) malformed: Vec<(String, String)>,
}

/// A rule whose findings the task suppresses.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Ignored {
    pub(super) rule: String,
    /// Empty if no reason is given.
    pub(super) reason: String,
    /// The key in `task.toml`.
    pub(super) key: String,
}

impl Choice {
    pub(super) fn of(manifest: &Manifest) -> Self {
        let mut choice = Self::default();
        let table = |tool: &str| manifest.metadata.as_ref()?.get(tool)?.as_table()?.get("lint")?.as_table();
        if let Some(ours) = table("termsmith") {
            choice.ignore(OURS, ours);
            choice.extend = choice.list(OURS, ours, "extend-select");
        }
        if let Some(harbors) = table("harbor") {
            choice.ignore(HARBORS, harbors);
            choice.select = harbors.get("select").map(|_| choice.list(HARBORS, harbors, "select"));
            let extend = choice.list(HARBORS, harbors, "extend-select");
            choice.extend.extend(extend);
        }
        choice
    }

    fn list(&mut self, section: &str, table: &Table, key: &str) -> Vec<String> {
        let list = table.get(key).and_then(Value::as_array).into_iter().flatten();
        let rules: Vec<_> = list.filter_map(Value::as_str).map(str::to_owned).collect();
        self.asked.extend(rules.iter().map(|rule| (format!("{section}.{key}"), rule.clone())));
        rules
    }

    fn ignore(&mut self, section: &str, table: &Table) {
        let mut entry = |rule: &str, reason: &str, key: String| {
            let (rule, reason) = (rule.to_owned(), reason.trim().to_owned());
            self.ignored.push(Ignored { rule, reason, key });
        };
        match table.get("ignore") {
            None => {}
            Some(Value::Table(reasons)) => {
                for (rule, reason) in reasons {
                    entry(rule, reason.as_str().unwrap_or_default(), format!("{section}.ignore.{rule}"));
                }
            }
            Some(Value::Array(rules)) => {
                for (place, rule) in rules.iter().enumerate() {
                    entry(rule.as_str().unwrap_or_default(), "", format!("{section}.ignore[{place}]"));
                }
            }
            Some(_) => {
                let message = "`ignore` must be a table of rule ids and reasons".to_owned();
                self.malformed.push((format!("{section}.ignore"), message));
            }
        }
    }

    /// Whether a rule runs, given whether it runs by default.
    pub(super) fn runs(&self, rule: &str, by_default: bool) -> bool {
        let extended = self.extend.iter().any(|asked| asked == rule);
        match &self.select {
            Some(selected) if HARBOR_RULES.contains(&rule) => {
                extended || selected.iter().any(|asked| asked == rule)
            }
            Some(_) | None => extended || by_default,
        }
    }

    /// Why the findings of `rule` are suppressed. `None` if they are not.
    pub(super) fn reason(&self, rule: &str) -> Option<String> {
        let entries: Vec<_> = self.ignored.iter().filter(|entry| entry.rule == rule).collect();
        let given = entries.iter().find(|entry| !entry.reason.is_empty());
        match given {
            Some(entry) => Some(entry.reason.clone()),
            None if entries.is_empty() => None,
            None => Some("no reason is given".to_owned()),
        }
    }

    /// Key and rule id of every rule that the settings name.
    pub(super) fn named(&self) -> impl Iterator<Item = (&str, &str)> {
        let ignored = self.ignored.iter().map(|entry| (entry.key.as_str(), entry.rule.as_str()));
        ignored.chain(self.asked.iter().map(|(key, rule)| (key.as_str(), rule.as_str())))
    }
}
