//! The links and queues on a flow's path, from a lab document. Two real hosts cannot see them.

use landspeed_calc::ETHERNET_OVERHEAD_BYTES;
use landspeed_model::{Direction, LabDocument, LabFlow, LabLink, LabQueue, QueueRole, TopologyLink};

use crate::thresholds::{ACKS_LOST, FULL_LINK, POLICER_FRAMES, SHALLOW_BDP};

/// The links from the sender to the receiver, and those back.
pub(crate) struct Route<'a> {
    /// The sender's and the receiver's node.
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

/// One link in one direction, with the queue that feeds it.
pub(crate) struct Hop<'a> {
    /// Position of the link in the document's `links`.
    pub link_index: usize,
    /// The link.
    pub link: &'a LabLink,
    /// The queue before it and its position in the document's `queues`.
    pub queue: Option<(usize, &'a LabQueue)>,
    /// Largest IP packet that passes, bytes.
    pub mtu_bytes: u32,
    /// Bits that passed in the steady phase over what the rate allows, all flows, 0..=1.
    pub utilisation: f64,
    /// The same from the first to the last drop of its queue there, where that is a fifth of the phase at least.
    pub utilisation_while_dropping: Option<f64>,
    /// Packets the queue dropped in the steady phase.
    pub drops: f64,
    /// Packets the queue dropped before the steady phase ended.
    pub drops_so_far: f64,
    /// Packets the queue dropped in the first quarter of the steady phase and before.
    pub drops_early: f64,
    /// Frames lost on the link in the steady phase.
    pub lost: f64,
    /// Mean over the sampled spans of the most that waited in the queue, bytes.
    pub backlog_bytes: f64,
}

/// Where packets of the forward direction were dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DropPlace {
    /// The queueing discipline of the sender: hop 0.
    OwnQueue,
    /// The queue of a switch: this hop.
    Queue(usize),
    /// A link: this hop.
    Link(usize),
    /// The receiving host.
    ReceiverHost,
}

impl<'a> Route<'a> {
    /// The path of `flow` in `direction`; `span_ns` is its steady phase in the flow's time. `None` when the topology does not
    /// connect its ends.
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

    /// Rate that the links to the receiver have left beside other flows, bits/s. `own_bps`: what this flow uses of them.
    pub(crate) fn available_bps(&self, own_bps: f64) -> f64 {
        let left = |hop: &Hop<'_>| {
            let rate = hop.link.rate_bps as f64;
            let others = (hop.utilisation * rate - own_bps).max(0.0);
            // A frame more or less in a span does not mean another flow.
            if others < 0.02 * rate { rate } else { (rate - others).max(own_bps) }
        };
        self.forward.iter().map(left).fold(f64::INFINITY, f64::min)
    }

    /// The first forward link that was full in the steady phase; of several, one whose queue dropped or the slowest.
    pub(crate) fn full(&self) -> Option<&Hop<'a>> {
        let full = || self.forward.iter().filter(|hop| hop.utilisation >= FULL_LINK);
        full().find(|hop| hop.drops > 0.0).or_else(|| full().min_by_key(|hop| hop.link.rate_bps))
    }

    /// The most used forward link.
    pub(crate) fn busiest(&self) -> Option<&Hop<'a>> {
        self.forward.iter().max_by(|a, b| a.utilisation.total_cmp(&b.utilisation))
    }

    /// The reverse link that was full, or whose queue dropped at least one frame in fifty.
    pub(crate) fn reverse_congested(&self) -> Option<&Hop<'a>> {
        self.reverse
            .iter()
            .find(|hop| hop.utilisation >= FULL_LINK || hop.drops_so_far + hop.lost >= hop.many_drops())
    }

    /// Where most packets were dropped in the steady phase, and how many there and in all.
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

    /// Packets dropped between the two TCPs on the forward path in the steady phase.
    pub(crate) fn dropped(&self) -> f64 {
        self.forward.iter().map(|hop| hop.drops + hop.lost).sum::<f64>() + self.host_drops
    }

    /// The first link that a full-sized packet of `mtu_bytes` does not pass.
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
            lab.topology.links.iter().find(|link| joins(link, from, to)).map_or(u32::MAX, |l| l.mtu_bytes);
        let (utilisation, backlog_bytes) = match queue {
            Some((_, queue)) => used(queue, link, span_ns).unwrap_or((link.utilisation, queue.mean_bytes)),
            None => (link.utilisation, 0.0),
        };
        let quarter_ns = span_ns.0 + (span_ns.1 - span_ns.0) / 4;
        let drops = |from_ns: u64, to_ns: u64| queue.map_or(0.0, |(_, queue)| dropped_within(queue, from_ns, to_ns));
        // Without a series of drops, the losses of the whole run stand in.
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

    /// Drops from which ACKs suffer: one frame in fifty of those that passed, and not just a few.
    pub(crate) fn many_drops(&self) -> f64 {
        let passed = self.queue.map_or(0, |(_, queue)| queue.packets) as f64;
        (passed * ACKS_LOST).max(20.0)
    }

    /// Limit of the queue, bytes; of one that counts packets, as full frames.
    pub(crate) fn limit_bytes(&self) -> Option<f64> {
        let (_, queue) = self.queue?;
        let by_packets = queue.limit_packets.map(|packets| packets as f64 * f64::from(self.mtu_bytes));
        queue.limit_bytes.map(|bytes| bytes as f64).or(by_packets)
    }

    /// Whether the queue holds hardly more than the frame that arrives.
    pub(crate) fn polices(&self) -> bool {
        self.limit_bytes().is_some_and(|limit| limit <= POLICER_FRAMES * (f64::from(self.mtu_bytes) + 14.0))
    }

    /// The queue's limit over the bandwidth-delay product that a window needs per stream (Appenzeller 2004).
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

fn joins(link: &TopologyLink, from: &str, to: &str) -> bool {
    let [a, b] = &link.between;
    (a == from && b == to) || (a == to && b == from)
}

/// Nodes from `from` to `to` over the fewest links.
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

/// Points of a queue's series that lie within a span of the scenario's time.
fn points(queue: &LabQueue, from_ns: u64, to_ns: u64) -> std::ops::Range<usize> {
    let width = queue.series.interval_ns.max(1);
    let count = queue.series.bytes.len().max(queue.series.drops.len());
    let first = (from_ns.div_ceil(width) as usize).min(count);
    first..((to_ns / width) as usize).clamp(first, count)
}

fn dropped_within(queue: &LabQueue, from_ns: u64, to_ns: u64) -> f64 {
    queue.series.drops.get(points(queue, from_ns, to_ns)).map_or(0.0, |drops| drops.iter().sum::<u64>() as f64)
}

/// Utilisation of the link behind a queue from its first to its last drop within a span, where that is a fifth of the span.
fn used_while_dropping(queue: &LabQueue, link: &LabLink, span_ns: (u64, u64)) -> Option<f64> {
    let points = points(queue, span_ns.0, span_ns.1);
    let drops = queue.series.drops.get(points.clone())?;
    let first = drops.iter().position(|&drops| drops > 0)?;
    let last = drops.iter().rposition(|&drops| drops > 0)?;
    let at = |index: usize| (points.start + index) as u64 * queue.series.interval_ns;
    let long = (last + 1 - first) * 5 >= points.len();
    used(queue, link, (at(first), at(last + 1))).filter(|_| long).map(|(share, _)| share)
}

/// Utilisation of the link behind a queue, and the mean of what waited, within a span. The queue counts bytes without
/// framing; the link's totals say how much that adds.
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
