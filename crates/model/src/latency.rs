//! Request/response results.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::RrMode;

/// Latency of one request/response measurement: a whole round trip, never halved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyResult {
    /// Request bytes.
    pub request_bytes: u32,
    /// Response bytes.
    pub response_bytes: u32,
    /// How load was offered.
    pub mode: RrMode,
    /// Open loop: requests per second asked for, all streams together.
    pub offered_per_s: Option<f64>,
    /// Transactions completed per second.
    pub achieved_per_s: f64,
    /// Requests whose intended time fell inside the measurement.
    pub scheduled: u64,
    /// Requests sent.
    pub sent: u64,
    /// Responses received.
    pub completed: u64,
    /// Requests never answered (UDP loss, or the peer gone).
    pub unanswered: u64,
    /// Open loop: how late requests left against their schedule, 99th percentile, nanoseconds. It is the tool's own part
    /// of the latency.
    #[serde(default)]
    pub send_late_p99_ns: Option<u64>,
    /// UDP: responses that were late, duplicate, or answers to nothing.
    #[serde(default)]
    pub stray_responses: u64,
    /// Span measured, nanoseconds.
    pub duration_ns: u64,
    /// Smallest, nanoseconds.
    pub min_ns: u64,
    /// Mean, nanoseconds.
    pub mean_ns: f64,
    /// Median, nanoseconds.
    pub p50_ns: u64,
    /// 90th percentile, nanoseconds.
    pub p90_ns: u64,
    /// 99th percentile, nanoseconds.
    pub p99_ns: u64,
    /// 99.9th percentile, nanoseconds.
    pub p999_ns: u64,
    /// 99.99th percentile, nanoseconds.
    pub p9999_ns: u64,
    /// Largest, nanoseconds.
    pub max_ns: u64,
    /// The log-linear histogram itself.
    pub histogram: Vec<Bucket>,
}

/// One bucket of a histogram: values in `low_ns..=high_ns`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Bucket {
    /// Lowest value, nanoseconds.
    pub low_ns: u64,
    /// Highest value, nanoseconds.
    pub high_ns: u64,
    /// How many.
    pub count: u64,
}

/// Latency with and without load on the same path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyUnderLoad {
    /// Before the bulk streams started.
    pub idle: Option<LatencyResult>,
    /// While they ran (steady phase).
    pub loaded: LatencyResult,
}
