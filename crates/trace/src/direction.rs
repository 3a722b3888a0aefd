//! What one end of a TCP connection sent, and what the other end made of it.

use landspeed_model::{Retransmits, TraceLimits};
use landspeed_wire::{Brief, Flags, TcpHeader};

use crate::row::Class;
use crate::rtt::RoundTrips;
use crate::sequence::{anchor, unwrap};

mod document;

/// Holes remembered in a direction. More at once are merged, which is counted as missing data, never forgotten.
const MOST_HOLES: usize = 1024;
/// Least retransmission timeout of Linux (`TCP_RTO_MIN`), less the grain of its timers, nanoseconds.
const LEAST_TIMEOUT_NS: u64 = 190_000_000;
/// Duplicate acknowledgements that mean a loss (RFC 5681).
const DUPLICATES_MEAN_LOSS: u32 = 3;

/// Numbers that were skipped at the tap.
#[derive(Debug, Clone, Copy)]
struct Hole {
    start: u64,
    end: u64,
    since_ns: u64,
    /// IP identification and timestamp of the segment that went past.
    overtaker: Mark,
}

/// What tells which of two packets was sent first.
#[derive(Debug, Clone, Copy, Default)]
pub struct Mark {
    /// IP identification; 0 says nothing.
    pub identification: u16,
    /// TSval.
    pub timestamp: Option<u32>,
}

impl Mark {
    /// Whether this was certainly sent before (`Some(true)`) or after the other.
    fn before(self, other: Self) -> Option<bool> {
        let (mine, theirs) = (self.identification, other.identification);
        if mine != 0 && theirs != 0 && mine != theirs {
            return Some((mine.wrapping_sub(theirs) as i16) < 0);
        }
        let (mine, theirs) = self.timestamp.zip(other.timestamp)?;
        (mine != theirs).then(|| (mine.wrapping_sub(theirs) as i32) < 0)
    }
}

/// A segment that passed: what it needs to be judged by.
#[derive(Debug, Clone, Copy)]
pub struct Passing {
    /// When, nanoseconds.
    pub time_ns: u64,
    /// Bytes of its frame.
    pub wire: u32,
    /// Its mark.
    pub mark: Mark,
}

/// The state of one direction.
#[derive(Debug, Clone, Default)]
pub struct Direction {
    packets: u64,
    wire_bytes: u64,
    payload_bytes: u64,
    unique_bytes: u64,
    data_packets: u64,
    pure_acks: u64,
    /// First payload, nanoseconds.
    first_data_ns: Option<u64>,
    /// Latest payload, or acknowledgement of some, nanoseconds.
    last_moved_ns: u64,
    /// The first number seen.
    origin: u64,
    /// Lowest number seen.
    begin: u64,
    /// One past the highest number seen; 0 before the first.
    next: u64,
    /// Highest number acknowledged by the other end; 0 before the first.
    acked: u64,
    /// One past the highest number selectively acknowledged.
    sacked: u64,
    /// When a segment of this direction last passed.
    last_ns: u64,
    last_data: Option<(u64, u32, Mark)>,
    holes: Vec<Hole>,
    /// Until this is acknowledged a loss is being repaired.
    recovery: u64,
    /// Whether that repair began with a timeout.
    by_timeout: bool,
    rtt: RoundTrips,
    repeats_of_ack: u32,
    retransmits: Retransmits,
    out_of_order: u32,
    duplicates: u32,
    missing_bytes: u64,
    probes: u32,
    advancing_acks: u64,
    stretch_acks: u64,
    in_flight_max: u64,
    limits: TraceLimits,
    /// Of this end as a receiver.
    window: Option<u32>,
    /// The field it was last announced by in a segment that is no SYN and no reset; none before, and after one of those.
    window_field: Option<u16>,
    window_min: Option<u32>,
    window_max: Option<u32>,
    zero_windows: u32,
    duplicate_acks: u64,
    dsacks: u32,
    mss: Option<u16>,
    /// The scale in force; `None` while it is not known.
    scale: Option<u8>,
    announced_scale: Option<u8>,
    sack_permitted: bool,
    timestamps: bool,
    closed: bool,
}

/// What an acknowledgement says of the other direction.
#[derive(Debug, Clone, Copy)]
pub struct Acknowledging<'a> {
    /// The number.
    pub acknowledgement: u32,
    /// Selective ones.
    pub sack: &'a [(u32, u32)],
    /// Whether it brings nothing else: no data, no handshake.
    pub bare: bool,
    /// When.
    pub time_ns: u64,
    /// Whether the window moved against the one before.
    pub window_moved: bool,
}

impl Direction {
    /// Whether anything was seen of it.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Payload, copies included.
    pub fn payload_bytes(&self) -> u64 {
        self.payload_bytes
    }

    /// Packets sent again.
    pub fn retransmits(&self) -> u64 {
        self.retransmits.total()
    }

    /// Payload seen for the first time over the time from its first byte to its last one or its acknowledgement, bits/s.
    pub fn goodput_bps(&self) -> Option<f64> {
        let span_ns = self.last_moved_ns.saturating_sub(self.first_data_ns?);
        (span_ns > 0).then(|| self.unique_bytes as f64 * 8e9 / span_ns as f64)
    }

    /// Its typical round trip, nanoseconds.
    pub fn typical_rtt_ns(&self) -> Option<u64> {
        self.rtt.typical_ns()
    }

    /// Data in flight as the tap sees it, bytes.
    pub fn in_flight(&self) -> u64 {
        if self.acked == 0 { 0 } else { self.next.saturating_sub(self.acked) }
    }

    /// Reads a little of everything that a segment needs; the value means nothing.
    pub fn touch(&self) -> u64 {
        self.packets ^ self.next ^ self.limits.sending_ns ^ self.rtt.count ^ self.in_flight_max
    }

    /// A number of this direction from the first one seen on, unwrapped; `None` before that.
    pub fn relative(&self, number: u32) -> Option<i64> {
        (self.next != 0).then(|| unwrap(number, self.next).wrapping_sub(self.origin) as i64)
    }

    /// A segment of this direction passes. Returns what it turned out to be.
    pub fn pass(&mut self, tcp: &TcpHeader, passing: Passing) -> Class {
        self.packets += 1;
        self.wire_bytes += u64::from(passing.wire);
        self.timestamps |= tcp.options.timestamps.is_some();
        self.closed |= tcp.flags.has(Flags::FIN) || tcp.flags.has(Flags::RST);
        if tcp.flags.has(Flags::SYN) {
            self.mss = tcp.options.mss;
            self.announced_scale = tcp.options.window_scale;
            self.sack_permitted = tcp.options.sack_permitted;
        }
        let length =
            u64::from(tcp.payload) + u64::from(tcp.flags.has(Flags::SYN)) + u64::from(tcp.flags.has(Flags::FIN));
        if tcp.payload > 0 {
            self.data(tcp.payload, passing.time_ns);
        } else if length == 0 && tcp.flags.has(Flags::ACK) {
            self.pure_acks += 1;
        }
        if tcp.flags.has(Flags::RST) && length == 0 {
            self.last_ns = passing.time_ns;
            return Class::Bare;
        }
        let class = self.place(tcp, length, passing);
        self.last_ns = passing.time_ns;
        class
    }

    /// Whether a plain segment brings the number that comes next, or none.
    #[inline]
    pub fn expects(&self, brief: &Brief<'_>) -> bool {
        self.next != 0 && (brief.payload == 0 || brief.sequence == self.next as u32)
    }

    /// Whether a segment with data acknowledges what was acknowledged before, and nothing else.
    #[inline]
    pub fn is_told_nothing_by(&self, brief: &Brief<'_>) -> bool {
        let near = self.next.wrapping_sub(self.acked) < 1 << 31;
        near && self.acked != 0 && brief.acknowledgement == self.acked as u32 && brief.has_no_sack()
    }

    /// A plain segment passes that was expected: what [`pass`](Self::pass) comes to for it.
    #[inline(always)]
    pub fn pass_expected(&mut self, brief: &Brief<'_>, passing: Passing) {
        self.packets += 1;
        self.wire_bytes += u64::from(passing.wire);
        self.timestamps |= brief.timestamp.is_some();
        if brief.payload == 0 {
            self.pure_acks += 1;
        } else {
            self.data(brief.payload, passing.time_ns);
            self.advance(self.next, self.next + u64::from(brief.payload), brief.payload, passing);
        }
        self.last_ns = passing.time_ns;
    }

    /// Counts payload, whether it is new or not.
    #[inline]
    fn data(&mut self, payload: u32, time_ns: u64) {
        self.payload_bytes += u64::from(payload);
        self.data_packets += 1;
        self.first_data_ns.get_or_insert(time_ns);
        self.last_moved_ns = self.last_moved_ns.max(time_ns);
    }

    /// Numbers that go on from the highest one.
    #[inline]
    fn advance(&mut self, start: u64, end: u64, payload: u32, passing: Passing) {
        self.next = end;
        self.unique_bytes += u64::from(payload);
        let in_flight = self.in_flight();
        self.in_flight_max = self.in_flight_max.max(in_flight);
        if payload > 0 {
            self.rtt.sent(end, passing.time_ns, in_flight);
        }
        self.last_data = Some((start, (end - start) as u32, passing.mark));
    }

    /// Finds out what the numbers of a segment mean.
    fn place(&mut self, tcp: &TcpHeader, length: u64, passing: Passing) -> Class {
        if self.next == 0 {
            self.next = anchor(tcp.sequence);
            self.begin = self.next;
            self.origin = self.next;
        }
        let start = unwrap(tcp.sequence, self.next);
        let end = start + length;
        if length == 0 {
            return Class::Bare;
        }
        if start >= self.next {
            if start > self.next {
                self.skip(start, passing);
            }
            self.advance(start, end, tcp.payload, passing);
            return Class::New;
        }
        if length <= 1 && start + 1 == self.next && self.acked >= start {
            self.probes = self.probes.saturating_add(1);
            return Class::Probe;
        }
        self.again(start, end, u64::from(tcp.payload), passing)
    }

    fn skip(&mut self, start: u64, passing: Passing) {
        if self.holes.len() >= MOST_HOLES {
            let oldest = self.holes.remove(0);
            self.missing_bytes += oldest.end - oldest.start;
        }
        self.holes.push(Hole { start: self.next, end: start, since_ns: passing.time_ns, overtaker: passing.mark });
    }

    /// A segment with numbers from before: sent again, late, or copied on the way.
    fn again(&mut self, start: u64, end: u64, payload: u64, passing: Passing) -> Class {
        let (mut new, hole) = self.fill(start, end);
        // The capture began in the middle: numbers from before its first were never seen either.
        let earlier = start < self.begin;
        if earlier {
            new += end.min(self.begin) - start;
            if end < self.begin && self.holes.len() < MOST_HOLES {
                // What lies between was not seen either, and nothing here went past it.
                self.holes.insert(0, Hole { start: end, end: self.begin, since_ns: 0, overtaker: Mark::default() });
            }
            self.begin = start;
        }
        // What goes past the highest number is new in any case.
        if end > self.next {
            new += end - self.next;
            self.next = end;
        }
        // SYN and FIN take a number and bring no payload.
        self.unique_bytes += new.min(payload);
        if let Some(hole) = hole
            && self.overtaken(&hole, passing)
        {
            self.out_of_order = self.out_of_order.saturating_add(1);
            return Class::OutOfOrder;
        }
        if self.copied(start, end, passing) {
            self.duplicates = self.duplicates.saturating_add(1);
            return Class::Copy;
        }
        self.rtt.ambiguous(start);
        self.retransmits.bytes += payload;
        let class = self.count(start, end, hole.is_some() || earlier, passing.time_ns);
        self.recovery = self.recovery.max(self.next);
        self.last_data = Some((start, (end - start) as u32, passing.mark));
        class
    }

    /// Takes a range out of the holes: how much was in them, and the first hole it touched.
    fn fill(&mut self, start: u64, end: u64) -> (u64, Option<Hole>) {
        if self.holes.is_empty() {
            return (0, None);
        }
        let (mut new, mut first) = (0, None);
        let mut at = 0;
        while at < self.holes.len() {
            let hole = self.holes[at];
            let (from, to) = (hole.start.max(start), hole.end.min(end));
            if from >= to {
                at += 1;
                continue;
            }
            new += to - from;
            first = first.or(Some(hole));
            let rest = [(hole.start, from), (to, hole.end)];
            let mut rest =
                rest.into_iter().filter(|(from, to)| from < to).map(|(start, end)| Hole { start, end, ..hole });
            match (rest.next(), rest.next()) {
                (None, _) => {
                    self.holes.remove(at);
                }
                (Some(left), None) => {
                    self.holes[at] = left;
                    at += 1;
                }
                (Some(left), Some(right)) => {
                    self.holes[at] = left;
                    self.holes.insert(at + 1, right);
                    at += 2;
                }
            }
        }
        (new, first)
    }

    /// Whether a segment that fills a hole was only late: sent before the one that went past it.
    fn overtaken(&self, hole: &Hole, passing: Passing) -> bool {
        passing.mark.before(hole.overtaker).unwrap_or_else(|| {
            // The news of the hole takes a round trip of the sender's side to come back as a new copy. Without that
            // figure, what came before any duplicate acknowledgement passed was not asked for.
            let waited = passing.time_ns.saturating_sub(hole.since_ns);
            let asked = self.repeats_of_ack > 0 || self.sacked > hole.start;
            !asked && waited < LEAST_TIMEOUT_NS
        })
    }

    /// Whether a segment is the very packet that passed just before: copied on the way.
    fn copied(&self, start: u64, end: u64, passing: Passing) -> bool {
        self.last_data.is_some_and(|(seen, length, mark)| {
            let same = seen == start && u64::from(length) == end - start;
            same && mark.identification != 0
                && mark.identification == passing.mark.identification
                && mark.timestamp == passing.mark.timestamp
        })
    }

    /// Counts a retransmission by why it was sent.
    fn count(&mut self, start: u64, end: u64, unseen: bool, time_ns: u64) -> Class {
        let class = self.why(start, end, unseen, time_ns);
        match class {
            Class::Timeout => self.by_timeout = true,
            Class::Fast => self.by_timeout = false,
            _ => {}
        }
        let kind = &mut self.retransmits;
        *match class {
            Class::LostBeforeTap => &mut kind.lost_before_tap,
            Class::Timeout => &mut kind.timeout,
            Class::Fast => &mut kind.fast,
            Class::Tail => &mut kind.tail,
            _ => &mut kind.unclassified,
        } += 1;
        class
    }

    fn why(&self, start: u64, end: u64, unseen: bool, time_ns: u64) -> Class {
        let repairing = self.acked < self.recovery;
        let asked = start < self.sacked || (self.repeats_of_ack >= DUPLICATES_MEAN_LOSS && start <= self.acked);
        let silent = time_ns.saturating_sub(self.last_ns) >= LEAST_TIMEOUT_NS;
        if unseen {
            Class::LostBeforeTap
        } else if silent && start <= self.acked.max(1) {
            Class::Timeout
        } else if asked && !(repairing && self.by_timeout) {
            Class::Fast
        } else if repairing && self.by_timeout {
            Class::Timeout
        } else if end == self.next && !repairing {
            Class::Tail
        } else if repairing && self.repeats_of_ack > 0 {
            // NewReno without SACK: each partial acknowledgement brings the next.
            Class::Fast
        } else if silent {
            Class::Timeout
        } else {
            Class::Unclassified
        }
    }

    /// The other end acknowledges. `room` is how many round-trip histograms may still be made.
    #[inline]
    pub fn acknowledged(&mut self, by: Acknowledging<'_>, mss: u64, room: &mut u32) -> Reaction {
        let mut reaction = Reaction::default();
        if self.next == 0 {
            // The data was before the capture, or takes another way.
            return reaction;
        }
        let ack = unwrap(by.acknowledgement, self.next);
        let first_ack = self.acked == 0;
        reaction.dsack = self.selectively(by.sack, ack);
        if ack > self.acked {
            if ack > self.next {
                // Acknowledged, but never seen here.
                self.missing_bytes += ack - self.next;
                self.next = ack;
            }
            if !first_ack {
                self.advancing_acks += 1;
                self.stretch_acks += u64::from(ack - self.acked > 2 * mss);
            }
            self.acked = ack;
            if self.first_data_ns.is_some() {
                self.last_moved_ns = self.last_moved_ns.max(by.time_ns);
            }
            self.repeats_of_ack = 0;
            reaction.rtt_ns = self.rtt.acked(ack, by.time_ns, room).unwrap_or(Reaction::NO_SAMPLE);
            self.forget_holes();
            if self.acked >= self.recovery {
                self.by_timeout = false;
            }
        } else if ack == self.acked && by.bare && !by.window_moved && self.next > ack {
            self.repeats_of_ack += 1;
            reaction.duplicate = true;
        }
        reaction
    }

    /// The other end acknowledges selectively. Returns whether it reports data that came twice (RFC 2883).
    #[inline]
    fn selectively(&mut self, blocks: &[(u32, u32)], ack: u64) -> bool {
        let mut twice = false;
        for (number, &(from, to)) in blocks.iter().enumerate() {
            let (from, to) = (unwrap(from, self.next), unwrap(to, self.next));
            let inside_second = number == 0
                && blocks
                    .get(1)
                    .is_some_and(|&(low, high)| unwrap(low, self.next) <= from && to <= unwrap(high, self.next));
            if number == 0 && (to <= ack || inside_second) {
                twice = true;
                self.retransmits.spurious = (self.retransmits.spurious + 1).min(self.retransmits.total());
            } else if to > self.sacked && to <= self.next {
                self.sacked = to;
            }
        }
        twice
    }

    /// Holes below what is acknowledged: those numbers arrived, but not past this tap.
    fn forget_holes(&mut self) {
        if self.holes.first().is_none_or(|hole| hole.start >= self.acked) {
            return;
        }
        let acked = self.acked;
        let mut missing = 0;
        self.holes.retain_mut(|hole| {
            missing += hole.end.min(acked).saturating_sub(hole.start);
            hole.start = hole.start.max(acked);
            hole.start < hole.end
        });
        self.missing_bytes += missing;
    }

    /// This end, as a receiver, announces a window. Returns whether it moved.
    #[inline]
    pub fn announce(&mut self, window: u16, flags: Flags) -> bool {
        let plain = !flags.has(Flags(Flags::SYN.0 | Flags::RST.0));
        if plain && self.window_field == Some(window) {
            return false;
        }
        self.window_field = plain.then_some(window);
        let syn = flags.has(Flags::SYN);
        // At most 2^30 (RFC 7323).
        let window = u32::from(window) << if syn { 0 } else { self.scale.unwrap_or(0) };
        let moved = self.window != Some(window);
        if plain {
            if window == 0 && self.window.is_some_and(|before| before > 0) {
                self.zero_windows = self.zero_windows.saturating_add(1);
            }
            self.window_min = Some(self.window_min.map_or(window, |least| least.min(window)));
            self.window_max = Some(self.window_max.map_or(window, |most| most.max(window)));
        }
        self.window = Some(window);
        moved
    }

    /// Notes what was made of an acknowledgement this end sent.
    pub fn note(&mut self, reaction: Reaction) {
        self.duplicate_acks += u64::from(reaction.duplicate);
        self.dsacks = self.dsacks.saturating_add(u32::from(reaction.dsack));
    }

    /// Time passes between two packets of the connection; `window` is the other end's.
    #[inline]
    pub fn spend(&mut self, span_ns: u64, window: Option<u64>, mss: u64) {
        if self.data_packets == 0 || self.acked == 0 {
            return;
        }
        let in_flight = self.in_flight();
        let limits = &mut self.limits;
        if in_flight == 0 {
            limits.idle_ns += span_ns;
        } else if self.acked < self.recovery {
            limits.recovery_ns += span_ns;
        } else if window.is_some_and(|window| window < in_flight + 2 * mss) {
            limits.receiver_window_ns += span_ns;
        } else {
            limits.sending_ns += span_ns;
        }
    }

    /// The window last announced, bytes.
    pub fn window(&self) -> Option<u64> {
        self.window.map(u64::from)
    }

    /// What it announced as its segment size, or the usual one.
    pub fn mss(&self) -> u64 {
        self.mss.map_or(1448, u64::from)
    }

    /// The scale it announced.
    pub fn announced_scale(&self) -> Option<u8> {
        self.announced_scale
    }

    /// Sets the scale in force (RFC 7323: both ends announced one, and at most 14).
    pub fn scale_in_force(&mut self, scale: u8) {
        self.scale = Some(scale.min(14));
        self.window_field = None;
    }
}

/// What an acknowledgement turned out to be: two words, which need no memory on their way.
#[derive(Debug, Clone, Copy)]
pub struct Reaction {
    rtt_ns: u64,
    /// A duplicate acknowledgement.
    pub duplicate: bool,
    /// It reports data that came twice.
    pub dsack: bool,
}

impl Reaction {
    const NO_SAMPLE: u64 = u64::MAX;

    /// The round trip it ends, nanoseconds.
    pub fn rtt_ns(self) -> Option<u64> {
        (self.rtt_ns != Self::NO_SAMPLE).then_some(self.rtt_ns)
    }
}

impl Default for Reaction {
    fn default() -> Self {
        Self { rtt_ns: Self::NO_SAMPLE, duplicate: false, dsack: false }
    }
}
