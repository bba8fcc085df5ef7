//! The trial runner: an engine, a store of committed trials, and slots for concurrent trials.

use std::future::Future;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::act::Act;
use super::condition::Condition;
use super::foreign::Unsupported;
use super::hashed_task::HashedTask;
use super::host_busy::is_host_busy;
use super::no_verdict::{Blamed, Control, NoVerdict, Retries, settled};
use super::slots::{SlotPermit, Slots};
use super::target::Target;
use super::trial::{TrialLog, control, run_trial};
use super::watcher::{TrialStep, Watcher};
use crate::model::{Blame, Judging, Key, ShellOutcome, Verdict};
use crate::sandbox::{ENGINES, Engine, EngineEntry, EngineError, Image, ImageError, ImageSpec};
use crate::store::{Stage, Store, StoreError, key};

/// Committed trials.
pub const TRIAL: Stage = Stage::computed("trial");
const BUILD: Stage = Stage::computed("build");
/// Bytes of a build log that are shown: its beginning names packages, and its end names the fault.
const LOG_TAIL: usize = 2_000;

/// The span of one trial that is not committed yet. It includes the wait for a slot.
fn trial_span(task: &str, act: Act<'_>, condition: Condition<'_>, repeat: u32) -> tracing::Span {
    tracing::info_span!("trial", task, act = act.name(), ?condition, repeat)
}

/// The context of trials. All work of a run shares it.
#[derive(Clone, Copy, Debug)]
pub struct TrialRunner<'a> {
    pub engine: &'a EngineOnDemand,
    pub store: &'a Store,
    /// Each trial needs one permit.
    pub slots: &'a Slots,
    /// Priority of the trials when they wait for a slot. 0 is served first.
    pub priority: u32,
    /// After cancellation no new trial begins. Running trials are finished and committed.
    pub drain: &'a CancellationToken,
    pub watcher: Watcher<'a>,
}

/// The engine. It is connected when a trial first needs it, so a run whose results are all
/// committed needs none.
#[derive(Debug)]
pub struct EngineOnDemand {
    entry: &'static EngineEntry,
    engine: OnceCell<Engine>,
}

impl EngineOnDemand {
    /// This kind of engine, on this host.
    pub fn new(entry: &'static EngineEntry) -> Self {
        Self { entry, engine: OnceCell::new() }
    }

    /// The engine.
    pub async fn get(&self) -> Result<&Engine, EngineError> {
        self.engine.get_or_try_init(|| self.entry.connect()).await
    }

    /// The engine, if it was needed before.
    pub fn connected(&self) -> Option<&Engine> {
        self.engine.get()
    }
}

impl Default for EngineOnDemand {
    /// The default engine.
    fn default() -> Self {
        Self::new(&ENGINES[0])
    }
}

impl From<Engine> for EngineOnDemand {
    /// A connected engine.
    fn from(engine: Engine) -> Self {
        Self { engine: OnceCell::new_with(Some(engine)), ..Self::default() }
    }
}

/// Why a trial has no result. None of these errors is stored.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The trial is left open. The same command tries it again.
    #[error(transparent)]
    NoVerdict(NoVerdict),
    /// The trial could not run here. A certificate must not omit it.
    #[error(
        "the trial under the condition `{condition}` cannot be made here: {why}\nhint: `termsmith doctor --fix` installs what is missing"
    )]
    MissingTool { condition: &'static str, why: String },
    #[error("the trial under the condition `{condition}` could not run: {why}")]
    Unmet { condition: &'static str, why: String },
    /// The engine or its host lacks something that the task asks for. The task has no defect.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("interrupted")]
    Drained,
}

impl From<NoVerdict> for TrialError {
    fn from(error: NoVerdict) -> Self {
        match error {
            NoVerdict::Engine(error) => Self::Engine(error),
            NoVerdict::Unmet { condition, why } => Self::Unmet { condition, why },
            NoVerdict::Unsupported(why) => Self::Unsupported(why),
            error @ (NoVerdict::Sandbox { .. }
            | NoVerdict::NoResults { .. }
            | NoVerdict::NoRunner { .. }
            | NoVerdict::OutOfTime { .. }) => Self::NoVerdict(error),
        }
    }
}

impl Blamed for TrialError {
    fn blame(&self) -> Option<Blame> {
        match self {
            Self::Engine(error) => Some(error.blame()),
            Self::NoVerdict(error) => error.blame(),
            Self::MissingTool { .. }
            | Self::Unmet { .. }
            | Self::Unsupported(_)
            | Self::Store(_)
            | Self::Drained => Some(Blame::Caller),
        }
    }
}

/// A committed trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrialRecord {
    pub verdict: Verdict,
    /// How the script ended. `None` if nothing was done.
    pub exit: Option<ShellOutcome>,
    /// How each script ended, by name, if there were several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ended: Vec<(String, ShellOutcome)>,
}

/// A committed build.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BuildRecord {
    pub built: bool,
}

#[derive(Serialize, Deserialize)]
struct BuildLog {
    log: String,
}

impl TrialRunner<'_> {
    /// Builds the task's image, or reads the committed result. `Err(log)` inside means that the
    /// Dockerfile is at fault.
    pub async fn build(&self, hashed: &HashedTask<'_>) -> Result<Result<(), String>, TrialError> {
        let key = key(BUILD, &serde_json::json!({ "environment": hashed.environment_digest }))?;
        if let Some(BuildRecord { built }) = self.store.get(BUILD, &key)? {
            if built {
                return Ok(Ok(()));
            }
            let log = self.store.observed::<BuildLog>(&key)?.map_or_else(String::new, |log| log.log);
            return Ok(Err(tail(&log)));
        }
        let _slot = self.slot().await?;
        self.engine.get().await?;
        let (built, log) = match self.retry(|| self.ensure_image(hashed)).await? {
            Ok(_) => (true, String::new()),
            Err(log) => (false, log),
        };
        self.store.observe(&key, &BuildLog { log: log.clone() })?;
        self.store.put(BUILD, &key, &BuildRecord { built })?;
        Ok(if built { Ok(()) } else { Err(tail(&log)) })
    }

    /// Runs a scripted trial, or reads the committed one. `repeat` tells trials of the same action
    /// apart.
    pub async fn trial(
        &self,
        target: &dyn Target,
        act: Act<'_>,
        condition: Condition<'_>,
        repeat: u32,
    ) -> Result<(TrialRecord, TrialLog), TrialError> {
        let condition = match (condition, target.judging()) {
            // Tests of other makers cannot end at the first failed check.
            (Condition::FirstFailure { .. }, Judging::Shared | Judging::Separate) => Condition::Ordinary,
            (condition, Judging::CleanRoom | Judging::Shared | Judging::Separate) => condition,
        };
        let key = key(TRIAL, &target.trial_input(act, condition, repeat))?;
        let span = trial_span(target.name(), act, condition, repeat);
        async {
            if let Some(found) = self.recall::<TrialRecord, TrialLog>(TRIAL, &key)? {
                self.watcher.tell(TrialStep::Recalled);
                return Ok(found);
            }
            let _slot = self.slot().await?;
            // An engine that never answered is an error at once. An engine that stops answering is
            // awaited.
            let engine = self.engine.get().await?;
            let images = self.retry(|| target.images(self, condition)).await?;
            self.watcher.tell(TrialStep::Began);
            let trial = run_trial(engine, &images, target, act, condition, self.drain).await;
            self.watcher.tell(TrialStep::Ended);
            let trial = trial?;
            let record = TrialRecord { verdict: trial.verdict, exit: trial.exit, ended: trial.ended };
            self.commit(TRIAL, &key, &record, &trial.log)?;
            Ok((record, trial.log))
        }
        .instrument(span)
        .await
    }

    /// The task's image, for an agent that runs its own loop.
    pub async fn image(&self, hashed: &HashedTask<'_>) -> Result<Image, EngineError> {
        match self.ensure_image(hashed).await? {
            Ok(image) => Ok(image),
            // The image was built when the task was certified. So the engine or the mirror is at
            // fault.
            Err(log) => Err(build_failure(tail(&log))),
        }
    }

    /// A committed record with its observation, if both exist.
    pub fn recall<R, L>(&self, stage: Stage, key: &Key) -> Result<Option<(R, L)>, StoreError>
    where
        R: serde::de::DeserializeOwned,
        L: serde::de::DeserializeOwned,
    {
        let Some(record) = self.store.get::<R>(stage, key)? else { return Ok(None) };
        Ok(self.store.observed::<L>(key)?.map(|log| (record, log)))
    }

    /// Commits a record after its observation.
    pub fn commit<R: Serialize, L: Serialize>(
        &self,
        stage: Stage,
        key: &Key,
        record: &R,
        log: &L,
    ) -> Result<(), StoreError> {
        self.store.observe(key, log)?;
        self.store.put(stage, key, record)
    }

    /// Waits for a slot to run a trial in.
    pub async fn slot(&self) -> Result<SlotPermit, TrialError> {
        tokio::select! {
            biased;
            () = self.drain.cancelled() => Err(TrialError::Drained),
            permit = self.slots.acquire(self.priority) => Ok(permit),
        }
    }

    /// Retries failures of the infrastructure a few times.
    pub async fn retry<T, E, F>(&self, mut attempt: impl FnMut() -> F) -> Result<T, E>
    where
        F: Future<Output = Result<T, E>>,
        E: Blamed,
    {
        settled(self.retries(), async |_| attempt().await, async |_| Control::Lost).await
    }

    /// The retry context of this runner.
    pub fn retries(&self) -> Retries<'_> {
        Retries::new(self.engine.connected(), self.drain)
    }

    /// Runs a control for a trial of `act` that has no verdict.
    pub async fn control(&self, target: &dyn Target, act: Act<'_>) -> Control {
        let made = async {
            Ok::<_, EngineError>((self.engine.get().await?, target.images(self, Condition::Ordinary).await?))
        };
        match made.await {
            Ok((engine, images)) => control(engine, &images, target, act).await,
            Err(error) => Control::of(&Err(error.into())),
        }
    }

    /// Builds the task's image again, without the cache.
    pub(super) async fn rebuilt(&self, hashed: &HashedTask<'_>) -> Result<Image, EngineError> {
        match self.engine.get().await?.rebuild_image(&image_spec(hashed)).await {
            Ok(image) => Ok(image),
            Err(ImageError::Engine(error)) => Err(error),
            // The image was built from the same files before. So the mirror is at fault.
            Err(failed) => Err(build_failure(failed.to_string())),
        }
    }

    async fn ensure_image(&self, hashed: &HashedTask<'_>) -> Result<Result<Image, String>, EngineError> {
        built(self.engine.get().await?, &image_spec(hashed)).await
    }
}

/// Builds the image of `spec` if it does not exist. `Err(log)` inside means that its files are at
/// fault. A build that takes too long is made once more. If it takes too long again, on a host that
/// is not busy, its Dockerfile is at fault.
pub(super) async fn built(
    engine: &Engine,
    spec: &ImageSpec<'_>,
) -> Result<Result<Image, String>, EngineError> {
    let mut too_slow = 0;
    loop {
        match engine.ensure_image(spec).await {
            Ok(image) => return Ok(Ok(image)),
            Err(ImageError::Build { log }) => return Ok(Err(log)),
            Err(ImageError::Engine(error)) => return Err(error),
            Err(slow @ ImageError::TimedOut { .. }) if is_host_busy(engine) => {
                return Err(build_failure(slow.to_string()));
            }
            Err(slow @ ImageError::TimedOut { .. }) => {
                too_slow += 1;
                if too_slow > 1
                    && let ImageError::TimedOut { log, .. } = &slow
                {
                    return Ok(Err(format!("{}\n{slow}, twice", log.trim_end())));
                }
                tracing::warn!(%slow, "building an image once more");
            }
        }
    }
}

/// The error of a failed build that proves nothing against its files.
pub(super) fn build_failure(message: String) -> EngineError {
    EngineError::Transport { action: "build the image", message }
}

fn image_spec<'a>(hashed: &'a HashedTask<'_>) -> ImageSpec<'a> {
    ImageSpec {
        digest: hashed.environment_digest.as_str(),
        context: &hashed.task.environment,
        timeout: Duration::from_secs(hashed.task.limits.build_timeout_sec.into()),
    }
}

fn tail(log: &str) -> String {
    let from = log.char_indices().rev().nth(LOG_TAIL).map_or(0, |(at, _)| at);
    log[from..].trim().to_owned()
}
