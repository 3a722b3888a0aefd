//! Sections of long paths: the streams of `qualify` as UDP flows of the lab, judged by the same code.

use landspeed_model::{QualifyDocument, QualifyResult, RunDocument};
use landspeed_qualify::{Stream, StreamOutcome, Suite, SuiteOptions, Target};

use crate::lab::scenario::run;

/// Link speed of the sender in `section.toml`, bits/s.
const LINE_BPS: u64 = 100_000_000_000;

/// Sends a stream through the lab's section. A scenario repeats exactly, so a burst is run once.
fn send(stream: &Stream, buffer: &str) -> StreamOutcome {
    let sets = [
        format!("flow.0.rate={}bps", stream.rate_bps),
        format!("flow.0.len={}", stream.payload_bytes),
        format!("flow.0.burst={}", stream.burst_packets),
        format!("flow.0.bytes={}B", stream.packets * u64::from(stream.payload_bytes)),
        format!("switch.border.queue.limit={buffer}"),
    ];
    let ran = run("section", &sets.each_ref().map(String::as_str));
    let document: RunDocument =
        serde_json::from_value(ran.document["flows"][0]["run"].clone()).expect("the document of the flow");
    StreamOutcome::of(&document, stream)
}

/// Returns the verdict on the section, of its slow-start bursts alone: the other tests lose nothing.
fn verdict(rate: &str, rtt: &str, buffer: &str) -> (QualifyResult, String) {
    let target =
        Target { mtu_bytes: 9000, ..Target::new(rate.parse().expect("a rate"), rtt.parse().expect("a time")) };
    let derived = target.derive().expect("a possible target");
    let options = SuiteOptions { line_rate_bps: Some(LINE_BPS), max_test_ns: 60_000_000_000, gentle: false };
    let mut suite = Suite::new(target, &derived, options);
    let mut burst = None;
    while let Some(stream) = suite.next_stream() {
        let slow_start = suite.plans().nth(suite.current()).is_some_and(|plan| plan.name == "slow-start-bursts");
        let outcome = if slow_start {
            burst.get_or_insert_with(|| send(&stream, buffer)).clone()
        } else {
            StreamOutcome { sent: stream.packets, ..StreamOutcome::default() }
        };
        suite.take(&outcome);
    }
    suite.verdict()
}

#[test]
fn small_buffers_fail_long_paths_only() {
    landspeed_testkit::needs_lab_kernel!();
    let (result, reason) = verdict("10G", "92ms", "256KiB");
    assert_eq!(result, QualifyResult::Fail, "{reason}");
    assert!(reason.ends_with(": slow-start-bursts"), "{reason}");
    let (result, reason) = verdict("1G", "10ms", "256KiB");
    assert_eq!(result, QualifyResult::Pass, "{reason}");
    let (result, reason) = verdict("10G", "92ms", "100MB");
    assert_eq!(result, QualifyResult::Pass, "{reason}");
}

/// Runs the whole suite as a flow of the lab. Returns its document.
fn qualify(sets: &[&str]) -> QualifyDocument {
    let ran = run("qualify", sets);
    assert_eq!(ran.document["status"], "complete", "{:#}", ran.document["checks"]);
    serde_json::from_value(ran.document["flows"][0]["qualify"].clone()).expect("the document of the section")
}

#[test]
fn a_section_is_a_flow_of_the_lab() {
    landspeed_testkit::needs_lab_kernel!();
    let short = qualify(&[]);
    assert_eq!(short.verdict, QualifyResult::Pass, "{:#?}", short.tests);
    let section = short.section.expect("known");
    assert_eq!((section.rtt_ns, section.path_mtu_bytes), (Some(200_000), Some(9000)), "as in the scenario");
    // A burst of the long path's window overflows the buffer; the other tests are too short for a result.
    let long = qualify(&["flow.0.target=10G", "flow.0.target-rtt=92ms", "flow.0.time=50ms"]);
    assert_eq!(long.verdict, QualifyResult::Fail, "{:#?}", long.tests);
    assert!(long.reason.ends_with(": slow-start-bursts"), "{}", long.reason);
    let buffer = long.bottleneck_buffer_bytes.expect("found") as f64;
    assert!((buffer / 262_144.0 - 1.0).abs() < 0.1, "{buffer}");
    assert_eq!(long.token_bucket, None, "a queue");
}

#[test]
fn drops_of_the_receiving_host_decide_nothing() {
    landspeed_testkit::needs_lab_kernel!();
    // Its application reads half of the target rate from a small buffer; the network loses nothing.
    let slow = [
        "host.right.cpu={ read = { byte-ns = 16 } }",
        "flow.0.window=100kB",
        "flow.0.target-rtt=1ms",
        "switch.border.queue.limit=64MB",
    ];
    let document = qualify(&slow);
    assert_eq!(document.verdict, QualifyResult::Inconclusive, "{:#?}", document.tests);
    let at_rate = document.tests.iter().find(|test| test.name == "delivery-at-target-rate").expect("sent");
    assert_eq!(at_rate.lost_packets, 0, "{}", at_rate.reason);
    assert!(at_rate.reason.contains("the hosts dropped"), "{}", at_rate.reason);
}
