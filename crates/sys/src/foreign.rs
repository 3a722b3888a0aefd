//! Sockets of other processes.

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use crate::process::pidfd_open;
use crate::socket::{buffer_locks, incoming_cpu, socket_cookie};

/// Options of a socket of another process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForeignSocket {
    /// `SO_INCOMING_CPU`: the core that processed its last segment; `None` before the first.
    pub incoming_cpu: Option<u32>,
    /// Whether the program set `SO_RCVBUF`, and whether it set `SO_SNDBUF` (`SO_BUF_LOCK`); `None` before Linux 5.14.
    pub buffer_locks: Option<(bool, bool)>,
}

/// Reads options of file descriptor `fd` of process `pid`, if it is the socket with this cookie. The descriptor is
/// duplicated for the duration of three system calls.
///
/// # Errors
/// `EPERM` without `PTRACE_MODE_ATTACH_REALCREDS` on the process (root); `ENOSYS` before Linux 5.6; `NotFound` if
/// the descriptor belongs to another socket.
pub fn options_of(pid: u32, fd: u32, cookie: u64) -> io::Result<ForeignSocket> {
    let process = pidfd_open(pid)?;
    // SAFETY: the descriptor of the process is open, the rest are plain integers; a new descriptor comes out.
    let socket = owned(unsafe { libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), fd as libc::c_int, 0) })?;
    if socket_cookie(socket.as_fd())? != cookie {
        return Err(io::ErrorKind::NotFound.into());
    }
    Ok(ForeignSocket { incoming_cpu: incoming_cpu(socket.as_fd()), buffer_locks: buffer_locks(socket.as_fd()) })
}

fn owned(result: libc::c_long) -> io::Result<OwnedFd> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just made this descriptor for us, and nothing else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(result as libc::c_int) })
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn options_of_a_socket_are_found_by_cookie() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut near = TcpStream::connect(listener.local_addr().expect("bound")).expect("connected");
        let (mut far, _) = listener.accept().expect("connected");
        near.write_all(b"x").expect("sent");
        far.read_exact(&mut [0]).expect("received");
        let cookie = socket_cookie(far.as_fd()).expect("a cookie");
        let (pid, fd) = (std::process::id(), far.as_raw_fd() as u32);
        let options = options_of(pid, fd, cookie).expect("visible to its own process");
        let cores = std::thread::available_parallelism().expect("cores").get().max(1024);
        assert!(options.incoming_cpu.is_some_and(|cpu| (cpu as usize) < cores));
        assert_eq!(options_of(pid, fd, cookie + 1).unwrap_err().kind(), io::ErrorKind::NotFound);
        let Some(locks) = options.buffer_locks else { return };
        assert_eq!(locks, (false, false), "the kernel sizes both");
        crate::socket::set_int(far.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, 1 << 16).expect("set");
        assert_eq!(options_of(pid, fd, cookie).expect("visible").buffer_locks, Some((true, false)));
    }
}
