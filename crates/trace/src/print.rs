//! Fingerprints of packets: the fields that no hop changes.

use std::hash::{BuildHasher as _, Hasher as _};

use foldhash::fast::FixedState;
use landspeed_wire::{Flags, TcpHeader};

/// Bytes of a datagram's payload in its fingerprint: they contain sequence numbers, and short snap lengths keep
/// them.
pub const DATAGRAM_HEAD: usize = 16;

/// The fields that identify a packet.
#[derive(Debug, Clone, Copy)]
pub enum Body<'a> {
    /// A TCP segment.
    Tcp(&'a TcpHeader),
    /// A UDP datagram: ports, payload length, and the start of its payload if that was captured.
    Udp([u16; 2], u32, Option<&'a [u8]>),
}

impl Body<'_> {
    /// Returns whether it has data, SYN or FIN. `None` for a datagram without an IP identification, which may be
    /// identical to another one.
    pub fn has_content(self, has_ip_id: bool) -> Option<bool> {
        match self {
            Self::Tcp(tcp) => Some(tcp.payload > 0 || tcp.flags.has(Flags(Flags::SYN.0 | Flags::FIN.0))),
            Self::Udp(..) => has_ip_id.then_some(true),
        }
    }

    /// Returns source and destination port.
    pub fn ports(self) -> [u16; 2] {
        match self {
            Self::Tcp(tcp) => [tcp.source, tcp.destination],
            Self::Udp(ports, ..) => ports,
        }
    }
}

/// Returns the fingerprint of a packet. `ends` identifies its flow and direction if these are the same at both
/// taps, otherwise it is 0. `None` if the packet cannot be distinguished from others.
#[inline]
pub fn fingerprint(identification: u16, body: Body<'_>, ends: u64) -> Option<u64> {
    let mut hasher = FixedState::default().build_hasher();
    hasher.write_u64(ends << 16 | u64::from(identification));
    match body {
        Body::Tcp(tcp) => {
            let flags = u64::from(tcp.flags.0 & !(Flags::ECE.0 | Flags::CWR.0));
            hasher.write_u64(u64::from(tcp.sequence) << 32 | u64::from(tcp.acknowledgement));
            hasher.write_u64(flags << 48 | u64::from(tcp.window) << 32 | u64::from(tcp.payload));
            if let Some((value, echo)) = tcp.options.timestamps {
                hasher.write_u64(u64::from(value) << 32 | u64::from(echo));
            }
            for &(from, to) in tcp.options.sack.as_slice() {
                hasher.write_u64(u64::from(from) << 32 | u64::from(to));
            }
        }
        Body::Udp(_, payload, head) => {
            hasher.write_u64(u64::from(payload));
            // IPv6 has no identification: the start of the payload replaces it, of which both taps need the same
            // length. The UDP checksum is not used: with checksum offload, the sender's capture shows another value.
            if identification == 0 {
                hasher.write(head?);
            }
        }
    }
    Some(hasher.finish())
}
