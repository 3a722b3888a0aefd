//! Conversion of a run's document to iperf3's.
//!
//! An iperf3 interval contains the bytes that the local application wrote or read, so intervals are computed
//! from local samples at the requested times; their sum is exact. Values that only landspeed knows have no
//! place in it; values that iperf3 would print and the document lacks (losses of a single interval, whatever a report
//! that never came would have told) are omitted, never zero. Sums are those of all streams, or omitted.

use std::collections::BTreeMap;

use landspeed_model::{
    Direction, Parameters, PhaseName, Protocol, RunDocument, Sample, Status, Stream, StreamEnd, TcpInfo, UdpEnd,
};

use crate::ReportTimes;
use crate::document::{
    Connected, Cpu, Document, End, EndStream, HostPort, Interval, Row, Start, TestStart, Timestamp,
};
use crate::identity;
use crate::request::server_omits;
use crate::results::Results;

/// Parameters of the command line that the run's document lacks.
#[derive(Debug, Clone, Default)]
pub struct ReportOptions {
    /// Report interval, nanoseconds.
    pub interval_ns: u64,
    /// `--blockcount`: number of blocks to send; 0 if unset.
    pub blocks: u64,
    /// `--extra-data`: string copied into the document.
    pub extra_data: Option<String>,
    /// Server name as given by the user, and its port.
    pub server: (String, u16),
    /// Whether the remote end's totals are already without the omitted part, as an iperf3 client reports them.
    pub remote_after_omit: bool,
}

/// iperf3 release whose JSON format is written.
pub const RELEASE: &str = "3.22";

/// Converts a whole run.
pub fn document(run: &RunDocument, options: &ReportOptions) -> Document {
    remaining_document(run, options, &Reported::default())
}

/// Converts a run without the intervals that were already reported.
pub fn remaining_document(run: &RunDocument, options: &ReportOptions, reported: &Reported) -> Document {
    let p = run.effective.as_ref().unwrap_or(&run.requested);
    let test = Test::new(run, p, options, reported);
    let (output_json, output_text) = match run.iperf3.as_ref().and_then(|end| end.output.clone()) {
        Some(serde_json::Value::String(text)) => (None, Some(text)),
        output => (output, None),
    };
    let failed = run.status != Status::Complete;
    Document {
        title: p.title.clone(),
        extra_data: options.extra_data.clone(),
        start: start(run, p, options, &test),
        intervals: test.intervals(),
        end: if run.status == Status::Failed { End::default() } else { test.end() },
        server_output_json: output_json,
        server_output_text: output_text,
        error: run.errors.first().filter(|_| failed).map(|error| error.message.clone()),
    }
}

/// The interval that ends at `due_ns` of a running test.
pub fn interval(opened: &RunDocument, reported: &mut Reported, due_ns: u64, streams: &[(u32, Sample)]) -> Interval {
    let p = opened.effective.as_ref().unwrap_or(&opened.requested);
    let mut test = Test::of_streams(opened, p);
    test.report_times = vec![reported.due_ns, due_ns];
    for numbered in &mut test.streams {
        let Some((_, now)) = streams.iter().find(|(id, _)| *id == numbered.stream.id) else { continue };
        numbered.at = vec![
            reported.last(numbered.stream.id),
            StreamReading::of(now, reported.last(numbered.stream.id).packets),
        ];
    }
    reported.due_ns = due_ns;
    reported.last =
        test.streams.iter().filter_map(|numbered| Some((numbered.stream.id, numbered.at.last()?.clone()))).collect();
    if due_ns == test.omit_ns {
        reported.cut.clone_from(&reported.last);
    }
    test.interval(1)
}

/// State of the intervals reported during a test.
#[derive(Debug, Default)]
pub struct Reported {
    /// Time of the last report, nanoseconds after the start.
    due_ns: u64,
    /// Counters at that time, by stream id.
    last: BTreeMap<u32, StreamReading>,
    /// Counters at the end of the omitted part, by stream id.
    cut: BTreeMap<u32, StreamReading>,
}

impl Reported {
    fn last(&self, stream: u32) -> StreamReading {
        self.last.get(&stream).cloned().unwrap_or_default()
    }
}

fn start(run: &RunDocument, p: &Parameters, options: &ReportOptions, test: &Test<'_>) -> Start {
    let (host, port) = options.server.clone();
    let mut start = Start {
        version: format!("iperf {RELEASE} (landspeed {})", run.landspeed.version),
        system_info: run.hosts.client.as_ref().map_or_else(String::new, |host| {
            format!("Linux {} {} {} {}", host.hostname, host.kernel_release, host.kernel_version, host.machine)
        }),
        timestamp: timestamp(&run.started),
        connecting_to: Some(HostPort { host, port }),
        ..Start::default()
    };
    let Some(first) = test.streams.first() else { return start };
    let udp = p.protocol == Protocol::Udp;
    let local = first.local();
    start.connected = test.streams.iter().filter_map(NumberedStream::connected).collect();
    start.cookie = Some(run.id.clone());
    start.tcp_mss = p.mss_bytes.map(u64::from);
    if start.tcp_mss.is_none() && !udp {
        start.tcp_mss_default = local.and_then(|end| end.mss_bytes).map(u64::from);
    }
    start.target_bitrate = Some(p.rate_bps.unwrap_or(0));
    start.fq_rate = Some(p.pace_bps.unwrap_or(0));
    start.sock_bufsize = Some(p.window_bytes.unwrap_or(0));
    start.sndbuf_actual = local.and_then(|end| end.sndbuf_bytes);
    start.rcvbuf_actual = local.and_then(|end| end.rcvbuf_bytes);
    start.test_start = Some(TestStart {
        protocol: if udp { "UDP" } else { "TCP" }.to_owned(),
        num_streams: p.streams,
        blksize: p.write_bytes,
        omit: p.omit_ns / SECOND_NS,
        duration: p.time_ns.unwrap_or(0) / SECOND_NS,
        bytes: if options.blocks > 0 { 0 } else { p.bytes.unwrap_or(0) },
        blocks: options.blocks,
        reverse: u8::from(p.direction == Direction::Download),
        tos: p.dscp.unwrap_or(0) << 2,
        target_bitrate: Some(p.rate_bps.unwrap_or(0)),
        bidir: Some(u8::from(p.direction == Direction::Both)),
        fqrate: Some(p.pace_bps.unwrap_or(0)),
        interval: Some(seconds(options.interval_ns)),
        gso: Some(p.udp.as_ref().map_or(0, |udp| u8::from(udp.gso))),
        gro: Some(p.udp.as_ref().map_or(0, |udp| u8::from(udp.gro))),
    });
    start
}

const SECOND_NS: u64 = 1_000_000_000;

fn seconds(ns: u64) -> f64 {
    ns as f64 / SECOND_NS as f64
}

/// Converts an RFC 3339 time to iperf3's timestamp, with the date as in HTTP.
fn timestamp(rfc3339: &str) -> Option<Timestamp> {
    let since = humantime::parse_rfc3339(rfc3339).ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    // 1 January 1970 was a Thursday.
    let days = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    let (date, clock) = rfc3339.split_once('T')?;
    let [year, month, day] = date.split('-').collect::<Vec<_>>()[..] else { return None };
    let month = months.get(month.parse::<usize>().ok()?.checked_sub(1)?)?;
    let weekday = days[(since.as_secs() / 86_400 % 7) as usize];
    Some(Timestamp {
        time: format!("{weekday}, {day} {month} {year} {} GMT", clock.get(..8)?),
        timesecs: since.as_secs(),
        timemillisecs: Some(since.as_millis() as u64),
    })
}

/// A test as seen from the local side.
struct Test<'a> {
    run: &'a RunDocument,
    udp: bool,
    /// Local senders first, as iperf3 numbers them.
    streams: Vec<NumberedStream<'a>>,
    /// End of the omitted part, and time at which the senders stop, nanoseconds.
    omit_ns: u64,
    stop_ns: u64,
    /// Whether the remote end's totals are already without the omitted part.
    remote_after_omit: bool,
    /// The remote end's results, if it omitted the same part.
    remote_results: Option<Results>,
    /// Report times, nanoseconds after the start.
    report_times: Vec<u64>,
}

/// A stream with its number in iperf3's output.
struct NumberedStream<'a> {
    number: u32,
    stream: &'a Stream,
    /// Local counters at each report time.
    at: Vec<StreamReading>,
    /// Local counters at the end of the omitted part, if there is one.
    cut: Option<StreamReading>,
}

/// Local counters of a stream at one time.
#[derive(Debug, Clone, Default)]
struct StreamReading {
    t_ns: u64,
    bytes: u64,
    packets: u64,
    tcp: Option<Box<TcpInfo>>,
}

impl StreamReading {
    /// Converts a sample; one without a packet count keeps the previous `packets`.
    fn of(sample: &Sample, packets: u64) -> Self {
        let packets = sample.packets.unwrap_or(packets);
        Self { t_ns: sample.t_ns, bytes: sample.bytes, packets, tcp: sample.tcp.clone() }
    }

    /// Retransmits since the start; `None` if the sample lacks `tcp_info`.
    fn retransmits(&self) -> Option<i64> {
        let at_start = (self.t_ns == 0).then_some(0);
        self.tcp.as_ref().map(|tcp| i64::from(tcp.total_retrans)).or(at_start)
    }
}

impl NumberedStream<'_> {
    fn sends(&self) -> bool {
        self.stream.direction == Direction::Upload
    }

    fn local(&self) -> Option<&StreamEnd> {
        if self.sends() { self.stream.sender.as_ref() } else { self.stream.receiver.as_ref() }
    }

    fn connected(&self) -> Option<Connected> {
        let local: std::net::SocketAddr = self.stream.client_addr.parse().ok()?;
        let remote: std::net::SocketAddr = self.stream.server_addr.parse().ok()?;
        Some(Connected {
            socket: self.number,
            local_host: local.ip().to_string(),
            local_port: local.port(),
            remote_host: remote.ip().to_string(),
            remote_port: remote.port(),
        })
    }
}

impl<'a> Test<'a> {
    /// A test with its streams, before any counters.
    fn of_streams(run: &'a RunDocument, p: &Parameters) -> Self {
        let mut streams: Vec<&Stream> = run.streams.iter().collect();
        streams.sort_by_key(|stream| (stream.direction == Direction::Download, stream.id));
        let numbered =
            |(index, stream)| NumberedStream { number: 5 + 2 * index as u32, stream, at: Vec::new(), cut: None };
        let streams = streams.into_iter().enumerate().map(numbered).collect();
        Self {
            run,
            udp: p.protocol == Protocol::Udp,
            streams,
            omit_ns: p.omit_ns,
            stop_ns: 0,
            remote_after_omit: false,
            remote_results: run
                .iperf3
                .as_ref()
                .filter(|_| server_omits(p))
                .and_then(|end| Results::decode(&end.results).ok()),
            report_times: Vec::new(),
        }
    }

    fn new(run: &'a RunDocument, p: &Parameters, options: &ReportOptions, reported: &Reported) -> Self {
        let steady = run.phases.iter().filter(|phase| phase.name == PhaseName::Steady);
        let last_reading = || {
            let ends = run.streams.iter().flat_map(|stream| [&stream.sender, &stream.receiver]).flatten();
            ends.filter_map(|end| end.samples.last()).map(|sample| sample.t_ns).max().unwrap_or(0)
        };
        let stop_ns = steady.map(|phase| phase.end_ns).max().unwrap_or_else(last_reading);
        let omit_ns = p.omit_ns.min(stop_ns);
        let report_times = match reported.due_ns {
            0 => report_times(omit_ns, stop_ns, options.interval_ns),
            due_ns => [due_ns].into_iter().chain((stop_ns > due_ns).then_some(stop_ns)).collect(),
        };
        let remote_after_omit = options.remote_after_omit;
        let mut test = Self { omit_ns, stop_ns, remote_after_omit, ..Self::of_streams(run, p) };
        let cut = report_times.iter().position(|moment| *moment == omit_ns).filter(|_| omit_ns > 0);
        for numbered in &mut test.streams {
            let id = numbered.stream.id;
            numbered.at = readings(numbered.stream, numbered.sends(), &report_times, reported.last(id));
            numbered.cut = reported.cut.get(&id).or_else(|| numbered.at.get(cut?)).cloned();
        }
        test.report_times = report_times;
        test
    }

    fn intervals(&self) -> Vec<Interval> {
        (1..self.report_times.len()).map(|index| self.interval(index)).collect()
    }

    fn interval(&self, index: usize) -> Interval {
        let rows: Vec<Row> = self.streams.iter().filter_map(|numbered| self.during(numbered, index)).collect();
        let sum_of = |sends: bool| {
            let rows: Vec<&Row> = rows.iter().filter(|row| row.sender == sends).collect();
            sum(&rows)
        };
        let (sum, backwards) = match (sum_of(true), sum_of(false)) {
            (Some(sent), received) => (sent, received),
            (None, received) => (received.unwrap_or_default(), None),
        };
        Interval { streams: rows, sum, sum_bidir_reverse: backwards }
    }

    /// Row of a stream since the previous report. Times restart after the omitted part.
    fn during(&self, numbered: &NumberedStream<'_>, index: usize) -> Option<Row> {
        let (from, to) = (numbered.at.get(index.checked_sub(1)?)?, numbered.at.get(index)?);
        let omitted = self.report_times[index] <= self.omit_ns;
        let zero_ns = if omitted { 0 } else { self.omit_ns.min(from.t_ns) };
        let span = (from.t_ns - zero_ns, to.t_ns.saturating_sub(zero_ns));
        let mut row = row(span, to.bytes.saturating_sub(from.bytes), numbered.sends());
        row.socket = Some(numbered.number);
        row.omitted = Some(omitted);
        if self.udp {
            row.packets = Some(to.packets.saturating_sub(from.packets) as i64);
        } else if numbered.sends()
            && let Some(now) = &to.tcp
        {
            row.retransmits = from.retransmits().map(|before| i64::from(now.total_retrans) - before);
            row.snd_cwnd = Some(u64::from(now.snd_cwnd) * u64::from(now.snd_mss_bytes));
            row.rtt = Some(now.rtt_us.into());
            row.rttvar = Some(now.rttvar_us.into());
            row.pmtu = Some(now.pmtu_bytes.into());
        }
        Some(row)
    }

    fn end(&self) -> End {
        let streams: Vec<EndStream> = self.streams.iter().map(|numbered| self.total(numbered)).collect();
        let mut end = End { cpu_utilization_percent: Some(self.cpu()), ..End::default() };
        let both =
            self.streams.iter().any(NumberedStream::sends) && self.streams.iter().any(|numbered| !numbered.sends());
        for sends in [true, false] {
            let mine = || self.streams.iter().zip(&streams).filter(move |(numbered, _)| numbered.sends() == sends);
            let of_way = |pick: fn(&EndStream) -> Option<&Row>| {
                let rows: Option<Vec<&Row>> = mine().map(|(_, stream)| pick(stream)).collect();
                sum(&rows?)
            };
            let (whole, sent, received) = if self.udp {
                let whole = of_way(|stream| stream.udp.as_ref());
                let (sent, received) = whole.as_ref().map(split_datagrams).unzip();
                let received = received.filter(|received| received.lost_packets.is_some());
                let alone = || {
                    let rows: Option<Vec<Row>> = mine().map(|(numbered, _)| self.received_alone(numbered)).collect();
                    sum(&rows?.iter().collect::<Vec<_>>())
                };
                (whole, sent, received.or_else(alone))
            } else {
                (None, of_way(|stream| stream.sender.as_ref()), of_way(|stream| stream.receiver.as_ref()))
            };
            if sent.is_none() && received.is_none() {
                continue;
            }
            if both && !sends {
                (end.sum_bidir_reverse, end.sum_sent_bidir_reverse, end.sum_received_bidir_reverse) =
                    (whole, sent, received);
            } else {
                (end.sum, end.sum_sent, end.sum_received) = (whole, sent, received);
            }
        }
        end.streams = streams;
        if !self.udp {
            let first = |pick: fn(&Stream) -> Option<&StreamEnd>| {
                self.streams.iter().find_map(|numbered| pick(numbered.stream)?.congestion.clone())
            };
            end.sender_tcp_congestion = first(|stream| stream.sender.as_ref());
            end.receiver_tcp_congestion = first(|stream| stream.receiver.as_ref());
        }
        end
    }

    fn total(&self, numbered: &NumberedStream<'_>) -> EndStream {
        let span = (0, self.stop_ns - self.omit_ns);
        let at_cut = numbered.cut.as_ref();
        // Without remote bytes at the end of the omitted part, subtract the local ones.
        let bytes = |end: &StreamEnd, local: bool| {
            let cut = at_cut.filter(|_| local || !self.remote_after_omit);
            end.bytes.saturating_sub(cut.map_or(0, |cut| cut.bytes))
        };
        let row_of = |bytes| Row { socket: Some(numbered.number), ..row(span, bytes, numbered.sends()) };
        let (sender, receiver) = (numbered.stream.sender.as_ref(), numbered.stream.receiver.as_ref());
        if self.udp {
            // What was sent is the base of the whole row: without the sender's report there is none.
            let row = sender.and_then(|end| {
                let sent = end.udp.as_ref()?.sent_packets;
                let arrived = receiver.and_then(|end| end.udp.as_ref());
                // At a receiver it is not known how many packets the part after the omitted one had.
                let local_cut = at_cut.filter(|_| numbered.sends());
                let packets = if self.omit_ns == 0 {
                    Some(sent)
                } else {
                    local_cut.map(|cut| sent.saturating_sub(cut.packets))
                };
                let packets = packets.map(|packets| packets as i64);
                let counted = arrived.filter(|_| self.omit_ns == 0);
                let lost = counted
                    .map(|udp| sent as i64 - udp.delivered_packets as i64)
                    .or_else(|| self.remote_losses(numbered).filter(|lost| Some(*lost) <= packets));
                Some(Row {
                    jitter_ms: arrived.and_then(jitter_ms),
                    lost_packets: lost,
                    packets,
                    lost_percent: lost.zip(packets).map(|(lost, packets)| percent(lost, packets)),
                    out_of_order: counted.and_then(|udp| udp.reordered_packets).map(|count| count as i64),
                    ..row_of(bytes(end, numbered.sends()))
                })
            });
            return EndStream { udp: row, ..EndStream::default() };
        }
        let sent = sender.map(|end| {
            let mut row = row_of(bytes(end, numbered.sends()));
            let omitted = if self.omit_ns == 0 || (self.remote_after_omit && !numbered.sends()) {
                Some(0)
            } else {
                at_cut.filter(|_| numbered.sends()).and_then(StreamReading::retransmits)
            };
            row.retransmits = end.retransmits.zip(omitted).map(|(all, omitted)| all as i64 - omitted);
            let tcp = end.samples.iter().filter(|sample| sample.t_ns > self.omit_ns).filter_map(|s| s.tcp.as_deref());
            let readings: Vec<_> = tcp.filter(|tcp| tcp.rtt_us > 0).collect();
            if !readings.is_empty() {
                let rtts = || readings.iter().map(|tcp| u64::from(tcp.rtt_us));
                row.max_snd_cwnd =
                    readings.iter().map(|tcp| u64::from(tcp.snd_cwnd) * u64::from(tcp.snd_mss_bytes)).max();
                row.max_rtt = rtts().max();
                row.min_rtt = rtts().min();
                row.mean_rtt = Some(rtts().sum::<u64>() / readings.len() as u64);
            }
            row
        });
        EndStream { sender: sent, receiver: receiver.map(|end| row_of(bytes(end, !numbered.sends()))), udp: None }
    }

    /// Losses of a local sender's stream after the omitted part, as the receiver counted them. Releases before 3.14 do not
    /// report those of the omitted part.
    fn remote_losses(&self, numbered: &NumberedStream<'_>) -> Option<i64> {
        let theirs = self.remote_results.as_ref().filter(|_| numbered.sends())?;
        let index = self.streams.iter().position(|other| other.number == numbered.number)?;
        let said = theirs.stream(identity::number(index))?;
        Some(said.errors? - said.omitted_errors?).filter(|lost| *lost >= 0)
    }

    /// What a receiver counted of a UDP stream whose sender did not report, or the local receiver if the losses of the
    /// measured part are unknown: its datagrams, but not how many were sent.
    fn received_alone(&self, numbered: &NumberedStream<'_>) -> Option<Row> {
        let known = numbered.stream.sender.is_none() || !numbered.sends();
        let receiver = numbered.stream.receiver.as_ref().filter(|_| known)?;
        let bytes = receiver.bytes.saturating_sub(numbered.cut.as_ref().map_or(0, |cut| cut.bytes));
        let udp = receiver.udp.as_ref()?;
        Some(Row { jitter_ms: jitter_ms(udp), ..row((0, self.stop_ns - self.omit_ns), bytes, false) })
    }

    fn cpu(&self) -> Cpu {
        let span_ns = self.stop_ns.max(1) as f64;
        let share = |local: bool, pick: fn(&StreamEnd) -> Option<u64>| {
            let ends = self.streams.iter().map(|numbered| {
                let end = if numbered.sends() == local { &numbered.stream.sender } else { &numbered.stream.receiver };
                pick(end.as_ref()?)
            });
            Some(ends.sum::<Option<u64>>()? as f64 / span_ns * 100.0)
        };
        let reported = self.run.iperf3.as_ref().map(|end| &end.results);
        let remote = |key: &str, pick: fn(&StreamEnd) -> Option<u64>| {
            reported.and_then(|results| results.get(key)?.as_f64()).or_else(|| share(false, pick))
        };
        Cpu {
            host_total: share(true, |end| end.thread_cpu_ns),
            host_user: share(true, |end| end.thread_user_ns),
            host_system: share(true, |end| end.thread_system_ns),
            remote_total: remote("cpu_util_total", |end| end.thread_cpu_ns),
            remote_user: remote("cpu_util_user", |end| end.thread_user_ns),
            remote_system: remote("cpu_util_system", |end| end.thread_system_ns),
        }
    }
}

/// Report times from the start to the end.
fn report_times(omit_ns: u64, stop_ns: u64, interval_ns: u64) -> Vec<u64> {
    let moments = ReportTimes::new(omit_ns, Some(stop_ns), interval_ns);
    let mut report_times: Vec<u64> = std::iter::successors(Some(0), |at| moments.after(*at)).collect();
    if report_times.last() < Some(&stop_ns) {
        report_times.push(stop_ns);
    }
    report_times
}

/// Local counters at each report time, from the nearest sample; `first` at the first one, the totals at the
/// end.
fn readings(stream: &Stream, sends: bool, report_times: &[u64], first: StreamReading) -> Vec<StreamReading> {
    let Some(end) = (if sends { stream.sender.as_ref() } else { stream.receiver.as_ref() }) else {
        return Vec::new();
    };
    let mut last = first.clone();
    let mut at = vec![first];
    let mut samples = end.samples.iter().peekable();
    for (index, &moment) in report_times.iter().enumerate().skip(1) {
        while let Some(sample) = samples.peek() {
            // Stop at the first sample that is farther from this time than the previous one.
            if sample.t_ns.saturating_sub(moment) > moment.saturating_sub(last.t_ns) {
                break;
            }
            last = StreamReading::of(sample, last.packets);
            samples.next();
        }
        if index + 1 == report_times.len() {
            let udp = end.udp.as_ref();
            let packets = udp.map_or(0, |udp| if sends { udp.sent_packets } else { udp.delivered_packets });
            let tcp = end.samples.iter().rev().find_map(|sample| sample.tcp.clone());
            last = StreamReading { t_ns: moment, bytes: end.bytes, packets, tcp };
        }
        at.push(last.clone());
    }
    at
}

fn jitter_ms(udp: &UdpEnd) -> Option<f64> {
    udp.jitter_ns.map(|ns| ns as f64 / 1e6)
}

fn row((from_ns, to_ns): (u64, u64), bytes: u64, sender: bool) -> Row {
    let span = seconds(to_ns.saturating_sub(from_ns));
    Row {
        start: seconds(from_ns),
        end: seconds(to_ns),
        seconds: span,
        bytes,
        bits_per_second: if span > 0.0 { bytes as f64 * 8.0 / span } else { 0.0 },
        sender,
        ..Row::default()
    }
}

/// Sum of the rows of one direction and one interval. A count that a row lacks is not summed.
fn sum(rows: &[&Row]) -> Option<Row> {
    let first = *rows.first()?;
    let total = |pick: fn(&Row) -> Option<i64>| rows.iter().map(|row| pick(row)).sum::<Option<i64>>();
    let (lost, packets) = (total(|row| row.lost_packets), total(|row| row.packets));
    let jitters: Option<Vec<f64>> = rows.iter().map(|row| row.jitter_ms).collect();
    let bytes = rows.iter().map(|row| row.bytes).sum::<u64>();
    Some(Row {
        start: first.start,
        end: first.end,
        seconds: first.seconds,
        bytes,
        bits_per_second: if first.seconds > 0.0 { bytes as f64 * 8.0 / first.seconds } else { 0.0 },
        retransmits: total(|row| row.retransmits),
        jitter_ms: jitters.map(|jitters| jitters.iter().sum::<f64>() / jitters.len() as f64),
        lost_packets: lost,
        packets,
        lost_percent: lost.zip(packets).map(|(lost, packets)| percent(lost, packets)),
        omitted: first.omitted,
        sender: first.sender,
        ..Row::default()
    })
}

/// Splits the row of a UDP stream into sent and received.
fn split_datagrams(whole: &Row) -> (Row, Row) {
    let sent =
        Row { jitter_ms: Some(0.0), lost_packets: Some(0), lost_percent: Some(0.0), sender: true, ..whole.clone() };
    let packets = whole.packets.unwrap_or(0);
    let arrived = (packets - whole.lost_packets.unwrap_or(0)).max(0).unsigned_abs();
    // All datagrams have the same length.
    let bytes = whole.bytes.checked_div(packets.unsigned_abs()).unwrap_or(0) * arrived;
    let bits_per_second = if whole.seconds > 0.0 { bytes as f64 * 8.0 / whole.seconds } else { 0.0 };
    (sent, Row { bytes, bits_per_second, sender: false, ..whole.clone() })
}

fn percent(part: i64, whole: i64) -> f64 {
    if whole > 0 { part as f64 / whole as f64 * 100.0 } else { 0.0 }
}

#[cfg(test)]
mod tests;
