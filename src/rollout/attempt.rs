//! One attempt of a model at a task, in any scaffold and arm.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::{Duration, Instant};

use tracing::Instrument as _;

use super::address::{address, unit};
use super::conversations::{self, Loaded, StepConversation};
use super::evaluation::{Evaluated, Evaluation, RoundPlan, Slot};
use super::fork::Fork;
use super::preflight::Preflight;
use super::record::{ROLLOUT, RolloutError, RolloutLog, read_record};
use super::texts::Texts;
use super::turn_log::RoundSeen;
use crate::agent::{
    AgentError, Deadline, Driver, Ended, EpisodeContext, Hooks, Installed, Logprobs, Machine, Mentor,
    ModelPolicy, PromptsError, Scaffold, StepLimits, Summariser, open, run_episode, run_installed,
};
use crate::clock::now_ms;
use crate::llm::{ModelRole, Models};
use crate::model::{
    Actor, Arm, Assume, End, FileTree, Key, ModelActor, Outcome, Round, Shown, TaskDigest, TaskName,
    TrajectoryRecord,
};
use crate::sandbox::Sandbox;
use crate::verify::{HashedTask, Retain, Target, TrialRunner, with_lost_time};

/// A task that is ready for rollouts.
#[derive(Clone, Debug)]
pub struct PreparedTask<'a> {
    pub name: TaskName,
    pub instruction: &'a str,
    /// Steps after the first, where the task has several.
    pub further: Vec<FurtherStep<'a>>,
    pub task_digest: Option<TaskDigest>,
    /// How often instruction or machine were rewritten before. Solvers of two versions are asked
    /// different things.
    pub edition: u32,
    pub target: &'a dyn Target,
}

impl<'a> PreparedTask<'a> {
    /// One of our own tasks, judged in the clean room.
    pub fn ours(hashed: &'a HashedTask<'a>) -> Self {
        let task = &hashed.task;
        Self {
            name: task.name.clone(),
            instruction: &task.instruction,
            further: Vec::new(),
            task_digest: None,
            edition: 0,
            target: hashed,
        }
    }
}

/// A step of a task after its first one: a new conversation in the same container.
#[derive(Clone, Debug)]
pub struct FurtherStep<'a> {
    pub name: &'a str,
    pub instruction: &'a str,
    /// Time limit.
    pub total: Duration,
}

/// How a model acts: scaffold, role, limits.
#[derive(Clone, Debug)]
pub struct AgentConfig {
    pub scaffold: Arc<dyn Scaffold>,
    pub role: ModelRole,
    pub actor: ModelActor,
    pub limits: StepLimits,
    /// Further rounds after a failure, in the arm that has them.
    pub rounds: u32,
    pub logprobs: Logprobs,
    /// What happens to a conversation that would not fit the model's context.
    pub overflow: Overflow,
    /// The state in which attempts of the arm `fork` begin.
    pub fork: Option<Fork>,
    /// Where the agent was found to run.
    pub preflight: Preflight,
}

/// What happens to a conversation that would not fit the model's context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overflow {
    /// The episode ends.
    #[default]
    Ends,
    /// The conversation continues from a summary, as another segment.
    Summarised,
}

/// Runs attempt number `attempt`. A committed attempt is returned as it is; one that was
/// interrupted is resumed.
pub async fn attempt(
    runner: &TrialRunner<'_>,
    models: &Models,
    texts: &Texts,
    prepared: &PreparedTask<'_>,
    agent_config: &AgentConfig,
    attempt: u32,
) -> Result<Key, RolloutError> {
    let (task, scaffold) = (&prepared.name, agent_config.scaffold.name());
    let span = tracing::info_span!("rollout", %task, scaffold, attempt);
    Box::pin(run_attempt(runner, models, texts, prepared, agent_config, attempt)).instrument(span).await
}

async fn run_attempt(
    runner: &TrialRunner<'_>,
    models: &Models,
    texts: &Texts,
    prepared: &PreparedTask<'_>,
    agent_config: &AgentConfig,
    attempt: u32,
) -> Result<Key, RolloutError> {
    check_supported(prepared, agent_config)?;
    let rounds = if agent_config.actor.arm == Arm::SelfCorrection { agent_config.rounds } else { 0 };
    let key = address(models, texts, prepared, agent_config, attempt)?;
    if read_record(runner.store, &key)?.is_some() {
        return Ok(key);
    }
    if let Driver::InSandbox(program) = agent_config.scaffold.driver() {
        agent_config.preflight.check(runner, prepared.target, program).await?;
    }
    let unit = unit(prepared, agent_config, attempt);
    let clock = Instant::now();
    let parent = agent_config.fork.as_ref().map(|fork| &fork.conversation);
    let Loaded { mut parts, rounds: mut ended_rounds, started } =
        conversations::load(runner.store, &key, prepared.further.len() + 1, parent)?;
    let started_ms = started.unwrap_or_else(now_ms);
    // A fork's state already contains the effects of the turns that it shares with its parent.
    let mut state = agent_config.fork.as_ref().map(|fork| fork.state.clone());
    let gave_up = AtomicU32::new(0);
    let stage =
        AttemptContext { runner, models, texts, prepared, agent_config, unit: &unit, gave_up: &gave_up };
    let evaluated = loop {
        let round = u32::try_from(ended_rounds.len()).unwrap_or(u32::MAX);
        let retain = if round < rounds { Retain::StateImage } else { Retain::Nothing };
        let plan = RoundPlan { state: state.as_ref(), retain };
        let evaluated = stage.round(round, plan, &mut parts).await?;
        let again = round < rounds
            && evaluated.ended.end == End::Submitted
            && evaluated.verdict.outcome == Outcome::Fail;
        // Only tasks of one step have rounds.
        let (true, Some(image), [StepConversation { conversation, turn_log, .. }]) =
            (again, &evaluated.state_image, parts.as_mut_slice())
        else {
            break evaluated;
        };
        let feedback = stage.feedback(&evaluated)?;
        let ended = Round { turns: conversation.turns.len(), verdict: evaluated.verdict.clone() };
        let seen = RoundSeen { feedback: feedback.clone(), verifier: evaluated.log.clone() };
        turn_log.round_ended(ended_rounds.len(), &ended, &seen).await?;
        ended_rounds.push(ended);
        if let Some(last) = conversation.seen.last_mut() {
            last.shown = vec![Shown::text(feedback)];
        }
        conversation.done = conversation.turns.len();
        state = Some(image.clone());
    };
    let names: Vec<&str> = prepared.further.iter().map(|step| step.name).collect();
    let plans = parts.iter().filter_map(|part| part.plan.clone()).collect();
    let conversation = conversations::merged(parts, &names);
    let exploits = texts.forensics().examine(conversation.all_turns());
    let (handoffs, handoffs_seen) = conversations::halves(conversation.handoffs);
    let (threads, threads_seen) = conversation.threads.into_iter().map(conversations::recorded).unzip();
    let record = TrajectoryRecord {
        task: prepared.name.clone(),
        task_digest: prepared.task_digest.clone(),
        environment_digest: Some(prepared.target.environment_digest().clone()),
        attempt,
        actor: Actor::Model(agent_config.actor.clone()),
        scaffold: agent_config.scaffold.name().to_owned(),
        system: conversation.opening.system,
        prompt: conversation.opening.prompt,
        opening: conversation.opening.messages,
        tools: conversation.opening.tools,
        turns: conversation.turns,
        threads,
        end: evaluated.ended.end,
        verdict: evaluated.verdict,
        rounds: ended_rounds,
        plans,
        handoffs,
        fork: agent_config.fork.as_ref().map(|fork| fork.point.clone()),
        exploits,
    };
    let log = RolloutLog {
        started_ms,
        turns: conversation.seen,
        handoffs: handoffs_seen,
        threads: threads_seen,
        cause: evaluated.ended.cause,
        verifier: evaluated.log,
        engine: evaluated.engine.to_owned(),
        seconds: clock.elapsed().as_secs_f64(),
    };
    runner.commit(ROLLOUT, &key, &record, &log)?;
    Ok(key)
}

/// Refuses combinations of task, scaffold and arm that are not supported, before any work begins.
fn check_supported(prepared: &PreparedTask<'_>, agent_config: &AgentConfig) -> Result<(), RolloutError> {
    let arm = agent_config.actor.arm;
    let of_one_step = prepared.further.is_empty();
    let own_loop = matches!(agent_config.scaffold.driver(), Driver::InSandbox(_));
    let why = match () {
        () if own_loop && !of_one_step => "installed agents support only tasks with one step",
        () if own_loop && !matches!(arm, Arm::Base | Arm::Plan) => {
            "installed agents support only the arms base and plan"
        }
        () if own_loop && agent_config.overflow == Overflow::Summarised => {
            "installed agents manage their own context; use them without --summarise"
        }
        () if !of_one_step && matches!(arm, Arm::SelfCorrection | Arm::Fork) => {
            "the arms self-correction and fork need a task with one step, and this task has several"
        }
        () => return Ok(()),
    };
    Err(RolloutError::UnsupportedConfiguration { task: prepared.name.to_string(), why })
}

/// What all rounds of one attempt share.
struct AttemptContext<'a> {
    runner: &'a TrialRunner<'a>,
    models: &'a Models,
    texts: &'a Texts,
    prepared: &'a PreparedTask<'a>,
    agent_config: &'a AgentConfig,
    unit: &'a str,
    /// How often an installed agent has given up.
    gave_up: &'a AtomicU32,
}

impl AttemptContext<'_> {
    /// Runs one round: an episode and its verdict. Retried if the engine fails: recorded turns are
    /// then executed again, without new requests.
    async fn round(
        &self,
        round: u32,
        plan: RoundPlan<'_>,
        parts: &mut [StepConversation],
    ) -> Result<Evaluated, RolloutError> {
        let solve = async |step, sandbox: &Sandbox, env: &[(String, String)], assume| {
            match parts.get_mut(step) {
                Some(part) => self.episode(round, step, part, sandbox, env, assume).await,
                // A target has the steps that its task has.
                None => Ok(Ended::by(End::Submitted)),
            }
        };
        let opens = async |sandbox: &Sandbox, env: &[(String, String)]| {
            let (limits, machine) = (&self.agent_config.limits, Machine::Fresh);
            let drain = self.runner.drain.clone();
            let deadline = Deadline::after(limits.total, sandbox.clock().clone());
            let episode =
                EpisodeContext { sandbox, env, limits, deadline, assume: Assume::Nothing, machine, drain };
            open(self.agent_config.scaffold.driver(), &episode).await
        };
        let (runner, target) = (self.runner, self.prepared.target);
        let layer = match self.agent_config.scaffold.driver() {
            Driver::InSandbox(program) => program.layer(),
            Driver::TurnByTurn(_) => None,
        };
        Evaluation { runner, target, slot: Slot::ForJudging, layer }.run(plan, solve, opens).await
    }

    async fn episode(
        &self,
        round: u32,
        step: usize,
        part: &mut StepConversation,
        sandbox: &Sandbox,
        env: &[(String, String)],
        assume: Assume,
    ) -> Result<Ended, AgentError> {
        let Self { runner, models, texts, prepared, agent_config, gave_up, .. } = *self;
        let StepConversation { conversation, turn_log, plan } = part;
        let further = step.checked_sub(1).and_then(|at| prepared.further.get(at));
        let unit = &further
            .map_or_else(|| self.unit.to_owned(), |further| format!("{}/{}", self.unit, further.name));
        let task = further.map_or(prepared.instruction, |further| further.instruction);
        let instruction = &self.instruction(task, unit, plan).await?;
        let limits = &StepLimits {
            total: further.map_or(agent_config.limits.total, |further| further.total),
            ..agent_config.limits
        };
        // Time used before an interruption counts.
        let left = conversation.left_in_round(limits.total, conversation.done);
        let deadline = Deadline::after(left, sandbox.clock().clone());
        let is_fresh = step == 0 && round == 0 && agent_config.fork.is_none();
        let machine = if is_fresh { Machine::Fresh } else { Machine::Used };
        let drain = runner.drain.clone();
        let episode = EpisodeContext { sandbox, env, limits, deadline, assume, machine, drain };
        let mut policy = ModelPolicy {
            models,
            role: agent_config.role,
            unit,
            round,
            stop: agent_config.scaffold.stop().iter().map(|&text| text.to_owned()).collect(),
            logprobs: agent_config.logprobs,
        };
        let mentor = matches!(agent_config.actor.arm, Arm::Interactive | Arm::PlanInteractive)
            .then_some(Mentor { models, texts: &texts.arms, unit, instruction: task });
        let summariser = (agent_config.overflow == Overflow::Summarised).then_some(Summariser {
            models,
            role: agent_config.role,
            unit,
            round,
            texts: agent_config.scaffold.summary_texts(&texts.summary),
            instruction,
        });
        let hooks = Hooks { turn_log, mentor, summariser };
        let run = Box::pin(async {
            match agent_config.scaffold.driver() {
                Driver::TurnByTurn(protocol) => {
                    run_episode(protocol, &mut policy, conversation, instruction, &episode, hooks).await
                }
                Driver::InSandbox(program) => {
                    let installed = Installed { program, models, role: agent_config.role, unit, gave_up };
                    run_installed(&installed, instruction, conversation, &episode).await
                }
            }
        });
        let engine = runner.engine.get().await?;
        with_lost_time(engine, sandbox, |time| episode.deadline.extend(time), run).await
    }

    /// The instruction `task` with the additions of the arm. `plan_call` becomes the call that
    /// returned a plan.
    async fn instruction(
        &self,
        task: &str,
        unit: &str,
        plan_call: &mut Option<Key>,
    ) -> Result<String, AgentError> {
        let Self { models, texts, prepared, agent_config, .. } = *self;
        let (arms, actor) = (&texts.arms, &agent_config.actor);
        if let Some(sight) = actor.adversary {
            return Ok(arms.adversary(sight, task, &as_text(prepared.target.tests()))?);
        }
        let mut instruction = task.to_owned();
        if matches!(actor.arm, Arm::Plan | Arm::PlanInteractive) {
            let (plan, call) = arms.plan(models, unit, task).await?;
            *plan_call = Some(call);
            instruction = arms.with_plan(&instruction, &plan)?;
        }
        if matches!(actor.arm, Arm::Interactive | Arm::PlanInteractive) {
            instruction = arms.with_mentor(&instruction)?;
        }
        Ok(instruction)
    }

    /// The message after a failed round.
    fn feedback(&self, evaluated: &Evaluated) -> Result<String, PromptsError> {
        let checks = &evaluated.verdict.checks;
        let failed: Vec<_> = checks
            .iter()
            .filter(|check| !check.passed)
            .map(|check| {
                let message = evaluated.log.messages.get(&check.id).map_or("", String::as_str);
                (check.id.to_string(), message.lines().next().unwrap_or_default().to_owned())
            })
            .collect();
        self.texts.arms.feedback(&failed, checks.len() - failed.len(), self.prepared.instruction)
    }
}

/// Test files as one text. Large files are omitted.
fn as_text(files: &FileTree) -> String {
    /// Of one file, in bytes.
    const MOST: usize = 20_000;
    let mut text = String::new();
    for (path, file) in files.iter() {
        if let Some(content) = file.as_text().filter(|content| content.len() <= MOST) {
            text.push_str(&format!("== {path}\n{content}\n"));
        }
    }
    text
}
