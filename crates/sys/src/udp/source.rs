//! Sending a datagram from a chosen local address, on a socket bound to all addresses.

use std::io;
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsRawFd, BorrowedFd};

use socket2::SockAddr;

/// Space for the larger control message, `struct in6_pktinfo`.
// SAFETY: CMSG_SPACE is arithmetic on its argument.
const CONTROL_BYTES: usize = unsafe { libc::CMSG_SPACE(size_of::<libc::in6_pktinfo>() as u32) } as usize;

#[repr(C, align(8))]
struct Control([u8; CONTROL_BYTES]);

/// Sends one datagram to `to` with the source address `from` (`IP_PKTINFO`, `IPV6_PKTINFO`: ip(7), ipv6(7)). `v6`
/// means that the socket is an IPv6 one, which sends to IPv4 with IPv4-mapped addresses.
///
/// # Errors
/// Those of `sendmsg(2)`; `EINVAL` if `from` is not an address of this host.
pub fn send_from(fd: BorrowedFd<'_>, v6: bool, datagram: &[u8], from: IpAddr, to: SocketAddr) -> io::Result<usize> {
    let to = match (v6, to) {
        (true, SocketAddr::V4(v4)) => SocketAddrV6::new(v4.ip().to_ipv6_mapped(), v4.port(), 0, 0).into(),
        _ => to,
    };
    let scope = if let SocketAddr::V6(to) = to { to.scope_id() } else { 0 };
    let name = SockAddr::from(to);
    let mut control = Control([0; CONTROL_BYTES]);
    let header = (&raw mut control).cast::<libc::cmsghdr>();
    // SAFETY: `control` is aligned for a cmsghdr and as long as CMSG_SPACE of the larger structure, so header and either
    // structure fit; both structures are plain old data for which zeros are valid.
    let control_bytes = unsafe {
        match (v6, from) {
            (false, IpAddr::V4(from)) => {
                let mut info: libc::in_pktinfo = std::mem::zeroed();
                info.ipi_spec_dst.s_addr = u32::from_ne_bytes(from.octets());
                (*header).cmsg_level = libc::IPPROTO_IP;
                (*header).cmsg_type = libc::IP_PKTINFO;
                (*header).cmsg_len = libc::CMSG_LEN(size_of_val(&info) as u32) as usize;
                libc::CMSG_DATA(header).cast::<libc::in_pktinfo>().write_unaligned(info);
                libc::CMSG_SPACE(size_of_val(&info) as u32)
            }
            (true, from) => {
                let from = match from {
                    IpAddr::V4(from) => from.to_ipv6_mapped(),
                    IpAddr::V6(from) => from,
                };
                let mut info: libc::in6_pktinfo = std::mem::zeroed();
                info.ipi6_addr.s6_addr = from.octets();
                info.ipi6_ifindex = scope;
                (*header).cmsg_level = libc::IPPROTO_IPV6;
                (*header).cmsg_type = libc::IPV6_PKTINFO;
                (*header).cmsg_len = libc::CMSG_LEN(size_of_val(&info) as u32) as usize;
                libc::CMSG_DATA(header).cast::<libc::in6_pktinfo>().write_unaligned(info);
                libc::CMSG_SPACE(size_of_val(&info) as u32)
            }
            (false, IpAddr::V6(_)) => return Err(io::ErrorKind::InvalidInput.into()),
        }
    };
    let mut part = libc::iovec { iov_base: datagram.as_ptr().cast_mut().cast(), iov_len: datagram.len() };
    // SAFETY: msghdr is plain old data for which zeros are valid.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_name = name.as_ptr().cast_mut().cast();
    message.msg_namelen = name.len();
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = (&raw mut control).cast();
    message.msg_controllen = control_bytes as usize;
    // SAFETY: name, part and control outlive the call and have the lengths that stand beside them; the kernel only reads
    // them.
    let sent = unsafe { libc::sendmsg(fd.as_raw_fd(), &raw const message, 0) };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(sent as usize) }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv6Addr, UdpSocket};
    use std::os::fd::AsFd as _;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_datagram_leaves_from_the_chosen_address() {
        for (bound, from) in [("0.0.0.0:0", "127.0.0.5"), ("[::]:0", "127.0.0.5"), ("[::]:0", "::1")] {
            let Ok(socket) = UdpSocket::bind(bound) else { continue };
            let from: IpAddr = from.parse().expect("an address");
            let home: IpAddr = if from.is_ipv4() { IpAddr::from([127, 0, 0, 1]) } else { Ipv6Addr::LOCALHOST.into() };
            let Ok(receiver) = UdpSocket::bind((home, 0)) else { continue };
            receiver.set_read_timeout(Some(Duration::from_secs(10))).expect("a time limit");
            let to = receiver.local_addr().expect("it is bound");
            let v6 = socket.local_addr().expect("it is bound").is_ipv6();
            assert_eq!(send_from(socket.as_fd(), v6, b"hello", from, to).expect("loopback"), 5);
            let mut buffer = [0; 8];
            let (length, source) = receiver.recv_from(&mut buffer).expect("it arrives");
            let port = socket.local_addr().expect("it is bound").port();
            assert_eq!((&buffer[..length], source), (&b"hello"[..], SocketAddr::new(from, port)), "{bound}");
        }
    }
}
