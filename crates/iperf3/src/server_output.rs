//! Server output of a test, for clients that request it (`--get-server-output`).

use std::fmt::Write as _;

use landspeed_flow::end::{EndReport, StreamReport};
use landspeed_model::{Parameters, Sample};
use landspeed_units::{BitRate, Bytes, Nanos};

use crate::identity;
use crate::results::SessionValues;

const SECOND_NS: u64 = 1_000_000_000;
/// Maximum number of lines of all streams; long tests use longer intervals.
const MAX_LINES: u64 = 2000;

/// Formats one line for each second of each stream, then its total and the local role.
pub fn output(report: &EndReport, parameters: &Parameters, known: &SessionValues) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let mut text = format!("landspeed {version}, {} stream(s) each way\n", parameters.streams);
    let length_ns = report.cuts.end_ns.unwrap_or(0);
    let lines = length_ns / SECOND_NS * report.streams.len() as u64;
    let step_ns = lines.div_ceil(MAX_LINES).max(1) * SECOND_NS;
    for (index, stream) in report.streams.iter().enumerate() {
        let number = identity::number(index);
        let _ = writeln!(text, "[{number:3}] local {} connected to {}", stream.local_addr, stream.peer_addr);
        intervals(&mut text, number, stream, step_ns, known.omit_ns);
        let role = if stream.sends { "sender" } else { "receiver" };
        let span_ns = known.end_ns.unwrap_or(length_ns).saturating_sub(known.omit_ns);
        let omitted = known.omitted.get(&stream.id).map_or(0, |omitted| omitted.bytes);
        line(&mut text, number, (0, span_ns), stream.end.bytes.saturating_sub(omitted), role);
    }
    text
}

fn intervals(text: &mut String, number: u64, stream: &StreamReport, step_ns: u64, omit_ns: u64) {
    let mut before: Option<&Sample> = None;
    for sample in &stream.end.samples {
        let (from_ns, bytes) = before.map_or((0, 0), |s| (s.t_ns, s.bytes));
        if sample.t_ns < from_ns + step_ns {
            continue;
        }
        let note = if sample.t_ns <= omit_ns { "(omitted)" } else { "" };
        line(text, number, (from_ns, sample.t_ns), sample.bytes - bytes, note);
        before = Some(sample);
    }
}

fn line(text: &mut String, number: u64, (from_ns, to_ns): (u64, u64), bytes: u64, note: &str) {
    let seconds = |ns: u64| ns as f64 / SECOND_NS as f64;
    let rate = BitRate::mean(Bytes::new(bytes), Nanos::new(to_ns - from_ns)).unwrap_or(BitRate::ZERO);
    let (from, to) = (seconds(from_ns), seconds(to_ns));
    let _ = writeln!(text, "[{number:3}] {from:6.2}-{to:<6.2} sec  {}  {rate}  {note}", Bytes::new(bytes));
}
