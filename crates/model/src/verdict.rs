//! What held the transfer back.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What limits a flow. Exactly one is named; `undetermined` is a valid answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The receive window: the receiver's buffer is too small for the path.
    ReceiverWindow,
    /// The receiving application does not read fast enough.
    SlowReader,
    /// The send buffer is too small for the path.
    SendBuffer,
    /// The sending application does not offer enough data.
    Application,
    /// A pacing rate was asked for and reached.
    Pacing,
    /// The sender's processor.
    SenderCpu,
    /// The receiver's processor.
    ReceiverCpu,
    /// The interface runs at its rate.
    LinkRate,
    /// The network loses packets because a queue overflows.
    NetworkCongestion,
    /// The network loses packets without queueing: random loss or a policer.
    NetworkLoss,
    /// The congestion window fills the path without loss: the path is full, or the window is still growing.
    NetworkPath,
    /// Round trips bound the rate (request/response).
    RoundTrip,
    /// The evidence does not name one cause.
    Undetermined,
}

/// How much the evidence supports the cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// Counters from both ends agree and alternatives are ruled out.
    High,
    /// The counters point there; an alternative was not visible.
    Medium,
    /// A hint.
    Low,
}

/// A cause with what supports it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// What held the transfer back.
    pub cause: Cause,
    /// How sure.
    pub confidence: Confidence,
    /// One sentence a person can read.
    pub summary: String,
    /// Which end or component, when that is part of the answer (`client core 3, softirq`).
    pub place: Option<String>,
    /// The readings that support it.
    pub evidence: Vec<Evidence>,
    /// Causes that were considered and dropped, with the reading that dropped each.
    pub ruled_out: Vec<Evidence>,
    /// What was not visible and would have helped.
    pub missing: Vec<String>,
    /// What to try, and what to expect from it.
    pub next_step: String,
}

/// One reading used in a verdict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// The cause it speaks for or against.
    pub about: Cause,
    /// What was measured, in words (`time limited by the receive window`).
    pub metric: String,
    /// The value.
    pub value: f64,
    /// Its unit (`ratio`, `bytes`, `bps`, `packets`, `ms` …).
    pub unit: String,
    /// The threshold it was held against, in words (`≥ 0.20`).
    pub threshold: String,
    /// Whether it was met.
    pub met: bool,
    /// Where it was read (`client`, `server`) .
    pub host: Option<String>,
    /// Stream it was read from.
    pub stream: Option<u32>,
    /// Span it holds for, nanoseconds, to be marked on charts.
    pub span_ns: Option<(u64, u64)>,
    /// Document path of the series it came from (`streams[0].sender.samples[].tcp.rwnd_limited_us`).
    pub source: String,
}
