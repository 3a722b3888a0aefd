//! Sockets of other processes.

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use crate::process::pidfd_open;
use crate::socket::{incoming_cpu, socket_cookie};

/// Reads `SO_INCOMING_CPU` of file descriptor `fd` of process `pid`, if it is the socket with this cookie: the
/// core that processed its last segment. The descriptor is duplicated for the duration of two system calls.
///
/// # Errors
/// `EPERM` without `PTRACE_MODE_ATTACH_REALCREDS` on the process (root); `ENOSYS` before Linux 5.6; `NotFound` if
/// the descriptor belongs to another socket, or nothing has arrived yet.
pub fn incoming_cpu_of(pid: u32, fd: u32, cookie: u64) -> io::Result<u32> {
    let process = pidfd_open(pid)?;
    // SAFETY: the descriptor of the process is open, the rest are plain integers; a new descriptor comes out.
    let socket = owned(unsafe { libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), fd as libc::c_int, 0) })?;
    if socket_cookie(socket.as_fd())? != cookie {
        return Err(io::ErrorKind::NotFound.into());
    }
    incoming_cpu(socket.as_fd()).ok_or_else(|| io::ErrorKind::NotFound.into())
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
    fn the_core_of_a_sockets_last_segment_is_found_by_cookie() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut near = TcpStream::connect(listener.local_addr().expect("bound")).expect("connected");
        let (mut far, _) = listener.accept().expect("connected");
        near.write_all(b"x").expect("sent");
        far.read_exact(&mut [0]).expect("received");
        let cookie = socket_cookie(far.as_fd()).expect("a cookie");
        let (pid, fd) = (std::process::id(), far.as_raw_fd() as u32);
        let cpu = incoming_cpu_of(pid, fd, cookie).expect("visible to its own process");
        assert!((cpu as usize) < std::thread::available_parallelism().expect("cores").get().max(1024));
        assert_eq!(incoming_cpu_of(pid, fd, cookie + 1).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
