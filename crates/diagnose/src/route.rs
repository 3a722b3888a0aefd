//! Links and queues on a flow's path, from a lab document. They are not visible between two real hosts.

use landspeed_calc::ETHERNET_OVERHEAD_BYTES;
use landspeed_model::{Direction, LabDocument, LabFlow, LabLink, LabQueue, QueueRole, TopologyLink};

use crate::thresholds::{ACKS_LOST, EXPLAINS, FULL_LINK, POLICER_FRAMES, SHALLOW_BDP};

/// The links from the sender to the receiver and back.
pub(crate) struct Route<'a> {
    /// Node names of the sender and the receiver.
    pub ends: [&'a str; 2],
    /// From the sender to the receiver, in order.
    pub forward: Vec<Hop<'a>>,
    /// From the receiver to the sender, in order.
    pub reverse: Vec<Hop<'a>>,
    /// Frames that arrived at the receiving host and were dropped there by the scenario, over the whole run.
    pub host_drops: f64,
    /// Round trip time of an empty path: propagation and serialization of one data frame and one ACK, microseconds.
    pub base_rtt_us: f64,
}

/// One direction of a link, with the queue before it.
pub(crate) struct Hop<'a> {
    /// Position of the link in the document's `links`.
    pub link_index: usize,
    /// The link's totals over the run.
    pub link: &'a LabLink,
    /// The queue before it and its position in the document's `queues`.
    pub queue: Option<(usize, &'a LabQueue)>,
    /// Largest IP packet that passes, bytes.
    pub mtu_bytes: u32,
    /// Share of the link's capacity used in the steady phase by all flows, 0..=1.
    pub utilisation: f64,
    /// Utilisation between the queue's first and last drop in the phase, if they are at least a fifth of it
    /// apart.
    pub utilisation_while_dropping: Option<f64>,
    /// Packets the queue dropped in the steady phase.
    pub drops: f64,
    /// Packets the queue dropped up to the end of the steady phase.
    pub drops_so_far: f64,
    /// Packets the queue dropped up to the end of the first quarter of the steady phase.
    pub drops_early: f64,
    /// Frames lost on the link in the steady phase.
    pub lost: f64,
    /// Mean over the sampled intervals of the maximum backlog, bytes.
    pub backlog_bytes: f64,
}

/// Place of drops on the forward path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DropPlace {
    /// The qdisc of the sender (hop 0).
    OwnQueue,
    /// The queue of a switch, by hop.
    Queue(usize),
    /// A link, by hop.
    Link(usize),
    /// The receiving host, after the last link.
    ReceiverHost,
}

impl<'a> Route<'a> {
    /// Returns the path of `flow` in `direction`; `span_ns` is the steady phase in the flow's time. `None` if
    /// the topology does not connect its hosts.
    pub(crate) fn new(
        lab: &'a LabDocument,
        flow: &LabFlow,
        direction: Direction,
        span_ns: (u64, u64),
        mss: f64,
    ) -> Option<Self> {
        let (from, to) = match direction {
            Direction::Download => (flow.to.as_str(), flow.from.as_str()),
            _ => (flow.from.as_str(), flow.to.as_str()),
        };
        let nodes = shortest_path(&lab.topology.links, from, to)?;
        let span_ns = (span_ns.0 + flow.start_ns, span_ns.1 + flow.start_ns);
        let hops = |nodes: &[&str]| -> Option<Vec<Hop<'a>>> {
            nodes.windows(2).map(|pair| Hop::new(lab, pair[0], pair[1], span_ns)).collect()
        };
        let forward = hops(&nodes)?;
        let back: Vec<&str> = nodes.iter().rev().copied().collect();
        let reverse = hops(&back)?;
        let framing = f64::from(ETHERNET_OVERHEAD_BYTES);
        let crossing = |hops: &[Hop<'_>], bytes: f64| -> f64 {
            hops.iter()
                .map(|hop| hop.link.delay_ns as f64 / 1e3 + bytes * 8e6 / hop.link.rate_bps.max(1) as f64)
                .sum()
        };
        let base_rtt_us = crossing(&forward, mss + 52.0 + framing) + crossing(&reverse, 52.0 + framing);
        let host_drops =
            lab.host_drops.iter().filter(|drops| drops.host == to).map(|drops| drops.dropped as f64).sum();
        let ends = [*nodes.first()?, *nodes.last()?];
        Some(Self { ends, forward, reverse, host_drops, base_rtt_us })
    }

    /// Capacity left by other flows on the links to the receiver, bits/s. `own_bps`: the rate of this flow on
    /// the wire.
    pub(crate) fn available_bps(&self, own_bps: f64) -> f64 {
        let left = |hop: &Hop<'_>| {
            let rate = hop.link.rate_bps as f64;
            let others = (hop.utilisation * rate - own_bps).max(0.0);
            // A small excess comes from single frames at the edges, not from another flow.
            if others < 0.02 * rate { rate } else { (rate - others).max(own_bps) }
        };
        self.forward.iter().map(left).fold(f64::INFINITY, f64::min)
    }

    /// The first forward link that was full in the steady phase; of several, one whose queue dropped or the slowest.
    pub(crate) fn full(&self) -> Option<&Hop<'a>> {
        let full = || self.forward.iter().filter(|hop| hop.utilisation >= FULL_LINK);
        full().find(|hop| hop.drops > 0.0).or_else(|| full().min_by_key(|hop| hop.link.rate_bps))
    }

    /// The forward link with the highest utilisation.
    pub(crate) fn busiest(&self) -> Option<&Hop<'a>> {
        self.forward.iter().max_by(|a, b| a.utilisation.total_cmp(&b.utilisation))
    }

    /// The reverse link that was full, or whose queue dropped at least 2 % of the frames.
    pub(crate) fn reverse_congested(&self) -> Option<&Hop<'a>> {
        self.reverse
            .iter()
            .find(|hop| hop.utilisation >= FULL_LINK || hop.drops_so_far + hop.lost >= hop.many_drops())
    }

    /// Whether the data suffers at least as much as the ACKs: the forward path drops no smaller share of its frames than
    /// the reverse path. Cumulative ACKs hide the loss of ACKs, and nothing hides the loss of data.
    pub(crate) fn drops_data_rather_than_acks(&self) -> bool {
        let share = |hops: &[Hop<'_>]| {
            hops.iter()
                .map(|hop| (hop.drops_so_far + hop.lost) / (hop.link.packets as f64).max(1.0))
                .fold(0.0, f64::max)
        };
        let forward = share(&self.forward);
        forward > 0.0 && forward >= EXPLAINS * share(&self.reverse)
    }

    /// The place with most drops in the steady phase, its drops and the total.
    pub(crate) fn main_drops(&self) -> Option<(DropPlace, f64, f64)> {
        let mut places: Vec<(DropPlace, f64)> = Vec::new();
        for (index, hop) in self.forward.iter().enumerate() {
            places.push((if index == 0 { DropPlace::OwnQueue } else { DropPlace::Queue(index) }, hop.drops));
            places.push((DropPlace::Link(index), hop.lost));
        }
        places.push((DropPlace::ReceiverHost, self.host_drops));
        let all: f64 = places.iter().map(|place| place.1).sum();
        let most = places.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
        (most.1 > 0.0).then_some((most.0, most.1, all))
    }

    /// The queue that overflowed before or early in the steady phase.
    pub(crate) fn slow_start_hop(&self) -> Option<&Hop<'a>> {
        let hop = self.forward.iter().max_by(|a, b| a.drops_early.total_cmp(&b.drops_early));
        hop.filter(|hop| hop.drops_early > 0.0)
    }

    /// Packets dropped on the forward path in the steady phase.
    pub(crate) fn dropped(&self) -> f64 {
        self.forward.iter().map(|hop| hop.drops + hop.lost).sum::<f64>() + self.host_drops
    }

    /// The first link whose MTU is smaller than `mtu_bytes`.
    pub(crate) fn too_narrow_for(&self, mtu_bytes: f64) -> Option<&Hop<'a>> {
        self.forward.iter().find(|hop| f64::from(hop.mtu_bytes) < mtu_bytes)
    }
}

impl<'a> Hop<'a> {
    fn new(lab: &'a LabDocument, from: &str, to: &str, span_ns: (u64, u64)) -> Option<Self> {
        let name = format!("{from}->{to}");
        let (link_index, link) = lab.links.iter().enumerate().find(|(_, link)| link.name == name)?;
        let named = |wire: bool| {
            lab.queues
                .iter()
                .enumerate()
                .find(|(_, queue)| queue.name == name && (queue.role == QueueRole::Wire) == wire)
        };
        let (queue, wire) = (named(false), named(true));
        let mtu_bytes =
            lab.topology.links.iter().find(|link| connects(link, from, to)).map_or(u32::MAX, |l| l.mtu_bytes);
        let (utilisation, backlog_bytes) = match queue {
            Some((_, queue)) => used(queue, link, span_ns).unwrap_or((link.utilisation, queue.mean_bytes)),
            None => (link.utilisation, 0.0),
        };
        let quarter_ns = span_ns.0 + (span_ns.1 - span_ns.0) / 4;
        let drops = |from_ns: u64, to_ns: u64| queue.map_or(0.0, |(_, queue)| dropped_within(queue, from_ns, to_ns));
        // Without a series of drops, use the losses of the whole run.
        let lost = match wire.map(|(_, wire)| wire).filter(|wire| !wire.series.drops.is_empty()) {
            Some(wire) => dropped_within(wire, span_ns.0, span_ns.1),
            None => link.lost as f64,
        };
        Some(Self {
            link_index,
            link,
            queue,
            mtu_bytes,
            utilisation: if utilisation.is_finite() { utilisation } else { 0.0 },
            utilisation_while_dropping: queue.and_then(|(_, queue)| used_while_dropping(queue, link, span_ns)),
            drops: drops(span_ns.0, span_ns.1),
            drops_so_far: drops(0, span_ns.1),
            drops_early: drops(0, quarter_ns),
            lost,
            backlog_bytes,
        })
    }

    /// Number of drops that impairs ACKs: 2 % of the frames that passed, and more than a few.
    pub(crate) fn many_drops(&self) -> f64 {
        let passed = self.queue.map_or(0, |(_, queue)| queue.packets) as f64;
        (passed * ACKS_LOST).max(20.0)
    }

    /// Limit of the queue, bytes; a limit in packets is converted to full frames.
    pub(crate) fn limit_bytes(&self) -> Option<f64> {
        let (_, queue) = self.queue?;
        let by_packets = queue.limit_packets.map(|packets| packets as f64 * f64::from(self.mtu_bytes));
        queue.limit_bytes.map(|bytes| bytes as f64).or(by_packets)
    }

    /// Whether the queue holds hardly more than one frame, as a policer does.
    pub(crate) fn is_policer(&self) -> bool {
        self.limit_bytes().is_some_and(|limit| limit <= POLICER_FRAMES * (f64::from(self.mtu_bytes) + 14.0))
    }

    /// Ratio of the queue's limit to BDP ÷ √streams (Appenzeller 2004).
    pub(crate) fn limit_over_bdp(&self, base_rtt_us: f64, streams: usize) -> Option<f64> {
        let bdp = self.link.rate_bps as f64 * base_rtt_us / 8e6;
        let share = bdp / (streams.max(1) as f64).sqrt();
        self.limit_bytes().filter(|_| share > 0.0).map(|limit| limit / share)
    }

    /// Whether the queue is too small to keep the link full.
    pub(crate) fn is_shallow(&self, base_rtt_us: f64, streams: usize) -> bool {
        self.limit_over_bdp(base_rtt_us, streams).is_some_and(|share| share < SHALLOW_BDP)
    }
}

fn connects(link: &TopologyLink, from: &str, to: &str) -> bool {
    let [a, b] = &link.between;
    (a == from && b == to) || (a == to && b == from)
}

/// Nodes on the path with fewest links.
fn shortest_path<'a>(links: &'a [TopologyLink], from: &str, to: &str) -> Option<Vec<&'a str>> {
    let start = links.iter().flat_map(|link| &link.between).find(|node| *node == from)?;
    let mut paths: Vec<Vec<&'a str>> = vec![vec![start]];
    let mut seen = vec![start.as_str()];
    let mut next = 0;
    while let Some(path) = paths.get(next).cloned() {
        next += 1;
        let at = *path.last()?;
        if at == to {
            return Some(path);
        }
        for link in links {
            let [a, b] = &link.between;
            let other = if a == at {
                b
            } else if b == at {
                a
            } else {
                continue;
            };
            if !seen.contains(&other.as_str()) {
                seen.push(other);
                let mut longer = path.clone();
                longer.push(other);
                paths.push(longer);
            }
        }
    }
    None
}

/// Indices of a queue's samples within a span of virtual time.
fn points(queue: &LabQueue, from_ns: u64, to_ns: u64) -> std::ops::Range<usize> {
    let width = queue.series.interval_ns.max(1);
    let count = queue.series.bytes.len().max(queue.series.drops.len());
    let first = (from_ns.div_ceil(width) as usize).min(count);
    first..((to_ns / width) as usize).clamp(first, count)
}

fn dropped_within(queue: &LabQueue, from_ns: u64, to_ns: u64) -> f64 {
    queue.series.drops.get(points(queue, from_ns, to_ns)).map_or(0.0, |drops| drops.iter().sum::<u64>() as f64)
}

/// Utilisation of the link between the queue's first and last drop within a span, if they are at least a
/// fifth of the span apart.
fn used_while_dropping(queue: &LabQueue, link: &LabLink, span_ns: (u64, u64)) -> Option<f64> {
    let points = points(queue, span_ns.0, span_ns.1);
    let drops = queue.series.drops.get(points.clone())?;
    let first = drops.iter().position(|&drops| drops > 0)?;
    let last = drops.iter().rposition(|&drops| drops > 0)?;
    let at = |index: usize| (points.start + index) as u64 * queue.series.interval_ns;
    let long = (last + 1 - first) * 5 >= points.len();
    used(queue, link, (at(first), at(last + 1))).filter(|_| long).map(|(share, _)| share)
}

/// Utilisation of the link and mean backlog of its queue within a span. The queue counts bytes without
/// framing; the link's totals give the framing overhead.
fn used(queue: &LabQueue, link: &LabLink, span_ns: (u64, u64)) -> Option<(f64, f64)> {
    let points = points(queue, span_ns.0, span_ns.1);
    let bytes: u64 = queue.series.bytes.get(points.clone())?.iter().sum();
    let time_ns = points.len() as f64 * queue.series.interval_ns as f64;
    let room = link.rate_bps as f64 * time_ns / 8e9;
    let framing = if queue.bytes > 0 { (link.bytes as f64 / queue.bytes as f64).clamp(1.0, 2.0) } else { 1.0 };
    let waiting = queue.series.backlog_bytes_max.get(points.clone()).unwrap_or_default();
    let mean = waiting.iter().sum::<u64>() as f64 / points.len().max(1) as f64;
    (room > 0.0).then(|| (bytes as f64 * framing / room, mean))
}
