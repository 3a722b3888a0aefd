//! Links: pairs, bridges, and what can be set on any of them.

use std::os::fd::{AsRawFd, BorrowedFd};

use super::super::{LinkId, Netlink, NetlinkError, Request};
use super::{CREATE, refuse};

// linux/if_link.h
const IFLA_GSO_MAX_SEGS: u16 = 40;
const IFLA_GSO_MAX_SIZE: u16 = 41;
const IFLA_GRO_MAX_SIZE: u16 = 58;
const IFLA_GSO_IPV4_MAX_SIZE: u16 = 63;
const IFLA_GRO_IPV4_MAX_SIZE: u16 = 64;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const IFLA_BR_FORWARD_DELAY: u16 = 1;
const IFLA_BR_STP_STATE: u16 = 5;
const IFLA_BR_MCAST_SNOOPING: u16 = 23;
/// linux/veth.h
const VETH_INFO_PEER: u16 = 1;

/// What can be set on a link, at its creation or later. `None` leaves it as it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LinkSettings {
    /// Up or down.
    pub up: Option<bool>,
    /// MTU, bytes: the largest IP packet.
    pub mtu_bytes: Option<u32>,
    /// MAC address.
    pub address: Option<[u8; 6]>,
    /// Index of the bridge to be a port of; 0 for none.
    pub master: Option<u32>,
    /// `txqueuelen`: the default limit of a `pfifo`, packets.
    pub tx_queue_len: Option<u32>,
    /// Most segments in one super-packet.
    pub gso_max_segs: Option<u32>,
    /// Largest super-packet TCP over IPv6 builds, bytes with headers. Up to 65,536 it also sets the IPv4 one.
    pub gso_max_size_bytes: Option<u32>,
    /// Largest super-packet TCP over IPv4 builds, bytes with headers.
    pub gso_ipv4_max_size_bytes: Option<u32>,
    /// Largest super-packet the receive side coalesces, IPv6, bytes. Up to 65,536 it also sets the IPv4 one.
    pub gro_max_size_bytes: Option<u32>,
    /// Largest super-packet the receive side coalesces, IPv4, bytes.
    pub gro_ipv4_max_size_bytes: Option<u32>,
}

/// A link to be made.
#[derive(Debug, Clone, Copy, Default)]
pub struct NewLink<'a> {
    /// Name, at most 15 bytes.
    pub name: &'a str,
    /// Namespace it is made in; `None` is the socket's.
    pub namespace: Option<BorrowedFd<'a>>,
    /// Set from the start.
    pub settings: LinkSettings,
}

/// `struct ifinfomsg`: family, pad, type (u16), index (i32), flags (u32), change (u32).
fn header(request: &mut Request, index: u32, up: Option<bool>) {
    const IFF_UP: u32 = libc::IFF_UP as u32;
    let (flags, change) = up.map_or((0, 0), |up| (if up { IFF_UP } else { 0 }, IFF_UP));
    request.words(&[libc::AF_UNSPEC as u32, index, flags, change]);
}

fn identify(request: &mut Request, which: LinkId<'_>, up: Option<bool>) {
    match which {
        LinkId::Index(index) => header(request, index, up),
        LinkId::Name(name) => {
            header(request, 0, up);
            request.text(libc::IFLA_IFNAME, name);
        }
    }
}

fn settings(request: &mut Request, settings: &LinkSettings) {
    request.maybe_u32(libc::IFLA_MTU, settings.mtu_bytes);
    if let Some(address) = settings.address {
        request.attribute(libc::IFLA_ADDRESS, &address);
    }
    request.maybe_u32(libc::IFLA_MASTER, settings.master);
    request.maybe_u32(libc::IFLA_TXQLEN, settings.tx_queue_len);
    request.maybe_u32(IFLA_GSO_MAX_SEGS, settings.gso_max_segs);
    request.maybe_u32(IFLA_GSO_MAX_SIZE, settings.gso_max_size_bytes);
    request.maybe_u32(IFLA_GRO_MAX_SIZE, settings.gro_max_size_bytes);
    request.maybe_u32(IFLA_GSO_IPV4_MAX_SIZE, settings.gso_ipv4_max_size_bytes);
    request.maybe_u32(IFLA_GRO_IPV4_MAX_SIZE, settings.gro_ipv4_max_size_bytes);
}

/// The header and attributes of a link to be made, up to what depends on its kind.
fn describe(request: &mut Request, link: &NewLink<'_>) {
    header(request, 0, link.settings.up);
    request.text(libc::IFLA_IFNAME, link.name);
    if let Some(namespace) = link.namespace {
        request.u32(libc::IFLA_NET_NS_FD, namespace.as_raw_fd() as u32);
    }
    settings(request, &link.settings);
}

/// Names the kernel would cut short or number itself are refused here.
fn check(link: &NewLink<'_>) -> Result<(), NetlinkError> {
    if link.name.is_empty() || link.name.len() >= libc::IFNAMSIZ || link.name.contains(['\0', '/', '%', ' ']) {
        return Err(refuse("link add", link.name, "not an interface name"));
    }
    Ok(())
}

impl Netlink {
    /// Makes a pair of virtual Ethernet links, each end in its namespace, in one request. GRO is off at either end until
    /// asked for; see [`crate::ethtool::Ethtool::set_features`]. The peer is created first and cannot be up yet: set it up
    /// from its namespace.
    pub fn add_veth(&mut self, near: &NewLink<'_>, far: &NewLink<'_>) -> Result<(), NetlinkError> {
        check(near)?;
        check(far)?;
        if far.settings.up == Some(true) {
            return Err(refuse(
                "link add",
                far.name,
                "the far end of a pair cannot be up before the near one is there",
            ));
        }
        let mut request = Request::acknowledged(libc::RTM_NEWLINK, CREATE);
        describe(&mut request, near);
        request.nest(libc::IFLA_LINKINFO, |r| {
            r.text(IFLA_INFO_KIND, "veth");
            r.nest(IFLA_INFO_DATA, |r| r.around(VETH_INFO_PEER, |r| describe(r, far)));
        });
        self.carry_out("link add", format_args!("veth {} to {}", near.name, far.name), request)
    }

    /// Makes a bridge that forwards from the first packet on: no spanning tree, no IGMP or MLD snooping.
    pub fn add_bridge(&mut self, link: &NewLink<'_>) -> Result<(), NetlinkError> {
        check(link)?;
        let mut request = Request::acknowledged(libc::RTM_NEWLINK, CREATE);
        describe(&mut request, link);
        request.nest(libc::IFLA_LINKINFO, |r| {
            r.text(IFLA_INFO_KIND, "bridge");
            r.nest(IFLA_INFO_DATA, |r| {
                r.u32(IFLA_BR_FORWARD_DELAY, 0);
                r.u32(IFLA_BR_STP_STATE, 0);
                r.u8(IFLA_BR_MCAST_SNOOPING, 0);
            });
        });
        self.carry_out("link add", format_args!("bridge {}", link.name), request)
    }

    /// Changes a link.
    pub fn set_link(&mut self, which: LinkId<'_>, wanted: &LinkSettings) -> Result<(), NetlinkError> {
        let mut request = Request::acknowledged(libc::RTM_NEWLINK, 0);
        identify(&mut request, which, wanted.up);
        settings(&mut request, wanted);
        self.carry_out("link set", which, request)
    }

    /// Sets the loopback of the socket's namespace up.
    pub fn loopback_up(&mut self) -> Result<(), NetlinkError> {
        self.set_link(LinkId::Name("lo"), &LinkSettings { up: Some(true), ..LinkSettings::default() })
    }
}
