//! The PCI device behind an interface.

use landspeed_model::{Fact, PciFacts};

use crate::host::{FactReader, Host};
use crate::parse::{ControlError, device_control};

const DEVICES: &str = "/sys/bus/pci/devices";

/// Returns the last PCI address (`0000:3b:00.0`) in a path below `/sys/devices`: the device's own, or that of
/// the PCI device a virtio device is on.
pub(super) fn address_in(path: &str) -> Option<&str> {
    path.split('/').rev().find(|part| is_address(part))
}

/// Returns whether a text is `domain:bus:device.function`, hexadecimal. A virtual bus (Hyper-V) may have a
/// domain of more than four digits.
pub(super) fn is_address(text: &str) -> bool {
    let hex = |part: &str, digits: std::ops::RangeInclusive<usize>| {
        digits.contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let mut parts = text.splitn(3, ':');
    let (Some(domain), Some(bus), Some(rest)) = (parts.next(), parts.next(), parts.next()) else { return false };
    let Some((device, function)) = rest.split_once('.') else { return false };
    hex(domain, 4..=8) && hex(bus, 2..=2) && hex(device, 2..=2) && hex(function, 1..=1)
}

pub(super) fn device(look: FactReader<'_>, address: &str) -> PciFacts {
    let path = |file: &str| format!("{DEVICES}/{address}/{file}");
    let hex = |file: &str| {
        let word = look.word(&path(file)).unwrap_or_default();
        word.strip_prefix("0x").unwrap_or(&word).to_owned()
    };
    let control = control(look.0, address);
    PciFacts {
        address: address.into(),
        id: format!("{}:{}", hex("vendor"), hex("device")),
        numa_node: numa_node(look, &path("numa_node")),
        local_cpus: look.fact(&path("local_cpulist")),
        speed_gts: speed(look, &path("current_link_speed")),
        max_speed_gts: speed(look, &path("max_link_speed")),
        width: width(look, &path("current_link_width")),
        max_width: width(look, &path("max_link_width")),
        max_read_request_bytes: control.as_ref().map(|control| control.max_read_request_bytes),
        max_payload_bytes: control.as_ref().map(|control| control.max_payload_bytes),
        relaxed_ordering: control.map(|control| control.relaxed_ordering),
        virtual_function: look.0.link(&path("physfn")).is_ok(),
        iommu: iommu(look, &path("iommu_group")),
    }
}

/// Returns the virtual functions in use and their maximum.
pub(super) fn virtual_functions(look: FactReader<'_>, address: &str) -> Fact<(u32, u32)> {
    let number = |file: &str| look.number_fact::<u32>(&format!("{DEVICES}/{address}/{file}"));
    match (number("sriov_numvfs"), number("sriov_totalvfs")) {
        (Fact::Known(used), Fact::Known(most)) => Fact::Known((used, most)),
        (Fact::Absent(_), _) => Fact::Absent("the device has no virtual functions".into()),
        (Fact::Unknown(why), _) | (_, Fact::Absent(why) | Fact::Unknown(why)) => Fact::Unknown(why),
    }
}

fn control(host: &dyn Host, address: &str) -> Fact<crate::parse::DeviceControl> {
    match host.pci_config(address) {
        Fact::Known(bytes) => match device_control(&bytes) {
            Ok(control) => Fact::Known(control),
            Err(ControlError::Truncated) => Fact::Unknown(format!(
                "only the first {} bytes of the configuration space of {address} can be read (more needs root)",
                bytes.len()
            )),
            Err(ControlError::NotExpress) => Fact::Absent(format!("{address} is not a PCI Express device")),
            Err(ControlError::Malformed) => {
                Fact::Unknown(format!("the configuration space of {address} is not understood"))
            }
        },
        Fact::Absent(why) => Fact::Absent(why),
        Fact::Unknown(why) => Fact::Unknown(why),
    }
}

fn numa_node(look: FactReader<'_>, path: &str) -> Fact<u32> {
    match look.number_fact::<i64>(path) {
        Fact::Known(node) => u32::try_from(node).map_or_else(
            // −1: unknown to the firmware.
            |_| Fact::Absent("the firmware does not say which node the device is next to".into()),
            Fact::Known,
        ),
        Fact::Absent(why) => Fact::Absent(why),
        Fact::Unknown(why) => Fact::Unknown(why),
    }
}

/// Parses a link speed: `8.0 GT/s PCIe`, before 5.7 `8 GT/s`; `Unknown` (also `Unknown speed`) without a link.
fn speed(look: FactReader<'_>, path: &str) -> Fact<f64> {
    match look.fact(path) {
        Fact::Known(text) if text.starts_with("Unknown") => Fact::Absent("the device has no PCI Express link".into()),
        Fact::Known(text) => {
            let number = text.split(' ').next().and_then(|number| number.parse::<f64>().ok());
            number
                .filter(|speed| speed.is_finite() && *speed > 0.0)
                .map_or_else(|| crate::host::unparsable(path, &text), Fact::Known)
        }
        Fact::Absent(_) => Fact::Absent("the device has no PCI Express link".into()),
        Fact::Unknown(why) => Fact::Unknown(why),
    }
}

/// Parses a link width; 0 and 255 mean that the device has no link.
fn width(look: FactReader<'_>, path: &str) -> Fact<u32> {
    match look.number_fact::<u32>(path) {
        Fact::Known(0 | 255) | Fact::Absent(_) => Fact::Absent("the device has no PCI Express link".into()),
        other => other,
    }
}

fn iommu(look: FactReader<'_>, group: &str) -> Fact<String> {
    if look.0.link(group).is_err() {
        return Fact::Absent("the device is in no IOMMU group".into());
    }
    match look.fact(&format!("{group}/type")) {
        Fact::Absent(_) => {
            Fact::Unknown("the device is in an IOMMU group, whose type this kernel does not report".into())
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_pci_address_of_a_path_is_the_device() {
        let path = "../../devices/pci0000:3a/0000:3a:00.0/0000:3b:00.1/net/ens1f1np1";
        assert_eq!(address_in(path), Some("0000:3b:00.1"));
        assert_eq!(address_in("../../devices/pci0000:00/0000:00:03.0/virtio2/net/eth0"), Some("0000:00:03.0"));
        assert_eq!(address_in("../../devices/virtual/net/bond0"), None);
        for no in ["pci0000:3a", "0000:3b:00", "3b:00.0", "0000:3b:00.0x", "", "::.", "0000:3b:0g.0"] {
            assert!(!is_address(no), "{no}");
        }
    }
}
