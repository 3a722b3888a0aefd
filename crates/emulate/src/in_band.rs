//! Status requests over the path itself, for hosts connected through a bump in the wire: UDP datagrams to the
//! remote host. The emulation forwards them like any other frame, and replies with that host's addresses.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::Duration;

use etherparse::{LinkSlice, NetSlice, PacketBuilder, SlicedPacket, TransportSlice};
use landspeed_model::EmulationStatus;
use landspeed_sys::clock::{monotonic_ns, realtime_ns};
use landspeed_sys::filter::Instruction;
use landspeed_sys::frames::FrameRing;
use landspeed_wire::LinkType;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::EmulateError;
use crate::exchange::{CHECK_MS, ExchangeLimit, StatusError, check};

/// First bytes of a request's payload.
const REQUEST: &[u8; 16] = b"landspeed status";
/// First bytes of a reply's payload.
const REPLY: &[u8; 16] = b"landspeed answer";
/// Payload of a probe, which only detects an emulation, bytes. A reply is exactly as long as its request, so that nothing
/// is amplified.
const PROBE_BYTES: usize = 128;
/// Payload of every other request, bytes: fits the minimum MTU of IPv6.
const STATUS_BYTES: usize = 1200;
/// Longest frame of a request, bytes: Ethernet, IPv6 and UDP headers before the payload.
const FRAME_BYTES: usize = 14 + 40 + 8 + STATUS_BYTES;
const RING_BYTES: usize = 256 << 10;
/// Maximum number of requests of one interface served before those of the other.
const BATCH: usize = 16;
/// Maximum number of invalid seconds in a reply; fewer fit if their messages are long.
const MAX_INVALID_SECONDS: usize = 20;
/// TTL or hop limit of a reply: there may be routers between the path and the client.
const TTL: u8 = 64;
/// Destination port of requests: the discard service (RFC 863). Hosts without it reply with ICMP port unreachable.
const DISCARD: u16 = 9;
const SECOND_NS: u64 = 1_000_000_000;

/// Transmissions of a request.
const ATTEMPTS: usize = 2;
/// Timeout of a probe, nanoseconds.
const PROBE_TIMEOUT_NS: u64 = 150_000_000;
/// Timeout of a probe after an ICMP unreachable, nanoseconds: the reply of an emulation normally arrives first.
const UNREACHABLE_TIMEOUT_NS: u64 = 30_000_000;
/// Timeout of a status request to an emulation that has replied to a probe, nanoseconds.
const STATUS_TIMEOUT_NS: u64 = SECOND_NS;

/// A request for the invalid seconds of the last `last_ns`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Request {
    nonce: u64,
    /// Length of the requested period before the request, nanoseconds.
    last_ns: u64,
    /// Only seconds after this number: earlier replies contained the others.
    after: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Reply {
    nonce: u64,
    /// `None` in the reply to a probe.
    status: Option<EmulationStatus>,
    /// Whether there are more invalid seconds than this reply contains.
    more: bool,
}

/// A payload of `length` bytes; `None` if `content` does not fit.
fn payload(kind: &[u8; 16], content: &impl Serialize, length: usize) -> Option<Vec<u8>> {
    let mut bytes = kind.to_vec();
    serde_json::to_writer(&mut bytes, content).ok()?;
    // JSON may be followed by spaces, so these pad the payload.
    (bytes.len() <= length).then(|| {
        bytes.resize(length, b' ');
        bytes
    })
}

fn content<T: DeserializeOwned>(kind: &[u8; 16], payload: &[u8]) -> Option<T> {
    serde_json::from_slice(payload.strip_prefix(kind)?).ok()
}

/// Receive rings at the two interfaces of the path.
pub struct InBand {
    rings: [FrameRing; 2],
}

impl InBand {
    /// Listens at two interfaces of the calling thread's network namespace, given by name and index.
    pub(crate) fn listen(interfaces: [(&str, u32); 2]) -> Result<Self, EmulateError> {
        let open = |(name, index): (&str, u32)| {
            let ring = FrameRing::filtered(index, FRAME_BYTES, RING_BYTES, &filter());
            ring.and_then(|ring| ring.start().map(|()| ring))
                .map_err(|cause| EmulateError::Ring { interface: name.to_owned(), cause })
        };
        let [first, second] = interfaces;
        Ok(Self { rings: [open(first)?, open(second)?] })
    }

    pub(crate) fn fds(&self) -> [BorrowedFd<'_>; 2] {
        self.rings.each_ref().map(|ring| ring.as_fd())
    }

    /// Replies to received requests.
    pub(crate) fn reply(&mut self, status: impl Fn() -> EmulationStatus) {
        for ring in &mut self.rings {
            for _ in 0..BATCH {
                let Some(frame) = ring.peek() else { break };
                let received = if frame.vlan.is_none() { Received::read(frame.data) } else { None };
                ring.release();
                let Some(received) = received else { continue };
                let payload = if received.is_probe {
                    payload(REPLY, &Reply { nonce: received.request.nonce, status: None, more: false }, PROBE_BYTES)
                } else {
                    reply_to(&received.request, status())
                };
                if let Some(frame) = payload.and_then(|payload| received.reply(&payload)) {
                    // The client repeats the request if the reply is lost.
                    let _ = ring.send(&[&frame]);
                }
            }
        }
    }
}

/// The payload of a reply: the requested invalid seconds, as many as fit.
fn reply_to(request: &Request, mut status: EmulationStatus) -> Option<Vec<u8>> {
    let oldest = status.elapsed_ns.saturating_sub(request.last_ns) / SECOND_NS;
    status
        .invalid
        .retain(|invalid| invalid.second >= oldest && request.after.is_none_or(|last| invalid.second > last));
    let wanted = status.invalid.len();
    status.invalid.truncate(MAX_INVALID_SECONDS);
    loop {
        let more = status.invalid.len() < wanted;
        let reply = Reply { nonce: request.nonce, status: Some(status.clone()), more };
        if let Some(payload) = payload(REPLY, &reply, STATUS_BYTES) {
            return Some(payload);
        }
        status.invalid.pop()?;
    }
}

/// A received request with the addresses of its frame, source first.
struct Received {
    request: Request,
    is_probe: bool,
    macs: [[u8; 6]; 2],
    addresses: Addresses,
    ports: [u16; 2],
}

enum Addresses {
    V4([Ipv4Addr; 2]),
    V6([Ipv6Addr; 2]),
}

impl Received {
    fn read(frame: &[u8]) -> Option<Self> {
        let packet = SlicedPacket::from_ethernet(frame).ok()?;
        let Some(LinkSlice::Ethernet2(ethernet)) = &packet.link else { return None };
        let Some(TransportSlice::Udp(udp)) = &packet.transport else { return None };
        let addresses = match &packet.net {
            Some(NetSlice::Ipv4(ip)) => Addresses::V4([ip.header().source_addr(), ip.header().destination_addr()]),
            Some(NetSlice::Ipv6(ip)) => Addresses::V6([ip.header().source_addr(), ip.header().destination_addr()]),
            _ => return None,
        };
        let is_probe = match udp.payload().len() {
            PROBE_BYTES => true,
            STATUS_BYTES => false,
            _ => return None,
        };
        Some(Self {
            request: content(REQUEST, udp.payload())?,
            is_probe,
            macs: [ethernet.source(), ethernet.destination()],
            addresses,
            ports: [udp.source_port(), udp.destination_port()],
        })
    }

    /// A frame that carries `payload` to the client.
    fn reply(&self, payload: &[u8]) -> Option<Vec<u8>> {
        let ([client, server], [client_port, server_port]) = (self.macs, self.ports);
        let ethernet = PacketBuilder::ethernet2(server, client);
        let ip = match self.addresses {
            Addresses::V4([client, server]) => ethernet.ipv4(server.octets(), client.octets(), TTL),
            Addresses::V6([client, server]) => ethernet.ipv6(server.octets(), client.octets(), TTL),
        };
        let mut frame = Vec::with_capacity(FRAME_BYTES);
        ip.udp(server_port, client_port).write(&mut frame, payload).ok()?;
        Some(frame)
    }
}

/// BPF filter that accepts UDP datagrams to the port of requests.
fn filter() -> Vec<Instruction> {
    let program = landspeed_wire::filter::compile(&format!("udp dst port {DISCARD}"), LinkType::ETHERNET, u32::MAX);
    let program = program.unwrap_or_else(|why| unreachable!("the filter is a constant: {why}"));
    program.into_iter().map(|i| Instruction { code: i.code, jt: i.jt, jf: i.jf, k: i.k }).collect()
}

/// Requests the status of an emulation on the path to `host`, with the invalid seconds of the last `last_ns`; `None` if there is no reply.
/// Its `start_unix_ns` is on this host's clock. Without an emulation this takes 60 ms if `host` replies with ICMP port unreachable, else
/// 0.3 s. Nothing authenticates the reply: any host on the path can write it.
///
/// # Errors
/// The status is unknown: `limit` ended the exchange, or the replies contradict each other.
pub fn request_in_band(
    host: IpAddr,
    last_ns: u64,
    limit: &ExchangeLimit<'_>,
) -> Result<Option<EmulationStatus>, StatusError> {
    request_at((host, DISCARD).into(), last_ns, limit)
}

fn request_at(
    address: SocketAddr,
    last_ns: u64,
    limit: &ExchangeLimit<'_>,
) -> Result<Option<EmulationStatus>, StatusError> {
    let any: IpAddr = if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(address)?;
    let nonce = u64::from_ne_bytes(landspeed_sys::random::bytes()?);
    let mut request = Request { nonce, last_ns, after: None };
    if exchange(&socket, &request, PROBE_BYTES, limit)?.is_none() {
        return Ok(None);
    }
    let mut found: Option<EmulationStatus> = None;
    loop {
        // A new nonce, so a late reply to the previous request is ignored.
        request.nonce = request.nonce.wrapping_add(1);
        let reply = exchange(&socket, &request, STATUS_BYTES, limit)?.ok_or(StatusError::Timeout)?;
        let mut status = reply.status.ok_or(StatusError::Implausible("a reply without a status"))?;
        let (now_ns, last) = (realtime_ns(), status.invalid.last().map(|invalid| invalid.second));
        status.start_unix_ns = now_ns.saturating_sub(status.elapsed_ns);
        if let Some(previous) = found {
            status.invalid.splice(0..0, previous.invalid);
        }
        check(&status, now_ns)?;
        if !reply.more {
            return Ok(Some(status));
        }
        request.after = Some(last.ok_or(StatusError::Implausible("more invalid seconds, and none in the reply"))?);
        found = Some(status);
    }
}

/// Sends a request of `length` bytes; returns its reply, or `None` after the timeout of the last attempt.
fn exchange(
    socket: &UdpSocket,
    request: &Request,
    length: usize,
    limit: &ExchangeLimit<'_>,
) -> Result<Option<Reply>, StatusError> {
    let Some(sent) = payload(REQUEST, request, length) else { return Ok(None) };
    let (timeout_ns, unreachable_timeout_ns) = if length == PROBE_BYTES {
        (PROBE_TIMEOUT_NS, UNREACHABLE_TIMEOUT_NS)
    } else {
        (STATUS_TIMEOUT_NS, STATUS_TIMEOUT_NS)
    };
    let mut received = [0; STATUS_BYTES];
    for _ in 0..ATTEMPTS {
        // The first call may only return the ICMP error of an earlier datagram.
        socket.send(&sent).or_else(|_| socket.send(&sent))?;
        let mut deadline_ns = monotonic_ns() + timeout_ns;
        loop {
            let left_ns = deadline_ns.saturating_sub(monotonic_ns()).min(limit.left_ns()?);
            if left_ns == 0 {
                break;
            }
            let wait_ns = left_ns.min(u64::from(CHECK_MS) * 1_000_000);
            socket.set_read_timeout(Some(Duration::from_nanos(wait_ns)))?;
            match socket.recv(&mut received) {
                Ok(length) => {
                    let reply = content::<Reply>(REPLY, &received[..length]);
                    if let Some(reply) = reply.filter(|reply| reply.nonce == request.nonce) {
                        return Ok(Some(reply));
                    }
                }
                Err(error) if is_unreachable(error.kind()) => {
                    deadline_ns = deadline_ns.min(monotonic_ns() + unreachable_timeout_ns);
                }
                Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {}
                Err(_) => break,
            }
        }
    }
    Ok(None)
}

/// Whether a socket error was caused by an ICMP unreachable.
fn is_unreachable(kind: ErrorKind) -> bool {
    use ErrorKind::{ConnectionRefused, HostUnreachable, NetworkUnreachable, PermissionDenied};
    matches!(kind, ConnectionRefused | HostUnreachable | NetworkUnreachable | PermissionDenied)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    fn status(invalid: impl Iterator<Item = u64>) -> EmulationStatus {
        let seconds: Vec<u64> = invalid.collect();
        EmulationStatus { start_unix_ns: 5, ..crate::exchange::tests::status(100, &seconds) }
    }

    #[test]
    fn long_lists_are_split_into_several_replies() {
        let present = status(0..100);
        let mut request = Request { nonce: 9, last_ns: 71 * SECOND_NS, after: None };
        let mut seconds = Vec::new();
        for replies in 1.. {
            let payload = reply_to(&request, present.clone()).expect("it fits");
            assert_eq!(payload.len(), STATUS_BYTES);
            let reply: Reply = content(REPLY, &payload).expect("a reply");
            assert_eq!(reply.nonce, 9);
            let found = reply.status.expect("a status").invalid;
            assert!(!found.is_empty());
            seconds.extend(found.iter().map(|invalid| invalid.second));
            if !reply.more {
                assert!(replies > 2, "{replies}");
                break;
            }
            request.after = seconds.last().copied();
        }
        assert_eq!(seconds, (29..100).collect::<Vec<_>>());
    }

    #[test]
    fn replies_swap_the_addresses_of_the_request() {
        let request = Request { nonce: 3, last_ns: 1, after: Some(2) };
        let sent = payload(REQUEST, &request, STATUS_BYTES).expect("it fits");
        let ethernet = || PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
        let (v4, v6) = ([[10, 0, 0, 1], [10, 0, 0, 2]], [[0xfd; 16], [0xfe; 16]]);
        for is_v6 in [false, true] {
            let ip = if is_v6 { ethernet().ipv6(v6[0], v6[1], 9) } else { ethernet().ipv4(v4[0], v4[1], 9) };
            let mut frame = Vec::new();
            ip.udp(4000, DISCARD).write(&mut frame, &sent).expect("written");
            let received = Received::read(&frame).expect("a request");
            assert_eq!(received.request, request);
            let reply = received.reply(&sent).expect("a frame");
            assert_eq!(reply.len(), frame.len());
            let back = Received::read(&reply).expect("a frame");
            assert_eq!((back.macs, back.ports), ([received.macs[1], received.macs[0]], [DISCARD, 4000]));
            match (back.addresses, received.addresses) {
                (Addresses::V4([to, from]), Addresses::V4(received)) => assert_eq!([from, to], received),
                (Addresses::V6([to, from]), Addresses::V6(received)) => assert_eq!([from, to], received),
                _ => panic!("another family"),
            }
        }
        assert!(Received::read(&[0; 60]).is_none());
    }

    #[test]
    fn requests_of_another_length_get_no_reply() {
        let request = Request { nonce: 3, last_ns: 1, after: None };
        for length in [0, 80, PROBE_BYTES - 1, PROBE_BYTES, PROBE_BYTES + 1, STATUS_BYTES - 1, STATUS_BYTES] {
            let mut sent = REQUEST.to_vec();
            serde_json::to_writer(&mut sent, &request).expect("written");
            sent.resize(length.max(sent.len()), b' ');
            let mut frame = Vec::new();
            let ethernet = PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
            ethernet
                .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 9)
                .udp(4000, DISCARD)
                .write(&mut frame, &sent)
                .expect("written");
            let received = Received::read(&frame).map(|received| received.is_probe);
            let known =
                [(PROBE_BYTES, true), (STATUS_BYTES, false)].into_iter().find(|(known, _)| *known == sent.len());
            assert_eq!(received, known.map(|(_, is_probe)| is_probe), "{length}");
        }
    }

    /// Runs a request against a host on the path that answers each of `replies` in turn.
    fn forged(replies: Vec<Reply>) -> Result<Option<EmulationStatus>, StatusError> {
        let server = UdpSocket::bind("127.0.0.1:0").expect("an address");
        let address = server.local_addr().expect("bound");
        let answering = std::thread::spawn(move || {
            let mut received = [0; STATUS_BYTES];
            for reply in replies {
                let (length, from) = server.recv_from(&mut received).expect("a request");
                let request = content::<Request>(REQUEST, &received[..length]).expect("a request");
                let reply = payload(REPLY, &Reply { nonce: request.nonce, ..reply }, length).expect("it fits");
                server.send_to(&reply, from).expect("sent");
            }
        });
        let found = request_at(address, 1, &ExchangeLimit::new(60 * SECOND_NS, &AtomicBool::new(false)));
        answering.join().expect("no panic");
        found
    }

    #[test]
    fn contradicting_replies_are_unknown() {
        let probe = || Reply { nonce: 0, status: None, more: false };
        let reply = |status, more| Reply { nonce: 0, status: Some(status), more };
        let found = forged(vec![probe(), reply(status([3, 4].into_iter()), false)]);
        assert_eq!(found.expect("an answer").expect("a status").invalid.len(), 2);
        let unknown = |replies| assert!(matches!(forged(replies), Err(StatusError::Implausible(_))));
        unknown(vec![probe(), probe()]);
        unknown(vec![probe(), reply(status([101].into_iter()), false)]);
        // Replies that repeat themselves would never end.
        unknown(vec![probe(), reply(status([3].into_iter()), true), reply(status([3].into_iter()), true)]);
        unknown(vec![probe(), reply(status(std::iter::empty()), true)]);
    }

    #[test]
    fn without_an_emulation_there_is_no_status() {
        let taken = UdpSocket::bind("127.0.0.1:0").expect("an address");
        let server = taken.local_addr().expect("bound");
        let stop = AtomicBool::new(false);
        let request = || request_at(server, 1, &ExchangeLimit::new(60 * SECOND_NS, &stop));
        assert_eq!(request(), Ok(None), "no reply");
        drop(taken);
        assert_eq!(request(), Ok(None), "ICMP port unreachable");
    }
}
