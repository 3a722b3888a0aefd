//! Interfaces of a tap: lookup, checks and description.

use landspeed_netlink::ethtool::Ethtool;
use landspeed_netlink::{LinkId, Netlink};
use landspeed_problems::suggest;
use landspeed_wire::LinkType;

use crate::TapError;

const IFF_UP: u32 = 1;
const IFF_LOOPBACK: u32 = 8;
/// Offloads that merge or split packets: a tap sees super-packets with them.
const SUPER_PACKET_OFFLOADS: &[&str] = &[
    "tx-tcp-segmentation",
    "tx-tcp6-segmentation",
    "tx-generic-segmentation",
    "tx-udp-segmentation",
    "rx-gro",
    "rx-gro-hw",
    "rx-lro",
];
/// Indices of `rx_packets`, `tx_packets`, `rx_dropped` and `tx_dropped` in a link's counters.
const PACKETS: [usize; 2] = [0, 1];
const DROPPED: [usize; 2] = [6, 7];

/// An interface to capture on.
#[derive(Debug, Clone)]
pub struct Subject {
    pub name: String,
    pub index: u32,
    /// Link type of its frames in a capture file.
    pub link: LinkType,
    pub loopback: bool,
    pub mac: Option<[u8; 6]>,
    pub description: Option<String>,
    pub speed_bps: Option<u64>,
    pub offloads: Vec<String>,
}

/// Counters of an interface, both directions together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    pub packets: u64,
    pub dropped: u64,
}

/// Looks up the interfaces in the calling thread's network namespace, and checks them.
pub fn find(netlink: &mut Netlink, names: &[String]) -> Result<Vec<Subject>, TapError> {
    let links = netlink.links().map_err(|error| TapError::Links(error.to_string()))?;
    let mut subjects: Vec<Subject> = Vec::new();
    for name in names {
        let Some(link) = links.iter().find(|link| link.name == *name) else {
            let known: Vec<&str> = links.iter().map(|link| link.name.as_str()).collect();
            return Err(TapError::NoInterface { name: name.clone(), near: near(name, &known) });
        };
        if subjects.iter().any(|other| other.index == link.index) {
            return Err(TapError::DuplicateInterface(name.clone()));
        }
        if link.flags & IFF_UP == 0 {
            return Err(TapError::InterfaceDown(name.clone()));
        }
        let link_type = match link.hardware {
            // ARPHRD_ETHER, ARPHRD_LOOPBACK.
            1 | 772 => LinkType::ETHERNET,
            // ARPHRD_RAWIP, ARPHRD_TUNNEL, ARPHRD_TUNNEL6, ARPHRD_SIT, ARPHRD_NONE (tun, WireGuard).
            519 | 768 | 769 | 776 | 65534 => LinkType::RAW,
            kind => return Err(TapError::Framing { name: name.clone(), kind }),
        };
        let mut ethtool = Ethtool::new(name).ok();
        let offloads = ethtool.as_mut().and_then(|ethtool| ethtool.features().ok()).unwrap_or_default();
        let offloads = offloads
            .into_iter()
            .filter(|feature| feature.active && SUPER_PACKET_OFFLOADS.contains(&feature.name.as_str()));
        subjects.push(Subject {
            name: name.clone(),
            index: link.index,
            link: link_type,
            loopback: link.flags & IFF_LOOPBACK != 0,
            mac: link.address.first_chunk().copied().filter(|_| link.address.len() == 6),
            description: ethtool
                .as_mut()
                .and_then(|ethtool| ethtool.driver().ok())
                .map(|driver| driver.driver)
                .or_else(|| link.kind.clone()),
            speed_bps: ethtool.as_mut().and_then(|ethtool| ethtool.speed_bps().ok().flatten()),
            offloads: offloads.map(|feature| feature.name).collect(),
        });
    }
    Ok(subjects)
}

/// Reads the counters of an interface; `None` if it no longer exists.
pub fn traffic(netlink: &mut Netlink, index: u32) -> Option<Traffic> {
    let link = netlink.link(LinkId::Index(index)).ok()?;
    let sum = |places: [usize; 2]| places.iter().filter_map(|&place| link.stats.get(place)).sum();
    Some(Traffic { packets: sum(PACKETS), dropped: sum(DROPPED) })
}

fn near(name: &str, known: &[&str]) -> Option<String> {
    let list = || (!known.is_empty()).then(|| format!("there is {}", known.join(", ")));
    suggest(name, known.iter().copied()).or_else(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelled_interfaces_get_a_suggestion() {
        assert_eq!(near("eht0", &["lo", "eth0", "eth1"]).as_deref(), Some("did you mean `eth0`?"));
        assert_eq!(near("wlan", &["lo", "eth0"]).as_deref(), Some("there is lo, eth0"));
        assert_eq!(near("x", &[]), None);
    }
}
