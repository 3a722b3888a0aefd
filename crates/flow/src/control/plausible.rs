//! Range check of the numbers in a peer's report.
//!
//! The document adds and subtracts numbers that the peer reports. Sums of values that pass this check cannot
//! overflow 64 bits, so a hostile server can report false values but cannot crash its client.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Largest integer: seven weeks in nanoseconds, or 4 PiB; 4096 of them add up to 64 bits.
const MAX_INTEGER: u64 = 1 << 52;
/// Driver counters, which may have any value; they are only displayed.
const UNBOUNDED: &str = "nic";

/// Accepts any JSON with plausible numbers and discards it.
pub struct Plausible;

impl<'de> Deserialize<'de> for Plausible {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PlausibleVisitor)
    }
}

struct PlausibleVisitor;

impl<'de> Visitor<'de> for PlausibleVisitor {
    type Value = Plausible;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("figures that can be")
    }

    fn visit_u64<E: Error>(self, n: u64) -> Result<Plausible, E> {
        if n <= MAX_INTEGER { Ok(Plausible) } else { Err(E::custom(format_args!("{n} is out of range"))) }
    }

    fn visit_i64<E: Error>(self, n: i64) -> Result<Plausible, E> {
        self.visit_u64(n.unsigned_abs())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Plausible, E> {
        Ok(Plausible)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Plausible, E> {
        Ok(Plausible)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Plausible, E> {
        Ok(Plausible)
    }

    fn visit_unit<E: Error>(self) -> Result<Plausible, E> {
        Ok(Plausible)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Plausible, A::Error> {
        while list.next_element::<Plausible>()?.is_some() {}
        Ok(Plausible)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Plausible, A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            if key == UNBOUNDED {
                map.next_value::<IgnoredAny>()?;
            } else {
                map.next_value::<Plausible>()?;
            }
        }
        Ok(Plausible)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passes(text: &str) -> bool {
        serde_json::from_str::<Plausible>(text).is_ok()
    }

    #[test]
    fn only_implausibly_large_numbers_are_rejected() {
        assert!(passes(r#"{"a":[0,-1,4503599627370496,0.5,null,true,"x",{"b":1}]}"#));
        assert!(passes(r#"{"nic":[{"delta":18446744073709551615}]}"#));
        for text in ["18446744073709551615", "-9223372036854775808", r#"{"a":[{"b":4503599627370497}]}"#] {
            assert!(!passes(text), "{text}");
        }
    }
}
