//! Quantities in files: a string with a unit, or a bare number in the base unit.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use landspeed_units::{BitRate, Bytes, Nanos, Ratio};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

/// A quantity parsed from text such as `"10G"`.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Written<T>(pub T);

impl<T: Eq> Eq for Written<T> {}

/// Quantities that [`Written`] can contain.
pub trait Quantity: FromStr<Err: fmt::Display> + fmt::Display + Copy {
    /// Description with examples, for error messages.
    const EXPECTED: &'static str;
    /// Converts a bare number, if it is unambiguous without a unit.
    fn bare(number: f64) -> Option<Self>;
    /// Returns the shortest text that represents exactly this value; it parses back to it, and is unique.
    fn exact(self) -> String;
}

/// Formats `value` in the largest of `units` that divides it. `units` are names and sizes, ascending, beginning
/// with the base unit.
fn in_largest_unit(value: u64, units: &[(&str, u64)]) -> String {
    let largest = units.iter().rev().find(|(_, size)| value != 0 && value.is_multiple_of(*size));
    let (name, size) = largest.unwrap_or(&units[0]);
    format!("{}{name}", value / size)
}

impl Quantity for BitRate {
    const EXPECTED: &'static str = "a rate in bit/s such as \"10G\" or \"500M\"";
    fn bare(number: f64) -> Option<Self> {
        (number >= 0.0 && number.fract() == 0.0 && number < 1e18).then(|| Self::from_bps(number as u64))
    }
    fn exact(self) -> String {
        in_largest_unit(
            self.bps(),
            &[("", 1), ("k", 1_000), ("M", 1_000_000), ("G", 1_000_000_000), ("T", 1_000_000_000_000)],
        )
    }
}

impl Quantity for Bytes {
    const EXPECTED: &'static str = "a size such as \"1MB\", \"64KiB\" or a number of bytes";
    fn bare(number: f64) -> Option<Self> {
        (number >= 0.0 && number.fract() == 0.0 && number < 1e18).then(|| Self::new(number as u64))
    }
    fn exact(self) -> String {
        let binary = in_largest_unit(
            self.get(),
            &[("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40)],
        );
        let decimal =
            in_largest_unit(self.get(), &[("B", 1), ("KB", 1_000), ("MB", 1_000_000), ("GB", 1_000_000_000)]);
        if decimal.len() < binary.len() { decimal } else { binary }
    }
}

impl Quantity for Nanos {
    const EXPECTED: &'static str = "a time such as \"25ms\", \"90s\" or \"0s\"";
    fn bare(number: f64) -> Option<Self> {
        (number == 0.0).then(|| Self::new(0))
    }
    fn exact(self) -> String {
        in_largest_unit(self.get(), &[("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)])
    }
}

impl Quantity for Ratio {
    const EXPECTED: &'static str = "a share such as \"0.0046%\", \"1/22000\" or 0.01";
    fn bare(number: f64) -> Option<Self> {
        (0.0..=1.0).contains(&number).then(|| Self::new(number)).flatten()
    }
    fn exact(self) -> String {
        self.get().to_string()
    }
}

impl<T: Quantity> fmt::Display for Written<T> {
    /// Writes the exact value, in a form that parses back to it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0.exact())
    }
}

impl<T: Quantity> Serialize for Written<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.exact())
    }
}

struct Reader<T>(std::marker::PhantomData<T>);

impl<T: Quantity> Visitor<'_> for Reader<T> {
    type Value = Written<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        text.parse().map(Written).map_err(E::custom)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Self::Value, E> {
        self.visit_f64(number as f64)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Self::Value, E> {
        self.visit_f64(number as f64)
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Self::Value, E> {
        T::bare(number)
            .map(Written)
            .ok_or_else(|| E::custom(format!("{number} has no unit or is out of range; expected {}", T::EXPECTED)))
    }
}

impl<'de, T: Quantity> Deserialize<'de> for Written<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader(std::marker::PhantomData))
    }
}

impl<T: Quantity> JsonSchema for Written<T> {
    fn schema_name() -> Cow<'static, str> {
        std::any::type_name::<T>().rsplit("::").next().unwrap_or("Quantity").into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "description": T::EXPECTED, "type": ["string", "number"] })
    }
}

/// A bit rate in a file.
pub type Rate = Written<BitRate>;
/// A size in bytes in a file.
pub type Size = Written<Bytes>;
/// A time in a file.
pub type Time = Written<Nanos>;
/// A ratio from 0 to 1 in a file.
pub type Share = Written<Ratio>;
