//! A path between two namespaces made in user space: delay, rate, queue, loss, duplication and reordering, with a count
//! of everything it did. Two TUN interfaces and one thread; no kernel module is needed.

use std::collections::{BinaryHeap, VecDeque};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use landspeed_sys::{clock, thread, tun};

use crate::netns::{Namespace, address};
use crate::random::Random;

/// One direction of a wire. The default is a perfect one.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Leg {
    /// Time in transit, nanoseconds.
    pub delay_ns: u64,
    /// Rate of the bottleneck, bits/s of IP packets; `None` for no bottleneck.
    pub rate_bps: Option<f64>,
    /// Bytes that may wait for the bottleneck; a packet beyond is dropped.
    pub queue_bytes: u64,
    /// Probability of losing a packet, before the bottleneck.
    pub loss: f64,
    /// Probability of delivering a packet twice.
    pub duplicate: f64,
    /// Probability of delivering a packet [`Leg::reorder_ns`] late.
    pub reorder: f64,
    /// How late.
    pub reorder_ns: u64,
    /// Whether only UDP suffers and counts, TCP beside it being control traffic.
    pub udp_only: bool,
}

/// What a wire did in one direction. Only packets of at least [`COUNTED_BYTES`] count (and suffer loss, duplication and
/// reordering), so that handshakes and ACKs stay out of the accounting. `received = lost + overflowed + delivered − duplicated`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// Packets that came in.
    pub received: u64,
    /// Packets lost at random.
    pub lost: u64,
    /// Packets the full queue had no room for.
    pub overflowed: u64,
    /// Extra copies.
    pub duplicated: u64,
    /// Packets delivered late on purpose.
    pub delayed: u64,
    /// Packets delivered, copies included.
    pub delivered: u64,
}

/// IP packets from this size on are a test's data.
pub const COUNTED_BYTES: usize = 600;

/// Addresses of the two ends.
pub const LEFT: &str = "10.77.0.1";
/// The right end's.
pub const RIGHT: &str = "10.77.0.2";

/// A running wire. Dropping it cuts it.
pub struct Wire {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<[Count; 2]>>,
}

impl Wire {
    /// Joins `left` ([`LEFT`]) and `right` ([`RIGHT`]); `legs` are left to right and right to left. The error says why it
    /// cannot be had here.
    pub fn between(left: &Namespace, right: &Namespace, legs: [Leg; 2], seed: u64) -> Result<Self, String> {
        let end = |namespace: &Namespace, here: &str| -> Result<File, String> {
            let file = namespace.run(|| tun::open("wire")).map_err(|why| format!("no TUN interface: {why}"))?;
            address(namespace, "wire", &format!("{here}/24"));
            namespace.exec(["ip", "link", "set", "wire", "txqueuelen", "20000", "up"]);
            Ok(file)
        };
        let files = [end(left, LEFT)?, end(right, RIGHT)?];
        println!("wire seed {seed}");
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let [ahead, back] = legs;
        let paths = [Path::new(ahead, seed), Path::new(back, seed ^ 0x5555)];
        let thread = std::thread::Builder::new()
            .name("wire".to_owned())
            .spawn(move || carry(&files, paths, &stopped))
            .map_err(|why| format!("no thread for the wire: {why}"))?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Cuts the wire and returns what it did: left to right, right to left.
    ///
    /// # Panics
    /// If its thread did.
    pub fn cut(mut self) -> [Count; 2] {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().expect("cut once").join().expect("the wire does not panic")
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // The interfaces go with the files the thread holds.
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A wire must not wait behind the load of a busy machine, or its delay is that of the scheduler. Best effort.
fn hurry() {
    thread::set_timer_slack_ns(1);
    let thread = thread::id().to_string();
    let _ = Command::new("chrt").args(["-f", "-p", "10", &thread]).output();
}

fn carry(files: &[File; 2], mut paths: [Path; 2], stop: &AtomicBool) -> [Count; 2] {
    /// How long a wire with nothing to do sleeps, nanoseconds: bounds how late it notices that it was cut.
    const NAP_NS: u64 = 20_000_000;
    hurry();
    let mut packet = vec![0; 65_536];
    while !stop.load(Ordering::Relaxed) {
        let now = clock::monotonic_ns();
        let due = paths.iter().filter_map(Path::next_ns).min().unwrap_or(u64::MAX);
        tun::wait_readable([files[0].as_fd(), files[1].as_fd()], due.saturating_sub(now).min(NAP_NS));
        for (from, path) in paths.iter_mut().enumerate() {
            // Bounded, so that a flood in one direction does not hold up the other.
            for _ in 0..64 {
                let Ok(length) = (&files[from]).read(&mut packet) else { break };
                path.take(&packet[..length], clock::monotonic_ns());
            }
            path.release(&files[1 - from], clock::monotonic_ns());
        }
    }
    paths.map(|path| path.count)
}

/// A packet in transit; the order is that of its arrival.
#[derive(PartialEq, Eq)]
struct Transit {
    at_ns: u64,
    number: u64,
    data: Vec<u8>,
}

impl Ord for Transit {
    /// Earliest first in a max-heap.
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (other.at_ns, other.number).cmp(&(self.at_ns, self.number))
    }
}

impl PartialOrd for Transit {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

struct Path {
    leg: Leg,
    random: Random,
    /// When the bottleneck is through with what it has, nanoseconds.
    free_ns: u64,
    /// Bytes waiting for the bottleneck, and when each packet has left it.
    waiting: VecDeque<(u64, u64)>,
    waiting_bytes: u64,
    transit: BinaryHeap<Transit>,
    number: u64,
    count: Count,
}

impl Path {
    fn new(leg: Leg, seed: u64) -> Self {
        Self {
            leg,
            random: Random::new(seed),
            free_ns: 0,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            transit: BinaryHeap::new(),
            number: 0,
            count: Count::default(),
        }
    }

    fn next_ns(&self) -> Option<u64> {
        self.transit.peek().map(|packet| packet.at_ns)
    }

    /// Whether a packet suffers and counts.
    fn counts(&self, data: &[u8]) -> bool {
        data.len() >= COUNTED_BYTES && (!self.leg.udp_only || is_udp(data))
    }

    fn take(&mut self, data: &[u8], now: u64) {
        let counted = self.counts(data);
        self.count.received += u64::from(counted);
        if counted && self.random.happens(self.leg.loss) {
            self.count.lost += 1;
            return;
        }
        let bytes = data.len() as u64;
        let mut left_ns = now;
        if let Some(rate) = self.leg.rate_bps {
            while self.waiting.front().is_some_and(|&(at, _)| at <= now) {
                self.waiting_bytes -= self.waiting.pop_front().map_or(0, |(_, bytes)| bytes);
            }
            if self.waiting_bytes + bytes > self.leg.queue_bytes {
                self.count.overflowed += u64::from(counted);
                return;
            }
            self.free_ns = self.free_ns.max(now) + (bytes as f64 * 8e9 / rate) as u64;
            left_ns = self.free_ns;
            self.waiting.push_back((left_ns, bytes));
            self.waiting_bytes += bytes;
        }
        let mut at_ns = left_ns + self.leg.delay_ns;
        if counted && self.random.happens(self.leg.reorder) {
            at_ns += self.leg.reorder_ns;
            self.count.delayed += 1;
        }
        if counted && self.random.happens(self.leg.duplicate) {
            self.count.duplicated += 1;
            self.send_at(at_ns, data.to_vec());
        }
        self.send_at(at_ns, data.to_vec());
    }

    fn send_at(&mut self, at_ns: u64, data: Vec<u8>) {
        self.number += 1;
        self.transit.push(Transit { at_ns, number: self.number, data });
    }

    fn release(&mut self, mut to: &File, now: u64) {
        while self.transit.peek().is_some_and(|packet| packet.at_ns <= now) {
            let Some(packet) = self.transit.pop() else { return };
            // An end whose interface is down takes nothing: the packet is gone as on a real wire.
            if to.write(&packet.data).is_ok() {
                self.count.delivered += u64::from(self.counts(&packet.data));
            }
        }
    }
}

/// Whether an IPv4 packet carries UDP (protocol 17 in its tenth byte).
fn is_udp(packet: &[u8]) -> bool {
    packet.first().is_some_and(|byte| byte >> 4 == 4) && packet.get(9) == Some(&17)
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_wire_delays_loses_and_doubles_and_counts_each() {
        let left = crate::or_skip!(Namespace::new("left"));
        let right = crate::or_skip!(Namespace::new("right"));
        let leg = Leg { delay_ns: 5_000_000, loss: 0.2, duplicate: 0.2, ..Leg::default() };
        let wire = crate::or_skip!(Wire::between(&left, &right, [leg, Leg::default()], 11));
        let there = right.run(|| UdpSocket::bind((RIGHT, 9))).expect("its address");
        there.set_read_timeout(Some(Duration::from_millis(200))).expect("a timeout");
        let here = left.run(|| UdpSocket::bind((LEFT, 0))).expect("its address");
        let begin = clock::monotonic_ns();
        let mut buffer = [0; 1000];
        // All of them fit the receiver's default buffer, however late it is scheduled.
        for _ in 0..50 {
            here.send_to(&buffer, (RIGHT, 9)).expect("a route");
        }
        let mut arrived = 0;
        while there.recv(&mut buffer).is_ok() {
            if arrived == 0 {
                assert!(clock::monotonic_ns() - begin >= 5_000_000, "sooner than light");
            }
            arrived += 1;
        }
        let [ahead, _] = wire.cut();
        assert_eq!((ahead.received, ahead.delivered), (50, arrived), "{ahead:?}");
        assert_eq!(ahead.received, ahead.lost + ahead.delivered - ahead.duplicated, "{ahead:?}");
        assert!(ahead.lost > 0 && ahead.duplicated > 0, "{ahead:?}");
    }
}
