//! Reads `termsmith.toml`, and reports all problems at once, each with its line.

use std::path::Path;

use super::ModelRole;
use super::settings::{EndpointSettings, RoleSettings, SYSTEM_PLACE, Sampling, Settings};
use crate::domain::{Problem, Source, Step, at, suggest};
use crate::folder::{LARGEST_TEXT, read_named_by_user};

/// Keys that `extra` may not set: the client or the budget relies on them. Each has its hint.
const RESERVED: &[(&str, &str)] = &[
    ("model", "set `model` of the role"),
    ("messages", "messages come from the run"),
    ("prompt", "prompts come from the run"),
    ("tools", "tools come from the scaffold"),
    ("response_format", "set `json` of the endpoint"),
    ("stream", "streamed replies are not supported"),
    ("n", "the budget assumes one reply per call; samples are calls of their own"),
    ("best_of", "the budget assumes one reply per call"),
    ("max_tokens", "set `max_tokens` of the role"),
    ("max_completion_tokens", "set `max_tokens` of the role, and `max_tokens_key` of the endpoint"),
    ("temperature", "set `temperature` of the role"),
    ("top_p", "set `top_p` of the role"),
    ("seed", "set `seed` of the role"),
    ("stop", "stop sequences come from the scaffold"),
];
/// The chat template of many models (ChatML).
const TEMPLATE_HINT: &str =
    "such as \"<|im_start|>system\\n{system}<|im_end|>\\n<|im_start|>user\\n\", with stop = [\"<|im_end|>\"]";
/// With higher temperatures, servers refuse the request or models produce noise.
const MAX_TEMPERATURE: f64 = 2.0;
/// No process needs more connections to a server.
const MAX_CONCURRENCY: u32 = 4096;
/// A day: no reply takes longer.
const MAX_TIMEOUT_SEC: f64 = 86_400.0;
/// The TOML crate has this key in place of a date in a free table.
const TOML_DATE: &str = "$__toml_private_datetime";

/// Invalid settings, with at least one problem.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct SettingsError {
    pub problems: Vec<Problem>,
}

impl Settings {
    /// Reads the settings in `path`.
    pub fn load(path: &Path) -> Result<Self, SettingsError> {
        let file = path.display().to_string();
        let text = read_named_by_user(path, LARGEST_TEXT).map_err(|error| error.to_string());
        let text = text.and_then(|bytes| String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned()));
        let text = text.map_err(|message| {
            let problem = Problem { file: file.clone(), at: None, message, hint: None };
            let hint = "model endpoints and roles are declared there; see `termsmith schema`";
            SettingsError { problems: vec![problem.hint(hint)] }
        })?;
        Self::parse(&file, &text)
    }

    /// Reads the settings in `text`, the content of `file`.
    pub fn parse(file: &str, text: &str) -> Result<Self, SettingsError> {
        let fatal = |problem| SettingsError { problems: vec![problem] };
        let source = Source::parse(file, text).map_err(fatal)?;
        if let Some(version) = source.integer("version")
            && version != i64::from(Self::VERSION)
        {
            let message = format!("version {version} of the format is unknown to this build");
            let hint = format!("it reads version {}", Self::VERSION);
            return Err(fatal(source.problem(at!["version"], message).hint(hint)));
        }
        let settings: Self = source.read().map_err(fatal)?;
        let mut problems = Vec::new();
        for (name, endpoint) in &settings.endpoints {
            let at = ["endpoints".into(), name.into()];
            problems.extend(check_endpoint(&TableAt { source: &source, at }, name, endpoint));
        }
        for (role, decl) in &settings.roles {
            let at = ["roles".into(), role.as_str().into()];
            problems.extend(check_role(&TableAt { source: &source, at }, *role, decl, &settings));
        }
        if problems.is_empty() { Ok(settings) } else { Err(SettingsError { problems }) }
    }
}

/// A table of the file.
struct TableAt<'a> {
    source: &'a Source<'a>,
    at: [Step<'a>; 2],
}

impl TableAt<'_> {
    fn problem(&self, below: &[Step<'_>], message: impl Into<String>) -> Problem {
        let path: Vec<Step<'_>> = self.at.iter().chain(below).copied().collect();
        self.source.problem(&path, message)
    }
}

fn check_endpoint(table: &TableAt<'_>, name: &str, endpoint: &EndpointSettings) -> Vec<Problem> {
    let mut problems = Vec::new();
    let named = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if name.is_empty() || !name.bytes().all(named) {
        let problem = table.problem(&[], format!("`{name}` is not a valid endpoint name"));
        problems.push(problem.hint("letters, digits, `-` and `_`"));
    }
    if let Some(message) = base_url_problem(&endpoint.base_url) {
        let problem = table.problem(at!["base_url"], message);
        problems.push(problem.hint("such as \"https://api.example.com/v1\" or \"http://127.0.0.1:8000/v1\""));
    }
    if endpoint.api_key_env.as_ref().is_some_and(|variable| !is_variable(variable)) {
        // The value may be a key, so it is not quoted.
        let message = "`api_key_env` is not the name of an environment variable";
        let hint = "put the key into an environment variable and its name here: api_key_env = \"MY_API_KEY\"";
        problems.push(table.problem(at!["api_key_env"], message).hint(hint));
    }
    for (key, number) in [
        ("requests_per_minute", endpoint.requests_per_minute.map(u64::from)),
        ("tokens_per_minute", endpoint.tokens_per_minute),
        ("concurrency", Some(endpoint.concurrency.into())),
        ("max_context", endpoint.max_context),
    ] {
        if number == Some(0) {
            problems.push(table.problem(at![key], format!("`{key}` is 0")));
        }
    }
    if !(endpoint.timeout_sec > 0.0 && endpoint.timeout_sec <= MAX_TIMEOUT_SEC) {
        let message = format!("`timeout_sec` is not above 0 and at most {MAX_TIMEOUT_SEC}");
        problems.push(table.problem(at!["timeout_sec"], message));
    }
    if endpoint.concurrency > MAX_CONCURRENCY {
        let message = format!("{} concurrent requests are more than {MAX_CONCURRENCY}", endpoint.concurrency);
        problems.push(table.problem(at!["concurrency"], message));
    }
    problems.extend(check_prices(table, endpoint.usd_per_1m_input_tokens, endpoint.usd_per_1m_output_tokens));
    problems
}

fn check_role(
    table: &TableAt<'_>,
    role: ModelRole,
    decl: &RoleSettings,
    settings: &Settings,
) -> Vec<Problem> {
    let mut problems = Vec::new();
    if !settings.endpoints.contains_key(&decl.endpoint) {
        let hint = suggest(&decl.endpoint, settings.endpoints.keys().map(String::as_str));
        let message = format!("role `{role}` names endpoint `{}`, which is not declared", decl.endpoint);
        problems.push(table.problem(at!["endpoint"], message).hint(hint));
    }
    if decl.model.trim().is_empty() {
        problems.push(table.problem(at!["model"], "`model` is empty"));
    }
    if decl.max_tokens == 0 {
        problems.push(table.problem(at!["max_tokens"], "`max_tokens` is 0"));
    }
    if decl.max_tokens_limit.is_some_and(|limit| limit < decl.max_tokens) {
        let message = "`max_tokens_limit` is less than `max_tokens`";
        problems.push(table.problem(at!["max_tokens_limit"], message));
    }
    if decl.temperature.is_some_and(|value| !(0.0..=MAX_TEMPERATURE).contains(&value)) {
        problems.push(table.problem(at!["temperature"], "`temperature` is not between 0 and 2"));
    }
    if decl.top_p.is_some_and(|value| !(value > 0.0 && value <= 1.0)) {
        problems.push(table.problem(at!["top_p"], "`top_p` is not above 0 and at most 1"));
    }
    match &decl.sampling {
        Sampling::Prefill { .. } | Sampling::Prefix { .. } if role != ModelRole::Sampler => {
            let problem = table.problem(at!["sampling"], format!("the role `{role}` writes no requests"));
            problems.push(problem.hint("`sampling` is for the role `sampler`"));
        }
        Sampling::Prefix { template, .. } if !template.contains(SYSTEM_PLACE) => {
            let message = format!("`template` lacks `{SYSTEM_PLACE}`, the place of the system prompt");
            let problem = table.problem(at!["sampling", "template"], message);
            problems.push(problem.hint(TEMPLATE_HINT));
        }
        Sampling::Prefill { begin } if begin.trim().is_empty() => {
            problems.push(table.problem(at!["sampling", "begin"], "`begin` is empty"));
        }
        Sampling::Chat | Sampling::Prefill { .. } | Sampling::Prefix { .. } => {}
    }
    for (key, hint) in RESERVED {
        if decl.extra.contains_key(*key) {
            let problem = table.problem(at!["extra", *key], format!("`{key}` is not allowed in `extra`"));
            problems.push(problem.hint(*hint));
        }
    }
    for (key, value) in &decl.extra {
        if value.get(TOML_DATE).is_some() {
            let problem =
                table.problem(at!["extra", key], format!("`{key}` is a date, which JSON does not have"));
            problems.push(problem.hint("write it as a string"));
        }
    }
    problems.extend(check_prices(table, decl.usd_per_1m_input_tokens, decl.usd_per_1m_output_tokens));
    problems
}

fn check_prices(table: &TableAt<'_>, input: Option<f64>, output: Option<f64>) -> Vec<Problem> {
    let (keys, mut problems) = (["usd_per_1m_input_tokens", "usd_per_1m_output_tokens"], Vec::new());
    for (key, price) in keys.into_iter().zip([input, output]) {
        if price.is_some_and(|price| !(price.is_finite() && price >= 0.0)) {
            problems.push(table.problem(at![key], format!("`{key}` is not a number of at least 0")));
        }
    }
    match (input, output) {
        (Some(_), None) => problems.push(table.problem(at![keys[0]], format!("`{}` is missing", keys[1]))),
        (None, Some(_)) => problems.push(table.problem(at![keys[1]], format!("`{}` is missing", keys[0]))),
        _ => {}
    }
    problems
}

/// The problem of a base URL. The URL is not quoted: it may have a password.
fn base_url_problem(text: &str) -> Option<String> {
    let url = match reqwest::Url::parse(text) {
        Ok(url) => url,
        Err(error) => return Some(format!("`base_url` is not a URL: {error}")),
    };
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
        return Some("`base_url` is not an http or https address".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Some("`base_url` holds a user name or password".to_owned());
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Some("`base_url` has a query or fragment".to_owned());
    }
    url.path()
        .trim_end_matches('/')
        .ends_with("/chat/completions")
        .then(|| "`base_url` ends in `/chat/completions`, which is appended to it".to_owned())
}

fn is_variable(name: &str) -> bool {
    let rest = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    !name.is_empty() && !name.starts_with(|first: char| first.is_ascii_digit()) && name.bytes().all(rest)
}
