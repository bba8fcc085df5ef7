//! Draws what each attempt of a scripted expert does.

use crate::agent::{MessageFormat, Plan, ScaffoldMix, ScriptError, losing, passing};
use crate::model::{Actor, ExpertScript, ScriptedFailure, Seed};

/// An attempt as drawn.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ScriptedAttempt {
    pub(super) plan: Plan,
    pub(super) actor: Actor,
    pub(super) format: MessageFormat,
    /// Turns that it shares with the attempt before it.
    pub(super) shared: Option<usize>,
}

/// Draws the attempt with this number. Attempts come in pairs. The even one follows a passing plan.
/// The odd one after it follows the same plan up to a decision, and then loses. Strategies take
/// turns. The result depends only on script, seed, mix and number, so a larger number of attempts
/// never changes earlier ones.
pub(super) fn scripted_attempt(
    script: &ExpertScript,
    seed: Seed,
    mix: &ScaffoldMix,
    attempt: u32,
) -> Result<ScriptedAttempt, ScriptError> {
    let pair = attempt / 2;
    let named = pair.to_string();
    let derived = |what: &str| seed.derive(&[what, &named]);
    // Tasks of one recipe begin with different strategies. So even a run with few attempts has all
    // strategies.
    let first = usize::try_from(seed.derive(&["strategy"]).0 % u64::from(u16::MAX)).unwrap_or(0);
    let chosen = (first + pair as usize) % script.strategies.len().max(1);
    let strategy = script.strategies.get(chosen).ok_or(ScriptError::Nothing)?;
    let plan = passing(script, strategy, derived("pass"));
    let format = mix.draw(derived("scaffold"));
    if attempt.is_multiple_of(2) {
        let actor =
            Actor::Scripted { strategy: strategy.clone(), mistakes: plan.mistakes.clone(), failure: None };
        return Ok(ScriptedAttempt { plan, actor, format, shared: None });
    }
    let lost = losing(script, &plan, derived("lose")).ok_or(ScriptError::Nothing)?;
    let actor = Actor::Scripted {
        strategy: strategy.clone(),
        mistakes: lost.plan.mistakes.clone(),
        failure: Some(ScriptedFailure { mode: lost.mode, mistake: lost.mistake }),
    };
    Ok(ScriptedAttempt { plan: lost.plan, actor, format, shared: Some(lost.shared) })
}
