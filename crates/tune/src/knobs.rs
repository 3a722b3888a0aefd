//! The one seam between a transaction and the host: reading, writing, and knowing a device again.

use landspeed_model::Target;
use serde::{Deserialize, Serialize};

use crate::Value;

/// Why a setting could not be read or written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KnobError {
    /// This kernel, device or namespace has no such setting.
    #[error("{target} is not there: {why}")]
    Absent {
        /// Which.
        target: String,
        /// Why.
        why: String,
    },
    /// The system said no.
    #[error("cannot {operation} {target}: {why}")]
    Refused {
        /// `read` or `write`.
        operation: &'static str,
        /// Which.
        target: String,
        /// Why, and what to try.
        why: String,
    },
}

#[expect(clippy::needless_pass_by_value, reason = "made from whatever text or error is at hand")]
impl KnobError {
    /// Nothing of that name.
    pub fn absent(target: &Target, why: impl ToString) -> Self {
        Self::Absent { target: target.to_string(), why: why.to_string() }
    }

    /// It could not be read.
    pub fn unreadable(target: &Target, why: impl ToString) -> Self {
        Self::Refused { operation: "read", target: target.to_string(), why: why.to_string() }
    }

    /// It could not be written.
    pub fn unwritable(target: &Target, why: impl ToString) -> Self {
        Self::Refused { operation: "write", target: target.to_string(), why: why.to_string() }
    }

    /// Whether the setting itself is gone.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Absent { .. })
    }
}

/// What makes a device the same device, whatever its name is now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// Name when it was looked at.
    pub name: String,
    /// Index.
    pub ifindex: u32,
    /// Hardware address, hexadecimal with colons; empty if it has none.
    pub mac: String,
    /// Bus address (`0000:3b:00.0`); empty for a virtual device.
    pub bus: String,
}

impl Device {
    /// Whether both are the same device. The kernel gives an index once; beside it one of the others must agree, for a device
    /// may be renamed, and it takes another hardware address when it becomes the port of a bond.
    pub fn is(&self, other: &Self) -> bool {
        let hardware = self.bus == other.bus && (!self.bus.is_empty() || self.mac == other.mac);
        self.ifindex == other.ifindex && (hardware || self.bus == other.bus && self.name == other.name)
    }
}

/// What makes a disruptive step on a device more than a moment's disturbance.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ties {
    /// Whether it is hardware: a reset takes the link down.
    pub hardware: bool,
    /// What depends on it or drives it (`a port of bond0`, `vlan eth0.100 on top`, `an XDP program`, `8 virtual functions`).
    pub tied: Vec<String>,
}

/// Reading and writing settings of a host. [`LiveKnobs`](crate::LiveKnobs) is this machine, [`TwinKnobs`](crate::TwinKnobs) a
/// host in memory.
pub trait Knobs {
    /// The value now.
    fn read(&self, target: &Target) -> Result<Value, KnobError>;

    /// Writes a value: text as a change gives it, or a whole value read before. For a queueing discipline, text sets every leaf
    /// of `mq`, or the root; `default` deletes the root.
    fn write(&self, target: &Target, value: &Value) -> Result<(), KnobError>;

    /// Why a setting that can be read could not be written here whatever the value; `None` if nothing speaks against it.
    fn read_only(&self, _target: &Target) -> Option<String> {
        None
    }

    /// The device by name.
    fn device(&self, interface: &str) -> Result<Device, KnobError>;

    /// The present name of a device seen before; `None` if it is gone.
    fn find(&self, device: &Device) -> Option<String>;

    /// Takes away what a setting left elsewhere when its device went, such as a program at a control group.
    fn forget(&self, _target: &Target, _device: &Device) {}

    /// What hangs on a device.
    fn ties(&self, interface: &str) -> Ties;

    /// Waits until the link is up again after a reset, if it was before. Returns whether it has a carrier.
    fn settle(&self, interface: &str, had_carrier: bool) -> bool;

    /// Whether the link has a carrier.
    fn carrier(&self, interface: &str) -> bool;

    /// Default routes, one text each (`default via 10.0.0.1 dev eth0`), in a fixed order.
    fn default_routes(&self) -> Vec<String>;

    /// Why packets to an address would not leave this host by an interface that is up; `None` if they would.
    fn unreachable(&self, peer: &str) -> Option<String>;
}
