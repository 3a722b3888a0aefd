//! What `landspeed.watch/1` says of a flow over time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Cause, Confidence};

/// A flow in the last second before the document was written.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchRecent {
    /// Payload rate in the flow's direction, bits/s.
    pub goodput_bps: f64,
    /// Retransmitted segments per second.
    pub retransmits_per_s: f64,
    /// Bytes outstanding over the smaller of the congestion window and the receive window that the other end offers: mean of the
    /// readings. `None` at a receiver.
    pub window_use: Option<f64>,
    /// Bytes in the socket's queue: at a sender unsent and unacknowledged, at a receiver unread.
    pub queue_bytes: u64,
    /// CPU time of the process, all its threads, over time passed: 1 is one core. `None` if the process is unknown.
    pub process_cpu: Option<f64>,
}

/// From when on a flow's verdict was another.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchChange {
    /// When it was judged, nanoseconds after the start. A verdict is about the 30 s before.
    pub t_ns: u64,
    /// The cause from then on.
    pub cause: Cause,
    /// How sure.
    pub confidence: Confidence,
}

/// A flow over the time it was sampled, in at most 120 readings: the longer the watch, the further apart. All lists have one length.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchSeries {
    /// When it was read, nanoseconds after the start.
    pub t_ns: Vec<u64>,
    /// Payload bytes moved in the flow's direction since the first of these readings.
    pub bytes: Vec<u64>,
    /// Segments retransmitted since the first of these readings.
    pub retransmits: Vec<u64>,
    /// Smoothed RTT, microseconds; 0 where there was none.
    pub rtt_us: Vec<u32>,
    /// Congestion window, segments.
    pub cwnd: Vec<u32>,
}
