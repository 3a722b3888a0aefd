//! Sampler of all counters: wakes on a fixed grid, samples at the end of each of the [`Phases`], and stops
//! senders and receivers when their time is over.
//!
//! Readings are stored raw and decoded after the test, so that a sample costs a few system calls and no
//! allocation.

use std::os::fd::BorrowedFd;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use landspeed_host::HostSampler;
use landspeed_model::{CongestionDetail, Parameters, Sample, TcpInfo, TimeSpan};
use landspeed_sys::{clock, socket, thread};

use super::phases::{CHECK_INTERVAL_NS, Grid, Phase, PhaseEnds, Phases, StreamsState};
use super::plan::{EndPlan, StreamPlan};
use super::watch::Watch;

/// Maximum number of samples over all streams of one side: bounds memory and the report's size.
pub const MAX_SAMPLES: u64 = 100_000;
/// The same for more than [`MANY_STREAMS`], whose report would have a hundred megabytes.
const MAX_SAMPLES_OF_MANY: u64 = 25_000;
const MANY_STREAMS: u32 = 256;
/// Bytes of `tcp_info` stored per reading; fields of newer kernels beyond this are dropped.
const INFO_BYTES: usize = 320;
/// Minimum interval of readings other than `tcp_info` and queue lengths (memory, scheduler, congestion
/// control), nanoseconds: more frequent ones would cost more than they are worth.
const DETAIL_INTERVAL_NS: u64 = 10_000_000;
/// Time that a sender has to answer at coarser intervals, nanoseconds; after that the sampler reads the socket itself.
const ANSWER_NS: u64 = 1_000_000;
/// Number of readings that the sampler takes itself after a sender did not answer within an interval: such a
/// sender is blocked in a call, so the socket lock is free.
const DIRECT_READS: u8 = 15;
/// A check that is later than the longest sleep by more than this is a gap, in which the sampler did not run,
/// nanoseconds. Ten times the typical scheduling delay of a woken thread on a busy core.
const MIN_GAP_NS: u64 = 100_000_000;
/// Longest delay between two checks, or within one, that is not recorded as a gap, nanoseconds.
pub const MAX_UNRECORDED_NS: u64 = CHECK_INTERVAL_NS + MIN_GAP_NS;
/// Maximum number of gaps stored; after that the last gap is extended.
const MAX_GAPS: usize = 1000;

/// Returns the finest sampling interval, at least `asked_ns`, that stays within [`MAX_SAMPLES`].
pub fn finest_interval_ns(asked_ns: u64, duration_ns: u64, streams: u32) -> u64 {
    let samples = if streams > MANY_STREAMS { MAX_SAMPLES_OF_MANY } else { MAX_SAMPLES };
    let per_stream = samples / u64::from(streams.max(1));
    asked_ns.max(duration_ns.div_ceil(per_stream.max(1)))
}

/// Limits the sampling intervals for a test of `length_ns` nanoseconds; returns a note if the stream interval
/// became coarser.
pub fn limit_sampling(parameters: &mut Parameters, length_ns: u64) -> Option<String> {
    let asked_ns = parameters.interval_ns;
    let streams = parameters.streams * parameters.direction.parts().len() as u32;
    let affordable_ns = finest_interval_ns(asked_ns, length_ns, streams);
    parameters.interval_ns = affordable_ns;
    // Host samples cost time and memory as well: limit their number too.
    parameters.host_interval_ns = finest_interval_ns(parameters.host_interval_ns, length_ns, 16);
    (affordable_ns != asked_ns).then(|| {
        format!(
            "sampling every {:.1} ms instead of {:.1} ms keeps the report within its size",
            affordable_ns as f64 / 1e6,
            asked_ns as f64 / 1e6
        )
    })
}

/// Readings of one stream.
#[derive(Debug, Default)]
pub struct Series {
    raw: Vec<SocketReading>,
    congestion: String,
    tcp: bool,
    meter: Option<thread::ThreadMeter>,
    /// Whether the socket's state at the last reading was requested from the stream's thread.
    asked: bool,
    /// Number of readings the sampler takes itself before it asks the thread again.
    direct_reads_left: u8,
}

#[derive(Debug)]
struct SocketReading {
    t_ns: u64,
    bytes: u64,
    packets: u64,
    send_queue: Option<u32>,
    receive_queue: Option<u32>,
    memory: Option<socket::MemInfo>,
    scheduled: Option<thread::SchedulerStats>,
    info_len: u16,
    info: [u8; INFO_BYTES],
    detail_len: u8,
    detail: [u8; 20],
}

/// Counters of one stream at a boundary.
#[derive(Debug)]
struct CounterReading {
    at: usize,
    bytes: u64,
    packets: u64,
}

/// Samples the streams of one side.
pub struct Sampler<'a> {
    plan: &'a EndPlan,
    watch: &'a Watch,
    host: &'a mut HostSampler,
    series: Vec<Series>,
    phases: Phases,
    next_detail_ns: u64,
    /// Time at which the answers of senders are collected, nanoseconds after the start.
    answers_due_ns: Option<u64>,
    /// Reused between boundaries so that sampling does not allocate.
    counted: Vec<CounterReading>,
    gaps: Gaps,
}

/// Intervals in which the sampler should have run and did not.
#[derive(Debug, Default)]
struct Gaps {
    last_ns: u64,
    found: Vec<TimeSpan>,
}

impl Gaps {
    /// Records that the sampler runs at `t_ns` nanoseconds after the start.
    fn update(&mut self, t_ns: u64) {
        let start_ns = std::mem::replace(&mut self.last_ns, t_ns);
        if t_ns.saturating_sub(start_ns) <= MAX_UNRECORDED_NS {
            return;
        }
        let full = self.found.len() >= MAX_GAPS;
        match self.found.last_mut().filter(|_| full) {
            Some(last) => last.end_ns = t_ns,
            None => self.found.push(TimeSpan { start_ns, end_ns: t_ns }),
        }
    }
}

/// Results of a sampler.
pub struct Sampled {
    /// Readings per stream.
    pub series: Vec<Series>,
    /// Ends of the phases.
    pub cuts: PhaseEnds,
    /// Whether the test ended because all of its bytes were moved.
    pub moved_all_bytes: bool,
    /// CPU time of the sampler, nanoseconds.
    pub cpu_ns: u64,
    /// Intervals in which it did not run.
    pub gaps: Vec<TimeSpan>,
}

impl<'a> Sampler<'a> {
    pub fn new(plan: &'a EndPlan, watch: &'a Watch, host: &'a mut HostSampler) -> Self {
        let parameters = &plan.parameters;
        let expected = parameters.time_ns.map_or(64, |t| (t + parameters.omit_ns) / parameters.interval_ns.max(1));
        let room = expected.min(MAX_SAMPLES) as usize + 16;
        let series = plan
            .streams
            .iter()
            .map(|stream| Series {
                raw: if stream.job.is_bulk() { Vec::with_capacity(room) } else { Vec::new() },
                congestion: stream
                    .socket
                    .fd()
                    .filter(|_| stream.socket.is_tcp())
                    .and_then(|fd| socket::congestion(fd).ok())
                    .unwrap_or_default(),
                tcp: stream.socket.is_tcp(),
                meter: None,
                asked: false,
                direct_reads_left: 0,
            })
            .collect();
        let counted = Vec::with_capacity(plan.streams.len());
        let phases = Phases::new(parameters, plan.limit_ns, plan.rtt_ns);
        Self {
            plan,
            watch,
            host,
            series,
            phases,
            next_detail_ns: 0,
            answers_due_ns: None,
            counted,
            gaps: Gaps::default(),
        }
    }

    pub fn finish(self) -> Sampled {
        let cpu_ns = thread::thread_time().total_ns;
        Sampled {
            series: self.series,
            cuts: self.phases.cuts(),
            moved_all_bytes: self.phases.moved_all_bytes(),
            cpu_ns,
            gaps: self.gaps.found,
        }
    }

    /// Samples from the start until every stream has finished.
    pub fn run(&mut self, all_finished: &dyn Fn() -> bool) {
        let t0_ns = self.plan.t0_ns;
        let parameters = &self.plan.parameters;
        thread::set_timer_slack_ns(1);
        clock::sleep_until(t0_ns);
        self.sample_host();
        self.sample_streams(clock::monotonic_ns(), false);
        let (mut streams, mut host) = (Grid::new(parameters.interval_ns), Grid::new(parameters.host_interval_ns));
        loop {
            let all_finished = all_finished();
            let now = clock::monotonic_ns();
            let t_ns = now.saturating_sub(t0_ns);
            self.gaps.update(t_ns);
            let seen = StreamsState {
                all_started: self.all_started(),
                stopped: self.watch.stop.sending_since() && !self.watch.has_reached_byte_limit(),
                senders_done: self.watch.has_reached_byte_limit()
                    || (self.watch.all_peer_senders_done() && (parameters.bytes.is_none() || !self.is_sending())),
                all_finished,
            };
            let actions = self.phases.update(t_ns, seen);
            if all_finished {
                self.next_detail_ns = 0;
            }
            if self.answers_due_ns.is_some_and(|due_ns| t_ns >= due_ns) {
                self.collect_answers(t_ns);
            }
            // One sample for everything due now, right after the clock was read.
            if streams.is_due(t_ns) || actions.read_streams {
                self.sample_streams(now, !actions.read_streams && !all_finished);
            }
            if actions.stop_senders {
                self.watch.stop.stop_sending();
            }
            if actions.stop_receivers {
                self.watch.stop.stop_receiving();
            }
            if host.is_due(t_ns) || actions.read_host {
                self.sample_host();
            }
            if self.phases.phase() == Phase::Finished {
                return;
            }
            let next_ns = self.phases.next_check_ns(t_ns).min(streams.next()).min(host.next());
            let next_ns = self.answers_due_ns.map_or(next_ns, |due_ns| next_ns.min(due_ns));
            clock::sleep_until(t0_ns + next_ns);
        }
    }

    fn all_started(&self) -> bool {
        self.plan.streams.iter().filter(|s| s.job.is_bulk()).all(|s| s.counters.first_ns().is_some())
    }

    /// Whether a local sender has not ended.
    fn is_sending(&self) -> bool {
        self.plan.streams.iter().any(|stream| stream.job.sends() && stream.counters.last_ns().is_none())
    }

    fn sample_host(&mut self) {
        self.host.sample(clock::monotonic_ns());
    }

    /// Samples every bulk stream once, all with the timestamp `now`, which must be current.
    ///
    /// The counters come first, in one pass without a system call: they determine the bytes of each interval and
    /// phase. Socket data from the kernel is read after that and may be a few microseconds newer. With `may_ask` a
    /// sender's own thread reads it after its next write, before the next sample; not the send queue of a sender at
    /// the application's rate, which is longest at that time.
    fn sample_streams(&mut self, now: u64, may_ask: bool) {
        let t_ns = now.saturating_sub(self.plan.t0_ns);
        let detailed = now >= self.next_detail_ns;
        if detailed {
            self.next_detail_ns = now + DETAIL_INTERVAL_NS;
        }
        let is_read = |stream: &StreamPlan, series: &Series| {
            stream.job.is_bulk() && stream.socket.fd().is_some() && series.raw.len() < MAX_SAMPLES as usize
        };
        let streams = || self.plan.streams.iter().enumerate();
        self.counted.clear();
        self.counted.extend(streams().filter(|(at, stream)| is_read(stream, &self.series[*at])).map(
            |(at, stream)| CounterReading { at, bytes: stream.counters.bytes(), packets: stream.counters.packets() },
        ));
        for counted in &self.counted {
            let (stream, series) = (&self.plan.streams[counted.at], &mut self.series[counted.at]);
            let Some(fd) = stream.socket.fd() else { continue };
            if series.meter.is_none() {
                series.meter = stream.counters.thread().and_then(|id| thread::ThreadMeter::open(id).ok());
            }
            series.take_answer(stream);
            let ask = may_ask && series.direct_reads_left == 0 && stream.job.sends() && series.tcp;
            if ask && self.plan.parameters.interval_ns >= DETAIL_INTERVAL_NS {
                self.answers_due_ns = Some(t_ns + ANSWER_NS);
            }
            let reads_queue = stream.job.sends() && (!ask || self.plan.parameters.rate_bps.is_some());
            let mut reading = read(stream, fd, (t_ns, counted), series, detailed);
            reading.send_queue = reads_queue.then(|| socket::send_queue(fd).ok()).flatten();
            if ask {
                stream.counters.ask_info();
                series.asked = true;
            } else if series.tcp && (detailed || stream.job.sends()) {
                // Receivers skip `tcp_info` at fine intervals: their thread holds the socket lock too.
                series.direct_reads_left = series.direct_reads_left.saturating_sub(1);
                if let Ok(info) = socket::tcp_info(fd) {
                    reading.keep_info(&info);
                }
            }
            series.raw.push(reading);
        }
        if detailed && self.answers_due_ns.is_none() {
            self.publish_live(t_ns);
        }
    }

    /// Adds what senders read to the last readings; reads the sockets of those that did not answer.
    fn collect_answers(&mut self, t_ns: u64) {
        self.answers_due_ns = None;
        for (stream, series) in self.plan.streams.iter().zip(&mut self.series) {
            let asked = series.asked;
            series.take_answer(stream);
            if asked
                && let (Some(last), Some(fd)) =
                    (series.raw.last_mut().filter(|last| last.info_len == 0), stream.socket.fd())
            {
                last.send_queue = last.send_queue.or_else(|| socket::send_queue(fd).ok());
                if let Ok(info) = socket::tcp_info(fd) {
                    last.keep_info(&info);
                }
            }
        }
        self.publish_live(t_ns);
    }
}

impl Sampler<'_> {
    /// Publishes the reading at `t_ns` to the control thread.
    fn publish_live<'s>(&'s self, t_ns: u64) {
        let sends = |at: usize| self.plan.streams[at].job.sends();
        let last = |series: &'s Series| series.raw.iter().rev().find(|reading| reading.info_len > 0);
        let infos = self
            .series
            .iter()
            .enumerate()
            .filter(|(at, _)| sends(*at))
            .filter_map(|(_, s)| last(s))
            .map(|r| TcpInfo::decode(&r.info[..usize::from(r.info_len)]));
        self.watch.publish_live(t_ns, infos);
    }
}

fn read(
    stream: &StreamPlan,
    fd: BorrowedFd<'_>,
    (t_ns, counted): (u64, &CounterReading),
    series: &Series,
    detailed: bool,
) -> SocketReading {
    let mut reading = SocketReading {
        t_ns,
        bytes: counted.bytes,
        packets: counted.packets,
        send_queue: None,
        receive_queue: None,
        memory: (detailed || !stream.job.sends()).then(|| socket::mem_info(fd).ok()).flatten(),
        scheduled: series.meter.as_ref().filter(|_| detailed).and_then(thread::ThreadMeter::read),
        info_len: 0,
        info: [0; INFO_BYTES],
        detail_len: 0,
        detail: [0; 20],
    };
    if !stream.job.sends() && stream.socket.is_tcp() && detailed {
        // For UDP this would be the length of the next datagram, not of the queue.
        reading.receive_queue = socket::receive_queue(fd).ok();
    }
    if stream.socket.is_tcp()
        && detailed
        && series.congestion == "bbr"
        && stream.job.sends()
        && let Ok(n) = socket::congestion_info(fd, &mut reading.detail)
    {
        reading.detail_len = n as u8;
    }
    reading
}

impl SocketReading {
    fn keep_info(&mut self, info: &socket::RawTcpInfo) {
        let bytes = info.as_bytes();
        let n = bytes.len().min(INFO_BYTES);
        self.info[..n].copy_from_slice(&bytes[..n]);
        self.info_len = n as u16;
    }
}

impl Series {
    /// Adds what the stream's thread read to the last reading.
    fn take_answer(&mut self, stream: &StreamPlan) {
        if !std::mem::take(&mut self.asked) {
            return;
        }
        match (stream.counters.take_info(), self.raw.last_mut()) {
            (Some(state), Some(last)) => {
                last.keep_info(&state.info);
                last.send_queue = last.send_queue.or(state.send_queue);
            }
            _ => self.direct_reads_left = DIRECT_READS,
        }
    }

    /// Decodes the readings and sets the last one to the stream's final totals. With `last_byte_ns`, after which
    /// nothing moved, the first reading after it gets that time, so that the steady phase can end there.
    pub fn into_samples(self, final_bytes: u64, final_packets: u64, last_byte_ns: Option<u64>) -> Vec<Sample> {
        let Self { mut raw, congestion, tcp, .. } = self;
        if let Some(last_ns) = last_byte_ns {
            let at = raw.partition_point(|reading| reading.t_ns < last_ns);
            raw.iter_mut().skip(at).take(1).for_each(|reading| reading.t_ns = last_ns);
        }
        // The last reading was taken after the thread ended, so the final totals are exact for it.
        if let Some(last) = raw.last_mut() {
            last.bytes = final_bytes;
            last.packets = final_packets;
        }
        raw.into_iter().map(|reading| decode(&reading, &congestion, tcp)).collect()
    }
}

fn decode(reading: &SocketReading, congestion: &str, tcp: bool) -> Sample {
    let info = &reading.info[..usize::from(reading.info_len)];
    let detail = &reading.detail[..usize::from(reading.detail_len)];
    Sample {
        t_ns: reading.t_ns,
        bytes: reading.bytes,
        send_queue_bytes: reading.send_queue,
        receive_queue_bytes: reading.receive_queue,
        rmem_alloc_bytes: reading.memory.map(|m| m.rmem_alloc),
        rcvbuf_bytes: reading.memory.map(|m| m.rcvbuf),
        wmem_queued_bytes: reading.memory.map(|m| m.wmem_queued),
        sndbuf_bytes: reading.memory.map(|m| m.sndbuf),
        socket_drops: reading.memory.map(|m| m.drops),
        thread_cpu_ns: reading.scheduled.map(|s| s.run_ns),
        thread_wait_ns: reading.scheduled.map(|s| s.wait_ns),
        packets: (!tcp).then_some(reading.packets),
        tcp: (!info.is_empty()).then(|| Box::new(TcpInfo::decode(info))),
        tcp_info_raw: (!info.is_empty()).then(|| STANDARD.encode(info)),
        congestion: CongestionDetail::decode(congestion, detail),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_checks_are_gaps_and_normal_sleeps_are_not() {
        let mut gaps = Gaps::default();
        let ms = |n: u64| n * 1_000_000;
        for t in [0, 20, 40, 160, 180, 1310, 1330] {
            gaps.update(ms(t));
        }
        assert_eq!(gaps.found, [TimeSpan { start_ns: ms(180), end_ns: ms(1310) }]);
    }

    #[test]
    fn the_number_of_gaps_is_limited() {
        let mut gaps = Gaps::default();
        for k in 1..=5000 {
            gaps.update(k * 1_000_000_000);
        }
        assert_eq!(gaps.found.len(), MAX_GAPS);
        assert_eq!(gaps.found.last().map(|gap| gap.end_ns), Some(5_000_000_000_000));
    }
}
