//! Questions about a path that come over the path itself: a host beside a bump in the wire knows no other way to it. A question is a UDP
//! datagram to the host at the other end. The emulation carries it as any other frame, and answers it in that host's name.

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
const QUESTION: &[u8; 16] = b"landspeed status";
const ANSWER: &[u8; 16] = b"landspeed answer";
/// Length of every payload, bytes: fits the smallest MTU of IPv6, and an answer is as long as its question.
const PAYLOAD_BYTES: usize = 1200;
/// Longest frame of a question, bytes: Ethernet, IPv6 and UDP headers before the payload.
const FRAME_BYTES: usize = 14 + 40 + 8 + PAYLOAD_BYTES;
const RING_BYTES: usize = 256 << 10;
/// Questions answered before the other interface has its turn.
const MOST_AT_ONCE: usize = 16;
/// Invalid seconds of one answer at most; fewer fit if their messages are long.
const MOST_SECONDS: usize = 20;
/// Hops of an answer: it may cross routers on its way back.
const HOPS: u8 = 64;
/// Port that questions are sent to: what arrives there is discarded (RFC 863), and refused by hosts without that service.
const DISCARD: u16 = 9;
const SECOND_NS: u64 = 1_000_000_000;

/// How often a question is sent.
const TRIES: usize = 2;
/// How long the first word from an emulation is waited for, nanoseconds.
const SILENCE_NS: u64 = 150_000_000;
/// How long it is waited for once the far host has refused the datagram: an emulation on the way was asked before.
const AFTER_REFUSAL_NS: u64 = 30_000_000;
/// How long the answer of an emulation that has acknowledged is waited for.
const PATIENCE_NS: u64 = SECOND_NS;
/// Longest conversation: the invalid seconds of hours take many answers.
const LONGEST_NS: u64 = 5 * SECOND_NS;

/// Asks for the invalid seconds of some time until now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Question {
    nonce: u64,
    /// How far back they are of interest, nanoseconds.
    last_ns: u64,
    /// Only seconds after this one: earlier answers have the others.
    after: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Answer {
    nonce: u64,
    /// `None` in the acknowledgement, which comes at once.
    status: Option<EmulationStatus>,
    /// Whether there are further invalid seconds.
    more: bool,
}

/// The payload of a datagram, if it is short enough.
fn payload(kind: &[u8; 16], content: &impl Serialize) -> Option<Vec<u8>> {
    let mut bytes = kind.to_vec();
    serde_json::to_writer(&mut bytes, content).ok()?;
    // JSON may end in spaces.
    (bytes.len() <= PAYLOAD_BYTES).then(|| {
        bytes.resize(PAYLOAD_BYTES, b' ');
        bytes
    })
}

fn content<T: DeserializeOwned>(kind: &[u8; 16], payload: &[u8]) -> Option<T> {
    serde_json::from_slice(payload.strip_prefix(kind)?).ok()
}

/// Two interfaces at which questions arrive.
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

    /// Answers the questions that have arrived.
    pub(crate) fn answer(&mut self, status: impl Fn() -> EmulationStatus) {
        for ring in &mut self.rings {
            for _ in 0..MOST_AT_ONCE {
                let Some(frame) = ring.peek() else { break };
                let asked = if frame.vlan.is_none() { Asked::read(frame.data) } else { None };
                ring.release();
                let Some(asked) = asked else { continue };
                // The acknowledgement is there before the far host refuses the datagram.
                let acknowledgement = Answer { nonce: asked.question.nonce, status: None, more: false };
                for payload in [payload(ANSWER, &acknowledgement), answer_to(&asked.question, status())] {
                    if let Some(frame) = payload.and_then(|payload| asked.reply(&payload)) {
                        // Who gets no answer asks again.
                        let _ = ring.send(&[&frame]);
                    }
                }
            }
        }
    }
}

/// The payload of an answer: the invalid seconds asked for, as many as fit.
fn answer_to(question: &Question, mut status: EmulationStatus) -> Option<Vec<u8>> {
    let oldest = status.elapsed_ns.saturating_sub(question.last_ns) / SECOND_NS;
    status
        .invalid
        .retain(|invalid| invalid.second >= oldest && question.after.is_none_or(|last| invalid.second > last));
    let wanted = status.invalid.len();
    status.invalid.truncate(MOST_SECONDS);
    loop {
        let more = status.invalid.len() < wanted;
        let answer = Answer { nonce: question.nonce, status: Some(status.clone()), more };
        if let Some(payload) = payload(ANSWER, &answer) {
            return Some(payload);
        }
        status.invalid.pop()?;
    }
}

/// A question, and how it came.
struct Asked {
    question: Question,
    /// Ethernet addresses and ports of its sender and of the host it was sent to.
    macs: [[u8; 6]; 2],
    addresses: Addresses,
    ports: [u16; 2],
}

enum Addresses {
    V4([Ipv4Addr; 2]),
    V6([Ipv6Addr; 2]),
}

impl Asked {
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
            question: content(QUESTION, udp.payload())?,
            macs: [ethernet.source(), ethernet.destination()],
            addresses,
            ports: [udp.source_port(), udp.destination_port()],
        })
    }

    /// A frame back to who asked.
    fn reply(&self, payload: &[u8]) -> Option<Vec<u8>> {
        let ([asker, far], [asker_port, far_port]) = (self.macs, self.ports);
        let ethernet = PacketBuilder::ethernet2(far, asker);
        let ip = match self.addresses {
            Addresses::V4([asker, far]) => ethernet.ipv4(far.octets(), asker.octets(), HOPS),
            Addresses::V6([asker, far]) => ethernet.ipv6(far.octets(), asker.octets(), HOPS),
        };
        let mut frame = Vec::with_capacity(FRAME_BYTES);
        ip.udp(far_port, asker_port).write(&mut frame, payload).ok()?;
        Some(frame)
    }
}

/// Accepts UDP datagrams over IPv4 without options, or IPv6 without extensions, that begin as questions do (classic BPF).
fn filter() -> [Instruction; 13] {
    const LOAD_WORD: u16 = 0x20;
    const LOAD_HALF: u16 = 0x28;
    const LOAD_BYTE: u16 = 0x30;
    const IF_EQUAL: u16 = 0x15;
    const UDP: u32 = 17;
    let load = |code, at| Instruction { code, jt: 0, jf: 0, k: at };
    let test = |k, jt, jf| Instruction { code: IF_EQUAL, jt, jf, k };
    let [a, b, c, d, ..] = *QUESTION;
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

/// Asks an emulation on the way to `host` for its invalid seconds within the last `last_ns`; `None` if there is none. Its
/// `start_unix_ns` is by this host's clock. Without an emulation this takes 30 ms if `host` refuses the datagrams, and 0.3 s if
/// nothing comes back.
pub fn ask_in_band(host: IpAddr, last_ns: u64) -> Option<EmulationStatus> {
    ask_at((host, DISCARD).into(), last_ns)
}

fn ask_at(address: SocketAddr, last_ns: u64) -> Option<EmulationStatus> {
    let any: IpAddr = if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect(address).ok()?;
    let until_ns = monotonic_ns() + LONGEST_NS;
    let mut question =
        Question { nonce: u64::from_ne_bytes(landspeed_sys::random::bytes().ok()?), last_ns, after: None };
    let (mut status, mut more) = exchange(&socket, &question)?;
    while more && monotonic_ns() < until_ns {
        question.after = status.invalid.last().map(|invalid| invalid.second);
        // A late answer to the question before is not this one's.
        question.nonce = question.nonce.wrapping_add(1);
        let Some(next) = exchange(&socket, &question) else { break };
        let earlier = std::mem::replace(&mut status, next.0).invalid;
        status.invalid.splice(0..0, earlier);
        more = next.1;
    }
    Some(status)
}

/// Sends a question until it is answered; returns the answer, and whether there is more.
fn exchange(socket: &UdpSocket, question: &Question) -> Option<(EmulationStatus, bool)> {
    let sent = payload(QUESTION, question)?;
    let mut received = [0; PAYLOAD_BYTES];
    for _ in 0..TRIES {
        // The first call may only return the refusal of an earlier datagram.
        socket.send(&sent).or_else(|_| socket.send(&sent)).ok()?;
        let mut deadline_ns = monotonic_ns() + SILENCE_NS;
        let (mut acknowledged, mut refused) = (false, false);
        loop {
            let left_ns = deadline_ns.saturating_sub(monotonic_ns());
            if left_ns == 0 {
                break;
            }
            socket.set_read_timeout(Some(Duration::from_nanos(left_ns))).ok()?;
            match socket.recv(&mut received) {
                Ok(length) => {
                    let answer = content::<Answer>(ANSWER, &received[..length]);
                    let Some(answer) = answer.filter(|answer| answer.nonce == question.nonce) else { continue };
                    if let Some(mut status) = answer.status {
                        status.start_unix_ns = realtime_ns().saturating_sub(status.elapsed_ns);
                        return Some((status, answer.more));
                    }
                    if !acknowledged {
                        (acknowledged, deadline_ns) = (true, monotonic_ns() + PATIENCE_NS);
                    }
                }
                Err(error) if is_refusal(error.kind()) => {
                    refused = true;
                    if !acknowledged {
                        deadline_ns = deadline_ns.min(monotonic_ns() + AFTER_REFUSAL_NS);
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        if refused && !acknowledged {
            break;
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
    fn long_lists_take_several_answers() {
        let present = status(0..100);
        let mut question = Question { nonce: 9, last_ns: 71 * SECOND_NS, after: None };
        let mut seconds = Vec::new();
        for answers in 1.. {
            let payload = answer_to(&question, present.clone()).expect("it fits");
            assert_eq!(payload.len(), PAYLOAD_BYTES);
            let answer: Answer = content(ANSWER, &payload).expect("an answer");
            assert_eq!(answer.nonce, 9);
            let found = answer.status.expect("a status").invalid;
            assert!(!found.is_empty());
            seconds.extend(found.iter().map(|invalid| invalid.second));
            if !answer.more {
                assert!(answers > 2, "{answers}");
                break;
            }
            question.after = seconds.last().copied();
        }
        assert_eq!(seconds, (29..100).collect::<Vec<_>>());
    }

    #[test]
    fn an_answer_goes_back_to_who_asked() {
        let question = Question { nonce: 3, last_ns: 1, after: Some(2) };
        let sent = payload(QUESTION, &question).expect("it fits");
        let ethernet = || PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
        let (v4, v6) = ([[10, 0, 0, 1], [10, 0, 0, 2]], [[0xfd; 16], [0xfe; 16]]);
        for is_v6 in [false, true] {
            let ip = if is_v6 { ethernet().ipv6(v6[0], v6[1], 9) } else { ethernet().ipv4(v4[0], v4[1], 9) };
            let mut frame = Vec::new();
            ip.udp(4000, DISCARD).write(&mut frame, &sent).expect("written");
            let asked = Asked::read(&frame).expect("a question");
            assert_eq!(asked.question, question);
            let reply = asked.reply(&sent).expect("a frame");
            assert_eq!(reply.len(), frame.len());
            let back = Asked::read(&reply).expect("a frame");
            assert_eq!((back.macs, back.ports), ([asked.macs[1], asked.macs[0]], [DISCARD, 4000]));
            match (back.addresses, asked.addresses) {
                (Addresses::V4([to, from]), Addresses::V4(asked)) => assert_eq!([from, to], asked),
                (Addresses::V6([to, from]), Addresses::V6(asked)) => assert_eq!([from, to], asked),
                _ => panic!("another family"),
            }
        }
        assert!(Asked::read(&[0; 60]).is_none());
    }

    #[test]
    fn nobody_on_the_way_is_no_status() {
        let taken = UdpSocket::bind("127.0.0.1:0").expect("an address");
        let server = taken.local_addr().expect("bound");
        assert_eq!(ask_at(server, 1), None, "silence");
        drop(taken);
        assert_eq!(ask_at(server, 1), None, "a refusal");
    }
}
