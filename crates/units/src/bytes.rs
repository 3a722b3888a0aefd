//! Sizes in bytes.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{ParseError, Quantity};
use crate::number::{format_in_largest_unit, has_three_digits, split};

/// A number of bytes.
///
/// Parses as iperf3 does, in either case: a bare `K`, `M`, `G`, `T` is a power of 1024, as is `KiB`; `KB` is a
/// power of 1000.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Bytes(u64);

impl Bytes {
    /// 0 bytes.
    pub const ZERO: Self = Self(0);

    /// Creates a size from a number of bytes.
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// Returns the number of bytes.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl FromStr for Bytes {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let split = split(text, Quantity::Size)?;
        let multiplier = match split.unit.to_ascii_lowercase().as_str() {
            "" | "b" | "byte" | "bytes" => 1,
            "k" | "kib" => 1 << 10,
            "m" | "mib" => 1 << 20,
            "g" | "gib" => 1 << 30,
            "t" | "tib" => 1 << 40,
            "p" | "pib" => 1 << 50,
            "e" | "eib" => 1 << 60,
            "kb" => 1_000,
            "mb" => 1_000_000,
            "gb" => 1_000_000_000,
            "tb" => 1_000_000_000_000,
            "pb" => 1_000_000_000_000_000,
            _ => return Err(split.unknown_unit()),
        };
        split.scaled(multiplier).map(Self)
    }
}

/// Powers of 1024.
const BINARY: [(&str, u64); 7] = [
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("PiB", 1 << 50),
    ("EiB", 1 << 60),
];

/// Powers of 1000.
const DECIMAL: [(&str, u64); 5] = [
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("PB", 1_000_000_000_000_000),
];

/// Below this, a size that no unit shows exactly is printed in bytes (`1448 B`).
const EXACT_BELOW: u64 = 10_000;

/// Prints three significant digits: exactly in powers of 1024 if possible (`4.00 MiB`), else exactly in powers of
/// 1000 (`1 MB`, `1.5 MB`), else rounded in powers of 1024 (`1.17 GiB`). Sizes below 10 kB are always exact
/// (`1448 B`).
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let binary = format_in_largest_unit(self.0, &BINARY);
        if binary.exact {
            return f.pad(&binary.text);
        }
        if self.0 < EXACT_BELOW {
            return f.pad(&format!("{} B", self.0));
        }
        let decimal = DECIMAL.iter().rev().find(|&&(_, size)| self.0 >= size);
        match decimal {
            // Exact with three digits: `115 MB` and `1.5 MB`, but not `1.024 MB`.
            Some(&(name, size)) if has_three_digits(self.0, size) => {
                f.pad(&format!("{} {name}", self.0 as f64 / size as f64))
            }
            _ => f.pad(&binary.text),
        }
    }
}
