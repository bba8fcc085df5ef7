//! Reads `expert.toml`, the script of the scripted expert.
//!
//! Its strings can use only what a solver can see: the public parameters and the task's own axes. A
//! value from a fixture is written as `@{name}`. At rollout time it is filled in from the output of
//! a command.

use std::collections::BTreeMap;

use minijinja::value::Value;
use regex::Regex;
use serde::Deserialize;

use super::AuthorError;
use super::expert_check::check;
use super::render::{Renderer, Texts};
use crate::model::{
    CommandEdit, ExpertScript, Fault, Mistake, MistakeKind, OwnCheck, ScriptStep, ScriptTurn, Slip,
};

const FILE: &str = "expert.toml";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Declared {
    strategies: Vec<String>,
    done: Vec<String>,
    step: Vec<DeclaredStep>,
    #[serde(default)]
    mistake: Vec<DeclaredMistake>,
    #[serde(default)]
    slip: Vec<DeclaredSlip>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DeclaredStep {
    id: String,
    #[serde(default)]
    strategies: Vec<String>,
    group: Option<String>,
    #[serde(default)]
    optional: bool,
    claim: Option<String>,
    way: Vec<DeclaredTurn>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DeclaredTurn {
    /// An expression. The turn is left out if it is false.
    when: Option<String>,
    say: Vec<String>,
    run: String,
    shows: Option<String>,
    #[serde(default)]
    capture: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DeclaredMistake {
    when: Option<String>,
    name: String,
    kind: MistakeKind,
    from: String,
    #[serde(default)]
    strategies: Vec<String>,
    step: String,
    #[serde(default)]
    edits: Vec<CommandEdit>,
    run: Option<String>,
    #[serde(default)]
    say: Vec<String>,
    shows: Option<String>,
    check: Option<DeclaredCheck>,
    #[serde(default)]
    look: Vec<DeclaredTurn>,
    repair: Option<DeclaredTurn>,
    #[serde(default)]
    wrong_repair: Vec<DeclaredTurn>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DeclaredCheck {
    after: String,
    say: Vec<String>,
    run: String,
    wrong: String,
    right: String,
    again: Vec<String>,
    misread: Vec<String>,
    claim: String,
    #[serde(default = "yes")]
    lasting: bool,
}

fn yes() -> bool {
    true
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DeclaredSlip {
    before: String,
    say: String,
    run: String,
    fix: String,
}

/// Reads and renders the expert of a recipe. `public` holds `p` (public parameters only) and
/// `task`.
pub(super) fn expert(renderer: &Renderer<'_>, public: &Value) -> Result<ExpertScript, AuthorError> {
    let recipe = renderer.recipe;
    let source = renderer.files.text(FILE).ok_or_else(|| AuthorError::MissingFile {
        recipe: recipe.to_owned(),
        file: FILE.to_owned(),
        hint: "it scripts the offline expert; `termsmith new recipe` shows its form",
    })?;
    let reader = Reader { recipe, texts: renderer.texts(FILE)?, public };
    let declared: Declared = toml::from_str(source).map_err(|error| reader.malformed(error.to_string()))?;
    let mut script = ExpertScript {
        done: reader.texts("done", &declared.done)?,
        strategies: declared.strategies,
        ..ExpertScript::default()
    };
    for step in declared.step {
        let place = format!("step {}", step.id);
        let ways = reader.turns(&place, step.way)?;
        // If no way's condition holds, the step is not part of this task.
        if ways.is_empty() {
            continue;
        }
        script.steps.push(ScriptStep {
            claim: step.claim.map(|claim| reader.text(&place, &claim)).transpose()?,
            id: step.id,
            strategies: step.strategies,
            group: step.group,
            optional: step.optional,
            ways,
        });
    }
    for mistake in declared.mistake {
        script.mistakes.extend(reader.mistake(mistake)?);
    }
    for slip in declared.slip {
        let place = format!("slip before {}", slip.before);
        script.slips.push(Slip {
            say: reader.text(&place, &slip.say)?,
            run: reader.text(&place, &slip.run)?,
            fix: reader.text(&place, &slip.fix)?,
            before: slip.before,
        });
    }
    check(&script).map_err(|message| reader.malformed(message))?;
    Ok(script)
}

/// Renders the parts of one script.
struct Reader<'a> {
    recipe: &'a str,
    texts: Texts<'a>,
    public: &'a Value,
}

impl Reader<'_> {
    fn malformed(&self, message: String) -> AuthorError {
        AuthorError::Malformed { recipe: self.recipe.to_owned(), file: FILE.to_owned(), message }
    }

    fn text(&self, place: &str, text: &str) -> Result<String, AuthorError> {
        let rendered = self.texts.text(&format!("{FILE}:{place}"), text, self.public)?;
        Ok(rendered.trim_matches('\n').trim_end().to_owned())
    }

    fn texts(&self, place: &str, texts: &[String]) -> Result<Vec<String>, AuthorError> {
        texts.iter().map(|text| self.text(place, text)).collect()
    }

    /// Whether the condition `when` holds. True if there is none.
    fn holds(&self, place: &str, when: Option<&str>) -> Result<bool, AuthorError> {
        let Some(when) = when else { return Ok(true) };
        Ok(!self.text(place, &format!("{{% if {when} %}}yes{{% endif %}}"))?.is_empty())
    }

    /// Renders a regular expression, and checks that it compiles. `groups` is the number of groups
    /// that it must have, if that matters.
    fn pattern(&self, place: &str, pattern: &str, groups: Option<usize>) -> Result<String, AuthorError> {
        let pattern = self.text(place, pattern)?;
        let compiled = Regex::new(&pattern).map_err(|error| self.malformed(format!("{place}: {error}")))?;
        match groups {
            Some(groups) if compiled.captures_len() != groups + 1 => {
                Err(self.malformed(format!("{place}: `{pattern}` needs exactly {groups} group(s)")))
            }
            Some(_) | None => Ok(pattern),
        }
    }

    fn turns(&self, place: &str, turns: Vec<DeclaredTurn>) -> Result<Vec<ScriptTurn>, AuthorError> {
        let turns = turns.into_iter().map(|turn| self.turn(place, turn));
        turns.filter_map(Result::transpose).collect()
    }

    /// Renders a turn. `None` if its condition does not hold.
    fn turn(&self, place: &str, turn: DeclaredTurn) -> Result<Option<ScriptTurn>, AuthorError> {
        if !self.holds(place, turn.when.as_deref())? {
            return Ok(None);
        }
        let mut capture = BTreeMap::new();
        for (name, pattern) in turn.capture {
            let pattern = self.pattern(&format!("{place}, capture `{name}`"), &pattern, Some(1))?;
            capture.insert(name, pattern);
        }
        Ok(Some(ScriptTurn {
            say: self.texts(place, &turn.say)?,
            run: self.text(place, &turn.run)?,
            shows: turn.shows.map(|pattern| self.pattern(place, &pattern, None)).transpose()?,
            capture,
        }))
    }

    fn mistake(&self, declared: DeclaredMistake) -> Result<Option<Mistake>, AuthorError> {
        let place = format!("mistake {}", declared.name);
        if !self.holds(&place, declared.when.as_deref())? {
            return Ok(None);
        }
        let fault = match (declared.run, declared.edits) {
            (Some(run), edits) if edits.is_empty() => Fault::Run(self.text(&place, &run)?),
            (None, edits) if !edits.is_empty() => {
                let edit = |edit: CommandEdit| {
                    Ok(CommandEdit { from: self.text(&place, &edit.from)?, to: self.text(&place, &edit.to)? })
                };
                Fault::Edits(edits.into_iter().map(edit).collect::<Result<_, AuthorError>>()?)
            }
            (Some(_) | None, _) => {
                return Err(self.malformed(format!("{place}: it needs either `edits` or `run`")));
            }
        };
        let rest = (declared.look, declared.repair, declared.wrong_repair);
        let check = match (declared.check, rest) {
            (Some(check), (look, Some(repair), wrong_repairs)) => {
                let repair = self.turn(&place, repair)?.ok_or_else(|| {
                    self.malformed(format!("{place}: its repair cannot depend on a condition"))
                })?;
                Some(OwnCheck {
                    after: check.after,
                    say: self.texts(&place, &check.say)?,
                    run: self.text(&place, &check.run)?,
                    wrong: self.pattern(&place, &check.wrong, None)?,
                    right: self.pattern(&place, &check.right, None)?,
                    again: self.texts(&place, &check.again)?,
                    misread: self.texts(&place, &check.misread)?,
                    claim: self.text(&place, &check.claim)?,
                    lasting: check.lasting,
                    look: self.turns(&place, look)?,
                    repair,
                    wrong_repairs: self.turns(&place, wrong_repairs)?,
                })
            }
            (None, (look, None, wrong)) if look.is_empty() && wrong.is_empty() => None,
            (Some(_) | None, _) => {
                return Err(self.malformed(format!(
                    "{place}: a check needs `look` and `repair`, and these need a check"
                )));
            }
        };
        Ok(Some(Mistake {
            kind: declared.kind,
            from: self.text(&place, &declared.from)?,
            strategies: declared.strategies,
            step: declared.step,
            fault,
            say: self.texts(&place, &declared.say)?,
            shows: declared.shows.map(|pattern| self.pattern(&place, &pattern, None)).transpose()?,
            check,
            name: declared.name,
        }))
    }
}
