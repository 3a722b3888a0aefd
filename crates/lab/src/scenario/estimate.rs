//! Estimates of the resources that a cell needs, from its scenario before the boot.
//!
//! They serve to decide whether to start, not for reports: TCP is assumed to use the whole path.

use std::collections::{BTreeMap, BTreeSet};

use super::paths::{Hop, Paths, Route};
use super::{
    DEFAULT_QUEUE_BYTES, ETHERNET_HEADER, Flow, FlowProtocol, Loss, LossPattern, Program, Queue, Scenario, Stop,
    section,
};

/// Costs of a guest, to be calibrated against runs.
mod cost {
    /// Wall time of a packet at each node and link on its path, seconds.
    pub const PACKET_HOP_S: f64 = 0.7e-6;
    /// Wall time of a packet on a host's receive path, in packets at a node. Half of a flow's packets, or a few more, take one.
    pub const RECEIVE_PATH_HOPS: f64 = 14.0;
    /// Wall time of a system call, or of a timer that wakes a process, seconds.
    pub const EVENT_S: f64 = 3e-6;
    /// Wall time to boot, seconds.
    pub const BOOT_S: f64 = 0.5;
    /// Wall time to build a node, seconds.
    pub const NODE_S: f64 = 0.005;
    /// Memory of an idle guest, bytes.
    pub const BASE: u64 = 256 << 20;
    /// Memory of a packet's metadata (`struct sk_buff`, its clone, and the head it points to), bytes.
    pub const SKB: u64 = 768;
    /// Memory for programs of this host, bytes.
    pub const PROGRAMS: u64 = 512 << 20;
    /// Memory for the files that the programs of one host write (`guest::root`), bytes.
    pub const SCRATCH: u64 = 256 << 20;
    /// Number of segments per ACK.
    pub const SEGMENTS_PER_ACK: f64 = 2.0;
    /// Bytes per system call of a bulk sender or receiver.
    pub const BYTES_PER_CALL: f64 = 262_144.0;
}

/// Default limit of queues that are limited in packets.
const DEFAULT_PACKETS: u64 = 1_000;

/// Estimated resources of a cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Memory of the guest, bytes: as set in the scenario, or as full paths and queues need.
    pub memory_bytes: u64,
    /// Real time from boot to power-off, seconds.
    pub wall_s: f64,
    /// Virtual time from the scenario's zero to the end of its last flow, seconds.
    pub virtual_s: f64,
    /// Packets sent by end hosts, ACKs included.
    pub packets: f64,
}

/// Estimates the resources of a scenario with nothing left to vary. Invalid parts count as zero.
pub fn estimate(scenario: &Scenario) -> Estimate {
    let paths = Paths::new(scenario);
    let mut sum = WorkEstimate::default();
    let mut end_s: f64 = 0.0;
    for flow in &scenario.flow {
        let Some(route) = paths.route(&flow.from, &flow.to) else { continue };
        let Some(back) = paths.route(&flow.to, &flow.from) else { continue };
        let time_s = time_s(scenario, flow, &route);
        let start_s = [flow.start, flow.start_spread].into_iter().flatten().map(|t| t.0.as_secs_f64()).sum::<f64>();
        end_s = end_s.max(start_s + time_s);
        sum.flow(scenario, flow, &route, &back, time_s);
    }
    end_s = scenario.program.iter().map(|program| program_end_s(scenario, program)).fold(end_s, f64::max);
    for (from, to) in program_pairs(scenario) {
        let Some(route) = paths.route(from, to) else { continue };
        sum.program(&route, end_s);
    }
    // Flows that share a link share its rate: a link carries no more than its capacity.
    let queues = scenario.link.len() as f64 * 4.0;
    let samples = end_s / scenario.sample.0.as_secs_f64().max(1e-6) * queues;
    let nodes = (scenario.host.len() + scenario.switch.len() + scenario.link.len()) as f64;
    let wall_s = cost::BOOT_S
        + cost::NODE_S * nodes
        + sum.packet_hops * sum.shared(&paths, scenario, end_s) * cost::PACKET_HOP_S
        + (sum.events + samples) * cost::EVENT_S;
    Estimate {
        memory_bytes: scenario.memory.map_or_else(|| needed_memory(scenario), |m| m.0.get()),
        wall_s,
        virtual_s: end_s,
        packets: sum.packets * sum.shared(&paths, scenario, end_s),
    }
}

/// Returns the latest end of a program, seconds; 0 for one that ends with the others.
fn program_end_s(scenario: &Scenario, program: &Program) -> f64 {
    match program.stop {
        Some(Stop::At(stop)) => stop.0.as_secs_f64(),
        Some(Stop::With(_)) => 0.0,
        None => {
            program.at.map_or(0.0, |at| at.0.as_secs_f64()) + program.time.unwrap_or(scenario.time).0.as_secs_f64()
        }
    }
}

/// Returns the pairs of hosts with programs, between which these may send.
fn program_pairs(scenario: &Scenario) -> Vec<(&str, &str)> {
    let hosts: BTreeSet<&str> = scenario.program.iter().map(|program| program.host.as_str()).collect();
    hosts.iter().flat_map(|&a| hosts.range(a..).skip(1).map(move |&b| (a, b))).collect()
}

fn time_s(scenario: &Scenario, flow: &Flow, route: &Route) -> f64 {
    if flow.protocol == Some(FlowProtocol::Qualify) {
        return section::work(flow, route).time_s;
    }
    let omit = flow.omit.map_or(0.0, |t| t.0.as_secs_f64());
    match (flow.time, flow.bytes) {
        (Some(time), _) => omit + time.0.as_secs_f64(),
        (None, None) => omit + scenario.time.0.as_secs_f64(),
        (None, Some(bytes)) => {
            omit + bytes.0.get() as f64 * 8.0 / offered_bps(flow, route).max(1.0) + route.rtt_ns() as f64 / 1e9 * 10.0
        }
    }
}

/// Returns the maximum rate that a flow sends in one direction, bits/s.
fn offered_bps(flow: &Flow, route: &Route) -> f64 {
    let streams = f64::from(flow.streams.unwrap_or(1));
    let path = route.rate_bps() as f64;
    let asked = [flow.rate, flow.pace, flow.read_rate].into_iter().flatten().map(|r| r.0.bps() as f64 * streams);
    let asked = asked.fold(f64::INFINITY, f64::min);
    // UDP is sent even if it exceeds the path.
    if flow.protocol == Some(FlowProtocol::Udp) { asked.min(1e15) } else { asked.min(path) }
}

/// Returns the rate that random loss leaves to TCP, bits/s: MSS/RTT * 1.22/sqrt(p) for each stream (Mathis et al.
/// 1997), times three for slow start and for congestion controls that are faster than Reno. Infinite without
/// loss, and for BBR.
fn loss_limit_bps(scenario: &Scenario, flow: &Flow, way: &Route) -> f64 {
    let Some(sender) = way.hops.first().and_then(|hop| scenario.host.get(hop.out_of)) else { return f64::INFINITY };
    let congestion = flow.congestion.as_ref().or(sender.congestion.as_ref()).or(scenario.hosts.congestion.as_ref());
    if congestion.is_some_and(|name| name.starts_with("bbr")) {
        return f64::INFINITY;
    }
    let lost = |hop: &Hop| {
        let link = &scenario.link[hop.link];
        let own = if hop.forward { &link.forward } else { &link.reverse };
        match own.loss.as_ref().or(link.loss.as_ref()) {
            Some(Loss::Random(share) | Loss::Pattern(LossPattern::Random(share))) => share.0.get(),
            Some(Loss::Pattern(LossPattern::Every(n))) => 1.0 / (*n).max(1) as f64,
            _ => 0.0,
        }
    };
    let (mut p, mut rtt_s) = (way.hops.iter().map(lost).sum::<f64>(), way.rtt_ns() as f64 / 1e9);
    if let Some(Queue::Settings(own)) = sender.qdisc.as_ref().or(scenario.hosts.qdisc.as_ref()) {
        p += own.loss.map_or(0.0, |share| share.0.get());
        rtt_s += own.delay.map_or(0.0, |delay| delay.0.as_secs_f64());
    }
    if p <= 0.0 || rtt_s <= 0.0 {
        return f64::INFINITY;
    }
    f64::from(flow.streams.unwrap_or(1)) * 3.0 * 1.22 / p.sqrt() * payload_bytes(flow, way) * 8.0 / rtt_s
}

#[derive(Default)]
struct WorkEstimate {
    packets: f64,
    packet_hops: f64,
    events: f64,
    /// Bits offered to each direction of each link.
    bits: BTreeMap<(usize, bool), f64>,
}

impl WorkEstimate {
    fn flow(&mut self, scenario: &Scenario, flow: &Flow, route: &Route, back: &Route, time_s: f64) {
        let protocol = flow.protocol.unwrap_or(FlowProtocol::Tcp);
        // Every link has a node at each end, and a wire.
        let receive_paths =
            [&flow.from, &flow.to].into_iter().filter(|name| has_receive_path(scenario, name)).count();
        let hops = route.hops.len() as f64 * 2.0 + 1.0 + receive_paths as f64 * cost::RECEIVE_PATH_HOPS / 2.0;
        if let Some(per_s) = flow.probe {
            self.add(2.0 * per_s * time_s, hops, 4.0 * per_s * time_s);
        }
        if matches!(protocol, FlowProtocol::TcpRr | FlowProtocol::UdpRr) {
            let rtt_s = (route.rtt_ns() as f64 / 1e9).max(20e-6);
            let per_s = flow.requests_per_s.unwrap_or(1.0 / rtt_s) * f64::from(flow.streams.unwrap_or(1));
            let each = if flow.connect { 8.0 } else { 3.0 };
            self.add(each * per_s * time_s, hops, 6.0 * per_s * time_s);
            return;
        }
        if protocol == FlowProtocol::Qualify {
            let packets = section::work(flow, route).packets;
            self.add(packets, hops, 2.0 * packets);
            return;
        }
        let ways: &[&Route] = if flow.bidir {
            &[route, back]
        } else if flow.reverse {
            &[back]
        } else {
            &[route]
        };
        for way in ways {
            let mut bits = offered_bps(flow, way) * time_s;
            if protocol == FlowProtocol::Tcp {
                bits = bits.min(loss_limit_bps(scenario, flow, way) * time_s);
            }
            let payload = payload_bytes(flow, way);
            let packets = bits / 8.0 / payload;
            if protocol == FlowProtocol::Udp {
                self.add(packets, hops, 2.0 * packets);
            } else {
                let acks = packets / cost::SEGMENTS_PER_ACK;
                self.add(packets + acks, hops, 2.0 * bits / 8.0 / cost::BYTES_PER_CALL + packets / 8.0);
            }
            for hop in &way.hops {
                *self.bits.entry((hop.link, hop.forward)).or_default() += bits;
            }
        }
    }

    /// Adds what programs of two hosts may send: as much as the path carries, in one direction.
    fn program(&mut self, route: &Route, time_s: f64) {
        let bits = route.rate_bps() as f64 * time_s;
        let packets = bits / 8.0 / f64::from(route.mtu());
        self.add(packets * (1.0 + 1.0 / cost::SEGMENTS_PER_ACK), route.hops.len() as f64 * 2.0 + 1.0, packets);
        for hop in &route.hops {
            *self.bits.entry((hop.link, hop.forward)).or_default() += bits;
        }
    }

    fn add(&mut self, packets: f64, hops: f64, events: f64) {
        self.packets += packets;
        self.packet_hops += packets * hops;
        self.events += events;
    }

    /// Returns the share of the offered traffic that the most loaded link carries in `end_s` seconds.
    fn shared(&self, paths: &Paths, scenario: &Scenario, end_s: f64) -> f64 {
        let share = |(&(link, forward), bits): (&(usize, bool), &f64)| {
            let [a, b] = &scenario.link[link].between;
            let (from, to) = if forward { (a, b) } else { (b, a) };
            let rate = paths.neighbours(from).find(|hop| hop.into == to).map_or(0, |hop| hop.rate_bps);
            if *bits > 0.0 { (rate as f64 * end_s / bits).min(1.0) } else { 1.0 }
        };
        self.bits.iter().map(share).fold(1.0, f64::min)
    }
}

/// Returns whether the frames that a host receives cost CPU time.
fn has_receive_path(scenario: &Scenario, name: &str) -> bool {
    let own = scenario.host.get(name).and_then(|host| host.cpu.as_ref());
    own.or(scenario.hosts.cpu.as_ref()).is_some_and(|cpu| cpu.receive.is_some())
}

fn payload_bytes(flow: &Flow, route: &Route) -> f64 {
    let mtu = f64::from(route.mtu());
    let fits = (mtu - if flow.ipv6 { 60.0 } else { 40.0 }).max(1.0);
    match flow.protocol {
        Some(FlowProtocol::Udp) => flow.len.map_or(mtu - 28.0, |l| l.0.get() as f64).max(1.0),
        _ => flow.mss.map_or(fits, |mss| f64::from(mss).clamp(1.0, fits)),
    }
}

/// Returns the memory that the guest needs when every path and every queue is full, bytes.
pub(super) fn needed_memory(scenario: &Scenario) -> u64 {
    let paths = Paths::new(scenario);
    // A link holds its bandwidth-delay product, and the queue before it up to its limit, for any sender.
    let mut total = cost::BASE;
    for (i, link) in scenario.link.iter().enumerate() {
        let [a, b] = &link.between;
        for (from, to) in [(a, b), (b, a)] {
            let Some(hop) = paths.neighbours(from).find(|hop| hop.link == i && hop.into == to) else { continue };
            let flying = u128::from(hop.rate_bps) * u128::from(hop.delay_ns) / 8_000_000_000;
            let frame = u64::from(hop.mtu + ETHERNET_HEADER);
            let waiting =
                scenario.switch.get(from).map_or(0, |s| queue_bytes(s.port.get(to).or(s.queue.as_ref()), frame));
            total = total.saturating_add(frames_memory(saturated(flying).saturating_add(waiting), frame));
        }
    }
    // A sender keeps its unacknowledged data: the pages are shared with the packets in flight, the metadata is not.
    // Unread data at the receiver is up to one more window.
    // Flows that share links share one BDP, at the slowest link that most of them have in common.
    let ends = scenario.flow.iter().map(|flow| (flow.from.as_str(), flow.to.as_str()));
    let routes: Vec<Route> =
        ends.chain(program_pairs(scenario)).filter_map(|(from, to)| paths.route(from, to)).collect();
    let mut crossing: BTreeMap<usize, usize> = BTreeMap::new();
    for hop in routes.iter().flat_map(|route| &route.hops) {
        *crossing.entry(hop.link).or_default() += 1;
    }
    let mut windows: BTreeMap<usize, u64> = BTreeMap::new();
    for route in &routes {
        let narrow = |hop: &&Hop| (hop.rate_bps, std::cmp::Reverse(crossing[&hop.link]));
        let Some(hop) = route.hops.iter().min_by_key(narrow) else { continue };
        let frame = u64::from(route.mtu() + ETHERNET_HEADER);
        let window = route.bdp_bytes();
        let frames_memory =
            frames_memory(window, frame).saturating_add((window / frame.max(1)).saturating_mul(cost::SKB));
        let most = windows.entry(hop.link).or_default();
        *most = frames_memory.max(*most);
    }
    if !scenario.program.is_empty() {
        let hosts: BTreeSet<&str> = scenario.program.iter().map(|program| program.host.as_str()).collect();
        total = total.saturating_add(cost::PROGRAMS + cost::SCRATCH * hosts.len() as u64);
    }
    total = windows.values().fold(total, |sum, frames_memory| sum.saturating_add(*frames_memory));
    (total.min(u64::MAX / 2)).next_multiple_of(1 << 20)
}

fn saturated(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX / 4)
}

/// Returns the memory of `bytes` in frames of `frame` bytes.
fn frames_memory(bytes: u64, frame: u64) -> u64 {
    bytes.saturating_add((bytes / frame.max(1)).saturating_mul(cost::SKB))
}

fn queue_bytes(queue: Option<&Queue>, frame: u64) -> u64 {
    match queue {
        None => u64::from(DEFAULT_QUEUE_BYTES),
        Some(Queue::Kind(_)) => u64::from(DEFAULT_QUEUE_BYTES).max(DEFAULT_PACKETS * frame),
        Some(Queue::Settings(s)) => match (s.limit, s.packets) {
            (Some(limit), _) => limit.0.get(),
            (None, Some(packets)) => u64::from(packets).saturating_mul(frame),
            (None, None) => u64::from(DEFAULT_QUEUE_BYTES).max(DEFAULT_PACKETS * frame),
        },
    }
}
