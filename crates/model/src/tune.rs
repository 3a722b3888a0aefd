//! Settings that can be changed, and changes to them: what a check recommends and `tune` carries out.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A setting of a running host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Target {
    /// A sysctl, with dots.
    Sysctl {
        /// `net.ipv4.tcp_rmem`.
        name: String,
    },
    /// The queueing discipline of every transmit queue: the leaves of `mq`, or the root where there is one queue.
    Qdisc {
        /// Interface.
        interface: String,
    },
    /// MTU, bytes.
    Mtu {
        /// Interface.
        interface: String,
    },
    /// `txqueuelen`, packets.
    TxQueueLen {
        /// Interface.
        interface: String,
    },
    /// An offload: `on` or `off`.
    Feature {
        /// Interface.
        interface: String,
        /// The kernel's name (`tx-tcp-segmentation`).
        name: String,
    },
    /// Ring size, entries.
    Ring {
        /// Interface.
        interface: String,
        /// Which.
        side: Side,
    },
    /// Combined channels.
    Channels {
        /// Interface.
        interface: String,
    },
    /// A coalescing parameter: microseconds, or `on`/`off` for the adaptive ones.
    Coalescing {
        /// Interface.
        interface: String,
        /// As `ethtool -C` names it: `adaptive-rx`, `adaptive-tx`, `rx-usecs`, `tx-usecs`, `rx-frames`, `tx-frames`.
        parameter: String,
    },
    /// Pause frames: `on` or `off`.
    Pause {
        /// Interface.
        interface: String,
        /// Which.
        side: Side,
    },
    /// A segmentation limit, bytes.
    SegmentLimit {
        /// Interface.
        interface: String,
        /// `gso_max_size`, `gro_max_size`, `gso_ipv4_max_size`, `gro_ipv4_max_size`.
        name: String,
    },
    /// Where an interrupt may be handled, kernel list format.
    InterruptAffinity {
        /// Its number now.
        number: u32,
        /// Its action names, by which it is found again after the device was reset.
        name: String,
    },
    /// A file of a queue.
    Queue {
        /// Interface.
        interface: String,
        /// `rx-0`.
        queue: String,
        /// `rps_cpus`, `rps_flow_cnt`, `xps_cpus`.
        file: String,
    },
    /// A file of an interface: `gro_flush_timeout`, `napi_defer_hard_irqs`, `threaded`.
    InterfaceFile {
        /// Interface.
        interface: String,
        /// The file.
        file: String,
    },
    /// Frequency governor.
    Governor {
        /// `policy0`.
        policy: String,
    },
    /// Energy preference.
    EnergyPreference {
        /// `policy0`.
        policy: String,
    },
    /// Longest time a CPU may take to wake up, microseconds (`pm_qos_resume_latency_us`): `n/a` keeps it out of
    /// every idle state, 0 lifts the limit.
    ResumeLatency {
        /// CPU.
        cpu: u32,
    },
    /// Rate that a control group (v2) may send through an interface, bits/s; 0 for no limit.
    EgressRate {
        /// Path of the group below the mount.
        cgroup: String,
        /// Interface.
        interface: String,
    },
}

/// Receive or transmit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Receive.
    Rx,
    /// Transmit.
    Tx,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rx => "rx",
            Self::Tx => "tx",
        })
    }
}

/// The interface of a target, borrowed as the target is.
macro_rules! interface_of {
    ($target:expr) => {
        match $target {
            Target::Qdisc { interface }
            | Target::Mtu { interface }
            | Target::TxQueueLen { interface }
            | Target::Feature { interface, .. }
            | Target::Ring { interface, .. }
            | Target::Channels { interface }
            | Target::Coalescing { interface, .. }
            | Target::Pause { interface, .. }
            | Target::SegmentLimit { interface, .. }
            | Target::Queue { interface, .. }
            | Target::InterfaceFile { interface, .. }
            | Target::EgressRate { interface, .. } => Some(interface),
            Target::Sysctl { .. }
            | Target::InterruptAffinity { .. }
            | Target::Governor { .. }
            | Target::EnergyPreference { .. }
            | Target::ResumeLatency { .. } => None,
        }
    };
}

impl Target {
    /// The interface it belongs to.
    pub fn interface(&self) -> Option<&str> {
        interface_of!(self).map(String::as_str)
    }

    /// The same setting of the interface under another name; what belongs to no interface stays.
    #[must_use]
    pub fn on_interface(&self, name: &str) -> Self {
        let mut target = self.clone();
        if let Some(interface) = interface_of!(&mut target) {
            name.clone_into(interface);
        }
        target
    }
}

/// As a person would name it: `net.ipv4.tcp_rmem`, `eth0 mtu`, `eth0 rx ring`.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sysctl { name } => f.write_str(name),
            Self::Qdisc { interface } => write!(f, "{interface} qdisc"),
            Self::Mtu { interface } => write!(f, "{interface} mtu"),
            Self::TxQueueLen { interface } => write!(f, "{interface} txqueuelen"),
            Self::Feature { interface, name } | Self::SegmentLimit { interface, name } => {
                write!(f, "{interface} {name}")
            }
            Self::Ring { interface, side } => write!(f, "{interface} {side} ring"),
            Self::Channels { interface } => write!(f, "{interface} combined channels"),
            Self::Coalescing { interface, parameter } => write!(f, "{interface} coalescing {parameter}"),
            Self::Pause { interface, side } => write!(f, "{interface} pause {side}"),
            Self::InterruptAffinity { number, name } => write!(f, "interrupt {number} ({name}) affinity"),
            Self::Queue { interface, queue, file } => write!(f, "{interface} {queue} {file}"),
            Self::InterfaceFile { interface, file } => write!(f, "{interface} {file}"),
            Self::Governor { policy } => write!(f, "{policy} governor"),
            Self::EnergyPreference { policy } => write!(f, "{policy} energy preference"),
            Self::ResumeLatency { cpu } => write!(f, "cpu{cpu} resume latency"),
            Self::EgressRate { cgroup, interface } => write!(f, "{cgroup} egress rate on {interface}"),
        }
    }
}

/// A target and the value it should have, as text: numbers in decimal, `on` and `off`, several numbers with blanks
/// (`4096 131072 1073741824`), a queueing discipline with its options as `tc` takes them (`fq maxrate 8gbit`).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// What.
    pub target: Target,
    /// To what.
    pub desired: String,
}

impl Change {
    /// A sysctl's new value.
    pub fn sysctl(name: impl Into<String>, desired: impl Into<String>) -> Self {
        Self { target: Target::Sysctl { name: name.into() }, desired: desired.into() }
    }

    /// A target's new value.
    pub fn new(target: Target, desired: impl Into<String>) -> Self {
        Self { target, desired: desired.into() }
    }
}
