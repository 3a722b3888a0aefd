//! Passes the end of a stream to its receiver.

use std::sync::atomic::{AtomicU64, Ordering};

/// Sender's final count, passed from the control connection to the receiving thread.
#[derive(Debug)]
#[repr(align(128))]
pub struct Finish {
    sent_packets: AtomicU64,
    stopped_ns: AtomicU64,
}

impl Finish {
    const UNKNOWN: u64 = u64::MAX;

    /// Creates it without a final count.
    pub fn new() -> Self {
        Self { sent_packets: AtomicU64::new(Self::UNKNOWN), stopped_ns: AtomicU64::new(Self::UNKNOWN) }
    }

    /// Records that the sender stopped after `sent_packets` datagrams, at `stopped_ns` (estimated time of the last
    /// departure, on the receiver's monotonic clock).
    pub fn sender_stopped(&self, sent_packets: u64, stopped_ns: u64) {
        self.stopped_ns.store(stopped_ns, Ordering::Relaxed);
        self.sent_packets.store(sent_packets, Ordering::Release);
    }

    /// Returns the number of datagrams sent and the time of the last departure, once known.
    #[inline]
    pub fn known(&self) -> Option<(u64, u64)> {
        let sent = self.sent_packets.load(Ordering::Acquire);
        (sent != Self::UNKNOWN).then(|| (sent, self.stopped_ns.load(Ordering::Relaxed)))
    }
}

impl Default for Finish {
    fn default() -> Self {
        Self::new()
    }
}
