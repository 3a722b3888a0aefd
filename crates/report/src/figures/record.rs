//! Record chart: goodput × distance over time, compared with the last Land Speed Record.

use std::time::UNIX_EPOCH;

use landspeed_model::{
    Drawing, Figure, FigureAxis, FigureChart, FigureLine, FigureMark, FigurePanel, FigureScale, Metric, SweepDocument,
};
use landspeed_results::{Document, Record, RecordStatus};

use super::Source;

/// Internet2 Land Speed Records that their holders announced: seconds since 1970 (announced 2005-05-04 and
/// 2006-04-26, <https://pnwgp.net/news/>; measured 2006-12-30 and 2006-12-31,
/// <http://www.startap.net/translight/pages/applications/2007/data.html>), bit·m/s, and label.
const RECORDS: [(f64, f64, &str); 5] = [
    (1_115_164_800.0, 216_300e12, "IPv4 216300 Tb·m/s"),
    (1_146_009_600.0, 264_147e12, "IPv4 264147 Tb·m/s"),
    (1_146_009_600.0, 208_800e12, "IPv6 208800 Tb·m/s"),
    (1_167_436_800.0, 230_100e12, "IPv6 230100 Tb·m/s"),
    (1_167_523_200.0, LAST_RECORD_BIT_M_PER_S, "IPv6 272400 Tb·m/s"),
];
/// The last record: 9.08 Gb/s over 30,000 km (<http://www.internet2.edu/lsr/>).
const LAST_RECORD_BIT_M_PER_S: f64 = 9.08e9 * 30e6;

/// Returns the chart, if any result has a distance.
pub(crate) fn chart(sources: &[Source]) -> Option<Figure> {
    of(sources.iter().flat_map(|source| match &source.document {
        // Sweeps have a separate chart.
        Document::Sweep(_) => Vec::new(),
        other => other.records(),
    }))
}

/// The same for the runs of a sweep.
pub(crate) fn of_sweep(sweep: &SweepDocument) -> Option<Figure> {
    of(Document::Sweep(Box::new(sweep.clone())).records())
}

fn of(records: impl IntoIterator<Item = Record>) -> Option<Figure> {
    let mut points: Vec<(f64, f64)> = records
        .into_iter()
        .filter(|record| record.status == RecordStatus::Complete)
        .filter_map(|record| Some((seconds(&record.started)?, record.figures.get(Metric::Record)?)))
        .collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let best = points.iter().map(|(_, value)| *value).reduce(f64::max)?;
    let mut line = FigureLine { joined: false, ..FigureLine::default() };
    let mut leading = FigureLine { series: 1, joined: true, ..FigureLine::default() };
    let mut held = f64::MIN;
    for (at, value) in &points {
        line.x.push(*at);
        line.y.push(Some(*value));
        if *value > held {
            held = *value;
            leading.x.push(*at);
            leading.y.push(Some(held));
        }
    }
    Some(Figure {
        id: "record".to_owned(),
        title: "Goodput × distance over time".to_owned(),
        caption: format!(
            "n = {}, one point per run; best {}. The distance is the one given with --distance. Diamonds: published \
             Internet2 Land Speed Records, single stream, 30,000 km (University of Tokyo and others, 2005 and 2006).",
            points.len(),
            super::quantity::text(best, "bit·m/s")
        ),
        drawing: Drawing::Chart(FigureChart {
            x: FigureAxis { title: "Start, UTC".to_owned(), scale: FigureScale::Date, ..FigureAxis::default() },
            y: FigureAxis {
                title: Metric::Record.title().to_owned(),
                unit: Metric::Record.unit().to_owned(),
                scale: if best > 0.0 && best < LAST_RECORD_BIT_M_PER_S / 20.0 {
                    FigureScale::Log
                } else {
                    FigureScale::Linear
                },
                ..FigureAxis::default()
            },
            series: vec!["each run".to_owned(), "best until then".to_owned()],
            panels: vec![FigurePanel { title: String::new(), lines: vec![line, leading] }],
            marks: RECORDS
                .iter()
                .map(|(at, value, label)| FigureMark { label: (*label).to_owned(), x: Some(*at), y: *value })
                .collect(),
        }),
    })
}

/// Returns the seconds since 1970 of an RFC 3339 time.
fn seconds(text: &str) -> Option<f64> {
    let time = humantime::parse_rfc3339_weak(text).ok()?;
    Some(time.duration_since(UNIX_EPOCH).ok()?.as_secs_f64())
}
