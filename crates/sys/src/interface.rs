//! Interface requests by name (`ioctl` with `struct ifreq`), including `SIOCETHTOOL`. ethtool's structures are
//! decoded in the crate `landspeed-netlink`.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;

use socket2::{Domain, Socket, Type};

/// Size of the guard area, bytes: a multiple of every page size.
const PAGE_BYTES: usize = 64 * 1024;

/// A socket for `SIOCETHTOOL` requests (linux/ethtool.h) to an interface's driver, in the network namespace of
/// its creator.
#[derive(Debug)]
pub struct EthtoolSocket {
    socket: Socket,
    interface: String,
    reply: GuardedBuffer,
}

impl EthtoolSocket {
    /// Opens a socket for requests about `interface`, with space for structures of `reply_bytes`. Fails if the name
    /// is invalid; an interface that does not exist is reported by the first request.
    pub fn open(interface: &str, reply_bytes: usize) -> io::Result<Self> {
        interface_request(interface)?;
        Ok(Self { socket: control_socket()?, interface: interface.into(), reply: GuardedBuffer::new(reply_bytes)? })
    }

    /// Sends one request: `words` are the first words of the structure, beginning with the command (`ETHTOOL_G…`,
    /// `ETHTOOL_S…`); the rest is left over from the previous reply. Returns the structure as filled in by the
    /// kernel.
    ///
    /// # Errors
    /// `EOPNOTSUPP` if the driver does not support the command; `EFAULT` if the reply exceeds the buffer.
    pub fn ask(&mut self, words: &[u32]) -> io::Result<&[u8]> {
        for (into, word) in self.reply.bytes_mut().chunks_exact_mut(4).zip(words) {
            into.copy_from_slice(&word.to_ne_bytes());
        }
        let mut request = interface_request(&self.interface)?;
        request.ifr_ifru.ifru_data = self.reply.start().cast();
        // SAFETY: `request` is a whole ifreq with a terminated name. The kernel reads and writes the structure behind its data
        // from the first byte on, however long it is at that moment (a driver that gains channels has more statistics than
        // it said); `reply` is borrowed exclusively, and behind its end is a page that cannot be accessed, where the
        // kernel stops with EFAULT.
        match unsafe { libc::ioctl(self.socket.as_raw_fd(), libc::SIOCETHTOOL as libc::Ioctl, &raw mut request) } {
            0.. => Ok(self.reply.bytes()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Zeroed memory followed by an inaccessible guard page. Untouched pages take no memory.
#[derive(Debug)]
struct GuardedBuffer {
    map: NonNull<u8>,
    map_bytes: usize,
    len: usize,
}

// SAFETY: the mapping is owned by the value and has no thread affinity.
unsafe impl Send for GuardedBuffer {}

impl GuardedBuffer {
    fn new(len: usize) -> io::Result<Self> {
        let map_bytes = len.next_multiple_of(PAGE_BYTES) + PAGE_BYTES;
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a fresh private anonymous mapping; no existing memory is affected.
        let map = unsafe { libc::mmap(std::ptr::null_mut(), map_bytes, protection, flags, -1, 0) };
        if map == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let buffer = Self { map: NonNull::new(map.cast()).ok_or_else(io::Error::last_os_error)?, map_bytes, len };
        // SAFETY: the last PAGE_BYTES of the mapping just made, which nothing refers to.
        match unsafe { libc::mprotect(map.byte_add(map_bytes - PAGE_BYTES), PAGE_BYTES, libc::PROT_NONE) } {
            0 => Ok(buffer),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Returns the start of the last `len` bytes before the guard page.
    fn start(&self) -> *mut u8 {
        // SAFETY: `new` mapped at least `len` bytes and a page.
        unsafe { self.map.as_ptr().add(self.map_bytes - PAGE_BYTES - self.len) }
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: `len` initialised bytes that can be read, as long as `self` lives.
        unsafe { std::slice::from_raw_parts(self.start(), self.len) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and they can be written and are borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start(), self.len) }
    }
}

impl Drop for GuardedBuffer {
    fn drop(&mut self) {
        // SAFETY: the range is the mapping made in `new`, unmapped once.
        unsafe { libc::munmap(self.map.as_ptr().cast(), self.map_bytes) };
    }
}

/// Opens a socket for interface requests, in the calling thread's network namespace.
pub(crate) fn control_socket() -> io::Result<Socket> {
    // Without IPv4 in the kernel, a Unix socket works too: interface requests work on any socket.
    Socket::new(Domain::IPV4, Type::DGRAM, None).or_else(|_| Socket::new(Domain::UNIX, Type::DGRAM, None))
}

/// Returns an `ifreq` with only the name set.
pub(crate) fn interface_request(interface: &str) -> io::Result<libc::ifreq> {
    let name = interface.as_bytes();
    if name.is_empty() || name.len() >= libc::IFNAMSIZ || name.contains(&0) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not an interface name"));
    }
    // SAFETY: ifreq is plain old data, all of whose members may be zero.
    let mut request: libc::ifreq = unsafe { MaybeUninit::zeroed().assume_init() };
    for (to, from) in request.ifr_name.iter_mut().zip(name) {
        *to = *from as libc::c_char;
    }
    Ok(request)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_longer_than_the_buffer_are_an_error() {
        const ETHTOOL_GSTRINGS: u32 = 0x1b;
        const ETHTOOL_GSSET_INFO: u32 = 0x37;
        const ETH_SS_FEATURES: u32 = 4;
        let mut small = EthtoolSocket::open("lo", 64).expect("a socket");
        let info =
            small.ask(&[ETHTOOL_GSSET_INFO, 0, 1 << ETH_SS_FEATURES, 0, 0]).expect("every device has features");
        let count = info[16..].first_chunk().map_or(0, |word| u32::from_ne_bytes(*word));
        let question = [ETHTOOL_GSTRINGS, ETH_SS_FEATURES, count];
        assert_eq!(small.ask(&question).expect_err("no room").raw_os_error(), Some(libc::EFAULT));
        let mut large = EthtoolSocket::open("lo", 8192).expect("a socket");
        assert_eq!(large.ask(&question).expect("the names").len(), 8192);
    }
}
