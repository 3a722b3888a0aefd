//! Wall-clock time as documents write it.

use std::time::{Duration, UNIX_EPOCH};

/// RFC 3339 in UTC, to the millisecond.
pub fn rfc3339(unix_ns: u64) -> String {
    humantime::format_rfc3339_millis(UNIX_EPOCH + Duration::from_nanos(unix_ns)).to_string()
}
