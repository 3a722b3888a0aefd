//! Parsing of values with several notations. It is written by hand so that an error inside a value keeps its
//! message and its line: an untagged enum would only report that nothing matched.

use landspeed_problems::{Notations, Quantity, read_by_notations};
use landspeed_units::Bytes;
use serde::Deserialize;
use serde::de::{self, Deserializer, Error, MapAccess};

use super::{BufferPolicy, Buffers, SysctlValue, Written};

/// Parses an array of exactly two strings; serde's own arrays accept a third.
pub(super) fn two<'de, D: Deserializer<'de>>(deserializer: D) -> Result<[String; 2], D::Error> {
    let nodes = Vec::<String>::deserialize(deserializer)?;
    let given = nodes.len();
    nodes.try_into().map_err(|_| D::Error::invalid_length(given, &"an array of length 2"))
}

read_by_notations!(Buffers, SysctlValue);

impl Notations for Buffers {
    const EXPECTED: &'static str = "\"fit\", \"stock\", or a size such as \"64MiB\"";

    fn text<E: Error>(text: &str) -> Result<Self, E> {
        match text {
            "fit" => Ok(Self::Named(BufferPolicy::Fit)),
            "stock" => Ok(Self::Named(BufferPolicy::Stock)),
            size if size.trim_start().starts_with(|c: char| c.is_ascii_digit()) => {
                size.parse().map(|size| Self::UpTo(Written(size))).map_err(E::custom)
            }
            _ => Err(E::unknown_variant(text, &["fit", "stock", "a size such as 64MiB"])),
        }
    }

    fn number<E: Error>(number: f64) -> Result<Self, E> {
        let size = Bytes::bare(number).map(Written::<Bytes>);
        size.map(Self::UpTo).ok_or_else(|| E::invalid_value(de::Unexpected::Float(number), &Self::EXPECTED))
    }
}

impl Notations for SysctlValue {
    const EXPECTED: &'static str = "a number or text";

    fn text<E: Error>(text: &str) -> Result<Self, E> {
        Ok(Self::Text(text.to_owned()))
    }

    fn integer<E: Error>(number: i64) -> Result<Self, E> {
        Ok(Self::Number(number))
    }

    fn table<'de, A: MapAccess<'de>>(_: A) -> Result<Self, A::Error> {
        Err(A::Error::custom("names of sysctls contain dots and need quotes: \"net.ipv4.tcp_sack\" = 0"))
    }
}
