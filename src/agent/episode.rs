//! The agent loop: message, actions, observation, until the agent submits or a limit ends the
//! episode.

use std::time::{Duration, Instant};

use tracing::Instrument as _;

use super::arms::Mentor;
use super::conversation::{Conversation, TurnSeen};
use super::ended::{Ended, lost, not_started};
use super::error::AgentError;
use super::policy::Policy;
use super::replay::replay_recorded;
use super::scaffold::{AssistantMessage, EpisodeContext, Opening, Protocol, ScaffoldError, Session, Step};
use super::summary::{self, Summariser};
use super::turn_log::TurnLog;
use crate::clock::now_ms;
use crate::llm::CallError;
use crate::model::{End, Shown, Turn, TurnKind};

/// Optional participants of an episode, in addition to policy and scaffold.
#[derive(Debug)]
pub struct Hooks<'a, N> {
    pub turn_log: &'a mut N,
    /// Answers the agent's questions.
    pub mentor: Option<Mentor<'a>>,
    /// Summarises a conversation that would not fit the model's context. Without it, the episode
    /// ends there.
    pub summariser: Option<Summariser<'a>>,
}

impl<'a, N> Hooks<'a, N> {
    /// The turn log alone.
    pub fn none(turn_log: &'a mut N) -> Self {
        Self { turn_log, mentor: None, summariser: None }
    }
}

/// Runs an episode. Turns that `conversation` holds but the sandbox has not executed are executed
/// again, without a request to the policy, and must have the same effects. Their recorded
/// observations are kept, since the policy was shown these.
pub async fn run_episode<M: Policy, N: TurnLog>(
    protocol: &dyn Protocol,
    policy: &mut M,
    conversation: &mut Conversation,
    instruction: &str,
    episode: &EpisodeContext<'_>,
    mut hooks: Hooks<'_, N>,
) -> Result<Ended, AgentError> {
    let (mut session, opening) = match protocol.open(episode, instruction).await {
        Ok(opened) => opened,
        Err(error) => return not_started(error, episode),
    };
    if conversation.turns.is_empty() && conversation.opening == Opening::default() {
        hooks.turn_log.opened(&opening).await?;
        conversation.opening = opening;
    }
    if let Some(ended) = replay_recorded(protocol, &mut session, conversation, episode).await? {
        return Ok(ended);
    }
    loop {
        let span = tracing::info_span!("turn", number = conversation.turns.len() + 1);
        let turned = next_turn(&mut *session, policy, conversation, episode, &mut hooks).instrument(span);
        match turned.await {
            Ok(None) => {}
            Ok(Some(ended)) => return Ok(ended),
            Err(AgentError::Refused { end, cause }) => return Ok(Ended::because(end, cause)),
            Err(error) => return Err(error),
        }
    }
}

/// Runs a turn, from the check of the limits until it is in the log, or the handoff that has to
/// come before it. Returns how the episode ended, if it did.
async fn next_turn<M: Policy, N: TurnLog>(
    session: &mut dyn Session,
    policy: &mut M,
    conversation: &mut Conversation,
    episode: &EpisodeContext<'_>,
    hooks: &mut Hooks<'_, N>,
) -> Result<Option<Ended>, AgentError> {
    match limit_reached(conversation, episode, hooks) {
        None => {}
        Some(End::ContextFull) => {
            return Ok(hand_off(session, conversation, episode, hooks).await?.map(Ended::by));
        }
        Some(end) => return Ok(Some(Ended::by(end))),
    }
    let asked = Instant::now();
    let call = episode.deadline.pause();
    let replied = policy.next(conversation).await;
    let took = asked.elapsed();
    let served = replied.as_ref().map_or(Duration::ZERO, |assistant| assistant.served.unwrap_or(took));
    episode.deadline.resume(call, served);
    let assistant = match replied {
        Err(AgentError::Call(CallError::ContextLength { .. })) => {
            return Ok(hand_off(session, conversation, episode, hooks).await?.map(Ended::by));
        }
        replied => replied?,
    };
    // The model was too slow. Its reply is in the journal: if this ending is lost, it is not
    // requested again.
    if episode.left().is_zero() {
        return Ok(Some(Ended::by(End::TimedOut)));
    }
    let (think_ms, served_ms) = (milliseconds(took), milliseconds(served));
    let mut seen = TurnSeen { at_ms: now_ms(), think_ms, served_ms, ..TurnSeen::default() };
    let (step, lost) = match execute(session, &assistant, conversation, episode, hooks).await {
        Ok(step) => (step, None),
        Err(TurnError::Agent(error)) => return Err(error),
        Err(TurnError::Scaffold(error)) => {
            let (ended, acts) = lost(error, episode)?;
            (Step { acts, ..Step::default() }, Some(ended))
        }
    };
    seen.shown = step.shown;
    seen.acts = step.seen;
    let turn = Turn { guide: step.guide, ..assistant.into_turn(step.kind, step.acts) };
    hooks.turn_log.turned(conversation.turns.len(), &turn, &seen).await?;
    conversation.turns.push(turn);
    conversation.seen.push(seen);
    Ok(if lost.is_some() {
        lost
    } else if step.kind == TurnKind::Submitted {
        Some(Ended::by(End::Submitted))
    } else if step.shell_ended {
        Some(Ended::by(End::ShellEnded))
    } else {
        None
    })
}

fn limit_reached<N>(
    conversation: &Conversation,
    episode: &EpisodeContext<'_>,
    hooks: &Hooks<'_, N>,
) -> Option<End> {
    let limits = episode.limits;
    if conversation.turns.len() >= limits.turns as usize {
        return Some(End::StepLimit);
    }
    if episode.left().is_zero() {
        return Some(End::TimedOut);
    }
    if limits.tokens.is_some_and(|most| conversation.tokens() >= most) {
        return Some(End::TokenLimit);
    }
    if limits.dollars.is_some_and(|dollars| conversation.cost(&dollars) >= dollars.limit) {
        return Some(End::DollarLimit);
    }
    let full = limits.context.zip(conversation.next_prompt()).is_some_and(|(most, next)| {
        let reserved = if hooks.summariser.is_some() { summary::reserved_tokens(most) } else { 0 };
        next >= most - reserved
    });
    full.then_some(End::ContextFull)
}

/// Continues the conversation from a summary. Returns how the episode ends if that is not possible,
/// or would not help: a conversation that does not fit directly after a handoff would not fit after
/// another one either.
async fn hand_off<N: TurnLog>(
    session: &dyn Session,
    conversation: &mut Conversation,
    episode: &EpisodeContext<'_>,
    hooks: &mut Hooks<'_, N>,
) -> Result<Option<End>, AgentError> {
    let Some(summariser) =
        hooks.summariser.as_ref().filter(|_| conversation.segment_start() < conversation.turns.len())
    else {
        return Ok(Some(End::ContextFull));
    };
    let number = conversation.handoffs.len();
    let screen = match (conversation.screen.clone(), session.screen()) {
        (Some(screen), _) => screen,
        (None, Some(screen)) => {
            hooks.turn_log.handing_off(number, &screen).await?;
            // Kept until the handoff is complete, so that a retry asks about the same screen.
            conversation.screen = Some(screen.clone());
            screen
        }
        (None, None) => last_shown(conversation),
    };
    let asked = Instant::now();
    let call = episode.deadline.pause();
    let summed_up = summariser.hand_off(conversation, &screen, episode.limits.context).await;
    let served = summed_up.as_ref().map_or(Duration::ZERO, |(_, served)| *served);
    episode.deadline.resume(call, served);
    let (mut handed, served) = summed_up?;
    handed.seen.at_ms = now_ms();
    (handed.seen.think_ms, handed.seen.served_ms) = (milliseconds(asked.elapsed()), milliseconds(served));
    tracing::info!(
        handoff = number + 1,
        turns = conversation.turns.len(),
        unread = handed.handoff.unread,
        "the conversation continues from a summary"
    );
    hooks.turn_log.handed_off(number, &handed).await?;
    conversation.handoffs.push(handed);
    conversation.screen = None;
    Ok(None)
}

/// The last observation, for scaffolds without a screen.
fn last_shown(conversation: &Conversation) -> String {
    let shown = conversation.seen.last().map(|seen| seen.shown.as_slice()).unwrap_or_default();
    shown.iter().map(|shown| shown.content.as_str()).collect::<Vec<_>>().join("\n")
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

enum TurnError {
    Agent(AgentError),
    Scaffold(ScaffoldError),
}

/// Executes the actions of a message, or has the mentor answer the question in it.
async fn execute<N: TurnLog>(
    session: &mut dyn Session,
    assistant: &AssistantMessage,
    conversation: &Conversation,
    episode: &EpisodeContext<'_>,
    hooks: &mut Hooks<'_, N>,
) -> Result<Step, TurnError> {
    if let Some(mentor) = &mut hooks.mentor
        && let Some(question) = Mentor::question(assistant)
    {
        // The mentor is neither the agent nor its model.
        let call = episode.deadline.pause();
        let answered = mentor.answer(question, conversation).await;
        episode.deadline.resume(call, Duration::ZERO);
        let (answer, guide) = answered.map_err(TurnError::Agent)?;
        let shown = vec![Shown::text(answer)];
        return Ok(Step { kind: TurnKind::Asked, shown, guide, ..Step::default() });
    }
    session.execute(assistant, episode).await.map_err(TurnError::Scaffold)
}

#[cfg(test)]
mod tests {
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::agent::bash_block::BashBlock;
    use crate::agent::deadline::Deadline;
    use crate::agent::scaffold::{Machine, StepLimits};
    use crate::agent::turn_log::NoTurnLog;
    use crate::assets::Assets;
    use crate::model::{Act, Assume, Limits, Profile, ShellOutcome};
    use crate::sandbox::{Image, LaunchSpec, Network, process_engine};

    /// Longer than any command here.
    const LONG: Duration = Duration::from_secs(60);

    struct Submits;

    impl Policy for Submits {
        async fn next(&mut self, _: &Conversation) -> Result<AssistantMessage, AgentError> {
            Ok(AssistantMessage { content: "```bash\nsubmit\n```".to_owned(), ..AssistantMessage::default() })
        }
    }

    #[tokio::test]
    async fn turns_that_have_other_effects_now_end_an_episode() {
        let engine = process_engine();
        let (image, limits) = (Image::named("none"), Limits::default());
        let spec = LaunchSpec {
            image: &image,
            limits: &limits,
            profile: Profile::Plain,
            network: Network::None,
            workdir: "/",
            purpose: "test",
            preload: Vec::new(),
            layer: None,
        };
        let protocol = BashBlock::load(&Assets::embedded()).unwrap();
        let check = async |recorded: i32, expect: End| {
            let sandbox = engine.launch(&spec).await.unwrap();
            let command = "(exit 7)".to_owned();
            let content = format!("```bash\n{command}\n```");
            let outcome = Some(ShellOutcome::Exited(recorded));
            let turn = AssistantMessage { content, ..AssistantMessage::default() }
                .into_turn(TurnKind::Acted, vec![Act::Command { command, outcome }]);
            let mut conversation = Conversation {
                turns: vec![turn],
                seen: vec![TurnSeen::default()],
                ..Conversation::default()
            };
            let limits = StepLimits::scripted(LONG);
            let deadline = Deadline::after(LONG, sandbox.clock().clone());
            let episode = EpisodeContext {
                sandbox: &sandbox,
                env: &[],
                limits: &limits,
                deadline,
                assume: Assume::Nothing,
                machine: Machine::Fresh,
                drain: CancellationToken::new(),
            };
            let mut log = NoTurnLog;
            let hooks = Hooks::none(&mut log);
            let ended =
                run_episode(&protocol, &mut Submits, &mut conversation, "Do it.", &episode, hooks).await;
            assert_eq!(ended.unwrap().end, expect, "{recorded}");
        };
        check(7, End::Submitted).await;
        check(8, End::ResumeDiverged).await;
        engine.close().await;
    }
}
