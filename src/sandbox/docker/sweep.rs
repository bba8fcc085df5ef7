//! Removes containers and images whose owner has ended.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use bollard::models::ContainerSummary;
use bollard::query_parameters::{ListContainersOptionsBuilder, ListImagesOptionsBuilder};
use tokio_util::sync::CancellationToken;

use crate::clock;
use crate::sandbox::owner::{Life, Owner};
use crate::sandbox::{CleanScope, ContainerId, EngineError, Removed};

use super::{DockerEngine, OWNER_LABEL, SWEEP_EVERY, Shared, TASK_LABEL};

/// Minimum age of a removed container that no sandbox knows. A younger one may still be in creation
/// or removal.
const UNKNOWN_AGE: Duration = Duration::from_secs(60);
/// The engine's notation for an image without a name.
const NO_NAME: &str = "<none>:<none>";

/// Which containers and snapshots a sweep removes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SweepScope {
    /// Objects of owners that have ended, and objects of this engine value that no sandbox uses.
    Orphans,
    /// Orphans, and everything that this engine value has created, since it is about to end.
    OrphansAndOwn,
    /// Everything that has our labels.
    All,
}

impl DockerEngine {
    /// Removes orphans.
    pub(in crate::sandbox) async fn sweep(&self) -> Result<usize, EngineError> {
        let removed = self.shared.sweep(SweepScope::Orphans).await?;
        Ok(removed.containers + removed.images)
    }

    /// Removes the objects that have our labels.
    pub(in crate::sandbox) async fn remove_all(&self, scope: CleanScope) -> Result<Removed, EngineError> {
        let sweep_scope = if scope == CleanScope::Orphans { SweepScope::Orphans } else { SweepScope::All };
        let mut removed = self.shared.sweep(sweep_scope).await?;
        if scope == CleanScope::Everything {
            for (reference, _) in self.shared.images(TASK_LABEL).await? {
                self.shared.remove_image(&reference).await?;
                removed.images += 1;
            }
            removed.layers = self.shared.remove_layers().await?;
        }
        Ok(removed)
    }
}

/// Sweeps now, and then at intervals until `stop`.
pub(super) fn start(shared: &Arc<Shared>, stop: CancellationToken) {
    let weak = Arc::downgrade(shared);
    tokio::spawn(stop.run_until_cancelled_owned(async move {
        while let Some(shared) = weak.upgrade() {
            // A failed sweep is repeated soon. Users of the engine see the same error themselves.
            if let Err(error) = shared.sweep(SweepScope::Orphans).await {
                tracing::warn!(%error, "sweep failed");
            }
            drop(shared);
            tokio::time::sleep(SWEEP_EVERY).await;
        }
    }));
}

impl Shared {
    pub(super) async fn sweep(&self, scope: SweepScope) -> Result<Removed, EngineError> {
        let mut removed = Removed::default();
        // If the engine cannot remove one object, the others are removed anyway.
        let mut failed = None;
        let mut names = BTreeSet::new();
        for container in self.containers().await? {
            let owner = label(&container).and_then(Owner::parse);
            let Some(name) = container.names.iter().flatten().next() else { continue };
            let name = name.trim_start_matches('/');
            names.insert(name.to_owned());
            let takes = match scope {
                SweepScope::All => true,
                SweepScope::OrphansAndOwn => name.starts_with(&self.prefix) || self.is_orphan(owner.as_ref()),
                SweepScope::Orphans => self.is_orphan(owner.as_ref()) || self.is_unknown(name, &container),
            };
            if takes {
                tracing::debug!(container = name, ?scope, "sweeping a container");
                match self.remove(name).await {
                    Ok(()) => removed.containers += 1,
                    Err(error) => {
                        tracing::warn!(container = name, %error, "cannot remove a container");
                        failed = failed.or(Some(error));
                    }
                }
            }
        }
        self.sweep_guests(&names);
        // Images come after containers, since an image in use cannot be removed.
        for (reference, owner) in self.images(OWNER_LABEL).await? {
            let owner = Owner::parse(&owner);
            let takes = match scope {
                SweepScope::All => true,
                SweepScope::OrphansAndOwn => {
                    reference.contains(&self.prefix) || self.is_orphan(owner.as_ref())
                }
                SweepScope::Orphans => self.is_orphan(owner.as_ref()),
            };
            if takes {
                match self.remove_image(&reference).await {
                    Ok(()) => removed.images += 1,
                    Err(error) => {
                        tracing::warn!(reference, %error, "cannot remove a snapshot");
                        failed = failed.or(Some(error));
                    }
                }
            }
        }
        failed.map_or(Ok(removed), Err)
    }

    fn is_orphan(&self, owner: Option<&Owner>) -> bool {
        owner.is_some_and(|owner| owner.is_dead(&self.owner, Life::of))
    }

    fn is_unknown(&self, name: &str, container: &ContainerSummary) -> bool {
        let created =
            Duration::from_secs(container.created.and_then(|at| u64::try_from(at).ok()).unwrap_or(u64::MAX));
        let now = Duration::from_millis(clock::now_ms());
        name.starts_with(&self.prefix)
            && now.saturating_sub(created) > UNKNOWN_AGE
            && !self.live().contains_key(&ContainerId(name.to_owned()))
    }

    async fn containers(&self) -> Result<Vec<ContainerSummary>, EngineError> {
        let filters = HashMap::from([("label", vec![OWNER_LABEL])]);
        let options = ListContainersOptionsBuilder::new().all(true).filters(&filters).build();
        let listed = self.docker.list_containers(Some(options)).await;
        listed.map_err(|error| self.error("list containers", error))
    }

    /// Each image with the label: its name, or its id if it has none, and the label's value.
    async fn images(&self, label: &str) -> Result<Vec<(String, String)>, EngineError> {
        let filters = HashMap::from([("label", vec![label])]);
        let options = ListImagesOptionsBuilder::new().filters(&filters).build();
        let listed = self.docker.list_images(Some(options)).await;
        let listed = listed.map_err(|error| self.error("list images", error))?;
        let named = listed.into_iter().map(|mut image| {
            let value = image.labels.remove(label).unwrap_or_default();
            let name = image.repo_tags.into_iter().find(|name| name != NO_NAME);
            (name.unwrap_or(image.id), value)
        });
        Ok(named.collect())
    }
}

fn label(container: &ContainerSummary) -> Option<&str> {
    container.labels.as_ref()?.get(OWNER_LABEL).map(String::as_str)
}
