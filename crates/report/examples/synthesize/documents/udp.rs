//! UDP at a rate a little above what the receiver takes.

use landspeed_model::{
    Cause, Confidence, Conservation, Cost, DepartureError, Direction, EndTotals, Ends, Evidence, Interval,
    Parameters, Phase, PhaseName, Place, PlacedLoss, Protocol, RunDocument, Sample, Stream, StreamEnd, Summary, Term,
    UdpEnd, UdpParameters, UdpTotals, Verdict,
};

use super::hosts::{self, Load};
use super::random::Random;
use super::{MS, SECOND, skeleton};

const PAYLOAD: u64 = 1448;

/// Two streams of 2 Gb/s; the receiver's socket overflows in bursts and the network loses a few.
pub fn lossy() -> RunDocument {
    let interval = 100 * MS;
    let parameters = Parameters {
        protocol: Protocol::Udp,
        streams: 2,
        omit_ns: 0,
        rate_bps: Some(2_000_000_000),
        udp: Some(UdpParameters {
            payload_bytes: PAYLOAD as u32,
            burst_packets: 65,
            gso: true,
            gro: true,
            exact_departures: true,
        }),
        ..Parameters::default()
    };
    let mut document = skeleton(parameters);
    document.command = ["landspeed", "run", "dtn2.example.net", "-u", "-b", "2G", "-P", "2", "--burst", "65"]
        .map(str::to_owned)
        .to_vec();
    let (mut sent_all, mut got_all, mut socket_all) = (0u64, 0u64, 0u64);
    let (startup, stop, drain) = (28 * MS, 10_028 * MS, 10_068 * MS);
    for id in 0..2u32 {
        let mut random = Random::new(40 + u64::from(id));
        let (mut sent, mut got, mut drops) = (0u64, 0u64, 0u64);
        let (mut intervals, mut tx, mut rx) = (Vec::new(), Vec::new(), Vec::new());
        let mut edges: Vec<u64> = (0..=stop / interval).map(|k| k * interval).collect();
        edges.extend([startup, stop, drain]);
        edges.sort_unstable();
        for pair in edges.windows(2) {
            let (start, end) = (pair[0], pair[1]);
            let phase = match start {
                x if x < startup => PhaseName::Startup,
                x if x < stop => PhaseName::Steady,
                _ => PhaseName::Drain,
            };
            let share = (end - start) as f64 / interval as f64;
            let offered = if phase == PhaseName::Steady { (17_265.0 * share) as u64 } else { 0 };
            let burst = random.unit() > 0.8;
            let overflow = if burst { (offered as f64 * random.unit() * 0.06) as u64 } else { 0 };
            let wire = (offered as f64 * 0.0004 * random.unit()) as u64;
            sent += offered;
            drops += overflow;
            let delivered = offered - overflow.min(offered) - wire;
            got += delivered;
            intervals.push(Interval {
                start_ns: start,
                end_ns: end,
                phase,
                bytes: delivered * PAYLOAD,
                packets: Some(delivered),
            });
            tx.push(Sample {
                t_ns: end,
                bytes: sent * PAYLOAD,
                packets: Some(sent),
                send_queue_bytes: Some(70_000),
                sndbuf_bytes: Some(425_984),
                ..Sample::default()
            });
            rx.push(Sample {
                t_ns: end,
                bytes: got * PAYLOAD,
                packets: Some(got),
                receive_queue_bytes: Some(if burst { 212_992 } else { (random.unit() * 40_000.0) as u32 }),
                rmem_alloc_bytes: Some(if burst { 212_992 } else { (random.unit() * 60_000.0) as u32 }),
                rcvbuf_bytes: Some(212_992),
                socket_drops: Some(drops as u32),
                ..Sample::default()
            });
        }
        sent_all += sent;
        got_all += got;
        socket_all += drops;
        document.streams.push(Stream {
            id,
            direction: Direction::Upload,
            client_addr: format!("192.0.2.10:{}", 40_200 + id),
            server_addr: "198.51.100.20:5210".to_owned(),
            intervals,
            intervals_from: "receiver".to_owned(),
            sender: Some(StreamEnd {
                bytes: sent * PAYLOAD,
                sndbuf_bytes: Some(425_984),
                thread_cpu_ns: 2_200_000_000,
                thread_user_ns: 500_000_000,
                thread_system_ns: 1_700_000_000,
                syscalls: sent / 65,
                app_wait_ns: 7_400_000_000,
                udp: Some(UdpEnd {
                    sent_packets: sent,
                    departure_error: Some(DepartureError {
                        count: sent / 65,
                        p50_ns: 1_900,
                        p99_ns: 14_200,
                        p999_ns: 61_000,
                        max_ns: 812_000,
                    }),
                    gso_used: true,
                    ..UdpEnd::default()
                }),
                samples: tx,
                ..StreamEnd::default()
            }),
            receiver: Some(StreamEnd {
                bytes: got * PAYLOAD,
                rcvbuf_bytes: Some(212_992),
                thread_cpu_ns: 4_900_000_000,
                thread_user_ns: 700_000_000,
                thread_system_ns: 4_200_000_000,
                syscalls: got / 20,
                udp: Some(UdpEnd {
                    delivered_packets: got,
                    duplicate_packets: 3,
                    reordered_packets: 118,
                    late_packets: 41,
                    highest_seq: sent,
                    socket_drops: drops,
                    jitter_ns: Some(8_812),
                    timestamps: Some("kernel, coalesced".to_owned()),
                    gro_used: true,
                    ..UdpEnd::default()
                }),
                samples: rx,
                ..StreamEnd::default()
            }),
        });
    }
    let lost = sent_all - got_all;
    let phase = |name, start_ns, end_ns, bytes| Phase { direction: Direction::Upload, name, start_ns, end_ns, bytes };
    document.phases = vec![
        phase(PhaseName::Startup, 0, startup, 0),
        phase(PhaseName::Steady, startup, stop, got_all * PAYLOAD),
        phase(PhaseName::Drain, stop, drain, 0),
    ];
    document.udp = Some(UdpTotals {
        sent_packets: sent_all,
        refused_packets: 12,
        delivered_packets: got_all,
        lost_packets: lost as i64,
        duplicate_packets: 6,
        reordered_packets: 236,
        late_packets: 82,
        tail_lost_packets: 4,
        loss_ratio: lost as f64 / sent_all as f64,
        jitter_ns: Some(8_812),
        payload_bytes: PAYLOAD as u32,
    });
    let goodput = got_all as f64 * PAYLOAD as f64 * 8.0 / 10.0;
    document.summary = Summary {
        goodput_bps: Some(goodput),
        bytes_delivered: got_all * PAYLOAD,
        loss_ratio: Some(lost as f64 / sent_all as f64),
        steady_ns: 10 * SECOND,
        goodput_cv: Some(0.012),
        ..Summary::default()
    };
    let term = |name: &str, sign: &str, packets: u64, source: &str| Term {
        name: name.to_owned(),
        sign: sign.to_owned(),
        bytes: Some((packets * PAYLOAD) as i64),
        packets: Some(packets as i64),
        source: source.to_owned(),
    };
    document.conservation = Conservation {
        unit: "packets".to_owned(),
        offered: sent_all,
        delivered: got_all,
        lost,
        queued: 0,
        unaccounted_packets: Some(0),
        terms: vec![
            term("accepted by the senders' kernels", "+", sent_all, "Σ streams[].sender.udp.sent_packets"),
            term("dropped by the receiving sockets", "-", socket_all, "SO_RXQ_OVFL"),
            term("lost in the network", "-", lost - socket_all, "remainder of the sequence bitmap"),
            term("delivered to the applications", "-", got_all, "Σ streams[].receiver.udp.delivered_packets"),
        ],
        losses: vec![
            PlacedLoss {
                place: Place::ReceiverSocket,
                packets: socket_all,
                exact: true,
                source: "SO_RXQ_OVFL".to_owned(),
            },
            PlacedLoss { place: Place::ReceiverNic, packets: 0, exact: false, source: "rx_dropped".to_owned() },
            PlacedLoss {
                place: Place::Network,
                packets: lost - socket_all,
                exact: false,
                source: "remainder".to_owned(),
            },
        ],
        ..document.conservation.clone()
    };
    document.totals = Ends {
        client: Some(EndTotals { bytes_sent: sent_all * PAYLOAD, ..EndTotals::default() }),
        server: Some(EndTotals { bytes_received: got_all * PAYLOAD, ..EndTotals::default() }),
    };
    document.cost = Cost {
        client: Some(hosts::cost(sent_all * PAYLOAD, 4.4, 1.1, (2, 0.31), 10_000_000)),
        server: Some(hosts::cost(got_all * PAYLOAD, 9.8, 3.0, (9, 0.99), 1_000_000)),
    };
    let activity = |t: u64| if (startup..stop).contains(&t) { 1.0 } else { 0.0 };
    let cores = 16;
    let sending =
        Load { threads: &[2, 3], thread_user: 0.06, thread_system: 0.25, softirq_cores: &[0], softirq: 0.08, cores };
    let receiving = Load {
        threads: &[8, 9],
        thread_user: 0.07,
        thread_system: 0.42,
        softirq_cores: &[9, 13],
        softirq: 0.5,
        cores,
    };
    document.host_series = Ends {
        client: Some(hosts::series(21, drain, interval, &sending, activity, false)),
        server: Some(hosts::series(22, drain, interval, &receiving, activity, true)),
    };
    document.verdict = Verdict {
        cause: Cause::ReceiverCpu,
        confidence: Confidence::Medium,
        summary: "Core 9 of the receiver runs both the interrupts and a stream; its socket overflows in bursts."
            .to_owned(),
        place: Some("server core 9, softirq".to_owned()),
        evidence: vec![
            Evidence {
                about: Cause::ReceiverCpu,
                metric: "softirq and system time of core 9".to_owned(),
                value: 0.99,
                unit: "ratio".to_owned(),
                threshold: "≥ 0.90".to_owned(),
                met: true,
                host: Some("server".to_owned()),
                stream: None,
                span_ns: Some((startup, stop)),
                source: "host_series.server.samples[].cores[9]".to_owned(),
            },
            Evidence {
                about: Cause::ReceiverCpu,
                metric: "datagrams dropped by the receiving sockets".to_owned(),
                value: socket_all as f64,
                unit: "packets".to_owned(),
                threshold: "> 0".to_owned(),
                met: true,
                host: Some("server".to_owned()),
                stream: Some(1),
                span_ns: Some((startup, stop)),
                source: "streams[1].receiver.samples[].socket_drops".to_owned(),
            },
        ],
        ruled_out: Vec::new(),
        missing: vec!["NIC counters of the receiver (rx_out_of_buffer): not permitted".to_owned()],
        next_step: "Move the stream off the interrupt's core: `--peer-cpus 10,11`; expect the socket drops to stop."
            .to_owned(),
        epochs: Vec::new(),
    };
    document
}
