//! What a receiver learns about the end of its stream.

use std::sync::atomic::{AtomicU64, Ordering};

/// The sender's final word, passed from the control connection to the receiving thread.
#[derive(Debug)]
#[repr(align(128))]
pub struct Finish {
    sent_packets: AtomicU64,
    stopped_ns: AtomicU64,
}

impl Finish {
    const UNKNOWN: u64 = u64::MAX;

    /// Nothing known yet.
    pub fn new() -> Self {
        Self { sent_packets: AtomicU64::new(Self::UNKNOWN), stopped_ns: AtomicU64::new(Self::UNKNOWN) }
    }

    /// Says that the sender has stopped after `sent_packets` datagrams, at `stopped_ns` (the sender's last departure,
    /// estimated, in the receiver's monotonic nanoseconds).
    pub fn sender_stopped(&self, sent_packets: u64, stopped_ns: u64) {
        self.stopped_ns.store(stopped_ns, Ordering::Relaxed);
        self.sent_packets.store(sent_packets, Ordering::Release);
    }

    /// How many datagrams were sent and when the last left, once known.
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
