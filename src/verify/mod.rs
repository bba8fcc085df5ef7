//! The clean room: it turns the state that a solver left into a verdict.
//!
//! 1. The solver's container is killed, so no process of the solver runs any more.
//! 2. The declared roots, e.g. `/app`, are read as archives, and every entry is checked
//!    ([`submission`]). A pristine container of the same image gets the roots twice. The tests read
//!    a copy, and the roots lie in their own places too ([`own_place`]).
//! 3. Tests may run the solver's programs. These programs get a container of their own, with our
//!    guest in it. The tests reach it by a relay through the host ([`relay`]).
//! 4. The checks run in the pristine container. Their results come back as a file that the solver
//!    could never touch ([`results`]).

mod act;
mod canonical_json;
mod clean_room;
mod condition;
mod entries;
mod entrypoint;
mod fingerprint;
mod foreign;
mod hashed_task;
mod host_busy;
mod in_place;
mod missing_runner;
mod no_verdict;
mod own_place;
mod pauses;
mod programs;
mod relay;
mod reports;
mod results;
mod reward;
mod room;
mod runner;
mod slots;
mod step_verdict;
mod submission;
mod target;
mod trial;
mod watcher;

pub use act::{Act, ActContext, NOT_APPLICABLE, NamedScript, Used};
pub use condition::{CLOCK_LIBRARIES, Condition, KnownState, clock_can_move, clock_moves};
pub use fingerprint::{FileFingerprint, Fingerprint, StateHashes, well_formed};
pub use foreign::{Foreign, ForeignStep, ImageSource, Mode, Unsupported, absolute_paths, knowledge};
pub use hashed_task::{HashedTask, solver_container};
pub use host_busy::{is_host_busy_beside, with_lost_time};
pub use missing_runner::MissingRunner;
pub use no_verdict::{Blamed, Control, NoVerdict, Phase, Retries, SANDBOX_LOST, settled};
pub use reports::{ReportError, ReportKind, find_report, parse_report};
pub use results::{CHECKS_FORMAT, Reported, ResultsError, parse_results};
pub use reward::{RewardError, is_full, parse_reward};
pub use room::VerifierLog;
pub use runner::{BuildRecord, EngineOnDemand, TRIAL, TrialError, TrialRecord, TrialRunner};
pub use slots::{SlotPermit, Slots};
pub use submission::{CheckError, CheckedSubmission, SubmissionError, SubmissionLimits, check_archives};
pub use target::{Images, Judged, JudgedSteps, Retain, Step, Target, TrialContext, prepared, ready};
pub use trial::{Trial, TrialLog, control, run_trial};
pub use watcher::{RowName, TrialStep, Watcher};
