//! Committed calls: what is paid for once is never asked for again.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{CallSite, Cost};
use crate::model::Key;
use crate::store::{Stage, Store, StoreError, key};

/// Committed replies, `store/call/…`.
pub const CALL: Stage = Stage { name: "call", version: 1 };

/// A committed reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallRecord {
    pub site: CallSite,
    pub endpoint: String,
    /// The response's body, byte for byte, so that what this version does not read is not lost.
    pub body: String,
}

/// What was observed of a call, `observed/…`. Until the reply is committed, a note below `begun/`, written before each attempt: what a
/// killed process had sent is known to the next.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallSeen {
    /// Sent and not known to have been answered: what `charged` says of it is the upper bound.
    pub in_flight: bool,
    /// From the first attempt to the reply, in milliseconds, waiting included.
    pub latency_ms: Option<u64>,
    pub attempts: Vec<AttemptSeen>,
    /// All that was or may have been billed for the call, by this process and those before it.
    pub charged: Cost,
    /// The server's own id of the request that was answered.
    pub request_id: Option<String>,
    /// A cassette answered.
    #[serde(default)]
    pub played: bool,
}

/// One request that was sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttemptSeen {
    /// Milliseconds from sending to the end.
    pub took_ms: u64,
    /// What it came to, unless that was a reply.
    pub fault: Option<String>,
}

/// Where the reply to `body` at `site` is committed.
pub(super) fn call_key(endpoint: &str, site: &CallSite, body: &Value) -> Result<Key, StoreError> {
    #[derive(Serialize)]
    struct Input<'a> {
        endpoint: &'a str,
        site: &'a CallSite,
        request: &'a Value,
    }
    key(CALL, &Input { endpoint, site, request: body })
}

/// Calls that were begun and are not committed. `None` where all that is known is that something was sent.
pub(super) type Begun = BTreeMap<Key, Option<CallSeen>>;

/// What an earlier process began and did not commit.
pub(super) fn begun(store: &Store) -> Result<Begun, StoreError> {
    let mut begun = Begun::new();
    for (key, note) in store.notes::<CallSeen>()? {
        // Killed between the record and the removal of the note.
        if store.get::<CallRecord>(CALL, &key)?.is_none() {
            begun.insert(key, note);
        }
    }
    Ok(begun)
}

/// What all committed calls of `store` were charged.
pub(super) fn charged(store: &Store) -> Result<Cost, StoreError> {
    let mut sum = Cost::default();
    for key in store.keys(CALL)? {
        if let Some(seen) = store.observed::<CallSeen>(&key)? {
            sum = sum + seen.charged;
        }
    }
    Ok(sum)
}
