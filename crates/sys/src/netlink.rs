//! `AF_NETLINK` sockets. Messages are decoded in the crate `landspeed-netlink`.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::time::Duration;

use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::socket::set_int;

// linux/netlink.h: request errors with the kernel's explanation, without a copy of the request.
const NETLINK_CAP_ACK: libc::c_int = 10;
const NETLINK_EXT_ACK: libc::c_int = 11;

/// A netlink socket connected to the kernel, so that it accepts messages from no other process.
#[derive(Debug)]
pub struct NetlinkSocket(Socket);

impl NetlinkSocket {
    /// Opens a socket of a netlink family (`NETLINK_ROUTE` …) in the calling thread's network namespace. Sends and
    /// receives block for at most `timeout`. Needs no privilege.
    pub fn open(family: libc::c_int, timeout: Duration) -> io::Result<Self> {
        let protocol = Some(Protocol::from(family));
        let socket = Socket::new(Domain::from(libc::AF_NETLINK), Type::RAW.cloexec(), protocol)?;
        socket.set_read_timeout(Some(timeout))?;
        socket.set_write_timeout(Some(timeout))?;
        socket.connect(&kernel_address()?)?;
        // Kernels before 4.12 have no extended errors.
        for option in [NETLINK_CAP_ACK, NETLINK_EXT_ACK] {
            let _ = set_int(socket.as_fd(), libc::SOL_NETLINK, option, 1);
        }
        Ok(Self(socket))
    }

    /// Sends one request to the kernel.
    pub fn send(&mut self, request: &[u8]) -> io::Result<()> {
        self.0.write_all(request)
    }

    /// Receives one datagram from the kernel with one or more messages; returns its length, bytes. Longer datagrams
    /// are truncated.
    pub fn receive(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.read(into)
    }
}

/// The kernel's netlink address: port 0, no groups.
fn kernel_address() -> io::Result<SockAddr> {
    // SAFETY: the storage is zeroed and at least as large and as aligned as sockaddr_nl, whose family is the one
    // field that is not zero; the length given is that of sockaddr_nl.
    let ((), address) = unsafe {
        SockAddr::try_init(|storage, length| {
            let address = storage.cast::<libc::sockaddr_nl>();
            (*address).nl_family = libc::AF_NETLINK as libc::sa_family_t;
            *length = size_of::<libc::sockaddr_nl>() as libc::socklen_t;
            Ok(())
        })
    }?;
    Ok(address)
}
