//! The agent loop: message, actions, observation, until the agent submits or a limit ends the episode.

use std::future::Future;
use std::time::{Duration, Instant};

use super::arms::Mentor;
use super::conversation::{Conversation, HandedOff, TurnSeen, is_judged_submission};
use super::installed;
use super::scaffold::{
    AssistantMessage, Driver, EpisodeContext, Machine, Opening, Protocol, ScaffoldError, Session, Step,
};
use super::scripted::ScriptError;
use super::summary::{self, Summariser};
use crate::clock::now_ms;
use crate::llm::CallError;
use crate::model::{Act, Assume, Blame, End, ShellOutcome, Shown, Turn, TurnKind};
use crate::prompts::PromptsError;
use crate::sandbox::{EngineError, ExecLimit, SandboxError};
use crate::store::StoreError;
use tracing::Instrument as _;

/// Where the next assistant message comes from.
pub trait Policy: Send {
    /// The next message of the conversation.
    fn next(
        &mut self,
        conversation: &Conversation,
    ) -> impl Future<Output = Result<AssistantMessage, AgentError>> + Send;
}

/// Where turns are recorded as they happen: each before the next message is requested, so that a killed process loses nothing that
/// a model was shown.
pub trait TurnLog: Send {
    fn opened(&mut self, opening: &Opening) -> impl Future<Output = Result<(), StoreError>> + Send;
    fn turned(
        &mut self,
        number: usize,
        turn: &Turn,
        seen: &TurnSeen,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;
    /// Handoff `number` begins, with this on the screen. A handoff that is interrupted asks about the same screen again.
    fn handing_off(
        &mut self,
        number: usize,
        screen: &str,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;
    fn handed_off(
        &mut self,
        number: usize,
        handed: &HandedOff,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;
}

/// Records nothing.
#[derive(Clone, Copy, Debug)]
pub struct NoTurnLog;

impl TurnLog for NoTurnLog {
    async fn opened(&mut self, _: &Opening) -> Result<(), StoreError> {
        Ok(())
    }

    async fn turned(&mut self, _: usize, _: &Turn, _: &TurnSeen) -> Result<(), StoreError> {
        Ok(())
    }

    async fn handing_off(&mut self, _: usize, _: &str) -> Result<(), StoreError> {
        Ok(())
    }

    async fn handed_off(&mut self, _: usize, _: &HandedOff) -> Result<(), StoreError> {
        Ok(())
    }
}

/// Why an episode could not be completed: an error that the agent did not cause.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The sandbox was lost, and the solver is not known to be at fault.
    #[error(transparent)]
    Sandbox(SandboxError),
    /// A fresh sandbox could not be opened, before the agent was asked anything.
    #[error("the episode could not begin: {0}")]
    NotBegun(SandboxError),
    /// An agent with a loop of its own ended before a model answered it: its command line is wrong,
    /// or does not fit the task's image.
    #[error(
        "the agent ended ({how}) before the model answered it\n{output}\nhint: --agent-command must start a program of the task's image, which sends chat completions to $OPENAI_BASE_URL"
    )]
    NeverAsked { how: String, output: String },
    #[error(transparent)]
    Prompts(#[from] PromptsError),
    #[error(transparent)]
    Call(#[from] CallError),
    /// The endpoint refuses what the policy wrote, and nothing else: the episode ends so, and its
    /// state is judged.
    #[error("{cause}")]
    Refused { end: End, cause: String },
    /// The run is stopping. The turn is executed again by the next run.
    #[error("the run is stopping\nhint: the same command continues where it stopped")]
    Drained,
    /// An agent with a loop of its own gave up on a reply that was late, and not because of the model.
    #[error("the agent ended without a reply that waited {} s for its endpoint", waited.as_secs())]
    GaveUp { waited: Duration },
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(
        "the scripted expert cannot continue: {0}\nhint: `termsmith recipe check` runs the script and names the step"
    )]
    Script(#[from] ScriptError),
}

/// How an episode ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    pub end: End,
    /// Why the sandbox was lost, how a replayed turn differs from its record, or the end of the
    /// output of an agent with a loop of its own; otherwise empty.
    pub cause: String,
    /// Whether a replayed turn differs from its record by a time limit that it met.
    pub limit_differs: bool,
}

impl Ended {
    /// An end that needs no explanation.
    pub fn by(end: End) -> Self {
        Self::because(end, String::new())
    }

    /// An end, and why it came.
    pub fn because(end: End, cause: String) -> Self {
        Self { end, cause, limit_differs: false }
    }
}

/// Optional participants of an episode, in addition to policy and scaffold.
#[derive(Debug)]
pub struct Hooks<'a, N> {
    pub turn_log: &'a mut N,
    /// Answers the agent's questions.
    pub mentor: Option<Mentor<'a>>,
    /// Summarises a conversation that would not fit the model's context. Without it, the episode ends there.
    pub summariser: Option<Summariser<'a>>,
}

impl<'a, N> Hooks<'a, N> {
    /// The turn log alone.
    pub fn none(turn_log: &'a mut N) -> Self {
        Self { turn_log, mentor: None, summariser: None }
    }
}

/// Runs an episode. Turns that `conversation` holds but the sandbox has not executed are executed again, without a request to the
/// policy, and must have the same effects. Their recorded observations are kept, since the policy was shown these.
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
        Err(error) => return not_begun(error, episode),
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

/// Runs a turn, from the check of the limits until it is in the log, or the handoff that has to come before it. Returns how the episode
/// ended, if it did.
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
    episode.deadline.pause();
    let replied = policy.next(conversation).await;
    let took = asked.elapsed();
    let served = replied.as_ref().map_or(Duration::ZERO, |assistant| assistant.served.unwrap_or(took));
    episode.deadline.resume(served);
    let assistant = match replied {
        Err(AgentError::Call(CallError::ContextLength { .. })) => {
            return Ok(hand_off(session, conversation, episode, hooks).await?.map(Ended::by));
        }
        replied => replied?,
    };
    // The model was too slow. Its reply is in the journal: if this ending is lost, it is not requested again.
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

/// Executes the recorded turns again. If the last of them ended the episode, it ends again.
async fn replay_recorded<'p>(
    protocol: &'p dyn Protocol,
    session: &mut Box<dyn Session + 'p>,
    conversation: &Conversation,
    episode: &'p EpisodeContext<'_>,
) -> Result<Option<Ended>, AgentError> {
    let recorded = conversation.turns.iter().zip(&conversation.seen).enumerate().skip(conversation.done);
    for (number, (turn, seen)) in recorded {
        if turn.kind == TurnKind::Asked {
            continue;
        }
        let span = tracing::info_span!("turn", number = number + 1, recorded = true);
        let step = match session.execute(&AssistantMessage::recorded(turn), episode).instrument(span).await {
            Ok(step) => step,
            Err(error) => return lost(error, episode).map(|(ended, _)| Some(ended)),
        };
        if step.kind != turn.kind || step.acts != turn.acts {
            let cause = format!(
                "turn {}: {:?} was recorded, {:?} is the result now",
                number + 1,
                turn.acts,
                step.acts
            );
            let limit_differs = met_a_limit(&step.acts) != met_a_limit(&turn.acts);
            let diverged = Ended::because(End::ResumeDiverged, cause);
            return Ok(Some(Ended { limit_differs, ..diverged }));
        }
        if is_judged_submission(turn, seen) {
            match new_round(protocol, episode).await {
                Ok(opened) => *session = opened,
                Err(error) => return lost(error, episode).map(|(ended, _)| Some(ended)),
            }
            episode.deadline.restart(conversation.left_in_round(episode.limits.total, number + 1));
        } else if step.kind == TurnKind::Submitted {
            return Ok(Some(Ended::by(End::Submitted)));
        }
        if step.shell_ended {
            return Ok(Some(Ended::by(End::ShellEnded)));
        }
    }
    Ok(None)
}

/// Whether a command met the scaffold's time limit.
fn met_a_limit(acts: &[Act]) -> bool {
    acts.iter().any(|act| matches!(act, Act::Command { outcome: Some(ShellOutcome::TimedOut), .. }))
}

/// Opens the session of a further round. A round that is not executed again begins in a new container, where no process of the one before it is
/// left.
async fn new_round<'p>(
    protocol: &'p dyn Protocol,
    episode: &'p EpisodeContext<'_>,
) -> Result<Box<dyn Session + 'p>, ScaffoldError> {
    let unusable = |error| ScaffoldError::of(error, Vec::new());
    episode.sandbox.end_processes().await.map_err(unusable)?;
    // The end of the shell becomes the result of this command, not of the round's first one.
    episode.sandbox.shell("exit 0", &ExecLimit::default()).await.map_err(unusable)?;
    protocol.open(episode, "").await.map(|(session, _)| session)
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

/// Continues the conversation from a summary. Returns how the episode ends if that is not possible, or would not help: a conversation
/// that does not fit directly after a handoff would not fit after another one either.
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
    episode.deadline.pause();
    let summed_up = summariser.hand_off(conversation, &screen, episode.limits.context).await;
    let served = summed_up.as_ref().map_or(Duration::ZERO, |(_, served)| *served);
    episode.deadline.resume(served);
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
        episode.deadline.pause();
        let answered = mentor.answer(question, conversation).await;
        episode.deadline.resume(Duration::ZERO);
        let (answer, guide) = answered.map_err(TurnError::Agent)?;
        let shown = vec![Shown::text(answer)];
        return Ok(Step { kind: TurnKind::Asked, shown, guide, ..Step::default() });
    }
    session.execute(assistant, episode).await.map_err(TurnError::Scaffold)
}

/// Ends an episode whose sandbox was lost through the solver's actions. Every other loss stays an error, so that the episode is run again
/// in a fresh container.
fn lost(
    error: ScaffoldError,
    episode: &EpisodeContext<'_>,
) -> Result<(Ended, Vec<crate::model::Act>), AgentError> {
    match error {
        ScaffoldError::Prompts(error) => Err(error.into()),
        ScaffoldError::Engine(error) => Err(error.into()),
        ScaffoldError::Drained => Err(AgentError::Drained),
        ScaffoldError::Sandbox { error, acts } => Ok((ended_by_loss(error, episode.assume)?, acts)),
    }
}

/// How an episode ends if its session, e.g. its shell, cannot be opened.
fn not_begun(error: ScaffoldError, episode: &EpisodeContext<'_>) -> Result<Ended, AgentError> {
    match (error, episode.machine) {
        (ScaffoldError::Sandbox { error, .. }, Machine::Fresh) => Err(AgentError::NotBegun(error)),
        (error, Machine::Fresh | Machine::Used) => lost(error, episode).map(|(ended, _)| ended),
    }
}

/// Opens what an episode of `driver` opens first, and closes it again: what a control has to do
/// beside an episode that was lost.
pub async fn open(driver: Driver<'_>, episode: &EpisodeContext<'_>) -> Result<(), AgentError> {
    match driver {
        Driver::TurnByTurn(protocol) => match protocol.open(episode, "").await {
            Ok(_) => Ok(()),
            Err(error) => not_begun(error, episode).map(drop),
        },
        Driver::InSandbox { .. } => {
            installed::open(episode, "").await.map(drop).map_err(AgentError::NotBegun)
        }
    }
}

/// The end of an episode whose sandbox was lost, if the solver is at fault.
pub(super) fn ended_by_loss(error: SandboxError, assume: Assume) -> Result<Ended, AgentError> {
    match assume.blame(error.blame()) {
        Some(Blame::Solver) => Ok(Ended::because(End::SandboxLost, error.to_string())),
        Some(Blame::Task | Blame::Infra | Blame::Caller) | None => Err(AgentError::Sandbox(error)),
    }
}

#[cfg(test)]
mod tests {
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::agent::bash_block::BashBlock;
    use crate::agent::deadline::Deadline;
    use crate::agent::scaffold::StepLimits;
    use crate::assets::Assets;
    use crate::model::{Act, Limits, Profile, ShellOutcome};
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
