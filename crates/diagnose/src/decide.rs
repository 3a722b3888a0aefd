//! Turns the findings into one verdict: order, contradictions, confidence.

use landspeed_model::{Cause, Confidence, Evidence, Status, Verdict};

use crate::causes::{self, evaluate_all, explains};
use crate::contradictions::contradicts_itself;
use crate::epochs::epochs;
use crate::finding::{Bound, Finding, FindingBuilder, Standing, Strength};
use crate::flow::Flow;
use crate::refute::refute;
use crate::starved;
use crate::stream::StreamView;
use crate::text;
use crate::thresholds::{MIN_JUDGED_NS, PASSED_SEGMENTS};

/// Evaluates every cause and names one, or explains why none can be named.
pub(crate) fn decide(flow: &Flow) -> Verdict {
    if let Some(verdict) = no_data_verdict(flow) {
        return verdict;
    }
    let mut findings = evaluate_all(flow);
    refute(flow, &mut findings);
    starved::weaken(flow, &mut findings);
    let Some(chosen) = choose(&findings) else { return undetermined(flow, &findings, &[]) };
    let named = &findings[chosen];
    let strength = named.strength().unwrap_or(Strength::Weak);
    let rivals: Vec<&Finding> = findings
        .iter()
        .enumerate()
        .filter(|&(index, finding)| {
            index != chosen && finding.strength() >= Some(Strength::Moderate) && !explains(named.cause, finding.cause)
        })
        .map(|(_, finding)| finding)
        .collect();
    // With three equally strong causes any choice would be a guess. A rate that was reached is certain.
    let as_sure = rivals.iter().any(|rival| rival.strength() >= Some(strength));
    if as_sure && rivals.len() >= 2 && !named.direct {
        return undetermined(flow, &findings, &rivals);
    }
    let strength = if rivals.is_empty() { strength } else { strength.lowered() };
    verdict(flow, &findings, named, &rivals, limited_by_run(flow, strength).confidence())
}

/// Lowers the strength by what the run lacks: the report of one end, its rest, samples.
fn limited_by_run(flow: &Flow, mut strength: Strength) -> Strength {
    if !flow.complete() {
        strength = strength.lowered();
    }
    if flow.is_rr() || flow.has_enough_samples() {
        strength
    } else if flow.is_brief() {
        Strength::Weak
    } else {
        strength.lowered()
    }
}

/// Index of the strongest finding, the first of equals; a requested rate that was reached takes precedence.
fn choose(findings: &[Finding]) -> Option<usize> {
    let direct = findings.iter().position(|finding| finding.direct && finding.strength().is_some());
    if direct.is_some() {
        return direct;
    }
    let strongest = [Strength::Strong, Strength::Moderate, Strength::Weak]
        .into_iter()
        .find_map(|strength| findings.iter().position(|finding| finding.strength() == Some(strength)))?;
    // A cause that produces the strongest one takes precedence, even if it is slightly weaker.
    let behind = findings.iter().position(|finding| {
        finding.strength() >= Some(Strength::Moderate) && explains(finding.cause, findings[strongest].cause)
    });
    Some(behind.unwrap_or(strongest))
}

fn verdict(
    flow: &Flow,
    findings: &[Finding],
    named: &Finding,
    rivals: &[&Finding],
    confidence: Confidence,
) -> Verdict {
    let yet = rivals.first().map(|rival| format!(" (yet {})", rival.why)).unwrap_or_default();
    let summary = format!("{}: {}{yet}.", flow.headline(), named.why);
    let mut evidence: Vec<Evidence> = named.readings.iter().filter(|reading| reading.met).cloned().collect();
    evidence.extend(rivals.iter().flat_map(|rival| rival.readings.iter().filter(|reading| reading.met).cloned()));
    let mut missing = missing_readings(flow);
    missing.extend(named.missing.iter().cloned());
    for finding in findings.iter().filter(|finding| finding.standing == Standing::NotVisible) {
        missing.extend(finding.missing.iter().cloned());
    }
    Verdict {
        cause: named.cause,
        confidence,
        summary,
        place: named.place.clone(),
        evidence,
        ruled_out: ruled_out(findings, Some(named.cause), rivals),
        missing: deduplicated(missing),
        next_step: named.next_step.clone(),
        epochs: epochs(flow),
    }
}

fn undetermined(flow: &Flow, findings: &[Finding], rivals: &[&Finding]) -> Verdict {
    let mut missing = missing_readings(flow);
    missing.extend(findings.iter().flat_map(|finding| finding.missing.iter().cloned()));
    let missing = deduplicated(missing);
    let contenders: Vec<&Finding> =
        if rivals.is_empty() { Vec::new() } else { findings.iter().filter(|f| f.strength().is_some()).collect() };
    let because = if !contenders.is_empty() {
        let causes: Vec<String> = contenders.iter().map(|finding| finding.why.clone()).collect();
        format!("the readings contradict each other: {}", causes.join("; but "))
    } else if missing.is_empty() {
        "no reading reached its threshold".to_owned()
    } else {
        format!("no visible reading reached its threshold; {} not visible", join_list(&missing))
    };
    let next_step = if flow.observed {
        String::new()
    } else if !flow.receiver_seen() || !flow.sender_seen() {
        "Run again with landspeed on both ends, to its end.".to_owned()
    } else if !flow.is_rr() && !flow.has_enough_samples() {
        "Run again for at least 10 s with the default interval.".to_owned()
    } else {
        "Run again with --time 30 and nothing else on the hosts; if it stays undetermined, run UDP at the same rate to \
         separate the hosts from the path."
            .to_owned()
    };
    Verdict {
        cause: Cause::Undetermined,
        confidence: Confidence::Low,
        summary: format!("{}: the cause is undetermined: {because}.", flow.headline()),
        place: None,
        evidence: contenders.iter().flat_map(|f| f.readings.iter().filter(|reading| reading.met).cloned()).collect(),
        ruled_out: ruled_out(findings, None, &contenders),
        missing,
        next_step,
        epochs: epochs(flow),
    }
}

/// Returns an undetermined verdict for a run without bytes.
fn no_data_verdict(flow: &Flow) -> Option<Verdict> {
    let none = |summary: String, missing: Vec<String>, next_step: &str| Verdict {
        cause: Cause::Undetermined,
        confidence: Confidence::Low,
        summary,
        place: None,
        evidence: Vec::new(),
        ruled_out: Vec::new(),
        missing,
        next_step: next_step.to_owned(),
        epochs: epochs(flow),
    };
    if flow.document.status == Status::Failed {
        let what = flow.document.errors.first().map_or("it failed", |error| error.message.as_str());
        let advice = flow.document.errors.first().and_then(|error| error.advice.as_deref());
        let summary = format!("Nothing was measured: {what}.");
        return Some(none(summary, Vec::new(), advice.unwrap_or("Fix the error and run again.")));
    }
    if flow.is_rr() {
        let answered = flow.document.latency.iter().any(|result| result.completed > 0);
        return (!answered).then(|| {
            let next = "Check that the peer answers on this port and that no firewall drops the packets.";
            none("No request was answered.".to_owned(), Vec::new(), next)
        });
    }
    if flow.streams.is_empty() {
        let summary = "Nothing was measured in this direction.".to_owned();
        return Some(none(summary, vec!["streams of this direction".to_owned()], "Run this direction."));
    }
    if flow.span_ns.1 - flow.span_ns.0 < MIN_JUDGED_NS {
        let what = if flow.observed { "flow" } else { "test" };
        let summary = format!(
            "{}: the {what} was over in {}, too soon to name a cause.",
            flow.headline(),
            text::nanos(flow.seconds() * 1e9)
        );
        let next = "Run for at least 10 s (--time), or send a hundred times as much (--bytes).";
        return Some(none(summary, missing_readings(flow), next));
    }
    if flow.goodput_bps <= 0.0 {
        if let Some(verdict) = path_mtu(flow).or_else(|| path_down(flow)) {
            return Some(verdict);
        }
        if flow.is_receiver_missing() {
            let summary = format!("What arrived is unknown: the {}'s report is missing.", flow.receiver.name());
            return Some(none(summary, missing_readings(flow), "Run again, to its end."));
        }
        let next = "Check that data can pass the firewall between the hosts, and run longer.";
        let summary = if flow.observed { "No data moved." } else { "No data arrived in the steady phase." };
        return Some(none(summary.to_owned(), missing_readings(flow), next));
    }
    None
}

/// Full-sized segments were retransmitted repeatedly and never acknowledged: a link with a smaller MTU and
/// no ICMP message (PMTUD black hole). In the lab the link is known.
fn path_mtu(flow: &Flow) -> Option<Verdict> {
    let last = || flow.streams.iter().filter_map(|stream| stream.tcp().next_back());
    let stuck =
        !flow.streams.is_empty() && last().count() > 0 && last().all(|tcp| tcp.unacked > 0 && tcp.backoff > 0);
    if flow.is_udp() || !stuck {
        return None;
    }
    let mut builder = FindingBuilder::new(flow, Cause::PathMtu);
    let end = Some(flow.sender.end);
    let timeouts: f64 = last().map(|tcp| f64::from(tcp.backoff)).sum();
    let source = "streams[].sender.samples[].tcp.backoff";
    builder.value("retransmission timeouts in a row", Some(timeouts), "timeouts", Bound::Above(0.0), end, source);
    let mtu = last().map(|tcp| tcp.pmtu_bytes).max().unwrap_or(0);
    let narrow = flow.route.as_ref().and_then(|route| route.too_narrow_for(f64::from(mtu)));
    let probed = flow.probed_mtu().filter(|&found| found < mtu);
    let (why, place) = if let Some(hop) = narrow {
        let source = format!("topology.links, {}", hop.link.name);
        let bound = Bound::Below(f64::from(mtu));
        let metric = format!("MTU of {}", hop.link.name);
        builder.value(&metric, Some(f64::from(hop.mtu_bytes)), "bytes", bound, None, &source);
        let why = format!("packets of {mtu} bytes do not pass {} (MTU {})", hop.link.name, hop.mtu_bytes);
        (why, Some(format!("network, {}", hop.link.name)))
    } else if let Some(found) = probed {
        let (bound, found) = (Bound::Below(f64::from(mtu)), f64::from(found));
        builder.value("path MTU found by --probe-mtu", Some(found), "bytes", bound, None, "path.mtu");
        (format!("packets of {mtu} bytes do not pass: the path's MTU is {found}"), None)
    } else {
        let losing = flow.route.as_ref().and_then(|route| route.forward.iter().find(|hop| hop.link.lost > 0));
        let lost = losing.map(|hop| format!(", and {} lost {} frames", hop.link.name, hop.link.lost));
        let place = losing.map(|hop| format!("network, {}", hop.link.name));
        let why = format!(
            "segments of up to {mtu} bytes were retransmitted repeatedly and never acknowledged{}",
            lost.unwrap_or_default()
        );
        (why, place)
    };
    // What passed before did not become too large.
    if narrow.is_none() && probed.is_none() && passed_before(flow) {
        return None;
    }
    let is_known = narrow.is_some() || place.is_some() || probed.is_some();
    let strength = if is_known { Strength::Strong } else { Strength::Moderate };
    let size = match probed {
        Some(found) => format!("Let ICMP \"packet too big\" through, set the interface's MTU to {found}"),
        None => "Find the largest packet that passes with `landspeed run HOST --probe-mtu` and set the interface's MTU to it".to_owned(),
    };
    let next = format!(
        "{size}, or let TCP find it: `sysctl -w net.ipv4.tcp_mtu_probing=1` on {}.",
        flow.label(&flow.sender)
    );
    let finding = builder.holds(strength, why, next);
    Some(Verdict {
        cause: Cause::PathMtu,
        confidence: strength.confidence(),
        summary: format!("Nothing was delivered in the steady phase: {}, and no ICMP message said why.", finding.why),
        place,
        evidence: finding.readings,
        ruled_out: Vec::new(),
        missing: missing_readings(flow),
        next_step: finding.next_step,
        epochs: epochs(flow),
    })
}

/// Whether full-sized segments were acknowledged on every stream, before the steady phase.
fn passed_before(flow: &Flow) -> bool {
    let passed = |stream: &StreamView<'_>| {
        let mut samples = stream.sender()?.samples.iter().filter_map(|sample| sample.tcp.as_deref());
        Some(samples.any(|tcp| {
            tcp.bytes_acked.is_some_and(|bytes| bytes as f64 >= PASSED_SEGMENTS * f64::from(tcp.snd_mss_bytes))
        }))
    };
    flow.streams.iter().all(|stream| passed(stream) == Some(true))
}

/// Verdict on a run that delivered nothing in its steady phase, because the path went down before.
fn path_down(flow: &Flow) -> Option<Verdict> {
    let finding = causes::path_down(flow);
    let strength = limited_by_run(flow, finding.strength()?);
    Some(verdict(flow, &[], &finding, &[], strength.confidence()))
}

/// Lists what was not visible in this run.
fn missing_readings(flow: &Flow) -> Vec<String> {
    let mut missing = Vec::new();
    for (seen, host) in [(flow.sender_seen(), &flow.sender), (flow.receiver_seen(), &flow.receiver)] {
        if !seen && !flow.is_rr() {
            let what = if flow.observed {
                let counts = "its socket's queues and counters, its cores";
                format!("the {} ({counts})", host.name())
            } else if flow.document.iperf3.is_some() {
                format!("the {} over time (iperf3 reports totals only)", host.name())
            } else {
                format!("the {}'s report", host.name())
            };
            missing.push(what);
        }
    }
    if flow.document.status == Status::Partial && !contradicts_itself(flow.document) {
        missing.push("the rest of the run, which was cut short".to_owned());
    }
    if !flow.is_rr() && !flow.has_enough_samples() {
        missing.push(format!("samples: {}", flow.describe_shortfall()));
    }
    missing
}

/// The readings that ruled out each of the other causes.
fn ruled_out(findings: &[Finding], named: Option<Cause>, kept: &[&Finding]) -> Vec<Evidence> {
    findings
        .iter()
        .filter(|finding| Some(finding.cause) != named && !kept.iter().any(|other| other.cause == finding.cause))
        .flat_map(|finding| finding.readings.iter().filter(|reading| !reading.met).cloned())
        .collect()
}

fn join_list(missing: &[String]) -> String {
    let shown = missing.len().min(3);
    let more = if missing.len() > shown { format!(" and {} more", missing.len() - shown) } else { String::new() };
    let verb = if missing.len() == 1 { "was" } else { "were" };
    format!("{}{more} {verb}", missing[..shown].join(", "))
}

fn deduplicated(list: Vec<String>) -> Vec<String> {
    let mut kept = Vec::with_capacity(list.len());
    for item in list {
        if !kept.contains(&item) {
            kept.push(item);
        }
    }
    kept
}
