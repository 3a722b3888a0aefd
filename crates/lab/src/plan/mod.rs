//! A scenario resolved to every interface: the network that the guest builds, in numbers. It is passed to the
//! guest as JSON.
//!
//! Every node is a network namespace. A link becomes a *wire*: a separate namespace with two ports, where a frame
//! that arrives at one leaves by the other through `netem`, which adds its time on the link (serialisation at the
//! link's rate, then the delay) and applies the losses of the link. Only packets in flight are queued there. The
//! queue of a switch port is in the switch: a token bucket of a single frame at the link's rate, with the port's
//! queueing discipline inside. A host's own discipline is inside a token bucket as well, which is one
//! segmentation-offload burst deep, so that its NIC's rate causes back-pressure.
//!
//! A link that changes during the run, and the queue before it, are carried by a model instead: see `changes`. So is the
//! receive path of a host whose CPU costs time: see `cpu`.

mod address;
mod changes;
mod cpu;
mod flows;
mod network;
mod programs;
mod queues;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

use landspeed_emulation::LoadedPath;
use landspeed_model::{LabEvent, Parameters, QualifySection, QualifyTarget, QueueRole, Topology};
use serde::{Deserialize, Serialize};

pub use changes::{PlannedCarrier, PlannedSetting};
pub use cpu::{HostCall, PlannedCall, PlannedCpu, PlannedReceive};
pub use programs::{OWN_PROGRAM, PlannedProgram, PlannedStop};

use crate::scenario::Scenario;

/// Configuration symbol of the classifier that drops frames.
const NET_CLS_BPF: &str = "CONFIG_NET_CLS_BPF";

/// The network that the guest builds, and the flows it runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Seed of all random draws.
    pub seed: u64,
    /// Nodes: hosts and switches first, then wires.
    pub nodes: Vec<Node>,
    /// Virtual Ethernet cables between ports.
    pub cables: Vec<Cable>,
    /// Flows, in the scenario's order.
    pub flows: Vec<PlannedFlow>,
    /// Programs, in the scenario's order.
    pub programs: Vec<PlannedProgram>,
    /// Links that change during the run.
    #[serde(default)]
    pub carriers: Vec<PlannedCarrier>,
    /// Hosts whose CPU costs time.
    #[serde(default)]
    pub cpus: Vec<PlannedCpu>,
    /// Sysctls that change during the run, in the order of time.
    #[serde(default)]
    pub settings: Vec<PlannedSetting>,
    /// Events as documents show them, in the order of time.
    #[serde(default)]
    pub events: Vec<LabEvent>,
    /// Working directory of programs.
    pub directory: String,
    /// Sampling interval of switch and host queues, nanoseconds.
    pub sample_ns: u64,
    /// Time before the scenario's zero for the first flows to prepare, nanoseconds.
    pub lead_ns: u64,
    /// Expected end of the last flow, nanoseconds from zero.
    pub span_ns: u64,
    /// Interfaces to capture on.
    pub captures: Vec<CapturePoint>,
    /// The network as shown to the user.
    pub topology: Topology,
    /// Whether the kernel keeps rates to fractions of a nanosecond per frame, and counts every frame of a
    /// super-packet.
    #[serde(default)]
    pub exact_links: bool,
}

/// Role of a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// An end host.
    Host,
    /// A switch that forwards by static tables.
    Switch,
    /// A link.
    Wire,
    /// Receive path of a host, between the host and its link.
    Cpu,
}

/// A network namespace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// Name of the node; of a wire, `FIRST=SECOND`.
    pub name: String,
    /// Role of the node.
    pub role: Role,
    /// Data interfaces.
    pub ports: Vec<Port>,
    /// Files under `/proc/sys` and the values to write, in order.
    pub sysctls: Vec<(String, String)>,
    /// Hosts: address on the control network, which carries no traffic of the scenario.
    pub control: Option<Ipv4Addr>,
    /// Hosts: static neighbour entries of all other hosts, so that no address resolution is on the path.
    pub neighbours: Vec<(IpAddr, [u8; 6])>,
    /// Switches: MAC address of each host, and the port to it.
    pub forwarding: Vec<([u8; 6], usize)>,
    /// Hosts: whether ACKs are never delayed.
    pub quick_ack: bool,
}

/// A network interface.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Port {
    /// Name of the neighbour.
    pub name: String,
    /// MAC address.
    pub mac: [u8; 6],
    /// MTU, bytes.
    pub mtu: u32,
    /// Addresses with their prefix lengths.
    pub addresses: Vec<(IpAddr, u8)>,
    /// Qdiscs and link that frames are sent through.
    pub egress: Egress,
    /// Maximum number of segments in a GSO packet (`gso_max_segs`); 1 turns segmentation offload off.
    pub gso_max_segs: Option<u32>,
    /// Time for which GRO gathers arriving packets, nanoseconds; `None` turns GRO off.
    pub gro_ns: Option<u64>,
    /// Hosts: received frames that the kernel drops.
    #[serde(default)]
    pub drops: PlannedLoss,
}

/// The qdiscs of an interface and the link after them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Egress {
    /// Name in the document.
    pub name: String,
    /// Role in the document.
    pub role: QueueRole,
    /// Rate of the link, bits/s.
    pub rate_bps: u64,
    /// Framing per frame on the link, bytes.
    pub overhead: i32,
    /// Kind of egress.
    pub kind: EgressKind,
}

/// Kinds of egress.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum EgressKind {
    /// A token bucket (tbf) with a qdisc inside.
    Shaped {
        /// Rate of the bucket, bits/s.
        rate_bps: u64,
        /// Whether the bucket counts the framing of each frame.
        counts_overhead: bool,
        /// Burst size of the bucket, bytes.
        burst_bytes: u32,
        /// Qdisc inside the bucket.
        discipline: Discipline,
    },
    /// Delay and losses of a link (netem).
    Wire(Impairments),
    /// No qdisc: a port of a link that changes, or of the switch before it, whose queue and link are in the model; or of a
    /// host's receive path.
    Carried,
}

/// A qdisc with all of its settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Discipline {
    /// Kind of qdisc.
    pub kind: crate::scenario::QueueKind,
    /// Limit, bytes.
    pub limit_bytes: Option<u32>,
    /// Limit, packets.
    pub limit_packets: Option<u32>,
    /// red: minimum and maximum threshold, bytes.
    pub thresholds: Option<(u32, u32)>,
    /// red: drop probability at the maximum threshold.
    pub probability: Option<f64>,
    /// codel, fq_codel, pie: target delay, nanoseconds.
    pub target_ns: Option<u64>,
    /// codel, fq_codel: interval; cake: RTT; nanoseconds.
    pub interval_ns: Option<u64>,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: Option<bool>,
    /// fq: limit of one flow, packets.
    pub flow_packets: Option<u32>,
    /// fq: maximum rate of a flow, bits/s.
    pub max_rate_bps: Option<u64>,
    /// fq: whether it paces.
    pub pacing: Option<bool>,
    /// netem: delay, nanoseconds.
    pub delay_ns: Option<u64>,
    /// netem: share lost, 0..=1.
    pub loss: Option<f64>,
    /// netem: seed of its random draws.
    pub seed: u64,
}

/// Impairments of one direction of a link.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Impairments {
    /// One-way delay, nanoseconds.
    pub delay_ns: u64,
    /// Half the width of the uniform distribution, or the standard deviation of the normal one, nanoseconds.
    pub jitter_ns: u64,
    /// Whether the jitter is normally distributed, instead of uniformly.
    pub normal: bool,
    /// Slot, nanoseconds: frames that arrive within it of the first waiting frame leave together; 0 for none.
    #[serde(default)]
    pub slot_ns: u64,
    /// Period of a frame clock, nanoseconds: frames wait for its next tick; 0 for none.
    #[serde(default)]
    pub frame_ns: u64,
    /// Frames that are lost.
    pub loss: PlannedLoss,
    /// Share of frames that skip the delay and overtake others, 0..=1.
    pub reorder: f64,
    /// Share of frames that are duplicated, 0..=1.
    pub duplicate: f64,
    /// Seed of its random draws.
    pub seed: u64,
}

/// Pattern of losses.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub enum PlannedLoss {
    /// No loss.
    #[default]
    None,
    /// Independent losses with this probability.
    Random(f64),
    /// One frame in this many.
    Every(u64),
    /// Frames with these numbers, counted from 1.
    Packets(Vec<u64>),
    /// Frames whose IP packet is longer than this, bytes.
    LongerThan(u32),
    /// Gilbert-Elliott model: p, r, loss in the bad state, loss in the good state.
    GilbertElliott(f64, f64, f64, f64),
}

/// A cable (veth pair): node and port of each end, by index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cable {
    /// Node and port of the first end.
    pub a: (usize, usize),
    /// Node and port of the second end.
    pub b: (usize, usize),
}

/// A flow with all settings resolved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedFlow {
    /// Name of the flow.
    pub name: String,
    /// Client node, by index.
    pub from: usize,
    /// Server node, by index.
    pub to: usize,
    /// Server's control address.
    pub control: Ipv4Addr,
    /// Client's and server's data addresses.
    pub data: (IpAddr, IpAddr),
    /// Start, nanoseconds from zero.
    pub start_ns: u64,
    /// Time before the start in which it prepares, nanoseconds.
    pub lead_ns: u64,
    /// Parameters of the test; of a section, those that its streams share.
    pub parameters: Parameters,
    /// Section to test instead of a single test.
    #[serde(default)]
    pub section: Option<PlannedSection>,
}

/// A section of a long path to test, and the target for the long path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedSection {
    /// Target for the whole path.
    pub target: QualifyTarget,
    /// The section as the scenario has it.
    pub section: QualifySection,
    /// Maximum duration of a test, nanoseconds.
    pub max_test_ns: u64,
}

/// An interface to capture on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapturePoint {
    /// Node, by index.
    pub node: usize,
    /// Port, by index.
    pub port: usize,
    /// Name of the file in the results directory.
    pub file: String,
    /// Bytes kept of each packet.
    pub snap: u32,
}

/// Error: a scenario that cannot be planned. `scenario::judge` reports the same with lines and hints; this is a
/// second check.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct PlanError(pub String);

/// Plans a scenario, with captures at `captures` (as `NODE:NEIGHBOUR`).
pub fn plan(scenario: &Scenario, captures: &[String]) -> Result<Plan, PlanError> {
    let mut network = network::build(scenario)?;
    let flows = flows::plan(scenario, &network)?;
    let lead_ns = flows.iter().map(|flow| flow.lead_ns.saturating_sub(flow.start_ns)).max().unwrap_or(0);
    let programs = programs::plan(scenario, |name| network.host(name))?;
    let ends = flows.iter().map(flows::end_ns).chain(programs.iter().map(PlannedProgram::latest_end_ns));
    let span_ns = ends.max().unwrap_or(0);
    let (events, settings) = changes::plan(scenario, |name| network.host(name))?;
    let captures = captures.iter().map(|at| network.capture(at)).collect::<Result<Vec<_>, _>>()?;
    let pairs: Vec<_> = flows.iter().map(|flow| (flow.from, flow.to)).chain(programs::pairs(&programs)).collect();
    network.finish(&pairs);
    if flows.is_empty() {
        network.nodes.iter_mut().for_each(|node| node.control = None);
    }
    Ok(Plan {
        seed: scenario.seed,
        nodes: network.nodes,
        cables: network.cables,
        flows,
        programs,
        carriers: network.carriers,
        cpus: network.cpus,
        settings,
        events,
        directory: "/".to_owned(),
        sample_ns: scenario.sample.0.get(),
        lead_ns,
        span_ns,
        captures,
        topology: network.topology,
        exact_links: false,
    })
}

impl Plan {
    /// Adapts the plan to kernels with exact links: the bucket of every host counts each frame with its framing, at
    /// the link's own rate. With other kernels it counts a super-packet once, and a lower rate compensates for the
    /// framing of its frames.
    pub fn use_exact_links(&mut self) {
        self.exact_links = true;
        for port in self.nodes.iter_mut().flat_map(|node| &mut node.ports) {
            let Egress { rate_bps: link_bps, overhead, ref mut kind, .. } = port.egress;
            let EgressKind::Shaped { rate_bps, counts_overhead, burst_bytes, .. } = kind else { continue };
            if !*counts_overhead {
                (*rate_bps, *counts_overhead) = (link_bps, true);
                *burst_bytes += network::max_frames(port.mtu) * overhead.unsigned_abs();
            }
        }
    }

    /// Returns an upper bound of a path's one-way delay, nanoseconds: the sum over all links and receive paths.
    pub fn longest_delay_ns(&self) -> u64 {
        let of_carriers = self.carriers.iter().filter_map(|carrier| carrier.load().ok());
        let changing: u64 = of_carriers.map(|path| path.forward.extremes(0).1.max(path.reverse.extremes(0).1)).sum();
        let mtu = self.topology.links.iter().map(|link| link.mtu_bytes).max().unwrap_or(0);
        let receiving: u64 =
            self.cpus.iter().filter_map(|cpu| Some(cpu.receive.as_ref()?.longest_ns(mtu) + cpu.noise_ns)).sum();
        changing
            + receiving
            + self.topology.links.iter().map(|link| link.delay_ns.max(link.reverse_delay_ns)).sum::<u64>()
    }

    /// Returns the plans of the link that changes on a wire's node; `None` if the link does not change.
    pub fn carried(&self, node: usize) -> Option<LoadedPath> {
        self.carriers.iter().find(|carrier| carrier.node == node)?.load().ok()
    }

    /// Returns the link that changes into which a port of a host or switch sends, and whether in forward direction.
    pub fn carrier_after(&self, port: (usize, usize)) -> Option<(&PlannedCarrier, bool)> {
        self.carriers.iter().find_map(|carrier| {
            let at = carrier.senders.iter().position(|sender| *sender == port)?;
            Some((carrier, at == 0))
        })
    }

    /// Returns the CPU of a host; `None` if it is infinitely fast.
    pub fn cpu(&self, host: usize) -> Option<&PlannedCpu> {
        self.cpus.iter().find(|cpu| cpu.host == host)
    }

    /// Returns whether programs run on a node.
    pub fn runs_programs(&self, node: usize) -> bool {
        self.programs.iter().any(|program| program.node == node)
    }

    /// Returns whether any flow uses IPv6.
    pub fn uses_ipv6(&self) -> bool {
        self.flows.iter().any(|flow| flow.data.1.is_ipv6())
    }

    /// Returns the kernel features that the plan needs in addition to the core ones, as configuration symbols.
    pub fn features(&self) -> Vec<String> {
        let mut wanted: BTreeSet<Cow<'static, str>> = BTreeSet::new();
        for port in self.nodes.iter().flat_map(|node| &node.ports) {
            if port.drops != PlannedLoss::None {
                wanted.insert(NET_CLS_BPF.into());
            }
            match &port.egress.kind {
                EgressKind::Shaped { discipline, .. } => {
                    wanted.insert(queues::symbol(discipline.kind).into());
                }
                EgressKind::Carried => {}
                EgressKind::Wire(impairments) => {
                    if impairments.frame_ns > 0 {
                        wanted.extend([queues::symbol(crate::scenario::QueueKind::Fq).into(), NET_CLS_BPF.into()]);
                    }
                    if matches!(
                        impairments.loss,
                        PlannedLoss::Every(_) | PlannedLoss::Packets(_) | PlannedLoss::LongerThan(_)
                    ) {
                        wanted.insert(NET_CLS_BPF.into());
                    }
                }
            }
        }
        let of_hosts = self.nodes.iter().flat_map(|node| &node.sysctls);
        let of_hosts = of_hosts.filter(|(key, _)| key == network::CONGESTION_SYSCTL).map(|(_, name)| name);
        let of_flows = self.flows.iter().filter_map(|flow| flow.parameters.congestion.as_ref());
        wanted.extend(of_hosts.chain(of_flows).filter_map(|name| network::congestion_symbol(name)));
        wanted.into_iter().map(Cow::into_owned).collect()
    }
}
