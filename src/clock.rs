//! The time of day. Every time stamp of a record is made here; durations are measured with `Instant`.

use std::time::SystemTime;

/// Milliseconds since 1970-01-01 UTC; 0 on a machine whose clock is set before that.
pub fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
