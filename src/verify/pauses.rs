//! Pauses while tests run. Tests have time limits of their own, e.g. in `subprocess.run`, and these
//! run on in a paused container. So a failure beside a pause proves nothing. It is a loss, and the
//! infrastructure is to blame.

use std::time::Duration;

use crate::sandbox::{Evidence, Loss, Sandbox, SandboxClock, SandboxError};

/// The clocks of a verification's containers, with their readings at its start.
#[derive(Debug)]
pub(super) struct Pauses<'a>(Vec<(&'a SandboxClock, Duration)>);

impl<'a> Pauses<'a> {
    /// Watches for pauses from now on.
    pub(super) fn watch(sandboxes: &[&'a Sandbox]) -> Self {
        let clocks = sandboxes.iter().map(|sandbox| sandbox.clock());
        Self(clocks.map(|clock| (clock, clock.disturbed())).collect())
    }

    /// An error if a container was paused meanwhile, or if termsmith was stopped.
    pub(super) fn check(&self) -> Result<(), SandboxError> {
        if self.0.iter().any(|(clock, before)| clock.is_disturbed_since(*before)) {
            let detail = "tests failed meanwhile".to_owned();
            return Err(SandboxError::Lost(Loss { evidence: Evidence::Paused, detail }));
        }
        Ok(())
    }
}
