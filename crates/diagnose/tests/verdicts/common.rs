//! Synthetic run documents, built from a few ratios.

use landspeed_model::{
    BuildInfo, Conservation, CoreUse, Cost, Direction, EndCost, EndTotals, Ends, HostSample, HostSeries,
    HostSnapshot, Interval, Parameters, PathInfo, Phase, PhaseName, RUN_SCHEMA, RunDocument, Sample, Status, Stream,
    StreamEnd, Summary, TcpInfo, UdpEnd, UdpParameters, Verdict,
};

const MS: u64 = 1_000_000;
const MSS: u32 = 1448;

/// One direction (client to server), described by its counters. The default is a flow without any visible
/// limit: 1 Gb/s over 20 ms, 100 samples in 10 s.
#[derive(Debug, Clone)]
pub struct Scenario {
    pub goodput_bps: f64,
    pub congestion: &'static str,
    pub streams: u32,
    pub samples: u64,
    pub interval_ms: u64,
    pub rwnd: f64,
    pub sndbuf_limited: f64,
    pub fill: f64,
    pub flight_cwnd: f64,
    pub flight_wnd: f64,
    pub notsent: u32,
    pub resent_ratio: f64,
    pub srtt_us: u32,
    pub min_rtt_us: u32,
    /// Ratio of the last to the first congestion window.
    pub growth: f64,
    pub sndbuf: u32,
    pub rcvbuf: u32,
    pub recv_fill: f64,
    pub sender_thread: f64,
    pub receiver_thread: f64,
    pub wait: f64,
    pub sender_cores: Vec<CoreUse>,
    pub receiver_cores: Vec<CoreUse>,
    pub max_pacing_bps: Option<f64>,
    pub line_rate_bps: Option<u64>,
    pub loopback: bool,
    pub receiver_report: bool,
    pub parameters: Parameters,
}

impl Default for Scenario {
    fn default() -> Self {
        Self {
            goodput_bps: 1e9,
            congestion: "cubic",
            streams: 1,
            samples: 100,
            interval_ms: 100,
            rwnd: 0.0,
            sndbuf_limited: 0.0,
            fill: 0.5,
            flight_cwnd: 0.5,
            flight_wnd: 0.1,
            notsent: 300_000,
            resent_ratio: 0.0,
            srtt_us: 20_500,
            min_rtt_us: 20_000,
            growth: 1.0,
            sndbuf: 4 << 20,
            rcvbuf: 6 << 20,
            recv_fill: 0.01,
            sender_thread: 0.3,
            receiver_thread: 0.3,
            wait: 0.0,
            sender_cores: vec![idle(), idle()],
            receiver_cores: vec![idle(), idle()],
            max_pacing_bps: None,
            line_rate_bps: None,
            loopback: false,
            receiver_report: true,
            parameters: Parameters::default(),
        }
    }
}

/// An idle core.
pub fn idle() -> CoreUse {
    CoreUse { idle: 1.0, ..CoreUse::default() }
}

/// A core fully used by softirqs.
pub fn softirq_core() -> CoreUse {
    CoreUse { softirq: 0.93, system: 0.04, idle: 0.03, ..CoreUse::default() }
}

impl Scenario {
    /// Builds the run document.
    pub fn document(&self) -> RunDocument {
        let end_ns = self.samples * self.interval_ms * MS;
        let mut parameters = self.parameters.clone();
        parameters.streams = self.streams;
        let streams: Vec<Stream> = (0..self.streams).map(|id| self.stream(id)).collect();
        let bytes: u64 = streams.iter().flat_map(|stream| &stream.intervals).map(|interval| interval.bytes).sum();
        let series = |cores: &[CoreUse]| {
            Some(HostSeries {
                samples: (0..self.samples)
                    .map(|k| HostSample {
                        start_ns: (k * self.interval_ms * MS) as i64,
                        end_ns: ((k + 1) * self.interval_ms * MS) as i64,
                        cores: cores.iter().copied().map(Some).collect(),
                        ..HostSample::default()
                    })
                    .collect(),
                ..HostSeries::default()
            })
        };
        RunDocument {
            schema: RUN_SCHEMA.to_owned(),
            landspeed: BuildInfo::default(),
            id: "0".repeat(32),
            started: "2026-01-01T00:00:00Z".to_owned(),
            command: Vec::new(),
            status: if self.receiver_report { Status::Complete } else { Status::Partial },
            errors: Vec::new(),
            warnings: Vec::new(),
            summary: Summary { goodput_bps: Some(self.goodput_bps), ..Summary::default() },
            requested: parameters.clone(),
            effective: Some(parameters),
            path: Some(PathInfo {
                loopback: self.loopback,
                control_rtt_ns: u64::from(self.min_rtt_us) * 1000,
                ..PathInfo::default()
            }),
            hosts: Ends { client: Some(self.host("a")), server: self.receiver_report.then(|| self.host("b")) },
            phases: vec![Phase {
                direction: Direction::Upload,
                name: PhaseName::Steady,
                start_ns: 0,
                end_ns,
                bytes: Some(bytes),
            }],
            streams,
            totals: Ends { client: Some(EndTotals::default()), server: None },
            udp: None,
            latency: Vec::new(),
            latency_under_load: None,
            conservation: Conservation {
                holds: true,
                unit: "bytes".to_owned(),
                offered: Some(bytes),
                delivered: Some(bytes),
                unaccounted_bytes: Some(0),
                ..Conservation::default()
            },
            cost: Cost {
                client: Some(EndCost { tick_ns: 4_000_000, ..EndCost::default() }),
                server: Some(EndCost { tick_ns: 4_000_000, ..EndCost::default() }),
            },
            other_tests: Ends::default(),
            iperf3: None,
            host_series: Ends {
                client: series(&self.sender_cores),
                server: if self.receiver_report { series(&self.receiver_cores) } else { None },
            },
            verdict: no_verdict(),
            reverse_verdict: None,
            third_party: None,
            emulation: None,
            unknown: std::collections::BTreeMap::new(),
        }
    }

    fn host(&self, name: &str) -> HostSnapshot {
        let mut host = HostSnapshot { hostname: name.to_owned(), cores_online: 2, ..HostSnapshot::default() };
        for (key, value) in [
            ("net.ipv4.tcp_rmem", "4096 131072 6291456"),
            ("net.ipv4.tcp_wmem", "4096 16384 4194304"),
            ("net.core.rmem_max", "212992"),
            ("net.core.wmem_max", "212992"),
            ("net.ipv4.tcp_notsent_lowat", "4294967295"),
        ] {
            host.sysctls.insert(key.to_owned(), value.to_owned());
        }
        if let Some(speed) = self.line_rate_bps {
            host.nic = Some(landspeed_model::NicSnapshot {
                name: "eth0".to_owned(),
                driver: Some("ixgbe".to_owned()),
                speed_bps: Some(speed),
                mtu_bytes: 1500,
                ..landspeed_model::NicSnapshot::default()
            });
        }
        host
    }

    fn stream(&self, id: u32) -> Stream {
        let step_ns = self.interval_ms * MS;
        let end_ns = self.samples * step_ns;
        let per_step = (self.goodput_bps / 8.0 / 1e9 * step_ns as f64 / f64::from(self.streams)) as u64;
        let end = |thread: f64| StreamEnd {
            bytes: per_step.saturating_mul(self.samples),
            congestion: Some(self.congestion.to_owned()),
            mss_bytes: Some(MSS),
            thread_cpu_ns: Some((thread * end_ns as f64) as u64),
            thread_system_ns: Some((thread * 0.9 * end_ns as f64) as u64),
            thread_user_ns: Some((thread * 0.1 * end_ns as f64) as u64),
            first_byte_ns: Some(0),
            last_byte_ns: Some(end_ns),
            ..StreamEnd::default()
        };
        let sender = StreamEnd {
            app_wait_ns: Some((self.wait * end_ns as f64) as u64),
            samples: (0..=self.samples).map(|k| self.sent(k, per_step)).collect(),
            ..end(self.sender_thread)
        };
        let receiver = self.receiver_report.then(|| StreamEnd {
            samples: (0..=self.samples).map(|k| self.read(k, per_step)).collect(),
            ..end(self.receiver_thread)
        });
        Stream {
            id,
            direction: Direction::Upload,
            client_addr: "192.0.2.1:4000".to_owned(),
            server_addr: "192.0.2.2:5201".to_owned(),
            intervals: (0..self.samples)
                .map(|k| Interval {
                    start_ns: k * step_ns,
                    end_ns: (k + 1) * step_ns,
                    phase: PhaseName::Steady,
                    bytes: per_step,
                    packets: None,
                })
                .collect(),
            intervals_from: if self.receiver_report { "receiver" } else { "sender" }.to_owned(),
            sender: Some(sender),
            receiver,
        }
    }

    fn sent(&self, k: u64, per_step: u64) -> Sample {
        let t_ns = k * self.interval_ms * MS;
        let busy_us = t_ns / 1000;
        // A varying window, so that a correlation is defined; flat otherwise.
        let phase = [0.9, 1.0, 1.1, 1.0][(k % 4) as usize];
        let ramp = 1.0 + (self.growth - 1.0) * k as f64 / self.samples.max(1) as f64;
        let cwnd = (1000.0 * ramp * phase) as u32;
        let flight = (f64::from(cwnd) * self.flight_cwnd) as u32;
        let sent = (per_step.saturating_mul(k) / u64::from(MSS)) as u32;
        // On a full path BBR's probes raise the RTT.
        let probe_us = if self.congestion == "bbr" && k.is_multiple_of(7) { self.srtt_us / 12 } else { 0 };
        Sample {
            t_ns,
            bytes: per_step.saturating_mul(k),
            wmem_queued_bytes: Some((f64::from(self.sndbuf) * self.fill) as u32),
            sndbuf_bytes: Some(self.sndbuf),
            tcp: Some(Box::new(TcpInfo {
                state: 1,
                snd_mss_bytes: MSS,
                unacked: flight,
                snd_cwnd: cwnd,
                rtt_us: self.srtt_us.saturating_add(probe_us),
                min_rtt_us: Some(self.min_rtt_us),
                total_retrans: (f64::from(sent) * self.resent_ratio) as u32,
                data_segs_out: Some(sent),
                bytes_acked: Some(per_step.saturating_mul(k)),
                notsent_bytes: Some(self.notsent),
                busy_time_us: Some(busy_us),
                rwnd_limited_us: Some((busy_us as f64 * self.rwnd) as u64),
                sndbuf_limited_us: Some((busy_us as f64 * self.sndbuf_limited) as u64),
                snd_wnd_bytes: Some((f64::from(flight) * f64::from(MSS) / self.flight_wnd.max(1e-3)) as u32),
                max_pacing_rate_bytes_per_s: self.max_pacing_bps.map(|rate| (rate / 8.0) as u64),
                returned_bytes: 280,
                ..TcpInfo::default()
            })),
            ..Sample::default()
        }
    }

    fn read(&self, k: u64, per_step: u64) -> Sample {
        Sample {
            t_ns: k * self.interval_ms * MS,
            bytes: per_step.saturating_mul(k),
            receive_queue_bytes: Some((f64::from(self.rcvbuf) * self.recv_fill) as u32),
            rcvbuf_bytes: Some(self.rcvbuf),
            tcp: Some(Box::new(TcpInfo {
                rcv_wnd_bytes: Some((f64::from(self.rcvbuf) * (0.6 - self.recv_fill).max(0.0)) as u32),
                ..TcpInfo::default()
            })),
            ..Sample::default()
        }
    }

    /// Turns the document into a UDP test: sent and delivered packets, and drops at the receiving socket.
    pub fn udp(&self, rate_bps: Option<u64>, sent: u64, delivered: u64, socket_drops: u64) -> RunDocument {
        let mut scenario = self.clone();
        scenario.parameters.protocol = landspeed_model::Protocol::Udp;
        scenario.parameters.rate_bps = rate_bps;
        scenario.parameters.udp = Some(UdpParameters::default());
        let mut document = scenario.document();
        for stream in &mut document.streams {
            for sample in stream.sender.iter_mut().chain(&mut stream.receiver).flat_map(|end| &mut end.samples) {
                sample.tcp = None;
            }
            if let Some(end) = &mut stream.sender {
                end.congestion = None;
                end.udp = Some(UdpEnd { sent_packets: sent, ..UdpEnd::default() });
            }
            if let Some(end) = &mut stream.receiver {
                end.udp = Some(UdpEnd {
                    delivered_packets: delivered,
                    socket_drops: Some(socket_drops),
                    ..UdpEnd::default()
                });
            }
        }
        document
    }
}

/// The verdict of a document before diagnosis.
pub fn no_verdict() -> Verdict {
    Verdict {
        cause: landspeed_model::Cause::Undetermined,
        confidence: landspeed_model::Confidence::Low,
        summary: String::new(),
        place: None,
        evidence: Vec::new(),
        ruled_out: Vec::new(),
        missing: Vec::new(),
        next_step: String::new(),
        epochs: Vec::new(),
    }
}
