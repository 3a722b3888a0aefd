//! One direction of a run in its steady phase, with both hosts: the input of every cause.

use landspeed_calc::ETHERNET_OVERHEAD_BYTES;
use landspeed_model::{
    Direction, LabDocument, LabFlow, Parameters, PhaseName, Protocol, RunDocument, Status, StreamEnd, TcpInfo,
    WatchHost,
};

use crate::host::{End, HostView, Ip, mean};
use crate::route::Route;
use crate::stream::StreamView;
use crate::text;
use crate::thresholds::{
    CWND_FULL, MIN_SAMPLES, MIN_SAMPLES_MEDIUM, MIN_STEADY_MEDIUM_NS, MIN_STEADY_NS, MSS_FELL, RAMP_RATIO,
};
use crate::udp::Udp;

/// One direction of a run, precomputed for evaluation.
pub(crate) struct Flow<'a> {
    /// The complete run document.
    pub document: &'a RunDocument,
    /// The evaluated direction, never `Both`.
    pub direction: Direction,
    /// Effective parameters, or the requested ones if unknown.
    pub parameters: &'a Parameters,
    /// The steady phase, nanoseconds; the span of all samples when no phase was recorded.
    pub span_ns: (u64, u64),
    /// Whether `span_ns` is a recorded steady phase.
    pub steady: bool,
    /// Streams of this direction.
    pub streams: Vec<StreamView<'a>>,
    /// The sending host.
    pub sender: HostView<'a>,
    /// The receiving host.
    pub receiver: HostView<'a>,
    /// Payload rate delivered in the steady phase, all streams, bits/s; zero when nothing was. Without the receiver's
    /// report: the rate of the ACKs that TCP got, zero for UDP.
    pub goodput_bps: f64,
    /// UDP accounting; `None` for TCP.
    pub udp: Option<Udp>,
    /// The links of the path, if a lab built it.
    pub route: Option<Route<'a>>,
    /// Whether the flow belongs to other programs and was watched on this host.
    pub observed: bool,
    /// Watched flows: readings of this host besides the socket.
    pub host_readings: Option<&'a WatchHost>,
}

/// A per-stream figure aggregated over a direction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Figure {
    /// Mean or ratio over all streams.
    pub value: f64,
    /// Index of the stream with the largest value, and the value.
    pub largest: (usize, f64),
    /// Index of the stream with the smallest value, and the value.
    pub smallest: (usize, f64),
}

impl<'a> Flow<'a> {
    /// Returns `direction` of a run (`Both` is treated as the upload).
    pub(crate) fn new(document: &'a RunDocument, direction: Direction) -> Self {
        let direction = direction.parts()[0];
        let phase = document.phases.iter().find(|phase| {
            phase.direction == direction && phase.name == PhaseName::Steady && phase.end_ns > phase.start_ns
        });
        let span_ns = phase.map_or_else(|| sampled_span(document, direction), |phase| (phase.start_ns, phase.end_ns));
        let streams: Vec<_> = document
            .streams
            .iter()
            .enumerate()
            .filter(|(_, stream)| stream.direction == direction)
            .map(|(index, stream)| StreamView::new(index, stream, span_ns))
            .collect();
        let (sender, receiver) = End::roles(direction);
        let by_intervals = streams.iter().fold(0_u64, |sum, stream| sum.saturating_add(stream.bytes));
        let bytes = if by_intervals > 0 { by_intervals } else { phase.and_then(|phase| phase.bytes).unwrap_or(0) };
        let seconds = (span_ns.1 - span_ns.0) as f64 / 1e9;
        let measured = (bytes > 0 && seconds > 0.0).then(|| bytes as f64 * 8.0 / seconds);
        let mut flow = Self {
            document,
            direction,
            parameters: document.effective.as_ref().unwrap_or(&document.requested),
            span_ns,
            steady: phase.is_some(),
            sender: HostView::new(document, sender, span_ns),
            receiver: HostView::new(document, receiver, span_ns),
            goodput_bps: measured.or_else(|| mean_bps(document, direction)).unwrap_or(0.0),
            streams,
            udp: None,
            route: None,
            observed: false,
            host_readings: None,
        };
        flow.udp = flow.is_udp().then(|| Udp::new(&flow));
        flow
    }

    /// As [`Self::new`], for a flow of other programs watched by this host, the client.
    pub(crate) fn observed(document: &'a RunDocument, direction: Direction, host_readings: &'a WatchHost) -> Self {
        let mut flow = Self::new(document, direction);
        flow.observed = true;
        flow.host_readings = Some(host_readings);
        for host in [&mut flow.sender, &mut flow.receiver] {
            host.name = if host.end == End::Client { "local host" } else { "remote host" };
        }
        flow.streams.iter_mut().for_each(|stream| stream.observed = true);
        flow
    }

    /// Whether the client sends. In a watched flow, the client is this host.
    pub(crate) fn sends(&self) -> bool {
        self.sender.end == End::Client
    }

    /// The client; in a watched flow, this host.
    pub(crate) fn local(&self) -> &HostView<'a> {
        self.host(End::Client)
    }

    /// Returns the host on that side.
    pub(crate) fn host(&self, end: End) -> &HostView<'a> {
        if self.sender.end == end { &self.sender } else { &self.receiver }
    }

    /// As [`Self::new`], for a flow of a lab, with the links and queues of its path.
    pub(crate) fn in_lab(
        lab: &'a LabDocument,
        flow: &'a LabFlow,
        document: &'a RunDocument,
        direction: Direction,
    ) -> Self {
        let mut view = Self::new(document, direction);
        view.route = Route::new(lab, flow, view.direction, view.span_ns, view.mss().unwrap_or(1448.0));
        view
    }

    /// Length of the evaluated span, seconds.
    pub(crate) fn seconds(&self) -> f64 {
        (self.span_ns.1 - self.span_ns.0) as f64 / 1e9
    }

    /// Whether the test was request/response.
    pub(crate) fn is_rr(&self) -> bool {
        matches!(self.parameters.protocol, Protocol::TcpRr | Protocol::UdpRr)
    }

    /// Whether this is a UDP test.
    pub(crate) fn is_udp(&self) -> bool {
        self.parameters.protocol == Protocol::Udp
    }

    /// Smallest number of sender samples of any stream in the span; receiver samples if the sender reported
    /// totals only.
    pub(crate) fn samples(&self) -> usize {
        let seen = self.sender_seen();
        let of = |stream: &StreamView<'_>| if seen { stream.sent.len() } else { stream.read.len() };
        self.streams.iter().map(of).min().unwrap_or(0)
    }

    /// Whether there are enough samples for a verdict with high confidence.
    pub(crate) fn has_enough_samples(&self) -> bool {
        self.steady && self.samples() >= MIN_SAMPLES && self.is_long_enough()
    }

    /// Whether the span is long enough for a verdict with high confidence. The phase begins with the first
    /// byte, so it may be slightly shorter than the requested duration.
    pub(crate) fn is_long_enough(&self) -> bool {
        self.span_ns.1 - self.span_ns.0 >= MIN_STEADY_NS - MIN_STEADY_NS / 50
    }

    /// Whether the span is too short, or has too few samples, for a verdict with medium confidence.
    pub(crate) fn is_brief(&self) -> bool {
        self.samples() < MIN_SAMPLES_MEDIUM || self.span_ns.1 - self.span_ns.0 < MIN_STEADY_MEDIUM_NS
    }

    /// Formats what is missing for high confidence, such as `18 samples, 20 are needed`.
    pub(crate) fn describe_shortfall(&self) -> String {
        let mut short = Vec::new();
        if !self.is_long_enough() {
            let (is, least) = (text::nanos(self.seconds() * 1e9), text::nanos(MIN_STEADY_NS as f64));
            short.push(format!("a steady phase of {is}, {least} are needed"));
        }
        if self.samples() < MIN_SAMPLES {
            short.push(format!("{} samples, {MIN_SAMPLES} are needed", self.samples()));
        }
        short.join("; ")
    }

    /// Whether the sender of every stream reported samples, not just totals.
    pub(crate) fn sender_seen(&self) -> bool {
        !self.streams.is_empty() && self.streams.iter().all(|stream| stream.sender().is_some_and(watched))
    }

    /// Whether the receiver of every stream reported samples, not just totals.
    pub(crate) fn receiver_seen(&self) -> bool {
        !self.streams.is_empty() && self.streams.iter().all(|stream| stream.receiver().is_some_and(watched))
    }

    /// Whether the receiver of a stream did not report, not even totals.
    pub(crate) fn is_receiver_missing(&self) -> bool {
        !self.observed && self.streams.iter().any(|stream| stream.receiver().is_none())
    }

    /// Whether the run completed with the reports of both sides.
    pub(crate) fn complete(&self) -> bool {
        // Request/response latencies are measured by the client: the server's report is not needed.
        let seen = self.is_rr() || self.sender_seen() && self.receiver_seen();
        self.document.status == Status::Complete && seen
    }

    /// Whether both sides run on one machine and share its cores.
    pub(crate) fn same_host(&self) -> bool {
        if self.loopback() {
            return true;
        }
        // Lab hosts share a kernel and a host name, but their CPU time is unlimited.
        if self.route.is_some() {
            return false;
        }
        match (self.sender.snapshot, self.receiver.snapshot) {
            (Some(a), Some(b)) => !a.hostname.is_empty() && a.hostname == b.hostname && a.cpu_model == b.cpu_model,
            _ => false,
        }
    }

    /// Path MTU in this direction, if `--probe-mtu` found it, bytes.
    pub(crate) fn probed_mtu(&self) -> Option<u32> {
        let direction = if self.direction == Direction::Download { Direction::Download } else { Direction::Upload };
        let probes = &self.document.path.as_ref()?.mtu;
        probes.iter().find(|probe| probe.direction == direction)?.path_mtu_bytes
    }

    /// Whether the path is the loopback interface.
    pub(crate) fn loopback(&self) -> bool {
        self.document.path.as_ref().is_some_and(|path| path.loopback)
    }

    /// Whether something between the hosts can queue or drop packets. On loopback only a qdisc can: otherwise a
    /// packet is received by the core that sent it.
    pub(crate) fn has_network(&self) -> bool {
        let queues = |host: &HostView| {
            host.series.is_some_and(|series| series.qdiscs.iter().any(|qdisc| qdisc.kind != "noqueue"))
        };
        !self.loopback() || queues(&self.sender) || queues(&self.receiver)
    }

    /// Unweighted mean over the streams that have the figure.
    pub(crate) fn figure(&self, of: impl Fn(&StreamView<'a>) -> Option<f64>) -> Option<Figure> {
        let values: Vec<(usize, f64)> = self
            .streams
            .iter()
            .filter_map(|stream| Some((stream.index, of(stream)?)))
            .filter(|(_, value)| value.is_finite())
            .collect();
        let value = mean(values.iter().map(|&(_, value)| value))?;
        Some(Figure {
            value,
            largest: *values.iter().max_by(|a, b| a.1.total_cmp(&b.1))?,
            smallest: *values.iter().min_by(|a, b| a.1.total_cmp(&b.1))?,
        })
    }

    /// Ratio of the increases of two counters, each summed over streams before dividing.
    pub(crate) fn increase_ratio(
        &self,
        part: impl Fn(&TcpInfo) -> Option<u64>,
        whole: impl Fn(&TcpInfo) -> Option<u64>,
    ) -> Option<Figure> {
        let each = |stream: &StreamView<'a>| {
            let (part, whole) = (stream.increase(&part)?, stream.increase(&whole)?);
            (whole > 0.0).then(|| part / whole)
        };
        let mut figure = self.figure(each)?;
        let sum = |counter: &dyn Fn(&TcpInfo) -> Option<u64>| -> f64 {
            self.streams.iter().filter_map(|stream| stream.increase(counter)).sum()
        };
        let whole = sum(&whole);
        if whole > 0.0 {
            figure.value = sum(&part) / whole;
        }
        Some(figure)
    }

    /// Increase of a sender counter, summed over streams; `None` if no stream has it.
    pub(crate) fn increase(&self, counter: impl Fn(&TcpInfo) -> Option<u64>) -> Option<f64> {
        let increase: Vec<f64> = self.streams.iter().filter_map(|stream| stream.increase(&counter)).collect();
        (!increase.is_empty()).then(|| increase.iter().sum())
    }

    /// As [`Self::increase`], for the receivers' counters.
    pub(crate) fn received(&self, counter: impl Fn(&TcpInfo) -> Option<u64>) -> Option<f64> {
        let increase: Vec<f64> = self.streams.iter().filter_map(|stream| stream.received(&counter)).collect();
        (!increase.is_empty()).then(|| increase.iter().sum())
    }

    /// Time limited by the receive window over busy time.
    pub(crate) fn rwnd_limited(&self) -> Option<Figure> {
        self.increase_ratio(|tcp| tcp.rwnd_limited_us, |tcp| tcp.busy_time_us)
    }

    /// Time limited by the send buffer over busy time.
    pub(crate) fn sndbuf_limited(&self) -> Option<Figure> {
        self.increase_ratio(|tcp| tcp.sndbuf_limited_us, |tcp| tcp.busy_time_us)
    }

    /// Mean smoothed RTT, microseconds.
    pub(crate) fn srtt_us(&self) -> Option<f64> {
        let srtt = self.figure(|stream| stream.gauge(|tcp| (tcp.rtt_us > 0).then(|| f64::from(tcp.rtt_us))));
        srtt.map(|figure| figure.value)
    }

    /// Ratio of the mean smoothed RTT to that of the empty path.
    pub(crate) fn rtt_inflation(&self) -> Option<f64> {
        Some(self.srtt_us()? / self.min_rtt_us()?)
    }

    /// RTT of the empty path, microseconds: from the lab's links, or else the minimum that TCP measured.
    ///
    /// Reordering makes TCP time the wrong segment and yields a minimum of microseconds on a path of
    /// milliseconds. In this case the 5th percentile of the samples is used.
    pub(crate) fn min_rtt_us(&self) -> Option<f64> {
        if let Some(route) = &self.route {
            return Some(route.base_rtt_us).filter(|&us| us > 0.0);
        }
        let readings = |of: &dyn Fn(&TcpInfo) -> Option<u32>| -> Vec<u32> {
            let all = self.streams.iter().flat_map(|stream| stream.tcp().filter_map(of).collect::<Vec<_>>());
            // tcp_info reports ~0 before the first RTT sample.
            let mut all: Vec<u32> = all.filter(|&us| us > 0 && us < u32::MAX).collect();
            all.sort_unstable();
            all
        };
        let least = readings(&|tcp| tcp.min_rtt_us).first().copied()?;
        let smoothed = readings(&|tcp| Some(tcp.rtt_us));
        let low = smoothed.get(smoothed.len() / 20).copied().unwrap_or(least);
        let reorders = self.increase(|tcp| tcp.reord_seen.map(u64::from)).is_some_and(|seen| seen > 0.0);
        // After a retransmission TCP measures the RTT with the timestamp option, in whole milliseconds, rounded
        // down.
        let coarse =
            least.is_multiple_of(1000) && readings(&|tcp| Some(tcp.total_retrans)).last().is_some_and(|&n| n > 0);
        Some(f64::from(match () {
            () if reorders && least < low / 4 => low,
            () if coarse => low.clamp(least, least + 999),
            () => least,
        }))
    }

    /// Payload rate that the slowest known link of the path can carry besides other flows, bits/s.
    pub(crate) fn capacity_bps(&self) -> Option<f64> {
        let own_bps = self.wire_bps().filter(|_| self.goodput_bps > 0.0)?;
        let wire = match &self.route {
            Some(route) => Some(route.available_bps(own_bps)),
            None => {
                [self.sender.line_rate_bps(), self.receiver.line_rate_bps()].into_iter().flatten().reduce(f64::min)
            }
        }?;
        let with_headers = own_bps / self.goodput_bps;
        Some(wire / with_headers).filter(|bps| bps.is_finite())
    }

    /// Largest send MSS of the run, smallest after it and last, bytes, if timeouts made TCP probe with a
    /// smaller MSS.
    pub(crate) fn mss_reduction(&self) -> Option<[f64; 3]> {
        let of_stream = |stream: &StreamView<'_>| {
            let readings =
                || stream.sender().into_iter().flat_map(|end| &end.samples).filter_map(|s| s.tcp.as_deref());
            let largest = readings().map(|tcp| tcp.snd_mss_bytes).max()?;
            let last = readings().next_back()?;
            let timeouts = last.total_rto.is_none_or(|count| count > 0);
            let after = readings().skip_while(|tcp| tcp.snd_mss_bytes < largest);
            let least = after.map(|tcp| tcp.snd_mss_bytes).min()?;
            let fell = f64::from(least) < MSS_FELL * f64::from(largest);
            (fell && timeouts).then_some([largest, least, last.snd_mss_bytes].map(f64::from))
        };
        self.streams.iter().find_map(of_stream)
    }

    /// Whether any sender hit a retransmission timeout.
    pub(crate) fn stalled(&self) -> bool {
        let tcp = |stream: &StreamView<'_>| stream.tcp().any(|tcp| tcp.backoff > 0 || tcp.total_rto.unwrap_or(0) > 0);
        self.streams.iter().any(tcp)
    }

    /// Mean send MSS, bytes; of a watched flow that this host receives, its estimate of it.
    pub(crate) fn mss(&self) -> Option<f64> {
        let sampled = self.figure(|stream| stream.gauge(|tcp| Some(f64::from(tcp.snd_mss_bytes))));
        let received = |stream: &StreamView<'a>| {
            let readings = stream.read.iter().filter(|_| self.observed).filter_map(|sample| sample.tcp.as_deref());
            mean(readings.map(|tcp| f64::from(tcp.rcv_mss_bytes)))
        };
        sampled.or_else(|| self.figure(received)).map(|figure| figure.value).filter(|&mss| mss > 0.0)
    }

    /// Congestion control of the sender, lower case.
    pub(crate) fn congestion(&self) -> Option<String> {
        self.streams.iter().find_map(|stream| stream.sender()?.congestion.as_deref()).map(str::to_lowercase)
    }

    /// Whether the congestion control paces to a model of the path (BBR) instead of filling a window until
    /// loss.
    pub(crate) fn is_model_based(&self) -> bool {
        self.congestion().is_some_and(|name| name.starts_with("bbr"))
    }

    /// Ratio of the congestion window in the last quarter of the phase to that in the first, over all streams.
    pub(crate) fn window_growth(&self) -> Option<f64> {
        self.window_in_last_quarter_over(0)
    }

    /// Ratio of the congestion window in the last quarter to that in the second: excludes losses in the first
    /// quarter.
    pub(crate) fn late_window_growth(&self) -> Option<f64> {
        self.window_in_last_quarter_over(1)
    }

    fn window_in_last_quarter_over(&self, index: usize) -> Option<f64> {
        let (mut first, mut last) = (0.0, 0.0);
        for stream in &self.streams {
            let windows: Vec<f64> = stream.tcp().map(|tcp| f64::from(tcp.snd_cwnd)).collect();
            let quarter = windows.len() / 4;
            if quarter == 0 {
                continue;
            }
            first += mean(windows[index * quarter..][..quarter].iter().copied())?;
            last += mean(windows[windows.len() - quarter..].iter().copied())?;
        }
        (first > 0.0).then(|| last / first)
    }

    /// [`Self::window_growth`] if the window fills the path, still grows and nothing was lost: the run was too
    /// short.
    pub(crate) fn still_ramping(&self) -> Option<f64> {
        let lost = self.increase(|tcp| Some(u64::from(tcp.total_retrans)))?;
        let filled = self.figure(StreamView::flight_over_cwnd)?.value;
        self.window_growth().filter(|&growth| growth >= RAMP_RATIO && lost == 0.0 && filled >= CWND_FULL)
    }

    /// Rate on the wire for the measured goodput, with Ethernet's preamble, header, FCS and inter-frame gap,
    /// bits/s.
    pub(crate) fn wire_bps(&self) -> Option<f64> {
        self.with_headers(f64::from(ETHERNET_OVERHEAD_BYTES))
    }

    /// Rate of the frames as the kernel's pacing counts them (14-byte Ethernet header, no FCS or gap), bits/s.
    pub(crate) fn frame_bps(&self) -> Option<f64> {
        self.with_headers(14.0)
    }

    /// Version of IP of the streams.
    pub(crate) fn ip(&self) -> Ip {
        let v6 = self.streams.first().is_some_and(|stream| stream.stream.client_addr.matches(':').count() > 1);
        if v6 { Ip::V6 } else { Ip::V4 }
    }

    /// Goodput plus IP, transport and `link` bytes of headers per packet, bits/s.
    fn with_headers(&self, link: f64) -> Option<f64> {
        let ip = if self.ip() == Ip::V6 { 40.0 } else { 20.0 };
        let (payload, transport) = if self.is_udp() {
            (f64::from(self.parameters.udp.as_ref()?.payload_bytes), 8.0)
        } else {
            // TCP: 20 bytes of header and 12 of timestamps.
            (self.mss()?, 32.0)
        };
        (payload > 0.0).then(|| self.goodput_bps * (payload + ip + transport + link) / payload)
    }

    /// `TCP_NOTSENT_LOWAT` of the senders, from the test or the sender's sysctl, bytes; `None` without a limit.
    pub(crate) fn notsent_lowat(&self) -> Option<u64> {
        self.parameters.notsent_lowat_bytes.map(u64::from).or_else(|| self.sender.notsent_lowat())
    }

    /// `9.41 Gb/s from client to server`.
    pub(crate) fn headline(&self) -> String {
        if self.is_rr() {
            let rate: f64 =
                self.document.latency.iter().map(|result| result.achieved_per_s).filter(|r| r.is_finite()).sum();
            let sizes = self.document.latency.len().max(1) as f64;
            return format!("{} transactions a second", text::number((rate / sizes).round()));
        }
        if self.observed {
            let remote = self.document.path.as_ref().map_or("", |path| path.server_addr.as_str());
            let moved = if self.direction == Direction::Upload { "sent to" } else { "received from" };
            return format!("{} {moved} {remote}", text::rate(self.goodput_bps));
        }
        let (from, to) = (self.sender.name(), self.receiver.name());
        let streams = self.streams.len();
        let over = if streams > 1 { format!(" over {streams} streams") } else { String::new() };
        let acknowledged = if self.is_receiver_missing() { " acknowledged" } else { "" };
        format!("{}{acknowledged} from {from} to {to}{over}", text::rate(self.goodput_bps))
    }

    /// `the server`, with its name when it has one: `the server (dtn2)`.
    pub(crate) fn label(&self, host: &HostView) -> String {
        if let Some(route) = &self.route {
            let node = route.ends[usize::from(host.end != self.sender.end)];
            return format!("the {} ({node})", host.name());
        }
        match host.snapshot.map(|snapshot| snapshot.hostname.as_str()).filter(|name| !name.is_empty()) {
            Some(hostname) if !self.same_host() => format!("the {} ({hostname})", host.name()),
            _ => format!("the {}", host.name()),
        }
    }
}

/// Whether a side has samples over time. iperf3 reports only totals.
fn watched(end: &StreamEnd) -> bool {
    !end.samples.is_empty()
}

/// Goodput of a direction whose receivers reported totals only, bits/s: a run without intervals has no other.
fn mean_bps(document: &RunDocument, direction: Direction) -> Option<f64> {
    if document.streams.iter().any(|stream| stream.direction == direction && !stream.intervals.is_empty()) {
        return None;
    }
    let summary = &document.summary;
    let primary = document.requested.direction.parts()[0] == direction;
    let bps = if primary { summary.goodput_bps } else { summary.reverse_goodput_bps };
    bps.filter(|bps| bps.is_finite() && *bps > 0.0)
}

/// Span of all samples of a direction, for a run without a recorded steady phase.
fn sampled_span(document: &RunDocument, direction: Direction) -> (u64, u64) {
    let times = || {
        document
            .streams
            .iter()
            .filter(move |stream| stream.direction == direction)
            .flat_map(|stream| [&stream.sender, &stream.receiver])
            .filter_map(Option::as_ref)
            .flat_map(|end| end.samples.iter().map(|sample| sample.t_ns))
    };
    (times().min().unwrap_or(0), times().max().unwrap_or(0))
}
