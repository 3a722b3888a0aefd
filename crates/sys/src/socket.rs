//! Stream sockets: options, tcp_info, queues.
//!
//! Thin wrappers: one system call each, plain integers as arguments and results, errors as returned by the
//! kernel.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Maximum size of `struct tcp_info` requested, bytes; the kernel returns as much as it supports.
pub const TCP_INFO_MAX: usize = 512;

/// `struct tcp_info` as returned by the kernel.
#[derive(Clone, Copy)]
pub struct RawTcpInfo {
    bytes: [u8; TCP_INFO_MAX],
    len: usize,
}

impl RawTcpInfo {
    /// Returns the bytes filled in by the kernel.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Reads `TCP_INFO`.
pub fn tcp_info(fd: BorrowedFd<'_>) -> io::Result<RawTcpInfo> {
    let mut info = RawTcpInfo { bytes: [0; TCP_INFO_MAX], len: 0 };
    info.len = get_bytes(fd, libc::IPPROTO_TCP, libc::TCP_INFO, &mut info.bytes)?;
    Ok(info)
}

/// `SO_MEMINFO`: memory of the socket's queues, in bytes unless stated otherwise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemInfo {
    /// Memory charged to the receive queue.
    pub rmem_alloc: u32,
    /// Receive buffer limit.
    pub rcvbuf: u32,
    /// Send buffer limit.
    pub sndbuf: u32,
    /// Memory charged to the write queue (TCP).
    pub wmem_queued: u32,
    /// Packets dropped by the socket.
    pub drops: u32,
}

/// Reads `SO_MEMINFO`.
pub fn mem_info(fd: BorrowedFd<'_>) -> io::Result<MemInfo> {
    const SO_MEMINFO: libc::c_int = 55;
    let mut raw = [0u8; 4 * 16];
    let len = get_bytes(fd, libc::SOL_SOCKET, SO_MEMINFO, &mut raw)?;
    let word = |i: usize| {
        if 4 * i + 4 > len {
            return 0;
        }
        u32::from_ne_bytes([raw[4 * i], raw[4 * i + 1], raw[4 * i + 2], raw[4 * i + 3]])
    };
    Ok(MemInfo { rmem_alloc: word(0), rcvbuf: word(1), sndbuf: word(3), wmem_queued: word(5), drops: word(8) })
}

/// Reads the number of bytes sent but not yet acknowledged (`SIOCOUTQ`).
pub fn send_queue(fd: BorrowedFd<'_>) -> io::Result<u32> {
    ioctl_int(fd, libc::TIOCOUTQ)
}

/// Reads the number of bytes received but not yet read by the application (`SIOCINQ`).
pub fn receive_queue(fd: BorrowedFd<'_>) -> io::Result<u32> {
    ioctl_int(fd, libc::FIONREAD)
}

/// Reads `union tcp_cc_info` into `into`; returns its length, 0 if the algorithm provides none.
pub fn congestion_info(fd: BorrowedFd<'_>, into: &mut [u8]) -> io::Result<usize> {
    const TCP_CC_INFO: libc::c_int = 26;
    get_bytes(fd, libc::IPPROTO_TCP, TCP_CC_INFO, into)
}

/// Returns the effective congestion control.
pub fn congestion(fd: BorrowedFd<'_>) -> io::Result<String> {
    let mut raw = [0u8; 16];
    let len = get_bytes(fd, libc::IPPROTO_TCP, libc::TCP_CONGESTION, &mut raw)?;
    let name = raw[..len].split(|&b| b == 0).next().unwrap_or_default();
    Ok(String::from_utf8_lossy(name).into_owned())
}

/// Sets the congestion control.
///
/// # Errors
/// `ENOENT` if the kernel does not have it, `EPERM` if it is not in `tcp_allowed_congestion_control`.
pub fn set_congestion(fd: BorrowedFd<'_>, name: &str) -> io::Result<()> {
    set_bytes(fd, libc::IPPROTO_TCP, libc::TCP_CONGESTION, name.as_bytes())
}

/// Sets `SO_MAX_PACING_RATE`, bytes per second.
pub fn set_max_pacing_rate(fd: BorrowedFd<'_>, bytes_per_s: u64) -> io::Result<()> {
    set_bytes(fd, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, &bytes_per_s.to_ne_bytes())
}

/// Sets `TCP_MAXSEG`; must be called before the connection is established.
pub fn set_mss(fd: BorrowedFd<'_>, bytes: u32) -> io::Result<()> {
    set_int(fd, libc::IPPROTO_TCP, libc::TCP_MAXSEG, bytes as libc::c_int)
}

/// Returns the effective MSS.
pub fn mss(fd: BorrowedFd<'_>) -> io::Result<u32> {
    get_int(fd, libc::IPPROTO_TCP, libc::TCP_MAXSEG).map(|v| v as u32)
}

/// Returns the CPU that processed the socket's last received packet (`SO_INCOMING_CPU`); `None` before the first.
pub fn incoming_cpu(fd: BorrowedFd<'_>) -> Option<u32> {
    get_int(fd, libc::SOL_SOCKET, libc::SO_INCOMING_CPU).ok().and_then(|cpu| u32::try_from(cpu).ok())
}

/// Whether `SO_RCVBUF` and whether `SO_SNDBUF` was set (`SO_BUF_LOCK`); `None` before Linux 5.14.
pub fn buffer_locks(fd: BorrowedFd<'_>) -> Option<(bool, bool)> {
    // `SOCK_SNDBUF_LOCK` and `SOCK_RCVBUF_LOCK` (linux/socket.h).
    const SEND: libc::c_int = 1;
    const RECEIVE: libc::c_int = 2;
    let locks = get_int(fd, libc::SOL_SOCKET, libc::SO_BUF_LOCK).ok()?;
    Some((locks & RECEIVE != 0, locks & SEND != 0))
}

/// Returns the NAPI id of the receive queue of the socket's last received packet (`SO_INCOMING_NAPI_ID`); `None`
/// for interfaces without one, such as loopback.
pub fn incoming_napi_id(fd: BorrowedFd<'_>) -> Option<u32> {
    let id = get_int(fd, libc::SOL_SOCKET, libc::SO_INCOMING_NAPI_ID).ok()?;
    u32::try_from(id).ok().filter(|id| *id != 0)
}

/// Sets the DSCP (`IP_TOS` or `IPV6_TCLASS`).
pub fn set_dscp(fd: BorrowedFd<'_>, dscp: u8, v6: bool) -> io::Result<()> {
    let value = libc::c_int::from(dscp) << 2;
    if v6 {
        set_int(fd, libc::IPPROTO_IPV6, libc::IPV6_TCLASS, value)?;
        // An IPv6 socket with an IPv4-mapped peer uses IP_TOS; an IPv6-only socket rejects it, which is ignored.
        let _ = set_int(fd, libc::IPPROTO_IP, libc::IP_TOS, value);
        return Ok(());
    }
    set_int(fd, libc::IPPROTO_IP, libc::IP_TOS, value)
}

/// Enables `MSG_ZEROCOPY`.
pub fn allow_zerocopy(fd: BorrowedFd<'_>) -> io::Result<()> {
    set_int(fd, libc::SOL_SOCKET, libc::SO_ZEROCOPY, 1)
}

/// Sets `TCP_USER_TIMEOUT`: the time for which unacknowledged data is retransmitted before the connection is
/// closed, milliseconds.
pub fn set_user_timeout_ms(fd: BorrowedFd<'_>, ms: u32) -> io::Result<()> {
    set_int(fd, libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT, ms as libc::c_int)
}

/// Sends `data` with flags (`MSG_NOSIGNAL` is added); returns the number of bytes sent.
#[inline]
pub fn send(fd: BorrowedFd<'_>, data: &[u8], flags: libc::c_int) -> io::Result<usize> {
    // SAFETY: pointer and length describe `data`, which outlives the call.
    check(unsafe { libc::send(fd.as_raw_fd(), data.as_ptr().cast(), data.len(), flags | libc::MSG_NOSIGNAL) })
}

/// Sends as much as fits without blocking, even on a blocking socket.
pub fn send_nonblocking(fd: BorrowedFd<'_>, data: &[u8]) -> io::Result<usize> {
    send(fd, data, libc::MSG_DONTWAIT)
}

/// Sends without copying. The caller must keep `data` unchanged until the completion is reaped; a change would
/// only affect what the peer receives.
#[inline]
pub fn send_zerocopy(fd: BorrowedFd<'_>, data: &[u8]) -> io::Result<usize> {
    send(fd, data, libc::MSG_ZEROCOPY)
}

/// Receives into `buffer`; returns the number of bytes received.
#[inline]
pub fn recv(fd: BorrowedFd<'_>, buffer: &mut [u8], flags: libc::c_int) -> io::Result<usize> {
    // SAFETY: pointer and length describe `buffer`, exclusively borrowed for the call.
    check(unsafe { libc::recv(fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), flags) })
}

/// Discards up to `len` bytes of a TCP stream inside the kernel (`MSG_TRUNC`) and returns their number: what is
/// available or arrives next, or with `all` everything that arrives until the socket's receive timeout
/// (`MSG_WAITALL`).
#[inline]
pub fn recv_discard(fd: BorrowedFd<'_>, len: usize, all: bool) -> io::Result<usize> {
    let flags = libc::MSG_TRUNC | if all { libc::MSG_WAITALL } else { 0 };
    // SAFETY: for TCP, MSG_TRUNC makes the kernel drop the bytes without writing to the buffer, which may be null.
    check(unsafe { libc::recv(fd.as_raw_fd(), std::ptr::null_mut(), len, flags) })
}

/// Sets the receive timeout (`SO_RCVTIMEO`).
pub fn set_receive_timeout(fd: BorrowedFd<'_>, limit: std::time::Duration) -> io::Result<()> {
    socket2::SockRef::from(&fd).set_read_timeout(Some(limit))
}

/// Calls `sendfile(2)` for `len` bytes from `offset` of `file`; returns the number of bytes sent.
#[inline]
pub fn send_file(socket: BorrowedFd<'_>, file: BorrowedFd<'_>, offset: u64, len: usize) -> io::Result<usize> {
    let mut offset = offset as libc::off_t;
    // SAFETY: `offset` is a valid place for the call; both descriptors are borrowed for its length.
    check(unsafe { libc::sendfile(socket.as_raw_fd(), file.as_raw_fd(), &raw mut offset, len) })
}

/// Calls `vmsplice(2)` of `data` into a pipe. The pages are referenced, not copied: `data` must stay unchanged.
#[inline]
pub fn vmsplice(pipe: BorrowedFd<'_>, data: &[u8]) -> io::Result<usize> {
    let iov = libc::iovec { iov_base: data.as_ptr().cast_mut().cast(), iov_len: data.len() };
    // SAFETY: the vector describes `data`; without SPLICE_F_GIFT the kernel only reads from it.
    check(unsafe { libc::vmsplice(pipe.as_raw_fd(), &raw const iov, 1, 0) })
}

/// Calls `splice(2)` for `len` bytes from a pipe to a socket; returns the number of bytes moved.
#[inline]
pub fn splice_to(pipe: BorrowedFd<'_>, socket: BorrowedFd<'_>, len: usize, more: bool) -> io::Result<usize> {
    let flags = libc::SPLICE_F_MOVE | if more { libc::SPLICE_F_MORE } else { 0 };
    // SAFETY: both offsets are null as pipes and sockets require.
    check(unsafe {
        libc::splice(pipe.as_raw_fd(), std::ptr::null_mut(), socket.as_raw_fd(), std::ptr::null_mut(), len, flags)
    })
}

/// Creates a pipe with a capacity as close to `bytes` as the system allows; returns (read end, write end,
/// capacity).
pub fn pipe(bytes: usize) -> io::Result<(std::os::fd::OwnedFd, std::os::fd::OwnedFd, usize)> {
    use std::os::fd::{FromRawFd, OwnedFd};
    let mut ends = [0; 2];
    // SAFETY: `ends` is a place for two descriptors.
    check_int(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) })?;
    // SAFETY: pipe2 succeeded, so both are open and ours alone.
    let (read, write) = unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) };
    let mut want = bytes;
    // SAFETY: fcntl on an open descriptor with an integer argument.
    while unsafe { libc::fcntl(write.as_raw_fd(), libc::F_SETPIPE_SZ, want as libc::c_int) } < 0 && want > 65536 {
        want /= 2;
    }
    // SAFETY: as above, without an argument.
    let capacity = check_int(unsafe { libc::fcntl(write.as_raw_fd(), libc::F_GETPIPE_SZ) })?;
    Ok((read, write, capacity as usize))
}

/// Creates an anonymous memory file (memfd) of `bytes` bytes, filled with `pattern` repeated.
pub fn memory_file(bytes: usize, pattern: &[u8]) -> io::Result<std::fs::File> {
    use std::io::Write;
    use std::os::fd::FromRawFd;
    // SAFETY: the name is a nul-terminated literal.
    let fd = check_int(unsafe { libc::memfd_create(c"landspeed".as_ptr(), libc::MFD_CLOEXEC) })?;
    // SAFETY: memfd_create succeeded, so the descriptor is open and ours alone.
    let mut file = unsafe { std::fs::File::from_raw_fd(fd) };
    let mut left = bytes;
    while left > 0 {
        let n = left.min(pattern.len());
        file.write_all(&pattern[..n])?;
        left -= n;
    }
    Ok(file)
}

/// Zero-copy completions reaped from a socket's error queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Completions {
    /// Number of completed sends.
    pub completed: u64,
    /// Completed sends that the kernel copied nevertheless.
    pub copied: u64,
}

/// Reaps all available completions; does not block.
pub fn reap_completions(fd: BorrowedFd<'_>, into: &mut Completions) -> io::Result<()> {
    #[repr(C, align(8))]
    struct Space([u8; 256]);
    const SO_EE_ORIGIN_ZEROCOPY: u8 = 5;
    const SO_EE_CODE_ZEROCOPY_COPIED: u8 = 1;
    loop {
        let mut space = Space([0; 256]);
        // SAFETY: an all-zero msghdr is valid: no name, no data, no control.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_control = space.0.as_mut_ptr().cast();
        message.msg_controllen = space.0.len() as _;
        // SAFETY: `message` describes `space`, which outlives the call.
        let rc = unsafe { libc::recvmsg(fd.as_raw_fd(), &raw mut message, libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT) };
        if rc < 0 {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::WouldBlock { Ok(()) } else { Err(error) };
        }
        // SAFETY: `message` was filled by recvmsg and its control buffer is still alive.
        let mut header = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
        while !header.is_null() {
            // SAFETY: CMSG_FIRSTHDR and CMSG_NXTHDR return headers inside the control buffer.
            let (level, kind, data) = unsafe { ((*header).cmsg_level, (*header).cmsg_type, libc::CMSG_DATA(header)) };
            if (level == libc::SOL_IP && kind == libc::IP_RECVERR)
                || (level == libc::SOL_IPV6 && kind == libc::IPV6_RECVERR)
            {
                // SAFETY: these two messages carry a sock_extended_err; the read does not assume alignment.
                let error: libc::sock_extended_err = unsafe { std::ptr::read_unaligned(data.cast()) };
                if error.ee_errno == 0 && error.ee_origin == SO_EE_ORIGIN_ZEROCOPY {
                    let n = u64::from(error.ee_data.wrapping_sub(error.ee_info)) + 1;
                    into.completed += n;
                    if error.ee_code & SO_EE_CODE_ZEROCOPY_COPIED != 0 {
                        into.copied += n;
                    }
                }
            }
            // SAFETY: as above.
            header = unsafe { libc::CMSG_NXTHDR(&raw const message, header) };
        }
    }
}

/// Condition for [`wait`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readiness {
    /// Data, a new connection or end of file.
    Readable,
    /// Space in the send buffer.
    Writable,
    /// Only errors (entries in the error queue).
    Error,
}

/// Waits until `fd` is ready or `timeout_ms` has passed; returns whether it is ready (errors and hang-ups count
/// as ready).
pub fn wait(fd: BorrowedFd<'_>, readiness: Readiness, timeout_ms: u32) -> io::Result<bool> {
    let events = match readiness {
        Readiness::Readable => libc::POLLIN,
        Readiness::Writable => libc::POLLOUT,
        Readiness::Error => 0,
    };
    let mut entry = libc::pollfd { fd: fd.as_raw_fd(), events, revents: 0 };
    // SAFETY: one valid pollfd.
    let rc = unsafe { libc::poll(&raw mut entry, 1, timeout_ms.min(i32::MAX as u32) as libc::c_int) };
    match rc {
        0 => Ok(false),
        n if n > 0 => Ok(true),
        _ => {
            let error = io::Error::last_os_error();
            if error.kind() == io::ErrorKind::Interrupted { Ok(false) } else { Err(error) }
        }
    }
}

/// Waits for input on several descriptors; `ready[i]` is set for each that is ready. Returns their number.
pub fn wait_any(fds: &[BorrowedFd<'_>], ready: &mut Vec<bool>, timeout_ms: u32) -> io::Result<usize> {
    let mut entries: Vec<libc::pollfd> =
        fds.iter().map(|fd| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 }).collect();
    // SAFETY: pointer and length describe `entries`.
    let rc = unsafe {
        libc::poll(
            entries.as_mut_ptr(),
            entries.len() as libc::nfds_t,
            timeout_ms.min(i32::MAX as u32) as libc::c_int,
        )
    };
    ready.clear();
    if rc < 0 {
        ready.resize(fds.len(), false);
        let error = io::Error::last_os_error();
        return if error.kind() == io::ErrorKind::Interrupted { Ok(0) } else { Err(error) };
    }
    ready.extend(entries.iter().map(|e| e.revents != 0));
    Ok(rc as usize)
}

pub(crate) fn check(rc: libc::ssize_t) -> io::Result<usize> {
    if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(rc as usize) }
}

fn check_int(rc: libc::c_int) -> io::Result<libc::c_int> {
    if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(rc) }
}

fn ioctl_int(fd: BorrowedFd<'_>, request: libc::Ioctl) -> io::Result<u32> {
    let mut value: libc::c_int = 0;
    // SAFETY: both requests used write one int.
    check_int(unsafe { libc::ioctl(fd.as_raw_fd(), request, &raw mut value) })?;
    Ok(value.max(0) as u32)
}

/// Reads `SO_COOKIE`: the kernel's unique id of a socket, as in sock_diag.
pub fn socket_cookie(fd: BorrowedFd<'_>) -> io::Result<u64> {
    let mut cookie = [0; 8];
    get_bytes(fd, libc::SOL_SOCKET, libc::SO_COOKIE, &mut cookie)?;
    Ok(u64::from_ne_bytes(cookie))
}

pub(crate) fn get_bytes(
    fd: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    into: &mut [u8],
) -> io::Result<usize> {
    let mut len = into.len() as libc::socklen_t;
    // SAFETY: pointer and length describe `into`.
    check_int(unsafe { libc::getsockopt(fd.as_raw_fd(), level, name, into.as_mut_ptr().cast(), &raw mut len) })?;
    Ok((len as usize).min(into.len()))
}

fn set_bytes(fd: BorrowedFd<'_>, level: libc::c_int, name: libc::c_int, value: &[u8]) -> io::Result<()> {
    // SAFETY: pointer and length describe `value`.
    check_int(unsafe {
        libc::setsockopt(fd.as_raw_fd(), level, name, value.as_ptr().cast(), value.len() as libc::socklen_t)
    })?;
    Ok(())
}

fn get_int(fd: BorrowedFd<'_>, level: libc::c_int, name: libc::c_int) -> io::Result<libc::c_int> {
    let mut raw = [0u8; 4];
    get_bytes(fd, level, name, &mut raw)?;
    Ok(libc::c_int::from_ne_bytes(raw))
}

/// Sets an integer socket option.
pub fn set_int(fd: BorrowedFd<'_>, level: libc::c_int, name: libc::c_int, value: libc::c_int) -> io::Result<()> {
    set_bytes(fd, level, name, &value.to_ne_bytes())
}
