//! What went wrong in each second, and whether it can be trusted.

use landspeed_model::{EmulateDirections, EmulateSecond, EmulateSecondDirection, InvalidReason, InvalidSecond};
use landspeed_units::Nanos;

use crate::live::Live;

/// A second.
pub(crate) const SECOND_NS: u64 = 1_000_000_000;
/// Most invalid seconds that are kept with their words.
const MAX_KEPT: usize = 10_000;
/// A frame is late beyond this, nanoseconds, or beyond a hundredth of the path's delay.
const LATE_NS: u64 = 200_000;

/// Counts of the present second, both directions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Second {
    /// Frames sent.
    pub sent: u64,
    /// Frames sent too late.
    pub late: u64,
    /// How late the latest was, nanoseconds.
    pub latest_ns: u64,
    /// Frames the receive rings dropped.
    pub ring_full: u64,
    /// Frames the store had no room for.
    pub store_full: u64,
    /// Super-packets.
    pub super_packets: u64,
    /// Frames the interface did not take.
    pub send_failed: u64,
    /// Frames that the interfaces dropped.
    pub interface_drops: u64,
    /// Frames that queueing disciplines dropped for a reason that the path file does not give.
    pub unplanned_drops: u64,
    /// Bytes that the link with the least of its rate sent while frames waited, and how many it could have sent; the kernel's links only.
    pub slowest: Option<(u64, u64)>,
    /// Whether some frames' lateness is unknown.
    pub late_unknown: bool,
    /// Time spent on frames, nanoseconds; unknown of the kernel's work.
    pub work_ns: Option<u64>,
}

/// A second that is over.
#[derive(Debug)]
pub(crate) struct Concluded {
    /// Its number.
    pub number: u64,
    /// How long it was, nanoseconds.
    pub length_ns: u64,
    /// What was counted in it.
    pub counts: Second,
    /// Share of it spent on frames.
    pub work_share: Option<f64>,
    /// Whether it is invalid. A pause makes all the seconds invalid that it covers.
    pub invalid: Vec<InvalidSecond>,
}

/// All seconds.
#[derive(Debug)]
pub(crate) struct Seconds {
    tolerance_ns: u64,
    now: Second,
    number: u64,
    /// The invalid ones.
    pub(crate) invalid: Vec<InvalidSecond>,
    /// Greatest share of a whole second spent on frames.
    pub(crate) work_share_max: f64,
    /// Time spent on frames, nanoseconds.
    pub(crate) work_ns: u64,
}

impl Seconds {
    /// For a path with this delay in its slower direction, whose datapath has this resolution.
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

    /// The counts of the present second.
    pub(crate) fn now(&mut self) -> &mut Second {
        &mut self.now
    }

    /// A frame left `late_ns` after its time.
    pub(crate) fn sent(&mut self, late_ns: u64) {
        self.now.sent += 1;
        self.now.late += u64::from(late_ns > self.tolerance_ns);
        self.now.latest_ns = self.now.latest_ns.max(late_ns);
    }

    /// Whether the second that ends at `elapsed_ns` is over.
    pub(crate) fn is_over(&self, elapsed_ns: u64) -> bool {
        elapsed_ns >= (self.number + 1) * SECOND_NS
    }

    /// Length of the present second at `elapsed_ns`, nanoseconds.
    pub(crate) fn length_ns(&self, elapsed_ns: u64) -> u64 {
        elapsed_ns.saturating_sub(self.number * SECOND_NS)
    }

    /// Concludes the present second and shows it.
    pub(crate) fn publish(&mut self, elapsed_ns: u64, directions: [EmulateSecondDirection; 2], live: &Live) {
        let length_ns = self.length_ns(elapsed_ns);
        let concluded = self.conclude(elapsed_ns);
        // A rate over a short time is not meaningful; an emulation that ended sooner has one second nevertheless.
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

    /// Concludes the present second; the one in which `elapsed_ns` lies begins. A pause longer than a second is one long second.
    pub(crate) fn conclude(&mut self, elapsed_ns: u64) -> Concluded {
        let number = self.number;
        let length_ns = self.length_ns(elapsed_ns).max(1);
        let next = (elapsed_ns / SECOND_NS).max(number);
        let invalid: Vec<InvalidSecond> = match self.present() {
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
        // The last one may be short, and a share of a short time is not meaningful.
        if length_ns > SECOND_NS / 10 {
            self.work_share_max = self.work_share_max.max(work_share.unwrap_or(0.0));
        }
        self.number = next;
        Concluded { number, length_ns, counts, work_share, invalid }
    }

    /// The present second, if it is invalid already.
    pub(crate) fn present(&self) -> Option<InvalidSecond> {
        let (reasons, message) = judge(&self.now, self.tolerance_ns);
        (!reasons.is_empty()).then_some(InvalidSecond { second: self.number, reasons, message })
    }
}

/// Why a second is invalid; nothing if it is not.
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
    fn a_link_below_its_rate_makes_its_second_invalid() {
        let mut seconds = Seconds::new(0, 0);
        seconds.now().slowest = Some((99_000_000, 100_000_000));
        assert!(seconds.conclude(SECOND_NS).invalid.is_empty());
        seconds.now().slowest = Some((98_900_000, 100_000_000));
        let invalid = seconds.conclude(2 * SECOND_NS).invalid;
        assert_eq!(invalid[0].reasons, [InvalidReason::RateLow]);
        assert_eq!(invalid[0].message, "a link sent 98.9 % of its rate while frames waited");
    }

    #[test]
    fn lateness_beyond_the_resolution_counts() {
        let mut seconds = Seconds::new(0, 1_000_000);
        seconds.sent(900_000);
        assert_eq!(seconds.present(), None);
        seconds.sent(1_100_000);
        assert!(seconds.present().is_some());
    }

    #[test]
    fn a_second_is_invalid_from_one_late_frame_in_a_hundred_on() {
        let mut seconds = Seconds::new(50_000_000, 0);
        for (second, late) in [(0, 1), (1, 2)] {
            for i in 0..100 {
                // A hundredth of the delay is 0.5 ms.
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
    fn a_pause_makes_every_second_invalid_that_it_covers() {
        let mut seconds = Seconds::new(0, 0);
        seconds.conclude(2 * SECOND_NS);
        seconds.sent(3 * SECOND_NS);
        assert_eq!(seconds.present().map(|invalid| invalid.second), Some(2));
        let concluded = seconds.conclude(5 * SECOND_NS + 7);
        let numbers: Vec<u64> = concluded.invalid.iter().map(|invalid| invalid.second).collect();
        assert_eq!((concluded.number, numbers), (2, vec![2, 3, 4]));
        assert_eq!(seconds.invalid, concluded.invalid);
        assert!(seconds.conclude(6 * SECOND_NS).invalid.is_empty());
    }

    #[test]
    fn any_frame_that_was_not_handled_makes_its_second_invalid() {
        let mut seconds = Seconds::new(0, 0);
        seconds.now().store_full = 1;
        seconds.now().super_packets = 2;
        seconds.now().work_ns = Some(SECOND_NS / 4);
        seconds.conclude(SECOND_NS);
        assert_eq!(seconds.invalid[0].reasons, [InvalidReason::StoreFull, InvalidReason::SuperPackets]);
        assert!((seconds.work_share_max - 0.25).abs() < 1e-9);
    }
}
