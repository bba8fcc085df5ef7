//! The stages chained: one unit a blueprint, from draft to committed rollouts, then export and audit over all of them.
//!
//! Nothing here prints. What happens is told as [`Event`]s, which are never read for correctness.

mod clock;
mod error;
mod event;
mod examine;
mod gather;
mod outputs;
mod publish;
mod read;
mod rehearse;
mod run;
mod unit;
mod workshop;

pub use error::{Fault, PipelineError, PublishError};
pub use event::{Event, EventSink};
pub use examine::{ExamineError, Examined, Ring, examine, task_directories};
pub use gather::{Gathered, gather};
pub use outputs::{export_harbor_job, harbor_trial, report_attempt, report_store};
pub use publish::{publish, trajectory_json};
pub use read::{audit_store, export_store, publish_audit};
pub use rehearse::{Play, Rehearsal, rehearse};
pub use run::{RunOptions, RunReport, run};
pub use unit::{DRAFT, Ended, FiledDraft, UNIT, UnitOptions, UnitRecord, certify, file_draft, unit};
pub use workshop::{Workshop, WorkshopError};
