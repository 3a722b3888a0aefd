//! The interface between a transaction and the host: reads and writes settings, and identifies devices.

use landspeed_model::Target;
use serde::{Deserialize, Serialize};

use crate::Value;

/// Errors of reading or writing a setting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KnobError {
    /// This kernel, device or namespace has no such setting.
    #[error("{target} is not there: {why}")]
    Absent {
        /// Name of the setting.
        target: String,
        /// Reason it does not exist.
        why: String,
    },
    /// The operating system or the driver returned an error.
    #[error("cannot {operation} {target}: {why}")]
    Refused {
        /// `read` or `write`.
        operation: &'static str,
        /// Name of the setting.
        target: String,
        /// Reason, with advice if there is any.
        why: String,
    },
}

#[expect(clippy::needless_pass_by_value, reason = "made from whatever text or error is at hand")]
impl KnobError {
    /// Returns an error for a setting that does not exist.
    pub fn absent(target: &Target, why: impl ToString) -> Self {
        Self::Absent { target: target.to_string(), why: why.to_string() }
    }

    /// Returns an error for a setting that could not be read.
    pub fn unreadable(target: &Target, why: impl ToString) -> Self {
        Self::Refused { operation: "read", target: target.to_string(), why: why.to_string() }
    }

    /// Returns an error for a setting that could not be written.
    pub fn unwritable(target: &Target, why: impl ToString) -> Self {
        Self::Refused { operation: "write", target: target.to_string(), why: why.to_string() }
    }

    /// Whether the setting itself does not exist.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Absent { .. })
    }
}

/// Identity of a network device, independent of its current name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// Interface name when the device was read.
    pub name: String,
    /// `ifindex` when the device was read.
    pub ifindex: u32,
    /// Hardware address, hexadecimal with colons; empty if it has none.
    pub mac: String,
    /// Bus address (`0000:3b:00.0`); empty for a virtual device.
    pub bus: String,
}

impl Device {
    /// Whether both are the same device. The kernel never reuses an index; in addition the hardware or the bus
    /// address must agree: a device may be renamed, and it gets another hardware address as a bond port.
    pub fn is(&self, other: &Self) -> bool {
        let hardware = self.bus == other.bus && (!self.bus.is_empty() || self.mac == other.mac);
        self.ifindex == other.ifindex && (hardware || self.bus == other.bus && self.name == other.name)
    }
}

/// Properties of a device that make a disruptive step affect more than its own traffic.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeviceDependents {
    /// Whether it is a physical device: a reset takes the link down.
    pub hardware: bool,
    /// Dependents of the device, such as `bond0 on top of it`, `an XDP program attached`, `8 virtual functions
    /// in use`.
    pub tied: Vec<String>,
}

/// Reads and writes settings of a host. [`LiveKnobs`](crate::LiveKnobs) is this machine,
/// [`SimulatedKnobs`](crate::SimulatedKnobs) a simulated host in memory.
pub trait Knobs {
    /// Returns the current value.
    fn read(&self, target: &Target) -> Result<Value, KnobError>;

    /// Writes a value: text as in a change, or a complete value read before. For a qdisc, text sets every leaf
    /// of `mq`, or the root; `default` deletes the root.
    fn write(&self, target: &Target, value: &Value) -> Result<(), KnobError>;

    /// Returns why a readable setting cannot be written here with any value; `None` if it can.
    fn read_only(&self, _target: &Target) -> Option<String> {
        None
    }

    /// Whether an interrupt belongs to a network interface.
    fn is_network_interrupt(&self, _target: &Target) -> bool {
        false
    }

    /// Returns the identity of a device, by interface name.
    fn device(&self, interface: &str) -> Result<Device, KnobError>;

    /// Returns the current name of a device; `None` if it is gone.
    fn find(&self, device: &Device) -> Option<String>;

    /// Removes what a setting left behind when its device disappeared, such as a BPF program at a cgroup.
    fn forget(&self, _target: &Target, _device: &Device) {}

    /// Returns the dependents of a device.
    fn dependents(&self, interface: &str) -> DeviceDependents;

    /// Waits after a reset until a link that had a carrier has one again. Returns whether it has a carrier.
    fn wait_for_carrier(&self, interface: &str, had_carrier: bool) -> bool;

    /// Whether the interface has a carrier.
    fn carrier(&self, interface: &str) -> bool;

    /// Default routes as text (`default via 10.0.0.1 dev eth0`), in a fixed order.
    fn default_routes(&self) -> Vec<String>;

    /// Returns why packets to an address would not leave this host through an interface that is up; `None` if
    /// they would.
    fn unreachable(&self, peer: &str) -> Option<String>;
}
