//! Selection of the packets of one test, while its data sockets are still being accepted.
//!
//! A server learns a client's ports when it accepts the sockets, after their handshakes. So the capture begins
//! with all packets between the two addresses on the server's port: headers only, and a few packets per flow. A
//! flow that is reported as the test's own is captured completely from then on. The data that leaves the server
//! is extracted from the file later ([`crate::excerpt`]), when the owner of each packet is known.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};

use landspeed_wire::{Encapsulations, LinkType, Transport, dissect_headers};

/// Maximum number of packets stored per flow until its owner is known: more than a handshake has.
const PROVISIONAL_PACKETS: u32 = 32;
/// Maximum size of all such packets, bytes.
const PROVISIONAL_BYTES: u64 = 32 << 20;
/// Overhead of a packet in a file, bytes.
const BLOCK_BYTES: u64 = 48;
/// Maximum number of stored data sockets: more than fit into a capture of 256 MiB with their handshakes.
const MAX_SOCKETS: usize = 1 << 18;
/// Maximum number of flows for which a kernel filter is built: filters are limited to a few thousand
/// instructions.
const MAX_FILTERED_FLOWS: usize = 64;

/// Transport protocol of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TapTransport {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// A data socket of the test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TapFlow {
    /// TCP or UDP.
    pub transport: TapTransport,
    /// Port of the client.
    pub port: u16,
    /// Time at which the server accepted it, nanoseconds since the Unix epoch.
    pub arrived_unix_ns: u64,
}

/// A packet between the client and the server's port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FlowPacket {
    pub transport: TapTransport,
    /// Port of the client.
    pub port: u16,
    pub from_client: bool,
    /// Sequence number, if it is the first segment (SYN) of a connection.
    pub opening: Option<u32>,
    /// Length of the headers, the maximum that may be stored, bytes.
    pub header_bytes: usize,
}

/// The data sockets of a test that are known so far.
#[derive(Debug)]
pub struct Selection {
    server: (u128, u16),
    client: u128,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// Times at which sockets were accepted, by transport and client port.
    own: HashMap<(TapTransport, u16), Vec<u64>>,
    own_flows: usize,
    /// Packets and bytes stored of flows whose owner is unknown.
    unknown: HashMap<(TapTransport, u16), (u32, u64)>,
    unknown_bytes: u64,
    is_complete: bool,
    filter: Option<String>,
}

impl Selection {
    /// Creates a selection without sockets.
    pub fn new(server: SocketAddr, client: IpAddr) -> Self {
        let server = (mapped(server.ip()), server.port());
        Self { server, client: mapped(client), inner: Mutex::default() }
    }

    /// Adds an accepted data socket of the test.
    pub fn add(&self, flow: TapFlow) {
        let mut inner = self.lock();
        if inner.own_flows >= MAX_SOCKETS {
            return;
        }
        inner.own_flows += 1;
        let key = (flow.transport, flow.port);
        inner.own.entry(key).or_default().push(flow.arrived_unix_ns);
        if let Some((_, bytes)) = inner.unknown.remove(&key) {
            inner.unknown_bytes -= bytes;
        }
    }

    /// Marks the selection as complete: packets of other flows are no longer stored. `coarse` is the current filter
    /// expression.
    pub fn complete(&self, coarse: &str) {
        let mut inner = self.lock();
        inner.is_complete = true;
        if (1..=MAX_FILTERED_FLOWS).contains(&inner.own.len()) {
            let mut ports: Vec<String> = inner
                .own
                .keys()
                .map(|(transport, port)| match transport {
                    TapTransport::Tcp => format!("tcp port {port}"),
                    TapTransport::Udp => format!("udp port {port}"),
                })
                .collect();
            ports.sort_unstable();
            inner.filter = Some(format!("{coarse} and ({})", ports.join(" or ")));
        }
    }

    /// Returns the narrower filter expression for the kernel, once.
    pub(crate) fn take_filter(&self) -> Option<String> {
        self.lock().filter.take()
    }

    /// Bytes stored of flows whose owner is unknown.
    pub(crate) fn provisional_bytes(&self) -> u64 {
        self.lock().unknown_bytes
    }

    /// Number of bytes of a frame to store; `None` to discard it.
    pub(crate) fn keep(&self, link: LinkType, frame: &[u8], original: u32) -> Option<usize> {
        let flow_packet = self.flow_packet(link, frame, original)?;
        let key = (flow_packet.transport, flow_packet.port);
        let mut inner = self.lock();
        if inner.own.contains_key(&key) {
            return Some(flow_packet.header_bytes);
        }
        if inner.is_complete || inner.unknown_bytes >= PROVISIONAL_BYTES {
            return None;
        }
        let bytes = flow_packet.header_bytes as u64 + BLOCK_BYTES;
        let (packets, kept) = inner.unknown.entry(key).or_default();
        if *packets >= PROVISIONAL_PACKETS {
            return None;
        }
        *packets += 1;
        *kept += bytes;
        inner.unknown_bytes += bytes;
        Some(flow_packet.header_bytes)
    }

    /// Parses a frame between the client and the server's port; `None` for others, and for packets in a tunnel.
    pub(crate) fn flow_packet(&self, link: LinkType, frame: &[u8], original: u32) -> Option<FlowPacket> {
        let (packet, header_bytes) = dissect_headers(link, frame, original).ok()?;
        if !Encapsulations::VLAN.contains(packet.encapsulations) {
            return None;
        }
        let (transport, source, destination, opening) = match packet.transport {
            Transport::Tcp(tcp) => {
                let opens = tcp.flags.has(landspeed_wire::Flags::SYN) && !tcp.flags.has(landspeed_wire::Flags::ACK);
                (TapTransport::Tcp, tcp.source, tcp.destination, opens.then_some(tcp.sequence))
            }
            Transport::Udp { source, destination, .. } => (TapTransport::Udp, source, destination, None),
            Transport::Icmp(_) | Transport::Fragment | Transport::Other => return None,
        };
        let (from, to) = ((packet.network.source, source), (packet.network.destination, destination));
        let flow_packet = |port, from_client| FlowPacket { transport, port, from_client, opening, header_bytes };
        if to == self.server && from.0 == self.client {
            Some(flow_packet(from.1, true))
        } else if from == self.server && to.0 == self.client {
            Some(flow_packet(to.1, false))
        } else {
            None
        }
    }

    /// Times at which sockets were accepted, ascending, by transport and client port.
    pub(crate) fn accept_times(&self) -> HashMap<(TapTransport, u16), Vec<u64>> {
        let mut own = self.lock().own.clone();
        for times in own.values_mut() {
            times.sort_unstable();
        }
        own
    }

    /// Locks the state; a poisoned lock is used too, because it protects plain data.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// IPv4 addresses as IPv4-mapped IPv6, as in dissected packets.
fn mapped(ip: IpAddr) -> u128 {
    match ip.to_canonical() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().to_bits(),
        IpAddr::V6(ip) => ip.to_bits(),
    }
}
