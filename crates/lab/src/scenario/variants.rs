//! Reading the values that may be written in several ways. By hand, so that what is wrong inside keeps its own words
//! and its line: an untagged enum would only say that nothing matched.

use std::fmt;
use std::marker::PhantomData;

use landspeed_problems::EMPTY;
use landspeed_units::Bytes;
use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{self, Deserializer, Error, MapAccess, Visitor};

use super::quantity::Quantity;
use super::{
    BufferPolicy, Buffers, GilbertElliott, Loss, LossPattern, Queue, QueueKind, QueueSettings, Share, SysctlValue,
    Written,
};

/// An array of exactly two; serde's own arrays do not mind a third.
pub(super) fn two<'de, D: Deserializer<'de>>(deserializer: D) -> Result<[String; 2], D::Error> {
    let nodes = Vec::<String>::deserialize(deserializer)?;
    let given = nodes.len();
    nodes.try_into().map_err(|_| D::Error::invalid_length(given, &"an array of length 2"))
}

/// Reads a value that has several notations. Notations that are not overridden are refused with `WHAT`.
trait Variants: Sized {
    const WHAT: &'static str;
    fn text<E: Error>(text: &str) -> Result<Self, E>;
    fn number<E: Error>(number: f64) -> Result<Self, E> {
        Err(E::invalid_type(de::Unexpected::Float(number), &Self::WHAT))
    }
    fn integer<E: Error>(number: i64) -> Result<Self, E> {
        Self::number(number as f64).map_err(|_: E| E::invalid_type(de::Unexpected::Signed(number), &Self::WHAT))
    }
    fn table<'de, A: MapAccess<'de>>(_: A) -> Result<Self, A::Error> {
        Err(A::Error::invalid_type(de::Unexpected::Map, &Self::WHAT))
    }
}

struct Reader<T>(PhantomData<T>);

impl<'de, T: Variants> Visitor<'de> for Reader<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::WHAT)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        T::text(text)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        T::integer(number)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        i64::try_from(number).map_or_else(|_| T::number(number as f64), T::integer)
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<T, E> {
        T::number(number)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::table(map)
    }
}

macro_rules! read_by_variants {
    ($($type:ty),*) => {$(
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(Reader(PhantomData))
            }
        }
    )*};
}

read_by_variants!(Queue, Buffers, Loss, SysctlValue);

impl Variants for Queue {
    const WHAT: &'static str =
        "a queue: its kind, such as \"fq\", or a table such as { kind = \"bfifo\", limit = \"1MB\" }";

    fn text<E: Error>(text: &str) -> Result<Self, E> {
        QueueKind::deserialize(StrDeserializer::new(text)).map(Self::Kind)
    }

    fn table<'de, A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        QueueSettings::deserialize(MapAccessDeserializer::new(map)).map(Self::Settings)
    }
}

impl Variants for Buffers {
    const WHAT: &'static str = "\"fit\", \"stock\", or a size such as \"64MiB\"";

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
        size.map(Self::UpTo).ok_or_else(|| E::invalid_value(de::Unexpected::Float(number), &Self::WHAT))
    }
}

impl Variants for Loss {
    const WHAT: &'static str = "a share of the frames such as \"0.0046%\" or \"1/22000\", or a table with one of \
                                `random`, `every`, `packets`, `longer-than`, `gilbert-elliott`";

    fn text<E: Error>(text: &str) -> Result<Self, E> {
        Share::deserialize(StrDeserializer::new(text)).map(Self::Random)
    }

    fn number<E: Error>(number: f64) -> Result<Self, E> {
        Share::deserialize(de::value::F64Deserializer::new(number)).map(Self::Random)
    }

    fn table<'de, A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let Some(key) = map.next_key::<LossKey>()? else {
            return Err(A::Error::custom(format!("{EMPTY}: expected {}", Self::WHAT)));
        };
        let pattern = match key {
            LossKey::Random => LossPattern::Random(map.next_value::<Share>()?),
            LossKey::Every => LossPattern::Every(map.next_value::<u64>()?),
            LossKey::Packets => LossPattern::Packets(map.next_value::<Vec<u64>>()?),
            LossKey::LongerThan => LossPattern::LongerThan(map.next_value::<u32>()?),
            LossKey::GilbertElliott => LossPattern::GilbertElliott(map.next_value::<GilbertElliott>()?),
        };
        if map.next_key::<LossKey>()?.is_some() {
            return Err(A::Error::custom(
                "a link loses frames in one way: give one of `random`, `every`, `packets`, `longer-than`, \
                 `gilbert-elliott`",
            ));
        }
        Ok(Self::Pattern(pattern))
    }
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "kebab-case")]
enum LossKey {
    Random,
    Every,
    Packets,
    LongerThan,
    GilbertElliott,
}

impl Variants for SysctlValue {
    const WHAT: &'static str = "a number or text";

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
