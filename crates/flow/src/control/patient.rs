//! Whole reads, writes and connects that end by a deadline, however the peer drips.
//!
//! A socket timeout bounds one system call, not the exchange: a peer that moves a byte now and then would be waited
//! for without end.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use landspeed_sys::clock;
use landspeed_sys::socket::{Readiness, wait};
use socket2::Socket;

/// How often the stop flag is looked at, nanoseconds.
const TICK_NS: u64 = 100_000_000;

fn stopped(stop: Option<&AtomicBool>) -> bool {
    stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
}

/// Time for the next system call, or why there is none.
fn turn(deadline_ns: u64, stop: Option<&AtomicBool>) -> io::Result<Duration> {
    if stopped(stop) {
        return Err(io::Error::other("interrupted"));
    }
    let left = deadline_ns.saturating_sub(clock::monotonic_ns());
    if left == 0 {
        return Err(io::ErrorKind::TimedOut.into());
    }
    Ok(Duration::from_nanos(left.clamp(1_000_000, TICK_NS)))
}

fn try_again(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

/// Fills `buffer` by `deadline_ns`, or fails with [`io::ErrorKind::TimedOut`]; earlier when `stop` is set.
pub fn read_exact(
    stream: &mut TcpStream,
    buffer: &mut [u8],
    deadline_ns: u64,
    stop: Option<&AtomicBool>,
) -> io::Result<()> {
    let mut have = 0;
    while have < buffer.len() {
        stream.set_read_timeout(Some(turn(deadline_ns, stop)?))?;
        match stream.read(&mut buffer[have..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => have += n,
            Err(error) if try_again(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Writes all of `bytes` by `deadline_ns`, or fails with [`io::ErrorKind::TimedOut`].
pub fn write_all(stream: &mut TcpStream, mut bytes: &[u8], deadline_ns: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        stream.set_write_timeout(Some(turn(deadline_ns, None)?))?;
        match stream.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => bytes = &bytes[n..],
            Err(error) if try_again(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Connects by `deadline_ns`; the socket blocks afterwards.
pub fn connect(socket: &Socket, server: SocketAddr, deadline_ns: u64, stop: Option<&AtomicBool>) -> io::Result<()> {
    const EINPROGRESS: i32 = 115;
    socket.set_nonblocking(true)?;
    match socket.connect(&server.into()) {
        Ok(()) => {}
        Err(error) if error.raw_os_error() == Some(EINPROGRESS) => {
            while !wait(socket.as_fd(), Readiness::Writable, turn(deadline_ns, stop)?.as_millis().max(1) as u32)? {}
            if let Some(error) = socket.take_error()? {
                return Err(error);
            }
        }
        Err(error) => return Err(error),
    }
    socket.set_nonblocking(false)
}
