//! UDP socket of one side: sends messages, receives messages and errors.

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

/// `EMSGSIZE`; `std::io::ErrorKind` has no variant for it.
const EMSGSIZE: i32 = 90;
const ENOBUFS: i32 = 105;
/// Number of pending errors of earlier datagrams tolerated by one send.
const MAX_PENDING_ERRORS: usize = 8;

/// A connected UDP socket prepared for probes.
pub struct Port<'a> {
    socket: &'a UdpSocket,
    tag: u32,
    /// Bytes of IP and UDP header around each payload.
    overhead: u32,
    interface_mtu: Option<u32>,
    incoming: Box<[u8]>,
    /// Incompressible padding; the header is written over its start.
    outgoing: Box<[u8]>,
    /// Errors read from the error queue while sending.
    pending: VecDeque<PortEvent>,
}

/// Result of a send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendResult {
    /// Accepted by the kernel, or dropped in a queue below (`ENOBUFS`), which counts as loss: a veth pair with
    /// different MTUs drops every packet larger than the peer's MTU in this way.
    Queued,
    /// Larger than the interface's MTU as reported by the kernel (0: not reported).
    TooBig(u32),
    /// Temporary failure: the send buffer is full, or errors of earlier datagrams are pending.
    Retry,
    /// Refused by the kernel, with the error number.
    Blocked(i32),
}

/// Message or error received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PortEvent {
    /// Message with the test's tag: length of its datagram, and the largest fragment if it was fragmented.
    Message { message: Message, len: usize, fragment: Option<u32> },
    /// ICMP "too big" for a datagram of this socket: its header if quoted, and the MTU of the link (0: not
    /// reported).
    TooBig { quoted: Option<Message>, mtu: u32 },
    /// ICMP port unreachable.
    PortUnreachable,
    /// Retransmitted address proof of the peer: the welcome was lost.
    Proof(u32),
}

impl<'a> Port<'a> {
    /// Prepares a connected socket; makes it non-blocking.
    pub fn new(socket: &'a UdpSocket, tag: u32) -> io::Result<Self> {
        let peer = socket.peer_addr()?;
        let (v4, mapped) = match peer {
            SocketAddr::V4(_) => (true, false),
            SocketAddr::V6(v6) => (v6.ip().to_ipv4_mapped().is_some(), v6.ip().to_ipv4_mapped().is_some()),
        };
        socket.set_nonblocking(true)?;
        mtu::prepare(socket.as_fd(), mapped)?;
        // Buffers for several of the largest packets; on failure the kernel's defaults are used.
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

    /// Returns the test's tag.
    pub fn tag(&self) -> u32 {
        self.tag
    }

    /// Returns the bytes of IP and UDP header around each payload.
    pub fn overhead(&self) -> u32 {
        self.overhead
    }

    /// Returns the MTU of the interface that leads to the peer, bytes.
    pub fn interface_mtu(&self) -> Option<u32> {
        self.interface_mtu
    }

    /// Sends a message, padded to `len` bytes.
    pub fn send(&mut self, message: &Message, len: usize) -> SendResult {
        let len = len.clamp(HEADER_LEN, self.outgoing.len());
        self.outgoing[..HEADER_LEN].copy_from_slice(&message.encode());
        let mut unexplained = false;
        for _ in 0..MAX_PENDING_ERRORS {
            let Err(error) = self.socket.send(&self.outgoing[..len]) else { return SendResult::Queued };
            // The error belongs to this datagram, or to an earlier one (ICMP): the error queue tells which.
            let (local, stale) = self.read_errors();
            match error.raw_os_error() {
                Some(EMSGSIZE) if local.is_some() || unexplained => return SendResult::TooBig(local.unwrap_or(0)),
                _ if stale => {}
                // Possibly from an earlier datagram whose error queue entry was dropped. Then the next
                // attempt has no error.
                Some(EMSGSIZE) => unexplained = true,
                Some(ENOBUFS) => return SendResult::Queued,
                Some(errno) if !is_temporary(&error) => return SendResult::Blocked(errno),
                _ => return SendResult::Retry,
            }
        }
        SendResult::Retry
    }

    /// Retransmits the welcome that confirms a validated address.
    pub fn welcome(&self, stream: u32) {
        let _ = self.socket.send(&hello::encode(stream, Step::Welcome));
    }

    /// Returns the next message or error, or `None` if there is none until `until_ns`.
    pub fn receive_event(&mut self, until_ns: u64) -> Option<PortEvent> {
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
                // Pending socket error whose error queue entry was already read, or will be read next.
                Err(_) if clock::monotonic_ns() >= until_ns => return None,
                Err(_) => {}
            }
        }
    }

    fn parse(&self, received: mtu::Received) -> Option<PortEvent> {
        let datagram = &self.incoming[..received.len];
        if received.len == HELLO_LEN
            && let Some((stream, Step::Proof(..))) = hello::decode(datagram)
        {
            return Some(PortEvent::Proof(stream));
        }
        let message = decode(datagram).filter(|message| message.tag == self.tag)?;
        Some(PortEvent::Message { message, len: received.len, fragment: received.fragment_bytes })
    }

    /// Empties the error queue. Returns the MTU of a local `EMSGSIZE`, if any, and whether there were remote
    /// errors.
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
                self.pending.push_back(PortEvent::TooBig { quoted, mtu: error.mtu_bytes });
            } else if io::Error::from_raw_os_error(error.errno).kind() == io::ErrorKind::ConnectionRefused {
                self.pending.push_back(PortEvent::PortUnreachable);
            }
        }
        (local, others)
    }
}

/// Whether the error is temporary.
fn is_temporary(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock
            | io::ErrorKind::Interrupted
            | io::ErrorKind::OutOfMemory
            // Pending error of an earlier datagram whose error queue entry was dropped.
            | io::ErrorKind::ConnectionRefused
    )
}

fn interface_mtu(peer: SocketAddr) -> Option<u32> {
    let mut netlink = Netlink::open().ok()?;
    let out = netlink.route(peer).ok()?.out_ifindex;
    netlink.link(LinkId::Index(out)).ok().map(|link| link.mtu_bytes).filter(|&mtu| mtu > 0)
}
