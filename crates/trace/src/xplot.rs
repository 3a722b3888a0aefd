//! Graphs for xplot, with the file names, commands and colours of tcptrace.
//!
//! Sequence numbers are relative to the first of their direction, as with `tcptrace -zy`, and unwrapped; times
//! have nine decimals. Text is written as it is produced, so memory does not grow with the size of a flow.

use std::collections::HashMap;
use std::fmt::Write as _;

use foldhash::fast::FixedState;
use landspeed_model::{TraceDocument, TraceEndpoint, TraceTransport};
use landspeed_wire::Flags;

use crate::key::{Endpoint, document_endpoint};
use crate::row::{Class, Observer, Row, RowFlow, RowTcp};

/// Number of segments in an average of the throughput, as with tcptrace's `-A10`.
const THROUGHPUT_SEGMENTS: u32 = 10;
/// Amount of text buffered before it is written, bytes.
const CHUNK: usize = 64 << 10;
/// Number of the duplicate ACK that is marked.
const MARKED_DUPLICATE: u32 = 3;

/// A consumer of the text of several files.
pub trait Write {
    /// Appends text to a file.
    fn append(&mut self, name: &str, text: &str);
}

impl<F: FnMut(&str, &str)> Write for F {
    fn append(&mut self, name: &str, text: &str) {
        self(name, text);
    }
}

/// A file being written.
#[derive(Debug, Default)]
struct GraphFile {
    name: String,
    text: String,
}

impl GraphFile {
    fn new(name: String, scale: &str, title: &str, y: &str) -> Self {
        Self { name, text: format!("timeval {scale}\ntitle\n{title}\nxlabel\ntime\nylabel\n{y}\n") }
    }

    fn write_buffered(&mut self, to: &mut impl Write, least: usize) {
        if self.text.len() > least {
            to.append(&self.name, &self.text);
            self.text.clear();
        }
    }
}

/// Time and value of a point, where a line begins.
#[derive(Debug, Clone, Copy)]
struct Point {
    time_ns: u64,
    value: i64,
}

/// One direction's graphs.
#[derive(Debug)]
struct GraphDirection {
    sequence: GraphFile,
    outstanding: GraphFile,
    rtt: GraphFile,
    throughput: GraphFile,
    ack: Option<Point>,
    edge: Option<Point>,
    duplicates: u32,
    owin: Option<Point>,
    rwin: Option<Point>,
    sample: Option<Point>,
    first_ns: Option<u64>,
    last_ns: u64,
    total: u64,
    /// Start of the current average, number of its segments, and their bytes.
    group: (u64, u32, u64),
    mean: [Option<Point>; 2],
}

/// A drawn flow.
#[derive(Debug)]
struct FlowGraphs {
    /// Whether the lower endpoint sent first.
    upward_is_first: bool,
    /// Graphs of the first sender, and of the other.
    directions: [GraphDirection; 2],
}

/// Graphs of a few flows.
#[derive(Debug)]
pub struct Xplot<W> {
    to: W,
    wanted: Vec<(TraceEndpoint, TraceEndpoint)>,
    flows: HashMap<u64, Box<FlowGraphs>, FixedState>,
    /// Highest flow number seen, and (`connections`) number of TCP flows.
    seen: Option<u64>,
    connections: u64,
    drawn: usize,
}

/// Returns tcptrace's name of a host: `a` to `z`, then `aa` and so on.
fn letter_name(mut number: u64) -> String {
    let mut name = Vec::new();
    loop {
        name.push(b'a' + (number % 26) as u8);
        if number < 26 {
            break;
        }
        number = number / 26 - 1;
    }
    name.reverse();
    String::from_utf8_lossy(&name).into_owned()
}

fn seconds(time_ns: u64) -> String {
    format!("{}.{:09}", time_ns / 1_000_000_000, time_ns % 1_000_000_000)
}

impl<W: Write> Xplot<W> {
    /// Creates graphs of the first `max_flows` TCP flows listed in a document of the same capture.
    pub fn new(document: &TraceDocument, max_flows: usize, to: W) -> Self {
        let listed = document.flows.iter().filter(|flow| flow.transport == TraceTransport::Tcp).take(max_flows);
        let wanted = listed.map(|flow| (flow.source.clone(), flow.destination.clone())).collect();
        Self { to, wanted, flows: HashMap::default(), seen: None, connections: 0, drawn: 0 }
    }

    fn begin(&mut self, flow: &RowFlow) {
        let number = self.connections;
        self.connections += 1;
        let (from, to) = (document_endpoint(flow.source), document_endpoint(flow.destination));
        let is = |(a, b): &(TraceEndpoint, TraceEndpoint)| (*a == from && *b == to) || (*a == to && *b == from);
        if !self.wanted.iter().any(is) {
            return;
        }
        let (first, second) = (letter_name(2 * number), letter_name(2 * number + 1));
        let directions = [
            GraphDirection::new(&format!("{first}2{second}"), flow.source, flow.destination),
            GraphDirection::new(&format!("{second}2{first}"), flow.destination, flow.source),
        ];
        self.drawn += 1;
        self.flows.insert(flow.number, Box::new(FlowGraphs { upward_is_first: flow.upward, directions }));
    }

    /// Writes the remaining text. Returns the number of flows drawn.
    pub fn finish(mut self) -> usize {
        for sheet in self.flows.values_mut().flat_map(|flow| &mut flow.directions).flat_map(GraphDirection::files) {
            sheet.text.push_str("go\n");
            sheet.write_buffered(&mut self.to, 0);
        }
        self.drawn
    }
}

impl<W: Write> Observer for Xplot<W> {
    fn row(&mut self, row: &Row) {
        let Some(flow) = &row.flow else { return };
        let Some(tcp) = &flow.tcp else { return };
        if self.seen.is_none_or(|seen| flow.number > seen) {
            self.seen = Some(flow.number);
            self.begin(flow);
        }
        let Some(drawn) = self.flows.get_mut(&flow.number) else { return };
        let [first, second] = &mut drawn.directions;
        let (from, to) = if flow.upward == drawn.upward_is_first { (first, second) } else { (second, first) };
        from.sent(tcp, flow.payload, row.time_ns);
        to.acknowledged(tcp, row.time_ns);
        for sheet in from.files().into_iter().chain(to.files()) {
            sheet.write_buffered(&mut self.to, CHUNK);
        }
    }
}

impl GraphDirection {
    fn new(name: &str, from: Endpoint, to: Endpoint) -> Self {
        let (from, to) = (document_endpoint(from), document_endpoint(to));
        let title = |of: &str| format!("{}:{}_==>_{}:{} ({of})", from.address, from.port, to.address, to.port);
        let sheet = |kind: &str, scale: &str, of: &str, y: &str| {
            GraphFile::new(format!("{name}_{kind}.xpl"), scale, &title(of), y)
        };
        Self {
            sequence: sheet("tsg", "double", "time sequence graph", "sequence offset"),
            outstanding: sheet("owin", "signed", "outstanding data", "Outstanding Data (bytes)"),
            rtt: sheet("rtt", "signed", "rtt samples", "rtt (ms)"),
            throughput: sheet("tput", "signed", "throughput", "thruput (bytes/sec)"),
            ack: None,
            edge: None,
            duplicates: 0,
            owin: None,
            rwin: None,
            sample: None,
            first_ns: None,
            last_ns: 0,
            total: 0,
            group: (0, 0, 0),
            mean: [None; 2],
        }
    }

    fn files(&mut self) -> [&mut GraphFile; 4] {
        [&mut self.sequence, &mut self.outstanding, &mut self.rtt, &mut self.throughput]
    }

    fn sent(&mut self, tcp: &RowTcp, payload: u32, time_ns: u64) {
        let (start, end, time) = (tcp.sequence, tcp.end, seconds(time_ns));
        let text = &mut self.sequence.text;
        let (syn, fin) = (tcp.flags.has(Flags::SYN), tcp.flags.has(Flags::FIN));
        if tcp.flags.has(Flags::RST) {
            let _ = write!(text, "red\natext {time} {end}\nRST\n");
        }
        if syn {
            let _ = write!(text, "orange\ndiamond {time} {start}\natext {time} {end}\nSYN\n");
        } else if tcp.class.is_retransmission() {
            let _ = write!(text, "red\natext {time} {end}\nR\nred\n");
        } else {
            match tcp.class {
                Class::OutOfOrder => {
                    let _ = write!(text, "pink\natext {time} {end}\nO\npink\n");
                }
                Class::Probe => {
                    let _ = write!(text, "orange\natext {time} {end}\nP\nwhite\n");
                }
                _ => text.push_str("white\n"),
            }
        }
        if !syn {
            let _ = writeln!(text, "darrow {time} {start}");
        }
        if tcp.flags.has(Flags::PSH) && payload > 0 {
            let _ = write!(text, "diamond {time} {end} white\ndot {time} {end} white\n");
        } else if fin {
            let _ = write!(text, "orange\nbox {time} {end}\n");
        } else {
            let _ = writeln!(text, "uarrow {time} {end}");
        }
        if end > start {
            let _ = writeln!(text, "line {time} {start} {time} {end}");
        }
        if fin {
            let _ = write!(text, "atext {time} {end}\nFIN\n");
        }
        if end > start && payload > 0 {
            self.window(tcp.in_flight, time_ns);
            self.rate(payload, time_ns);
        }
    }

    /// Draws the outstanding data and the receive window.
    fn window(&mut self, in_flight: u64, time_ns: u64) {
        let room = self.edge.zip(self.ack).map(|(edge, ack)| edge.value - ack.value);
        let text = &mut self.outstanding.text;
        join(text, "red", &mut self.owin, time_ns, in_flight.cast_signed());
        if let Some(room) = room {
            join(text, "yellow", &mut self.rwin, time_ns, room);
        }
    }

    fn rate(&mut self, payload: u32, time_ns: u64) {
        let text = &mut self.throughput.text;
        let first_ns = *self.first_ns.get_or_insert(time_ns);
        let per_second = |bytes: u64, span_ns: u64| (bytes as f64 * 1e9 / span_ns.max(1) as f64) as i64;
        if time_ns > self.last_ns && self.last_ns > 0 {
            let bps = per_second(u64::from(payload), time_ns - self.last_ns);
            let _ = writeln!(text, "dot {} {bps} yellow", seconds(time_ns));
        }
        self.last_ns = time_ns;
        self.total += u64::from(payload);
        let (since_ns, segments, bytes) = &mut self.group;
        if *segments == 0 && *since_ns == 0 {
            *since_ns = time_ns;
        }
        *segments += 1;
        *bytes += u64::from(payload);
        if *segments >= THROUGHPUT_SEGMENTS && time_ns > *since_ns {
            join(text, "red", &mut self.mean[0], time_ns, per_second(*bytes, time_ns - *since_ns));
            join(text, "blue", &mut self.mean[1], time_ns, per_second(self.total, time_ns - first_ns));
            self.group = (time_ns, 0, 0);
        }
    }

    fn acknowledged(&mut self, tcp: &RowTcp, time_ns: u64) {
        let Some(ack) = tcp.acknowledgement else { return };
        let (time, edge) = (seconds(time_ns), ack.saturating_add_unsigned(tcp.window));
        let text = &mut self.sequence.text;
        let moved = self.ack.is_some_and(|before| ack != before.value);
        text.push_str("green\n");
        match self.ack {
            None => {
                let _ = writeln!(text, "dot {time} {ack} green");
            }
            Some(Point { time_ns, value }) => {
                let _ = writeln!(text, "line {} {value} {time} {value}", seconds(time_ns));
                if moved {
                    let _ = writeln!(text, "line {time} {value} {time} {ack}");
                } else {
                    let _ = writeln!(text, "dtick {time} {ack}");
                }
            }
        }
        self.duplicates = if tcp.duplicate_ack {
            self.duplicates + 1
        } else if moved {
            0
        } else {
            self.duplicates
        };
        if tcp.duplicate_ack && self.duplicates == MARKED_DUPLICATE {
            let _ = write!(text, "atext {time} {ack}\n3\n");
        }
        text.push_str("yellow\n");
        if let Some(Point { time_ns, value }) = self.edge {
            let _ = writeln!(text, "line {} {value} {time} {value}", seconds(time_ns));
            if edge == value {
                let _ = writeln!(text, "utick {time} {edge}");
            } else {
                let _ = writeln!(text, "line {time} {value} {time} {edge}");
            }
        }
        if tcp.window == 0 && !tcp.flags.has(Flags::RST) {
            let _ = write!(text, "atext {time} {edge}\nZ\n");
        }
        for &(low, high) in tcp.sack() {
            let _ = write!(
                text,
                "purple\nline {time} {low} {time} {high}\nhtick {time} {low}\nhtick {time} {high}\natext {time} {high}\nS\n"
            );
        }
        (self.ack, self.edge) = (Some(Point { time_ns, value: ack }), Some(Point { time_ns, value: edge }));
        if tcp.end == tcp.sequence {
            self.window(tcp.in_flight, time_ns);
        }
        if let Some(rtt_ns) = tcp.rtt_ns {
            let now = seconds(time_ns);
            let (text, ms) = (&mut self.rtt.text, rtt_ns as f64 / 1e6);
            let _ = write!(text, "red\ndot {now} {ms:.6}\n");
            if let Some(Point { time_ns, value }) = self.sample {
                let _ = writeln!(text, "line {now} {ms:.6} {} {:.6}", seconds(time_ns), value as f64 / 1e6);
            }
            self.sample = Some(Point { time_ns, value: rtt_ns.cast_signed() });
        }
    }
}

/// Draws a dot, and a line to the previous one.
fn join(text: &mut String, color: &str, before: &mut Option<Point>, time_ns: u64, value: i64) {
    let now = seconds(time_ns);
    let _ = write!(text, "{color}\ndot {now} {value}\n");
    if let Some(last) = before.replace(Point { time_ns, value }) {
        let _ = writeln!(text, "line {now} {value} {} {}", seconds(last.time_ns), last.value);
    }
}

#[cfg(test)]
mod tests {
    use super::letter_name;

    #[test]
    fn hosts_have_the_names_of_tcptrace() {
        let names = [0, 1, 25, 26, 27, 51, 52, 701, 702].map(letter_name);
        assert_eq!(names, ["a", "b", "z", "aa", "ab", "az", "ba", "zz", "aaa"]);
    }
}
