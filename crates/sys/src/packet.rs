//! A packet socket with a memory-mapped receive ring, shared by [`crate::ring`] and [`crate::frames`].

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::filter::Instruction;
use crate::ring::RingError;
use crate::socket::set_int;

// linux/if_packet.h
const PACKET_RX_RING: libc::c_int = 5;
const PACKET_STATISTICS: libc::c_int = 6;
const PACKET_VERSION: libc::c_int = 10;
pub(crate) const PACKET_IGNORE_OUTGOING: libc::c_int = 23;
const PACKET_ADD_MEMBERSHIP: libc::c_int = 1;
const PACKET_MR_PROMISC: u16 = 1;
pub(crate) const TP_STATUS_USER: u32 = 1;
const TP_STATUS_VLAN_VALID: u32 = 1 << 4;
const TP_STATUS_VLAN_TPID_VALID: u32 = 1 << 6;
pub(crate) const ETH_P_ALL: u16 = 3;
const ETH_P_8021Q: u16 = 0x8100;

pub(crate) trait Step<T> {
    fn step(self, step: &'static str) -> Result<T, RingError>;
}

impl<T> Step<T> for io::Result<T> {
    fn step(self, step: &'static str) -> Result<T, RingError> {
        self.map_err(|cause| RingError { step, cause })
    }
}

/// A packet socket. It receives nothing before [`PacketSocket::bind`].
#[derive(Debug)]
pub(crate) struct PacketSocket {
    socket: Socket,
    map: *mut u8,
    map_bytes: usize,
}

// SAFETY: the mapping belongs to this value alone and is bound to no thread.
unsafe impl Send for PacketSocket {}
// SAFETY: through a shared reference the address of the mapping is computed and system calls are made, nothing else; whoever
// dereferences the address answers for that.
unsafe impl Sync for PacketSocket {}

impl PacketSocket {
    /// Opens a socket with this version of the ring's format, in the network namespace of the calling thread. `step`
    /// names the operation in an error.
    pub(crate) fn open(version: libc::c_int, step: &'static str) -> Result<Self, RingError> {
        // Without a protocol it receives nothing yet.
        let socket =
            Socket::new(Domain::PACKET, Type::RAW.cloexec(), Some(Protocol::from(0))).step("open a socket")?;
        let socket = Self { socket, map: std::ptr::null_mut(), map_bytes: 0 };
        socket.set(PACKET_VERSION, version).step(step)?;
        Ok(socket)
    }

    /// Sets an integer option of level `SOL_PACKET`.
    pub(crate) fn set(&self, name: libc::c_int, value: libc::c_int) -> io::Result<()> {
        set_int(self.socket.as_fd(), libc::SOL_PACKET, name, value)
    }

    /// Creates and maps the ring described by `request` (`struct tpacket_req` or `tpacket_req3`), `bytes` in total.
    /// May be called only once.
    pub(crate) fn make_ring(&mut self, request: &[u8], bytes: usize) -> Result<(), RingError> {
        assert!(self.map.is_null(), "a socket has one ring");
        self.set_option(PACKET_RX_RING, request).step("make the ring")?;
        // SAFETY: a new mapping of the socket's ring, whose length is that of the ring just made; the kernel picks the address.
        let map = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_POPULATE,
                self.socket.as_raw_fd(),
                0,
            )
        };
        if map == libc::MAP_FAILED {
            return Err(io::Error::last_os_error()).step("map the ring");
        }
        // A forked child has no use for the ring, and need not copy its page tables. A failure costs only that.
        // SAFETY: the range is exactly the mapping just made.
        unsafe { libc::madvise(map, bytes, libc::MADV_DONTFORK) };
        (self.map, self.map_bytes) = (map.cast(), bytes);
        Ok(())
    }

    /// Returns the address of the ring's memory at `offset`.
    ///
    /// # Panics
    /// If `offset` is not within the ring.
    pub(crate) fn at(&self, offset: usize) -> *mut u8 {
        assert!(offset < self.map_bytes, "the offset is within the ring");
        // SAFETY: the offset is within the mapping.
        unsafe { self.map.add(offset) }
    }

    /// Puts the interface into promiscuous mode.
    pub(crate) fn make_promiscuous(&self, ifindex: u32) -> Result<(), RingError> {
        // struct packet_mreq: index, type, address length, address.
        let mut request = [0_u8; 16];
        request[..4].copy_from_slice(&ifindex.to_ne_bytes());
        request[4..6].copy_from_slice(&PACKET_MR_PROMISC.to_ne_bytes());
        self.set_option(PACKET_ADD_MEMBERSHIP, &request).step("make the interface promiscuous")
    }

    /// Starts receiving packets of a protocol on one interface. `step` names the operation in an error.
    pub(crate) fn bind(&self, ifindex: u32, protocol: u16, step: &'static str) -> Result<(), RingError> {
        self.socket.bind(&link_address(ifindex, protocol).step("bind")?).step(step)
    }

    /// Attaches a classic BPF filter, which replaces the previous one.
    pub(crate) fn attach(&self, filter: &[Instruction]) -> io::Result<()> {
        let length = u16::try_from(filter.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        let program = libc::sock_fprog { len: length, filter: filter.as_ptr().cast_mut().cast() };
        // SAFETY: `Instruction` has the layout of sock_filter; the kernel copies `len` of them during the call and changes
        // none.
        let rc = unsafe {
            libc::setsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_ATTACH_FILTER,
                (&raw const program).cast(),
                size_of::<libc::sock_fprog>() as libc::socklen_t,
            )
        };
        if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Returns the counters of `struct tpacket_stats` or `tpacket_stats_v3` since the last call: reading resets
    /// them.
    pub(crate) fn statistics<const N: usize>(&self) -> io::Result<[u32; N]> {
        let mut counts = [0_u32; N];
        let mut length = size_of_val(&counts) as libc::socklen_t;
        // SAFETY: `counts` is as long as `length` says, and both are valid for writing.
        let rc = unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_PACKET,
                PACKET_STATISTICS,
                counts.as_mut_ptr().cast(),
                &raw mut length,
            )
        };
        if rc == 0 { Ok(counts) } else { Err(io::Error::last_os_error()) }
    }

    /// The underlying socket.
    pub(crate) fn socket(&self) -> &Socket {
        &self.socket
    }

    fn set_option(&self, name: libc::c_int, value: &[u8]) -> io::Result<()> {
        // SAFETY: `value` is valid for reading as long as its length says.
        let rc = unsafe {
            libc::setsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_PACKET,
                name,
                value.as_ptr().cast(),
                value.len() as libc::socklen_t,
            )
        };
        if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for PacketSocket {
    fn drop(&mut self) {
        if !self.map.is_null() {
            // SAFETY: the mapping was made by `make_ring` with this length and is not used any more.
            unsafe { libc::munmap(self.map.cast(), self.map_bytes) };
        }
    }
}

/// Returns the VLAN tag that an interface stripped from a frame: protocol and tag, in network byte order.
pub(crate) fn vlan(status: u32, protocol: u16, tag: u16) -> Option<[u8; 4]> {
    (status & TP_STATUS_VLAN_VALID != 0).then(|| {
        let protocol = if status & TP_STATUS_VLAN_TPID_VALID == 0 { ETH_P_8021Q } else { protocol };
        let ([a, b], [c, d]) = (protocol.to_be_bytes(), tag.to_be_bytes());
        [a, b, c, d]
    })
}

/// Returns the link-layer address for a protocol's packets on one interface.
fn link_address(ifindex: u32, protocol: u16) -> io::Result<SockAddr> {
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
