//! The engine's events of live containers: out of memory, paused, resumed.
//!
//! The engine stores only its last few hundred events. On a busy host these are the events of some
//! seconds. So events are noted as they happen. The engine's own list is only asked for
//! out-of-memory events that were missed while no stream was open.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bollard::Docker;
use bollard::models::EventMessage;
use bollard::query_parameters::EventsOptionsBuilder;
use futures_util::{Stream, StreamExt as _};
use tokio_util::sync::CancellationToken;

use crate::sandbox::ContainerId;

use super::{DockerEngine, Shared};

/// Maximum wait for late events.
const EVENTS_WAIT: Duration = Duration::from_secs(1);
/// Pause before an ended stream of events is opened again.
const REOPEN_AFTER: Duration = Duration::from_secs(1);

/// Notes events of live containers until `stop`.
pub(super) fn start(shared: &Arc<Shared>, stop: CancellationToken) {
    let (weak, docker) = (Arc::downgrade(shared), shared.docker.clone());
    tokio::spawn(stop.run_until_cancelled_owned(async move {
        loop {
            let mut events = Box::pin(all_events(&docker));
            while let Some(Ok(event)) = events.next().await {
                let Some(shared) = weak.upgrade() else { return };
                shared.note(&event);
            }
            tracing::debug!("the stream of events ended");
            tokio::time::sleep(REOPEN_AFTER).await;
        }
    }));
}

/// Names of events in the API.
const OOM: &str = "oom";
const PAUSE: &str = "pause";
const UNPAUSE: &str = "unpause";

/// Events of all containers from now on.
fn all_events(docker: &Docker) -> impl Stream<Item = Result<EventMessage, bollard::errors::Error>> {
    let filters = HashMap::from([("type", vec!["container"]), ("event", vec![OOM, PAUSE, UNPAUSE])]);
    docker.events(Some(EventsOptionsBuilder::new().filters(&filters).build()))
}

/// Out-of-memory events of one container since the engine's start. The stream continues until it is
/// dropped.
fn oom_events(
    docker: &Docker,
    id: &ContainerId,
) -> impl Stream<Item = Result<EventMessage, bollard::errors::Error>> {
    let filters =
        HashMap::from([("type", vec!["container"]), ("event", vec![OOM]), ("container", vec![id.as_str()])]);
    docker.events(Some(EventsOptionsBuilder::new().since("1").filters(&filters).build()))
}

impl DockerEngine {
    /// Number of noted out-of-memory events of a live container.
    pub(in crate::sandbox) fn out_of_memory_kills(&self, id: &ContainerId) -> usize {
        self.shared.live().get(id).map_or(0, |watched| watched.oom_times.len())
    }
}

impl Shared {
    fn note(self: &Arc<Self>, event: &EventMessage) {
        let attributes = event.actor.as_ref().and_then(|actor| actor.attributes.as_ref());
        let Some(name) = attributes.and_then(|attributes| attributes.get("name")) else { return };
        match (event.action.as_deref(), event.time) {
            (Some(PAUSE), _) => self.note_pause(name),
            (Some(UNPAUSE), _) => self.note_resume(name),
            (Some(OOM), Some(time)) => self.note_oom(name, time),
            (Some(_) | None, _) => {}
        }
    }

    fn note_oom(&self, name: &str, time: i64) {
        if let Some(watched) = self.live().get_mut(&ContainerId::new(name)) {
            watched.oom_times.push(time);
        }
    }

    /// Times of the container's out-of-memory events, in seconds since 1970. They are those that
    /// were noted, and those that the engine still has.
    pub(super) async fn oom_times(&self, id: &ContainerId) -> Vec<i64> {
        let mut events = Box::pin(oom_events(&self.docker, id));
        let mut times = Vec::new();
        let listen = async {
            while let Some(Ok(event)) = events.next().await {
                times.extend(event.time);
            }
        };
        let _ = tokio::time::timeout(EVENTS_WAIT, listen).await;
        times.extend(self.live().get(id).into_iter().flat_map(|watched| watched.oom_times.iter().copied()));
        times
    }
}
