//! Placeholders for addresses: addresses of one network stay in one network.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// IPv4 placeholders are from the benchmark networks (RFC 2544): each network gets 254 addresses.
const V4_BITS: u8 = 24;
/// IPv6 placeholders are from the documentation network (RFC 3849).
const V6_BITS: u8 = 64;

/// Networks and addresses, in the order in which they were found.
#[derive(Debug, Default)]
pub(super) struct Networks {
    networks: Vec<(IpAddr, u8)>,
    addresses: BTreeMap<IpAddr, IpAddr>,
    /// Number of addresses assigned in each network; `None` is link-local.
    used: BTreeMap<Option<usize>, u16>,
}

impl Networks {
    /// Adds the network of an interface's address.
    pub(super) fn add_network(&mut self, ip: IpAddr, bits: u8) {
        let network = (masked(ip, bits), bits);
        if !is_shared_address(ip) && !is_link_local(ip) && !self.networks.contains(&network) {
            self.networks.push(network);
        }
    }

    /// Returns the placeholder of an address; shared addresses (loopback, unspecified, multicast) are kept.
    pub(super) fn placeholder(&mut self, ip: IpAddr) -> IpAddr {
        if is_shared_address(ip) {
            return ip;
        }
        if let Some(&known) = self.addresses.get(&ip) {
            return known;
        }
        let network = (!is_link_local(ip)).then(|| self.network_of(ip));
        let used = self.used.entry(network).or_default();
        *used = used.saturating_add(1);
        let number = *used;
        let placeholder = match (ip, network) {
            (IpAddr::V4(_), Some(network)) => {
                // 198.18.0.0/15; further networks share the last one.
                let third = 18 * 256 + network.min(511) as u32;
                let place = 198 << 24 | third << 8 | u32::from(number.min(254));
                IpAddr::V4(Ipv4Addr::from(place))
            }
            (IpAddr::V4(_), None) => IpAddr::V4(Ipv4Addr::new(169, 254, (number >> 8) as u8, number as u8)),
            (IpAddr::V6(_), Some(network)) => {
                IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, network as u16, 0, 0, 0, 0, number))
            }
            (IpAddr::V6(_), None) => IpAddr::V6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, number)),
        };
        self.addresses.insert(ip, placeholder);
        placeholder
    }

    /// Returns the prefix length for an address's placeholder: networks wider than the placeholders' are
    /// narrowed, so that they do not overlap.
    pub(super) fn prefix(ip: IpAddr, bits: u8) -> u8 {
        match ip {
            _ if is_shared_address(ip) => bits,
            IpAddr::V4(_) => bits.max(V4_BITS),
            IpAddr::V6(_) => bits.max(V6_BITS),
        }
    }

    /// Returns the addresses that were replaced and are not placeholders themselves.
    pub(super) fn originals(&self) -> impl Iterator<Item = String> {
        let issued: Vec<_> = self.addresses.values().copied().collect();
        self.addresses.keys().filter(move |ip| !issued.contains(ip)).map(ToString::to_string)
    }

    /// Returns the narrowest network that contains an address, else a new one.
    fn network_of(&mut self, ip: IpAddr) -> usize {
        let inside = |&(_, &(network, bits)): &(usize, &(IpAddr, u8))| masked(ip, bits) == network;
        let found = self.networks.iter().enumerate().filter(inside).max_by_key(|(_, (_, bits))| *bits);
        if let Some((number, _)) = found {
            return number;
        }
        let bits = if ip.is_ipv4() { V4_BITS } else { V6_BITS };
        self.networks.push((masked(ip, bits), bits));
        self.networks.len() - 1
    }
}

fn is_link_local(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.segments()[0] & 0xffc0 == 0xfe80,
    }
}

fn is_shared_address(ip: IpAddr) -> bool {
    match ip {
        // A netmask begins with 255.
        IpAddr::V4(v4) => v4.is_loopback() || v4.is_unspecified() || v4.octets()[0] >= 224,
        IpAddr::V6(v6) => v6.is_loopback() || v6.is_unspecified() || v6.is_multicast(),
    }
}

/// Returns the address with all but its first `bits` bits zero.
fn masked(ip: IpAddr, bits: u8) -> IpAddr {
    match ip {
        IpAddr::V4(ip) => {
            let mask = u32::MAX.checked_shl(u32::from(32 - bits.min(32))).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from(u32::from(ip) & mask))
        }
        IpAddr::V6(ip) => {
            let mask = u128::MAX.checked_shl(u32::from(128 - bits.min(128))).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from(u128::from(ip) & mask))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_network_stay_in_one_network() {
        let mut networks = Networks::default();
        let ip = |text: &str| text.parse::<IpAddr>().expect("an address");
        networks.add_network(ip("10.1.2.3"), 16);
        networks.add_network(ip("10.9.0.1"), 24);
        let shown: Vec<_> = ["10.1.2.3", "10.1.200.7", "10.9.0.1", "10.1.2.3", "8.8.8.8", "127.0.0.1", "255.255.0.0"]
            .map(|text| networks.placeholder(ip(text)).to_string())
            .into();
        let expected =
            ["198.18.0.1", "198.18.0.2", "198.18.1.1", "198.18.0.1", "198.18.2.1", "127.0.0.1", "255.255.0.0"];
        assert_eq!(shown, expected);
        assert_eq!((Networks::prefix(ip("10.1.2.3"), 16), Networks::prefix(ip("10.9.0.1"), 30)), (24, 30));
        assert_eq!(networks.placeholder(ip("fe80::a:b:c")), ip("fe80::1"));
        assert_eq!(networks.placeholder(ip("2a00::5")), ip("2001:db8:3::1"));
    }
}
