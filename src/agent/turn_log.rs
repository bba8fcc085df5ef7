//! The turn log: where an episode records its turns.

use std::future::Future;

use super::conversation::{HandedOff, TurnSeen};
use super::scaffold::Opening;
use crate::model::Turn;
use crate::store::StoreError;

/// Where turns are recorded as they happen: each before the next message is requested, so that a
/// killed process loses nothing that a model was shown.
pub trait TurnLog: Send {
    fn opened(&mut self, opening: &Opening) -> impl Future<Output = Result<(), StoreError>> + Send;
    fn turned(
        &mut self,
        number: usize,
        turn: &Turn,
        seen: &TurnSeen,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;
    /// Handoff `number` begins, with this on the screen. A handoff that is interrupted asks about
    /// the same screen again.
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
