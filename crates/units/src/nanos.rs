//! Durations in nanoseconds.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{ParseError, Quantity};
use crate::number::{format_in_largest_unit, split};

/// A duration in nanoseconds (at most 584 years).
///
/// Parses `10ns`, `250us` or `250µs`, `92ms`, `1.5s`, `2m` or `2min`, `1h`, `1d`; a bare number is seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Nanos(u64);

const MICRO: u64 = 1_000;
const MILLI: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

impl Nanos {
    /// 0 ns.
    pub const ZERO: Self = Self(0);

    /// Creates a duration from nanoseconds.
    pub const fn new(ns: u64) -> Self {
        Self(ns)
    }

    /// Creates a duration from microseconds, saturating at the maximum.
    pub const fn from_micros(us: u64) -> Self {
        Self(us.saturating_mul(MICRO))
    }

    /// Creates a duration from milliseconds, saturating at the maximum.
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms.saturating_mul(MILLI))
    }

    /// Creates a duration from whole seconds, saturating at the maximum.
    pub const fn from_secs(s: u64) -> Self {
        Self(s.saturating_mul(SECOND))
    }

    /// Creates a duration from seconds, rounded to the nanosecond; `None` if negative, not finite or longer than 584
    /// years.
    pub fn from_secs_f64(s: f64) -> Option<Self> {
        let ns = (s * SECOND as f64).round();
        // 2^64 is the smallest f64 above u64::MAX; NaN is in no range.
        (0.0..18_446_744_073_709_551_616.0).contains(&ns).then_some(Self(ns as u64))
    }

    /// Returns the duration in nanoseconds.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Returns the duration in seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / SECOND as f64
    }

    /// Returns the sum; `None` on overflow.
    pub const fn checked_add(self, other: Self) -> Option<Self> {
        match self.0.checked_add(other.0) {
            Some(ns) => Some(Self(ns)),
            None => None,
        }
    }

    /// Returns the difference; `None` if `other` is longer.
    pub const fn checked_sub(self, other: Self) -> Option<Self> {
        match self.0.checked_sub(other.0) {
            Some(ns) => Some(Self(ns)),
            None => None,
        }
    }
}

impl From<Nanos> for Duration {
    fn from(nanos: Nanos) -> Self {
        Self::from_nanos(nanos.0)
    }
}

impl From<Duration> for Nanos {
    /// Saturates at the maximum of 584 years.
    fn from(duration: Duration) -> Self {
        Self(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl FromStr for Nanos {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let split = split(text, Quantity::Time)?;
        // Keyboards produce both U+00B5 (micro sign) and U+03BC (Greek mu).
        let multiplier = match split.unit.to_ascii_lowercase().as_str() {
            "ns" => 1,
            "us" | "usec" | "\u{b5}s" | "\u{3bc}s" => MICRO,
            "ms" | "msec" => MILLI,
            "" | "s" | "sec" | "second" | "seconds" => SECOND,
            "m" | "min" | "minute" | "minutes" => MINUTE,
            "h" | "hour" | "hours" => HOUR,
            "d" | "day" | "days" => DAY,
            _ => return Err(split.unknown_unit()),
        };
        split.scaled(multiplier).map(Self)
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(&str, u64); 7] =
            [("ns", 1), ("µs", MICRO), ("ms", MILLI), ("s", SECOND), ("min", MINUTE), ("h", HOUR), ("d", DAY)];
        f.pad(&format_in_largest_unit(self.0, &UNITS).text)
    }
}

/// A duration that was measured in whole microseconds, as TCP measures its RTT. Below a millisecond it has no decimals:
/// `3 µs`, `20.4 ms`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Micros(u32);

impl Micros {
    /// Creates a duration from microseconds.
    pub const fn new(us: u32) -> Self {
        Self(us)
    }
}

impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < 1000 {
            return f.pad(&format!("{} µs", self.0));
        }
        Nanos::from_micros(u64::from(self.0)).fmt(f)
    }
}
