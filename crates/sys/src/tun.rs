//! TUN interfaces: network interfaces whose link is a file descriptor. For tests that build their own path.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

/// Creates an interface of that name in the calling thread's namespace. Each read of the file returns one
/// outgoing IP packet, each write injects an incoming one; reads do not block. The interface is removed when the
/// file is closed.
///
/// # Errors
/// `ENOENT` without the driver, `EPERM` without `CAP_NET_ADMIN`, `EBUSY` if the name is taken.
pub fn open(name: &str) -> io::Result<File> {
    const TUNSETIFF: libc::Ioctl = 0x4004_54ca;
    let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun")?;
    let mut request = crate::interface::interface_request(name)?;
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: `request` is a whole ifreq with a terminated name and its flags set; TUNSETIFF reads those and writes the
    // name back.
    match unsafe { libc::ioctl(file.as_raw_fd(), TUNSETIFF, &raw mut request) } {
        0 => Ok(file),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Waits until one of two descriptors is readable, or `timeout_ns` has passed.
pub fn wait_readable(either: [BorrowedFd<'_>; 2], timeout_ns: u64) {
    let mut polled = either.map(|fd| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 });
    let timeout = libc::timespec {
        tv_sec: (timeout_ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (timeout_ns % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: `polled` holds two descriptors open for the length of the borrow, `timeout` is a valid timespec, and a null
    // signal mask means none. An error is a wake-up like any other to the caller.
    unsafe { libc::ppoll(polled.as_mut_ptr(), 2, &raw const timeout, std::ptr::null()) };
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::SocketAddr;
    use std::os::fd::AsFd;

    use socket2::{Domain, Socket, Type};

    use super::*;
    use crate::netns;

    #[test]
    fn packets_sent_to_a_tun_are_read_from_its_file() {
        let outcome = netns::run_in_new_namespace(|| -> io::Result<(usize, Vec<u8>)> {
            let mut file = open("tun0")?;
            netns::bring_up("tun0")?;
            // Multicast needs neither address nor route, only an interface.
            let socket = Socket::new(Domain::IPV4, Type::DGRAM, None)?;
            socket.bind_device(Some(b"tun0"))?;
            socket.send_to(b"hello", &SocketAddr::from(([224, 0, 0, 1], 9)).into())?;
            wait_readable([file.as_fd(), file.as_fd()], 1_000_000_000);
            let mut packet = [0; 2048];
            // Skip packets that the kernel itself sends on a new link.
            loop {
                let length = file.read(&mut packet)?;
                if packet[0] >> 4 == 4 {
                    return Ok((length, packet[length - 5..length].to_vec()));
                }
            }
        });
        match outcome.and_then(|inner| inner) {
            Ok((length, payload)) => assert_eq!((length, payload.as_slice()), (20 + 8 + 5, &b"hello"[..])),
            Err(why) => landspeed_testkit::skip!("no TUN interface here: {why}"),
        }
    }
}
