//! Verdicts: the cause that limits a transfer, and its evidence.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Cause;

/// Confidence in a cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// Weak evidence.
    Low,
    /// Counters support the cause, but an alternative could not be excluded because it was not visible.
    Medium,
    /// Counters of both hosts agree, and alternatives are ruled out.
    High,
}

/// Cause that limited a transfer, with its evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// Cause that limited the transfer.
    pub cause: Cause,
    /// Confidence in `cause`.
    pub confidence: Confidence,
    /// The verdict as one human-readable sentence.
    pub summary: String,
    /// Host or component the cause refers to (`client core 3, softirq`); `None` if it refers to none.
    pub place: Option<String>,
    /// Readings that support the cause.
    pub evidence: Vec<Evidence>,
    /// Rejected causes, each with the reading that excluded it.
    pub ruled_out: Vec<Evidence>,
    /// Readings that were not visible and would have helped.
    pub missing: Vec<String>,
    /// Suggested action and its expected effect.
    pub next_step: String,
    /// Time by limiting state, from the start of the flow to the end of the steady phase; the shares add up to 1000.
    /// Empty if the sender's `tcp_info` was not sampled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub epochs: Vec<Epoch>,
}

/// Total time a flow spent in one limiting state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Epoch {
    /// The limiting state.
    pub state: EpochState,
    /// Total time in the state, nanoseconds.
    pub time_ns: u64,
    /// Share of the flow's time, in thousandths (0..=1000).
    pub share_permille: u32,
    /// Start and end of each span in the state, nanoseconds after the agreed start; the 64 longest, in order of time.
    pub spans_ns: Vec<(u64, u64)>,
}

/// Limiting state of a TCP sender at one time. With several streams: the state of most of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EpochState {
    /// Slow start: cwnd is below ssthresh (BBR: startup gain).
    SlowStart,
    /// Fast recovery, RTO recovery or CWR.
    Recovery,
    /// No ACK for several RTTs although data is outstanding.
    Stalled,
    /// Limited by the congestion window (BBR: by the pacing rate it computes).
    CwndLimited,
    /// Limited by the receive window.
    ReceiveWindowLimited,
    /// Limited by the send buffer.
    SendBufferLimited,
    /// The application has no data to send.
    ApplicationLimited,
    /// The requested pacing rate is reached.
    PacingLimited,
    /// The sending thread is running, or waiting for a core, all the time.
    CpuLimited,
    /// No state was identified.
    Unknown,
}

/// A reading used in a verdict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// Cause that the reading supports or excludes.
    pub about: Cause,
    /// Name of the measured quantity (`time limited by the receive window`).
    pub metric: String,
    /// Measured value, in `unit`.
    pub value: f64,
    /// Unit of the value (`ratio`, `bytes`, `bps`, `packets`, `ms` …).
    pub unit: String,
    /// Threshold as text (`≥ 0.20`).
    pub threshold: String,
    /// Whether the value meets the threshold.
    pub met: bool,
    /// Host the value was read on (`client`, `server`); `None` if it is not from one host.
    pub host: Option<String>,
    /// Number of the stream the value was read from; `None` if it is not from one stream.
    pub stream: Option<u32>,
    /// Span the value covers, nanoseconds after the agreed start, to be marked on charts.
    pub span_ns: Option<(u64, u64)>,
    /// Document path of the value (`streams[0].sender.samples[].tcp.rwnd_limited_us`).
    pub source: String,
}
