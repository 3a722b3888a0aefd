//! A fluid model of TCP through one bottleneck: windows grow, a queue fills, somebody loses.

use landspeed_model::{Direction, Interval, Phase, PhaseName, Sample, Stream, StreamEnd, TcpInfo};

use super::random::Random;
use super::{MS, SECOND};

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
