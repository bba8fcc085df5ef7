//! One attempt of a model at a task, in whatever scaffold and arm; also of the reference and of nobody.

use std::time::Instant;

use serde_json::json;

use super::forensics::Forensics;
use super::record::{ROLLOUT, RolloutError, RolloutLog, read_record, rollout_id};
use super::scripted::now_ms;
use super::steps::{RoundSeen, Steps};
use super::venue::{Afterwards, Hosted, Venue, is_transient};
use crate::agent::terminal::Wake;
use crate::agent::terminus::{self, Format};
use crate::agent::{
    AgentError, ArmTexts, BASH, BASH_BLOCK, BashBlock, BashTool, COMMAND, Company, Ended, Installed,
    Logprobs, Mentor, ModelMind, Prompts, PromptsError, REACT, React, STOP, Scaffold, Scene, StepLimits,
    TERMINUS_JSON, TERMINUS_XML, Talk, Terminus, play, run_installed, terminus_texts,
};
use crate::assets::Assets;
use crate::llm::{ModelRole, Models};
use crate::model::{
    Actor, Arm, End, FileTree, ForkPoint, Key, ModelActor, Outcome, Round, Shown, Sight, TaskName,
    TrajectoryRecord,
};
use crate::sandbox::{Image, Sandbox};
use crate::store::key;
use crate::verify::{Act, Condition, Lab};

/// How often an attempt is tried again when the engine fails under it.
const RETRIES: u32 = 3;

/// The protocols that models can speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ScaffoldKind {
    Bash,
    BashBlock,
    React,
    TerminusJson,
    TerminusXml,
    /// A program of its own in the sandbox.
    Command,
}

impl ScaffoldKind {
    /// The name in records and rows.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bash => BASH,
            Self::BashBlock => BASH_BLOCK,
            Self::React => REACT,
            Self::TerminusJson => TERMINUS_JSON,
            Self::TerminusXml => TERMINUS_XML,
            Self::Command => COMMAND,
        }
    }
}

/// The texts of all scaffolds and arms, and the patterns of forensics.
#[derive(Clone, Debug)]
pub struct Texts {
    bash_block: Prompts,
    bash: BashTool,
    react: React,
    terminus_json: terminus::Texts,
    terminus_xml: terminus::Texts,
    arms: ArmTexts,
    forensics: Forensics,
}

impl Texts {
    /// Reads them.
    pub fn load(assets: &Assets, forensics: Forensics) -> Result<Self, PromptsError> {
        Ok(Self {
            bash_block: Prompts::load(assets)?,
            bash: BashTool::load(assets)?,
            react: React::load(assets)?,
            terminus_json: terminus_texts(assets, Format::Json)?,
            terminus_xml: terminus_texts(assets, Format::Xml)?,
            arms: ArmTexts::load(assets)?,
            forensics,
        })
    }

    /// The patterns by which commands are examined.
    pub fn forensics(&self) -> &Forensics {
        &self.forensics
    }

    fn digest(&self, scaffold: ScaffoldKind) -> String {
        match scaffold {
            ScaffoldKind::Bash => self.bash.digest(),
            ScaffoldKind::BashBlock => self.bash_block.digest(),
            ScaffoldKind::React => self.react.digest(),
            ScaffoldKind::TerminusJson => self.terminus_json.digest(),
            ScaffoldKind::TerminusXml => self.terminus_xml.digest(),
            // What such an agent is told it tells itself.
            ScaffoldKind::Command => String::new(),
        }
    }
}

/// A task, as rollouts take it.
#[derive(Clone, Debug)]
pub struct Posed<'a> {
    pub name: TaskName,
    pub instruction: &'a str,
    pub task_digest: String,
    pub environment_digest: String,
    /// What tells the task from others, for keys.
    pub identity: String,
    pub venue: Venue<'a>,
    /// Shown to an adversary that may see them.
    pub tests: &'a FileTree,
}

/// How a model acts.
#[derive(Clone, Debug)]
pub struct Casting {
    pub scaffold: ScaffoldKind,
    pub wake: Wake,
    pub role: ModelRole,
    pub actor: ModelActor,
    pub limits: StepLimits,
    /// Further rounds after a failure, in the arm that has them.
    pub rounds: u32,
    pub logprobs: Logprobs,
    /// What bash runs, where the scaffold is a program of its own.
    pub command: Option<String>,
    /// Where it begins, in the arm that begins elsewhere.
    pub fork: Option<Fork>,
}

/// A state from which several attempts begin, and the conversation that led there.
#[derive(Clone, Debug)]
pub struct Fork {
    pub point: ForkPoint,
    pub talk: Talk,
    pub state: Image,
}

/// Runs attempt number `attempt`, or remembers it, or goes on with it where an earlier process left it.
pub async fn attempt(
    lab: &Lab<'_>,
    models: &Models,
    texts: &Texts,
    posed: &Posed<'_>,
    casting: &Casting,
    attempt: u32,
) -> Result<Key, RolloutError> {
    let rounds = if casting.actor.arm == Arm::SelfCorrection { casting.rounds } else { 0 };
    if rounds > 0 && matches!(posed.venue, Venue::InPlace { .. }) {
        let why =
            "self-correction needs the clean room, which judges a copy, and this task is judged in place";
        return Err(RolloutError::Unplayable { task: posed.name.to_string(), why });
    }
    let outside_our_loop = [Arm::SelfCorrection, Arm::Interactive, Arm::PlanInteractive, Arm::Fork];
    if casting.scaffold == ScaffoldKind::Command && outside_our_loop.contains(&casting.actor.arm) {
        let why = "an agent with a loop of its own plays the arms base and plan alone";
        return Err(RolloutError::Unplayable { task: posed.name.to_string(), why });
    }
    let (settings, _) = models.settings(casting.role).map_err(AgentError::Call)?;
    let input = json!({
        "task": posed.identity,
        "environment": posed.environment_digest,
        "scaffold": casting.scaffold.as_str(),
        "texts": texts.digest(casting.scaffold),
        "arms": texts.arms.digest(),
        "command": casting.command,
        "early_wake": casting.wake == Wake::WhenDone,
        "actor": casting.actor,
        "settings": settings,
        "limits": casting.limits,
        "rounds": rounds,
        "fork": casting.fork.as_ref().map(|fork| &fork.point),
        "forensics": texts.forensics.digest(),
        "attempt": attempt,
    });
    let key = key(ROLLOUT, &input)?;
    if read_record(lab.store, &key)?.is_some() {
        return Ok(key);
    }
    let unit = unit(posed, casting, attempt);
    let clock = Instant::now();
    let mut steps = Steps::new(lab.store, &key);
    let (mut talk, mut ended_rounds, begun) = steps.load(casting.fork.as_ref().map(|fork| &fork.talk))?;
    let started_ms = begun.unwrap_or_else(now_ms);
    // What a fork shares with its parent is in its state already.
    let mut state = casting.fork.as_ref().map(|fork| fork.state.clone());
    let instruction = arm_instruction(models, texts, posed, &casting.actor, &unit).await?;
    let stage = Stage { lab, models, texts, posed, casting, unit: &unit, instruction: &instruction };
    let hosted = loop {
        let round = u32::try_from(ended_rounds.len()).unwrap_or(u32::MAX);
        let keep = if round < rounds { Afterwards::Keep } else { Afterwards::Nothing };
        let hosted = stage.round(round, state.as_ref(), keep, &mut talk, &mut steps).await?;
        let again =
            round < rounds && hosted.ended.end == End::Submitted && hosted.verdict.outcome == Outcome::Fail;
        let (true, Some(kept)) = (again, &hosted.kept) else { break hosted };
        let feedback = stage.feedback(&hosted, &talk)?;
        let ended = Round { turns: talk.turns.len(), verdict: hosted.verdict.clone() };
        let seen = RoundSeen { feedback: feedback.clone(), verifier: hosted.log.clone() };
        steps.round_ended(ended_rounds.len(), &ended, &seen).await?;
        ended_rounds.push(ended);
        if let Some(last) = talk.seen.last_mut() {
            last.shown = vec![Shown::text(feedback)];
        }
        talk.done = talk.turns.len();
        state = Some(kept.clone());
    };
    let exploits = texts.forensics.examine(&talk.turns);
    let record = TrajectoryRecord {
        task: posed.name.clone(),
        task_digest: posed.task_digest.clone(),
        environment_digest: posed.environment_digest.clone(),
        attempt,
        actor: Actor::Model(casting.actor.clone()),
        scaffold: casting.scaffold.as_str().to_owned(),
        system: talk.opening.system,
        prompt: talk.opening.prompt,
        tools: talk.opening.tools,
        turns: talk.turns,
        end: hosted.ended.end,
        verdict: hosted.verdict,
        rounds: ended_rounds,
        fork: casting.fork.as_ref().map(|fork| fork.point.clone()),
        exploits,
    };
    let log = RolloutLog {
        started_ms,
        turns: talk.seen,
        verifier: hosted.log,
        engine: hosted.engine.to_owned(),
        seconds: clock.elapsed().as_secs_f64(),
    };
    lab.commit(ROLLOUT, &key, &record, &log)?;
    Ok(key)
}

/// Where the calls of an attempt stand. It has no hash in it, so that a recording can be played after a prompt was changed.
fn unit(posed: &Posed<'_>, casting: &Casting, attempt: u32) -> String {
    let ModelActor { arm, adversary, .. } = &casting.actor;
    let arm = match adversary {
        None => arm.as_str(),
        Some(Sight::Blind) => "adversary_blind",
        Some(Sight::Tests) => "adversary_tests",
    };
    format!("{}/{}/{arm}/{attempt}", posed.name, casting.scaffold.as_str())
}

/// The state that a rollout had after its first `turns` turns, made by doing them again: every attempt that begins there begins at
/// exactly the same files.
pub async fn fork(
    lab: &Lab<'_>,
    texts: &Texts,
    posed: &Posed<'_>,
    casting: &Casting,
    parent: &Key,
    turns: usize,
) -> Result<Fork, RolloutError> {
    let unplayable = |why| RolloutError::Unplayable { task: posed.name.to_string(), why };
    let Venue::CleanRoom(filed) = posed.venue else {
        return Err(unplayable("forks need the clean room, and this task is judged in place"));
    };
    let Some((record, log)) = read_record(lab.store, parent)? else {
        return Err(unplayable("the rollout that it would part from is not in the run folder"));
    };
    if record.turns.len() <= turns {
        return Err(unplayable("the rollout that it would part from has fewer turns"));
    }
    let mut talk = Talk {
        opening: crate::agent::Opening { system: record.system, prompt: record.prompt, tools: record.tools },
        turns: record.turns.into_iter().take(turns).collect(),
        seen: log.turns.into_iter().take(turns).collect(),
        done: 0,
    };
    let engine = lab.engine.get().await.map_err(crate::verify::LabError::Engine)?;
    let image = lab.image(filed).await.map_err(crate::verify::LabError::Engine)?;
    let config = engine.image_config(&image).await.map_err(crate::verify::LabError::Engine)?;
    let spec = crate::verify::solver_container(&image, filed.task);
    let sandbox = engine.launch(&spec).await.map_err(crate::verify::LabError::Engine)?;
    // No further turn: the recorded ones are done again, and the limit of turns is reached.
    let limits = StepLimits { turns: 0, ..casting.limits };
    let ended = {
        let scene = Scene {
            sandbox: &sandbox,
            env: &config.env,
            limits: &limits,
            deadline: Instant::now() + limits.total,
        };
        redo(texts, casting, &mut talk, posed.instruction, &scene).await?
    };
    if ended.end != End::StepLimit {
        return Err(unplayable("its recorded turns came to something else when they were done again"));
    }
    let stopped = sandbox.stop().await.map_err(crate::verify::LabError::Engine)?;
    let state = stopped.commit().await.map_err(crate::verify::LabError::Engine)?;
    stopped.destroy().await;
    talk.done = turns;
    Ok(Fork { point: ForkPoint { parent: rollout_id(parent), turns }, talk, state })
}

/// What the rounds of one attempt share.
struct Stage<'a> {
    lab: &'a Lab<'a>,
    models: &'a Models,
    texts: &'a Texts,
    posed: &'a Posed<'a>,
    casting: &'a Casting,
    unit: &'a str,
    instruction: &'a str,
}

impl Stage<'_> {
    /// One round: an episode and its verdict. Tried again where the engine fails: the turns that were said are then done again, not
    /// asked for.
    async fn round(
        &self,
        round: u32,
        state: Option<&Image>,
        afterwards: Afterwards,
        talk: &mut Talk,
        steps: &mut Steps,
    ) -> Result<Hosted, RolloutError> {
        let mut tried = 0;
        loop {
            let hosted = self.posed.venue.host(self.lab, state, afterwards, async |sandbox, env| {
                self.episode(round, talk, steps, sandbox, env).await
            });
            match hosted.await {
                Err(error) if is_transient(&error) && tried < RETRIES && !self.lab.drain.is_cancelled() => {
                    tried += 1;
                }
                ended => return ended,
            }
        }
    }

    async fn episode(
        &self,
        round: u32,
        talk: &mut Talk,
        steps: &mut Steps,
        sandbox: &Sandbox,
        env: &[(String, String)],
    ) -> Result<Ended, AgentError> {
        let Self { models, texts, casting, unit, .. } = *self;
        let limits = &casting.limits;
        // What was used of the time before an interruption stays used.
        let used: f64 = talk.seen.iter().map(|seen| seen.think_ms).sum();
        let left = limits.total.saturating_sub(std::time::Duration::from_secs_f64(used.max(0.0) / 1e3));
        let scene = Scene { sandbox, env, limits, deadline: Instant::now() + left };
        let stop = match casting.scaffold {
            ScaffoldKind::React => vec![STOP.to_owned()],
            _ => Vec::new(),
        };
        let mut mind =
            ModelMind { models, role: casting.role, unit, round, stop, logprobs: casting.logprobs };
        let mentor = matches!(casting.actor.arm, Arm::Interactive | Arm::PlanInteractive).then_some(Mentor {
            models,
            texts: &texts.arms,
            unit,
            instruction: self.posed.instruction,
        });
        let company = Company { notebook: steps, mentor };
        let instruction = self.instruction;
        match casting.scaffold {
            ScaffoldKind::Bash => {
                play(&mut texts.bash.clone(), &mut mind, talk, instruction, &scene, company).await
            }
            ScaffoldKind::BashBlock => {
                play(&mut BashBlock::new(&texts.bash_block), &mut mind, talk, instruction, &scene, company)
                    .await
            }
            ScaffoldKind::React => {
                play(&mut texts.react.clone(), &mut mind, talk, instruction, &scene, company).await
            }
            ScaffoldKind::TerminusJson => {
                let mut scaffold = Terminus::new(texts.terminus_json.clone(), casting.wake);
                play(&mut scaffold, &mut mind, talk, instruction, &scene, company).await
            }
            ScaffoldKind::TerminusXml => {
                let mut scaffold = Terminus::new(texts.terminus_xml.clone(), casting.wake);
                play(&mut scaffold, &mut mind, talk, instruction, &scene, company).await
            }
            ScaffoldKind::Command => {
                let command = casting.command.as_deref().unwrap_or_default();
                let installed = Installed { command, models, role: casting.role, unit };
                run_installed(&installed, instruction, talk, &scene).await
            }
        }
    }

    /// What the agent reads after a round that failed.
    fn feedback(&self, hosted: &Hosted, talk: &Talk) -> Result<String, PromptsError> {
        let checks = &hosted.verdict.checks;
        let failed: Vec<_> = checks
            .iter()
            .filter(|check| !check.passed)
            .map(|check| {
                let message = hosted.log.messages.get(&check.id).map_or("", String::as_str);
                (check.id.to_string(), message.lines().next().unwrap_or_default().to_owned())
            })
            .collect();
        self.texts.arms.feedback(&failed, checks.len() - failed.len(), talk)
    }
}

/// Does the turns of `talk` again, and asks nobody.
async fn redo(
    texts: &Texts,
    casting: &Casting,
    talk: &mut Talk,
    instruction: &str,
    scene: &Scene<'_>,
) -> Result<Ended, AgentError> {
    async fn with<S: Scaffold>(
        mut scaffold: S,
        talk: &mut Talk,
        instruction: &str,
        scene: &Scene<'_>,
    ) -> Result<Ended, AgentError> {
        let company = Company { notebook: &mut crate::agent::NoNotebook, mentor: None };
        play(&mut scaffold, &mut Silent, talk, instruction, scene, company).await
    }
    match casting.scaffold {
        ScaffoldKind::Bash => with(texts.bash.clone(), talk, instruction, scene).await,
        ScaffoldKind::BashBlock => with(BashBlock::new(&texts.bash_block), talk, instruction, scene).await,
        ScaffoldKind::React => with(texts.react.clone(), talk, instruction, scene).await,
        ScaffoldKind::TerminusJson => {
            with(Terminus::new(texts.terminus_json.clone(), casting.wake), talk, instruction, scene).await
        }
        ScaffoldKind::TerminusXml => {
            with(Terminus::new(texts.terminus_xml.clone(), casting.wake), talk, instruction, scene).await
        }
        // Its turns are not ours to repeat; nothing that has them is ever forked.
        ScaffoldKind::Command => Ok(Ended { end: End::ResumeDiverged, cause: String::new() }),
    }
}

/// Nobody. Its episodes end before it would have to say something.
struct Silent;

impl crate::agent::Mind for Silent {
    async fn next(&mut self, _: &Talk) -> Result<crate::agent::Said, AgentError> {
        Ok(crate::agent::Said::default())
    }
}

/// The instruction with what the arm adds to it.
async fn arm_instruction(
    models: &Models,
    texts: &Texts,
    posed: &Posed<'_>,
    actor: &ModelActor,
    unit: &str,
) -> Result<String, RolloutError> {
    let arms = &texts.arms;
    if let Some(sight) = actor.adversary {
        return Ok(arms.adversary(sight, posed.instruction, &as_text(posed.tests))?);
    }
    let mut instruction = posed.instruction.to_owned();
    if matches!(actor.arm, Arm::Plan | Arm::PlanInteractive) {
        let plan = arms.plan(models, unit, posed.instruction).await?;
        instruction = arms.with_plan(&instruction, &plan)?;
    }
    if matches!(actor.arm, Arm::Interactive | Arm::PlanInteractive) {
        instruction = arms.with_mentor(&instruction)?;
    }
    Ok(instruction)
}

/// Test files as one text, as much as a model can read.
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

/// A rollout of the task's own solution, or of nobody: what an agent's are measured by.
pub async fn reference(
    lab: &Lab<'_>,
    posed: &Posed<'_>,
    actor: &Actor,
    attempt: u32,
) -> Result<Key, RolloutError> {
    let input = json!({
        "task": posed.identity,
        "environment": posed.environment_digest,
        "actor": actor,
        "attempt": attempt,
    });
    let key = key(ROLLOUT, &input)?;
    if read_record(lab.store, &key)?.is_some() {
        return Ok(key);
    }
    let started_ms = now_ms();
    let act = |solution| if *actor == Actor::Oracle { Act::Solve(solution) } else { Act::Nothing };
    let (trial, seen) = match posed.venue {
        Venue::CleanRoom(filed) => {
            lab.trial(filed, act(&filed.task.solution), Condition::Ordinary, attempt).await?
        }
        Venue::InPlace { task, images } => {
            let none = FileTree::default();
            let solution = task.solution().unwrap_or(&none);
            lab.trial_in_place(task, images, act(solution), Condition::Ordinary, attempt).await?
        }
    };
    let record = TrajectoryRecord {
        task: posed.name.clone(),
        task_digest: posed.task_digest.clone(),
        environment_digest: posed.environment_digest.clone(),
        attempt,
        actor: actor.clone(),
        scaffold: actor.teacher().to_owned(),
        system: String::new(),
        prompt: posed.instruction.to_owned(),
        tools: Vec::new(),
        turns: Vec::new(),
        end: if trial.verdict.outcome == Outcome::Timeout { End::TimedOut } else { End::Submitted },
        verdict: trial.verdict,
        rounds: Vec::new(),
        fork: None,
        exploits: Vec::new(),
    };
    let log = RolloutLog {
        started_ms,
        turns: Vec::new(),
        verifier: seen.verifier,
        engine: seen.engine,
        seconds: seen.seconds,
    };
    lab.commit(ROLLOUT, &key, &record, &log)?;
    Ok(key)
}
