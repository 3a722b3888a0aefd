//! Refused connections, kept until the client has read the answer.
//!
//! If a connection is closed with unread data, the kernel sends a reset, which may overtake or destroy the
//! answer. So an answered connection is kept briefly and its data is discarded. Their number is limited: the
//! oldest is closed first.

use std::collections::VecDeque;
use std::io::Read as _;
use std::net::{Shutdown, TcpStream};
use std::sync::{Mutex, MutexGuard, PoisonError};

use landspeed_sys::{clock, socket};

/// Time for the client to read the answer, nanoseconds.
const LINGER_NS: u64 = 2_000_000_000;
/// Interval between checks of the list, nanoseconds.
const CHECK_INTERVAL_NS: u64 = 20_000_000;
/// Maximum number of reads per connection and check, in case the client keeps sending.
const MAX_READS: usize = 4;

/// Refused connections that are not closed yet.
#[derive(Debug)]
pub struct Refusals {
    most: usize,
    lingering: Mutex<Lingering>,
}

#[derive(Debug, Default)]
struct Lingering {
    connections: VecDeque<Connection>,
    checked_ns: u64,
}

#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    until_ns: u64,
    /// The read side was shut down locally, so end of file has no meaning.
    read_shut_down: bool,
}

impl Connection {
    /// Discards received data; true if the client has closed the connection.
    fn drain(&mut self) -> bool {
        let mut bytes = [0; 4096];
        for _ in 0..MAX_READS {
            match self.stream.read(&mut bytes) {
                Ok(0) => return !self.read_shut_down,
                Ok(_) => {}
                Err(error) => return error.kind() != std::io::ErrorKind::WouldBlock,
            }
        }
        false
    }
}

impl Refusals {
    /// Creates a list of at most `most` connections.
    pub fn new(most: usize) -> Self {
        Self { most, lingering: Mutex::default() }
    }

    /// Sends the answer without blocking, and closes the connection later.
    pub fn send(&self, stream: TcpStream, bytes: &[u8]) {
        self.keep(stream, bytes, false);
    }

    /// The same for a connection with its read side already shut down.
    pub fn send_after_shutdown(&self, stream: TcpStream, bytes: &[u8]) {
        self.keep(stream, bytes, true);
    }

    fn keep(&self, stream: TcpStream, bytes: &[u8], read_shut_down: bool) {
        // With both sides shut down, arriving data would cause a reset.
        if !answer(&stream, bytes) || (!read_shut_down && stream.shutdown(Shutdown::Write).is_err()) {
            return;
        }
        let until_ns = clock::monotonic_ns() + LINGER_NS;
        let mut connection = Connection { stream, until_ns, read_shut_down };
        if connection.drain() {
            return;
        }
        let mut lingering = self.lock();
        lingering.connections.push_back(connection);
        if lingering.connections.len() > self.most
            && let Some(mut oldest) = lingering.connections.pop_front()
        {
            oldest.drain();
        }
    }

    /// Closes connections that the client has closed or whose time is over. Cheap if called often.
    pub fn close_finished(&self, now_ns: u64) {
        let mut lingering = self.lock();
        if now_ns < lingering.checked_ns + CHECK_INTERVAL_NS {
            return;
        }
        lingering.checked_ns = now_ns;
        lingering.connections.retain_mut(|connection| !connection.drain() && now_ns < connection.until_ns);
    }

    fn lock(&self) -> MutexGuard<'_, Lingering> {
        self.lingering.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Answers a connection without a free slot, and closes it immediately.
pub fn refuse_immediately(stream: TcpStream, bytes: &[u8]) {
    if answer(&stream, bytes) && stream.shutdown(Shutdown::Write).is_ok() {
        Connection { stream, until_ns: 0, read_shut_down: false }.drain();
    }
}

/// Sends without blocking; false on failure.
fn answer(stream: &TcpStream, bytes: &[u8]) -> bool {
    use std::os::fd::AsFd as _;
    if stream.set_nonblocking(true).is_err() {
        return false;
    }
    bytes.is_empty() || socket::send(stream.as_fd(), bytes, 0).is_ok()
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use super::*;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let near = TcpStream::connect(listener.local_addr().expect("bound")).expect("connected");
        (near, listener.accept().expect("accepted").0)
    }

    #[test]
    fn the_refusal_arrives_despite_unread_data() {
        let refusals = Refusals::new(8);
        let (mut client, server) = pair();
        client.write_all(&[7; 10_000]).expect("sent");
        refusals.send(server, b"busy");
        client.write_all(&[7; 1000]).expect("no reset yet");
        let mut heard = Vec::new();
        client.read_to_end(&mut heard).expect("an end of file and no reset");
        assert_eq!(heard, b"busy");
    }

    #[test]
    fn refused_connections_are_limited_and_closed_after_a_timeout() {
        let refusals = Refusals::new(3);
        let clients: Vec<_> = (0..10)
            .map(|_| {
                let (client, server) = pair();
                refusals.send(server, b"busy");
                client
            })
            .collect();
        assert_eq!(refusals.lock().connections.len(), 3);
        let now_ns = clock::monotonic_ns();
        refusals.close_finished(now_ns);
        assert_eq!(refusals.lock().connections.len(), 3);
        refusals.close_finished(now_ns + LINGER_NS + CHECK_INTERVAL_NS);
        assert!(refusals.lock().connections.is_empty());
        for mut client in clients {
            let mut heard = Vec::new();
            client.read_to_end(&mut heard).expect("an answer");
            assert_eq!(heard, b"busy");
        }
    }
}
