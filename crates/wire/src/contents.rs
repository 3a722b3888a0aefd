//! Names of what is not dissected.

use std::fmt;

use crate::LinkType;

/// Contents of a frame that are not dissected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Contents {
    /// A link-layer header type that is not supported.
    Link(u32),
    /// An EtherType.
    EtherType(u16),
    /// A protocol behind IEEE 802.2 LLC, by its service access point.
    Llc(u8),
    /// A protocol behind SNAP, by its organisation.
    Snap(u32),
    /// A PPP protocol.
    Ppp(u16),
    /// A frame of IEEE 802.11 without readable data.
    Wlan(&'static str),
    /// An address family of a loopback or firewall log.
    Family(u32),
    /// An IP protocol other than TCP and UDP.
    Ip(u8),
}

impl fmt::Display for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match *self {
            Self::Link(link) => return write!(f, "link type {}", LinkType(link)),
            Self::Wlan(what) => return write!(f, "802.11 {what}"),
            Self::Family(family) => return write!(f, "address family {family}"),
            Self::Snap(organisation) => return write!(f, "SNAP of {organisation:06x}"),
            Self::EtherType(kind) => match kind {
                0x0806 => "ARP",
                0x8035 => "RARP",
                0x2000 => "CDP",
                0x8037 | 0x8137 => "IPX",
                0x809b => "AppleTalk",
                0x8809 => "LACP",
                0x8863 => "PPPoE discovery",
                0x888e => "EAPOL",
                0x88a2 => "ATA over Ethernet",
                0x88cc => "LLDP",
                0x88e5 => "MACsec",
                0x88e7 => "PBB",
                0x88f7 => "PTP",
                0x8902 => "CFM",
                0x8906 => "FCoE",
                0x8909 => "Cisco metadata",
                0x8915 => "RoCE",
                0x9000 => "Ethernet loopback test",
                _ => return write!(f, "EtherType 0x{kind:04x}"),
            },
            Self::Llc(service) => match service {
                0x42 => "STP",
                0xe0 | 0xff => "IPX",
                0xf0 => "NetBIOS",
                0xfe => "IS-IS",
                _ => return write!(f, "LLC 0x{service:02x}"),
            },
            Self::Ppp(protocol) => match protocol {
                0x002d | 0x002f => "compressed TCP/IP (PPP)",
                0x003d => "PPP multilink",
                0x00fd => "compressed PPP",
                0x8021 => "IPCP",
                0x8057 => "IPv6CP",
                0xc021 => "LCP",
                0xc023 => "PAP",
                0xc223 => "CHAP",
                _ => return write!(f, "PPP 0x{protocol:04x}"),
            },
            Self::Ip(protocol) => match protocol {
                1 => "ICMP",
                2 => "IGMP",
                33 => "DCCP",
                46 => "RSVP",
                47 => "GRE",
                50 => "ESP",
                51 => "AH",
                58 => "ICMPv6",
                88 => "EIGRP",
                89 => "OSPF",
                103 => "PIM",
                112 => "VRRP",
                115 => "L2TPv3",
                132 => "SCTP",
                136 => "UDP-Lite",
                _ => return write!(f, "IP protocol {protocol}"),
            },
        };
        f.write_str(name)
    }
}

impl fmt::Display for LinkType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name().or(match self.0 {
            3 => Some("AX.25"),
            7 => Some("ARCNET"),
            8 => Some("SLIP"),
            18 | 117 => Some("PF log"),
            138 => Some("IP over FireWire"),
            143 => Some("DOCSIS"),
            147..=162 => Some("private"),
            187 | 201 => Some("Bluetooth HCI"),
            189 | 220 | 249 => Some("USB"),
            195 | 215 | 230 => Some("802.15.4"),
            197 => Some("ERF"),
            227 => Some("CAN"),
            231 => Some("D-Bus"),
            240 => Some("netANALYZER"),
            251 => Some("Bluetooth LE"),
            253 => Some("netlink"),
            258 => Some("pktap"),
            _ => None,
        });
        match name {
            Some(name) => write!(f, "{} ({name})", self.0),
            None => write!(f, "{}", self.0),
        }
    }
}
