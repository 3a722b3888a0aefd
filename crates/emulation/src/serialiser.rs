//! Serialisation of frames onto a link: exact to fractions of a nanosecond, also if the rate changes over time.

/// Nanoseconds per second.
const NS_PER_S: u64 = 1_000_000_000;
/// Capacity of a delivery opportunity in a mahimahi trace, bytes: a packet of 1500 bytes and the 4 bytes that
/// its TUN device adds.
const OPPORTUNITY_BYTES: u64 = 1504;

/// A rate and its duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateStep {
    /// Duration, nanoseconds; not 0.
    pub duration_ns: u64,
    /// Rate, bits/s; 0 sends nothing.
    pub bps: u64,
}

/// The rate of a link over time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Schedule {
    /// A constant rate, bits/s; not 0.
    Fixed(u64),
    /// A sequence of rates; not empty.
    Steps {
        /// The rates with their durations.
        steps: Vec<RateStep>,
        /// Whether the sequence repeats; otherwise the last rate stays.
        repeat: bool,
    },
    /// Times at which one packet of 1500 bytes may leave (mahimahi), nanoseconds, ascending. They repeat; the last
    /// time is the period, which is not 0.
    Opportunities(Vec<u64>),
}

impl Schedule {
    /// Maximum rate over any window of `window_ns`, bits/s: an upper bound for the frames in flight on a link with
    /// that delay.
    pub fn peak_bps(&self, window_ns: u64) -> u64 {
        match self {
            Self::Fixed(bps) => *bps,
            Self::Steps { steps, .. } => steps.iter().map(|step| step.bps).max().unwrap_or(0),
            Self::Opportunities(times) => {
                let period = *times.last().unwrap_or(&NS_PER_S);
                // Whole periods, plus the maximum number of opportunities in the rest of the window, wherever it begins.
                let rest_ns = window_ns % period;
                let (mut most, mut end) = (0, 0);
                for start in 0..times.len() {
                    end = end.max(start);
                    let at = |i: usize| times[i % times.len()] + period * (i / times.len()) as u64;
                    while end < start + times.len() && at(end) <= times[start] + rest_ns {
                        end += 1;
                    }
                    most = most.max(end - start);
                }
                let packets = u128::from(window_ns / period) * times.len() as u128 + most as u128;
                let bits = packets * u128::from(OPPORTUNITY_BYTES * 8) * u128::from(NS_PER_S);
                u64::try_from(bits / u128::from(window_ns.max(1))).unwrap_or(u64::MAX)
            }
        }
    }

    /// Length of the period of a rate that repeats, nanoseconds; 0 for others.
    pub fn period_ns(&self) -> u64 {
        match self {
            Self::Fixed(_) | Self::Steps { repeat: false, .. } => 0,
            Self::Steps { steps, repeat: true } => steps.iter().map(|step| step.duration_ns).sum(),
            Self::Opportunities(times) => times.last().copied().unwrap_or(0),
        }
    }

    /// Maximum number of bits between two times, with the framing of `frame_bytes` per packet of `packet_bytes`
    /// (opportunities count packets).
    pub(crate) fn bits(&self, from_ns: u64, to_ns: u64, packet_bytes: u64, frame_bytes: u64) -> u128 {
        self.bits_until(to_ns, packet_bytes, frame_bytes) - self.bits_until(from_ns, packet_bytes, frame_bytes)
    }

    fn bits_until(&self, to_ns: u64, packet_bytes: u64, frame_bytes: u64) -> u128 {
        let second = u128::from(NS_PER_S);
        match self {
            Self::Fixed(bps) => u128::from(*bps) * u128::from(to_ns) / second,
            Self::Steps { steps, repeat } => {
                let total = |until_ns: u64| {
                    let (mut sum, mut at_ns) = (0, 0_u64);
                    for step in steps {
                        let ns = step.duration_ns.min(until_ns.saturating_sub(at_ns));
                        sum += u128::from(step.bps) * u128::from(ns);
                        at_ns = at_ns.saturating_add(step.duration_ns);
                    }
                    (sum, at_ns)
                };
                let (whole, length_ns) = total(u64::MAX);
                let sum = if *repeat {
                    whole * u128::from(to_ns / length_ns.max(1)) + total(to_ns % length_ns.max(1)).0
                } else {
                    let last = steps.last().map_or(0, |step| step.bps);
                    total(to_ns).0 + u128::from(last) * u128::from(to_ns.saturating_sub(length_ns))
                };
                sum / second
            }
            Self::Opportunities(times) => {
                let period = times.last().copied().unwrap_or(1).max(1);
                let rest = times.partition_point(|at_ns| *at_ns <= to_ns % period);
                let count = u128::from(to_ns / period) * times.len() as u128 + rest as u128;
                let packet = u128::from(packet_bytes.max(1));
                count * u128::from(OPPORTUNITY_BYTES * 8) * u128::from(frame_bytes.max(1)) / packet
            }
        }
    }

    /// Mean rate over one period or over all steps, bits/s.
    pub fn mean_bps(&self) -> u64 {
        match self {
            Self::Fixed(bps) => *bps,
            Self::Steps { steps, .. } => {
                let bits: u128 = steps.iter().map(|s| u128::from(s.bps) * u128::from(s.duration_ns)).sum();
                let ns: u128 = steps.iter().map(|s| u128::from(s.duration_ns)).sum();
                (bits / ns.max(1)) as u64
            }
            Self::Opportunities(times) => {
                let bits = times.len() as u128 * u128::from(OPPORTUNITY_BYTES * 8) * u128::from(NS_PER_S);
                (bits / u128::from(times.last().copied().unwrap_or(1).max(1))) as u64
            }
        }
    }
}

/// Sender of a link, which sends one frame after the other.
#[derive(Debug, Clone)]
pub(crate) struct Serialiser {
    schedule: Schedule,
    /// Time at which it is free, nanoseconds, rounded down.
    free_ns: u64,
    /// Used part of the nanosecond that begins at `free_ns`, in units of 1e-9 bit; less than the rate.
    used: u64,
    /// Index of the current step or opportunity in the schedule, and start of the current period.
    index: usize,
    period_start_ns: u64,
    /// Start of the current step, nanoseconds.
    step_start_ns: u64,
    /// Total duration of all steps, nanoseconds; 0 for other schedules.
    steps_ns: u64,
    /// Remaining capacity of the opportunity at `free_ns`, bytes.
    budget: u64,
    /// Start of the schedule, nanoseconds: a multiple of the period. The opportunities that end the period before it are not
    /// used.
    from_ns: u64,
}

impl Serialiser {
    /// Returns a sender whose schedule starts at `from_ns`, a multiple of its period, and holds before it too.
    pub(crate) fn new(schedule: Schedule, from_ns: u64) -> Self {
        let steps_ns = match &schedule {
            Schedule::Steps { steps, .. } => steps.iter().map(|step| step.duration_ns).sum(),
            _ => 0,
        };
        Self {
            schedule,
            free_ns: 0,
            used: 0,
            index: 0,
            period_start_ns: 0,
            step_start_ns: 0,
            steps_ns,
            budget: 0,
            from_ns,
        }
    }

    /// Changes the rate. A frame that is being sent ends as it would have.
    pub(crate) fn set_rate(&mut self, bps: u64) {
        (self.schedule, self.used, self.budget) = (Schedule::Fixed(bps), 0, 0);
    }

    /// Time at which a frame that is ready at `now_ns` can be sent, if no other frame is being sent.
    pub(crate) fn start(&mut self, now_ns: u64) -> u64 {
        if !matches!(self.schedule, Schedule::Opportunities(_)) || (self.budget > 0 && now_ns <= self.free_ns) {
            return now_ns;
        }
        self.budget = 0;
        self.opportunity(now_ns)
    }

    /// Sends a frame at `now_ns`; `bits` is its length on the link, `ip_bytes` that of its IP packet. Returns the
    /// time of its last bit, rounded down to nanoseconds.
    pub(crate) fn send(&mut self, now_ns: u64, bits: u64, ip_bytes: u64) -> u64 {
        if now_ns > self.free_ns {
            (self.free_ns, self.used) = (now_ns, 0);
        }
        match &self.schedule {
            Schedule::Fixed(bps) => {
                let total = self.used + bits * NS_PER_S;
                self.free_ns += total / bps;
                self.used = total % bps;
            }
            Schedule::Steps { .. } => self.send_by_steps(bits),
            Schedule::Opportunities(_) => self.send_by_opportunities(now_ns, ip_bytes),
        }
        self.free_ns
    }

    fn send_by_steps(&mut self, bits: u64) {
        let Schedule::Steps { steps, repeat } = &self.schedule else { return };
        if *repeat {
            // After an idle time, skip whole periods at once.
            self.step_start_ns += (self.free_ns.saturating_sub(self.step_start_ns)) / self.steps_ns * self.steps_ns;
        }
        let mut left = bits * NS_PER_S;
        loop {
            let step = steps[self.index];
            let last = self.index + 1 == steps.len();
            let stays = last && !repeat;
            let end_ns = if stays { u64::MAX } else { self.step_start_ns.saturating_add(step.duration_ns) };
            if self.free_ns < end_ns {
                let room = u128::from(end_ns - self.free_ns) * u128::from(step.bps) - u128::from(self.used);
                if step.bps > 0 && u128::from(left) < room {
                    let total = self.used + left;
                    self.free_ns += total / step.bps;
                    self.used = total % step.bps;
                    return;
                }
                if stays {
                    // The last rate is 0: nothing is sent any more.
                    (self.free_ns, self.used) = (u64::MAX, 0);
                    return;
                }
                left -= room as u64;
                (self.free_ns, self.used) = (end_ns, 0);
                if left == 0 {
                    return;
                }
            } else {
                self.used = 0;
            }
            self.step_start_ns = end_ns;
            self.index = if last { 0 } else { self.index + 1 };
        }
    }

    /// Returns the first opportunity at or after `now_ns`, and advances the schedule to it.
    fn opportunity(&mut self, now_ns: u64) -> u64 {
        let Schedule::Opportunities(times) = &self.schedule else { return now_ns };
        let period = times.last().copied().unwrap_or(1).max(1);
        if now_ns.saturating_sub(self.period_start_ns) > period {
            self.period_start_ns = (now_ns - 1) / period * period;
            self.index = 0;
        }
        loop {
            while self.index < times.len() {
                let at_ns = self.period_start_ns + times[self.index];
                let ends_before_start = self.from_ns > 0 && at_ns == self.from_ns && times[self.index] == period;
                if at_ns >= now_ns && !ends_before_start {
                    return at_ns;
                }
                self.index += 1;
            }
            self.index = 0;
            self.period_start_ns += period;
        }
    }

    fn send_by_opportunities(&mut self, now_ns: u64, ip_bytes: u64) {
        let mut left = ip_bytes + 4;
        let mut from_ns = now_ns;
        loop {
            if self.budget == 0 {
                self.free_ns = self.opportunity(from_ns);
                self.budget = OPPORTUNITY_BYTES;
                // Several opportunities may have the same time; each is used once.
                self.index += 1;
                from_ns = self.free_ns;
            }
            let sent = left.min(self.budget);
            self.budget -= sent;
            left -= sent;
            if left == 0 {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Times at which back-to-back frames of `bits` have been sent.
    fn ends(schedule: Schedule, bits: u64, frames: usize) -> Vec<u64> {
        let mut serialiser = Serialiser::new(schedule, 0);
        let mut at = 0;
        (0..frames)
            .map(|_| {
                at = serialiser.start(at);
                at = serialiser.send(at, bits, bits / 8);
                at
            })
            .collect()
    }

    #[test]
    fn fractional_nanoseconds_accumulate_exactly() {
        // 1538 bytes at 9.999 Gb/s take 1230.523… ns.
        let ends = ends(Schedule::Fixed(9_999_000_000), 1538 * 8, 1_000_000);
        for (i, end) in ends.iter().enumerate() {
            let exact = (i as u128 + 1) * 1538 * 8 * 1_000_000_000 / 9_999_000_000;
            assert_eq!(u128::from(*end), exact, "frame {i}");
        }
    }

    #[test]
    fn frames_across_rate_changes_are_timed_exactly() {
        // 1 ms at 1 Mb/s sends 1000 of the 1500 bits; the remaining 500 take 50 µs at 10 Mb/s.
        let steps = vec![
            RateStep { duration_ns: 1_000_000, bps: 1_000_000 },
            RateStep { duration_ns: 1_000_000, bps: 10_000_000 },
            RateStep { duration_ns: 1_000_000, bps: 0 },
        ];
        assert_eq!(ends(Schedule::Steps { steps: steps.clone(), repeat: true }, 1500, 1), [1_050_000]);
        // 11,000 bits are sent before the outage; the rest of the eighth frame takes 1 ms at 1 Mb/s after it.
        let ends = ends(Schedule::Steps { steps, repeat: true }, 1500, 8);
        assert_eq!(ends[6..], [1_950_000, 4_000_000]);
    }

    #[test]
    fn non_repeating_schedules_keep_their_last_rate() {
        let steps = vec![RateStep { duration_ns: 1000, bps: 1_000 }, RateStep { duration_ns: 1, bps: 1_000_000_000 }];
        let ends = ends(Schedule::Steps { steps, repeat: false }, 8, 3);
        assert_eq!(ends, [1007, 1015, 1023], "8 bits at 1 Gb/s each, after 1 µs that carried 1e-6 bit");
    }

    #[test]
    fn opportunities_carry_one_full_or_several_small_packets() {
        let times = vec![1_000_000, 1_000_000, 5_000_000];
        assert_eq!(
            ends(Schedule::Opportunities(times.clone()), 1500 * 8, 5),
            [1_000_000, 1_000_000, 5_000_000, 6_000_000, 6_000_000]
        );
        // Two packets of 748 + 4 bytes fit into 1504 bytes.
        assert_eq!(
            ends(Schedule::Opportunities(times.clone()), 748 * 8, 6),
            [1_000_000, 1_000_000, 1_000_000, 1_000_000, 5_000_000, 5_000_000]
        );
        // A packet of 3004 bytes needs two opportunities and leaves at the second.
        assert_eq!(ends(Schedule::Opportunities(times), 3004 * 8, 2), [1_000_000, 6_000_000]);
    }

    #[test]
    fn unused_opportunities_are_lost() {
        let mut serialiser = Serialiser::new(Schedule::Opportunities(vec![1_000, 2_000]), 0);
        assert_eq!(serialiser.start(1_500), 2_000);
        assert_eq!(serialiser.send(2_000, 0, 100), 2_000);
        assert_eq!(serialiser.start(2_100), 3_000, "what the last one left is gone");
        assert_eq!(serialiser.start(1_000_000_500), 1_000_001_000);
    }

    #[test]
    fn peak_rate_of_a_trace_depends_on_the_window() {
        let bursts = Schedule::Opportunities(vec![1_000_000, 1_000_000, 1_000_000, 1_000_000, 100_000_000]);
        assert_eq!(bursts.mean_bps(), 5 * 1504 * 8 * 10);
        assert!(bursts.peak_bps(1_000_000) >= 4 * 1504 * 8 * 1000);
        let fixed = Schedule::Fixed(7);
        assert_eq!((fixed.peak_bps(1), fixed.mean_bps()), (7, 7));
    }
}
