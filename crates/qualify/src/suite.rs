//! The tests of a section: which stream is next, and what all of them mean.

use landspeed_model::{
    QualifyCongestion, QualifyDerived, QualifyOnset, QualifyResult, QualifyTest, QualifyTokenBucket, QualifyWeight,
};

use crate::buffer::{BufferSearch, BufferSize};
use crate::onset::{OnsetSearch, STEP_S};
use crate::outcome::StreamOutcome;
use crate::plan::{Plan, SUSTAINED_BURSTS, Stream, WINDOW_BURSTS, plans};
use crate::steady::steady_rate;
use crate::target::{BBR_LOSS_THRESHOLD, Target, line_packets_per_s};
use crate::trial::Trial;

/// With `gentle`, the pause after a stream: this times its length.
const GENTLE_PAUSE: u64 = 9;
/// Time in which Reno must grow to the target window, so that a slow start that ended early delays only the start of a connection,
/// seconds. It grows by a packet in an RTT (RFC 5681): 20 minutes for 10 Gb/s over 92 ms at MTU 9000.
const RENO_GROWTH_S: f64 = 10.0;

/// Limits of the tests: rate of the interface, time, and load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SuiteOptions {
    /// Link speed of the sender's interface, bits/s, if known.
    pub line_rate_bps: Option<u64>,
    /// Longest time that a test sends, nanoseconds.
    pub max_test_ns: u64,
    /// Send at most a tenth of the time.
    pub gentle: bool,
}

/// Purpose of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// One of the RFC's tests.
    Test,
    /// The search for the smallest buffer.
    Buffer,
    /// The onset of congestion.
    Onset,
}

/// The tests of a section. Call [`Suite::next_stream`], send the stream, call [`Suite::take`], until there is no next stream.
#[derive(Debug)]
pub struct Suite {
    target: Target,
    options: SuiteOptions,
    trials: Vec<Trial>,
    /// Index of the test that runs.
    current: usize,
    buffer: Option<BufferSearch>,
    onset: OnsetSearch,
    last: Option<(Stage, Stream)>,
    sent: u64,
    /// Packets per second at the target rate.
    target_pps: f64,
    data_bits: f64,
    window_packets: u64,
    /// Packets per second of the sender's interface; infinite if unknown.
    line_pps: f64,
    /// Length of a step of the onset of congestion, seconds.
    step_s: f64,
}

impl Suite {
    /// Creates the tests for a target; `derived` is [`Target::derive`]'s.
    pub fn new(target: Target, derived: &QualifyDerived, options: SuiteOptions) -> Self {
        let max_s = options.max_test_ns as f64 / 1e9;
        // Reno and CUBIC reduce the window once for all losses within an RTT (RFC 6675); BBRv3 compares the share of lost packets.
        let rtt_s = (target.congestion != QualifyCongestion::Bbr).then(|| target.rtt.as_secs_f64());
        let plans = plans(&target, derived, options.line_rate_bps, max_s);
        let trials = plans.into_iter().map(|plan| Trial::new(plan, rtt_s)).collect();
        let line_pps = options.line_rate_bps.map_or(f64::INFINITY, |bps| line_packets_per_s(&target, bps as f64));
        let highest = line_pps / derived.packets_per_s;
        let data_bits = 8.0 * f64::from(target.mtu_bytes - derived.header_bytes);
        Self {
            target,
            options,
            trials,
            current: 0,
            buffer: None,
            onset: OnsetSearch::new(highest),
            last: None,
            sent: 0,
            target_pps: derived.packets_per_s,
            data_bits,
            window_packets: derived.window_packets,
            line_pps,
            step_s: STEP_S.min(max_s),
        }
    }

    /// Returns the tests in the order in which they run.
    pub fn plans(&self) -> impl Iterator<Item = &Plan> {
        self.trials.iter().map(|trial| &trial.plan)
    }

    /// Returns packets and seconds of all tests with their pauses, if no packet is lost.
    pub fn expected(&self) -> (u64, f64) {
        let (packets, seconds) = self.expected_onset();
        (
            self.plans().map(Plan::expected_packets).sum::<u64>() + packets,
            self.plans().map(|plan| self.expected_s(plan)).sum::<f64>() + seconds,
        )
    }

    /// Returns the seconds of a test with its pauses, if no packet is lost.
    pub fn expected_s(&self, plan: &Plan) -> f64 {
        self.with_pauses_s(plan.expected_s())
    }

    /// Returns packets and seconds of the onset of congestion with its pauses, if no packet is lost.
    pub fn expected_onset(&self) -> (u64, f64) {
        let shares: Vec<f64> = self.onset.shares().collect();
        let packets = shares.iter().sum::<f64>() * self.step_s * self.target_pps;
        (packets.ceil() as u64, self.with_pauses_s(shares.len() as f64 * self.step_s))
    }

    fn with_pauses_s(&self, seconds: f64) -> f64 {
        if self.options.gentle { seconds * (1 + GENTLE_PAUSE) as f64 } else { seconds }
    }

    /// Returns the number of the current test, from 0; that of all tests while the buffer is searched, one more for the onset of congestion.
    pub fn current(&self) -> usize {
        self.current
    }

    /// Returns the next stream; `None` at the end.
    pub fn next_stream(&mut self) -> Option<Stream> {
        let pause_ns = match &self.last {
            Some((_, last)) if self.options.gentle => GENTLE_PAUSE * stream_ns(last),
            _ => 0,
        };
        let next = if let Some(trial) = self.trials.get(self.current) {
            let packets = trial.next_packets(self.options.gentle).unwrap_or(1);
            (Stage::Test, self.stream(packets, trial.plan.packets_per_s, trial.plan.burst_packets, pause_ns))
        } else if let Some(packets) = self.buffer.as_ref().and_then(BufferSearch::next_packets) {
            let burst_packets = u32::try_from(packets).unwrap_or(u32::MAX);
            (Stage::Buffer, self.stream(packets, self.target_pps, burst_packets, pause_ns))
        } else {
            self.current = self.trials.len() + 1;
            let pps = self.onset.next_share()? * self.target_pps;
            (Stage::Onset, self.stream((pps * self.step_s).ceil().max(1.0) as u64, pps, 1, pause_ns))
        };
        self.last = Some(next);
        Some(next.1)
    }

    /// Takes the outcome of the last stream.
    pub fn take(&mut self, outcome: &StreamOutcome) {
        let Some((stage, stream)) = self.last else { return };
        self.sent += outcome.sent;
        match stage {
            Stage::Test => self.take_test(&stream, outcome),
            Stage::Buffer => {
                if let Some(buffer) = &mut self.buffer {
                    buffer.take(stream.packets, outcome);
                }
            }
            Stage::Onset => {
                let share = self.onset.next_share().unwrap_or(0.0);
                self.onset.take((share * self.target_pps * self.data_bits).round() as u64, outcome);
            }
        }
    }

    fn take_test(&mut self, stream: &Stream, outcome: &StreamOutcome) {
        let Some(trial) = self.trials.get_mut(self.current) else { return };
        let tolerated = if self.target.congestion == QualifyCongestion::Bbr { BBR_LOSS_THRESHOLD } else { 0.0 };
        trial.take(stream, outcome, tolerated);
        let whole_window = trial.plan.name == WINDOW_BURSTS;
        let sound = outcome.no_fail.is_none() && outcome.no_pass.is_none() && outcome.host_dropped == 0;
        if whole_window && sound && outcome.lost > 0 && self.buffer.is_none() {
            self.buffer = Some(BufferSearch::new(stream.packets, outcome, self.line_pps));
        }
        let Some(result) = trial.result() else { return };
        self.current += 1;
        if whole_window
            && result == QualifyResult::Fail
            && let Some(next) = self.trials.get_mut(self.current).filter(|next| next.plan.name == SUSTAINED_BURSTS)
        {
            next.skip(format!("not sent: single bursts of this length lose packets ({WINDOW_BURSTS})"));
            self.current += 1;
        }
    }

    /// Returns the onset of congestion; `None` if it was not tested.
    pub fn onset(&self) -> Option<QualifyOnset> {
        self.onset.document()
    }

    /// Returns the tests that began.
    pub fn tests(&self) -> Vec<QualifyTest> {
        let documents = self.trials.iter().filter_map(|trial| {
            let mut test = trial.document(self.data_bits)?;
            if test.result != QualifyResult::Pass && self.is_excused(&trial.plan) {
                test.weight = QualifyWeight::Informative;
            }
            Some(test)
        });
        documents.collect()
    }

    /// Returns the result for the whole path, and the reason.
    pub fn verdict(&self) -> (QualifyResult, String) {
        let with = |weights: &[QualifyWeight], result: QualifyResult| {
            self.trials
                .iter()
                .filter(|trial| weights.contains(&trial.plan.weight) && !self.is_excused(&trial.plan))
                .filter(|trial| trial.result().unwrap_or(QualifyResult::Inconclusive) == result)
                .map(|trial| trial.plan.name.as_str())
                .collect::<Vec<_>>()
        };
        let failed = with(&[QualifyWeight::Required, QualifyWeight::FailureOnly], QualifyResult::Fail);
        let undecided = with(&[QualifyWeight::Required], QualifyResult::Inconclusive);
        let path = format!("{} × {}", self.target.rate, self.target.rtt);
        if !failed.is_empty() {
            let reason =
                format!("a path of {path} through this section cannot reach the target: {}", failed.join(", "));
            (QualifyResult::Fail, reason)
        } else if !undecided.is_empty() {
            (QualifyResult::Inconclusive, format!("no decision for {path}: {}", undecided.join(", ")))
        } else {
            (QualifyResult::Pass, format!("this section does not prevent {path}"))
        }
    }

    /// Returns the smallest buffer of the section, bytes: estimate and interval; `None` if it was not found.
    pub fn buffer_bytes(&self) -> Option<(u64, (u64, u64))> {
        let BufferSize { packets, interval, .. } = self.buffer.as_ref()?.size()?;
        let bytes = |packets: f64| (packets * f64::from(self.target.mtu_bytes)).round() as u64;
        Some((bytes(packets), (bytes(interval.0), bytes(interval.1))))
    }

    /// Returns the number of bursts that agree at the lower and at the upper end of the interval of [`Suite::buffer_bytes`].
    pub fn buffer_bursts(&self) -> Option<(u32, u32)> {
        Some(self.buffer.as_ref()?.size()?.bursts)
    }

    /// Returns the bursts that searched the smallest buffer: packets, and lost packets.
    pub fn bursts(&self) -> Vec<(u64, u64)> {
        self.buffer.as_ref().map_or_else(Vec::new, |buffer| buffer.log.clone())
    }

    /// Returns the token bucket that limits the section, with bytes of IP packets; `None` if a queue does, or if it is unknown.
    pub fn token_bucket(&self) -> Option<QualifyTokenBucket> {
        let buffer = self.buffer.as_ref()?;
        let bucket = buffer.size().and(buffer.token_bucket())?;
        let mtu = f64::from(self.target.mtu_bytes);
        Some(QualifyTokenBucket {
            bucket_bytes: (bucket.packets * mtu).round() as u64,
            rate_bps: (bucket.packets_per_ns * mtu * 8e9).round() as u64,
            refill_ns: (bucket.packets / bucket.packets_per_ns).round() as u64,
        })
    }

    /// Returns the mean rate of a long flow over this section's smallest buffer, in target rates ([`steady_rate`]); `None` if its rate
    /// was not measured. A buffer that was not found, and a token bucket, which delays nothing while it fills, count as no buffer.
    pub fn steady_share(&self) -> Option<f64> {
        let buffer = self.buffer.as_ref()?;
        let rate = buffer.packets_per_ns()? * 1e9 / self.target_pps;
        let size = buffer.size().filter(|_| buffer.token_bucket().is_none());
        let packets = size.map_or(0.0, |size| size.interval.0);
        Some(steady_rate(self.target.congestion, rate, packets / self.window_packets as f64))
    }

    /// Whether what this test did not pass delays only the start of a connection: with the section's rate and buffer a long flow
    /// reaches the target. Slow start and the initial window are at its start. RFC 8337 counts them always; with Reno they count if it would
    /// take long to grow to the target window.
    fn is_excused(&self, plan: &Plan) -> bool {
        let growth_s = self.window_packets as f64 * self.target.rtt.as_secs_f64();
        let grows = self.target.congestion != QualifyCongestion::Reno || growth_s <= RENO_GROWTH_S;
        plan.at_start && grows && self.steady_share().is_some_and(|share| share >= 1.0)
    }

    /// Returns the packets sent by all streams.
    pub fn sent_packets(&self) -> u64 {
        self.sent
    }

    fn stream(&self, packets: u64, packets_per_s: f64, burst_packets: u32, pause_ns: u64) -> Stream {
        let payload_bytes = self.target.udp_payload_bytes();
        let rate_bps = (packets_per_s * f64::from(payload_bytes) * 8.0).round().max(1.0) as u64;
        // An unknown, infinite rate gives 0.
        let burst_ns = (f64::from(burst_packets) / self.line_pps * 1e9) as u64;
        Stream { payload_bytes, packets, rate_bps, burst_packets, burst_ns, pause_ns }
    }
}

/// Returns the time that a stream takes at its mean rate, nanoseconds.
fn stream_ns(stream: &Stream) -> u64 {
    let bits = stream.packets as f64 * f64::from(stream.payload_bytes) * 8.0;
    (bits / stream.rate_bps as f64 * 1e9) as u64
}
