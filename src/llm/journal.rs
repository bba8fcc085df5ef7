//! The journal: committed calls. A committed reply is never requested again.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::response::read_reply;
use super::{CallSite, Cost};
use crate::model::{CallDetail, Key};
use crate::store::{ReadStore, Stage, Store, StoreError, key};

/// Committed replies, `store/call/…`.
pub const CALL: Stage = Stage::given("call");

/// A committed reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallRecord {
    pub site: CallSite,
    pub endpoint: String,
    /// The body of the response, byte for byte. So fields that this version does not read are kept.
    pub body: String,
}

/// Observations of a call, in `observed/…`. Until its reply is committed, this is a note in
/// `started/`, which is written before each attempt. So a resumed run knows the requests that a
/// killed process had sent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallSeen {
    /// A request was sent, and its outcome is unknown. `charged` has its upper bound.
    pub in_flight: bool,
    /// Milliseconds from the first attempt to the reply, with all waits.
    pub latency_ms: Option<u64>,
    pub attempts: Vec<AttemptSeen>,
    /// Everything that was, or may have been, billed for the call, also by earlier processes.
    pub charged: Cost,
    /// The server's id of the request that was answered.
    pub request_id: Option<String>,
    /// The reply is from a cassette.
    pub replayed: bool,
}

impl CallSeen {
    /// Time of the request that was answered. Zero if none was.
    pub(super) fn served(&self) -> Duration {
        let answered = self.attempts.iter().rfind(|attempt| attempt.fault.is_none());
        answered.map_or(Duration::ZERO, |attempt| Duration::from_millis(attempt.took_ms))
    }
}

/// A request that was sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttemptSeen {
    /// Milliseconds up to the last byte of the response, or up to the failure.
    pub took_ms: u64,
    /// Why it got no reply. `None` if it got one.
    pub fault: Option<String>,
}

/// The key of the reply to `body` at `site`.
pub(super) fn call_key(endpoint: &str, site: &CallSite, body: &Value) -> Result<Key, StoreError> {
    #[derive(Serialize)]
    struct Input<'a> {
        endpoint: &'a str,
        site: &'a CallSite,
        request: &'a Value,
    }
    key(CALL, &Input { endpoint, site, request: body })
}

/// Details of a committed call beyond its message. `None` if there is no such call.
pub fn call_detail(store: &ReadStore, key: &Key) -> Result<Option<CallDetail>, StoreError> {
    let Some(record) = store.get::<CallRecord>(CALL, key)? else { return Ok(None) };
    let seen = store.observed::<CallSeen>(key)?;
    Ok(Some(CallDetail {
        usd: seen.map(|seen| seen.charged.usd()).filter(|usd| *usd > 0.0),
        ..detail_of_body(&record.body)
    }))
}

/// Tokens and cost of a committed call.
#[derive(Clone, Debug)]
pub struct CallUse {
    pub site: CallSite,
    /// Input and output tokens. 0 if the server does not report them.
    pub usage: (u64, u64),
    /// The charge, in 10⁻¹² US dollars.
    pub picodollars: u64,
}

/// All committed calls in `store`.
pub fn call_uses(store: &ReadStore) -> Result<Vec<CallUse>, StoreError> {
    let mut uses = Vec::new();
    for key in store.keys(CALL)? {
        let Some(record) = store.get::<CallRecord>(CALL, &key)? else { continue };
        let reply = read_reply(&record.body).ok().flatten();
        let usage = reply.and_then(|reply| reply.usage);
        uses.push(CallUse {
            site: record.site,
            usage: usage.map_or((0, 0), |usage| (usage.prompt_tokens, usage.completion_tokens)),
            picodollars: store.observed::<CallSeen>(&key)?.map_or(0, |seen| seen.charged.picodollars),
        });
    }
    Ok(uses)
}

/// The details in the body of a response. A committed body has a valid reply. Fields that cannot be
/// parsed are left out.
fn detail_of_body(body: &str) -> CallDetail {
    let Some(reply) = read_reply(body).ok().flatten() else { return CallDetail::default() };
    CallDetail {
        prompt_token_ids: reply.prompt_token_ids,
        completion_token_ids: reply.completion_token_ids,
        logprobs: reply.logprobs.map(|tokens| tokens.iter().map(|token| token.logprob).collect()),
        usd: None,
    }
}

/// Calls that were started and are not committed. `None` if the note cannot be read: a request was
/// sent, but its charge is unknown.
pub(super) type Started = BTreeMap<Key, Option<CallSeen>>;

/// The calls that an earlier process began and did not commit.
pub(super) fn started(store: &Store) -> Result<Started, StoreError> {
    let mut started = Started::new();
    for (key, note) in store.notes::<CallSeen>()? {
        // If it is committed, the process was killed before it removed the note.
        if store.get::<CallRecord>(CALL, &key)?.is_none() {
            started.insert(key, note);
        }
    }
    Ok(started)
}

/// The sum of the charges of all committed calls in `store`.
pub(super) fn charged(store: &Store) -> Result<Cost, StoreError> {
    let mut sum = Cost::default();
    for key in store.keys(CALL)? {
        if let Some(seen) = store.observed::<CallSeen>(&key)? {
            sum = sum + seen.charged;
        }
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_of_bodies() {
        let check =
            |body: &str, prompt: Option<&[u32]>, completion: Option<&[u32]>, logprobs: Option<&[f64]>| {
                let detail = detail_of_body(body);
                assert_eq!(detail.prompt_token_ids.as_deref(), prompt, "{body}");
                assert_eq!(detail.completion_token_ids.as_deref(), completion, "{body}");
                assert_eq!(detail.logprobs.as_deref(), logprobs, "{body}");
            };
        let choice = |rest: &str| {
            format!(r#"{{"choices":[{{"message":{{"content":"a"}}{rest}}}],"prompt_token_ids":[1,2]}}"#)
        };
        check(&choice(r#","token_ids":[3,4]"#), Some(&[1, 2]), Some(&[3, 4]), None);
        let logprobs =
            r#","logprobs":{"content":[{"token":"a","logprob":-0.5},{"token":"b","logprob":-1.25}]}"#;
        check(&choice(logprobs), Some(&[1, 2]), None, Some(&[-0.5, -1.25]));
        check(&choice(r#","token_ids":"many","logprobs":{"content":null}"#), Some(&[1, 2]), None, None);
        let gym =
            r#"{"choices":[{"message":{"content":"a","prompt_token_ids":[5],"generation_token_ids":[6]}}]}"#;
        check(gym, Some(&[5]), Some(&[6]), None);
        check(r#"{"choices":[]}"#, None, None, None);
        check("<html>", None, None, None);
    }
}
