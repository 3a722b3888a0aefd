//! Nodes, ports, cables and addresses.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr};

use landspeed_model::{QueueRole, Topology, TopologyLink, TopologyNode};

use super::address::{mac, node_address, numbered_v6, splitmix};
use super::changes::PlannedCarrier;
use super::cpu::{self, PlannedCpu};
use super::{Cable, CapturePoint, Egress, EgressKind, Impairments, Node, PlanError, PlannedLoss, Port, Role, queues};
use crate::scenario::{
    BufferPolicy, Buffers, DEFAULT_MTU, Distribution, ETHERNET_HEADER, HostSettings, Link, LinkDirection, Loss,
    LossPattern, Scenario, SysctlValue,
};

/// Largest super-packet that TCP sends with segmentation offload, with its headers, bytes
/// (`GSO_LEGACY_MAX_SIZE`).
const SUPER_PACKET: u32 = 65_536 + 4096;
/// Maximum length of IP and TCP headers, bytes: IPv6 40, TCP 60.
const MAX_HEADER_BYTES: u32 = 100;
/// Ratio of TCP's buffers to the data that a path holds: the kernel counts whole pages and metadata.
const BUFFER_FACTOR: u64 = 4;
/// Minimum size of fitted buffers, bytes.
const MIN_FITTED_BYTES: u64 = 16 << 20;
/// Maximum size of a buffer, bytes. TCP's window is limited to 1 GiB (RFC 7323), and a buffer has room for the
/// window and for the kernel's metadata. The kernel counts a socket's memory in 31 bits, and compares after it
/// has added a packet: without a margin the count becomes negative, and the socket is no longer limited.
const MAX_BUFFER_BYTES: u64 = (2 << 30) - (64 << 20);
/// Defaults of a kernel with enough memory, bytes (maximum of `tcp_rmem`, `tcp_wmem`).
const DEFAULT_BUFFERS: (u64, u64) = (6_291_456, 4_194_304);
/// Bytes captured of each packet: headers with all options, and a margin.
const SNAP_BYTES: u32 = 128;

/// Key of a host's congestion control.
pub const CONGESTION_SYSCTL: &str = "net/ipv4/tcp_congestion_control";

/// Returns the configuration symbol of a congestion control; `None` for Reno, which every kernel has.
pub fn congestion_symbol(name: &str) -> Option<Cow<'static, str>> {
    match name {
        "reno" => None,
        "cubic" => Some("CONFIG_TCP_CONG_CUBIC".into()),
        "highspeed" => Some("CONFIG_TCP_CONG_HSTCP".into()),
        name => Some(format!("CONFIG_TCP_CONG_{}", name.to_ascii_uppercase().replace('-', "_")).into()),
    }
}

/// A scenario's network while it is planned.
pub struct Network {
    /// Namespaces: hosts and switches first, wires after them.
    pub nodes: Vec<Node>,
    /// Cables between the ports.
    pub cables: Vec<Cable>,
    /// The network as shown to the user.
    pub topology: Topology,
    names: BTreeMap<String, usize>,
    /// Neighbours of each host and switch: (node, link, whether this node is the link's first).
    adjacent: Vec<Vec<(usize, usize, bool)>>,
    links: Vec<LinkPlan>,
    /// Links that change during the run.
    pub carriers: Vec<PlannedCarrier>,
    /// Hosts whose CPU costs time.
    pub cpus: Vec<PlannedCpu>,
    buffers: Vec<Option<Buffers>>,
    waiting_bytes: u64,
}

struct LinkPlan {
    forward: Impairments,
    reverse: Impairments,
    /// Forward and reverse rate, bits/s; the highest of a link that changes. Its delays are the longest.
    rates: (u64, u64),
    mtu: u32,
}

/// Builds the network of a scenario.
pub fn build(scenario: &Scenario) -> Result<Network, PlanError> {
    let mut network = Network {
        nodes: Vec::new(),
        cables: Vec::new(),
        topology: Topology::default(),
        names: BTreeMap::new(),
        adjacent: Vec::new(),
        links: Vec::new(),
        carriers: Vec::new(),
        cpus: Vec::new(),
        buffers: Vec::new(),
        waiting_bytes: 0,
    };
    for (name, own) in &scenario.host {
        network.add_host(name, &own.or(&scenario.hosts))?;
    }
    for name in scenario.switch.keys() {
        network.add_node(name, Role::Switch)?;
        network.topology.nodes.push(TopologyNode {
            name: name.clone(),
            role: "switch".to_owned(),
            settings: Vec::new(),
        });
    }
    for (index, link) in scenario.link.iter().enumerate() {
        network.add_link(scenario, index, link)?;
    }
    network.fill_tables()?;
    Ok(network)
}

impl Network {
    fn add_node(&mut self, name: &str, role: Role) -> Result<usize, PlanError> {
        let index = self.nodes.len();
        if self.names.insert(name.to_owned(), index).is_some() {
            return Err(PlanError(format!("two nodes have the name `{name}`")));
        }
        let quiet = |key: &str, value: &str| (format!("net/ipv6/conf/{key}"), value.to_owned());
        let sysctls = match role {
            Role::Host => vec![
                quiet("default/accept_dad", "0"),
                quiet("default/accept_ra", "0"),
                quiet("default/router_solicitations", "0"),
            ],
            Role::Switch | Role::Wire | Role::Cpu => {
                vec![quiet("all/disable_ipv6", "1"), quiet("default/disable_ipv6", "1")]
            }
        };
        self.nodes.push(Node {
            name: name.to_owned(),
            role,
            ports: Vec::new(),
            sysctls,
            control: None,
            neighbours: Vec::new(),
            forwarding: Vec::new(),
            quick_ack: false,
        });
        self.adjacent.push(Vec::new());
        self.buffers.push(None);
        Ok(index)
    }

    fn add_host(&mut self, name: &str, settings: &HostSettings) -> Result<(), PlanError> {
        let index = self.add_node(name, Role::Host)?;
        let congestion = settings.congestion.clone().unwrap_or_else(|| "cubic".to_owned());
        let mut descriptions = vec![congestion.clone()];
        descriptions.push(queues::of_host(settings.qdisc.as_ref())?.kind.name().to_owned());
        if settings.tso == Some(false) {
            descriptions.push("no TSO".to_owned());
        }
        if settings.delayed_ack == Some(false) {
            descriptions.push("no delayed ACKs".to_owned());
        }
        if settings.cpu.is_some() {
            descriptions.push("CPU costs".to_owned());
        }
        self.topology.nodes.push(TopologyNode {
            name: name.to_owned(),
            role: "host".to_owned(),
            settings: descriptions,
        });
        let node = &mut self.nodes[index];
        node.control = Some(node_address(Ipv4Addr::new(172, 31, 0, 0), index));
        node.quick_ack = settings.delayed_ack == Some(false);
        node.sysctls.push((CONGESTION_SYSCTL.to_owned(), congestion));
        // Metrics that one flow left must not affect the next one.
        node.sysctls.push(("net/ipv4/tcp_no_metrics_save".to_owned(), "1".to_owned()));
        for (key, value) in &settings.sysctl {
            let value = match value {
                SysctlValue::Number(number) => number.to_string(),
                SysctlValue::Text(text) => text.clone(),
            };
            node.sysctls.push((key.replace('.', "/"), value));
        }
        self.buffers[index] = Some(settings.buffers.clone().unwrap_or(Buffers::Named(BufferPolicy::Fit)));
        Ok(())
    }

    fn add_link(&mut self, scenario: &Scenario, index: usize, link: &Link) -> Result<(), PlanError> {
        let [first, second] = &link.between;
        let (a, b) = (self.node(first)?, self.node(second)?);
        let mtu = link.mtu.unwrap_or(DEFAULT_MTU);
        let overhead = link.framing_bytes() as i32;
        let seed = |salt: u64| splitmix(scenario.seed ^ splitmix((index as u64) << 1 | salt));
        let (forward, reverse) = (direction(link, &link.forward, seed(0)), direction(link, &link.reverse, seed(1)));
        let rate = |own: &LinkDirection| own.rate.as_ref().unwrap_or(&link.rate).fixed_bps().unwrap_or(0);
        let carrier = scenario.changing_link(index);
        // Rates at the start, and highest rates; equal unless the link changes.
        let (rates, top) = if let Some(path) = &carrier {
            let most = |direction: &landspeed_emulation::DirectionPlan| direction.extremes(0).0;
            let first = |direction: &landspeed_emulation::DirectionPlan| direction.at(0, 0).0;
            let (ahead, back) = (&path.forward, &path.reverse);
            ((first(ahead), first(back)), (most(ahead), most(back)))
        } else {
            let rates = (rate(&link.forward), rate(&link.reverse));
            (rates, rates)
        };
        if rates.0 == 0 || rates.1 == 0 {
            return Err(PlanError(format!("the link between {first} and {second} has no rate")));
        }
        let wire = self.add_node(&format!("{first}={second}"), Role::Wire)?;
        let mut senders = [(0, 0); 2];
        for (end, node, other, rate_bps) in [(0, a, second, top.0), (1, b, first, top.1)] {
            let mut port = self.end_port(scenario, node, other, LinkParameters { rate_bps, overhead, mtu })?;
            if carrier.is_some() && self.nodes[node].role == Role::Switch {
                port.egress.kind = EgressKind::Carried;
            }
            self.nodes[node].ports.push(port);
            senders[end] = (node, self.nodes[node].ports.len() - 1);
            // Frames to this node leave the wire here, after crossing in the opposite direction.
            let (impairments, rate_bps) = if end == 0 { (&reverse, rates.1) } else { (&forward, rates.0) };
            let (from, to) = if end == 0 { (second, first) } else { (first, second) };
            let inner = Port {
                name: self.nodes[node].name.clone(),
                mac: mac(wire, end),
                mtu,
                addresses: Vec::new(),
                egress: Egress {
                    name: format!("{from}->{to}"),
                    role: QueueRole::Wire,
                    rate_bps,
                    overhead,
                    kind: match carrier {
                        Some(_) => EgressKind::Carried,
                        None => EgressKind::Wire(impairments.clone()),
                    },
                },
                gso_max_segs: None,
                gro_ns: None,
                drops: PlannedLoss::None,
            };
            self.nodes[wire].ports.push(inner);
            let port = self.nodes[node].ports.len() - 1;
            let before = add_cpu(self, scenario, node, mtu)?.unwrap_or((node, port));
            self.cables.push(Cable { a: before, b: (wire, end) });
        }
        self.adjacent[a].push((b, index, true));
        self.adjacent[b].push((a, index, false));
        self.topology.links.push(TopologyLink {
            between: link.between.clone(),
            rate_bps: rates.0,
            reverse_rate_bps: rates.1,
            delay_ns: forward.delay_ns,
            reverse_delay_ns: reverse.delay_ns,
            mtu_bytes: mtu,
            impairments: descriptions(&forward, &reverse),
        });
        let mut link_plan = LinkPlan { forward, reverse, rates: top, mtu };
        if let Some(path) = carrier {
            link_plan.forward.delay_ns = path.forward.extremes(0).1;
            link_plan.reverse.delay_ns = path.reverse.extremes(0).1;
            self.carriers.push(PlannedCarrier { node: wire, senders, path: path.path });
        }
        self.links.push(link_plan);
        Ok(())
    }

    /// Returns the port of a host or switch towards a neighbour.
    fn end_port(
        &mut self,
        scenario: &Scenario,
        node: usize,
        neighbour: &str,
        line: LinkParameters,
    ) -> Result<Port, PlanError> {
        let LinkParameters { rate_bps, overhead, mtu } = line;
        let Node { name, role, ports, .. } = &self.nodes[node];
        let frame = mtu + ETHERNET_HEADER;
        let mut port = Port {
            name: neighbour.to_owned(),
            mac: mac(node, ports.len()),
            mtu,
            addresses: Vec::new(),
            egress: Egress {
                name: format!("{name}->{neighbour}"),
                role: QueueRole::Switch,
                rate_bps,
                overhead,
                kind: EgressKind::Wire(Impairments::default()),
            },
            gso_max_segs: None,
            gro_ns: None,
            drops: PlannedLoss::None,
        };
        if *role == Role::Switch {
            let switch = &scenario.switch[name];
            let discipline = queues::of_switch(switch.port.get(neighbour).or(switch.queue.as_ref()))?;
            self.waiting_bytes += u64::from(discipline.limit_bytes.unwrap_or(0));
            port.egress.kind = EgressKind::Shaped {
                rate_bps,
                counts_overhead: true,
                burst_bytes: frame + overhead as u32,
                discipline,
            };
            return Ok(port);
        }
        if !ports.is_empty() {
            return Err(PlanError(format!("host `{name}` has more than one link")));
        }
        let settings = scenario.host[name].or(&scenario.hosts);
        let mut discipline = queues::of_host(settings.qdisc.as_ref())?;
        // Different from the links' seeds, which are made of small numbers.
        discipline.seed = splitmix(scenario.seed ^ splitmix(u64::MAX - node as u64));
        let tso = settings.tso.unwrap_or(true);
        // A super-packet is counted once, without the framing of its frames: a lower rate compensates for that.
        let framed = u128::from(rate_bps) * u128::from(frame) / u128::from(frame + overhead as u32);
        port.addresses =
            vec![(node_address(Ipv4Addr::new(10, 0, 0, 0), node).into(), 8), (numbered_v6(node).into(), 64)];
        port.gso_max_segs = (!tso).then_some(1);
        port.gro_ns = settings.gro.map(|t| t.0.get()).filter(|&ns| ns > 0);
        port.drops = settings.drops.as_ref().map_or(PlannedLoss::None, loss);
        port.egress.role = QueueRole::Host;
        port.egress.kind = EgressKind::Shaped {
            rate_bps: if tso { framed as u64 } else { rate_bps },
            counts_overhead: !tso,
            burst_bytes: if tso { SUPER_PACKET.max(frame) } else { frame + overhead as u32 },
            discipline,
        };
        Ok(port)
    }

    /// Fills the neighbour and forwarding tables.
    fn fill_tables(&mut self) -> Result<(), PlanError> {
        let hosts: Vec<usize> = (0..self.adjacent.len()).filter(|&n| self.nodes[n].role == Role::Host).collect();
        for &to in &hosts {
            let Some(port) = self.nodes[to].ports.first() else {
                return Err(PlanError(format!("host `{}` has no link", self.nodes[to].name)));
            };
            let (mac, addresses) = (port.mac, port.addresses.clone());
            // The paths to `to` from all nodes: each node's port nearest to it.
            let mut seen = vec![false; self.adjacent.len()];
            let mut queue = VecDeque::from([to]);
            seen[to] = true;
            while let Some(at) = queue.pop_front() {
                for &(next, link, _) in &self.adjacent[at].clone() {
                    if std::mem::replace(&mut seen[next], true) {
                        continue;
                    }
                    let port = self.port_towards(next, link);
                    match self.nodes[next].role {
                        Role::Switch => self.nodes[next].forwarding.push((mac, port)),
                        _ => self.nodes[next].neighbours.extend(addresses.iter().map(|(ip, _)| (*ip, mac))),
                    }
                    queue.push_back(next);
                }
            }
        }
        Ok(())
    }

    /// Returns a node's port on a link; ports are in the order of the scenario's links.
    fn port_towards(&self, node: usize, link: usize) -> usize {
        self.adjacent[node].iter().position(|&(_, l, _)| l == link).unwrap_or(0)
    }

    fn node(&self, name: &str) -> Result<usize, PlanError> {
        self.names.get(name).copied().ok_or_else(|| PlanError(format!("no such node: `{name}`")))
    }

    /// Returns the index of a host.
    pub fn host(&self, name: &str) -> Result<usize, PlanError> {
        let node = self.node(name)?;
        if self.nodes[node].role == Role::Host { Ok(node) } else { Err(PlanError(format!("`{name}` is not a host"))) }
    }

    /// Returns a host's address on the path.
    pub fn address(&self, node: usize, ipv6: bool) -> Result<IpAddr, PlanError> {
        let port = self.nodes[node].ports.first();
        port.and_then(|port| port.addresses.iter().map(|(ip, _)| *ip).find(|ip| ip.is_ipv6() == ipv6))
            .ok_or_else(|| PlanError(format!("host `{}` has no link", self.nodes[node].name)))
    }

    /// Returns a host's address on the control network.
    pub fn control(&self, node: usize) -> Result<Ipv4Addr, PlanError> {
        self.nodes[node].control.ok_or_else(|| PlanError(format!("`{}` is not a host", self.nodes[node].name)))
    }

    /// Returns the links from one node to another, each with whether it is entered at its first node.
    fn path(&self, from: usize, to: usize) -> Result<Vec<(usize, bool)>, PlanError> {
        let mut before: Vec<Option<(usize, usize, bool)>> = vec![None; self.adjacent.len()];
        let mut queue = VecDeque::from([from]);
        while let Some(at) = queue.pop_front() {
            for &(next, link, first) in &self.adjacent[at] {
                if next != from && before[next].is_none() {
                    before[next] = Some((at, link, first));
                    queue.push_back(next);
                }
            }
        }
        let mut path = Vec::new();
        let mut at = to;
        while at != from {
            let (previous, link, first) = before[at].ok_or_else(|| {
                PlanError(format!("no path from `{}` to `{}`", self.nodes[from].name, self.nodes[to].name))
            })?;
            path.push((link, first));
            at = previous;
        }
        path.reverse();
        Ok(path)
    }

    /// Returns the round-trip propagation delay, nanoseconds.
    pub fn rtt_ns(&self, from: usize, to: usize) -> Result<u64, PlanError> {
        Ok(self
            .path(from, to)?
            .iter()
            .map(|&(l, _)| self.links[l].forward.delay_ns + self.links[l].reverse.delay_ns)
            .sum())
    }

    /// Returns the smallest MTU on the path, bytes.
    pub fn path_mtu(&self, from: usize, to: usize) -> Result<u32, PlanError> {
        Ok(self.path(from, to)?.iter().map(|&(l, _)| self.links[l].mtu).min().unwrap_or(DEFAULT_MTU))
    }

    /// Returns the rate of the slowest link on the path, bits/s.
    fn path_rate(&self, from: usize, to: usize) -> Result<u64, PlanError> {
        let rate = |&(l, first): &(usize, bool)| {
            let (there, reverse) = self.links[l].rates;
            if first { there } else { reverse }
        };
        Ok(self.path(from, to)?.iter().map(rate).min().unwrap_or(0))
    }

    /// Returns the interface that `NODE:NEIGHBOUR` names.
    pub fn capture(&self, at: &str) -> Result<CapturePoint, PlanError> {
        let (node, neighbour) = at.split_once(':').ok_or_else(|| {
            PlanError(format!("cannot capture at `{at}`: not NODE:NEIGHBOUR\nUse, for example, sender:west."))
        })?;
        let index = self.node(node)?;
        let ports = &self.nodes[index].ports;
        let port = ports.iter().position(|port| port.name == neighbour).ok_or_else(|| {
            let names: Vec<&str> = ports.iter().map(|port| port.name.as_str()).collect();
            PlanError(format!(
                "cannot capture at `{node}`: it has no link to `{neighbour}`\nUse one of: {}",
                names.join(", ")
            ))
        })?;
        Ok(CapturePoint { node: index, port, file: format!("{node}.{neighbour}.pcap"), snap: SNAP_BYTES })
    }

    /// Sets the maximum sizes of TCP's buffers, which depend on the pairs of hosts that communicate.
    pub fn finish(&mut self, pairs: &[(usize, usize)]) {
        let mut holds = vec![0_u64; self.nodes.len()];
        for &(from, to) in pairs {
            let rate = self.path_rate(from, to).unwrap_or(0).max(self.path_rate(to, from).unwrap_or(0));
            let bdp = u128::from(rate) * u128::from(self.rtt_ns(from, to).unwrap_or(0)) / 8_000_000_000;
            let path = u64::try_from(bdp).unwrap_or(u64::MAX).saturating_add(self.waiting_bytes);
            for node in [from, to] {
                holds[node] = holds[node].max(path);
            }
        }
        for (node, holds) in self.nodes.iter_mut().zip(holds) {
            let Some(buffers) = self.names.get(&node.name).and_then(|&index| self.buffers[index].clone()) else {
                continue;
            };
            let (read, write) = match buffers {
                Buffers::Named(BufferPolicy::Fit) => {
                    let fit = holds.saturating_mul(BUFFER_FACTOR).clamp(MIN_FITTED_BYTES, MAX_BUFFER_BYTES);
                    (fit, fit)
                }
                Buffers::Named(BufferPolicy::Stock) => DEFAULT_BUFFERS,
                Buffers::UpTo(size) => (size.0.get().min(MAX_BUFFER_BYTES), size.0.get().min(MAX_BUFFER_BYTES)),
            };
            // The scenario's own sysctls follow, and override these.
            node.sysctls.insert(0, ("net/ipv4/tcp_rmem".to_owned(), format!("4096 131072 {read}")));
            node.sysctls.insert(0, ("net/ipv4/tcp_wmem".to_owned(), format!("4096 16384 {write}")));
        }
    }
}

/// The rate, framing and MTU of one direction of a link.
#[derive(Clone, Copy)]
struct LinkParameters {
    rate_bps: u64,
    overhead: i32,
    mtu: u32,
}

/// Returns the maximum number of frames in a super-packet: each contains at least eight bytes of payload.
pub(super) fn max_frames(mtu: u32) -> u32 {
    SUPER_PACKET.div_ceil(mtu.saturating_sub(MAX_HEADER_BYTES).max(8))
}

fn direction(link: &Link, own: &LinkDirection, seed: u64) -> Impairments {
    let settings = link.effective(own);
    let share = |share: Option<crate::scenario::Share>| share.map_or(0.0, |s| s.0.get());
    Impairments {
        delay_ns: settings.delay.map_or(0, |t| t.0.get()),
        jitter_ns: settings.jitter.as_ref().map_or(0, |j| j.spread.0.get()),
        normal: settings.jitter.is_some_and(|j| j.distribution == Distribution::Normal),
        slot_ns: settings.slot.map_or(0, |t| t.0.get()),
        frame_ns: settings.frame_clock.map_or(0, |t| t.0.get()),
        loss: settings.loss.as_ref().map_or(PlannedLoss::None, loss),
        reorder: share(settings.reorder),
        duplicate: share(settings.duplicate),
        seed,
    }
}

fn loss(loss: &Loss) -> PlannedLoss {
    match loss {
        Loss::Random(share) | Loss::Pattern(LossPattern::Random(share)) if share.0.get() == 0.0 => PlannedLoss::None,
        Loss::Random(share) | Loss::Pattern(LossPattern::Random(share)) => PlannedLoss::Random(share.0.get()),
        Loss::Pattern(LossPattern::Every(0)) => PlannedLoss::None,
        Loss::Pattern(LossPattern::Every(n)) => PlannedLoss::Every(*n),
        Loss::Pattern(LossPattern::Packets(packets)) => PlannedLoss::Packets(packets.clone()),
        Loss::Pattern(LossPattern::LongerThan(bytes)) => PlannedLoss::LongerThan(*bytes),
        Loss::Pattern(LossPattern::GilbertElliott(model)) => {
            let [p, r, bad, good] = model.probabilities();
            PlannedLoss::GilbertElliott(p, r, bad, good)
        }
    }
}

fn descriptions(forward: &Impairments, reverse: &Impairments) -> Vec<String> {
    let mut descriptions = Vec::new();
    for (direction, impairments) in [("forward", forward), ("reverse", reverse)] {
        match &impairments.loss {
            PlannedLoss::None => {}
            PlannedLoss::Random(p) => descriptions.push(format!("{direction}: random loss {:.6} %", p * 100.0)),
            PlannedLoss::Every(n) => descriptions.push(format!("{direction}: loses 1 in {n} frames")),
            PlannedLoss::Packets(list) => {
                descriptions.push(format!("{direction}: loses {} specified frames", list.len()));
            }
            PlannedLoss::LongerThan(bytes) => {
                descriptions.push(format!("{direction}: loses packets larger than {bytes} bytes"));
            }
            PlannedLoss::GilbertElliott(..) => {
                descriptions.push(format!("{direction}: burst loss (Gilbert-Elliott)"));
            }
        }
        if impairments.jitter_ns > 0 {
            descriptions.push(format!("{direction}: jitter {:.3} ms", impairments.jitter_ns as f64 / 1e6));
        }
        if impairments.slot_ns > 0 {
            descriptions.push(format!("{direction}: slots of {:.3} ms", impairments.slot_ns as f64 / 1e6));
        }
        if impairments.frame_ns > 0 {
            descriptions.push(format!("{direction}: frame clock of {:.3} ms", impairments.frame_ns as f64 / 1e6));
        }
        if impairments.reorder > 0.0 {
            descriptions.push(format!("{direction}: reorders {:.4} %", impairments.reorder * 100.0));
        }
        if impairments.duplicate > 0.0 {
            descriptions.push(format!("{direction}: duplicates {:.4} %", impairments.duplicate * 100.0));
        }
    }
    descriptions
}

/// Plans the CPU of a node if it is a host whose CPU costs time. If received frames cost time, adds a node for its receive path
/// between the host and its link, and returns that node's port towards the link.
fn add_cpu(
    network: &mut Network,
    scenario: &Scenario,
    host: usize,
    mtu: u32,
) -> Result<Option<(usize, usize)>, PlanError> {
    let name = network.nodes[host].name.clone();
    let Some(own) = scenario.host.get(&name) else { return Ok(None) };
    let settings = own.or(&scenario.hosts);
    let Some(costs) = settings.cpu else { return Ok(None) };
    // Different from the seeds of links and qdiscs, which are made of small numbers and of their complements.
    let seed = splitmix(scenario.seed ^ splitmix(1 << 40 | host as u64));
    let mut planned = PlannedCpu::new(&costs, host, settings.tso != Some(false), seed);
    let Some(receive) = planned.receive.as_mut() else {
        network.cpus.push(planned);
        return Ok(None);
    };
    let node = network.add_node(&format!("{name} CPU"), Role::Cpu)?;
    receive.node = node;
    let port = &mut network.nodes[host].ports[0];
    port.gro_ns = receive.gro.then_some(cpu::GRO_NS);
    let egress = Egress { kind: EgressKind::Carried, ..port.egress.clone() };
    for (end, neighbour) in [name.as_str(), "link"].into_iter().enumerate() {
        network.nodes[node].ports.push(Port {
            name: neighbour.to_owned(),
            mac: mac(node, end),
            mtu,
            addresses: Vec::new(),
            egress: egress.clone(),
            gso_max_segs: None,
            gro_ns: None,
            drops: PlannedLoss::None,
        });
    }
    network.cables.push(Cable { a: (host, 0), b: (node, 0) });
    network.cpus.push(planned);
    Ok(Some((node, 1)))
}
