//! Errors of each second of an emulation, and whether the second is valid.

use landspeed_model::{EmulateDirections, EmulateSecond, EmulateSecondDirection, InvalidReason, InvalidSecond};
use landspeed_units::Nanos;

use crate::live::Live;

pub(crate) const SECOND_NS: u64 = 1_000_000_000;
/// Maximum number of invalid seconds stored with their messages.
const MAX_KEPT: usize = 10_000;
/// Minimum lateness of a late frame, nanoseconds; more if 1 % of the path's delay is more.
const LATE_NS: u64 = 200_000;

/// Counters of the current second, both directions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Second {
    pub sent: u64,
    /// Frames sent later than tolerated.
    pub late: u64,
    /// Maximum lateness, nanoseconds.
    pub latest_ns: u64,
    /// Frames dropped because a receive ring was full.
    pub ring_full: u64,
    /// Frames dropped because the frame store was full.
    pub store_full: u64,
    /// Super-packets received, which the path cannot carry.
    pub super_packets: u64,
    /// Frames that the interface refused to send.
    pub send_failed: u64,
    /// Frames that the interfaces dropped.
    pub interface_drops: u64,
    /// Frames dropped by queueing disciplines for a reason that is not in the path file.
    pub unplanned_drops: u64,
    /// Kernel datapath only: bytes sent, and bytes that could have been sent, by the link furthest below its rate
    /// while frames were queued.
    pub slowest: Option<(u64, u64)>,
    /// Whether the lateness of some frames is unknown.
    pub late_unknown: bool,
    /// Time spent on forwarding, nanoseconds; `None` in the kernel datapath.
    pub work_ns: Option<u64>,
}

/// A completed second.
#[derive(Debug)]
pub(crate) struct CompletedSecond {
    /// Number of the second, from 0.
    pub number: u64,
    pub length_ns: u64,
    /// Counters of the second.
    pub counts: Second,
    /// Share of the second spent on forwarding.
    pub work_share: Option<f64>,
    /// The invalid seconds that it covers: several after a pause, none if it is valid.
    pub invalid: Vec<InvalidSecond>,
}

/// State of all seconds of an emulation.
#[derive(Debug)]
pub(crate) struct Seconds {
    tolerance_ns: u64,
    now: Second,
    number: u64,
    /// Invalid seconds so far.
    pub(crate) invalid: Vec<InvalidSecond>,
    /// Maximum share of a second spent on forwarding.
    pub(crate) work_share_max: f64,
    /// Total time spent on forwarding, nanoseconds.
    pub(crate) work_ns: u64,
}

impl Seconds {
    /// `delay_ns` is the delay of the slower direction, `resolution_ns` the timing resolution of the datapath.
    pub(crate) fn new(delay_ns: u64, resolution_ns: u64) -> Self {
        Self {
            tolerance_ns: LATE_NS.max(delay_ns / 100).max(resolution_ns),
            now: Second::default(),
            number: 0,
            invalid: Vec::new(),
            work_share_max: 0.0,
            work_ns: 0,
        }
    }

    /// The counters of the current second.
    pub(crate) fn now(&mut self) -> &mut Second {
        &mut self.now
    }

    /// Counts a frame that was sent `late_ns` after its scheduled departure.
    pub(crate) fn sent(&mut self, late_ns: u64) {
        self.now.sent += 1;
        self.now.late += u64::from(late_ns > self.tolerance_ns);
        self.now.latest_ns = self.now.latest_ns.max(late_ns);
    }

    /// Whether the current second is over at `elapsed_ns`.
    pub(crate) fn is_over(&self, elapsed_ns: u64) -> bool {
        elapsed_ns >= (self.number + 1) * SECOND_NS
    }

    /// Length of the current second at `elapsed_ns`, nanoseconds.
    pub(crate) fn length_ns(&self, elapsed_ns: u64) -> u64 {
        elapsed_ns.saturating_sub(self.number * SECOND_NS)
    }

    /// Ends the current second and publishes it.
    pub(crate) fn publish(&mut self, elapsed_ns: u64, directions: [EmulateSecondDirection; 2], live: &Live) {
        let length_ns = self.length_ns(elapsed_ns);
        let concluded = self.conclude(elapsed_ns);
        // A rate over a very short time is not meaningful, but a short emulation still needs one second.
        if length_ns < SECOND_NS / 10 && concluded.number > 0 && concluded.invalid.is_empty() {
            return;
        }
        let [forward, reverse] = directions;
        let counts = concluded.counts;
        let second = EmulateSecond {
            second: concluded.number,
            length_ns: concluded.length_ns,
            directions: EmulateDirections { forward, reverse },
            late_packets: (!counts.late_unknown).then_some(counts.late),
            late_max_ns: (!counts.late_unknown).then_some(counts.latest_ns),
            work_share: concluded.work_share,
            valid: concluded.invalid.is_empty(),
        };
        live.add(second, concluded.invalid, elapsed_ns);
    }

    /// Ends the current second and starts the one that contains `elapsed_ns`. A pause longer than a second becomes
    /// one long second.
    pub(crate) fn conclude(&mut self, elapsed_ns: u64) -> CompletedSecond {
        let number = self.number;
        let length_ns = self.length_ns(elapsed_ns).max(1);
        let next = (elapsed_ns / SECOND_NS).max(number);
        let invalid: Vec<InvalidSecond> = match self.current_invalid() {
            None => Vec::new(),
            Some(invalid) => (number..next.max(number + 1))
                .take(MAX_KEPT.saturating_sub(self.invalid.len()))
                .map(|second| InvalidSecond { second, ..invalid.clone() })
                .collect(),
        };
        self.invalid.extend_from_slice(&invalid);
        let counts = std::mem::take(&mut self.now);
        self.work_ns += counts.work_ns.unwrap_or(0);
        let work_share = counts.work_ns.map(|work_ns| (work_ns as f64 / length_ns as f64).min(1.0));
        // The last second may be short, and a share of a short time is not meaningful.
        if length_ns > SECOND_NS / 10 {
            self.work_share_max = self.work_share_max.max(work_share.unwrap_or(0.0));
        }
        self.number = next;
        CompletedSecond { number, length_ns, counts, work_share, invalid }
    }

    /// The current second, if it is already invalid.
    pub(crate) fn current_invalid(&self) -> Option<InvalidSecond> {
        let (reasons, message) = judge(&self.now, self.tolerance_ns);
        (!reasons.is_empty()).then_some(InvalidSecond { second: self.number, reasons, message })
    }
}

/// Reasons why a second is invalid, and the message; empty if it is valid.
fn judge(second: &Second, tolerance_ns: u64) -> (Vec<InvalidReason>, String) {
    let mut reasons = Vec::new();
    let mut words = Vec::new();
    let mut add = |reason, applies: bool, text: String| {
        if applies {
            reasons.push(reason);
            words.push(text);
        }
    };
    add(
        InvalidReason::Late,
        second.late * 100 > second.sent,
        format!(
            "{} of {} frames left more than {} late, the latest by {}",
            second.late,
            second.sent,
            Nanos::new(tolerance_ns),
            Nanos::new(second.latest_ns)
        ),
    );
    let frames = |count: u64, what: &str| format!("{count} frames {what}");
    add(InvalidReason::RingFull, second.ring_full > 0, frames(second.ring_full, "found the receive ring full"));
    add(InvalidReason::StoreFull, second.store_full > 0, frames(second.store_full, "found the store full"));
    add(
        InvalidReason::SuperPackets,
        second.super_packets > 0,
        frames(second.super_packets, "were super-packets, longer than the path's MTU"),
    );
    add(
        InvalidReason::SendFailed,
        second.send_failed > 0,
        frames(second.send_failed, "were not taken by the interface"),
    );
    add(
        InvalidReason::InterfaceDrops,
        second.interface_drops > 0,
        frames(second.interface_drops, "were dropped by the interfaces"),
    );
    add(
        InvalidReason::UnplannedDrops,
        second.unplanned_drops > 0,
        frames(second.unplanned_drops, "were dropped by queueing disciplines for no reason of the path"),
    );
    if let Some((sent, could)) = second.slowest {
        add(
            InvalidReason::RateLow,
            u128::from(sent) * 100 < u128::from(could) * 99,
            format!("a link sent {:.1} % of its rate while frames waited", sent as f64 * 100.0 / could.max(1) as f64),
        );
    }
    (reasons, words.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_below_99_percent_of_their_rate_invalidate_the_second() {
        let mut seconds = Seconds::new(0, 0);
        seconds.now().slowest = Some((99_000_000, 100_000_000));
        assert!(seconds.conclude(SECOND_NS).invalid.is_empty());
        seconds.now().slowest = Some((98_900_000, 100_000_000));
        let invalid = seconds.conclude(2 * SECOND_NS).invalid;
        assert_eq!(invalid[0].reasons, [InvalidReason::RateLow]);
        assert_eq!(invalid[0].message, "a link sent 98.9 % of its rate while frames waited");
    }

    #[test]
    fn lateness_is_tolerated_up_to_the_datapath_resolution() {
        let mut seconds = Seconds::new(0, 1_000_000);
        seconds.sent(900_000);
        assert_eq!(seconds.current_invalid(), None);
        seconds.sent(1_100_000);
        assert!(seconds.current_invalid().is_some());
    }

    #[test]
    fn more_than_one_percent_late_frames_invalidate_a_second() {
        let mut seconds = Seconds::new(50_000_000, 0);
        for (second, late) in [(0, 1), (1, 2)] {
            for i in 0..100 {
                // 1 % of the delay is 0.5 ms.
                seconds.sent(if i < late { 600_000 } else { 400_000 });
            }
            assert!(seconds.is_over((second + 1) * SECOND_NS) && !seconds.is_over((second + 1) * SECOND_NS - 1));
            seconds.conclude((second + 1) * SECOND_NS);
        }
        let expected = "2 of 100 frames left more than 500 µs late, the latest by 600 µs";
        assert_eq!(seconds.invalid.len(), 1);
        assert_eq!((seconds.invalid[0].second, &seconds.invalid[0].message[..]), (1, expected));
    }

    #[test]
    fn late_frames_after_a_pause_invalidate_every_covered_second() {
        let mut seconds = Seconds::new(0, 0);
        seconds.conclude(2 * SECOND_NS);
        seconds.sent(3 * SECOND_NS);
        assert_eq!(seconds.current_invalid().map(|invalid| invalid.second), Some(2));
        let concluded = seconds.conclude(5 * SECOND_NS + 7);
        let numbers: Vec<u64> = concluded.invalid.iter().map(|invalid| invalid.second).collect();
        assert_eq!((concluded.number, numbers), (2, vec![2, 3, 4]));
        assert_eq!(seconds.invalid, concluded.invalid);
        assert!(seconds.conclude(6 * SECOND_NS).invalid.is_empty());
    }

    #[test]
    fn unhandled_frames_invalidate_the_second() {
        let mut seconds = Seconds::new(0, 0);
        seconds.now().store_full = 1;
        seconds.now().super_packets = 2;
        seconds.now().work_ns = Some(SECOND_NS / 4);
        seconds.conclude(SECOND_NS);
        assert_eq!(seconds.invalid[0].reasons, [InvalidReason::StoreFull, InvalidReason::SuperPackets]);
        assert!((seconds.work_share_max - 0.25).abs() < 1e-9);
    }
}
