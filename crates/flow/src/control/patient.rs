//! Complete reads, writes and connects bounded by a [`Deadline`], even if the peer is slow.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;

use landspeed_sys::socket::{Readiness, wait};
use socket2::Socket;

use super::deadline::Deadline;

fn is_retryable(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

/// Fills `buffer` by the deadline, or fails with [`io::ErrorKind::TimedOut`].
pub fn read_exact(stream: &mut TcpStream, buffer: &mut [u8], deadline: &Deadline<'_>) -> io::Result<()> {
    let mut have = 0;
    while have < buffer.len() {
        stream.set_read_timeout(Some(deadline.slice()?))?;
        match stream.read(&mut buffer[have..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => have += n,
            Err(error) if is_retryable(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Writes all of `bytes` by the deadline, or fails with [`io::ErrorKind::TimedOut`].
pub fn write_all(stream: &mut TcpStream, mut bytes: &[u8], deadline: &Deadline<'_>) -> io::Result<()> {
    while !bytes.is_empty() {
        stream.set_write_timeout(Some(deadline.slice()?))?;
        match stream.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => bytes = &bytes[n..],
            Err(error) if is_retryable(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Connects by the deadline; the socket is blocking afterwards.
pub fn connect(socket: &Socket, server: SocketAddr, deadline: &Deadline<'_>) -> io::Result<()> {
    const EINPROGRESS: i32 = 115;
    socket.set_nonblocking(true)?;
    match socket.connect(&server.into()) {
        Ok(()) => {}
        Err(error) if error.raw_os_error() == Some(EINPROGRESS) => {
            while !wait(socket.as_fd(), Readiness::Writable, deadline.slice()?.as_millis() as u32)? {}
            if let Some(error) = socket.take_error()? {
                return Err(error);
            }
        }
        Err(error) => return Err(error),
    }
    socket.set_nonblocking(false)
}
