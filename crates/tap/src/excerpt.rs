//! Excerpt of a capture: headers of the packets of one test's data sockets.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek as _, Write};

use landspeed_wire::capture::write::{self, Counts, PacketDirection, Reception};
use landspeed_wire::capture::{CaptureItem, Frame, Reader};

use crate::selection::{FlowPacket, Selection, TapTransport};

/// Maximum time from a data socket's first packet until the server accepts it, nanoseconds: enough for
/// connecting and for the preface or repeated hellos.
const MAX_ACCEPT_DELAY_NS: u64 = 20_000_000_000;
/// Size of a read, bytes.
const CHUNK: usize = 256 << 10;

/// Result of an excerpt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Excerpt {
    /// Packets in the excerpt.
    pub packets: u64,
    /// Packets that belong to it but exceed the size limit.
    pub unwritten: u64,
}

/// Reads the capture `from` and writes the packets of the selection's data sockets to `into`, at most about
/// `most_bytes`.
///
/// A TCP packet belongs to an accepted connection: from its first segment until the first segment of the next
/// connection on the same port. A UDP packet belongs to an accepted flow. Only headers are written.
pub fn excerpt(
    from: &mut File,
    into: &mut File,
    selection: &Selection,
    (application, dropped): (&str, u64),
    most_bytes: u64,
) -> io::Result<Excerpt> {
    let accept_times = selection.accept_times();
    let mut openings = FirstSegments::default();
    frames(from, |frame| {
        if let Some(flow_packet) = selection.flow_packet(frame.link, frame.data, frame.original)
            && accept_times.contains_key(&(flow_packet.transport, flow_packet.port))
        {
            openings.note(frame.time_ns, &flow_packet);
        }
        Ok(())
    })?;
    openings.sort();
    let mut out = BufWriter::new(into);
    let (mut buffer, mut found, mut written) = (Vec::new(), Excerpt::default(), 0);
    let (mut first_ns, mut last_ns) = (None, 0);
    frames(from, |frame| {
        let Some(flow_packet) = selection.flow_packet(frame.link, frame.data, frame.original) else { return Ok(()) };
        let Some(times) = accept_times.get(&(flow_packet.transport, flow_packet.port)) else { return Ok(()) };
        if !openings.is_own(frame.time_ns, &flow_packet, times) {
            return Ok(());
        }
        if first_ns.is_none() {
            first_ns = Some(frame.time_ns);
            begin(&mut buffer, frame, application);
        }
        if written >= most_bytes {
            found.unwritten += 1;
            return Ok(());
        }
        last_ns = frame.time_ns;
        write::packet(
            &mut buffer,
            &write::Packet {
                interface: 0,
                time_ns: frame.time_ns,
                original_bytes: frame.original,
                data: frame.data.get(..flow_packet.header_bytes).unwrap_or_default(),
                vlan: None,
                direction: if flow_packet.from_client { PacketDirection::In } else { PacketDirection::Out },
                reception: Reception::Unknown,
            },
        );
        found.packets += 1;
        written += buffer.len() as u64;
        out.write_all(&buffer)?;
        buffer.clear();
        Ok(())
    })?;
    if first_ns.is_none() {
        write::section(&mut buffer, &write::Section { application: Some(application), ..Default::default() });
    } else {
        let counts = Counts {
            start_ns: first_ns.unwrap_or(0),
            end_ns: last_ns,
            accepted: found.packets + found.unwritten + dropped,
            kernel_dropped: dropped,
            delivered: found.packets,
            ..Counts::default()
        };
        write::statistics(&mut buffer, 0, &counts);
    }
    out.write_all(&buffer)?;
    out.flush()?;
    Ok(found)
}

/// Writes section and interface blocks, which contain nothing about the host except the link type.
fn begin(buffer: &mut Vec<u8>, frame: &Frame<'_>, application: &str) {
    write::section(buffer, &write::Section { application: Some(application), ..Default::default() });
    let comments = ["headers of one test's data sockets; times are the kernel's (CLOCK_REALTIME)".to_owned()];
    write::interface(
        buffer,
        &write::Interface {
            name: "server",
            description: None,
            link: frame.link,
            snap_bytes: 0,
            mac: None,
            speed_bps: None,
            filter: None,
            system: None,
            comments: &comments,
        },
    );
}

/// First segments of the connections on each client port: time and sequence number.
#[derive(Debug, Default)]
struct FirstSegments(HashMap<u16, Vec<(u64, u32)>>);

impl FirstSegments {
    fn note(&mut self, time_ns: u64, flow_packet: &FlowPacket) {
        let Some(sequence) = flow_packet.opening.filter(|_| flow_packet.from_client) else { return };
        let known = self.0.entry(flow_packet.port).or_default();
        // A retransmitted SYN is not a new connection.
        if known.last().is_none_or(|&(_, last)| last != sequence) {
            known.push((time_ns, sequence));
        }
    }

    fn sort(&mut self) {
        self.0.values_mut().for_each(|openings| openings.sort_unstable());
    }

    /// Whether a packet belongs to one of the sockets on its port; `accept_times` are the times at which these were
    /// accepted.
    fn is_own(&self, time_ns: u64, flow_packet: &FlowPacket, accept_times: &[u64]) -> bool {
        let (begun_ns, next_ns) = match (flow_packet.transport, self.0.get(&flow_packet.port)) {
            (TapTransport::Tcp, Some(openings)) => {
                let next = openings.partition_point(|&(opened_ns, _)| opened_ns <= time_ns);
                let begun =
                    next.checked_sub(1).and_then(|at| openings.get(at)).map_or(0, |&(opened_ns, _)| opened_ns);
                (begun, openings.get(next).map_or(u64::MAX, |&(opened_ns, _)| opened_ns))
            }
            _ => (0, u64::MAX),
        };
        // The first socket accepted after this connection began, if before the next connection.
        let at = accept_times.partition_point(|&arrived_ns| arrived_ns < begun_ns);
        accept_times.get(at).is_some_and(|&arrived_ns| {
            arrived_ns < next_ns && time_ns.saturating_add(MAX_ACCEPT_DELAY_NS) >= arrived_ns
        })
    }
}

/// Calls `take` with every frame of a capture file.
fn frames(file: &mut File, mut take: impl FnMut(&Frame<'_>) -> io::Result<()>) -> io::Result<()> {
    file.rewind()?;
    let (mut reader, mut held, mut chunk) = (Reader::new(), Vec::new(), vec![0; CHUNK]);
    loop {
        let n = file.read(&mut chunk)?;
        if n == 0 {
            // An incomplete block is left if the capture is truncated.
            return Ok(());
        }
        held.extend_from_slice(chunk.get(..n).unwrap_or_default());
        let mut used = 0;
        loop {
            let rest = held.get(used..).unwrap_or_default();
            match reader.next(rest).map_err(|error| io::Error::other(error.to_string()))? {
                (_, CaptureItem::More(_)) => break,
                (taken, next) => {
                    if let CaptureItem::Frame(frame) = &next {
                        take(frame)?;
                    }
                    used += taken;
                }
            }
        }
        held.drain(..used);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TCP: TapTransport = TapTransport::Tcp;

    fn syn(port: u16, sequence: u32) -> FlowPacket {
        FlowPacket { transport: TCP, port, from_client: true, opening: Some(sequence), header_bytes: 54 }
    }

    #[test]
    fn connections_of_other_clients_on_the_same_port_are_excluded() {
        let mut openings = FirstSegments::default();
        // Three connections: another client's, the test's own with a retransmitted SYN, another client's again.
        for (time_ns, sequence) in [(100, 1), (200, 2), (203, 2), (300, 3)] {
            openings.note(time_ns, &syn(7, sequence));
        }
        openings.sort();
        let own = |time_ns| openings.is_own(time_ns, &FlowPacket { opening: None, ..syn(7, 0) }, &[210]);
        assert_eq!(
            [100, 199, 200, 203, 250, 299, 300, 400].map(own),
            [false, false, true, true, true, true, false, false]
        );
    }

    #[test]
    fn packets_without_handshake_match_a_later_accepted_socket() {
        let openings = FirstSegments::default();
        let arrived = 100 * MAX_ACCEPT_DELAY_NS;
        let own = |time_ns| openings.is_own(time_ns, &FlowPacket { opening: None, ..syn(7, 0) }, &[arrived]);
        assert!(!own(98 * MAX_ACCEPT_DELAY_NS) && own(arrived - 1) && own(arrived + 50 * MAX_ACCEPT_DELAY_NS));
        assert!(!openings.is_own(5, &syn(7, 0), &[]));
    }
}
