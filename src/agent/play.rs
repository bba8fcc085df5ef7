//! The agent loop: say, act, show, until the agent submits or a limit ends it.

use std::future::Future;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::arms::Mentor;
use super::scaffold::{ActSeen, Dollars, Opening, Said, Scaffold, ScaffoldError, Scene, Step};
use super::scripted::ScriptError;
use crate::llm::{CallError, ChatMessage, ToolCall};
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
}

/// A conversation as far as it has come.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Talk {
    pub opening: Opening,
    pub turns: Vec<Turn>,
    /// One for each turn.
    pub seen: Vec<TurnSeen>,
    /// Turns at the beginning whose effects the sandbox has already: they were said before it was made from a snapshot.
    pub done: usize,
}

/// What belongs to a turn and is an observation. Goes to `observed/`, never to the store.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TurnSeen {
    /// Milliseconds since 1970, when the message was there.
    pub at_ms: u64,
    /// Milliseconds that the agent took for the message, waiting included.
    #[serde(default)]
    pub think_ms: f64,
    /// What the agent read next.
    pub shown: Vec<Shown>,
    /// One for each act.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub acts: Vec<ActSeen>,
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

impl Talk {
    /// The conversation as a model is sent it.
    pub fn messages(&self) -> Vec<ChatMessage> {
        let mut messages = Vec::with_capacity(self.turns.len() * 2 + 2);
        if !self.opening.system.is_empty() {
            messages.push(ChatMessage::system(self.opening.system.clone()));
        }
        messages.push(ChatMessage::user(self.opening.prompt.clone()));
        for (turn, seen) in self.turns.iter().zip(&self.seen) {
            messages.push(ChatMessage {
                reasoning: turn.reasoning.clone(),
                tool_calls: turn
                    .tool_calls
                    .iter()
                    .map(|call| ToolCall {
                        id: call.id.clone(),
                        name: call.name.clone(),
                        arguments: call.arguments.clone(),
                    })
                    .collect(),
                ..ChatMessage::assistant(turn.content.clone())
            });
            messages.extend(seen.shown.iter().map(|shown| match &shown.tool_call {
                Some(id) => ChatMessage::tool(id.clone(), shown.content.clone()),
                None => ChatMessage::user(shown.content.clone()),
            }));
        }
        messages
    }

    /// Tokens that its calls have read and written.
    pub fn tokens(&self) -> u64 {
        self.turns.iter().filter_map(|turn| turn.usage).map(|usage| usage.prompt + usage.completion).sum()
    }

    /// US dollars that its calls have cost.
    fn cost(&self, price: &Dollars) -> f64 {
        let usages = self.turns.iter().filter_map(|turn| turn.usage);
        let cost = usages.map(|usage| {
            usage.prompt as f64 * price.per_million_read + usage.completion as f64 * price.per_million_written
        });
        cost.sum::<f64>() / 1e6
    }

    /// Tokens that the next request will have at least, if the server counts them: what the last one came to. What was shown since
    /// is counted at four bytes a token, which is few for what terminals print.
    fn next_prompt(&self) -> Option<u64> {
        const BYTES_PER_TOKEN: u64 = 4;
        let (turn, seen) = self.turns.iter().zip(&self.seen).next_back()?;
        let usage = turn.usage?;
        let shown: usize = seen.shown.iter().map(|shown| shown.content.len()).sum();
        Some(usage.prompt + usage.completion + shown as u64 / BYTES_PER_TOKEN)
    }
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
        if let Some(end) = limit_reached(talk, scene) {
            return Ok(Ended::by(end));
        }
        let asked = Instant::now();
        let said = match tokio::time::timeout(scene.left(), mind.next(talk)).await {
            Err(_) => return Ok(Ended::by(End::TimedOut)),
            Ok(Err(AgentError::Call(CallError::ContextLength { .. }))) => {
                return Ok(Ended::by(End::ContextFull));
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
        let turn = said.into_turn(step.kind, step.acts);
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

fn limit_reached(talk: &Talk, scene: &Scene<'_>) -> Option<End> {
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
    let full = limits.context.zip(talk.next_prompt()).is_some_and(|(most, next)| next >= most);
    full.then_some(End::ContextFull)
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
        let answer = mentor.answer(question, talk).await.map_err(TurnError::Agent)?;
        return Ok(Step { kind: TurnKind::Asked, shown: vec![Shown::text(answer)], ..Step::default() });
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
