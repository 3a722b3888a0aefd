//! Rates in bits per second.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{ParseError, Quantity, escape_for_terminal};
use crate::number::{format_in_largest_unit, split};
use crate::{Bytes, Nanos};

/// A rate in bits per second.
///
/// Parses iperf3's notation (`10G`, `300m`, `500K`; decimal powers, either case) and the printed one (`9.41
/// Gb/s`, `10Gbps`, `10gbit`). A capital `B` means bytes and is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct BitRate(u64);

impl BitRate {
    /// 0 b/s.
    pub const ZERO: Self = Self(0);

    /// Creates a rate from bits per second.
    pub const fn from_bps(bps: u64) -> Self {
        Self(bps)
    }

    /// Returns the mean rate of `bytes` over `time`; `None` if the time is zero or the rate exceeds 64 bits.
    pub fn mean(bytes: Bytes, time: Nanos) -> Option<Self> {
        let bit_ns = u128::from(bytes.get()) * 8 * 1_000_000_000;
        let bps = bit_ns.checked_div(u128::from(time.get()))?;
        u64::try_from(bps).ok().map(Self)
    }

    /// Returns the rate in bits per second.
    pub const fn bps(self) -> u64 {
        self.0
    }

    /// Returns the rate in bytes per second.
    pub fn bytes_per_s(self) -> f64 {
        self.0 as f64 / 8.0
    }
}

impl FromStr for BitRate {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let split = split(text, Quantity::Rate)?;
        let (multiplier, rest) = match split.unit.as_bytes().first() {
            Some(b'k' | b'K') => (1_000, &split.unit[1..]),
            Some(b'm' | b'M') => (1_000_000, &split.unit[1..]),
            Some(b'g' | b'G') => (1_000_000_000, &split.unit[1..]),
            Some(b't' | b'T') => (1_000_000_000_000, &split.unit[1..]),
            _ => (1, split.unit),
        };
        match rest {
            "" | "b" | "bps" | "b/s" | "bit" | "bits" | "bit/s" | "bits/s" => split.scaled(multiplier).map(Self),
            "B" | "Bps" | "B/s" | "iB/s" => Err(ParseError::BytesNotBits { text: escape_for_terminal(text.trim()) }),
            _ => Err(split.unknown_unit()),
        }
    }
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(&str, u64); 5] =
            [("b/s", 1), ("kb/s", 1_000), ("Mb/s", 1_000_000), ("Gb/s", 1_000_000_000), ("Tb/s", 1_000_000_000_000)];
        f.pad(&format_in_largest_unit(self.0, &UNITS).text)
    }
}
