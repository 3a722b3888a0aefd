//! Socket options of UDP streams.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

use socket2::{Domain, SockRef};

/// Path MTU discovery mode of a socket (`IP_MTU_DISCOVER`, `IPV6_MTU_DISCOVER`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MtuDiscovery {
    /// Fragment datagrams that exceed the known path MTU, set the don't-fragment bit on others (the kernel's
    /// default).
    Want,
    /// Never fragment: a datagram larger than the known path MTU fails with `EMSGSIZE`.
    DontFragment,
    /// Never fragment and ignore the known path MTU, as path MTU discovery requires.
    Probe,
}

/// Enables or disables GRO, the coalescing of received datagrams (`UDP_GRO`, Linux 5.0).
pub fn enable_gro(fd: BorrowedFd<'_>, on: bool) -> io::Result<()> {
    set_int(fd, libc::SOL_UDP, libc::UDP_GRO, i32::from(on))
}

/// Requests a kernel receive timestamp with each message (`SO_TIMESTAMPNS`, `CLOCK_REALTIME`).
pub fn enable_timestamps(fd: BorrowedFd<'_>) -> io::Result<()> {
    set_int(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)
}

/// Makes sends report errors that the kernel would otherwise hide (`IP_RECVERR`): without it a datagram dropped
/// in the local qdisc is a successful send (`udp_send_skb`, net/ipv4/udp.c). Errors are then also queued: see
/// [`drain_error_queue`].
pub fn enable_send_errors(fd: BorrowedFd<'_>) -> io::Result<()> {
    if is_ipv6(fd)? {
        set_int(fd, libc::IPPROTO_IPV6, libc::IPV6_RECVERR, 1)?;
        // Only for IPv4-mapped peers; an IPv6-only socket rejects it and does not need it.
        let _ = set_int(fd, libc::IPPROTO_IP, libc::IP_RECVERR, 1);
        return Ok(());
    }
    set_int(fd, libc::IPPROTO_IP, libc::IP_RECVERR, 1)
}

/// Sets the path MTU discovery mode.
pub fn set_mtu_discovery(fd: BorrowedFd<'_>, mode: MtuDiscovery) -> io::Result<()> {
    if is_ipv6(fd)? {
        let value = match mode {
            MtuDiscovery::Want => libc::IPV6_PMTUDISC_WANT,
            MtuDiscovery::DontFragment => libc::IPV6_PMTUDISC_DO,
            MtuDiscovery::Probe => libc::IPV6_PMTUDISC_PROBE,
        };
        return set_int(fd, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, value);
    }
    let value = match mode {
        MtuDiscovery::Want => libc::IP_PMTUDISC_WANT,
        MtuDiscovery::DontFragment => libc::IP_PMTUDISC_DO,
        MtuDiscovery::Probe => libc::IP_PMTUDISC_PROBE,
    };
    set_int(fd, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, value)
}

/// Requests a receive buffer of `bytes` and returns the effective size as reported by `getsockopt` (the kernel
/// doubles the request for its overhead). Exceeds `net.core.rmem_max` if privileged (`SO_RCVBUFFORCE`).
pub fn set_receive_buffer(fd: BorrowedFd<'_>, bytes: usize) -> io::Result<u64> {
    set_buffer(fd, bytes, libc::SO_RCVBUFFORCE, libc::SO_RCVBUF)
}

/// Like [`set_receive_buffer`], for the send buffer (`SO_SNDBUFFORCE`, `net.core.wmem_max`).
pub fn set_send_buffer(fd: BorrowedFd<'_>, bytes: usize) -> io::Result<u64> {
    set_buffer(fd, bytes, libc::SO_SNDBUFFORCE, libc::SO_SNDBUF)
}

fn set_buffer(fd: BorrowedFd<'_>, bytes: usize, forced: i32, plain: i32) -> io::Result<u64> {
    // The kernel doubles the value in an int.
    let value = i32::try_from(bytes).unwrap_or(i32::MAX).min(i32::MAX / 2);
    if set_int(fd, libc::SOL_SOCKET, forced, value).is_err() {
        set_int(fd, libc::SOL_SOCKET, plain, value)?;
    }
    let mut in_force = [0u32];
    read_words(fd, libc::SOL_SOCKET, plain, &mut in_force)?;
    Ok(u64::from(in_force[0]))
}

/// Makes sends and receives block for at most `limit`, after which they fail with `WouldBlock`.
pub fn set_io_timeout(fd: BorrowedFd<'_>, limit: Duration) -> io::Result<()> {
    let socket = SockRef::from(&fd);
    socket.set_nonblocking(false)?;
    socket.set_read_timeout(Some(limit))?;
    socket.set_write_timeout(Some(limit))
}

/// Whether the kernel supports UDP segmentation offload (`UDP_SEGMENT`, Linux 4.18). A route may still reject it.
pub fn gso_supported(fd: BorrowedFd<'_>) -> bool {
    let probe = set_int(fd, libc::SOL_UDP, libc::UDP_SEGMENT, 1200).is_ok();
    probe && set_int(fd, libc::SOL_UDP, libc::UDP_SEGMENT, 0).is_ok()
}

/// Returns the number of drops due to a full receive buffer, modulo 2³² (`SO_MEMINFO`, `SK_MEMINFO_DROPS`).
///
/// The kernel counts buffers, not datagrams: a dropped coalesced batch counts once. It is the counter that
/// `SO_RXQ_OVFL` attaches to messages, but includes drops after the last queued message.
pub fn socket_drops(fd: BorrowedFd<'_>) -> io::Result<u32> {
    /// `SK_MEMINFO_DROPS` of include/uapi/linux/sock_diag.h, the last of nine words.
    const DROPS: usize = 8;
    let mut words = [0u32; DROPS + 1];
    read_words(fd, libc::SOL_SOCKET, libc::SO_MEMINFO, &mut words)?;
    Ok(words[DROPS])
}

/// Discards the errors queued because of [`enable_send_errors`]; returns their number, at most 1,024.
pub fn drain_error_queue(fd: BorrowedFd<'_>) -> usize {
    // SAFETY: an all-zero msghdr is valid: no name, no buffers, no control data.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
    (0..1024)
        .take_while(|_| {
            // SAFETY: `header` is a valid msghdr that points nowhere, so the kernel writes to nothing but itself.
            unsafe { libc::recvmsg(fd.as_raw_fd(), &raw mut header, flags) >= 0 }
        })
        .count()
}

/// Sets the calling thread's timer slack to 1 ns instead of 50 µs (`PR_SET_TIMERSLACK`), so that sleeps end on
/// time.
pub fn minimize_timer_slack() {
    // SAFETY: this prctl takes its one argument by value and touches nothing but the calling thread's timer slack.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) };
}

fn is_ipv6(fd: BorrowedFd<'_>) -> io::Result<bool> {
    Ok(SockRef::from(&fd).domain()? == Domain::IPV6)
}

fn set_int(fd: BorrowedFd<'_>, level: i32, name: i32, value: i32) -> io::Result<()> {
    let length = size_of::<i32>() as libc::socklen_t;
    // SAFETY: the value is an int that lives through the call and its length is given.
    let rc = unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, (&raw const value).cast(), length) };
    if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn read_words(fd: BorrowedFd<'_>, level: i32, name: i32, words: &mut [u32]) -> io::Result<()> {
    let mut length = size_of_val(words) as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `words`, which is that long; any bytes make a u32.
    let rc = unsafe { libc::getsockopt(fd.as_raw_fd(), level, name, words.as_mut_ptr().cast(), &raw mut length) };
    if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd;

    use super::*;

    fn socket() -> UdpSocket {
        UdpSocket::bind("127.0.0.1:0").expect("loopback exists")
    }

    #[test]
    fn returned_buffer_size_matches_getsockopt() {
        let socket = socket();
        let in_force = set_receive_buffer(socket.as_fd(), 65_536).unwrap();
        assert_eq!(in_force, SockRef::from(&socket).recv_buffer_size().unwrap() as u64);
        assert!(in_force >= 65_536);
    }

    #[test]
    fn huge_buffer_requests_are_clamped() {
        assert!(set_send_buffer(socket().as_fd(), usize::MAX).unwrap() > 0);
    }

    #[test]
    fn blocking_receive_times_out() {
        let socket = socket();
        set_io_timeout(socket.as_fd(), Duration::from_millis(5)).unwrap();
        let error = socket.recv(&mut [0; 8]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn every_mtu_discovery_mode_is_accepted_on_both_families() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(socket) = UdpSocket::bind(address) else {
                landspeed_testkit::skip::record(&format!("no {address} here"));
                continue;
            };
            for mode in [MtuDiscovery::Want, MtuDiscovery::DontFragment, MtuDiscovery::Probe] {
                set_mtu_discovery(socket.as_fd(), mode).unwrap();
            }
            enable_send_errors(socket.as_fd()).unwrap();
        }
    }

    #[test]
    fn drops_of_a_full_buffer_are_counted() {
        let receiver = socket();
        set_receive_buffer(receiver.as_fd(), 4096).unwrap();
        let sender = socket();
        sender.connect(receiver.local_addr().unwrap()).unwrap();
        for _ in 0..100 {
            sender.send(&[0; 1000]).unwrap();
        }
        assert!(socket_drops(receiver.as_fd()).unwrap() > 50);
    }

    #[test]
    fn icmp_refusal_is_reported_and_the_error_queue_drained() {
        let sender = socket();
        enable_send_errors(sender.as_fd()).unwrap();
        let closed = socket().local_addr().unwrap();
        sender.connect(closed).unwrap();
        sender.send(&[0; 10]).unwrap();
        assert_eq!(sender.send(&[0; 10]).unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
        assert!(drain_error_queue(sender.as_fd()) >= 1);
        assert_eq!(drain_error_queue(sender.as_fd()), 0);
    }
}
