//! NICs of a machine: what drives them, where they are, and what they are connected to.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use landspeed_sys::process;

/// A NIC.
#[derive(Debug, Clone)]
pub struct Nic {
    device: &'static str,
    queues: u32,
    /// `None`: in a slot of the main board, which has no NUMA node.
    node: Option<u32>,
    wire: Option<u32>,
}

impl Nic {
    fn new(device: &'static str) -> Self {
        Self { device, queues: 1, node: None, wire: None }
    }

    /// Intel 82574L, driven by e1000e: PCIe, MSI-X interrupts for receiving and sending, rings, coalescing, offloads.
    pub fn e1000e() -> Self {
        Self::new("e1000e")
    }

    /// virtio, with `queues` pairs of queues. With more than one nothing is at its other end.
    pub fn virtio(queues: u32) -> Self {
        Self { queues, ..Self::new("virtio-net-pci") }
    }

    /// VMware's paravirtual NIC, driven by vmxnet3: several queues, rings.
    pub fn vmxnet3() -> Self {
        Self::new("vmxnet3")
    }

    /// Realtek 8139C+, driven by 8139cp: it drops packets when its ring of 64 is full, and counts them.
    pub fn realtek() -> Self {
        Self::new("rtl8139")
    }

    /// Puts it into a slot of this NUMA node.
    #[must_use]
    pub fn on_node(self, node: u32) -> Self {
        Self { node: Some(node), ..self }
    }

    /// Connects it to all others on this wire. Without, its link is up and nothing is at its other end.
    #[must_use]
    pub fn on_wire(self, wire: u32) -> Self {
        Self { wire: Some(wire), ..self }
    }
}

/// Hardware address of a machine's NIC.
pub(super) fn address(number: usize) -> String {
    format!("52:54:00:00:01:{number:02x}")
}

/// Whether one of them needs a tap device: only that has several queues.
fn have_queues(nics: &[Nic]) -> bool {
    nics.iter().any(|nic| nic.queues > 1)
}

/// Returns why this user cannot run them.
pub(super) fn check_privileges(nics: &[Nic]) -> Result<(), String> {
    if have_queues(nics) && !(process::is_root() && Path::new("/dev/net/tun").exists()) {
        return Err("several queues of a virtio NIC need root and /dev/net/tun".into());
    }
    Ok(())
}

/// The emulator: with several queues it runs in a separate network namespace, where it creates a tap device.
pub(super) fn emulator(nics: &[Nic], program: &str) -> Command {
    if !have_queues(nics) {
        return Command::new(program);
    }
    let mut command = Command::new("unshare");
    command.args(["--net", program]);
    command
}

/// Adds the options for these NICs.
pub(super) fn arguments(nics: &[Nic], emulator: &mut Command) {
    for (number, nic) in nics.iter().enumerate() {
        let network = match nic.wire {
            _ if nic.queues > 1 => {
                format!("tap,id=net{number},queues={},ifname=tap{number},script=no,downscript=no", nic.queues)
            }
            Some(wire) => format!("hubport,hubid={wire},id=net{number}"),
            None => format!("hubport,hubid={},id=net{number}", 100 + number),
        };
        emulator.args(["-netdev", &network]);
        let mut device = format!("{},netdev=net{number},mac={}", nic.device, address(number));
        if nic.queues > 1 {
            let _ = write!(device, ",mq=on,vectors={}", 2 * nic.queues + 2);
        }
        if let Some(node) = nic.node {
            let (bus, slot) = (128 + 8 * number, number + 1);
            emulator.args(["-device", &format!("pxb-pcie,id=host{number},bus_nr={bus},bus=pcie.0,numa_node={node}")]);
            emulator.arg("-device").arg(format!(
                "pcie-root-port,id=slot{number},bus=host{number},chassis={slot},slot={slot},x-speed=8,x-width=8"
            ));
            let _ = write!(device, ",bus=slot{number}");
        } else {
            device.push_str(",bus=pcie.0");
        }
        emulator.args(["-device", &device]);
    }
}
