//! Documents of real runs keep their verdicts. They are trimmed (no raw blobs or fields that no cause
//! reads) and do not identify a machine.
//!
//! Recorded on a shared machine with two cores, mostly with other load. The file name gives the provoked
//! limit, not the expected verdict.

use std::path::Path;

use landspeed_diagnose::{contradictions, diagnose};
use landspeed_model::{Cause, Confidence, Direction, RunDocument};

/// Each fixture with its verdict and the expected beginning of its place.
pub const EXPECTED: &[(&str, Direction, Cause, Confidence, &str)] = &[
    ("receive-buffer-cubic", Direction::Upload, Cause::ReceiverWindow, Confidence::High, "server, receive buffer"),
    // The reader waited 12 % of the time for a core, without effect: its queue was empty.
    (
        "receive-buffer-bbr-busy-host",
        Direction::Upload,
        Cause::ReceiverWindow,
        Confidence::High,
        "server, receive buffer",
    ),
    ("send-buffer-bbr", Direction::Upload, Cause::SendBuffer, Confidence::High, "client, send buffer"),
    ("slow-reader-cubic", Direction::Upload, Cause::SlowReader, Confidence::High, "server, receiving application"),
    // The sender adapted to the reader, and its window stayed open.
    ("slow-reader-bbr", Direction::Upload, Cause::SlowReader, Confidence::High, "server, receiving application"),
    // A thread waited 24 % (here) and 11 % (next) of the time for a core: what TCP measured of the path is a hint.
    ("overflow-cubic", Direction::Upload, Cause::NetworkCongestion, Confidence::Low, ""),
    ("standing-queue-cubic", Direction::Upload, Cause::NetworkPath, Confidence::Low, ""),
    ("loss-cubic", Direction::Upload, Cause::NetworkLoss, Confidence::High, ""),
    // 1 % random loss, and BBR fills the path nevertheless: the loss could be the overflow of its queue.
    ("loss-bbr", Direction::Upload, Cause::NetworkPath, Confidence::Low, ""),
    // BBR over loopback: the RTT of 6 ms over a minimum of 3 µs comes from the CPU, not from a path.
    ("rate-bbr-loopback", Direction::Upload, Cause::Application, Confidence::High, "client, sending application"),
    // The sender waited for its core 90 % of the time, the receiver, next to two busy loops, 21 %.
    ("starved-receiver-loopback-bbr", Direction::Upload, Cause::SenderCpu, Confidence::Medium, "client core 0"),
    ("bulk-loopback-bbr", Direction::Upload, Cause::SenderCpu, Confidence::High, "client core 0"),
    // 116 Gb/s: the receive queue is two thirds full, and the reader never slept while data was available.
    ("splice-loopback-cubic", Direction::Upload, Cause::SenderCpu, Confidence::Medium, "client core 0"),
    ("turns-loopback-cubic", Direction::Upload, Cause::SenderCpu, Confidence::Medium, "client core 0"),
    // The receiving thread waited for its core 62 % of the time, which filled the send buffer.
    ("turns-full-send-buffer", Direction::Upload, Cause::ReceiverCpu, Confidence::Medium, "server core 1"),
    // It waited 64 % of the time, on a core of two other programs, and was always busy or ready: no buffer is to blame.
    ("preempted-full-send-buffer", Direction::Upload, Cause::ReceiverCpu, Confidence::Low, "server core 1"),
    ("bidir-loopback-bbr", Direction::Upload, Cause::SenderCpu, Confidence::Medium, "client"),
    ("bidir-loopback-bbr", Direction::Download, Cause::SenderCpu, Confidence::Medium, "server"),
    ("udp-starved-receiver", Direction::Upload, Cause::ReceiverCpu, Confidence::Medium, "server core 1"),
    // Between two namespaces: Reno carried 44.7 Gb/s with the same CPU time.
    ("short-path-bbr", Direction::Upload, Cause::BbrPacing, Confidence::Medium, "client, congestion control"),
    ("udp-refused-by-qdisc", Direction::Upload, Cause::LocalQdisc, Confidence::High, "client, qdisc"),
];

/// Loads a recorded run.
pub fn fixture(name: &str) -> RunDocument {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("fixtures/real/{name}.json"));
    serde_json::from_str(&std::fs::read_to_string(path).expect(name)).expect(name)
}

#[test]
fn documents_of_real_runs_keep_their_verdicts() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/real");
    for &(name, direction, cause, confidence, place) in EXPECTED {
        let document = fixture(name);
        let verdict = diagnose(&document, direction);
        assert_eq!((verdict.cause, verdict.confidence), (cause, confidence), "{name}: {verdict:#?}");
        assert!(verdict.place.as_deref().unwrap_or_default().starts_with(place), "{name}: {:?}", verdict.place);
        assert_eq!(contradictions(&document, None, &verdict), Vec::<String>::new(), "{name}");
    }
    let files = std::fs::read_dir(&directory).expect("fixtures").count();
    let mut names: Vec<_> = EXPECTED.iter().map(|kept| kept.0).collect();
    names.dedup();
    assert_eq!(files, names.len(), "a fixture has no verdict to keep");
}
