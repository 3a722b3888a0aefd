//! Waiting for a socket with a nanosecond timeout.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Readiness of a socket.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ready {
    /// Whether a read will not block: data, end of stream, or a pending error.
    pub readable: bool,
    /// Whether a write will not block.
    pub writable: bool,
}

/// Waits until `fd` is readable (or writable, with `for_writing`), for at most `timeout_ns` (`ppoll(2)`).
///
/// Returns nothing ready on a signal or after the timeout. The accuracy of the timeout depends on the thread's
/// timer slack; see [`crate::thread::set_timer_slack_ns`].
///
/// # Errors
/// Those of `ppoll(2)`, except `EINTR`.
pub fn wait(fd: BorrowedFd<'_>, for_writing: bool, timeout_ns: u64) -> io::Result<Ready> {
    let events = if for_writing { libc::POLLIN | libc::POLLOUT } else { libc::POLLIN };
    let mut poll = libc::pollfd { fd: fd.as_raw_fd(), events, revents: 0 };
    let timeout = libc::timespec {
        tv_sec: (timeout_ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (timeout_ns % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: `poll` is one valid pollfd, `timeout` a valid timespec, and a null mask leaves the signal mask alone.
    let rc = unsafe { libc::ppoll(&raw mut poll, 1, &raw const timeout, std::ptr::null()) };
    if rc < 0 {
        let error = io::Error::last_os_error();
        return if error.kind() == io::ErrorKind::Interrupted { Ok(Ready::default()) } else { Err(error) };
    }
    let broken = poll.revents & (libc::POLLERR | libc::POLLHUP | libc::POLLNVAL) != 0;
    Ok(Ready { readable: poll.revents & libc::POLLIN != 0 || broken, writable: poll.revents & libc::POLLOUT != 0 })
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn polling_sees_datagrams_and_times_out_without() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(socket.local_addr().unwrap()).unwrap();
        assert_eq!(wait(socket.as_fd(), false, 1_000_000).unwrap(), Ready::default());
        assert_eq!(wait(socket.as_fd(), true, 0).unwrap(), Ready { readable: false, writable: true });
        socket.send(b"x").unwrap();
        assert!(wait(socket.as_fd(), false, 1_000_000_000).unwrap().readable);
    }
}
