//! Judgements of models, and where they are committed.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::Label;
use super::model::{JudgeError, Subject, judge};
use crate::llm::{CallError, ModelRole, Models};
use crate::model::Key;
use crate::prompts::PromptSet;
use crate::store::{ReadStore, Stage, Store, StoreError, key};

/// Committed judgements, `store/judgement/…`. Bump when the same trajectory would be rendered differently.
///
/// The key consists of rollout *and* judge. With the rollout alone, another model or another prompt would have to overwrite the previous
/// judgement, and two run folders with different judges could not be merged: a committed record never changes. So a rollout may
/// have several judgements, and [`Judgements::of`] selects the one that counts.
pub const JUDGEMENT: Stage = Stage { name: "judgement", version: 1 };

/// Digits of the prompts' digest in a judge's name: enough to distinguish versions of one prompt.
const DIGEST_DIGITS: usize = 12;

/// Identifies a judge: a model and its prompts. Sampling parameters are not part of it; the committed calls contain those.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JudgeId {
    /// The model's name in the settings.
    pub model: String,
    /// Digest of the judge's texts.
    pub prompts: String,
}

impl fmt::Display for JudgeId {
    /// The form used in rows: `MODEL@DIGEST`, the digest shortened.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digest = self.prompts.get(..DIGEST_DIGITS).unwrap_or(&self.prompts);
        write!(f, "{}@{digest}", self.model)
    }
}

/// A model's labels for one trajectory. The rules' version is not part of it: rules are applied anew whenever a rollout is read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Judgement {
    pub judge: JudgeId,
    /// Labels with their evidence; empty if no label applies.
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
    /// Turns that show it, from 0, in ascending order; never empty.
    pub turns: Vec<usize>,
    /// The judge's explanation.
    pub why: String,
}

/// The stored record: a judgement and its rollout.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Judged {
    rollout: Key,
    judgement: Judgement,
}

/// The judge that these settings and texts define.
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

/// Commits a judgement of the rollout whose record has the key `rollout`. An existing judgement by the same judge is kept.
pub fn commit_judgement(store: &Store, rollout: &Key, judgement: &Judgement) -> Result<(), StoreError> {
    if find_judgement(store, rollout, &judgement.judge)?.is_some() {
        return Ok(());
    }
    let key = judgement_key(rollout, &judgement.judge)?;
    store.put(JUDGEMENT, &key, &Judged { rollout: rollout.clone(), judgement: judgement.clone() })
}

/// The committed judgement of a rollout by a judge.
pub fn find_judgement(
    store: &Store,
    rollout: &Key,
    judge: &JudgeId,
) -> Result<Option<Judgement>, StoreError> {
    let judged = store.get::<Judged>(JUDGEMENT, &judgement_key(rollout, judge)?)?;
    Ok(judged.map(|judged| judged.judgement))
}

/// The judgement of a rollout: the committed one, or a new one, which is then committed. `unit` is the rollout's id.
pub async fn judge_once(
    models: &Models,
    texts: &PromptSet,
    store: &Store,
    rollout: &Key,
    unit: &str,
    subject: Subject<'_>,
) -> Result<Judgement, JudgeError> {
    if let Some(judgement) = find_judgement(store, rollout, &judge_id(models, texts)?)? {
        return Ok(judgement);
    }
    let judgement = judge(models, texts, unit, subject).await?;
    commit_judgement(store, rollout, &judgement)?;
    Ok(judgement)
}

/// All committed judgements of a run folder by rollout, for callers that read many rollouts of unknown judges.
#[derive(Clone, Debug, Default)]
pub struct Judgements {
    by_rollout: BTreeMap<Key, Vec<Judgement>>,
    /// Number of rollouts per judge.
    counts: BTreeMap<JudgeId, usize>,
}

impl Judgements {
    /// Reads them all.
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

    /// The judgement that counts for a rollout: of several, the one whose judge has judged most rollouts of the folder, so
    /// that rows can be compared; on a tie, the last by name.
    pub fn of(&self, rollout: &Key) -> Option<&Judgement> {
        let several = self.by_rollout.get(rollout)?;
        several.iter().max_by_key(|judgement| (self.counts.get(&judgement.judge), &judgement.judge))
    }
}

/// The judgement that counts for one rollout. Reads all judgements: for many rollouts, keep [`Judgements`].
pub fn read_judgement(store: &Store, rollout: &Key) -> Result<Option<Judgement>, StoreError> {
    Ok(Judgements::read(store)?.of(rollout).cloned())
}
