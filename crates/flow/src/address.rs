//! Addresses as people write and read them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The address as a person wrote it: IPv4 inside IPv6 is shown as IPv4.
pub fn display(addr: SocketAddr) -> String {
    unmap(addr).to_string()
}

/// The unspecified address of the same family.
pub fn any_like(addr: SocketAddr) -> IpAddr {
    match addr {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    }
}

/// Takes IPv4 out of its IPv6 wrapping, as a dual-stack socket reports it.
pub fn unmap(addr: SocketAddr) -> SocketAddr {
    match addr {
        SocketAddr::V6(v6) => match v6.ip().to_ipv4_mapped() {
            Some(ip) => SocketAddr::new(IpAddr::V4(ip), v6.port()),
            None => addr,
        },
        SocketAddr::V4(_) => addr,
    }
}
