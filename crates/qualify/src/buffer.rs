//! Size of the smallest buffer of a section, by bisection on the length of a burst.

use crate::outcome::StreamOutcome;

/// The search ends when the shortest burst with loss is at most this much longer than the longest without.
const RESOLUTION: u64 = 16;
/// Packets of a burst that the search needs: shorter ones have no measurable rate.
const MIN_PACKETS: u64 = 16;
/// Packets that must arrive of a burst for its rate, and the time, nanoseconds, from which fewer than [`MIN_PACKETS`] suffice: it is long against
/// the coalescing of interrupts.
const MIN_DELIVERED: u64 = 4;
const MIN_SPAN_NS: u64 = 1_000_000;
/// Bursts of one length that must agree, and that are sent at most, where the length is close to the limit.
const AGREEING: u32 = 2;
/// Share of the packets of a burst from which the loss is an overflow, whatever else the section loses.
const OVERFLOW_SHARE: f64 = 0.1;
/// Bursts disturbed by a host after which the search ends.
const MAX_DISTURBED: u32 = 3;
/// Share of the packets of a burst that arrive beyond the rate of the section, from which the limit is a token bucket.
const BUCKET_SHARE: f64 = 0.1;
/// Ratio of the lengths of two bursts with loss from which a rate is fitted.
const FIT_RATIO: f64 = 1.5;
/// Longest search, bursts: random loss or cross traffic can contradict the bounds again and again.
const MAX_BURSTS: u32 = 64;

/// Search for the longest burst that the section delivers whole.
///
/// Far from the limit a burst of each length decides. Near it, and at both ends of the interval, two bursts of that length must
/// agree: a single loss that has another cause, or a moment without cross traffic, then moves neither end.
#[derive(Debug)]
pub struct BufferSearch {
    /// Longest length without loss.
    whole: Bound,
    /// Shortest length with loss.
    lossy: Bound,
    /// The burst with loss by which the search began, packets.
    longest: u64,
    /// Votes on the length that is being sent.
    votes: Votes,
    /// Arrivals of the longest and of the shortest burst with loss.
    arrivals: Option<(Arrivals, Arrivals)>,
    /// Packets that the sender's interface sends per nanosecond: the program's calls are faster than the interface.
    line_per_ns: f64,
    /// Ratio of the section's rate to the burst's, from the shortest burst with loss that has one.
    drain: Option<f64>,
    bursts: u32,
    disturbed: u32,
    ended: bool,
    /// Packets and lost packets of each burst that no host disturbed.
    pub log: Vec<(u64, u64)>,
}

/// An end of the interval: length, and the number of bursts of that length that agree.
#[derive(Debug, Clone, Copy, Default)]
struct Bound {
    packets: u64,
    bursts: u32,
}

/// What arrived of a burst with loss.
#[derive(Debug, Clone, Copy)]
struct Arrivals {
    delivered: f64,
    span_ns: f64,
    /// Packets that the sender sent per nanosecond.
    sent_per_ns: f64,
}

/// A token bucket that drops what does not conform: packets, and packets per nanosecond.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TokenBucket {
    pub packets: f64,
    pub packets_per_ns: f64,
}

/// Bursts of one length, with loss and without.
#[derive(Debug, Clone, Copy, Default)]
struct Votes {
    packets: u64,
    whole: u32,
    lossy: u32,
}

/// The smallest buffer, packets: estimate, and interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BufferSize {
    pub packets: f64,
    pub interval: (f64, f64),
    /// Bursts that agree at the lower and at the upper end of the interval.
    pub bursts: (u32, u32),
}

impl BufferSearch {
    /// Begins with a burst that lost packets. `line_pps` is the rate of the sender's interface in packets per second, infinite if it is
    /// unknown.
    pub fn new(packets: u64, outcome: &StreamOutcome, line_pps: f64) -> Self {
        let mut search = Self {
            whole: Bound::default(),
            lossy: Bound { packets, bursts: 1 },
            longest: packets,
            votes: Votes::default(),
            arrivals: None,
            line_per_ns: line_pps / 1e9,
            drain: None,
            bursts: 1,
            disturbed: 0,
            ended: false,
            log: vec![(packets, outcome.lost)],
        };
        search.measure(packets, outcome);
        search
    }

    /// Returns the next burst, packets; `None` at the end.
    pub fn next_packets(&self) -> Option<u64> {
        if self.ended || self.bursts >= MAX_BURSTS {
            return None;
        }
        if self.votes.packets > 0 {
            return Some(self.votes.packets);
        }
        let (whole, lossy) = (self.whole.packets, self.lossy.packets);
        if lossy > MIN_PACKETS && lossy - whole > (whole / RESOLUTION).max(1) {
            // By halves down to the first burst that is delivered whole, then by bisection.
            return Some(if whole == 0 { lossy / 2 } else { whole.midpoint(lossy) });
        }
        if whole == 0 {
            return None;
        }
        [self.whole, self.lossy].into_iter().find(|bound| bound.bursts < AGREEING).map(|bound| bound.packets)
    }

    /// Takes the outcome of a burst.
    pub fn take(&mut self, packets: u64, outcome: &StreamOutcome) {
        self.bursts += 1;
        // A host that dropped packets made the burst shorter: losses in the network count nevertheless.
        let undecided = outcome.no_fail.is_some() || (outcome.no_pass.is_some() && outcome.lost == 0);
        if undecided {
            self.disturbed += 1;
            self.ended = self.disturbed > MAX_DISTURBED;
            return;
        }
        self.log.push((packets, outcome.lost));
        let is_lossy = outcome.lost > 0;
        let mut votes = if self.votes.packets == packets { self.votes } else { self.votes_at(packets) };
        votes.whole += u32::from(!is_lossy);
        votes.lossy += u32::from(is_lossy);
        if is_lossy {
            self.measure(packets, outcome);
        }
        let is_overflow = outcome.lost as f64 >= OVERFLOW_SHARE * packets as f64;
        let needed = if is_overflow || !self.is_near(packets) { 1 } else { AGREEING };
        if votes.lossy >= needed && votes.lossy > votes.whole {
            self.votes = Votes::default();
            self.set_lossy(packets, votes.lossy);
        } else if votes.whole >= needed && votes.whole > votes.lossy {
            self.votes = Votes::default();
            self.set_whole(packets, votes.whole);
        } else {
            self.votes = votes;
        }
    }

    /// Returns the size: a burst of `n` packets fills the buffer with `n × (1 − rate of the section / rate of the burst)`.
    pub fn size(&self) -> Option<BufferSize> {
        let confirmed = self.whole.bursts >= AGREEING && self.lossy.bursts >= AGREEING;
        let bucket = self.token_bucket().zip(self.arrivals);
        let drain = bucket.map(|(bucket, (longest, _))| bucket.packets_per_ns / longest.sent_per_ns).or(self.drain);
        let drain = drain.filter(|_| confirmed && self.whole.packets > 0 && !self.ended)?;
        let of = |packets: u64| packets as f64 * (1.0 - drain);
        let interval = (of(self.whole.packets), of(self.lossy.packets));
        let bursts = (self.whole.bursts, self.lossy.bursts);
        Some(BufferSize { packets: f64::midpoint(interval.0, interval.1), interval, bursts })
    }

    /// Returns the rate of the link or the token bucket that limits the section, packets per nanosecond.
    pub fn packets_per_ns(&self) -> Option<f64> {
        let (longest, _) = self.arrivals?;
        let bucket = self.token_bucket().map(|bucket| bucket.packets_per_ns);
        bucket.or_else(|| Some(self.drain? * longest.sent_per_ns))
    }

    /// Returns the token bucket that limits the section; `None` if a queue does, or if it is unknown.
    ///
    /// Of a burst with loss, a queue delivers `rate × span`, because its packets arrive one after the other at the rate of the link.
    /// A token bucket delivers `bucket + rate × span`: the first packets arrive as fast as they were sent. Two lengths give both.
    pub fn token_bucket(&self) -> Option<TokenBucket> {
        let (longest, shortest) = self.arrivals?;
        if longest.span_ns < FIT_RATIO * shortest.span_ns {
            return None;
        }
        let packets_per_ns = (longest.delivered - shortest.delivered) / (longest.span_ns - shortest.span_ns);
        let packets = shortest.delivered - packets_per_ns * shortest.span_ns;
        let is_bucket = packets > BUCKET_SHARE * shortest.delivered && packets_per_ns > 0.0;
        is_bucket.then_some(TokenBucket { packets, packets_per_ns })
    }

    /// Whether one burst of this length does not decide: the interval is narrow, or its end is being repeated.
    fn is_near(&self, packets: u64) -> bool {
        let (whole, lossy) = (self.whole.packets, self.lossy.packets);
        packets == whole || packets == lossy || (whole > 0 && lossy - whole <= whole / 2)
    }

    /// Returns the votes with which a length begins: those of an end of the interval that is repeated.
    fn votes_at(&self, packets: u64) -> Votes {
        Votes {
            packets,
            whole: if packets == self.whole.packets { self.whole.bursts } else { 0 },
            lossy: if packets == self.lossy.packets { self.lossy.bursts } else { 0 },
        }
    }

    fn set_lossy(&mut self, packets: u64, bursts: u32) {
        self.lossy = Bound { packets, bursts };
        if packets <= self.whole.packets {
            // Most bursts of the length that arrived whole lose packets: the limit is below it.
            self.whole = Bound::default();
        }
    }

    fn set_whole(&mut self, packets: u64, bursts: u32) {
        self.whole = Bound { packets, bursts };
        if packets >= self.lossy.packets {
            // The loss at that length was not an overflow: the limit is above it.
            self.lossy = Bound { packets: self.longest, bursts: 1 };
            self.ended = packets >= self.longest;
        }
    }

    /// Measures the rates of a burst with loss: the section's queue does not empty before its end.
    fn measure(&mut self, packets: u64, outcome: &StreamOutcome) {
        let delivered = outcome.sent.saturating_sub(outcome.lost + outcome.host_dropped);
        let (Some(send_ns), Some(receive_ns)) = (outcome.send_span_ns, outcome.receive_span_ns) else { return };
        let needed = if receive_ns >= MIN_SPAN_NS { MIN_DELIVERED } else { MIN_PACKETS };
        if packets < MIN_PACKETS || delivered < needed || send_ns == 0 || receive_ns == 0 {
            return;
        }
        let sent_per_ns = ((outcome.sent - 1) as f64 / send_ns as f64).min(self.line_per_ns);
        let arrivals = Arrivals { delivered: (delivered - 1) as f64, span_ns: receive_ns as f64, sent_per_ns };
        let (longest, shortest) = self.arrivals.get_or_insert((arrivals, arrivals));
        if arrivals.span_ns > longest.span_ns {
            *longest = arrivals;
        }
        if arrivals.span_ns < shortest.span_ns {
            *shortest = arrivals;
        }
        let drain = arrivals.delivered / arrivals.span_ns / sent_per_ns;
        if drain < 1.0 {
            self.drain = Some(drain);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends bursts through a buffer of `limit` packets before a link at half their rate; `extra` is the loss of each
    /// burst that has another cause.
    fn search(limit: u64, mut extra: impl FnMut(u32) -> u64) -> (BufferSearch, u32) {
        let outcome = |packets: u64, extra: u64| {
            let lost = (packets / 2).saturating_sub(limit) + extra;
            StreamOutcome {
                sent: packets,
                lost,
                send_span_ns: Some((packets - 1) * 1000),
                receive_span_ns: Some((packets - lost - 1) * 2000),
                ..StreamOutcome::default()
            }
        };
        let mut search = BufferSearch::new(8192, &outcome(8192, 0), f64::INFINITY);
        let mut bursts = 0;
        while let Some(packets) = search.next_packets() {
            search.take(packets, &outcome(packets, extra(bursts)));
            bursts += 1;
        }
        (search, bursts)
    }

    #[test]
    fn bursts_leave_no_faster_than_the_interface() {
        // The program writes 10 packets per µs, the interface sends 1, the link behind the buffer half of that.
        let outcome = |packets: u64| {
            let lost = (packets / 2).saturating_sub(300);
            let receive_span_ns = Some((packets - lost - 1) * 2000);
            StreamOutcome {
                sent: packets,
                lost,
                send_span_ns: Some(packets * 100),
                receive_span_ns,
                ..StreamOutcome::default()
            }
        };
        let mut search = BufferSearch::new(8192, &outcome(8192), 1e6);
        while let Some(packets) = search.next_packets() {
            search.take(packets, &outcome(packets));
        }
        let size = search.size().expect("found");
        assert!((size.packets - 300.0).abs() < 25.0, "{size:?}");
    }

    #[test]
    fn a_queue_is_not_a_token_bucket() {
        assert_eq!(search(300, |_| 0).0.token_bucket(), None);
    }

    #[test]
    fn a_token_bucket_is_fitted_from_two_bursts() {
        // A bucket of 200 packets, refilled at a quarter of the rate of the bursts: 1 packet per µs.
        let outcome = |packets: u64| {
            let delivered = packets.min(200 + packets / 4);
            let span_ns = Some((packets - 1) * 1000);
            let lost = packets - delivered;
            StreamOutcome {
                sent: packets,
                lost,
                send_span_ns: span_ns,
                receive_span_ns: span_ns,
                ..StreamOutcome::default()
            }
        };
        let mut search = BufferSearch::new(8192, &outcome(8192), f64::INFINITY);
        while let Some(packets) = search.next_packets() {
            search.take(packets, &outcome(packets));
        }
        let bucket = search.token_bucket().expect("a token bucket");
        assert!((bucket.packets - 200.0).abs() < 5.0, "{bucket:?}");
        assert!((bucket.packets_per_ns * 1000.0 - 0.25).abs() < 0.01, "{bucket:?}");
        let size = search.size().expect("found");
        assert!((size.packets - 200.0).abs() < 10.0, "{size:?}");
    }

    #[test]
    fn both_ends_of_the_interval_are_repeated() {
        let (search, bursts) = search(300, |_| 0);
        let size = search.size().expect("found");
        assert!(size.interval.0 <= 300.0 && 300.0 <= size.interval.1 + 0.5, "{size:?}");
        assert!(size.bursts.0 >= 2 && size.bursts.1 >= 2, "{size:?}");
        assert!(bursts < 30, "{bursts}");
    }

    #[test]
    fn single_stray_losses_do_not_move_the_result() {
        for stray in 0..12 {
            let (search, _) = search(300, |burst| u64::from(burst == stray));
            let size = search.size().unwrap_or_else(|| panic!("stray loss in burst {stray}"));
            assert!((size.packets - 300.0).abs() < 25.0, "stray loss in burst {stray}: {size:?}");
        }
    }

    #[test]
    fn bursts_that_always_lose_have_no_size() {
        assert_eq!(search(300, |_| 1).0.size(), None);
    }
}
