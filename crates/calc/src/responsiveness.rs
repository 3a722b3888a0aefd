//! Responsiveness in round trips per minute.

/// Round trips per minute of a round-trip time in seconds: `60 / RTT` (draft-ietf-ippm-responsiveness-09, section "Round-Trips
/// per Minute (RPM)"). `None` unless the time is finite and above 0.
pub fn round_trips_per_minute(rtt_s: f64) -> Option<f64> {
    (rtt_s.is_finite() && rtt_s > 0.0).then(|| 60.0 / rtt_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thresholds_of_the_draft_are_met() {
        for (rtt_ms, rpm) in [(200.0, 300.0), (60.0, 1000.0), (10.0, 6000.0)] {
            let found = round_trips_per_minute(rtt_ms / 1e3).expect("a time");
            assert!((found - rpm).abs() < 1e-6, "{found}");
        }
        assert_eq!((round_trips_per_minute(0.0), round_trips_per_minute(f64::NAN)), (None, None));
    }
}
