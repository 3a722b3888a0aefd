//! CPU costs of a host. The docstrings of these types are the descriptions in the JSON Schema.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Time;

/// Default number of descriptors of a receive ring.
pub const DEFAULT_RING: u32 = 1024;
/// Default budget of a NAPI poll, frames (`netdev_budget` of one device, NAPI_POLL_WEIGHT).
pub const DEFAULT_BUDGET: u32 = 64;

/// CPU costs of a host. Costs that are not set are 0; without `cpu`, a host is infinitely fast.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct HostCpu {
    /// Cores: 1 for softirqs and applications together, so that their costs add up; 2 (the default) for one core each.
    pub cores: Option<u32>,
    /// Clock rate relative to that at which the costs were measured: 0.5 doubles all costs; default 1.
    pub clock: Option<f64>,
    /// Maximum of the random delay, by the seed, with which an idle core begins to work; default 0.
    pub noise: Option<Time>,
    /// Receive path up to the socket, on the softirq core.
    pub receive: Option<ReceiveCost>,
    /// Read calls of flows on the application core.
    pub read: Option<CallCost>,
    /// Send calls of flows, with the send path of the kernel below them, on the application core.
    pub send: Option<SendCost>,
}

/// Receive path of a host: ring, interrupt moderation, polls and GRO.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ReceiveCost {
    /// Descriptors of the receive ring (`ethtool -G`); default 1024. A frame without a free one is dropped.
    pub ring: Option<u32>,
    /// Cost of a frame, nanoseconds.
    pub packet_ns: Option<f64>,
    /// Cost of a byte of a frame, nanoseconds.
    pub byte_ns: Option<f64>,
    /// Cost of a packet that GRO passes to the protocols, merged or not, nanoseconds.
    pub merged_ns: Option<f64>,
    /// Time from the first waiting frame to the interrupt (`ethtool -C rx-usecs`); default 0.
    pub moderation: Option<Time>,
    /// Number of waiting frames that cause the interrupt earlier (`ethtool -C rx-frames`); default none.
    pub moderation_packets: Option<u32>,
    /// Maximum number of frames of a poll; default 64.
    pub budget: Option<u32>,
    /// Whether GRO merges TCP segments of a poll; default true.
    pub gro: Option<bool>,
}

/// Cost of system calls that read.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CallCost {
    /// Cost of a call, or of a datagram, nanoseconds.
    pub call_ns: Option<f64>,
    /// Cost of copying a byte, nanoseconds; not charged with `receive = "discard"`.
    pub byte_ns: Option<f64>,
}

/// Cost of system calls that send.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SendCost {
    /// Cost of a call, or of a datagram, nanoseconds.
    pub call_ns: Option<f64>,
    /// Cost of copying a byte, nanoseconds; not charged with `send = "sendfile"`, `"splice"` or `"zerocopy"`.
    pub byte_ns: Option<f64>,
    /// Cost of a frame, nanoseconds.
    pub packet_ns: Option<f64>,
    /// Cost of a segment of up to 64 KiB that TCP passes down, nanoseconds (`tso = false`: of a frame).
    pub super_packet_ns: Option<f64>,
}

impl HostCpu {
    /// Returns all costs in nanoseconds with their keys.
    pub(super) fn costs(&self) -> Vec<(&'static str, f64)> {
        let receive = self.receive.iter().flat_map(|cost| {
            [
                ("receive.packet-ns", cost.packet_ns),
                ("receive.byte-ns", cost.byte_ns),
                ("receive.merged-ns", cost.merged_ns),
            ]
        });
        let read = self.read.iter().flat_map(|cost| [("read.call-ns", cost.call_ns), ("read.byte-ns", cost.byte_ns)]);
        let send = self.send.iter().flat_map(|cost| {
            [
                ("send.call-ns", cost.call_ns),
                ("send.byte-ns", cost.byte_ns),
                ("send.packet-ns", cost.packet_ns),
                ("send.super-packet-ns", cost.super_packet_ns),
            ]
        });
        receive.chain(read).chain(send).filter_map(|(key, cost)| Some((key, cost?))).collect()
    }
}
