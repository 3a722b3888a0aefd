//! The answers, ready for a terminal and for a document.

use schemars::JsonSchema;
use serde::Serialize;

/// Everything there is to say about a path.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Advice {
    /// The answers, in the order to read them.
    pub lines: Vec<AdviceItem>,
}

impl Advice {
    /// The answer with this key.
    pub fn get(&self, key: &str) -> Option<&AdviceItem> {
        self.lines.iter().find(|item| item.key == key)
    }
}

/// One answer with its formula and source.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct AdviceItem {
    /// A stable name in kebab-case.
    pub key: &'static str,
    /// What it is, for a person.
    pub label: &'static str,
    /// The value as a person reads it, unit included.
    pub value_text: String,
    /// The value; always finite.
    pub value: f64,
    /// The unit of `value`.
    pub unit: Unit,
    /// The formula.
    pub formula: &'static str,
    /// The paper, RFC or document the formula is from.
    pub source: &'static str,
    /// What else to know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The unit of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub enum Unit {
    /// Bytes.
    #[serde(rename = "B")]
    Bytes,
    /// Bits per second.
    #[serde(rename = "b/s")]
    BitsPerSecond,
    /// Seconds.
    #[serde(rename = "s")]
    Seconds,
    /// Metres.
    #[serde(rename = "m")]
    Metres,
    /// Bit-metres per second.
    #[serde(rename = "bit·m/s")]
    BitMetresPerSecond,
    /// A share of a whole, from 0 to 1.
    #[serde(rename = "ratio")]
    Ratio,
    /// A number of things.
    #[serde(rename = "count")]
    Count,
}
