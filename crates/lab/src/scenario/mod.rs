//! The format of a scenario file. The docstrings of these types are the descriptions in its JSON Schema.

mod cpu;
mod estimate;
pub(crate) mod event;
mod judge;
mod judgement;
mod parameters;
mod paths;
mod program;
mod read;
mod schema;
mod section;
mod template;
mod variants;
mod vary;
mod words;

use std::collections::BTreeMap;

use landspeed_model::{LabChart, PaceScope, QualifyCongestion, ReceiveMode, Reference, SendMode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use cpu::{CallCost, DEFAULT_BUDGET, DEFAULT_RING, HostCpu, ReceiveCost, SendCost};
pub use estimate::{Estimate, estimate};
pub use event::{Event, LinkName};
pub use judge::{Judgement, Loaded, judge, load};
pub use landspeed_emulation::frame::ETHERNET_HEADER;
pub use landspeed_emulation::{
    DEFAULT_MTU, DEFAULT_QUEUE_BYTES, Distribution, Emulator, Framing, GilbertElliott, Jitter, LinkDirection, Loss,
    LossPattern, Queue, QueueKind, QueueSettings, RateChange, RateSource, RateSteps, inline_trace,
};
pub use landspeed_problems::{Problem, Problems, Rate, Share, Size, TextPosition, Time, Written};
pub use program::{DEFAULT_REAL_TIME_NS, Program, Stop};
pub use read::{Cell, MAX_CELLS, MAX_TEXT, hash, read};
pub use schema::schema;
pub use section::QUALIFY_TIME_NS;
pub use template::{CELLULAR, SATELLITE, SLOW_RECEIVER, TEMPLATE};

/// A scenario: nodes, the links between them, and the flows over these.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Scenario {
    /// Name, shown with results.
    pub name: String,
    /// Description.
    pub description: Option<String>,
    /// Seed of every random draw.
    #[serde(default = "one")]
    pub seed: u64,
    /// Runs of each cell, with seeds `seed`, `seed + 1` …
    #[serde(default = "one_u32")]
    pub repeats: u32,
    /// Kernel to run, by id, release or name; default: the newest without patches.
    pub kernel: Option<String>,
    /// Memory of the guest; default: computed from the paths.
    pub memory: Option<Size>,
    /// Sampling interval of the queues.
    #[serde(default = "millisecond")]
    pub sample: Time,
    /// Default duration of flows.
    #[serde(default = "ten_seconds")]
    pub time: Time,
    /// A published result for this set-up.
    pub reference: Option<Reference>,
    /// Charts to show first in the report of a varied scenario: `{ figure = "loss", flow = "bursts" }`. Default: the
    /// total goodput of all flows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub charts: Vec<LabChart>,
    /// Keys to vary, by their dotted path (`switch.west.queue.limit`, `host.*.congestion`), and the values each takes; every
    /// combination is a cell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vary: Vec<Vary>,
    /// Default settings of hosts.
    #[serde(default)]
    pub hosts: HostSettings,
    /// End hosts, by name.
    #[serde(default)]
    pub host: BTreeMap<String, HostSettings>,
    /// Switches, by name.
    #[serde(default)]
    pub switch: BTreeMap<String, Switch>,
    /// Links.
    #[serde(default)]
    pub link: Vec<Link>,
    /// Flows.
    #[serde(default)]
    pub flow: Vec<Flow>,
    /// Changes at given times.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub event: Vec<Event>,
    /// Programs of this host that run on hosts of the network.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub program: Vec<Program>,
    /// Maximum real time of a run with programs, without the boot; default 10min.
    pub real_time_limit: Option<Time>,
}

fn one() -> u64 {
    1
}

fn one_u32() -> u32 {
    1
}

fn millisecond() -> Time {
    Written(landspeed_units::Nanos::new(1_000_000))
}

fn ten_seconds() -> Time {
    Written(landspeed_units::Nanos::new(10_000_000_000))
}

/// One varied key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Vary {
    /// The key's dotted path. `*` stands for every name or position.
    pub key: String,
    /// Values of the key.
    #[schemars(with = "Vec<serde_json::Value>")]
    pub values: Vec<toml::Value>,
    /// Name of the key in tables and charts.
    pub label: Option<String>,
}

/// Settings of a host, all optional; `[hosts]` has the defaults.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct HostSettings {
    /// Congestion control, such as `cubic` (the default), `bbr`, `htcp`, `reno`.
    pub congestion: Option<String>,
    /// Qdisc of its interface: `fq` (the default) paces, `fq_codel` is the default of most distributions,
    /// `pfifo_fast` of old ones.
    pub qdisc: Option<Queue>,
    /// Whether TCP sends segments of up to 64 KiB that are cut at the interface, as with TSO; default true.
    pub tso: Option<bool>,
    /// Time for which arriving packets are gathered and merged, as by interrupt coalescing and GRO; default 0.
    pub gro: Option<Time>,
    /// Whether ACKs may be delayed; default true.
    pub delayed_ack: Option<bool>,
    /// Maximum TCP buffers: `fit` (the default: enough for every path of the scenario), `stock` (kernel defaults:
    /// 6 MiB and 4 MiB), or a size.
    pub buffers: Option<Buffers>,
    /// Frames that the host drops on receipt, after the point where captures see them: `{ every = 700 }`,
    /// `{ packets = [100, 101] }` or `{ longer-than = 1000 }`, as on a link. Default none.
    pub drops: Option<Loss>,
    /// Costs of its CPU; without it, computing takes no time.
    pub cpu: Option<HostCpu>,
    /// Further sysctls of the host's network namespace, such as `"net.ipv4.tcp_slow_start_after_idle" = 0`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sysctl: BTreeMap<String, SysctlValue>,
}

impl HostSettings {
    /// Returns the effective settings of a host: its own, otherwise those for all hosts.
    #[must_use]
    pub fn or(&self, all: &Self) -> Self {
        let mut sysctl = all.sysctl.clone();
        sysctl.extend(self.sysctl.clone());
        Self {
            congestion: self.congestion.clone().or_else(|| all.congestion.clone()),
            qdisc: self.qdisc.clone().or_else(|| all.qdisc.clone()),
            tso: self.tso.or(all.tso),
            gro: self.gro.or(all.gro),
            delayed_ack: self.delayed_ack.or(all.delayed_ack),
            buffers: self.buffers.clone().or_else(|| all.buffers.clone()),
            drops: self.drops.clone().or_else(|| all.drops.clone()),
            cpu: self.cpu.clone().or_else(|| all.cpu.clone()),
            sysctl,
        }
    }
}

/// The value of a sysctl.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum SysctlValue {
    /// A number.
    Number(i64),
    /// Text, such as three numbers.
    Text(String),
}

/// Maximum TCP buffers.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Buffers {
    /// By name.
    Named(BufferPolicy),
    /// A size.
    UpTo(Size),
}

/// Named sizes of TCP buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BufferPolicy {
    /// Large enough for every path of the scenario.
    Fit,
    /// Kernel defaults.
    Stock,
}

/// A switch, with a queue at each port.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Switch {
    /// The queue of every port; default `{ kind = "bfifo", limit = "1MB" }`.
    pub queue: Option<Queue>,
    /// The queue of the port towards a neighbour, by the neighbour's name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub port: BTreeMap<String, Queue>,
}

landspeed_emulation::declare_link! {
    /// A link between two nodes. Settings apply to both directions; `forward` (first to second) and `reverse` override
    /// them.
    pub struct Link {
        /// The two nodes.
        #[serde(deserialize_with = "variants::two")]
        pub between: [String; 2],
        /// MTU, bytes; default 1500.
        pub mtu: Option<u32>,
    }
}

/// A flow from one host to another. The names of its settings are those of `landspeed run`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Flow {
    /// Name; default `FROM-TO` with a number.
    pub name: Option<String>,
    /// The client, which sends unless `reverse`.
    pub from: String,
    /// The server.
    pub to: String,
    /// `tcp` (the default), `udp`, `tcp-rr`, `udp-rr`, or `qualify`: tests the section between the two hosts for a long path.
    pub protocol: Option<FlowProtocol>,
    /// Start time; default 0.
    pub start: Option<Time>,
    /// Maximum of a random delay of the start. Hosts have no noise: without other randomness on the path, this makes
    /// the runs of different seeds differ.
    pub start_spread: Option<Time>,
    /// Duration after `omit`; default: the scenario's `time`. `qualify`: maximum duration of each test; default 60s.
    pub time: Option<Time>,
    /// Bytes to send, after which the flow ends.
    pub bytes: Option<Size>,
    /// Time before the steady phase.
    pub omit: Option<Time>,
    /// Sampling interval of its counters; default 100ms.
    pub interval: Option<Time>,
    /// Parallel streams.
    pub streams: Option<u32>,
    /// Whether the server sends instead.
    #[serde(default)]
    pub reverse: bool,
    /// Whether both send.
    #[serde(default)]
    pub bidir: bool,
    /// Whether to use IPv6 instead of IPv4.
    #[serde(default)]
    pub ipv6: bool,
    /// Bytes of each write; UDP: payload of each datagram.
    pub len: Option<Size>,
    /// Fixed socket buffers instead of autotuning.
    pub window: Option<Size>,
    /// Maximum segment size.
    pub mss: Option<u32>,
    /// Congestion control of this flow's sockets.
    pub congestion: Option<String>,
    /// `TCP_NODELAY`.
    #[serde(default)]
    pub nodelay: bool,
    /// DSCP code point.
    pub dscp: Option<u8>,
    /// Pacing of each stream by the kernel.
    pub pace: Option<Rate>,
    /// Whether `pace` is for each stream or all of them together.
    pub pace_scope: Option<PaceScope>,
    /// Rate of the application, per stream; required for UDP.
    pub rate: Option<Rate>,
    /// UDP: packets per burst; the mean rate is kept.
    pub burst: Option<u32>,
    /// Send call; default `sendfile`, which copies nothing.
    pub send: Option<SendMode>,
    /// Receive call; default `discard`, which copies nothing.
    pub receive: Option<ReceiveMode>,
    /// Maximum rate at which the receiver reads.
    pub read_rate: Option<Rate>,
    /// Request/response: bytes of each request; default 1.
    pub request: Option<u32>,
    /// Request/response: bytes of each response; default 1.
    pub response: Option<u32>,
    /// Request/response: requests per second of each stream, on a schedule. Default: each request follows the
    /// response to the previous one.
    pub requests_per_s: Option<f64>,
    /// Request/response: whether each request has a new connection.
    #[serde(default)]
    pub connect: bool,
    /// Probes per second during bulk streams, for latency under load.
    pub probe: Option<f64>,
    /// `qualify`: target data rate of the long path, TCP payload.
    pub target: Option<Rate>,
    /// `qualify`: RTT of the long path without queues.
    pub target_rtt: Option<Time>,
    /// `qualify`: MTU of the long path, bytes; default 1500.
    pub target_mtu: Option<u32>,
    /// `qualify`: congestion control of the long path, `cubic` (the default), `reno` or `bbr`.
    #[serde(rename = "for")]
    pub target_congestion: Option<QualifyCongestion>,
}

/// Protocol of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FlowProtocol {
    /// Bulk TCP.
    Tcp,
    /// UDP at a rate.
    Udp,
    /// Request/response over TCP.
    TcpRr,
    /// Request/response over UDP.
    UdpRr,
    /// The tests of `landspeed qualify`, one after the other.
    Qualify,
}

#[cfg(test)]
mod tests;
