//! Sets up model endpoints from the command line: settings, caps, recordings. Prints the summary of
//! calls.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::args_rollout::ModelArgs;
use super::exit::Status;
use super::failure::Failure;
use super::paths::{self, Expected};
use super::{logging, say};
use crate::llm::{
    Budget, Cassette, EndpointSettings, ModelRole, Models, Options, Recorder, RoleSettings, Sampling,
    Settings,
};
use crate::store::Store;

/// Default token limit of an agent's reply. It holds a few commands.
const REPLY_TOKENS: u32 = 4_096;
/// Default token limit of a reply that writes a part of a task. A reply with tests or violations
/// has 9,800 tokens on average (`templates/prompts/author-checks/usual.toml`).
const AUTHOR_REPLY_TOKENS: u32 = 16_384;
/// Name of the endpoint that `--base-url` makes.
const ENDPOINT: &str = "base-url";
/// The settings file that is read if it exists and no other is named.
const SETTINGS: &str = "termsmith.toml";

/// The models that a command may call. Calls are committed in `store`. For `role` see [`settings`].
pub(super) fn models(
    args: &ModelArgs,
    role: Option<ModelRole>,
    store: &Store,
    drain: &CancellationToken,
) -> Result<Models, Failure> {
    if let Some(recording) = &args.cassette {
        paths::check(recording, Expected::Recording)?;
    }
    if let Some(recording) = &args.record {
        paths::check_output_file(recording, "--record")?;
    }
    let cassette = args.cassette.as_deref().map(Cassette::open).transpose();
    let cassette = cassette.map_err(|error| Failure::new(Status::BadInput, error))?;
    let recorder = args.record.as_deref().map(Recorder::open).transpose();
    let recorder = recorder.map_err(|error| Failure::new(Status::Io, error))?;
    let budget = Budget {
        max_usd: args.max_usd,
        max_tokens: args.max_tokens,
        max_wall: args.max_wall.map(Duration::from_secs),
    };
    let options = Options {
        budget,
        cassette,
        recorder: recorder.map(Arc::new),
        drain: drain.clone(),
        ..Options::default()
    };
    // The settings name the environment variables that hold keys. They are read here, since only
    // `cli` reads the environment.
    let env = |name: &str| std::env::var(name).ok().inspect(|key| logging::hide(key));
    let settings = settings(args, role)?.ok_or_else(|| {
        Failure::usage(format!(
            "no model is given: there is no `{SETTINGS}`\nhint: name a server with --base-url and --model, or write a settings file \
             (`termsmith schema settings` describes it):\n\n{EXAMPLE}"
        ))
    })?;
    Ok(Models::new(settings, env, store, options)?)
}

/// Endpoints and roles. `None` if neither the command line nor a file names any. `role` is the role
/// whose model `--model` replaces if there is no --base-url. It is `None` if the command calls
/// several roles.
pub(super) fn settings(args: &ModelArgs, role: Option<ModelRole>) -> Result<Option<Settings>, Failure> {
    if let (Some(base_url), Some(model)) = (&args.base_url, &args.model) {
        return from_flags(base_url, model, args).map(Some);
    }
    let path = args.settings.as_deref().unwrap_or(Path::new(SETTINGS));
    if args.settings.is_none() && !path.exists() {
        return Ok(None);
    }
    paths::check(path, Expected::Settings)?;
    let mut settings = Settings::load(path).map_err(|error| Failure::new(Status::BadInput, error))?;
    if let Some(model) = &args.model {
        let role = role.ok_or_else(|| {
            Failure::usage(format!(
                "--model names the model of one role, and this command calls several\nhint: name their models in `{}`, or a server for \
                 all of them with --base-url",
                path.display()
            ))
        })?;
        // A missing role is reported when it is called.
        if let Some(settings) = settings.roles.get_mut(&role) {
            settings.model.clone_from(model);
        }
    }
    Ok(Some(settings))
}

/// Refuses options of models if no model is called. `option` is the option with which one would be
/// called.
pub(super) fn check_called(args: &ModelArgs, is_called: bool, option: &str) -> Result<(), Failure> {
    if is_called || args.model.is_none() {
        return Ok(());
    }
    Err(Failure::usage(format!("--model is given, and no model is called\nhint: {option} calls one")))
}

const EXAMPLE: &str = "\
version = 1

[endpoints.mine]
base_url = \"https://models.example/v1\"
api_key_env = \"MY_KEY\"

[roles.expert]
endpoint = \"mine\"
model = \"some-model\"
max_tokens = 4096
";

fn from_flags(base_url: &str, model: &str, args: &ModelArgs) -> Result<Settings, Failure> {
    if !["http://", "https://"].iter().any(|scheme| base_url.starts_with(scheme)) {
        return Err(Failure::usage(format!(
            "--base-url: `{base_url}` is not a URL\nhint: write the scheme, and usually /v1 at the end: http://127.0.0.1:8000/v1"
        )));
    }
    let mut endpoint = toml::Table::new();
    endpoint.insert("base_url".to_owned(), base_url.into());
    if let Some(variable) = &args.api_key_env {
        endpoint.insert("api_key_env".to_owned(), variable.as_str().into());
    }
    let endpoint: EndpointSettings = endpoint.try_into().map_err(Failure::usage)?;
    let role = |name: ModelRole| RoleSettings {
        endpoint: ENDPOINT.to_owned(),
        model: model.to_owned(),
        temperature: None,
        top_p: None,
        max_tokens: args.reply_tokens.unwrap_or(match name {
            ModelRole::Author | ModelRole::Adversary => AUTHOR_REPLY_TOKENS,
            ModelRole::Expert
            | ModelRole::Judge
            | ModelRole::Planner
            | ModelRole::Mentor
            | ModelRole::Sampler
            | ModelRole::Solver
            | ModelRole::Weak => REPLY_TOKENS,
        }),
        max_tokens_limit: None,
        seed: None,
        usd_per_1m_input_tokens: None,
        usd_per_1m_output_tokens: None,
        sampling: Sampling::default(),
        extra: serde_json::Map::new(),
    };
    let roles = [
        ModelRole::Expert,
        ModelRole::Judge,
        ModelRole::Planner,
        ModelRole::Mentor,
        ModelRole::Adversary,
        ModelRole::Sampler,
        ModelRole::Author,
        ModelRole::Solver,
    ];
    Ok(Settings {
        version: Settings::VERSION,
        endpoints: BTreeMap::from([(ENDPOINT.to_owned(), endpoint)]),
        roles: roles.into_iter().map(|name| (name, role(name))).collect(),
    })
}

/// Prints a summary of the calls.
pub(super) fn report(models: &Models) {
    let tally = models.tally();
    let mut text = format!(
        "models: {} replies ({} from the journal), {} requests, {} tokens",
        tally.replies, tally.committed, tally.sent, tally.spent.tokens
    );
    if tally.spent.usd() > 0.0 {
        text.push_str(&format!(", ${:.4}", tally.spent.usd()));
    }
    if tally.repeated > 0 {
        text.push_str(&format!(
            ", {} calls repeated because an earlier run ended while they were in flight",
            tally.repeated
        ));
    }
    say::note(text);
    if tally.keys_replaced > 0 {
        say::note(format!(
            "{} responses contained the endpoint's own key; it is stored as `[redacted]`",
            tally.keys_replaced
        ));
    }
    if tally.drifted > 0 {
        say::note(format!("{} requests differ from the recorded ones; the first:", tally.drifted));
        if let Some((site, drift)) = tally.drifts.first() {
            say::note(format!("{site}\n{drift}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::args::{Cli, Command};

    const FILE: &str = "\
version = 1
[endpoints.e]
base_url = \"http://127.0.0.1:9/v1\"
[roles.expert]
endpoint = \"e\"
model = \"acts\"
max_tokens = 64
[roles.judge]
endpoint = \"e\"
model = \"judges\"
max_tokens = 64
";

    /// The models of the roles `expert` and `judge`.
    type Found = Option<(&'static str, &'static str)>;

    #[test]
    fn a_named_model_is_that_of_the_role_that_is_called() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("settings.toml");
        std::fs::write(&file, FILE).unwrap();
        let check = |typed: &[&str], role: Option<ModelRole>, expect: Result<Found, &str>| {
            let file = file.to_str().unwrap();
            let typed = typed.iter().map(|word| if *word == "FILE" { file } else { word });
            let cli = Cli::try_parse_from(["termsmith", "judge"].into_iter().chain(typed)).unwrap();
            let Command::Judge(args) = cli.command else { panic!("another command") };
            match (settings(&args.model, role), expect) {
                (Ok(settings), Ok(expect)) => {
                    let model = |role| settings.as_ref()?.roles.get(&role).map(|role| role.model.as_str());
                    let found = model(ModelRole::Expert).zip(model(ModelRole::Judge));
                    assert_eq!(found, expect, "{args:?}");
                }
                (Err(failure), Err(part)) => {
                    assert!(failure.error.to_string().contains(part), "{}", failure.error);
                }
                (found, _) => panic!("{args:?}: {}", found.is_ok()),
            }
        };
        let judge = Some(ModelRole::Judge);
        check(&[], judge, Ok(None));
        check(&["--settings", "FILE"], judge, Ok(Some(("acts", "judges"))));
        check(&["--settings", "FILE"], None, Ok(Some(("acts", "judges"))));
        check(&["--settings", "FILE", "--model", "m"], judge, Ok(Some(("acts", "m"))));
        check(&["--settings", "FILE", "--model", "m"], Some(ModelRole::Expert), Ok(Some(("m", "judges"))));
        // This role has no model in the settings.
        check(&["--settings", "FILE", "--model", "m"], Some(ModelRole::Solver), Ok(Some(("acts", "judges"))));
        check(&["--settings", "FILE", "--model", "m"], None, Err("this command calls several"));
        check(&["--base-url", "http://h/v1", "--model", "m"], None, Ok(Some(("m", "m"))));
        check(&["--settings", "none.toml"], judge, Err("`none.toml` does not exist"));
    }
}
