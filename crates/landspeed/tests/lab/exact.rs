//! Delays on the path, exact to the nanosecond.

use crate::lab::scenario::{assert_close, captured, note, number, run};

/// Framing of a frame on a link, bytes: preamble 8, FCS 4, inter-frame gap 12 (IEEE 802.3).
const FRAMING_BYTES: u64 = 24;
/// Virtual time of a clock read by a process in the lab's kernel; nothing else a process does takes virtual
/// time.
const CLOCK_READ_NS: u64 = 256;

/// Serialization time of a frame on a link, nanoseconds.
fn serialisation_ns(frame_bytes: u64, rate_bps: u64) -> u64 {
    (frame_bytes + FRAMING_BYTES) * 8 * 1_000_000_000 / rate_bps
}

#[test]
fn rtt_is_exact_to_the_nanosecond() {
    landspeed_testkit::needs_lab_kernel!();
    // One byte of payload: Ethernet 14, IPv4 20, then UDP 8, or TCP 32 with its timestamps.
    for (protocol, frame_bytes) in [("udp-rr", 14 + 20 + 8 + 1), ("tcp-rr", 14 + 20 + 32 + 1)] {
        let ran = captured("round-trip", &[&format!("flow.0.protocol={protocol}")], "client:middle");
        let links = serialisation_ns(frame_bytes, 1_000_000_000) + serialisation_ns(frame_bytes, 100_000_000);
        let one_way_ns = 3_000_000 + 7_000_000 + links;
        // The server reads its clock at least once between request and response; the minimum is compared.
        let frames = ran.frames();
        let data: Vec<_> = frames.iter().filter(|frame| u64::from(frame.length) == frame_bytes).collect();
        let shortest = data
            .windows(2)
            .filter(|pair| pair[0].bytes[26..30] != pair[1].bytes[26..30])
            .map(|pair| pair[1].at_ns - pair[0].at_ns)
            .filter(|&gap| gap > one_way_ns)
            .min()
            .expect("requests and responses");
        let what = format!("round trip on the wire, {protocol}");
        let off = shortest as i64 - 2 * one_way_ns as i64;
        note(&what, "ns", 2.0 * one_way_ns as f64, shortest as f64, "+1 ns per link crossed, clock reads", &ran);
        // Each of the four link crossings is a timer that fires within a nanosecond.
        let reads = if protocol == "udp-rr" { 1 } else { 32 };
        assert!((0..=4 + reads * CLOCK_READ_NS as i64).contains(&off), "{what}: {off} ns off");
        let latency = number(&ran.flow(0)["latency"][0]["min_ns"]);
        let expected = (2 * one_way_ns + CLOCK_READ_NS) as f64;
        assert_close(&format!("shortest latency, {protocol}"), "ns", expected, latency, 4e-4, &ran);
        if protocol == "udp-rr" {
            assert!((latency - expected).abs() <= 8.0, "{latency} ns, {expected} ns expected");
        }
    }
}

#[test]
fn goodput_is_the_rate_less_framing_and_headers() {
    landspeed_testkit::needs_lab_kernel!();
    for mtu in [1500_u32, 9000] {
        for tso in [true, false] {
            let sets = [format!("link.*.mtu={mtu}"), format!("hosts.tso={tso}")];
            let short = ["time=1500ms", "flow.0.omit=200ms"];
            let ran = run("rate", &[&sets.each_ref().map(String::as_str)[..], &short].concat());
            // IPv4 20, TCP 32 with timestamps; plus Ethernet 14 and framing.
            let expected = 1e9 * f64::from(mtu - 52) / f64::from(mtu + 14 + FRAMING_BYTES as u32);
            let what = format!("goodput on 1 Gb/s, MTU {mtu}{}", if tso { "" } else { ", no TSO" });
            assert_close(&what, "b/s", expected, ran.goodput(0), 1e-4, &ran);
        }
    }
}

#[test]
fn port_spaces_frames_by_their_serialization_time() {
    landspeed_testkit::needs_lab_kernel!();
    let ran = captured("burst", &["sample=1ms"], "receiver:middle");
    let frames = ran.frames();
    let data: Vec<u64> = frames.iter().filter(|frame| frame.length == 1514).map(|frame| frame.at_ns).collect();
    let gaps: Vec<u64> = data.windows(2).map(|pair| pair[1] - pair[0]).filter(|&gap| gap < 1_000_000).collect();
    assert!(gaps.len() > 1000);
    let expected = serialisation_ns(1514, 1_000_000_000);
    let mean = gaps.iter().sum::<u64>() as f64 / gaps.len() as f64;
    assert_close("mean spacing of a burst behind a 1 Gb/s port", "ns", expected as f64, mean, 1e-4, &ran);
    let least = gaps.iter().min().copied().unwrap_or(0);
    note("least spacing of the same", "ns", expected as f64, least as f64, "three clock reads", &ran);
    // A clock read advances virtual time while a frame leaves. Both sides sample at the same times, and their
    // control threads may wake up then: at most three reads in one gap.
    assert!(gaps.iter().all(|gap| gap.abs_diff(expected) <= 3 * CLOCK_READ_NS), "{least} {:?}", gaps.iter().max());
}
