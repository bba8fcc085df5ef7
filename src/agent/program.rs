//! Agent programs with a loop of their own: how they are started, and what their requests look
//! like.

use std::collections::BTreeMap;

use minijinja::{AutoEscape, Environment, UndefinedBehavior, Value};
use serde::{Deserialize, Serialize};

use super::installed::FewShot;
use crate::sandbox::{LAYER_PATH, LayerId};
use crate::syntax::shell_word;

/// Folder of files that belong to the agent, e.g. its settings. No task judges it.
pub(super) const HOME: &str = "/run/agent";
/// Path of the task's instruction.
pub(super) const INSTRUCTION_FILE: &str = "/run/agent/instruction.md";

/// A program in the sandbox that runs its own loop.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Program {
    /// The name in records, e.g. `claude-code`.
    pub name: String,
    pub start: Start,
    /// Version and files of an agent that `termsmith agent add` installed.
    pub installed: Option<InstalledLayer>,
    pub dialect: Dialect,
    pub threads: Option<ThreadHeaders>,
    pub few_shot: FewShot,
}

/// How a program is started.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum Start {
    /// A command line for bash. Variables tell it everything, e.g. `$INSTRUCTION_FILE`.
    Shell(String),
    Manifest(Invocation),
}

/// A start as a manifest declares it. Texts may hold placeholders, e.g. `{model}`
/// ([`PLACEHOLDERS`]).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Invocation {
    pub argv: Vec<String>,
    /// Variables of the agent. All others are those of the image.
    pub env: BTreeMap<String, String>,
    /// Folders that exist when the agent starts.
    pub folders: Vec<String>,
    pub files: Vec<AgentFile>,
    /// Prints the version, or fails where the agent cannot run.
    pub check: Vec<String>,
}

/// A file that is written before the agent starts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AgentFile {
    pub path: String,
    /// A minijinja template.
    pub template: String,
}

/// Version and files of an installed agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InstalledLayer {
    pub version: String,
    pub layer: LayerId,
}

/// The API that an agent speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// OpenAI's chat completions.
    #[default]
    Chat,
    /// OpenAI's Responses.
    Responses,
    /// Anthropic's Messages.
    Messages,
    /// Gemini's generateContent.
    Gemini,
}

impl Dialect {
    /// The id in manifests.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Responses => "responses",
            Self::Messages => "messages",
            Self::Gemini => "gemini",
        }
    }
}

/// Headers that name the conversation of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThreadHeaders {
    /// Its value names the conversation. A request without it is of the main one.
    pub thread: String,
    /// Only requests of sub-agents have this header, e.g. `x-parent-session-id`. It may be the same
    /// header as `thread`.
    #[serde(default)]
    pub subagent: Option<String>,
}

impl ThreadHeaders {
    /// What names the conversation of a request. `None` for the main one. `header` finds a header's
    /// value by its name.
    pub(super) fn key<'r>(&self, header: impl Fn(&str) -> Option<&'r str>) -> Option<String> {
        header(self.subagent.as_ref().unwrap_or(&self.thread))?;
        header(&self.thread).map(str::to_owned)
    }
}

/// What is known at the start of one episode.
#[derive(Clone, Copy, Debug)]
pub struct StartContext<'a> {
    pub instruction: &'a str,
    pub model: &'a str,
    /// The model's endpoint without a path, e.g. `http://127.0.0.1:8421`.
    pub origin: &'a str,
}

/// The start of one episode: what is written, and what is run then.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Launch {
    pub files: Vec<(String, String)>,
    /// For bash.
    pub command: String,
}

/// A template of the agent's files that cannot be rendered.
#[derive(Debug, thiserror::Error)]
#[error("the file `{path}` of the agent `{agent}` cannot be rendered: {source}")]
pub struct StartError {
    pub agent: String,
    pub path: String,
    #[source]
    source: minijinja::Error,
}

/// Placeholders in the texts of an [`Invocation`]: name, and meaning.
pub(super) const PLACEHOLDERS: [(&str, &str); 7] = [
    ("layer", "folder of the agent's own files; it is read-only"),
    ("home", "folder of files that the agent may write, e.g. its settings"),
    ("instruction", "the task's text"),
    ("instruction_file", "path of a file with the task's text"),
    ("model", "the model's name"),
    ("base_url", "the model's endpoint with `/v1`"),
    ("origin", "the model's endpoint without a path"),
];

impl Program {
    /// An agent that is started by one command line for bash.
    pub fn of_command(command: impl Into<String>) -> Self {
        Self {
            name: "command".to_owned(),
            start: Start::Shell(command.into()),
            installed: None,
            dialect: Dialect::Chat,
            threads: None,
            // Its requests can be anything.
            few_shot: FewShot::FirstRequest,
        }
    }

    /// The layer that a container of the agent needs.
    pub fn layer(&self) -> Option<&LayerId> {
        self.installed.as_ref().map(|installed| &installed.layer)
    }

    /// Hash of everything that says how the agent works.
    pub fn digest(&self) -> String {
        // Serialising these types cannot fail.
        let text = serde_json::to_vec(self).unwrap_or_default();
        blake3::hash(&text).to_hex().to_string()
    }

    /// The files and the command line of one episode.
    pub fn launch(&self, context: &StartContext<'_>) -> Result<Launch, StartError> {
        match &self.start {
            Start::Shell(command) => Ok(Launch { files: Vec::new(), command: exported(command, context) }),
            Start::Manifest(invocation) => Ok(Launch {
                files: self.files(invocation, context)?,
                command: started(invocation, &invocation.argv, context),
            }),
        }
    }

    /// The command line that shows whether the agent can run in an image. `None`: nobody knows.
    pub fn check(&self) -> Option<String> {
        let Start::Manifest(invocation) = &self.start else { return None };
        let context = StartContext { instruction: "", model: "none", origin: "http://127.0.0.1:9" };
        Some(started(invocation, &invocation.check, &context))
    }

    fn files(
        &self,
        invocation: &Invocation,
        context: &StartContext<'_>,
    ) -> Result<Vec<(String, String)>, StartError> {
        let mut values: BTreeMap<&str, Value> =
            PLACEHOLDERS.iter().map(|(name, _)| (*name, Value::from(value(name, context)))).collect();
        let names: Vec<String> = invocation.env.keys().cloned().collect();
        values.insert("env_names", Value::from(names));
        let rendered = invocation.files.iter().map(|file| {
            let failed = |source| StartError { agent: self.name.clone(), path: file.path.clone(), source };
            let mut env = Environment::new();
            env.set_undefined_behavior(UndefinedBehavior::Strict);
            env.set_auto_escape_callback(|_| AutoEscape::None);
            let text = env.render_named_str(&file.path, &file.template, &values).map_err(failed)?;
            Ok((filled(&file.path, context), text))
        });
        rendered.collect()
    }
}

/// The names in braces in `text`, e.g. `model` of `{model}`.
pub(super) fn placeholders(text: &str) -> impl Iterator<Item = &str> {
    text.split('{').skip(1).filter_map(|rest| {
        let (name, _) = rest.split_once('}')?;
        let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        is_name.then_some(name)
    })
}

/// `text` with its placeholders replaced. What replaces one is not read again.
fn filled(text: &str, context: &StartContext<'_>) -> String {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        filled.push_str(before);
        match after.split_once('}') {
            Some((name, next)) if PLACEHOLDERS.iter().any(|(known, _)| *known == name) => {
                filled.push_str(&value(name, context));
                rest = next;
            }
            _ => {
                filled.push('{');
                rest = after;
            }
        }
    }
    filled + rest
}

/// The text of a placeholder. Empty for an unknown one, which no manifest has.
fn value(name: &str, context: &StartContext<'_>) -> String {
    match name {
        "layer" => LAYER_PATH.to_owned(),
        "home" => HOME.to_owned(),
        "instruction" => context.instruction.to_owned(),
        "instruction_file" => INSTRUCTION_FILE.to_owned(),
        "model" => context.model.to_owned(),
        "base_url" => format!("{}/v1", context.origin),
        "origin" => context.origin.to_owned(),
        _ => String::new(),
    }
}

/// A user's own command, after the variables that OpenAI's clients read.
fn exported(command: &str, context: &StartContext<'_>) -> String {
    let (model, origin) = (shell_word(context.model), context.origin);
    format!(
        "export INSTRUCTION_FILE={INSTRUCTION_FILE} MODEL={model} OPENAI_API_KEY=none \
         OPENAI_BASE_URL={origin}/v1 OPENAI_API_BASE={origin}/v1\n{command}"
    )
}

/// A command line that starts `argv`. The shell itself gets none of the variables.
fn started(invocation: &Invocation, argv: &[String], context: &StartContext<'_>) -> String {
    let mut command = String::new();
    if !invocation.folders.is_empty() {
        command.push_str("mkdir -p");
        for folder in &invocation.folders {
            command.push(' ');
            command.push_str(&shell_word(&filled(folder, context)));
        }
        command.push_str(" && ");
    }
    command.push_str("env");
    for (name, text) in &invocation.env {
        command.push(' ');
        command.push_str(&shell_word(&format!("{name}={}", filled(text, context))));
    }
    for word in argv {
        command.push(' ');
        command.push_str(&shell_word(&filled(word, context)));
    }
    command.push_str(" < /dev/null");
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTEXT: StartContext<'_> =
        StartContext { instruction: "Don't {model}", model: "org/m", origin: "http://127.0.0.1:8421" };

    #[test]
    fn placeholders_are_filled_once() {
        let check = |text: &str, names: &[&str], expect: &str| {
            assert_eq!(placeholders(text).collect::<Vec<_>>(), names, "{text}");
            assert_eq!(filled(text, &CONTEXT), expect, "{text}");
        };
        check("--yolo", &[], "--yolo");
        check("p/{model}", &["model"], "p/org/m");
        check("{base_url}{origin}", &["base_url", "origin"], "http://127.0.0.1:8421/v1http://127.0.0.1:8421");
        // The instruction has braces of its own.
        check("{instruction}", &["instruction"], "Don't {model}");
        check("{\"a\": {}}", &[], "{\"a\": {}}");
        check("{unknown}", &["unknown"], "{unknown}");
        check("{", &[], "{");
    }

    #[test]
    fn conversations_are_named_by_headers() {
        let check = |subagent: Option<&str>, sent: &[(&str, &str)], expect: Option<&str>| {
            let headers = ThreadHeaders { thread: "x-id".to_owned(), subagent: subagent.map(str::to_owned) };
            let header = |name: &str| sent.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
            assert_eq!(headers.key(header).as_deref(), expect, "{subagent:?} {sent:?}");
        };
        check(None, &[], None);
        check(None, &[("x-id", "7")], Some("7"));
        // The main conversation has an id too, as opencode's has.
        check(Some("x-parent"), &[("x-id", "7")], None);
        check(Some("x-parent"), &[("x-id", "8"), ("x-parent", "7")], Some("8"));
        check(Some("x-parent"), &[("x-parent", "7")], None);
    }

    #[test]
    fn agents_are_started_with_their_own_variables_only() {
        let invocation = Invocation {
            argv: ["{layer}/bin/x", "--task", "{instruction}"].map(str::to_owned).to_vec(),
            env: BTreeMap::from([("X_HOME".to_owned(), "{home}/x".to_owned())]),
            folders: vec!["{home}/x y".to_owned()],
            files: vec![AgentFile {
                path: "{home}/x.json".to_owned(),
                template: "{{ base_url }} {{ model }}{% for name in env_names %} {{ name }}{% endfor %}"
                    .to_owned(),
            }],
            check: ["{layer}/bin/x", "--version"].map(str::to_owned).to_vec(),
        };
        let program = Program { start: Start::Manifest(invocation), ..Program::of_command("never started") };
        let launch = program.launch(&CONTEXT).unwrap();
        assert_eq!(
            launch.command,
            "mkdir -p '/run/agent/x y' && env X_HOME=/run/agent/x /.termsmith/agent/bin/x --task \
             'Don'\\''t {model}' < /dev/null"
        );
        assert_eq!(
            launch.files,
            [("/run/agent/x.json".to_owned(), "http://127.0.0.1:8421/v1 org/m X_HOME".to_owned())]
        );
        assert_eq!(
            program.check().unwrap(),
            "mkdir -p '/run/agent/x y' && env X_HOME=/run/agent/x /.termsmith/agent/bin/x --version < /dev/null"
        );
        assert_eq!(Program::of_command("x").check(), None);
    }

    #[test]
    fn commands_of_users_get_the_variables_of_openais_clients() {
        let launch = Program::of_command("agent run").launch(&CONTEXT).unwrap();
        assert_eq!(launch.files, []);
        assert!(launch.command.contains("OPENAI_BASE_URL=http://127.0.0.1:8421/v1 "), "{}", launch.command);
        assert!(launch.command.ends_with("\nagent run"), "{}", launch.command);
    }
}
