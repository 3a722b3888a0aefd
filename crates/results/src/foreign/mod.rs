//! Results of other programs: iperf3, nuttcp, flent and perfSONAR.
//!
//! [`read`] recognises a format by its content and gives the same [`Record`]s as landspeed's own documents. Figures keep the
//! meaning of [`Metric`](landspeed_model::Metric): what a program measures in another way is left out rather than converted.

mod flent;
mod iperf3;
mod nuttcp;
mod perfsonar;

use std::time::{Duration, UNIX_EPOCH};

use serde_json::Value;
use thiserror::Error;

use crate::record::{Record, RecordStatus};

/// A result of another program.
#[derive(Debug, Clone, PartialEq)]
pub struct ForeignDocument {
    /// `iperf3`, `nuttcp`, `flent` or `perfsonar`.
    pub kind: &'static str,
    /// What it measured: one record for each test in it.
    pub records: Vec<Record>,
}

/// Why bytes are no result of another program.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ForeignError {
    /// No format was recognised.
    #[error("not a result of landspeed, iperf3 (JSON), nuttcp, flent or perfSONAR (JSON)")]
    Unknown,
    /// The format was recognised, and something is missing.
    #[error("a result of {program} without {what}")]
    Incomplete {
        /// The program.
        program: &'static str,
        /// What is missing.
        what: &'static str,
    },
}

/// The kinds that [`read`] recognises.
pub const FOREIGN_KINDS: [&str; 4] = ["iperf3", "nuttcp", "flent", "perfsonar"];

/// Reads a result of another program.
///
/// # Errors
/// The format is unknown, or the result has nothing that was measured.
pub fn read(bytes: &[u8]) -> Result<ForeignDocument, ForeignError> {
    if let Ok(value) = serde_json::from_slice::<Value>(bytes) {
        if iperf3::is(&value) {
            return Ok(iperf3::read(&value));
        }
        if flent::is(&value) {
            return flent::read(&value);
        }
        return perfsonar::read(&value);
    }
    let text = std::str::from_utf8(bytes).map_err(|_| ForeignError::Unknown)?;
    if let Some(value) = iperf3::from_events(text) {
        return Ok(iperf3::read(&value));
    }
    nuttcp::read(text)
}

/// A record of another program: complete, with nothing known.
fn record(tool: String) -> Record {
    Record { status: RecordStatus::Complete, ..Record::unmeasured(tool) }
}

/// RFC 3339 UTC from seconds since the Unix epoch, in the years that it can write.
fn rfc3339(seconds: u64) -> Option<String> {
    // Year 9999, the last of RFC 3339.
    const LAST_S: u64 = 253_402_300_799;
    (seconds <= LAST_S)
        .then(|| humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(seconds)).to_string())
}

/// RFC 3339 UTC from an ISO 8601 time with or without a zone; without one it is taken as UTC.
fn utc(text: &str) -> Option<String> {
    let text = text.trim().replace(' ', "T");
    let (time, offset_s) = split_offset(&text)?;
    let parsed = humantime::parse_rfc3339_weak(time.trim_end_matches('Z')).ok()?;
    let seconds = i64::try_from(parsed.duration_since(UNIX_EPOCH).ok()?.as_secs()).ok()? - offset_s;
    rfc3339(u64::try_from(seconds).ok()?)
}

/// The time and its offset from UTC, seconds.
fn split_offset(text: &str) -> Option<(&str, i64)> {
    let Some(at) = text.rfind(['+', '-']).filter(|at| text[..*at].contains('T')) else { return Some((text, 0)) };
    let (time, zone) = text.split_at(at);
    let digits: String = zone.chars().filter(char::is_ascii_digit).collect();
    let number = |range: std::ops::Range<usize>| digits.get(range).and_then(|part| part.parse::<i64>().ok());
    let (hours, minutes) = (number(0..2)?, number(2..4).unwrap_or(0));
    let sign = if zone.starts_with('-') { -1 } else { 1 };
    Some((time, sign * (hours * 3600 + minutes * 60)))
}

/// The mean; `None` of nothing.
fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The coefficient of variation; `None` of fewer than three values.
fn variation(values: &[f64]) -> Option<f64> {
    let (n, mean) = (values.len() as f64, mean(values)?);
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (values.len() > 2 && mean > 0.0).then(|| variance.sqrt() / mean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_any_zone_become_utc() {
        assert_eq!(utc("2026-11-22T06:13:24Z").as_deref(), Some("2026-11-22T06:13:24Z"));
        assert_eq!(utc("2026-11-22T06:13:24.123456").as_deref(), Some("2026-11-22T06:13:24Z"));
        assert_eq!(utc("2026-11-22T08:13:24+02:00").as_deref(), Some("2026-11-22T06:13:24Z"));
        assert_eq!(utc("2026-11-21 22:13:24-0800").as_deref(), Some("2026-11-22T06:13:24Z"));
        assert_eq!(utc("yesterday"), None);
    }
}
