//! Addresses, permanent neighbours and static bridge entries.

use std::net::IpAddr;

use super::super::{Netlink, NetlinkError, Request};
use super::{CREATE, REPLACE};

// linux/neighbour.h
const NDA_DST: u16 = 1;
const NDA_LLADDR: u16 = 2;
const NUD_NOARP: u16 = 0x40;
const NUD_PERMANENT: u16 = 0x80;
const NTF_MASTER: u8 = 0x04;

/// Address family (`AF_INET`, `AF_INET6`) and address bytes.
pub(super) fn octets(address: IpAddr) -> (u8, Vec<u8>) {
    match address {
        IpAddr::V4(v4) => (libc::AF_INET as u8, v4.octets().to_vec()),
        IpAddr::V6(v6) => (libc::AF_INET6 as u8, v6.octets().to_vec()),
    }
}

/// `struct ndmsg`: family, pad (3), ifindex, state (u16), flags, type.
fn neighbour(family: u8, ifindex: u32, state: u16, flags: u8, kernel_flags: u16) -> Request {
    let mut request = Request::acknowledged(libc::RTM_NEWNEIGH, kernel_flags);
    request.bytes(&[family, 0, 0, 0]);
    request.bytes(&ifindex.to_ne_bytes());
    request.bytes(&state.to_ne_bytes());
    request.bytes(&[flags, 0]);
    request
}

impl Netlink {
    /// Adds an address to an interface; its first `prefix_bits` bits are the on-link network. IPv6 addresses skip
    /// duplicate address detection (`IFA_F_NODAD`) and are usable at once.
    pub fn add_address(&mut self, ifindex: u32, address: IpAddr, prefix_bits: u8) -> Result<(), NetlinkError> {
        let (family, bytes) = octets(address);
        let flags = if address.is_ipv6() { libc::IFA_F_NODAD as u8 } else { 0 };
        let mut request = Request::acknowledged(libc::RTM_NEWADDR, CREATE);
        // struct ifaddrmsg: family, prefixlen, flags, scope, index (u32).
        request.bytes(&[family, prefix_bits, flags, libc::RT_SCOPE_UNIVERSE]);
        request.bytes(&ifindex.to_ne_bytes());
        request.attribute(libc::IFA_LOCAL, &bytes);
        request.attribute(libc::IFA_ADDRESS, &bytes);
        self.execute("address add", format_args!("{address}/{prefix_bits} on interface {ifindex}"), request)
    }

    /// Adds a permanent neighbour entry, so that neither ARP nor neighbour discovery is needed.
    pub fn set_neighbour(&mut self, ifindex: u32, address: IpAddr, mac: [u8; 6]) -> Result<(), NetlinkError> {
        let (family, bytes) = octets(address);
        let mut request = neighbour(family, ifindex, NUD_PERMANENT, 0, REPLACE);
        request.attribute(NDA_DST, &bytes);
        request.attribute(NDA_LLADDR, &mac);
        self.execute("neighbour set", format_args!("{address} on interface {ifindex}"), request)
    }

    /// Adds a static forwarding entry of a bridge: the port for a MAC address (`bridge fdb replace … master
    /// static`).
    pub fn set_bridge_entry(&mut self, port_ifindex: u32, mac: [u8; 6]) -> Result<(), NetlinkError> {
        let mut request = neighbour(libc::AF_BRIDGE as u8, port_ifindex, NUD_NOARP, NTF_MASTER, REPLACE);
        request.attribute(NDA_LLADDR, &mac);
        let text = mac.map(|byte| format!("{byte:02x}")).join(":");
        let object = format_args!("{text} at interface {port_ifindex}");
        self.execute("bridge entry set", object, request)
    }
}
