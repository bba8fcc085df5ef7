//! A trial: a container is started, a script acts in it, and the result is judged.

use std::time::Instant;

use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::act::{Act, Used, perform};
use super::condition::Condition;
use super::fingerprint::{Fingerprint, StateHashes};
use super::missing_runner::MissingRunner;
use super::no_verdict::{Control, NoVerdict, Phase, Retries, settled};
use super::room::VerifierLog;
use super::target::{Images, JudgedSteps, Retain, Target, TrialContext, prepared};
use crate::model::{Assume, Outcome, ShellOutcome, Verdict};
use crate::sandbox::{Engine, LaunchSpec};

/// A finished trial.
#[derive(Debug)]
pub struct Trial {
    pub verdict: Verdict,
    /// How the script ended. `None` if nothing was done, or if the sandbox was lost.
    pub exit: Option<ShellOutcome>,
    /// How each script ended, by name, if there were several.
    pub ended: Vec<(String, ShellOutcome)>,
    pub log: TrialLog,
}

/// Observations of a trial. They are written to `observed/`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TrialLog {
    /// How the script ended. `None` if nothing was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<ShellOutcome>,
    /// Output of the script.
    pub output: String,
    /// Hash of the final state. Equal states have equal hashes.
    pub state: Option<String>,
    /// Hash of the final state with files in their canonical form
    /// ([`StateHashes::canonical_form`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canonical_form: Option<String>,
    /// The files of the final state.
    #[serde(default, skip_serializing_if = "Fingerprint::is_empty")]
    pub fingerprint: Fingerprint,
    pub verifier: VerifierLog,
    /// The number that the tests of another maker's task wrote: the first one, if there are several
    /// steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reward: Option<f64>,
    /// Resources that the action used, without the judging.
    #[serde(default)]
    pub used: Used,
    pub seconds: f64,
    pub engine: String,
}

impl TrialLog {
    /// Processor time of all containers of the trial, as far as the kernel counts it.
    pub fn processor_seconds(&self) -> f64 {
        self.used.processor_seconds.unwrap_or_default() + self.verifier.processor_seconds
    }
}

/// Runs a trial in fresh containers until it has a verdict ([`settled`]), or leaves it open.
pub async fn run_trial(
    engine: &Engine,
    images: &Images,
    target: &dyn Target,
    act: Act<'_>,
    condition: Condition<'_>,
    drain: &CancellationToken,
) -> Result<Trial, NoVerdict> {
    settled(
        Retries::new(Some(engine), drain),
        async |assume| {
            let context = TrialContext::new(engine, images, target, condition).await?;
            let missing_runner = MissingRunner::of(target, act, assume);
            try_trial(&TrialContext { assume, missing_runner, ..context }, target, act).await
        },
        async |_| control(engine, images, target, act).await,
    )
    .await
}

/// Runs a control for a trial of `act`: the untouched task, or its reference if `act` is to do
/// nothing and the task has a reference.
pub async fn control(engine: &Engine, images: &Images, target: &dyn Target, act: Act<'_>) -> Control {
    let does = match (act, target.solution()) {
        (Act::Nothing, Some(solution)) => Act::Solve(solution),
        (
            Act::Nothing
            | Act::Idle
            | Act::Solve(_)
            | Act::Edit { .. }
            | Act::Vary { .. }
            | Act::Attack { .. },
            _,
        ) => Act::Idle,
    };
    let trial = async {
        let context = TrialContext::new(engine, images, target, Condition::Ordinary).await?;
        let missing_runner = MissingRunner::of(target, act, Assume::Nothing);
        try_trial(&TrialContext { missing_runner, ..context }, target, does).await
    };
    Control::of(&trial.await.map(|trial| trial.verdict))
}

/// Runs a trial once.
async fn try_trial(
    context: &TrialContext<'_>,
    target: &dyn Target,
    act: Act<'_>,
) -> Result<Trial, NoVerdict> {
    let started = Instant::now();
    let TrialContext { engine, images, condition, assume, .. } = *context;
    let spec = target.solver(context);
    for image in [Some(&images.solver), images.verifier.as_ref()].into_iter().flatten() {
        condition.require(engine, &LaunchSpec { image, ..spec.clone() }).await?;
    }
    let mut sandbox = engine.launch(&spec).await?;
    let mut log = TrialLog { engine: engine.name().to_owned(), ..TrialLog::default() };
    let mut judged = JudgedSteps::default();
    let (mut ended, mut late) = (Vec::new(), None);
    for step in 0..target.steps().len() {
        let settings = target.settings(context, step);
        let act = act.in_step(step, settings.solution);
        let acted = async {
            prepared(context, target, step, &sandbox).await?;
            let acted = perform(act, &sandbox, &settings).await;
            acted.map_err(|error| NoVerdict::Sandbox { phase: Phase::Solve, error })
        };
        let acted = match acted.await {
            Ok(acted) => acted,
            Err(lost) => {
                sandbox.destroy().await;
                log.verifier = judged.log;
                return Trial::lost(lost, assume, log, started);
            }
        };
        log.exit = acted.exit;
        log.used = log.used.and(acted.used);
        log.output.push_str(&acted.output);
        ended.extend(acted.ended);
        late = act.out_of_time(settings.timeout).filter(|_| acted.exit == Some(ShellOutcome::TimedOut));
        match judged.add(target.judge(context, step, sandbox, Retain::Fingerprint).await) {
            Some(next) => sandbox = next,
            None => break,
        }
    }
    let mut verdict = judged.verdict(target, assume)?;
    if let Some(cause) = late.filter(|_| verdict.is_judged()) {
        verdict.outcome = Outcome::Timeout;
        verdict.cause = cause;
    }
    let JudgedSteps { log: verifier, hashes, fingerprint, reward, .. } = judged;
    let (state, canonical_form) =
        hashes.map(|StateHashes { exact, canonical_form }| (exact, canonical_form)).unzip();
    let seconds = started.elapsed().as_secs_f64();
    let log = TrialLog { state, canonical_form, fingerprint, verifier, reward, seconds, ..log };
    Ok(Trial { verdict, exit: log.exit, ended, log })
}

impl Trial {
    /// A trial whose solver or task is at fault for the loss. Any other loss has no verdict.
    fn lost(lost: NoVerdict, assume: Assume, mut log: TrialLog, started: Instant) -> Result<Self, NoVerdict> {
        log.seconds = started.elapsed().as_secs_f64();
        log.output.push_str(&lost.to_string());
        let verdict = lost.verdict(assume)?;
        Ok(Self { verdict, exit: None, ended: Vec::new(), log })
    }
}
