//! The pipeline: each blueprint becomes one unit, from draft to committed rollouts. Export and
//! audit then read all units.
//!
//! Nothing here prints. Progress is reported as [`Event`]s, and no decision depends on them.

mod assets;
mod authored;
mod blind;
mod campaign;
mod capacity;
mod error;
mod event;
mod examine;
mod expert_runs;
mod former;
mod funnel;
mod gather;
mod import;
mod judging;
mod known_tasks;
mod outputs;
mod prepared;
mod publish;
mod read;
mod redraw;
mod rehearse;
mod run;
mod shares;
mod stop;
mod unit;

pub use assets::{AssetsError, PipelineAssets};
pub use authored::{AUTHORING, DifficultySolvers, ModelAuthor, Unmade};
pub use campaign::{
    CampaignContext, CampaignOptions, CampaignReport, Judging, MEMBER, Member, MemberRecord, Solver, campaign,
};
pub use capacity::Capacity;
pub use error::{Fault, PipelineError, PublishError};
pub use event::{Event, EventSink};
pub use examine::{ClauseAuthor, Examination, ExamineError, Examined, ModelRows, VerifierMode};
pub use expert_runs::ExpertRun;
pub use former::{Former, Upcoming};
pub use gather::{Gathered, Group, gather, gather_groups, gather_rollouts};
pub use import::{ImportSummary, ImportTaskError, import_rollouts};
pub use judging::{JudgingReport, judge_store};
pub use outputs::{export_harbor_job, harbor_trial, report_attempt, report_store};
pub use prepared::{PREPARED, PrepareError, PreparedRecord, Ready, prepare};
pub use publish::{REVOKED, add_clauses, publish, publish_rollouts, trajectory_documents};
pub use read::{SECRETS, audit_store, export_store, publish_audit, publish_report};
pub use redraw::Redrawn;
pub use rehearse::{Rehearsal, Scope, rehearse};
pub use run::{RunOptions, RunReport, run};
pub use shares::Agents;
pub use stop::Stop;
pub use unit::{DRAFT, Ended, HashedDraft, UNIT, UnitOptions, UnitRecord, certify, hash_draft, unit};
