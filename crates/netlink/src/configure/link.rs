//! Links: pairs, bridges, dummies, and what can be set on any of them.

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
const IFLA_INFO_SLAVE_KIND: u16 = 4;
const IFLA_INFO_SLAVE_DATA: u16 = 5;
const IFLA_BR_FORWARD_DELAY: u16 = 1;
const IFLA_BR_AGEING_TIME: u16 = 4;
const IFLA_BR_STP_STATE: u16 = 5;
const IFLA_BR_MCAST_SNOOPING: u16 = 23;
const IFLA_BRPORT_LEARNING: u16 = 8;
const IFLA_BRPORT_UNICAST_FLOOD: u16 = 9;
const IFLA_BRPORT_MCAST_FLOOD: u16 = 27;
const IFLA_BRPORT_BCAST_FLOOD: u16 = 30;
const IFLA_INET6_ADDR_GEN_MODE: u16 = 8;
const IN6_ADDR_GEN_MODE_NONE: u8 = 1;
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
    /// No link-local IPv6 address (`addrgenmode none`), hence no router solicitations.
    /// Needs a kernel with IPv6. Not possible at creation.
    pub no_ipv6_autoaddress: bool,
}

/// A link to be made.
#[derive(Debug, Clone, Copy, Default)]
pub struct NewLink<'a> {
    /// Name, at most 15 bytes.
    pub name: &'a str,
    /// Index wanted; `None` takes the next free. In a pair, either both ends ask for one or none.
    pub index: Option<u32>,
    /// Namespace it is made in; `None` is the socket's.
    pub namespace: Option<BorrowedFd<'a>>,
    /// Transmit queues (1 to 4096); the kind's default when `None`.
    pub tx_queues: Option<u32>,
    /// Receive queues (1 to 4096); the kind's default when `None`.
    pub rx_queues: Option<u32>,
    /// Set from the start.
    pub settings: LinkSettings,
}

/// How a bridge behaves. The default floods what it has not learnt, learns for 300 s, speaks no spanning tree and
/// forwards from the first packet on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bridge {
    /// How long a learnt address is kept, in 1/100 s. 0 forgets at once: a hub, except for static entries.
    pub ageing_cs: u32,
    /// IGMP and MLD snooping; kernels built without it ignore this.
    pub multicast_snooping: bool,
}

impl Default for Bridge {
    fn default() -> Self {
        Self { ageing_cs: 30_000, multicast_snooping: false }
    }
}

/// How a port of a bridge behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BridgePort {
    /// Learns the source addresses of what comes in.
    pub learning: bool,
    /// Sends out what has no known destination, as well as multicast and broadcast.
    pub flood: bool,
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
    if settings.no_ipv6_autoaddress {
        request.nest(libc::IFLA_AF_SPEC, |r| {
            r.nest(libc::AF_INET6 as u16, |r| r.u8(IFLA_INET6_ADDR_GEN_MODE, IN6_ADDR_GEN_MODE_NONE));
        });
    }
}

/// The header and attributes of a link to be made, up to what depends on its kind.
fn describe(request: &mut Request, link: &NewLink<'_>) {
    header(request, link.index.unwrap_or(0), link.settings.up);
    request.text(libc::IFLA_IFNAME, link.name);
    if let Some(namespace) = link.namespace {
        request.u32(libc::IFLA_NET_NS_FD, namespace.as_raw_fd() as u32);
    }
    request.maybe_u32(libc::IFLA_NUM_TX_QUEUES, link.tx_queues);
    request.maybe_u32(libc::IFLA_NUM_RX_QUEUES, link.rx_queues);
    settings(request, &link.settings);
}

/// Names the kernel would cut short or number itself are refused here, as is what it would ignore.
fn check(link: &NewLink<'_>) -> Result<(), NetlinkError> {
    const OPERATION: &str = "link add";
    if link.name.is_empty() || link.name.len() >= libc::IFNAMSIZ || link.name.contains(['\0', '/', '%', ' ']) {
        return Err(refuse(OPERATION, link.name, "not an interface name"));
    }
    if link.settings.no_ipv6_autoaddress {
        return Err(refuse(OPERATION, link.name, "no_ipv6_autoaddress is for a link that is there"));
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

    /// Makes a bridge.
    pub fn add_bridge(&mut self, link: &NewLink<'_>, bridge: &Bridge) -> Result<(), NetlinkError> {
        check(link)?;
        let mut request = Request::acknowledged(libc::RTM_NEWLINK, CREATE);
        describe(&mut request, link);
        request.nest(libc::IFLA_LINKINFO, |r| {
            r.text(IFLA_INFO_KIND, "bridge");
            r.nest(IFLA_INFO_DATA, |r| {
                r.u32(IFLA_BR_FORWARD_DELAY, 0);
                r.u32(IFLA_BR_AGEING_TIME, bridge.ageing_cs);
                r.u32(IFLA_BR_STP_STATE, 0);
                r.u8(IFLA_BR_MCAST_SNOOPING, bridge.multicast_snooping.into());
            });
        });
        self.carry_out("link add", format_args!("bridge {}", link.name), request)
    }

    /// Makes a dummy: it swallows what is sent to it.
    pub fn add_dummy(&mut self, link: &NewLink<'_>) -> Result<(), NetlinkError> {
        check(link)?;
        let mut request = Request::acknowledged(libc::RTM_NEWLINK, CREATE);
        describe(&mut request, link);
        request.nest(libc::IFLA_LINKINFO, |r| r.text(IFLA_INFO_KIND, "dummy"));
        self.carry_out("link add", format_args!("dummy {}", link.name), request)
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

    /// Learning and flooding of a bridge's port.
    pub fn set_bridge_port(&mut self, port: LinkId<'_>, wanted: &BridgePort) -> Result<(), NetlinkError> {
        let mut request = Request::acknowledged(libc::RTM_NEWLINK, 0);
        identify(&mut request, port, None);
        request.nest(libc::IFLA_LINKINFO, |r| {
            r.text(IFLA_INFO_SLAVE_KIND, "bridge");
            r.nest(IFLA_INFO_SLAVE_DATA, |r| {
                r.u8(IFLA_BRPORT_LEARNING, wanted.learning.into());
                for flood in [IFLA_BRPORT_UNICAST_FLOOD, IFLA_BRPORT_MCAST_FLOOD, IFLA_BRPORT_BCAST_FLOOD] {
                    r.u8(flood, wanted.flood.into());
                }
            });
        });
        self.carry_out("bridge port set", port, request)
    }

    /// Deletes a link; the other end of a pair goes with it.
    pub fn delete_link(&mut self, which: LinkId<'_>) -> Result<(), NetlinkError> {
        let mut request = Request::acknowledged(libc::RTM_DELLINK, 0);
        identify(&mut request, which, None);
        self.carry_out("link delete", which, request)
    }
}
