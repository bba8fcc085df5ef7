//! The scripted expert: follows a plan that was drawn from a recipe's script.
//!
//! Output of earlier commands fills the placeholders, e.g. `@{name}`. The expert knows nothing
//! else. Its final message claims only checks that it ran with the right output.

mod error;
mod losing;
mod message_format;
mod plan;
mod scaffolds;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use regex::Regex;

pub use error::ScriptError;
pub use losing::{Decision, LEAST_NOVELTY, Losing, decisions, lose, losing, novelty};
pub use message_format::MessageFormat;
pub use plan::{Plan, Planned, PlannedRole, Shows, checked_at_the_end, passing, rehearsed};
pub use scaffolds::{ScaffoldMix, ScaffoldMixError, ScriptedScaffolds};

use super::conversation::Conversation;
use super::error::AgentError;
use super::policy::Policy;
use super::scaffold::AssistantMessage;
use crate::model::{ExpertScript, TurnKind};

/// Maximum number of claims that a final message names as not checked. It varies with the number of
/// turns: all of them would be too long, and a fixed number would be a mannerism.
const MOST_UNCHECKED: usize = 3;
/// Characters of an unexpected output in an error.
const QUOTED_OUTPUT: usize = 400;

/// An expert that follows one plan.
#[derive(Clone, Debug)]
pub struct ScriptedAgent {
    turns: VecDeque<Planned>,
    format: MessageFormat,
    /// Turns sent so far.
    sent: usize,
    /// The last turn, and its command with its placeholders filled.
    pending: Option<(Planned, String)>,
    /// Captured texts by the name of their placeholder.
    seen: BTreeMap<String, String>,
    /// All claims that the script has, in its order.
    claims: Vec<String>,
    /// Names of mistakes, with the claim of each one's check.
    checks: BTreeMap<String, String>,
    /// Claims that were checked, e.g. "units in four spellings". The check may have failed.
    ran: BTreeSet<String>,
    /// Claims that passed their last check.
    claimed: Vec<String>,
}

impl ScriptedAgent {
    /// An agent that follows `plan`. `script` is the script that the plan was drawn from.
    pub fn new(script: &ExpertScript, plan: &Plan, format: MessageFormat) -> Self {
        let steps = script.steps_of(&plan.strategy).filter_map(|step| step.claim.clone());
        let checks: Vec<_> = script
            .mistakes_of(&plan.strategy)
            .filter_map(|mistake| Some((mistake.name.clone(), mistake.check.as_ref()?.claim.clone())))
            .collect();
        Self {
            turns: plan.turns.clone().into(),
            format,
            sent: 0,
            pending: None,
            seen: BTreeMap::new(),
            claims: steps.chain(checks.iter().map(|(_, claim)| claim.clone())).collect(),
            checks: checks.into_iter().collect(),
            ran: BTreeSet::new(),
            claimed: Vec::new(),
        }
    }

    /// The next message. `observation` is the answer to the previous one.
    pub fn next_message(&mut self, observation: Option<&str>) -> Result<AssistantMessage, ScriptError> {
        if let (Some((planned, command)), Some(observation)) = (self.pending.take(), observation) {
            let output = self.format.output(observation, &command);
            self.read(&planned, &output)?;
        }
        let turn = self.sent;
        self.sent += 1;
        let Some(planned) = self.turns.pop_front() else { return Ok(self.format.confirm(turn)) };
        let say = self.fill(&planned.say)?;
        let Some(run) = &planned.run else {
            let report = self.report();
            return Ok(self.format.submit(&format!("{say}{report}")));
        };
        let command = self.fill(run)?;
        let message = self.format.act(turn, &say, &command);
        self.pending = Some((planned, command));
        Ok(message)
    }

    /// Reads the output of a turn: captures texts for later turns, and updates the claims.
    fn read(&mut self, planned: &Planned, output: &str) -> Result<(), ScriptError> {
        // The recipe's patterns were checked when it was read. An invalid one would match nothing.
        let matches = |pattern: &str| Regex::new(pattern).is_ok_and(|pattern| pattern.is_match(output));
        let turn = self.sent;
        let expected = match &planned.shows {
            Shows::Must(pattern) if !matches(pattern) => {
                return Err(ScriptError::NotShown {
                    turn,
                    role: planned.role.clone(),
                    pattern: pattern.clone(),
                    saw: quoted(output),
                });
            }
            Shows::Anything | Shows::Must(_) => true,
            Shows::IfClaimed(pattern) => matches(pattern),
        };
        for (name, pattern) in &planned.capture {
            let found = Regex::new(pattern).ok().and_then(|pattern| {
                pattern.captures(output).and_then(|found| found.get(1)).map(|group| group.as_str().to_owned())
            });
            let value = found.ok_or_else(|| ScriptError::NoMatch {
                turn,
                role: planned.role.clone(),
                name: name.clone(),
                pattern: pattern.clone(),
                saw: quoted(output),
            })?;
            self.seen.insert(name.clone(), value);
        }
        let about = match &planned.role {
            PlannedRole::Check { mistake } | PlannedRole::Again { mistake } => self.checks.get(mistake),
            _ => planned.claim.as_ref(),
        };
        if let Some(claim) = about.cloned() {
            // A claim counts by its latest check.
            self.claimed.retain(|other| *other != claim);
            if expected && planned.claim.is_some() {
                self.claimed.push(claim.clone());
            }
            self.ran.insert(claim);
        }
        Ok(())
    }

    /// The closing report. It lists the claims that passed their check, and a few unchecked claims.
    /// It omits claims that failed. It is empty if the script has no claims.
    fn report(&self) -> String {
        let filled = |claim: &String| self.fill(claim).ok();
        let checked: Vec<_> = self.claimed.iter().filter_map(filled).collect();
        let unchecked = self.claims.iter().filter(|claim| !self.ran.contains(*claim));
        let most = 1 + self.sent % MOST_UNCHECKED;
        let unchecked: Vec<_> = unchecked.filter_map(filled).take(most).collect();
        let list = |title: &str, claims: &[String]| match claims {
            [] => String::new(),
            _ => format!(" {title}: {}.", claims.join("; ")),
        };
        list("Checked", &checked) + &list("Not checked", &unchecked)
    }

    /// `text` with each `@{name}` replaced by the captured text. Other text in braces stays, e.g.
    /// Perl's `@{ $x }`.
    fn fill(&self, text: &str) -> Result<String, ScriptError> {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("@{") {
            out.push_str(before);
            match after.split_once('}').filter(|(name, _)| is_name(name)) {
                Some((name, after)) => {
                    out.push_str(self.seen.get(name).ok_or_else(|| ScriptError::Unseen(name.to_owned()))?);
                    rest = after;
                }
                None => {
                    out.push_str("@{");
                    rest = after;
                }
            }
        }
        out.push_str(rest);
        Ok(out)
    }
}

impl Policy for ScriptedAgent {
    async fn next(&mut self, conversation: &Conversation) -> Result<AssistantMessage, AgentError> {
        let last = conversation.turns.last().filter(|turn| turn.kind == TurnKind::Acted);
        let shown = conversation.seen.last().and_then(|seen| seen.shown.first()).filter(|_| last.is_some());
        Ok(self.next_message(shown.map(|shown| shown.content.as_str()))?)
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

/// The end of an output, quoted for an error.
fn quoted(output: &str) -> String {
    let start = output.char_indices().rev().nth(QUOTED_OUTPUT - 1).map_or(0, |(index, _)| index);
    format!("{:?}", output.get(start..).unwrap_or(output))
}
