//! The agent loop: say, act, show, until the agent submits or a limit ends it.

use std::future::Future;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::arms::Mentor;
use super::scaffold::{Opening, Said, Scaffold, ScaffoldError, Scene, Step};
use super::scripted::ScriptError;
use super::summary::{self, Summariser};
use super::talk::{HandedOff, Talk, TurnSeen};
use crate::llm::CallError;
use crate::model::{End, Shown, Turn, TurnKind};
use crate::prompts::PromptsError;
use crate::sandbox::{EngineError, ExecLimit};
use crate::store::StoreError;

/// Who speaks.
pub trait Mind: Send {
    /// The next message of the conversation.
    fn next(&mut self, talk: &Talk) -> impl Future<Output = Result<Said, AgentError>> + Send;
}

/// Where turns are written down as they happen: before the next message is asked for, so that a killed process loses nothing that
/// a model was shown.
pub trait Notebook: Send {
    fn opened(&mut self, opening: &Opening) -> impl Future<Output = Result<(), StoreError>> + Send;
    fn turned(
        &mut self,
        number: usize,
        turn: &Turn,
        seen: &TurnSeen,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;
    /// Handoff `number` begins, with this on the screen: an interrupted one goes on with the same questions.
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

/// Nothing is written down until the end.
#[derive(Clone, Copy, Debug)]
pub struct NoNotebook;

impl Notebook for NoNotebook {
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

/// What is not the agent's doing.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Prompts(#[from] PromptsError),
    #[error(transparent)]
    Call(#[from] CallError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the scripted expert cannot go on: {0}\nhint: `termsmith recipe check` plays it and shows where")]
    Script(#[from] ScriptError),
}

/// How an episode ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    pub end: End,
    /// Why the sandbox was lost, or how the recorded beginning differs, where that is so.
    pub cause: String,
}

impl Ended {
    fn by(end: End) -> Self {
        Self { end, cause: String::new() }
    }
}

/// What takes part in an episode beside the agent.
#[derive(Debug)]
pub struct Company<'a, N> {
    pub notebook: &'a mut N,
    /// Who can be asked.
    pub mentor: Option<Mentor<'a>>,
    /// Who sums a conversation up that would no longer fit. Without, it ends there.
    pub summariser: Option<Summariser<'a>>,
}

impl<'a, N> Company<'a, N> {
    /// Nobody but the notebook.
    pub fn none(notebook: &'a mut N) -> Self {
        Self { notebook, mentor: None, summariser: None }
    }
}

/// Plays an episode. The turns that `talk` has already, and the sandbox not yet, are done again without asking the agent, and must
/// come to the same; the recorded observations stay, since they are what the agent was shown.
pub async fn play<S: Scaffold, M: Mind, N: Notebook>(
    scaffold: &mut S,
    mind: &mut M,
    talk: &mut Talk,
    instruction: &str,
    scene: &Scene<'_>,
    mut company: Company<'_, N>,
) -> Result<Ended, AgentError> {
    let opening = match scaffold.open(scene, instruction).await {
        Ok(opening) => opening,
        Err(error) => return lost(error).map(|(ended, _)| ended),
    };
    if talk.turns.is_empty() && talk.opening == Opening::default() {
        company.notebook.opened(&opening).await?;
        talk.opening = opening;
    }
    if let Some(ended) = do_again(scaffold, talk, scene).await? {
        return Ok(ended);
    }
    loop {
        match limit_reached(talk, scene, &company) {
            None => {}
            Some(End::ContextFull) => match hand_off(scaffold, talk, scene, &mut company).await? {
                None => continue,
                Some(end) => return Ok(Ended::by(end)),
            },
            Some(end) => return Ok(Ended::by(end)),
        }
        let asked = Instant::now();
        let said = match tokio::time::timeout(scene.left(), mind.next(talk)).await {
            Err(_) => return Ok(Ended::by(End::TimedOut)),
            Ok(Err(AgentError::Call(CallError::ContextLength { .. }))) => {
                match hand_off(scaffold, talk, scene, &mut company).await? {
                    None => continue,
                    Some(end) => return Ok(Ended::by(end)),
                }
            }
            Ok(Err(AgentError::Call(CallError::ContentFilter { .. }))) => {
                return Ok(Ended::by(End::ContentFiltered));
            }
            Ok(said) => said?,
        };
        let mut seen = TurnSeen {
            at_ms: now_ms(),
            think_ms: asked.elapsed().as_secs_f64() * 1e3,
            ..TurnSeen::default()
        };
        let (step, ended) = match turn(scaffold, &said, talk, scene, &mut company).await {
            Ok(step) => (step, None),
            Err(TurnError::Agent(error)) => return Err(error),
            Err(TurnError::Scaffold(error)) => {
                let (ended, acts) = lost(error)?;
                (Step { acts, ..Step::default() }, Some(ended))
            }
        };
        seen.shown = step.shown;
        seen.acts = step.seen;
        let turn = Turn { guide: step.guide, ..said.into_turn(step.kind, step.acts) };
        company.notebook.turned(talk.turns.len(), &turn, &seen).await?;
        talk.turns.push(turn);
        talk.seen.push(seen);
        if let Some(ended) = ended {
            return Ok(ended);
        }
        if step.kind == TurnKind::Submitted {
            return Ok(Ended::by(End::Submitted));
        }
        if step.shell_ended {
            return Ok(Ended::by(End::ShellEnded));
        }
    }
}

/// Does the recorded turns again. Where the last of them ended the episode, it ends again.
async fn do_again<S: Scaffold>(
    scaffold: &mut S,
    talk: &Talk,
    scene: &Scene<'_>,
) -> Result<Option<Ended>, AgentError> {
    let recorded = talk.turns.iter().zip(&talk.seen).enumerate().skip(talk.done);
    for (number, (turn, seen)) in recorded {
        if turn.kind == TurnKind::Asked {
            continue;
        }
        let step = match scaffold.take(&Said::again(turn), scene).await {
            Ok(step) => step,
            Err(error) => return lost(error).map(|(ended, _)| Some(ended)),
        };
        if step.kind != turn.kind || step.acts != turn.acts {
            let cause =
                format!("turn {}: {:?} was recorded, {:?} came of it now", number + 1, turn.acts, step.acts);
            return Ok(Some(Ended { end: End::ResumeDiverged, cause }));
        }
        if step.kind == TurnKind::Submitted {
            if seen.shown.is_empty() {
                return Ok(Some(Ended::by(End::Submitted)));
            }
            // It was answered: what failed was told, and a new round began in a new shell.
            if let Err(error) = new_round(scaffold, scene).await {
                return lost(error).map(|(ended, _)| Some(ended));
            }
        }
        if step.shell_ended {
            return Ok(Some(Ended::by(End::ShellEnded)));
        }
    }
    Ok(None)
}

/// Begins anew as a restarted machine would: another shell, another terminal.
async fn new_round<S: Scaffold>(scaffold: &mut S, scene: &Scene<'_>) -> Result<(), ScaffoldError> {
    let ended = scene.sandbox.shell("exit 0", &ExecLimit::default()).await;
    ended.map_err(|error| ScaffoldError::of(error, Vec::new()))?;
    scaffold.open(scene, "").await.map(drop)
}

fn limit_reached<N>(talk: &Talk, scene: &Scene<'_>, company: &Company<'_, N>) -> Option<End> {
    let limits = scene.limits;
    if talk.turns.len() >= limits.turns as usize {
        return Some(End::StepLimit);
    }
    if scene.left() == Duration::ZERO {
        return Some(End::TimedOut);
    }
    if limits.tokens.is_some_and(|most| talk.tokens() >= most) {
        return Some(End::TokenLimit);
    }
    if limits.dollars.is_some_and(|dollars| talk.cost(&dollars) >= dollars.most) {
        return Some(End::DollarLimit);
    }
    let full = limits.context.zip(talk.next_prompt()).is_some_and(|(most, next)| {
        let room = if company.summariser.is_some() { summary::room(most) } else { 0 };
        next >= most - room
    });
    full.then_some(End::ContextFull)
}

/// Goes on from a summary. Where that cannot be, or would not help, why the episode ends: a conversation that does not fit right after
/// a handoff would not fit after another.
async fn hand_off<S: Scaffold, N: Notebook>(
    scaffold: &S,
    talk: &mut Talk,
    scene: &Scene<'_>,
    company: &mut Company<'_, N>,
) -> Result<Option<End>, AgentError> {
    let Some(summariser) = company.summariser.as_ref().filter(|_| talk.segment_start() < talk.turns.len())
    else {
        return Ok(Some(End::ContextFull));
    };
    let number = talk.handoffs.len();
    let screen = match (talk.screen.clone(), scaffold.screen()) {
        (Some(screen), _) => screen,
        (None, Some(screen)) => {
            company.notebook.handing_off(number, &screen).await?;
            // Kept until the handoff is done: whoever tries it again asks about the same screen.
            talk.screen = Some(screen.clone());
            screen
        }
        (None, None) => last_shown(talk),
    };
    let asked = Instant::now();
    let summed_up = summariser.hand_off(talk, &screen, scene.limits.context);
    let Ok(handed) = tokio::time::timeout(scene.left(), summed_up).await else {
        return Ok(Some(End::TimedOut));
    };
    let mut handed = handed?;
    handed.seen.at_ms = now_ms();
    handed.seen.think_ms = asked.elapsed().as_secs_f64() * 1e3;
    company.notebook.handed_off(number, &handed).await?;
    talk.handoffs.push(handed);
    talk.screen = None;
    Ok(None)
}

/// What a scaffold without a screen showed last.
fn last_shown(talk: &Talk) -> String {
    let shown = talk.seen.last().map(|seen| seen.shown.as_slice()).unwrap_or_default();
    shown.iter().map(|shown| shown.content.as_str()).collect::<Vec<_>>().join("\n")
}

enum TurnError {
    Agent(AgentError),
    Scaffold(ScaffoldError),
}

async fn turn<S: Scaffold, N: Notebook>(
    scaffold: &mut S,
    said: &Said,
    talk: &Talk,
    scene: &Scene<'_>,
    company: &mut Company<'_, N>,
) -> Result<Step, TurnError> {
    if let Some(mentor) = &mut company.mentor
        && let Some(question) = Mentor::question(said)
    {
        let (answer, guide) = mentor.answer(question, talk).await.map_err(TurnError::Agent)?;
        let shown = vec![Shown::text(answer)];
        return Ok(Step { kind: TurnKind::Asked, shown, guide, ..Step::default() });
    }
    scaffold.take(said, scene).await.map_err(TurnError::Scaffold)
}

/// How an episode ends whose sandbox is lost. What is not the agent's doing stays an error.
fn lost(error: ScaffoldError) -> Result<(Ended, Vec<crate::model::Act>), AgentError> {
    match error {
        ScaffoldError::Prompts(error) => Err(error.into()),
        ScaffoldError::Engine(error) => Err(error.into()),
        ScaffoldError::Lost { cause, acts } => Ok((Ended { end: End::SandboxLost, cause }, acts)),
    }
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
    u64::try_from(since).unwrap_or_default()
}
