//! Routes.

use std::net::IpAddr;

use super::super::{Netlink, NetlinkError, Request};
use super::REPLACE;
use super::address::octets;

// linux/rtnetlink.h
const RTA_METRICS: u16 = 8;
const RTAX_QUICKACK: u16 = 15;

/// A unicast route in the main table, out of an interface and without a next hop.
#[derive(Debug, Clone, Copy)]
pub struct NewRoute {
    /// Destination network address.
    pub destination: IpAddr,
    /// Prefix length of the destination, bits; 0 is the default route.
    pub prefix_bits: u8,
    /// Index of the outgoing interface.
    pub ifindex: u32,
    /// Preferred source address.
    pub source: IpAddr,
    /// Whether every segment is acknowledged at once (`quickack`).
    pub quickack: bool,
}

impl Netlink {
    /// Adds a route, or replaces the present one; applies to new connections.
    pub fn replace_route(&mut self, route: &NewRoute) -> Result<(), NetlinkError> {
        let (family, destination) = octets(route.destination);
        let scope = if route.destination.is_ipv4() { libc::RT_SCOPE_LINK } else { libc::RT_SCOPE_UNIVERSE };
        let mut request = Request::acknowledged(libc::RTM_NEWROUTE, REPLACE);
        // struct rtmsg: family, dst_len, src_len, tos, table, protocol, scope, type, flags (u32).
        let (table, protocol) = (libc::RT_TABLE_MAIN, libc::RTPROT_STATIC);
        request.bytes(&[family, route.prefix_bits, 0, 0, table, protocol, scope, libc::RTN_UNICAST]);
        request.bytes(&[0; 4]);
        if route.prefix_bits > 0 {
            request.attribute(libc::RTA_DST, &destination);
        }
        request.u32(libc::RTA_OIF, route.ifindex);
        request.attribute(libc::RTA_PREFSRC, &octets(route.source).1);
        request.nest(RTA_METRICS, |r| r.u32(RTAX_QUICKACK, route.quickack.into()));
        self.execute("route replace", format_args!("{}/{}", route.destination, route.prefix_bits), request)
    }
}
