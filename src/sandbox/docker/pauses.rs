//! Pauses of containers, as the engine reports them: `docker pause`, backups, and commits of
//! running containers.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::watch;

use crate::clock::running;
use crate::sandbox::{ContainerId, EngineError, Pauses};

use super::{DockerEngine, Shared};

/// Interval at which a paused container is looked at. Its end is an event, which can be missed.
const LOOK_EVERY: Duration = Duration::from_secs(1);

impl DockerEngine {
    /// The pauses of a live container, and those to come.
    pub(in crate::sandbox) fn pauses(&self, id: &ContainerId) -> Option<watch::Receiver<Pauses>> {
        self.shared.live().get(id).map(|watched| watched.pauses.subscribe())
    }
}

impl Shared {
    /// Notes that a container of this name is paused, if it is a live one.
    pub(super) fn note_pause(self: &Arc<Self>, name: &str) {
        let id = ContainerId::new(name);
        let started = self.live().get(&id).is_some_and(|watched| {
            watched.pauses.send_if_modified(|pauses| pauses.begin(running::elapsed()))
        });
        if started {
            tracing::debug!(container = %id, "paused from outside");
            tokio::spawn(notice_end(Arc::downgrade(self), id));
        }
    }

    /// Notes that it runs again.
    pub(super) fn note_resume(&self, name: &str) {
        if let Some(watched) = self.live().get(&ContainerId::new(name)) {
            watched.pauses.send_if_modified(|pauses| pauses.end(running::elapsed()));
        }
    }

    fn is_known_as_paused(&self, id: &ContainerId) -> bool {
        self.live().get(id).is_some_and(|watched| watched.pauses.borrow().is_paused())
    }
}

/// Ends the pause when the engine says that the container is not paused any more. Time limits would
/// otherwise stand still for ever after a missed event.
async fn notice_end(shared: Weak<Shared>, id: ContainerId) {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let Some(shared) = shared.upgrade() else { return };
        if !shared.is_known_as_paused(&id) {
            return;
        }
        match shared.inspect_state(id.as_str()).await {
            Ok(state) if state.paused == Some(true) => {}
            Ok(_) | Err(EngineError::NoSuchContainer { .. }) => return shared.note_resume(id.as_str()),
            Err(error) => tracing::debug!(container = %id, %error, "cannot look at a paused container"),
        }
    }
}
