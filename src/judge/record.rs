//! Judgements of models, and their records.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::Label;
use super::model::{JudgeError, JudgedTrajectory, judge};
use crate::llm::{CallError, ModelRole, Models};
use crate::model::Key;
use crate::prompts::PromptSet;
use crate::store::{ReadStore, Stage, Store, StoreError, key};

/// Committed judgements, `store/judgement/…`. They are replies of models, so another
/// build keeps them.
///
/// The key has the rollout *and* the judge, so a rollout can have several judgements. A key of the
/// rollout alone would not do: another model would have to overwrite a committed record, and
/// folders with different judges could not be merged. [`Judgements::of`] selects the judgement that
/// counts.
pub const JUDGEMENT: Stage = Stage::given("judgement");

/// Digits of the prompts' digest in a judge's name. They suffice to tell versions of a prompt
/// apart.
const DIGEST_DIGITS: usize = 12;

/// A judge: a model and its prompts. Sampling parameters are not part of it; the committed calls
/// have them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JudgeId {
    /// Name of the model in the settings.
    pub model: String,
    /// Digest of the judge's texts.
    pub prompts: String,
}

impl fmt::Display for JudgeId {
    /// The form in rows: `MODEL@DIGEST`, with a shortened digest.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digest = self.prompts.get(..DIGEST_DIGITS).unwrap_or(&self.prompts);
        write!(f, "{}@{digest}", self.model)
    }
}

/// The labels that a model gave a trajectory. The detectors' labels are not in it: they are
/// computed whenever a rollout is read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Judgement {
    pub judge: JudgeId,
    /// The labels and their evidence. Empty if none applies.
    pub labels: BTreeMap<Label, Evidence>,
}

impl Judgement {
    /// The labels, in the order of [`Label`].
    pub fn labels(&self) -> impl Iterator<Item = Label> {
        self.labels.keys().copied()
    }
}

/// The evidence of a label.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// Turns that show it, from 0, in ascending order. There is at least one.
    pub turns: Vec<usize>,
    /// The judge's explanation.
    pub why: String,
}

/// The record: a judgement and its rollout.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Judged {
    rollout: Key,
    judgement: Judgement,
}

/// The judge of these settings and texts.
pub fn judge_id(models: &Models, texts: &PromptSet) -> Result<JudgeId, CallError> {
    let (role, _) = models.settings(ModelRole::Judge)?;
    Ok(JudgeId { model: role.model.clone(), prompts: texts.digest() })
}

fn judgement_key(rollout: &Key, judge: &JudgeId) -> Result<Key, StoreError> {
    #[derive(Serialize)]
    struct Input<'a> {
        rollout: &'a Key,
        judge: &'a JudgeId,
    }
    key(JUDGEMENT, &Input { rollout, judge })
}

/// Commits a judgement. `rollout` is the key of the rollout's record. If this judge has judged it
/// before, the earlier judgement stays.
pub fn commit_judgement(store: &Store, rollout: &Key, judgement: &Judgement) -> Result<(), StoreError> {
    if find_judgement(store, rollout, &judgement.judge)?.is_some() {
        return Ok(());
    }
    let key = judgement_key(rollout, &judgement.judge)?;
    store.put(JUDGEMENT, &key, &Judged { rollout: rollout.clone(), judgement: judgement.clone() })
}

/// The judgement of a rollout that a judge has committed.
pub fn find_judgement(
    store: &Store,
    rollout: &Key,
    judge: &JudgeId,
) -> Result<Option<Judgement>, StoreError> {
    let judged = store.get::<Judged>(JUDGEMENT, &judgement_key(rollout, judge)?)?;
    Ok(judged.map(|judged| judged.judgement))
}

/// The committed judgement of a rollout. If there is none, asks the judge and commits the reply.
/// `unit` is the rollout's id.
pub async fn judge_once(
    models: &Models,
    texts: &PromptSet,
    store: &Store,
    rollout: &Key,
    unit: &str,
    trajectory: JudgedTrajectory<'_>,
) -> Result<Judgement, JudgeError> {
    if let Some(judgement) = find_judgement(store, rollout, &judge_id(models, texts)?)? {
        return Ok(judgement);
    }
    let judgement = judge(models, texts, unit, trajectory).await?;
    commit_judgement(store, rollout, &judgement)?;
    Ok(judgement)
}

/// All judgements of a run folder, by rollout.
#[derive(Clone, Debug, Default)]
pub struct Judgements {
    by_rollout: BTreeMap<Key, Vec<Judgement>>,
    /// Number of rollouts per judge.
    counts: BTreeMap<JudgeId, usize>,
}

impl Judgements {
    /// Reads all judgements.
    pub fn read(store: &ReadStore) -> Result<Self, StoreError> {
        let mut all = Self::default();
        for key in store.keys(JUDGEMENT)? {
            if let Some(Judged { rollout, judgement }) = store.get(JUDGEMENT, &key)? {
                *all.counts.entry(judgement.judge.clone()).or_default() += 1;
                all.by_rollout.entry(rollout).or_default().push(judgement);
            }
        }
        Ok(all)
    }

    /// The judgement of a rollout that counts. If there are several, it is the one whose judge has
    /// judged most rollouts, so that rows can be compared. If two judges are equal, the last name
    /// counts.
    pub fn of(&self, rollout: &Key) -> Option<&Judgement> {
        let several = self.by_rollout.get(rollout)?;
        several.iter().max_by_key(|judgement| (self.counts.get(&judgement.judge), &judgement.judge))
    }
}

/// The judgement of a rollout that counts. This reads all judgements: for many rollouts, keep a
/// [`Judgements`].
pub fn read_judgement(store: &Store, rollout: &Key) -> Result<Option<Judgement>, StoreError> {
    Ok(Judgements::read(store)?.of(rollout).cloned())
}
