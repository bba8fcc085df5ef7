//! The time of day. All time stamps of records are made here. Durations are measured with
//! `Instant`, and time limits with [`running`].

pub mod running;

use std::time::SystemTime;

use chrono::{DateTime, SecondsFormat, Utc};

/// Milliseconds since 1970-01-01 UTC. 0 on a machine whose clock shows an earlier time.
pub fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// The time this many milliseconds after 1970-01-01 UTC. A number that the calendar cannot hold
/// gives the calendar's last time.
pub fn instant(milliseconds: u64) -> DateTime<Utc> {
    let instant = i64::try_from(milliseconds).ok().and_then(DateTime::from_timestamp_millis);
    instant.unwrap_or(DateTime::<Utc>::MAX_UTC)
}

/// A time as ISO 8601 in UTC, with milliseconds, e.g. `2026-03-01T12:00:00.250Z`.
pub fn iso8601(instant: DateTime<Utc>) -> String {
    instant.to_rfc3339_opts(SecondsFormat::Millis, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_are_written_as_dates() {
        for (milliseconds, expect) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_795_302_902_250, "2026-11-21T23:15:02.250Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(iso8601(instant(milliseconds)), expect);
        }
        assert_eq!(instant(u64::MAX), DateTime::<Utc>::MAX_UTC);
    }
}
