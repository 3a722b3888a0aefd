//! The kernel's answers that are in no file, as stored in the `kernel.json` of a recorded host.

use std::collections::BTreeMap;

use landspeed_model::{ChannelFacts, CoalescingFacts, DriverFacts, Fact, FeatureFacts, PauseFacts, RingFacts};
use serde::{Deserialize, Serialize};

/// The kernel's answers about the host as a whole.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct KernelAnswers {
    /// Time of the answers, RFC 3339 UTC.
    pub taken: String,
    /// Whether root collected them.
    pub root: bool,
    /// `uname -m`.
    pub machine: Fact<String>,
    /// The interface of the default route (IPv4 first).
    pub default_interface: Fact<String>,
    /// Links of the network namespace (rtnetlink), including the loopback, by index.
    pub links: Fact<Vec<LinkAnswer>>,
    /// Qdiscs of the network namespace (rtnetlink), including hidden ones.
    pub qdiscs: Fact<Vec<QdiscAnswer>>,
    /// `adjtimex`.
    pub clock: Fact<ClockAnswer>,
    /// Running processes that are searched for: names (`/proc/PID/comm`), sorted.
    pub processes: Fact<Vec<String>>,
    /// Wake-up latency limit of all CPUs through `/dev/cpu_dma_latency`, microseconds.
    pub dma_latency_us: Fact<u32>,
}

/// A network link.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LinkAnswer {
    /// `ifindex`.
    pub index: u32,
    /// Such as `eth0`.
    pub name: String,
    /// Whether it is the loopback.
    #[serde(skip_serializing_if = "is_false")]
    pub loopback: bool,
    /// Kind of a virtual link; `None` for a device's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Link below it (`IFLA_LINK`): a VLAN's device, a veth's peer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<u32>,
    /// The bond or bridge it is a port of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub master: Option<u32>,
    /// Hardware address, hexadecimal with colons.
    pub mac: String,
    /// Operational state (RFC 2863), as sysfs names it.
    pub state: String,
    /// Without the link-layer header, bytes.
    pub mtu_bytes: u32,
    /// Maximum MTU, bytes; 0 for no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_mtu_bytes: Option<u32>,
    /// Packets (`txqueuelen`).
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
    /// Counters by the kernel's names (`rtnl_link_stats64`).
    pub statistics: BTreeMap<String, u64>,
}

/// A qdisc. Handles are the kernel's numbers, with the major in the upper half.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct QdiscAnswer {
    /// Index of its interface.
    pub ifindex: u32,
    /// Kind: `fq`, `mq` …
    pub kind: String,
    /// Handle; 0 if the kernel attached it.
    pub handle: u32,
    /// Handle of the parent; 4294967295 at the root.
    pub parent: u32,
    /// `maxrate` of `fq`, bytes/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_rate_bytes_per_s: Option<u32>,
    /// Drops since it was attached.
    #[serde(skip_serializing_if = "is_zero")]
    pub drops: u64,
}

/// State of the kernel's clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClockAnswer {
    /// Whether the clock is synchronised.
    pub synchronised: bool,
    /// Estimated error, microseconds.
    pub estimated_error_us: u64,
}

/// Answers of an interface's driver (ethtool).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct InterfaceAnswers {
    /// Driver and bus address.
    pub driver: Fact<DriverAnswer>,
    /// Link speed, bits/s.
    pub speed_bps: Fact<u64>,
    /// Whether the link is full duplex.
    pub full_duplex: Fact<bool>,
    /// Ring sizes (`ethtool -g`).
    pub rings: Fact<RingFacts>,
    /// Channels (`ethtool -l`).
    pub channels: Fact<ChannelFacts>,
    /// Interrupt coalescing (`ethtool -c`).
    pub coalescing: Fact<CoalescingFacts>,
    /// Flow control (`ethtool -a`).
    pub pause: Fact<PauseFacts>,
    /// Offloads; those the device never has are omitted.
    pub features: Fact<BTreeMap<String, FeatureFacts>>,
    /// RSS indirection table: the queue of each entry.
    pub rss_table: Fact<Vec<u32>>,
    /// Driver statistics (`ethtool -S`).
    pub statistics: Fact<BTreeMap<String, u64>>,
}

/// A driver and its device.
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
