//! Kernel network state over netlink: links, addresses, routes and queueing disciplines by route netlink,
//! drivers by [`ethtool`], TCP sockets by [`sock_diag`], counters of packet filters by [`nft`]; and changes to
//! them by [`configure`]. This crate has only the codecs; sockets are in `landspeed_sys`.
//!
//! The reasons for not using an existing crate are in docs/decisions/0014-own-netlink-codecs.md.
#![forbid(unsafe_code)]

use std::fmt;
use std::net::{IpAddr, SocketAddr};

pub mod configure;
mod connection;
pub mod ethtool;
mod family;
pub mod nft;
mod parse;
mod reading;
pub mod sock_diag;

pub use connection::{Cause, NetlinkError};
pub use family::{Coalescing, EthtoolFamily};
pub use parse::{Address, LINK_STATS_NAMES, Link, Qdisc, Route};
pub use reading::QdiscReading;

use connection::{Connection, Request};

/// Dump also the default disciplines of classful ones, which are hidden otherwise (linux/rtnetlink.h, since
/// 4.12).
const TCA_DUMP_INVISIBLE: u16 = 10;

/// Identification of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkId<'a> {
    /// `ifindex`.
    Index(u32),
    /// Such as `eth0`.
    Name(&'a str),
}

impl fmt::Display for LinkId<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Index(index) => write!(f, "interface {index}"),
            Self::Name(name) => f.write_str(name),
        }
    }
}

/// A route netlink socket of the network namespace of the thread that opened it.
#[derive(Debug)]
pub struct Netlink {
    connection: Connection,
}

impl Netlink {
    /// Opens a socket in the calling thread's network namespace. Needs no privilege.
    pub fn open() -> Result<Self, NetlinkError> {
        Ok(Self { connection: Connection::open(libc::NETLINK_ROUTE, "the route family")? })
    }

    /// Returns a link with its counters.
    pub fn link(&mut self, which: LinkId<'_>) -> Result<Link, NetlinkError> {
        let mut request = Request::new(libc::RTM_GETLINK, libc::NLM_F_REQUEST as u16);
        // struct ifinfomsg: family, pad, type (u16), index (i32), flags (u32), change (u32).
        let index = if let LinkId::Index(index) = which { index } else { 0 };
        request.bytes(&[libc::AF_UNSPEC as u8, 0, 0, 0]);
        request.bytes(&index.to_ne_bytes());
        request.bytes(&[0; 8]);
        if let LinkId::Name(name) = which {
            let mut text = name.as_bytes().to_vec();
            text.push(0);
            request.attribute(libc::IFLA_IFNAME, &text);
        }
        self.connection.single(request, libc::RTM_NEWLINK, Link::parse).map_err(|cause| NetlinkError {
            operation: "link",
            object: which.to_string(),
            cause,
        })
    }

    /// Returns every link of the namespace, in the kernel's order.
    pub fn links(&mut self) -> Result<Vec<Link>, NetlinkError> {
        // struct ifinfomsg, all zero.
        self.table(libc::RTM_GETLINK, libc::RTM_NEWLINK, "link dump", &[0; 16], |payload| {
            Link::parse(payload).map(Some)
        })
    }

    /// Returns every address of the namespace, in the kernel's order.
    pub fn addresses(&mut self) -> Result<Vec<Address>, NetlinkError> {
        // struct ifaddrmsg, all zero: any family.
        self.table(libc::RTM_GETADDR, libc::RTM_NEWADDR, "address dump", &[0; 8], Address::parse)
    }

    /// Returns every queueing discipline of the namespace; see [`Netlink::qdiscs`] for those of one interface.
    pub fn all_qdiscs(&mut self) -> Result<Vec<Qdisc>, NetlinkError> {
        // struct tcmsg, all zero.
        self.table(libc::RTM_GETQDISC, libc::RTM_NEWQDISC, "qdisc dump", &[0; 20], Qdisc::parse)
    }

    /// Dumps one of the kernel's tables.
    fn table<T>(
        &mut self,
        ask: u16,
        answer: u16,
        operation: &'static str,
        header: &[u8],
        parse: impl Fn(&[u8]) -> Result<Option<T>, Cause>,
    ) -> Result<Vec<T>, NetlinkError> {
        let mut request = Request::dump(ask);
        request.bytes(header);
        if ask == libc::RTM_GETQDISC {
            request.attribute(TCA_DUMP_INVISIBLE, &[]);
        }
        let mut found = Vec::new();
        self.connection.dump(request, answer, &mut found, parse).map_err(|cause| NetlinkError {
            operation,
            object: "the whole namespace".into(),
            cause,
        })?;
        Ok(found)
    }

    /// Returns every queueing discipline of an interface with its counters, including those hidden from `tc qdisc
    /// show`. A parent's counters include its children's, so do not sum them.
    pub fn qdiscs(&mut self, ifindex: u32) -> Result<Vec<Qdisc>, NetlinkError> {
        self.traffic_control(ifindex, (libc::RTM_GETQDISC, libc::RTM_NEWQDISC), "qdisc dump")
    }

    /// Returns the classes of an interface's classful disciplines (`htb`) with their counters. A class's counters include
    /// its children's.
    pub fn classes(&mut self, ifindex: u32) -> Result<Vec<Qdisc>, NetlinkError> {
        self.traffic_control(ifindex, (libc::RTM_GETTCLASS, libc::RTM_NEWTCLASS), "class dump")
    }

    fn traffic_control(
        &mut self,
        ifindex: u32,
        (ask, answer): (u16, u16),
        operation: &'static str,
    ) -> Result<Vec<Qdisc>, NetlinkError> {
        let mut request = Request::dump(ask);
        configure::traffic_control_header(&mut request, ifindex, 0, 0, 0);
        if ask == libc::RTM_GETQDISC {
            request.attribute(TCA_DUMP_INVISIBLE, &[]);
        }
        // The kernel dumps every interface; keep only this one.
        let parse = |payload: &[u8]| Ok(Qdisc::parse(payload)?.filter(|qdisc| qdisc.ifindex == ifindex));
        let mut found = Vec::new();
        self.connection.dump(request, answer, &mut found, parse).map_err(|cause| NetlinkError {
            operation,
            object: format!("interface {ifindex}"),
            cause,
        })?;
        Ok(found)
    }

    /// Returns the route to `destination`. An IPv4-mapped IPv6 address is looked up as IPv4; the scope id, if any,
    /// is used.
    pub fn route(&mut self, destination: SocketAddr) -> Result<Route, NetlinkError> {
        let address = destination.ip().to_canonical();
        let zone = match destination {
            SocketAddr::V6(v6) if v6.scope_id() != 0 => Some(v6.scope_id()),
            _ => None,
        };
        let (family, bits) = if address.is_ipv4() { (libc::AF_INET, 32) } else { (libc::AF_INET6, 128) };
        let mut request = Request::new(libc::RTM_GETROUTE, libc::NLM_F_REQUEST as u16);
        // struct rtmsg: family, dst_len, src_len, tos, table, protocol, scope, type, flags (u32).
        request.bytes(&[family as u8, bits, 0, 0, 0, 0, 0, 0]);
        request.bytes(&[0; 4]);
        match address {
            IpAddr::V4(v4) => request.attribute(libc::RTA_DST, &v4.octets()),
            IpAddr::V6(v6) => request.attribute(libc::RTA_DST, &v6.octets()),
        }
        if let Some(zone) = zone {
            request.attribute(libc::RTA_OIF, &zone.to_ne_bytes());
        }
        self.connection.single(request, libc::RTM_NEWROUTE, Route::parse).map_err(|cause| NetlinkError {
            operation: "route",
            object: address.to_string(),
            cause,
        })
    }
}

#[cfg(test)]
mod tests;
