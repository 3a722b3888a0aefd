//! Who has shown a preface and not yet asked for a test.
//!
//! Each holds a thread, so there is a bound. When it is reached the oldest of the address that holds most places has to
//! go: strangers cannot keep others out by coming in numbers.

use std::collections::HashMap;
use std::net::{IpAddr, Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Handshakes at once.
const MOST: usize = 256;

/// All handshakes of a server.
#[derive(Debug, Default)]
pub struct Handshakes {
    places: Mutex<Places>,
}

#[derive(Debug, Default)]
struct Places {
    next: u64,
    taken: HashMap<u64, (IpAddr, TcpStream)>,
}

/// A place, given back when dropped.
#[derive(Debug)]
pub struct Place {
    handshakes: Arc<Handshakes>,
    number: u64,
}

impl Handshakes {
    /// A place for a connection; another may lose its own.
    pub fn enter(self: &Arc<Self>, peer: IpAddr, stream: &TcpStream) -> std::io::Result<Place> {
        let twin = stream.try_clone()?;
        let mut places = self.lock();
        if places.taken.len() >= MOST
            && let Some(victim) = crowded_out(places.taken.iter().map(|(&number, (ip, _))| (*ip, number)))
            && let Some((_, stream)) = places.taken.remove(&victim)
        {
            let _ = stream.shutdown(Shutdown::Both);
        }
        let number = places.next;
        places.next += 1;
        places.taken.insert(number, (peer, twin));
        Ok(Place { handshakes: Arc::clone(self), number })
    }

    fn lock(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.handshakes.lock().taken.remove(&self.number);
    }
}

/// Of (address, age rank), the lowest rank of the address that is there most often.
pub fn crowded_out(held: impl Iterator<Item = (IpAddr, u64)>) -> Option<u64> {
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
    use super::*;

    #[test]
    fn the_crowd_makes_room_for_the_single_one() {
        let crowd = IpAddr::from([192, 0, 2, 1]);
        let single = IpAddr::from([192, 0, 2, 2]);
        let held = [(single, 0), (crowd, 3), (crowd, 2), (crowd, 4)];
        assert_eq!(crowded_out(held.into_iter()), Some(2));
        assert_eq!(crowded_out(std::iter::empty()), None);
    }
}
