//! TCP bulk transfers over a fluid model of one bottleneck: windows grow, a queue fills, somebody loses.

use std::collections::BTreeMap;

use landspeed_model::{
    Cause, Confidence, Conservation, Cost, Direction, EndTotals, Ends, Evidence, Interval, Parameters, Phase,
    PhaseName, RunDocument, Sample, Stream, StreamEnd, Summary, TcpInfo, Term, Verdict, Warning,
};

use super::hosts::{self, Load};
use super::random::Random;
use super::{MS, SECOND, skeleton};

const MSS: f64 = 8948.0;

/// What to model.
pub struct Scenario {
    pub streams: u32,
    pub seconds: u64,
    pub interval_ns: u64,
    pub capacity_bps: f64,
    pub rtt_s: f64,
    pub buffer_bytes: f64,
    pub window_bytes: f64,
    pub seed: u64,
}

/// What came of it, for one direction.
pub struct Outcome {
    pub streams: Vec<Stream>,
    pub phases: Vec<Phase>,
    pub delivered: u64,
    pub queued: u64,
    pub retransmits: u64,
    pub goodput_bps: f64,
    pub steady_ns: (u64, u64),
    pub end_ns: u64,
}

struct Flow {
    cwnd: f64,
    ssthresh: f64,
    w_max: f64,
    since_loss: f64,
    acked: f64,
    sent: f64,
    retrans: u32,
    noise: f64,
    busy_us: f64,
    rwnd_us: f64,
}

/// Runs the model in steps of one millisecond and reads it every interval, as the program does.
pub fn simulate(s: &Scenario, direction: Direction, first_id: u32) -> Outcome {
    let mut random = Random::new(s.seed);
    let mut flows: Vec<Flow> = (0..s.streams)
        .map(|_| Flow {
            cwnd: 10.0,
            ssthresh: f64::INFINITY,
            w_max: 0.0,
            since_loss: 0.0,
            acked: 0.0,
            sent: 0.0,
            retrans: 0,
            noise: 1.0,
            busy_us: 0.0,
            rwnd_us: 0.0,
        })
        .collect();
    let startup = (s.rtt_s * 1.4e9) as u64 / MS * MS;
    let omitted = startup + SECOND;
    let stop = startup + s.seconds * SECOND;
    let drain = stop + (s.rtt_s * 2.0e9) as u64 / MS * MS;
    let mut edges: Vec<u64> = (0..=stop / s.interval_ns).map(|k| k * s.interval_ns).collect();
    edges.extend([startup, omitted, stop, drain]);
    edges.sort_unstable();
    edges.dedup();

    let n = flows.len();
    let mut intervals: Vec<Vec<Interval>> = vec![Vec::new(); n];
    let (mut sender, mut receiver): (Vec<Vec<Sample>>, Vec<Vec<Sample>>) = (vec![Vec::new(); n], vec![Vec::new(); n]);
    let mut counted = vec![0u64; n];
    let mut queue = 0.0f64;
    let mut t = 0u64;
    for pair in edges.windows(2) {
        let (start, end) = (pair[0], pair[1]);
        while t < end {
            step(s, &mut flows, &mut queue, &mut random, t, startup, stop);
            t += MS;
        }
        let phase = match start {
            x if x < startup => PhaseName::Startup,
            x if x < omitted => PhaseName::Omitted,
            x if x < stop => PhaseName::Steady,
            _ => PhaseName::Drain,
        };
        let rtt_us = ((s.rtt_s + queue * 8.0 / s.capacity_bps) * 1e6) as u32;
        for (i, flow) in flows.iter().enumerate() {
            let total = flow.acked as u64;
            let bytes = total - counted[i];
            counted[i] = total;
            intervals[i].push(Interval { start_ns: start, end_ns: end, phase, bytes, packets: None });
            let flight = (flow.cwnd * MSS).min(s.window_bytes);
            let queue_bytes = if t >= stop { 0.0 } else { flight * 2.1 };
            let tcp = TcpInfo {
                state: 1,
                ca_state: u8::from(flow.since_loss < s.rtt_s * 2.0 && flow.retrans > 0) * 3,
                snd_wscale: 14,
                rcv_wscale: 14,
                rto_us: 220_000,
                snd_mss_bytes: MSS as u32,
                rcv_mss_bytes: 536,
                unacked: (flight / MSS) as u32,
                pmtu_bytes: 9000,
                rtt_us: (f64::from(rtt_us) * (1.0 + random.normal() * 0.004)) as u32,
                rttvar_us: 180 + (random.unit() * 300.0) as u32,
                snd_ssthresh: if flow.ssthresh.is_finite() { flow.ssthresh as u32 } else { 0x7fff_ffff },
                snd_cwnd: flow.cwnd as u32,
                advmss_bytes: 8948,
                reordering: 3,
                total_retrans: flow.retrans,
                pacing_rate_bytes_per_s: Some((flow.cwnd * MSS * 1.2 / s.rtt_s) as u64),
                bytes_acked: Some(total),
                bytes_received: Some(0),
                notsent_bytes: Some((flight * 1.1) as u32),
                min_rtt_us: Some((s.rtt_s * 1e6) as u32),
                delivery_rate_bytes_per_s: Some((flight / s.rtt_s) as u64),
                busy_time_us: Some(flow.busy_us as u64),
                rwnd_limited_us: Some(flow.rwnd_us as u64),
                sndbuf_limited_us: Some(0),
                bytes_sent: Some(flow.sent as u64),
                bytes_retrans: Some(u64::from(flow.retrans) * MSS as u64),
                snd_wnd_bytes: Some(s.window_bytes as u32),
                returned_bytes: 280,
                ..TcpInfo::default()
            };
            sender[i].push(Sample {
                t_ns: end,
                bytes: flow.sent as u64 + queue_bytes as u64,
                send_queue_bytes: Some(queue_bytes as u32),
                sndbuf_bytes: Some(268_435_456),
                wmem_queued_bytes: Some((queue_bytes * 1.3) as u32),
                tcp: Some(Box::new(tcp)),
                tcp_info_raw: Some("AQAAAAAHd/8AAAAAyDIAAAAA".to_owned()),
                ..Sample::default()
            });
            receiver[i].push(Sample {
                t_ns: end + 131_000,
                bytes: total,
                receive_queue_bytes: Some((random.unit() * random.unit() * 900_000.0) as u32),
                rmem_alloc_bytes: Some((random.unit() * 1_400_000.0) as u32),
                rcvbuf_bytes: Some((s.window_bytes * 1.5).min(2.0e9) as u32),
                tcp: Some(Box::new(TcpInfo {
                    state: 1,
                    rcv_mss_bytes: MSS as u32,
                    rcv_rtt_us: rtt_us,
                    rcv_space_bytes: (s.window_bytes / 2.0) as u32,
                    rcv_wnd_bytes: Some(s.window_bytes as u32),
                    bytes_received: Some(total),
                    returned_bytes: 232,
                    ..TcpInfo::default()
                })),
                ..Sample::default()
            });
        }
    }
    finish(s, direction, first_id, &flows, intervals, sender, receiver, [startup, omitted, stop, drain])
}

fn step(s: &Scenario, flows: &mut [Flow], queue: &mut f64, random: &mut Random, t: u64, startup: u64, stop: u64) {
    if t < startup {
        return;
    }
    let rtt = s.rtt_s + *queue * 8.0 / s.capacity_bps;
    if t >= stop {
        for flow in flows.iter_mut() {
            flow.acked += (flow.sent - flow.acked) * 0.12;
        }
        return;
    }
    let dt = 0.001;
    let mut in_flight = 0.0;
    for flow in flows.iter_mut() {
        flow.noise += (1.0 - flow.noise) * 0.05 + random.normal() * 0.006;
        let limited = flow.cwnd * MSS > s.window_bytes;
        let flight = (flow.cwnd * MSS).min(s.window_bytes);
        in_flight += flight;
        let bytes = flight / rtt * dt * flow.noise.clamp(0.7, 1.3);
        flow.acked += bytes;
        flow.sent = flow.acked + flight;
        flow.busy_us += dt * 1e6;
        flow.rwnd_us += if limited { dt * 1e6 * 0.97 } else { 0.0 };
        flow.since_loss += dt;
        if limited {
            continue;
        }
        if flow.cwnd < flow.ssthresh {
            flow.cwnd *= 1.0 + dt / rtt * 0.9;
        } else {
            // CUBIC (RFC 9438), C = 0.4, in segments.
            let k = (flow.w_max * 0.3 / 0.4).cbrt();
            flow.cwnd = (0.4 * (flow.since_loss - k).powi(3) + flow.w_max).max(flow.cwnd);
        }
    }
    let bdp = s.capacity_bps / 8.0 * s.rtt_s;
    *queue = (in_flight - bdp).clamp(0.0, s.buffer_bytes);
    if in_flight - bdp > s.buffer_bytes {
        let unlucky = (random.unit() * flows.len() as f64) as usize;
        for (i, flow) in flows.iter_mut().enumerate() {
            if i != unlucky && random.unit() > 0.25 {
                continue;
            }
            let lost = 3 + (random.unit() * 40.0) as u32;
            flow.retrans += lost;
            flow.w_max = flow.cwnd;
            flow.cwnd *= 0.7;
            flow.ssthresh = flow.cwnd;
            flow.since_loss = 0.0;
        }
    }
}

#[expect(clippy::too_many_arguments, reason = "the model's arrays, handed over once")]
fn finish(
    s: &Scenario,
    direction: Direction,
    first_id: u32,
    flows: &[Flow],
    intervals: Vec<Vec<Interval>>,
    sender: Vec<Vec<Sample>>,
    receiver: Vec<Vec<Sample>>,
    [startup, omitted, stop, drain]: [u64; 4],
) -> Outcome {
    let phase_bytes =
        |name: PhaseName| -> u64 { intervals.iter().flatten().filter(|i| i.phase == name).map(|i| i.bytes).sum() };
    let phase = |name, start_ns, end_ns| Phase { direction, name, start_ns, end_ns, bytes: phase_bytes(name) };
    let phases = vec![
        phase(PhaseName::Startup, 0, startup),
        phase(PhaseName::Omitted, startup, omitted),
        phase(PhaseName::Steady, omitted, stop),
        phase(PhaseName::Drain, stop, drain),
    ];
    let goodput_bps = phase_bytes(PhaseName::Steady) as f64 * 8e9 / (stop - omitted) as f64;
    let mut out = Outcome {
        streams: Vec::new(),
        phases,
        delivered: 0,
        queued: 0,
        retransmits: 0,
        goodput_bps,
        steady_ns: (omitted, stop),
        end_ns: drain,
    };
    for (i, ((intervals, sent), received)) in intervals.into_iter().zip(sender).zip(receiver).enumerate() {
        let total: u64 = intervals.iter().map(|i| i.bytes).sum();
        let left = if i == 1 { 524_288 } else { 0 };
        out.delivered += total;
        out.queued += left;
        out.retransmits += u64::from(flows[i].retrans);
        out.streams.push(Stream {
            id: first_id + i as u32,
            direction,
            client_addr: format!("192.0.2.10:{}", 50_100 + i),
            server_addr: "198.51.100.20:5210".to_owned(),
            intervals,
            intervals_from: "receiver".to_owned(),
            sender: Some(StreamEnd {
                bytes: total + left,
                bytes_acked: Some(total),
                retransmits: Some(u64::from(flows[i].retrans)),
                bytes_retrans: Some(u64::from(flows[i].retrans) * MSS as u64),
                send_queue_bytes: Some(left),
                congestion: Some("cubic".to_owned()),
                mss_bytes: Some(MSS as u32),
                sndbuf_bytes: Some(268_435_456),
                rcvbuf_bytes: Some(131_072),
                cpu: Some(2 + i as u32 % 4),
                thread_cpu_ns: 3_100_000_000 + i as u64 * 77_000_000,
                thread_user_ns: 120_000_000,
                thread_system_ns: 2_980_000_000 + i as u64 * 77_000_000,
                syscalls: total / 262_144 + 1,
                first_byte_ns: Some(200_000),
                last_byte_ns: Some(stop),
                samples: sent,
                ..StreamEnd::default()
            }),
            receiver: Some(StreamEnd {
                bytes: total,
                receive_queue_bytes: Some(0),
                congestion: Some("cubic".to_owned()),
                mss_bytes: Some(MSS as u32),
                sndbuf_bytes: Some(87_040),
                rcvbuf_bytes: Some((s.window_bytes * 1.5) as u64),
                cpu: Some(8 + i as u32 % 4),
                thread_cpu_ns: 5_200_000_000 + i as u64 * 54_000_000,
                thread_user_ns: 80_000_000,
                thread_system_ns: 5_120_000_000 + i as u64 * 54_000_000,
                syscalls: total / 180_000 + 1,
                first_byte_ns: Some(startup),
                last_byte_ns: Some(drain),
                samples: received,
                ..StreamEnd::default()
            }),
        });
    }
    out
}

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

/// One stream held back by the receiver's buffer; the books do not balance.
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
