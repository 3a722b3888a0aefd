//! Output of `-v`: evidence, CPU cost, accounting and notes.

use std::fmt::Write as _;

use landspeed_model::{Cause, Direction, EndCost, Protocol, RunDocument, Status, Verdict};
use landspeed_units::BitRate;

use super::{Page, bytes, cores, direction_name, epochs, latency, loss, of, percent, plural};

/// Formats the details that are not in the summary.
pub fn details(document: &RunDocument) -> String {
    let mut page = Page::default();
    if document.status != Status::Failed {
        head(document, &mut page);
        for direction in document.requested.direction.parts() {
            delivery(document, *direction, &mut page);
        }
        latency::details(document, &mut page);
        loss::details(document, &mut page);
        accounting(document, &mut page);
        cost(document, &mut page);
        cores::details(document, &mut page);
        iperf3_server(document, &mut page);
        evidence(document, document.requested.direction.parts()[0], &document.verdict, &mut page);
        if let Some(reverse) = &document.reverse_verdict {
            evidence(document, Direction::Download, reverse, &mut page);
        }
        for probe in document.path.iter().flat_map(|p| &p.mtu) {
            let found = probe.path_mtu_bytes.map_or_else(|| "not found".to_owned(), |mtu| format!("{mtu} bytes"));
            let note = probe.note.as_ref().map(|note| format!("; {note}")).unwrap_or_default();
            page.line("path MTU", &format!("{}: {found}{note}", direction_name(probe.direction)));
        }
    }
    for warning in &document.warnings {
        page.line("note", &warning.message);
    }
    if document.status == Status::Complete {
        for entry in &document.errors {
            page.line("error", &super::error(entry).replacen('\n', ". ", 1));
        }
    }
    page.text
}

fn head(d: &RunDocument, page: &mut Page) {
    page.line("test", &format!("landspeed {}, started {}, id {}", d.landspeed.version, d.started, d.id));
    if let Some(parties) = &d.third_party {
        let version = parties.client_version.as_deref().unwrap_or("unknown");
        let key = if parties.authenticated { ", which holds its key" } else { "" };
        page.line("asked by", &format!("{}{key}; the client is landspeed {version}", parties.asker_addr));
    }
    let Some(path) = &d.path else { return };
    let mut line = format!("{} to {}", path.client_addr, path.server_addr);
    if path.loopback {
        line += " (this host)";
    }
    let sender = d.streams.iter().find_map(|s| s.sender.as_ref());
    if let Some(mss) = sender.and_then(|s| s.mss_bytes) {
        let _ = write!(line, ", MSS {mss}");
    }
    if path.authenticated {
        line += ", both ends hold the key";
    }
    page.line("path", &line);
}

/// Prints the bytes delivered, and the rates of several streams.
fn delivery(d: &RunDocument, direction: Direction, page: &mut Page) {
    let mine = || d.streams.iter().filter(|s| s.direction == direction);
    if mine().next().is_none() {
        return;
    }
    let delivered: Option<u64> = mine().map(|s| Some(s.receiver.as_ref()?.bytes)).sum();
    let line = match delivered {
        Some(delivered) => format!("{} delivered", bytes(delivered)),
        None if mine().all(|s| s.intervals_from == "sender") => {
            let acknowledged = mine().flat_map(|s| &s.intervals).map(|i| i.bytes).sum();
            format!("{} acknowledged (the receiver's report is missing)", bytes(acknowledged))
        }
        None => "what was delivered is unknown (the receiver's report is missing)".to_owned(),
    };
    let unknown = match direction {
        Direction::Download if d.requested.direction == Direction::Both => &d.summary.reverse_goodput_cv_unknown,
        _ => &d.summary.goodput_cv_unknown,
    };
    let unknown = unknown.as_ref().map(|why| format!("; spread unknown: {why}")).unwrap_or_default();
    page.line(direction_name(direction), &format!("{line}{unknown}"));
    let rates: Option<Vec<f64>> = mine().map(landspeed_results::steady_bps).collect();
    let Some(rates) = rates.filter(|rates| rates.len() > 1) else { return };
    let (least, most) = rates.iter().fold((f64::MAX, 0.0f64), |(l, m), r| (l.min(*r), m.max(*r)));
    let (least, most) = (BitRate::from_bps(least as u64), BitRate::from_bps(most as u64));
    // Jain's index: 1 if all rates are equal, 1/n if one stream has everything (R. Jain et al., DEC-TR-301, 1984).
    let fairness = landspeed_results::balance(&rates).filter(|_| delivered.is_some());
    let fairness = fairness.map_or("unknown".to_owned(), |index| format!("{index:.3}"));
    page.line("streams", &format!("slowest {least}, fastest {most}, Jain's fairness index {fairness}"));
    for (stream, rate) in mine().zip(rates) {
        let retransmits = stream.sender.as_ref().and_then(|end| end.retransmits);
        let retransmits = retransmits.map(|n| format!(", {}", plural(n, "retransmit"))).unwrap_or_default();
        page.line("", &format!("· {}: {}{retransmits}", stream.id, BitRate::from_bps(rate as u64)));
    }
}

fn accounting(d: &RunDocument, page: &mut Page) {
    let c = &d.conservation;
    if !matches!(d.requested.protocol, Protocol::Tcp | Protocol::Udp) {
        return;
    }
    let amount = |n: u64| if c.unit == "bytes" { bytes(n) } else { plural(n, "packet") };
    let amount = |n: Option<u64>| n.map_or("unknown".to_owned(), amount);
    let mut line = format!("{} sent = {} received", amount(c.offered), amount(c.delivered));
    if c.unit == "packets" {
        let _ = write!(line, " + {} lost", c.lost.map_or("unknown".to_owned(), |lost| lost.to_string()));
    }
    if c.queued.is_none_or(|queued| queued > 0) {
        let _ = write!(line, " + {} queued", amount(c.queued));
    }
    match c.unaccounted_bytes {
        Some(0) if c.holds => line += " (exact)",
        Some(bytes) => {
            let _ = write!(line, "; {bytes} bytes unaccounted for");
        }
        None => {}
    }
    for note in &c.notes {
        let _ = write!(line, "; {note}");
    }
    page.line("accounting", &line);
}

/// Prints what an iperf3 server reports in addition to totals.
fn iperf3_server(d: &RunDocument, page: &mut Page) {
    let Some(server) = &d.iperf3 else { return };
    let mut line = d.landspeed.server_version.clone().unwrap_or_else(|| "iperf3".to_owned());
    if let Some(share) = server.results.get("cpu_util_total").and_then(serde_json::Value::as_f64) {
        let _ = write!(line, ", CPU {share:.0} % of a core");
    }
    if let Some(name) = server.results.get("congestion_used").and_then(serde_json::Value::as_str) {
        let _ = write!(line, ", congestion control {name}");
    }
    line += "; not visible there: ";
    line += &server.not_visible.join("; ");
    page.line("server", &line);
}

fn cost(d: &RunDocument, page: &mut Page) {
    let shared = d.path.as_ref().is_some_and(|p| p.loopback);
    let ends = [("client", &d.cost.client), ("server", &d.cost.server)];
    for (i, (name, cost)) in ends.into_iter().filter_map(|(n, c)| c.as_ref().map(|c| (n, c))).enumerate() {
        let label = if i == 0 { "CPU" } else { "" };
        let note = if shared && i == 1 { " (one host: both host figures count the same cores)" } else { "" };
        page.line(label, &format!("{name}: {}{note}", one_cost(cost)));
    }
}

fn one_cost(cost: &EndCost) -> String {
    let mut line = String::new();
    if let Some(ns) = cost.thread_ns_per_byte.filter(|ns| *ns > 0.0) {
        let _ = write!(line, "stream threads {ns:.3} ns/byte ({:.2} s)", cost.thread_cpu_s);
    } else {
        let _ = write!(line, "stream threads {:.2} s", cost.thread_cpu_s);
    }
    if let Some(ns) = cost.host_ns_per_byte.filter(|ns| *ns > 0.0) {
        let _ = write!(line, ", host {ns:.3} ns/byte");
    }
    if let Some((core, share)) = cost.busiest_core {
        let _ = write!(line, ", busiest core {core} at {:.0} %", share * 100.0);
    }
    if let Some(steal) = cost.steal.filter(|steal| *steal > 0.01) {
        let _ = write!(line, ", steal time {:.0} %", steal * 100.0);
    }
    line
}

/// Prints the evidence of a verdict.
fn evidence(d: &RunDocument, direction: Direction, v: &Verdict, page: &mut Page) {
    let label = of(d, direction);
    page.line("reason", &format!("{label}{}", super::reason(d, direction, v)));
    for (i, evidence) in v.evidence.iter().filter(|e| e.met).enumerate() {
        let value = number(evidence.value, &evidence.unit);
        let line = format!("· {label}{}: {value} (threshold {})", evidence.metric, evidence.threshold);
        page.line(if i == 0 { "evidence" } else { "" }, &line);
    }
    if v.cause == Cause::Undetermined && !v.missing.is_empty() {
        page.line("unknown", &format!("{label}{}", v.missing.join("; ")));
    }
    if let Some(shares) = epochs(v) {
        page.line("time", &format!("{label}{shares}"));
    }
    if !v.next_step.is_empty() {
        page.line("next", &format!("{label}{}", v.next_step));
    }
    page.line("more", &format!("{label}`landspeed explain {}`", v.cause.name()));
}

/// Formats a value of a verdict with its unit.
pub fn number(value: f64, unit: &str) -> String {
    match unit {
        "bps" => BitRate::from_bps(value.max(0.0) as u64).to_string(),
        "bytes" => bytes(value.max(0.0) as u64),
        "ratio" if value > 0.0 && value < 0.01 => percent(value),
        "ratio" => format!("{value:.2}"),
        _ if value.fract() == 0.0 => format!("{value:.0} {unit}"),
        _ => format!("{value:.3} {unit}"),
    }
}
