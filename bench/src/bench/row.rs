//! A finished case: values of each contestant, and whether landspeed meets its targets.

use std::fmt::Write;

use landspeed_stats::{median, median_interval};
use serde::Serialize;

/// Direction of improvement of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Higher is better: a rate.
    Higher,
    /// Lower is better: a time or a cost.
    Lower,
}

/// Unit of a value; determines how it is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Bits per second.
    Bps,
    /// Datagrams per second.
    PacketsPerS,
    /// Transactions per second.
    PerS,
    /// Nanoseconds.
    Ns,
    /// CPU nanoseconds per payload byte.
    NsPerByte,
    /// A count.
    Count,
    /// A ratio.
    Ratio,
    /// Bytes.
    Bytes,
}

impl Unit {
    /// Formats the value with its unit.
    pub fn show(self, value: f64) -> String {
        match self {
            Self::Bps if value >= 1e9 => format!("{:.2} Gb/s", value / 1e9),
            Self::Bps => format!("{:.1} Mb/s", value / 1e6),
            Self::PacketsPerS => format!("{:.0} kpkt/s", value / 1e3),
            Self::PerS => format!("{:.1} k/s", value / 1e3),
            Self::Ns if value >= 1e6 => format!("{:.2} ms", value / 1e6),
            Self::Ns => format!("{:.1} µs", value / 1e3),
            Self::NsPerByte => format!("{value:.3} ns/B"),
            Self::Count => format!("{value:.0}"),
            Self::Ratio => format!("{value:.2}"),
            Self::Bytes => format!("{:.0} MiB", value / f64::from(1 << 20)),
        }
    }
}

/// A metric of a case.
#[derive(Debug, Clone, Serialize)]
pub struct Metric {
    /// Name as printed.
    pub name: String,
    /// Unit of the values.
    pub unit: Unit,
    /// Direction of improvement.
    pub better: Better,
    /// Target ratio of landspeed to the best rival: minimum (higher is better) or maximum (lower is better).
    pub target: Option<f64>,
    /// Targets for other pairs of contestants.
    pub further: Vec<Target>,
}

/// A target for one contestant relative to another.
#[derive(Debug, Clone, Serialize)]
pub struct Target {
    /// Name of the contestant.
    pub who: String,
    /// Name of the contestant it is compared with.
    pub rival: String,
    /// Target ratio: minimum (higher is better) or maximum (lower is better).
    pub target: f64,
}

/// Values of one contestant for one metric, in round order.
#[derive(Debug, Clone, Serialize)]
pub struct Series {
    /// Name of the contestant.
    pub name: String,
    /// Whether it is landspeed.
    pub ours: bool,
    /// Whether the target uses it: the first landspeed row is compared with the best of these rivals.
    pub judged: bool,
    /// One value per round; `None` if the run failed.
    pub values: Vec<Option<f64>>,
    /// Last error, if any.
    pub error: Option<String>,
}

impl Series {
    fn good(&self) -> Vec<f64> {
        self.values.iter().copied().flatten().collect()
    }

    fn median(&self) -> Option<f64> {
        median(&self.good())
    }
}

/// A tool that was skipped.
#[derive(Debug, Clone, Serialize)]
pub struct Skipped {
    /// Name of the tool.
    pub name: String,
    /// Reason.
    pub why: String,
}

/// One metric of a finished case.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// Name of the case.
    pub case: String,
    /// The metric.
    pub metric: Metric,
    /// Values of the contestants.
    pub series: Vec<Series>,
    /// Contestants that did not run.
    pub skipped: Vec<Skipped>,
    /// Result of the comparison with the best rival; `None` without a rival.
    pub verdict: Option<Verdict>,
}

/// Comparison of landspeed with the best rival.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// The rival with the best median.
    pub rival: String,
    /// Landspeed's median divided by the rival's.
    pub ratio: f64,
    /// Minimum and maximum of the ratio within a round: successive runs share the machine's current state.
    pub rounds: (f64, f64),
    /// 95 % interval of the median of these ratios, as in `landspeed compare`; `None` with fewer than six rounds.
    pub interval: Option<(f64, f64)>,
    /// Whether the target is met; `None` without a target.
    pub met: Option<bool>,
}

impl Row {
    /// Computes the verdict from the series.
    pub fn new(case: &str, metric: Metric, series: Vec<Series>, skipped: Vec<Skipped>) -> Self {
        let verdict = judge(&metric, &series);
        Self { case: case.to_owned(), metric, series, skipped, verdict }
    }
}

fn judge(metric: &Metric, series: &[Series]) -> Option<Verdict> {
    let ours = series.iter().find(|series| series.ours && series.judged)?;
    let rivals = series.iter().filter(|series| !series.ours && series.judged);
    let (rival, _) =
        rivals.filter_map(|rival| Some((rival, rival.median()?))).reduce(|a, b| match metric.better {
            Better::Higher if b.1 > a.1 => b,
            Better::Lower if b.1 < a.1 => b,
            _ => a,
        })?;
    compare(ours, rival, metric.better, metric.target)
}

fn compare(ours: &Series, rival: &Series, better: Better, target: Option<f64>) -> Option<Verdict> {
    let ratio = ours.median()? / rival.median()?;
    if !ratio.is_finite() {
        return None;
    }
    let ratios: Vec<f64> = ours
        .values
        .iter()
        .zip(&rival.values)
        .filter_map(|(ours, rival)| Some((*ours)? / (*rival)?))
        .filter(|ratio| ratio.is_finite() && *ratio > 0.0)
        .collect();
    let logarithms: Vec<f64> = ratios.iter().map(|ratio| ratio.ln()).collect();
    let interval = median_interval(&logarithms, 0.95).map(|found| (found.low.exp(), found.high.exp()));
    let (low, high) = ratios
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), ratio| (low.min(*ratio), high.max(*ratio)));
    let rounds = if low <= high { (low, high) } else { (ratio, ratio) };
    let met = target.map(|target| match better {
        Better::Higher => ratio >= target,
        Better::Lower => ratio <= target,
    });
    Some(Verdict { rival: rival.name.clone(), ratio, rounds, interval, met })
}

impl Row {
    /// Returns the ratios of a contestant and whether its targets are met, as two table cells.
    fn targets(&self, series: &Series) -> (String, String) {
        let Metric { better, target, ref further, .. } = self.metric;
        let judged = self.series.iter().find(|one| one.ours && one.judged).is_some_and(|one| one.name == series.name);
        let mut verdicts: Vec<(Option<Verdict>, Option<f64>)> = Vec::new();
        if judged {
            verdicts.push((self.verdict.clone(), target));
        }
        for wanted in further.iter().filter(|wanted| wanted.who == series.name) {
            let rival = self.series.iter().find(|one| one.name == wanted.rival);
            let verdict = rival.and_then(|rival| compare(series, rival, better, Some(wanted.target)));
            verdicts.push((verdict, Some(wanted.target)));
        }
        let sign = if better == Better::Higher { '≥' } else { '≤' };
        let ratios = verdicts.iter().filter_map(|(verdict, _)| {
            let Verdict { rival, ratio, rounds, interval, .. } = verdict.as_ref()?;
            let (low, high) = interval.unwrap_or(*rounds);
            Some(format!("{ratio:.2}× {rival} ({low:.2}–{high:.2})"))
        });
        let met = verdicts.iter().filter_map(|(verdict, target)| {
            let met = verdict.as_ref().and_then(|verdict| verdict.met);
            let word = met.map_or("not judged", |met| if met { "met" } else { "**missed**" });
            Some(format!("{sign} {:.2}×: {word}", (*target)?))
        });
        (ratios.collect::<Vec<_>>().join("; "), met.collect::<Vec<_>>().join("; "))
    }
}

/// Formats the rows as one Markdown table.
pub fn markdown(rows: &[Row]) -> String {
    let mut out = String::from(
        "| case | metric | tool | median | min – max | runs | landspeed / best rival (95 % interval) | target |\n\
         |---|---|---|---:|---:|---:|---|---|\n",
    );
    for row in rows {
        let unit = row.metric.unit;
        let mut lead = [row.case.as_str(), row.metric.name.as_str()];
        for series in &row.series {
            let good = series.good();
            let (low, high) =
                good.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &v| (low.min(v), high.max(v)));
            let (middle, range) = match series.median() {
                Some(median) => (unit.show(median), format!("{} – {}", unit.show(low), unit.show(high))),
                None => ("–".to_owned(), format!("FAILED: {}", series.error.as_deref().unwrap_or("no value"))),
            };
            let (ratio, target) = row.targets(series);
            let _ = writeln!(
                out,
                "| {} | {} | {} | {middle} | {range} | {} | {ratio} | {target} |",
                lead[0],
                lead[1],
                series.name,
                good.len(),
            );
            lead = ["", ""];
        }
        for skipped in &row.skipped {
            let _ =
                writeln!(out, "| {} | {} | {} | SKIPPED | {} | 0 | | |", lead[0], lead[1], skipped.name, skipped.why);
            lead = ["", ""];
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metric(better: Better, target: f64) -> Metric {
        Metric { name: "goodput".to_owned(), unit: Unit::Bps, better, target: Some(target), further: Vec::new() }
    }

    fn series(name: &str, ours: bool, values: &[f64]) -> Series {
        let values = values.iter().map(|&value| Some(value)).collect();
        Series { name: name.to_owned(), ours, judged: true, values, error: None }
    }

    #[test]
    fn landspeed_is_compared_with_the_best_rival_by_medians() {
        let row = Row::new(
            "tcp",
            metric(Better::Higher, 1.1),
            vec![
                series("ours", true, &[12e9, 30e9, 11e9]),
                series("slow", false, &[5e9, 5e9, 5e9]),
                series("fast", false, &[10e9, 10e9, 11e9]),
            ],
            Vec::new(),
        );
        let verdict = row.verdict.unwrap();
        assert_eq!((verdict.rival.as_str(), verdict.met), ("fast", Some(true)));
        assert!((verdict.ratio - 1.2).abs() < 1e-9);
        assert_eq!(verdict.rounds, (1.0, 3.0));
    }

    #[test]
    fn lowest_rival_is_best_where_lower_is_better() {
        let series =
            vec![series("ours", true, &[9.0]), series("dear", false, &[20.0]), series("cheap", false, &[10.0])];
        let verdict = judge(&metric(Better::Lower, 0.8), &series).unwrap();
        assert_eq!((verdict.rival.as_str(), verdict.met), ("cheap", Some(false)));
    }

    #[test]
    fn failed_rounds_keep_the_others_paired() {
        let mut rival = series("rival", false, &[1.0, 2.0, 4.0]);
        rival.values[1] = None;
        let verdict = judge(&metric(Better::Higher, 1.0), &[series("ours", true, &[2.0, 2.0, 4.0]), rival]).unwrap();
        assert_eq!(verdict.rounds, (1.0, 2.0));
    }

    #[test]
    fn no_rival_means_no_verdict() {
        let skipped = vec![Skipped { name: "iperf3".to_owned(), why: "iperf3 is not installed".to_owned() }];
        let row = Row::new("tcp", metric(Better::Higher, 1.1), vec![series("ours", true, &[1e9])], skipped);
        let table = markdown(std::slice::from_ref(&row));
        assert_eq!(row.verdict, None);
        assert!(table.contains("| tcp | goodput | ours | 1.00 Gb/s |"), "{table}");
        assert!(table.contains("≥ 1.10×: not judged"), "{table}");
        assert!(table.contains("|  |  | iperf3 | SKIPPED | iperf3 is not installed |"), "{table}");
    }

    #[test]
    fn each_target_is_compared_with_its_own_rival() {
        let mut metric = metric(Better::Higher, 8.0);
        for (who, rival, target) in [("one", "read", 0.5), ("two", "one", 1.6)] {
            metric.further.push(Target { who: who.to_owned(), rival: rival.to_owned(), target });
        }
        let mut read = series("read", false, &[20e9]);
        read.judged = false;
        let mut two = series("two", true, &[12e9]);
        two.judged = false;
        let all = vec![series("one", true, &[9e9]), two, series("tcptrace", false, &[1e9]), read];
        let table = markdown(&[Row::new("trace", metric, all, Vec::new())]);
        assert!(
            table
                .contains("9.00× tcptrace (9.00–9.00); 0.45× read (0.45–0.45) | ≥ 8.00×: met; ≥ 0.50×: **missed** |"),
            "{table}"
        );
        assert!(table.contains("1.33× one (1.33–1.33) | ≥ 1.60×: **missed** |"), "{table}");
    }

    #[test]
    fn values_are_formatted_in_readable_units() {
        let shown = [
            Unit::Bps.show(21.46e9),
            Unit::Bps.show(354.5e6),
            Unit::PacketsPerS.show(692_450.0),
            Unit::PerS.show(178_528.0),
            Unit::Ns.show(5_600.0),
            Unit::Ns.show(1_020_000.0),
            Unit::NsPerByte.show(0.31),
        ];
        assert_eq!(shown, ["21.46 Gb/s", "354.5 Mb/s", "692 kpkt/s", "178.5 k/s", "5.6 µs", "1.02 ms", "0.310 ns/B"]);
    }
}
