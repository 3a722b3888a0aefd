//! Segments with old sequence numbers: retransmitted, reordered or duplicated.

use landspeed_model::TraceEventKind;
use landspeed_wire::{Flags, TcpHeader};

use super::{
    DUPLICATE_ACK_THRESHOLD, FlowDirection, Hole, LastData, MAX_HOLES, MIN_TIMEOUT_NS, PacketContext, SegmentInfo,
    SendOrder,
};
use crate::row::Class;

/// Minimum idle time of a connection before an RTO, nanoseconds.
const MIN_PAUSE_NS: u64 = 1_000_000;
/// Maximum time between a packet without an IP identification and its copy, nanoseconds: a tail loss probe waits for two RTTs
/// and at least `TCP_TIMEOUT_MIN` (RFC 8985, section 7.2).
const MAX_COPY_NS: u64 = 1_000_000;
/// Granularity of Linux's RACK timer (`TCP_TIMEOUT_MIN`, two to three jiffies) at 100 Hz, nanoseconds.
const MAX_RACK_TIMER_NS: u64 = 30_000_000;
/// Age from which an IP identification does not show the order of two packets, nanoseconds.
const MAX_ID_AGE_NS: u64 = 1_000_000_000;
/// Maximum reordering in a capture with several queues, nanoseconds.
const MAX_REORDERING_NS: u64 = 100_000;

impl FlowDirection {
    /// Classifies a segment with old sequence numbers.
    pub(super) fn classify_repeat(
        &mut self,
        start: u64,
        end: u64,
        tcp: &TcpHeader,
        info: SegmentInfo,
        context: PacketContext,
    ) -> Class {
        let payload = u64::from(tcp.payload);
        // The FIN consumes a sequence number without payload; a retransmit may add it.
        let data_end = end - u64::from(tcp.flags.has(Flags::FIN));
        let (mut new, hole) = self.fill(start, end);
        // The capture began in the middle of the connection: numbers below its first were not seen before either.
        let earlier = start < self.begin;
        if earlier {
            new += end.min(self.begin) - start;
            let between = Hole { start: end, end: self.begin, since_ns: 0, opened_by: SendOrder::default() };
            let holes = &mut self.rare().holes;
            if between.start < between.end && holes.len() < MAX_HOLES {
                // The gap in between was not seen either, and no segment here overtook it.
                holes.insert(0, between);
            }
            self.begin = start;
        }
        // Numbers above the highest one are new in any case.
        if end > self.next {
            new += data_end.max(self.next) - self.next;
            self.next = end;
        }
        let [late, late_fin] =
            [(start, data_end), (data_end, end)].map(|(from, to)| self.take_late(from, to, info.time_ns));
        new += late.map_or(0, |(late, _)| late);
        let late = late.or(late_fin);
        // So does the SYN.
        self.unique_bytes += new.min(payload);
        if let Some((_, true)) = late {
            // Recorded after its ACK, as in captures with several queues.
            return Class::New;
        }
        if let Some(hole) = hole
            && self.is_reordered(&hole, info, context.to_sender_ns)
        {
            self.out_of_order = self.out_of_order.saturating_add(1);
            let next_hole = self.rare.as_ref().and_then(|rare| rare.holes.iter().find(|hole| hole.start >= end));
            let contiguous_to = next_hole.map_or(self.next, |hole| hole.start);
            self.rtt.filled(start, contiguous_to, info.time_ns);
            return Class::OutOfOrder;
        }
        if self.is_network_duplicate(start, end, info) || hole.is_none() && !earlier && self.is_older(info) {
            self.duplicates = self.duplicates.saturating_add(1);
            return Class::Copy;
        }
        self.rtt.ambiguous(start);
        self.rare().retransmits.bytes += payload;
        let unseen = hole.is_some() || earlier || late.is_some();
        let class = self.count(start, end, unseen, info.time_ns, context);
        self.recovery = self.recovery.max(self.next);
        self.repeated = self.repeated.max(end);
        self.pushed = info.pushed;
        self.last_data =
            Some(LastData { start, length: (end - start) as u32, mark: info.mark, time_ns: info.time_ns });
        class
    }

    /// Accounts for a packet that the network duplicated.
    pub fn duplicate(&mut self, tcp: &TcpHeader, wire: u32, context: PacketContext) {
        self.packets += 1;
        self.wire_bytes += u64::from(wire);
        if tcp.payload == 0 && !tcp.flags.has(Flags(Flags::SYN.0 | Flags::FIN.0)) {
            self.pure_acks += 1;
            return;
        }
        self.payload_bytes += u64::from(tcp.payload);
        self.data_packets += u64::from(tcp.payload > 0);
        self.duplicates = self.duplicates.saturating_add(1);
        self.event(TraceEventKind::Duplicate, context, None);
    }

    /// Fills holes with a range. Returns the bytes filled, and the first hole.
    pub(super) fn fill(&mut self, start: u64, end: u64) -> (u64, Option<Hole>) {
        let Some(holes) = self.rare.as_mut().map(|rare| &mut rare.holes) else { return (0, None) };
        let (mut new, mut first) = (0, None);
        let mut at = 0;
        while at < holes.len() {
            let hole = holes[at];
            let (from, to) = (hole.start.max(start), hole.end.min(end));
            if from >= to {
                at += 1;
                continue;
            }
            new += to - from;
            first = first.or(Some(hole));
            let remaining = [(hole.start, from), (to, hole.end)];
            let mut remaining =
                remaining.into_iter().filter(|(from, to)| from < to).map(|(start, end)| Hole { start, end, ..hole });
            match (remaining.next(), remaining.next()) {
                (None, _) => {
                    holes.remove(at);
                }
                (Some(left), None) => {
                    holes[at] = left;
                    at += 1;
                }
                (Some(left), Some(right)) => {
                    holes[at] = left;
                    holes.insert(at + 1, right);
                    at += 2;
                }
            }
        }
        (new, first)
    }

    /// Returns whether a segment that fills a hole was reordered: sent before the one that opened the hole.
    fn is_reordered(&self, hole: &Hole, info: SegmentInfo, to_sender_ns: Option<u64>) -> bool {
        let waited = info.time_ns.saturating_sub(hole.since_ns);
        info.mark.younger_than(waited, MAX_ID_AGE_NS).before(hole.opened_by).unwrap_or_else(|| {
            // A retransmit follows the hole after the RTT between tap and sender at the earliest. Where that is unknown, a
            // segment seen before any duplicate ACK or SACK is taken as not requested.
            let asked = self.repeats_of_ack > 0 || self.sacked > hole.start;
            waited < MIN_TIMEOUT_NS && (!asked || to_sender_ns.is_some_and(|to_sender_ns| waited < to_sender_ns))
        })
    }

    /// Samples whether IP identifications increase.
    #[cold]
    pub(super) fn sample_order(&mut self, mark: SendOrder) {
        let Some(LastData { mark: last, .. }) = self.last_data else { return };
        if mark.identification != 0 && last.identification != 0 {
            let slot = &mut self.ascending[usize::from(mark.before(last) != Some(false))];
            *slot = slot.saturating_add(1);
        }
    }

    /// Returns whether a segment is a packet seen before, by an IP identification older than those of later packets:
    /// duplicated by the network, or delivered after its retransmit.
    fn is_older(&self, info: SegmentInfo) -> bool {
        let [ascending, others] = self.ascending;
        // A tap that captures out of order may record a retransmit after segments that were sent later.
        let in_order = u64::from(self.out_of_order) * 20 <= self.data_packets;
        let known = info.mark.identification != 0 && ascending >= 4 && others <= ascending / 16 && in_order;
        known
            && self.last_data.is_some_and(|LastData { mark: last, time_ns, .. }| {
                let mark = info.mark.younger_than(info.time_ns.saturating_sub(time_ns), MIN_TIMEOUT_NS);
                last.identification != 0 && mark.identification != 0 && mark.before(last) == Some(true)
            })
    }

    /// Returns whether a segment is the previous packet again, duplicated in the network.
    fn is_network_duplicate(&self, start: u64, end: u64, info: SegmentInfo) -> bool {
        self.last_data.is_some_and(|LastData { start: seen, length, mark, time_ns }| {
            let same = seen == start && u64::from(length) == end - start;
            let waited_ns = info.time_ns.saturating_sub(time_ns);
            let alike = mark.identification == info.mark.identification && mark.timestamp == info.mark.timestamp;
            let is_copy = if mark.identification != 0 {
                // A sender may use an identification again, or always the same; a retransmit comes later.
                waited_ns < MIN_TIMEOUT_NS
            } else {
                // IPv6 has none. No timer is that short, and a tail loss probe has a new TSval.
                waited_ns <= MAX_COPY_NS && mark.timestamp.is_some() && !self.is_requested(start)
            };
            same && alike && is_copy
        })
    }

    /// Counts a retransmit by its class.
    fn count(&mut self, start: u64, end: u64, unseen: bool, time_ns: u64, context: PacketContext) -> Class {
        if self.acked >= self.recovery {
            self.repeated = 0;
        }
        let class = self.classify(start, end, unseen, time_ns, context);
        let unclassified_retransmits = self.rare.as_ref().and_then(|rare| rare.unclassified_retransmits);
        let together = unclassified_retransmits
            .filter(|&(_, since_ns, _)| time_ns.saturating_sub(since_ns) <= MAX_REORDERING_NS);
        let (first, _, before) = together.unwrap_or((start, 0, 0));
        if class == Class::Unclassified {
            self.rare().unclassified_retransmits = Some((first.min(start), time_ns, before + 1));
        }
        match class {
            Class::Timeout => self.by_timeout = true,
            Class::Fast => self.by_timeout = false,
            _ => {}
        }
        let kind = &mut self.rare().retransmits;
        *match class {
            Class::LostBeforeTap => &mut kind.lost_before_tap,
            Class::Timeout | Class::AfterTimeout => &mut kind.timeout,
            Class::Fast => &mut kind.fast,
            Class::Tail => &mut kind.tail,
            _ => &mut kind.unclassified,
        } += 1;
        class
    }

    fn classify(&self, start: u64, end: u64, unseen: bool, time_ns: u64, context: PacketContext) -> Class {
        let repairing = self.acked < self.recovery;
        let asked = self.is_requested(start);
        let silent = time_ns.saturating_sub(self.last_ns) >= MIN_TIMEOUT_NS;
        let first = start <= self.acked.max(1);
        // An RTO is at least one RTT; where the minimum RTO is short, it is not much longer.
        let base_ns = self.rtt.typical_ns().unwrap_or(0).max(context.round_trip_ns);
        let paused =
            base_ns > 0 && context.packet_gap_ns > base_ns + base_ns / 5 && context.packet_gap_ns >= MIN_PAUSE_NS;
        let repeated = repairing && end <= self.repeated;
        // RACK retransmits a lost retransmit when a later segment is SACKed, after a reordering window of at most one RTT
        // and the granularity of timers (RFC 8985). An RTO expires without an ACK.
        let reaction_ns = context.to_sender_ns.map_or(MIN_TIMEOUT_NS, |ns| ns + base_ns + MAX_RACK_TIMER_NS);
        let answers_ack = asked && context.packet_gap_ns <= reaction_ns;
        if unseen {
            Class::LostBeforeTap
        } else if first && !answers_ack && (silent || paused && (repeated || !asked && end < self.next)) {
            Class::Timeout
        } else if asked && !(repairing && self.by_timeout) {
            Class::Fast
        } else if repairing && self.by_timeout {
            Class::AfterTimeout
        } else if end == self.next && !repairing {
            Class::Tail
        } else if repairing && (first || self.repeats_of_ack > 0) {
            // NewReno without SACK (RFC 6582): each partial ACK triggers the next retransmit.
            Class::Fast
        } else if silent {
            Class::Timeout
        } else {
            Class::Unclassified
        }
    }

    /// Returns whether SACK blocks or duplicate ACKs request a sequence number.
    fn is_requested(&self, start: u64) -> bool {
        start < self.sacked || (self.repeats_of_ack >= DUPLICATE_ACK_THRESHOLD && start <= self.acked)
    }

    /// Reclassifies an unclassified retransmit as fast if the ACK that requested it is recorded shortly after it.
    #[cold]
    pub(super) fn reclassify_as_fast(&mut self, time_ns: u64) {
        let Some((start, since_ns, count)) = self.rare().unclassified_retransmits else { return };
        let asked = self.is_requested(start);
        let rare = self.rare();
        if time_ns.saturating_sub(since_ns) > MAX_REORDERING_NS {
            rare.unclassified_retransmits = None;
        } else if asked && rare.retransmits.unclassified >= count {
            rare.retransmits.unclassified -= count;
            rare.retransmits.fast += count;
            rare.unclassified_retransmits = None;
            self.by_timeout = false;
        }
    }

    /// Logs an event for a segment of a special class.
    #[inline]
    pub(super) fn log_event(
        &mut self,
        class: Class,
        tcp: &TcpHeader,
        context: PacketContext,
        moved_ns: u64,
        time_ns: u64,
    ) {
        let kind = match class {
            Class::New if tcp.flags.has(Flags::SYN) => TraceEventKind::Syn,
            Class::New if tcp.flags.has(Flags::FIN) => TraceEventKind::Fin,
            Class::Bare | Class::New => return,
            Class::Fast => TraceEventKind::Fast,
            Class::Timeout | Class::AfterTimeout => TraceEventKind::Timeout,
            Class::Tail => TraceEventKind::Tail,
            Class::LostBeforeTap => TraceEventKind::LostBeforeTap,
            Class::Unclassified => TraceEventKind::Unclassified,
            Class::OutOfOrder => TraceEventKind::OutOfOrder,
            Class::Copy => TraceEventKind::Duplicate,
            Class::Probe => TraceEventKind::Probe,
        };
        // The RTO timer starts at the latest new data or its ACK, or at the previous retransmit.
        let waited_ns = time_ns.saturating_sub(moved_ns.max(self.last_ns));
        let expired = class == Class::Timeout && waited_ns.min(context.packet_gap_ns) >= MIN_PAUSE_NS;
        let rto_ns = expired.then_some(waited_ns);
        if let Some(rto_ns) = rto_ns {
            let rto = &mut self.rare().rto;
            rto.min_ns = if rto.count == 0 { rto_ns } else { rto.min_ns.min(rto_ns) };
            rto.max_ns = rto.max_ns.max(rto_ns);
            rto.count += 1;
        }
        self.event(kind, context, rto_ns);
    }
}
