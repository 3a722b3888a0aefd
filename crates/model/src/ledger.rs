//! Accounting of bytes and packets, and CPU cost.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Accounting equation: offered = delivered + lost + queued + unaccounted. The remainder is not clamped and may
/// be negative. A term is `None` if a host that counts it did not report.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Conservation {
    /// Whether the accounting balances exactly.
    pub holds: bool,
    /// Unit of the counts: `bytes` for TCP, `packets` for UDP (with byte counts in addition).
    pub unit: String,
    /// Sent: accepted by the senders' kernels, in `unit`.
    pub offered: Option<u64>,
    /// Read by the receiving applications, in `unit`.
    pub delivered: Option<u64>,
    /// Lost, in `unit`.
    pub lost: Option<u64>,
    /// Still in a socket queue at the end, in `unit`.
    pub queued: Option<u64>,
    /// Offered − delivered − lost − queued, bytes; 0 if the accounting balances.
    pub unaccounted_bytes: Option<i64>,
    /// UDP: unaccounted packets; 0 if the accounting balances. `None` for TCP.
    pub unaccounted_packets: Option<i64>,
    /// Sum of the bytes of all intervals − the receivers' totals; always 0.
    pub intervals_minus_totals_bytes: i64,
    /// Terms of the equation, in order along the path.
    pub terms: Vec<Term>,
    /// Lost packets by location, as far as counters show it; counters of the hosts and the remainder (`network`) only
    /// if both hosts' counters are visible.
    pub losses: Vec<PlacedLoss>,
    /// Reasons the accounting does not balance, and counters that were not visible.
    pub notes: Vec<String>,
}

/// One term of the conservation equation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Term {
    /// Name of the term.
    pub name: String,
    /// `+` for offered, `-` for terms subtracted from it.
    pub sign: String,
    /// Bytes; `None` if unknown.
    pub bytes: Option<i64>,
    /// UDP: packets; `None` for TCP.
    pub packets: Option<i64>,
    /// Counter the value was read from.
    pub source: String,
}

/// Location where packets can be lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LossLocation {
    /// Sender's queueing discipline.
    SenderQdisc,
    /// Sender's interface.
    SenderNic,
    /// Between the hosts: losses that no host counter explains.
    Network,
    /// Receiver's interface.
    ReceiverNic,
    /// Receiver's backlog (softnet).
    ReceiverBacklog,
    /// Receiver's socket buffer.
    ReceiverSocket,
}

/// Packets lost at one location.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlacedLoss {
    /// Location of the loss.
    pub place: LossLocation,
    /// Lost packets of this test; for `network`, the remainder after the other locations.
    pub packets: u64,
    /// Whether the counter belongs to the test's own socket; otherwise it is host-wide and includes other traffic.
    pub exact: bool,
    /// Counter the value was read from.
    pub source: String,
}

/// CPU cost of the transfer at both hosts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// At the client.
    pub client: Option<EndCost>,
    /// At the server.
    pub server: Option<EndCost>,
}

/// CPU cost at one host: host-wide figures cover its steady phase, figures of threads the whole test.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EndCost {
    /// CPU time of the whole host, other programs included, seconds; all cores; idle, I/O wait and steal excluded.
    /// `None` without samples of the host.
    pub host_cpu_s: Option<f64>,
    /// CPU time of the test's stream threads, seconds.
    pub thread_cpu_s: f64,
    /// CPU time in softirqs, all cores, seconds; `None` without samples of the host.
    pub softirq_cpu_s: Option<f64>,
    /// Stream threads' CPU time per byte sent or received, nanoseconds; `None` without bytes.
    pub thread_ns_per_byte: Option<f64>,
    /// Host CPU time per byte sent or received in the steady phase, nanoseconds; `None` without bytes.
    pub host_ns_per_byte: Option<f64>,
    /// Number of the busiest core and its busy share, 0..=1; `None` without samples.
    pub busiest_core: Option<(u32, f32)>,
    /// Steal time as a share, mean over all cores, 0..=1; `None` without samples of the host.
    pub steal: Option<f32>,
    /// Resolution of the host's CPU accounting: one tick, nanoseconds.
    pub tick_ns: u64,
}
