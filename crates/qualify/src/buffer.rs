//! Size of the smallest buffer of a section, by bisection on the length of a burst.

use crate::outcome::StreamOutcome;

/// The search ends when the shortest burst with loss is at most this much longer than the longest without.
const RESOLUTION: u64 = 16;
/// Packets of a burst that the search needs: shorter ones have no measurable rate.
const MIN_PACKETS: u64 = 16;

/// Search for the longest burst that the section delivers whole.
#[derive(Debug)]
pub struct BufferSearch {
    /// Longest burst without loss, packets.
    whole: u64,
    /// Shortest burst with loss, packets.
    lossy: u64,
    /// Ratio of the section's rate to the burst's, from the shortest burst with loss that has one.
    drain: Option<f64>,
    ended: bool,
}

/// The smallest buffer, packets: estimate, and interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BufferSize {
    pub packets: f64,
    pub interval: (f64, f64),
}

impl BufferSearch {
    /// Begins with a burst that lost packets.
    pub fn new(packets: u64, outcome: &StreamOutcome) -> Self {
        let mut search = Self { whole: 0, lossy: packets, drain: None, ended: false };
        search.measure(packets, outcome);
        search
    }

    /// Returns the next burst, packets; `None` at the end.
    pub fn next_packets(&self) -> Option<u64> {
        let open =
            !self.ended && self.lossy > MIN_PACKETS && self.lossy - self.whole > (self.whole / RESOLUTION).max(1);
        // By halves down to the first burst that is delivered whole, then by bisection.
        open.then(|| if self.whole == 0 { self.lossy / 2 } else { self.whole.midpoint(self.lossy) })
    }

    /// Takes the outcome of a burst.
    pub fn take(&mut self, packets: u64, outcome: &StreamOutcome) {
        if outcome.no_fail.is_some() || outcome.no_pass.is_some() {
            self.ended = true;
        } else if outcome.lost == 0 {
            self.whole = packets;
        } else {
            self.lossy = packets;
            self.measure(packets, outcome);
        }
    }

    /// Returns the size: a burst of `n` packets fills the buffer with `n × (1 − rate of the section / rate of the burst)`.
    pub fn size(&self) -> Option<BufferSize> {
        let drain = self.drain.filter(|_| self.whole > 0 && !self.ended)?;
        let of = |packets: u64| packets as f64 * (1.0 - drain);
        let interval = (of(self.whole), of(self.lossy));
        Some(BufferSize { packets: f64::midpoint(interval.0, interval.1), interval })
    }

    /// Measures the rates of a burst with loss: the section's queue does not empty before its end.
    fn measure(&mut self, packets: u64, outcome: &StreamOutcome) {
        let delivered = outcome.sent.saturating_sub(outcome.lost);
        let (Some(send_ns), Some(receive_ns)) = (outcome.send_span_ns, outcome.receive_span_ns) else { return };
        if packets < MIN_PACKETS || delivered < MIN_PACKETS || send_ns == 0 || receive_ns == 0 {
            return;
        }
        let sent_per_ns = (outcome.sent - 1) as f64 / send_ns as f64;
        let drain = (delivered - 1) as f64 / receive_ns as f64 / sent_per_ns;
        if drain < 1.0 {
            self.drain = Some(drain);
        }
    }
}
