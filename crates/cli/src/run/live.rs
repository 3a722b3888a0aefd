//! Interval lines printed during a test.

use std::fmt::Write as _;

use landspeed_flow::client::{DirectionProgress, Progress, QueuePosition, Request, RunEvent, TcpState, UdpState};
use landspeed_model::{Direction, Parameters, PhaseName, Protocol, RunDocument, Stream};
use landspeed_units::{BitRate, Bytes, Nanos};

use super::readings::{Grid, MIN_INTERVAL_NS, direction_progress, reading_ns};
use super::sparks::Sparks;

/// Default time between lines, nanoseconds.
const LINE_INTERVAL_NS: u64 = 1_000_000_000;
/// Age from which the server's last reading is overdue, in addition to the interval, nanoseconds.
const OVERDUE_NS: u64 = 1_000_000_000;
/// Time without an ACK that is worth printing, milliseconds.
const SILENT_MS: u64 = 1000;

/// Interval lines of one run.
pub struct View {
    silent: bool,
    grid: Grid,
    /// Intervals in which no reading of the server arrived.
    overdue: Grid,
    parameters: Parameters,
    last: Progress,
    newest: Progress,
    heading_printed: bool,
    /// Line below the interval lines; `None` where standard output is not a terminal.
    sparks: Option<Sparks>,
    /// Position in the server's queue that was printed last.
    queued: Option<u32>,
}

impl View {
    /// Creates a view that prints nothing.
    pub fn silent() -> Self {
        Self::with(Parameters::default(), true)
    }

    /// Creates a view that prints a line per second.
    pub fn new(request: &Request) -> Self {
        let sparks = Sparks::on_terminal(&request.parameters);
        Self { sparks, ..Self::with(request.parameters.clone(), false) }
    }

    fn with(parameters: Parameters, silent: bool) -> Self {
        let (last, newest) = (Progress::default(), Progress::default());
        let grid = Grid::new(LINE_INTERVAL_NS);
        Self {
            silent,
            grid,
            overdue: grid,
            parameters,
            last,
            newest,
            heading_printed: false,
            sparks: None,
            queued: None,
        }
    }

    /// Sets the interval, unless it is shorter than [`MIN_INTERVAL_NS`].
    pub fn every(mut self, interval: Option<Nanos>) -> Self {
        if let Some(interval) = interval.filter(|interval| interval.get() >= MIN_INTERVAL_NS) {
            self.grid = Grid::new(interval.get());
            self.overdue = self.grid;
        }
        self
    }

    /// Processes an event and prints the completed interval's line.
    pub fn show(&mut self, event: &RunEvent<'_>) {
        let text = self.lines(event);
        let Some(sparks) = &mut self.sparks else {
            out!("{text}");
            return;
        };
        sparks.update(event);
        if !text.is_empty() {
            sparks.clear();
            out!("{text}");
        }
        sparks.draw();
    }

    /// Prints the last interval, which ends with the steady phase.
    pub fn finish(mut self, document: &RunDocument) {
        if let Some(mut sparks) = self.sparks.take() {
            sparks.clear();
        }
        out!("{}", self.last_lines(document));
    }

    /// Returns the text that [`View::show`] prints.
    pub fn lines(&mut self, event: &RunEvent<'_>) -> String {
        match event {
            RunEvent::Accepted { parameters, .. } => self.parameters = (*parameters).clone(),
            RunEvent::Progress(progress) if !self.silent => {
                self.newest = *progress;
                let reading_ns = reading_ns(&self.parameters, progress);
                if self.grid.passes(reading_ns) {
                    return self.until(*progress);
                }
                let overdue_ns = reading_ns.saturating_add(self.grid.every_ns).saturating_add(OVERDUE_NS);
                // The first of them may cover several intervals.
                let printed_ns = self.overdue.passed_ns.max(self.grid.passed_ns);
                if progress.t_ns >= overdue_ns && self.overdue.passes(progress.t_ns) {
                    return self.without_reading(progress, reading_ns, printed_ns);
                }
            }
            RunEvent::Queued(at) if !self.silent => return self.queued(*at),
            RunEvent::Queued(_)
            | RunEvent::Progress(_)
            | RunEvent::Mtu(_)
            | RunEvent::Opened(_)
            | RunEvent::Readings { .. } => {}
        }
        String::new()
    }

    /// Returns a line about the position in the server's queue, when it has changed.
    fn queued(&mut self, at: QueuePosition) -> String {
        if self.queued.replace(at.position) == Some(at.position) {
            return String::new();
        }
        let wait = at
            .wait_ns
            .map_or_else(|| "the wait is unknown".to_owned(), |ns| format!("about {} s", ns.div_ceil(1_000_000_000)));
        format!("  waiting  the server is busy: position {} of {} in its queue, {wait}\n", at.position, at.waiting)
    }

    /// Returns the text that [`View::finish`] prints.
    pub fn last_lines(mut self, document: &RunDocument) -> String {
        if self.silent {
            return String::new();
        }
        let at_end =
            if self.parameters.rr.is_some() { self.newest } else { at_end(document, &self.parameters, &self.last) };
        let end_ns = reading_ns(&self.parameters, &at_end);
        let mut text = String::new();
        // A remainder of up to a tenth of an interval after the last line gets no separate line; nor do intervals whose
        // missing report was printed.
        let last_ns = reading_ns(&self.parameters, &self.last);
        if self.overdue.passed_ns <= last_ns.saturating_add(self.grid.every_ns)
            && end_ns > last_ns.saturating_add(self.grid.every_ns / 10)
        {
            text = self.until(at_end);
        }
        if self.heading_printed {
            text.push('\n');
        }
        text
    }

    /// Returns the lines of the intervals since `printed_ns` whose reading of the server did not arrive: their goodput is
    /// unknown, unless no ACK arrived in them either.
    fn without_reading(&mut self, now: &Progress, reading_ns: u64, printed_ns: u64) -> String {
        let seconds = |ns: u64| format!("{:.1} s", ns as f64 / 1e9);
        let silent = now.upload.tcp.map_or(0, |tcp| tcp.silent_ms);
        let silent_from_ns = (silent >= SILENT_MS).then(|| now.t_ns.saturating_sub(silent * 1_000_000));
        let ack = silent_from_ns.map(|from_ns| format!("no ACK since {}, ", seconds(from_ns))).unwrap_or_default();
        let mut text = if self.heading_printed { String::new() } else { header(&self.parameters) + "\n" };
        self.heading_printed = true;
        let every_ns = self.grid.every_ns;
        for from_ns in (printed_ns..self.overdue.passed_ns).step_by(every_ns as usize) {
            let is_silent = silent_from_ns.is_some_and(|silent_from_ns| silent_from_ns <= from_ns);
            let (span, rate) = (interval((from_ns, from_ns + every_ns)), if is_silent { "0 b/s" } else { "-" });
            let _ = writeln!(text, "{span} {rate:>12}  {ack}no report from the server since {}", seconds(reading_ns));
        }
        text
    }

    /// Returns the lines of the interval that ends with `now`, preceded by the heading if it is the first.
    fn until(&mut self, now: Progress) -> String {
        let mut lines = Vec::new();
        if !self.heading_printed {
            self.heading_printed = true;
            lines.push(header(&self.parameters));
        }
        let span = (reading_ns(&self.parameters, &self.last), reading_ns(&self.parameters, &now));
        if self.parameters.rr.is_some() {
            lines.push(transactions(&self.last, &now, span));
        } else {
            let parts = self.parameters.direction.parts();
            for direction in parts {
                let (before, now) =
                    (direction_progress(&self.last, *direction), direction_progress(&now, *direction));
                let line = line(before, now, self.parameters.protocol);
                lines.push(match direction {
                    _ if parts.len() == 1 => line,
                    Direction::Download => format!("{line}  download"),
                    _ => format!("{line}  upload"),
                });
            }
        }
        self.last = now;
        lines.into_iter().map(|line| line + "\n").collect()
    }
}

fn header(parameters: &Parameters) -> String {
    let interval = format!("{:>15}", "interval");
    match parameters.protocol {
        Protocol::Tcp => format!("{interval} {:>12} {:>12} {:>10} {:>10}", "goodput", "retransmits", "RTT", "cwnd"),
        Protocol::Udp => format!("{interval} {:>12} {:>24} {:>10}", "goodput", "lost", "jitter"),
        Protocol::TcpRr | Protocol::UdpRr => format!("{interval} {:>16} {:>13}", "transactions/s", "mean latency"),
    }
}

/// Formats an interval: `1.0-2.0 s`.
fn interval((from_ns, to_ns): (u64, u64)) -> String {
    format!("{:>15}", format!("{:.1}-{:.1} s", from_ns as f64 / 1e9, to_ns as f64 / 1e9))
}

fn transactions(before: &Progress, now: &Progress, span: (u64, u64)) -> String {
    let count = now.transactions.saturating_sub(before.transactions);
    let rate = count as f64 * 1e9 / span.1.saturating_sub(span.0).max(1) as f64;
    let mean = now.latency_sum_ns.saturating_sub(before.latency_sum_ns).checked_div(count);
    let mean = mean.map_or("-".to_owned(), |ns| Nanos::new(ns).to_string());
    format!("{} {rate:>16.0} {mean:>13}", interval(span))
}

fn line(before: &DirectionProgress, now: &DirectionProgress, protocol: Protocol) -> String {
    let span_ns = now.t_ns.saturating_sub(before.t_ns);
    let bytes = Bytes::new(now.bytes.saturating_sub(before.bytes));
    let rate = BitRate::mean(bytes, Nanos::new(span_ns)).unwrap_or(BitRate::ZERO);
    let line = format!("{} {rate:>12}", interval((before.t_ns, now.t_ns)));
    if protocol == Protocol::Udp {
        let Some(udp) = now.udp else { return format!("{line} {:>24} {:>10}", "-", "-") };
        let was = before.udp.unwrap_or_default();
        let lost = losses(udp.delivered.saturating_sub(was.delivered), i128::from(udp.lost) - i128::from(was.lost));
        let jitter = udp.jitter_ns.map_or("-".to_owned(), |ns| Nanos::new(ns).to_string());
        return format!("{line} {lost:>24} {jitter:>10}");
    }
    let Some(tcp) = now.tcp else { return format!("{line} {:>12} {:>10} {:>10}", "-", "-", "-") };
    let retransmits = tcp.retransmits.saturating_sub(before.tcp.map_or(0, |was| was.retransmits));
    format!(
        "{line} {retransmits:>12} {:>10} {:>10}",
        Nanos::from_micros(tcp.rtt_us).to_string(),
        Bytes::new(tcp.cwnd_bytes).to_string()
    )
}

/// Formats the losses of an interval: `3/100 (3 %)`. `lost` is negative if packets that were counted as lost in the
/// previous interval arrived late.
fn losses(delivered: u64, lost: i128) -> String {
    if lost < 0 {
        return format!("0/{delivered} (0 %), {} late", -lost);
    }
    let sent = i128::from(delivered) + lost;
    let share = if sent > 0 { lost as f64 / sent as f64 } else { 0.0 };
    format!("{lost}/{sent} ({})", crate::text::percent(share))
}

/// Returns the state at the end of the steady phase from the document; `last` fills in what is missing there.
fn at_end(document: &RunDocument, parameters: &Parameters, last: &Progress) -> Progress {
    let mut progress = *last;
    for direction in parameters.direction.parts() {
        let streams: Vec<&Stream> = document.streams.iter().filter(|s| s.direction == *direction).collect();
        let direction_progress = end_of(document, &streams, direction_progress(last, *direction));
        match direction {
            Direction::Download => progress.download = direction_progress,
            _ => progress.upload = direction_progress,
        }
    }
    progress
}

fn end_of(document: &RunDocument, streams: &[&Stream], last: &DirectionProgress) -> DirectionProgress {
    // Without the receiver's report, its last reading during the test is the best there is.
    if streams.iter().any(|stream| stream.receiver.is_none()) {
        return *last;
    }
    let steady = || streams.iter().flat_map(|s| &s.intervals).filter(|i| i.phase != PhaseName::Drain);
    let Some(t_ns) = steady().map(|interval| interval.end_ns).max() else { return *last };
    let senders = streams.iter().filter_map(|s| s.sender.as_ref());
    let tcp = senders.filter_map(|end| {
        let until = end.samples.partition_point(|sample| sample.t_ns <= t_ns);
        end.samples[..until].iter().rev().find_map(|sample| sample.tcp.as_deref().cloned())
    });
    let udp = document.udp.as_ref().filter(|_| document.requested.direction != Direction::Both).and_then(|udp| {
        Some(UdpState {
            delivered: udp.delivered_packets?,
            lost: udp.lost_packets?.max(0) as u64,
            jitter_ns: udp.jitter_ns,
        })
    });
    DirectionProgress {
        t_ns,
        bytes: steady().map(|interval| interval.bytes).sum(),
        tcp: TcpState::sum(tcp).or(last.tcp),
        udp: udp.or(last.udp),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_packets_are_not_negative_losses() {
        assert_eq!(losses(997, 3), "3/1000 (0.30 %)");
        assert_eq!(losses(1000, -3), "0/1000 (0 %), 3 late");
        assert_eq!(losses(0, 0), "0/0 (0 %)");
    }

    #[test]
    fn unknown_jitter_is_not_zero() {
        let udp = Some(UdpState { delivered: 1000, lost: 0, jitter_ns: None });
        let now = DirectionProgress { t_ns: 1_000_000_000, bytes: 1 << 20, tcp: None, udp };
        let line = line(&DirectionProgress::default(), &now, Protocol::Udp);
        assert!(line.ends_with(" -"), "{line}");
    }

    #[test]
    fn a_line_has_rate_retransmits_rtt_and_cwnd() {
        let tcp = |retransmits| Some(TcpState { retransmits, rtt_us: 20_400, cwnd_bytes: 3 << 20, silent_ms: 0 });
        let before = DirectionProgress { t_ns: 1_000_000_000, bytes: 1000, tcp: tcp(2), udp: None };
        let now = DirectionProgress { t_ns: 2_000_000_000, bytes: 125_001_000, tcp: tcp(5), udp: None };
        let line = line(&before, &now, Protocol::Tcp);
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words, ["1.0-2.0", "s", "1.00", "Gb/s", "3", "20.4", "ms", "3.00", "MiB"]);
        assert_eq!(line.len(), header(&Parameters::default()).len(), "columns line up");
    }

    #[test]
    fn intervals_without_a_report_say_so() {
        let mut view = View::with(Parameters::default(), false);
        let progress = |t_ms: u64, reading_ms: u64, silent_ms: u64| {
            let tcp = Some(TcpState { silent_ms, ..TcpState::default() });
            let upload = DirectionProgress { t_ns: reading_ms * 1_000_000, bytes: 1 << 20, tcp, udp: None };
            Progress { t_ns: t_ms * 1_000_000, upload, ..Progress::default() }
        };
        let mut text = String::new();
        let last_ms = 2600;
        for t_ms in (0..6000).step_by(20) {
            let now = progress(t_ms, t_ms.min(last_ms), t_ms.saturating_sub(last_ms));
            text += &view.lines(&RunEvent::Progress(now));
        }
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        assert_eq!(lines.len(), 1 + 2 + 3, "{text}");
        assert_eq!(lines[3], "2.0-3.0 s            -  no ACK since 2.6 s, no report from the server since 2.6 s");
        assert_eq!(lines[5], "4.0-5.0 s        0 b/s  no ACK since 2.6 s, no report from the server since 2.6 s");
        // A server that reports late, over a path that carries ACKs: unknown is not zero.
        let text = view.lines(&RunEvent::Progress(progress(6020, last_ms, 0)));
        assert_eq!(text.trim(), "5.0-6.0 s            -  no report from the server since 2.6 s");
    }

    #[test]
    fn extreme_server_counters_do_not_overflow() {
        let most = UdpState { delivered: u64::MAX, lost: u64::MAX, jitter_ns: Some(u64::MAX) };
        let now = DirectionProgress { t_ns: u64::MAX, bytes: u64::MAX, tcp: None, udp: Some(most) };
        assert!(line(&DirectionProgress::default(), &now, Protocol::Udp).contains('/'));
        assert!(line(&now, &DirectionProgress::default(), Protocol::Udp).contains("0.0"));
    }
}
