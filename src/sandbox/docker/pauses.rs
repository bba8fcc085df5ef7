//! Pauses of containers, as the engine reports them. Causes are e.g. `docker pause`, backups, and
//! commits of running containers.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::watch;

use crate::clock::running;
use crate::sandbox::{ContainerId, EngineError, Pauses};

use super::{DockerEngine, Shared};

/// Interval between looks at a paused container. The event at the end of a pause can be missed.
const LOOK_EVERY: Duration = Duration::from_secs(1);

impl DockerEngine {
    /// The pauses of a live container, now and later.
    pub(in crate::sandbox) fn pauses(&self, id: &ContainerId) -> Option<watch::Receiver<Pauses>> {
        self.shared.live().get(id).map(|watched| watched.pauses.subscribe())
    }
}

impl Shared {
    /// Notes that a live container is paused.
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

    /// Notes that the container runs again.
    pub(super) fn note_resume(&self, name: &str) {
        if let Some(watched) = self.live().get(&ContainerId::new(name)) {
            watched.pauses.send_if_modified(|pauses| pauses.end(running::elapsed()));
        }
    }

    fn is_known_as_paused(&self, id: &ContainerId) -> bool {
        self.live().get(id).is_some_and(|watched| watched.pauses.borrow().is_paused())
    }
}

/// Ends the pause when the engine says that the container is no longer paused. Otherwise a missed
/// event would stop its clock for ever.
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
