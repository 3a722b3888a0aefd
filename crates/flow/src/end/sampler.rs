//! The one reader of every counter: wakes on a fixed grid, cuts the timeline into phases, tells senders to stop.
//!
//! Readings are kept raw and decoded after the test, so that a sample costs a few system calls and no allocation.

use std::os::fd::BorrowedFd;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use landspeed_host::HostSampler;
use landspeed_model::{CongestionDetail, Parameters, Sample, TcpInfo, TimeSpan};
use landspeed_sys::{clock, socket, thread};

use super::{Cuts, DRAIN_NS, EndPlan, StreamPlan, Watch};

/// Samples of all streams of one end together that a test may keep: bounds memory and the report's size.
pub const MAX_SAMPLES: u64 = 100_000;
/// `tcp_info` bytes kept of each reading; what a newer kernel adds past this is cut.
const INFO_BYTES: usize = 320;
/// Readings beyond `tcp_info` and queues (memory, scheduler, congestion control) are taken no more often than this: at
/// finer intervals they would cost more than they tell, nanoseconds.
const DETAIL_NS: u64 = 10_000_000;
/// Longest nap between looks at the flags, nanoseconds.
const NAP_NS: u64 = 20_000_000;
/// While start-up lasts the sampler looks this often, nanoseconds.
const STARTUP_NAP_NS: u64 = 500_000;
/// A stream that has moved nothing by then no longer holds start-up open, nanoseconds.
const STARTUP_LIMIT_NS: u64 = 1_000_000_000;
/// A look at the flags that comes so much later than the longest nap allows is a gap: the sampler was not run. Ten times
/// what a scheduler keeps a woken thread waiting on a busy core, nanoseconds.
const GAP_NS: u64 = 100_000_000;
/// Gaps kept; a host that stops its sampler more often has one long gap from there on.
const MAX_GAPS: usize = 1000;

/// The finest sampling interval that keeps a test inside its 100,000 samples, given what was asked for.
pub fn affordable_interval_ns(asked_ns: u64, duration_ns: u64, streams: u32) -> u64 {
    let per_stream = MAX_SAMPLES / u64::from(streams.max(1));
    asked_ns.max(duration_ns.div_ceil(per_stream.max(1)))
}

/// Samples a test of this length, nanoseconds, as finely as was asked for and can be kept; says so where that is coarser.
pub fn keep_affordable(parameters: &mut Parameters, length_ns: u64) -> Option<String> {
    let asked_ns = parameters.interval_ns;
    let streams = parameters.streams * parameters.direction.parts().len() as u32;
    let affordable_ns = affordable_interval_ns(asked_ns, length_ns, streams);
    parameters.interval_ns = affordable_ns;
    // Reading the host's counters costs too; its readings come out of the same test's memory.
    parameters.host_interval_ns = affordable_interval_ns(parameters.host_interval_ns, length_ns, 16);
    (affordable_ns != asked_ns).then(|| {
        format!(
            "sampling every {:.1} ms instead of {:.1} ms keeps the report within its size",
            affordable_ns as f64 / 1e6,
            asked_ns as f64 / 1e6
        )
    })
}

/// One stream's readings.
#[derive(Debug, Default)]
pub struct Series {
    raw: Vec<Reading>,
    congestion: String,
    tcp: bool,
    meter: Option<thread::ThreadMeter>,
}

#[derive(Debug)]
struct Reading {
    t_ns: u64,
    bytes: u64,
    packets: u64,
    send_queue: Option<u32>,
    receive_queue: Option<u32>,
    memory: Option<socket::MemInfo>,
    scheduled: Option<thread::Scheduled>,
    info_len: u16,
    info: [u8; INFO_BYTES],
    detail_len: u8,
    detail: [u8; 20],
}

/// The counters of one stream at a boundary.
#[derive(Debug)]
struct Counted {
    at: usize,
    bytes: u64,
    packets: u64,
}

/// Reads the streams of one end.
pub struct Sampler<'a> {
    plan: &'a EndPlan,
    watch: &'a Watch,
    host: &'a mut HostSampler,
    series: Vec<Series>,
    cuts: Cuts,
    next_detail_ns: u64,
    /// Kept between boundaries so that a reading allocates nothing.
    counted: Vec<Counted>,
    gaps: Gaps,
}

/// Spans in which the sampler was due and did not run.
#[derive(Debug, Default)]
struct Gaps {
    last_ns: u64,
    found: Vec<TimeSpan>,
}

impl Gaps {
    /// Notes that the sampler runs at `t_ns`, nanoseconds after the start.
    fn look(&mut self, t_ns: u64) {
        let start_ns = std::mem::replace(&mut self.last_ns, t_ns);
        if t_ns.saturating_sub(start_ns) <= NAP_NS + GAP_NS {
            return;
        }
        let full = self.found.len() >= MAX_GAPS;
        match self.found.last_mut().filter(|_| full) {
            Some(last) => last.end_ns = t_ns,
            None => self.found.push(TimeSpan { start_ns, end_ns: t_ns }),
        }
    }
}

/// What a sampler leaves.
pub struct Sampled {
    /// Readings of each stream.
    pub series: Vec<Series>,
    /// Where the timeline was cut.
    pub cuts: Cuts,
    /// CPU time of the sampler, nanoseconds.
    pub cpu_ns: u64,
    /// When it did not run.
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
            })
            .collect();
        let counted = Vec::with_capacity(plan.streams.len());
        Self { plan, watch, host, series, cuts: Cuts::default(), next_detail_ns: 0, counted, gaps: Gaps::default() }
    }

    pub fn finish(self) -> Sampled {
        let cpu_ns = thread::thread_time().total_ns;
        Sampled { series: self.series, cuts: self.cuts, cpu_ns, gaps: self.gaps.found }
    }

    /// Samples from just before the start until every stream has finished.
    pub fn run(&mut self, all_finished: &dyn Fn() -> bool) {
        let t0 = self.plan.t0_ns;
        let parameters = &self.plan.parameters;
        thread::set_timer_slack_ns(1);
        clock::sleep_until(t0);
        self.sample_host();
        self.sample_streams(clock::monotonic_ns());
        let (interval, host_interval) = (parameters.interval_ns.max(1), parameters.host_interval_ns.max(1));
        let omit_at = t0 + parameters.omit_ns;
        let stop_at = t0 + parameters.time_ns.map_or(self.plan.limit_ns, |t| t + parameters.omit_ns);
        let mut next_stream = t0 + interval;
        let mut next_host = t0 + host_interval;
        let mut asked_to_stop = false;
        while !all_finished() {
            let now = clock::monotonic_ns();
            self.gaps.look(now.saturating_sub(t0));
            // One reading for all that is due now: it follows the clock's at once.
            let mut boundary = None;
            if self.cuts.startup_end_ns.is_none() && (self.all_moved() || now > t0 + STARTUP_LIMIT_NS) {
                self.cuts.startup_end_ns = Some(self.sample_once(now, &mut boundary));
            }
            if self.cuts.omit_end_ns.is_none() && parameters.omit_ns > 0 && now >= omit_at {
                self.cuts.omit_end_ns = Some(self.sample_once(now, &mut boundary));
                self.sample_host();
            }
            if self.cuts.steady_end_ns.is_none()
                && (now >= stop_at || self.watch.stop.sending() || self.watch.all_peer_senders_done())
            {
                self.cuts.steady_end_ns = Some(self.sample_once(now, &mut boundary));
                self.watch.stop.stop_sending();
                self.sample_host();
            }
            if let Some(end) = self.cuts.steady_end_ns
                && !asked_to_stop
                && now > t0 + end + DRAIN_NS
            {
                self.watch.stop.stop_receiving();
                asked_to_stop = true;
            }
            if now >= next_stream {
                self.sample_once(now, &mut boundary);
                next_stream += interval * ((now - next_stream) / interval + 1);
            }
            if now >= next_host {
                self.sample_host();
                next_host += host_interval * ((now - next_host) / host_interval + 1);
            }
            let mut until = next_stream.min(next_host).min(now + NAP_NS);
            if self.cuts.startup_end_ns.is_none() {
                until = until.min(now + STARTUP_NAP_NS);
            }
            if self.cuts.omit_end_ns.is_none() && parameters.omit_ns > 0 {
                until = until.min(omit_at);
            }
            if self.cuts.steady_end_ns.is_none() {
                until = until.min(stop_at);
            } else {
                // Draining: the threads end within moments, and the test with them.
                until = until.min(now + STARTUP_NAP_NS);
            }
            clock::sleep_until(until);
        }
        self.next_detail_ns = 0;
        let now = clock::monotonic_ns();
        self.gaps.look(now.saturating_sub(t0));
        self.cuts.end_ns = Some(self.sample_streams(now));
        self.sample_host();
    }

    fn all_moved(&self) -> bool {
        self.plan.streams.iter().filter(|s| s.job.is_bulk()).all(|s| s.counters.first_ns().is_some())
    }

    fn sample_host(&mut self) {
        self.host.sample(clock::monotonic_ns());
    }

    /// The boundary of this look at the flags, read if it has not been.
    fn sample_once(&mut self, now: u64, boundary: &mut Option<u64>) -> u64 {
        *boundary.get_or_insert_with(|| self.sample_streams(now))
    }

    /// Reads every bulk stream once, all at one boundary: `now`, which the clock has just said. Returns its time, nanoseconds after the start.
    ///
    /// The counters come first, in one pass without a system call: they decide what belongs to which interval and phase. What
    /// the kernel says of each socket is read after that and may be a few microseconds younger.
    fn sample_streams(&mut self, now: u64) -> u64 {
        let t_ns = now.saturating_sub(self.plan.t0_ns);
        let detailed = now >= self.next_detail_ns;
        if detailed {
            self.next_detail_ns = now + DETAIL_NS;
        }
        let is_read = |stream: &StreamPlan, series: &Series| {
            stream.job.is_bulk() && stream.socket.fd().is_some() && series.raw.len() < MAX_SAMPLES as usize
        };
        let streams = || self.plan.streams.iter().enumerate();
        self.counted.clear();
        self.counted.extend(
            streams().filter(|(at, stream)| is_read(stream, &self.series[*at])).map(|(at, stream)| Counted {
                at,
                bytes: stream.counters.bytes(),
                packets: stream.counters.packets(),
            }),
        );
        for counted in &self.counted {
            let (stream, series) = (&self.plan.streams[counted.at], &mut self.series[counted.at]);
            let Some(fd) = stream.socket.fd() else { continue };
            if series.meter.is_none() {
                series.meter = stream.counters.thread().and_then(|id| thread::ThreadMeter::open(id).ok());
            }
            let reading = read(stream, fd, (t_ns, counted), series, detailed);
            series.raw.push(reading);
        }
        if detailed {
            self.publish_live(t_ns);
        }
        t_ns
    }
}

impl Sampler<'_> {
    /// Shows the reading at `t_ns` to the control thread.
    fn publish_live(&self, t_ns: u64) {
        let sends = |at: usize| self.plan.streams[at].job.sends();
        let last = self.series.iter().enumerate().filter(|(at, _)| sends(*at)).filter_map(|(_, s)| s.raw.last());
        let infos = last.filter(|r| r.info_len > 0).map(|r| TcpInfo::decode(&r.info[..usize::from(r.info_len)]));
        self.watch.publish_live(t_ns, infos);
    }
}

fn read(
    stream: &StreamPlan,
    fd: BorrowedFd<'_>,
    (t_ns, counted): (u64, &Counted),
    series: &Series,
    detailed: bool,
) -> Reading {
    let mut reading = Reading {
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
    if stream.job.sends() {
        reading.send_queue = socket::send_queue(fd).ok();
    } else if stream.socket.is_tcp() && detailed {
        // For UDP this would be the next datagram's length, not the queue's.
        reading.receive_queue = socket::receive_queue(fd).ok();
    }
    // Reading `tcp_info` (and the receive queue) takes the socket's lock, which its thread holds most of the time. At the
    // sender it is what a fine interval is for; at the receiver the memory of the queue tells as much without the lock.
    if stream.socket.is_tcp()
        && (detailed || stream.job.sends())
        && let Ok(info) = socket::tcp_info(fd)
    {
        let bytes = info.as_bytes();
        let n = bytes.len().min(INFO_BYTES);
        reading.info[..n].copy_from_slice(&bytes[..n]);
        reading.info_len = n as u16;
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

impl Series {
    /// Decodes the readings and closes them with the stream's final totals.
    pub fn into_samples(self, final_bytes: u64, final_packets: u64) -> Vec<Sample> {
        let Self { mut raw, congestion, tcp, .. } = self;
        // The last reading was taken after the thread had ended; its counters are final, and said so exactly.
        if let Some(last) = raw.last_mut() {
            last.bytes = final_bytes;
            last.packets = final_packets;
        }
        raw.into_iter().map(|reading| decode(&reading, &congestion, tcp)).collect()
    }
}

fn decode(reading: &Reading, congestion: &str, tcp: bool) -> Sample {
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
    fn late_looks_are_gaps_and_naps_are_not() {
        let mut gaps = Gaps::default();
        let ms = |n: u64| n * 1_000_000;
        for t in [0, 20, 40, 160, 180, 1310, 1330] {
            gaps.look(ms(t));
        }
        assert_eq!(gaps.found, [TimeSpan { start_ns: ms(180), end_ns: ms(1310) }]);
    }

    #[test]
    fn gaps_are_bounded() {
        let mut gaps = Gaps::default();
        for k in 1..=5000 {
            gaps.look(k * 1_000_000_000);
        }
        assert_eq!(gaps.found.len(), MAX_GAPS);
        assert_eq!(gaps.found.last().map(|gap| gap.end_ns), Some(5_000_000_000_000));
    }
}
