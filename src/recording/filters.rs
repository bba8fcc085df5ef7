//! Filters: recordings that must not become tasks. They are data:
//! `templates/recordings/filters.toml`.

use regex::Regex;
use serde::Deserialize;

use super::Recording;
use crate::assets::Assets;

const FILE: &str = "templates/recordings/filters.toml";
const VERSION: u32 = 1;

/// All filters.
#[derive(Clone, Debug)]
pub struct Filters {
    min_commands: usize,
    looking: Vec<String>,
    filters: Vec<Filter>,
}

#[derive(Clone, Debug)]
struct Filter {
    id: String,
    on: Place,
    pattern: Regex,
    allow: Option<Regex>,
    reason: String,
}

/// Why a recording becomes no task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The filter's id.
    pub id: String,
    pub reason: String,
}

/// The file of filters cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("`{FILE}`: {0}\nhint: an overriding templates folder must be complete")]
pub struct FilterError(String);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Declared {
    version: u32,
    min_commands: usize,
    looking: Vec<String>,
    filter: Vec<DeclaredFilter>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DeclaredFilter {
    id: String,
    on: Place,
    pattern: String,
    /// A match does not count if this pattern matches in it.
    #[serde(default)]
    allow: Option<String>,
    reason: String,
}

/// Where a pattern is searched for.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Place {
    /// The output, with its control sequences.
    Output,
    /// The text on the terminal.
    Transcript,
    /// Each line of a command.
    Command,
}

impl Filters {
    /// Reads the filters of `assets`.
    pub fn load(assets: &Assets) -> Result<Self, FilterError> {
        let text = assets.text(FILE).ok_or_else(|| FilterError("it is missing".to_owned()))?;
        let declared: Declared = toml::from_str(text).map_err(|error| FilterError(error.to_string()))?;
        if declared.version != VERSION {
            return Err(FilterError(format!("version {} is unknown to this build", declared.version)));
        }
        let regex = |id: &str, pattern: &str| {
            Regex::new(pattern).map_err(|error| FilterError(format!("filter `{id}`: {error}")))
        };
        let filters = declared.filter.into_iter().map(|filter| {
            Ok(Filter {
                pattern: regex(&filter.id, &filter.pattern)?,
                allow: filter.allow.as_deref().map(|pattern| regex(&filter.id, pattern)).transpose()?,
                id: filter.id,
                on: filter.on,
                reason: filter.reason,
            })
        });
        let filters = filters.collect::<Result<_, _>>()?;
        Ok(Self { min_commands: declared.min_commands, looking: declared.looking, filters })
    }

    /// Why `recording` becomes no task. `None` if it may become one.
    pub fn refusal(&self, recording: &Recording) -> Option<Refusal> {
        let found = self.filters.iter().find_map(|filter| Some((filter, filter.finds(recording)?)));
        if let Some((filter, words)) = found {
            let reason = match filter.on {
                // The match may be a secret, so it is not quoted.
                Place::Transcript | Place::Output => filter.reason.clone(),
                Place::Command => format!("{}: `{words}`", filter.reason),
            };
            return Some(Refusal { id: filter.id.clone(), reason });
        }
        let working = recording.commands.iter().filter(|command| !self.only_looks(command)).count();
        (working < self.min_commands).then(|| Refusal {
            id: "trivial".to_owned(),
            reason: format!(
                "{working} of its commands do more than look around, and a task needs {}",
                self.min_commands
            ),
        })
    }

    /// Whether a command changes nothing, e.g. `ls`.
    fn only_looks(&self, command: &str) -> bool {
        let changes = command.contains(['>', '|', ';', '&']);
        let program = command.split_whitespace().next().unwrap_or_default();
        !changes && self.looking.iter().any(|looking| looking == program)
    }
}

impl Filter {
    /// The first match that counts.
    fn finds(&self, recording: &Recording) -> Option<String> {
        let within = |text: &str| {
            let mut found = self.pattern.find_iter(text).map(|found| found.as_str());
            found
                .find(|words| !self.allow.as_ref().is_some_and(|allow| allow.is_match(words)))
                .map(str::to_owned)
        };
        match self.on {
            Place::Output => within(&recording.output),
            Place::Transcript => within(&recording.transcript),
            Place::Command => recording
                .commands
                .iter()
                .flat_map(|command| command.lines())
                // A line within a loop counts too.
                .find(|line| within(line.trim_start()).is_some())
                .map(str::to_owned),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recording(output: &str, commands: &[&str]) -> Recording {
        Recording {
            name: String::new(),
            digest: String::new(),
            title: String::new(),
            transcript: output.to_owned(),
            commands: commands.iter().map(|command| (*command).to_owned()).collect(),
            output: output.to_owned(),
        }
    }

    #[test]
    fn recordings_are_refused_with_a_reason() {
        let filters = Filters::load(&Assets::embedded()).unwrap();
        let work = ["make", "./run x > y", "sort -u a -o b"];
        let check = |output: &str, more: &str, expect: Option<&str>| {
            let commands: Vec<_> = work.iter().copied().chain([more]).collect();
            let refusal = filters.refusal(&recording(output, &commands));
            assert_eq!(
                refusal.as_ref().map(|refusal| refusal.id.as_str()),
                expect,
                "{output} {more}: {refusal:?}"
            );
        };
        check("all is well", "ls", None);
        check("\u{1b}[?1049h", "ls", Some("full-screen"));
        check("", "vim notes.txt", Some("full-screen-program"));
        check("", "sudo apt-get install -y jq", Some("packages"));
        check("", "pip install flask", Some("packages"));
        check("", "curl -s https://example.org/x", Some("network"));
        check("", "curl -s http://127.0.0.1:8080/x", None);
        check("", "git clone git@github.com:a/b", Some("network"));
        check("", "git log --oneline", None);
        check("", "for h in a b; do\n  ssh $h\ndone", Some("network"));
        check("", "ssh prod", Some("network"));
        check("", "systemctl restart nginx", Some("hardware"));
        check("mail jane.doe@corp.com", "ls", Some("e-mail"));
        check("Author: dev <dev@example.org>", "ls", None);
        check("token=abcdefgh12345678", "ls", Some("secret"));
        check("[sudo] password for me: \nok", "ls", Some("password-prompt"));
        check("from 8.8.8.8", "ls", Some("public-address"));
        check("from 10.0.0.1 and 192.168.1.7 and 203.0.113.9", "ls", None);
        check("version 1.2.3", "ls", None);
        let refusal = |commands: &[&str]| filters.refusal(&recording("", commands)).map(|refusal| refusal.id);
        assert_eq!(refusal(&["ls", "cd x", "cat y", "make"]), Some("trivial".to_owned()));
        assert_eq!(refusal(&["cat a > b", "make", "sed -i s/a/b/ c"]), None);
    }
}
