//! A result in a few lines that survive being pasted into a mail.

mod latency;
mod loss;

use std::fmt::Write as _;

use landspeed_model::{
    Cause, Confidence, Direction, EndCost, EpochState, ErrorEntry, PhaseName, Protocol, RunDocument, Status, Verdict,
};
use landspeed_units::{BitRate, Bytes};

/// Width that text is folded to.
const WIDTH: usize = 100;
/// Where the second column begins.
const MARGIN: usize = 11;

/// An error in one line.
pub fn error(entry: &ErrorEntry) -> String {
    match &entry.advice {
        Some(advice) => format!("{}; {advice}", entry.message),
        None => entry.message.clone(),
    }
}

/// The whole summary.
pub fn summary(document: &RunDocument) -> String {
    let mut out = Page::default();
    head(document, &mut out);
    if document.status != Status::Failed {
        goodput(document, &mut out);
        latency::write(document, &mut out);
        loss::write(document, &mut out);
        books(document, &mut out);
        cost(document, &mut out);
        far_end(document, &mut out);
        verdict(&document.verdict, "verdict", &mut out);
        if let Some(reverse) = &document.reverse_verdict {
            verdict(reverse, "down", &mut out);
        }
        for probe in document.path.iter().flat_map(|p| &p.mtu) {
            let found = probe.path_mtu_bytes.map_or_else(|| "not found".to_owned(), |mtu| format!("{mtu} bytes"));
            let note = probe.note.as_ref().map(|note| format!("; {note}")).unwrap_or_default();
            out.line("path MTU", &format!("{} {found}{note}", way(probe.direction)));
        }
    }
    for warning in &document.warnings {
        out.line("note", &warning.message);
    }
    for entry in &document.errors {
        out.line("error", &error(entry));
    }
    out.text
}

/// Text being laid out in two columns.
#[derive(Default)]
pub struct Page {
    /// What is laid out so far.
    pub text: String,
}

impl Page {
    /// A labelled paragraph, folded at [`WIDTH`].
    pub fn line(&mut self, label: &str, content: &str) {
        let mut at = 0;
        let _ = write!(self.text, "  {label:<width$}", width = MARGIN - 2);
        for word in content.split_whitespace() {
            let len = word.chars().count();
            if at > 0 && MARGIN + at + 1 + len > WIDTH {
                let _ = write!(self.text, "\n{:MARGIN$}", "");
                at = 0;
            }
            if at > 0 {
                self.text.push(' ');
                at += 1;
            }
            self.text.extend(word.chars().filter(|c| !c.is_control()));
            at += len;
        }
        self.text.push('\n');
    }

    /// A line kept as it is.
    fn raw(&mut self, label: &str, content: &str) {
        let _ = writeln!(self.text, "  {label:<width$}{content}", width = MARGIN - 2);
    }
}

fn way(direction: Direction) -> &'static str {
    match direction {
        Direction::Upload => "up",
        Direction::Download => "down",
        Direction::Both => "both ways",
    }
}

fn head(d: &RunDocument, out: &mut Page) {
    let p = d.effective.as_ref().unwrap_or(&d.requested);
    let kind = match p.protocol {
        Protocol::Tcp => "TCP",
        Protocol::Udp => "UDP",
        Protocol::TcpRr => "TCP request/response",
        Protocol::UdpRr => "UDP request/response",
    };
    let state = match d.status {
        Status::Complete => "",
        Status::Partial => "  PARTIAL",
        Status::Failed => "  FAILED",
    };
    let steady = d.summary.steady_ns as f64 / 1e9;
    let length = if steady > 0.0 { format!(", {steady:.2} s steady") } else { String::new() };
    let streams = if p.streams == 1 { "1 stream".to_owned() } else { format!("{} streams", p.streams) };
    let _ = writeln!(
        out.text,
        "landspeed {}  {kind}, {streams}, {}{length}  {}{state}",
        d.landspeed.version,
        way(p.direction),
        d.started
    );
    let Some(path) = &d.path else { return };
    let mut line = format!("{} ↔ {}", path.client_addr, path.server_addr);
    if path.loopback {
        line += " (this machine)";
    }
    let sender = d.streams.iter().find_map(|s| s.sender.as_ref());
    if let Some(congestion) = sender.and_then(|s| s.congestion.as_ref()) {
        let _ = write!(line, ", {congestion}");
    }
    if let Some(mss) = sender.and_then(|s| s.mss_bytes) {
        let _ = write!(line, ", MSS {mss}");
    }
    if let Some(rtt) = d.summary.min_rtt_us {
        let _ = write!(line, ", min RTT {}", milliseconds(f64::from(rtt) * 1e3));
    }
    if path.authenticated {
        line += ", key proved";
    }
    out.line("path", &line);
}

/// Nanoseconds with a unit that fits.
fn milliseconds(ns: f64) -> String {
    if ns < 1e3 {
        format!("{ns:.0} ns")
    } else if ns < 1e6 {
        format!("{:.1} µs", ns / 1e3)
    } else if ns < 1e9 {
        format!("{:.2} ms", ns / 1e6)
    } else {
        format!("{:.2} s", ns / 1e9)
    }
}

fn goodput(d: &RunDocument, out: &mut Page) {
    let parts = d.requested.direction.parts();
    let s = &d.summary;
    let figures = [
        (s.goodput_bps, s.goodput_cv, &s.goodput_cv_unknown),
        (s.reverse_goodput_bps, s.reverse_goodput_cv, &s.reverse_goodput_cv_unknown),
    ];
    for (direction, (rate, cv, unknown)) in parts.iter().zip(figures) {
        let Some(rate) = rate else { continue };
        let mine = || d.streams.iter().filter(|s| s.direction == *direction);
        let delivered: u64 = mine().filter_map(|s| s.receiver.as_ref()).map(|r| r.bytes).sum();
        let mut line = format!("{}", BitRate::from_bps(rate as u64));
        if let Some(cv) = cv {
            let _ = write!(line, " ± {:.1} % between intervals", cv * 100.0);
        } else if let Some(why) = unknown {
            let _ = write!(line, " (± unknown: {why})");
        }
        let _ = write!(line, ", {} delivered", Bytes::new(delivered));
        let resent: Vec<u64> = mine().filter_map(|s| s.sender.as_ref()?.retransmits).collect();
        if !resent.is_empty() {
            let _ = write!(line, ", {} retransmitted", plural(resent.iter().sum(), "segment"));
        }
        out.line(way(*direction), &line);
        per_stream(d, *direction, out);
    }
}

fn plural(n: u64, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

/// With several streams, how the rate was shared.
fn per_stream(d: &RunDocument, direction: Direction, out: &mut Page) {
    let rates: Vec<f64> = d
        .streams
        .iter()
        .filter(|s| s.direction == direction)
        .map(|s| {
            let steady = || s.intervals.iter().filter(|i| i.phase == PhaseName::Steady);
            let ns: u64 = steady().map(|i| i.end_ns - i.start_ns).sum();
            steady().map(|i| i.bytes).sum::<u64>() as f64 * 8e9 / (ns.max(1)) as f64
        })
        .collect();
    if rates.len() < 2 {
        return;
    }
    let (least, most) = rates.iter().fold((f64::MAX, 0.0f64), |(l, m), r| (l.min(*r), m.max(*r)));
    let sum: f64 = rates.iter().sum();
    let squares: f64 = rates.iter().map(|r| r * r).sum();
    // Jain's index: 1 when all are equal, 1/n when one has everything (R. Jain et al., DEC-TR-301, 1984).
    let fairness = if squares > 0.0 { sum * sum / (rates.len() as f64 * squares) } else { 0.0 };
    let (least, most) = (BitRate::from_bps(least as u64), BitRate::from_bps(most as u64));
    out.line("", &format!("slowest stream {least}, fastest {most}, fairness {fairness:.3} (Jain)"));
}

fn books(d: &RunDocument, out: &mut Page) {
    let c = &d.conservation;
    if !matches!(d.requested.protocol, Protocol::Tcp | Protocol::Udp) {
        return;
    }
    let amount = |n: u64| if c.unit == "bytes" { Bytes::new(n).to_string() } else { plural(n, "packet") };
    let mut line = format!("{} offered = {} delivered", amount(c.offered), amount(c.delivered));
    if c.unit == "packets" {
        let _ = write!(line, " + {} lost", amount(c.lost));
    }
    if c.queued > 0 {
        let _ = write!(line, " + {} still queued", amount(c.queued));
    }
    if c.holds && c.unaccounted_bytes != 0 {
        let _ = write!(line, "; they balance but for {} B", c.unaccounted_bytes);
    } else if c.holds {
        line += "; they balance exactly";
    } else {
        let _ = write!(line, "; they do NOT balance: {} B unaccounted for", c.unaccounted_bytes);
    }
    for note in &c.notes {
        let _ = write!(line, "; {note}");
    }
    out.line("books", &line);
}

/// What an iperf3 server told beyond its totals.
fn far_end(d: &RunDocument, out: &mut Page) {
    let Some(far) = &d.iperf3 else { return };
    let mut line = d.landspeed.server_version.clone().unwrap_or_else(|| "iperf3".to_owned());
    if let Some(share) = far.results.get("cpu_util_total").and_then(serde_json::Value::as_f64) {
        let _ = write!(line, ", which used {share:.0} % of a core");
    }
    if let Some(name) = far.results.get("congestion_used").and_then(serde_json::Value::as_str) {
        let _ = write!(line, ", congestion control {name}");
    }
    line += "; not visible there: ";
    line += &far.not_visible.join("; ");
    out.line("far end", &line);
}

fn cost(d: &RunDocument, out: &mut Page) {
    let shared = d.path.as_ref().is_some_and(|p| p.loopback);
    let ends = [("client", &d.cost.client), ("server", &d.cost.server)];
    for (i, (name, cost)) in ends.into_iter().filter_map(|(n, c)| c.as_ref().map(|c| (n, c))).enumerate() {
        out.line(if i == 0 { "cost" } else { "" }, &format!("{name} {}", one_cost(cost)));
        if shared && i == 1 {
            out.raw("", "(one machine: both host figures are of the same cores)");
        }
    }
}

fn one_cost(cost: &EndCost) -> String {
    let mut line = String::new();
    if let Some(ns) = cost.thread_ns_per_byte.filter(|ns| *ns > 0.0) {
        let _ = write!(line, "threads {ns:.3} ns/B ({:.2} s)", cost.thread_cpu_s);
    } else {
        let _ = write!(line, "threads {:.2} s", cost.thread_cpu_s);
    }
    if let Some(ns) = cost.host_ns_per_byte.filter(|ns| *ns > 0.0) {
        let _ = write!(line, ", host {ns:.3} ns/B");
    }
    if let Some((core, share)) = cost.busiest_core {
        let _ = write!(line, ", busiest core {core} at {:.0} %", share * 100.0);
    }
    if cost.steal > 0.01 {
        let _ = write!(line, ", {:.0} % stolen by the hypervisor", cost.steal * 100.0);
    }
    line
}

fn verdict(v: &Verdict, label: &str, out: &mut Page) {
    let sure = confidence(v.confidence);
    let place = v.place.as_ref().map(|p| format!(" [{p}]")).unwrap_or_default();
    out.line(label, &format!("{}{place}, {sure}. {}", cause_name(v.cause).to_uppercase(), v.summary));
    for evidence in v.evidence.iter().filter(|e| e.met).take(4) {
        let value = number(evidence.value, &evidence.unit);
        out.line("", &format!("· {}: {value} (held against {})", evidence.metric, evidence.threshold));
    }
    if v.cause == Cause::Undetermined && !v.missing.is_empty() {
        out.line("", &format!("· not visible: {}", v.missing.join("; ")));
    }
    if let Some(shares) = epochs(v) {
        out.line("time", &shares);
    }
    out.line("next", &v.next_step);
}

/// `high confidence`.
pub(crate) fn confidence(confidence: Confidence) -> &'static str {
    match confidence {
        Confidence::High => "high confidence",
        Confidence::Medium => "medium confidence",
        Confidence::Low => "low confidence",
    }
}

/// `97.0 % cwnd-limited, 2.1 % recovery`: the states a flow spent at least a hundredth of its time in. `None` without samples.
pub(crate) fn epochs(v: &Verdict) -> Option<String> {
    let states: Vec<String> = v
        .epochs
        .iter()
        .filter(|epoch| epoch.share_permille >= 10)
        .map(|epoch| format!("{:.1} % {}", f64::from(epoch.share_permille) / 10.0, state_name(epoch.state)))
        .collect();
    (!states.is_empty()).then(|| states.join(", "))
}

fn state_name(state: EpochState) -> &'static str {
    match state {
        EpochState::SlowStart => "slow start",
        EpochState::Recovery => "recovery",
        EpochState::Stalled => "stalled",
        EpochState::CwndLimited => "cwnd-limited",
        EpochState::ReceiveWindowLimited => "receive-window-limited",
        EpochState::SendBufferLimited => "send-buffer-limited",
        EpochState::ApplicationLimited => "application-limited",
        EpochState::PacingLimited => "pacing-limited",
        EpochState::CpuLimited => "CPU-limited",
        EpochState::Unknown => "unknown",
    }
}

fn number(value: f64, unit: &str) -> String {
    match unit {
        "bps" => BitRate::from_bps(value.max(0.0) as u64).to_string(),
        "bytes" => Bytes::new(value.max(0.0) as u64).to_string(),
        "ratio" => format!("{value:.2}"),
        _ if value.fract() == 0.0 => format!("{value:.0} {unit}"),
        _ => format!("{value:.3} {unit}"),
    }
}

/// A cause in words.
pub(crate) fn cause_name(cause: Cause) -> &'static str {
    match cause {
        Cause::ReceiverWindow => "receiver window",
        Cause::SlowReader => "slow reader",
        Cause::SendBuffer => "send buffer",
        Cause::Application => "application",
        Cause::Pacing => "pacing",
        Cause::SenderCpu => "sender cpu",
        Cause::ReceiverCpu => "receiver cpu",
        Cause::LinkRate => "link rate",
        Cause::NetworkCongestion => "network congestion",
        Cause::NetworkLoss => "network loss",
        Cause::NetworkPath => "network path",
        Cause::SlowStartOvershoot => "slow-start overshoot",
        Cause::ShallowBuffer => "shallow buffer",
        Cause::Policer => "policer",
        Cause::Reordering => "reordering",
        Cause::ReceiverHostDrops => "receiver host drops",
        Cause::AckPath => "ack path",
        Cause::LocalQdisc => "local qdisc",
        Cause::PathMtu => "path mtu",
        Cause::RoundTrip => "round trip",
        Cause::Undetermined => "undetermined",
    }
}
