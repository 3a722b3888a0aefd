//! Results reported by an iperf3 server.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The iperf3 side of a test: totals only, no time series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Iperf3End {
    /// Results as iperf3 sent them, without its output. Streams are numbered 1, 3, 4, 5 …
    pub results: Value,
    /// Output of the iperf3 server if requested (`--server-output`): a string, or the JSON object of `iperf3 -s -J`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// Data a landspeed server would have reported and an iperf3 server cannot.
    pub not_visible: Vec<String>,
}
