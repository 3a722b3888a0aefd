//! Request/response results.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::RrMode;

/// Latency of one request/response measurement: full round-trip times, not halved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyResult {
    /// Size of a request, bytes.
    pub request_bytes: u32,
    /// Size of a response, bytes.
    pub response_bytes: u32,
    /// Load: closed loop, open loop or connect.
    pub mode: RrMode,
    /// Open loop: requested rate of all streams, requests/s; `None` for other modes.
    pub offered_per_s: Option<f64>,
    /// Rate of completed transactions, transactions/s.
    pub achieved_per_s: f64,
    /// Requests whose scheduled time was in the measurement.
    pub scheduled: u64,
    /// Requests sent.
    pub sent: u64,
    /// Responses received.
    pub completed: u64,
    /// Requests without a response (UDP loss, or the peer stopped responding).
    pub unanswered: u64,
    /// Open loop: 99th percentile of the lateness of requests against their schedule, nanoseconds. This part of the
    /// latency is caused by landspeed itself.
    #[serde(default)]
    pub send_late_p99_ns: Option<u64>,
    /// UDP: responses that were late, duplicate, or did not belong to a request.
    #[serde(default)]
    pub stray_responses: u64,
    /// Duration of the measurement, nanoseconds.
    pub duration_ns: u64,
    /// Minimum latency, nanoseconds; `None`, like the mean and all quantiles, if no transaction completed.
    pub min_ns: Option<u64>,
    /// Mean latency, nanoseconds.
    pub mean_ns: Option<f64>,
    /// Median latency, nanoseconds.
    pub p50_ns: Option<u64>,
    /// 90th percentile, nanoseconds.
    pub p90_ns: Option<u64>,
    /// 99th percentile, nanoseconds.
    pub p99_ns: Option<u64>,
    /// 99.9th percentile, nanoseconds.
    pub p999_ns: Option<u64>,
    /// 99.99th percentile, nanoseconds.
    pub p9999_ns: Option<u64>,
    /// Maximum latency, nanoseconds.
    pub max_ns: Option<u64>,
    /// Log-linear histogram of the latencies; buckets that are empty are omitted.
    pub histogram: Vec<Bucket>,
}

/// One bucket of a histogram: values in `low_ns..=high_ns`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Bucket {
    /// Lowest value of the bucket, nanoseconds.
    pub low_ns: u64,
    /// Highest value of the bucket, nanoseconds.
    pub high_ns: u64,
    /// Number of values in the bucket.
    pub count: u64,
}

/// Latency of a path idle and under load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyUnderLoad {
    /// Before the bulk streams started; `None` if it was not measured.
    pub idle: Option<LatencyResult>,
    /// During the steady phase of the bulk streams.
    pub loaded: LatencyResult,
    /// Responsiveness during the same phase; `None` in documents of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub responsiveness: Option<Responsiveness>,
    /// Probes over time, idle ones included; spans without an answer are not in the list. Empty in documents of earlier
    /// versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<LatencyPoint>,
}

/// Round-trip times of the probes intended in one span.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyPoint {
    /// Start, nanoseconds after the agreed start; negative before it.
    pub start_ns: i64,
    /// End, nanoseconds after the agreed start.
    pub end_ns: i64,
    /// Probes that were answered.
    pub completed: u64,
    /// Mean round-trip time, nanoseconds.
    pub mean_ns: f64,
    /// Maximum round-trip time, nanoseconds.
    pub max_ns: u64,
}

/// Responsiveness under load, round trips per minute: 60 s divided by a trimmed mean of round-trip times, without their
/// longest 5 % (draft-ietf-ippm-responsiveness-09, section "Aggregating the Measurements"). The load is that of the run, not
/// the draft's, which grows until it is stable; no TLS and no HTTP.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Responsiveness {
    /// Mean of `foreign_rpm` and `loaded_rpm`; `None` unless both are known.
    pub rpm: Option<f64>,
    /// On a separate connection: from the probes, request to response, without the draft's handshake. Unanswered probes count
    /// as the longest; `None` if they are more than the 5 % that are trimmed.
    pub foreign_rpm: Option<f64>,
    /// Number of answered probes from which `foreign_rpm` is computed.
    pub foreign_samples: u64,
    /// Probes of the same time without an answer, among them those that could not be sent; 0 in documents of earlier versions,
    /// which did not count them.
    #[serde(default)]
    pub foreign_unanswered: u64,
    /// On the connections that carry the load: from the senders' smoothed RTT (`tcpi_rtt`), which the draft allows where
    /// requests cannot share these connections; `None` if a sender has no sample.
    pub loaded_rpm: Option<f64>,
    /// Samples of `tcpi_rtt` in `loaded_rpm`, all streams and directions. Those of a stream depend on each other.
    pub loaded_samples: u64,
    /// The probes on the idle path; `None` if it was not measured, or if more than 5 % got no answer.
    pub idle_rpm: Option<f64>,
}
