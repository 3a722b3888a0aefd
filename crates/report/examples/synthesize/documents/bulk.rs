//! TCP bulk transfers over the fluid model.

use std::collections::BTreeMap;

use landspeed_model::{
    Cause, Confidence, Conservation, Cost, Direction, EndTotals, Ends, Epoch, EpochState, Evidence, Parameters,
    RunDocument, Summary, Term, Verdict, Warning,
};

use super::fluid::{Outcome, Scenario, simulate};
use super::hosts::{self, Load};
use super::{MS, SECOND, skeleton};

/// Totals, ledger, cost and host series for outcomes of one or both directions.
fn fill(document: &mut RunDocument, upload: &Outcome, download: Option<&Outcome>) {
    let by_phase = |o: &Outcome| -> BTreeMap<String, u64> {
        let names = ["startup", "omitted", "steady", "drain"];
        names.iter().zip(&o.phases).map(|(n, p)| ((*n).to_owned(), p.bytes)).collect()
    };
    let zero = (0, 0, 0, BTreeMap::new());
    let parts = |o: &Outcome| (o.delivered, o.queued, o.retransmits, by_phase(o));
    let up = parts(upload);
    let down = download.map_or(zero, parts);
    let delivered = up.0 + down.0;
    let queued = up.1 + down.1;
    document.totals = Ends {
        client: Some(EndTotals {
            bytes_sent: up.0 + up.1,
            bytes_acked: Some(up.0),
            bytes_received: down.0,
            retransmits: Some(up.2),
            received_by_phase: down.3,
        }),
        server: Some(EndTotals {
            bytes_sent: down.0 + down.1,
            bytes_acked: Some(down.0),
            bytes_received: up.0,
            retransmits: Some(down.2),
            received_by_phase: up.3,
        }),
    };
    let term = |name: &str, sign: &str, bytes: u64, source: &str| Term {
        name: name.to_owned(),
        sign: sign.to_owned(),
        bytes: Some(bytes as i64),
        packets: None,
        source: source.to_owned(),
    };
    document.conservation = Conservation {
        offered: delivered + queued,
        delivered,
        queued,
        terms: vec![
            term("written by the senders", "+", delivered + queued, "Σ streams[].sender.bytes"),
            term("left in the senders' queues", "-", queued, "Σ streams[].sender.send_queue_bytes (SIOCOUTQ)"),
            term("left unread at the receivers", "-", 0, "Σ streams[].receiver.receive_queue_bytes (SIOCINQ)"),
            term("delivered to the applications", "-", delivered, "Σ streams[].receiver.bytes"),
        ],
        ..document.conservation.clone()
    };
    let steady_bytes = upload.phases[2].bytes;
    document.cost = Cost {
        client: Some(hosts::cost(steady_bytes, 12.9, 3.4, (2, 0.46), 10_000_000)),
        server: Some(hosts::cost(steady_bytes, 20.7, 9.1, (9, 0.93), 1_000_000)),
    };
    document.summary = Summary {
        goodput_bps: Some(upload.goodput_bps),
        reverse_goodput_bps: download.map(|d| d.goodput_bps),
        bytes_delivered: delivered,
        retransmits: Some(up.2 + down.2),
        steady_ns: upload.steady_ns.1 - upload.steady_ns.0,
        min_rtt_us: Some(20_012),
        goodput_cv: Some(0.031),
        ..Summary::default()
    };
    let (from, to) = (upload.phases[0].end_ns, upload.steady_ns.1);
    let peak = upload.goodput_bps;
    let rates: Vec<(u64, f64)> = upload.streams[0]
        .intervals
        .iter()
        .enumerate()
        .map(|(k, i)| {
            let bytes: u64 = upload.streams.iter().map(|s| s.intervals[k].bytes).sum();
            (i.end_ns, bytes as f64 * 8e9 / (i.end_ns - i.start_ns) as f64)
        })
        .collect();
    let activity = |t: u64| {
        let at = rates.partition_point(|&(end, _)| end <= t).min(rates.len() - 1);
        if t < from || t >= to { 0.0 } else { (rates[at].1 / peak).clamp(0.0, 1.05) }
    };
    let every = document.requested.host_interval_ns;
    let cores = if upload.streams.len() > 32 { 128 } else { 16 };
    let sending = Load {
        threads: &[2, 3, 4, 5],
        thread_user: 0.02,
        thread_system: 0.38,
        softirq_cores: &[0, 1],
        softirq: 0.21,
        cores,
    };
    let receiving = Load {
        threads: &[8, 9, 10, 11],
        thread_user: 0.02,
        thread_system: 0.55,
        softirq_cores: &[9, 13],
        softirq: 0.44,
        cores,
    };
    document.host_series = Ends {
        client: Some(hosts::series(11, upload.end_ns, every, &sending, activity, false)),
        server: Some(hosts::series(12, upload.end_ns, every, &receiving, activity, true)),
    };
    document.phases = upload.phases.iter().chain(download.iter().flat_map(|d| &d.phases)).cloned().collect();
    document.streams = upload.streams.iter().chain(download.iter().flat_map(|d| &d.streams)).cloned().collect();
}

fn scenario(streams: u32, interval_ns: u64, seed: u64) -> Scenario {
    Scenario {
        streams,
        seconds: 10,
        interval_ns,
        capacity_bps: 40e9,
        rtt_s: 0.020,
        buffer_bytes: 24e6,
        window_bytes: 200e6,
        seed,
    }
}

fn parameters(s: &Scenario, direction: Direction) -> Parameters {
    Parameters {
        direction,
        streams: s.streams,
        time_ns: Some(s.seconds * SECOND),
        omit_ns: SECOND,
        interval_ns: s.interval_ns,
        host_interval_ns: s.interval_ns.max(10 * MS),
        congestion: Some("cubic".to_owned()),
        client_cpus: vec![2, 3, 4, 5],
        server_cpus: vec![8, 9, 10, 11],
        probe_mtu: true,
        ..Parameters::default()
    }
}

struct Reading<'a>(Cause, &'a str, f64, &'a str, &'a str, bool, &'a str, Option<u32>, Option<(u64, u64)>, &'a str);

fn evidence(r: &Reading) -> Evidence {
    Evidence {
        about: r.0,
        metric: r.1.to_owned(),
        value: r.2,
        unit: r.3.to_owned(),
        threshold: r.4.to_owned(),
        met: r.5,
        host: Some(r.6.to_owned()),
        stream: r.7,
        span_ns: r.8,
        source: r.9.to_owned(),
    }
}

/// States that follow each other in equal parts of a span.
fn epochs((start_ns, end_ns): (u64, u64), states: &[EpochState]) -> Vec<Epoch> {
    let part_ns = (end_ns - start_ns) / states.len() as u64;
    let mut epochs: Vec<Epoch> = Vec::new();
    for (at, &state) in states.iter().enumerate() {
        let from_ns = start_ns + at as u64 * part_ns;
        let (share, span) = (1000 / states.len() as u32, (from_ns, from_ns + part_ns));
        if let Some(known) = epochs.iter_mut().find(|epoch| epoch.state == state) {
            known.spans_ns.push(span);
            known.time_ns += part_ns;
            known.share_permille += share;
        } else {
            epochs.push(Epoch { state, time_ns: part_ns, share_permille: share, spans_ns: vec![span] });
        }
    }
    epochs
}

fn congestion_verdict(span: (u64, u64), retransmits: u64) -> Verdict {
    use Cause::{Application, NetworkCongestion, ReceiverCpu, ReceiverWindow, SendBuffer, SenderCpu};
    let steady = Some(span);
    let part = Some((span.0 + SECOND, span.0 + 4 * SECOND));
    Verdict {
        cause: NetworkCongestion,
        confidence: Confidence::High,
        summary:
            "A queue on the path overflows: the windows fill the path, the round trip grows by up to 5 ms before \
                  each loss, and CUBIC backs off."
                .to_owned(),
        place: Some("a bottleneck near 40 Gb/s between dtn1 and dtn2, with about 24 MB of buffer".to_owned()),
        evidence: [
            Reading(
                NetworkCongestion,
                "data in flight over congestion window",
                0.98,
                "ratio",
                "≥ 0.90",
                true,
                "client",
                Some(0),
                steady,
                "streams[0].sender.samples[].tcp.unacked",
            ),
            Reading(
                NetworkCongestion,
                "segments retransmitted",
                retransmits as f64,
                "packets",
                "> 0",
                true,
                "client",
                None,
                steady,
                "streams[].sender.samples[].tcp.total_retrans",
            ),
            Reading(
                NetworkCongestion,
                "smoothed over minimum round trip before losses",
                1.24,
                "ratio",
                "≥ 1.10",
                true,
                "client",
                Some(2),
                part,
                "streams[2].sender.samples[].tcp.rtt_us",
            ),
            Reading(
                NetworkCongestion,
                "window reductions",
                41.0,
                "events",
                "≥ 1",
                true,
                "client",
                Some(0),
                steady,
                "streams[0].sender.samples[].tcp.snd_cwnd",
            ),
            Reading(
                NetworkCongestion,
                "goodput over the interface's rate",
                0.385,
                "ratio",
                "< 0.95",
                true,
                "server",
                None,
                steady,
                "streams[].intervals[].bytes",
            ),
        ]
        .iter()
        .map(evidence)
        .collect(),
        ruled_out: [
            Reading(
                ReceiverWindow,
                "time limited by the receive window",
                0.0,
                "ratio",
                "≥ 0.20",
                false,
                "client",
                None,
                steady,
                "streams[].sender.samples[].tcp.rwnd_limited_us",
            ),
            Reading(
                SendBuffer,
                "send queue over send buffer",
                0.24,
                "ratio",
                "≥ 0.80",
                false,
                "client",
                None,
                steady,
                "streams[].sender.samples[].send_queue_bytes",
            ),
            Reading(
                Application,
                "unsent bytes in the send queue",
                12_582_912.0,
                "bytes",
                "≈ 0",
                false,
                "client",
                None,
                steady,
                "streams[].sender.samples[].tcp.notsent_bytes",
            ),
            Reading(
                SenderCpu,
                "busiest core",
                0.46,
                "ratio",
                "≥ 0.90",
                false,
                "client",
                None,
                steady,
                "host_series.client.samples[].cores[2]",
            ),
            Reading(
                ReceiverCpu,
                "busiest core",
                0.93,
                "ratio",
                "≥ 0.98 for the whole phase",
                false,
                "server",
                None,
                steady,
                "host_series.server.samples[].cores[9]",
            ),
        ]
        .iter()
        .map(evidence)
        .collect(),
        missing: vec!["drop counters of the switches between the hosts".to_owned()],
        next_step:
            "Pace the streams below the bottleneck (`--pace 9.5G`) and expect the same goodput without losses; \
                    then look for the 40 Gb/s hop."
                .to_owned(),
        epochs: epochs(
            span,
            &[EpochState::SlowStart, EpochState::CwndLimited, EpochState::Recovery, EpochState::CwndLimited],
        ),
    }
}

/// Four streams through a bottleneck that overflows.
pub fn congested() -> RunDocument {
    let s = scenario(4, 100 * MS, 1);
    let outcome = simulate(&s, Direction::Upload, 0);
    let mut document = skeleton(parameters(&s, Direction::Upload));
    fill(&mut document, &outcome, None);
    if let Some(effective) = &mut document.effective {
        effective.mss_bytes = Some(8948);
        effective.write_bytes = 128 * 1024;
    }
    document.warnings.push(Warning {
        code: "other-load".to_owned(),
        message: "other programs used 0.4 cores of dtn2.example.net during the test".to_owned(),
    });
    document.verdict = congestion_verdict(outcome.steady_ns, outcome.retransmits);
    document
}

/// One stream held back by the receiver's buffer; the accounting does not balance.
pub fn window_limited() -> RunDocument {
    use Cause::{NetworkCongestion, ReceiverWindow, SlowReader};
    let s = Scenario { window_bytes: 3_145_728.0, ..scenario(1, 100 * MS, 2) };
    let outcome = simulate(&s, Direction::Upload, 0);
    let mut document = skeleton(parameters(&s, Direction::Upload));
    fill(&mut document, &outcome, None);
    document.conservation.holds = false;
    document.conservation.offered += 65_536;
    document.conservation.unaccounted_bytes = 65_536;
    if let Some(bytes) = document.conservation.terms.first_mut().and_then(|t| t.bytes.as_mut()) {
        *bytes += 65_536;
    }
    document.conservation.notes.push("stream 0: the sender's last report is older than the receiver's".to_owned());
    let steady = Some(outcome.steady_ns);
    document.verdict = Verdict {
        cause: ReceiverWindow,
        confidence: Confidence::High,
        summary:
            "The receive window is too small for the path: 3 MiB every 20 ms is 1.26 Gb/s, however fast the rest is."
                .to_owned(),
        place: Some("dtn2.example.net, net.ipv4.tcp_rmem".to_owned()),
        evidence: [
            Reading(
                ReceiverWindow,
                "time limited by the receive window",
                0.97,
                "ratio",
                "≥ 0.20",
                true,
                "client",
                Some(0),
                steady,
                "streams[0].sender.samples[].tcp.rwnd_limited_us",
            ),
            Reading(
                ReceiverWindow,
                "data in flight over the peer's window",
                0.99,
                "ratio",
                "≥ 0.90",
                true,
                "client",
                Some(0),
                steady,
                "streams[0].sender.samples[].tcp.snd_wnd_bytes",
            ),
        ]
        .iter()
        .map(evidence)
        .collect(),
        ruled_out: [
            Reading(
                SlowReader,
                "receive queue over receive buffer",
                0.06,
                "ratio",
                "≥ 0.50",
                false,
                "server",
                Some(0),
                steady,
                "streams[0].receiver.samples[].receive_queue_bytes",
            ),
            Reading(
                NetworkCongestion,
                "segments retransmitted",
                0.0,
                "packets",
                "> 0",
                false,
                "client",
                Some(0),
                steady,
                "streams[0].sender.samples[].tcp.total_retrans",
            ),
        ]
        .iter()
        .map(evidence)
        .collect(),
        missing: Vec::new(),
        next_step:
            "On dtn2.example.net raise the third value of net.ipv4.tcp_rmem to 268435456; expect about 40 Gb/s × \
                    20 ms = 100 MB of window and no window limit."
                .to_owned(),
        epochs: epochs(outcome.steady_ns, &[EpochState::ReceiveWindowLimited]),
    };
    document
}

/// Four streams read every millisecond.
pub fn one_millisecond() -> RunDocument {
    let s = scenario(4, MS, 3);
    let outcome = simulate(&s, Direction::Upload, 0);
    let mut document = skeleton(parameters(&s, Direction::Upload));
    fill(&mut document, &outcome, None);
    document.verdict = congestion_verdict(outcome.steady_ns, outcome.retransmits);
    document
}

/// Sixty-four streams.
pub fn sixty_four_streams() -> RunDocument {
    let s = scenario(64, 100 * MS, 4);
    let outcome = simulate(&s, Direction::Upload, 0);
    let mut document = skeleton(parameters(&s, Direction::Upload));
    fill(&mut document, &outcome, None);
    document.verdict = congestion_verdict(outcome.steady_ns, outcome.retransmits);
    document
}

/// Two streams each way.
pub fn both_directions() -> RunDocument {
    let s = scenario(2, 100 * MS, 5);
    let up = simulate(&s, Direction::Upload, 0);
    let down =
        simulate(&Scenario { seed: 6, capacity_bps: 25e9, ..scenario(2, 100 * MS, 6) }, Direction::Download, 2);
    let mut document = skeleton(parameters(&s, Direction::Both));
    fill(&mut document, &up, Some(&down));
    document.verdict = congestion_verdict(up.steady_ns, up.retransmits);
    document.reverse_verdict = Some(Verdict {
        cause: Cause::Undetermined,
        confidence: Confidence::Low,
        summary: "The window filled the path, but the switch counters that would tell a queue from a policer were not visible."
            .to_owned(),
        place: None,
        ..congestion_verdict(down.steady_ns, down.retransmits)
    });
    document
}
