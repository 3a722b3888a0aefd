//! Formatting and classification of socket addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Formats an address for people: an IPv4-mapped IPv6 address is shown as IPv4.
pub fn display(addr: SocketAddr) -> String {
    unmap(addr).to_string()
}

/// Returns the unspecified address of the same family.
pub fn any_like(addr: SocketAddr) -> IpAddr {
    match addr {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    }
}

/// Converts an IPv4-mapped IPv6 address, as a dual-stack socket reports it, to IPv4.
pub fn unmap(addr: SocketAddr) -> SocketAddr {
    match addr {
        SocketAddr::V6(v6) => match v6.ip().to_ipv4_mapped() {
            Some(ip) => SocketAddr::new(IpAddr::V4(ip), v6.port()),
            None => addr,
        },
        SocketAddr::V4(_) => addr,
    }
}

/// Returns the prefix that counts as one client host: an IPv4 address, or the /64 of an IPv6 address, because a
/// host may use any address in its /64 (RFC 4291, section 2.5.4; RFC 8981).
pub fn client_host(addr: SocketAddr) -> IpAddr {
    match unmap(addr).ip() {
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64)),
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_an_ipv4_address_or_ipv6_64_prefix() {
        let host = |text: &str| client_host(text.parse().expect("an address"));
        assert_eq!(host("[2001:db8::1]:1"), host("[2001:db8::ffff:0:0:2]:2"));
        assert_ne!(host("[2001:db8::1]:1"), host("[2001:db8:0:1::1]:1"));
        assert_eq!(host("[::ffff:192.0.2.1]:1"), host("192.0.2.1:2"));
        assert_ne!(host("192.0.2.1:1"), host("192.0.2.2:1"));
    }
}
