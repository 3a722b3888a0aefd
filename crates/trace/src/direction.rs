//! One direction of a TCP connection: the sender's data and the receiver's ACKs.

use landspeed_model::{TraceEventKind, TraceLimits};
use landspeed_wire::{FastHeader, Flags, TcpHeader};

use crate::row::Class;
use crate::rtt::{AckCause, RoundTrips, TimestampRoundTrips};
use crate::sequence::{anchor, unwrap};

mod document;
mod ecn;
mod order;
mod rare;
mod repeats;
mod window;

use ecn::Ecn;
use order::LastData;
pub use order::SendOrder;
use rare::{Event, RareState};
use window::Gap;

/// Maximum number of sequence holes kept per direction. Beyond it, the oldest counts as missing data.
const MAX_HOLES: usize = 1024;
/// Linux's minimum RTO (`TCP_RTO_MIN`) less the granularity of its timers, nanoseconds.
const MIN_TIMEOUT_NS: u64 = 190_000_000;
/// One in this many packets is sampled for the order of IP identifications.
const SAMPLE_INTERVAL: u64 = 8;
/// Number of duplicate ACKs that signals a loss (RFC 5681).
const DUPLICATE_ACK_THRESHOLD: u32 = 3;

/// A sequence hole at the tap.
#[derive(Debug, Clone, Copy)]
struct Hole {
    start: u64,
    end: u64,
    since_ns: u64,
    /// IP identification and timestamp of the segment that opened the hole.
    opened_by: SendOrder,
}

/// The properties of a segment at the tap that determine its class.
#[derive(Debug, Clone, Copy)]
pub struct SegmentInfo {
    /// Capture timestamp, nanoseconds since the Unix epoch.
    pub time_ns: u64,
    /// Frame length on the wire, bytes.
    pub wire: u32,
    /// Fields that show the order of sending.
    pub mark: SendOrder,
    /// Whether PSH is set: the segment is the last of the sender's queue.
    pub pushed: bool,
}

/// The position of a packet in the capture, and the state of its connection.
#[derive(Debug, Clone, Copy, Default)]
pub struct PacketContext {
    /// Number of the frame, from 1.
    pub frame: u64,
    /// Time since the start of the capture, nanoseconds.
    pub since_ns: u64,
    /// Time since the previous packet of the connection, nanoseconds.
    pub packet_gap_ns: u64,
    /// End-to-end RTT from the handshake, nanoseconds; 0 if unknown.
    pub round_trip_ns: u64,
    /// RTT between the tap and the sender of the packet, nanoseconds, if it is known.
    pub to_sender_ns: Option<u64>,
    /// Sequence or ACK number for events of this packet.
    pub sequence: u32,
}

/// State of one direction. The order of the fields is that of memory: fields that every packet needs share cache
/// lines of 64 bytes, and fields that few packets need follow. With many flows, fetching these lines dominates
/// the run time.
#[derive(Debug, Clone, Default)]
#[repr(C)]
pub struct FlowDirection {
    /// One past the highest sequence number seen; 0 before the first.
    next: u64,
    /// Highest cumulative ACK received; 0 before the first.
    acked: u64,
    /// Recovery point: recovery ends when this number is acknowledged.
    recovery: u64,
    data_packets: u64,
    /// Time of the latest payload, or of an ACK that covers new data, nanoseconds.
    last_progress_ns: u64,
    in_flight_max: u64,
    /// Maximum of `in_flight` less what is SACKed, bytes.
    unsacked_max: u64,
    /// Latest receive window announced in this direction, bytes; unscaled if the scale is unknown.
    window: Option<u32>,
    /// Window field of the latest segment; `None` before the first, and after a SYN or RST.
    window_field: Option<u16>,
    mss: Option<u16>,

    packets: u64,
    wire_bytes: u64,
    payload_bytes: u64,
    unique_bytes: u64,
    /// Timestamp of the latest segment of this direction, nanoseconds.
    last_ns: u64,
    /// State that few directions need, allocated on first use.
    rare: Option<Box<RareState>>,
    /// Largest payload of a segment, bytes.
    largest: u32,
    repeats_of_ack: u32,
    /// Whether the receiver reported out-of-order data since its cumulative ACK last advanced.
    hole_reported: bool,
    /// Effective window scale; `None` while it is unknown.
    scale: Option<u8>,
    /// Whether the last data segment had the flag PSH.
    pushed: bool,
    /// Whether the recovery began with an RTO.
    by_timeout: bool,
    timestamps: bool,
    /// Whether a window probe was sent in the current gap.
    probed: bool,
    /// Number of bursts since one ended in the middle of the sender's queue, that one included; 0 before the first.
    bursts_since_cut: u8,
    closed: bool,

    limits: TraceLimits,
    /// Time with nothing in flight that is not attributed yet.
    gap: Gap,

    /// Timestamp of the first payload, nanoseconds.
    first_data_ns: Option<u64>,
    last_data: Option<LastData>,
    pure_acks: u64,
    rtt: RoundTrips,
    /// Latest TSval of a data segment, and latest TSecr of an ACK.
    stamps: [Option<u32>; 2],
    timestamp_rtt: Option<Box<TimestampRoundTrips>>,

    advancing_acks: u64,
    stretch_acks: u64,
    ecn: Ecn,

    duplicate_acks: u64,
    /// End of a byte sent into a closed window, which counts if it is acknowledged; 0 without one.
    probe_end: u64,
    /// First sequence number seen.
    first_sequence: u64,
    /// Lowest sequence number seen.
    begin: u64,
    /// One past the highest SACKed sequence number.
    sacked: u64,
    /// One past the highest sequence number retransmitted in the current recovery.
    repeated: u64,
    /// Sampled order of IP identifications: how often they increase, and how often not.
    ascending: [u16; 2],
    events: Vec<Event>,
    missing_bytes: u64,
    out_of_order: u32,
    duplicates: u32,
    window_full: u32,
    probes: u32,
    dsacks: u32,
    zero_windows: u32,
    window_min: Option<u32>,
    window_max: Option<u32>,
    announced_scale: Option<u8>,
    sack_permitted: bool,
    fin_seen: bool,
    /// Lower bound of the peer's window scale, if that is unknown.
    peer_scale_min: u8,
}

/// An ACK from the opposite direction.
#[derive(Debug, Clone, Copy)]
pub struct AckInfo<'a> {
    /// Next byte expected, not unwrapped.
    pub acknowledgement: u32,
    /// SACK blocks; the first may be a DSACK.
    pub sack: &'a [(u32, u32)],
    /// Whether it is a pure ACK.
    pub bare: bool,
    /// Capture timestamp, nanoseconds.
    pub time_ns: u64,
    /// Whether the window differs from the previous one.
    pub window_changed: bool,
}

impl FlowDirection {
    /// Returns the number of packets.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Returns the payload, retransmits included, bytes.
    pub fn payload_bytes(&self) -> u64 {
        self.payload_bytes
    }

    /// Returns the payload, each byte once, bytes.
    pub fn unique_bytes(&self) -> u64 {
        self.unique_bytes
    }

    /// Counts the ECN bits of a packet.
    #[inline]
    pub fn count_ecn(&mut self, traffic_class: u8, flags: Flags, peer: &Self) {
        self.ecn.account(traffic_class);
        if flags.has(Flags(Flags::AE.0 | Flags::ECE.0 | Flags::CWR.0)) || self.ecn.is_accurate() {
            self.ecn.flags(flags, &peer.ecn);
        }
    }

    /// Begins the AccECN count after the handshake of this direction.
    pub fn begin_ecn_count(&mut self) {
        self.ecn.begin_count();
    }

    /// Sets the window scale assumed without a captured handshake.
    pub fn assume_scale(&mut self, scale: Option<u8>) {
        self.scale = scale;
    }

    /// Returns the number of retransmits.
    pub fn retransmits(&self) -> u64 {
        self.rare.as_ref().map_or(0, |rare| rare.retransmits.total())
    }

    /// Returns the goodput: new payload over the time from its first byte to its last byte or ACK, bits/s.
    pub fn goodput_bps(&self) -> Option<f64> {
        let span_ns = self.last_progress_ns.saturating_sub(self.first_data_ns?);
        (span_ns > 0).then(|| self.unique_bytes as f64 * 8e9 / span_ns as f64)
    }

    /// Returns the lowest RTT sample, nanoseconds.
    pub fn min_rtt_ns(&self) -> Option<u64> {
        (self.rtt.samples.count > 0).then_some(self.rtt.samples.min_ns)
    }

    /// Returns the median RTT, or the mean of few samples, nanoseconds.
    pub fn typical_rtt_ns(&self) -> Option<u64> {
        self.rtt.typical_ns()
    }

    /// Returns the data in flight at the tap, bytes.
    pub fn in_flight(&self) -> u64 {
        if self.acked == 0 { 0 } else { self.next.saturating_sub(self.acked) }
    }

    /// Returns how far a number is from the highest sequence number; 0 before the first.
    pub fn distance(&self, number: u32) -> u64 {
        if self.next == 0 { 0 } else { unwrap(number, self.next).abs_diff(self.next) }
    }

    /// Returns whether an ACK number lies within the sequence numbers seen; `true` before the first.
    pub fn has_sent(&self, number: u32) -> bool {
        self.next == 0 || (self.begin..=self.next).contains(&unwrap(number, self.next))
    }

    /// Reads a byte of each cache line that a segment needs, to prefetch it; the value is meaningless.
    pub fn prefetch(&self) -> u64 {
        self.next ^ self.packets ^ self.limits.sending_ns ^ self.pure_acks ^ self.rtt.prefetch() ^ self.stretch_acks
    }

    /// Returns a sequence number of this direction, unwrapped and relative to the first one seen; `None` before that.
    pub fn relative(&self, number: u32) -> Option<i64> {
        (self.next != 0).then(|| unwrap(number, self.next).wrapping_sub(self.first_sequence) as i64)
    }

    /// Accounts for a segment of this direction. Returns its class.
    pub fn account(
        &mut self,
        tcp: &TcpHeader,
        info: SegmentInfo,
        context: PacketContext,
        peer_window_closed: bool,
    ) -> Class {
        let moved_ns = self.last_progress_ns;
        self.packets += 1;
        self.wire_bytes += u64::from(info.wire);
        self.timestamps |= tcp.options.timestamps.is_some();
        self.closed |= tcp.flags.has(Flags::FIN) || tcp.flags.has(Flags::RST);
        self.fin_seen |= tcp.flags.has(Flags::FIN);
        if tcp.flags.has(Flags::SYN) {
            if self.next != 0 && unwrap(tcp.sequence, self.next) != self.begin {
                // Another SYN-ACK for the same SYN, or a segment left over from an earlier connection.
                self.next = 0;
            }
            self.mss = tcp.options.mss;
            self.announced_scale = tcp.options.window_scale;
            self.sack_permitted = tcp.options.sack_permitted;
        }
        let length =
            u64::from(tcp.payload) + u64::from(tcp.flags.has(Flags::SYN)) + u64::from(tcp.flags.has(Flags::FIN));
        if tcp.payload > 0 {
            self.data(tcp.payload, info.time_ns);
        } else if length == 0 && tcp.flags.has(Flags::ACK) {
            self.pure_acks += 1;
        }
        if tcp.flags.has(Flags::RST) {
            self.rare().resets += 1;
            self.event(TraceEventKind::Reset, context, None);
            if length == 0 {
                self.last_ns = info.time_ns;
                return Class::Bare;
            }
        }
        if length > 0 && self.has_gap() {
            self.settle_gap(tcp.payload);
        }
        let class = self.classify_segment(tcp, length, info, context, peer_window_closed);
        self.log_event(class, tcp, context, moved_ns, info.time_ns);
        self.last_ns = info.time_ns;
        class
    }

    /// Returns whether a plain segment has the next sequence number.
    #[inline]
    pub fn expects(&self, fast_header: &FastHeader<'_>) -> bool {
        self.next != 0 && fast_header.sequence == self.next as u32 && self.stays_open(fast_header.window)
    }

    /// Returns whether a data segment acknowledges nothing new.
    #[inline]
    pub fn acknowledges_nothing_new(&self, fast_header: &FastHeader<'_>) -> bool {
        let near = self.next.wrapping_sub(self.acked) < 1 << 31;
        near && self.acked != 0 && fast_header.acknowledgement == self.acked as u32 && fast_header.has_no_sack()
    }

    /// Fast path of [`account`](Self::account) for a plain segment with the next sequence number.
    #[inline(always)]
    pub fn account_expected(&mut self, fast_header: &FastHeader<'_>, info: SegmentInfo) {
        self.packets += 1;
        self.wire_bytes += u64::from(info.wire);
        self.ecn.account(fast_header.traffic_class);
        self.timestamps |= fast_header.timestamp.is_some();
        if fast_header.payload == 0 {
            self.pure_acks += 1;
        } else {
            if self.has_gap() {
                self.settle_gap(fast_header.payload);
            }
            self.data(fast_header.payload, info.time_ns);
            self.advance(self.next, self.next + u64::from(fast_header.payload), fast_header.payload, info);
        }
        self.last_ns = info.time_ns;
    }

    /// Counts payload, new or not.
    #[inline]
    fn data(&mut self, payload: u32, time_ns: u64) {
        self.payload_bytes += u64::from(payload);
        self.data_packets += 1;
        self.first_data_ns.get_or_insert(time_ns);
        self.last_progress_ns = self.last_progress_ns.max(time_ns);
    }

    /// Accounts for sequence numbers above the highest one.
    #[inline(always)]
    fn advance(&mut self, start: u64, end: u64, payload: u32, info: SegmentInfo) {
        self.next = end;
        self.unique_bytes += u64::from(payload);
        let in_flight = self.in_flight();
        self.in_flight_max = self.in_flight_max.max(in_flight);
        let sacked = self.rare.as_ref().map_or(0, |rare| rare.sacked_bytes());
        self.unsacked_max = self.unsacked_max.max(in_flight.saturating_sub(sacked));
        if payload > 0 {
            self.rtt.sent(end - u64::from(payload), end, info.time_ns, self.acked != 0);
        }
        if self.packets.is_multiple_of(SAMPLE_INTERVAL) {
            self.sample_order(info.mark);
        }
        self.last_data =
            Some(LastData { start, length: (end - start) as u32, mark: info.mark, time_ns: info.time_ns });
        self.pushed = info.pushed;
        self.largest = self.largest.max(payload);
    }

    /// Classifies a segment by its sequence numbers.
    fn classify_segment(
        &mut self,
        tcp: &TcpHeader,
        length: u64,
        info: SegmentInfo,
        context: PacketContext,
        peer_window_closed: bool,
    ) -> Class {
        if self.next == 0 {
            self.next = anchor(tcp.sequence);
            self.begin = self.next;
            self.first_sequence = self.next;
        }
        let start = unwrap(tcp.sequence, self.next);
        let end = start + length;
        if length == 0 {
            // Linux sends window probes and keep-alives without data, at one below the next expected sequence number.
            let probe = start + 1 == self.acked && start < self.next && tcp.flags.has(Flags::ACK);
            return if probe { self.probe(0) } else { Class::Bare };
        }
        if start >= self.next {
            if peer_window_closed && tcp.payload == 1 && start == self.next && start == self.acked {
                // Other stacks send one byte into a closed window until it is accepted.
                return self.probe(end);
            }
            if start > self.next {
                self.open_hole(start, info);
            }
            self.advance(start, end, tcp.payload, info);
            return Class::New;
        }
        if length == 1 && tcp.payload == 1 && start + 1 == self.next && self.acked > start {
            return self.probe(0);
        }
        self.classify_repeat(start, end, tcp, info, context)
    }

    #[cold]
    fn probe(&mut self, end: u64) -> Class {
        self.probes = self.probes.saturating_add(1);
        self.probe_end = end;
        self.probed = true;
        Class::Probe
    }

    #[cold]
    fn open_hole(&mut self, start: u64, info: SegmentInfo) {
        let hole = Hole { start: self.next, end: start, since_ns: info.time_ns, opened_by: info.mark };
        let holes = &mut self.rare().holes;
        let oldest = (holes.len() >= MAX_HOLES).then(|| holes.remove(0));
        holes.push(hole);
        self.missing_bytes += oldest.map_or(0, |oldest| oldest.end - oldest.start);
    }

    /// Accounts for an ACK of the receiver. `histograms_left` is the number of RTT histograms that may still be allocated.
    #[inline(always)]
    pub fn acknowledged(&mut self, by: AckInfo<'_>, mss: u64, histograms_left: &mut u32) -> AckEffect {
        let mut ack_effect = AckEffect::default();
        if self.next == 0 {
            // The data was sent before the capture began, or takes another path.
            return ack_effect;
        }
        let ack = unwrap(by.acknowledgement, self.next);
        let first_ack = self.acked == 0;
        let cause = AckCause { before: self.acked, fills_hole: self.hole_reported };
        if !by.sack.is_empty() {
            ack_effect.dsack = self.process_sack(by, ack, histograms_left);
        }
        if ack > self.acked {
            if ack > self.next {
                self.ack_beyond_highest(ack, by.time_ns);
            }
            ack_effect.reneged = self.has_sacked_ranges() && self.is_reneged(ack);
            if !first_ack {
                self.advancing_acks += 1;
                self.stretch_acks += u64::from(ack - self.acked > 2 * mss);
            }
            self.acked = ack;
            if self.first_data_ns.is_some() {
                self.last_progress_ns = self.last_progress_ns.max(by.time_ns);
            }
            self.repeats_of_ack = 0;
            self.hole_reported = false;
            ack_effect.rtt_ns =
                self.rtt.acked(ack, by.time_ns, cause, histograms_left).unwrap_or(AckEffect::NO_SAMPLE);
            if self.rare.is_some() {
                self.forget_holes(by.time_ns);
            }
            if self.acked >= self.recovery {
                self.by_timeout = false;
            }
        } else if ack == self.acked && by.bare && !by.window_changed && self.next > ack {
            self.repeats_of_ack += 1;
            self.hole_reported |= !ack_effect.dsack;
            ack_effect.duplicate = true;
        }
        if self.rare.as_ref().is_some_and(|rare| rare.unclassified_retransmits.is_some()) {
            self.reclassify_as_fast(by.time_ns);
        }
        ack_effect
    }

    /// Accounts for the TSval of a data segment.
    #[inline]
    pub fn stamp(&mut self, stamp: Option<u32>, time_ns: u64) {
        if stamp.is_some() && stamp != self.stamps[0] {
            self.stamps[0] = stamp;
            self.timestamp_rtt.get_or_insert_default().sent(stamp.unwrap_or(0), time_ns);
        }
    }

    /// Accounts for the TSecr of an ACK.
    #[inline]
    pub fn echo(&mut self, echo: Option<u32>, time_ns: u64, histograms_left: &mut u32) {
        if echo.is_some() && echo != self.stamps[1] {
            self.stamps[1] = echo;
            if let Some(timestamp_rtt) = &mut self.timestamp_rtt {
                timestamp_rtt.echoed(echo.unwrap_or(0), time_ns, histograms_left);
            }
        }
    }

    /// Handles an ACK above the highest sequence number: the data is recorded late, or missing.
    #[cold]
    fn ack_beyond_highest(&mut self, ack: u64, time_ns: u64) {
        if ack == self.probe_end {
            // The byte that probed the window was accepted.
            self.unique_bytes += ack - self.next;
        } else {
            let next = self.next;
            self.expect_late(next, ack, time_ns);
        }
        self.next = ack;
    }

    /// Accounts for SACK blocks. Returns whether the first is a DSACK (RFC 2883).
    #[inline]
    fn process_sack(&mut self, by: AckInfo<'_>, ack: u64, histograms_left: &mut u32) -> bool {
        let blocks = by.sack;
        let mut twice = false;
        for (number, &(from, to)) in blocks.iter().enumerate() {
            let (from, to) = (unwrap(from, self.next), unwrap(to, self.next));
            let inside_second = number == 0
                && blocks
                    .get(1)
                    .is_some_and(|&(low, high)| unwrap(low, self.next) <= from && to <= unwrap(high, self.next));
            if number == 0 && (to <= ack || inside_second) {
                twice = true;
                let retransmits = &mut self.rare().retransmits;
                retransmits.spurious = (retransmits.spurious + 1).min(retransmits.total());
            } else if to <= self.next {
                if to > self.sacked.max(ack)
                    && let Some(sample) = self.rtt.since(to, by.time_ns)
                {
                    self.rare().sack_rtt.record(sample, histograms_left);
                }
                self.sacked = self.sacked.max(to);
                if from > ack {
                    self.hole_reported = true;
                    self.add_sacked_range(from, to);
                }
            }
        }
        twice
    }

    /// Converts holes below the cumulative ACK to data recorded late: the receiver has it, although the tap did not
    /// see it.
    fn forget_holes(&mut self, time_ns: u64) {
        let acked = self.acked;
        let Some(rare) = &mut self.rare else { return };
        if rare.holes.first().is_none_or(|hole| hole.start >= acked) {
            return;
        }
        let mut holes = std::mem::take(&mut rare.holes);
        holes.retain_mut(|hole| {
            if hole.start < acked {
                self.expect_late(hole.start, hole.end.min(acked), time_ns);
            }
            hole.start = hole.start.max(acked);
            hole.start < hole.end
        });
        self.rare().holes = holes;
    }

    /// Counts an ACK sent in this direction.
    #[inline]
    pub fn count_ack(&mut self, ack_effect: AckEffect) {
        if ack_effect.duplicate {
            self.duplicate_acks += 1;
        }
        if ack_effect.dsack {
            self.dsacks = self.dsacks.saturating_add(1);
        }
        if ack_effect.reneged {
            self.rare().reneged += 1;
        }
    }
}

/// Result of an ACK: two machine words, which fit in registers.
#[derive(Debug, Clone, Copy)]
pub struct AckEffect {
    rtt_ns: u64,
    /// Whether it is a duplicate ACK.
    pub duplicate: bool,
    /// Whether it has a DSACK.
    pub dsack: bool,
    /// The receiver reneged: the ACK lacks data that was SACKed before.
    pub reneged: bool,
}

impl AckEffect {
    const NO_SAMPLE: u64 = u64::MAX;

    /// Returns its RTT sample, nanoseconds.
    pub fn rtt_ns(self) -> Option<u64> {
        (self.rtt_ns != Self::NO_SAMPLE).then_some(self.rtt_ns)
    }
}

impl Default for AckEffect {
    fn default() -> Self {
        Self { rtt_ns: Self::NO_SAMPLE, duplicate: false, dsack: false, reneged: false }
    }
}
