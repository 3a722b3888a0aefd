//! A scenario worked out to the last interface: what the guest builds, in numbers. It travels to the guest as JSON.
//!
//! Every node is a network namespace. A link becomes a *wire*: a separate namespace with two ports, where a frame that
//! comes in at one leaves by the other through `netem`, which gives it its time on the link (serialisation at the
//! link's rate, then the delay) and loses what the link is to lose. Nothing queues there but what is under way. What a
//! switch port queues, it queues in the switch: a token bucket of a single frame at the link's rate, with the
//! port's queueing discipline inside. A host's own discipline sits in a bucket as well, one segmentation-offload
//! burst deep, so that it feels its NIC's rate as back-pressure.

mod flows;
mod network;
mod queues;

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

use landspeed_model::{Parameters, QueueRole, Topology};
use serde::{Deserialize, Serialize};

pub use queues::name as discipline_name;

use crate::scenario::Scenario;

/// What the guest builds and runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Where random draws start from.
    pub seed: u64,
    /// Namespaces.
    pub nodes: Vec<Node>,
    /// Virtual Ethernet cables between their ports.
    pub cables: Vec<Cable>,
    /// Flows, in the scenario's order.
    pub flows: Vec<PlannedFlow>,
    /// How often switch and host queues are read, nanoseconds.
    pub sample_ns: u64,
    /// Time kept free before the scenario's zero for the first flows to get ready, nanoseconds.
    pub lead_ns: u64,
    /// When the last flow is expected to have ended, nanoseconds from zero.
    pub span_ns: u64,
    /// Captures.
    pub captures: Vec<CapturePoint>,
    /// The same network for people.
    pub topology: Topology,
    /// Whether the kernel keeps rates to parts of a nanosecond per frame and counts every frame of a super-packet.
    #[serde(default)]
    pub exact_links: bool,
}

/// What a namespace is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// An end host.
    Host,
    /// Forwards by static tables.
    Switch,
    /// The inside of a link.
    Wire,
}

/// One namespace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// Its name; of a wire, `FIRST=SECOND`.
    pub name: String,
    /// What it is for.
    pub role: Role,
    /// Data interfaces.
    pub ports: Vec<Port>,
    /// Files under `/proc/sys` to write, in order, and what to write.
    pub sysctls: Vec<(String, String)>,
    /// Hosts: address on the control network, which no traffic of the scenario shares.
    pub control: Option<Ipv4Addr>,
    /// Hosts: where every other host is, so that nothing has to be asked on the path.
    pub neighbours: Vec<(IpAddr, [u8; 6])>,
    /// Switches: the port by which each host is reached.
    pub forwarding: Vec<([u8; 6], usize)>,
    /// Hosts: acknowledgements are never delayed.
    pub quick_ack: bool,
}

/// One interface.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Port {
    /// Name: the neighbour's.
    pub name: String,
    /// Hardware address.
    pub mac: [u8; 6],
    /// Largest IP packet, bytes.
    pub mtu: u32,
    /// Addresses with their prefix lengths.
    pub addresses: Vec<(IpAddr, u8)>,
    /// What frames leave through.
    pub egress: Egress,
    /// Most segments TCP may hand down at once; 1 turns segmentation offload off.
    pub gso_max_segs: Option<u32>,
    /// Gather arriving packets for this long, nanoseconds.
    pub gro_ns: Option<u64>,
    /// Hosts: what their kernel drops of what comes in.
    #[serde(default)]
    pub drops: PlannedLoss,
}

/// What frames leave an interface through.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Egress {
    /// Name in the document.
    pub name: String,
    /// Role in the document.
    pub role: QueueRole,
    /// Rate of the link, bits/s.
    pub rate_bps: u64,
    /// Bytes a frame takes on the link besides itself.
    pub overhead: i32,
    /// What is there.
    pub kind: EgressKind,
}

/// Kinds of way out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum EgressKind {
    /// A token bucket with a discipline inside.
    Shaped {
        /// Rate of the bucket, bits/s.
        rate_bps: u64,
        /// Whether it counts the framing of each frame itself.
        counts_overhead: bool,
        /// Its depth, bytes.
        burst_bytes: u32,
        /// What is inside.
        discipline: Discipline,
    },
    /// The time and the losses of a link.
    Wire(Impairments),
}

/// A queueing discipline with every setting it has here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Discipline {
    /// Name in the kernel.
    pub kind: crate::scenario::QueueKind,
    /// Size, bytes.
    pub limit_bytes: Option<u32>,
    /// Size, packets.
    pub limit_packets: Option<u32>,
    /// red: thresholds, bytes.
    pub thresholds: Option<(u32, u32)>,
    /// red: probability at the upper threshold.
    pub probability: Option<f64>,
    /// Target delay, nanoseconds.
    pub target_ns: Option<u64>,
    /// Interval or RTT, nanoseconds.
    pub interval_ns: Option<u64>,
    /// Marks rather than drops where it can.
    pub ecn: Option<bool>,
    /// fq: packets of one flow.
    pub flow_packets: Option<u32>,
    /// fq: highest rate of a flow, bits/s.
    pub max_rate_bps: Option<u64>,
    /// fq: whether it paces.
    pub pacing: Option<bool>,
    /// netem: delay, nanoseconds.
    pub delay_ns: Option<u64>,
    /// netem: share lost, 0..=1.
    pub loss: Option<f64>,
    /// netem: seed of its draws.
    pub seed: u64,
}

/// What one direction of a link does to frames.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Impairments {
    /// One-way delay, nanoseconds.
    pub delay_ns: u64,
    /// Spread of the delay, nanoseconds.
    pub jitter_ns: u64,
    /// Gaussian rather than uniform.
    pub normal: bool,
    /// Frames that come within this of the first that waits leave together, nanoseconds; 0 for not.
    #[serde(default)]
    pub slot_ns: u64,
    /// Frames wait for the next tick of a clock of this period, nanoseconds; 0 for not.
    #[serde(default)]
    pub frame_ns: u64,
    /// Losses.
    pub loss: PlannedLoss,
    /// Share that overtakes, 0..=1.
    pub reorder: f64,
    /// Share that comes twice, 0..=1.
    pub duplicate: f64,
    /// Seed of its draws.
    pub seed: u64,
}

/// What a link loses.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub enum PlannedLoss {
    /// Nothing.
    #[default]
    None,
    /// Independently, with this probability.
    Random(f64),
    /// One in so many.
    Every(u64),
    /// These, counted from 1.
    Packets(Vec<u64>),
    /// Those with a longer IP packet than this, bytes.
    LongerThan(u32),
    /// Gilbert and Elliott: p, r, lost while bad, lost while good.
    GilbertElliott(f64, f64, f64, f64),
}

/// A cable: node and port of each end, by index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cable {
    /// One end.
    pub a: (usize, usize),
    /// The other.
    pub b: (usize, usize),
}

/// A flow with everything resolved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedFlow {
    /// Name.
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
    /// How long before that it begins to get ready, nanoseconds.
    pub lead_ns: u64,
    /// The test.
    pub parameters: Parameters,
}

/// Where to capture.
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

/// A scenario that cannot be worked out. `scenario::judge` says the same with lines and hints; this is the last line of
/// defence.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct PlanError(pub String);

/// Works a scenario out.
pub fn plan(scenario: &Scenario, captures: &[String]) -> Result<Plan, PlanError> {
    let mut network = network::build(scenario)?;
    let flows = flows::plan(scenario, &network)?;
    let lead_ns = flows.iter().map(|flow| flow.lead_ns.saturating_sub(flow.start_ns)).max().unwrap_or(0);
    let span_ns = flows.iter().map(flows::end_ns).max().unwrap_or(0);
    let captures = captures.iter().map(|at| network.capture(at)).collect::<Result<Vec<_>, _>>()?;
    network.finish(&flows);
    Ok(Plan {
        seed: scenario.seed,
        nodes: network.nodes,
        cables: network.cables,
        flows,
        sample_ns: scenario.sample.0.get(),
        lead_ns,
        span_ns,
        captures,
        topology: network.topology,
        exact_links: false,
    })
}

impl Plan {
    /// For kernels with exact links: every host's bucket counts each frame with its framing at the link's own rate,
    /// where others count a super-packet once and make up for its frames' framing by a lower rate.
    pub fn use_exact_links(&mut self) {
        self.exact_links = true;
        for port in self.nodes.iter_mut().flat_map(|node| &mut node.ports) {
            let Egress { rate_bps: link_bps, overhead, ref mut kind, .. } = port.egress;
            let EgressKind::Shaped { rate_bps, counts_overhead, burst_bytes, .. } = kind else { continue };
            if !*counts_overhead {
                (*rate_bps, *counts_overhead) = (link_bps, true);
                *burst_bytes += network::frames_at_most(port.mtu) * overhead.unsigned_abs();
            }
        }
    }

    /// The longest one-way delay of a path, at most, nanoseconds: all links one behind the other.
    pub fn longest_delay_ns(&self) -> u64 {
        self.topology.links.iter().map(|link| link.delay_ns.max(link.reverse_delay_ns)).sum()
    }

    /// Whether any flow speaks IPv6.
    pub fn uses_ipv6(&self) -> bool {
        self.flows.iter().any(|flow| flow.data.1.is_ipv6())
    }

    /// Kernel features the plan needs beyond the basic ones, as configuration symbols.
    pub fn features(&self) -> Vec<&'static str> {
        let mut wanted = BTreeSet::new();
        for port in self.nodes.iter().flat_map(|node| &node.ports) {
            if port.drops != PlannedLoss::None {
                wanted.insert("CONFIG_NET_CLS_BPF");
            }
            match &port.egress.kind {
                EgressKind::Shaped { discipline, .. } => {
                    wanted.insert(queues::symbol(discipline.kind));
                }
                EgressKind::Wire(impairments) => {
                    if impairments.frame_ns > 0 {
                        wanted.extend([queues::symbol(crate::scenario::QueueKind::Fq), "CONFIG_NET_CLS_BPF"]);
                    }
                    if matches!(
                        impairments.loss,
                        PlannedLoss::Every(_) | PlannedLoss::Packets(_) | PlannedLoss::LongerThan(_)
                    ) {
                        wanted.insert("CONFIG_NET_CLS_BPF");
                    }
                }
            }
        }
        wanted.into_iter().collect()
    }
}
