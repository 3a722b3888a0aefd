//! Links: veth pairs, bridges, and link settings.

use std::os::fd::{AsRawFd, BorrowedFd};

use super::super::{LinkId, Netlink, NetlinkError, Request};
use super::{CREATE, invalid_input};

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

/// Settings of a link, at creation or later. `None` leaves a setting unchanged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LinkSettings {
    /// Administrative state: true for up.
    pub up: Option<bool>,
    /// MTU, bytes: the largest IP packet.
    pub mtu_bytes: Option<u32>,
    /// MAC address (`IFLA_ADDRESS`).
    pub address: Option<[u8; 6]>,
    /// Index of the bridge that this link becomes a port of; 0 removes it from its bridge.
    pub master: Option<u32>,
    /// `txqueuelen`: the default limit of a `pfifo`, packets.
    pub tx_queue_len: Option<u32>,
    /// Maximum number of segments in a GSO super-packet (`gso_max_segs`).
    pub gso_max_segs: Option<u32>,
    /// Maximum size of super-packets that TCP over IPv6 builds, bytes with headers (`gso_max_size`). Values up to
    /// 65,536 also set the IPv4 limit.
    pub gso_max_size_bytes: Option<u32>,
    /// Maximum size of super-packets that TCP over IPv4 builds, bytes with headers (`gso_ipv4_max_size`).
    pub gso_ipv4_max_size_bytes: Option<u32>,
    /// Maximum size of super-packets that GRO builds from IPv6, bytes (`gro_max_size`). Values up to 65,536 also
    /// set the IPv4 limit.
    pub gro_max_size_bytes: Option<u32>,
    /// Maximum size of super-packets that GRO builds from IPv4, bytes (`gro_ipv4_max_size`).
    pub gro_ipv4_max_size_bytes: Option<u32>,
}

/// A link to create.
#[derive(Debug, Clone, Copy, Default)]
pub struct NewLink<'a> {
    /// Interface name, at most 15 bytes.
    pub name: &'a str,
    /// Network namespace of the new link; `None` for that of the socket.
    pub namespace: Option<BorrowedFd<'a>>,
    /// Settings at creation.
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

/// Writes the header and the attributes of a new link that do not depend on its kind.
fn describe(request: &mut Request, link: &NewLink<'_>) {
    header(request, 0, link.settings.up);
    request.text(libc::IFLA_IFNAME, link.name);
    if let Some(namespace) = link.namespace {
        request.u32(libc::IFLA_NET_NS_FD, namespace.as_raw_fd() as u32);
    }
    settings(request, &link.settings);
}

/// Refuses names that the kernel would truncate or expand to a number (`%d`).
fn check(link: &NewLink<'_>) -> Result<(), NetlinkError> {
    if link.name.is_empty() || link.name.len() >= libc::IFNAMSIZ || link.name.contains(['\0', '/', '%', ' ']) {
        return Err(invalid_input("link add", link.name, "not an interface name"));
    }
    Ok(())
}

impl Netlink {
    /// Creates a veth pair in one request, each interface in its own namespace. GRO is off on both until enabled
    /// with [`crate::ethtool::Ethtool::set_features`]. `far` cannot be up at creation, because the kernel creates
    /// the peer first: set it up from its own namespace.
    pub fn add_veth(&mut self, near: &NewLink<'_>, far: &NewLink<'_>) -> Result<(), NetlinkError> {
        check(near)?;
        check(far)?;
        if far.settings.up == Some(true) {
            return Err(invalid_input(
                "link add",
                far.name,
                "the far end of a pair cannot be up before the near one is there",
            ));
        }
        let mut request = Request::acknowledged(libc::RTM_NEWLINK, CREATE);
        describe(&mut request, near);
        request.nest(libc::IFLA_LINKINFO, |r| {
            r.text(IFLA_INFO_KIND, "veth");
            r.nest(IFLA_INFO_DATA, |r| r.nest_without_flag(VETH_INFO_PEER, |r| describe(r, far)));
        });
        self.execute("link add", format_args!("veth {} to {}", near.name, far.name), request)
    }

    /// Creates a bridge that forwards at once: no spanning tree, no IGMP or MLD snooping.
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
        self.execute("link add", format_args!("bridge {}", link.name), request)
    }

    /// Changes settings of a link.
    pub fn set_link(&mut self, which: LinkId<'_>, wanted: &LinkSettings) -> Result<(), NetlinkError> {
        let mut request = Request::acknowledged(libc::RTM_NEWLINK, 0);
        identify(&mut request, which, wanted.up);
        settings(&mut request, wanted);
        self.execute("link set", which, request)
    }

    /// Sets the loopback interface of the socket's namespace up.
    pub fn loopback_up(&mut self) -> Result<(), NetlinkError> {
        self.set_link(LinkId::Name("lo"), &LinkSettings { up: Some(true), ..LinkSettings::default() })
    }
}
