//! Distribution of drops at a full drop-tail port between a flow that sends trains and one at a constant
//! rate.
//!
//! A full drop-tail port has space for one frame after each departure, and none after the next arrival.
//! Trains that arrive at the port's own rate bring one frame per departure, so that each slot is filled
//! after a fraction of the frame time, the phase between the two. A frame of another flow finds the slot
//! free with the probability of that phase, one half on average, and then the train's next frame is dropped
//! instead: the drops are split evenly, however few frames the other flow has. Trains from a faster link
//! bring several frames per departure and fill the port only near their ends, where all but one of these
//! frames are dropped: then the drops are the trains' own (Floyd and Jacobson, On Traffic Phase Effects in
//! Packet-Switched Gateways, 1992).

use crate::common::count;
use crate::lab::scenario::{LabRun, assert_close, command, finish, long, note, number};

/// Size of a TCP frame at MTU 9000 as queues count it, bytes.
const TRAIN_FRAME_BYTES: u64 = 9014;
/// Frames in a 64 KiB TSO segment.
const TRAIN_FRAMES: u32 = 7;
/// Preamble, FCS and inter-frame gap, bytes.
const FRAMING_BYTES: u64 = 24;
/// Queue limit of the port, bytes.
const LIMIT: u64 = 1_000_000;
const PORT_BPS: f64 = 10e9;
const UDP_BPS: f64 = 2e9;
/// Load of the TCP sender that slightly overloads the port: UDP uses 0.2 of it.
const OVERLOAD: f64 = 0.82;

/// A case of the table.
struct Case {
    name: &'static str,
    /// Overridden keys of the scenario.
    sets: &'static [&'static str],
    /// Rate of the sender's link, bits/s.
    access_bps: f64,
    /// Rate of the UDP sender's link, bits/s.
    cross_bps: f64,
    port_bps: f64,
    /// UDP payload, bytes.
    payload: u64,
    /// UDP packets per burst.
    burst: u32,
}

impl Case {
    const fn new(name: &'static str, sets: &'static [&'static str], access_bps: f64) -> Self {
        Self { name, sets, access_bps, cross_bps: 10e9, port_bps: PORT_BPS, payload: 8972, burst: 1 }
    }
}

/// Drops at a port, by kind of frame.
#[derive(Debug, Clone, Copy)]
struct PortDrops {
    /// Share of the UDP frames that were dropped.
    udp_loss: f64,
    /// Share of UDP frames among the dropped frames.
    udp_share: f64,
}

/// Simulates a drop-tail port for a second, with trains of a sender at `load` and UDP at a constant rate.
/// The sender does not react to losses, as BBR does not to so few: only arrivals and departures are
/// modelled, not TCP.
fn port(case: &Case, load: f64, phases: [f64; 3]) -> PortDrops {
    let time = |frame: u64, bps: f64| (frame + FRAMING_BYTES) as f64 * 8.0 / bps;
    let udp_frame = case.payload + 42;
    // Two flows, each a train every `every` seconds, serialized on the sender's link.
    let every = 2.0 * f64::from(TRAIN_FRAMES) * time(TRAIN_FRAME_BYTES, case.port_bps) / load;
    let mut starts: Vec<f64> = Vec::new();
    for phase in &phases[..2] {
        starts.extend((0..(1.0 / every) as u32).map(|k| (f64::from(k) + phase) * every));
    }
    starts.sort_by(f64::total_cmp);
    let mut arrivals = departure_times(&starts, TRAIN_FRAMES, time(TRAIN_FRAME_BYTES, case.access_bps), false);
    let gap = case.payload as f64 * 8.0 * f64::from(case.burst) / UDP_BPS;
    let starts: Vec<f64> = (0..(1.0 / gap) as u32).map(|k| (f64::from(k) + phases[2]) * gap).collect();
    arrivals.extend(departure_times(&starts, case.burst, time(udp_frame, case.cross_bps), true));
    arrivals.sort_by(|a, b| a.0.total_cmp(&b.0));

    let mut waiting = std::collections::VecDeque::new();
    let (mut backlog, mut busy_until) = (0, 0.0);
    let (mut udp, mut udp_dropped, mut dropped) = (0_u32, 0_u32, 0_u32);
    for (at, is_udp) in arrivals {
        while busy_until <= at {
            let Some(frame) = waiting.pop_front() else { break };
            backlog -= frame;
            busy_until += time(frame, case.port_bps);
        }
        let frame = if is_udp { udp_frame } else { TRAIN_FRAME_BYTES };
        udp += u32::from(is_udp);
        if busy_until <= at {
            busy_until = at + time(frame, case.port_bps);
        } else if backlog + frame <= LIMIT {
            backlog += frame;
            waiting.push_back(frame);
        } else {
            dropped += 1;
            udp_dropped += u32::from(is_udp);
        }
    }
    PortDrops {
        udp_loss: f64::from(udp_dropped) / f64::from(udp),
        udp_share: f64::from(udp_dropped) / f64::from(dropped.max(1)),
    }
}

/// Departure times of the frames of trains that start at `starts`, on a link where each frame takes `each`
/// seconds.
fn departure_times(starts: &[f64], train: u32, each: f64, is_udp: bool) -> Vec<(f64, bool)> {
    let mut free = 0.0_f64;
    let mut frames = Vec::new();
    for &start in starts {
        free = free.max(start);
        for _ in 0..train {
            free += each;
            frames.push((free, is_udp));
        }
    }
    frames
}

/// Minimum and maximum of a figure over relative phases of the three flows.
fn over_phases(case: &Case, load: f64, of: impl Fn(PortDrops) -> f64) -> (f64, f64) {
    // Fractional parts of multiples of irrational numbers: evenly spread and repeatable.
    let figures = (1..=5).map(|k| {
        let phase = |irrational: f64| (f64::from(k) * irrational).fract();
        of(port(case, load, [phase(2_f64.sqrt()), phase(3_f64.sqrt()), phase(5_f64.sqrt())]))
    });
    figures.fold((f64::INFINITY, 0.0), |(least, most), figure| (figure.min(least), figure.max(most)))
}

#[test]
fn trains_at_the_port_rate_share_the_drops_evenly() {
    for (access_bps, least, most) in
        [(10e9, 0.42, 0.55), (9.98e9, 0.42, 0.55), (40e9, 0.03, 0.15), (100e9, 0.03, 0.15)]
    {
        let case = Case::new("", &[], access_bps);
        let share = over_phases(&case, 0.93, |split| split.udp_share);
        assert!(least <= share.0 && share.1 <= most, "{access_bps}: {share:?}");
    }
}

#[test]
fn small_packets_are_rarely_dropped_among_large_frames() {
    let case = Case { payload: 1448, ..Case::new("", &[], 10e9) };
    let loss = over_phases(&case, 0.9, |split| split.udp_loss);
    assert!(loss.1 < 0.02, "{loss:?}");
}

/// Load that the sender offered to the port in the steady phase, retransmissions included.
fn offered(ran: &LabRun, case: &Case) -> f64 {
    let samples = ran.flow(0)["streams"].as_array().expect("streams");
    let segments: f64 = samples
        .iter()
        .map(|stream| {
            let sent = |sample: &serde_json::Value| number(&sample["tcp"]["data_segs_out"]);
            let all = stream["sender"]["samples"].as_array().expect("samples");
            let steady: Vec<_> = all.iter().filter(|sample| number(&sample["t_ns"]) >= 1e9).collect();
            let (first, last) = (steady[0], steady[steady.len() - 1]);
            (sent(last) - sent(first)) / ((number(&last["t_ns"]) - number(&first["t_ns"])) / 1e9)
        })
        .sum();
    segments * (TRAIN_FRAME_BYTES + FRAMING_BYTES) as f64 * 8.0 / case.port_bps
}

const FAST: &[&str] = &["link.0.rate=100G"];

#[test]
fn drops_between_bbr_and_udp_match_the_model() {
    landspeed_testkit::needs_lab_kernel!();
    let cases = [
        Case::new("10G", &[], 10e9),
        Case::new("100G", FAST, 100e9),
        Case::new("40G", &["link.0.rate=40G"], 40e9),
        Case::new("9.98G", &["link.0.rate=9.98G"], 9.98e9),
        Case::new("12G", &["link.0.rate=12G"], 12e9),
        Case::new("20G", &["link.0.rate=20G"], 20e9),
        Case { port_bps: 9.97e9, ..Case::new("100G, port 9.97G", &["link.0.rate=100G", "link.2.rate=9.97G"], 100e9) },
        Case { burst: 8, ..Case::new("10G, UDP in bursts of 8", &["flow.1.burst=8"], 10e9) },
        Case {
            burst: 8,
            cross_bps: 100e9,
            ..Case::new("10G, UDP in bursts of 8 from 100G", &["flow.1.burst=8", "link.1.rate=100G"], 10e9)
        },
        Case { payload: 1448, ..Case::new("10G, UDP of 1448 B", &["flow.1.len=1448"], 10e9) },
        // A frame takes 7.2 µs; the model has no jitter.
        Case::new("10G, jitter of 7 µs", &["link.0.delay=10us", "link.0.forward.jitter.spread=7us"], 10e9),
    ];
    let cases = if long() { &cases[..] } else { &cases[..2] };
    for (at, case) in cases.iter().enumerate() {
        let seeds = if long() && at < 3 { 3 } else { 1 };
        for seed in 1..=seeds {
            let short = ["time=1s", "flow.1.time=2s"];
            let mut lab = command("slots", &[case.sets, if long() { &[] } else { &short[..] }].concat());
            lab.args(["--seed", &seed.to_string()]);
            let ran = finish(lab, None);
            let udp = &ran.flow(1)["udp"];
            let lost = number(&udp["lost_packets"]);
            let share = lost / number(&ran.named("queues", "west->east")["drops"]);
            assert!(count(&udp["sent_packets"]) > if long() { 80_000 } else { 50_000 }, "{udp:#}");
            let what = |figure: &str| format!("{figure}, access {}, seed {seed}", case.name);
            let load = offered(&ran, case);
            let (least, most) = over_phases(case, load, |split| split.udp_loss);
            let loss = number(&udp["loss_ratio"]);
            note(&what("UDP lost"), "", loss.clamp(least, most), loss, "shown", &ran);
            if case.payload < TRAIN_FRAME_BYTES / 2 {
                assert!(loss < 0.02, "small packets find room: {loss}");
                continue;
            }
            // A mean load below the port's remaining capacity hides BBR's probing, the only time with drops.
            let (least, most) = over_phases(case, load.max(OVERLOAD), |split| split.udp_share);
            // BBR's probing and its other rate changes vary the load by more than phases do: a tenth of all drops.
            // A sender that saturates a link of exactly the port's rate is synchronized with the departures: its
            // frames arrive as slots become free, and any part of the UDP frames, up to all, finds none. The model's
            // trains have gaps.
            let in_step = case.access_bps.total_cmp(&case.port_bps).is_eq();
            // From a faster link the share is at most the model's; how much less depends on the gaps between BBR's
            // trains.
            let nearest = if in_step { share.clamp(least - 0.1, 1.0) } else { share.clamp(0.0, most + 0.1) };
            assert_close(&what("UDP's share of the drops"), "", nearest, share, 1e-9, &ran);
        }
    }
}
