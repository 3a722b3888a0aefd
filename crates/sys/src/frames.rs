//! Ethernet frames received from and sent to an interface, bypassing the protocol stack: a ring into which the
//! kernel writes single frames (`TPACKET_V2`, Documentation/networking/packet_mmap.rst), and batches of frames
//! sent without a queueing discipline. Needs `CAP_NET_RAW`.
//!
//! Unlike in [`crate::ring`], each frame can be read as soon as it arrives.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::filter::Instruction;
use crate::packet::{ETH_P_ALL, PACKET_IGNORE_OUTGOING, PacketSocket, Step, TP_STATUS_USER, vlan};
use crate::ring::RingError;

// linux/if_packet.h
const PACKET_QDISC_BYPASS: libc::c_int = 20;
const TPACKET_V2: libc::c_int = 1;
const TP_STATUS_CSUMNOTREADY: u32 = 1 << 3;
/// Size of `struct tpacket2_hdr`; the next constant is the offset of `sll_pkttype` in the following `struct
/// sockaddr_ll`.
const HEADER: usize = 32;
const PACKET_TYPE: usize = HEADER + 10;
const PACKET_OUTGOING: u8 = 4;
/// Maximum bytes of a slot before the frame: the header, `struct sockaddr_ll`, and alignment.
const SLOT_OVERHEAD: usize = 96;
const BLOCK: usize = 1 << 18;

/// Maximum number of frames per call of [`FrameRing::send`].
pub const SEND_BATCH: usize = 64;

/// A frame in the ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceivedFrame<'a> {
    /// Frame bytes from the Ethernet header on, without a VLAN tag stripped by the interface, truncated to the slot
    /// size.
    pub data: &'a [u8],
    /// Original length, bytes.
    pub original_bytes: u32,
    /// Kernel receive time, `CLOCK_REALTIME`, nanoseconds.
    pub timestamp_ns: u64,
    /// Whether the transport checksum is not filled in yet (checksum offload).
    pub checksum_missing: bool,
    /// VLAN tag stripped by the interface: protocol and tag, in network byte order.
    pub vlan: Option<[u8; 4]>,
    /// Whether the frame leaves by the interface; only in the ring of [`FrameRing::tap`].
    pub outgoing: bool,
}

/// Ring of an interface's frames.
pub struct FrameRing {
    socket: PacketSocket,
    block_bytes: usize,
    slot_bytes: usize,
    slots_per_block: usize,
    slots: usize,
    next: usize,
    ifindex: u32,
}

impl FrameRing {
    /// Opens a ring of about `ring_bytes` for frames of at most `frame_bytes`, in the network namespace of the
    /// calling thread. It receives nothing before [`FrameRing::start`].
    pub fn open(ifindex: u32, frame_bytes: usize, ring_bytes: usize) -> Result<Self, RingError> {
        let ring = Self::tap(ifindex, frame_bytes, ring_bytes)?;
        ring.socket.set(PACKET_IGNORE_OUTGOING, 1).step("leave out what goes out")?;
        ring.socket.set(PACKET_QDISC_BYPASS, 1).step("go past the queueing discipline")?;
        // As large as the limits allow: frames that the interface has not yet sent are charged to this buffer.
        let _ = ring.socket.socket().set_send_buffer_size(8 << 20);
        Ok(ring)
    }

    /// Opens a ring like [`FrameRing::open`] for frames that a classic BPF program accepts.
    pub fn filtered(
        ifindex: u32,
        frame_bytes: usize,
        ring_bytes: usize,
        filter: &[Instruction],
    ) -> Result<Self, RingError> {
        let ring = Self::open(ifindex, frame_bytes, ring_bytes)?;
        ring.socket.attach(filter).step("attach the filter")?;
        Ok(ring)
    }

    /// Opens a ring like [`FrameRing::open`] for the first `frame_bytes` of each frame, including outgoing ones.
    /// Those are captured after the interface's queueing discipline, incoming ones before its filters.
    pub fn tap(ifindex: u32, frame_bytes: usize, ring_bytes: usize) -> Result<Self, RingError> {
        let slot_bytes = (frame_bytes + SLOT_OVERHEAD).next_multiple_of(64);
        let block_bytes = BLOCK.max(slot_bytes.next_power_of_two());
        let slots_per_block = block_bytes / slot_bytes;
        let blocks = ring_bytes.div_ceil(block_bytes).max(1);
        let slots = blocks * slots_per_block;
        let mut socket = PacketSocket::open(TPACKET_V2, "ask for TPACKET_V2")?;
        // struct tpacket_req: block size, blocks, frame size, frames.
        let request = [block_bytes as u32, blocks as u32, slot_bytes as u32, slots as u32].map(u32::to_ne_bytes);
        socket.make_ring(request.as_flattened(), block_bytes * blocks)?;
        Ok(Self { socket, block_bytes, slot_bytes, slots_per_block, slots, next: 0, ifindex })
    }

    /// Starts receiving, including frames for other hosts.
    pub fn start(&self) -> Result<(), RingError> {
        self.socket.make_promiscuous(self.ifindex)?;
        self.socket.bind(self.ifindex, ETH_P_ALL, "bind to the interface")
    }

    fn slot(&self) -> *mut u8 {
        let (block, slot) = (self.next / self.slots_per_block, self.next % self.slots_per_block);
        // `next` is below the number of slots, so the whole slot is in the ring.
        self.socket.at(block * self.block_bytes + slot * self.slot_bytes)
    }

    fn status(&self) -> &AtomicU32 {
        // SAFETY: the status is the first word of the slot, aligned as slots are; the kernel and the reader both read and write it
        // as one word, and the mapping lives as long as self.
        unsafe { AtomicU32::from_ptr(self.slot().cast()) }
    }

    /// Returns the next frame, if any. It stays valid until [`FrameRing::release`].
    pub fn peek(&self) -> Option<ReceivedFrame<'_>> {
        let status = self.status().load(Ordering::Acquire);
        if status & TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: the kernel has given this slot out and writes no more to it until `release` gives it back, which takes `&mut
        // self` and so ends this borrow.
        let slot = unsafe { std::slice::from_raw_parts(self.slot(), self.slot_bytes) };
        let header: &[u8; HEADER] = slot.first_chunk()?;
        let word = |at: usize| u32::from_ne_bytes([0, 1, 2, 3].map(|i| header[at + i]));
        let half = |at: usize| u16::from_ne_bytes([header[at], header[at + 1]]);
        let mac = usize::from(half(12));
        Some(ReceivedFrame {
            data: slot.get(mac..)?.get(..word(8) as usize)?,
            original_bytes: word(4),
            timestamp_ns: u64::from(word(16)) * 1_000_000_000 + u64::from(word(20)),
            checksum_missing: status & TP_STATUS_CSUMNOTREADY != 0,
            vlan: vlan(status, half(26), half(24)),
            outgoing: slot.get(PACKET_TYPE) == Some(&PACKET_OUTGOING),
        })
    }

    /// Whether a frame is available.
    pub fn has_frame(&self) -> bool {
        self.status().load(Ordering::Relaxed) & TP_STATUS_USER != 0
    }

    /// Returns the slot of the next frame to the kernel.
    pub fn release(&mut self) {
        self.status().store(0, Ordering::Release);
        self.next = (self.next + 1) % self.slots;
    }

    /// Returns the frames dropped because the ring was full, since the last call.
    pub fn drops(&self) -> io::Result<u32> {
        let [_packets, drops] = self.socket.statistics()?;
        Ok(drops)
    }

    /// Returns the socket's pending error, if any: `ENETDOWN` if the interface is down or removed.
    pub fn take_error(&self) -> Option<io::Error> {
        self.socket.socket().take_error().unwrap_or_else(Some)
    }

    /// Sends at most the first [`SEND_BATCH`] of `frames`, complete Ethernet frames without FCS; returns how many
    /// were accepted, in order.
    ///
    /// # Errors
    /// That of the first frame: `ENOBUFS` or `EAGAIN` if the interface accepts none at the moment, `EMSGSIZE` if it
    /// exceeds the MTU, `ENETDOWN` or `ENXIO` if the interface is down or removed.
    pub fn send(&self, frames: &[&[u8]]) -> io::Result<usize> {
        let frames = &frames[..frames.len().min(SEND_BATCH)];
        let empty = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
        let mut vectors = [empty; SEND_BATCH];
        // SAFETY: mmsghdr is plain old data, all of whose members may be zero.
        let mut messages: [libc::mmsghdr; SEND_BATCH] = unsafe { std::mem::zeroed() };
        for ((frame, vector), message) in frames.iter().zip(&mut vectors).zip(&mut messages) {
            *vector = libc::iovec { iov_base: frame.as_ptr().cast_mut().cast(), iov_len: frame.len() };
            message.msg_hdr.msg_iov = vector;
            message.msg_hdr.msg_iovlen = 1;
        }
        // SAFETY: each message points at one vector, each vector at a frame borrowed for this call, which the kernel only reads.
        let sent = unsafe {
            libc::sendmmsg(
                self.socket.as_fd().as_raw_fd(),
                messages.as_mut_ptr(),
                frames.len() as libc::c_uint,
                libc::MSG_DONTWAIT as _,
            )
        };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(sent as usize) }
    }
}

impl AsFd for FrameRing {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Promiscuous mode on an interface, until this is dropped or the process ends.
#[derive(Debug)]
pub struct Promiscuous {
    _socket: PacketSocket,
}

impl Promiscuous {
    /// Makes the interface promiscuous; the socket receives no frames.
    pub fn make(ifindex: u32) -> Result<Self, RingError> {
        let socket = PacketSocket::open(TPACKET_V2, "ask for TPACKET_V2")?;
        socket.make_promiscuous(ifindex)?;
        Ok(Self { _socket: socket })
    }
}

#[cfg(test)]
mod tests {
    use landspeed_netlink::{LinkId, Netlink, configure::NewLink};

    use super::*;
    use crate::clock::realtime_ns;
    use crate::netns;

    /// Runs `work` with both ends of a veth link in a new namespace.
    fn with_pair(work: impl FnOnce(FrameRing, FrameRing) + Send) {
        let outcome = netns::run_in_new_namespace(|| -> Result<(), String> {
            let mut netlink = Netlink::open().map_err(|error| error.to_string())?;
            let (first, second) =
                (NewLink { name: "a", ..NewLink::default() }, NewLink { name: "b", ..NewLink::default() });
            netlink.add_veth(&first, &second).map_err(|error| error.to_string())?;
            let mut open = |name| {
                netns::bring_up(name).map_err(|error| error.to_string())?;
                let index = netlink.link(LinkId::Name(name)).map_err(|error| error.to_string())?.index;
                FrameRing::open(index, 1518, 1 << 20).map_err(|error| error.to_string())
            };
            let (a, b) = (open("a")?, open("b")?);
            a.start().and_then(|()| b.start()).map_err(|error| error.to_string())?;
            work(a, b);
            Ok(())
        });
        if let Err(why) = outcome.map_err(|error| error.to_string()).and_then(|inner| inner) {
            landspeed_testkit::skip!("no packet rings here: {why}");
        }
    }

    #[test]
    fn frames_arrive_complete_in_order_and_timestamped() {
        with_pair(|a, mut b| {
            let before_ns = realtime_ns();
            // More frames than the ring has slots, in rounds.
            for round in 0..100_u8 {
                let frames: Vec<Vec<u8>> = (0..SEND_BATCH)
                    .map(|i| {
                        let mut frame = vec![round; 60 + 20 * i];
                        frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5]);
                        frame[14] = i as u8;
                        frame
                    })
                    .collect();
                let slices: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
                assert_eq!(a.send(&slices).expect("sent"), SEND_BATCH);
                for frame in &frames {
                    // Skip frames that the kernel itself sends on a new link.
                    while b.peek().is_some_and(|found| found.data[12..14] != [0x88, 0xb5]) {
                        b.release();
                    }
                    let found = b.peek().expect("a frame");
                    assert_eq!((found.data, found.original_bytes as usize), (&frame[..], frame.len()));
                    assert!((before_ns..=realtime_ns()).contains(&found.timestamp_ns));
                    assert!(!found.checksum_missing && found.vlan.is_none());
                    b.release();
                }
            }
            assert!(!a.has_frame() || a.peek().is_some_and(|frame| frame.data[12..14] != [0x88, 0xb5]));
            assert_eq!(b.drops().expect("counted"), 0);
        });
    }

    #[test]
    fn frames_dropped_by_a_full_ring_are_counted() {
        with_pair(|a, b| {
            let frame = [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5][..], &[0; 1000]].concat();
            for _ in 0..100 {
                assert_eq!(a.send(&vec![&frame[..]; SEND_BATCH]).expect("sent"), SEND_BATCH);
            }
            let slots = b.slots as u32;
            let dropped = b.drops().expect("counted");
            assert!(dropped >= 6400 - slots && dropped <= 6400, "{dropped} of 6400 with {slots} slots");
            assert_eq!(b.drops().expect("counted"), 0, "since the last call");
        });
    }
}
