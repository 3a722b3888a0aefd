//! Routes and their metrics.

use std::net::IpAddr;

use super::super::{Netlink, NetlinkError, Request};
use super::address::octets;
use super::{CREATE, REPLACE};

// linux/rtnetlink.h
const RTA_METRICS: u16 = 8;
const RTAX_LOCK: u16 = 1;
const RTAX_MTU: u16 = 2;
const RTAX_WINDOW: u16 = 3;
const RTAX_CWND: u16 = 7;
const RTAX_ADVMSS: u16 = 8;
const RTAX_REORDERING: u16 = 9;
const RTAX_INITCWND: u16 = 11;
const RTAX_FEATURES: u16 = 12;
const RTAX_RTO_MIN: u16 = 13;
const RTAX_INITRWND: u16 = 14;
const RTAX_QUICKACK: u16 = 15;
const RTAX_CC_ALGO: u16 = 16;
const RTAX_FEATURE_ECN: u32 = 1;

/// A unicast route of the main table to be made.
#[derive(Debug, Clone, Copy)]
pub struct NewRoute<'a> {
    /// Destination network.
    pub destination: IpAddr,
    /// How many bits of it count; 0 is the default route.
    pub prefix_bits: u8,
    /// Next hop; `None` when the destination is on-link.
    pub gateway: Option<IpAddr>,
    /// Interface.
    pub ifindex: u32,
    /// Address to send from.
    pub source: Option<IpAddr>,
    /// Priority (`metric`); the least is taken.
    pub priority: Option<u32>,
    /// What TCP and IP shall assume on the way.
    pub metrics: RouteMetrics<'a>,
}

impl NewRoute<'_> {
    /// A route by an interface, on-link, with nothing else set.
    pub fn on_link(destination: IpAddr, prefix_bits: u8, ifindex: u32) -> Self {
        Self {
            destination,
            prefix_bits,
            gateway: None,
            ifindex,
            source: None,
            priority: None,
            metrics: RouteMetrics::default(),
        }
    }
}

/// Per-route attributes, `None` where the system's own apply. Those that only work locked are locked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RouteMetrics<'a> {
    /// MTU, bytes.
    pub mtu_bytes: Option<u32>,
    /// Whether path MTU discovery may not lower the MTU (`mtu lock`).
    pub mtu_lock: bool,
    /// Initial congestion window, segments.
    pub initial_cwnd: Option<u32>,
    /// Initial receive window, segments.
    pub initial_rwnd: Option<u32>,
    /// Most the congestion window may be, segments (`cwnd lock`).
    pub cwnd_clamp: Option<u32>,
    /// Most the advertised window may be, bytes.
    pub window_clamp_bytes: Option<u32>,
    /// MSS announced, bytes.
    pub advertised_mss_bytes: Option<u32>,
    /// Least retransmission timeout, ms (`rto_min`, locked).
    pub rto_min_ms: Option<u32>,
    /// First guess of the reordering distance, segments.
    pub reordering: Option<u32>,
    /// Acknowledge every segment at once.
    pub quickack: Option<bool>,
    /// Congestion control of connections over this route (locked: a listener's does not override it).
    pub congestion_control: Option<&'a str>,
    /// Negotiate ECN over this route, whatever `tcp_ecn` says.
    pub ecn: bool,
}

impl RouteMetrics<'_> {
    fn encode(&self, request: &mut Request) {
        let locked = [
            (RTAX_MTU, self.mtu_lock && self.mtu_bytes.is_some()),
            (RTAX_CWND, self.cwnd_clamp.is_some()),
            (RTAX_RTO_MIN, self.rto_min_ms.is_some()),
            (RTAX_CC_ALGO, self.congestion_control.is_some()),
        ];
        let lock = locked.iter().filter(|(_, on)| *on).fold(0, |mask, (metric, _)| mask | 1_u32 << metric);
        if lock != 0 {
            request.u32(RTAX_LOCK, lock);
        }
        request.maybe_u32(RTAX_MTU, self.mtu_bytes);
        request.maybe_u32(RTAX_WINDOW, self.window_clamp_bytes);
        request.maybe_u32(RTAX_CWND, self.cwnd_clamp);
        request.maybe_u32(RTAX_ADVMSS, self.advertised_mss_bytes);
        request.maybe_u32(RTAX_REORDERING, self.reordering);
        request.maybe_u32(RTAX_INITCWND, self.initial_cwnd);
        request.maybe_u32(RTAX_FEATURES, self.ecn.then_some(RTAX_FEATURE_ECN));
        request.maybe_u32(RTAX_RTO_MIN, self.rto_min_ms);
        request.maybe_u32(RTAX_INITRWND, self.initial_rwnd);
        request.maybe_bool(RTAX_QUICKACK, self.quickack);
        if let Some(name) = self.congestion_control {
            request.text(RTAX_CC_ALGO, name);
        }
    }
}

impl Netlink {
    /// Adds a route; fails if there is one with the same destination and priority.
    pub fn add_route(&mut self, route: &NewRoute<'_>) -> Result<(), NetlinkError> {
        self.put_route("route add", route, CREATE)
    }

    /// Adds a route or takes the place of the one there is, for connections to come.
    pub fn replace_route(&mut self, route: &NewRoute<'_>) -> Result<(), NetlinkError> {
        self.put_route("route replace", route, REPLACE)
    }

    fn put_route(&mut self, operation: &'static str, route: &NewRoute<'_>, flags: u16) -> Result<(), NetlinkError> {
        let (family, destination) = octets(route.destination);
        let on_link_v4 = route.gateway.is_none() && route.destination.is_ipv4();
        let scope = if on_link_v4 { libc::RT_SCOPE_LINK } else { libc::RT_SCOPE_UNIVERSE };
        let mut request = Request::acknowledged(libc::RTM_NEWROUTE, flags);
        // struct rtmsg: family, dst_len, src_len, tos, table, protocol, scope, type, flags (u32).
        let (table, protocol) = (libc::RT_TABLE_MAIN, libc::RTPROT_STATIC);
        request.bytes(&[family, route.prefix_bits, 0, 0, table, protocol, scope, libc::RTN_UNICAST]);
        request.bytes(&[0; 4]);
        if route.prefix_bits > 0 {
            request.attribute(libc::RTA_DST, &destination);
        }
        if let Some(gateway) = route.gateway {
            request.attribute(libc::RTA_GATEWAY, &octets(gateway).1);
        }
        request.u32(libc::RTA_OIF, route.ifindex);
        if let Some(source) = route.source {
            request.attribute(libc::RTA_PREFSRC, &octets(source).1);
        }
        request.maybe_u32(libc::RTA_PRIORITY, route.priority);
        if route.metrics != RouteMetrics::default() {
            request.nest(RTA_METRICS, |r| route.metrics.encode(r));
        }
        self.carry_out(operation, format_args!("{}/{}", route.destination, route.prefix_bits), request)
    }
}
