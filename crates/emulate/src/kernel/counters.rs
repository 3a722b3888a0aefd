//! Conversion of queueing discipline counters to those of the certificate.

use landspeed_emulation::{DirectionCounters, DirectionPlan, HopCounters};
use landspeed_model::EmulateSecondDirection;
use landspeed_netlink::QdiscReading;
use landspeed_stats::LatencyHistogram;

use super::network::HopReading;
use super::tree::HopTree;
use crate::direction::DirectionOutcome;
use crate::seconds::SECOND_NS;

/// Minimum busy time (frames queued throughout) for judging a link's rate, nanoseconds.
const MIN_BUSY_NS: u64 = 100_000_000;
/// Indices among a link's counters.
const RX_PACKETS: usize = 0;
const RX_BYTES: usize = 2;

/// A 32-bit kernel counter extended to 64 bits; must be read before it wraps twice.
#[derive(Debug, Clone, Copy, Default)]
struct ExtendedCounter {
    last: u32,
    total: u64,
}

impl ExtendedCounter {
    fn take(&mut self, now: u32) -> u64 {
        self.total += u64::from(now.wrapping_sub(self.last));
        self.last = now;
        self.total
    }
}

/// Counters of one hop.
#[derive(Debug, Default)]
struct Hop {
    rate_bytes_per_s: u64,
    framing_bytes: u64,
    loses: bool,
    duplicates: bool,
    counters: HopCounters,
    /// Drops of the token bucket (including those of its queue), of the queue, and of netem.
    drops: [ExtendedCounter; 3],
    /// Drops that the path file does not ask for.
    unplanned: u64,
    reading: HopReading,
    read_ns: u64,
    /// Frames queued and in flight.
    inside: u64,
    /// Busy time of the current second, nanoseconds, and bytes with framing sent in it. Busy means that frames were
    /// queued throughout.
    busy: (u64, u64),
}

impl Hop {
    fn take(&mut self, now: &HopReading, now_ns: u64) {
        let interval_ns = now_ns - self.read_ns;
        let on_link = |reading: &QdiscReading| reading.bytes + reading.packets * self.framing_bytes;
        let could = (u128::from(self.rate_bytes_per_s) * u128::from(interval_ns) / 1_000_000_000) as u64;
        // The queue did not run empty if it was longer than what the link can send until the next reading.
        if self.read_ns > 0 && u64::from(self.reading.queue.backlog_bytes) > could {
            self.busy.0 += interval_ns;
            self.busy.1 += on_link(&now.shaper) - on_link(&self.reading.shaper);
        }
        let [shaper, queue, wire] = &mut self.drops;
        let shaper = shaper.take(now.shaper.drops);
        let queue = queue.take(now.queue.drops).min(shaper);
        let wire_drops = wire.take(now.wire.map_or(0, |wire| wire.drops));
        let detail = |names: &[&str]| {
            now.queue.details().filter(|(name, _)| names.contains(name)).map(|(_, value)| value).sum::<u64>()
        };
        let manages = now.queue.details().next().is_some();
        let full = if manages { detail(&["limit_drops", "memory_drops"]).min(queue) } else { queue };
        self.unplanned = shaper - queue + if self.loses { 0 } else { wire_drops };
        let counters = &mut self.counters;
        counters.arrived = now.shaper.packets + shaper + u64::from(now.shaper.queue_packets);
        counters.queue_full = full;
        counters.aqm = queue - full;
        counters.marked = detail(&["marked"]);
        counters.sent = now.shaper.packets;
        counters.sent_bytes = on_link(&now.shaper);
        counters.lost = if self.loses { wire_drops } else { 0 };
        if let (true, Some(wire)) = (self.duplicates, now.wire) {
            // netem does not count duplicates: they are the frames of netem in excess of those sent by the token bucket.
            let had = wire.packets + wire_drops + u64::from(wire.queue_packets);
            counters.duplicated = had.saturating_sub(now.shaper.packets);
        }
        counters.queue_bytes_max = counters.queue_bytes_max.max(now.queue.backlog_bytes.into());
        counters.queue_packets_max = counters.queue_packets_max.max(now.queue.queue_packets.into());
        if self.read_ns > 0 {
            counters.queue_byte_ns += u128::from(now.queue.backlog_bytes) * u128::from(interval_ns);
        }
        self.inside = u64::from(now.shaper.queue_packets) + now.wire.map_or(0, |wire| u64::from(wire.queue_packets));
        self.reading = *now;
        self.read_ns = now_ns;
    }
}

/// Counters of one direction.
#[derive(Debug)]
pub(crate) struct Counters {
    hops: Vec<Hop>,
    /// Frames dropped by the veth links.
    lost: u64,
    /// Frames and bytes received by the entry interface before the path was set up, and since.
    arrived_before: Option<(u64, u64)>,
    arrived: (u64, u64),
    unplanned_reported: u64,
    peak_bps: u64,
    before: Before,
}

/// Counters at the start of the current second.
#[derive(Debug, Clone, Copy, Default)]
struct Before {
    delivered_on_link: u64,
    dropped: u64,
    unhandled: u64,
    queue_byte_ns: u128,
}

impl Counters {
    pub(crate) fn new(trees: &[HopTree]) -> Self {
        let hop = |tree: &HopTree| Hop {
            rate_bytes_per_s: tree.shaper.rate_bytes_per_s,
            framing_bytes: tree.framing_bytes,
            loses: tree.loses(),
            duplicates: tree.duplicates(),
            ..Hop::default()
        };
        Self {
            hops: trees.iter().map(hop).collect(),
            lost: 0,
            arrived_before: None,
            arrived: (0, 0),
            unplanned_reported: 0,
            peak_bps: 0,
            before: Before::default(),
        }
    }

    /// Updates all hops with the counters read at `now_ns`.
    pub(crate) fn take(&mut self, readings: &[HopReading], now_ns: u64) {
        for (hop, reading) in self.hops.iter_mut().zip(readings) {
            hop.take(reading, now_ns);
        }
    }

    /// Updates the total of frames dropped by the veth links, and the counters of the entry interface; returns the
    /// number of new drops.
    pub(crate) fn take_links(&mut self, lost: u64, entrance: &[u64]) -> u64 {
        let of = |at: usize| entrance.get(at).copied().unwrap_or(0);
        let now = (of(RX_PACKETS), of(RX_BYTES));
        let before = *self.arrived_before.get_or_insert(now);
        self.arrived = (now.0.saturating_sub(before.0), now.1.saturating_sub(before.1));
        let new = lost.saturating_sub(self.lost);
        self.lost += new;
        new
    }

    /// Drops since the last call that the path file does not ask for.
    pub(crate) fn new_unplanned(&mut self) -> u64 {
        let now: u64 = self.hops.iter().map(|hop| hop.unplanned).sum();
        now - std::mem::replace(&mut self.unplanned_reported, now)
    }

    /// Bytes sent, and bytes that could have been sent, by the link that fell furthest below its rate in the
    /// current second.
    pub(crate) fn slowest(&mut self) -> Option<(u64, u64)> {
        let mut busy = Vec::new();
        for hop in &mut self.hops {
            let (busy_ns, sent) = std::mem::take(&mut hop.busy);
            let could = u128::from(hop.rate_bytes_per_s) * u128::from(busy_ns) / u128::from(SECOND_NS);
            if busy_ns >= MIN_BUSY_NS {
                busy.push((sent, could as u64));
            }
        }
        busy.into_iter().min_by(|a, b| super::share(*a).total_cmp(&super::share(*b)))
    }

    fn last(&self) -> QdiscReading {
        self.hops.last().map(|hop| *hop.reading.last()).unwrap_or_default()
    }

    fn inside(&self) -> u64 {
        self.hops.iter().map(|hop| hop.inside).sum()
    }

    fn dropped(&self) -> u64 {
        self.hops.iter().map(|hop| hop.counters.queue_full + hop.counters.aqm + hop.counters.lost).sum()
    }

    fn offered(&self) -> u64 {
        self.hops.first().map_or(0, |hop| hop.counters.arrived)
    }

    fn duplicated(&self) -> u64 {
        self.hops.iter().map(|hop| hop.counters.duplicated).sum()
    }

    /// Frames dropped for a reason that is not in the path file.
    fn unplanned(&self) -> u64 {
        self.lost + self.hops.iter().map(|hop| hop.unplanned).sum::<u64>()
    }

    /// Offered or duplicated frames that no counter has yet: those in transit between two veth links.
    fn missing(&self) -> u64 {
        let known = self.last().packets + self.dropped() + self.inside() + self.unplanned();
        (self.offered() + self.duplicated()).abs_diff(known)
    }

    /// Whether every offered frame is accounted for.
    pub(crate) fn is_balanced(&self) -> bool {
        self.missing() == 0
    }

    /// Ends the current second, of `length_ns`.
    pub(crate) fn conclude_second(&mut self, length_ns: u64) -> EmulateSecondDirection {
        let length = u128::from(length_ns.max(1));
        let last = self.last();
        let framing_bytes = self.hops.last().map_or(0, |hop| hop.framing_bytes);
        let now = Before {
            delivered_on_link: last.bytes + last.packets * framing_bytes,
            dropped: self.dropped(),
            unhandled: self.unplanned(),
            queue_byte_ns: self.hops.iter().map(|hop| hop.counters.queue_byte_ns).sum(),
        };
        let before = std::mem::replace(&mut self.before, now);
        let bytes = now.delivered_on_link - before.delivered_on_link;
        let rate_bps = (u128::from(bytes) * 8 * u128::from(SECOND_NS) / length) as u64;
        // Only whole seconds count for the peak rate; the last one may be shorter.
        if length_ns >= SECOND_NS {
            self.peak_bps = self.peak_bps.max(rate_bps);
        }
        EmulateSecondDirection {
            rate_bps,
            dropped_packets: now.dropped - before.dropped,
            unhandled_packets: now.unhandled - before.unhandled,
            queue_bytes: ((now.queue_byte_ns - before.queue_byte_ns) / length) as u64,
        }
    }

    /// Returns the final counters.
    pub(crate) fn finish(
        self,
        delays: LatencyHistogram,
        plan: &DirectionPlan,
        counts_reordered: bool,
    ) -> DirectionOutcome {
        let (offered, dropped, in_flight) = (self.offered(), self.dropped(), self.inside());
        let duplicated = self.duplicated();
        let (arrived, arrived_bytes) = self.arrived;
        let counters = DirectionCounters {
            offered,
            // Frames that arrived after the last reading are assumed to have the same mean length.
            offered_bytes: (u128::from(arrived_bytes) * u128::from(offered) / u128::from(arrived.max(1))) as u64,
            // Unhandled frames left the path but were not sent.
            delivered: (offered + duplicated).saturating_sub(dropped + in_flight),
            delivered_bytes: self.last().bytes,
            dropped,
            duplicated,
            reordered: 0,
            in_flight,
        };
        DirectionOutcome {
            counters,
            counts_reordered,
            unhandled: self.unplanned() + self.missing(),
            hops: self.hops.into_iter().map(|hop| hop.counters).collect(),
            delays,
            framing_bytes: plan.framing_bytes(),
            peak_bps: self.peak_bps,
            store_used_max: 0,
            store_capacity: 0,
        }
    }
}
