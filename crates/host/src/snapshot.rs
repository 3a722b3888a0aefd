//! Snapshot of a host at the start of a test.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use landspeed_model::HostSnapshot;

use crate::files::Files;
use crate::unavailable::Unavailable;
use crate::{machine, nic, sysctls};

/// Describes this host, with the egress interface to `peer`, or that of the default route without a peer. Reads
/// the network namespace of the calling thread. Never fails: see `unavailable`.
pub fn snapshot(peer: Option<SocketAddr>) -> HostSnapshot {
    snapshot_from(&Files::live(), peer)
}

/// The same from any files. A recorded tree has no kernel to query: its interface is that of its default route,
/// and values that only netlink and ethtool provide are in `unavailable`.
pub fn snapshot_from(files: &Files, peer: Option<SocketAddr>) -> HostSnapshot {
    let mut missing = Unavailable::new();
    let mut host = machine::read(files, &mut missing);
    host.nic = nic::read(files, peer, &mut missing);
    host.sysctls = sysctls::read(files);
    if host.sysctls.is_empty() {
        missing.insert("sysctls".into(), "nothing of /proc/sys/net can be read".into());
    }
    host.congestion_available = congestion_controls(&host.sysctls, &mut missing);
    host.unavailable = missing;
    host
}

/// Returns the congestion controls that any process may choose; all of them if the kernel does not mark those.
fn congestion_controls(sysctls: &BTreeMap<String, String>, missing: &mut Unavailable) -> Vec<String> {
    let named = |name: &str| sysctls.get(name).filter(|list| !list.is_empty());
    let list = named("net.ipv4.tcp_allowed_congestion_control")
        .or_else(|| named("net.ipv4.tcp_available_congestion_control"));
    if list.is_none() {
        missing.insert("congestion_available".into(), "no list in /proc/sys/net/ipv4".into());
    }
    list.into_iter().flat_map(|list| list.split(' ').map(str::to_owned)).collect()
}
