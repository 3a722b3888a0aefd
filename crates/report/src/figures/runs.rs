//! Figures of runs: metrics over time on a common axis, streams, and totals.

use std::collections::BTreeMap;

use landspeed_model::{
    Direction, Drawing, Figure, FigureAxis, FigureChart, FigureLine, FigureNote, FigurePanel, FiguresDocument,
    Metric, RunDocument, Sample, Status, Stream, TcpInfo,
};
use landspeed_results::{figures as totals, streams_bps};

use super::{MAX_OVERLAYS, MAX_RUNS, plural, quantity, sweep};

/// Maximum number of points of a line: longer runs are averaged over longer intervals.
const MAX_POINTS: u64 = 400;

/// Returns the page of runs.
pub(crate) fn figures(runs: &[(String, &RunDocument)]) -> FiguresDocument {
    let drawn = &runs[..runs.len().min(MAX_RUNS)];
    let names = unique_names(drawn);
    let mut figures: Vec<Figure> = [
        over_time(drawn, &names, "goodput", "Goodput over time", ("Goodput", "bit/s"), goodput),
        over_time(
            drawn,
            &names,
            "retransmits",
            "Retransmits over time",
            ("Retransmits per interval", "segments"),
            retransmits,
        ),
        over_time(drawn, &names, "rtt", "RTT over time", ("Smoothed RTT, mean of the streams", "ns"), rtt),
        over_time(drawn, &names, "cwnd", "Congestion window over time", ("cwnd, sum of the streams", "B"), cwnd),
    ]
    .into_iter()
    .flatten()
    .collect();
    let places: Vec<(String, Vec<Vec<f64>>)> = drawn
        .iter()
        .zip(&names)
        .filter_map(|((_, run), name)| {
            let streams = streams_bps(run);
            (streams.len() > 1).then(|| (name.clone(), vec![streams]))
        })
        .collect();
    if !places.is_empty() {
        let places: Vec<(String, &[Vec<f64>])> =
            places.iter().map(|(name, runs)| (name.clone(), runs.as_slice())).collect();
        figures.push(sweep::stream_balance(&places, ""));
    }
    let mut notes = Vec::new();
    if runs.len() > drawn.len() {
        let left: Vec<&str> = runs[drawn.len()..].iter().map(|(name, _)| name.as_str()).take(10).collect();
        let more = if runs.len() - drawn.len() > left.len() { ", …" } else { "" };
        notes.push(FigureNote {
            serious: true,
            text: format!(
                "{} runs, of which the first {MAX_RUNS} are drawn. Not drawn: {}{more}.",
                runs.len(),
                left.join(", ")
            ),
        });
    }
    for ((_, run), name) in drawn.iter().zip(&names) {
        match run.status {
            Status::Complete => {}
            Status::Partial => notes.push(FigureNote { serious: true, text: format!("{name} is incomplete.") }),
            Status::Failed => {
                notes.push(FigureNote { serious: true, text: format!("{name} failed: nothing was measured.") });
            }
        }
    }
    FiguresDocument {
        about: plural(runs.len(), "run"),
        title: title(&names),
        answer: answer(drawn, &names),
        started: runs.iter().map(|(_, run)| run.started.clone()).min().unwrap_or_default(),
        facts: drawn
            .iter()
            .zip(&names)
            .map(|((_, run), name)| {
                let bps = totals(run).get(Metric::Goodput);
                [name.clone(), bps.map_or_else(|| "no goodput".to_owned(), |bps| quantity::text(bps, "bit/s"))]
            })
            .collect(),
        notes,
        figures,
        ..FiguresDocument::default()
    }
}

fn title(names: &[String]) -> String {
    match names {
        [one] => one.clone(),
        [first, .., last] => format!("{first} to {last}, {}", plural(names.len(), "run")),
        [] => String::new(),
    }
}

/// Numbers equal names.
fn unique_names(runs: &[(String, &RunDocument)]) -> Vec<String> {
    let count = |name: &str| runs.iter().filter(|(other, _)| other == name).count();
    runs.iter()
        .enumerate()
        .map(|(at, (name, _))| if count(name) > 1 { format!("{name} ({})", at + 1) } else { name.clone() })
        .collect()
}

/// Summarizes the range of goodput: single runs cannot show a difference.
fn answer(runs: &[(String, &RunDocument)], names: &[String]) -> String {
    let mut rates: Vec<(f64, &str)> = runs
        .iter()
        .zip(names)
        .filter_map(|((_, run), name)| Some((totals(run).get(Metric::Goodput)?, name.as_str())))
        .collect();
    rates.sort_by(|a, b| a.0.total_cmp(&b.0));
    let said = |(bps, name): &(f64, &str)| format!("{} ({name})", quantity::text(*bps, "bit/s"));
    match rates.as_slice() {
        [] => "No run measured goodput.".to_owned(),
        [one] => format!("Goodput {}.", said(one)),
        [low, .., high] => format!(
            "Goodput of {} lies between {} and {}. To decide whether groups of runs differ, use `landspeed compare`.",
            plural(rates.len(), "run"),
            said(low),
            said(high)
        ),
    }
}

type Series = Vec<(f64, Option<f64>)>;

fn over_time(
    runs: &[(String, &RunDocument)],
    names: &[String],
    id: &str,
    title: &str,
    (axis, unit): (&str, &str),
    of: fn(&RunDocument, u64) -> Series,
) -> Option<Figure> {
    let mut lines = Vec::new();
    let mut longest_ns = 0;
    for (series, (_, run)) in runs.iter().enumerate() {
        let every = every_ns(run);
        let points = of(run, every);
        if points.iter().all(|(_, value)| value.is_none()) {
            continue;
        }
        longest_ns = longest_ns.max(every);
        let (x, y) = points.into_iter().unzip();
        lines.push(FigureLine { series, joined: true, x, y, ..FigureLine::default() });
    }
    if lines.is_empty() {
        return None;
    }
    let missing = runs.len() - lines.len();
    let drawn = lines.len();
    let overlaid = drawn <= MAX_OVERLAYS;
    let panels = if overlaid {
        vec![FigurePanel { title: String::new(), lines }]
    } else {
        let alone = |line: FigureLine| FigurePanel {
            title: names[line.series].clone(),
            lines: vec![FigureLine { series: 0, ..line }],
        };
        lines.into_iter().map(alone).collect()
    };
    let missing =
        if missing > 0 { format!(" {} without this figure.", plural(missing, "run")) } else { String::new() };
    Some(Figure {
        id: id.to_owned(),
        title: title.to_owned(),
        caption: format!(
            "n = {drawn}, one {} per run; one point per interval of up to {}.{missing}",
            if overlaid { "line" } else { "chart" },
            quantity::text(longest_ns as f64, "ns")
        ),
        drawing: Drawing::Chart(FigureChart {
            x: FigureAxis { title: "Time from the start".to_owned(), unit: "s".to_owned(), ..FigureAxis::default() },
            y: FigureAxis { title: axis.to_owned(), unit: unit.to_owned(), ..FigureAxis::default() },
            series: if overlaid { names.to_vec() } else { vec![String::new()] },
            panels,
            marks: Vec::new(),
        }),
    })
}

fn primary(run: &RunDocument) -> impl Iterator<Item = &Stream> {
    let direction: Direction = run.requested.direction.parts()[0];
    run.streams.iter().filter(move |stream| stream.direction == direction)
}

/// Returns the interval of a point: the sampling interval, or longer to limit the number of points.
fn every_ns(run: &RunDocument) -> u64 {
    let end =
        run.streams.iter().filter_map(|stream| stream.intervals.last()).map(|last| last.end_ns).max().unwrap_or(0);
    let asked = run.effective.as_ref().unwrap_or(&run.requested).interval_ns;
    asked.max(end.div_ceil(MAX_POINTS)).max(1)
}

/// Returns the receivers' rate over their intervals, merged to at least `every_ns`.
fn goodput(run: &RunDocument, every_ns: u64) -> Series {
    let mut bytes: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    for interval in primary(run).flat_map(|stream| &stream.intervals) {
        *bytes.entry((interval.start_ns, interval.end_ns)).or_default() += interval.bytes;
    }
    let mut series = Vec::new();
    let mut open: Option<(u64, u64, u64)> = None;
    for ((start, end), bytes) in bytes {
        let (from, _, sum) = open.unwrap_or((start, end, 0));
        open = Some((from, end, sum + bytes));
        // Allow for slightly shorter intervals: boundaries are the times of readings, not multiples of the
        // interval.
        if (end - from) * 10 >= every_ns * 9 {
            series.extend(open.take().map(rate));
        }
    }
    // The remainder is shorter than an interval: too short for a rate.
    series
}

fn rate((from, to, bytes): (u64, u64, u64)) -> (f64, Option<f64>) {
    let ns = (to - from) as f64;
    ((from + to) as f64 / 2e9, (ns > 0.0).then(|| bytes as f64 * 8e9 / ns))
}

/// Groups the samples of each sender that have TCP state, by time bucket.
fn buckets<'a>(run: &'a RunDocument, every_ns: u64) -> Vec<BTreeMap<u64, Vec<&'a TcpInfo>>> {
    let of = |samples: &'a [Sample]| {
        let mut found: BTreeMap<u64, Vec<&TcpInfo>> = BTreeMap::new();
        for sample in samples {
            if let Some(tcp) = &sample.tcp {
                found.entry(sample.t_ns / every_ns).or_default().push(tcp);
            }
        }
        found
    };
    primary(run).filter_map(|stream| Some(of(&stream.sender.as_ref()?.samples))).collect()
}

/// Combines the mean of each stream into one value per bucket with `fold`.
fn combined(run: &RunDocument, every_ns: u64, of: fn(&TcpInfo) -> f64, fold: fn(&[f64]) -> f64) -> Series {
    let mut means: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for stream in buckets(run, every_ns) {
        for (at, infos) in stream {
            let values: Vec<f64> = infos.iter().map(|info| of(info)).filter(|value| *value > 0.0).collect();
            if !values.is_empty() {
                means.entry(at).or_default().push(values.iter().sum::<f64>() / values.len() as f64);
            }
        }
    }
    means.into_iter().map(|(at, values)| ((at as f64 + 0.5) * every_ns as f64 / 1e9, Some(fold(&values)))).collect()
}

fn rtt(run: &RunDocument, every_ns: u64) -> Series {
    combined(run, every_ns, |tcp| f64::from(tcp.rtt_us) * 1e3, |all| all.iter().sum::<f64>() / all.len() as f64)
}

fn cwnd(run: &RunDocument, every_ns: u64) -> Series {
    combined(run, every_ns, |tcp| f64::from(tcp.snd_cwnd) * f64::from(tcp.snd_mss_bytes), |all| all.iter().sum())
}

fn retransmits(run: &RunDocument, every_ns: u64) -> Series {
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    for stream in buckets(run, every_ns) {
        let mut before = 0;
        for (at, infos) in stream {
            let most = infos.iter().map(|tcp| tcp.total_retrans).max().unwrap_or(before);
            *counts.entry(at).or_default() += u64::from(most.saturating_sub(before));
            before = most.max(before);
        }
    }
    counts.into_iter().map(|(at, count)| ((at as f64 + 0.5) * every_ns as f64 / 1e9, Some(count as f64))).collect()
}
