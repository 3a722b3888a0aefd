//! The tests of a section: which stream is next, and what all of them mean.

use landspeed_model::{QualifyCongestion, QualifyDerived, QualifyResult, QualifyTest, QualifyWeight};

use crate::buffer::{BufferSearch, BufferSize};
use crate::outcome::StreamOutcome;
use crate::plan::{Plan, Stream, plans};
use crate::target::{BBR_LOSS_THRESHOLD, Target};
use crate::trial::Trial;

/// With `gentle`, the pause after a stream: this times its length.
const GENTLE_PAUSE: u64 = 9;

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

/// The tests of a section. Call [`Suite::next_stream`], send the stream, call [`Suite::take`], until there is no next stream.
#[derive(Debug)]
pub struct Suite {
    target: Target,
    options: SuiteOptions,
    trials: Vec<Trial>,
    /// Index of the test that runs.
    current: usize,
    buffer: Option<BufferSearch>,
    last: Option<Stream>,
    sent: u64,
    /// Mean packets per second of the bursts that search the buffer.
    search_pps: f64,
    data_bits: f64,
}

impl Suite {
    /// Creates the tests for a target; `derived` is [`Target::derive`]'s.
    pub fn new(target: Target, derived: &QualifyDerived, options: SuiteOptions) -> Self {
        let max_s = options.max_test_ns as f64 / 1e9;
        let trials = plans(&target, derived, options.line_rate_bps, max_s).into_iter().map(Trial::new).collect();
        let data_bits = 8.0 * f64::from(target.mtu_bytes - derived.header_bytes);
        Self {
            target,
            options,
            trials,
            current: 0,
            buffer: None,
            last: None,
            sent: 0,
            search_pps: derived.packets_per_s,
            data_bits,
        }
    }

    /// Returns the tests in the order in which they run.
    pub fn plans(&self) -> impl Iterator<Item = &Plan> {
        self.trials.iter().map(|trial| &trial.plan)
    }

    /// Returns the number of the current test, from 0; that of all tests while the buffer is searched.
    pub fn current(&self) -> usize {
        self.current
    }

    /// Returns the next stream; `None` at the end.
    pub fn next_stream(&mut self) -> Option<Stream> {
        let pause_ns = match &self.last {
            Some(last) if self.options.gentle => GENTLE_PAUSE * stream_ns(last),
            _ => 0,
        };
        let stream = if let Some(trial) = self.trials.get(self.current) {
            let packets = trial.next_packets(self.options.gentle).unwrap_or(1);
            self.stream(packets, trial.plan.packets_per_s, trial.plan.burst_packets, pause_ns)
        } else {
            let packets = self.buffer.as_ref()?.next_packets()?;
            self.stream(packets, self.search_pps, u32::try_from(packets).unwrap_or(u32::MAX), pause_ns)
        };
        self.last = Some(stream);
        Some(stream)
    }

    /// Takes the outcome of the last stream.
    pub fn take(&mut self, outcome: &StreamOutcome) {
        let Some(stream) = self.last else { return };
        self.sent += outcome.sent;
        let tolerated = if self.target.congestion == QualifyCongestion::Bbr { BBR_LOSS_THRESHOLD } else { 0.0 };
        if let Some(trial) = self.trials.get_mut(self.current) {
            trial.take(&stream, outcome, tolerated);
            let whole_window = trial.plan.weight == QualifyWeight::Informative;
            let sound = outcome.no_fail.is_none() && outcome.no_pass.is_none();
            if whole_window && sound && outcome.lost > 0 && self.buffer.is_none() {
                self.buffer = Some(BufferSearch::new(stream.packets, outcome));
            }
            if trial.result().is_some() {
                self.current += 1;
            }
        } else if let Some(buffer) = &mut self.buffer {
            buffer.take(stream.packets, outcome);
        }
    }

    /// Returns the tests that began.
    pub fn tests(&self) -> Vec<QualifyTest> {
        self.trials.iter().filter_map(|trial| trial.document(self.data_bits)).collect()
    }

    /// Returns the result for the whole path, and the reason.
    pub fn verdict(&self) -> (QualifyResult, String) {
        let with = |weights: &[QualifyWeight], result: QualifyResult| {
            self.trials
                .iter()
                .filter(|trial| weights.contains(&trial.plan.weight))
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
        let BufferSize { packets, interval } = self.buffer.as_ref()?.size()?;
        let bytes = |packets: f64| (packets * f64::from(self.target.mtu_bytes)).round() as u64;
        Some((bytes(packets), (bytes(interval.0), bytes(interval.1))))
    }

    /// Returns the packets sent by all streams.
    pub fn sent_packets(&self) -> u64 {
        self.sent
    }

    fn stream(&self, packets: u64, packets_per_s: f64, burst_packets: u32, pause_ns: u64) -> Stream {
        let payload_bytes = self.target.udp_payload_bytes();
        let rate_bps = (packets_per_s * f64::from(payload_bytes) * 8.0).round().max(1.0) as u64;
        Stream { payload_bytes, packets, rate_bps, burst_packets, pause_ns }
    }
}

/// Returns the time that a stream takes at its mean rate, nanoseconds.
fn stream_ns(stream: &Stream) -> u64 {
    let bits = stream.packets as f64 * f64::from(stream.payload_bytes) * 8.0;
    (bits / stream.rate_bps as f64 * 1e9) as u64
}
