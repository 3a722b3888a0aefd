//! Host settings that `tune` can change, and changes recommended by checks.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A setting of a running host that can be changed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Target {
    /// A sysctl.
    Sysctl {
        /// Name with dots: `net.ipv4.tcp_rmem`.
        name: String,
    },
    /// Queueing discipline of every transmit queue: the leaves of `mq`, or the root if there is one queue.
    Qdisc {
        /// Interface name (`eth0`).
        interface: String,
    },
    /// MTU, bytes.
    Mtu {
        /// Interface name (`eth0`).
        interface: String,
    },
    /// `txqueuelen`, packets.
    TxQueueLen {
        /// Interface name (`eth0`).
        interface: String,
    },
    /// An offload: `on` or `off`.
    Feature {
        /// Interface name (`eth0`).
        interface: String,
        /// Kernel name of the offload (`tx-tcp-segmentation`).
        name: String,
    },
    /// Ring size, entries.
    Ring {
        /// Interface name (`eth0`).
        interface: String,
        /// Receive or transmit ring.
        side: Side,
    },
    /// Number of combined channels.
    Channels {
        /// Interface name (`eth0`).
        interface: String,
    },
    /// A coalescing parameter: microseconds or frames; `on` or `off` for adaptive coalescing.
    Coalescing {
        /// Interface name (`eth0`).
        interface: String,
        /// Name as in `ethtool -C`: `adaptive-rx`, `adaptive-tx`, `rx-usecs`, `tx-usecs`, `rx-frames`, `tx-frames`.
        parameter: String,
    },
    /// Pause frames: `on` or `off`.
    Pause {
        /// Interface name (`eth0`).
        interface: String,
        /// Receive or transmit pause.
        side: Side,
    },
    /// A limit of segmentation or aggregation, bytes.
    SegmentLimit {
        /// Interface name (`eth0`).
        interface: String,
        /// Name: `gso_max_size`, `gro_max_size`, `gso_ipv4_max_size` or `gro_ipv4_max_size`.
        name: String,
    },
    /// CPUs that may handle an interrupt, kernel list format.
    InterruptAffinity {
        /// Current interrupt number (IRQ).
        number: u32,
        /// Action names, which identify the interrupt after a device reset.
        name: String,
    },
    /// A sysfs file of a queue.
    Queue {
        /// Interface name (`eth0`).
        interface: String,
        /// Queue name: `rx-0`.
        queue: String,
        /// File name: `rps_cpus`, `rps_flow_cnt` or `xps_cpus`.
        file: String,
    },
    /// A sysfs file of an interface: `gro_flush_timeout`, `napi_defer_hard_irqs`, `threaded`.
    InterfaceFile {
        /// Interface name (`eth0`).
        interface: String,
        /// File name.
        file: String,
    },
    /// Frequency governor of a cpufreq policy.
    Governor {
        /// Directory name of the policy: `policy0`.
        policy: String,
    },
    /// Energy performance preference of a cpufreq policy.
    EnergyPreference {
        /// Directory name of the policy: `policy0`.
        policy: String,
    },
    /// Maximum wake-up latency of a CPU, microseconds (`pm_qos_resume_latency_us`): `n/a` forbids all idle states, 0
    /// removes the limit.
    ResumeLatency {
        /// CPU number.
        cpu: u32,
    },
    /// Egress rate limit of a control group (v2) on an interface, bits/s; 0 for no limit.
    EgressRate {
        /// Path of the group relative to the mount point.
        cgroup: String,
        /// Interface name (`eth0`).
        interface: String,
    },
}

/// Receive or transmit side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Receive side.
    Rx,
    /// Transmit side.
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

/// The interface of a target, as a reference of the same kind as the target's.
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
    /// Returns the interface of the setting; `None` for settings of the host.
    pub fn interface(&self) -> Option<&str> {
        interface_of!(self).map(String::as_str)
    }

    /// Returns the same setting on another interface; settings without an interface are unchanged.
    #[must_use]
    pub fn on_interface(&self, name: &str) -> Self {
        let mut target = self.clone();
        if let Some(interface) = interface_of!(&mut target) {
            name.clone_into(interface);
        }
        target
    }
}

/// Displays the setting in short form: `net.ipv4.tcp_rmem`, `eth0 mtu`, `eth0 rx ring`.
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

/// A setting and its desired value as text: decimal numbers, `on` and `off`, several numbers separated by spaces
/// (`4096 131072 1073741824`), a queueing discipline with options as in `tc` (`fq maxrate 8gbit`).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// Setting to change.
    pub target: Target,
    /// Desired value, as text.
    pub desired: String,
}

impl Change {
    /// Returns a change of a sysctl.
    pub fn sysctl(name: impl Into<String>, desired: impl Into<String>) -> Self {
        Self { target: Target::Sysctl { name: name.into() }, desired: desired.into() }
    }

    /// Returns a change of any setting.
    pub fn new(target: Target, desired: impl Into<String>) -> Self {
        Self { target, desired: desired.into() }
    }
}
