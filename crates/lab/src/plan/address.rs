//! Addresses and seeds, made of the indices of nodes and ports.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Returns a locally administered MAC address that contains node and port.
pub fn mac(node: usize, port: usize) -> [u8; 6] {
    let [n1, n0] = (node as u16).to_be_bytes();
    let [p1, p0] = (port as u16).to_be_bytes();
    [0x02, 0x4c, n1, n0, p1, p0]
}

pub fn node_address(base: Ipv4Addr, node: usize) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(base) + node as u32 + 1)
}

pub fn numbered_v6(node: usize) -> Ipv6Addr {
    Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, node as u16 + 1)
}

/// Returns one output of SplitMix64, which spreads a small seed over 64 bits.
pub fn splitmix(seed: u64) -> u64 {
    landspeed_stats::SplitMix64::new(seed).bits()
}
