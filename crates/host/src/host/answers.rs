//! What a kernel answers that is in no file, as it is kept in the `kernel.json` of a recorded host.

use std::collections::BTreeMap;

use landspeed_model::{ChannelFacts, CoalescingFacts, DriverFacts, Fact, FeatureFacts, PauseFacts, RingFacts};
use serde::{Deserialize, Serialize};

/// The kernel's answers about the host as a whole.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct KernelAnswers {
    /// When they were taken, RFC 3339 UTC.
    pub taken: String,
    /// Whether they were taken by root.
    pub root: bool,
    /// `uname -m`.
    pub machine: Fact<String>,
    /// The interface of the default route (IPv4 first).
    pub default_interface: Fact<String>,
    /// Links of the network namespace (rtnetlink), the loopback too, in the order of their indices.
    pub links: Fact<Vec<LinkAnswer>>,
    /// Queueing disciplines of the network namespace (rtnetlink), hidden ones too.
    pub qdiscs: Fact<Vec<QdiscAnswer>>,
    /// `adjtimex`.
    pub clock: Fact<ClockAnswer>,
    /// Names (`/proc/PID/comm`) of the processes that run, of those that are looked for, sorted.
    pub processes: Fact<Vec<String>>,
    /// The wake-up latency limit of all CPUs by holders of `/dev/cpu_dma_latency`, microseconds.
    pub dma_latency_us: Fact<u32>,
}

/// A link.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LinkAnswer {
    /// Index.
    pub index: u32,
    /// Name.
    pub name: String,
    /// Whether it is the loopback.
    #[serde(skip_serializing_if = "is_false")]
    pub loopback: bool,
    /// What kind of virtual link; none for a device's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The link it sits on (`IFLA_LINK`): a VLAN's device, a veth's peer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<u32>,
    /// The bond or bridge it is a port of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub master: Option<u32>,
    /// Hardware address.
    pub mac: String,
    /// Operational state.
    pub state: String,
    /// MTU, bytes.
    pub mtu_bytes: u32,
    /// Largest MTU, bytes; 0 for no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_mtu_bytes: Option<u32>,
    /// `txqueuelen`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tx_queue_len: Option<u32>,
    /// `gso_max_size`, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gso_max_size_bytes: Option<u32>,
    /// `gro_max_size`, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gro_max_size_bytes: Option<u32>,
    /// `gso_ipv4_max_size`, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gso_ipv4_max_size_bytes: Option<u32>,
    /// `gro_ipv4_max_size`, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gro_ipv4_max_size_bytes: Option<u32>,
    /// `tso_max_size`, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tso_max_size_bytes: Option<u32>,
    /// Whether an XDP program is attached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub xdp: Option<bool>,
    /// Addresses with their prefix lengths.
    pub addresses: Vec<String>,
    /// Counters by the kernel's names.
    pub statistics: BTreeMap<String, u64>,
}

/// A queueing discipline. Handles are the kernel's numbers, major in the upper half.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct QdiscAnswer {
    /// Interface.
    pub ifindex: u32,
    /// Kind.
    pub kind: String,
    /// Handle; 0 for one the kernel attached by itself.
    pub handle: u32,
    /// Parent's handle; 4294967295 at the root.
    pub parent: u32,
    /// `fq`: the rate each flow is held to, bytes/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_rate_bytes_per_s: Option<u32>,
    /// Drops since it was attached.
    #[serde(skip_serializing_if = "is_zero")]
    pub drops: u64,
}

/// The kernel's clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClockAnswer {
    /// Whether something keeps it in step.
    pub synchronised: bool,
    /// Estimated error, microseconds.
    pub estimated_error_us: u64,
}

/// What a driver answers (ethtool).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct InterfaceAnswers {
    /// Driver.
    pub driver: Fact<DriverAnswer>,
    /// Link speed, bits/s.
    pub speed_bps: Fact<u64>,
    /// Whether the link is full duplex.
    pub full_duplex: Fact<bool>,
    /// Ring sizes.
    pub rings: Fact<RingFacts>,
    /// Channels.
    pub channels: Fact<ChannelFacts>,
    /// Interrupt coalescing.
    pub coalescing: Fact<CoalescingFacts>,
    /// Flow control.
    pub pause: Fact<PauseFacts>,
    /// Offloads; those the device never has are left out.
    pub features: Fact<BTreeMap<String, FeatureFacts>>,
    /// Receive-side scaling: the queue of each entry of the table.
    pub rss_table: Fact<Vec<u32>>,
    /// `ethtool -S`.
    pub statistics: Fact<BTreeMap<String, u64>>,
}

/// A driver.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DriverAnswer {
    /// Name, version, firmware.
    #[serde(flatten)]
    pub facts: DriverFacts,
    /// Bus address; may be empty.
    pub bus: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_false(value: &bool) -> bool {
    !value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_zero(value: &u64) -> bool {
    *value == 0
}
