//! Who has shown a preface and not yet asked for a test.
//!
//! Each holds a thread, so there is a bound. When it is reached the oldest of the client host that holds most places has
//! to go, and is sent why: strangers cannot keep others out by coming in numbers.

use std::collections::HashMap;
use std::net::{IpAddr, Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// All handshakes of a server.
#[derive(Debug)]
pub struct Handshakes {
    most: usize,
    places: Mutex<HandshakeSlots>,
}

#[derive(Debug, Default)]
struct HandshakeSlots {
    next: u64,
    taken: HashMap<u64, (IpAddr, TcpStream)>,
    /// Connections that lost their slot and have not been answered yet.
    lost: HashMap<u64, TcpStream>,
}

/// A slot, freed on drop.
#[derive(Debug)]
pub struct HandshakeSlot {
    handshakes: Arc<Handshakes>,
    number: u64,
}

impl Handshakes {
    /// At most `most` at once.
    pub fn new(most: usize) -> Self {
        Self { most, places: Mutex::default() }
    }

    /// A place for a connection of a client host; another may lose its own.
    pub fn enter(self: &Arc<Self>, host: IpAddr, stream: &TcpStream) -> std::io::Result<HandshakeSlot> {
        let twin = stream.try_clone()?;
        let mut places = self.lock();
        if places.taken.len() >= self.most
            && let Some(victim) = oldest_of_busiest_host(places.taken.iter().map(|(&number, (ip, _))| (*ip, number)))
            && let Some((_, stream)) = places.taken.remove(&victim)
        {
            // Its thread wakes from reading, and has the last word ([`HandshakeSlot::lost`]). Only reading is shut down: a reset
            // would follow data that arrives after both sides were.
            let _ = stream.shutdown(Shutdown::Read);
            places.lost.insert(victim, stream);
        }
        let number = places.next;
        places.next += 1;
        places.taken.insert(number, (host, twin));
        Ok(HandshakeSlot { handshakes: Arc::clone(self), number })
    }

    fn lock(&self) -> MutexGuard<'_, HandshakeSlots> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HandshakeSlot {
    /// The connection, if it has lost its place. Its reading side has been shut down.
    pub fn lost(&self) -> Option<TcpStream> {
        self.handshakes.lock().lost.remove(&self.number)
    }

    /// Leaves for a place among the tests; false if this one was lost before, and then it is too late.
    pub fn leave(&self) -> bool {
        self.handshakes.lock().taken.remove(&self.number).is_some()
    }
}

impl Drop for HandshakeSlot {
    fn drop(&mut self) {
        let mut places = self.handshakes.lock();
        places.taken.remove(&self.number);
        places.lost.remove(&self.number);
    }
}

/// Of (client host, age rank), the lowest rank of the host that is there most often.
pub fn oldest_of_busiest_host(held: impl Iterator<Item = (IpAddr, u64)>) -> Option<u64> {
    let mut by_address: HashMap<IpAddr, (usize, u64)> = HashMap::new();
    for (ip, rank) in held {
        let (count, oldest) = by_address.entry(ip).or_insert((0, rank));
        *count += 1;
        *oldest = rank.min(*oldest);
    }
    by_address.into_values().max_by_key(|&(count, oldest)| (count, std::cmp::Reverse(oldest))).map(|(_, rank)| rank)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn the_crowd_makes_room_for_the_single_one() {
        let crowd = IpAddr::from([192, 0, 2, 1]);
        let single = IpAddr::from([192, 0, 2, 2]);
        let held = [(single, 0), (crowd, 3), (crowd, 2), (crowd, 4)];
        assert_eq!(oldest_of_busiest_host(held.into_iter()), Some(2));
        assert_eq!(oldest_of_busiest_host(std::iter::empty()), None);
    }

    #[test]
    fn only_waiting_connections_lose_their_slot() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let stream = TcpStream::connect(listener.local_addr().expect("bound")).expect("connected");
        let handshakes = Arc::new(Handshakes::new(2));
        let host = IpAddr::from([192, 0, 2, 1]);
        let enter = || handshakes.enter(host, &stream).expect("a descriptor");
        let (first, second, third) = (enter(), enter(), enter());
        assert!(first.lost().is_some() && !first.leave());
        assert!(second.lost().is_none() && second.leave());
        let fourth = enter();
        assert!(second.lost().is_none() && third.lost().is_none() && fourth.leave());
        drop((first, second, third, fourth));
        assert!(handshakes.lock().taken.is_empty() && handshakes.lock().lost.is_empty());
    }
}
