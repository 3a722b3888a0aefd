//! What an iperf3 server said of its end of a test.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The iperf3 end of a test: totals only, nothing over time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Iperf3End {
    /// Its results as it sent them, without what it printed. Its streams are numbered 1, 3, 4, 5 …
    pub results: Value,
    /// What it printed, if that was asked for (`--server-output`): text, or the object of an `iperf3 -s -J`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// What a landspeed server would have reported and this document lacks.
    pub not_visible: Vec<String>,
}
