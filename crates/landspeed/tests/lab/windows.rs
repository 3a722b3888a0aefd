//! Growth of congestion windows, and their response to losses.

use crate::common::count;
use crate::lab::linux::{CongestionControl, steady_window_range};
use crate::lab::scenario::{LabRun, assert_close, captured, long, note, number, run};

/// Payload of a segment at an MTU of 1500 with timestamps, bytes.
const MSS: f64 = 1448.0;

#[test]
fn slow_start_begins_at_ten_and_doubles_each_rtt() {
    landspeed_testkit::needs_lab_kernel!();
    // Linux counts acknowledged segments, not ACKs: delayed ACKs halve their number without effect on the
    // window.
    for delayed in [true, false] {
        let ran = captured("slow-start", &[&format!("host.receiver.delayed-ack={delayed}")], "sender:receiver");
        let frames = ran.frames();
        let first_ns = frames.iter().find(|frame| frame.length == 1514).expect("data").at_ns;
        let mut rounds = [0_u32; 7];
        let mut answers = 0;
        for frame in frames.iter().filter(|frame| frame.at_ns >= first_ns) {
            let round = ((frame.at_ns - first_ns) / 100_000_000) as usize;
            match frame.length {
                1514 if round < rounds.len() => rounds[round] += 1,
                66 if round == rounds.len() - 1 => answers += 1,
                _ => {}
            }
        }
        let with = if delayed { "with" } else { "without" };
        for (round, &sent) in rounds.iter().enumerate() {
            let what = format!("segments in round trip {}, {with} delayed ACKs", round + 1);
            note(&what, "segments", f64::from(10 << round), f64::from(sent), "exact", &ran);
        }
        assert_eq!(rounds, [10, 20, 40, 80, 160, 320, 640], "{with} delayed ACKs");
        assert_eq!(answers, if delayed { 160 } else { 320 }, "ACKs in the seventh round trip, {with} delaying");
    }
}

/// One flow with periodic loss.
struct Case {
    control: CongestionControl,
    period: u64,
    rtt_ms: f64,
    /// Duration in virtual time, seconds: a few periods after it has settled.
    time_s: u32,
    /// Limit of the first slow start.
    window: &'static str,
    /// Window of RFC 9438, tables 1 and 2, packets.
    rfc: f64,
}

/// Cases of a few seconds, each with a dozen losses.
const SHORT: &[Case] = &[
    Case { control: CongestionControl::Reno, period: 10_000, rtt_ms: 10.0, time_s: 10, window: "1MB", rfc: 120.0 },
    Case { control: CongestionControl::Cubic, period: 10_000, rtt_ms: 10.0, time_s: 10, window: "1MB", rfc: 120.0 },
    Case { control: CongestionControl::Cubic, period: 10_000, rtt_ms: 100.0, time_s: 60, window: "2MB", rfc: 187.0 },
];

/// Cases of minutes, for the long tests.
const LONG: &[Case] = &[
    Case { control: CongestionControl::Reno, period: 10_000, rtt_ms: 10.0, time_s: 20, window: "1MB", rfc: 120.0 },
    Case { control: CongestionControl::Cubic, period: 10_000, rtt_ms: 10.0, time_s: 20, window: "1MB", rfc: 120.0 },
    Case { control: CongestionControl::Cubic, period: 10_000, rtt_ms: 100.0, time_s: 120, window: "2MB", rfc: 187.0 },
    Case { control: CongestionControl::Reno, period: 10_000, rtt_ms: 100.0, time_s: 180, window: "1MB", rfc: 120.0 },
    Case { control: CongestionControl::Reno, period: 100_000, rtt_ms: 10.0, time_s: 50, window: "3MB", rfc: 379.0 },
    Case { control: CongestionControl::Cubic, period: 100_000, rtt_ms: 10.0, time_s: 60, window: "3MB", rfc: 379.0 },
    Case { control: CongestionControl::Reno, period: 100_000, rtt_ms: 100.0, time_s: 400, window: "3MB", rfc: 379.0 },
    Case {
        control: CongestionControl::Cubic,
        period: 100_000,
        rtt_ms: 100.0,
        time_s: 200,
        window: "8MB",
        rfc: 1054.0,
    },
    Case {
        control: CongestionControl::Reno,
        period: 1_000_000,
        rtt_ms: 10.0,
        time_s: 140,
        window: "8MB",
        rfc: 1200.0,
    },
    Case {
        control: CongestionControl::Cubic,
        period: 1_000_000,
        rtt_ms: 10.0,
        time_s: 160,
        window: "8MB",
        rfc: 1200.0,
    },
    Case {
        control: CongestionControl::Cubic,
        period: 1_000_000,
        rtt_ms: 100.0,
        time_s: 300,
        window: "40MB",
        rfc: 5926.0,
    },
];

/// Mean packets per round trip, from the first loss after the share `from` of the time to the last loss:
/// whole periods.
fn window(ran: &LabRun, case: &Case, from: f64) -> f64 {
    let samples = ran.flow(0)["streams"][0]["sender"]["samples"].as_array().expect("samples");
    let end_ns = f64::from(case.time_s) * 1e9;
    let mut losses = Vec::new();
    let mut before = 0.0;
    for sample in samples {
        let (at_ns, tcp) = (number(&sample["t_ns"]), &sample["tcp"]);
        let retransmits = number(&tcp["total_retrans"]);
        if retransmits > before && at_ns >= from * end_ns && at_ns <= end_ns {
            losses.push((at_ns, number(&tcp["bytes_acked"])));
        }
        before = retransmits;
    }
    assert!(losses.len() > 3, "{} losses are too few", losses.len());
    let (first, last) = (losses[0], losses[losses.len() - 1]);
    (last.1 - first.1) / MSS / ((last.0 - first.0) / 1e9) * case.rtt_ms / 1e3
}

fn respond(case: &Case) {
    let name = if case.control == CongestionControl::Cubic { "cubic" } else { "reno" };
    let ran = run(
        "response",
        &[
            &format!("hosts.congestion={name}"),
            &format!("link.0.forward.loss.every={}", case.period),
            &format!("link.0.delay={}ms", case.rtt_ms / 2.0),
            &format!("flow.0.window={}", case.window),
            &format!("time={}s", case.time_s),
        ],
    );
    let link = ran.named("links", "sender->receiver");
    let reached = count(&link["packets"]) + count(&link["lost"]);
    assert_eq!(count(&link["lost"]), reached / case.period, "one frame in so many, exactly");
    let measured = window(&ran, case, 0.5);
    let what = format!("window of {name}, 1 in {}, {} ms", case.period, case.rtt_ms);
    note(&format!("{what}: RFC 9438"), "packets", case.rfc, measured, "shown", &ran);
    let (least, most) = steady_window_range(case.control, case.period, case.rtt_ms / 1e3, case.rfc);
    let nearest = measured.clamp(least, most);
    assert_close(
        &format!("{what}: Linux in whole packets, {least:.0} to {most:.0}"),
        "packets",
        nearest,
        measured,
        0.04,
        &ran,
    );
}

#[test]
fn cubic_and_reno_match_linux_under_periodic_loss() {
    landspeed_testkit::needs_lab_kernel!();
    let cases = SHORT.iter().chain(if long() { LONG } else { &[] });
    // Each lab run is one process on one core: run two at a time.
    let cases: Vec<&Case> = cases.collect();
    let next = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
                    respond(case);
                }
            });
        }
    });
}

#[test]
fn reno_follows_mathis_under_random_loss() {
    landspeed_testkit::needs_lab_kernel!();
    follows_mathis(&["time=30s", "flow.0.omit=2s"]);
}

#[test]
#[ignore = "long: 100 s of virtual time"]
fn reno_follows_mathis_under_random_loss_for_100_seconds() {
    landspeed_testkit::needs_lab_kernel!();
    follows_mathis(&[]);
}

fn follows_mathis(sets: &[&str]) {
    let ran = run("random-loss", sets);
    // Mathis, Semke, Mahdavi, Ott (1997): MSS/RTT × √(3/2p), with every packet counted as acknowledged, as
    // Linux does.
    let expected = MSS * 8.0 / 0.010 * (1.5_f64 / 0.001).sqrt();
    assert_close("goodput of reno, 0.1 % random loss, 10 ms", "b/s", expected, ran.goodput(0), 0.08, &ran);
}
