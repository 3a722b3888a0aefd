//! A finished case: what each contestant measured, and whether landspeed meets its target.

use std::fmt::Write;

use landspeed_stats::median;
use serde::Serialize;

/// Which of two values is the better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// A rate.
    Higher,
    /// A time or a cost.
    Lower,
}

/// How a value is printed.
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
    /// A number of things.
    Count,
    /// One over another.
    Ratio,
    /// Bytes.
    Bytes,
}

impl Unit {
    /// The value as a person reads it.
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

/// What a case measures of each contestant.
#[derive(Debug, Clone, Serialize)]
pub struct Metric {
    /// In words.
    pub name: String,
    /// Unit of the values.
    pub unit: Unit,
    /// Which way is up.
    pub better: Better,
    /// The target: landspeed over the best rival, at least (higher is better) or at most (lower is better).
    pub target: Option<f64>,
    /// Further targets.
    pub further: Vec<Target>,
}

/// A target of one contestant over another one.
#[derive(Debug, Clone, Serialize)]
pub struct Target {
    /// The contestant.
    pub who: String,
    /// The other one.
    pub rival: String,
    /// At least (higher is better) or at most (lower is better).
    pub target: f64,
}

/// Values of one contestant for one metric, in the order of rounds.
#[derive(Debug, Clone, Serialize)]
pub struct Series {
    /// Contestant.
    pub name: String,
    /// Whether it is landspeed.
    pub ours: bool,
    /// Whether it counts for the target: the first landspeed row against the best of these.
    pub judged: bool,
    /// One value for each round; `None` where the run failed.
    pub values: Vec<Option<f64>>,
    /// What went wrong, if something did.
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
    /// Who.
    pub name: String,
    /// Why.
    pub why: String,
}

/// A finished metric of a case.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// Case.
    pub case: String,
    /// What was measured.
    pub metric: Metric,
    /// Who took part.
    pub series: Vec<Series>,
    /// Who did not.
    pub skipped: Vec<Skipped>,
    /// Ours against the best rival.
    pub verdict: Option<Verdict>,
}

/// Ours against the best rival.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// The rival with the best median.
    pub rival: String,
    /// Our median over the rival's.
    pub ratio: f64,
    /// The same ratio within each round, lowest and highest: neighbours in time share the machine's mood.
    pub rounds: (f64, f64),
    /// Whether the target was met; `None` without one.
    pub met: Option<bool>,
}

impl Row {
    /// Draws the conclusion from the series.
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
    let (low, high) = ours
        .values
        .iter()
        .zip(&rival.values)
        .filter_map(|(ours, rival)| Some((*ours)? / (*rival)?))
        .filter(|ratio| ratio.is_finite())
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), ratio| (low.min(ratio), high.max(ratio)));
    let rounds = if low <= high { (low, high) } else { (ratio, ratio) };
    let met = target.map(|target| match better {
        Better::Higher => ratio >= target,
        Better::Lower => ratio <= target,
    });
    Some(Verdict { rival: rival.name.clone(), ratio, rounds, met })
}

impl Row {
    /// The ratios of a contestant and whether they meet its targets, as two cells of the table.
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
            let Verdict { rival, ratio, rounds: (low, high), .. } = verdict.as_ref()?;
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

/// The rows as one Markdown table.
pub fn markdown(rows: &[Row]) -> String {
    let mut out = String::from(
        "| case | metric | tool | median | min – max | runs | landspeed / best rival (per round) | target |\n\
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
    fn ours_is_held_against_the_best_rival_by_medians() {
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
    fn the_cheapest_rival_counts_where_lower_is_better() {
        let series =
            vec![series("ours", true, &[9.0]), series("dear", false, &[20.0]), series("cheap", false, &[10.0])];
        let verdict = judge(&metric(Better::Lower, 0.8), &series).unwrap();
        assert_eq!((verdict.rival.as_str(), verdict.met), ("cheap", Some(false)));
    }

    #[test]
    fn a_round_that_failed_leaves_its_neighbours_paired() {
        let mut rival = series("rival", false, &[1.0, 2.0, 4.0]);
        rival.values[1] = None;
        let verdict = judge(&metric(Better::Higher, 1.0), &[series("ours", true, &[2.0, 2.0, 4.0]), rival]).unwrap();
        assert_eq!(verdict.rounds, (1.0, 2.0));
    }

    #[test]
    fn without_a_rival_nothing_is_judged() {
        let skipped = vec![Skipped { name: "iperf3".to_owned(), why: "iperf3 is not installed".to_owned() }];
        let row = Row::new("tcp", metric(Better::Higher, 1.1), vec![series("ours", true, &[1e9])], skipped);
        let table = markdown(std::slice::from_ref(&row));
        assert_eq!(row.verdict, None);
        assert!(table.contains("| tcp | goodput | ours | 1.00 Gb/s |"), "{table}");
        assert!(table.contains("≥ 1.10×: not judged"), "{table}");
        assert!(table.contains("|  |  | iperf3 | SKIPPED | iperf3 is not installed |"), "{table}");
    }

    #[test]
    fn each_target_is_judged_beside_its_rival() {
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
    fn values_are_shown_in_the_units_people_read() {
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
