//! Contradictions of a run document: between its phases, intervals and totals, and between the times of the two ends. A host
//! whose clock jumped causes them, and one that reports false times.

use landspeed_model::{Direction, Parameters, Phase, PhaseName, Protocol, RunDocument, Sample, Stream};
use landspeed_units::{Bytes, Nanos};

use crate::end::MAX_UNRECORDED_NS;

/// The two clocks may drift apart by 1 in this many (200 ppm, twice the tolerance of a common crystal).
const DRIFT: u64 = 5_000;
/// A sender that still sends this long after the first byte could arrive was not only filling buffers, nanoseconds.
const SENDING_NS: u64 = 100_000_000;
/// UDP bytes that a send call in progress may have sent and not yet counted, in addition to a burst.
const UDP_UNCOUNTED: u64 = 1 << 20;

/// Returns every contradiction, as a clause. `report_ns` is when the server's report began to arrive, nanoseconds after the
/// start.
pub fn find(run: &RunDocument, report_ns: Option<u64>) -> Vec<String> {
    let parameters = run.effective.as_ref().unwrap_or(&run.requested);
    let mut found = Vec::new();
    for &direction in parameters.direction.parts() {
        let flow = Flow::new(run, parameters, direction);
        let clauses = [flow.unequal_sums(), flow.disordered_times(), flow.empty_steady_phase(), flow.early_data()];
        found.extend(clauses.into_iter().flatten());
    }
    found.extend(report_ns.and_then(|report_ns| events_after_report(run, report_ns)));
    found
}

/// Longest time by which a sample's counters may be newer than its time, nanoseconds: the sampler may be interrupted
/// between the two, for a gap that it recorded or for less than it records.
fn sampling_ns(run: &RunDocument) -> u64 {
    let series = [&run.host_series.client, &run.host_series.server];
    let gaps = series.into_iter().flatten().flat_map(|series| &series.sampler_gaps);
    let gap_ns = gaps.map(|gap| gap.end_ns.saturating_sub(gap.start_ns)).max().unwrap_or(0);
    gap_ns.max(MAX_UNRECORDED_NS)
}

/// Tolerance of a comparison between the clocks of the two ends, `t_ns` after the start.
fn tolerance_ns(run: &RunDocument, t_ns: u64) -> u64 {
    let uncertainty_ns = run.path.as_ref().map_or(0, |path| path.clock.uncertainty_ns);
    uncertainty_ns.saturating_add(sampling_ns(run)).saturating_add(t_ns / DRIFT)
}

/// One direction of the run.
struct Flow<'a> {
    run: &'a RunDocument,
    parameters: &'a Parameters,
    /// Name of the direction, of its sender and of its receiver.
    names: [&'static str; 3],
    phases: Vec<&'a Phase>,
    /// Streams whose receiver reported samples.
    streams: Vec<&'a Stream>,
    /// Whether these are all streams of the direction.
    is_whole: bool,
}

impl<'a> Flow<'a> {
    fn new(run: &'a RunDocument, parameters: &'a Parameters, direction: Direction) -> Self {
        let all: Vec<&Stream> = run.streams.iter().filter(|stream| stream.direction == direction).collect();
        let sampled = |stream: &&&Stream| !stream.intervals.is_empty() && stream.intervals_from == "receiver";
        let streams: Vec<&Stream> = all.iter().filter(sampled).copied().collect();
        let names = match direction {
            Direction::Download => ["download", "server", "client"],
            Direction::Upload | Direction::Both => ["upload", "client", "server"],
        };
        Self {
            run,
            parameters,
            names,
            phases: run.phases.iter().filter(|phase| phase.direction == direction).collect(),
            is_whole: !streams.is_empty() && streams.len() == all.len(),
            streams,
        }
    }

    /// Bytes that the receivers counted in all.
    fn received(&self) -> u64 {
        self.streams
            .iter()
            .filter_map(|stream| stream.receiver.as_ref())
            .fold(0, |sum, end| sum.saturating_add(end.bytes))
    }

    /// Bytes of the phases that match; `None` if those of one are unknown.
    fn phase_bytes(&self, mut matches: impl FnMut(PhaseName) -> bool) -> Option<u64> {
        let mut phases = self.phases.iter().filter(|phase| matches(phase.name));
        phases.try_fold(0_u64, |sum, phase| Some(sum.saturating_add(phase.bytes?)))
    }

    fn unequal_sums(&self) -> Option<String> {
        let (phases, total) = (self.phase_bytes(|_| true)?, self.received());
        (self.is_whole && !self.phases.is_empty() && phases != total).then(|| {
            let [direction, _, _] = self.names;
            format!("the phases of the {direction} have {phases} bytes, its totals {total}")
        })
    }

    fn disordered_times(&self) -> Option<String> {
        let end_ns = self.phases.last()?.end_ns.saturating_add(sampling_ns(self.run));
        let follows = |pair: &[&Phase]| pair[0].end_ns == pair[1].start_ns;
        let ordered = self.phases.iter().all(|phase| phase.start_ns <= phase.end_ns);
        let intervals = || self.streams.iter().flat_map(|stream| &stream.intervals);
        let inside = intervals().all(|interval| interval.start_ns <= interval.end_ns && interval.end_ns <= end_ns);
        (!ordered || !self.phases.windows(2).all(follows) || !inside).then(|| {
            let [direction, _, receiver] = self.names;
            format!("the {receiver} reports times of the {direction} that are out of order or outside of its phases")
        })
    }

    /// Longest time for which a sampler of this direction was late, nanoseconds.
    fn pause_ns(&self) -> u64 {
        let ends = self.streams.iter().flat_map(|stream| [&stream.sender, &stream.receiver]).flatten();
        let spaces =
            ends.flat_map(|end| end.samples.windows(2)).map(|pair| pair[1].t_ns.saturating_sub(pair[0].t_ns));
        spaces.max().unwrap_or(0).saturating_sub(self.parameters.interval_ns)
    }

    /// Whether the receivers counted nothing in the steady phase, and more outside of it than the senders sent outside of
    /// theirs.
    fn empty_steady_phase(&self) -> Option<String> {
        if !self.is_whole || self.phases.is_empty() || self.phase_bytes(|name| name == PhaseName::Steady) != Some(0) {
            return None;
        }
        // Where the path is longer than the test, all data arrives after the steady phase.
        let rtt_ns = self.run.path.as_ref().map_or(0, |path| path.control_rtt_ns);
        let sending_ns = SENDING_NS.saturating_add(self.pause_ns()).saturating_add(rtt_ns);
        // What is sent in the last RTT of the test, or after it from a buffer, may arrive after the steady phase too.
        let time_ns = self.parameters.time_ns.map(|time_ns| time_ns.saturating_add(self.parameters.omit_ns));
        let until_ns = time_ns.map_or(u64::MAX, |time_ns| time_ns.saturating_sub(rtt_ns));
        let mut sent_before = 0_u64;
        for stream in &self.streams {
            let samples = &stream.sender.as_ref()?.samples;
            let first_ns = samples.iter().find(|sample| sample.bytes > 0)?.t_ns;
            let from_ns = first_ns.max(self.parameters.omit_ns).saturating_add(sending_ns);
            let first = samples.iter().find(|sample| (from_ns..=until_ns).contains(&sample.t_ns))?;
            sent_before = sent_before.saturating_add(self.sent_at_most(first));
        }
        let received = self.received();
        (received > sent_before).then(|| {
            let [direction, sender, receiver] = self.names;
            format!(
                "the {receiver} counted {} of the {direction}, none of it in the steady phase, while the {sender} sent most of it \
                 then",
                Bytes::new(received)
            )
        })
    }

    /// Whether a receiver had data before its sender sent it.
    fn early_data(&self) -> Option<String> {
        for stream in &self.streams {
            let (Some(sender), Some(receiver)) = (&stream.sender, &stream.receiver) else { continue };
            let mut sent = sender.samples.iter().peekable();
            for received in &receiver.samples {
                let at_ns = received.t_ns.saturating_add(tolerance_ns(self.run, received.t_ns));
                while sent.next_if(|sample| sample.t_ns < at_ns).is_some() {}
                let Some(most) = sent.peek().map(|sample| self.sent_at_most(sample)) else { break };
                if received.bytes > most {
                    let [_, sender, receiver] = self.names;
                    return Some(format!(
                        "at {} the {receiver} had received {}, when the {sender} had sent {} at most",
                        Nanos::new(received.t_ns),
                        Bytes::new(received.bytes),
                        Bytes::new(most)
                    ));
                }
            }
        }
        None
    }

    /// Upper limit of the payload that had been sent at a sample. A write is counted when it has returned; the kernel
    /// counts each segment before it leaves.
    fn sent_at_most(&self, sample: &Sample) -> u64 {
        let by_kernel = sample.tcp.as_ref().filter(|_| !self.parameters.mptcp).and_then(|tcp| tcp.bytes_sent);
        let uncounted = match (self.parameters.protocol, &self.parameters.udp) {
            (Protocol::Udp, Some(udp)) => {
                UDP_UNCOUNTED.saturating_add(u64::from(udp.burst_packets) * u64::from(udp.payload_bytes))
            }
            _ => self.parameters.write_bytes.saturating_mul(2),
        };
        by_kernel.unwrap_or_else(|| sample.bytes.saturating_add(uncounted))
    }
}

/// Whether the server reports events after its report began to arrive.
fn events_after_report(run: &RunDocument, report_ns: u64) -> Option<String> {
    let of_server = |stream: &Stream| match stream.direction {
        Direction::Download => stream.sender.as_ref().and_then(|end| end.samples.last()).map(|sample| sample.t_ns),
        _ => stream.receiver.as_ref().and_then(|end| end.samples.last()).map(|sample| sample.t_ns),
    };
    let last_ns = run.streams.iter().filter_map(of_server).max()?;
    let limit_ns = report_ns.saturating_add(tolerance_ns(run, report_ns));
    (last_ns > limit_ns).then(|| {
        format!(
            "the server's report began to arrive at {} and describes the time until {}",
            Nanos::new(report_ns),
            Nanos::new(last_ns)
        )
    })
}
