//! Terminal output of `watch`.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use landspeed_model::{Cause, Confidence, Epoch, WatchChange, WatchDocument, WatchFlow, WatchRole};
use landspeed_units::{BitRate, Bytes, Micros, Nanos};

use crate::text::{Page, confidence, number, percent, plural, state_name};

/// Flows described in the summary; the document has all.
const MAX_DESCRIBED: usize = 10;

/// Verdict changes printed per flow; the document has more.
const MAX_CHANGES: usize = 4;

/// Unavailable measurements printed per flow; the document has all.
const MAX_UNAVAILABLE: usize = 2;

/// Table of running flows printed at each interval, two lines per flow.
#[derive(Debug, Default)]
pub struct Table {
    /// State of each flow at the last interval, by cookie.
    last: HashMap<String, FlowCounters>,
}

/// Counters of a flow when it was last seen.
#[derive(Debug, Clone, Copy)]
struct FlowCounters {
    /// When it was last seen, nanoseconds since the start.
    t_ns: u64,
    /// Payload bytes acknowledged.
    acked: u64,
    /// Payload bytes received.
    received: u64,
    /// TCP segments retransmitted since the flow was first read.
    retransmits: u64,
}

impl FlowCounters {
    fn of(flow: &WatchFlow) -> Self {
        let (acked, received) = (flow.bytes_acked, flow.bytes_received);
        Self { t_ns: flow.seen_ns.1, acked, received, retransmits: flow.retransmits }
    }

    /// Payload bytes in the direction of `role`.
    fn moved(self, role: WatchRole) -> u64 {
        match role {
            WatchRole::Sender => self.acked,
            WatchRole::Receiver => self.received,
        }
    }
}

impl Table {
    /// Formats the flows, fastest in this interval first; `busy` is the number of sampled flows.
    pub fn interval(&mut self, document: &WatchDocument, busy: usize) -> String {
        let mut rows: Vec<(Option<f64>, String)> = document.flows.iter().map(|flow| self.row(flow)).collect();
        // Flows whose rate is unknown come last.
        rows.sort_by(|(a, _), (b, _)| b.unwrap_or(-1.0).total_cmp(&a.unwrap_or(-1.0)));
        // Keeps only flows of this interval.
        self.last = document.flows.iter().map(|flow| (flow.cookie.clone(), FlowCounters::of(flow))).collect();
        let mut text = format!(
            "\n{}  {busy} of {} connections busy; watch uses {} of a core\n",
            round_to_tenths(document.duration_ns),
            document.sockets.now,
            percent(document.overhead.cpu_share)
        );
        if !rows.is_empty() {
            text += "      rate      RTT  min RTT  retr/s   cwnd  cause (confidence)\n";
        }
        text.extend(rows.into_iter().map(|(_, row)| row));
        text
    }

    /// Returns the rate since the last interval, bits/s, and the flow's lines. The rate of a flow that is new is the mean
    /// of its readings; `None` if it was not read twice.
    fn row(&self, flow: &WatchFlow) -> (Option<f64>, String) {
        let now = FlowCounters::of(flow);
        let since = self.last.get(&flow.cookie).copied().filter(|before| before.t_ns < now.t_ns);
        let per_s = |count: u64, before: FlowCounters| count as f64 * 1e9 / (now.t_ns - before.t_ns) as f64;
        let bps = match since {
            // The role may have changed since.
            Some(before) => Some(per_s(now.moved(flow.role).saturating_sub(before.moved(flow.role)), before) * 8.0),
            None => flow.goodput_bps,
        };
        let known = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let micros = |us: Option<u32>| known(us.map(|us| micros(us).to_string()));
        let (retransmits, cwnd, arrow) = match flow.role {
            WatchRole::Sender => {
                let recent = || Some(flow.recent.as_ref()?.retransmits_per_s);
                let rate = match since {
                    Some(before) => Some(per_s(now.retransmits.saturating_sub(before.retransmits), before)),
                    None => recent(),
                };
                (known(rate.map(|rate| format!("{rate:.1}"))), known(flow.cwnd.map(|cwnd| cwnd.to_string())), '>')
            }
            // The remote sender has these figures; a receiver's own are meaningless.
            WatchRole::Receiver => ("-".to_owned(), "-".to_owned(), '<'),
        };
        let figures = format!(
            "{:>10} {:>8} {:>8} {retransmits:>7} {cwnd:>6}  {} ({})",
            known(bps.map(|bps| rate(bps).to_string())),
            micros(flow.rtt_us),
            micros(flow.min_rtt_us),
            flow.cause.phrase(),
            confidence_level(flow.confidence),
        );
        (bps, format!("{figures}\n{:>10} {} {arrow} {} {}\n", "", flow.local, flow.remote, process(flow)))
    }
}

/// Formats all flows with their verdicts, most bytes first.
pub fn summary(document: &WatchDocument) -> String {
    let mut page = Page::default();
    for flow in document.flows.iter().take(MAX_DESCRIBED) {
        page.text.push('\n');
        describe(flow, &mut page);
    }
    page.text.push('\n');
    let sockets = document.sockets;
    let left = document.flows.len().saturating_sub(MAX_DESCRIBED);
    let shown = match (document.flows.len(), left) {
        (0, _) => "none moved data".to_owned(),
        (n, 0) => format!("{n} moved data"),
        (n, _) => format!("{n} moved data; --json lists them all"),
    };
    page.line(
        "watched",
        &format!(
            "{} connections for {}, {} at once, {} ended; {shown}",
            sockets.seen,
            round_to_tenths(document.duration_ns),
            sockets.most,
            sockets.ended
        ),
    );
    // Tracepoints that were not requested are not missing.
    let asked = |what: &str| what != "tracepoints" || document.command.iter().any(|word| word == "--tracepoints");
    for (_, why) in document.unavailable.iter().filter(|(what, _)| asked(what)) {
        page.line("unknown", why);
    }
    if let Some(events) = &document.events {
        let (drops, retransmits) = (counts(&events.drops), counts(&events.retransmits));
        page.line("kernel", &format!("on the whole host: drops {drops}; retransmits {retransmits}"));
    }
    let overhead = document.overhead;
    let late = if overhead.late > 0 { format!("; {} readings were late", overhead.late) } else { String::new() };
    page.line(
        "overhead",
        &format!(
            "{} of a core: {} dumps of all sockets, {} readings of busy ones{late}",
            percent(overhead.cpu_share),
            overhead.dumps,
            overhead.readings
        ),
    );
    page.text
}

/// Formats counts, largest first: `57 NETFILTER_DROP, 3 NO_SOCKET`.
fn counts(of: &BTreeMap<String, u64>) -> String {
    let mut all: Vec<(&String, &u64)> = of.iter().collect();
    all.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let all: Vec<String> = all.into_iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    if all.is_empty() { "none".to_owned() } else { all.join(", ") }
}

fn describe(flow: &WatchFlow, page: &mut Page) {
    head(flow, page);
    limit(flow, page);
    let shares = shares(&flow.shares);
    if flow.role == WatchRole::Sender && !shares.is_empty() {
        page.line("time", &shares);
    }
    if flow.timeline.len() > 1 {
        timeline(flow, MAX_CHANGES, page);
    }
    unseen(flow, MAX_UNAVAILABLE, page);
    page.line("next", &flow.next_step);
    page.line("more", &format!("`landspeed explain {}`", flow.cause.name()));
}

/// Prints the flow, its unit and container, and its totals.
pub fn head(flow: &WatchFlow, page: &mut Page) {
    let (verb, arrow) = match flow.role {
        WatchRole::Sender => ("sends", '>'),
        WatchRole::Receiver => ("receives", '<'),
    };
    let ended = if flow.ended { ", ended" } else { "" };
    page.line("flow", &format!("{} {verb} {} {arrow} {}{ended}", process(flow), flow.local, flow.remote));
    let place = [flow.unit.as_ref(), flow.container.as_ref()].into_iter().flatten().cloned().collect::<Vec<_>>();
    if !place.is_empty() {
        page.line("unit", &place.join(", container "));
    }
    if let Some(why) = &flow.process_unknown {
        page.line("process", &format!("unknown: {why}"));
    }
    let span = Nanos::new(flow.span_ns.1.saturating_sub(flow.span_ns.0) / 1_000_000 * 1_000_000);
    let (bytes, direction) = match flow.role {
        WatchRole::Sender => (flow.bytes_acked, "acknowledged"),
        WatchRole::Receiver => (flow.bytes_received, "received"),
    };
    let goodput = match (flow.goodput_bps, flow.readings) {
        (Some(bps), _) => format!("{} over {span}", rate(bps)),
        (None, 0) => "rate unknown (not read)".to_owned(),
        (None, _) => "rate unknown (read once)".to_owned(),
    };
    let mut result = format!("{goodput}; {} {direction}", Bytes::new(bytes));
    if flow.role == WatchRole::Sender {
        let _ = write!(result, ", {}", plural(flow.retransmits, "retransmit"));
        if let Some(cwnd) = flow.cwnd {
            let _ = write!(result, ", cwnd {cwnd}");
        }
    }
    if let Some(rtt) = rtt(flow) {
        let _ = write!(result, ", {rtt}");
    }
    page.line("result", &result);
}

/// Prints cause, place, confidence and reason.
pub fn limit(flow: &WatchFlow, page: &mut Page) {
    let place = flow.place.as_ref().map(|place| format!(" ({place})")).unwrap_or_default();
    page.line("cause", &format!("{}{place}, {}: {}", flow.cause.phrase(), confidence(flow.confidence), reason(flow)));
}

/// Prints the last changes of the verdict, at most `most`.
pub fn timeline(flow: &WatchFlow, most: usize, page: &mut Page) {
    if flow.timeline.is_empty() {
        return;
    }
    let left = flow.timeline.len().saturating_sub(most);
    let one = |change: &WatchChange| {
        format!(
            "{} {} ({})",
            round_to_tenths(change.t_ns),
            change.cause.phrase(),
            confidence_level(change.confidence)
        )
    };
    let changes: Vec<String> = flow.timeline.iter().skip(left).map(one).collect();
    let earlier = if left > 0 { format!("; {left} earlier in --json") } else { String::new() };
    page.line("verdicts", &format!("from {}{earlier}", changes.join(", from ")));
}

/// Prints the evidence of the verdict.
pub fn evidence(flow: &WatchFlow, page: &mut Page) {
    for (i, reading) in flow.evidence.iter().filter(|reading| reading.met).enumerate() {
        let value = number(reading.value, &reading.unit);
        let line = format!("· {}: {value} (threshold {}; {})", reading.metric, reading.threshold, reading.source);
        page.line(if i == 0 { "evidence" } else { "" }, &line);
    }
}

/// Prints at most `most` of the measurements that were not available.
pub fn unseen(flow: &WatchFlow, most: usize, page: &mut Page) {
    if !flow.missing.is_empty() {
        let (named, left) = flow.missing.split_at(flow.missing.len().min(most));
        let more = if left.is_empty() { String::new() } else { format!("; {} more in --json", left.len()) };
        page.line("unseen", &format!("{}{more}", named.join("; ")));
    }
}

/// Returns a verdict's summary without the rate, the cause's name and the unavailable measurements.
fn reason(flow: &WatchFlow) -> &str {
    let why = flow.summary.split_once(": ").map_or(flow.summary.as_str(), |(_, why)| why);
    let why = if flow.cause == Cause::Undetermined {
        let why = why.strip_prefix("the cause is undetermined: ").unwrap_or(why);
        why.split_once("; ").map_or(why, |(begin, _)| begin)
    } else {
        why
    };
    why.trim_end_matches('.')
}

/// Formats the share of time per state, for states with at least 1 %: `97.0 % receive-window-limited, 2.1 %
/// recovery`.
fn shares(epochs: &[Epoch]) -> String {
    let states = epochs.iter().filter(|epoch| epoch.share_permille >= 10);
    let states = states.map(|e| format!("{:.1} % {}", f64::from(e.share_permille) / 10.0, state_name(e.state)));
    states.collect::<Vec<_>>().join(", ")
}

/// Formats a process: `nginx[812]`.
pub fn process(flow: &WatchFlow) -> String {
    match (&flow.command, flow.pid) {
        (Some(command), Some(pid)) => format!("{command}[{pid}]"),
        _ => format!("user {}", flow.uid),
    }
}

/// Formats the RTT: `RTT 20.4 ms (min 20.0 ms)`.
fn rtt(flow: &WatchFlow) -> Option<String> {
    let min = flow.min_rtt_us.map(|us| format!(" (min {})", micros(us))).unwrap_or_default();
    flow.rtt_us.map(|us| format!("RTT {}{min}", micros(us)))
}

/// Returns the confidence level: `high`.
pub fn confidence_level(confidence: Confidence) -> &'static str {
    match confidence {
        Confidence::High => "high",
        Confidence::Medium => "medium",
        Confidence::Low => "low",
    }
}

pub fn micros(us: u32) -> Micros {
    Micros::new(us)
}

/// Rounds a time down to 0.1 s.
fn round_to_tenths(ns: u64) -> Nanos {
    Nanos::new(ns / 100_000_000 * 100_000_000)
}

fn rate(bps: f64) -> BitRate {
    BitRate::from_bps(bps as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document() -> WatchDocument {
        serde_json::from_str(include_str!("../../../../fixtures/documents/watch.json")).expect("a document")
    }

    #[test]
    fn rate_after_a_change_of_role_is_of_one_counter() {
        let mut document = document();
        document.flows.truncate(1);
        let (mut table, flow) = (Table::default(), &mut document.flows[0]);
        (flow.seen_ns, flow.bytes_acked, flow.bytes_received) = ((0, 1_000_000_000), 1_000_000, 9_000_000_000);
        table.interval(&document, 1);
        let flow = &mut document.flows[0];
        (flow.role, flow.seen_ns.1) = (WatchRole::Receiver, 2_000_000_000);
        flow.bytes_received += 125_000;
        let text = table.interval(&document, 1);
        assert!(text.contains(" 1.00 Mb/s"), "{text}");
    }

    #[test]
    fn flows_read_once_have_no_rate() {
        let mut document = document();
        document.flows.truncate(1);
        let flow = &mut document.flows[0];
        (flow.goodput_bps, flow.cwnd, flow.readings, flow.recent) = (None, None, 1, None);
        let text = summary(&document);
        assert!(text.contains("rate unknown (read once)"), "{text}");
        assert!(!text.contains("cwnd"), "{text}");
        let text = Table::default().interval(&document, 1);
        assert!(!text.contains("0 b/s"), "{text}");
    }
}
