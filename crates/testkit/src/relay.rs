//! An impaired path on loopback: drops, duplicates and reorders UDP datagrams, and counts exactly what it did.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use landspeed_sys::udp::set_receive_buffer;

use crate::random::Random;

/// Impairments applied to each datagram independently; probabilities from 0 to 1.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Mischief {
    /// Seed of the random numbers; the same seed and the same arrivals give the same impairments.
    pub seed: u64,
    /// Probability of dropping a datagram.
    pub drop: f64,
    /// Probability of forwarding it twice (if not dropped).
    pub duplicate: f64,
    /// Probability of delaying it until some later datagrams have passed (if not dropped).
    pub reorder: f64,
    /// Drops everything after this many datagrams, to simulate tail loss.
    pub cut_after: Option<u64>,
}

/// Counts of a relay. `received = dropped + first copies forwarded`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Deeds {
    /// Datagrams received.
    pub received: u64,
    /// Datagrams dropped.
    pub dropped: u64,
    /// Extra copies forwarded.
    pub duplicated: u64,
    /// First copies forwarded after a datagram that arrived later (as defined in RFC 4737 if they arrived in order).
    pub reordered: u64,
    /// Datagrams forwarded, including extra copies.
    pub forwarded: u64,
}

impl Deeds {
    /// Returns the sum of both counts.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            received: self.received + other.received,
            dropped: self.dropped + other.dropped,
            duplicated: self.duplicated + other.duplicated,
            reordered: self.reordered + other.reordered,
            forwarded: self.forwarded + other.forwarded,
        }
    }
}

/// A relay from a front port to a receiver, on one loopback address. It sends to the receiver from its back port,
/// so both sides can use connected sockets.
pub struct UdpRelay {
    front: SocketAddr,
    back: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Deeds>>,
}

impl UdpRelay {
    /// Starts a relay to `receiver`, which should accept datagrams from [`UdpRelay::back`] only.
    pub fn start(receiver: SocketAddr, mischief: Mischief) -> io::Result<Self> {
        println!("relay seed {}", mischief.seed);
        let (front, back) = (bind(receiver.ip())?, bind(receiver.ip())?);
        set_receive_buffer(front.as_fd(), 4 << 20)?;
        front.set_read_timeout(Some(Duration::from_millis(5)))?;
        back.connect(receiver)?;
        let stop = Arc::new(AtomicBool::new(false));
        let (front_addr, back_addr) = (front.local_addr()?, back.local_addr()?);
        let path = Path::new(back, mischief);
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || path.run(&front, &stopped));
        Ok(Self { front: front_addr, back: back_addr, stop, thread: Some(thread) })
    }

    /// Returns the address that the sender sends to.
    pub fn front(&self) -> SocketAddr {
        self.front
    }

    /// Returns the address that the receiver receives from.
    pub fn back(&self) -> SocketAddr {
        self.back
    }

    /// Forwards everything queued or delayed, stops, and returns the counts.
    ///
    /// # Panics
    /// If the relay's thread panicked.
    pub fn stop(mut self) -> Deeds {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().expect("stopped once").join().expect("the relay does not panic")
    }
}

impl Drop for UdpRelay {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn bind(ip: IpAddr) -> io::Result<UdpSocket> {
    UdpSocket::bind(SocketAddr::new(ip, 0))
}

/// Path of one stream through a relay.
pub(crate) struct Path {
    out: UdpSocket,
    mischief: Mischief,
    random: Random,
    held: VecDeque<Held>,
    /// Highest arrival number forwarded, plus one.
    highest: u64,
}

/// A datagram delayed until arrival number `until`.
struct Held {
    until: u64,
    number: u64,
    copies: u64,
    data: Vec<u8>,
}

impl Path {
    /// Maximum number of later arrivals that may overtake a datagram.
    const FURTHEST: u64 = 16;

    /// Creates a path that sends on `out`, which must be connected.
    pub(crate) fn new(out: UdpSocket, mischief: Mischief) -> Self {
        Self { out, mischief, random: Random::new(mischief.seed), held: VecDeque::new(), highest: 0 }
    }

    fn run(mut self, front: &UdpSocket, stop: &AtomicBool) -> Deeds {
        let mut deeds = Deeds::default();
        let mut buffer = vec![0; 65_536];
        loop {
            if let Ok(length) = front.recv(&mut buffer) {
                self.arrive(&buffer[..length], &mut deeds);
            } else {
                // Idle: no later packet will arrive to overtake the held ones.
                self.release(u64::MAX, &mut deeds);
                if stop.load(Ordering::Relaxed) {
                    return deeds;
                }
            }
        }
    }

    /// Applies the impairments to an arriving datagram.
    pub(crate) fn arrive(&mut self, data: &[u8], deeds: &mut Deeds) {
        let number = deeds.received;
        deeds.received += 1;
        self.release(number, deeds);
        let cut = self.mischief.cut_after.is_some_and(|after| number >= after);
        if cut || self.random.happens(self.mischief.drop) {
            deeds.dropped += 1;
            return;
        }
        let copies = 1 + u64::from(self.random.happens(self.mischief.duplicate));
        if self.random.happens(self.mischief.reorder) {
            let until = number + 1 + self.random.below(Self::FURTHEST);
            self.held.push_back(Held { until, number, copies, data: data.to_vec() });
        } else {
            self.forward(number, copies, data, deeds);
        }
    }

    /// Forwards the datagrams delayed until arrival `number`.
    pub(crate) fn release(&mut self, number: u64, deeds: &mut Deeds) {
        for _ in 0..self.held.len() {
            let held = self.held.pop_front().expect("as many as counted");
            if held.until <= number {
                self.forward(held.number, held.copies, &held.data, deeds);
            } else {
                self.held.push_back(held);
            }
        }
    }

    /// Forwards a datagram without counting it.
    pub(crate) fn pass(&self, data: &[u8]) {
        let _ = self.out.send(data);
    }

    fn forward(&mut self, number: u64, copies: u64, data: &[u8], deeds: &mut Deeds) {
        deeds.reordered += u64::from(number < self.highest);
        self.highest = self.highest.max(number + 1);
        deeds.duplicated += copies - 1;
        for _ in 0..copies {
            // A refusal reports the ICMP error of an earlier datagram, and this one has not been sent: try again.
            if self.out.send(data).is_err() && self.out.send(data).is_err() {
                continue;
            }
            deeds.forwarded += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends `count` numbered datagrams through a relay; returns the numbers that arrived and the relay's counts.
    fn through(mischief: Mischief, count: u32) -> (Vec<u32>, Deeds) {
        let receiver = UdpSocket::bind("127.0.0.1:0").expect("loopback exists");
        receiver.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        let relay = UdpRelay::start(receiver.local_addr().unwrap(), mischief).unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.connect(relay.front()).unwrap();
        for i in 0..count {
            sender.send(&i.to_be_bytes()).unwrap();
        }
        let deeds = relay.stop();
        let mut buffer = [0; 8];
        let arrived = (0..deeds.forwarded).map(|_| {
            assert_eq!(receiver.recv(&mut buffer).unwrap(), 4);
            u32::from_be_bytes([buffer[0], buffer[1], buffer[2], buffer[3]])
        });
        (arrived.collect(), deeds)
    }

    #[test]
    fn relay_without_impairments_forwards_everything_in_order() {
        let (arrived, deeds) = through(Mischief::default(), 100);
        assert_eq!(arrived, (0..100).collect::<Vec<_>>());
        assert_eq!(deeds, Deeds { received: 100, forwarded: 100, ..Deeds::default() });
    }

    #[test]
    fn relay_counts_match_what_arrives() {
        let mischief = Mischief { seed: 7, drop: 0.1, duplicate: 0.2, reorder: 0.1, cut_after: Some(150) };
        let (arrived, deeds) = through(mischief, 200);
        assert_eq!(deeds.received, 200);
        let mut seen = std::collections::HashSet::new();
        let (mut next, mut reordered) = (0, 0);
        for &number in &arrived {
            reordered += u64::from(seen.insert(number) && number < next);
            next = next.max(number + 1);
        }
        assert_eq!(seen.len() as u64, deeds.received - deeds.dropped);
        assert_eq!(arrived.len() as u64 - seen.len() as u64, deeds.duplicated);
        assert_eq!(reordered, deeds.reordered);
        assert!(deeds.dropped > 0 && deeds.duplicated > 0 && deeds.reordered > 0, "{deeds:?}");
    }
}
