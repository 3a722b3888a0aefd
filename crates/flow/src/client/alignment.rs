//! Clock offset of the server, estimated from pings.

use landspeed_model::ClockAlignment;
use landspeed_units::Nanos;

/// Smallest contradiction between the pings that is noted, nanoseconds; clocks of hosts differ by 1 ms in ten seconds.
const NOTED_CLOCK_ERROR_NS: u64 = 1_000_000;

/// Result of the pings before a test.
pub struct Alignment {
    /// Offset and its uncertainty.
    pub clock: ClockAlignment,
    /// Shortest round trip, nanoseconds.
    pub rtt_ns: u64,
    /// Says that the server's clock contradicts itself.
    pub note: Option<String>,
}

/// Takes the offset of the shortest round trip, which is right to within half of it. The true offset is within half a
/// round trip of every reading (RTT and offset, nanoseconds); what they disagree by beyond that widens the uncertainty.
pub fn align(readings: &[(u64, i64)]) -> Alignment {
    let (rtt_ns, offset_ns) = readings.iter().copied().min().unwrap_or((0, 0));
    let disagreements = readings.iter().map(|&(rtt, offset)| {
        offset_ns.wrapping_sub(offset).unsigned_abs().saturating_sub(rtt_ns.div_ceil(2) + rtt.div_ceil(2))
    });
    let wrong_ns = disagreements.max().unwrap_or(0);
    let note = (wrong_ns > NOTED_CLOCK_ERROR_NS).then(|| {
        format!("the server's clock contradicts itself by {} in its answers to pings", Nanos::new(wrong_ns))
    });
    let clock = ClockAlignment { offset_ns, uncertainty_ns: rtt_ns.div_ceil(2).saturating_add(wrong_ns) };
    Alignment { clock, rtt_ns, note }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_within_their_round_trips_agree() {
        let found = align(&[(2_000_000, 5_000_900_000), (100_000, 5_000_000_000), (300_000, 4_999_900_000)]);
        assert_eq!((found.clock.offset_ns, found.clock.uncertainty_ns), (5_000_000_000, 50_000));
        assert_eq!((found.rtt_ns, found.note), (100_000, None));
    }

    #[test]
    fn contradicting_readings_widen_the_uncertainty() {
        // The clock jumps by 8 s between two pings.
        let found = align(&[(100_000, 0), (200_000, 8_000_000_000), (200_000, 8_000_000_000)]);
        assert_eq!(found.clock.uncertainty_ns, 50_000 + 8_000_000_000 - 150_000);
        assert!(found.note.is_some_and(|note| note.contains("contradicts itself")));
        let absurd = align(&[(1, i64::MIN), (1, i64::MAX)]);
        assert_eq!(absurd.clock.uncertainty_ns, 1, "a difference of 1 ns across the limit");
    }
}
