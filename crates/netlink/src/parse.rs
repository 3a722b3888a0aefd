//! Parsers for netlink responses. Unknown attributes are skipped and short ones ignored, so an older or newer
//! kernel costs single fields, never the whole message.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use netlink_packet_core::NlasIterator;

use crate::connection::{Cause, NETLINK_HEADER_BYTES};
use crate::reading::QdiscReading;

// linux/if_link.h
const IFLA_GSO_MAX_SIZE: u16 = 41;
const IFLA_GRO_MAX_SIZE: u16 = 58;
const IFLA_TSO_MAX_SIZE: u16 = 59;
const IFLA_GSO_IPV4_MAX_SIZE: u16 = 63;
const IFLA_GRO_IPV4_MAX_SIZE: u16 = 64;
const IFLA_MIN_MTU: u16 = 50;
const IFLA_MAX_MTU: u16 = 51;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_XDP: u16 = 43;
const IFLA_XDP_ATTACHED: u16 = 2;

// linux/rtnetlink.h
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_FQ_FLOW_MAX_RATE: u16 = 7;
const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_RATE64: u16 = 4;
const TCA_HTB_PARMS: u16 = 1;
const TCA_HTB_CEIL64: u16 = 7;
const TCA_STATS2: u16 = 7;
const RTA_METRICS: u16 = 8;
const RTAX_MTU: u16 = 2;

/// Names of the fields of `struct rtnl_link_stats64` (linux/if_link.h), in order.
pub const LINK_STATS_NAMES: [&str; 25] = [
    "rx_packets",
    "tx_packets",
    "rx_bytes",
    "tx_bytes",
    "rx_errors",
    "tx_errors",
    "rx_dropped",
    "tx_dropped",
    "multicast",
    "collisions",
    "rx_length_errors",
    "rx_over_errors",
    "rx_crc_errors",
    "rx_frame_errors",
    "rx_fifo_errors",
    "rx_missed_errors",
    "tx_aborted_errors",
    "tx_carrier_errors",
    "tx_fifo_errors",
    "tx_heartbeat_errors",
    "tx_window_errors",
    "rx_compressed",
    "tx_compressed",
    "rx_nohandler",
    "rx_otherhost_dropped",
];

/// A network interface as reported by the kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Link {
    /// `ifindex`.
    pub index: u32,
    /// Such as `eth0`.
    pub name: String,
    /// Interface flags (`IFF_UP`, `IFF_LOOPBACK` …).
    pub flags: u32,
    /// Hardware type (`ARPHRD_ETHER` …).
    pub hardware: u16,
    /// Link-layer address; six bytes on Ethernet.
    pub address: Vec<u8>,
    /// Kind of virtual link (`veth`, `bond`, `vlan` …); `None` for physical ones.
    pub kind: Option<String>,
    /// Index of the link below it (such as a VLAN's device), if any.
    pub lower: Option<u32>,
    /// Index of the bond, bridge or VRF it is a port of.
    pub master: Option<u32>,
    /// Operational state (RFC 2863): 0 unknown, 1 not present, 2 down, 3 lower layer down, 4 testing, 5 dormant, 6 up.
    pub state: Option<u8>,
    /// Whether an XDP program is attached; `None` on kernels before 4.8.
    pub xdp: Option<bool>,
    /// Without the link-layer header, bytes.
    pub mtu_bytes: u32,
    /// Minimum and maximum MTU of the device, bytes; a maximum of 0 means no limit.
    pub mtu_limits_bytes: (Option<u32>, Option<u32>),
    /// Transmit queue length (`txqueuelen`), packets.
    pub tx_queue_len: Option<u32>,
    /// Kind of the root queueing discipline.
    pub qdisc: Option<String>,
    /// Maximum GSO packet size, bytes.
    pub gso_max_size_bytes: Option<u32>,
    /// Maximum GRO packet size, bytes.
    pub gro_max_size_bytes: Option<u32>,
    /// Maximum GSO packet size of IPv4, bytes.
    pub gso_ipv4_max_size_bytes: Option<u32>,
    /// Maximum GRO packet size of IPv4, bytes.
    pub gro_ipv4_max_size_bytes: Option<u32>,
    /// Maximum TSO packet size of the device, bytes.
    pub tso_max_size_bytes: Option<u32>,
    /// Counters in the order of [`LINK_STATS_NAMES`]; fewer on older kernels.
    pub stats: Vec<u64>,
}

impl Link {
    pub(super) fn parse(payload: &[u8]) -> Result<Self, Cause> {
        let (header, attributes) = payload.split_at_checked(16).ok_or(Cause::Malformed("link header"))?;
        let mut link = Self {
            index: u32_at(header, 4).unwrap_or(0),
            flags: u32_at(header, 8).unwrap_or(0),
            hardware: u16::from_ne_bytes([header[2], header[3]]),
            ..Self::default()
        };
        for (kind, value) in each_attribute(attributes) {
            match kind {
                libc::IFLA_IFNAME => link.name = text(value),
                libc::IFLA_ADDRESS => link.address = value.to_vec(),
                libc::IFLA_MTU => link.mtu_bytes = u32_at(value, 0).unwrap_or(0),
                libc::IFLA_LINK => link.lower = u32_at(value, 0).filter(|&i| i != 0 && i != link.index),
                libc::IFLA_MASTER => link.master = u32_at(value, 0).filter(|&i| i != 0),
                libc::IFLA_OPERSTATE => link.state = value.first().copied(),
                IFLA_XDP => {
                    let attached = each_attribute(value).find(|&(k, _)| k == IFLA_XDP_ATTACHED);
                    link.xdp = attached.and_then(|(_, v)| v.first()).map(|&mode| mode != 0);
                }
                libc::IFLA_QDISC => link.qdisc = Some(text(value)),
                libc::IFLA_TXQLEN => link.tx_queue_len = u32_at(value, 0),
                libc::IFLA_STATS64 => {
                    link.stats =
                        value.chunks_exact(8).take(LINK_STATS_NAMES.len()).filter_map(|c| u64_at(c, 0)).collect();
                }
                libc::IFLA_LINKINFO => {
                    link.kind = each_attribute(value).find(|&(k, _)| k == IFLA_INFO_KIND).map(|(_, v)| text(v));
                }
                IFLA_GSO_MAX_SIZE => link.gso_max_size_bytes = u32_at(value, 0),
                IFLA_GRO_MAX_SIZE => link.gro_max_size_bytes = u32_at(value, 0),
                IFLA_GSO_IPV4_MAX_SIZE => link.gso_ipv4_max_size_bytes = u32_at(value, 0),
                IFLA_GRO_IPV4_MAX_SIZE => link.gro_ipv4_max_size_bytes = u32_at(value, 0),
                IFLA_TSO_MAX_SIZE => link.tso_max_size_bytes = u32_at(value, 0),
                IFLA_MIN_MTU => link.mtu_limits_bytes.0 = u32_at(value, 0),
                IFLA_MAX_MTU => link.mtu_limits_bytes.1 = u32_at(value, 0),
                _ => {}
            }
        }
        Ok(link)
    }
}

/// A queueing discipline or a class, with its counters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Qdisc {
    /// `ifindex` of its interface.
    pub ifindex: u32,
    /// Kind (`fq`, `mq`, `htb` …).
    pub kind: String,
    /// Handle, major number in the upper 16 bits.
    pub handle: u32,
    /// Handle of the parent; [`Qdisc::ROOT`] at the root.
    pub parent: u32,
    /// Bytes sent.
    pub bytes: u64,
    /// Packets sent. 32 bits wide on kernels before 5.5 (see [`Qdisc::packets_wrap`]).
    pub packets: u64,
    /// Whether the kernel reported `packets` in 32 bits only: before 5.5 the counter wraps at 2³², later kernels do
    /// so while it fits.
    pub packets_wrap: bool,
    /// Packets dropped; the kernel's counter is 32 bits wide.
    pub drops: u32,
    /// Over-limit events, 32 bits.
    pub overlimits: u32,
    /// Requeues, 32 bits.
    pub requeues: u32,
    /// Queued packets; a super-packet counts as one.
    pub queue_packets: u32,
    /// Queued bytes.
    pub backlog_bytes: u32,
    /// Maximum rate of a flow in `fq` (`maxrate`), bytes/s; `None` if unlimited.
    pub max_rate_bytes_per_s: Option<u32>,
    /// Rate of `tbf`, or `ceil` of an `htb` class: what passes together is no faster, bytes/s.
    pub shaped_bytes_per_s: Option<u64>,
}

/// An address of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address {
    /// `ifindex` of its interface.
    pub ifindex: u32,
    /// IPv4 or IPv6 address.
    pub ip: IpAddr,
    /// Prefix length, bits.
    pub prefix_bits: u8,
}

impl Address {
    /// Parses an address message; `None` for other address families.
    pub(super) fn parse(payload: &[u8]) -> Result<Option<Self>, Cause> {
        // struct ifaddrmsg: family, prefixlen, flags, scope, index (u32).
        let (header, attributes) = payload.split_at_checked(8).ok_or(Cause::Malformed("address header"))?;
        let (mut local, mut any) = (None, None);
        for (kind, value) in each_attribute(attributes) {
            match kind {
                // On a point-to-point link IFA_ADDRESS is the peer's address.
                libc::IFA_LOCAL => local = address(value),
                libc::IFA_ADDRESS => any = address(value),
                _ => {}
            }
        }
        let ifindex = u32_at(header, 4).unwrap_or(0);
        Ok(local.or(any).map(|ip| Self { ifindex, ip, prefix_bits: header[1] }))
    }
}

impl Qdisc {
    /// Parent of a root discipline (`TC_H_ROOT`).
    pub const ROOT: u32 = 0xffff_ffff;
    /// Parent of `ingress` and `clsact` (`TC_H_INGRESS`).
    pub const INGRESS: u32 = 0xffff_fff1;

    /// The handle as `tc` prints it: `8001:`, `1:10`.
    pub fn handle_text(&self) -> String {
        handle_text(self.handle)
    }

    /// The parent as `tc` prints it: `root`, `ingress`, `1:10`.
    pub fn parent_text(&self) -> String {
        match self.parent {
            Self::ROOT => "root".into(),
            Self::INGRESS => "ingress".into(),
            parent => handle_text(parent),
        }
    }

    /// Parses a qdisc message; `None` if it has no kind.
    pub(super) fn parse(payload: &[u8]) -> Result<Option<Self>, Cause> {
        let (header, attributes) = payload.split_at_checked(20).ok_or(Cause::Malformed("traffic control header"))?;
        let mut qdisc = Self {
            ifindex: u32_at(header, 4).unwrap_or(0),
            handle: u32_at(header, 8).unwrap_or(0),
            parent: u32_at(header, 12).unwrap_or(0),
            packets_wrap: true,
            ..Self::default()
        };
        let mut options = None;
        for (kind, value) in each_attribute(attributes) {
            match kind {
                TCA_KIND => qdisc.kind = text(value),
                TCA_OPTIONS => options = Some(value),
                TCA_STATS2 => qdisc.take_stats(value),
                _ => {}
            }
        }
        let option = |wanted| each_attribute(options.unwrap_or_default()).find(|&(kind, _)| kind == wanted);
        // A rate that does not fit in 32 bits is in a second attribute.
        let rate = |long, short, at| match (option(long), option(short)) {
            (Some((_, value)), _) => value.try_into().ok().map(u64::from_ne_bytes),
            (None, short) => short.and_then(|(_, value)| u32_at(value, at)).map(u64::from),
        };
        match qdisc.kind.as_str() {
            "fq" => {
                let rate = option(TCA_FQ_FLOW_MAX_RATE).and_then(|(_, value)| u32_at(value, 0));
                qdisc.max_rate_bytes_per_s = rate.filter(|&rate| rate != u32::MAX);
            }
            // struct tc_tbf_qopt begins with a struct tc_ratespec, whose last field is the rate.
            "tbf" => qdisc.shaped_bytes_per_s = rate(TCA_TBF_RATE64, TCA_TBF_PARMS, 8),
            // struct tc_htb_opt: struct tc_ratespec rate, ceil. The qdisc itself has other options.
            "htb" => qdisc.shaped_bytes_per_s = rate(TCA_HTB_CEIL64, TCA_HTB_PARMS, 20),
            _ => {}
        }
        Ok((!qdisc.kind.is_empty()).then_some(qdisc))
    }

    /// Parses the nested attributes of linux/gen_stats.h.
    fn take_stats(&mut self, stats: &[u8]) {
        let mut reading = QdiscReading::default();
        self.packets_wrap = !reading.parse_stats(stats);
        let QdiscReading { bytes, packets, drops, overlimits, requeues, queue_packets, backlog_bytes, .. } = reading;
        (self.bytes, self.packets, self.drops) = (bytes, packets, drops);
        (self.overlimits, self.requeues) = (overlimits, requeues);
        (self.queue_packets, self.backlog_bytes) = (queue_packets, backlog_bytes);
    }
}

/// A route to one destination.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Route {
    /// Index of the outgoing interface; the loopback for addresses of this host.
    pub out_ifindex: u32,
    /// Whether the destination is this host (`RTN_LOCAL`).
    pub local: bool,
    /// MTU of the route, bytes: configured or learnt by PMTUD; `None` if unset.
    pub mtu_bytes: Option<u32>,
}

impl Route {
    pub(super) fn parse(payload: &[u8]) -> Result<Self, Cause> {
        let (header, attributes) = payload.split_at_checked(12).ok_or(Cause::Malformed("route header"))?;
        let mut route = Self { local: header[7] == libc::RTN_LOCAL, ..Self::default() };
        for (kind, value) in each_attribute(attributes) {
            match kind {
                libc::RTA_OIF => route.out_ifindex = u32_at(value, 0).unwrap_or(0),
                RTA_METRICS => {
                    let mtu = each_attribute(value).find(|&(kind, _)| kind == RTAX_MTU);
                    route.mtu_bytes = mtu.and_then(|(_, value)| u32_at(value, 0)).filter(|&mtu| mtu != 0);
                }
                _ => {}
            }
        }
        if route.out_ifindex == 0 {
            return Err(Cause::Malformed("route without an interface"));
        }
        Ok(route)
    }
}

/// Parses `struct nlmsgerr`: a negative errno, or 0 for an acknowledgement; then the header of the request, the
/// rest of the request unless capped, and optional attributes.
pub(super) fn acknowledge(flags: u16, payload: &[u8]) -> Result<(), Cause> {
    match u32_at(payload, 0).map(|code| code as i32) {
        Some(0) => Ok(()),
        Some(code) if code < 0 && code != i32::MIN => {
            let error = io::Error::from_raw_os_error(-code);
            Err(match explanation(flags, payload) {
                Some(why) => Cause::Refused(error, why),
                None => Cause::Io(error),
            })
        }
        _ => Err(Cause::Malformed("error message")),
    }
}

/// The kernel's error message (`NLMSGERR_ATTR_MSG`), if present.
fn explanation(flags: u16, payload: &[u8]) -> Option<String> {
    const NLM_F_CAPPED: u16 = 0x100;
    const NLM_F_ACK_TLVS: u16 = 0x200;
    const NLMSGERR_ATTR_MSG: u16 = 1;
    if flags & NLM_F_ACK_TLVS == 0 {
        return None;
    }
    let request = if flags & NLM_F_CAPPED == 0 { u32_at(payload, 4)? as usize } else { NETLINK_HEADER_BYTES };
    let attributes = payload.get(4 + request.checked_next_multiple_of(4)?..)?;
    each_attribute(attributes).find(|&(kind, _)| kind == NLMSGERR_ATTR_MSG).map(|(_, value)| text(value))
}

/// Iterates over the attributes of a message, up to the first malformed one.
pub(super) fn each_attribute(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    NlasIterator::new(bytes).map_while(Result::ok).filter_map(|attribute| {
        let length = usize::from(attribute.length());
        Some((attribute.kind(), attribute.into_inner().get(4..length)?))
    })
}

fn handle_text(handle: u32) -> String {
    match (handle >> 16, handle & 0xffff) {
        (major, 0) => format!("{major:x}:"),
        (major, minor) => format!("{major:x}:{minor:x}"),
    }
}

fn text(value: &[u8]) -> String {
    let end = value.iter().position(|&b| b == 0).unwrap_or(value.len());
    String::from_utf8_lossy(&value[..end]).into_owned()
}

fn address(value: &[u8]) -> Option<IpAddr> {
    match value.len() {
        4 => Some(Ipv4Addr::from(<[u8; 4]>::try_from(value).ok()?).into()),
        16 => Some(Ipv6Addr::from(<[u8; 16]>::try_from(value).ok()?).into()),
        _ => None,
    }
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}
