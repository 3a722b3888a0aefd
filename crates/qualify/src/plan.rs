//! Tests of a suite, and the streams that they send.

use landspeed_model::{QualifyCongestion, QualifyDerived, QualifyWeight};

use crate::sprt::Sprt;
use crate::target::{Target, line_packets_per_s};

/// Length of the low-rate test, and its share of the target rate.
const BACKGROUND_S: f64 = 3.0;
const BACKGROUND_SHARE: f64 = 0.01;
/// Lowest rate of the low-rate test, packets/s.
const BACKGROUND_MIN_PACKETS_PER_S: f64 = 20.0;
/// Length of the first stream of a test, seconds; each further one is twice as long, so that heavy loss ends the test early.
pub(crate) const FIRST_STREAM_S: f64 = 0.5;
/// Single bursts of a whole window.
pub(crate) const WINDOW_BURSTS: &str = "sender-rate-bursts-window";
/// Bursts of a whole window, one each target RTT.
pub(crate) const SUSTAINED_BURSTS: &str = "sustained-full-rate-bursts";
/// Packets that a sender without pacing sends for a delayed ACK while its window grows.
const DELAYED_ACK_PACKETS: u32 = 3;
/// Packets that slow start sends back to back: two for each delayed ACK of two packets (RFC 8337 section 6.1).
const SLOW_START_PACKETS: u32 = 4;
/// Pacing gain of Startup in BBRv3 (draft-ietf-ccwg-bbr, `BBRStartupPacingGain`).
const BBR_STARTUP_GAIN: f64 = 2.77;
/// Pacing gain of ProbeBW_UP in BBRv3 (draft-ietf-ccwg-bbr), the highest after Startup.
const BBR_PROBE_GAIN: f64 = 1.25;
/// Initial window, packets (RFC 6928).
const INITIAL_WINDOW: u32 = 10;
/// Largest segmentation offload burst (TSO, GSO), bytes.
const OFFLOAD_BYTES: f64 = 65_536.0;
/// Time at the pacing rate that Linux puts into one offload burst, seconds: 1 / 1024 (`sk_pacing_shift`; `tcp_min_tso_segs` in
/// Documentation/networking/ip-sysctl.rst).
const OFFLOAD_S: f64 = 1.0 / 1024.0;
/// Least segments of an offload burst (`tcp_min_tso_segs`).
const OFFLOAD_MIN_PACKETS: u32 = 2;
/// Longest burst of a stream, packets.
pub const MAX_BURST_PACKETS: u64 = 65_536;
/// Shares of bursts with loss that are accepted and rejected. A sender starts slowly once per connection, so the trial is a burst.
const LOSSY_BURSTS: (f64, f64) = (0.05, 0.5);
/// Longest series of bursts.
const MAX_BURSTS: u64 = 12;

/// A stream of UDP packets of the target MTU to send over the section.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stream {
    /// UDP payload of a packet, bytes.
    pub payload_bytes: u32,
    /// Number of packets of the stream.
    pub packets: u64,
    /// Mean rate of the UDP payload, bits/s.
    pub rate_bps: u64,
    /// Packets sent back to back.
    pub burst_packets: u32,
    /// Time that a burst takes to leave at interface rate, nanoseconds; 0 if that rate is unknown.
    pub burst_ns: u64,
    /// Time without packets before the stream, nanoseconds.
    pub pause_ns: u64,
}

impl Stream {
    /// Returns the scheduled time between the first and the last burst, nanoseconds.
    pub fn span_ns(&self) -> u64 {
        let bursts = self.packets.div_ceil(u64::from(self.burst_packets.max(1))).saturating_sub(1);
        let bits = bursts as f64 * f64::from(self.burst_packets) * f64::from(self.payload_bytes) * 8.0;
        (bits / self.rate_bps.max(1) as f64 * 1e9) as u64
    }
}

/// Unit of the sequential test: what is counted as one trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrialUnit {
    /// A packet; a defect is a loss.
    Packet,
    /// A stream of one burst; a defect is a burst that lost more packets than the target tolerates.
    Burst,
}

/// One test of a suite.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Name in the document.
    pub name: String,
    /// Section of RFC 8337.
    pub section: &'static str,
    /// Effect of the result on the verdict.
    pub weight: QualifyWeight,
    /// What the test does, in plain words.
    pub what: String,
    /// Packets per second while packets are sent.
    pub packets_per_s: f64,
    /// Packets sent back to back.
    pub burst_packets: u32,
    /// Whether a connection sends such bursts only at its start.
    pub(crate) at_start: bool,
    /// Packets of each stream, for trials that are bursts.
    pub(crate) stream_packets: u64,
    pub(crate) unit: TrialUnit,
    pub(crate) sprt: Sprt,
    /// Maximum number of packets that count.
    pub(crate) max_packets: u64,
}

impl Plan {
    /// Returns the packets that the test sends if none is lost.
    pub fn expected_packets(&self) -> u64 {
        let least =
            if self.unit == TrialUnit::Burst { 0 } else { (self.packets_per_s * FIRST_STREAM_S).ceil() as u64 };
        self.accept_packets().max(least).min(self.max_packets)
    }

    /// Returns the duration of [`Plan::expected_packets`] without pauses, seconds.
    pub fn expected_s(&self) -> f64 {
        self.expected_packets() as f64 / self.packets_per_s
    }

    /// Returns the packets that a pass needs at least.
    pub fn accept_packets(&self) -> u64 {
        let trials = self.sprt.trials_to_accept(0);
        if self.unit == TrialUnit::Burst { trials * self.stream_packets } else { trials }
    }

    /// Whether the test may send enough packets for a pass.
    pub fn can_pass(&self) -> bool {
        self.max_packets >= self.accept_packets()
    }
}

/// Rate of slow start, in target rates: RFC 8337 section 6.1, or [`BBR_STARTUP_GAIN`].
pub(crate) fn slow_start_gain(congestion: QualifyCongestion) -> f64 {
    if congestion == QualifyCongestion::Bbr { BBR_STARTUP_GAIN } else { 2.0 }
}

/// Returns the tests for a target, in the order in which they run. No test sends longer than `max_s`.
pub fn plans(target: &Target, derived: &QualifyDerived, line_rate_bps: Option<u64>, max_s: f64) -> Vec<Plan> {
    let target_pps = derived.packets_per_s;
    let line_pps = line_rate_bps.map_or(f64::INFINITY, |bps| line_packets_per_s(target, bps as f64));
    let sprt = Sprt::of_run_length(derived.run_length_packets as f64);
    let window = derived.window_packets;
    let packets = |pps: f64| (pps * max_s).ceil().max(1.0) as u64;
    let background_pps = (target_pps * BACKGROUND_SHARE).max(BACKGROUND_MIN_PACKETS_PER_S).min(target_pps);
    let mut plans = vec![
        Plan {
            name: "background-loss".to_owned(),
            section: "8.1.3",
            weight: QualifyWeight::FailureOnly,
            what: "evenly spaced packets at 1% of the target rate".to_owned(),
            packets_per_s: background_pps,
            burst_packets: 1,
            at_start: false,
            stream_packets: 0,
            unit: TrialUnit::Packet,
            sprt,
            max_packets: (background_pps * BACKGROUND_S.min(max_s)).ceil().max(1.0) as u64,
        },
        Plan {
            name: "delivery-at-target-rate".to_owned(),
            section: "8.1.1",
            weight: QualifyWeight::Required,
            what: "evenly spaced packets at the target rate".to_owned(),
            packets_per_s: target_pps,
            burst_packets: 1,
            at_start: false,
            stream_packets: 0,
            unit: TrialUnit::Packet,
            sprt,
            max_packets: packets(target_pps),
        },
    ];
    let gain = slow_start_gain(target.congestion);
    let burst = Plan {
        name: "slow-start-bursts".to_owned(),
        section: "8.3.1",
        weight: QualifyWeight::Required,
        what: format!(
            "{window} packets at {gain} times the target rate, or at interface rate if that is lower, several times"
        ),
        packets_per_s: (target_pps * gain).min(line_pps),
        burst_packets: SLOW_START_PACKETS,
        at_start: true,
        stream_packets: window,
        unit: TrialUnit::Burst,
        sprt: Sprt::new(LOSSY_BURSTS.0, LOSSY_BURSTS.1),
        max_packets: window * MAX_BURSTS,
    };
    plans.push(burst.clone());
    // Linux sizes offload bursts by the pacing rate.
    let offload = |gain: f64| {
        let bytes = OFFLOAD_BYTES.min(gain * target.rate.bps() as f64 / 8.0 * OFFLOAD_S);
        let packets = (bytes / f64::from(target.mtu_bytes - derived.header_bytes)).ceil() as u32;
        packets.max(OFFLOAD_MIN_PACKETS)
    };
    // Reno and CUBIC return to slow start after an RTO; BBR does not return to Startup.
    let steady = offload(if target.congestion == QualifyCongestion::Bbr { BBR_PROBE_GAIN } else { gain });
    let mut bursts = vec![DELAYED_ACK_PACKETS, INITIAL_WINDOW, steady, offload(gain)];
    bursts.sort_unstable();
    bursts.dedup();
    plans.extend(bursts.into_iter().filter(|burst| u64::from(*burst) < window).map(|burst| Plan {
        name: format!("sender-rate-bursts-{burst}"),
        section: "8.4",
        weight: QualifyWeight::Required,
        what: format!("bursts of {burst} packets at interface rate, on average the target rate"),
        packets_per_s: target_pps,
        burst_packets: burst,
        at_start: burst > steady.max(DELAYED_ACK_PACKETS),
        stream_packets: 0,
        unit: TrialUnit::Packet,
        sprt,
        max_packets: packets(target_pps),
    }));
    let whole = window.min(MAX_BURST_PACKETS);
    plans.push(Plan {
        name: WINDOW_BURSTS.to_owned(),
        section: "8.4",
        weight: QualifyWeight::Informative,
        what: format!("bursts of {whole} packets at interface rate, as after a pause of the application"),
        packets_per_s: target_pps,
        burst_packets: whole as u32,
        stream_packets: whole,
        max_packets: whole * MAX_BURSTS,
        ..burst
    });
    plans.push(Plan {
        name: SUSTAINED_BURSTS.to_owned(),
        section: "8.5.1",
        weight: QualifyWeight::Informative,
        what: format!(
            "bursts of {whole} packets at interface rate, one each {:.1} ms: on average the target rate",
            whole as f64 / target_pps * 1e3
        ),
        packets_per_s: target_pps,
        burst_packets: whole as u32,
        at_start: false,
        stream_packets: 0,
        unit: TrialUnit::Packet,
        sprt,
        max_packets: packets(target_pps),
    });
    plans
}
