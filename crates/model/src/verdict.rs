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
    /// UDP: the receiving socket's buffer is too small for the bursts that arrive.
    ReceiveBuffer,
    /// The send buffer is too small for the path.
    SendBuffer,
    /// The sending application does not offer enough data.
    Application,
    /// A pacing rate was asked for and reached.
    Pacing,
    /// The sender's CPU.
    SenderCpu,
    /// The receiver's CPU.
    ReceiverCpu,
    /// The interface runs at its rate.
    LinkRate,
    /// The network loses packets because a queue overflows.
    NetworkCongestion,
    /// The network loses packets independent of any queue: a bad link, random loss.
    NetworkLoss,
    /// The congestion window fills the path without loss: the path is full, or the window is still growing.
    NetworkPath,
    /// Slow start overflowed a queue, and the congestion window has been growing since: the run ended before it filled the path.
    SlowStartOvershoot,
    /// A queue far smaller than the bandwidth-delay product overflows while the link has room.
    ShallowBuffer,
    /// A rate limit drops what exceeds it instead of queueing it.
    Policer,
    /// The path delivers packets out of order, and TCP takes some for lost.
    Reordering,
    /// The receiving host drops packets before TCP has them (backlog, ring, filter).
    ReceiverHostDrops,
    /// The reverse path is full or loses ACKs.
    AckPath,
    /// The sender's own queueing discipline shapes or drops.
    LocalQdisc,
    /// Packets of the path MTU in use do not pass, and no ICMP message says so (a PMTU black hole).
    PathMtu,
    /// Round trips bound the rate (request/response).
    RoundTrip,
    /// A process waits for storage: it is blocked in file I/O.
    Storage,
    /// The connection is idle between requests: the next one comes late.
    RequestGaps,
    /// The CPU quota of the process's control group is used up.
    CpuQuota,
    /// This host's packet filter (nft, conntrack) drops packets.
    Firewall,
    /// The evidence does not name one cause.
    Undetermined,
}

/// How much the evidence supports the cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// A hint.
    Low,
    /// The counters point there; an alternative was not visible.
    Medium,
    /// Counters from both ends agree and alternatives are ruled out.
    High,
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
    /// What limited the flow at which time, from its start to the end of the steady phase. The shares add up to 1000. Empty
    /// when the sender's `tcp_info` was not sampled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub epochs: Vec<Epoch>,
}

/// All the time that a flow spent in one state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Epoch {
    /// The state.
    pub state: EpochState,
    /// Time in it, nanoseconds.
    pub time_ns: u64,
    /// Its share of the time, thousandths.
    pub share_permille: u32,
    /// When: start and end of each span, nanoseconds after the agreed start; the longest 64 of them, in order of time.
    pub spans_ns: Vec<(u64, u64)>,
}

/// What limits a TCP sender at one moment. With several streams: most of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EpochState {
    /// Slow start: the congestion window is below the slow start threshold (BBR: its startup gain).
    SlowStart,
    /// Fast recovery, RTO recovery or CWR.
    Recovery,
    /// No ACK for several round trips although data is outstanding.
    Stalled,
    /// The congestion window (BBR: the pacing rate it computes) holds data back.
    CwndLimited,
    /// The receive window holds data back.
    ReceiveWindowLimited,
    /// The send buffer holds data back.
    SendBufferLimited,
    /// The application has not written anything to send.
    ApplicationLimited,
    /// A pacing rate that was asked for is reached.
    PacingLimited,
    /// The sending thread uses, or waits for, a core all the time.
    CpuLimited,
    /// None of these.
    Unknown,
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
    /// The threshold, in words (`≥ 0.20`).
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
