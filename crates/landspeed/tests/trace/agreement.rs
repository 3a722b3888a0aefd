//! Agreement of `trace` with the kernels that sent and received: their protocol counters, and the links' packet counts.

use serde_json::Value;

use crate::common::count;
use crate::trace::document;
use crate::trace::truth::{LabRun, run, run_unchecked, scenario};

/// A network, and how far the capture must show what happens in it.
struct Case {
    name: &'static str,
    /// Settings of the long link in the data direction.
    forward: &'static str,
    congestion: &'static str,
    /// Settings of both hosts.
    hosts: &'static str,
    /// Queue of the switch before a slower link, if it is not a large one before an equal one.
    queue: Option<&'static str>,
    /// Settings of the flow.
    flow: &'static str,
}

/// Bytes that introduce a stream to the server.
const PREAMBLE_BYTES: u64 = 48;

const PLAIN: Case = Case { name: "", forward: "", congestion: "cubic", hosts: "", queue: None, flow: "" };

const SLOW_READER: &str = "a slow reader";

const CASES: &[Case] = &[
    Case { name: "a full queue", queue: Some(r#"{ kind = "bfifo", limit = "100KB" }"#), ..PLAIN },
    Case { name: "random loss", forward: r#"loss = "0.1%""#, ..PLAIN },
    Case { name: "bursts of loss", forward: r"loss = { gilbert-elliott = { p = 0.0002, r = 0.2 } }", ..PLAIN },
    Case { name: "reordering", forward: r#"reorder = "0.5%""#, ..PLAIN },
    Case { name: "duplication", forward: r#"duplicate = "0.5%""#, ..PLAIN },
    Case {
        name: "marks",
        hosts: "sysctl = { \"net.ipv4.tcp_ecn\" = 1 }",
        queue: Some(
            r#"{ kind = "red", limit = "4MB", min = "100KB", max = "300KB", probability = "5%", ecn = true }"#,
        ),
        ..PLAIN
    },
    Case {
        name: "merged packets",
        forward: r#"loss = "0.05%""#,
        congestion: "bbr",
        hosts: r#"gro = "200us""#,
        ..PLAIN
    },
    // Its kernel drops what does not fit into the small buffer.
    Case { name: SLOW_READER, flow: "read-rate = \"5M\"\nwindow = \"256KB\"", ..PLAIN },
];

impl Case {
    fn scenario(&self) -> String {
        let mut text = scenario(self.forward, self.congestion, self.hosts);
        if let Some(queue) = self.queue {
            text = text.replace(r#"{ kind = "bfifo", limit = "16MB" }"#, queue);
            // The queue is before the slower link.
            text = text.replace("rate = \"1G\"\ndelay", "rate = \"400M\"\ndelay");
        }
        text += self.flow;
        text
    }
}

/// The increase of a protocol counter of a host.
fn counter(run: &LabRun, host: &str, name: &str) -> u64 {
    let hosts = run.lab["host_counters"].as_array().expect("a list");
    let found = hosts.iter().find(|counters| counters["host"] == host).expect("the host");
    found["counters"][name].as_u64().unwrap_or(0)
}

/// Compares the capture of each host with the counters of its kernel. Returns what happened, for the claim that the case is
/// one of its kind.
fn compare(case: &Case, seed: u32) -> Value {
    let run = if case.name == SLOW_READER { run_unchecked } else { run }(&case.scenario(), seed);
    let flow = |host: &str| document(&[&run.file(host)])["flows"][0].clone();
    let (sender, receiver) = (flow("sender"), flow("receiver"));
    let (data, acks) = (&sender["forward"], &sender["reverse"]);
    let what = format!("{}, seed {seed}", case.name);
    let sent = |name: &str| counter(&run, "sender", name);
    let received = |name: &str| counter(&run, "receiver", name);

    // The sender's retransmits, and which of them its timers caused.
    assert_eq!(count(&sender["retransmits"]), sent("Tcp.RetransSegs"), "{what}: RetransSegs");
    assert_eq!(count(&data["retransmits"]["tail"]), sent("TcpExt.TCPLossProbes"), "{what}: TCPLossProbes");
    assert_eq!(data["rto"]["count"].as_u64().unwrap_or(0), sent("TcpExt.TCPTimeouts"), "{what}: TCPTimeouts");
    assert_eq!(count(&acks["zero_windows"]), received("TcpExt.TCPFromZeroWindowAdv"), "{what}: zero windows");
    // DSACKs: those sent may be lost, those received were captured.
    let dsacks = sent("TcpExt.TCPDSACKRecv") + sent("TcpExt.TCPDSACKOfoRecv");
    assert_eq!(count(&acks["dsacks"]), dsacks, "{what}: TCPDSACKRecv");
    // Marks, of frames: GRO merges only frames with the same marks.
    let marked = receiver["forward"]["ecn"]["ce"].as_u64().unwrap_or(0);
    assert_eq!(marked, received("IpExt.InCEPkts"), "{what}: InCEPkts");
    let delivered = count(&run.lab["flows"][0]["run"]["conservation"]["delivered"]);
    assert_eq!(count(&receiver["forward"]["unique_bytes"]), delivered + PREAMBLE_BYTES, "{what}: bytes delivered");
    serde_json::json!({
        "a full queue": count(&sender["retransmits"]),
        "random loss": count(&receiver["forward"]["retransmits"]["lost_before_tap"]),
        "bursts of loss": count(&receiver["forward"]["retransmits"]["lost_before_tap"]),
        "reordering": count(&receiver["forward"]["out_of_order"]),
        "duplication": count(&receiver["forward"]["duplicates"]),
        "marks": marked,
        "merged packets": count(&sender["retransmits"]),
        SLOW_READER: count(&acks["zero_windows"]) * data["rto"]["count"].as_u64().unwrap_or(0),
    })
}

fn compare_all(seeds: std::ops::RangeInclusive<u32>) {
    for case in CASES {
        for seed in seeds.clone() {
            let happened = compare(case, seed);
            assert!(count(&happened[case.name]) > 0, "{}, seed {seed}: {happened:#}", case.name);
        }
    }
}

#[test]
fn captures_agree_with_the_kernels_counters() {
    landspeed_testkit::needs_lab_kernel!();
    compare_all(1..=1);
}

#[test]
#[ignore = "long: 48 transfers"]
fn forty_eight_pairs_of_captures_agree_with_the_kernels_counters() {
    landspeed_testkit::needs_lab_kernel!();
    compare_all(2..=7);
}
