//! tcptrace and Wireshark on the lab's captures: the same figures where theirs are right. Where they are
//! not, docs/trace.md has a row, and its statement about them is tested here too.

use std::process::Command;

use landspeed_testkit::skip;
use serde_json::Value;

use crate::common::count;
use crate::trace::document;
use crate::trace::truth::{LabRun, run, scenario};

macro_rules! prepared {
    ($tools:expr, $forward:expr) => {{
        for tool in $tools {
            if Command::new(tool).arg("-v").output().is_err() {
                skip!("{tool} is not installed");
            }
        }
        landspeed_testkit::needs_lab_kernel!();
        run(&scenario($forward, "cubic", ""), 1)
    }};
}

/// Output of `tcptrace -l -r -W` for the only connection of a file.
struct Tcptrace(String);

impl Tcptrace {
    fn of(file: &str) -> Self {
        let output = Command::new("tcptrace").args(["-l", "-r", "-n", "-W", file]).output().expect("tcptrace runs");
        Self(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Returns a figure of the data direction (column 0) or of the other one (column 1).
    fn figure(&self, label: &str, column: usize) -> f64 {
        let label = format!("{label}:");
        // Lines with both directions contain the label twice; with the label once they are about the whole file.
        let line =
            self.0.lines().find(|line| line.trim_start().starts_with(&label) && line.matches(&label).count() == 2);
        let line = line.unwrap_or_else(|| panic!("no {label} in {}", self.0));
        let word = line.split(&label).nth(1 + column).and_then(|rest| rest.split_whitespace().next());
        word.and_then(|word| word.parse().ok()).unwrap_or_else(|| panic!("{line}"))
    }

    fn count(&self, label: &str, column: usize) -> u64 {
        self.figure(label, column) as u64
    }
}

/// Number of frames that match a Wireshark display filter.
fn tshark(file: &str, filter: &str) -> u64 {
    let fields = ["-n", "-r", file, "-Y", filter, "-T", "fields", "-e", "frame.number"];
    let output = Command::new("tshark").args(fields).output().expect("tshark runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).lines().count() as u64
}

fn flow(file: &str) -> Value {
    document(&[file])["flows"][0].clone()
}

fn retransmits(direction: &Value) -> u64 {
    let kinds = ["fast", "timeout", "tail", "lost_before_tap", "unclassified"];
    kinds.iter().map(|kind| count(&direction["retransmits"][kind])).sum()
}

/// Asserts that the figures tcptrace also has agree, by their names there.
fn agrees(tcptrace: &Tcptrace, flow: &Value) {
    for (column, direction) in [&flow["forward"], &flow["reverse"]].into_iter().enumerate() {
        for (label, ours) in [
            ("total packets", &direction["packets"]),
            ("pure acks sent", &direction["pure_acks"]),
            ("unique bytes sent", &direction["unique_bytes"]),
            ("actual data bytes", &direction["payload_bytes"]),
            ("rexmt data bytes", &direction["retransmits"]["bytes"]),
            ("mss requested", &direction["mss"]),
            ("max win adv", &direction["window_max_bytes"]),
            ("zero win adv", &direction["zero_windows"]),
        ] {
            assert_eq!(tcptrace.count(label, column), count(ours), "{label}, {column}");
        }
        assert_eq!(tcptrace.count("rexmt data pkts", column), retransmits(direction), "{direction:#}");
    }
}

#[test]
fn tcptrace_agrees_on_a_path_with_loss() {
    let lab_run = prepared!(["tcptrace"], "loss = { every = 1500 }");
    let file = lab_run.file("sender");
    let (tcptrace, flow) = (Tcptrace::of(&file), flow(&file));
    agrees(&tcptrace, &flow);
    assert!(retransmits(&flow["forward"]) > 3);
    assert_eq!(tcptrace.count("duplicate acks", 0), count(&flow["reverse"]["duplicate_acks"]));
    // tcptrace counts one byte more, for the SYN or FIN.
    let in_flight = count(&flow["forward"]["in_flight_max_bytes"]);
    assert!(tcptrace.count("max owin", 0) - in_flight <= 1);
    let rtt = &flow["forward"]["rtt"];
    let ms = |key: &str| count(&rtt[key]) as f64 / 1e6;
    assert!((tcptrace.figure("RTT min", 0) - ms("min_ns")).abs() < 0.06);
    assert!((tcptrace.figure("RTT avg", 0) - ms("mean_ns")).abs() < 0.02 * ms("mean_ns"));
    assert!((tcptrace.figure("RTT max", 0) - ms("max_ns")).abs() < 0.06);
    assert!(tcptrace.count("RTT samples", 0) >= count(&rtt["samples"]));
}

#[test]
fn sequence_wrap_breaks_tcptraces_window_but_not_ours() {
    let lab_run = prepared!(["tcptrace"], "loss = { every = 1500 }");
    let file = lab_run.file("sender");
    let mut bytes = std::fs::read(&file).expect("a capture");
    let first = shift(&mut bytes, 0);
    // The sequence numbers wrap 15 MB into the transfer.
    shift(&mut bytes, 0_u32.wrapping_sub(15_000_000).wrapping_sub(first));
    let wrapped = format!("{file}.wrapped");
    std::fs::write(&wrapped, bytes).expect("room");
    let figures = |file: &str| {
        let mut flow = flow(file);
        // Sequence numbers differ by the shift.
        for event in flow["events"].as_array_mut().expect("events") {
            event["sequence"].take();
        }
        flow["handshake"]["client_sequence"].take();
        flow
    };
    let (before, after) = (figures(&file), figures(&wrapped));
    assert_eq!(before, after, "our figures are the same");
    let tcptrace = Tcptrace::of(&wrapped);
    agrees(&tcptrace, &after);
    assert!(tcptrace.figure("max owin", 0) > 1e18, "if tcptrace learned to wrap, docs/trace.md has a row too many");
}

#[test]
fn tcptrace_and_wireshark_agree_on_visible_reordering() {
    let lab_run = prepared!(["tcptrace", "tshark"], r#"reorder = "1%""#);
    for (host, seen) in [("sender", 0), ("receiver", 10)] {
        let file = lab_run.file(host);
        let (tcptrace, flow) = (Tcptrace::of(&file), flow(&file));
        agrees(&tcptrace, &flow);
        let late = count(&flow["forward"]["out_of_order"]);
        assert_eq!(tcptrace.count("outoforder pkts", 0), late, "{host}");
        assert!(late >= seen, "{host}: {late}");
        // Wireshark classifies a segment as out of order within 3 ms or the first RTT, and otherwise as a
        // retransmission: only the sum agrees.
        let [retransmits_w, late_w] =
            ["retransmission", "out_of_order"].map(|kind| tshark(&file, &format!("tcp.analysis.{kind}")));
        assert_eq!(
            retransmits_w + late_w,
            retransmits(&flow["forward"]) + late,
            "{host}: {retransmits_w} and {late_w}"
        );
    }
}

#[test]
fn wireshark_agrees_on_retransmits_and_missing_segments() {
    let lab_run = prepared!(["tshark"], "loss = { every = 1500 }");
    let both = |lab_run: &LabRun, host: &str| (lab_run.file(host), flow(&lab_run.file(host)));
    let (file, sender) = both(&lab_run, "sender");
    let sum = tshark(&file, "tcp.analysis.retransmission || tcp.analysis.out_of_order");
    assert_eq!(sum, retransmits(&sender["forward"]));
    assert_eq!(tshark(&file, "tcp.analysis.duplicate_ack"), count(&sender["reverse"]["duplicate_acks"]));
    let (file, receiver) = both(&lab_run, "receiver");
    let missing = count(&receiver["forward"]["retransmits"]["lost_before_tap"]);
    assert_eq!(tshark(&file, "tcp.analysis.lost_segment"), missing);
    assert_eq!(tshark(&file, "tcp.analysis.zero_window"), count(&receiver["reverse"]["zero_windows"]));
    assert_eq!(tshark(&file, "tcp.len > 0 && tcp.dstport == 5202"), {
        let forward = &receiver["forward"];
        count(&forward["packets"]) - count(&forward["pure_acks"]) - 2
    });
}

/// Adds to the sequence numbers of the data direction in a pcap of Ethernet and IPv4, and to their ACKs and
/// SACKs. Returns the first original sequence number.
fn shift(bytes: &mut [u8], by: u32) -> u32 {
    let word = |bytes: &[u8], at: usize| u32::from_be_bytes(*bytes[at..].first_chunk().expect("whole"));
    let add = |bytes: &mut [u8], at: usize| {
        let moved = word(bytes, at).wrapping_add(by).to_be_bytes();
        bytes[at..at + 4].copy_from_slice(&moved);
    };
    let (mut record, mut first) = (24, None);
    while record < bytes.len() {
        let captured = u32::from_le_bytes(*bytes[record + 8..].first_chunk().expect("whole")) as usize;
        let tcp = record + 16 + 14 + 20;
        let to_server = word(bytes, tcp) & 0xffff == 5202;
        if to_server {
            first.get_or_insert(word(bytes, tcp + 4));
            add(bytes, tcp + 4);
        } else {
            add(bytes, tcp + 8);
            let mut option = tcp + 20;
            let end = tcp + usize::from(bytes[tcp + 12] >> 4) * 4;
            while option < end && bytes[option] != 0 {
                let length = if bytes[option] == 1 { 1 } else { usize::from(bytes[option + 1]) };
                if bytes[option] == 5 {
                    (option + 2..option + length).step_by(4).for_each(|edge| add(bytes, edge));
                }
                option += length;
            }
        }
        record += 16 + captured;
    }
    first.expect("a packet")
}
