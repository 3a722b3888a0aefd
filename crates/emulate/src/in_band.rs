//! Status requests over the path itself, for hosts beside a bump in the wire: a UDP datagram to the host at the other end. The emulation
//! carries it as any other frame, and replies in that host's name.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::Duration;

use etherparse::{LinkSlice, NetSlice, PacketBuilder, SlicedPacket, TransportSlice};
use landspeed_model::EmulationStatus;
use landspeed_sys::clock::{monotonic_ns, realtime_ns};
use landspeed_sys::filter::Instruction;
use landspeed_sys::frames::FrameRing;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::EmulateError;

/// What a payload begins with.
const REQUEST: &[u8; 16] = b"landspeed status";
const REPLY: &[u8; 16] = b"landspeed answer";
/// Length of a payload that asks whether there is an emulation, bytes. A reply is as long as its request.
const SHORT_BYTES: usize = 128;
/// Length of every other payload, bytes: fits the smallest MTU of IPv6.
const PAYLOAD_BYTES: usize = 1200;
/// Longest frame of a request, bytes: Ethernet, IPv6 and UDP headers before the payload.
const FRAME_BYTES: usize = 14 + 40 + 8 + PAYLOAD_BYTES;
const RING_BYTES: usize = 256 << 10;
/// Requests served before the other interface has its turn.
const MOST_AT_ONCE: usize = 16;
/// Invalid seconds of one reply at most; fewer fit if their messages are long.
const MOST_SECONDS: usize = 20;
/// Hops of a reply: it may cross routers on its way back.
const HOPS: u8 = 64;
/// Port that requests are sent to: what arrives there is discarded (RFC 863), and refused by hosts without that service.
const DISCARD: u16 = 9;
const SECOND_NS: u64 = 1_000_000_000;

/// How often a request is sent.
const TRIES: usize = 2;
/// How long the reply to a short request is waited for, nanoseconds.
const SILENCE_NS: u64 = 150_000_000;
/// How long it is still waited for after the far host has refused the datagram: an emulation on the way replies first.
const AFTER_REFUSAL_NS: u64 = 30_000_000;
/// How long the reply of an emulation that is there is waited for, nanoseconds.
const PATIENCE_NS: u64 = SECOND_NS;
/// Longest exchange, nanoseconds: the invalid seconds of hours take many replies.
const LONGEST_NS: u64 = 5 * SECOND_NS;

/// A request for the invalid seconds of some time until now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Request {
    nonce: u64,
    /// How far back they are of interest, nanoseconds.
    last_ns: u64,
    /// Only seconds after this one: earlier replies have the others.
    after: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Reply {
    nonce: u64,
    /// `None` in the reply to a short request.
    status: Option<EmulationStatus>,
    /// Whether there are further invalid seconds.
    more: bool,
}

/// The payload of a datagram, of this length; `None` if it is too short for the content.
fn payload(kind: &[u8; 16], content: &impl Serialize, length: usize) -> Option<Vec<u8>> {
    let mut bytes = kind.to_vec();
    serde_json::to_writer(&mut bytes, content).ok()?;
    // JSON may end in spaces.
    (bytes.len() <= length).then(|| {
        bytes.resize(length, b' ');
        bytes
    })
}

fn content<T: DeserializeOwned>(kind: &[u8; 16], payload: &[u8]) -> Option<T> {
    serde_json::from_slice(payload.strip_prefix(kind)?).ok()
}

/// Two interfaces at which requests arrive.
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

    /// Replies to the requests that have arrived.
    pub(crate) fn reply(&mut self, status: impl Fn() -> EmulationStatus) {
        for ring in &mut self.rings {
            for _ in 0..MOST_AT_ONCE {
                let Some(frame) = ring.peek() else { break };
                let received = if frame.vlan.is_none() { Received::read(frame.data) } else { None };
                ring.release();
                let Some(received) = received else { continue };
                let payload = if received.is_short {
                    payload(REPLY, &Reply { nonce: received.request.nonce, status: None, more: false }, SHORT_BYTES)
                } else {
                    reply_to(&received.request, status())
                };
                if let Some(frame) = payload.and_then(|payload| received.reply(&payload)) {
                    // A lost reply is requested again.
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
    status.invalid.truncate(MOST_SECONDS);
    loop {
        let more = status.invalid.len() < wanted;
        let reply = Reply { nonce: request.nonce, status: Some(status.clone()), more };
        if let Some(payload) = payload(REPLY, &reply, PAYLOAD_BYTES) {
            return Some(payload);
        }
        status.invalid.pop()?;
    }
}

/// A request with the addresses of its frame.
struct Received {
    request: Request,
    /// Whether only the presence of an emulation is asked for.
    is_short: bool,
    /// Ethernet addresses and ports of its sender and of the host it was sent to.
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
        Some(Self {
            request: content(REQUEST, udp.payload())?,
            is_short: udp.payload().len() < PAYLOAD_BYTES,
            macs: [ethernet.source(), ethernet.destination()],
            addresses,
            ports: [udp.source_port(), udp.destination_port()],
        })
    }

    /// A frame back to its sender.
    fn reply(&self, payload: &[u8]) -> Option<Vec<u8>> {
        let ([requester, far], [requester_port, far_port]) = (self.macs, self.ports);
        let ethernet = PacketBuilder::ethernet2(far, requester);
        let ip = match self.addresses {
            Addresses::V4([requester, far]) => ethernet.ipv4(far.octets(), requester.octets(), HOPS),
            Addresses::V6([requester, far]) => ethernet.ipv6(far.octets(), requester.octets(), HOPS),
        };
        let mut frame = Vec::with_capacity(FRAME_BYTES);
        ip.udp(far_port, requester_port).write(&mut frame, payload).ok()?;
        Some(frame)
    }
}

/// Accepts UDP datagrams over IPv4 without options, or IPv6 without extensions, that begin as requests do (classic BPF).
fn filter() -> [Instruction; 13] {
    const LOAD_WORD: u16 = 0x20;
    const LOAD_HALF: u16 = 0x28;
    const LOAD_BYTE: u16 = 0x30;
    const IF_EQUAL: u16 = 0x15;
    const UDP: u32 = 17;
    let load = |code, at| Instruction { code, jt: 0, jf: 0, k: at };
    let test = |k, jt, jf| Instruction { code: IF_EQUAL, jt, jf, k };
    let [a, b, c, d, ..] = *REQUEST;
    let begin = u32::from_be_bytes([a, b, c, d]);
    [
        load(LOAD_HALF, 12),
        test(0x0800, 0, 4),
        load(LOAD_BYTE, 14 + 9),
        test(UDP, 0, 8),
        load(LOAD_WORD, 14 + 20 + 8),
        test(begin, 5, 6),
        test(0x86dd, 0, 5),
        load(LOAD_BYTE, 14 + 6),
        test(UDP, 0, 3),
        load(LOAD_WORD, 14 + 40 + 8),
        test(begin, 0, 1),
        Instruction::pass(u32::MAX),
        Instruction::pass(0),
    ]
}

/// Requests the status of an emulation on the way to `host`, with the invalid seconds of the last `last_ns`; `None` if there is none. Its
/// `start_unix_ns` is by this host's clock. Without an emulation this takes 60 ms if `host` refuses the datagrams, and 0.3 s if
/// nothing comes back.
pub fn request_in_band(host: IpAddr, last_ns: u64) -> Option<EmulationStatus> {
    request_at((host, DISCARD).into(), last_ns)
}

fn request_at(address: SocketAddr, last_ns: u64) -> Option<EmulationStatus> {
    let any: IpAddr = if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect(address).ok()?;
    let until_ns = monotonic_ns() + LONGEST_NS;
    let mut request =
        Request { nonce: u64::from_ne_bytes(landspeed_sys::random::bytes().ok()?), last_ns, after: None };
    exchange(&socket, &request, SHORT_BYTES)?;
    let mut found: Option<EmulationStatus> = None;
    loop {
        // A late reply to the previous request does not count.
        request.nonce = request.nonce.wrapping_add(1);
        let Some(Reply { status: Some(mut status), more, .. }) = exchange(&socket, &request, PAYLOAD_BYTES) else {
            break;
        };
        status.start_unix_ns = realtime_ns().saturating_sub(status.elapsed_ns);
        request.after = status.invalid.last().map(|invalid| invalid.second);
        if let Some(earlier) = found {
            status.invalid.splice(0..0, earlier.invalid);
        }
        found = Some(status);
        if !more || monotonic_ns() >= until_ns {
            break;
        }
    }
    found
}

/// Sends a request of `length` bytes until there is a reply.
fn exchange(socket: &UdpSocket, request: &Request, length: usize) -> Option<Reply> {
    let sent = payload(REQUEST, request, length)?;
    let (patience_ns, after_refusal_ns) =
        if length == SHORT_BYTES { (SILENCE_NS, AFTER_REFUSAL_NS) } else { (PATIENCE_NS, PATIENCE_NS) };
    let mut received = [0; PAYLOAD_BYTES];
    for _ in 0..TRIES {
        // The first call may only return the refusal of an earlier datagram.
        socket.send(&sent).or_else(|_| socket.send(&sent)).ok()?;
        let mut deadline_ns = monotonic_ns() + patience_ns;
        loop {
            let left_ns = deadline_ns.saturating_sub(monotonic_ns());
            if left_ns == 0 {
                break;
            }
            socket.set_read_timeout(Some(Duration::from_nanos(left_ns))).ok()?;
            match socket.recv(&mut received) {
                Ok(length) => {
                    let reply = content::<Reply>(REPLY, &received[..length]);
                    if let Some(reply) = reply.filter(|reply| reply.nonce == request.nonce) {
                        return Some(reply);
                    }
                }
                Err(error) if is_refusal(error.kind()) => {
                    deadline_ns = deadline_ns.min(monotonic_ns() + after_refusal_ns);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
    }
    None
}

/// Whether a host on the way said that the datagram cannot arrive.
fn is_refusal(kind: ErrorKind) -> bool {
    use ErrorKind::{ConnectionRefused, HostUnreachable, NetworkUnreachable, PermissionDenied};
    matches!(kind, ConnectionRefused | HostUnreachable | NetworkUnreachable | PermissionDenied)
}

#[cfg(test)]
mod tests {
    use landspeed_model::{EmulatePlacement, EmulatedPath, InvalidReason, InvalidSecond};

    use super::*;

    fn status(invalid: impl Iterator<Item = u64>) -> EmulationStatus {
        let invalid = invalid.map(|second| InvalidSecond {
            second,
            reasons: vec![InvalidReason::Late],
            message: "12 of 3456 frames left more than 200 µs late".to_owned(),
        });
        EmulationStatus {
            path: EmulatedPath { name: "a path".to_owned(), seed: 1, mtu_bytes: 1500, links: 1 },
            placement: EmulatePlacement::Between { first: "eth1".to_owned(), second: "eth2".to_owned() },
            start_unix_ns: 5,
            elapsed_ns: 100 * SECOND_NS,
            invalid: invalid.collect(),
        }
    }

    #[test]
    fn long_lists_take_several_replies() {
        let present = status(0..100);
        let mut request = Request { nonce: 9, last_ns: 71 * SECOND_NS, after: None };
        let mut seconds = Vec::new();
        for replies in 1.. {
            let payload = reply_to(&request, present.clone()).expect("it fits");
            assert_eq!(payload.len(), PAYLOAD_BYTES);
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
    fn a_reply_goes_back_to_its_sender() {
        let request = Request { nonce: 3, last_ns: 1, after: Some(2) };
        let sent = payload(REQUEST, &request, PAYLOAD_BYTES).expect("it fits");
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
    fn without_an_emulation_there_is_no_status() {
        let taken = UdpSocket::bind("127.0.0.1:0").expect("an address");
        let server = taken.local_addr().expect("bound");
        assert_eq!(request_at(server, 1), None, "silence");
        drop(taken);
        assert_eq!(request_at(server, 1), None, "a refusal");
    }
}
