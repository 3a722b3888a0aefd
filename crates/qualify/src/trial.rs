//! State of one test: trials, defects, and the result.

use landspeed_model::{QualifyResult, QualifyTest};

use crate::outcome::StreamOutcome;
use crate::plan::{FIRST_STREAM_S, Plan, Stream, TrialUnit};
use crate::sprt::Decision;

/// Tolerated difference between the times that a stream takes to arrive and to leave: share, and nanoseconds. A section that
/// is slower than the stream stretches it while its buffer fills.
const STRETCH_SHARE: f64 = 0.02;
const STRETCH_NS: f64 = 20e6;
/// Longest stream, seconds; with pauses between the streams, the first is the longest.
const LONGEST_STREAM_S: f64 = 10.0;
/// Streams disturbed by a host that a test leaves out before it ends without a decision.
const MAX_DISTURBED: u32 = 3;

/// A test while it runs.
#[derive(Debug)]
pub struct Trial {
    pub plan: Plan,
    /// Packets of the test in a target RTT, if losses within one count once.
    round_packets: Option<f64>,
    streams: u32,
    /// Streams that no host disturbed.
    undisturbed: u32,
    disturbed: u32,
    /// Why counted streams are not evidence for a pass: their sender was slower than planned.
    slow: Option<String>,
    sent: u64,
    lost: u64,
    trials: u64,
    defects: u64,
    evidence: Vec<(u64, u64)>,
    result: Option<(QualifyResult, String)>,
}

impl Trial {
    /// Creates a test. `rtt_s` is the target RTT in seconds, if the congestion control reduces its window once for all losses within an
    /// RTT.
    pub fn new(plan: Plan, rtt_s: Option<f64>) -> Self {
        let round_packets = rtt_s.map(|rtt_s| plan.packets_per_s * rtt_s);
        Self {
            plan,
            round_packets,
            streams: 0,
            undisturbed: 0,
            disturbed: 0,
            slow: None,
            sent: 0,
            lost: 0,
            trials: 0,
            defects: 0,
            evidence: Vec::new(),
            result: None,
        }
    }

    /// Returns the packets of the next stream; `None` if the test has its result.
    pub fn next_packets(&self, gentle: bool) -> Option<u64> {
        if self.result.is_some() {
            return None;
        }
        if self.plan.unit == TrialUnit::Burst {
            return Some(self.plan.stream_packets);
        }
        let doubled = FIRST_STREAM_S * f64::from(1_u32 << self.undisturbed.min(10));
        let stream_s = if gentle { FIRST_STREAM_S } else { doubled.min(LONGEST_STREAM_S) };
        let planned = (self.plan.packets_per_s * stream_s).ceil() as u64;
        let needed = self.plan.sprt.trials_to_accept(self.defects).saturating_sub(self.trials);
        // A few packets show nothing of the rate: a buffer holds them.
        let needed = if self.trials == 0 { needed.max(planned) } else { needed };
        let left = self.plan.max_packets.saturating_sub(self.trials).min(needed).max(1);
        // No short stream for the last packets.
        Some(if !gentle && left <= 2 * planned { left } else { left.min(planned) })
    }

    /// Takes the outcome of a stream. `tolerated` is the share of a burst's packets that may be lost.
    pub fn take(&mut self, stream: &Stream, outcome: &StreamOutcome, tolerated: f64) {
        self.streams += 1;
        // A sender that could not keep the rate would take even longer for a longer stream.
        self.undisturbed += u32::from(outcome.no_pass.is_none() && outcome.no_fail.is_none());
        self.sent += outcome.sent;
        // A stream that was slower than planned cannot show that the section passes; its losses can show that it fails.
        let no_pass = outcome.no_pass.clone().or_else(|| self.stretched(outcome));
        let left_out = outcome.no_fail.as_ref().or(no_pass.as_ref().filter(|_| outcome.lost == 0));
        if let Some(why) = left_out {
            self.disturbed += 1;
            if self.disturbed > MAX_DISTURBED {
                self.result = Some((QualifyResult::Inconclusive, why.clone()));
            }
            return;
        }
        if no_pass.is_some() {
            self.slow = no_pass;
        }
        self.lost += outcome.lost;
        match self.plan.unit {
            TrialUnit::Packet => {
                self.trials += outcome.sent.saturating_sub(outcome.host_dropped);
                self.defects += self.loss_events(outcome);
            }
            TrialUnit::Burst => {
                self.trials += 1;
                self.defects += u64::from(outcome.lost as f64 > tolerated * stream.packets as f64);
            }
        }
        self.evidence.push((self.trials, self.defects));
        self.result = match self.plan.sprt.decide(self.trials, self.defects) {
            Decision::Accept => Some(match &self.slow {
                Some(why) => (QualifyResult::Inconclusive, why.clone()),
                None => (QualifyResult::Pass, self.counts()),
            }),
            Decision::Reject => Some((QualifyResult::Fail, self.counts())),
            Decision::Continue if self.trials >= self.max_trials() => {
                Some((QualifyResult::Inconclusive, self.undecided()))
            }
            Decision::Continue => None,
        };
    }

    /// Returns the number of times that the losses of a stream reduce the window: a run of consecutive losses does once. Where the runs are
    /// unknown, or so long that they may cost an RTO (on average more than half of a window), each loss counts.
    fn loss_events(&self, outcome: &StreamOutcome) -> u64 {
        match (self.round_packets, outcome.loss_periods) {
            (Some(round), Some(periods)) if outcome.lost as f64 <= periods as f64 * round / 2.0 => periods,
            _ => outcome.lost,
        }
    }

    /// Ends the test without a stream: its result follows from another test.
    pub fn skip(&mut self, why: String) {
        self.result = Some((QualifyResult::Inconclusive, why));
    }

    /// Returns why a stream at the target rate that arrived more slowly than it was sent cannot pass. A burst may take its
    /// headway to arrive.
    fn stretched(&self, outcome: &StreamOutcome) -> Option<String> {
        let (sent_ns, received_ns) = (outcome.send_span_ns? as f64, outcome.receive_span_ns? as f64);
        let headway_ns = f64::from(self.plan.burst_packets) / self.plan.packets_per_s * 1e9;
        let is_stretched = received_ns > sent_ns * (1.0 + STRETCH_SHARE) + STRETCH_NS + headway_ns;
        (self.plan.unit == TrialUnit::Packet && is_stretched).then(|| {
            format!(
                "packets sent in {:.0} ms arrived in {:.0} ms: the section is slower than the target, or the receiving host was late",
                sent_ns / 1e6,
                received_ns / 1e6
            )
        })
    }

    fn max_trials(&self) -> u64 {
        match self.plan.unit {
            TrialUnit::Packet => self.plan.max_packets,
            TrialUnit::Burst => self.plan.max_packets / self.plan.stream_packets.max(1),
        }
    }

    /// Returns the result; `None` while the test runs.
    pub fn result(&self) -> Option<QualifyResult> {
        self.result.as_ref().map(|(result, _)| *result)
    }

    /// Returns the test as it is written into a document; `None` if it did not begin.
    pub fn document(&self, target_share: f64) -> Option<QualifyTest> {
        if self.streams == 0 && self.result.is_none() {
            return None;
        }
        let (result, reason) = self
            .result
            .clone()
            .unwrap_or_else(|| (QualifyResult::Inconclusive, format!("ended before a decision: {}", self.counts())));
        let plan = &self.plan;
        let paced = plan.unit == TrialUnit::Burst && u64::from(plan.burst_packets) < plan.stream_packets;
        let burst_packets =
            if plan.unit == TrialUnit::Burst { plan.stream_packets } else { plan.burst_packets.into() };
        let has_rate = paced || burst_packets == 1;
        Some(QualifyTest {
            name: plan.name.clone(),
            section: plan.section.to_owned(),
            result,
            weight: plan.weight,
            measured: (self.trials > 0).then(|| self.defects as f64 / self.trials as f64),
            limit: plan.sprt.p0(),
            unit: match plan.unit {
                TrialUnit::Packet if self.round_packets.is_some() => "loss events / packets",
                TrialUnit::Packet => "lost packets / packets",
                TrialUnit::Burst => "bursts with loss / bursts",
            }
            .to_owned(),
            reason,
            rate_bps: has_rate.then(|| (target_share * plan.packets_per_s).round() as u64),
            burst_packets,
            sent_packets: self.sent,
            lost_packets: self.lost,
            evidence: self.evidence.clone(),
            lines: plan.sprt.lines(),
        })
    }

    /// Formats the counts: `52 of 120000 packets lost, one in 2308; at most one in 4418046 is tolerated`.
    fn counts(&self) -> String {
        match self.plan.unit {
            TrialUnit::Packet => {
                let limit = 1.0 / self.plan.sprt.p0();
                let lost = match self.lost {
                    0 => format!("no loss in {} packets", self.trials),
                    lost => {
                        let events =
                            if self.defects == lost { String::new() } else { format!(" in {} events", self.defects) };
                        let one_in = self.trials as f64 / self.defects.max(1) as f64;
                        format!("{lost} of {} packets lost{events}, one in {one_in:.0}", self.trials)
                    }
                };
                format!("{lost}; the target tolerates one in {limit:.0}")
            }
            TrialUnit::Burst => {
                let share = if self.defects == 0 {
                    String::new()
                } else {
                    format!(
                        ", {:.3}% of their packets",
                        100.0 * self.lost as f64 / (self.trials * self.plan.stream_packets).max(1) as f64
                    )
                };
                let packets = self.plan.stream_packets;
                format!("{} of {} bursts of {packets} packets lost packets{share}", self.defects, self.trials)
            }
        }
    }

    fn undecided(&self) -> String {
        let needed = self.plan.sprt.trials_to_accept(self.defects);
        match self.plan.unit {
            TrialUnit::Packet => {
                let seconds = (needed as f64 / self.plan.packets_per_s).ceil();
                format!("{}; a pass needs {needed} packets, {seconds} s", self.counts())
            }
            TrialUnit::Burst => self.counts(),
        }
    }
}
