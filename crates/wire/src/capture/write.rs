//! Writers of captures: each function appends a pcapng block, or a pcap header or record, to a buffer. Times
//! are nanoseconds since the Unix epoch, the byte order is little-endian (draft-ietf-opsawg-pcapng,
//! draft-ietf-opsawg-pcap).

use crate::LinkType;

const SECTION: u32 = super::pcapng::SECTION;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
const INTERFACE: u32 = 1;
const STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;
const JOURNAL: u32 = 9;

// Option codes of all blocks, sections, interfaces, interface statistics and packets.
const END: u16 = 0;
const COMMENT: u16 = 1;
const SECTION_HARDWARE: u16 = 2;
const SECTION_SYSTEM: u16 = 3;
const SECTION_APPLICATION: u16 = 4;
const INTERFACE_NAME: u16 = 2;
const INTERFACE_DESCRIPTION: u16 = 3;
const INTERFACE_MAC: u16 = 6;
const INTERFACE_SPEED: u16 = 8;
const INTERFACE_RESOLUTION: u16 = 9;
const INTERFACE_FILTER: u16 = 11;
const INTERFACE_SYSTEM: u16 = 12;
const STATISTICS_START: u16 = 2;
const STATISTICS_END: u16 = 3;
const STATISTICS_RECEIVED: u16 = 4;
const STATISTICS_DROPPED: u16 = 5;
const STATISTICS_ACCEPTED: u16 = 6;
const STATISTICS_KERNEL_DROPPED: u16 = 7;
const STATISTICS_DELIVERED: u16 = 8;
const PACKET_FLAGS: u16 = 2;

/// Value of `if_tsresol` for 10⁻⁹ s.
const NANOSECONDS: u8 = 9;
/// First byte of `if_filter` for a filter as text (pcap-filter(7)).
const FILTER_TEXT: u8 = 0;
/// Maximum length of an option value, bytes.
const MAX_OPTION_BYTES: usize = u16::MAX as usize;

/// Writes the header of a pcap file with nanosecond timestamps and a snap length of `snap_bytes`.
pub fn pcap_header(into: &mut Vec<u8>, link: LinkType, snap_bytes: u32) {
    const NANOSECOND_PCAP: u32 = 0xa1b2_3c4d;
    const VERSION_2_4: u32 = 0x0004_0002;
    for word in [NANOSECOND_PCAP, VERSION_2_4, 0, 0, snap_bytes, link.0] {
        into.extend(word.to_le_bytes());
    }
}

/// Writes a packet record of a pcap file: `data` are the captured bytes of `original_bytes`.
pub fn pcap_record(into: &mut Vec<u8>, time_ns: u64, data: &[u8], original_bytes: u32) {
    const SECOND_NS: u64 = 1_000_000_000;
    for word in [(time_ns / SECOND_NS) as u32, (time_ns % SECOND_NS) as u32, data.len() as u32, original_bytes] {
        into.extend(word.to_le_bytes());
    }
    into.extend(data);
}

/// Description of the host and program that write a capture (section header options).
#[derive(Debug, Clone, Copy, Default)]
pub struct Section<'a> {
    /// Hardware of the host.
    pub hardware: Option<&'a str>,
    /// Operating system.
    pub system: Option<&'a str>,
    /// Program that writes the capture.
    pub application: Option<&'a str>,
    /// Comments on the section.
    pub comments: &'a [String],
}

/// Description of a captured interface.
#[derive(Debug, Clone, Copy)]
pub struct Interface<'a> {
    /// Such as `eth0`.
    pub name: &'a str,
    /// Description, such as the driver.
    pub description: Option<&'a str>,
    /// Link-layer header type.
    pub link: LinkType,
    /// Snap length, bytes; 0 for unlimited.
    pub snap_bytes: u32,
    /// MAC address.
    pub mac: Option<[u8; 6]>,
    /// Link speed, bits/s.
    pub speed_bps: Option<u64>,
    /// Capture filter (pcap-filter(7)).
    pub filter: Option<&'a str>,
    /// Operating system of the interface's host.
    pub system: Option<&'a str>,
    /// Comments on the interface.
    pub comments: &'a [String],
}

/// Direction of a packet (`epb_flags`, bits 0 and 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketDirection {
    /// Inbound.
    In,
    /// Outbound.
    Out,
}

/// Reception type of a packet (`epb_flags`, bits 2 to 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reception {
    /// Not specified.
    Unknown,
    /// Addressed to this host.
    Unicast,
    /// Addressed to a multicast group.
    Multicast,
    /// Addressed to all hosts.
    Broadcast,
    /// Addressed to another host (promiscuous mode).
    OtherHost,
}

/// A packet to write.
#[derive(Debug, Clone, Copy)]
pub struct Packet<'a> {
    /// Number of its interface in the section, from 0.
    pub interface: u32,
    /// Timestamp, nanoseconds since the Unix epoch.
    pub time_ns: u64,
    /// Original length, bytes.
    pub original_bytes: u32,
    /// Captured bytes.
    pub data: &'a [u8],
    /// VLAN tag (TPID and TCI) to reinsert after the MAC addresses; not included in either length.
    pub vlan: Option<[u8; 4]>,
    /// Direction at the interface.
    pub direction: PacketDirection,
    /// How the packet was addressed.
    pub reception: Reception,
}

/// Statistics of an interface at the end of a capture.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counts {
    /// Start of the capture, nanoseconds since the Unix epoch.
    pub start_ns: u64,
    /// End of the capture, nanoseconds since the Unix epoch.
    pub end_ns: u64,
    /// Packets received and sent during the capture, from the interface's counters.
    pub received: Option<u64>,
    /// Packets dropped by the interface during the capture, from its counters.
    pub dropped: Option<u64>,
    /// Packets that passed the filter.
    pub accepted: u64,
    /// Packets dropped because the ring was full.
    pub kernel_dropped: u64,
    /// Packets written to the capture.
    pub delivered: u64,
}

/// Writes a section header block, which starts a capture.
pub fn section(into: &mut Vec<u8>, section: &Section<'_>) {
    block(into, SECTION, |into| {
        into.extend_from_slice(&BYTE_ORDER.to_le_bytes());
        into.extend_from_slice(&1_u16.to_le_bytes());
        into.extend_from_slice(&0_u16.to_le_bytes());
        // The length of the section is unknown.
        into.extend_from_slice(&u64::MAX.to_le_bytes());
        for comment in section.comments {
            option(into, COMMENT, comment.as_bytes());
        }
        text(into, SECTION_HARDWARE, section.hardware);
        text(into, SECTION_SYSTEM, section.system);
        text(into, SECTION_APPLICATION, section.application);
        option(into, END, &[]);
    });
}

/// Writes an interface description block. Interfaces are numbered in the order of their blocks.
pub fn interface(into: &mut Vec<u8>, interface: &Interface<'_>) {
    block(into, INTERFACE, |into| {
        into.extend_from_slice(&(interface.link.0 as u16).to_le_bytes());
        into.extend_from_slice(&0_u16.to_le_bytes());
        into.extend_from_slice(&interface.snap_bytes.to_le_bytes());
        for comment in interface.comments {
            option(into, COMMENT, comment.as_bytes());
        }
        text(into, INTERFACE_NAME, Some(interface.name));
        text(into, INTERFACE_DESCRIPTION, interface.description);
        if let Some(mac) = interface.mac {
            option(into, INTERFACE_MAC, &mac);
        }
        if let Some(speed_bps) = interface.speed_bps {
            option(into, INTERFACE_SPEED, &speed_bps.to_le_bytes());
        }
        option(into, INTERFACE_RESOLUTION, &[NANOSECONDS]);
        if let Some(filter) = interface.filter {
            let mut value = vec![FILTER_TEXT];
            value.extend_from_slice(filter.as_bytes());
            option(into, INTERFACE_FILTER, &value);
        }
        text(into, INTERFACE_SYSTEM, interface.system);
        option(into, END, &[]);
    });
}

/// Writes an enhanced packet block.
#[inline]
pub fn packet(into: &mut Vec<u8>, packet: &Packet<'_>) {
    // The tag goes after the MAC addresses, so both must have been captured.
    let tag = packet.vlan.filter(|_| packet.data.len() >= 12);
    let tag_bytes = if tag.is_some() { 4 } else { 0 };
    let captured = packet.data.len() + tag_bytes;
    let padding = captured.next_multiple_of(4) - captured;
    // Header, packet, one option of four bytes, end of options, second length field.
    let length = 28 + captured + padding + 12 + 4;
    let flags = match packet.direction {
        PacketDirection::In => 1_u32,
        PacketDirection::Out => 2,
    } | match packet.reception {
        Reception::Unknown => 0,
        Reception::Unicast => 1,
        Reception::Multicast => 2,
        Reception::Broadcast => 3,
        Reception::OtherHost => 4,
    } << 2;
    let mut header = [0; 28];
    let words = [
        ENHANCED_PACKET,
        length as u32,
        packet.interface,
        (packet.time_ns >> 32) as u32,
        packet.time_ns as u32,
        captured as u32,
        packet.original_bytes.saturating_add(tag_bytes as u32),
    ];
    for (to, word) in header.chunks_exact_mut(4).zip(words) {
        to.copy_from_slice(&word.to_le_bytes());
    }
    into.reserve(length);
    into.extend_from_slice(&header);
    if let Some(tag) = tag {
        let (addresses, rest) = packet.data.split_at(12);
        into.extend_from_slice(addresses);
        into.extend_from_slice(&tag);
        into.extend_from_slice(rest);
    } else {
        into.extend_from_slice(packet.data);
    }
    let mut tail = [0; 19];
    tail[3..5].copy_from_slice(&PACKET_FLAGS.to_le_bytes());
    tail[5..7].copy_from_slice(&4_u16.to_le_bytes());
    tail[7..11].copy_from_slice(&flags.to_le_bytes());
    tail[15..].copy_from_slice(&(length as u32).to_le_bytes());
    into.extend_from_slice(tail.get(3 - padding..).unwrap_or_default());
}

/// Writes an interface statistics block.
pub fn statistics(into: &mut Vec<u8>, interface: u32, counts: &Counts) {
    block(into, STATISTICS, |into| {
        into.extend_from_slice(&interface.to_le_bytes());
        time(into, counts.end_ns);
        for (code, moment) in [(STATISTICS_START, counts.start_ns), (STATISTICS_END, counts.end_ns)] {
            let mut value = Vec::with_capacity(8);
            time(&mut value, moment);
            option(into, code, &value);
        }
        let numbers = [
            (STATISTICS_RECEIVED, counts.received),
            (STATISTICS_DROPPED, counts.dropped),
            (STATISTICS_ACCEPTED, Some(counts.accepted)),
            (STATISTICS_KERNEL_DROPPED, Some(counts.kernel_dropped)),
            (STATISTICS_DELIVERED, Some(counts.delivered)),
        ];
        for (code, number) in numbers {
            if let Some(number) = number {
                option(into, code, &number.to_le_bytes());
            }
        }
        option(into, END, &[]);
    });
}

/// Writes an entry in systemd's journal export format, which Wireshark shows between the packets. Line breaks
/// in values become spaces, because they would end the field.
pub fn journal(into: &mut Vec<u8>, time_ns: u64, fields: &[(&str, &str)]) {
    block(into, JOURNAL, |into| {
        let start = into.len();
        into.extend_from_slice(format!("__REALTIME_TIMESTAMP={}\n", time_ns / 1000).as_bytes());
        for (name, value) in fields {
            into.extend_from_slice(format!("{name}={}\n", value.replace('\n', " ")).as_bytes());
        }
        let written = into.len() - start;
        into.resize(start + written.next_multiple_of(4), 0);
    });
}

/// Writes a block: type, length, the output of `body` (a multiple of four bytes), and the length again.
fn block(into: &mut Vec<u8>, kind: u32, body: impl FnOnce(&mut Vec<u8>)) {
    let start = into.len();
    into.extend_from_slice(&kind.to_le_bytes());
    into.extend_from_slice(&[0; 4]);
    body(into);
    let length = (into.len() - start + 4) as u32;
    into[start + 4..start + 8].copy_from_slice(&length.to_le_bytes());
    into.extend_from_slice(&length.to_le_bytes());
}

fn option(into: &mut Vec<u8>, code: u16, value: &[u8]) {
    let value = value.get(..value.len().min(MAX_OPTION_BYTES)).unwrap_or_default();
    into.extend_from_slice(&code.to_le_bytes());
    into.extend_from_slice(&(value.len() as u16).to_le_bytes());
    into.extend_from_slice(value);
    into.resize(into.len() + value.len().next_multiple_of(4) - value.len(), 0);
}

fn text(into: &mut Vec<u8>, code: u16, value: Option<&str>) {
    if let Some(value) = value {
        option(into, code, value.as_bytes());
    }
}

/// Writes a timestamp: upper half, then lower half.
fn time(into: &mut Vec<u8>, ns: u64) {
    into.extend_from_slice(&((ns >> 32) as u32).to_le_bytes());
    into.extend_from_slice(&(ns as u32).to_le_bytes());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::capture::{CaptureItem, Reader};

    fn described(name: &str) -> Interface<'_> {
        Interface {
            name,
            description: Some("veth"),
            link: LinkType::ETHERNET,
            snap_bytes: 128,
            mac: Some([2, 0, 0, 0, 0, 1]),
            speed_bps: Some(10_000_000_000),
            filter: Some("tcp"),
            system: None,
            comments: &[],
        }
    }

    proptest! {
        #[test]
        fn written_captures_round_trip(
            packets in prop::collection::vec(
                (0_u32..2, 0..crate::capture::MAX_TIMESTAMP_NS, prop::collection::vec(any::<u8>(), 0..200), 0_u32..100_000,
                 prop::option::of(any::<[u8; 4]>()), any::<bool>()),
                0..20),
            name in "[a-z0-9]{1,15}",
            comment in ".{0,50}",
        ) {
            let mut file = Vec::new();
            section(&mut file, &Section { application: Some("landspeed"), comments: &[comment], ..Section::default() });
            interface(&mut file, &described(&name));
            interface(&mut file, &described("other"));
            for (number, time_ns, data, more, vlan, out) in &packets {
                packet(&mut file, &Packet {
                    interface: *number,
                    time_ns: *time_ns,
                    original_bytes: data.len() as u32 + more,
                    data,
                    vlan: *vlan,
                    direction: if *out { PacketDirection::Out } else { PacketDirection::In },
                    reception: Reception::Unicast,
                });
                journal(&mut file, *time_ns, &[("MESSAGE", "two\nlines"), ("EVENT", "x")]);
            }
            statistics(&mut file, 1, &Counts { received: Some(7), kernel_dropped: 3, ..Counts::default() });
            let mut reader = Reader::new();
            let (mut rest, mut read) = (&file[..], Vec::new());
            let mut last = None;
            while !rest.is_empty() {
                let (used, next) = reader.next(rest).expect("it is well formed");
                prop_assert!(used > 0 && used % 4 == 0, "{next:?}");
                match next {
                    CaptureItem::Frame(frame) => {
                        read.push((frame.interface, frame.time_ns, frame.original, frame.data.to_vec()));
                    }
                    CaptureItem::Statistics(statistics) => last = Some(statistics),
                    _ => {}
                }
                rest = &rest[used..];
            }
            let whole: Vec<_> = packets.iter().map(|(number, time_ns, data, more, vlan, _)| {
                let mut data = data.clone();
                let mut original = data.len() as u32 + more;
                if let Some(tag) = vlan.filter(|_| data.len() >= 12) {
                    data.splice(12..12, tag);
                    original += 4;
                }
                (*number, *time_ns, original, data)
            }).collect();
            prop_assert_eq!(read, whole);
            prop_assert_eq!(reader.interface_name(0), Some(name.as_str()));
            let last = last.expect("statistics");
            prop_assert_eq!((last.interface, last.received, last.dropped), (1, Some(7), Some(3)));
        }
    }

    #[test]
    fn written_pcapng_is_readable_by_another_implementation() {
        let mut file = Vec::new();
        section(&mut file, &Section::default());
        interface(&mut file, &described("eth0"));
        for length in 0..9 {
            packet(
                &mut file,
                &Packet {
                    interface: 0,
                    time_ns: 1_700_000_000_123_456_789,
                    original_bytes: 1500,
                    data: &[7; 20][..length],
                    vlan: None,
                    direction: PacketDirection::Out,
                    reception: Reception::Unknown,
                },
            );
        }
        let mut reader = pcap_file::pcapng::PcapNgReader::new(&file[..]).expect("a section");
        let mut lengths = Vec::new();
        while let Some(block) = reader.next_block() {
            if let pcap_file::pcapng::Block::EnhancedPacket(packet) = block.expect("well formed") {
                assert_eq!(packet.original_len, 1500);
                lengths.push(packet.data.len());
                assert!(
                    packet.options.iter().any(|option| matches!(
                        option,
                        pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption::Flags(2)
                    )),
                    "{:?}",
                    packet.options
                );
            }
        }
        assert_eq!(lengths, (0..9).collect::<Vec<_>>());
    }
}
