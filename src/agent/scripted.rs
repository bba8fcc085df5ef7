//! The scripted expert and its failure modes.
//!
//! It is a fixed list of turns, drawn once from the recipe's script. Its `@{name}` placeholders are filled from the output of earlier
//! commands; it has no other source of knowledge.

use std::collections::{BTreeMap, VecDeque};

use rand::rngs::ChaCha20Rng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use regex::Regex;

use super::bash_block::BashBlock;
use crate::model::{ExpertScript, Failure, FailureMode, ScriptStep, Seed, Slip};

/// Probability that an expert that tries to succeed makes an error and corrects it (the goal is recovery in at least 30 % of passing runs).
const SLIP_PROBABILITY: f64 = 0.6;

/// The next action of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScriptAction {
    Run { reasoning: String, command: String },
    Submit { reasoning: String },
}

/// Why a script cannot be continued. The recipe is at fault.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ScriptError {
    #[error("step `{step}`: capture `{name}` (`{pattern}`) does not match what the command printed")]
    NoMatch { step: String, name: String, pattern: String },
    #[error("`@{{{0}}}` is used before any step has captured it")]
    Unseen(String),
    #[error("failure mode {0:?} is not declared and there is no slip to derive it from")]
    NoSuchFailure(FailureMode),
}

#[derive(Clone)]
struct Planned {
    step: String,
    reasoning: String,
    command: Option<String>,
    capture: BTreeMap<String, String>,
}

/// One execution of a script.
#[derive(Clone)]
pub struct ScriptedAgent {
    turns: VecDeque<Planned>,
    pending: Option<(String, BTreeMap<String, String>)>,
    seen: BTreeMap<String, String>,
    /// In a loop: the sentences that are used in turn, and the command that is repeated.
    endless: Option<(Vec<String>, String)>,
}

impl std::fmt::Debug for ScriptedAgent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScriptedAgent").field("turns_left", &self.turns.len()).finish_non_exhaustive()
    }
}

/// A variation of a script.
#[derive(Clone, Copy, Debug)]
pub enum Variation<'a> {
    /// Tries to succeed, with or without an error that it corrects.
    Expert(Option<&'a Slip>),
    /// One step is done wrongly.
    Flawed(&'a Failure),
    /// Ends at a slip, in one of the derived failure modes.
    StopsAt(&'a Slip, FailureMode),
}

impl<'a> Variation<'a> {
    /// The first slip of the script. Most of the work comes after it, so an expert that stops there fails.
    pub fn earliest_slip(script: &'a ExpertScript) -> Option<&'a Slip> {
        let position = |slip: &&Slip| script.steps.iter().position(|step| step.id == slip.before);
        script.slips.iter().min_by_key(position)
    }

    /// Draws a variation of `script` that fails according to `failure`, or tries to succeed.
    pub fn draw(
        script: &'a ExpertScript,
        failure: Option<FailureMode>,
        rng: &mut ChaCha20Rng,
    ) -> Result<Self, ScriptError> {
        match failure {
            None if rng.random_bool(SLIP_PROBABILITY) => Ok(Self::Expert(script.slips.choose(rng))),
            None => Ok(Self::Expert(None)),
            Some(mode @ (FailureMode::WrongValue | FailureMode::MissedRequirement)) => {
                let of_mode: Vec<_> = script.failures.iter().filter(|failure| failure.mode == mode).collect();
                of_mode
                    .choose(rng)
                    .map(|failure| Self::Flawed(failure))
                    .ok_or(ScriptError::NoSuchFailure(mode))
            }
            Some(mode @ (FailureMode::IgnoredError | FailureMode::GivesUp | FailureMode::Loops)) => {
                let slip = Self::earliest_slip(script);
                slip.map(|slip| Self::StopsAt(slip, mode)).ok_or(ScriptError::NoSuchFailure(mode))
            }
        }
    }
}

impl ScriptedAgent {
    /// An agent for a drawn variation of `script`. `failure` is the failure mode, or `None` for an expert that tries to succeed.
    pub fn new(
        script: &ExpertScript,
        failure: Option<FailureMode>,
        seed: Seed,
        prompts: &BashBlock,
    ) -> Result<Self, ScriptError> {
        let mut rng = ChaCha20Rng::seed_from_u64(seed.0);
        let variation = Variation::draw(script, failure, &mut rng)?;
        Ok(Self::with_variation(script, variation, &mut rng, prompts))
    }

    /// An agent for the given variation of `script`; `rng` selects among wordings.
    pub fn with_variation(
        script: &ExpertScript,
        variation: Variation<'_>,
        rng: &mut ChaCha20Rng,
        prompts: &BashBlock,
    ) -> Self {
        let mut agent = Self { turns: VecDeque::new(), pending: None, seen: BTreeMap::new(), endless: None };
        match variation {
            Variation::Expert(slip) => {
                agent.push_steps(script, slip, None, rng);
                agent.push_submit(pick(&script.done, rng));
            }
            Variation::Flawed(failure) => {
                let flawed = ScriptStep {
                    id: failure.replaces.clone(),
                    say: vec![failure.say.clone()],
                    run: failure.run.clone(),
                    capture: BTreeMap::new(),
                };
                agent.push_steps(script, None, Some(&flawed), rng);
                agent.push_submit(pick(&script.done, rng));
            }
            Variation::StopsAt(slip, mode) => {
                for step in script.steps.iter().take_while(|step| step.id != slip.before) {
                    agent.push_step(step, None, rng);
                }
                agent.push_slip(slip);
                match mode {
                    FailureMode::Loops => {
                        agent.endless = Some((prompts.tries_again.clone(), slip.run.clone()));
                    }
                    FailureMode::GivesUp => agent.push_submit(pick(&prompts.gives_up, rng)),
                    FailureMode::IgnoredError | FailureMode::WrongValue | FailureMode::MissedRequirement => {
                        agent.push_submit(pick(&script.done, rng));
                    }
                }
            }
        }
        agent
    }

    /// The next action, after the `observation` of the previous one.
    pub fn next_action(&mut self, observation: Option<&str>) -> Result<ScriptAction, ScriptError> {
        if let (Some((step, capture)), Some(text)) = (self.pending.take(), observation) {
            for (name, pattern) in capture {
                // Patterns are checked when the recipe is read; one that does not compile matches nothing.
                let found = Regex::new(&pattern).ok().and_then(|pattern| {
                    pattern
                        .captures(text)
                        .and_then(|found| found.get(1))
                        .map(|group| group.as_str().to_owned())
                });
                let value =
                    found.ok_or(ScriptError::NoMatch { step: step.clone(), name: name.clone(), pattern })?;
                self.seen.insert(name, value);
            }
        }
        let Some(planned) = self.turns.pop_front() else { return Ok(self.again()) };
        let reasoning = self.fill(&planned.reasoning)?;
        match planned.command {
            None => Ok(ScriptAction::Submit { reasoning }),
            Some(command) => {
                let command = self.fill(&command)?;
                self.pending = Some((planned.step, planned.capture));
                Ok(ScriptAction::Run { reasoning, command })
            }
        }
    }

    fn again(&mut self) -> ScriptAction {
        match &mut self.endless {
            None => ScriptAction::Submit { reasoning: String::new() },
            Some((sentences, command)) => {
                sentences.rotate_left(1);
                ScriptAction::Run {
                    reasoning: sentences.last().cloned().unwrap_or_default(),
                    command: command.clone(),
                }
            }
        }
    }

    fn fill(&self, text: &str) -> Result<String, ScriptError> {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("@{") {
            let Some((name, after)) = after.split_once('}') else { break };
            out.push_str(before);
            out.push_str(self.seen.get(name).ok_or_else(|| ScriptError::Unseen(name.to_owned()))?);
            rest = after;
        }
        out.push_str(rest);
        Ok(out)
    }

    fn push_steps(
        &mut self,
        script: &ExpertScript,
        slip: Option<&Slip>,
        flawed: Option<&ScriptStep>,
        rng: &mut ChaCha20Rng,
    ) {
        for step in &script.steps {
            let slip = slip.filter(|slip| slip.before == step.id);
            if let Some(slip) = slip {
                self.push_slip(slip);
            }
            let step = flawed.filter(|flawed| flawed.id == step.id).unwrap_or(step);
            self.push_step(step, slip.map(|slip| slip.fix.as_str()), rng);
        }
    }

    fn push_slip(&mut self, slip: &Slip) {
        self.turns.push_back(Planned {
            step: format!("slip before {}", slip.before),
            reasoning: slip.say.clone(),
            command: Some(slip.run.clone()),
            capture: BTreeMap::new(),
        });
    }

    fn push_step(&mut self, step: &ScriptStep, fix: Option<&str>, rng: &mut ChaCha20Rng) {
        let say = pick(&step.say, rng);
        self.turns.push_back(Planned {
            step: step.id.clone(),
            reasoning: fix.map_or_else(|| say.clone(), |fix| format!("{fix} {say}")),
            command: Some(step.run.clone()),
            capture: step.capture.clone(),
        });
    }

    fn push_submit(&mut self, reasoning: String) {
        self.turns.push_back(Planned {
            step: "submit".to_owned(),
            reasoning,
            command: None,
            capture: BTreeMap::new(),
        });
    }
}

fn pick(texts: &[String], rng: &mut ChaCha20Rng) -> String {
    texts.choose(rng).cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script() -> ExpertScript {
        let step = |id: &str, run: &str, capture: &[(&str, &str)]| ScriptStep {
            id: id.to_owned(),
            say: vec![format!("now {id}")],
            run: run.to_owned(),
            capture: capture
                .iter()
                .map(|(name, pattern)| ((*name).to_owned(), (*pattern).to_owned()))
                .collect(),
        };
        ExpertScript {
            steps: vec![step("look", "ls", &[("file", r"(\w+)\.csv")]), step("count", "wc @{file}.csv", &[])],
            slips: vec![Slip {
                before: "count".to_owned(),
                say: "guess".to_owned(),
                run: "wc none".to_owned(),
                fix: "Not there.".to_owned(),
            }],
            failures: vec![Failure {
                mode: FailureMode::WrongValue,
                replaces: "count".to_owned(),
                say: "quickly".to_owned(),
                run: "echo 1".to_owned(),
            }],
            done: vec!["done".to_owned()],
        }
    }

    fn prompts() -> BashBlock {
        BashBlock::load(&crate::assets::Assets::embedded()).unwrap()
    }

    /// Runs the variation with `a.csv` as the output of every command. Returns messages and commands, one line per turn.
    fn run(variation: Variation<'_>, turns: usize) -> Vec<String> {
        let script = script();
        let mut rng = ChaCha20Rng::seed_from_u64(0);
        let mut agent = ScriptedAgent::with_variation(&script, variation, &mut rng, &prompts());
        let mut lines = Vec::new();
        let mut seen = None;
        while lines.len() < turns {
            match agent.next_action(seen).unwrap() {
                ScriptAction::Run { reasoning, command } => lines.push(format!("{reasoning} $ {command}")),
                ScriptAction::Submit { reasoning } => {
                    lines.push(format!("{reasoning} ."));
                    break;
                }
            }
            seen = Some("a.csv");
        }
        lines
    }

    #[test]
    fn scripts_are_executed_as_written() {
        let script = script();
        let slip = script.slips.first().unwrap();
        let check = |variation, expect: &[&str]| assert_eq!(run(variation, 5), expect, "{variation:?}");
        check(Variation::Expert(None), &["now look $ ls", "now count $ wc a.csv", "done ."]);
        check(
            Variation::Expert(Some(slip)),
            &["now look $ ls", "guess $ wc none", "Not there. now count $ wc a.csv", "done ."],
        );
        check(
            Variation::Flawed(script.failures.first().unwrap()),
            &["now look $ ls", "quickly $ echo 1", "done ."],
        );
        check(
            Variation::StopsAt(slip, FailureMode::IgnoredError),
            &["now look $ ls", "guess $ wc none", "done ."],
        );
        let loops = run(Variation::StopsAt(slip, FailureMode::Loops), 9);
        assert_eq!(loops.len(), 9);
        assert!(loops[2..].iter().all(|line| line.ends_with("$ wc none")), "{loops:?}");
    }

    #[test]
    fn unseen_captures_are_errors() {
        let mut script = script();
        let agent = |script: &ExpertScript| {
            let mut rng = ChaCha20Rng::seed_from_u64(0);
            ScriptedAgent::with_variation(script, Variation::Expert(None), &mut rng, &prompts())
        };
        let mut blind = agent(&script);
        blind.next_action(None).unwrap();
        assert!(matches!(blind.next_action(Some("nothing here")), Err(ScriptError::NoMatch { .. })));
        script.steps.remove(0);
        assert_eq!(agent(&script).next_action(None), Err(ScriptError::Unseen("file".to_owned())));
    }

    #[test]
    fn at_least_half_of_the_experts_recover_from_an_error() {
        let script = script();
        const RUNS: u64 = 500;
        let recovering = (0..RUNS)
            .filter(|seed| {
                let mut rng = ChaCha20Rng::seed_from_u64(*seed);
                matches!(Variation::draw(&script, None, &mut rng), Ok(Variation::Expert(Some(_))))
            })
            .count();
        assert!(recovering as f64 >= 0.5 * RUNS as f64, "{recovering} of {RUNS}");
    }
}
