//! ICMP errors about packets of a flow (RFC 792, RFC 4443).

use crate::bytes::{MAPPED, be16, be32, be128, octet};
use crate::link;

/// Length of an ICMP error before the packet that it quotes, bytes.
const HEADER: usize = 8;

/// An ICMP error, and the flow of the packet that it quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IcmpError {
    /// Type of the message.
    pub kind: u8,
    /// Code of the message.
    pub code: u8,
    /// MTU of the next hop, bytes, in a message that a packet is too big; 0 otherwise, and from old routers.
    pub mtu: u32,
    /// Source address of the quoted packet; IPv4 as an IPv4-mapped IPv6 address.
    pub source: u128,
    /// Destination address of the quoted packet, in the same form.
    pub destination: u128,
    /// Transport protocol of the quoted packet.
    pub protocol: u8,
    /// Its source and destination port.
    pub ports: [u16; 2],
}

/// Reads the message at an offset; `None` if it is no error, or too short to quote a flow.
pub(crate) fn parse(frame: &[u8], at: usize, version: u8) -> Option<IcmpError> {
    let (kind, code) = (octet(frame, at)?, octet(frame, at + 1)?);
    let quoted = at + HEADER;
    let (mtu, source, destination, protocol, next) = if version == 4 {
        // Unreachable, source quench, time exceeded, parameter problem. A redirect is no error.
        let (3 | 4 | 11 | 12) = kind else { return None };
        let mtu = if (kind, code) == (3, 4) { u32::from(be16(frame, at + 6)?) } else { 0 };
        if link::version(frame, quoted)? != 4 || be16(frame, quoted + 6)? & 0x1fff != 0 {
            return None;
        }
        let address = |at: usize| be32(frame, at).map(|address| MAPPED | u128::from(address));
        let length = usize::from(octet(frame, quoted)? & 0x0f) * 4;
        (mtu, address(quoted + 12)?, address(quoted + 16)?, octet(frame, quoted + 9)?, quoted + length)
    } else {
        // Unreachable, too big, time exceeded, parameter problem.
        let 1..=4 = kind else { return None };
        let mtu = if kind == 2 { be32(frame, at + 4)? } else { 0 };
        if link::version(frame, quoted)? != 6 {
            return None;
        }
        (mtu, be128(frame, quoted + 8)?, be128(frame, quoted + 24)?, octet(frame, quoted + 6)?, quoted + 40)
    };
    let (6 | 17) = protocol else { return None };
    let ports = [be16(frame, next)?, be16(frame, next + 2)?];
    Some(IcmpError { kind, code, mtu, source, destination, protocol, ports })
}
