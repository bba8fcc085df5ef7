//! A trial, before its folder is written.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use crate::export::atif::Stamps;
use crate::model::{CallDetail, Key, Rollout};

/// A rollout, with the other data of a trial's folder.
#[derive(Clone, Debug)]
pub struct Trial {
    pub rollout: Rollout,
    pub stamps: Stamps,
    /// When its verdict was given.
    pub finished: DateTime<Utc>,
    /// Details of its model calls, by key.
    pub details: BTreeMap<Key, CallDetail>,
    /// Output of the verifier's test runner.
    pub verifier_output: String,
}
