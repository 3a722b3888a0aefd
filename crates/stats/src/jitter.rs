//! Interarrival jitter (RFC 3550).

/// Interarrival jitter of RFC 3550 section 6.4.1: `J += (|D| − J) / 16`, where `D` is the change of the transit
/// time between two packets in order of arrival.
///
/// Both times are arguments. The clocks of sender and receiver need the same frequency, but not the same time: a
/// constant offset cancels out.
#[derive(Debug, Clone, Copy, Default)]
pub struct Jitter {
    last_transit_ns: Option<i64>,
    jitter_ns: f64,
    transits: u64,
}

impl Jitter {
    /// Gain of the filter (RFC 3550 section 6.4.1: "a good noise reduction ratio").
    const GAIN: f64 = 1.0 / 16.0;

    /// Creates an estimator without packets.
    pub const fn new() -> Self {
        Self { last_transit_ns: None, jitter_ns: 0.0, transits: 0 }
    }

    /// Records the next packet to arrive: send time by the sender's clock, receive time by the receiver's,
    /// nanoseconds.
    pub fn record(&mut self, sent_ns: u64, received_ns: u64) {
        // Wrapping is fine: only differences of transit times are used, so the clocks may have any origin.
        let transit_ns = received_ns.wrapping_sub(sent_ns).cast_signed();
        if let Some(last_ns) = self.last_transit_ns {
            let change_ns = transit_ns.wrapping_sub(last_ns).unsigned_abs();
            self.jitter_ns += (change_ns as f64 - self.jitter_ns) * Self::GAIN;
        }
        self.last_transit_ns = Some(transit_ns);
        self.transits = self.transits.saturating_add(1);
    }

    /// Returns the jitter in nanoseconds; `None` before the second packet.
    pub fn jitter_ns(&self) -> Option<f64> {
        (self.transits >= 2).then_some(self.jitter_ns)
    }

    /// Returns the number of recorded packets.
    pub const fn packets(&self) -> u64 {
        self.transits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jitter_of(packets: impl IntoIterator<Item = (u64, u64)>) -> Option<f64> {
        let mut jitter = Jitter::new();
        packets.into_iter().for_each(|(sent, received)| jitter.record(sent, received));
        jitter.jitter_ns()
    }

    #[test]
    fn jitter_is_none_before_the_second_packet() {
        assert_eq!(jitter_of([]), None);
        assert_eq!(jitter_of([(0, 5)]), None);
    }

    #[test]
    fn a_constant_transit_time_has_zero_jitter() {
        for offset in [0, 5_000_000, u64::MAX - 10] {
            let packets = (0..100u64).map(|i| (i * 1000, (i * 1000 + 92_000).wrapping_add(offset)));
            assert_eq!(jitter_of(packets), Some(0.0));
        }
    }

    #[test]
    fn first_change_is_weighted_by_one_sixteenth() {
        assert_eq!(jitter_of([(0, 100), (1000, 1260)]), Some(10.0));
        assert_eq!(jitter_of([(0, 260), (1000, 1100)]), Some(10.0), "earlier counts like later");
    }

    #[test]
    fn alternating_transit_times_converge_to_their_difference() {
        let packets = (0..1000u64).map(|i| (i * 1000, i * 1000 + 5000 + (i % 2) * 320));
        let jitter = jitter_of(packets).unwrap();
        assert!((jitter - 320.0).abs() < 1e-6, "{jitter}");
    }
}
