//! A limit on the bytes that an image build writes. The engine has none for builds.

use std::collections::BTreeMap;

use tokio::sync::watch;

use super::Shared;
use super::quota::POLLED_EVERY;
use super::watchdog::LayerPlace;
use super::writable_layer::Most;

/// Maximum bytes that the steps of a build may write together. The base image and the files of
/// `COPY` and `ADD` do not count.
pub(super) const MAX_BUILD_BYTES: u64 = 10 << 30;

impl Shared {
    /// Returns when the build has written too much. `container` is the container of the running
    /// step.
    pub(super) async fn until_too_large(&self, container: watch::Receiver<Option<String>>) {
        let mut written = BTreeMap::new();
        while written.values().sum::<u64>() <= MAX_BUILD_BYTES {
            tokio::time::sleep(POLLED_EVERY).await;
            let Some(name) = container.borrow().clone() else { continue };
            let Some(LayerPlace::At(layer)) = self.writable_layer(&name).await else { continue };
            let most = Most { bytes: MAX_BUILD_BYTES, files: u64::MAX, paths: u64::MAX };
            // The walk blocks, so it runs in a thread for blocking work.
            let usage = tokio::task::spawn_blocking(move || layer.usage(&most)).await;
            if let Ok(usage) = usage {
                written.insert(name, usage.bytes);
            }
        }
    }
}
