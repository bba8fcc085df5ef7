//! The opening of an episode without the episode, for controls.

use super::ended::not_started;
use super::error::AgentError;
use super::installed;
use super::scaffold::{Driver, EpisodeContext};

/// Opens what an episode of `driver` opens first, and closes it again: what a control has to do
/// beside an episode that was lost.
pub async fn open(driver: Driver<'_>, episode: &EpisodeContext<'_>) -> Result<(), AgentError> {
    match driver {
        Driver::TurnByTurn(protocol) => match protocol.open(episode, "").await {
            Ok(_) => Ok(()),
            Err(error) => not_started(error, episode).map(drop),
        },
        Driver::InSandbox(_) => installed::open(episode, "").await.map(drop).map_err(AgentError::NotStarted),
    }
}
