//! Comparison of runs with the published figures of a scenario, and time series of flows.

use std::collections::BTreeMap;

use landspeed_model::{
    CheckedCriterion, ComparedFigure, Criterion, FigureBasis, FlowSeries, LabDocument, LabFigure, LabFlow, LabStatus,
    PhaseName, Reference, ReferenceFigure, RunDocument, Sample, Stream, deviation,
};

use crate::{balance, steady_bps};

/// Approximate maximum number of points of a series; in longer flows each point covers several intervals.
const MAX_POINTS: u64 = 6000;
/// Width of the steps in which ramp and variation of a flow are determined.
const STEP_NS: u64 = 100_000_000;
/// Share of the largest goodput that ends the ramp of a flow.
const RAMP_SHARE: f64 = 0.9;

/// Levels of factors by key.
type Levels = BTreeMap<String, serde_json::Value>;

/// Compares each figure of `reference` with the complete runs among `documents` in its cell. Returns them in
/// the order of the reference.
#[must_use]
pub fn compare_reference(reference: &Reference, documents: &[LabDocument]) -> Vec<ComparedFigure> {
    reference.figures.iter().map(|figure| compared(figure, &reference.source, documents)).collect()
}

fn compared(figure: &ReferenceFigure, source: &str, documents: &[LabDocument]) -> ComparedFigure {
    let scale = figure.unit.scale();
    let values: Vec<f64> = selected(documents, &figure.cell)
        .filter_map(|document| relative(document, figure, documents))
        .map(|value| value / scale)
        .collect();
    let measured = landspeed_stats::median(&values);
    ComparedFigure {
        name: figure.name.clone(),
        unit: figure.unit,
        basis: figure.basis,
        figure: figure.figure,
        flow: figure.flow.clone(),
        cell: figure.cell.clone(),
        relative: figure.minus.is_some() || figure.over.is_some(),
        reported: figure.value,
        measured,
        min: values.iter().copied().reduce(f64::min),
        max: values.iter().copied().reduce(f64::max),
        runs: u32::try_from(values.len()).unwrap_or(u32::MAX),
        deviation: measured.and_then(|measured| deviation(figure.value, measured)),
        source: figure.source.clone().unwrap_or_else(|| source.to_owned()),
        reason: figure.reason.clone(),
    }
}

/// Checks each criterion of `reference` in each cell of the complete runs among `documents`. Returns them in the order
/// of the reference, then of the cells.
#[must_use]
pub fn check_criteria(reference: &Reference, documents: &[LabDocument]) -> Vec<CheckedCriterion> {
    let mut cells: Vec<&Levels> = Vec::new();
    for document in documents.iter().filter(|document| document.status == LabStatus::Complete) {
        if !cells.contains(&&document.scenario.cell) {
            cells.push(&document.scenario.cell);
        }
    }
    let pairs = reference.criteria.iter().flat_map(|criterion| cells.iter().map(move |cell| (criterion, *cell)));
    pairs
        .filter(|(criterion, cell)| criterion.cell.iter().all(|(key, value)| cell.get(key) == Some(value)))
        // A cell compared with itself says nothing.
        .filter(|(criterion, cell)| {
            criterion.over.as_ref().is_none_or(|base| base.iter().any(|(key, value)| cell.get(key) != Some(value)))
        })
        .map(|(criterion, cell)| checked(criterion, cell, documents))
        .collect()
}

fn checked(criterion: &Criterion, cell: &Levels, documents: &[LabDocument]) -> CheckedCriterion {
    let figure = |flow: &Option<String>| ReferenceFigure {
        name: String::new(),
        value: 0.0,
        unit: criterion.unit,
        basis: FigureBasis::default(),
        figure: criterion.figure,
        flow: flow.clone(),
        cell: BTreeMap::new(),
        minus: None,
        over: criterion.over.clone(),
        from_s: criterion.from_s,
        until_s: criterion.until_s,
        source: None,
        reason: None,
    };
    let (own, other) = (figure(&criterion.flow), figure(&criterion.beside));
    let of_run = |document: &LabDocument| {
        let measured = relative(document, &own, documents)?;
        let base = if criterion.beside.is_none() { 1.0 } else { relative(document, &other, documents)? };
        (base > 0.0).then(|| measured / base / criterion.unit.scale())
    };
    let values: Vec<f64> = selected(documents, cell).filter_map(of_run).collect();
    let is_met = |value: f64| {
        criterion.at_least.is_none_or(|limit| value >= limit) && criterion.at_most.is_none_or(|limit| value <= limit)
    };
    let measured = landspeed_stats::median(&values);
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    CheckedCriterion {
        name: criterion.name.clone(),
        cell: cell.iter().filter(|(key, _)| varies(key, documents)).map(|(k, v)| (k.clone(), v.clone())).collect(),
        at_least: criterion.at_least,
        at_most: criterion.at_most,
        unit: criterion.unit,
        measured,
        min: values.iter().copied().reduce(f64::min),
        max: values.iter().copied().reduce(f64::max),
        runs: count(values.len()),
        met_runs: count(values.iter().filter(|value| is_met(**value)).count()),
        met: measured.filter(|_| criterion.at_least.or(criterion.at_most).is_some()).map(is_met),
        source: criterion.source.clone(),
        reason: criterion.reason.clone(),
    }
}

/// Whether a key has several values among the runs.
fn varies(key: &str, documents: &[LabDocument]) -> bool {
    let mut values = documents.iter().map(|document| document.scenario.cell.get(key));
    let first = values.next();
    values.any(|value| Some(value) != first)
}

fn selected<'a>(documents: &'a [LabDocument], cell: &'a Levels) -> impl Iterator<Item = &'a LabDocument> {
    let holds =
        |document: &LabDocument| cell.iter().all(|(key, value)| document.scenario.cell.get(key) == Some(value));
    documents.iter().filter(move |document| document.status == LabStatus::Complete && holds(document))
}

/// Returns the figure of a run in base units. For relative figures it is the difference to, or the ratio over,
/// the run with the same seed in the reference cell.
fn relative(document: &LabDocument, figure: &ReferenceFigure, documents: &[LabDocument]) -> Option<f64> {
    let value = value(document, figure)?;
    let other = |levels: &Levels| {
        let mut cell = document.scenario.cell.clone();
        cell.extend(levels.clone());
        let mut found = selected(documents, &cell).filter(|other| other.seed == document.seed);
        found.next().and_then(|other| self::value(other, figure))
    };
    match (&figure.minus, &figure.over) {
        (Some(levels), _) => Some(value - other(levels)?),
        (None, Some(levels)) => other(levels).filter(|&base| base > 0.0).map(|base| value / base),
        (None, None) => Some(value),
    }
}

/// Returns the figure of a run in bits/s, bytes, nanoseconds, segments or as a ratio.
fn value(document: &LabDocument, figure: &ReferenceFigure) -> Option<f64> {
    let named = |flow: &&LabFlow| figure.flow.as_ref().is_none_or(|name| *name == flow.name);
    let flows: Vec<&LabFlow> = document.flows.iter().filter(named).collect();
    let runs: Vec<&RunDocument> = flows.iter().filter_map(|flow| flow.run.as_ref()).collect();
    if flows.is_empty() || runs.len() < flows.len() {
        return None;
    }
    let ns = |seconds: f64| (seconds * 1e9) as u64;
    let window = (figure.from_s.is_some() || figure.until_s.is_some())
        .then(|| (figure.from_s.map_or(0, ns), figure.until_s.map_or(u64::MAX, ns)));
    let streams = || runs.iter().flat_map(|run| &run.streams);
    let rates = || streams().filter_map(|stream| rate_bps(stream, window)).collect::<Vec<f64>>();
    match figure.figure {
        LabFigure::Goodput if window.is_none() => flows.iter().map(|flow| flow.goodput_bps).sum(),
        LabFigure::Goodput => Some(rates().iter().sum()),
        LabFigure::Balance => balance(&rates()),
        LabFigure::Retransmits => match window {
            None => flows.iter().map(|flow| flow.retransmits.map(|count| count as f64)).sum(),
            Some((from, until)) => Some(streams().map(|stream| retransmits(stream, from, until) as f64).sum()),
        },
        LabFigure::Loss => loss_ratio(&runs),
        LabFigure::Rtt if window.is_none() => mean_ns(runs.iter().filter_map(|run| mean_rtt_ns(run))),
        LabFigure::Rtt => mean_ns(runs.iter().filter_map(|run| mean_rtt_between_ns(run, window?))),
        LabFigure::RttMax => {
            runs.iter().filter_map(|run| max_rtt_ns(run, window.or(steady(run))?)).max().map(|ns| ns as f64)
        }
        LabFigure::Time => {
            flows.iter().filter_map(|flow| flow.run.as_ref().and_then(transfer_ns)).max().map(|ns| ns as f64)
        }
        LabFigure::LatencyP99 => runs
            .iter()
            .map(|run| run.summary.latency_p99_ns)
            .collect::<Option<Vec<_>>>()?
            .into_iter()
            .max()
            .map(|ns| ns as f64),
        LabFigure::Cwnd => {
            let together = |a: (u64, u64), b: (u64, u64)| (a.0.max(b.0), a.1.min(b.1));
            let steady = runs.iter().filter_map(|run| steady(run)).reduce(together);
            cwnd_bytes(streams(), window.or(steady)?).map(|bytes| bytes as f64)
        }
        LabFigure::RampTime => runs.iter().filter_map(|run| ramp_ns(run)).max().map(|ns| ns as f64),
        LabFigure::Variation => {
            let variations =
                runs.iter().map(|run| variation(run, window.or(steady(run))?)).collect::<Option<Vec<_>>>()?;
            variations.into_iter().reduce(f64::max)
        }
    }
}

/// Returns the goodput of a flow in steps of at least [`STEP_NS`], bits/s, and the width of a step.
fn steps_bps(run: &RunDocument) -> Option<(u64, Vec<f64>)> {
    let series = flow_series(run)?;
    let points = STEP_NS.div_ceil(series.interval_ns).max(1);
    let steps = series.goodput_bps.chunks_exact(usize::try_from(points).ok()?);
    let mean = |rates: &[u64]| rates.iter().sum::<u64>() as f64 / rates.len() as f64;
    Some((series.interval_ns * points, steps.map(mean).collect()))
}

/// Returns the time until the goodput first reaches [`RAMP_SHARE`] of its largest; `None` if nothing was delivered.
fn ramp_ns(run: &RunDocument) -> Option<u64> {
    let (step_ns, rates) = steps_bps(run)?;
    let largest = rates.iter().copied().fold(0.0, f64::max);
    let first = rates.iter().position(|rate| largest > 0.0 && *rate >= RAMP_SHARE * largest)?;
    Some((first as u64 + 1) * step_ns)
}

/// Returns standard deviation / mean of the goodput of the steps within a window; `None` with fewer than two steps,
/// or if nothing was delivered.
fn variation(run: &RunDocument, (from_ns, until_ns): (u64, u64)) -> Option<f64> {
    let (step_ns, rates) = steps_bps(run)?;
    let inside = |step: usize| step as u64 * step_ns >= from_ns && (step as u64 + 1) * step_ns <= until_ns;
    let rates: Vec<f64> =
        rates.into_iter().enumerate().filter(|(step, _)| inside(*step)).map(|(_, rate)| rate).collect();
    let count = rates.len() as f64;
    let mean = rates.iter().sum::<f64>() / count;
    let squares: f64 = rates.iter().map(|rate| (rate - mean).powi(2)).sum();
    (rates.len() > 1 && mean > 0.0).then(|| (squares / (count - 1.0)).sqrt() / mean)
}

/// Returns the share of packets lost, over all UDP flows.
fn loss_ratio(runs: &[&RunDocument]) -> Option<f64> {
    let flows: Vec<_> = runs.iter().filter_map(|run| Some((run.summary.loss_ratio?, run.udp.as_ref()))).collect();
    if let [(only, _)] = flows[..] {
        return Some(only);
    }
    let totals = flows.iter().map(|(_, udp)| Some((udp.as_ref()?.lost_packets?, udp.as_ref()?.sent_packets?)));
    let totals: Vec<(i64, u64)> = totals.collect::<Option<_>>()?;
    let sent: u64 = totals.iter().map(|(_, sent)| sent).sum();
    (sent > 0).then(|| totals.iter().map(|(lost, _)| *lost as f64).sum::<f64>() / sent as f64)
}

/// Returns the mean; `None` without values.
fn mean_ns(values: impl Iterator<Item = u64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0_u32), |(sum, count), ns| (sum + ns as f64, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

/// Returns the goodput of a stream in the steady phase, or in a window without the drain phase, bits/s.
fn rate_bps(stream: &Stream, window: Option<(u64, u64)>) -> Option<f64> {
    let Some((from, until)) = window else { return steady_bps(stream) };
    let moving = stream.intervals.iter().filter(|interval| interval.phase != PhaseName::Drain);
    let (bytes, ns) = moving.fold((0.0, 0), |(bytes, ns), interval| {
        let covered = interval.end_ns.min(until).saturating_sub(interval.start_ns.max(from));
        let width = (interval.end_ns - interval.start_ns).max(1);
        (bytes + interval.bytes as f64 * covered as f64 / width as f64, ns + covered)
    });
    (ns > 0).then(|| bytes * 8e9 / ns as f64)
}

fn steady(run: &RunDocument) -> Option<(u64, u64)> {
    let phase = run.phases.iter().find(|phase| phase.name == PhaseName::Steady)?;
    Some((phase.start_ns, phase.end_ns))
}

fn samples(stream: &Stream) -> impl DoubleEndedIterator<Item = &Sample> {
    stream.sender.iter().flat_map(|end| &end.samples)
}

/// Returns the number of segments that the sender retransmitted in a window.
fn retransmits(stream: &Stream, from: u64, until: u64) -> u64 {
    let count = |t_ns: u64| {
        let last =
            samples(stream).filter(|sample| sample.t_ns <= t_ns).filter_map(|sample| sample.tcp.as_ref()).next_back();
        last.map_or(0, |tcp| u64::from(tcp.total_retrans))
    };
    count(until).saturating_sub(if from == 0 { 0 } else { count(from) })
}

/// Returns the maximum in a window of the cwnd summed over all streams, bytes.
fn cwnd_bytes<'a>(streams: impl Iterator<Item = &'a Stream>, (from, until): (u64, u64)) -> Option<u64> {
    let mut sums: BTreeMap<u64, u64> = BTreeMap::new();
    for sample in streams.flat_map(samples).filter(|sample| (from..=until).contains(&sample.t_ns)) {
        let Some(tcp) = &sample.tcp else { continue };
        *sums.entry(sample.t_ns).or_default() += u64::from(tcp.snd_cwnd) * u64::from(tcp.snd_mss_bytes);
    }
    sums.into_values().max()
}

/// Returns the mean of the senders' smoothed RTT in the steady phase, over all streams, nanoseconds.
#[must_use]
pub fn mean_rtt_ns(run: &RunDocument) -> Option<u64> {
    mean_rtt_between_ns(run, steady(run)?)
}

fn mean_rtt_between_ns(run: &RunDocument, window: (u64, u64)) -> Option<u64> {
    let (sum_us, count) = rtts_us(run, window).fold((0, 0), |(sum, count), rtt_us| (sum + rtt_us, count + 1));
    (count > 0).then(|| sum_us * 1000 / count)
}

fn max_rtt_ns(run: &RunDocument, window: (u64, u64)) -> Option<u64> {
    rtts_us(run, window).max().map(|us| us * 1000)
}

/// Smoothed RTTs of the senders in a window, of all streams, microseconds.
fn rtts_us(run: &RunDocument, (from_ns, until_ns): (u64, u64)) -> impl Iterator<Item = u64> {
    run.streams
        .iter()
        .flat_map(samples)
        .filter(move |sample| (from_ns..=until_ns).contains(&sample.t_ns))
        .filter_map(|sample| sample.tcp.as_ref().map(|tcp| u64::from(tcp.rtt_us)).filter(|&rtt_us| rtt_us > 0))
}

/// Returns the time from the start of a flow to the end of its last interval with data, nanoseconds; `None` if it
/// delivered nothing.
fn transfer_ns(run: &RunDocument) -> Option<u64> {
    let intervals = run.streams.iter().flat_map(|stream| &stream.intervals);
    intervals.filter(|interval| interval.bytes > 0).map(|interval| interval.end_ns).max()
}

/// Returns the time series of the first direction of a run until the end of the steady phase, with the
/// resolution of the sampling interval.
#[must_use]
pub fn flow_series(run: &RunDocument) -> Option<FlowSeries> {
    let (_, end_ns) = steady(run)?;
    let first = run.streams.first()?.direction;
    let streams = || run.streams.iter().filter(|stream| stream.direction == first);
    let finest = run.effective.as_ref().unwrap_or(&run.requested).interval_ns.max(1);
    let interval_ns = finest * end_ns.div_ceil(finest).div_ceil(MAX_POINTS).max(1);
    // A remainder of less than half a point at the end is left out: its rate would appear too low.
    let points = usize::try_from((end_ns + interval_ns / 2) / interval_ns).ok()?;
    let at = |t_ns: u64| usize::try_from(t_ns / interval_ns).unwrap_or(usize::MAX);
    let mut bytes = vec![0.0; points];
    for stream in streams().filter(|stream| !is_sampled(stream)) {
        for interval in &stream.intervals {
            // An interval boundary may be late by less than half an interval; the middle determines the point.
            let middle = interval.start_ns.midpoint(interval.end_ns);
            if let Some(sum) = bytes.get_mut(at(middle)) {
                *sum += interval.bytes as f64;
            }
        }
    }
    let (mut retransmits, mut cwnd) = (vec![0; points], vec![0; points]);
    let mut is_tcp = false;
    for stream in streams() {
        let (mut seen, mut arrived, mut last_ns) = (0, 0, 0);
        let mut largest: Vec<Option<u64>> = vec![None; points];
        for (sample, tcp) in samples(stream).filter_map(|sample| Some((sample, sample.tcp.as_ref()?))) {
            is_tcp = true;
            // Samples are early or late by less than half an interval; the middle between two determines the point.
            let span = (std::mem::replace(&mut last_ns, sample.t_ns), sample.t_ns);
            let Some(point) = Some(at(span.0.midpoint(span.1))).filter(|&point| point < points) else { break };
            let total = u64::from(tcp.total_retrans);
            retransmits[point] += total.saturating_sub(seen);
            seen = total.max(seen);
            let delivered = u64::from(tcp.delivered.unwrap_or_default());
            spread(&mut bytes, interval_ns, span, delivered.saturating_sub(arrived) * u64::from(tcp.snd_mss_bytes));
            arrived = delivered.max(arrived);
            largest[point] = largest[point].max(Some(u64::from(tcp.snd_cwnd) * u64::from(tcp.snd_mss_bytes)));
        }
        // A point without a sample has the window of the previous one.
        let mut now = 0;
        for (sum, largest) in cwnd.iter_mut().zip(largest) {
            now = largest.unwrap_or(now);
            *sum += now;
        }
    }
    if !is_tcp {
        (retransmits, cwnd) = (Vec::new(), Vec::new());
    }
    let bps = |bytes: f64| (bytes * 8e9 / interval_ns as f64).round() as u64;
    let goodput_bps = bytes.into_iter().map(bps).collect();
    Some(FlowSeries { interval_ns, goodput_bps, retransmits, cwnd_bytes: cwnd })
}

/// Adds to each point of a series its part of the bytes that were delivered evenly between two samples.
fn spread(points: &mut [f64], interval_ns: u64, (from_ns, until_ns): (u64, u64), bytes: u64) {
    let width = until_ns.saturating_sub(from_ns);
    if width == 0 {
        return;
    }
    let first = usize::try_from(from_ns / interval_ns).unwrap_or(usize::MAX);
    for (point, sum) in points.iter_mut().enumerate().skip(first) {
        let start_ns = point as u64 * interval_ns;
        if start_ns >= until_ns {
            break;
        }
        let covered = (start_ns + interval_ns).min(until_ns) - start_ns.max(from_ns);
        *sum += bytes as f64 * covered as f64 / width as f64;
    }
}

/// Whether the sender's TCP has a counter of delivered segments, which counts them when they are acknowledged
/// or SACKed. The bytes read by the receiving application are not the rate of the path: data that waits for a
/// retransmission arrives in one burst.
fn is_sampled(stream: &Stream) -> bool {
    samples(stream).any(|sample| sample.tcp.as_ref().is_some_and(|tcp| tcp.delivered.is_some()))
}

#[cfg(test)]
mod tests;
