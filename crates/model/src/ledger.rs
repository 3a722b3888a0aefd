//! Accounting: where every byte or packet went, and what it cost.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// offered = delivered + lost + still queued + unaccounted. Nothing is clamped: a negative remainder shows.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Conservation {
    /// Whether the accounting balances exactly.
    pub holds: bool,
    /// `bytes` for TCP, `packets` for UDP (whose byte figures are also given).
    pub unit: String,
    /// What senders handed to the kernel, in `unit`.
    pub offered: u64,
    /// What receiving applications got, in `unit`.
    pub delivered: u64,
    /// Lost, in `unit`.
    pub lost: u64,
    /// Still in a socket queue at the end, in `unit`.
    pub queued: u64,
    /// Offered − delivered − lost − queued, bytes. Zero when the accounting balances.
    pub unaccounted_bytes: i64,
    /// The same in packets (UDP).
    pub unaccounted_packets: Option<i64>,
    /// Σ of all intervals' bytes minus the receivers' totals; always zero.
    pub intervals_minus_totals_bytes: i64,
    /// The terms of the equation, in the order they are met along the path.
    pub terms: Vec<Term>,
    /// Where lost packets were lost, as far as counters show.
    pub losses: Vec<PlacedLoss>,
    /// Why it does not hold, or what could not be seen.
    pub notes: Vec<String>,
}

/// One term of the conservation equation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Term {
    /// What it is.
    pub name: String,
    /// `+` for offered, `-` for what accounts for it.
    pub sign: String,
    /// Bytes.
    pub bytes: Option<i64>,
    /// Packets (UDP).
    pub packets: Option<i64>,
    /// The counter it was read from.
    pub source: String,
}

/// A place where packets can be lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LossLocation {
    /// The sender's queueing discipline.
    SenderQdisc,
    /// The sender's interface.
    SenderNic,
    /// Between the two hosts: what no host counter explains.
    Network,
    /// The receiver's interface.
    ReceiverNic,
    /// The receiver's backlog (softnet).
    ReceiverBacklog,
    /// The receiver's socket buffer.
    ReceiverSocket,
}

/// Packets lost in one place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlacedLoss {
    /// Where.
    pub place: LossLocation,
    /// How many packets of this test. For `network` the remainder after the other places.
    pub packets: u64,
    /// Whether the counter is the test's own (`socket`) or shared with other traffic (`host`).
    pub exact: bool,
    /// The counter it was read from.
    pub source: String,
}

/// What moving the data cost.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// At the client.
    pub client: Option<EndCost>,
    /// At the server.
    pub server: Option<EndCost>,
}

/// What one host spent in the steady phase.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EndCost {
    /// CPU seconds of the whole host that were not idle, all cores (other programs included).
    pub host_cpu_s: f64,
    /// CPU seconds of the test's stream threads.
    pub thread_cpu_s: f64,
    /// CPU seconds in softirqs, all cores.
    pub softirq_cpu_s: f64,
    /// Thread time per byte delivered or sent, nanoseconds.
    pub thread_ns_per_byte: Option<f64>,
    /// Host time per byte, nanoseconds.
    pub host_ns_per_byte: Option<f64>,
    /// Busiest core and its share of busy time, 0..=1.
    pub busiest_core: Option<(u32, f32)>,
    /// Share of time stolen by the hypervisor, mean over cores, 0..=1.
    pub steal: f32,
    /// Resolution of host accounting: one tick, nanoseconds.
    pub tick_ns: u64,
}
