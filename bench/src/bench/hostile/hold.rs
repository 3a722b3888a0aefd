//! Connections that an attacker holds open: silent, sending byte by byte, or repeating a message.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// The connections of one held test; only the first one sends.
#[derive(Debug)]
pub struct HeldTest {
    streams: Vec<TcpStream>,
    send_script: Option<SendScript>,
}

/// Data that a held connection sends.
#[derive(Debug)]
pub struct SendScript {
    every: Duration,
    bytes: Vec<u8>,
    /// Bytes sent so far when dripping; `None` when all bytes are sent each time.
    dripped: Option<usize>,
    due: Option<Instant>,
}

impl SendScript {
    /// Sends one byte at a time: `script`, then spaces.
    pub fn drip(every: Duration, script: Vec<u8>) -> Self {
        Self { every, bytes: script, dripped: Some(0), due: None }
    }

    /// Sends the same bytes each time.
    pub fn repeat(every: Duration, bytes: Vec<u8>) -> Self {
        Self { every, bytes, dripped: None, due: None }
    }

    fn next(&mut self, now: Instant) -> Option<Vec<u8>> {
        let due = *self.due.get_or_insert(now);
        if now < due {
            return None;
        }
        self.due = Some(now + self.every);
        Some(match &mut self.dripped {
            None => self.bytes.clone(),
            Some(at) => {
                let byte = self.bytes.get(*at).copied().unwrap_or(b' ');
                *at += 1;
                vec![byte]
            }
        })
    }
}

impl HeldTest {
    /// Holds a connection that sends nothing more.
    pub fn silent(stream: TcpStream) -> Self {
        Self { streams: vec![stream], send_script: None }
    }

    /// Holds connections of which the first one sends.
    pub fn with_script(streams: Vec<TcpStream>, send_script: SendScript) -> Self {
        Self { streams, send_script: Some(send_script) }
    }

    /// Makes the connections non-blocking.
    pub fn into_nonblocking(self) -> io::Result<Self> {
        self.streams.iter().try_for_each(|stream| stream.set_nonblocking(true))?;
        Ok(self)
    }

    /// Whether it sends data from time to time.
    pub fn has_script(&self) -> bool {
        self.send_script.is_some()
    }

    /// Sends data if due. Returns false if the server has closed the connection.
    pub fn send_if_due(&mut self, now: Instant) -> bool {
        let Some(bytes) = self.send_script.as_mut().and_then(|send_script| send_script.next(now)) else {
            return true;
        };
        match self.streams.first_mut().map(|stream| stream.write(&bytes)) {
            Some(Err(error)) => error.kind() == io::ErrorKind::WouldBlock,
            _ => true,
        }
    }

    /// Reads and discards data from the server. Returns false if the server has closed one of the connections.
    pub fn is_open(&mut self) -> bool {
        let mut buffer = [0; 16 * 1024];
        self.streams.iter_mut().all(|stream| {
            // Bounded number of reads; the rest is read next time.
            for _ in 0..8 {
                match stream.read(&mut buffer) {
                    Ok(0) => return false,
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                    Err(_) => return false,
                }
            }
            true
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::now;

    #[test]
    fn a_dripped_script_is_followed_by_spaces_at_its_interval() {
        let (start, every) = (now(), Duration::from_millis(50));
        let mut send_script = SendScript::drip(every, b"ab".to_vec());
        let said: Vec<_> = (0..8).map(|tick| send_script.next(start + every / 2 * tick)).collect();
        let heard: Vec<u8> = said.iter().flatten().flatten().copied().collect();
        assert_eq!(heard, b"ab  ");
        assert!(said.iter().skip(1).step_by(2).all(Option::is_none));
    }
}
