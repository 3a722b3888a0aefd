//! Loss of a link.

use landspeed_problems::{EMPTY, Notations, Problem, Share, read_by_notations};
use schemars::JsonSchema;
use serde::de::value::StrDeserializer;
use serde::de::{self, Error, MapAccess};
use serde::{Deserialize, Serialize};

/// Loss of a link: random, or a pattern.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Loss {
    /// Each frame independently, with this probability.
    Random(Share),
    /// Loss according to a pattern.
    Pattern(LossPattern),
}

/// Loss patterns.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LossPattern {
    /// Each frame independently, with this probability.
    Random(Share),
    /// Every n-th frame of this direction, acknowledgements included. In a scenario, frames count from time zero
    /// on; those that open connections before do not count.
    Every(u64),
    /// The frames with these numbers, from 1 in the order in which they reach the link, counted as with `every`.
    Packets(Vec<u64>),
    /// Every frame with an IP packet longer than this, except ICMP messages: a PMTUD black hole. In a scenario,
    /// from time zero on, as with `every`.
    LongerThan(u32),
    /// Gilbert-Elliott model: a good and a bad state.
    GilbertElliott(GilbertElliott),
}

/// Parameters of a Gilbert-Elliott loss process. Probabilities are per frame.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct GilbertElliott {
    /// Transition probability from good to bad.
    pub p: Share,
    /// Transition probability from bad to good.
    pub r: Share,
    /// Loss probability in the bad state; default 1.
    pub bad: Option<Share>,
    /// Loss probability in the good state; default 0.
    pub good: Option<Share>,
}

impl GilbertElliott {
    /// Returns p, r, and the loss probabilities in the bad and in the good state, with their defaults.
    pub fn probabilities(&self) -> [f64; 4] {
        let share = |share: Option<Share>, default| share.map_or(default, |share| share.0.get());
        [self.p.0.get(), self.r.0.get(), share(self.bad, 1.0), share(self.good, 0.0)]
    }
}

impl Loss {
    /// Whether the process loses nothing.
    pub fn loses_nothing(&self) -> bool {
        matches!(self, Self::Random(share) if share.0.get() == 0.0)
    }

    /// Returns the problems of the loss settings; `key` is their dotted path.
    pub fn problems(&self, key: &str) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut refuse = |key: String, message: String, hint: &str| {
            problems.push(Problem::new(key, message).hint(hint));
        };
        let all = |share: &Share| share.0.get() >= 1.0;
        match self {
            Self::Random(share) | Self::Pattern(LossPattern::Random(share)) if all(share) => {
                refuse(key.to_owned(), "the link loses everything".to_owned(), "use less than 100%");
            }
            Self::Random(_) | Self::Pattern(LossPattern::Random(_)) => {}
            Self::Pattern(LossPattern::Every(n)) => {
                if *n < 2 {
                    refuse(format!("{key}.every"), format!("one frame in {n} loses everything"), "use at least 2");
                } else if *n > u64::from(u32::MAX) {
                    refuse(format!("{key}.every"), format!("{n} is out of range"), "use at most 4294967295");
                }
            }
            Self::Pattern(LossPattern::Packets(numbers)) => {
                if numbers.is_empty() {
                    refuse(
                        format!("{key}.packets"),
                        "the list is empty".to_owned(),
                        "add frame numbers, or remove `loss`",
                    );
                } else if numbers.contains(&0) {
                    refuse(format!("{key}.packets"), "frame numbers start at 1".to_owned(), "remove frame 0");
                }
            }
            Self::Pattern(LossPattern::LongerThan(bytes)) => {
                if !(68..=65_535).contains(bytes) {
                    refuse(
                        format!("{key}.longer-than"),
                        format!("{bytes} bytes is out of range"),
                        "use 68 to 65535; 1500 is usual",
                    );
                }
            }
            Self::Pattern(LossPattern::GilbertElliott(model)) => {
                let key = format!("{key}.gilbert-elliott");
                let [p, r, bad, good] = model.probabilities();
                if p == 0.0 && good == 0.0 {
                    refuse(
                        format!("{key}.p"),
                        "the link never enters the bad state, and loses nothing".to_owned(),
                        "raise p, or remove `loss`",
                    );
                }
                if r == 0.0 && bad >= 1.0 {
                    refuse(
                        format!("{key}.r"),
                        "the link never leaves the bad state, and then loses everything".to_owned(),
                        "raise r",
                    );
                }
                if bad < good {
                    refuse(
                        format!("{key}.bad"),
                        "the bad state loses less than the good state".to_owned(),
                        "swap `bad` and `good`",
                    );
                }
                if good >= 1.0 {
                    refuse(format!("{key}.good"), "the good state loses everything".to_owned(), "use less than 100%");
                }
            }
        }
        problems
    }
}

read_by_notations!(Loss);

impl Notations for Loss {
    const EXPECTED: &'static str = "a share of the frames such as \"0.0046%\" or \"1/22000\", or a table with one of \
                                `random`, `every`, `packets`, `longer-than`, `gilbert-elliott`";

    fn text<E: Error>(text: &str) -> Result<Self, E> {
        Share::deserialize(StrDeserializer::new(text)).map(Self::Random)
    }

    fn number<E: Error>(number: f64) -> Result<Self, E> {
        Share::deserialize(de::value::F64Deserializer::new(number)).map(Self::Random)
    }

    fn table<'de, A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let Some(key) = map.next_key::<LossKey>()? else {
            return Err(A::Error::custom(format!("{EMPTY}: expected {}", Self::EXPECTED)));
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
