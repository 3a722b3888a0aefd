//! The egress interface of a test.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use landspeed_model::NicSnapshot;
use landspeed_netlink::ethtool::Ethtool;
use landspeed_netlink::{Link, LinkId, Netlink, NetlinkError, Qdisc};

use crate::files::Files;
use crate::parse::default_route_interface;
use crate::unavailable::{Unavailable, ok_or_note};

/// Offloads that affect throughput. The kernel has some sixty; the others are protocol details.
const OFFLOADS: &[&str] = &[
    "hw-tc-offload",
    "rx-all",
    "rx-checksum",
    "rx-gro",
    "rx-gro-hw",
    "rx-gro-list",
    "rx-hashing",
    "rx-lro",
    "rx-ntuple-filter",
    "rx-udp-gro-forwarding",
    "tls-hw-rx-offload",
    "tls-hw-tx-offload",
    "tx-checksum-ip-generic",
    "tx-checksum-ipv4",
    "tx-checksum-ipv6",
    "tx-generic-segmentation",
    "tx-gso-list",
    "tx-gso-partial",
    "tx-nocache-copy",
    "tx-scatter-gather",
    "tx-scatter-gather-fraglist",
    "tx-tcp-ecn-segmentation",
    "tx-tcp-mangleid-segmentation",
    "tx-tcp-segmentation",
    "tx-tcp6-segmentation",
    "tx-udp-segmentation",
    "tx-udp_tnl-segmentation",
    "tx-vlan-hw-insert",
    "rx-vlan-hw-parse",
];

/// Reads the interface towards `peer`, or that of the default route.
pub(crate) fn read(files: &Files, peer: Option<SocketAddr>, missing: &mut Unavailable) -> Option<NicSnapshot> {
    let mut nic = NicSnapshot::default();
    let mut address = Vec::new();
    if files.is_live() {
        match Netlink::open().and_then(|mut netlink| {
            let link = link_towards(&mut netlink, peer)?;
            Ok((netlink, link))
        }) {
            Ok((mut netlink, link)) => {
                set_link_fields(&mut nic, &link, missing);
                nic.qdiscs = match netlink.qdiscs(link.index) {
                    Ok(qdiscs) => kinds(&qdiscs),
                    Err(error) => {
                        missing.insert("nic.qdiscs".into(), format!("only the root's name: {error}"));
                        link.qdisc.into_iter().collect()
                    }
                };
                address = link.address;
                set_driver_fields(&mut nic, missing);
            }
            Err(error) => {
                missing.insert("nic.netlink".into(), error.to_string());
            }
        }
    } else {
        missing.insert("nic.netlink".into(), "a recorded tree has no kernel to ask".into());
    }
    if nic.name.is_empty() {
        let route = files.read("/proc/thread-self/net/route").or_else(|_| files.read("/proc/net/route"));
        let name = ok_or_note(missing, "nic", route).map(|text| default_route_interface(&text));
        if name == Some(None) {
            missing.insert("nic".into(), "no default route".into());
        }
        nic.name = name.flatten()?;
    }
    set_sysfs_fields(&mut nic, files, &address, missing);
    Some(nic)
}

fn link_towards(netlink: &mut Netlink, peer: Option<SocketAddr>) -> Result<Link, NetlinkError> {
    let route = match peer {
        Some(peer) => netlink.route(peer),
        // Addresses reserved for documentation (RFC 5737, RFC 3849): only a default route leads there.
        None => netlink.route((Ipv4Addr::new(192, 0, 2, 1), 0).into()).or_else(|first| {
            let v6 = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
            netlink.route((v6, 0).into()).map_err(|_| first)
        }),
    };
    match route {
        Ok(route) => netlink.link(LinkId::Index(route.out_ifindex)),
        // A loopback that is down has no route, but is still the right interface.
        Err(_) if peer.is_some_and(|peer| peer.ip().to_canonical().is_loopback()) => netlink.link(LinkId::Name("lo")),
        Err(error) => Err(error),
    }
}

fn set_link_fields(nic: &mut NicSnapshot, link: &Link, missing: &mut Unavailable) {
    nic.name.clone_from(&link.name);
    nic.ifindex = link.index;
    nic.mtu_bytes = link.mtu_bytes;
    nic.tx_queue_len = link.tx_queue_len;
    nic.gso_max_size_bytes = link.gso_max_size_bytes;
    nic.gro_max_size_bytes = link.gro_max_size_bytes;
    if let (Some(kind), Some(lower)) = (&link.kind, link.lower) {
        let why = format!("{} is a {kind} on interface {lower}, whose own settings were not read", link.name);
        missing.insert("nic.lower".into(), why);
    }
}

/// Returns the root's kind, then each other kind once: `mq`, `fq` for a multi-queue root with fq leaves.
fn kinds(qdiscs: &[Qdisc]) -> Vec<String> {
    let mut kinds: Vec<String> = Vec::new();
    let (roots, others): (Vec<_>, Vec<_>) = qdiscs.iter().partition(|qdisc| qdisc.parent == Qdisc::ROOT);
    for qdisc in roots.into_iter().chain(others) {
        if !kinds.contains(&qdisc.kind) {
            kinds.push(qdisc.kind.clone());
        }
    }
    kinds
}

fn set_driver_fields(nic: &mut NicSnapshot, missing: &mut Unavailable) {
    let Some(mut ethtool) = ok_or_note(missing, "nic.ethtool", Ethtool::new(&nic.name)) else { return };
    let mut answer = |what: &str, why: &dyn std::fmt::Display| {
        missing.insert(format!("nic.{what}"), why.to_string());
    };
    let some = |text: String| (!text.is_empty() && text != "N/A").then_some(text);
    match ethtool.driver() {
        Ok(info) => {
            nic.driver = some(info.driver);
            nic.driver_version = some(info.version);
            nic.firmware = some(info.firmware);
            nic.bus = some(info.bus);
        }
        Err(error) => answer("driver", &error),
    }
    match ethtool.speed_bps() {
        Ok(speed) => nic.speed_bps = speed,
        Err(error) => answer("speed_bps", &error),
    }
    match ethtool.rings() {
        Ok(rings) => (nic.rx_ring, nic.tx_ring) = (Some(rings.rx), Some(rings.tx)),
        Err(error) => answer("rings", &error),
    }
    match ethtool.channels() {
        Ok(channels) if channels.combined.1 > 0 => nic.channels = Some(channels.combined),
        Ok(channels) => {
            let why = format!("no combined channels: {} receive, {} transmit", channels.rx.0, channels.tx.0);
            answer("channels", &why);
        }
        Err(error) => answer("channels", &error),
    }
    match ethtool.features() {
        Ok(features) => {
            let matter = features
                .into_iter()
                .filter(|f| OFFLOADS.contains(&f.name.as_str()) && (f.active || f.changeable))
                .map(|f| (f.name, f.active));
            nic.offloads = matter.collect::<BTreeMap<_, _>>();
        }
        Err(error) => answer("offloads", &error),
    }
}

/// Returns the interface's directory below `/sys`, which shows the network namespace it was mounted in, not
/// always the calling thread's. `None` if the interface with that name there is another one. Index 0: there was
/// no kernel to query.
pub(crate) fn sysfs_directory(files: &Files, name: &str, index: u32, address: &[u8]) -> Option<String> {
    let directory = format!("/sys/class/net/{name}");
    let found: u32 = files.number(&format!("{directory}/ifindex")).ok()?;
    let shown = files.word(&format!("{directory}/address")).unwrap_or_default();
    let known = address.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":");
    let same = index == 0 || found == index && (address.is_empty() || shown == known);
    same.then_some(directory)
}

/// Adds values that only sysfs has, and those that the kernel could not be queried for.
fn set_sysfs_fields(nic: &mut NicSnapshot, files: &Files, address: &[u8], missing: &mut Unavailable) {
    let Some(directory) = sysfs_directory(files, &nic.name, nic.ifindex, address) else {
        let why = format!("/sys/class/net/{} is not this interface (another network namespace)", nic.name);
        missing.insert("nic.sysfs".into(), why);
        return;
    };
    let number = |name: &str| files.number::<u32>(&format!("{directory}/{name}")).ok();
    if nic.ifindex == 0 {
        nic.ifindex = number("ifindex").unwrap_or(0);
        nic.mtu_bytes = number("mtu").unwrap_or(0);
        nic.tx_queue_len = number("tx_queue_len");
    }
    if nic.driver.is_none() {
        nic.driver = files.link_name(&format!("{directory}/device/driver"));
    }
    if nic.bus.is_none() {
        nic.bus = files.link_name(&format!("{directory}/device"));
    }
    if nic.speed_bps.is_none() {
        // −1 or EINVAL when the link is down or has no speed.
        match files.number::<i64>(&format!("{directory}/speed")) {
            Ok(mbps) if mbps > 0 => nic.speed_bps = Some((mbps as u64).saturating_mul(1_000_000)),
            _ => {
                missing
                    .entry("nic.speed_bps".into())
                    .or_insert_with(|| "the link has no speed (virtual, or down)".into());
            }
        }
    }
    if nic.speed_bps.is_some() {
        missing.remove("nic.speed_bps");
    }
    // A virtio device's node is that of the PCI device it sits on.
    let node = |of: &str| files.number::<i32>(&format!("{directory}/{of}/numa_node"));
    match node("device").or_else(|error| node("device/..").map_err(|_| error)) {
        Ok(node) if node >= 0 => nic.numa_node = Some(node),
        // −1: unknown to the firmware.
        Ok(_) => {
            missing.insert("nic.numa_node".into(), "the firmware does not say".into());
        }
        Err(_) if !files.exists(&format!("{directory}/device")) => {
            missing.insert("nic.numa_node".into(), "a virtual interface, on no device".into());
        }
        Err(error) => {
            missing.insert("nic.numa_node".into(), error.to_string());
        }
    }
}
