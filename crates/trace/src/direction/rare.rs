//! State that few directions need: events, zero windows, data recorded after its ACK.

use landspeed_model::{Retransmits, TraceEventKind, TraceRto, ZeroWindow};

use super::{FlowDirection, Hole, PacketContext};
use crate::rtt::Samples;

/// Maximum number of events listed per direction.
const MAX_EVENTS: usize = 200;
/// Number of events of a direction that only opens and closes.
const USUAL_EVENTS: usize = 2;
/// Maximum number of ranges kept that are SACKed, or were acknowledged before they were seen.
const MAX_RANGES: usize = 64;
/// Time after its ACK from which data is a retransmit, nanoseconds; captures are not reordered by more.
const MAX_CAPTURE_DELAY_NS: u64 = 10_000_000;

/// An event of a direction. Every connection has some, so the type is small.
#[derive(Debug, Clone, Copy)]
pub struct Event {
    /// Number of the frame, from 1.
    pub frame: u64,
    /// Time since the start of the capture, nanoseconds.
    pub since_ns: u64,
    /// RTO that expired before it, nanoseconds; 0 without one.
    pub rto_ns: u64,
    /// Sequence or ACK number of the event.
    pub sequence: u32,
    /// Kind of event.
    pub kind: TraceEventKind,
}

/// State that few directions need.
#[derive(Debug, Clone, Default)]
pub(super) struct RareState {
    pub unlisted_events: u64,
    pub retransmits: Retransmits,
    /// Sequence holes at the tap.
    pub holes: Vec<Hole>,
    /// Unclassified retransmits: lowest sequence number, timestamp of the latest, and count. Their cause may be
    /// recorded after them.
    pub unclassified_retransmits: Option<(u64, u64, u64)>,
    /// Time and frame number at which the window closed.
    pub closed_since: Option<(u64, u64)>,
    pub resets: u64,
    /// Periods with a closed window, and (`closed_ns`) their total duration.
    pub periods: Vec<ZeroWindow>,
    pub closed_ns: u64,
    pub rto: TraceRto,
    /// RTT of the data at the end of SACK blocks.
    pub sack_rtt: Samples,
    pub reneged: u64,
    sacked_ranges: Vec<(u64, u64)>,
    /// Ranges that were acknowledged before they were seen, with the time of the ACK.
    late: Vec<(u64, u64, u64)>,
}

impl RareState {
    /// Returns the data above the cumulative ACK that the receiver acknowledged with SACK, bytes.
    pub fn sacked_bytes(&self) -> u64 {
        self.sacked_ranges.iter().map(|&(from, to)| to - from).sum()
    }
}

impl FlowDirection {
    pub(super) fn rare(&mut self) -> &mut RareState {
        self.rare.get_or_insert_default()
    }

    /// Lists an event, or counts it as unlisted.
    #[cold]
    pub fn event(&mut self, kind: TraceEventKind, context: PacketContext, rto_ns: Option<u64>) {
        let resets = self.rare.as_ref().map_or(0, |rare| rare.resets);
        if self.events.len() >= MAX_EVENTS && !(kind == TraceEventKind::Reset && resets <= 1) {
            self.rare().unlisted_events += 1;
            return;
        }
        if self.events.is_empty() {
            self.events.reserve_exact(USUAL_EVENTS);
        }
        let PacketContext { frame, since_ns, sequence, .. } = context;
        self.events.push(Event { frame, since_ns, rto_ns: rto_ns.unwrap_or(0), sequence, kind });
    }

    /// Returns the listed events, and the number of unlisted ones.
    pub fn events(&self) -> (&[Event], u64) {
        (&self.events, self.rare.as_ref().map_or(0, |rare| rare.unlisted_events))
    }

    /// Adds a range that was acknowledged before it was seen: it is recorded late, or missing.
    pub(super) fn expect_late(&mut self, start: u64, end: u64, time_ns: u64) {
        let rare = self.rare.get_or_insert_default();
        let mut missing = 0;
        let full = rare.late.len() >= MAX_RANGES;
        let mut at = 0;
        rare.late.retain(|&(from, to, since_ns)| {
            let gone =
                time_ns.saturating_sub(since_ns) > MAX_CAPTURE_DELAY_NS && (full || to != start) || full && at == 0;
            at += 1;
            missing += if gone { to - from } else { 0 };
            !gone
        });
        rare.late.push((start, end, time_ns));
        self.missing_bytes += missing;
    }

    /// Removes a segment from the ranges acknowledged before they were seen. Returns the number of its bytes in them,
    /// and whether it was only recorded late.
    pub(super) fn take_late(&mut self, start: u64, end: u64, time_ns: u64) -> Option<(u64, bool)> {
        let rare = self.rare.as_mut().filter(|rare| !rare.late.is_empty())?;
        let (mut new, mut soon) = (0, true);
        let mut remaining = Vec::new();
        rare.late.retain_mut(|range| {
            let (from, to, since_ns) = *range;
            let (low, high) = (from.max(start), to.min(end));
            if low >= high {
                return true;
            }
            new += high - low;
            soon &= time_ns.saturating_sub(since_ns) <= MAX_CAPTURE_DELAY_NS;
            if high < to && from < low {
                remaining.push((high, to, since_ns));
            }
            *range = if from < low { (from, low, since_ns) } else { (high, to, since_ns) };
            range.0 < range.1
        });
        rare.late.extend(remaining);
        (new > 0).then_some((new, soon))
    }

    /// Returns the number of bytes that were acknowledged but never seen. One at the end that was never seen may be
    /// the FIN's, and is not counted.
    pub(super) fn never_seen(&self) -> u64 {
        let Some(rare) = &self.rare else { return 0 };
        let is_fin = |from: u64, to: u64| !self.fin_seen && to == self.next && to - from == 1;
        rare.late.iter().filter(|&&(from, to, _)| !is_fin(from, to)).map(|&(from, to, _)| to - from).sum()
    }

    /// Returns whether any range is SACKed.
    #[inline]
    pub(super) fn has_sacked_ranges(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| !rare.sacked_ranges.is_empty())
    }

    /// Adds a SACKed range.
    pub(super) fn add_sacked_range(&mut self, mut from: u64, mut to: u64) {
        let sacked_ranges = &mut self.rare.get_or_insert_default().sacked_ranges;
        if let [(low, high)] = sacked_ranges.as_mut_slice()
            && *low <= to
            && from <= *high
        {
            (*low, *high) = (from.min(*low), to.max(*high));
            return;
        }
        sacked_ranges.retain(|&(low, high)| {
            let is_disjoint = high < from || to < low;
            if !is_disjoint {
                (from, to) = (from.min(low), to.max(high));
            }
            is_disjoint
        });
        if sacked_ranges.len() >= MAX_RANGES {
            sacked_ranges.remove(0);
        }
        sacked_ranges.push((from, to));
    }

    /// Removes the SACKed ranges that `ack` reaches. Returns whether the receiver reneged: otherwise its cumulative
    /// ACK would not stop within a range it has.
    #[cold]
    pub(super) fn is_reneged(&mut self, ack: u64) -> bool {
        let Some(rare) = &mut self.rare else { return false };
        let mut reneged = false;
        rare.sacked_ranges.retain(|&(from, to)| {
            reneged |= from <= ack && ack < to;
            ack < from
        });
        reneged
    }
}
