//! Results of other programs: iperf3, nuttcp, flent and perfSONAR.
//!
//! [`read`] detects the format by its content and returns the same [`Record`]s as landspeed's own documents.
//! Figures have the meaning of [`Metric`]: figures that a program defines differently
//! are left out rather than converted.

mod flent;
mod iperf3;
mod nuttcp;
mod perfsonar;

use std::time::{Duration, UNIX_EPOCH};

use landspeed_model::Metric;
use thiserror::Error;

use crate::json::{self, Damage};
use crate::parts;
use crate::record::{Record, RecordStatus};

/// A result of another program.
#[derive(Debug, Clone, PartialEq)]
pub struct ForeignDocument {
    /// `iperf3`, `nuttcp`, `flent` or `perfsonar`.
    pub kind: &'static str,
    /// One record for each test in the result.
    pub records: Vec<Record>,
}

/// Error of [`read`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ForeignError {
    /// The format was not recognised.
    #[error("not a result of landspeed, iperf3 (JSON), nuttcp, flent or perfSONAR (JSON)")]
    Unknown,
    /// The format was recognised, but a part is missing.
    #[error("a result of {program} without {what}")]
    Incomplete {
        /// The program that wrote it.
        program: &'static str,
        /// The missing part.
        what: &'static str,
    },
    /// The bytes are not JSON or text.
    #[error(transparent)]
    Damaged(#[from] Damage),
    /// Results of several programs in one text.
    #[error("results of {first} and {second} in one file")]
    Mixed {
        /// Program of the first result.
        first: &'static str,
        /// Program of another one.
        second: &'static str,
    },
}

/// The programs whose results [`read`] recognises.
pub const FOREIGN_KINDS: [&str; 4] = ["iperf3", "nuttcp", "flent", "perfsonar"];

/// Parses the results of another program: one, or several that were appended to one file.
///
/// # Errors
/// The format is unknown, a result is damaged or has no measurement, or the results are of several programs.
pub fn read(bytes: &[u8]) -> Result<ForeignDocument, ForeignError> {
    let mut all: Option<ForeignDocument> = None;
    for part in parts::split(bytes)? {
        let text = std::str::from_utf8(&part.bytes).map_err(|_| ForeignError::Unknown)?;
        let document = read_one(text)?;
        match &mut all {
            None => all = Some(document),
            Some(all) if all.kind == document.kind => all.records.extend(document.records),
            Some(all) => return Err(ForeignError::Mixed { first: all.kind, second: document.kind }),
        }
    }
    all.ok_or(ForeignError::Unknown)
}

/// Parses one document of [`parts::split`].
fn read_one(text: &str) -> Result<ForeignDocument, ForeignError> {
    if !text.trim_start().starts_with(['{', '[']) {
        return nuttcp::read(text);
    }
    if let Some(value) = iperf3::from_events(text) {
        return Ok(iperf3::read(&value));
    }
    let value = json::parse(text)?;
    if iperf3::is(&value) {
        return Ok(iperf3::read(&value));
    }
    if flent::is(&value) {
        return flent::read(&value);
    }
    perfsonar::read(&value)
}

/// An otherwise empty record of another program, with status complete.
fn record(tool: String) -> Record {
    Record { status: RecordStatus::Complete, ..Record::without_figures(tool) }
}

/// Seconds since the Unix epoch as RFC 3339 UTC; `None` after the year 9999.
fn rfc3339(seconds: u64) -> Option<String> {
    // The end of year 9999, the last that RFC 3339 can express.
    const MAX_RFC3339_S: u64 = 253_402_300_799;
    (seconds <= MAX_RFC3339_S)
        .then(|| humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(seconds)).to_string())
}

/// Converts an ISO 8601 time to RFC 3339 UTC; a time without a zone is taken as UTC.
fn utc(text: &str) -> Option<String> {
    let text = text.trim().replace(' ', "T");
    let (time, offset_s) = split_offset(&text)?;
    let parsed = humantime::parse_rfc3339_weak(time.trim_end_matches('Z')).ok()?;
    let seconds = i64::try_from(parsed.duration_since(UNIX_EPOCH).ok()?.as_secs()).ok()? - offset_s;
    rfc3339(u64::try_from(seconds).ok()?)
}

/// Splits a time into the part without the zone and the offset from UTC in seconds.
fn split_offset(text: &str) -> Option<(&str, i64)> {
    let Some(at) = text.rfind(['+', '-']).filter(|at| text[..*at].contains('T')) else { return Some((text, 0)) };
    let (time, zone) = text.split_at(at);
    let digits: String = zone.chars().filter(char::is_ascii_digit).collect();
    let number = |range: std::ops::Range<usize>| digits.get(range).and_then(|part| part.parse::<i64>().ok());
    let (hours, minutes) = (number(0..2)?, number(2..4).unwrap_or(0));
    let sign = if zone.starts_with('-') { -1 } else { 1 };
    Some((time, sign * (hours * 3600 + minutes * 60)))
}

/// A share of packets, 0..=1.
///
/// # Errors
/// A note: the document has a share that cannot be.
fn loss_share(share: f64) -> Result<f64, String> {
    let possible = (0.0..=1.0).contains(&share);
    possible.then_some(share).ok_or_else(|| format!("loss unknown: the document says {:.2} %", share * 100.0))
}

/// Sets the loss of a record, with a note if it cannot be.
fn set_loss(record: &mut Record, share: Option<f64>) {
    match share.map(loss_share).transpose() {
        Ok(share) => record.figures.set(Metric::Loss, share),
        Err(note) => record.notes.push(note),
    }
}

/// The arithmetic mean; `None` if there are no values.
fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The coefficient of variation; `None` for fewer than three values.
fn variation(values: &[f64]) -> Option<f64> {
    let (n, mean) = (values.len() as f64, mean(values)?);
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (values.len() > 2 && mean > 0.0).then(|| variance.sqrt() / mean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_losses_are_unknown_and_noted() {
        assert_eq!((loss_share(0.0), loss_share(1.0)), (Ok(0.0), Ok(1.0)));
        let note = |share| loss_share(share).expect_err("impossible");
        assert_eq!(note(-0.0052), "loss unknown: the document says -0.52 %");
        assert_eq!(note(3.0), "loss unknown: the document says 300.00 %");
        assert!(loss_share(f64::NAN).is_err());
    }

    #[test]
    fn times_with_any_offset_are_converted_to_utc() {
        assert_eq!(utc("2026-11-22T06:13:24Z").as_deref(), Some("2026-11-22T06:13:24Z"));
        assert_eq!(utc("2026-11-22T06:13:24.123456").as_deref(), Some("2026-11-22T06:13:24Z"));
        assert_eq!(utc("2026-11-22T08:13:24+02:00").as_deref(), Some("2026-11-22T06:13:24Z"));
        assert_eq!(utc("2026-11-21 22:13:24-0800").as_deref(), Some("2026-11-22T06:13:24Z"));
        assert_eq!(utc("yesterday"), None);
    }
}
