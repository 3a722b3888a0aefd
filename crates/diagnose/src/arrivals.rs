//! What the receiving host of a watched flow sees of its sender and of the path: when data arrives, how much of it in
//! a round trip, and in what order.

use landspeed_model::{Cause, Sample, TcpInfo};

use crate::finding::{Bound, FindingBuilder, NamedCause, Strength};
use crate::flow::Flow;
use crate::host::mean;
use crate::reader::{Reader, reader};
use crate::stream::StreamView;
use crate::text;
use crate::thresholds::{
    AGES_DIFFER_MS, ARRIVAL_GAP_MS, ARRIVAL_GAP_RTTS, BUFFER_GREW, DISORDER, FEW_REQUESTS, IDLE_BETWEEN,
    QUEUE_OVER_AGE, RTT_QUEUE, WAITS_IN_CALL, WINDOW_USED,
};
use crate::waits;

/// Share of the readings without new data below which a sender does not pause.
const SELDOM_IDLE: f64 = 0.05;

/// Arrivals of a watched flow that this host receives.
#[derive(Debug)]
pub(crate) struct Arrivals {
    /// RTT of the data, microseconds: the receiver's estimate, from the echo of its timestamps.
    pub rtt_us: Option<f64>,
    /// RTT of the empty path, microseconds: that of the handshake, or the least estimate.
    pub base_rtt_us: Option<f64>,
    /// Bytes received in an RTT of the empty path over the window offered: 1 if the sender fills the window.
    pub window_used: Option<f64>,
    /// Segments that arrived out of order over all segments with data.
    pub disorder: Option<f64>,
    /// Number of readings with new segments out of order.
    pub disordered_readings: f64,
    /// Mean time since the last data arrived, over the readings, milliseconds.
    pub age_ms: Option<f64>,
    /// Share of the readings in which nothing had arrived for several RTTs, all of it read.
    pub idle: Option<f64>,
    /// As `idle`, with a request that is not answered yet: sent after the last data arrived.
    pub unanswered: Option<f64>,
    /// Number of readings with new data sent by this host: requests.
    pub requests: f64,
}

impl Arrivals {
    /// Returns the arrivals of a watched flow; `None` if this host sends, or the flow is not watched.
    pub(crate) fn of(flow: &Flow) -> Option<Self> {
        if !flow.observed || flow.sends() || flow.streams.is_empty() {
            return None;
        }
        let samples: Vec<(&Sample, &TcpInfo)> = flow
            .streams
            .iter()
            .flat_map(|stream| &stream.read)
            .filter_map(|sample| Some((*sample, sample.tcp.as_deref()?)))
            .collect();
        let estimates = || samples.iter().map(|(_, tcp)| tcp.rcv_rtt_us).filter(|&us| us > 0);
        let handshake = samples.iter().filter_map(|(_, tcp)| tcp.min_rtt_us).filter(|&us| us > 0 && us < u32::MAX);
        let base_rtt_us = handshake.chain(estimates()).min().map(f64::from);
        let window = mean(samples.iter().filter_map(|(_, tcp)| tcp.rcv_wnd_bytes).map(f64::from));
        let per_rtt = base_rtt_us.map(|us| flow.goodput_bps / 8.0 * us / 1e6);
        let increased = |counter: &dyn Fn(&TcpInfo) -> Option<u32>| {
            samples.windows(2).filter(|pair| counter(pair[1].1) > counter(pair[0].1)).count() as f64
        };
        let base_ms = base_rtt_us.unwrap_or(0.0) / 1e3;
        let quiet_ms = ARRIVAL_GAP_MS.max(ARRIVAL_GAP_RTTS * base_ms);
        let is_idle = |sample: &Sample, tcp: &TcpInfo| {
            f64::from(tcp.last_data_recv_ms) >= quiet_ms && sample.receive_queue_bytes == Some(0)
        };
        let share = |of: &dyn Fn(&Sample, &TcpInfo) -> bool| {
            let count = samples.iter().filter(|(sample, tcp)| of(sample, tcp)).count();
            (!samples.is_empty()).then(|| count as f64 / samples.len() as f64)
        };
        let disordered = flow.received(|tcp| tcp.rcv_ooopack.map(u64::from));
        let arrived = flow.received(|tcp| tcp.data_segs_in.map(u64::from)).filter(|&count| count > 0.0);
        // A request that left in the tick in which the last data arrived: it is open if the thread waits for its answer. A
        // complete answer takes a round trip at least.
        let same_tick_is_open = base_ms >= f64::from(AGES_DIFFER_MS)
            || waits::waits(flow).is_some_and(|waits| waits.receive >= WAITS_IN_CALL);
        let is_open = |tcp: &TcpInfo| {
            tcp.last_data_sent_ms + AGES_DIFFER_MS <= tcp.last_data_recv_ms
                || same_tick_is_open && tcp.last_data_sent_ms < tcp.last_data_recv_ms + AGES_DIFFER_MS
        };
        Some(Self {
            rtt_us: mean(estimates().map(f64::from)),
            base_rtt_us,
            window_used: per_rtt
                .zip(window)
                .filter(|(_, window)| *window > 0.0)
                .map(|(bytes, window)| bytes / window),
            disorder: disordered.zip(arrived).map(|(disordered, arrived)| disordered / arrived),
            disordered_readings: increased(&|tcp| tcp.rcv_ooopack),
            age_ms: mean(samples.iter().map(|(_, tcp)| f64::from(tcp.last_data_recv_ms))),
            idle: share(&is_idle),
            unanswered: share(&|sample, tcp| is_idle(sample, tcp) && is_open(tcp)),
            requests: increased(&|tcp| tcp.data_segs_out),
        })
    }

    /// Whether this host sends requests over the connection.
    pub(crate) fn answers_requests(&self) -> bool {
        self.requests >= FEW_REQUESTS
    }

    /// Whether segments were missing often enough to matter.
    pub(crate) fn lacks_segments(&self) -> bool {
        self.disorder.is_some_and(|share| share >= DISORDER) && self.disordered_readings >= FEW_REQUESTS
    }

    /// Whether data waits in a queue of the path. A sender that pauses delays the echo of a timestamp as well, by its pause:
    /// the delay of a queue is much longer than the time between arrivals.
    fn queues(&self) -> bool {
        let delay_ms = self.rtt_us.zip(self.base_rtt_us).map(|(rtt, base)| (rtt - base) / 1e3);
        let steady = self.age_ms.zip(delay_ms).is_some_and(|(age, delay)| age * QUEUE_OVER_AGE <= delay);
        let busy = steady && self.idle.is_some_and(|idle| idle < SELDOM_IDLE);
        let waits = |(rtt, base): (f64, f64)| rtt - base >= 1e3 * ARRIVAL_GAP_MS && rtt / base >= RTT_QUEUE;
        busy && self.rtt_us.zip(self.base_rtt_us).is_some_and(waits)
    }

    /// Records the readings of a full receive window; returns how strongly they show it.
    pub(crate) fn full_window(&self, flow: &Flow, builder: &mut FindingBuilder) -> Option<Strength> {
        let end = Some(flow.receiver.end);
        let metric = "bytes received in a round trip over the window offered";
        let source = "receiver.samples[].tcp.rcv_wnd_bytes";
        let full = builder.value(metric, self.window_used, "ratio", Bound::AtLeast(WINDOW_USED), end, source);
        let grows = flow.figure(StreamView::rcvbuf_growth).is_some_and(|growth| growth.value >= BUFFER_GREW);
        let keeps_up = reader(flow) == Reader::KeepsUp;
        let strength = if grows { Strength::Weak } else { Strength::Strong };
        (full == Some(true) && keeps_up && !self.lacks_segments()).then_some(strength)
    }

    /// Records the readings of a sender that pauses; returns the share of the time in which it had nothing to send.
    pub(crate) fn sender_pauses(&self, flow: &Flow, builder: &mut FindingBuilder) -> Option<f64> {
        let end = Some(flow.receiver.end);
        let source = "receiver.samples[].tcp.last_data_recv_ms";
        let pauses = Bound::AtLeast(IDLE_BETWEEN);
        let (metric, share) = if self.answers_requests() {
            ("readings with an open request and no data for several round trips", self.unanswered)
        } else {
            ("readings without new data for several round trips", self.idle)
        };
        let pauses = builder.value(metric, share, "ratio", pauses, end, source);
        let metric = "segments out of order over segments with data";
        let source = "receiver.samples[].tcp.rcv_ooopack";
        let complete = builder.value(metric, self.disorder, "ratio", Bound::Below(DISORDER), end, source);
        let keeps_up = reader(flow) == Reader::KeepsUp;
        share.filter(|_| pauses == Some(true) && complete != Some(false) && keeps_up)
    }
}

/// Names the network cause that the arrivals suggest: they show a missing segment, but not what its sender made of it.
pub(crate) fn network_cause(flow: &Flow) -> Option<NamedCause> {
    let arrivals = Arrivals::of(flow)?;
    let keeps_up = reader(flow) == Reader::KeepsUp;
    let open = arrivals.window_used.is_none_or(|used| used < WINDOW_USED);
    let busy = arrivals.idle.is_some_and(|idle| idle < IDLE_BETWEEN);
    if !keeps_up || !open || !busy || flow.same_host() {
        return None;
    }
    let ask = "Run `landspeed watch` on the sending host, which sees its congestion window and its retransmissions.";
    let rtt = arrivals.rtt_us.zip(arrivals.base_rtt_us);
    let queue = rtt.map(|(rtt, base)| format!("{} over a path of {}", text::micros(rtt), text::micros(base)));
    let (cause, why) = match (arrivals.lacks_segments(), arrivals.queues()) {
        (false, false) => return None,
        (false, true) => (
            Cause::NetworkPath,
            format!("data arrives steadily and in order, and waits in a queue of the path: RTT {}", queue?),
        ),
        (true, queues) => {
            let share = text::percent(arrivals.disorder?);
            let cause = if queues { Cause::NetworkCongestion } else { Cause::NetworkLoss };
            let rtt = queue
                .filter(|_| queues)
                .map_or(String::new(), |queue| format!(", and a queue of the path delays data: RTT {queue}"));
            (cause, format!("segments are missing on the path: {share} of the segments arrived out of order{rtt}"))
        }
    };
    Some(NamedCause::new(cause, Strength::Weak, why, ask.to_owned()))
}

/// Records the readings behind [`network_cause`].
pub(crate) fn record_readings(flow: &Flow, builder: &mut FindingBuilder) {
    let Some(arrivals) = Arrivals::of(flow) else { return };
    let end = Some(flow.receiver.end);
    let metric = "segments out of order over segments with data";
    let source = "receiver.samples[].tcp.rcv_ooopack";
    builder.optional(metric, arrivals.disorder, "ratio", Bound::AtLeast(DISORDER), end, source);
    let inflation = arrivals.rtt_us.zip(arrivals.base_rtt_us).map(|(rtt, base)| rtt / base);
    let source = "receiver.samples[].tcp.rcv_rtt_us";
    builder.optional(
        "RTT of the data over the minimum RTT",
        inflation,
        "ratio",
        Bound::AtLeast(RTT_QUEUE),
        end,
        source,
    );
}
