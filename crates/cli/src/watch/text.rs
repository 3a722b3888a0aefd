//! What a person reads of a watch.

use std::fmt::Write as _;

use landspeed_model::{Confidence, Epoch, WatchDocument, WatchFlow, WatchRole};
use landspeed_units::{BitRate, Bytes, Nanos};

use crate::text::{Page, cause_name, confidence, percent, state_name};

/// Flows described at the end; the document has all.
const DESCRIBED: usize = 10;

/// The running flows at the end of an interval, a line each; `busy` is how many are sampled.
pub fn interval(document: &WatchDocument, busy: usize) -> String {
    let mut text = String::new();
    let at = Nanos::new(document.duration_ns / 100_000_000 * 100_000_000);
    let _ = writeln!(
        text,
        "{at}  {busy} of {} connections busy; watch uses {} of a core",
        document.sockets.now,
        percent(document.overhead.cpu_share)
    );
    for flow in &document.flows {
        let way = if flow.role == WatchRole::Sender { '>' } else { '<' };
        let port = flow.local.rsplit(':').next().unwrap_or_default();
        let rtt = flow.rtt_us.map_or_else(|| "unknown".to_owned(), |us| Nanos::new(u64::from(us) * 1000).to_string());
        let _ = writeln!(
            text,
            "{:>11}  {:<30}  {:<18}  RTT {rtt:<8}  {} retr  {} ({})",
            rate(flow.goodput_bps).to_string(),
            format!(":{port} {way} {}", flow.remote),
            process(flow),
            flow.retransmits,
            cause_name(flow.cause),
            sure(flow.confidence),
        );
    }
    text
}

/// Every flow with its verdict, those with the most bytes first.
pub fn summary(document: &WatchDocument) -> String {
    let mut page = Page::default();
    for flow in document.flows.iter().take(DESCRIBED) {
        page.text.push('\n');
        describe(flow, &mut page);
    }
    page.text.push('\n');
    let sockets = document.sockets;
    let left = document.flows.len().saturating_sub(DESCRIBED);
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
            Nanos::new(document.duration_ns / 100_000_000 * 100_000_000),
            sockets.most,
            sockets.ended
        ),
    );
    for why in document.unavailable.values() {
        page.line("unknown", why);
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

fn describe(flow: &WatchFlow, page: &mut Page) {
    let way = if flow.role == WatchRole::Sender { "sent to" } else { "received from" };
    let ended = if flow.ended { ", ended" } else { "" };
    page.line("flow", &format!("{} at {}, {way} {}{ended}", process(flow), flow.local, flow.remote));
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
    let mut result = format!("{} over {span}; {} {direction} in all", rate(flow.goodput_bps), Bytes::new(bytes));
    if flow.role == WatchRole::Sender {
        let _ = write!(result, ", {} retransmits", flow.retransmits);
    }
    if let Some(rtt) = rtt(flow) {
        let _ = write!(result, ", {rtt}");
    }
    page.line("result", &result);
    let place = flow.place.as_ref().map(|place| format!(" ({place})")).unwrap_or_default();
    let why = flow.summary.split_once(": ").map_or(flow.summary.as_str(), |(_, why)| why);
    page.line(
        "limit",
        &format!("{}{place}, {}: {}", cause_name(flow.cause), confidence(flow.confidence), why.trim_end_matches('.')),
    );
    let shares = shares(&flow.shares);
    if flow.role == WatchRole::Sender && !shares.is_empty() {
        page.line("time", &shares);
    }
    if !flow.missing.is_empty() {
        page.line("unseen", &flow.missing.join("; "));
    }
    page.line("next", &flow.next_step);
}

/// `97.0 % receive-window-limited, 2.1 % recovery`: the states a flow spent at least a hundredth of its time in.
fn shares(epochs: &[Epoch]) -> String {
    let states = epochs.iter().filter(|epoch| epoch.share_permille >= 10);
    let states = states.map(|e| format!("{:.1} % {}", f64::from(e.share_permille) / 10.0, state_name(e.state)));
    states.collect::<Vec<_>>().join(", ")
}

/// `nginx[812]`.
fn process(flow: &WatchFlow) -> String {
    match (&flow.command, flow.pid) {
        (Some(command), Some(pid)) => format!("{command}[{pid}]"),
        _ => format!("user {}", flow.uid),
    }
}

/// `RTT 20.4 ms (min 20.0 ms)`.
fn rtt(flow: &WatchFlow) -> Option<String> {
    let micros = |us: u32| Nanos::new(u64::from(us) * 1000).to_string();
    let min = flow.min_rtt_us.map(|us| format!(" (min {})", micros(us))).unwrap_or_default();
    flow.rtt_us.map(|us| format!("RTT {}{min}", micros(us)))
}

fn sure(confidence: Confidence) -> &'static str {
    match confidence {
        Confidence::High => "high",
        Confidence::Medium => "medium",
        Confidence::Low => "low",
    }
}

fn rate(bps: f64) -> BitRate {
    BitRate::from_bps(bps as u64)
}
