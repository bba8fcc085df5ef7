//! Lint rules. Each is a file in `templates/lint/`, with a regular expression over some of the
//! task's files, or with the name of a function.

use serde::Deserialize;

use super::attack::{Attack, AttackError, Scan, attacks};
use super::finding::Severity;
use super::linted_task::LintedTask;
use super::pattern::{Pattern, Wanted, line_of};
use super::rules::FUNCTIONS;
use crate::assets::Assets;

/// Folder of the rules.
const FOLDER: &str = "templates/lint";

/// One rule with its documentation.
#[derive(Debug)]
pub struct Rule {
    /// Kebab-case. Harbor's id, if Harbor has the rule.
    pub id: String,
    /// Severity of a finding in a foreign task.
    pub severity: Severity,
    /// Severity in a task that termsmith made.
    pub own: Own,
    /// Whether the rule runs in foreign tasks only if their `task.toml` selects it.
    pub opt_in: bool,
    /// What is wrong, as a fragment that begins in lower case.
    pub message: String,
    /// How to fix it.
    pub hint: String,
    /// Why it matters, with an example.
    pub explain: String,
    /// The linter with the same rule, or where the defect was observed.
    pub source: String,
    /// Id of the attack that the defect makes possible.
    pub attack: Option<String>,
    check: Check,
}

/// The severity in tasks that termsmith made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Own {
    Error,
    Warning,
    Note,
    /// The rule does not run, because the clean room or the recipe format excludes the defect.
    Off,
}

enum Check {
    Pattern(Box<Pattern>),
    Scan(Vec<Scan>),
    Function(Function),
}

impl std::fmt::Debug for Check {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Pattern(_) => "Pattern",
            Self::Scan(_) => "Scan",
            Self::Function(_) => "Function",
        })
    }
}

/// A rule in code. It returns the places where a task violates it.
pub(super) type Function = fn(&LintedTask<'_>) -> Vec<RuleMatch>;

/// A finding without its rule's severity and hint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RuleMatch {
    pub(super) file: String,
    pub(super) line: Option<u32>,
    pub(super) message: String,
}

impl RuleMatch {
    pub(super) fn at(file: &str, line: u32, message: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line: Some(line), message: message.into() }
    }

    pub(super) fn whole(file: &str, message: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line: None, message: message.into() }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Declared {
    severity: Severity,
    own: Option<Own>,
    #[serde(default)]
    opt_in: bool,
    files: Option<String>,
    forbid: Option<String>,
    require: Option<String>,
    unless: Option<String>,
    message: String,
    hint: String,
    explain: String,
    source: String,
}

/// The error for a malformed rule file.
#[derive(Debug, thiserror::Error)]
pub enum LintError {
    #[error("lint rule `templates/lint/{file}`: {message}")]
    Rule { file: String, message: String },
    #[error(transparent)]
    Attack(#[from] AttackError),
}

/// All rules by id: the files of `templates/lint/`, and the scans of `templates/attacks/`.
#[derive(Debug)]
pub struct Rules(Vec<Rule>);

impl Rules {
    /// Reads and compiles all rules.
    pub fn load(assets: &Assets) -> Result<Self, LintError> {
        let mut rules = Vec::new();
        for (path, bytes, _) in assets.files_under(FOLDER) {
            let Some(id) = path.as_str().strip_suffix(".toml") else { continue };
            let bad = |message: String| LintError::Rule { file: path.to_string(), message };
            rules.push(rule(id, bytes).map_err(bad)?);
        }
        for attack in attacks(assets)? {
            let file = format!("../attacks/{}.toml", attack.name);
            rules.extend(scan_rule(attack).map_err(|message| LintError::Rule { file, message })?);
        }
        rules.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(Self(rules))
    }

    /// The rules in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.0.iter()
    }

    /// The rule with that id.
    pub fn get(&self, id: &str) -> Option<&Rule> {
        self.0.iter().find(|rule| rule.id == id)
    }
}

fn rule(id: &str, bytes: &[u8]) -> Result<Rule, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    let declared: Declared = toml::from_str(text).map_err(|error| error.to_string())?;
    let wanted = match (&declared.forbid, &declared.require) {
        (Some(_), Some(_)) => return Err("a rule has `forbid` or `require`, not both".to_owned()),
        (Some(forbid), None) => Some(Wanted::Forbid(forbid.as_str())),
        (None, Some(require)) => Some(Wanted::Require(require.as_str())),
        (None, None) => None,
    };
    let check = match (declared.files.as_deref(), wanted) {
        (Some(files), Some(wanted)) => {
            Check::Pattern(Box::new(Pattern::new(files, &wanted, declared.unless.as_deref())?))
        }
        (None, None) if declared.unless.is_none() => {
            Check::Function(function(id).ok_or(
                "a rule needs `files` and one of `forbid` and `require`, unless termsmith has a function with its id",
            )?)
        }
        (Some(_), None) | (None, Some(_) | None) => {
            return Err("`files` needs one of `forbid` and `require`, and the other way round".to_owned());
        }
    };
    Ok(Rule {
        id: id.to_owned(),
        severity: declared.severity,
        own: declared.own.unwrap_or(match declared.severity {
            _ if declared.opt_in => Own::Off,
            Severity::Error => Own::Error,
            Severity::Warning => Own::Warning,
            Severity::Note => Own::Note,
        }),
        opt_in: declared.opt_in,
        message: declared.message,
        hint: declared.hint,
        explain: declared.explain.trim().to_owned(),
        source: declared.source,
        attack: None,
        check,
    })
}

fn scan_rule(attack: Attack) -> Result<Option<Rule>, String> {
    let explain = attack.explain();
    let Attack { id, name, title, kind, source, .. } = attack;
    let super::attack::Kind::Scan(scans) = kind else { return Ok(None) };
    let check = match scans.is_empty() {
        true => Check::Function(
            function(&name).ok_or("`scan = []` needs a lint function with the attack's name")?,
        ),
        false => Check::Scan(scans),
    };
    Ok(Some(Rule {
        id: name,
        severity: Severity::Warning,
        own: Own::Warning,
        opt_in: false,
        hint: format!("this makes attack {id} possible; remove it from the task"),
        message: title,
        explain,
        source,
        attack: Some(id),
        check,
    }))
}

fn function(id: &str) -> Option<Function> {
    FUNCTIONS.iter().find(|(name, _)| *name == id).map(|(_, function)| *function)
}

impl Rule {
    /// The severity in a task. `None` if the rule runs only when it is selected.
    pub(super) fn weight(&self, made_by_us: bool) -> Option<Severity> {
        match (made_by_us, self.own) {
            (false, _) => (!self.opt_in).then_some(self.severity),
            (true, Own::Error) => Some(Severity::Error),
            (true, Own::Warning) => Some(Severity::Warning),
            (true, Own::Note) => Some(Severity::Note),
            (true, Own::Off) => None,
        }
    }

    /// The places where a task violates the rule.
    pub(super) fn matches(&self, task: &LintedTask<'_>) -> Vec<RuleMatch> {
        let mut matches = self.all_matches(task);
        matches.retain(|found| task.builds(&found.file));
        matches
    }

    fn all_matches(&self, task: &LintedTask<'_>) -> Vec<RuleMatch> {
        match &self.check {
            Check::Function(function) => function(task),
            Check::Pattern(pattern) => pattern
                .locations(task.files)
                .into_iter()
                .map(|(file, line)| RuleMatch { file, line, message: self.message.clone() })
                .collect(),
            Check::Scan(scans) => {
                let matches = scans.iter().flat_map(|scan| {
                    let files = task.files.iter().filter(|(path, _)| scan.files.is_match(path.as_str()));
                    files.flat_map(|(path, file)| {
                        let text = file.as_text().unwrap_or_default();
                        let found = scan.pattern.find_iter(text).take(super::pattern::MOST_IN_ONE_FILE);
                        found.map(|found| {
                            RuleMatch::at(path.as_str(), line_of(text, found.start()), &scan.message)
                        })
                    })
                });
                matches.collect()
            }
        }
    }
}
