//! Deserialisation of values with several notations.

use landspeed_problems::{EMPTY, Notations, Rate, read_by_notations};
use serde::Deserialize;
use serde::de::value::{F64Deserializer, MapAccessDeserializer, StrDeserializer};
use serde::de::{Error, MapAccess};

use super::{Queue, QueueKind, QueueSettings, RateChange, RateSource};

read_by_notations!(Queue, RateSource);

impl Notations for Queue {
    const EXPECTED: &'static str =
        "a queue: its kind, such as \"codel\", or a table such as { kind = \"bfifo\", limit = \"1MB\" }";

    fn text<E: Error>(text: &str) -> Result<Self, E> {
        QueueKind::deserialize(StrDeserializer::new(text)).map(Self::Kind)
    }

    fn table<'de, A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        QueueSettings::deserialize(MapAccessDeserializer::new(map)).map(Self::Settings)
    }
}

impl Notations for RateSource {
    const EXPECTED: &'static str =
        "a rate in bit/s such as \"10G\", or a table with one of `mahimahi`, `rattan` (files), `steps`";

    fn text<E: Error>(text: &str) -> Result<Self, E> {
        Rate::deserialize(StrDeserializer::new(text)).map(Self::Fixed)
    }

    fn number<E: Error>(number: f64) -> Result<Self, E> {
        Rate::deserialize(F64Deserializer::new(number)).map(Self::Fixed)
    }

    fn table<'de, A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let Some(key) = map.next_key::<RateKey>()? else {
            return Err(A::Error::custom(format!("{EMPTY}: expected {}", Self::EXPECTED)));
        };
        let source = match key {
            RateKey::Mahimahi => Self::Mahimahi(map.next_value()?),
            RateKey::Rattan => Self::Rattan(map.next_value()?),
            RateKey::Steps => Self::Steps(map.next_value::<Vec<RateChange>>()?),
        };
        if map.next_key::<RateKey>()?.is_some() {
            return Err(A::Error::custom("give one of `mahimahi`, `rattan`, `steps`"));
        }
        Ok(source)
    }
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "kebab-case")]
enum RateKey {
    Mahimahi,
    Rattan,
    Steps,
}
