//! Records the turns of an unfinished rollout one by one, so that no paid reply and no observation
//! is lost.

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::agent::{Conversation, HandedOff, HandoffSeen, Opening, TurnLog, TurnSeen};
use crate::model::{Handoff, Key, Round, Shown, Turn};
use crate::store::{Stage, Store, StoreError, key};
use crate::verify::VerifierLog;

/// The first messages of a rollout.
const OPENING: Stage = Stage::computed("opening");
/// One turn of a rollout.
const STEP: Stage = Stage::computed("step");
/// A handoff of a rollout.
const HANDOFF: Stage = Stage::computed("handoff");
/// The screen when a handoff began.
const SCREEN: Stage = Stage::computed("screen");
/// The end of a round of a rollout.
const ROUND: Stage = Stage::computed("round");

/// Observations at the end of a round. They are written to `observed/`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RoundSeen {
    /// The message that the agent reads in the next round.
    pub(super) feedback: String,
    pub(super) verifier: VerifierLog,
}

/// The turn log of one conversation of a rollout, in the store.
#[derive(Clone, Debug)]
pub(super) struct StoredTurnLog {
    store: Store,
    rollout: Key,
    /// The step of the task, from 0.
    part: usize,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Started {
    at_ms: u64,
    /// It is an observation, since it holds the terminal's first screen.
    opening: Opening,
}

impl StoredTurnLog {
    /// The turn log of one step of a task.
    pub(super) fn new(store: &Store, rollout: &Key, part: usize) -> Self {
        Self { store: store.clone(), rollout: rollout.clone(), part }
    }

    /// The recorded conversation, the completed rounds, and the start time. `parent` is the
    /// conversation that a fork begins with.
    pub(super) fn load(
        &self,
        parent: Option<&Conversation>,
    ) -> Result<(Conversation, Vec<Round>, Option<u64>), StoreError> {
        let started = self.store.observed::<Started>(&self.key(OPENING, 0)?)?;
        let at_ms = started.as_ref().map(|started| started.at_ms);
        let mut conversation = match (parent, started) {
            (Some(parent), _) => parent.clone(),
            (None, Some(started)) => Conversation { opening: started.opening, ..Conversation::default() },
            (None, None) => return Ok((Conversation::default(), Vec::new(), None)),
        };
        loop {
            let key = self.key(STEP, conversation.turns.len())?;
            let Some(turn) = self.store.get::<Turn>(STEP, &key)? else { break };
            let Some(seen) = self.store.observed::<TurnSeen>(&key)? else { break };
            conversation.turns.push(turn);
            conversation.seen.push(seen);
        }
        while let Some(handed) = self.handed_off_before(conversation.handoffs.len())? {
            conversation.handoffs.push(handed);
        }
        conversation.screen = self.store.observed(&self.key(SCREEN, conversation.handoffs.len())?)?;
        let mut rounds = Vec::new();
        loop {
            let key = self.key(ROUND, rounds.len())?;
            let Some(round) = self.store.get::<Round>(ROUND, &key)? else { break };
            let Some(seen) = self.store.observed::<RoundSeen>(&key)? else { break };
            if let Some(last) = round.turns.checked_sub(1).and_then(|at| conversation.seen.get_mut(at)) {
                last.shown = vec![Shown::text(seen.feedback)];
            }
            rounds.push(round);
        }
        Ok((conversation, rounds, at_ms))
    }

    fn handed_off_before(&self, number: usize) -> Result<Option<HandedOff>, StoreError> {
        let key = self.key(HANDOFF, number)?;
        let Some(handoff) = self.store.get::<Handoff>(HANDOFF, &key)? else { return Ok(None) };
        Ok(self.store.observed::<HandoffSeen>(&key)?.map(|seen| HandedOff { handoff, seen }))
    }

    /// Records the end of round `number`.
    pub(super) async fn round_ended(
        &self,
        number: usize,
        round: &Round,
        seen: &RoundSeen,
    ) -> Result<(), StoreError> {
        self.write(ROUND, number, round, seen).await
    }

    fn key(&self, stage: Stage, number: usize) -> Result<Key, StoreError> {
        let mut input = json!({ "rollout": self.rollout, "number": number });
        if self.part > 0 {
            input["part"] = json!(self.part);
        }
        key(stage, &input)
    }

    async fn observe<L>(&self, stage: Stage, number: usize, seen: L) -> Result<(), StoreError>
    where
        L: Serialize + Send + 'static,
    {
        let key = self.key(stage, number)?;
        let store = self.store.clone();
        let written = tokio::task::spawn_blocking(move || store.observe(&key, &seen));
        joined(written.await)
    }

    /// Writes on a blocking thread, so that other rollouts continue.
    async fn write<R, L>(&self, stage: Stage, number: usize, record: &R, seen: &L) -> Result<(), StoreError>
    where
        R: Serialize + Clone + Send + 'static,
        L: Serialize + Clone + Send + 'static,
    {
        let key = self.key(stage, number)?;
        let (store, record, seen) = (self.store.clone(), record.clone(), seen.clone());
        let written = tokio::task::spawn_blocking(move || {
            store.observe(&key, &seen)?;
            store.put(stage, &key, &record)
        });
        joined(written.await)
    }
}

/// Propagates a panic of the writer. A write is cancelled only when the program ends. The next
/// start repeats the turn.
fn joined(ended: Result<Result<(), StoreError>, tokio::task::JoinError>) -> Result<(), StoreError> {
    match ended {
        Ok(written) => written,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(error) => {
            tracing::debug!(%error, "a record was not written, since the program ends");
            Ok(())
        }
    }
}

impl TurnLog for StoredTurnLog {
    async fn opened(&mut self, opening: &Opening) -> Result<(), StoreError> {
        let started = Started { at_ms: crate::clock::now_ms(), opening: opening.clone() };
        self.observe(OPENING, 0, started).await
    }

    async fn turned(&mut self, number: usize, turn: &Turn, seen: &TurnSeen) -> Result<(), StoreError> {
        self.write(STEP, number, turn, seen).await
    }

    async fn handing_off(&mut self, number: usize, screen: &str) -> Result<(), StoreError> {
        self.observe(SCREEN, number, screen.to_owned()).await
    }

    async fn handed_off(&mut self, number: usize, handed: &HandedOff) -> Result<(), StoreError> {
        self.write(HANDOFF, number, &handed.handoff, &handed.seen).await
    }
}
