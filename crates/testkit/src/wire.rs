//! A user-space path between two namespaces: delay, rate, queue, loss, duplication and reordering, with exact
//! counts. Uses two TUN interfaces and one thread; no kernel module is needed.

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

/// One direction of a wire. The default has no impairments.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct WireDirection {
    /// One-way delay, nanoseconds.
    pub delay_ns: u64,
    /// Rate of the bottleneck, bits/s of IP packets; `None` for no bottleneck.
    pub rate_bps: Option<f64>,
    /// Queue limit of the bottleneck, bytes; packets beyond it are dropped.
    pub queue_bytes: u64,
    /// Probability of losing a packet before the bottleneck.
    pub loss: f64,
    /// Probability of delivering a packet twice.
    pub duplicate: f64,
    /// Probability of delivering a packet [`WireDirection::reorder_ns`] late.
    pub reorder: f64,
    /// Additional delay of reordered packets, nanoseconds.
    pub reorder_ns: u64,
    /// Whether only UDP is impaired and counted, because TCP is control traffic.
    pub udp_only: bool,
}

/// Counts of one direction of a wire. Only packets of at least [`COUNTED_BYTES`] are counted (and lost,
/// duplicated or reordered), so that handshakes and ACKs are not included. `received = lost + overflowed +
/// delivered − duplicated`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DirectionCounts {
    /// Packets received.
    pub received: u64,
    /// Packets lost at random.
    pub lost: u64,
    /// Packets dropped because the queue was full.
    pub overflowed: u64,
    /// Extra copies delivered.
    pub duplicated: u64,
    /// Packets delivered late to reorder them.
    pub delayed: u64,
    /// Packets delivered, including extra copies.
    pub delivered: u64,
}

/// Minimum size of an IP packet that counts as test data.
pub const COUNTED_BYTES: usize = 600;

/// IPv4 address of the left side.
pub const LEFT: &str = "10.77.0.1";
/// IPv4 address of the right side.
pub const RIGHT: &str = "10.77.0.2";

/// A running wire; stopped when dropped.
pub struct Wire {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<[DirectionCounts; 2]>>,
}

impl Wire {
    /// Connects `left` ([`LEFT`]) and `right` ([`RIGHT`]); `directions` are left to right and right to left. The error is
    /// the reason why this is not possible here.
    pub fn between(
        left: &Namespace,
        right: &Namespace,
        directions: [WireDirection; 2],
        seed: u64,
    ) -> Result<Self, String> {
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
        let [ahead, back] = directions;
        let paths = [Path::new(ahead, seed), Path::new(back, seed ^ 0x5555)];
        let thread = std::thread::Builder::new()
            .name("wire".to_owned())
            .spawn(move || forward_packets(&files, paths, &stopped))
            .map_err(|why| format!("no thread for the wire: {why}"))?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Stops the wire and returns the counts: left to right, right to left.
    ///
    /// # Panics
    /// If its thread panicked.
    pub fn shutdown(mut self) -> [DirectionCounts; 2] {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().expect("shutdown once").join().expect("the wire does not panic")
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // The interfaces vanish when the thread closes their files.
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Raises the thread's priority (best effort), so that scheduling on a busy machine adds no delay.
fn raise_priority() {
    thread::set_timer_slack_ns(1);
    let thread = thread::id().to_string();
    let _ = Command::new("chrt").args(["-f", "-p", "10", &thread]).output();
}

fn forward_packets(files: &[File; 2], mut paths: [Path; 2], stop: &AtomicBool) -> [DirectionCounts; 2] {
    /// Maximum sleep of an idle wire, nanoseconds; it limits how late a stop request is noticed.
    const MAX_SLEEP_NS: u64 = 20_000_000;
    raise_priority();
    let mut packet = vec![0; 65_536];
    while !stop.load(Ordering::Relaxed) {
        let now = clock::monotonic_ns();
        let due = paths.iter().filter_map(Path::next_ns).min().unwrap_or(u64::MAX);
        tun::wait_readable([files[0].as_fd(), files[1].as_fd()], due.saturating_sub(now).min(MAX_SLEEP_NS));
        for (from, path) in paths.iter_mut().enumerate() {
            // Bounded, so that a flood in one direction does not delay the other.
            for _ in 0..64 {
                let Ok(length) = (&files[from]).read(&mut packet) else { break };
                path.take(&packet[..length], clock::monotonic_ns());
            }
            path.release(&files[1 - from], clock::monotonic_ns());
        }
    }
    paths.map(|path| path.count)
}

/// A packet in transit, ordered by arrival time.
#[derive(PartialEq, Eq)]
struct Transit {
    at_ns: u64,
    number: u64,
    data: Vec<u8>,
}

impl Ord for Transit {
    /// Reversed: the earliest is on top of the max-heap.
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
    direction: WireDirection,
    random: Random,
    /// Time at which the bottleneck has sent its queue, nanoseconds.
    link_free_ns: u64,
    /// Queued packets: departure time in nanoseconds, and bytes.
    waiting: VecDeque<(u64, u64)>,
    waiting_bytes: u64,
    transit: BinaryHeap<Transit>,
    number: u64,
    count: DirectionCounts,
}

impl Path {
    fn new(direction: WireDirection, seed: u64) -> Self {
        Self {
            direction,
            random: Random::new(seed),
            link_free_ns: 0,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            transit: BinaryHeap::new(),
            number: 0,
            count: DirectionCounts::default(),
        }
    }

    fn next_ns(&self) -> Option<u64> {
        self.transit.peek().map(|packet| packet.at_ns)
    }

    /// Whether a packet is impaired and counted.
    fn counts(&self, data: &[u8]) -> bool {
        data.len() >= COUNTED_BYTES && (!self.direction.udp_only || is_udp(data))
    }

    fn take(&mut self, data: &[u8], now: u64) {
        let counted = self.counts(data);
        self.count.received += u64::from(counted);
        if counted && self.random.random_bool(self.direction.loss) {
            self.count.lost += 1;
            return;
        }
        let bytes = data.len() as u64;
        let mut left_ns = now;
        if let Some(rate) = self.direction.rate_bps {
            while self.waiting.front().is_some_and(|&(at, _)| at <= now) {
                self.waiting_bytes -= self.waiting.pop_front().map_or(0, |(_, bytes)| bytes);
            }
            if self.waiting_bytes + bytes > self.direction.queue_bytes {
                self.count.overflowed += u64::from(counted);
                return;
            }
            self.link_free_ns = self.link_free_ns.max(now) + (bytes as f64 * 8e9 / rate) as u64;
            left_ns = self.link_free_ns;
            self.waiting.push_back((left_ns, bytes));
            self.waiting_bytes += bytes;
        }
        let mut at_ns = left_ns + self.direction.delay_ns;
        if counted && self.random.random_bool(self.direction.reorder) {
            at_ns += self.direction.reorder_ns;
            self.count.delayed += 1;
        }
        if counted && self.random.random_bool(self.direction.duplicate) {
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
            // A write fails if the receiver's interface is down; the packet is lost, as on a real wire.
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
    fn wire_delays_loses_and_duplicates_with_exact_counts() {
        let left = crate::or_skip!(Namespace::new("left"));
        let right = crate::or_skip!(Namespace::new("right"));
        let direction = WireDirection { delay_ns: 5_000_000, loss: 0.2, duplicate: 0.2, ..WireDirection::default() };
        let wire = crate::or_skip!(Wire::between(&left, &right, [direction, WireDirection::default()], 11));
        let there = right.run(|| UdpSocket::bind((RIGHT, 9))).expect("its address");
        there.set_read_timeout(Some(Duration::from_millis(200))).expect("a timeout");
        let here = left.run(|| UdpSocket::bind((LEFT, 0))).expect("its address");
        let begin = clock::monotonic_ns();
        let mut buffer = [0; 1000];
        // All of them fit into the receiver's default buffer, however late it is scheduled.
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
        let [ahead, _] = wire.shutdown();
        assert_eq!((ahead.received, ahead.delivered), (50, arrived), "{ahead:?}");
        assert_eq!(ahead.received, ahead.lost + ahead.delivered - ahead.duplicated, "{ahead:?}");
        assert!(ahead.lost > 0 && ahead.duplicated > 0, "{ahead:?}");
    }
}
