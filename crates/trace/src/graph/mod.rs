//! Series for graphs: a few flows, each in bounded memory.
//!
//! A series has all of its packets in time buckets, and individual packets where events happen. The largest flows
//! are known only at the end: more flows are followed than drawn, and the smaller half is dropped when there are
//! too many.

mod buckets;
mod detail;
mod event;
mod rate;

use std::collections::HashMap;
use std::ops::Range;

use foldhash::fast::FixedState;
use landspeed_model::{
    PacketDirection, TraceBuckets, TraceDocument, TraceEndpoint, TraceGraphs, TraceSeries, TraceTransport,
};
use landspeed_wire::Flags;

use self::buckets::Buckets;
use self::detail::Detail;
use self::event::{Event, PacketKind};
use self::rate::Rate;
use crate::key::{Endpoint, document_endpoint};
use crate::row::{Observer, Row, RowFlow, RowTcp};

/// Number of flows followed per flow in the result.
const TRACKED_FLOWS: usize = 16;
/// A direction with less than 1/`MIN_SHARE` of the other's payload has no graph.
const MIN_SHARE: u64 = 50;
/// Maximum number of packets kept of a requested span, all series together.
const MAX_PINNED: u64 = 4_000_000;

/// Limits of the series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphLimits {
    /// Maximum number of flows with series.
    pub flows: usize,
    /// Maximum number of individual packets kept per series.
    pub packets: u64,
    /// Maximum number of individual packets kept of all series.
    pub all_packets: u64,
    /// Span in which every packet is kept, nanoseconds from the start of the capture.
    pub span_ns: Option<Range<u64>>,
}

impl Default for GraphLimits {
    fn default() -> Self {
        Self { flows: 8, packets: 200_000, all_packets: 1_000_000, span_ns: None }
    }
}

/// Data kept of one direction.
#[derive(Debug, Clone, Default)]
struct Series {
    payload: u64,
    packets: u64,
    end_ns: u64,
    rate: Rate,
    buckets: Buckets,
    detail: Detail,
    in_flight: u64,
    /// Latest ACK number and window. A segment that repeats both adds no event, except a pure ACK of data.
    latest: Option<(i64, u64)>,
}

/// A followed flow.
#[derive(Debug, Clone)]
struct Followed {
    low: Endpoint,
    high: Endpoint,
    first_ns: u64,
    /// From the lower endpoint to the higher, and back.
    series: [Series; 2],
}

impl Followed {
    fn payload(&self) -> u64 {
        self.series.iter().map(|series| series.payload).sum()
    }

    fn ends(&self) -> [TraceEndpoint; 2] {
        [document_endpoint(self.low), document_endpoint(self.high)]
    }
}

/// Graphs under construction.
#[derive(Debug)]
pub struct Graphs {
    limits: GraphLimits,
    start_ns: Option<u64>,
    rate: Rate,
    flows: HashMap<u64, Box<Followed>, FixedState>,
    pinned: u64,
    given_up: u64,
    /// Packets since the limit for all series was last checked.
    unchecked: u64,
}

impl Graphs {
    /// Creates empty graphs.
    pub fn new(limits: GraphLimits) -> Self {
        let flows = HashMap::default();
        Self { limits, start_ns: None, rate: Rate::default(), flows, pinned: 0, given_up: 0, unchecked: 0 }
    }

    fn follow(&mut self, flow: &RowFlow, tcp: &RowTcp, since_ns: u64, wire: u32) {
        let most = self.limits.flows.max(1) * TRACKED_FLOWS;
        if self.flows.len() >= most && !self.flows.contains_key(&flow.number) {
            self.keep_largest_flows(most / 2);
        }
        let (low, high) = if flow.upward { (flow.source, flow.destination) } else { (flow.destination, flow.source) };
        let followed = self.flows.entry(flow.number).or_insert_with(|| {
            Box::new(Followed { low, high, first_ns: since_ns, series: <[Series; 2]>::default() })
        });
        let asked = self.limits.span_ns.as_ref().is_some_and(|span| span.contains(&since_ns));
        let pinned = asked && self.pinned < MAX_PINNED;
        self.pinned += u64::from(pinned);
        let [up, down] = &mut followed.series;
        let (from, to) = if flow.upward { (up, down) } else { (down, up) };
        from.sent(flow, tcp, since_ns, wire, pinned);
        to.acknowledged(tcp, since_ns, pinned);
        let most = self.limits.packets;
        for series in [from, to] {
            // Not for each packet: whole chunks are dropped.
            if series.detail.removable() > most + most / 8 {
                series.detail.shrink(most);
            }
        }
        self.unchecked += 1;
        if self.unchecked > self.limits.all_packets / 8 {
            self.unchecked = 0;
            self.share();
        }
    }

    /// Keeps the packets of all series within their limit, by a common limit per series that affects the largest
    /// ones.
    fn share(&mut self) {
        let kept = |flows: &HashMap<u64, Box<Followed>, FixedState>, most: u64| -> u64 {
            flows.values().flat_map(|flow| &flow.series).map(|series| series.detail.removable().min(most)).sum()
        };
        let mut most = self.limits.packets;
        while most > 1_024 && kept(&self.flows, most) > self.limits.all_packets {
            most = most * 3 / 4;
        }
        if most < self.limits.packets {
            self.flows.values_mut().flat_map(|flow| &mut flow.series).for_each(|series| series.detail.shrink(most));
        }
    }

    /// Keeps only `to` flows: those with the most payload; of equals, those that began last.
    fn keep_largest_flows(&mut self, to: usize) {
        let mut ranks: Vec<_> = self.flows.iter().map(|(&number, flow)| (flow.payload(), number)).collect();
        ranks.sort_unstable();
        let gone = ranks.len().saturating_sub(to);
        for (payload, number) in &ranks[..gone] {
            self.given_up += u64::from(*payload > 0);
            self.flows.remove(number);
        }
    }

    /// Adds the graphs to the document of the same capture.
    pub fn finish(mut self, document: &mut TraceDocument) {
        self.share();
        self.keep_largest_flows(self.limits.flows);
        let mut series = Vec::new();
        for (_, followed) in self.flows {
            let ends = followed.ends();
            let listed = document.flows.iter().enumerate().filter(|(_, flow)| {
                let same = |a: &TraceEndpoint, b: &TraceEndpoint| flow.source == *a && flow.destination == *b;
                flow.transport == TraceTransport::Tcp && (same(&ends[0], &ends[1]) || same(&ends[1], &ends[0]))
            });
            let Some((at, flow)) = listed.min_by_key(|(_, flow)| flow.start_ns.abs_diff(followed.first_ns)) else {
                continue;
            };
            let upward_is_forward = flow.source == ends[0];
            let most = followed.series.iter().map(|series| series.payload).max().unwrap_or(0);
            for (of, upward) in followed.series.into_iter().zip([true, false]) {
                if of.payload > 0 && of.payload >= most / MIN_SHARE {
                    let direction =
                        if upward == upward_is_forward { PacketDirection::Forward } else { PacketDirection::Reverse };
                    series.push(of.document(at, direction));
                }
            }
        }
        series.sort_by_key(|series: &TraceSeries| (std::cmp::Reverse(series.payload_bytes), series.flow));
        document.graphs = Some(TraceGraphs { rate: self.rate.document(), series, left_out: self.given_up });
    }
}

impl Observer for Graphs {
    fn row(&mut self, row: &Row) {
        let start_ns = *self.start_ns.get_or_insert(row.time_ns);
        let since_ns = row.time_ns.saturating_sub(start_ns);
        self.rate.frame(since_ns, row.wire);
        if let Some(flow) = &row.flow
            && let Some(tcp) = &flow.tcp
        {
            self.follow(flow, tcp, since_ns, row.wire);
        }
    }
}

impl Series {
    fn sent(&mut self, flow: &RowFlow, tcp: &RowTcp, since_ns: u64, wire: u32, pinned: bool) {
        self.payload += u64::from(flow.payload);
        self.rate.frame(since_ns, wire);
        let what = if tcp.end > tcp.sequence {
            let (syn, fin) = (tcp.flags.has(Flags::SYN), tcp.flags.has(Flags::FIN));
            self.in_flight = tcp.in_flight;
            PacketKind::Data { class: tcp.class, start: tcp.sequence, end: tcp.end, syn, fin }
        } else if tcp.flags.has(Flags::RST) {
            PacketKind::Reset
        } else {
            return;
        };
        self.take(&Event { since_ns, what }, pinned);
    }

    fn acknowledged(&mut self, tcp: &RowTcp, since_ns: u64, pinned: bool) {
        let Some(ack) = tcp.acknowledgement else { return };
        let (window, sack) = (tcp.window, tcp.sack());
        let bare = tcp.end == tcp.sequence;
        if bare {
            self.in_flight = tcp.in_flight;
        }
        let is_new = self.latest != Some((ack, window)) || !sack.is_empty() || tcp.duplicate_ack;
        let counts = is_new || (bare && self.payload > 0);
        if !counts {
            return;
        }
        self.latest = Some((ack, window));
        let what = PacketKind::Ack { ack, window, duplicate: tcp.duplicate_ack, sack, rtt_ns: tcp.rtt_ns };
        self.take(&Event { since_ns, what }, pinned);
    }

    #[inline]
    fn take(&mut self, event: &Event<'_>, pinned: bool) {
        self.packets += 1;
        self.end_ns = self.end_ns.max(event.since_ns);
        self.buckets.take(event, self.in_flight);
        self.detail.take(event, pinned);
    }

    fn document(self, flow: usize, direction: PacketDirection) -> TraceSeries {
        let (bucket_ns, mut buckets) = self.buckets.document();
        if self.detail.packets() == self.packets {
            buckets = TraceBuckets::default();
        }
        TraceSeries {
            flow,
            direction,
            payload_bytes: self.payload,
            packets: self.packets,
            kept: self.detail.packets(),
            end_ns: self.end_ns,
            rate: self.rate.document(),
            bucket_ns,
            buckets,
            detail: self.detail.document(),
        }
    }
}
