//! One end's socket: messages out, messages and errors in.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;

use landspeed_netlink::{LinkId, Netlink};
use landspeed_stats::SplitMix64;
use landspeed_sys::socket::{Readiness, wait};
use landspeed_sys::{clock, mtu, udp};

use super::wire::{HEADER_LEN, MAX_PAYLOAD, Message, decode};
use crate::control::hello::{self, HELLO_LEN, Step};

/// `EMSGSIZE`, which the standard library has no word for.
const EMSGSIZE: i32 = 90;
/// `ENOBUFS`.
const ENOBUFS: i32 = 105;
/// Errors of earlier datagrams that one send may meet before it gives up.
const STALE: usize = 8;

/// A connected UDP socket prepared for probes.
pub struct Port<'a> {
    socket: &'a UdpSocket,
    tag: u32,
    /// Bytes of IP and UDP header around each payload.
    overhead: u32,
    interface_mtu: Option<u32>,
    incoming: Box<[u8]>,
    /// Incompressible padding; a message's header is written over its start.
    outgoing: Box<[u8]>,
    /// Errors that came up while sending.
    pending: VecDeque<Heard>,
}

/// How a send went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// The kernel took it, or dropped it in a queue below (`ENOBUFS`), which is a loss like any other: a virtual
    /// Ethernet whose two ends differ in MTU does so with every packet larger than the peer's MTU.
    Away,
    /// Larger than the interface's MTU, which the kernel named (0: it did not).
    TooBig(u32),
    /// Not now: the socket's buffer is full, or errors of earlier datagrams keep coming.
    NotNow,
    /// The kernel will not send it: the error number.
    Blocked(i32),
}

/// What came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    /// A message with our tag: its datagram's length, and the largest fragment if it came in several.
    Message { message: Message, len: usize, fragment: Option<u32> },
    /// ICMP: a datagram of ours was too big for a link with this MTU (0: it did not say); its header if it was quoted.
    TooBig { quoted: Option<Message>, mtu: u32 },
    /// ICMP port unreachable.
    Gone,
    /// The peer still proves its address: the answer that says so was lost.
    Proof(u32),
}

impl<'a> Port<'a> {
    /// Prepares a connected socket; it does not block from now on.
    pub fn new(socket: &'a UdpSocket, tag: u32) -> io::Result<Self> {
        let peer = socket.peer_addr()?;
        let (v4, mapped) = match peer {
            SocketAddr::V4(_) => (true, false),
            SocketAddr::V6(v6) => (v6.ip().to_ipv4_mapped().is_some(), v6.ip().to_ipv4_mapped().is_some()),
        };
        socket.set_nonblocking(true)?;
        mtu::prepare(socket.as_fd(), mapped)?;
        // Several of the largest packets may wait; with less, the kernel's default has to do.
        let _ = udp::set_receive_buffer(socket.as_fd(), 4 << 20);
        let _ = udp::set_send_buffer(socket.as_fd(), 4 << 20);
        Ok(Self {
            socket,
            tag,
            overhead: if v4 { 28 } else { 48 },
            interface_mtu: interface_mtu(peer),
            incoming: vec![0; MAX_PAYLOAD as usize + 1].into(),
            outgoing: SplitMix64::padding(MAX_PAYLOAD as usize),
            pending: VecDeque::new(),
        })
    }

    /// The test's tag.
    pub fn tag(&self) -> u32 {
        self.tag
    }

    /// Bytes of IP and UDP header around each payload.
    pub fn overhead(&self) -> u32 {
        self.overhead
    }

    /// MTU of the interface that leads to the peer, bytes.
    pub fn interface_mtu(&self) -> Option<u32> {
        self.interface_mtu
    }

    /// Sends a message, padded to `len` bytes.
    pub fn send(&mut self, message: &Message, len: usize) -> Sent {
        let len = len.clamp(HEADER_LEN, self.outgoing.len());
        self.outgoing[..HEADER_LEN].copy_from_slice(&message.encode());
        let mut unexplained = false;
        for _ in 0..STALE {
            let Err(error) = self.socket.send(&self.outgoing[..len]) else { return Sent::Away };
            // The error may be this datagram's, or an ICMP error of an earlier one: the error queue shows which.
            let (local, stale) = self.read_errors();
            match error.raw_os_error() {
                Some(EMSGSIZE) if local.is_some() || unexplained => return Sent::TooBig(local.unwrap_or(0)),
                _ if stale => {}
                // Possibly an earlier datagram's whose queue entry found no room. Then the next attempt meets no error.
                Some(EMSGSIZE) => unexplained = true,
                Some(ENOBUFS) => return Sent::Away,
                Some(errno) if !is_passing(&error) => return Sent::Blocked(errno),
                _ => return Sent::NotNow,
            }
        }
        Sent::NotNow
    }

    /// Says that an address is proved, as the server's doorman would.
    pub fn welcome(&self, stream: u32) {
        let _ = self.socket.send(&hello::encode(stream, Step::Welcome));
    }

    /// What comes in next, `None` if nothing does until then.
    pub fn hear(&mut self, until_ns: u64) -> Option<Heard> {
        loop {
            if let Some(heard) = self.pending.pop_front() {
                return Some(heard);
            }
            self.read_errors();
            if !self.pending.is_empty() {
                continue;
            }
            match mtu::receive(self.socket.as_fd(), &mut self.incoming) {
                Ok(received) => {
                    if let Some(heard) = self.parse(received) {
                        return Some(heard);
                    }
                    if clock::monotonic_ns() >= until_ns {
                        return None;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let left_ns = until_ns.saturating_sub(clock::monotonic_ns());
                    if left_ns == 0 {
                        return None;
                    }
                    wait(self.socket.as_fd(), Readiness::Readable, left_ns.div_ceil(1_000_000) as u32).ok()?;
                }
                // The pending error of a queue entry that was read above, or is about to be.
                Err(_) if clock::monotonic_ns() >= until_ns => return None,
                Err(_) => {}
            }
        }
    }

    fn parse(&self, received: mtu::Received) -> Option<Heard> {
        let datagram = &self.incoming[..received.len];
        if received.len == HELLO_LEN
            && let Some((stream, Step::Proof(..))) = hello::decode(datagram)
        {
            return Some(Heard::Proof(stream));
        }
        let message = decode(datagram).filter(|message| message.tag == self.tag)?;
        Some(Heard::Message { message, len: received.len, fragment: received.fragment_bytes })
    }

    /// Empties the error queue. Returns the MTU of this host's own refusal, if there was one, and whether there were
    /// other errors.
    fn read_errors(&mut self) -> (Option<u32>, bool) {
        let _ = self.socket.take_error();
        let (mut local, mut others) = (None, false);
        let mut quote = [0; HEADER_LEN];
        while let Ok(Some(error)) = mtu::next_error(self.socket.as_fd(), &mut quote) {
            if error.local {
                if error.errno == EMSGSIZE {
                    local = Some(error.mtu_bytes);
                }
                continue;
            }
            others = true;
            let quoted = decode(&quote[..error.quoted]).filter(|message| message.tag == self.tag);
            if error.errno == EMSGSIZE {
                self.pending.push_back(Heard::TooBig { quoted, mtu: error.mtu_bytes });
            } else if io::Error::from_raw_os_error(error.errno).kind() == io::ErrorKind::ConnectionRefused {
                self.pending.push_back(Heard::Gone);
            }
        }
        (local, others)
    }
}

/// Whether the same send may well work in a moment.
fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock
            | io::ErrorKind::Interrupted
            | io::ErrorKind::OutOfMemory
            // A pending error of an earlier datagram whose queue entry found no room.
            | io::ErrorKind::ConnectionRefused
    )
}

fn interface_mtu(peer: SocketAddr) -> Option<u32> {
    let mut netlink = Netlink::open().ok()?;
    let out = netlink.route(peer).ok()?.out_ifindex;
    netlink.link(LinkId::Index(out)).ok().map(|link| link.mtu_bytes).filter(|&mtu| mtu > 0)
}
