//! Socket functions for path MTU discovery: datagrams that are never fragmented, regardless of the cached path
//! MTU; errors from routers and from the kernel; and detection of received datagrams that were fragmented.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::socket::set_int;
use crate::udp::{MtuDiscovery, enable_send_errors, set_mtu_discovery};

/// Enables all of this: the don't-fragment bit regardless of the cached path MTU (`IP_PMTUDISC_PROBE`), the error
/// queue ([`next_error`]), and fragment sizes in [`receive`] (Linux 4.2; not available on older kernels).
///
/// `mapped` means that an IPv6 socket has an IPv4 peer.
pub fn prepare(fd: BorrowedFd<'_>, mapped: bool) -> io::Result<()> {
    set_mtu_discovery(fd, MtuDiscovery::Probe)?;
    if mapped {
        set_int(fd, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE)?;
    }
    enable_send_errors(fd)?;
    // One of the two fails, except on IPv6 sockets with an IPv4 peer.
    let _ = set_int(fd, libc::IPPROTO_IP, libc::IP_RECVFRAGSIZE, 1);
    let _ = set_int(fd, libc::IPPROTO_IPV6, libc::IPV6_RECVFRAGSIZE, 1);
    Ok(())
}

/// A received datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// Number of bytes in the caller's buffer.
    pub len: usize,
    /// Size of the largest IP fragment, bytes, if the datagram was fragmented.
    pub fragment_bytes: Option<u32>,
}

/// Receives a datagram without blocking. Data longer than `into` is truncated.
pub fn receive(fd: BorrowedFd<'_>, into: &mut [u8]) -> io::Result<Received> {
    let mut fragment_bytes = None;
    let len = receive_with(fd, into, libc::MSG_DONTWAIT, |level, kind, data| {
        let (v4, v6) = ((libc::SOL_IP, libc::IP_RECVFRAGSIZE), (libc::SOL_IPV6, libc::IPV6_RECVFRAGSIZE));
        if ((level, kind) == v4 || (level, kind) == v6)
            && let Some(size) = data.first_chunk().map(|bytes| i32::from_ne_bytes(*bytes))
        {
            fragment_bytes = u32::try_from(size).ok().filter(|&n| n > 0);
        }
    })?;
    Ok(Received { len, fragment_bytes })
}

/// An error about an earlier send (`struct sock_extended_err`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueuedError {
    /// `EMSGSIZE`, `ECONNREFUSED`, `EHOSTUNREACH` …
    pub errno: i32,
    /// Whether the error is from this host; otherwise from an ICMP message.
    pub local: bool,
    /// With `EMSGSIZE`, the largest IP packet that would fit, bytes; 0 from routers that do not report it.
    pub mtu_bytes: u32,
    /// Bytes of the offending datagram's payload in the caller's buffer.
    pub quoted: usize,
}

/// Returns the oldest entry of the error queue, `None` if it is empty. Does not block.
pub fn next_error(fd: BorrowedFd<'_>, quote: &mut [u8]) -> io::Result<Option<QueuedError>> {
    let mut found = None;
    let outcome = receive_with(fd, quote, libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT, |level, kind, data| {
        let (v4, v6) = ((libc::SOL_IP, libc::IP_RECVERR), (libc::SOL_IPV6, libc::IPV6_RECVERR));
        if (level, kind) == v4 || (level, kind) == v6 {
            found = parse_error(data);
        }
    });
    match outcome {
        // Entries of other kinds (timestamps, completions) are not errors.
        Ok(quoted) => Ok(Some(match found {
            Some(error) => QueuedError { quoted, ..error },
            None => QueuedError { errno: 0, local: true, mtu_bytes: 0, quoted },
        })),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}

/// `struct sock_extended_err` of include/uapi/linux/errqueue.h: errno (4), origin, type, code, pad, info (4), data (4).
fn parse_error(data: &[u8]) -> Option<QueuedError> {
    const SO_EE_ORIGIN_LOCAL: u8 = 1;
    let errno = u32::from_ne_bytes(*data.first_chunk()?) as i32;
    let local = *data.get(4)? == SO_EE_ORIGIN_LOCAL;
    let mtu_bytes = u32::from_ne_bytes(*data.get(8..)?.first_chunk()?);
    Some(QueuedError { errno, local, mtu_bytes, quoted: 0 })
}

/// Calls `recvmsg` and passes each control message to `control` as level, type and data.
fn receive_with(
    fd: BorrowedFd<'_>,
    into: &mut [u8],
    flags: libc::c_int,
    mut control: impl FnMut(libc::c_int, libc::c_int, &[u8]),
) -> io::Result<usize> {
    #[repr(C, align(8))]
    struct ControlBuffer([u8; 512]);
    let mut space = ControlBuffer([0; 512]);
    let mut vector = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    // SAFETY: an all-zero msghdr is valid: no name, no data, no control.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut vector;
    message.msg_iovlen = 1;
    message.msg_control = space.0.as_mut_ptr().cast();
    message.msg_controllen = space.0.len() as _;
    // SAFETY: `message` describes `into` and `space`, which outlive the call and are not otherwise used meanwhile.
    let rc = unsafe { libc::recvmsg(fd.as_raw_fd(), &raw mut message, flags) };
    if rc < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `message` was filled by recvmsg and its control buffer is still alive.
    let mut header = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
    while !header.is_null() {
        // SAFETY: CMSG_FIRSTHDR and CMSG_NXTHDR return headers inside the control buffer; the kernel's `cmsg_len`
        // counts the header and data that lie in it, so the slice is within `space`.
        let (level, kind, data) = unsafe {
            let start = libc::CMSG_DATA(header).cast_const();
            let len = (*header).cmsg_len as usize - (start as usize - header as usize);
            ((*header).cmsg_level, (*header).cmsg_type, std::slice::from_raw_parts(start, len))
        };
        control(level, kind, data);
        // SAFETY: as for CMSG_FIRSTHDR.
        header = unsafe { libc::CMSG_NXTHDR(&raw const message, header) };
    }
    Ok((rc as usize).min(into.len()))
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd;

    use super::*;

    fn pair(host: &str) -> Option<(UdpSocket, UdpSocket)> {
        let (a, b) = (UdpSocket::bind((host, 0)).ok()?, UdpSocket::bind((host, 0)).ok()?);
        a.connect(b.local_addr().ok()?).ok()?;
        b.connect(a.local_addr().ok()?).ok()?;
        prepare(a.as_fd(), false).expect("options every kernel has");
        prepare(b.as_fd(), false).expect("options every kernel has");
        Some((a, b))
    }

    #[test]
    fn oversized_datagrams_fail_with_the_mtu() {
        let Some((a, _b)) = pair("::1") else { landspeed_testkit::skip!("no IPv6 loopback here") };
        let error = a.send(&vec![0; 65_527]).expect_err("loopback has 65,536 bytes, 40 of them for the header");
        assert_eq!(error.raw_os_error(), Some(libc::EMSGSIZE));
        let queued = next_error(a.as_fd(), &mut [0; 64]).expect("a queue").expect("an entry");
        assert_eq!(queued, QueuedError { errno: libc::EMSGSIZE, local: true, mtu_bytes: 65_536, quoted: 0 });
        assert_eq!(next_error(a.as_fd(), &mut [0; 64]).expect("a queue"), None);
    }

    #[test]
    fn unfragmented_datagrams_report_no_fragment_size() {
        let (a, b) = pair("127.0.0.1").expect("loopback");
        assert_eq!(receive(b.as_fd(), &mut [0; 16]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        a.send(&[7; 2_000]).expect("room");
        let mut buffer = [0; 4_000];
        crate::socket::wait(b.as_fd(), crate::socket::Readiness::Readable, 1_000).expect("a poll");
        assert_eq!(receive(b.as_fd(), &mut buffer).expect("sent"), Received { len: 2_000, fragment_bytes: None });
    }

    #[test]
    fn closed_port_error_quotes_the_refused_datagram() {
        let (a, b) = pair("127.0.0.1").expect("loopback");
        drop(b);
        a.send(b"whose is this?").expect("sent, and answered by ICMP");
        crate::socket::wait(a.as_fd(), crate::socket::Readiness::Error, 1_000).expect("a poll");
        let mut quote = [0; 64];
        let queued = next_error(a.as_fd(), &mut quote).expect("a queue").expect("an entry");
        assert_eq!((queued.errno, queued.local), (libc::ECONNREFUSED, false));
        assert_eq!(&quote[..queued.quoted], b"whose is this?");
    }

    #[test]
    fn a_short_error_entry_is_ignored() {
        assert_eq!(parse_error(&[0; 11]), None);
        assert_eq!(parse_error(&[]), None);
    }
}
