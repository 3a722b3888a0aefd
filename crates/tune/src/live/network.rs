//! Dependents of an interface, and the reachability of routes and peers.

use std::ffi::OsStr;
use std::net::{IpAddr, SocketAddr};

use landspeed_netlink::{LinkId, Netlink};

use super::{IFF_LOWER_UP, IFF_UP, directory_of};
use crate::knobs::DeviceDependents;

pub(super) fn dependents(interface: &str) -> DeviceDependents {
    let link = Netlink::open().and_then(|mut netlink| netlink.link(LinkId::Name(interface)));
    let Ok(link) = link else { return DeviceDependents::default() };
    let mut tied = Vec::new();
    if link.xdp == Some(true) {
        tied.push("an XDP program attached".to_owned());
    }
    let Some(directory) = directory_of(&link) else {
        tied.push("dependents that cannot be seen (/sys shows another network namespace)".into());
        return DeviceDependents { hardware: false, tied };
    };
    for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if let Some(upper) = name.strip_prefix("upper_") {
            tied.push(format!("{upper} on top of it"));
        }
    }
    // Without a sriov_numvfs file the device has no virtual functions.
    let functions = std::fs::read_to_string(directory.join("device/sriov_numvfs")).unwrap_or_default();
    match functions.trim() {
        "" | "0" => {}
        number => tied.push(format!("{number} virtual functions in use")),
    }
    DeviceDependents { hardware: directory.join("device").exists(), tied }
}

/// Whether a network interface has a message-signalled interrupt. A virtio device has those of the PCI device it
/// is on.
pub(super) fn has_interrupt(number: &OsStr) -> bool {
    std::fs::read_dir("/sys/class/net").into_iter().flatten().flatten().any(|interface| {
        let device = interface.path().join("device");
        let bus = std::fs::read_link(device.join("subsystem")).unwrap_or_default();
        let pci = if bus.ends_with("virtio") { device.join("..") } else { device };
        pci.join("msi_irqs").join(number).exists()
    })
}

/// Default routes from `/proc/net/route` (destination and gateway in hexadecimal, little-endian; proc(5))
/// and `ipv6_route`.
pub(super) fn default_routes() -> Vec<String> {
    let mut routes = Vec::new();
    let text = std::fs::read_to_string("/proc/self/net/route").unwrap_or_default();
    for line in text.lines().skip(1) {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let &[interface, "00000000", gateway, _, _, _, _, "00000000", ..] = words.as_slice() {
            let gateway = u32::from_str_radix(gateway, 16).map(|bits| IpAddr::from(bits.to_le_bytes()));
            let via = gateway.map_or_else(|_| String::new(), |gateway| format!(" via {gateway}"));
            routes.push(format!("default{via} dev {interface}"));
        }
    }
    let text = std::fs::read_to_string("/proc/self/net/ipv6_route").unwrap_or_default();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let &[destination, "00", _, _, gateway, _, _, _, _, interface] = words.as_slice()
            && destination.bytes().all(|digit| digit == b'0')
            && interface != "lo"
        {
            let gateway = u128::from_str_radix(gateway, 16).map(|bits| IpAddr::from(bits.to_be_bytes()));
            let via = gateway.map_or_else(|_| String::new(), |gateway| format!(" via {gateway}"));
            routes.push(format!("default{via} dev {interface}"));
        }
    }
    routes.sort_unstable();
    routes.dedup();
    routes
}

pub(super) fn unreachable(peer: &str) -> Option<String> {
    // The zone of an address is the name of its link.
    let plain = peer.split('%').next().unwrap_or(peer);
    let Ok(address) = plain.parse::<IpAddr>() else { return Some("it is not an address".into()) };
    let mut netlink = match Netlink::open() {
        Ok(netlink) => netlink,
        Err(why) => return Some(why.to_string()),
    };
    let route = match netlink.route(SocketAddr::new(address, 0)) {
        Ok(route) => route,
        Err(why) => return Some(why.to_string()),
    };
    match netlink.link(LinkId::Index(route.out_ifindex)) {
        Ok(link) if link.flags & (IFF_UP | IFF_LOWER_UP) == IFF_UP | IFF_LOWER_UP => None,
        Ok(link) => Some(format!("it is behind {}, which is down", link.name)),
        Err(why) => Some(why.to_string()),
    }
}
