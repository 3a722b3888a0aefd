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
pub struct Impairments {
    /// Seed of the random numbers; the same seed and the same arrivals give the same impairments.
    pub seed: u64,
    /// Probability of dropping a datagram.
    pub drop: f64,
    /// Probability of forwarding it twice (if not dropped).
    pub duplicate: f64,
    /// Probability of delaying it until some later datagrams have passed (if not dropped).
    pub reorder: f64,
    /// Drops everything after this many datagrams, to simulate tail loss.
    pub drop_after: Option<u64>,
}

/// Counts of a relay. `received = dropped + first copies forwarded`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RelayCounts {
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

impl RelayCounts {
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
    thread: Option<JoinHandle<RelayCounts>>,
}

impl UdpRelay {
    /// Starts a relay to `receiver`, which should accept datagrams from [`UdpRelay::back`] only.
    pub fn start(receiver: SocketAddr, impairments: Impairments) -> io::Result<Self> {
        println!("relay seed {}", impairments.seed);
        let (front, back) = (bind(receiver.ip())?, bind(receiver.ip())?);
        set_receive_buffer(front.as_fd(), 4 << 20)?;
        front.set_read_timeout(Some(Duration::from_millis(5)))?;
        back.connect(receiver)?;
        let stop = Arc::new(AtomicBool::new(false));
        let (front_addr, back_addr) = (front.local_addr()?, back.local_addr()?);
        let path = Path::new(back, impairments);
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
    pub fn stop(mut self) -> RelayCounts {
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
    impairments: Impairments,
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
    const MAX_OVERTAKING: u64 = 16;

    /// Creates a path that sends on `out`, which must be connected.
    pub(crate) fn new(out: UdpSocket, impairments: Impairments) -> Self {
        Self { out, impairments, random: Random::new(impairments.seed), held: VecDeque::new(), highest: 0 }
    }

    fn run(mut self, front: &UdpSocket, stop: &AtomicBool) -> RelayCounts {
        let mut relay_counts = RelayCounts::default();
        let mut buffer = vec![0; 65_536];
        loop {
            if let Ok(length) = front.recv(&mut buffer) {
                self.arrive(&buffer[..length], &mut relay_counts);
            } else {
                // Idle: no later packet will arrive to overtake the held ones.
                self.release(u64::MAX, &mut relay_counts);
                if stop.load(Ordering::Relaxed) {
                    return relay_counts;
                }
            }
        }
    }

    /// Applies the impairments to an arriving datagram.
    pub(crate) fn arrive(&mut self, data: &[u8], relay_counts: &mut RelayCounts) {
        let number = relay_counts.received;
        relay_counts.received += 1;
        self.release(number, relay_counts);
        let cut = self.impairments.drop_after.is_some_and(|after| number >= after);
        if cut || self.random.random_bool(self.impairments.drop) {
            relay_counts.dropped += 1;
            return;
        }
        let copies = 1 + u64::from(self.random.random_bool(self.impairments.duplicate));
        if self.random.random_bool(self.impairments.reorder) {
            let until = number + 1 + self.random.below(Self::MAX_OVERTAKING);
            self.held.push_back(Held { until, number, copies, data: data.to_vec() });
        } else {
            self.forward(number, copies, data, relay_counts);
        }
    }

    /// Forwards the datagrams delayed until arrival `number`.
    pub(crate) fn release(&mut self, number: u64, relay_counts: &mut RelayCounts) {
        for _ in 0..self.held.len() {
            let held = self.held.pop_front().expect("as many as counted");
            if held.until <= number {
                self.forward(held.number, held.copies, &held.data, relay_counts);
            } else {
                self.held.push_back(held);
            }
        }
    }

    /// Forwards a datagram without counting it.
    pub(crate) fn pass(&self, data: &[u8]) {
        let _ = self.out.send(data);
    }

    fn forward(&mut self, number: u64, copies: u64, data: &[u8], relay_counts: &mut RelayCounts) {
        relay_counts.reordered += u64::from(number < self.highest);
        self.highest = self.highest.max(number + 1);
        relay_counts.duplicated += copies - 1;
        for _ in 0..copies {
            // A refusal reports the ICMP error of an earlier datagram, and this one has not been sent: try again.
            if self.out.send(data).is_err() && self.out.send(data).is_err() {
                continue;
            }
            relay_counts.forwarded += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends `count` numbered datagrams through a relay; returns the numbers that arrived and the relay's counts.
    fn through(impairments: Impairments, count: u32) -> (Vec<u32>, RelayCounts) {
        let receiver = UdpSocket::bind("127.0.0.1:0").expect("loopback exists");
        receiver.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        let relay = UdpRelay::start(receiver.local_addr().unwrap(), impairments).unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.connect(relay.front()).unwrap();
        for i in 0..count {
            sender.send(&i.to_be_bytes()).unwrap();
        }
        let relay_counts = relay.stop();
        let mut buffer = [0; 8];
        let arrived = (0..relay_counts.forwarded).map(|_| {
            assert_eq!(receiver.recv(&mut buffer).unwrap(), 4);
            u32::from_be_bytes([buffer[0], buffer[1], buffer[2], buffer[3]])
        });
        (arrived.collect(), relay_counts)
    }

    #[test]
    fn relay_without_impairments_forwards_everything_in_order() {
        let (arrived, relay_counts) = through(Impairments::default(), 100);
        assert_eq!(arrived, (0..100).collect::<Vec<_>>());
        assert_eq!(relay_counts, RelayCounts { received: 100, forwarded: 100, ..RelayCounts::default() });
    }

    #[test]
    fn relay_counts_match_what_arrives() {
        let impairments = Impairments { seed: 7, drop: 0.1, duplicate: 0.2, reorder: 0.1, drop_after: Some(150) };
        let (arrived, relay_counts) = through(impairments, 200);
        assert_eq!(relay_counts.received, 200);
        let mut seen = std::collections::HashSet::new();
        let (mut next, mut reordered) = (0, 0);
        for &number in &arrived {
            reordered += u64::from(seen.insert(number) && number < next);
            next = next.max(number + 1);
        }
        assert_eq!(seen.len() as u64, relay_counts.received - relay_counts.dropped);
        assert_eq!(arrived.len() as u64 - seen.len() as u64, relay_counts.duplicated);
        assert_eq!(reordered, relay_counts.reordered);
        assert!(
            relay_counts.dropped > 0 && relay_counts.duplicated > 0 && relay_counts.reordered > 0,
            "{relay_counts:?}"
        );
    }
}
