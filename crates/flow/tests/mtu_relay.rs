//! Path MTU probes through a relay with a delay, a size limit and seeded random loss.

use std::collections::VecDeque;
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use landspeed_flow::mtu::{probe, serve};
use landspeed_model::MtuProbe;
use landspeed_stats::SplitMix64;
use landspeed_sys::clock::monotonic_ns;
use landspeed_sys::socket::{Readiness, wait};
use landspeed_sys::udp::set_receive_buffer;

const TAG: u32 = 0x7e57_3755;
const MS: u64 = 1_000_000;

/// Properties of a relay, in each direction.
#[derive(Clone, Copy)]
struct RelayPath {
    /// Largest UDP payload that it forwards, to the server and to the client.
    payload: (usize, usize),
    delay_ns: u64,
    /// Packet loss in percent.
    lost: u64,
    seed: u64,
    /// Number of packets after which it stops forwarding.
    dies_after: u64,
}

const PERFECT_PATH: RelayPath =
    RelayPath { payload: (65_507, 65_507), delay_ns: MS, lost: 0, seed: 7, dies_after: u64::MAX };

/// Forwards one direction until stopped.
fn forward(from: &UdpSocket, to: &UdpSocket, payload: usize, far: RelayPath, stop: &AtomicBool) {
    let mut random = SplitMix64::new(far.seed);
    let mut held: VecDeque<(u64, Vec<u8>)> = VecDeque::new();
    let mut buffer = vec![0; 65_536];
    let mut forwarded = 0;
    while !stop.load(Ordering::Relaxed) {
        let now = monotonic_ns();
        while held.front().is_some_and(|(due, _)| *due <= now) {
            let (_, data) = held.pop_front().expect("looked at");
            // Ignore errors: they belong to earlier datagrams to a socket that is now closed.
            let _ = to.send(&data);
        }
        let due = held.front().map_or(5, |(due, _)| (due - now).div_ceil(MS).min(5));
        wait(from.as_fd(), Readiness::Readable, due as u32).expect("a poll");
        while let Ok(n) = from.recv(&mut buffer) {
            if n <= payload && random.below(100) >= far.lost && forwarded < far.dies_after {
                forwarded += 1;
                held.push_back((monotonic_ns() + far.delay_ns, buffer[..n].to_vec()));
            }
        }
    }
}

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback");
    set_receive_buffer(socket.as_fd(), 4 << 20).expect("a buffer");
    socket
}

fn connect(a: &UdpSocket, b: &UdpSocket) {
    a.connect(b.local_addr().expect("bound")).expect("loopback");
    b.connect(a.local_addr().expect("bound")).expect("loopback");
}

/// Returns the results of both directions and the duration, nanoseconds.
fn through(far: RelayPath) -> (MtuProbe, MtuProbe, u64) {
    println!("seed {}", far.seed);
    let (client, front, back, server) = (socket(), socket(), socket(), socket());
    connect(&client, &front);
    connect(&back, &server);
    front.set_nonblocking(true).expect("an option");
    back.set_nonblocking(true).expect("an option");
    let stop = AtomicBool::new(false);
    let (found, took_ns) = std::thread::scope(|scope| {
        scope.spawn(|| forward(&front, &back, far.payload.0, far, &stop));
        scope.spawn(|| forward(&back, &front, far.payload.1, RelayPath { seed: far.seed ^ 1, ..far }, &stop));
        let serving = scope.spawn(|| serve(&server, TAG, 0, &AtomicBool::new(false)));
        let start_ns = monotonic_ns();
        let found = probe(&client, TAG, 0, &AtomicBool::new(false));
        let took_ns = monotonic_ns() - start_ns;
        serving.join().expect("the server does not panic");
        stop.store(true, Ordering::Relaxed);
        (found, took_ns)
    });
    println!("{} ms: {found:#?}", took_ns / MS);
    assert!(took_ns < 15_000 * MS, "{took_ns} ns");
    let [up, down] = found.try_into().expect("two directions");
    (up, down, took_ns)
}

fn assert_exact(found: &MtuProbe, payload: usize) {
    let packet = payload as u32 + 28;
    assert_eq!((found.path_mtu_bytes, found.smallest_failed_bytes), (Some(packet), Some(packet + 1)), "{found:?}");
    assert!(found.silent >= 9, "{found:?}");
}

#[test]
fn random_loss_does_not_change_either_result() {
    for seed in 0..12 {
        let payload = (1_372 + seed as usize * 333, 8_972 - seed as usize * 77);
        let (up, down, _) = through(RelayPath { payload, delay_ns: MS / 2, lost: 10, seed, ..PERFECT_PATH });
        assert_exact(&up, payload.0);
        assert_exact(&down, payload.1);
    }
}

#[test]
fn a_path_with_300_ms_rtt_is_measured_exactly() {
    let (up, down, took_ns) = through(RelayPath { payload: (1_372, 8_972), delay_ns: 150 * MS, ..PERFECT_PATH });
    assert_exact(&up, 1_372);
    assert_exact(&down, 8_972);
    assert!(took_ns > 600 * MS);
}

#[test]
fn a_lossy_satellite_path_ends_in_time_with_partial_results() {
    let (up, down, _) =
        through(RelayPath { payload: (1_333, 1_333), delay_ns: 350 * MS, lost: 10, seed: 8, ..PERFECT_PATH });
    for found in [up, down] {
        let packet = 1_333 + 28;
        assert!(found.path_mtu_bytes.is_none_or(|passed| passed <= packet), "{found:?}");
        let exact = !found.note.as_deref().is_some_and(|note| note.contains("not exact"));
        assert!(!exact || found.path_mtu_bytes == Some(packet), "{found:?}");
    }
}

#[test]
fn a_path_that_dies_midway_ends_with_a_note() {
    let (up, down, took_ns) = through(RelayPath { payload: (1_372, 1_372), dies_after: 10, ..PERFECT_PATH });
    assert!(took_ns < 12_000 * MS);
    for found in [up, down] {
        assert!(found.path_mtu_bytes.is_none_or(|passed| passed <= 1_400), "{found:?}");
        assert!(found.note.as_deref().is_some_and(|note| note.contains("not exact")), "{found:?}");
    }
}
