//! Text output of iperf3's client, line by line, so that scripts which parse it keep working.

use std::fmt::Write as _;

use crate::document::{Document, Row};
use crate::quantity::{Format, rate, transfer};

/// Style of the text output.
#[derive(Debug, Clone, Copy, Default)]
pub struct Style {
    /// Unit of rates (`-f`).
    pub format: Format,
    /// Verbose output (`-V`).
    pub verbose: bool,
}

const SEPARATOR: &str = "- - - - - - - - - - - - - - - - - - - - - - - - -";

/// The complete report of a test.
pub fn client(document: &Document, style: Style) -> String {
    let has_report = document.error.is_none() || !document.intervals.is_empty();
    let middle = || intervals(document, style, true) + &end(document, style);
    head(document, style) + &if has_report { middle() } else { tail(document) }
}

/// The lines before the first interval.
pub fn head(document: &Document, style: Style) -> String {
    let mut out = String::new();
    TextReport::of(document, style).head(&mut out);
    titled(document, out)
}

/// The intervals of the document; `first` adds the heading before the first interval of the test.
pub fn intervals(document: &Document, style: Style, first: bool) -> String {
    let mut out = String::new();
    TextReport::of(document, style).intervals(&mut out, first);
    titled(document, out)
}

/// The totals, and the lines after them.
pub fn end(document: &Document, style: Style) -> String {
    let mut out = String::new();
    TextReport::of(document, style).totals(&mut out);
    titled(document, out) + &tail(document)
}

fn tail(document: &Document) -> String {
    let mut out = String::new();
    TextReport::of(document, Style::default()).tail(&mut out);
    titled(document, out)
}

/// Prefixes each line with `--title`.
fn titled(document: &Document, out: String) -> String {
    match &document.title {
        Some(title) => out.lines().flat_map(|line| [title, ":  ", line, "\n"]).collect(),
        None => out,
    }
}

fn is_udp(document: &Document) -> bool {
    document.start.test_start.as_ref().is_some_and(|test| test.protocol == "UDP")
}

/// Whether both hosts send.
fn is_bidir(document: &Document) -> bool {
    document.start.test_start.as_ref().is_some_and(|test| test.bidir == Some(1)) || {
        let senders = |sender| document.intervals.iter().flat_map(|i| &i.streams).any(|row| row.sender == sender);
        senders(true) && senders(false)
    }
}

struct TextReport<'a> {
    document: &'a Document,
    style: Style,
    udp: bool,
    bidir: bool,
}

impl<'a> TextReport<'a> {
    fn of(document: &'a Document, style: Style) -> Self {
        Self { document, style, udp: is_udp(document), bidir: is_bidir(document) }
    }

    fn head(&self, out: &mut String) {
        let start = &self.document.start;
        if self.style.verbose {
            let _ = writeln!(out, "{}\n{}", start.version, start.system_info);
            if let Some(mss) = start.tcp_mss_default {
                let _ = writeln!(out, "Control connection MSS {mss}");
            }
            if let Some(time) = &start.timestamp {
                let _ = writeln!(out, "Time: {}", time.time);
            }
        }
        if let Some(to) = &start.connecting_to {
            let _ = writeln!(out, "Connecting to host {}, port {}", to.host, to.port);
        }
        let reverse = start.test_start.as_ref().is_some_and(|test| test.reverse == 1);
        if reverse && let Some(to) = &start.connecting_to {
            let _ = writeln!(out, "Reverse mode, remote host {} is sending", to.host);
        }
        if self.style.verbose {
            self.write_parameters(out);
        }
        for stream in &start.connected {
            let _ = writeln!(
                out,
                "[{:3}] local {} port {} connected to {} port {}",
                stream.socket, stream.local_host, stream.local_port, stream.remote_host, stream.remote_port
            );
        }
        if self.style.verbose
            && let Some(test) = &start.test_start
        {
            let bound = match (test.bytes, test.blocks) {
                (0, 0) => format!("{} second test", test.duration),
                (0, blocks) => format!("{blocks} blocks to send"),
                (bytes, _) => format!("{bytes} bytes to send"),
            };
            let _ = writeln!(
                out,
                "Starting Test: protocol: {}, {} streams, {} byte blocks, omitting {} seconds, {bound}, tos {}",
                test.protocol, test.num_streams, test.blksize, test.omit, test.tos
            );
        }
    }

    fn write_parameters(&self, out: &mut String) {
        let start = &self.document.start;
        if let Some(cookie) = &start.cookie {
            let _ = writeln!(out, "      Cookie: {cookie}");
        }
        match (start.tcp_mss, start.tcp_mss_default) {
            (Some(mss), _) => {
                let _ = writeln!(out, "      TCP MSS: {mss}");
            }
            (None, Some(mss)) if !self.udp => {
                let _ = writeln!(out, "      TCP MSS: {mss} (default)");
            }
            _ => {}
        }
        if let Some(rate @ 1..) = start.target_bitrate {
            let _ = writeln!(out, "      Target Bitrate: {rate}");
        }
    }

    fn intervals(&self, out: &mut String, first: bool) {
        if first {
            self.heading(out, true);
        }
        for (index, interval) in self.document.intervals.iter().enumerate() {
            let many = interval.streams.len() > if self.bidir { 2 } else { 1 };
            if many && !(first && index == 0) {
                let _ = writeln!(out, "{SEPARATOR}");
            }
            // A bidirectional test has one sum per direction, after the streams of that direction.
            for sender in [true, false] {
                let rows: Vec<&Row> = interval.streams.iter().filter(|row| row.sender == sender).collect();
                for row in &rows {
                    self.during(out, row);
                }
                let sum =
                    if self.bidir && !sender { interval.sum_bidir_reverse.as_ref() } else { Some(&interval.sum) };
                if rows.len() > 1
                    && let Some(sum) = sum
                {
                    self.during(out, sum);
                }
            }
        }
    }

    fn heading(&self, out: &mut String, during: bool) {
        let id = if self.bidir { "[ ID][Role]" } else { "[ ID]" };
        let sends = self.document.intervals.iter().flat_map(|interval| &interval.streams).any(|row| row.sender);
        let retransmits = self.document.end.sum_sent.as_ref().is_some_and(|sum| sum.retransmits.is_some());
        let rest = match (self.udp, during) {
            (false, true) if sends => "         Retr  Cwnd",
            (false, false) if retransmits => "         Retr",
            (false, _) => "",
            // Only receivers report the losses of an interval, and not all of them do.
            (true, true) if !self.jitter() => "         Total Datagrams",
            (true, _) => "         Jitter    Lost/Total Datagrams",
        };
        let _ = writeln!(out, "{id} Interval           Transfer     Bitrate{rest}");
    }

    /// Whether the intervals have jitter and losses.
    fn jitter(&self) -> bool {
        self.document.intervals.iter().flat_map(|interval| &interval.streams).any(|row| row.jitter_ms.is_some())
    }

    /// Writes the common part of a line: `[  5]   0.00-1.00   sec  1.95 GBytes  16.8 Gbits/sec`.
    fn common(&self, out: &mut String, row: &Row) {
        let number = row.socket.map_or_else(|| "SUM".to_owned(), |number| format!("{number:3}"));
        let role = match (self.bidir, row.sender) {
            (false, _) => "",
            (true, true) => "[TX-C]",
            (true, false) => "[RX-C]",
        };
        let _ = write!(
            out,
            "[{number}]{role} {:6.2}-{:<6.2} sec  {}  {}",
            row.start,
            row.end,
            transfer(row.bytes),
            rate(row.bits_per_second, self.style.format)
        );
    }

    fn during(&self, out: &mut String, row: &Row) {
        self.common(out, row);
        let omitted = if row.omitted == Some(true) { "(omitted)" } else { "" };
        let _ = match row {
            Row { retransmits: Some(count), snd_cwnd: Some(cwnd), .. } => {
                writeln!(out, "  {count:3}   {}       {omitted}", transfer(*cwnd))
            }
            Row { retransmits: Some(count), .. } => writeln!(out, "  {count:3}             {omitted}"),
            Row { packets: Some(packets), jitter_ms: None, .. } => {
                let gap = if self.jitter() { "            " } else { "  " };
                writeln!(out, "{gap}{packets}  {omitted}")
            }
            Row { packets: Some(_), .. } => writeln!(out, "  {}  {omitted}", datagrams(row)),
            _ => writeln!(out, "                  {omitted}"),
        };
    }

    fn totals(&self, out: &mut String) {
        let _ = writeln!(out, "{SEPARATOR}");
        if self.style.verbose {
            let _ = writeln!(out, "Test Complete. Summary Results:");
        }
        self.heading(out, false);
        let end = &self.document.end;
        // The direction of a test with one; without rows of its streams, that of the command line.
        let first = end.streams.iter().find_map(|stream| {
            stream.udp.as_ref().or(stream.sender.as_ref()).or(stream.receiver.as_ref()).map(|row| row.sender)
        });
        let reverse = || self.document.start.test_start.as_ref().is_some_and(|test| test.reverse == 1);
        let sends = first.unwrap_or_else(|| !reverse());
        for sender in [true, false].into_iter().filter(|sender| self.bidir || *sender == sends) {
            let streams: Vec<_> = end
                .streams
                .iter()
                .filter(|stream| {
                    let row = stream.udp.as_ref().or(stream.sender.as_ref()).or(stream.receiver.as_ref());
                    row.is_some_and(|row| row.sender == sender)
                })
                .collect();
            for stream in &streams {
                if let Some(udp) = &stream.udp {
                    self.datagram_totals(out, udp);
                }
                if let Some(row) = &stream.sender {
                    self.total(out, row, "sender");
                }
                if let Some(row) = &stream.receiver {
                    self.total(out, row, "receiver");
                }
            }
            let backwards = self.bidir && !sender;
            let (sent, received) = if backwards {
                (&end.sum_sent_bidir_reverse, &end.sum_received_bidir_reverse)
            } else {
                (&end.sum_sent, &end.sum_received)
            };
            // Without the sender's report, or the losses, a UDP test has only what all receivers counted.
            let unknown = match streams.as_slice() {
                [] => sent.is_none(),
                all => {
                    self.udp
                        && all.iter().all(|stream| stream.udp.as_ref().is_none_or(|row| row.lost_packets.is_none()))
                }
            };
            let alone = unknown && received.is_some();
            if streams.len() > 1 || alone {
                let sent = sent.as_ref().filter(|_| streams.len() > 1);
                for (sum, role) in [(sent, "sender"), (received.as_ref(), "receiver")] {
                    // In sums, `sender` tells which side counted; in a line it is the direction.
                    let Some(sum) = sum.map(|sum| Row { sender, ..sum.clone() }) else { continue };
                    if self.udp { self.datagram_total(out, &sum, role) } else { self.total(out, &sum, role) }
                }
            }
        }
        if self.style.verbose {
            self.write_cpu(out);
        }
    }

    fn total(&self, out: &mut String, row: &Row, role: &str) {
        self.common(out, row);
        let _ = match row.retransmits {
            Some(count) => writeln!(out, "  {count:3}             {role}"),
            None => writeln!(out, "                  {role}"),
        };
    }

    /// Writes the single row of a UDP stream as two lines: sent and received.
    fn datagram_totals(&self, out: &mut String, row: &Row) {
        let sums = (&self.document.end.sum_sent, &self.document.end.sum_received);
        let sent = Row { jitter_ms: Some(0.0), lost_packets: Some(0), lost_percent: Some(0.0), ..row.clone() };
        self.datagram_total(out, &sent, "sender");
        let (Some(lost), Some(packets)) = (row.lost_packets, row.packets) else { return };
        // All datagrams have the same length.
        let arrived =
            row.bytes.checked_div(packets.unsigned_abs()).unwrap_or(0) * (packets - lost).max(0).unsigned_abs();
        let seconds = match sums {
            (Some(_), Some(received)) => received.seconds,
            _ => row.seconds,
        };
        let received =
            Row { bytes: arrived, bits_per_second: per_second(arrived, seconds), end: seconds, ..row.clone() };
        self.datagram_total(out, &received, "receiver");
    }

    fn datagram_total(&self, out: &mut String, row: &Row, role: &str) {
        self.common(out, row);
        let _ = writeln!(out, "  {}  {role}", datagrams(row));
    }

    fn write_cpu(&self, out: &mut String) {
        let end = &self.document.end;
        if let Some(cpu) = &end.cpu_utilization_percent {
            let reverse = self.document.start.test_start.as_ref().is_some_and(|test| test.reverse == 1);
            let (here, there) = match (self.bidir, reverse) {
                (true, _) => ("sender/receiver", "sender/receiver"),
                (false, true) => ("receiver", "sender"),
                (false, false) => ("sender", "receiver"),
            };
            let shares = |[total, user, system]: [Option<f64>; 3]| match (total, user, system) {
                (Some(total), Some(user), Some(system)) => format!("{total:.1}% ({user:.1}%u/{system:.1}%s)"),
                _ => "unknown".to_owned(),
            };
            let local = shares([cpu.host_total, cpu.host_user, cpu.host_system]);
            let remote = shares([cpu.remote_total, cpu.remote_user, cpu.remote_system]);
            let _ = writeln!(out, "CPU Utilization: local/{here} {local}, remote/{there} {remote}");
        }
        for (name, value) in [("snd", &end.sender_tcp_congestion), ("rcv", &end.receiver_tcp_congestion)] {
            if let Some(value) = value {
                let _ = writeln!(out, "{name}_tcp_congestion {value}");
            }
        }
    }

    fn tail(&self, out: &mut String) {
        if let Some(text) = &self.document.server_output_text {
            let _ = writeln!(out, "\nServer output:\n{text}");
        }
        if let Some(value) = &self.document.server_output_json {
            let _ = writeln!(out, "\nServer JSON output:\n{value:#}");
        }
        if self.document.error.is_none() {
            let _ = writeln!(out, "\niperf Done.");
        }
    }
}

/// Formats jitter and losses, such as `0.043 ms  0/77 (0%)`.
fn datagrams(row: &Row) -> String {
    let jitter = row.jitter_ms.map_or_else(|| "unknown".to_owned(), |jitter| format!("{jitter:.3} ms"));
    match (row.lost_packets, row.packets, row.lost_percent) {
        (Some(lost), Some(packets), Some(percent)) => {
            format!("{jitter}  {lost}/{packets} ({}%)", two_digits(percent))
        }
        _ => format!("{jitter}  lost: unknown"),
    }
}

/// Formats a percentage like `printf` with `%.2g`.
fn two_digits(value: f64) -> String {
    if value <= 0.0 {
        return "0".to_owned();
    }
    let exponent = value.log10().floor() as i32;
    let text = format!("{value:.1e}");
    // Rounding may reach the next power of ten.
    let exponent = text.split_once('e').and_then(|(_, power)| power.parse().ok()).unwrap_or(exponent);
    if !(-4..2).contains(&exponent) {
        let (digits, _) = text.split_once('e').unwrap_or((&text, ""));
        let digits = digits.trim_end_matches('0').trim_end_matches('.');
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", exponent.abs());
    }
    let places = usize::try_from(1 - exponent).unwrap_or(0);
    let text = format!("{value:.places$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

fn per_second(bytes: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 }
}

#[cfg(test)]
mod tests;
