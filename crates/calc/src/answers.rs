//! Answers for a path, as text and as a document.

use schemars::JsonSchema;
use serde::Serialize;

/// All answers for a path.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Advice {
    /// The answers, in reading order.
    pub lines: Vec<AdviceItem>,
}

impl Advice {
    /// Returns the answer with this key.
    pub fn get(&self, key: &str) -> Option<&AdviceItem> {
        self.lines.iter().find(|item| item.key == key)
    }
}

/// One answer with its formula and source.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct AdviceItem {
    /// A stable name in kebab-case.
    pub key: &'static str,
    /// Label in the terminal's table.
    pub label: &'static str,
    /// The value as text, with its unit.
    pub value_text: String,
    /// The value; always finite.
    pub value: f64,
    /// Unit of `value`.
    pub unit: Unit,
    /// The formula as text, such as `rate × RTT / 8`.
    pub formula: &'static str,
    /// Paper, RFC or document that the formula is from.
    pub source: &'static str,
    /// Remark on the value, such as the flows needed or a kernel default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Unit of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub enum Unit {
    /// Bytes, written as `B`.
    #[serde(rename = "B")]
    Bytes,
    /// Bits per second, written as `b/s`.
    #[serde(rename = "b/s")]
    BitsPerSecond,
    /// Seconds, written as `s`.
    #[serde(rename = "s")]
    Seconds,
    /// Metres, written as `m`.
    #[serde(rename = "m")]
    Metres,
    /// Rate × distance, as in the Land Speed Record; written as `bit·m/s`.
    #[serde(rename = "bit·m/s")]
    BitMetresPerSecond,
    /// A share, 0..=1.
    #[serde(rename = "ratio")]
    Ratio,
    /// A count, such as a number of flows.
    #[serde(rename = "count")]
    Count,
}
