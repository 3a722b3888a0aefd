//! Emulation between two interfaces (`--between`), tested with a namespace on each side.

use std::net::UdpSocket;
use std::os::fd::AsFd as _;
use std::process::Command;
use std::time::Duration;

use landspeed_sys::thread;
use landspeed_testkit::pair::Pair;
use landspeed_testkit::process::Process;

use super::{TIMEOUT_S, Wire, certificate, landspeed, number, path_file, run_with_invalid_seconds, stop, suspend};
use crate::common::PROGRAM;

/// Sends `count` numbered datagrams through the path, one every `gap_ns`, and returns the numbers in order
/// of arrival: waits for `expected` of them and then for half a second of silence.
pub(super) fn send(wire: &Wire, count: u32, bytes: usize, gap_ns: u64, expected: usize) -> Vec<u32> {
    let receiver = wire.right.run(|| UdpSocket::bind("10.93.0.2:9009")).expect("an address");
    // A large buffer, so that a receiver waiting for a core loses nothing. On one core the kernel does not
    // reorder.
    landspeed_sys::udp::set_receive_buffer(receiver.as_fd(), 16 << 20).expect("set");
    thread::pin_to_core(thread::allowed_cores()[0]).expect("pinned");
    let sender = wire.left.run(|| UdpSocket::bind("10.93.0.1:0")).expect("an address");
    let receiving = std::thread::spawn(move || {
        let mut arrived = Vec::new();
        let mut buffer = vec![0; 65_536];
        loop {
            let patience =
                if arrived.len() < expected { Duration::from_secs(20) } else { Duration::from_millis(500) };
            receiver.set_read_timeout(Some(patience)).expect("set");
            let Ok(length) = receiver.recv(&mut buffer) else { break };
            assert_eq!(length, bytes);
            arrived.push(u32::from_be_bytes([buffer[0], buffer[1], buffer[2], buffer[3]]));
        }
        arrived
    });
    let sending = std::thread::spawn(move || {
        // The burst must not be interrupted by other threads; without the privilege this is rare.
        let _ = thread::use_fifo_policy();
        let mut payload = vec![7; bytes];
        let mut at_ns = landspeed_sys::clock::monotonic_ns();
        for number in 1..=count {
            payload[..4].copy_from_slice(&number.to_be_bytes());
            sender.send_to(&payload, "10.93.0.2:9009").expect("a route");
            at_ns += gap_ns;
            landspeed_sys::clock::sleep_until(at_ns);
        }
    });
    sending.join().expect("no panic");
    receiving.join().expect("no panic")
}

#[test]
fn the_certificate_counts_losses_to_the_packet() {
    let wire = landspeed_testkit::or_skip!(Wire::new());
    let (directory, file) =
        path_file("[[link]]\nrate = \"1G\"\ndelay = \"10ms\"\nloss = { every = 10 }\n[link.reverse]\nloss = \"0%\"");
    let json = directory.path().join("certificate.json");
    let process = wire.emulate(&file, &["--json", &json.to_string_lossy()]);
    // The sender leaves checksums to its interface: the receiver accepts only completed ones.
    let arrived = send(&wire, 1000, 900, 100_000, 900);
    let ended = stop(process);
    let expected: Vec<u32> = (1..=1000).filter(|number| number % 10 != 0).collect();
    assert_eq!(arrived, expected, "{}", ended.stdout);
    let certificate = certificate(&json);
    assert_eq!(certificate["ended"], "stopped");
    assert_eq!(number(&certificate, "/delivered/forward/offered_packets"), 1000);
    assert_eq!(number(&certificate, "/delivered/forward/delivered_packets"), 900);
    assert_eq!(number(&certificate, "/hops/forward/0/lost_packets"), 100);
    assert_eq!(number(&certificate, "/delivered/reverse/offered_packets"), 0);
    assert!(number(&certificate, "/delivered/forward/delay_ns/min") >= 10_000_000);
    assert!(ended.stdout.contains("900 of 1000 packets delivered"), "{}", ended.stdout);
}

#[test]
fn burst_exceeding_the_buffer_is_dropped_exactly() {
    let wire = landspeed_testkit::or_skip!(Wire::new());
    // A frame of 1042 bytes with framing takes 80 ms: of a burst of 20, one is sent, ten are queued, nine are
    // dropped.
    let (directory, file) =
        path_file("[[link]]\nrate = \"106600\"\nqueue = { kind = \"bfifo\", limit = \"10420B\" }");
    let json = directory.path().join("certificate.json");
    let process = wire.emulate(&file, &["--json", &json.to_string_lossy()]);
    let arrived = send(&wire, 20, 1000, 0, 11);
    let ended = stop(process);
    assert_eq!(arrived, (1..=11).collect::<Vec<_>>(), "{}", ended.stdout);
    let certificate = certificate(&json);
    assert_eq!(number(&certificate, "/hops/forward/0/queue_full_packets"), 9);
    assert_eq!(number(&certificate, "/hops/forward/0/queue_max_bytes"), 10_420);
}

#[test]
fn reordered_and_duplicated_datagrams_are_counted() {
    let wire = landspeed_testkit::or_skip!(Wire::new());
    let (directory, file) =
        path_file("[[link]]\nrate = \"1G\"\ndelay = \"20ms\"\nreorder = \"5%\"\nduplicate = \"5%\"");
    let json = directory.path().join("certificate.json");
    let process = wire.emulate(&file, &["--json", &json.to_string_lossy()]);
    let pinned = Command::new("taskset")
        .args(["-acp", &thread::allowed_cores()[0].to_string(), &process.id().to_string()])
        .output();
    assert!(pinned.is_ok_and(|output| output.status.success()), "taskset (util-linux)");
    let arrived = send(&wire, 2000, 500, 100_000, 2000);
    let ended = stop(process);
    let certificate = certificate(&json);
    let late = arrived.iter().scan(0, |highest, number| {
        let reordered = number < highest;
        *highest = (*highest).max(*number);
        Some(u64::from(reordered))
    });
    assert_eq!(late.sum::<u64>(), number(&certificate, "/delivered/forward/reordered_packets"), "{}", ended.stdout);
    let copies = number(&certificate, "/delivered/forward/duplicated_packets");
    assert_eq!(arrived.len() as u64, 2000 + copies);
    assert!(copies > 50, "{copies}");
}

/// Number of datagrams that reached the right host at a port without a socket (the discard port has none).
fn discards(wire: &Wire) -> u64 {
    let table = wire.right.run(|| std::fs::read_to_string("/proc/thread-self/net/snmp")).expect("counters");
    let udp: Vec<&str> = table.lines().filter(|line| line.starts_with("Udp:")).collect();
    let at = udp[0].split(' ').position(|name| name == "NoPorts").expect("a counter");
    udp[1].split(' ').nth(at).and_then(|count| count.parse().ok()).expect("a number")
}

#[test]
fn run_between_interfaces_records_invalid_seconds_only_when_asked() {
    let wire = landspeed_testkit::or_skip!(Wire::new());
    for (host, interface) in [(&wire.left, "l0"), (&wire.right, "r0")] {
        host.exec(["ethtool", "-K", interface, "tso", "off", "gso", "off", "gro", "off"]);
    }
    let (directory, file) =
        path_file("[[link]]\nrate = \"50M\"\ndelay = \"5ms\"\nqueue = { kind = \"bfifo\", limit = \"200KB\" }");
    let emulation = wire.emulate(&file, &[]);
    let pair = Pair::across(PROGRAM, &wire.left, &wire.right, "10.93.0.2");
    let json = directory.path().join("run.json");
    let measure = |options: &[&str]| {
        let mut command = landspeed();
        command.args(["run", pair.target(), "--json"]).arg(&json).args(options);
        wire.left.run(|| Process::start(command))
    };
    let run = measure(&["-t", "4s", "--ask-path"]);
    suspend(&emulation, &run);
    let ended = run.end(TIMEOUT_S);
    assert!(ended.code < 2, "{}", ended.stderr);
    let document = run_with_invalid_seconds(&json);
    assert_eq!(document["emulation"]["source"], "path");
    // The answer is not authenticated: it must not withdraw the verdict.
    let summary = document["verdict"]["summary"].as_str().unwrap_or_default();
    assert!(!summary.contains("emulated path"), "{summary}");
    let before = discards(&wire);
    assert!(before > 0, "the request is a datagram to port 9");
    let ended = measure(&["-t", "0.2s"]).end(TIMEOUT_S);
    assert!(ended.code < 2, "{}", ended.stderr);
    assert_eq!(discards(&wire), before, "nothing is sent unasked");
    let text = std::fs::read_to_string(&json).expect("a document");
    assert!(!text.contains("\"emulation\":{"), "{text}");
    stop(emulation);
}
