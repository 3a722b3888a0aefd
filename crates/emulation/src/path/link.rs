//! Properties of a link, as paths and the lab's scenarios write them. [`capability`](super::capability) says who
//! can do which.

use landspeed_problems::{EMPTY, Notations, Rate, Size, Time, read_by_notations};
use schemars::JsonSchema;
use serde::de::value::{F64Deserializer, StrDeserializer};
use serde::de::{Error, MapAccess};
use serde::{Deserialize, Serialize};

/// Default MTU, bytes.
pub const DEFAULT_MTU: u32 = 1500;
/// Default queue limit, bytes.
pub const DEFAULT_QUEUE_BYTES: u32 = 1_000_000;

/// Declares a table of a file: its own keys, and the properties that a link can have for one direction or both.
#[doc(hidden)]
#[macro_export]
macro_rules! link_properties {
    ($(#[$attribute:meta])* pub struct $name:ident { $($own:tt)* }) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, PartialEq, ::serde::Serialize, ::serde::Deserialize, ::schemars::JsonSchema)]
        #[serde(deny_unknown_fields, rename_all = "kebab-case")]
        pub struct $name {
            $($own)*
            /// One-way delay; default 0.
            pub delay: Option<::landspeed_problems::Time>,
            /// Variation of the delay.
            pub jitter: Option<$crate::Jitter>,
            /// Lab: frames that arrive within this time of the first waiting one leave together. Default: off.
            pub slot: Option<::landspeed_problems::Time>,
            /// Lab: frames wait for the next tick of a clock with this period and leave together, as with a framing
            /// such as SONET's of 125 us. Default: off.
            pub frame_clock: Option<::landspeed_problems::Time>,
            /// Loss of frames on the link.
            pub loss: Option<$crate::Loss>,
            /// Share of frames that skip the delay and so overtake others.
            pub reorder: Option<::landspeed_problems::Share>,
            /// Share of frames that are duplicated.
            pub duplicate: Option<::landspeed_problems::Share>,
            /// Paths: the queue before the link; default `{ kind = "bfifo", limit = "1MB" }`.
            pub queue: Option<$crate::Queue>,
            /// Paths: policer that drops frames above a rate before they reach the queue. Default none.
            pub policer: Option<$crate::Policer>,
            /// Paths: outages, in which frames that are sent are lost. Times count from the start of the emulation.
            pub down: Option<Vec<$crate::Outage>>,
        }
    };
}

/// Declares the link of a file format: its own keys, and the properties of every link, with
/// [`LinkDirection`] for what differs between the directions.
#[macro_export]
macro_rules! declare_link {
    ($(#[$attribute:meta])* pub struct $name:ident { $($own:tt)* }) => {
        $crate::link_properties! {
            $(#[$attribute])*
            pub struct $name {
                $($own)*
                /// Rate, fixed or (paths) over time.
                pub rate: $crate::RateSource,
                /// Framing per frame on the link: `ethernet` (the default: 24 bytes of preamble, FCS and gap) or
                /// `none`.
                pub framing: Option<$crate::Framing>,
                /// Settings of the direction from the first end to the second.
                #[serde(default)]
                pub forward: $crate::LinkDirection,
                /// Settings of the direction from the second end to the first.
                #[serde(default)]
                pub reverse: $crate::LinkDirection,
            }
        }

        impl $name {
            /// Returns the settings that apply to a direction: `own` (`forward` or `reverse`), otherwise the link's.
            pub fn effective(&self, own: &$crate::LinkDirection) -> $crate::LinkDirection {
                $crate::LinkDirection {
                    rate: Some(own.rate.as_ref().unwrap_or(&self.rate).clone()),
                    delay: own.delay.or(self.delay),
                    jitter: own.jitter.as_ref().or(self.jitter.as_ref()).cloned(),
                    slot: own.slot.or(self.slot),
                    frame_clock: own.frame_clock.or(self.frame_clock),
                    loss: own.loss.as_ref().or(self.loss.as_ref()).cloned(),
                    reorder: own.reorder.or(self.reorder),
                    duplicate: own.duplicate.or(self.duplicate),
                    queue: own.queue.as_ref().or(self.queue.as_ref()).cloned(),
                    policer: own.policer.as_ref().or(self.policer.as_ref()).cloned(),
                    down: own.down.as_ref().or(self.down.as_ref()).cloned(),
                }
            }

            /// Returns the framing per frame, bytes.
            pub fn framing_bytes(&self) -> u64 {
                self.framing.unwrap_or_default().bytes()
            }
        }
    };
}

link_properties! {
    /// Settings of one direction of a link.
    #[derive(Default)]
    pub struct LinkDirection {
        /// Rate of the direction.
        pub rate: Option<RateSource>,
    }
}

/// Framing per frame on a link.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Framing {
    /// 24 bytes: preamble 8, FCS 4, gap 12 (IEEE 802.3).
    #[default]
    Ethernet,
    /// No framing.
    None,
}

/// Variation of a link's delay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Jitter {
    /// Standard deviation, or half the width of a uniform distribution.
    pub spread: Time,
    /// Distribution; default `uniform`.
    #[serde(default)]
    pub distribution: Distribution,
}

/// Distribution of the delay's variation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Distribution {
    /// Uniform: every delay within the spread is equally likely.
    #[default]
    Uniform,
    /// Normal (Gaussian).
    Normal,
}

/// Rate of a link.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RateSource {
    /// A file in mahimahi's format, next to the path file: each line is a time in milliseconds at which one packet
    /// of 1500 bytes may leave. The trace repeats after its last line.
    Mahimahi(String),
    /// A file with a bandwidth trace in rattan's format (JSON of netem-trace), next to the path file.
    Rattan(String),
    /// Times in milliseconds at which one packet of 1500 bytes may leave, ascending, as in a mahimahi trace. They
    /// repeat after the last one.
    Opportunities(Vec<u64>),
    /// A sequence of rates.
    #[serde(untagged)]
    Steps(RateSteps),
    /// A constant rate.
    #[serde(untagged)]
    Fixed(Rate),
}

/// A sequence of rates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RateSteps {
    /// The rates with their durations.
    pub steps: Vec<RateChange>,
    /// Whether the sequence repeats; otherwise the last rate stays.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeat: bool,
}

/// A rate and its duration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RateChange {
    /// Duration of the rate.
    #[serde(rename = "for")]
    pub duration: Time,
    /// Rate; 0 sends nothing.
    pub rate: Rate,
}

/// A policer: a token bucket that drops.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Policer {
    /// Rate of frames, counted from the Ethernet header on.
    pub rate: Rate,
    /// Burst that may pass at once (bucket size).
    pub burst: Size,
}

/// An outage of a link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Outage {
    /// Start, after the start of the emulation.
    pub at: Time,
    /// Duration of the outage.
    #[serde(rename = "for")]
    pub duration: Time,
}

impl Framing {
    /// Framing overhead per frame, bytes.
    pub fn bytes(self) -> u64 {
        match self {
            Self::Ethernet => 24,
            Self::None => 0,
        }
    }
}

impl RateSource {
    /// Returns the rate, bits/s, or `None` if it may change over time.
    pub fn fixed_bps(&self) -> Option<u64> {
        match self {
            Self::Fixed(rate) => Some(rate.0.bps()),
            Self::Mahimahi(_) | Self::Rattan(_) | Self::Opportunities(_) | Self::Steps(_) => None,
        }
    }
}

read_by_notations!(RateSource);

impl Notations for RateSource {
    const EXPECTED: &'static str = "a rate in bit/s such as \"10G\", or a table with one of `mahimahi`, `rattan` (files), `steps`, `opportunities`";

    fn text<E: Error>(text: &str) -> Result<Self, E> {
        Rate::deserialize(StrDeserializer::new(text)).map(Self::Fixed)
    }

    fn number<E: Error>(number: f64) -> Result<Self, E> {
        Rate::deserialize(F64Deserializer::new(number)).map(Self::Fixed)
    }

    fn table<'de, A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let (mut source, mut repeat) = (None, None);
        while let Some(key) = map.next_key::<RateKey>()? {
            if key == RateKey::Repeat {
                repeat = Some(map.next_value::<bool>()?);
                continue;
            }
            if source.is_some() {
                return Err(A::Error::custom("give one of `mahimahi`, `rattan`, `steps`, `opportunities`"));
            }
            source = Some(match key {
                RateKey::Mahimahi => Self::Mahimahi(map.next_value()?),
                RateKey::Rattan => Self::Rattan(map.next_value()?),
                RateKey::Opportunities => Self::Opportunities(map.next_value()?),
                RateKey::Steps | RateKey::Repeat => {
                    Self::Steps(RateSteps { steps: map.next_value::<Vec<RateChange>>()?, repeat: false })
                }
            });
        }
        let Some(mut source) = source else {
            return Err(A::Error::custom(format!("{EMPTY}: expected {}", Self::EXPECTED)));
        };
        match (&mut source, repeat) {
            (_, None) | (Self::Mahimahi(_) | Self::Opportunities(_), Some(true)) => {}
            (Self::Steps(steps), Some(is_set)) => steps.repeat = is_set,
            (Self::Rattan(_), Some(_)) => {
                return Err(A::Error::custom(
                    "a rattan trace says by its `count` whether it repeats: remove `repeat`",
                ));
            }
            _ => return Err(A::Error::custom("delivery opportunities always repeat: remove `repeat`")),
        }
        Ok(source)
    }
}

#[derive(Deserialize, PartialEq, Eq)]
#[serde(field_identifier, rename_all = "kebab-case")]
enum RateKey {
    Mahimahi,
    Rattan,
    Steps,
    Opportunities,
    Repeat,
}
