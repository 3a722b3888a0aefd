//! Figures of a flow over time in `landspeed.watch/1`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Cause, Confidence};

/// Figures of a flow in the last second before the document was written.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchRecent {
    /// Goodput in the flow's direction, bits/s.
    pub goodput_bps: f64,
    /// Retransmitted segments per second.
    pub retransmits_per_s: f64,
    /// Unacknowledged bytes / min(cwnd, remote receive window), mean of the readings; `None` at a receiver.
    pub window_use: Option<f64>,
    /// Bytes in the socket queue: unsent and unacknowledged at a sender, unread at a receiver.
    pub queue_bytes: u64,
    /// CPU use of the process, all threads, in cores; `None` if the process is unknown.
    pub process_cpu: Option<f64>,
}

/// A change of a flow's verdict.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchChange {
    /// Time of the verdict, nanoseconds after the start; a verdict covers the 30 s before it.
    pub t_ns: u64,
    /// Cause from this time on.
    pub cause: Cause,
    /// Confidence in `cause`.
    pub confidence: Confidence,
}

/// Figures of a flow over the time it was sampled, at most 120 readings at intervals that grow with the time. All
/// lists have the same length.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchSeries {
    /// Time of each reading, nanoseconds after the start.
    pub t_ns: Vec<u64>,
    /// Payload bytes in the flow's direction since the first reading.
    pub bytes: Vec<u64>,
    /// Segments retransmitted since the first reading.
    pub retransmits: Vec<u64>,
    /// Smoothed RTT, microseconds; `None` if unknown. Documents of earlier versions have 0 there.
    pub rtt_us: Vec<Option<u32>>,
    /// Congestion window, segments.
    pub cwnd: Vec<u32>,
}
