//! Connections that have sent a preface and not yet requested a test.
//!
//! Each uses a thread, so their number is limited. At the limit, the oldest connection of the client host with
//! most connections is closed with an error message: a client cannot lock out others by opening many
//! connections.

use std::collections::HashMap;
use std::net::{IpAddr, Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Handshake slots of a server.
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
    /// Creates `most` slots.
    pub fn new(most: usize) -> Self {
        Self { most, places: Mutex::default() }
    }

    /// Takes a slot for a connection of a client host; another connection may lose its slot.
    pub fn enter(self: &Arc<Self>, host: IpAddr, stream: &TcpStream) -> std::io::Result<HandshakeSlot> {
        let twin = stream.try_clone()?;
        let mut places = self.lock();
        if places.taken.len() >= self.most
            && let Some(victim) = oldest_of_busiest_host(places.taken.iter().map(|(&number, (ip, _))| (*ip, number)))
            && let Some((_, stream)) = places.taken.remove(&victim)
        {
            // Wakes its thread from reading; the thread sends the error ([`HandshakeSlot::lost`]). Only the
            // read side is shut down: data that arrives after both sides are shut down would cause a reset.
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
    /// Returns the connection if it has lost its slot. Its read side is shut down.
    pub fn lost(&self) -> Option<TcpStream> {
        self.handshakes.lock().lost.remove(&self.number)
    }

    /// Frees the slot because the test is accepted; false if the slot was lost before.
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

/// Returns the lowest rank of the host with most entries, from pairs of client host and age rank.
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
    fn the_host_with_most_connections_loses_its_oldest() {
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
