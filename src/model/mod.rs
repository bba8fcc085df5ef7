//! The data types: plain data with serde, without IO, clock or randomness.
//!
//! Everything under `store/` has one of these types, so a change here changes a format. Raise the
//! version of the stage that writes it (see `store::Stage`).

mod authoring;
mod blame;
mod blueprint;
mod build_context;
mod call_detail;
mod certificate;
mod clause;
mod digest;
mod estimate;
mod expert;
mod files;
mod handoff;
mod ids;
mod limits;
mod one_line;
mod ranges;
mod score;
mod sentences;
mod task;
mod thread;
mod timings;
mod trajectory;
mod variant;
mod verdict;

pub use authoring::{
    AuthoringLog, AuthoringMode, AuthoringOutcome, AuthoringPhase, AuthoringRecord, DifficultyBand,
    DifficultyRecord, Passed, StageName, StageVersion,
};
pub use blame::{Assume, Blame};
pub use blueprint::{Blueprint, Difficulty, EngineeringKind, TaskAuthor};
pub use build_context::{IgnoreError, IgnoreRules, Stars, cleaned, glob};
pub use call_detail::CallDetail;
pub use certificate::{
    Certificate, ClauseRecord, Judging, Part, Rates, RejectReason, Rigor, Row, RowKind, Screened, Tally,
};
pub use clause::{
    Clause, ClauseError, Clauses, EquivalentMutant, TextEdit, Violation, followed_by, is_kebab_case,
};
pub use digest::{canonical_json, environment_digest, task_digest};
pub use estimate::{Estimate, pass_all, pass_at, wilson};
pub use expert::{
    CommandEdit, ExpertScript, FailureMode, Fault, MadeMistake, Mistake, MistakeKind, OwnCheck, ScriptStep,
    ScriptTurn, Slip,
};
pub use files::{File, FileTree, PathError, RelPath};
pub use handoff::{Aside, AsideKind, Handoff, HandoffShown};
pub use ids::{CheckId, DomainId, EnvironmentDigest, IdError, Key, RecipeId, Seed, TaskDigest, TaskName};
pub use limits::{Limits, Profile};
pub use one_line::{one_line, table_cell};
pub use ranges::{MOST_ATTEMPTS, MOST_TOKENS};
pub use score::{Scores, floored_percent};
pub use sentences::squeeze;
pub use task::{Draft, SubmissionSpec, Task, WrongSolution};
pub use thread::{Thread, ThreadKind, ThreadParent, ThreadShown, ThreadView, joined, opening_messages};
pub use timings::{RowTiming, ScreeningCost, Timings, TrialCost, TrialSeen};
pub use trajectory::{
    Act, Actor, AdversaryView, Arm, End, Exploit, FailureKind, ForkPoint, Message, ModelActor, Origin,
    ProgramVersion, Role, Rollout, Round, ScriptedFailure, Sender, ShellOutcome, Shown, TaskMetadata, Tokens,
    ToolCall, ToolDefinition, TrajectoryRecord, Turn, TurnKind,
};
pub use variant::{Applies, Variant};
pub use verdict::{Check, CheckClass, CheckResult, Outcome, Rewards, Verdict};
