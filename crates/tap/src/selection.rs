//! Which packets belong to one test, while its data sockets still arrive.
//!
//! A server knows a client's ports only when it has accepted its sockets, and their handshakes have passed by then. So the
//! capture begins with everything between the two addresses on the server's port, headers only, a few packets of each
//! flow. A flow that is reported as the test's own is taken whole from then on. What leaves the server is cut from the file
//! afterwards ([`crate::excerpt`]), when it is known whose each packet was.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};

use landspeed_wire::{LinkType, Transport, Wrapping, dissect_headers};

/// Packets of a flow that are kept before it is known whose it is: more than a handshake has.
const PROVISIONAL_PACKETS: u32 = 32;
/// Bytes kept of all such flows together.
const PROVISIONAL_BYTES: u64 = 32 << 20;
/// What a packet takes up in a file beside its bytes.
const BLOCK_BYTES: u64 = 48;
/// Sockets of a test that are remembered: more than fit in a capture of 256 MiB, each with its handshake.
const MOST_FLOWS: usize = 1 << 18;
/// With more flows than this the kernel's filter is left as it is: a filter is a few thousand instructions at most.
const MOST_FILTERED: usize = 64;

/// The transport of a flow.
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
    /// Its transport.
    pub transport: TapTransport,
    /// The client's port.
    pub port: u16,
    /// When the server accepted it, nanoseconds since the Unix epoch.
    pub arrived_unix_ns: u64,
}

/// A packet between the client's ports and the server's one port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Passing {
    pub transport: TapTransport,
    /// The client's port.
    pub port: u16,
    pub from_client: bool,
    /// The sequence number of a connection's first segment, where this is one.
    pub opening: Option<u32>,
    /// Bytes of headers: all that may be kept.
    pub header_bytes: usize,
}

/// The data sockets of one test, as they become known.
#[derive(Debug)]
pub struct Selection {
    server: (u128, u16),
    client: u128,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// When sockets arrived, by transport and the client's port.
    own: HashMap<(TapTransport, u16), Vec<u64>>,
    own_flows: usize,
    /// Packets and bytes kept of flows whose owner is not known.
    unknown: HashMap<(TapTransport, u16), (u32, u64)>,
    unknown_bytes: u64,
    is_complete: bool,
    filter: Option<String>,
}

impl Selection {
    /// Nothing has arrived yet.
    pub fn new(server: SocketAddr, client: IpAddr) -> Self {
        let server = (mapped(server.ip()), server.port());
        Self { server, client: mapped(client), inner: Mutex::default() }
    }

    /// A data socket of the test has arrived.
    pub fn add(&self, flow: TapFlow) {
        let mut inner = self.lock();
        if inner.own_flows >= MOST_FLOWS {
            return;
        }
        inner.own_flows += 1;
        let key = (flow.transport, flow.port);
        inner.own.entry(key).or_default().push(flow.arrived_unix_ns);
        if let Some((_, bytes)) = inner.unknown.remove(&key) {
            inner.unknown_bytes -= bytes;
        }
    }

    /// All data sockets of the test have arrived: no other flow is taken any more. `coarse` is the filter so far.
    pub fn complete(&self, coarse: &str) {
        let mut inner = self.lock();
        inner.is_complete = true;
        if (1..=MOST_FILTERED).contains(&inner.own.len()) {
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

    /// The filter for the kernel, once.
    pub(crate) fn take_filter(&self) -> Option<String> {
        self.lock().filter.take()
    }

    /// Bytes in the file of flows whose owner is not known.
    pub(crate) fn provisional_bytes(&self) -> u64 {
        self.lock().unknown_bytes
    }

    /// How much of a frame is kept for now; `None` for nothing.
    pub(crate) fn keep(&self, link: LinkType, frame: &[u8], original: u32) -> Option<usize> {
        let passing = self.passing(link, frame, original)?;
        let key = (passing.transport, passing.port);
        let mut inner = self.lock();
        if inner.own.contains_key(&key) {
            return Some(passing.header_bytes);
        }
        if inner.is_complete || inner.unknown_bytes >= PROVISIONAL_BYTES {
            return None;
        }
        let bytes = passing.header_bytes as u64 + BLOCK_BYTES;
        let (packets, kept) = inner.unknown.entry(key).or_default();
        if *packets >= PROVISIONAL_PACKETS {
            return None;
        }
        *packets += 1;
        *kept += bytes;
        inner.unknown_bytes += bytes;
        Some(passing.header_bytes)
    }

    /// A frame as one between the client and the server's port; `None` for any other, and for what is inside of a tunnel.
    pub(crate) fn passing(&self, link: LinkType, frame: &[u8], original: u32) -> Option<Passing> {
        let (packet, header_bytes) = dissect_headers(link, frame, original).ok()?;
        if !Wrapping::VLAN.contains(packet.wrapping) {
            return None;
        }
        let (transport, source, destination, opening) = match packet.transport {
            Transport::Tcp(tcp) => {
                let opens = tcp.flags.has(landspeed_wire::Flags::SYN) && !tcp.flags.has(landspeed_wire::Flags::ACK);
                (TapTransport::Tcp, tcp.source, tcp.destination, opens.then_some(tcp.sequence))
            }
            Transport::Udp { source, destination, .. } => (TapTransport::Udp, source, destination, None),
            Transport::Fragment | Transport::Other => return None,
        };
        let (from, to) = ((packet.network.source, source), (packet.network.destination, destination));
        let passing = |port, from_client| Passing { transport, port, from_client, opening, header_bytes };
        if to == self.server && from.0 == self.client {
            Some(passing(from.1, true))
        } else if from == self.server && to.0 == self.client {
            Some(passing(to.1, false))
        } else {
            None
        }
    }

    /// When the sockets of a port arrived, in order; empty if none did.
    pub(crate) fn arrivals(&self) -> HashMap<(TapTransport, u16), Vec<u64>> {
        let mut own = self.lock().own.clone();
        for times in own.values_mut() {
            times.sort_unstable();
        }
        own
    }

    /// A poisoned lock only means that some thread panicked while it held plain data.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// As a dissected packet has it: IPv4 as an IPv4-mapped IPv6 address.
fn mapped(ip: IpAddr) -> u128 {
    match ip.to_canonical() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().to_bits(),
        IpAddr::V6(ip) => ip.to_bits(),
    }
}
