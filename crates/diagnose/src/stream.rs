//! One stream during the steady phase: ratios of cumulative counters and means of gauges.
//!
//! A figure is `None` if it was not read; otherwise it is finite.

use landspeed_model::{PhaseName, Sample, Stream, StreamEnd, TcpInfo};

use crate::host::mean;

/// A stream with its samples of the steady phase.
pub(crate) struct StreamView<'a> {
    /// Index in the document's `streams`.
    pub index: usize,
    /// The stream in the document.
    pub stream: &'a Stream,
    /// The sender's samples in the steady phase.
    pub sent: Vec<&'a Sample>,
    /// The receiver's samples in the steady phase.
    pub read: Vec<&'a Sample>,
    /// Payload bytes delivered in the steady phase.
    pub bytes: u64,
    /// Whether the flow was watched: its programs do not report how their threads spend time.
    pub observed: bool,
}

impl<'a> StreamView<'a> {
    /// Returns the part of `stream` within `span_ns`.
    pub(crate) fn new(index: usize, stream: &'a Stream, span_ns: (u64, u64)) -> Self {
        let within = |end: &'a Option<StreamEnd>| -> Vec<&'a Sample> {
            let samples = end.as_ref().map(|end| end.samples.as_slice()).unwrap_or_default();
            samples.iter().filter(|sample| (span_ns.0..=span_ns.1).contains(&sample.t_ns)).collect()
        };
        let bytes = stream
            .intervals
            .iter()
            .filter(|interval| interval.phase == PhaseName::Steady)
            .fold(0_u64, |sum, interval| sum.saturating_add(interval.bytes));
        Self { index, stream, sent: within(&stream.sender), read: within(&stream.receiver), bytes, observed: false }
    }

    /// Returns the sender's report.
    pub(crate) fn sender(&self) -> Option<&'a StreamEnd> {
        self.stream.sender.as_ref()
    }

    /// Returns the receiver's report.
    pub(crate) fn receiver(&self) -> Option<&'a StreamEnd> {
        self.stream.receiver.as_ref()
    }

    /// Iterates over the sender's `tcp_info` samples, in order.
    pub(crate) fn tcp(&self) -> impl DoubleEndedIterator<Item = &'a TcpInfo> + '_ {
        self.sent.iter().filter_map(|sample| sample.tcp.as_deref())
    }

    /// Increase of a cumulative counter of the sender's `tcp_info`.
    pub(crate) fn increase(&self, counter: impl Fn(&TcpInfo) -> Option<u64>) -> Option<f64> {
        let first = self.tcp().find_map(&counter)?;
        let last = self.tcp().rev().find_map(&counter)?;
        last.checked_sub(first).map(|delta| delta as f64)
    }

    /// Increase of a cumulative counter of the receiver's `tcp_info`.
    pub(crate) fn received(&self, counter: impl Fn(&TcpInfo) -> Option<u64>) -> Option<f64> {
        let mut readings = self.read.iter().filter_map(|sample| counter(sample.tcp.as_deref()?));
        let first = readings.next()?;
        readings.next_back()?.checked_sub(first).map(|delta| delta as f64)
    }

    /// Mean of a gauge of the sender's `tcp_info`.
    pub(crate) fn gauge(&self, gauge: impl Fn(&TcpInfo) -> Option<f64>) -> Option<f64> {
        mean(self.tcp().filter_map(gauge))
    }

    /// Ratio of segments in flight to the congestion window, each summed over the samples, so that BBR's window
    /// of four packets (ProbeRTT) does not dominate.
    pub(crate) fn flight_over_cwnd(&self) -> Option<f64> {
        let (flight, window) = self.tcp().fold((0.0, 0.0), |(flight, window), tcp| {
            (flight + flight_segments(tcp), window + f64::from(tcp.snd_cwnd))
        });
        (window > 0.0).then_some(flight / window)
    }

    /// Median of the bytes in flight.
    pub(crate) fn median_flight_bytes(&self) -> Option<f64> {
        let mut flights: Vec<f64> =
            self.tcp().map(|tcp| flight_segments(tcp) * f64::from(tcp.snd_mss_bytes)).collect();
        flights.sort_unstable_by(f64::total_cmp);
        flights.get(flights.len() / 2).copied()
    }

    /// Ratio of bytes in flight to the receive window. A closed window (zero) counts as full.
    pub(crate) fn flight_over_window(&self) -> Option<f64> {
        self.gauge(|tcp| match tcp.snd_wnd_bytes? {
            0 => Some(1.0),
            window => Some(flight_segments(tcp) * f64::from(tcp.snd_mss_bytes) / f64::from(window)),
        })
    }

    /// Ratio of send queue memory to `SO_SNDBUF`. Overhead can raise it above 1.
    pub(crate) fn send_fill(&self) -> Option<f64> {
        mean(self.sent.iter().filter_map(|sample| {
            let (queued, limit) = (sample.wmem_queued_bytes?, sample.sndbuf_bytes?);
            (limit > 0).then(|| f64::from(queued) / f64::from(limit))
        }))
    }

    /// Mean bytes written and not yet sent.
    pub(crate) fn notsent(&self) -> Option<f64> {
        self.gauge(|tcp| tcp.notsent_bytes.map(f64::from))
    }

    /// Ratio of unsent bytes to send queue memory.
    pub(crate) fn waiting_share(&self) -> Option<f64> {
        mean(self.sent.iter().filter_map(|sample| {
            let (queued, waiting) = (sample.wmem_queued_bytes?, sample.tcp.as_deref()?.notsent_bytes?);
            (queued > 0).then(|| f64::from(waiting) / f64::from(queued))
        }))
    }

    /// `SO_SNDBUF` at the end of the steady phase, bytes.
    pub(crate) fn sndbuf(&self) -> Option<f64> {
        let sampled = self.sent.iter().rev().find_map(|sample| sample.sndbuf_bytes).map(f64::from);
        sampled.or_else(|| self.sender()?.sndbuf_bytes.map(|bytes| bytes as f64)).filter(|&bytes| bytes > 0.0)
    }

    /// `SO_RCVBUF` at the end of the steady phase, bytes.
    pub(crate) fn rcvbuf(&self) -> Option<f64> {
        let sampled = self.read.iter().rev().find_map(|sample| sample.rcvbuf_bytes).map(f64::from);
        sampled.or_else(|| self.receiver()?.rcvbuf_bytes.map(|bytes| bytes as f64)).filter(|&bytes| bytes > 0.0)
    }

    /// Mean ratio of unread bytes to `SO_RCVBUF`.
    pub(crate) fn receive_fill(&self) -> Option<f64> {
        let fallback = self.rcvbuf();
        mean(self.read.iter().filter_map(|sample| {
            let limit = sample.rcvbuf_bytes.map(f64::from).filter(|&bytes| bytes > 0.0).or(fallback)?;
            Some(f64::from(sample.receive_queue_bytes?) / limit)
        }))
    }

    /// Ratio of `SO_RCVBUF` at the end of the phase to that at its start.
    pub(crate) fn rcvbuf_growth(&self) -> Option<f64> {
        let sizes = || self.read.iter().filter_map(|sample| sample.rcvbuf_bytes).filter(|&bytes| bytes > 0);
        Some(f64::from(sizes().next_back()?) / f64::from(sizes().next()?))
    }

    /// Ratio of unread bytes to unread bytes plus open window: the share of the buffer in use that is backlog.
    pub(crate) fn receive_backlog(&self) -> Option<f64> {
        mean(self.read.iter().filter_map(|sample| {
            let unread = f64::from(sample.receive_queue_bytes?);
            let window = f64::from(sample.tcp.as_deref()?.rcv_wnd_bytes?);
            (unread + window > 0.0).then(|| unread / (unread + window))
        }))
    }

    /// Time during which `end` transferred data, nanoseconds.
    pub(crate) fn lifetime_ns(end: &StreamEnd) -> Option<f64> {
        let increase = end.last_byte_ns.zip(end.first_byte_ns).map(|(last, first)| last.saturating_sub(first));
        let sampled = || Some(end.samples.last()?.t_ns.saturating_sub(end.samples.first()?.t_ns));
        increase.filter(|&ns| ns > 0).or_else(sampled).filter(|&ns| ns > 0).map(|ns| ns as f64)
    }

    /// CPU use of the thread behind `end` in the phase covered by `samples`; over its lifetime if samples lack
    /// it.
    pub(crate) fn thread(end: &StreamEnd, samples: &[&Sample]) -> Option<ThreadShare> {
        let first = samples.iter().find(|sample| sample.thread_cpu_ns.is_some());
        let last = samples.iter().rev().find(|sample| sample.thread_cpu_ns.is_some());
        if let Some((first, last)) = first.zip(last).filter(|(first, last)| last.t_ns > first.t_ns) {
            let span = (last.t_ns - first.t_ns) as f64;
            let increase = |of: &dyn Fn(&Sample) -> Option<u64>| {
                Some(of(last)?.checked_sub(of(first)?)? as f64 / span).filter(|share| share.is_finite())
            };
            let wait = increase(&|sample| sample.thread_wait_ns);
            return increase(&|sample| sample.thread_cpu_ns).map(|cpu| ThreadShare { cpu, wait });
        }
        let cpu_ns = end.thread_cpu_ns.filter(|&ns| ns > 0)?;
        let life = Self::lifetime_ns(end)?;
        let wait = end.thread_wait_ns.map(|ns| ns as f64 / life);
        Some(ThreadShare { cpu: cpu_ns as f64 / life, wait })
    }

    /// CPU use of the sending thread.
    pub(crate) fn sending_thread(&self) -> Option<ThreadShare> {
        Self::thread(self.sender()?, &self.sent)
    }

    /// CPU use of the receiving thread.
    pub(crate) fn receiving_thread(&self) -> Option<ThreadShare> {
        Self::thread(self.receiver()?, &self.read)
    }

    /// Share of its lifetime that the sender waited for its own schedule.
    pub(crate) fn wait_share(&self) -> Option<f64> {
        self.wait_share_of(self.sender()?)
    }

    /// Share of its lifetime that the receiver waited for its own schedule (`--read-rate`).
    pub(crate) fn read_wait_share(&self) -> Option<f64> {
        self.wait_share_of(self.receiver()?)
    }

    fn wait_share_of(&self, end: &StreamEnd) -> Option<f64> {
        let life = Self::lifetime_ns(end).filter(|_| !self.observed);
        Some(end.app_wait_ns? as f64 / life?)
    }

    /// Share of the phase in which data was outstanding or waited to be sent.
    pub(crate) fn busy_share(&self) -> Option<f64> {
        let (first, last) = (self.sent.first()?, self.sent.last()?);
        let elapsed_us = last.t_ns.checked_sub(first.t_ns).filter(|&ns| ns > 0)? as f64 / 1e3;
        self.increase(|tcp| tcp.busy_time_us).map(|busy_us| busy_us / elapsed_us)
    }
}

/// Shares of a thread's time, 0..=1; the rest is sleep: no data, no buffer space, or its own schedule.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ThreadShare {
    /// Running on a core.
    pub cpu: f64,
    /// Runnable without a core; `None` if the kernel does not report it.
    pub wait: Option<f64>,
}

impl ThreadShare {
    /// Running or runnable: time in which only the CPU limited the thread.
    pub(crate) fn work(self) -> f64 {
        self.cpu + self.wait.unwrap_or(0.0)
    }
}

/// Segments in flight: sent and neither acknowledged, SACKed nor considered lost, retransmissions included
/// (`tcp_packets_in_flight` in the kernel's tcp.h).
pub(crate) fn flight_segments(tcp: &TcpInfo) -> f64 {
    let flight = i64::from(tcp.unacked) - i64::from(tcp.sacked) - i64::from(tcp.lost) + i64::from(tcp.retrans);
    flight.max(0) as f64
}
