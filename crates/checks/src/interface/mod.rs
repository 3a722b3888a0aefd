//! Checks of the interface, MTU, rings, offloads, flow control and drops, one per file.

use landspeed_model::{Change, Fact, FeatureFacts, InterfaceFacts};

use crate::check::{Check, Group};
use crate::view::{View, feature};

mod big_tcp;
mod bond_ports;
mod duplex;
mod hardware_gro;
mod jumbo_frames;
mod large_receive;
mod line_errors;
mod link_speed_goal;
mod link_state;
mod nocache_copy;
mod pause;
mod pause_frames;
mod receive_drops;
mod receive_hashing;
mod receive_offloads;
mod rings;
mod stacked_mtu;
mod transmit_offloads;
mod xdp;

const GROUP: Group = Group::Interface;

/// Checks of this group, by code.
pub(crate) static CHECKS: &[&Check] = &[
    &link_state::CHECK,
    &duplex::CHECK,
    &link_speed_goal::CHECK,
    &jumbo_frames::CHECK,
    &stacked_mtu::CHECK,
    &rings::CHECK,
    &transmit_offloads::CHECK,
    &receive_offloads::CHECK,
    &large_receive::CHECK,
    &hardware_gro::CHECK,
    &nocache_copy::CHECK,
    &pause::CHECK,
    &pause_frames::CHECK,
    &receive_drops::CHECK,
    &line_errors::CHECK,
    &big_tcp::CHECK,
    &receive_hashing::CHECK,
    &xdp::CHECK,
    &bond_ports::CHECK,
];

/// Counters of packets that arrived without a free buffer in the ring or in the port, by the names of the
/// kernel and of drivers (Documentation/networking/statistics.rst; mlx5 counters.rst; ixgbe, i40e, ice, sfc).
/// Several count the same packets: the largest is used.
const NO_BUFFER_COUNTERS: &[&str] = &[
    "rx_missed_errors",
    "rx_out_of_buffer",
    "rx_fifo_errors",
    "rx_discards_phy",
    "rx_no_dma_resources",
    "rx_nodesc_drop_cnt",
    "port_rx_nodesc_drops",
    "rx_dropped.nic",
];

/// Returns the largest of some counters and its name; `None` if the interface has none of them.
fn largest<'a>(port: &InterfaceFacts, names: &[&'a str]) -> Option<(u64, &'a str)> {
    let counted = names.iter().filter_map(|name| port.statistics.get(*name).map(|count| (*count, *name)));
    // Of equal counters, the first: the kernel's names come first.
    counted.reduce(|best, next| if next.0 > best.0 { next } else { best })
}

/// Returns the names of the listed offloads that are off and changeable, and the changes that turn them on.
fn disabled_offloads<'a>(
    port: &InterfaceFacts,
    features: &std::collections::BTreeMap<String, FeatureFacts>,
    names: &[&'a str],
) -> (Vec<&'a str>, Vec<Change>) {
    let off = |name: &&&str| features.get(**name).is_some_and(|feature| !feature.active && feature.changeable);
    let names: Vec<_> = names.iter().filter(off).copied().collect();
    let changes = names.iter().map(|name| feature(port, name, true)).collect();
    (names, changes)
}

/// Returns why the host forwards packets: its role, the sysctl, or a bridge that the port belongs to. Absent if
/// it does not forward.
fn forwards(view: &View<'_>, port: &InterfaceFacts) -> Fact<String> {
    if view.role() == landspeed_model::Role::Router {
        return Fact::Known("the host is a router".into());
    }
    let master = port.master.as_ref().and_then(|name| view.facts.interfaces.iter().find(|other| other.name == *name));
    if let Some(bridge) = master.filter(|master| master.kind.as_deref() == Some("bridge")) {
        return Fact::Known(format!("it is a port of the bridge {}", bridge.name));
    }
    match view.sysctl("net.ipv4.ip_forward") {
        Fact::Known("1") => Fact::Known("net.ipv4.ip_forward = 1".into()),
        Fact::Known(_) => Fact::Absent("this host does not forward".into()),
        Fact::Absent(why) => Fact::Absent(why),
        Fact::Unknown(why) => Fact::Unknown(why),
    }
}
