//! Wall-clock time in the format of documents.

use std::time::{Duration, UNIX_EPOCH};

/// Formats a time as RFC 3339 in UTC with milliseconds.
pub fn rfc3339(unix_ns: u64) -> String {
    humantime::format_rfc3339_millis(UNIX_EPOCH + Duration::from_nanos(unix_ns)).to_string()
}
