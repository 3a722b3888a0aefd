//! Rates, queueing delays and limits, up to 100 Gb/s.

use serde_json::Value;

use crate::common::count;
use crate::lab::scenario::{LabRun, assert_close, command, exact_kernel, long, note, number, run};

/// Framing of a frame on a link, bytes: preamble 8, FCS 4, inter-frame gap 12 (IEEE 802.3).
const FRAMING_BYTES: f64 = 24.0;

fn expected_bps(rate_bps: f64, mtu: f64) -> f64 {
    rate_bps * (mtu - 52.0) / (mtu + 14.0 + FRAMING_BYTES)
}

fn check<'a>(ran: &'a LabRun, name: &str) -> &'a Value {
    let checks = ran.document["checks"].as_array().expect("checks");
    checks.iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("no check {name}"))
}

fn warning<'a>(ran: &'a LabRun, code: &str) -> Option<&'a str> {
    let warnings = ran.document["warnings"].as_array().expect("warnings");
    warnings.iter().find(|warning| warning["code"] == code).map(|warning| warning["message"].as_str().expect("words"))
}

#[test]
fn goodput_of_many_streams_fits_the_link() {
    landspeed_testkit::needs_lab_kernel!();
    for omit in ["1ms", "20ms"] {
        let sets = ["time=30ms", "link.1.rate=10G", "switch.port.queue.limit=5MB", &format!("flow.0.omit={omit}")];
        let ran = run("fast-port", &sets);
        let detail = check(&ran, "goodput-fits-links")["detail"].as_str().expect("figures");
        assert!(detail.contains("port->receiver, which carries"), "{detail}");
        let most = expected_bps(10e9, 1500.0);
        assert!(ran.goodput(0) <= most * 1.0001, "{} of at most {most}", ran.goodput(0));
    }
}

#[test]
fn a_backlogged_port_drains_at_its_rate_up_to_100g() {
    landspeed_testkit::needs_lab_kernel!();
    let cases = [("9.999G", 9.999e9, 1500.0), ("10G", 10e9, 9000.0), ("40G", 40e9, 1500.0), ("100G", 100e9, 1500.0)];
    for (rate, bps, mtu) in cases {
        let sets = [format!("link.1.rate={rate}"), format!("link.*.mtu={mtu}")];
        let short = ["time=20ms", "flow.0.omit=20ms"];
        let ran = run("fast-port", &[&sets.each_ref().map(String::as_str)[..], &short].concat());
        let port = ran.named("queues", "port->receiver");
        if !exact_kernel(&ran) {
            assert!(warning(&ran, "kernel-rounds-rates").is_some(), "the error is in the document");
            continue;
        }
        assert!(count(&port["backlogged_ns"]) > 10_000_000, "{port:#}");
        assert_close(
            &format!("drain of a port of {rate}, MTU {mtu}"),
            "b/s",
            bps,
            number(&port["drained_bps"]),
            1e-4,
            &ran,
        );
        let what = format!("goodput of 8 streams on {rate}, MTU {mtu}");
        // Receivers count a read of up to 1 MiB when it returns: over 20 ms that exceeds the lab's own error.
        note(&what, "b/s", expected_bps(bps, mtu), ran.goodput(0), "a receive call per stream", &ran);
        assert_eq!(warning(&ran, "port-rate"), None);
    }
}

#[test]
fn overloaded_port_passes_udp_at_its_rate() {
    landspeed_testkit::needs_lab_kernel!();
    let mut sets = vec!["time=100ms", "flow.0.time=100ms", "link.*.mtu=9000", "link.0.rate=40G", "link.1.rate=10G"];
    sets.extend(["flow.0.rate=12G", "flow.0.len=8972"]);
    let ran = run("overload", &sets);
    if exact_kernel(&ran) {
        let expected = 10e9 * 8972.0 / (9000.0 + 14.0 + FRAMING_BYTES);
        // From the first to the last datagram: intervals end up to half a millisecond late, because datagrams are
        // read in batches.
        let receiver = &ran.document["flows"][0]["run"]["streams"][0]["receiver"];
        let passed = number(&receiver["bytes"]) - 8972.0;
        let passed_bps = passed * 8e9 / (number(&receiver["last_byte_ns"]) - number(&receiver["first_byte_ns"]));
        assert_close("12 Gb/s of UDP through 10 Gb/s", "b/s", expected, passed_bps, 1e-4, &ran);
        assert_close("its goodput", "b/s", expected, ran.goodput(0), 5e-3, &ran);
    }
}

#[test]
fn queue_delay_includes_framing() {
    landspeed_testkit::needs_lab_kernel!();
    let ran = run("small-frames", &[]);
    let port = ran.named("queues", "port->receiver");
    assert_eq!(count(&port["peak_bytes"]), 106_000);
    let full_ns = 1000.0 * 130.0 * 8.0 / 100e6 * 1e9;
    assert_close(
        "wait in a full queue of 106-byte frames",
        "ns",
        full_ns,
        number(&port["sojourn_ns_p99"]),
        1e-3,
        &ran,
    );
}

#[test]
fn the_sampling_interval_changes_no_other_result() {
    landspeed_testkit::needs_lab_kernel!();
    let measured = |sample: &str| {
        let ran = run(
            "fast-port",
            &["time=20ms", "link.1.rate=10G", "switch.port.queue.limit=1MB", &format!("sample={sample}")],
        );
        let port = ran.named("queues", "port->receiver");
        let flow = ran.flow(0);
        (
            [port["drops"].clone(), port["packets"].clone(), flow["phases"].clone(), flow["totals"].clone()],
            exact_kernel(&ran),
        )
    };
    let often = measured("100us");
    if often.1 {
        assert_eq!(often, measured("1ms"));
        assert_eq!(often, measured("20ms"));
    }
}

#[test]
fn a_pmtud_black_hole_is_a_valid_result() {
    landspeed_testkit::needs_lab_kernel!();
    let ran = run("black-hole", &[]);
    assert_eq!(count(&ran.flow(0)["summary"]["bytes_delivered"]), 0);
    assert!(ran.named("links", "middle->receiver")["lost"].as_u64() > Some(0));
    let words = warning(&ran, "stream-unfinished").expect("a warning");
    assert!(words.contains("0 of "), "{words}");
}

#[test]
fn buffers_of_2_gib_carry_more_than_256_mib() {
    landspeed_testkit::needs_lab_kernel!();
    // The full test takes half a minute.
    let shorter = ["time=100ms", "flow.0.omit=1ms"];
    let ran = run("long-fat", if long() { &[] } else { &shorter });
    assert_eq!(count(&ran.named("queues", "middle->receiver")["limit_bytes"]), 2 << 30);
    if long() {
        let held_bps = 256.0 * 1_048_576.0 * 8.0 / 0.092;
        assert!(ran.goodput(0) > 2.0 * held_bps, "{}", ran.goodput(0));
    }
}

#[test]
fn a_single_run_has_a_warning() {
    landspeed_testkit::needs_lab_kernel!();
    let ran = run("burst", &["time=10ms"]);
    let words = warning(&ran, "one-draw").expect("a warning");
    assert_eq!(words, "one run (seed 1): set repeats = 3 and start-spread to see the spread between runs");
    let set = finish_set(&["time=10ms", "repeats=3", "flow.0.start-spread=1ms"]);
    assert_eq!(set["cells"][0]["runs"].as_array().map(Vec::len), Some(3));
    let codes: Vec<_> =
        set["warnings"].as_array().into_iter().flatten().map(|warning| warning["code"].clone()).collect();
    assert!(!codes.contains(&"one-draw".into()), "{codes:?}");
}

fn finish_set(sets: &[&str]) -> Value {
    let output = command("burst", sets).output().expect("the program runs");
    serde_json::from_slice(&output.stdout).expect("a document")
}
