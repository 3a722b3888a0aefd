//! Protocol overhead: the share of a link's rate that headers leave for data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Ethernet overhead per packet: preamble and start delimiter 8, header 14, checksum 4, inter-packet gap 12 bytes
/// (IEEE 802.3 clauses 3 and 4). A VLAN tag would add 4.
pub const ETHERNET_OVERHEAD_BYTES: u32 = 8 + 14 + 4 + 12;

/// TCP header without options (RFC 9293 section 3.1).
const TCP_HEADER_BYTES: u32 = 20;

/// TCP timestamp option with the padding that Linux sends (RFC 7323 appendix A).
const TIMESTAMP_BYTES: u32 = 12;

/// Version of the Internet Protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum IpVersion {
    /// IPv4, with a header of 20 bytes (RFC 791).
    #[default]
    V4,
    /// IPv6, with a header of 40 bytes (RFC 8200).
    V6,
}

impl IpVersion {
    /// IP header length in bytes, without options or extension headers.
    pub const fn header_bytes(self) -> u32 {
        match self {
            Self::V4 => 20,
            Self::V6 => 40,
        }
    }

    /// The smallest accepted MTU: 576 (the datagram that every IPv4 host must accept, RFC 791) or 1280 (RFC 8200
    /// section 5).
    pub const fn min_mtu_bytes(self) -> u32 {
        match self {
            Self::V4 => 576,
            Self::V6 => 1280,
        }
    }
}

/// Encapsulation of TCP segments on Ethernet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Framing {
    /// The MTU in bytes: the largest IP packet. At least [`IpVersion::min_mtu_bytes`].
    pub mtu_bytes: u32,
    /// Version of the Internet Protocol; determines the header length.
    pub ip_version: IpVersion,
    /// Whether TCP timestamps are on, as they are by default.
    pub timestamps: bool,
}

impl Framing {
    /// The payload of a full segment: `MTU − IP header − 20 − 12 with timestamps`.
    pub const fn mss_bytes(self) -> u32 {
        let options = if self.timestamps { TIMESTAMP_BYTES } else { 0 };
        self.mtu_bytes.saturating_sub(self.ip_version.header_bytes() + TCP_HEADER_BYTES + options)
    }

    /// The payload's share of the line rate: `MSS / (MTU + 38)`.
    pub fn efficiency(self) -> f64 {
        f64::from(self.mss_bytes()) / (f64::from(self.mtu_bytes) + f64::from(ETHERNET_OVERHEAD_BYTES))
    }

    /// The goodput of a full link: `rate × MSS / (MTU + 38)`.
    pub fn goodput_bps(self, line_rate_bps: f64) -> f64 {
        line_rate_bps * self.efficiency()
    }
}

/// The time to transfer data at a goodput: `bytes × 8 / goodput`. Slow start and the last RTT are not included.
pub fn transfer_time_s(bytes: f64, goodput_bps: f64) -> f64 {
    bytes * 8.0 / goodput_bps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framing(mtu_bytes: u32, ip_version: IpVersion, timestamps: bool) -> Framing {
        Framing { mtu_bytes, ip_version, timestamps }
    }

    #[test]
    fn goodput_of_a_10g_link_depends_on_the_mtu() {
        let standard = framing(1500, IpVersion::V4, true);
        assert_eq!(standard.mss_bytes(), 1448);
        assert!((standard.goodput_bps(10e9) / 1e9 - 9.415).abs() < 0.001);
        let jumbo = framing(9000, IpVersion::V4, true);
        assert_eq!(jumbo.mss_bytes(), 8948);
        assert!((jumbo.goodput_bps(10e9) / 1e9 - 9.900).abs() < 0.001);
    }

    #[test]
    fn ipv6_and_timestamps_cost_20_and_12_bytes() {
        assert_eq!(framing(1500, IpVersion::V4, false).mss_bytes(), 1460);
        assert_eq!(framing(1500, IpVersion::V6, false).mss_bytes(), 1440);
        assert_eq!(framing(1500, IpVersion::V6, true).mss_bytes(), 1428);
    }

    #[test]
    fn a_terabyte_takes_15_minutes_at_9_41_gigabits() {
        assert!((transfer_time_s(1e12, 9.41e9) - 850.2).abs() < 0.1);
    }
}
