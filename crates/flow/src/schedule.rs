//! Departure schedule of packets. Pure: the time is an argument.

use std::num::{NonZeroU32, NonZeroU64};

/// Departure schedule of equally long packets at a constant mean rate, in bursts.
///
/// Burst *k* (from 0) is intended for `start + ⌊k × burst × packet × 8 × 10⁹ / rate⌋` nanoseconds: an absolute
/// time from integer arithmetic, so errors do not accumulate however long the stream runs.
///
/// **After a stall** (the thread was preempted, the send buffer was full) a schedule that aims at the average
/// rate would send the whole backlog at line rate. This one limits the catch-up:
///
/// * the backlog is sent at 125 % of the rate, except that packets due within `late_batch_ns` may be sent
///   together. In any span of `w` ns at most `1 + (w + late_batch_ns) / (0.8 × gap)` bursts are sent;
/// * a backlog beyond [`Pacer::BACKLOG_LIMIT_NS`] is dropped: the schedule slips by that much, reported in
///   [`Pacer::slipped_ns`]. Only then is the mean rate below the requested one.
#[derive(Debug, Clone)]
pub struct Pacer {
    /// Intended time of the current burst.
    due_ns: u64,
    /// Fraction of a nanosecond past `due_ns`, in units of 1 / `rate_bps`.
    fraction: u128,
    /// Time between bursts: whole nanoseconds, and the remainder in units of 1 / `rate_bps`.
    gap_ns: u64,
    gap_fraction: u128,
    rate_bps: u128,
    end_ns: u64,
    burst_packets: u32,
    /// Packets of the current burst that are not sent yet.
    left_in_burst: u32,
    late_batch_ns: u64,
    /// Time up to which the catch-up rate is used; at most `late_batch_ns` before now.
    used_until_ns: u64,
    slipped_ns: u64,
}

/// Decision of a [`Pacer`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Departure {
    /// Send this number of packets now.
    Now(u32),
    /// Send nothing before this time.
    At(u64),
    /// All packets due before the end have been sent.
    Done,
}

impl Pacer {
    /// Maximum backlog of a stream; a larger one is dropped.
    pub const BACKLOG_LIMIT_NS: u64 = 10_000_000;

    /// Creates a schedule from `start_ns` to before `end_ns`, for packets of `packet_bytes` at `rate_bps` payload
    /// bits per second.
    ///
    /// Late packets within `late_batch_ns` of schedule may be sent together; it should be at least the typical
    /// overshoot of a sleep.
    pub fn new(
        start_ns: u64,
        end_ns: u64,
        rate_bps: NonZeroU64,
        packet_bytes: NonZeroU32,
        burst_packets: NonZeroU32,
        late_batch_ns: u64,
    ) -> Self {
        let rate_bps = u128::from(rate_bps.get());
        let burst_bits = u128::from(packet_bytes.get()) * 8 * u128::from(burst_packets.get());
        let gap = burst_bits * 1_000_000_000;
        Self {
            due_ns: start_ns,
            fraction: 0,
            gap_ns: u64::try_from(gap / rate_bps).unwrap_or(u64::MAX),
            gap_fraction: gap % rate_bps,
            rate_bps,
            end_ns,
            burst_packets: burst_packets.get(),
            left_in_burst: burst_packets.get(),
            late_batch_ns,
            used_until_ns: 0,
            slipped_ns: 0,
        }
    }

    /// Decides how many packets to send at `now_ns`, up to `limit`; the returned packets count as sent. `departed`
    /// is called with the intended time and the number of packets of each burst (or part of one) among them.
    #[inline]
    pub fn poll(&mut self, now_ns: u64, limit: u32, mut departed: impl FnMut(u64, u32)) -> Departure {
        self.drop_backlog(now_ns);
        let step_ns = self.catch_up_gap_ns();
        let mut used_ns = self.used_until_ns.max(now_ns.saturating_sub(self.late_batch_ns));
        let mut packets = 0;
        while self.due_ns <= now_ns && self.due_ns < self.end_ns && used_ns <= now_ns && packets < limit {
            let leaving = self.left_in_burst.min(limit - packets);
            departed(self.due_ns, leaving);
            packets += leaving;
            self.left_in_burst -= leaving;
            if self.left_in_burst == 0 {
                self.advance();
                used_ns = used_ns.saturating_add(step_ns);
            }
        }
        self.used_until_ns = used_ns;
        match packets {
            0 if self.due_ns >= self.end_ns => Departure::Done,
            0 => Departure::At(self.next_ns()),
            _ => Departure::Now(packets),
        }
    }

    /// Returns the intended time of the next packet.
    pub fn due_ns(&self) -> u64 {
        self.due_ns
    }

    /// Returns the time of the next useful poll: the next packet is due and the catch-up rate allows it.
    pub fn next_ns(&self) -> u64 {
        self.due_ns.max(self.used_until_ns)
    }

    /// Returns the time between bursts, whole nanoseconds.
    pub fn gap_ns(&self) -> u64 {
        self.gap_ns
    }

    /// Returns by how much the schedule slipped because the backlog exceeded the limit, nanoseconds.
    pub fn slipped_ns(&self) -> u64 {
        self.slipped_ns
    }

    /// Time between bursts while catching up: 4/5 of the gap, which is 125 % of the rate.
    fn catch_up_gap_ns(&self) -> u64 {
        self.gap_ns - self.gap_ns / 5
    }

    fn drop_backlog(&mut self, now_ns: u64) {
        // The rest of a burst that leaves at interface rate is not a backlog.
        if self.left_in_burst < self.burst_packets {
            return;
        }
        let behind_ns = now_ns.saturating_sub(self.due_ns);
        if behind_ns > Self::BACKLOG_LIMIT_NS {
            self.due_ns += behind_ns - Self::BACKLOG_LIMIT_NS;
            self.slipped_ns += behind_ns - Self::BACKLOG_LIMIT_NS;
        }
    }

    fn advance(&mut self) {
        self.left_in_burst = self.burst_packets;
        self.fraction += self.gap_fraction;
        let carry = self.fraction >= self.rate_bps;
        if carry {
            self.fraction -= self.rate_bps;
        }
        self.due_ns = self.due_ns.saturating_add(self.gap_ns).saturating_add(u64::from(carry));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const START_NS: u64 = 5_000_000_000;

    fn pacer(rate_bps: u64, packet_bytes: u32, burst: u32, late_batch_ns: u64) -> Pacer {
        let rate = NonZeroU64::new(rate_bps).unwrap();
        let (packet, burst) = (NonZeroU32::new(packet_bytes).unwrap(), NonZeroU32::new(burst).unwrap());
        Pacer::new(START_NS, u64::MAX, rate, packet, burst, late_batch_ns)
    }

    /// Returns the intended times of the first `bursts` bursts when polls are never late.
    fn intended(pacer: &mut Pacer, bursts: usize) -> Vec<u64> {
        let mut times = Vec::new();
        while times.len() < bursts {
            let due = pacer.due_ns();
            assert!(matches!(pacer.poll(due, u32::MAX, |at, _| times.push(at)), Departure::Now(_)));
        }
        times.truncate(bursts);
        times
    }

    #[test]
    fn nothing_is_sent_before_the_start() {
        let mut pacer = pacer(1_000_000_000, 1250, 1, 0);
        assert_eq!(pacer.poll(START_NS - 1, 10, |_, _| {}), Departure::At(START_NS));
        assert_eq!(pacer.poll(START_NS, 10, |_, _| {}), Departure::Now(1));
        assert_eq!(pacer.poll(START_NS, 10, |_, _| {}), Departure::At(START_NS + 10_000));
    }

    #[test]
    fn bursts_are_sent_together_at_the_mean_rate() {
        // As `nuttcp -Ri300m/65`: 65 packets of 8,948 bytes every 15.5 ms.
        let mut pacer = pacer(300_000_000, 8948, 65, 0);
        assert_eq!(pacer.poll(START_NS, 100, |_, _| {}), Departure::Now(65));
        let gap_ns = 65 * 8948 * 8 * 1_000_000_000 / 300_000_000;
        assert_eq!(pacer.poll(START_NS, 100, |_, _| {}), Departure::At(START_NS + gap_ns));
    }

    #[test]
    fn bursts_over_the_limit_are_split() {
        let mut pacer = pacer(300_000_000, 8948, 65, 0);
        let mut parts = Vec::new();
        while let Departure::Now(packets) = pacer.poll(START_NS, 28, |_, _| {}) {
            parts.push(packets);
        }
        assert_eq!(parts, [28, 28, 9]);
    }

    #[test]
    fn a_burst_that_takes_long_to_leave_is_not_a_backlog() {
        // 1000 packets of 1250 bytes every 100 ms, written in parts within 40 ms.
        let mut pacer = pacer(100_000_000, 1250, 1000, 0);
        for part in 0..10 {
            assert_eq!(pacer.poll(START_NS + part * 4_000_000, 100, |_, _| {}), Departure::Now(100));
        }
        assert_eq!((pacer.slipped_ns(), pacer.due_ns()), (0, START_NS + 100_000_000));
    }

    #[test]
    fn a_short_stall_is_caught_up_at_125_percent() {
        let mut pacer = pacer(1_000_000_000, 1250, 1, 0); // 10 µs apart
        pacer.poll(START_NS, 1, |_, _| {});
        let stalled_until = START_NS + 1_000_000;
        let mut now = stalled_until;
        let mut departures = Vec::new();
        while departures.len() < 600 {
            match pacer.poll(now, u32::MAX, |_, _| {}) {
                Departure::Now(packets) => departures.extend((0..packets).map(|_| now)),
                Departure::At(at) => now = at,
                Departure::Done => unreachable!("the schedule has no end"),
            }
        }
        let caught_up = departures.windows(2).position(|w| w[1] - w[0] >= 10_000).unwrap();
        assert_eq!(departures[..caught_up].windows(2).map(|w| w[1] - w[0]).max(), Some(8000));
        assert_eq!(departures[..caught_up].windows(2).map(|w| w[1] - w[0]).min(), Some(8000));
        assert!((490..=510).contains(&caught_up), "100 owed, 400 that came due meanwhile: {caught_up}");
        assert_eq!(pacer.slipped_ns(), 0);
    }

    #[test]
    fn a_long_stall_slips_the_schedule_and_reports_it() {
        let mut pacer = pacer(1_000_000_000, 1250, 1, 0);
        pacer.poll(START_NS, 1, |_, _| {});
        pacer.poll(START_NS + 2_000_000_000, 1, |at, _| {
            assert_eq!(at, START_NS + 2_000_000_000 - Pacer::BACKLOG_LIMIT_NS);
        });
        assert_eq!(pacer.slipped_ns(), 2_000_000_000 - 10_000 - Pacer::BACKLOG_LIMIT_NS);
    }

    #[test]
    fn late_packets_due_before_the_end_are_still_sent() {
        let (rate, packet) = (NonZeroU64::new(1_000_000_000).unwrap(), NonZeroU32::new(1250).unwrap());
        let mut pacer = Pacer::new(START_NS, START_NS + 100_001, rate, packet, NonZeroU32::MIN, u64::MAX);
        assert_eq!(pacer.poll(START_NS + 400_000, 100, |_, _| {}), Departure::Now(11));
        assert_eq!(pacer.poll(START_NS + 400_000, 100, |_, _| {}), Departure::Done);
    }

    #[test]
    fn extreme_rates_neither_panic_nor_overflow() {
        let mut slow = pacer(1, u32::MAX, u32::MAX, 0);
        assert!(matches!(slow.poll(START_NS, u32::MAX, |_, _| {}), Departure::Now(_)));
        assert_eq!(slow.poll(u64::MAX - 1, 1, |_, _| {}), Departure::Done);
        let mut fast = pacer(u64::MAX, 1, 1, u64::MAX);
        assert!(matches!(fast.poll(START_NS, 1000, |_, _| {}), Departure::Now(1000)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn intended_times_match_the_formula(
            rate in 1_000u64..400_000_000_000, packet in 24u32..65_507, burst in 1u32..200,
        ) {
            let times = intended(&mut pacer(rate, packet, burst, 0), 500);
            for (k, &at) in times.iter().enumerate() {
                let bits = k as u128 * u128::from(burst) * u128::from(packet) * 8;
                prop_assert_eq!(u128::from(at - START_NS), bits * 1_000_000_000 / u128::from(rate));
            }
        }

        #[test]
        fn the_mean_rate_is_exact_under_irregular_polls(
            rate in 1_000_000u64..10_000_000_000, packet in 64u32..9000, burst in 1u32..70,
            lateness in prop::collection::vec(0u64..200_000, 50),
        ) {
            let mut pacer = pacer(rate, packet, burst, 50_000);
            let (mut now, mut packets) = (START_NS, 0u128);
            for late in lateness {
                loop {
                    match pacer.poll(now, u32::MAX, |_, _| {}) {
                        Departure::Now(n) => packets += u128::from(n),
                        Departure::At(at) if at > pacer.due_ns() => now = at,
                        Departure::At(at) => { now = at + late; break }
                        Departure::Done => unreachable!("the schedule has no end"),
                    }
                }
            }
            let elapsed = u128::from(pacer.due_ns() - START_NS);
            let owed = elapsed * u128::from(rate) / (u128::from(packet) * 8 * 1_000_000_000);
            prop_assert_eq!(pacer.slipped_ns(), 0);
            prop_assert!(packets.abs_diff(owed) <= u128::from(burst), "{} for {}", packets, owed);
        }

        #[test]
        fn no_span_exceeds_the_catch_up_rate(
            rate in 10_000_000u64..5_000_000_000, burst in 1u32..8, late_batch_ns in 0u64..200_000,
            stalls in prop::collection::vec(0u64..30_000_000, 1..20),
        ) {
            let mut pacer = pacer(rate, 1448, burst, late_batch_ns);
            let catch_up_gap_ns = pacer.catch_up_gap_ns();
            let mut now = START_NS;
            let mut bursts: Vec<u64> = Vec::new(); // when each burst left
            for stall in stalls {
                now += stall;
                for _ in 0..40 {
                    match pacer.poll(now, u32::MAX, |_, _| bursts.push(now)) {
                        Departure::Now(_) => now += 700, // what a send takes
                        Departure::At(at) => now = at,
                        Departure::Done => unreachable!("the schedule has no end"),
                    }
                }
            }
            for (i, &from) in bursts.iter().enumerate() {
                for (count, &to) in (1u64..).zip(&bursts[i..]).take(200) {
                    let most = 1 + (to - from + late_batch_ns) / catch_up_gap_ns;
                    prop_assert!(count <= most, "{} bursts in {} ns, {} allowed", count, to - from, most);
                }
            }
        }
    }
}
