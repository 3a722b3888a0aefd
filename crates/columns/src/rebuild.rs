//! Rebuilds a frame from the header fields of its columns, for analyses that take frames. Checksums are 0,
//! options have a fixed order, and encapsulation is not rebuilt.

use landspeed_wire::Flags;

use crate::record::{Flow, Record};

/// An unused EtherType, for frames whose packet is unknown.
const UNKNOWN: [u8; 2] = [0xff, 0xff];

/// Writes the known bytes of a record's frame into `into`: Ethernet, or raw IP.
pub fn frame(record: &Record, ethernet: bool, into: &mut Vec<u8>) {
    into.clear();
    if ethernet {
        let [destination, source] = record.macs.unwrap_or_default();
        into.extend(destination);
        into.extend(source);
        let kind = match &record.flow {
            None => UNKNOWN,
            Some(flow) if is_v4(flow) => [0x08, 0x00],
            Some(_) => [0x86, 0xdd],
        };
        into.extend(kind);
    }
    let Some(flow) = &record.flow else { return };
    let mut transport = Vec::with_capacity(60);
    if let Some((tcp, _)) = &flow.tcp {
        let options = options(tcp);
        transport.extend(flow.source.port.to_be_bytes());
        transport.extend(flow.destination.port.to_be_bytes());
        transport.extend(tcp.sequence.to_be_bytes());
        transport.extend(tcp.acknowledgement.to_be_bytes());
        let words = (20 + options.len()) as u16 / 4;
        transport.extend((words << 12 | tcp.flags.0 & 0x0fff).to_be_bytes());
        transport.extend(tcp.window.to_be_bytes());
        transport.extend([0; 4]);
        transport.extend(options);
    } else {
        transport.extend(flow.source.port.to_be_bytes());
        transport.extend(flow.destination.port.to_be_bytes());
        transport.extend(flow.payload.saturating_add(8).try_into().unwrap_or(0_u16).to_be_bytes());
        transport.extend([0; 2]);
        transport.extend(flow.head.0.get(..usize::from(flow.head.1)).unwrap_or_default());
    }
    let header = if flow.tcp.is_some() { transport.len() } else { 8 };
    internet(flow, header as u32 + flow.payload, into);
    into.extend(transport);
}

fn is_v4(flow: &Flow) -> bool {
    flow.source.address >> 32 == 0xffff && flow.destination.address >> 32 == 0xffff
}

/// Appends the IP header for a payload of `payload` bytes.
fn internet(flow: &Flow, payload: u32, into: &mut Vec<u8>) {
    let (source, destination) = (flow.source.address, flow.destination.address);
    if is_v4(flow) {
        into.extend([0x45, flow.traffic_class]);
        // A length of 0 marks a super-packet (BIG TCP), which extends to the end of the frame.
        into.extend(payload.saturating_add(20).try_into().unwrap_or(0_u16).to_be_bytes());
        into.extend(flow.identification.to_be_bytes());
        into.extend([0x40, 0, flow.hop_limit, flow.protocol, 0, 0]);
        into.extend((source as u32).to_be_bytes());
        into.extend((destination as u32).to_be_bytes());
    } else {
        into.extend((6 << 28 | u32::from(flow.traffic_class) << 20).to_be_bytes());
        into.extend(u16::try_from(payload).unwrap_or(0).to_be_bytes());
        into.extend([flow.protocol, flow.hop_limit]);
        into.extend(source.to_be_bytes());
        into.extend(destination.to_be_bytes());
    }
}

/// Returns the TCP options in as few bytes as possible, so that no frame becomes longer than the original.
fn options(tcp: &landspeed_wire::TcpHeader) -> Vec<u8> {
    let mut options = Vec::with_capacity(40);
    let sack = tcp.options.sack.as_slice();
    let syn = tcp.flags.has(Flags::SYN);
    if let Some(mss) = tcp.options.mss {
        options.extend([2, 4]);
        options.extend(mss.to_be_bytes());
    }
    if tcp.options.sack_permitted {
        options.extend([4, 2]);
    }
    if let Some(scale) = tcp.options.window_scale {
        options.extend([3, 3, scale]);
    }
    if let Some((value, echo)) = tcp.options.timestamps {
        if !syn && sack.is_empty() {
            options.extend([1, 1]);
        }
        options.extend([8, 10]);
        options.extend(value.to_be_bytes());
        options.extend(echo.to_be_bytes());
    }
    if !sack.is_empty() {
        options.extend([5, 2 + 8 * sack.len() as u8]);
        for (low, high) in sack {
            options.extend(low.to_be_bytes());
            options.extend(high.to_be_bytes());
        }
    }
    // Only a file that was modified can have more than fits.
    options.resize(options.len().next_multiple_of(4).min(40), 0);
    options
}
