//! Parsing of frames as far as the model needs it, and the two changes it makes to them: CE marks and missing
//! checksums.

/// Length of an Ethernet header without VLAN tag, bytes.
pub const ETHERNET_HEADER: u32 = 14;

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const VLANS: [u16; 2] = [0x8100, 0x88a8];
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;
/// Protocol number of IPv6 fragments; only the first one has ports.
const FRAGMENT: u8 = 44;

/// Properties of a frame that queues and links use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FrameInfo {
    /// Length of the IP packet, bytes; 0 if there is none, or for an ICMP message.
    pub ip_bytes: u32,
    /// Hash of addresses, protocol and ports.
    pub flow: u32,
    /// Whether ECT(0) or ECT(1) is set in the IP header.
    pub ecn_capable: bool,
}

/// Offsets and lengths of a frame's headers.
#[derive(Debug, Clone, Copy)]
struct Layout {
    version: u8,
    ip: usize,
    transport: usize,
    protocol: u8,
    /// Whether the IP packet is a fragment.
    fragment: bool,
    ip_bytes: usize,
}

fn word(frame: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*frame.get(at..)?.first_chunk()?))
}

fn layout(frame: &[u8]) -> Option<Layout> {
    let mut at = 12;
    let mut kind = word(frame, at)?;
    for _ in 0..2 {
        if VLANS.contains(&kind) {
            at += 4;
            kind = word(frame, at)?;
        }
    }
    let ip = at + 2;
    let header = frame.get(ip..)?;
    match kind {
        IPV4 if header.len() >= 20 && header[0] >> 4 == 4 => {
            let length = usize::from(header[0] & 15) * 4;
            let fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0;
            let ip_bytes = usize::from(word(header, 2)?);
            (length >= 20 && header.len() >= length).then_some(Layout {
                version: 4,
                ip,
                transport: ip + length,
                protocol: header[9],
                fragment,
                ip_bytes,
            })
        }
        IPV6 if header.len() >= 40 && header[0] >> 4 == 6 => Some(Layout {
            version: 6,
            ip,
            transport: ip + 40,
            protocol: header[6],
            fragment: header[6] == FRAGMENT,
            ip_bytes: usize::from(word(header, 4)?) + 40,
        }),
        _ => None,
    }
}

/// Parses a frame, from its Ethernet header on.
pub fn inspect(frame: &[u8]) -> FrameInfo {
    let Some(layout) = layout(frame) else {
        // Not IP: frames with the same MAC addresses and EtherType are a flow.
        return FrameInfo { flow: hash(frame.get(..14).unwrap_or(frame), 0), ..FrameInfo::default() };
    };
    let header = &frame[layout.ip..];
    let (addresses, traffic_class) = match layout.version {
        4 => (&header[12..20], header[1]),
        _ => (&header[8..40], header[0] << 4 | header[1] >> 4),
    };
    let ports = match layout.protocol {
        TCP | UDP if !layout.fragment => frame.get(layout.transport..layout.transport + 4).unwrap_or(&[]),
        _ => &[],
    };
    let flow = hash(ports, hash(addresses, u32::from(layout.protocol)));
    let is_icmp = matches!(layout.protocol, ICMP | ICMPV6);
    FrameInfo {
        ip_bytes: if is_icmp { 0 } else { layout.ip_bytes as u32 },
        flow,
        ecn_capable: matches!(traffic_class & 3, 1 | 2),
    }
}

/// Returns the payload of a TCP segment that GRO may merge, bytes: no flags but ACK and PSH, no fragment. 0 for all other
/// frames.
pub fn mergeable_payload(frame: &[u8]) -> u32 {
    const ACK: u8 = 0x10;
    const PSH: u8 = 0x08;
    let Some(layout) = layout(frame).filter(|layout| layout.protocol == TCP && !layout.fragment) else { return 0 };
    let Some(header) = frame.get(layout.transport..layout.transport + 14) else { return 0 };
    if header[13] & !PSH != ACK {
        return 0;
    }
    let headers = layout.transport - layout.ip + usize::from(header[12] >> 4) * 4;
    layout.ip_bytes.saturating_sub(headers) as u32
}

/// FNV-1a hash.
fn hash(bytes: &[u8], seed: u32) -> u32 {
    bytes.iter().fold(0x811c_9dc5 ^ seed, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

/// Sets CE in the IP header (RFC 3168) and updates the IPv4 header checksum.
pub fn mark_ce(frame: &mut [u8]) {
    let Some(Layout { version, ip, .. }) = layout(frame) else { return };
    if version == 6 {
        frame[ip + 1] |= 0x30;
        return;
    }
    let before = u16::from_be_bytes([frame[ip], frame[ip + 1]]);
    frame[ip + 1] |= 3;
    let after = u16::from_be_bytes([frame[ip], frame[ip + 1]]);
    let checksum = u16::from_be_bytes([frame[ip + 10], frame[ip + 11]]);
    // Incremental checksum update (RFC 1624, equation 3).
    let sum = fold(u64::from(!checksum) + u64::from(!before) + u64::from(after));
    frame[ip + 10..ip + 12].copy_from_slice(&(!sum).to_be_bytes());
}

/// Fills in the TCP or UDP checksum that the sender left to its interface. Returns whether there was one to
/// fill in.
pub fn complete_checksum(frame: &mut [u8]) -> bool {
    let Some(layout) = layout(frame) else { return false };
    let at = match layout.protocol {
        TCP if !layout.fragment => 16,
        UDP if !layout.fragment => 6,
        _ => return false,
    };
    let end = layout.ip + layout.ip_bytes;
    let Some(segment) = frame.get(layout.transport..end) else { return false };
    if segment.len() < at + 2 {
        return false;
    }
    let addresses = if layout.version == 4 { layout.ip + 12..layout.ip + 20 } else { layout.ip + 8..layout.ip + 40 };
    let mut sum = sum_words(&frame[addresses]) + u64::from(layout.protocol) + segment.len() as u64;
    sum += sum_words(&segment[..at]) + sum_words(&segment[at + 2..]);
    let mut checksum = !fold(sum);
    if layout.protocol == UDP && checksum == 0 {
        checksum = 0xffff;
    }
    frame[layout.transport + at..layout.transport + at + 2].copy_from_slice(&checksum.to_be_bytes());
    true
}

/// Sum of 16-bit words, modulo 65535; an odd last byte is the upper half of a word.
fn sum_words(bytes: &[u8]) -> u64 {
    // 2^16 is 1 modulo 65535, so 32-bit words give the same sum.
    let words = bytes.chunks_exact(4);
    let mut last = [0; 4];
    last[..words.remainder().len()].copy_from_slice(words.remainder());
    let sum: u64 = words.map(|word| u64::from(u32::from_be_bytes([word[0], word[1], word[2], word[3]]))).sum();
    sum + u64::from(u32::from_be_bytes(last))
}

fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A UDP datagram "hello" over IPv4 with zero UDP checksum.
    fn datagram(traffic_class: u8) -> Vec<u8> {
        let mut frame = vec![0xff; 12];
        frame.extend([0x08, 0x00]);
        frame.extend([0x45, traffic_class, 0, 33, 0, 1, 0x40, 0, 64, UDP, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2]);
        frame.extend([0x30, 0x39, 0, 9, 0, 13, 0, 0]);
        frame.extend(b"hello");
        let sum = !fold(sum_words(&frame[14..34]));
        frame[24..26].copy_from_slice(&sum.to_be_bytes());
        frame
    }

    #[test]
    fn completed_checksums_are_valid() {
        let mut frame = datagram(0);
        // With checksum offload, the kernel leaves the sum of the pseudo-header here.
        frame[40..42].copy_from_slice(&[0xab, 0xcd]);
        assert!(complete_checksum(&mut frame));
        let pseudo = sum_words(&frame[26..34]) + u64::from(UDP) + 13;
        assert_eq!(fold(pseudo + sum_words(&frame[34..47])), 0xffff);
    }

    #[test]
    fn ce_marking_updates_the_header_checksum() {
        for traffic_class in [1, 2, 0xfd] {
            let mut frame = datagram(traffic_class);
            assert!(inspect(&frame).ecn_capable);
            mark_ce(&mut frame);
            assert_eq!(frame[15] & 3, 3);
            assert_eq!(fold(sum_words(&frame[14..34])), 0xffff, "{traffic_class}");
        }
        assert!(!inspect(&datagram(0)).ecn_capable && !inspect(&datagram(3)).ecn_capable);
    }

    #[test]
    fn flow_hash_depends_on_ports_not_on_vlan_tags() {
        let one = datagram(0);
        let mut other = one.clone();
        other[35] ^= 1;
        assert_ne!(inspect(&one).flow, inspect(&other).flow);
        let mut tagged = one.clone();
        tagged.splice(12..12, [0x81, 0x00, 0, 7]);
        assert_eq!(inspect(&tagged), inspect(&one));
        assert_eq!(inspect(&one).ip_bytes, 33);
    }

    #[test]
    fn only_plain_tcp_data_is_mergeable() {
        assert_eq!(mergeable_payload(&datagram(0)), 0);
        // Five bytes of payload after an IPv4 and a TCP header without options.
        let segment = |flags: u8| {
            let mut frame = datagram(0);
            frame[17] = 45;
            frame[23] = TCP;
            frame.truncate(34);
            frame.extend([0; 12]);
            frame.extend([5 << 4, flags, 0, 0, 0, 0, 0, 0]);
            frame.extend(b"hello");
            frame
        };
        assert_eq!(mergeable_payload(&segment(0x10)), 5);
        assert_eq!(mergeable_payload(&segment(0x18)), 5, "PSH");
        assert_eq!(mergeable_payload(&segment(0x12)), 0, "SYN");
        assert_eq!(mergeable_payload(&segment(0x11)), 0, "FIN");
    }

    #[test]
    fn corrupt_frames_never_panic() {
        let mut random = landspeed_stats::SplitMix64::new(5);
        for _ in 0..20_000 {
            let mut frame = datagram(2);
            let cut = random.below(frame.len() as u64 + 1) as usize;
            for _ in 0..random.below(6) {
                let at = random.below(frame.len() as u64) as usize;
                frame[at] = random.bits() as u8;
            }
            frame.truncate(cut);
            let _ = (inspect(&frame), mergeable_payload(&frame));
            mark_ce(&mut frame);
            complete_checksum(&mut frame);
        }
    }
}
