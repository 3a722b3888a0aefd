//! A memory-mapped receive ring, from which packets are read without a system call for each (`TPACKET_V3`,
//! Documentation/networking/packet_mmap.rst). Needs `CAP_NET_RAW`.
//!
//! The ring consists of blocks. The kernel fills a block and passes it to the reader when it is full or its
//! timeout expires; the reader returns it. The reader must poll; completed blocks wake no process.
//!
//! Outgoing packets are captured after the queueing disciplines, incoming ones before the protocols.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::clock::{monotonic_ns, sleep_until};
use crate::filter::Instruction;
use crate::interface::{control_socket, interface_request};
use crate::packet::{ETH_P_ALL, PACKET_IGNORE_OUTGOING, PacketSocket, Step, TP_STATUS_USER, vlan};

// linux/if_packet.h
const PACKET_TIMESTAMP: libc::c_int = 17;
const PACKET_FANOUT: libc::c_int = 18;
const TPACKET_V3: libc::c_int = 2;
const TP_STATUS_TS_RAW_HARDWARE: u32 = 1 << 31;
const PACKET_FANOUT_CPU: libc::c_int = 2;
// linux/net_tstamp.h, linux/sockios.h
const SOF_TIMESTAMPING_RAW_HARDWARE: libc::c_int = 1 << 6;
const HWTSTAMP_FILTER_ALL: i32 = 1;
const SIOCSHWTSTAMP: libc::c_ulong = 0x89b0;
/// Reserved (RFC 1701), so no frame has it. Zero would select the protocol that the socket already has.
const NO_PROTOCOL: u16 = 0xffff;

/// Size of `struct tpacket_block_desc` with its header.
const BLOCK_HEADER: usize = 48;
/// Size of `struct tpacket3_hdr`, aligned; `sockaddr_ll` follows.
const PACKET_HEADER: usize = 48;
const ADDRESS_BYTES: usize = 20;
/// Frame length declared to the kernel; frames in a block may be longer or shorter.
const NOMINAL_FRAME: u32 = 2048;

/// Maximum time that [`Ring::finish`] waits for the last block, nanoseconds.
const LAST_BLOCK_TIMEOUT_NS: u64 = 5_000_000_000;

/// Options for opening a ring.
#[derive(Debug, Clone, Copy, Default)]
pub struct RingOptions<'a> {
    /// Interface index in the network namespace of the caller.
    pub ifindex: u32,
    /// Block size, bytes: a power of two, at least a page.
    pub block_bytes: u32,
    /// Number of blocks.
    pub blocks: u32,
    /// Timeout after which a block is passed to the reader even if it is not full, milliseconds.
    pub retire_ms: u32,
    /// Classic BPF filter: selects packets and the number of bytes to keep.
    pub filter: &'a [Instruction],
    /// Whether outgoing packets are ignored (Linux 4.20 and later).
    pub ignore_outgoing: bool,
    /// Whether the interface is put into promiscuous mode.
    pub promiscuous: bool,
    /// Whether hardware timestamps are requested.
    pub hardware_time: bool,
    /// Fanout group: packets are distributed over its rings by CPU.
    pub group: Option<u16>,
}

/// Direction or destination of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketKind {
    /// To this host.
    ThisHost,
    /// Broadcast.
    Broadcast,
    /// Multicast.
    Multicast,
    /// To another host (promiscuous mode).
    OtherHost,
    /// Sent by this host.
    Out,
}

/// A packet in a block of the ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingPacket<'a> {
    /// Packet bytes from the link-layer header on, truncated by the filter.
    pub data: &'a [u8],
    /// Original length, bytes.
    pub original_bytes: u32,
    /// Capture time, nanoseconds: the kernel's `CLOCK_REALTIME`, or the interface's clock.
    pub timestamp_ns: u64,
    /// Whether the timestamp is from the interface's clock (hardware timestamp).
    pub hardware_time: bool,
    /// Direction or destination.
    pub kind: PacketKind,
    /// VLAN tag stripped from the frame: protocol and tag, in network byte order.
    pub vlan: Option<[u8; 4]>,
}

/// Counters since they were last read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RingStatistics {
    /// Packets accepted by the filter, including dropped ones.
    pub packets: u32,
    /// Packets dropped because the ring was full.
    pub drops: u32,
    /// Number of times all blocks were full.
    pub freezes: u32,
}

/// Error while setting up a ring.
#[derive(Debug, thiserror::Error)]
#[error("{step}: {cause}")]
pub struct RingError {
    /// Operation that failed.
    pub step: &'static str,
    /// Error of the system call.
    #[source]
    pub cause: io::Error,
}

/// A block owned by the reader.
#[derive(Debug, Clone, Copy)]
pub struct Block<'a> {
    bytes: &'a [u8],
    packets: u32,
    first: usize,
}

impl<'a> Block<'a> {
    /// Returns the number of packets in the block.
    pub fn packets(&self) -> u32 {
        self.packets
    }

    /// Returns the offset of the first packet.
    pub fn first(&self) -> usize {
        self.first
    }

    /// Returns the packet at an offset and the offset of the next one; `None` if it is incomplete.
    pub fn packet(&self, at: usize) -> Option<(RingPacket<'a>, usize)> {
        let header: &[u8; PACKET_HEADER + ADDRESS_BYTES] = self.bytes.get(at..)?.first_chunk()?;
        let word = |offset: usize| u32::from_ne_bytes([0, 1, 2, 3].map(|i| header[offset + i]));
        let half = |offset: usize| u16::from_ne_bytes([header[offset], header[offset + 1]]);
        let (status, mac) = (word(20), usize::from(half(24)));
        let data = self.bytes.get(at + mac..)?.get(..word(12) as usize)?;
        let packet = RingPacket {
            data,
            original_bytes: word(16),
            timestamp_ns: u64::from(word(4)) * 1_000_000_000 + u64::from(word(8)),
            hardware_time: status & TP_STATUS_TS_RAW_HARDWARE != 0,
            kind: match header[PACKET_HEADER + 10] {
                libc::PACKET_HOST => PacketKind::ThisHost,
                libc::PACKET_BROADCAST => PacketKind::Broadcast,
                libc::PACKET_MULTICAST => PacketKind::Multicast,
                libc::PACKET_OUTGOING => PacketKind::Out,
                _ => PacketKind::OtherHost,
            },
            vlan: vlan(status, half(36), word(32) as u16),
        };
        Some((packet, at + word(0) as usize))
    }
}

/// A receive ring. It receives nothing before [`Ring::start`].
pub struct Ring {
    socket: PacketSocket,
    block_bytes: usize,
    blocks: usize,
    next: usize,
    ifindex: u32,
    group: Option<u16>,
    filter: Vec<Instruction>,
    packets_read: u32,
}

impl Ring {
    /// Opens a ring in the network namespace of the calling thread.
    ///
    /// # Panics
    /// If the block size is not a power of two of at least a page, or the number of blocks is zero.
    pub fn open(options: &RingOptions<'_>) -> Result<Self, RingError> {
        assert!(options.block_bytes.is_power_of_two() && options.block_bytes >= 4096 && options.blocks > 0);
        let mut socket = PacketSocket::open(TPACKET_V3, "ask for TPACKET_V3")?;
        if options.ignore_outgoing {
            socket.set(PACKET_IGNORE_OUTGOING, 1).step("leave out what goes out")?;
        }
        if options.hardware_time {
            // Each packet indicates which clock its timestamp is from.
            let _ = socket.set(PACKET_TIMESTAMP, SOF_TIMESTAMPING_RAW_HARDWARE);
        }
        // struct tpacket_req3: block size, blocks, frame size, frames, retire_blk_tov, sizeof_priv, feature_req_word.
        let frames = options.block_bytes / NOMINAL_FRAME.min(options.block_bytes) * options.blocks;
        let request = [options.block_bytes, options.blocks, NOMINAL_FRAME, frames, options.retire_ms, 0, 0]
            .map(u32::to_ne_bytes);
        socket.make_ring(request.as_flattened(), options.block_bytes as usize * options.blocks as usize)?;
        if options.promiscuous {
            socket.make_promiscuous(options.ifindex)?;
        }
        Ok(Self {
            socket,
            block_bytes: options.block_bytes as usize,
            blocks: options.blocks as usize,
            next: 0,
            ifindex: options.ifindex,
            group: options.group,
            filter: options.filter.to_vec(),
            packets_read: 0,
        })
    }

    /// Starts or resumes receiving.
    pub fn start(&mut self) -> Result<(), RingError> {
        // Before it joins the group, it would also receive packets of the group's other rings.
        let first = if self.group.is_some() { &[Instruction::pass(0)][..] } else { &self.filter };
        self.socket.attach(first).step("attach the filter")?;
        self.socket.bind(self.ifindex, ETH_P_ALL, "bind to the interface")?;
        if let Some(group) = self.group {
            self.socket
                .set(PACKET_FANOUT, i32::from(group) | PACKET_FANOUT_CPU << 16)
                .step("share between rings (fanout)")?;
            self.socket.attach(&self.filter).step("attach the filter")?;
        }
        Ok(())
    }

    /// Stops receiving; packets in the ring can still be read. Packets being written at this moment are still added.
    pub fn stop(&mut self) -> Result<(), RingError> {
        self.socket.attach(&[Instruction::pass(0)]).step("stop taking packets")
    }

    /// Replaces the filter while receiving; no packet is captured twice or unfiltered.
    pub fn replace_filter(&mut self, filter: &[Instruction]) -> Result<(), RingError> {
        self.socket.attach(filter).step("attach the filter")?;
        self.filter = filter.to_vec();
        Ok(())
    }

    /// Detaches the ring from the interface, so that packets no longer reach its filter; [`Ring::start`] resumes.
    /// Not for rings in a fanout group.
    pub fn detach(&mut self) -> Result<(), RingError> {
        self.socket.bind(self.ifindex, NO_PROTOCOL, "detach from the interface")
    }

    fn header(&self, index: usize) -> *mut u8 {
        self.socket.at(index % self.blocks * self.block_bytes)
    }

    fn status(&self, index: usize) -> &AtomicU32 {
        // SAFETY: the status is at byte 8 of the header, four bytes, aligned as blocks are; the kernel and the reader both
        // read and write it as one word, and the mapping lives as long as self.
        unsafe { AtomicU32::from_ptr(self.header(index).add(8).cast()) }
    }

    /// Returns the block `ahead` positions after the next one, if the reader owns it.
    pub fn block(&self, ahead: usize) -> Option<Block<'_>> {
        let index = self.next + ahead;
        if ahead >= self.blocks || self.status(index).load(Ordering::Acquire) & TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: the kernel has given this block out and writes no more to it until `release` gives it back, which takes
        // `&mut self` and so ends this borrow. The range is one block of the mapping.
        let bytes = unsafe { std::slice::from_raw_parts(self.header(index), self.block_bytes) };
        let word = |offset: usize| u32::from_ne_bytes([0, 1, 2, 3].map(|i| bytes[offset + i]));
        Some(Block { bytes, packets: word(12), first: (word(16) as usize).max(BLOCK_HEADER) })
    }

    /// Returns the next block to the kernel.
    pub fn release(&mut self) {
        self.status(self.next).store(0, Ordering::Release);
        self.next = (self.next + 1) % self.blocks;
    }

    /// Reads all blocks owned by the reader and returns them to the kernel.
    pub fn drain(&mut self, mut each: impl FnMut(&RingPacket<'_>)) {
        while let Some(block) = self.block(0) {
            let packets = block.packets();
            let mut at = block.first();
            for _ in 0..packets {
                let Some((packet, next)) = block.packet(at) else { break };
                each(&packet);
                at = next;
            }
            self.release();
            self.packets_read += packets;
        }
    }

    /// Stops, and reads the remaining packets: a block that is not full arrives late. Returns the counters since the
    /// ring was opened. Do not use it after [`Ring::statistics`], which resets the counters.
    pub fn finish(&mut self, mut each: impl FnMut(&RingPacket<'_>)) -> Result<RingStatistics, RingError> {
        self.stop()?;
        let mut counted = RingStatistics::default();
        let deadline_ns = monotonic_ns() + LAST_BLOCK_TIMEOUT_NS;
        loop {
            self.drain(&mut each);
            let more = self.statistics().step("count packets")?;
            counted.packets += more.packets;
            counted.drops += more.drops;
            counted.freezes += more.freezes;
            if self.packets_read + counted.drops >= counted.packets || monotonic_ns() > deadline_ns {
                return Ok(counted);
            }
            sleep_until(monotonic_ns() + 1_000_000);
        }
    }

    /// Returns the number of blocks to be read, and the total number.
    pub fn fill(&self) -> (usize, usize) {
        let waiting = (0..self.blocks)
            .take_while(|ahead| self.status(self.next + ahead).load(Ordering::Relaxed) & TP_STATUS_USER != 0)
            .count();
        (waiting, self.blocks)
    }

    /// Returns the counters since the last call.
    pub fn statistics(&self) -> io::Result<RingStatistics> {
        let [packets, drops, freezes] = self.socket.statistics()?;
        Ok(RingStatistics { packets, drops, freezes })
    }

    /// Returns the socket's pending error, if any: the interface is down or removed.
    pub fn failure(&self) -> Option<io::Error> {
        self.socket.socket().take_error().ok().flatten()
    }
}

impl AsFd for Ring {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Enables hardware timestamping of all received packets on an interface (`SIOCSHWTSTAMP`). Needs
/// `CAP_NET_ADMIN`.
pub fn enable_hardware_time(interface: &str) -> io::Result<()> {
    let socket = control_socket()?;
    let mut request = interface_request(interface)?;
    // struct hwtstamp_config: flags, tx_type (off), rx_filter.
    let mut config = [0_i32, 0, HWTSTAMP_FILTER_ALL];
    request.ifr_ifru.ifru_data = config.as_mut_ptr().cast();
    // SAFETY: `request` is a whole ifreq with a terminated name; the driver reads and writes three integers where its pointer
    // says, which is what `config` is.
    match unsafe { libc::ioctl(socket.as_raw_fd(), SIOCSHWTSTAMP as _, &raw mut request) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;
    use crate::clock::realtime_ns;
    use crate::netns;
    use landspeed_netlink::{LinkId, Netlink};

    fn ring(filter: &[Instruction], blocks: u32) -> Result<Ring, RingError> {
        let lo = Netlink::open().and_then(|mut n| n.link(LinkId::Name("lo"))).expect("lo").index;
        let mut ring = Ring::open(&RingOptions {
            ifindex: lo,
            block_bytes: 1 << 16,
            blocks,
            retire_ms: 10,
            filter,
            ..RingOptions::default()
        })?;
        ring.start()?;
        Ok(ring)
    }

    fn skip_without(outcome: io::Result<Result<(), RingError>>) {
        let outcome = outcome.and_then(|inner| inner.map_err(|error| error.cause));
        if let Err(why) = outcome {
            landspeed_testkit::skip!("no capture here: {why}");
        }
    }

    #[test]
    fn every_packet_is_read_or_counted_as_dropped() {
        skip_without(netns::run_in_new_namespace(|| {
            for (blocks, count) in [(64, 300_u32), (1, 3000)] {
                let mut ring = ring(&[Instruction::pass(60)], blocks)?;
                let before_ns = realtime_ns();
                let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
                for _ in 0..count {
                    let _ = socket.send_to(&[0xa5; 1000], "127.0.0.1:9");
                }
                let mut last_ns = before_ns;
                let mut read = 0;
                let counted = ring.finish(|packet| {
                    read += 1;
                    assert!(packet.data.len() <= 60 && packet.original_bytes >= 42);
                    assert!((before_ns..=realtime_ns()).contains(&packet.timestamp_ns));
                    assert!(!packet.hardware_time && packet.vlan.is_none());
                    last_ns = packet.timestamp_ns;
                })?;
                assert_eq!(read + counted.drops, counted.packets);
                // Each datagram is captured outgoing and incoming; ICMP port unreachable is added.
                assert!(counted.packets >= 2 * count, "{counted:?}");
                assert_eq!(blocks == 1, counted.drops > 0, "{counted:?}");
            }
            Ok(())
        }));
    }

    #[test]
    fn filters_select_packets_and_unhook_stops_capture() {
        skip_without(netns::run_in_new_namespace(|| {
            // Ethernet, IPv4 without options, UDP to port 9.
            let instruction = |code, jf, k| Instruction { code, jt: 0, jf, k };
            let program = [
                instruction(0x30, 0, 23),
                instruction(0x15, 3, 17),
                instruction(0x28, 0, 36),
                instruction(0x15, 1, 9),
                Instruction::pass(42),
                Instruction::pass(0),
            ];
            let mut ring = ring(&program, 8)?;
            let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
            let send = |port: u16| socket.send_to(&[1; 10], ("127.0.0.1", port)).map(drop);
            let _ = send(9);
            let _ = send(10);
            ring.detach()?;
            let _ = send(9);
            ring.start()?;
            let _ = send(9);
            let mut kinds = Vec::new();
            ring.finish(|packet| {
                assert_eq!((packet.data.len(), packet.original_bytes), (42, 52));
                kinds.push(packet.kind);
            })?;
            // Two datagrams, each captured outgoing and incoming.
            assert_eq!(kinds, [PacketKind::Out, PacketKind::ThisHost, PacketKind::Out, PacketKind::ThisHost]);
            Ok(())
        }));
    }
}
