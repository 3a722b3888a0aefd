//! Capturing packets of an interface with the kernel's time (`packet(7)`).
//!
//! On the way out a packet is seen after the queueing disciplines, on the way in before the protocols. Needs
//! `CAP_NET_RAW`.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::clock::realtime_ns;
use crate::socket::set_int;

// linux/if_packet.h
const PACKET_STATISTICS: libc::c_int = 6;
pub(crate) const ETH_P_ALL: u16 = 3;

/// Which way a packet went, seen from the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketDirection {
    /// Came in.
    In,
    /// Went out.
    Out,
}

/// One captured packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    /// The packet from its link-layer header on, cut to the capture's length.
    pub data: &'a [u8],
    /// Length it had, bytes; that of a super-packet as a whole.
    pub original_bytes: usize,
    /// When the kernel saw it, `CLOCK_REALTIME` nanoseconds.
    pub timestamp_ns: u64,
    /// Which way.
    pub direction: PacketDirection,
}

/// Counts since they were last asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CaptureStatistics {
    /// Packets seen, those dropped included.
    pub packets: u32,
    /// Packets that found the receive buffer full.
    pub drops: u32,
}

/// Room for a timestamp.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct Control([u8; 64]);

/// A capture of one interface, in the network namespace its creator was in.
pub struct Capture {
    socket: Socket,
    snap_bytes: usize,
    buffer: Vec<u8>,
    iovecs: Vec<libc::iovec>,
    messages: Vec<libc::mmsghdr>,
    addresses: Vec<libc::sockaddr_ll>,
    controls: Vec<Control>,
    received: usize,
}

/// The buffers hold pointers to each other and to nothing else.
// SAFETY: every raw pointer in `iovecs` and `messages` is written by `prepare` before each use and points into vectors
// that the same value owns, so moving the value to another thread moves all of it.
unsafe impl Send for Capture {}

impl Capture {
    /// Begins to capture everything on `ifindex`, of each packet the first `snap_bytes`, up to `batch` packets a call.
    /// `receive_buffer_bytes` is the kernel's memory for what was not taken yet (each packet costs its memory, not its
    /// length); past `net.core.rmem_max` that needs `CAP_NET_ADMIN`.
    ///
    /// # Panics
    /// If `snap_bytes` or `batch` is zero.
    pub fn open(ifindex: u32, snap_bytes: usize, batch: usize, receive_buffer_bytes: u32) -> io::Result<Self> {
        assert!(snap_bytes > 0 && batch > 0, "an empty batch captures nothing");
        // Without a protocol it receives nothing yet: only packets of the bound interface must arrive.
        let socket = Socket::new(Domain::PACKET, Type::RAW.cloexec(), Some(Protocol::from(0)))?;
        let size = i32::try_from(receive_buffer_bytes / 2).unwrap_or(i32::MAX);
        set_int(socket.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, size)
            .or_else(|_| set_int(socket.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, size))?;
        set_int(socket.as_fd(), libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
        socket.bind(&link_address(ifindex, ETH_P_ALL)?)?;
        // SAFETY: iovec, mmsghdr and sockaddr_ll are plain C structures for which all zeros is a valid value.
        let (iovec, message, address) = unsafe { (std::mem::zeroed(), std::mem::zeroed(), std::mem::zeroed()) };
        Ok(Self {
            socket,
            snap_bytes,
            buffer: vec![0; snap_bytes * batch],
            iovecs: vec![iovec; batch],
            messages: vec![message; batch],
            addresses: vec![address; batch],
            controls: vec![Control([0; 64]); batch],
            received: 0,
        })
    }

    /// Takes what is there, without waiting; returns how many packets, 0 for none. [`Capture::packet`] reads them. What
    /// waits longer than the call takes comes with the next.
    pub fn receive(&mut self) -> io::Result<usize> {
        self.received = 0;
        self.prepare();
        // SAFETY: `prepare` has pointed every header at an iovec, a buffer range, an address and control space that self
        // owns and that do not overlap; the kernel writes within the lengths given there.
        let received = unsafe {
            libc::recvmmsg(
                self.socket.as_raw_fd(),
                self.messages.as_mut_ptr(),
                self.messages.len() as u32,
                // The type of this argument differs between C libraries.
                (libc::MSG_DONTWAIT | libc::MSG_TRUNC) as _,
                std::ptr::null_mut(),
            )
        };
        if received < 0 {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(0),
                _ => Err(error),
            };
        }
        self.received = received as usize;
        Ok(self.received)
    }

    fn prepare(&mut self) {
        for (i, chunk) in self.buffer.chunks_exact_mut(self.snap_bytes).enumerate() {
            self.iovecs[i] = libc::iovec { iov_base: chunk.as_mut_ptr().cast(), iov_len: chunk.len() };
            let header = &mut self.messages[i].msg_hdr;
            header.msg_name = (&raw mut self.addresses[i]).cast();
            header.msg_namelen = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
            header.msg_iov = &raw mut self.iovecs[i];
            header.msg_iovlen = 1;
            header.msg_control = self.controls[i].0.as_mut_ptr().cast();
            header.msg_controllen = size_of::<Control>() as _;
            header.msg_flags = 0;
        }
    }

    /// Packet number `index` of the last call.
    ///
    /// # Panics
    /// If fewer were received.
    pub fn packet(&self, index: usize) -> Packet<'_> {
        assert!(index < self.received, "packet {index} of {}", self.received);
        let header = &self.messages[index];
        let original_bytes = header.msg_len as usize;
        let start = index * self.snap_bytes;
        let outgoing = self.addresses[index].sll_pkttype == libc::PACKET_OUTGOING;
        Packet {
            data: &self.buffer[start..start + original_bytes.min(self.snap_bytes)],
            original_bytes,
            // A packet without a time has only just come.
            timestamp_ns: timestamp_ns(&header.msg_hdr).unwrap_or_else(realtime_ns),
            direction: if outgoing { PacketDirection::Out } else { PacketDirection::In },
        }
    }

    /// Packets and drops since the last time this was asked.
    pub fn statistics(&self) -> io::Result<CaptureStatistics> {
        // struct tpacket_stats: packets, drops.
        let counts: [u32; 2] = read_statistics(&self.socket)?;
        Ok(CaptureStatistics { packets: counts[0], drops: counts[1] })
    }
}

impl AsFd for Capture {
    /// To wait for packets with.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The words of `PACKET_STATISTICS` (`struct tpacket_stats`, or `tpacket_stats_v3` of a ring), which reading resets.
pub(crate) fn read_statistics<const WORDS: usize>(socket: &Socket) -> io::Result<[u32; WORDS]> {
    let mut counts = [0_u32; WORDS];
    let mut length = size_of_val(&counts) as libc::socklen_t;
    // SAFETY: `counts` is as long as `length` says, and both are valid for writing.
    let rc = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            PACKET_STATISTICS,
            counts.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if rc == 0 { Ok(counts) } else { Err(io::Error::last_os_error()) }
}

/// A protocol's packets on one interface.
pub(crate) fn link_address(ifindex: u32, protocol: u16) -> io::Result<SockAddr> {
    // SAFETY: the storage is zeroed and at least as large and as aligned as sockaddr_ll, all of whose bytes may be zero;
    // the length given is that of sockaddr_ll.
    let ((), address) = unsafe {
        SockAddr::try_init(|storage, length| {
            let address = storage.cast::<libc::sockaddr_ll>();
            (*address).sll_family = libc::AF_PACKET as libc::sa_family_t;
            (*address).sll_protocol = protocol.to_be();
            (*address).sll_ifindex = ifindex as i32;
            *length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
            Ok(())
        })
    }?;
    Ok(address)
}

/// The time among the control messages of `header`, which `recvmmsg` has filled.
fn timestamp_ns(header: &libc::msghdr) -> Option<u64> {
    // SAFETY: `header` is as the kernel left it: its control pointer and length describe well-formed control messages
    // in a `Control` that outlives this call, which is all that the CMSG macros ask for. The payload is read unaligned
    // and only where the message is long enough for it.
    unsafe {
        let mut control = libc::CMSG_FIRSTHDR(header);
        while !control.is_null() {
            let length = ((*control).cmsg_len as usize).saturating_sub(libc::CMSG_LEN(0) as usize);
            if ((*control).cmsg_level, (*control).cmsg_type) == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS)
                && length >= size_of::<libc::timespec>()
            {
                let time = libc::CMSG_DATA(control).cast::<libc::timespec>().read_unaligned();
                return Some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64);
            }
            control = libc::CMSG_NXTHDR(header, control);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;
    use crate::netns;
    use landspeed_netlink::{LinkId, Netlink};

    #[test]
    fn packets_are_captured_in_both_directions() {
        let outcome = netns::in_new(|| -> io::Result<()> {
            let lo = Netlink::open().and_then(|mut n| n.link(LinkId::Name("lo"))).expect("lo").index;
            let mut capture = Capture::open(lo, 64, 8, 1 << 20)?;
            assert_eq!(capture.receive()?, 0, "nothing yet, and no waiting");
            let before_ns = realtime_ns();
            let socket = UdpSocket::bind("127.0.0.1:0")?;
            socket.send_to(&[0xa5; 1000], "127.0.0.1:9")?;
            let count = capture.receive()?;
            assert!(count >= 2, "{count} packets");
            let (out, back) = (capture.packet(0), capture.packet(1));
            assert_eq!((out.direction, back.direction), (PacketDirection::Out, PacketDirection::In));
            assert_eq!((out.original_bytes, out.data.len()), (14 + 20 + 8 + 1000, 64));
            assert_eq!(out.data, back.data);
            assert!(out.data[42..].iter().all(|&byte| byte == 0xa5));
            assert!((before_ns..=realtime_ns()).contains(&out.timestamp_ns));
            assert!(out.timestamp_ns <= back.timestamp_ns);
            let counted = capture.statistics()?;
            assert_eq!((counted.packets, counted.drops), (count as u32, 0));
            Ok(())
        });
        if let Err(why) = outcome.and_then(|inner| inner) {
            landspeed_testkit::skip!("no capture here: {why}");
        }
    }

    #[test]
    fn drops_at_a_full_buffer_are_counted() {
        let outcome = netns::in_new(|| -> io::Result<()> {
            let lo = Netlink::open().and_then(|mut n| n.link(LinkId::Name("lo"))).expect("lo").index;
            let capture = Capture::open(lo, 64, 8, 8192)?;
            let socket = UdpSocket::bind("127.0.0.1:0")?;
            for _ in 0..200 {
                let _ = socket.send_to(&[0; 1000], "127.0.0.1:9");
            }
            let counted = capture.statistics()?;
            assert!(counted.drops > 0 && counted.packets >= 400, "{counted:?}");
            Ok(())
        });
        if let Err(why) = outcome.and_then(|inner| inner) {
            landspeed_testkit::skip!("no capture here: {why}");
        }
    }
}
