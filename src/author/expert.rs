//! `expert.toml`: the script of the scripted expert.
//!
//! Its strings can use only what a solver can see: the public parameters and the task's own axes. Values from the fixtures
//! are filled in at rollout time, as `@{name}`, from the output of a command.

use std::collections::BTreeMap;

use minijinja::value::Value;
use serde::Deserialize;

use super::AuthorError;
use super::render::Renderer;
use crate::model::{ExpertScript, Failure, FailureMode, ScriptStep, Slip};

const FILE: &str = "expert.toml";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Declared {
    done: Vec<String>,
    step: Vec<DeclaredStep>,
    slip: Vec<DeclaredSlip>,
    failure: Vec<DeclaredFailure>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DeclaredStep {
    id: String,
    say: Vec<String>,
    run: String,
    #[serde(default)]
    capture: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DeclaredSlip {
    before: String,
    say: String,
    run: String,
    fix: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DeclaredFailure {
    mode: FailureMode,
    replaces: String,
    say: String,
    run: String,
}

/// Reads and renders the expert of a recipe. `public` holds `p` (public parameters only) and `task`.
pub(super) fn expert(renderer: &Renderer<'_>, public: &Value) -> Result<ExpertScript, AuthorError> {
    let recipe = renderer.recipe;
    let source = renderer.files.text(FILE).ok_or_else(|| AuthorError::MissingFile {
        recipe: recipe.to_owned(),
        file: FILE.to_owned(),
        hint: "it scripts the offline expert; `termsmith new recipe` shows its form",
    })?;
    let malformed = |message: String| AuthorError::Malformed {
        recipe: recipe.to_owned(),
        file: FILE.to_owned(),
        message,
    };
    let declared: Declared = toml::from_str(source).map_err(|error| malformed(error.to_string()))?;
    let render = |place: String, text: &str| {
        renderer.text(&format!("{FILE}:{place}"), text, public).map(|text| text.trim_end().to_owned())
    };
    let all = |place: &str, texts: &[String]| {
        texts.iter().map(|text| render(place.to_owned(), text)).collect::<Result<Vec<_>, _>>()
    };
    let mut script = ExpertScript { done: all("done", &declared.done)?, ..ExpertScript::default() };
    for step in declared.step {
        for (name, pattern) in &step.capture {
            let found = regex::Regex::new(pattern).map_err(|error| malformed(error.to_string()))?;
            if found.captures_len() != 2 {
                return Err(malformed(format!(
                    "capture `{name}` of step `{}` needs exactly one group",
                    step.id
                )));
            }
        }
        script.steps.push(ScriptStep {
            say: all(&step.id, &step.say)?,
            run: render(format!("{}.run", step.id), &step.run)?,
            capture: step.capture,
            id: step.id,
        });
    }
    for slip in declared.slip {
        let place = format!("slip before {}", slip.before);
        script.slips.push(Slip {
            say: render(place.clone(), &slip.say)?,
            run: render(place.clone(), &slip.run)?,
            fix: render(place, &slip.fix)?,
            before: slip.before,
        });
    }
    for failure in declared.failure {
        let place = format!("failure of {}", failure.replaces);
        script.failures.push(Failure {
            mode: failure.mode,
            say: render(place.clone(), &failure.say)?,
            run: render(place, &failure.run)?,
            replaces: failure.replaces,
        });
    }
    check(&script).map_err(malformed)?;
    Ok(script)
}

/// Conditions that an expert script must meet to be usable.
fn check(script: &ExpertScript) -> Result<(), String> {
    let has_step = |id: &str| script.steps.iter().any(|step| step.id == id);
    if script.steps.is_empty()
        || script.done.is_empty()
        || script.steps.iter().any(|step| step.say.is_empty())
    {
        return Err("it needs steps, something to say in each, and something to say when done".to_owned());
    }
    for (id, what) in script
        .slips
        .iter()
        .map(|slip| (&slip.before, "a slip is placed before"))
        .chain(script.failures.iter().map(|failure| (&failure.replaces, "a failure replaces")))
    {
        if !has_step(id) {
            return Err(format!("{what} step `{id}`, which does not exist"));
        }
    }
    for failure in &script.failures {
        if !matches!(failure.mode, FailureMode::WrongValue | FailureMode::MissedRequirement) {
            return Err(format!(
                "failure of `{}`: only wrong_value and missed_requirement are declared; the others are derived from slips",
                failure.replaces
            ));
        }
    }
    if script.slips.is_empty() {
        return Err("it needs at least one slip: an expert that never errs teaches no recovery".to_owned());
    }
    if script.failures.is_empty() {
        return Err("it needs at least one failure".to_owned());
    }
    Ok(())
}
