//! The stage in which a model sets a solver's time limit and the weights of checks.

use std::collections::BTreeMap;

use minijinja::context;
use serde::Deserialize;

use crate::author::check_ids;
use crate::authoring::PromptContext;
use crate::authoring::stage::{Asks, AuthorStage, Prompt, StageCounts};
use crate::authoring::working::Working;
use crate::llm::ModelRole;
use crate::model::CheckId;

/// Accepted time limits in minutes. LiteCoder's and Terminal-Bench's tasks have limits in this
/// range.
const MINUTES: std::ops::RangeInclusive<u32> = 5..=60;
const WEIGHTS: std::ops::RangeInclusive<u32> = 1..=5;

#[derive(Debug)]
pub(in crate::authoring) struct Configuration;

impl AuthorStage for Configuration {
    fn name(&self) -> &'static str {
        "configuration"
    }

    fn asks(&self) -> Asks {
        Asks::Model(ModelRole::Author)
    }

    fn prompt(&self, _: &PromptContext<'_>, working: &Working) -> Option<Prompt> {
        let Working { instruction, checks, .. } = working;
        let (difficulty, solution) = (working.difficulty.as_str(), working.solution_text());
        let task = context! { instruction, difficulty, checks, solution };
        Some(Prompt { system: context! {}, task })
    }

    fn accept(&self, reply: &str, working: &mut Working, _: &StageCounts) -> Result<(), String> {
        working.configured = Configured::parse(reply, &check_ids(&working.checks))?;
        Ok(())
    }
}

/// What the stage sets. The default values are the domain's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::authoring) struct Configured {
    pub(in crate::authoring) minutes: Option<u32>,
    #[serde(default)]
    pub(in crate::authoring) weights: BTreeMap<CheckId, u32>,
}

impl Configured {
    /// Reads a reply. The model is told the error.
    fn parse(reply: &str, checks: &[CheckId]) -> Result<Self, String> {
        let object = reply.find('{').zip(reply.rfind('}')).and_then(|(from, to)| reply.get(from..=to));
        let object = object.ok_or("it has no JSON object")?;
        let configured: Self = serde_json::from_str(object).map_err(|error| error.to_string())?;
        let minutes = configured.minutes.ok_or("`minutes` is missing")?;
        if !MINUTES.contains(&minutes) {
            return Err(format!(
                "`minutes` is {minutes}; {} to {} are allowed",
                MINUTES.start(),
                MINUTES.end()
            ));
        }
        for (check, weight) in &configured.weights {
            if !checks.contains(check) {
                return Err(format!("there is no check `{check}`"));
            }
            if !WEIGHTS.contains(weight) {
                let (least, most) = (WEIGHTS.start(), WEIGHTS.end());
                return Err(format!("the weight of `{check}` is {weight}; {least} to {most} are allowed"));
            }
        }
        match checks.iter().find(|check| !configured.weights.contains_key(*check)) {
            Some(check) => Err(format!("`{check}` has no weight")),
            None => Ok(configured),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_check_has_a_weight_within_its_bounds() {
        let checks = [CheckId::parse("test_a").unwrap(), CheckId::parse("test_b").unwrap()];
        let check = |reply: &str, expect: Result<u32, &str>| match (
            Configured::parse(reply, &checks).map(|found| found.minutes.unwrap()),
            expect,
        ) {
            (Ok(found), Ok(minutes)) => assert_eq!(found, minutes),
            (Err(problem), Err(part)) => assert!(problem.contains(part), "{problem}"),
            (found, expect) => panic!("{found:?} where {expect:?} was expected: {reply}"),
        };
        check(r#"{"minutes": 20, "weights": {"test_a": 1, "test_b": 5}}"#, Ok(20));
        check("```json\n{\"minutes\": 5, \"weights\": {\"test_a\": 1, \"test_b\": 5}}\n```", Ok(5));
        check(r#"{"minutes": 20, "weights": {"test_a": 1}}"#, Err("`test_b` has no weight"));
        check(r#"{"minutes": 20, "weights": {"test_c": 1}}"#, Err("no check `test_c`"));
        check(r#"{"minutes": 20, "weights": {"test_a": 6, "test_b": 1}}"#, Err("weight of `test_a` is 6"));
        check(r#"{"minutes": 90, "weights": {}}"#, Err("`minutes` is 90"));
        check(r#"{"weights": {}}"#, Err("missing"));
        check(r#"{"minutes": 20, "network": true}"#, Err("unknown field"));
        check("twenty minutes", Err("no JSON"));
    }
}
