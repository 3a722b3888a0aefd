//! A path that changes: one verdict for each part of the run between changes, and what remains of the verdict about the
//! whole.

use landspeed_model::{
    Confidence, Direction, LabDocument, LabEpoch, LabEvent, LabFlow, PhaseName, RunDocument, Verdict,
};

use crate::flow::Flow;
use crate::text;

/// Maximum number of parts of a run that are diagnosed.
const MAX_EPOCHS: usize = 64;

/// Returns what limited a flow between the changes of its path, in the order of time; empty if nothing that concerns it
/// changed in its steady phase. `diagnose` returns the verdict about a part.
pub(crate) fn path_epochs(
    lab: &LabDocument,
    flow: &LabFlow,
    direction: Direction,
    diagnose: fn(&LabDocument, &LabFlow, Direction) -> Option<Verdict>,
) -> Vec<LabEpoch> {
    let Some(run) = flow.run.as_ref().filter(|_| !lab.events.is_empty()) else { return Vec::new() };
    let view = Flow::in_lab(lab, flow, run, direction);
    let on_scenario = |at_ns: u64| at_ns.saturating_add(flow.start_ns);
    let (from_ns, to_ns) = (on_scenario(view.span_ns.0), on_scenario(view.span_ns.1));
    let mut bounds: Vec<u64> = vec![from_ns];
    for event in lab.events.iter().filter(|event| concerns(event, flow, &view)) {
        let at_ns = event.applied_ns.unwrap_or(event.at_ns);
        if at_ns > from_ns && at_ns < to_ns && !bounds.contains(&at_ns) && bounds.len() < MAX_EPOCHS {
            bounds.push(at_ns);
        }
    }
    if bounds.len() == 1 {
        return Vec::new();
    }
    bounds.push(to_ns);
    bounds.sort_unstable();
    let direction = view.direction;
    let mut part = LabDocument { flows: Vec::new(), ..lab.clone() };
    let mut cut = LabFlow { run: Some(run.clone()), ..flow.clone() };
    bounds
        .windows(2)
        .map(|span| {
            let [start_ns, end_ns] = [span[0], span[1]];
            settings_at(&mut part, lab, start_ns);
            cut.run = Some(cut_run(run, (start_ns - flow.start_ns, end_ns - flow.start_ns)));
            let goodput_bps = cut.run.as_ref().map(|run| Flow::new(run, direction).goodput_bps);
            // The losses of UDP are known for the whole run only.
            let verdict = if view.is_udp() { None } else { diagnose(&part, &cut, direction) };
            LabEpoch {
                direction,
                span_ns: (start_ns, end_ns),
                goodput_bps: goodput_bps.filter(|bps| bps.is_finite()),
                cause: verdict.as_ref().map(|verdict| verdict.cause),
                confidence: verdict.as_ref().map(|verdict| verdict.confidence),
                summary: verdict.map(|verdict| verdict.summary).unwrap_or_default(),
            }
        })
        .collect()
}

/// Returns the run with its steady phase and its intervals cut to a time after the agreed start.
fn cut_run(run: &RunDocument, (from_ns, to_ns): (u64, u64)) -> RunDocument {
    let mut run = run.clone();
    for phase in run.phases.iter_mut().filter(|phase| phase.name == PhaseName::Steady) {
        (phase.start_ns, phase.end_ns, phase.bytes) = (from_ns, to_ns, None);
    }
    for stream in &mut run.streams {
        stream.intervals.retain(|interval| interval.end_ns > from_ns && interval.start_ns < to_ns);
        for interval in &mut stream.intervals {
            // An interval that a change splits counts by time.
            let whole_ns = interval.end_ns.saturating_sub(interval.start_ns);
            (interval.start_ns, interval.end_ns) = (interval.start_ns.max(from_ns), interval.end_ns.min(to_ns));
            let part_ns = interval.end_ns.saturating_sub(interval.start_ns);
            let bytes = u128::from(interval.bytes) * u128::from(part_ns) / u128::from(whole_ns.max(1));
            interval.bytes = u64::try_from(bytes).unwrap_or(interval.bytes);
        }
    }
    run
}

/// Whether an event concerns a flow: it changes a link of its path or one of its hosts, or another flow starts or stops.
fn concerns(event: &LabEvent, flow: &LabFlow, view: &Flow<'_>) -> bool {
    let Some((kind, name)) = event.object.split_once(' ') else { return false };
    match kind {
        "link" => view
            .route
            .as_ref()
            .is_none_or(|route| route.forward.iter().chain(&route.reverse).any(|hop| hop.link.name == name)),
        "host" => [&flow.from, &flow.to].into_iter().any(|host| host == name),
        _ => flow.name != name,
    }
}

/// Sets the rates and delays of the links to those at a time.
fn settings_at(part: &mut LabDocument, lab: &LabDocument, at_ns: u64) {
    part.links.clone_from(&lab.links);
    for event in lab.events.iter().filter(|event| event.at_ns <= at_ns) {
        let Some(name) = event.object.strip_prefix("link ") else { continue };
        let Some(number) = event.number.filter(|number| number.is_finite() && *number >= 0.0) else { continue };
        for link in part.links.iter_mut().filter(|link| link.name == name) {
            match event.key.as_str() {
                "rate" => link.rate_bps = number as u64,
                "delay" => link.delay_ns = number as u64,
                _ => {}
            }
        }
    }
}

/// Lowers the confidence in a verdict about a path with a link whose rate follows a trace: only its mean is known.
pub(crate) fn limit_by_traces(
    mut verdict: Verdict,
    lab: &LabDocument,
    flow: &LabFlow,
    direction: Direction,
) -> Verdict {
    let Some(run) = flow.run.as_ref().filter(|_| lab.links.iter().any(|link| link.rate_over_time)) else {
        return verdict;
    };
    let view = Flow::in_lab(lab, flow, run, direction);
    let hops = view.route.iter().flat_map(|route| &route.forward);
    for hop in hops.filter(|hop| hop.link.rate_over_time) {
        verdict.confidence = verdict.confidence.min(Confidence::Medium);
        verdict.missing.push(format!("the rate of link {} at each time: it follows a trace", hop.link.name));
    }
    verdict
}

/// Returns the verdict about the whole run: if the parts have different limits, it is one of several, at low confidence.
pub(crate) fn combine(mut verdict: Verdict, epochs: &[LabEpoch]) -> Verdict {
    if epochs.is_empty() {
        return verdict;
    }
    let Some(least) = epochs.iter().filter_map(|epoch| epoch.confidence).min() else {
        verdict.confidence = verdict.confidence.min(Confidence::Medium);
        return verdict;
    };
    let causes: Vec<_> = epochs.iter().map(|epoch| epoch.cause).collect();
    if causes.iter().all(|cause| *cause == Some(verdict.cause)) {
        verdict.confidence = verdict.confidence.min(least);
        return verdict;
    }
    let longest = epochs.iter().max_by_key(|epoch| epoch.span_ns.1 - epoch.span_ns.0);
    if let Some(cause) = longest.and_then(|epoch| epoch.cause) {
        verdict.cause = cause;
        verdict.ruled_out.retain(|evidence| evidence.about != cause);
    }
    verdict.confidence = Confidence::Low;
    let mut parts: Vec<String> = Vec::new();
    let mut last = None;
    for epoch in epochs {
        if last == Some(epoch.cause) {
            continue;
        }
        let phrase = epoch.cause.map_or("unknown", |cause| cause.phrase());
        parts.push(format!("from {}: {phrase}", text::nanos(epoch.span_ns.0 as f64)));
        last = Some(epoch.cause);
    }
    let rate = verdict.summary.split_once(':').map_or(String::new(), |(rate, _)| format!("{rate}: "));
    verdict.summary = format!("{rate}the limit changes with the path: {}", parts.join("; "));
    verdict.evidence.clear();
    verdict.place = None;
    "Look at each part of the run: what limits before an event does not limit after it."
        .clone_into(&mut verdict.next_step);
    verdict
}
